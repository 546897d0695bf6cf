package engine

import (
	"context"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Stranger notes that an account of nobody here wrote, so that the owner hears of it: at once, or with others a day after
// the owner heard of some.
func (e *Engine) Stranger(ctx context.Context, s permissions.Stranger) error {
	s.At = e.stamp()
	if err := e.store.Met(ctx, s, e.settings.Load().Owner().Name); err != nil {
		return broken(err)
	}
	e.registry.RingNotices()
	return nil
}

// tellOfStrangers tells the owner of the strangers there are by then, or says how long that has to wait.
func (e *Engine) tellOfStrangers(
	ctx context.Context, n permissions.Notice, owner connectors.Person,
) (later time.Duration, err error) {
	met, err := e.store.Strangers(ctx)
	if err != nil {
		return 0, err
	}
	now := e.stamp()
	left := met.ToldAt.Add(permissions.StrangersEvery).Sub(now)
	if !met.ToldAt.IsZero() && left > 0 && left <= permissions.StrangersEvery { // else the clock was set back
		return min(left, idle), nil
	}
	notice := connectors.Notice{To: owner, About: n.About, Strangers: met, Silent: true}
	notice.Strangers.List = slices.DeleteFunc(slices.Clone(met.List), e.enrolled)
	if len(notice.Strangers.List) == 0 {
		return 0, e.store.ToldOf(ctx, n, met, time.Time{})
	}
	if err := e.announce(ctx, n, notice); err != nil {
		return 0, err
	}
	return 0, e.store.ToldOf(ctx, n, met, now)
}

// enrolled tells whether a stranger is somebody by now.
func (e *Engine) enrolled(s permissions.Stranger) bool {
	door := e.door(s.Via)
	return door != nil && slices.ContainsFunc(e.settings.Load().People, func(p connectors.Person) bool {
		return door.Address(p) == s.Account
	})
}
