package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Lock locks a person: nothing that comes from their accounts counts until they are unlocked, those of the configuration
// included. Their votes on pending requests are dropped, their pairing links end, and their cards can no longer be answered.
// An empty name is the caller's own. With since, what they have given since then and is not used, and the grants, are taken
// back. Everybody who is not locked may lock. Where the store fails the person is locked, too, and that is stored as soon as
// it can be. Locking again only adds accounts that the person got since.
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
	accounts, known := e.accountsOf(name)
	if !known {
		return done, unknownPerson(name, e.base.Load().People)
	}
	now := e.stamp()
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
		e.deciding.Lock() // what is being decided is decided before
		e.setLock(l, true)
		for _, other := range all { // what a locked person said of other locks does not count any more
			at := slices.IndexFunc(other.Unlocking, func(said string) bool { return strings.HasPrefix(said, name+" (") })
			if at >= 0 && other.Person != name {
				other.Unlocking = slices.Delete(slices.Clone(other.Unlocking), at, at+1)
				again := other.Record(permissions.PersonLocked, who, id.Via, now)
				other.Unsaved = &again
				e.setLock(other, true)
			}
		}
		e.deciding.Unlock()
		e.log.Warn("a person was locked", "person", name, "by", who, "via", id.Via)
		e.realignSoon()
	}
	done.Lock = l
	noting, end := noting(ctx)
	defer end()
	if err := e.saveLocks(noting); err != nil {
		e.log.Error("a lock cannot be saved just now", "person", name, "err", err)
		return done, permissions.LockUnsaved(name, err.Error())
	}
	done.Unsaved = nil
	if since.IsZero() {
		return done, nil
	}
	return done, e.takeBack(context.WithoutCancel(ctx), &done, since)
}

// saveLocks stores the locks that are not yet, or has keepLocks try again. The caller holds e.locking.
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
		e.setLock(l, true)
	}
	return nil
}

// keepLocks stores the locks and the stop that could not be at once, as soon as they can be, and tries once more at the end.
func (e *Engine) keepLocks(ctx context.Context) error {
	for over := false; !over; {
		select {
		case <-ctx.Done():
		case <-e.unsaved:
			_ = permissions.Pause(ctx, retryDelay) // at the end of ctx at once
		}
		over = ctx.Err() != nil
		e.locking.Lock()
		noting, end := noting(ctx)
		if err := e.saveLocks(noting); err != nil && over {
			e.log.Error("a lock could not be saved, and the next start does not know of it", "err", err)
		}
		e.locking.Unlock()
		e.steering.Lock()
		if err := e.stopping(noting); err != nil && over {
			e.log.Error("a stop of everything could not be saved, and the next start does not know of it", "err", err)
		}
		e.steering.Unlock()
		end()
	}
	return nil
}

// setLock puts a lock into force in place of the person's earlier one, and ends their pairing links; without on it removes it.
func (e *Engine) setLock(l permissions.Lock, on bool) {
	e.mu.Lock()
	e.locks = slices.DeleteFunc(slices.Clone(e.locks), func(o permissions.Lock) bool { return o.Person == l.Person })
	if on {
		e.locks = append(e.locks, l)
		maps.DeleteFunc(e.invited, func(code string, in invited) bool {
			if in.name == l.Person {
				in.door.Dismiss(code)
			}
			return in.name == l.Person
		})
	}
	e.mu.Unlock()
	e.refill()
}

// accountsOf are all that a person has, or had when they were locked before; known is false for nobody's name.
func (e *Engine) accountsOf(name string) (all []string, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.locks {
		if l.Person == name {
			all, known = append(all, l.Accounts...), true
		}
	}
	for _, p := range e.filled() {
		if p.Name == name {
			all, known = append(all, accounts(p)...), true
		}
	}
	slices.Sort(all)
	return slices.Compact(all), known
}

// accounts are those of a person, as the audit names them.
func accounts(p connectors.Person) []string {
	all := []string{
		accountOf(connectors.Identity{Telegram: p.Telegram, UID: permissions.NoUID}),
		accountOf(connectors.Identity{WhatsApp: p.WhatsApp, UID: permissions.NoUID}), accountOf(connectors.Identity{UID: p.UID}),
	}
	return slices.DeleteFunc(all, func(account string) bool { return account == "" })
}

// shut marks the people who are locked, by their name or by an account, and notes in each lock under which other names. The
// lock is held.
func (e *Engine) shut(people []connectors.Person) {
	for j, l := range e.locks {
		e.locks[j].Holds = nil
		for i, p := range people {
			named := l.Person == p.Name
			if !named && !slices.ContainsFunc(accounts(p), func(a string) bool { return slices.Contains(l.Accounts, a) }) {
				continue
			}
			if people[i].Locked = l.Person; !named {
				e.locks[j].Holds = append(e.locks[j].Holds, p.Name)
			}
		}
	}
}

// mostTaken bounds how many approvals are taken back in one call.
const mostTaken = 10000

// takeBack takes back what a person has given since a time: approvals that were not used, and grants.
func (e *Engine) takeBack(ctx context.Context, done *permissions.Locked, since time.Time) error {
	given, err := e.store.ApprovedBy(ctx, done.Person, since, mostTaken)
	if err != nil {
		return broken(err)
	}
	grants, err := e.store.GrantsInForce(ctx, "", e.clock.Now())
	if err != nil {
		return broken(err)
	}
	for _, g := range grants { // before their approvals, so that it is known what ran under them
		helped := slices.ContainsFunc(given, func(r permissions.Request) bool { return r.ID == g.Request })
		if !helped && (g.By != done.Person || g.CreatedAt.Before(since)) {
			continue
		}
		revoked, err := e.store.Revoke(ctx, g.ID, done.By, done.Via, e.stamp(), ranMost)
		if err != nil {
			return broken(err)
		}
		e.registry.ForgetGrant(g.ID)
		done.Revoked = append(done.Revoked, revoked)
	}
	for _, r := range given {
		c, err := e.registry.Resolve(ctx, r.ID, permissions.Void{By: done.By, Via: done.Via, At: e.stamp()})
		switch {
		case err == nil:
			done.Voided = append(done.Voided, c.After)
		case errors.Is(err, permissions.ErrNoUse):
			done.Used = append(done.Used, c.Before)
		default:
			return broken(err)
		}
	}
	e.registry.NotifyNotices()
	if _, err := e.store.Verify(ctx); err != nil { // a row that was changed may not have been found
		return permissions.LockIncomplete(done.Person, len(done.Voided), len(done.Revoked), err.Error())
	}
	return nil
}

// Unlock ends a lock, by the name that the person had when they were locked, or has now: for the operator at once, else when a
// second person says it. It returns the lock as it stands, and whether it is over. Whoever is locked unlocks nobody.
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
	if _, known := e.accountsOf(name); i < 0 && !known {
		return l, false, unknownPerson(name, e.base.Load().People)
	}
	if i < 0 {
		return l, false, permissions.NotLocked(name)
	}
	whole := context.WithoutCancel(ctx)
	if err := e.everyPending(whole, func(r permissions.Request) error { return e.realign(whole, r) }); err != nil {
		return all[i], false, broken(err) // what they said before the lock would count again
	}
	noting, end := noting(ctx)
	defer end()
	if err := e.saveLocks(noting); err != nil {
		return all[i], false, broken(err)
	}
	l = all[i]
	l.Unsaved = nil
	if !id.Operator {
		if l, err = e.agree(noting, l, who, id); err != nil || len(l.Unlocking) < unlockers {
			return l, false, err
		}
	}
	if err := e.store.PutLock(noting, l, l.Record(permissions.PersonUnlocked, who, id.Via, e.stamp())); err != nil {
		return l, false, broken(err)
	}
	e.setLock(l, false)
	e.log.Warn("a person was unlocked", "person", l.Person, "by", who, "via", id.Via)
	e.realignSoon()
	if err := e.catchUp(noting); err != nil { // what was asked of them meanwhile was not shown them
		e.log.Error("copies cannot be listed just now", "err", err)
	}
	return l, true, nil
}

// unlockers is how many people unlock somebody, where the operator does not.
const unlockers = 2

// agree notes that one more person says that a lock is to end. Votes of people who are locked by now, or no longer configured,
// are dropped, and those from accounts that are not theirs any more.
func (e *Engine) agree(ctx context.Context, l permissions.Lock, who string, id connectors.Identity) (permissions.Lock, error) {
	var others, theirs []string
	for _, p := range e.settings.Load().People {
		if p.Locked == "" {
			others = append(others, p.Name)
			for _, account := range accounts(p) {
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
	l.Unlocking = append(l.Unlocking, who+" ("+e.settings.Load().accountOf(id)+")")
	err := e.store.PutLock(ctx, l, l.Record(permissions.UnlockAsked, who, id.Via, e.stamp()))
	if err == nil {
		e.setLock(l, true)
	}
	return l, broken(err)
}

// Locks are the people who are locked, in no particular order.
func (e *Engine) Locks() []permissions.Lock {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.locks)
}

func (e *Engine) readLocks(ctx context.Context) error {
	locks, err := e.store.Locks(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.locks = locks
	e.mu.Unlock()
	e.refill()
	return nil
}

// lockedOut says that a person is locked, and what ends that; nil where they are not.
func lockedOut(p connectors.Person) error {
	if p.Locked == "" {
		return nil
	}
	return &connectors.UnreachableError{Reason: fmt.Sprintf("%s is locked until: daycared unlock %s", p.Name, p.Locked)}
}
