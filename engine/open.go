package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/daycared/daycared/permissions"
)

// coolDown is how long what was denied twice is not asked again.
const coolDown = 10 * time.Minute

// open is where a new question waits. When a grant that it was to run under is taken back in that very moment, it is
// drafted anew.
func (e *Engine) open(ctx context.Context, caller permissions.Caller, q permissions.Request) (*permissions.Waiter, error) {
	for range mostAnew {
		w, err := e.tryOpen(ctx, caller, q)
		var refusal *permissions.Refusal
		if !errors.As(err, &refusal) || refusal.Code != permissions.CodeUnknown {
			return w, err
		}
	}
	return nil, permissions.Limit(time.Second)
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
	prompt, exhausted := e.reserve(s, r)
	copies, unreachable := e.plan(s, r, nil)
	if s.reached(r, copies) < r.Quorum && len(r.EscalateTo) > 0 { // then there is no point in waiting
		r.Asked, r.EscalateTo, r.EscalateAt = append(r.Asked, r.EscalateTo...), nil, time.Time{}
		copies, unreachable = e.plan(s, r, nil)
	}
	w, stored, created, err := e.registry.Register(ctx, permissions.Opening{
		Request: r, Copies: copies, RedeemWindow: s.Approvals.RedeemWindow,
		PerCaller: s.Limits.PendingPerCaller, Total: s.Limits.PendingTotal, CoolDown: coolDown,
		Exhausted: exhausted,
	})
	if err != nil {
		prompt.giveBack()
		return nil, broken(err)
	}
	if !created || stored.State != permissions.Pending {
		prompt.giveBack() // nobody is prompted for it
		return w, nil
	}
	if s.reached(stored, copies) < stored.Quorum {
		_, err := e.registry.Resolve(ctx, stored.ID, permissions.GiveUp{Reason: unreachable, Asked: stored.Asked, At: e.stamp()})
		if err != nil && !errors.Is(err, permissions.ErrSettled) {
			w.LeaveSoon(leaveGrace)
			return nil, broken(err)
		}
	}
	return w, nil
}

// reservation is a prompt that was taken out of its caller's bucket. The zero reservation took none.
type reservation struct {
	taken *rate.Reservation
	at    time.Time // a reservation is only given back at the time it was made for
}

func (r reservation) giveBack() {
	if r.taken != nil {
		r.taken.CancelAt(r.at)
	}
}

// reserve takes a prompt, where r would prompt anybody. When there is none left, exhausted is how long until there is
// one: until then, r may still join what waits, or find its answer.
func (e *Engine) reserve(s *Settings, r permissions.Request) (taken reservation, exhausted time.Duration) {
	if r.State != permissions.Pending || s.Limits.PromptsPerMinute <= 0 {
		return reservation{}, 0
	}
	taken = reservation{at: e.clock.Now()}
	taken.taken = limiter(e, e.prompts, r.Caller.Name, s.Limits.PromptsPerMinute).ReserveN(taken.at, 1)
	if wait := taken.taken.DelayFrom(taken.at); wait > 0 {
		taken.giveBack()
		return reservation{}, wait
	}
	return taken, 0
}

// grants are those of a caller that may be relied on: not those that only a clock that was set back keeps in force.
func (e *Engine) grants(ctx context.Context, caller permissions.Caller) ([]permissions.Grant, error) {
	all, err := e.store.Grants(ctx, caller.Name, e.clock.Now())
	return e.relied(all), err
}

func (e *Engine) relied(all []permissions.Grant) []permissions.Grant {
	return slices.DeleteFunc(all, func(g permissions.Grant) bool { return !e.registry.InForce(g.ID, e.doubt) })
}
