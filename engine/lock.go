package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// Lock locks a person: nothing from their accounts counts until they are unlocked, including accounts in the
// configuration. Their votes on pending requests are dropped, their pairing links end, and their prompts can no longer
// be answered. An empty name is the caller's own. With since, the unused approvals that they gave since then are voided,
// and grants revoked. Everybody who is not locked may lock. If the store fails the person is locked nevertheless, and
// the lock is stored as soon as possible. Locking again only adds accounts that the person got since.
func (e *Engine) Lock(
	ctx context.Context, id connectors.Identity, name string, since time.Time,
) (done permissions.Locked, err error) {
	e.locking.Lock()
	defer e.locking.Unlock()
	who, err := e.Who(id)
	if err != nil {
		return done, err
	}
	name = cmp.Or(name, who)
	accounts, known := e.AccountsOf(name)
	if !known {
		return done, e.UnknownPerson(name)
	}
	e.forgetDecisions(nil)
	now := e.clock.Stamp()
	l := permissions.Lock{Person: name, At: now, By: who, Via: id.Via}
	all := e.Locks()
	i := slices.IndexFunc(all, func(l permissions.Lock) bool { return l.Person == name })
	if i >= 0 {
		l = all[i]
	}
	done.Already = i >= 0 && slices.Equal(accounts, l.Accounts)
	if !done.Already {
		l.Accounts = accounts
		entry := l.Record(permissions.PersonLocked, who, id.Via, now)
		l.Unsaved = &entry
		e.deciding.Lock() // decisions in progress are ordered before the lock
		e.SetLock(l, true)
		for _, other := range all { // their votes on other locks no longer count
			at := slices.IndexFunc(other.Unlocking, func(said string) bool { return strings.HasPrefix(said, name+" (") })
			if at >= 0 && other.Person != name {
				other.Unlocking = slices.Delete(slices.Clone(other.Unlocking), at, at+1)
				again := other.Record(permissions.PersonLocked, who, id.Via, now)
				other.Unsaved = &again
				e.SetLock(other, true)
			}
		}
		e.deciding.Unlock()
		e.log.Warn("person locked", "person", name, "by", who, "via", id.Via)
		e.realignSoon(false)
	}
	done.Lock = l
	noting, end := shared.Noting(ctx)
	defer end()
	if err := e.saveLocks(noting); err != nil {
		e.log.Error("save lock: retrying", "person", name, "err", err)
		return done, permissions.LockUnsaved(name, err.Error())
	}
	done.Unsaved = nil
	if since.IsZero() {
		return done, nil
	}
	return done, e.takeBack(context.WithoutCancel(ctx), &done, since)
}

// saveLocks stores the unsaved locks, or makes keepLocks retry. The caller holds e.locking.
func (e *Engine) saveLocks(ctx context.Context) error {
	for _, l := range e.Locks() {
		if l.Unsaved == nil {
			continue
		}
		if err := e.store.PutLock(ctx, l, *l.Unsaved); err != nil {
			e.unsaved.Notify()
			return err
		}
		l.Unsaved = nil
		e.SetLock(l, true)
	}
	return nil
}

// keepLocks stores the locks and the stop that could not be stored at once, and tries once more at shutdown.
func (e *Engine) keepLocks(ctx context.Context) error {
	for over := false; !over; {
		select {
		case <-ctx.Done():
		case <-e.unsaved:
			_ = timing.Pause(ctx, shared.RetryDelay) // returns at once when ctx ends
		}
		over = ctx.Err() != nil
		e.locking.Lock()
		noting, end := shared.Noting(ctx)
		if err := e.saveLocks(noting); err != nil && over {
			e.log.Error("save lock: lost at the next start", "err", err)
		}
		e.locking.Unlock()
		e.steering.Lock()
		if err := e.stopping(noting); err != nil && over {
			e.log.Error("save stop: lost at the next start", "err", err)
		}
		e.steering.Unlock()
		end()
	}
	return nil
}

// mostTaken bounds how many approvals are taken back in one call.
const mostTaken = 10000

// takeBack takes back what a person has given since a time: unused approvals, and grants.
func (e *Engine) takeBack(ctx context.Context, done *permissions.Locked, since time.Time) error {
	given, err := e.store.ApprovedBy(ctx, done.Person, since, mostTaken)
	if err != nil {
		return shared.Broken(err)
	}
	grants, err := e.store.GrantsInForce(ctx, "", e.clock.Now())
	if err != nil {
		return shared.Broken(err)
	}
	for _, g := range grants { // before their approvals, to list what ran under them
		helped := slices.ContainsFunc(given, func(r permissions.Request) bool { return r.ID == g.Request })
		if !helped && (g.By != done.Person || g.CreatedAt.Before(since)) {
			continue
		}
		revoked, err := e.store.Revoke(ctx, g.ID, done.By, done.Via, e.clock.Stamp(), ranMost)
		if err != nil {
			return shared.Broken(err)
		}
		e.registry.ForgetGrant(g.ID)
		done.Revoked = append(done.Revoked, revoked)
	}
	for _, r := range given {
		c, err := e.registry.Resolve(ctx, r.ID, permissions.Void{By: done.By, Via: done.Via, At: e.clock.Stamp()})
		switch {
		case err == nil:
			done.Voided = append(done.Voided, c.After)
		case errors.Is(err, permissions.ErrNoUse):
			done.Used = append(done.Used, c.Before)
		default:
			return shared.Broken(err)
		}
	}
	e.registry.NotifyNotices()
	if _, err := e.store.Verify(ctx); err != nil { // a modified row may have been missed
		return permissions.LockIncomplete(done.Person, len(done.Voided), len(done.Revoked), err.Error())
	}
	return nil
}

// Unlock ends a lock, by the person's name when they were locked or their current one: at once for the operator,
// otherwise when a second person agrees. It returns the lock as it is, and whether it is over. A locked person unlocks
// nobody.
func (e *Engine) Unlock(ctx context.Context, id connectors.Identity, name string) (l permissions.Lock, over bool, err error) {
	e.locking.Lock()
	defer e.locking.Unlock()
	who, err := e.Who(id)
	if err != nil {
		return l, false, err
	}
	all := e.Locks()
	i := slices.IndexFunc(all, func(l permissions.Lock) bool { return l.Person == name })
	if i < 0 {
		i = slices.IndexFunc(all, func(l permissions.Lock) bool { return slices.Contains(l.Holds, name) })
	}
	if _, known := e.AccountsOf(name); i < 0 && !known {
		return l, false, e.UnknownPerson(name)
	}
	if i < 0 {
		return l, false, permissions.NotLocked(name)
	}
	whole := context.WithoutCancel(ctx)
	if err := e.everyPending(whole, func(r permissions.Request) error { return e.realign(whole, r) }); err != nil {
		return all[i], false, shared.Broken(err) // else their earlier votes would count again
	}
	noting, end := shared.Noting(ctx)
	defer end()
	if err := e.saveLocks(noting); err != nil {
		return all[i], false, shared.Broken(err)
	}
	l = all[i]
	l.Unsaved = nil
	if !id.Operator {
		if l, err = e.agree(noting, l, who, id); err != nil || len(l.Unlocking) < unlockers {
			return l, false, err
		}
	}
	if err := e.store.PutLock(noting, l, l.Record(permissions.PersonUnlocked, who, id.Via, e.clock.Stamp())); err != nil {
		return l, false, shared.Broken(err)
	}
	e.SetLock(l, false)
	e.log.Warn("person unlocked", "person", l.Person, "by", who, "via", id.Via)
	e.realignSoon(false)
	if err := e.catchUp(noting); err != nil { // prompts were withheld meanwhile
		e.log.Error("list stale prompts", "err", err)
	}
	return l, true, nil
}

// unlockers is how many people it takes to unlock somebody without the operator.
const unlockers = 2

// agree adds a vote to end a lock. Votes of people who are locked by now or no longer configured are dropped, and votes
// from accounts that are no longer theirs.
func (e *Engine) agree(ctx context.Context, l permissions.Lock, who string, id connectors.Identity) (permissions.Lock, error) {
	var others, theirs []string
	for _, p := range e.Settings().People {
		if p.Locked == "" {
			others = append(others, p.Name)
			for _, account := range directory.Accounts(p) {
				theirs = append(theirs, p.Name+" ("+account+")")
			}
		}
	}
	if len(others) < unlockers || !slices.Contains(others, who) {
		return l, permissions.OperatorUnlocks(l.Person)
	}
	l.Unlocking = slices.DeleteFunc(slices.Clone(l.Unlocking), func(said string) bool {
		return strings.HasPrefix(said, who+" (") || !slices.Contains(theirs, said)
	})
	l.Unlocking = append(l.Unlocking, who+" ("+e.Settings().AccountOf(id)+")")
	err := e.store.PutLock(ctx, l, l.Record(permissions.UnlockAsked, who, id.Via, e.clock.Stamp()))
	if err == nil {
		e.SetLock(l, true)
	}
	return l, shared.Broken(err)
}
