package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

// reroute brings the pending requests in line with the settings, at the start and whenever there are new ones, until
// ctx ends. What cannot be done is tried again soon; until then whoever is no person any more is refused all the same.
func (e *Engine) reroute(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.changed:
		}
		err := e.everyPending(ctx, func(r permissions.Request) error {
			if e.settings.Load().suspends(r) {
				e.usher.kick(r.ID)
			}
			return e.realign(ctx, r)
		})
		e.registry.RingNotices()
		if err != nil && ctx.Err() == nil {
			e.log.Error("who is asked cannot be brought in line with the configuration just now", "err", err)
			_ = pause(ctx, again) // ctx is looked at above
			e.realignSoon()
		}
	}
}

// realignSoon has reroute look at everything that is pending.
func (e *Engine) realignSoon() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// realign has a pending request asked of whom the settings say.
func (e *Engine) realign(ctx context.Context, r permissions.Request) error {
	asks := e.settings.Load().asks(r, e.stamp())
	if slices.Equal(asks.Asked, r.Asked) && slices.Equal(asks.EscalateTo, r.EscalateTo) {
		return nil
	}
	_, err := e.registry.Resolve(ctx, r.ID, asks)
	if errors.Is(err, permissions.ErrSettled) || errors.Is(err, permissions.ErrLate) {
		return nil
	}
	return err
}

// asks is who r is put to by these settings: whoever was asked and still is a person, and whom the route of such a
// request asks now. Who waits for an escalation goes on waiting.
func (s *Settings) asks(r permissions.Request, at time.Time) permissions.Reroute {
	gone := func(name string) bool {
		_, known := s.person(name)
		return !known
	}
	e := permissions.Reroute{
		Asked:      slices.DeleteFunc(slices.Clone(r.Asked), gone),
		EscalateTo: slices.DeleteFunc(slices.Clone(r.EscalateTo), gone),
		At:         at,
	}
	route, found := s.route(r)
	for _, name := range route.Ask {
		if found && !gone(name) && !slices.Contains(e.Asked, name) {
			e.Asked = append(e.Asked, name)
		}
	}
	return e
}
