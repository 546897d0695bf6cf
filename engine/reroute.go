package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// reroute applies the settings to the pending requests, at the start and after every change, until ctx ends. Failures
// are retried; meanwhile people who are gone are refused anyway.
func (e *Engine) reroute(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.changed:
		}
		moved := e.moved.Swap(false)
		err := e.everyPending(ctx, func(r permissions.Request) error {
			var err error
			if moved {
				err = e.revive(ctx, r, e.answers)
			}
			if moved || e.Settings().Suspends(r) {
				e.reconciler.Enqueue(r.ID)
			}
			return errors.Join(err, e.realign(ctx, r))
		})
		e.registry.NotifyNotices()
		if err == nil && moved {
			err = e.refreshAll(ctx)
		}
		if err != nil && ctx.Err() == nil {
			e.log.Error("re-route pending requests: retrying", "err", err)
			_ = timing.Pause(ctx, shared.RetryDelay) // the loop checks ctx
			e.realignSoon(moved)
		}
	}
}

// answers reports whether the person of a copy can answer through its channel, as far as it knows.
func (e *Engine) answers(cp permissions.Copy) bool {
	p, known := e.Settings().Person(cp.Person)
	c, on := e.Channel(cp.Connector)
	return known && on && cp.Group == "" && reach(c, p) == nil
}

// refreshAll refreshes the prompts of all pending requests, which finds those at a former account.
func (e *Engine) refreshAll(ctx context.Context) error {
	for _, c := range e.dispatchers {
		if _, err := e.Refresh(ctx, c.connector.Name()); err != nil {
			return err
		}
	}
	return nil
}

// realignSoon makes reroute examine all pending requests; moved: a person has another account.
func (e *Engine) realignSoon(moved bool) {
	if moved {
		e.moved.Store(true)
	}
	e.changed.Notify()
}

// realign applies the settings to a pending request.
func (e *Engine) realign(ctx context.Context, r permissions.Request) error {
	asks := e.Settings().Asks(r, e.clock.Stamp())
	if slices.Equal(asks.Asked, r.Asked) && slices.Equal(asks.EscalateTo, r.EscalateTo) && len(asks.Moved) == 0 {
		return nil
	}
	_, err := e.registry.Resolve(ctx, r.ID, asks)
	if errors.Is(err, permissions.ErrSettled) || errors.Is(err, permissions.ErrLate) || errors.Is(err, permissions.ErrRow) {
		return nil
	}
	return err
}
