package dispatch

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
func (d *Dispatch) reroute(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.changed:
		}
		moved := d.moved.Swap(false)
		err := d.EveryPending(ctx, func(r permissions.Request) error {
			var err error
			if moved {
				err = d.revive(ctx, r, d.answers)
			}
			if moved || d.dir.Settings().Suspends(r) {
				d.reconciler.Enqueue(r.ID)
			}
			_, failed := d.Realign(ctx, r)
			return errors.Join(err, failed)
		})
		d.registry.NotifyNotices()
		if err == nil && moved {
			err = d.refreshAll(ctx)
		}
		if err != nil && ctx.Err() == nil {
			d.log.Error("re-route pending requests: retrying", "err", err)
			_ = timing.Pause(ctx, shared.RetryDelay) // the loop checks ctx
			d.RealignSoon(moved)
		}
	}
}

// answers reports whether the person of a copy can answer through its channel, as far as it knows.
func (d *Dispatch) answers(cp permissions.Copy) bool {
	p, known := d.dir.Settings().Person(cp.Person)
	c, on := d.dir.Channel(cp.Connector)
	return known && on && cp.Group == "" && reach(c, p) == nil
}

// refreshAll refreshes the prompts of all pending requests, which finds those at a former account.
func (d *Dispatch) refreshAll(ctx context.Context) error {
	for _, c := range d.dispatchers {
		if _, err := d.Refresh(ctx, c.connector.Name()); err != nil {
			return err
		}
	}
	return nil
}

// RealignSoon makes reroute examine all pending requests; moved: a person has another account.
func (d *Dispatch) RealignSoon(moved bool) {
	if moved {
		d.moved.Store(true)
	}
	d.changed.Notify()
}

// Realign applies the settings to a pending request, and reports whether it is another now.
func (d *Dispatch) Realign(ctx context.Context, r permissions.Request) (changed bool, err error) {
	asks := d.dir.Settings().Asks(r, d.clock.Stamp())
	if slices.Equal(asks.Asked, r.Asked) && slices.Equal(asks.EscalateTo, r.EscalateTo) && len(asks.Moved) == 0 {
		return false, nil
	}
	c, err := d.registry.Resolve(ctx, r.ID, asks)
	if errors.Is(err, permissions.ErrSettled) || errors.Is(err, permissions.ErrLate) || errors.Is(err, permissions.ErrRow) {
		return false, nil
	}
	return c.After.Revision > r.Revision, err
}
