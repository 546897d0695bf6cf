package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	// tick bounds how late a deadline is noticed after a suspension or a clock jump.
	tick = time.Second
	// dueBatch is how many due events are read at a time.
	dueBatch = 500
	// longestRest bounds the rest between sweeps, which is ten times as long as the last one took: a sweep reads about everything that
	// waits.
	longestRest = 200 * time.Millisecond
)

// Run enforces the deadlines until ctx ends: overdue requests expire, approvals that nobody collects lapse, and expired
// leases of waiters end. Store failures are retried at the next tick.
func (g *Registry) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		g.endLeases(ctx)
		g.reread(ctx, func(permissions.Request) {})
		g.setSweeping(true)
		began := time.Now()
		next, err := g.Sweep(ctx)
		rest := min(10*time.Since(began), longestRest)
		if err != nil && ctx.Err() == nil {
			g.log.Error("process due deadlines", "err", err)
		}
		g.dueAt(next)
		g.sleep(ctx, g.setSweeping(false), rest, err != nil)
	}
	return nil
}

// setSweeping says whether a sweep is under way, and returns when the next one is due.
func (g *Registry) setSweeping(on bool) (next time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sweeping = on; on {
		g.next = time.Time{}
	}
	return g.next
}

// dueAt has something swept at a time, unless that is zero.
func (g *Registry) dueAt(at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.IsZero() || !g.next.IsZero() && !at.Before(g.next) {
		return
	}
	if g.next = at; !g.sweeping {
		g.earlierDeadline.Notify()
	}
}

// sweepAt has what is due next for a request swept in time.
func (g *Registry) sweepAt(r permissions.Request) {
	switch {
	case r.State == permissions.Pending:
		g.dueAt(r.Deadline)
		g.dueAt(r.EscalateAt)
		if len(r.Reminders) > 0 {
			g.dueAt(r.Reminders[0])
		}
	case r.State == permissions.Approved && r.CollectedAt.IsZero() && r.VoidAt.IsZero() && r.LapsedAt.IsZero():
		g.mu.Lock()
		redeem := g.redeem
		g.mu.Unlock()
		g.dueAt(r.DecidedAt.Add(redeem))
	}
}

// sleep returns when next has come on the wall clock, after a rest, when an earlier deadline may have been added, when a lease is
// over, or, after a failure, at the next tick.
func (g *Registry) sleep(ctx context.Context, next time.Time, rest time.Duration, failed bool) {
	for {
		nap := tick
		if until := next.Sub(g.clock.Now()); !next.IsZero() && until < tick {
			nap = max(until, rest, time.Millisecond)
		}
		select {
		case <-ctx.Done():
			return
		case <-g.earlierDeadline:
			return
		case <-time.After(nap):
		}
		if failed || g.isIndeterminate() || g.leaseOver() || g.setBack() || (!next.IsZero() && !g.clock.Now().Before(next)) {
			return
		}
	}
}

// Sweep settles everything that is due now and returns when the next event will be (zero: never). A request that cannot
// be settled or read does not block the others.
func (g *Registry) Sweep(ctx context.Context) (next time.Time, err error) {
	next, failed := g.settleDue(ctx)
	if ctx.Err() != nil || errors.Is(failed, errDown) {
		return time.Time{}, failed
	}
	if err := g.expireSpent(ctx); err != nil {
		failed = cmp.Or(failed, err)
	}
	soonest, err := g.endGrants(ctx)
	if !soonest.IsZero() && (next.IsZero() || soonest.Before(next)) {
		next = soonest
	}
	return next, cmp.Or(failed, err)
}

// errDown says that the store is unusable, not only for one row.
var errDown = errors.New("the store is down")

// downAfter is how many failures in a row mean that the store is unusable.
const downAfter = 3

func (g *Registry) settleDue(ctx context.Context) (next time.Time, failed error) {
	for {
		g.mu.Lock()
		redeem := g.redeem
		g.mu.Unlock()
		now := g.clock.Stamp()
		due, next, err := g.store.Due(ctx, now, redeem, dueBatch)
		if err != nil {
			return time.Time{}, fmt.Errorf("list due events: %w: %w", errDown, err)
		}
		if g.clock.Stamp().Before(now) {
			continue // the clock was set back meanwhile: a new request is not due by its current time
		}
		failed, broken := error(nil), 0
		for _, d := range due {
			_, err := g.Resolve(ctx, d.ID, d.Event)
			switch { // a person, or the deadline, may have been faster
			case err == nil, errors.Is(err, permissions.ErrSettled), errors.Is(err, permissions.ErrNotDue),
				errors.Is(err, permissions.ErrLate), errors.Is(err, permissions.ErrRow),
				permissions.CodeOf(err) == permissions.CodeUnknown: // unreadable id
				broken = 0
				continue
			case ctx.Err() != nil:
				return time.Time{}, fmt.Errorf("apply due events: %w", err)
			case errors.Is(err, permissions.ErrBroken):
				broken++
			}
			failed = cmp.Or(failed, fmt.Errorf("apply due event of request %s: %w", d.ID, err))
			if broken == downAfter {
				return time.Time{}, fmt.Errorf("apply due events: %w: %w", errDown, err)
			}
		}
		if failed != nil || len(due) < dueBatch {
			return next, failed
		}
	}
}

// expireSpent settles what is overdue by the monotonic clock although the wall clock, which was set back, disagrees.
func (g *Registry) expireSpent(ctx context.Context) error {
	over, more, grants := g.overdue()
	for _, id := range over {
		end := g.measuredEnd(id)
		_, err := g.apply(ctx, id, permissions.Expire{At: g.clock.Stamp(), Spent: true}, nil)
		if err != nil && !errors.Is(err, permissions.ErrSettled) && !errors.Is(err, permissions.ErrRow) &&
			permissions.CodeOf(err) != permissions.CodeUnknown { // never opened
			return fmt.Errorf("expire overdue request: %w", err)
		}
		g.forgetIf(id, end)
	}
	for _, id := range more {
		_, err := g.Resolve(ctx, id, permissions.Escalate{At: g.clock.Stamp()})
		if err != nil && !errors.Is(err, permissions.ErrSettled) && !errors.Is(err, permissions.ErrLate) &&
			!errors.Is(err, permissions.ErrRow) && permissions.CodeOf(err) != permissions.CodeUnknown {
			return fmt.Errorf("escalate: %w", err)
		}
		g.mu.Lock()
		delete(g.deadlines.more, id)
		g.mu.Unlock()
	}
	if len(grants) == 0 {
		return nil
	}
	ended, err := g.store.EndGrantsNow(ctx, grants, g.clock.Stamp())
	if err != nil {
		g.noteIndeterminate(err)
		return fmt.Errorf("end expired grants: %w", err)
	}
	for _, id := range grants {
		g.ForgetGrant(id)
	}
	if len(ended) > 0 {
		g.NotifyNotices()
	}
	return nil
}

// endGrants ends the expired grants, and returns when the next one will expire (zero: none).
func (g *Registry) endGrants(ctx context.Context) (next time.Time, err error) {
	for {
		ended, next, err := g.store.EndGrants(ctx, g.clock.Stamp(), dueBatch)
		if err != nil {
			g.noteIndeterminate(err)
			return time.Time{}, fmt.Errorf("end expired grants: %w", err)
		}
		if len(ended) > 0 {
			g.forgetGrants(ended)
			g.NotifyNotices()
		}
		if len(ended) < dueBatch {
			return next, nil
		}
	}
}

// leaseOver reports whether a waiter was parked, or a request without waiters, for too long on the monotonic clock.
func (g *Registry) leaseOver() bool {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, until := range g.parked {
		if !now.Before(until) {
			return true
		}
	}
	for _, until := range g.absent {
		if !now.Before(until) {
			return true
		}
	}
	return false
}

// endLeases removes waiters that were parked for too long, and updates the prompts of requests that nobody waits for.
func (g *Registry) endLeases(ctx context.Context) {
	now := time.Now()
	var left []permissions.ID
	g.mu.Lock()
	for w, until := range g.parked {
		if !now.Before(until) && g.removeWaiter(w) {
			left = append(left, w.id)
		}
	}
	for id, until := range g.absent {
		if now.Before(until) {
			continue
		}
		delete(g.absent, id)
		if len(g.waiters[id]) == 0 {
			left = append(left, id)
		}
	}
	g.mu.Unlock()
	slices.Sort(left)
	for _, id := range left {
		g.noteAbsence(ctx, id)
	}
}
