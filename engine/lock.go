package engine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

type locks struct {
	*services

	stops    *stops
	forget   func(matches func(decisionKey) bool) // see [Engine.forgetDecisions]
	locking  sync.Mutex                           // one lock or unlocking at a time
	deciding sync.RWMutex                         // read-locked by each decision, so that a lock is ordered before or after it
}

// Lock locks a person: nothing from their accounts counts until they are unlocked, including accounts in the
// configuration. Their votes on pending requests are dropped, their pairing links end, and their prompts can no longer
// be answered. An empty name is the caller's own. With since, the unused approvals that they gave since then are voided,
// and grants revoked. Everybody who is not locked may lock. If the store fails the person is locked nevertheless, and
// the lock is stored as soon as possible. Locking again adds accounts that the person got since, and drops votes to unlock them.
func (k *locks) Lock(
	ctx context.Context, id connectors.Identity, name string, since time.Time,
) (done permissions.Locked, err error) {
	k.locking.Lock()
	defer k.locking.Unlock()
	who, err := k.Who(id)
	if err != nil {
		return done, err
	}
	name = cmp.Or(name, who)
	accounts, known := k.AccountsOf(name)
	if !known {
		return done, k.UnknownPerson(name)
	}
	k.forget(nil)
	now := k.clock.Stamp()
	l := permissions.Lock{Person: name, At: now, By: who, Via: id.Via}
	all := k.Locks()
	i := slices.IndexFunc(all, func(l permissions.Lock) bool { return l.Person == name })
	if i >= 0 {
		l = all[i]
	}
	done.Already = i >= 0 && slices.Equal(accounts, l.Accounts)
	if !done.Already || len(l.Unlocking) > 0 {
		l.Accounts, l.Unlocking = accounts, nil
		entry := l.Record(permissions.PersonLocked, who, id.Via, now)
		l.Unsaved = &entry
		k.deciding.Lock() // decisions in progress are ordered before the lock
		k.SetLock(l, true)
		for _, other := range all { // their votes on other locks no longer count
			at := slices.IndexFunc(other.Unlocking, func(said string) bool { return strings.HasPrefix(said, name+" (") })
			if at >= 0 && other.Person != name {
				other.Unlocking = slices.Delete(slices.Clone(other.Unlocking), at, at+1)
				again := other.Record(permissions.PersonLocked, who, id.Via, now)
				other.Unsaved = &again
				k.SetLock(other, true)
			}
		}
		k.deciding.Unlock()
		k.log.Warn("person locked", "person", name, "by", who, "via", id.Via)
		k.RealignSoon(false)
	}
	done.Lock = l
	noting, end := shared.Noting(ctx)
	defer end()
	if err := k.saveLocks(noting); err != nil {
		k.log.Error("save lock: retrying", "person", name, "err", err)
		return done, permissions.LockUnsaved(name, err.Error(), k.awaitLease != nil)
	}
	if err := k.WithdrawPairingsOf(noting, name, who, id.Via); err != nil {
		k.log.Error("withdraw what a locked person proposed", "person", name, "err", err)
	}
	done.Unsaved = nil
	if since.IsZero() {
		return done, nil
	}
	return done, k.takeBack(context.WithoutCancel(ctx), &done, since)
}

// saveLocks stores the unsaved locks, or makes keepLocks retry. The caller holds locking.
func (k *locks) saveLocks(ctx context.Context) error {
	for _, l := range slices.Concat(k.Locks(), k.StoppedAgents()) {
		if l.Unsaved == nil {
			continue
		}
		if err := k.store.PutLock(ctx, l, *l.Unsaved); err != nil {
			k.stops.unsaved.Notify()
			return err
		}
		l.Unsaved = nil
		k.SetLock(l, true)
	}
	return nil
}

// keepLocks stores the locks and the stop that could not be stored at once, and tries once more at shutdown.
func (k *locks) keepLocks(ctx context.Context) error {
	for over := false; !over; {
		select {
		case <-ctx.Done():
		case <-k.stops.unsaved:
			_ = timing.Pause(ctx, shared.RetryDelay) // returns at once when ctx ends
		}
		over = ctx.Err() != nil
		k.locking.Lock()
		noting, end := shared.Noting(ctx)
		if err := k.saveLocks(noting); err != nil && over {
			k.log.Error("save lock: lost at the next start", "err", err)
		}
		k.locking.Unlock()
		k.stops.steering.Lock()
		if err := k.stops.stopping(noting); err != nil && over {
			k.log.Error("save stop: lost at the next start", "err", err)
		}
		k.stops.steering.Unlock()
		end()
	}
	return nil
}

// maxTaken bounds how many approvals are taken back in one call.
const maxTaken = 10000

// takeBack takes back what a person has given since a time: unused approvals, and grants.
func (k *locks) takeBack(ctx context.Context, done *permissions.Locked, since time.Time) error {
	given, err := k.store.ApprovedBy(ctx, done.Person, since, maxTaken)
	if err != nil {
		return shared.Broken(err)
	}
	grants, err := k.store.GrantsInForce(ctx, "", k.clock.Now(), "", math.MaxInt)
	if err != nil {
		return shared.Broken(err)
	}
	for _, g := range grants { // before their approvals, to list what ran under them
		helped := slices.ContainsFunc(given, func(r permissions.Request) bool { return r.ID == g.Request })
		if !helped && (g.By != done.Person || g.CreatedAt.Before(since)) {
			continue
		}
		revoked, err := k.store.Revoke(ctx, g.ID, done.By, done.Via, k.clock.Stamp(), shared.RanMost)
		if err != nil {
			return shared.Broken(err)
		}
		k.registry.ForgetGrant(g.ID)
		done.Revoked = append(done.Revoked, revoked)
	}
	for _, r := range given {
		c, err := k.registry.Resolve(ctx, r.ID, permissions.Void{By: done.By, Via: done.Via, At: k.clock.Stamp()})
		switch {
		case err == nil && c.Before.CollectedAt.IsZero():
			done.Voided = append(done.Voided, c.After)
		case err == nil, errors.Is(err, permissions.ErrNoUse):
			done.Used = append(done.Used, c.Before)
		default:
			return shared.Broken(err)
		}
	}
	k.registry.NotifyNotices()
	if _, err := k.store.Verify(ctx); err != nil { // a modified row may have been missed
		return permissions.LockIncomplete(done.Person, len(done.Voided), len(done.Revoked), err.Error())
	}
	return nil
}

// Unlock ends a lock, by the person's name when they were locked or their current one: at once for the operator,
// otherwise when a second person agrees, neither from an account that agents ask from. It returns the lock as it is,
// and whether it is over. A locked person unlocks nobody.
func (k *locks) Unlock(ctx context.Context, id connectors.Identity, name string) (l permissions.Lock, over bool, err error) {
	k.locking.Lock()
	defer k.locking.Unlock()
	who, err := k.Who(id)
	if err != nil {
		return l, false, err
	}
	all := k.Locks()
	i := slices.IndexFunc(all, func(l permissions.Lock) bool { return l.Person == name })
	if i < 0 {
		i = slices.IndexFunc(all, func(l permissions.Lock) bool { return slices.Contains(l.OtherNames, name) })
	}
	if _, known := k.AccountsOf(name); i < 0 && !known {
		return l, false, k.UnknownPerson(name)
	}
	if i < 0 {
		return l, false, permissions.NotLocked(name)
	}
	whole := context.WithoutCancel(ctx)
	if err := k.EveryPending(whole, func(r permissions.Request) error {
		_, err := k.Realign(whole, r)
		return err
	}); err != nil {
		return all[i], false, shared.Broken(err) // else their earlier votes would count again
	}
	noting, end := shared.Noting(ctx)
	defer end()
	if err := k.saveLocks(noting); err != nil {
		return all[i], false, shared.Broken(err)
	}
	l = all[i]
	l.Unsaved = nil
	if !id.Operator {
		if err := k.RefuseAskingAccount(noting, id, ""); err != nil {
			return l, false, err
		}
		if l, err = k.addUnlockVote(noting, l, who, id); err != nil || len(l.Unlocking) < unlockers {
			return l, false, err
		}
	}
	if err := k.store.PutLock(noting, l, l.Record(permissions.PersonUnlocked, who, id.Via, k.clock.Stamp())); err != nil {
		return l, false, shared.Broken(err)
	}
	k.SetLock(l, false)
	k.log.Warn("person unlocked", "person", l.Person, "by", who, "via", id.Via)
	k.RealignSoon(false)
	if err := k.CatchUp(noting); err != nil { // prompts were withheld meanwhile
		k.log.Error("list stale prompts", "err", err)
	}
	return l, true, nil
}

// unlockers is how many people it takes to unlock somebody without the operator.
const unlockers = 2

// addUnlockVote adds a vote to end a lock. Votes of people who are locked by now or no longer configured are dropped, and votes
// from accounts that are no longer theirs.
func (k *locks) addUnlockVote(ctx context.Context, l permissions.Lock, who string, id connectors.Identity) (permissions.Lock, error) {
	var others []string
	for _, p := range k.Settings().People {
		if p.Locked == "" {
			others = append(others, p.Name)
		}
	}
	theirs := directory.UnlockedAccounts(k.Settings().People)
	if len(others) < unlockers || !slices.Contains(others, who) {
		return l, permissions.OperatorUnlocks(l.Person)
	}
	l.Unlocking = slices.DeleteFunc(slices.Clone(l.Unlocking), func(said string) bool {
		return strings.HasPrefix(said, who+" (") || !slices.Contains(theirs, said)
	})
	l.Unlocking = append(l.Unlocking, who+" ("+k.Settings().AccountOf(id)+")")
	err := k.store.PutLock(ctx, l, l.Record(permissions.UnlockAsked, who, id.Via, k.clock.Stamp()))
	if err == nil {
		k.SetLock(l, true)
	}
	return l, shared.Broken(err)
}
