package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

// coolDown is how long what was denied twice is not asked again.
const coolDown = 10 * time.Minute

// open is where a new question waits. When a grant that it was to run under is taken back in that very moment, it is
// drafted anew.
func (e *Engine) open(ctx context.Context, caller permissions.Caller, q permissions.Request) (*permissions.Waiter, error) {
	for {
		w, err := e.tryOpen(ctx, caller, q)
		var refusal *permissions.Refusal
		if !errors.As(err, &refusal) || refusal.Code != permissions.CodeUnknown {
			return w, err
		}
	}
}

// tryOpen drafts the row, finds who can be reached, registers the waiter and inserts the row.
func (e *Engine) tryOpen(ctx context.Context, caller permissions.Caller, q permissions.Request) (*permissions.Waiter, error) {
	s := e.settings.Load()
	grants, err := e.grants(ctx, caller)
	if err != nil {
		return nil, broken(err)
	}
	r, err := e.draft(s, caller, q, grants)
	if err != nil {
		return nil, err
	}
	now := e.clock.Now() // a reservation is only given back at the time it was made for
	bucket := limiter(e, e.prompts, caller.Name, max(s.Limits.PromptsPerMinute, 1)).ReserveN(now, 1)
	if wait := bucket.DelayFrom(now); wait > 0 && s.Limits.PromptsPerMinute > 0 {
		bucket.CancelAt(now)
		return nil, permissions.Limit(wait)
	}
	copies, unreachable := e.plan(s, r, nil)
	if reached(copies) < r.Quorum && len(r.EscalateTo) > 0 { // then there is no point in waiting
		r.Asked, r.EscalateTo, r.EscalateAt = append(r.Asked, r.EscalateTo...), nil, time.Time{}
		copies, unreachable = e.plan(s, r, nil)
	}
	w, stored, created, err := e.registry.Register(ctx, permissions.Opening{
		Request: r, Copies: copies, RedeemWindow: s.Approvals.RedeemWindow,
		PerCaller: s.Limits.PendingPerCaller, Total: s.Limits.PendingTotal, CoolDown: coolDown,
	})
	if err != nil {
		bucket.CancelAt(now)
		return nil, broken(err)
	}
	if !created || stored.State != permissions.Pending {
		bucket.CancelAt(now) // nobody is prompted for it
		return w, nil
	}
	if reached(copies) < stored.Quorum {
		_, err := e.registry.Resolve(ctx, stored.ID, permissions.GiveUp{Reason: unreachable, At: e.stamp()})
		if err != nil && !errors.Is(err, permissions.ErrSettled) {
			w.LeaveSoon(leaveGrace)
			return nil, broken(err)
		}
	}
	return w, nil
}

// grants are those of a caller that may be relied on: not those that only a clock that was set back keeps in force.
func (e *Engine) grants(ctx context.Context, caller permissions.Caller) ([]permissions.Grant, error) {
	all, err := e.store.Grants(ctx, caller.Name, e.clock.Now())
	return slices.DeleteFunc(all, func(g permissions.Grant) bool { return !e.registry.InForce(g.ID, e.doubt) }), err
}
