package engine

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/daycared/daycared/engine/directory"
)

// Recover repairs the rows after a stop, before any server accepts connections. Overdue requests expire first, so that
// no old button is checked against them; then the prompts of connectors that forget are prepared to be sent again. A
// restart makes nothing undeliverable. When the clock is behind the newest entry of the store, it was set back by an
// unknown amount, and earlier grants are not used.
func (e *Engine) Recover(ctx context.Context) error {
	if err := cmp.Or(e.ReadPeople(ctx), e.ReadGroups(ctx), e.ReadQuiet(ctx), e.readWaits(ctx)); err != nil {
		return err
	}
	by, at, err := e.store.StoppedBy(ctx)
	if err != nil {
		return err
	}
	e.noteStop(by, at)
	if by != "" { // finish an interrupted stop
		if _, err := e.registry.StopAll(ctx, by, ""); err != nil {
			e.log.Error("finish interrupted stop: some requests stay pending", "err", err)
		}
	}
	granted, err := e.store.GrantsInForce(ctx, "", e.clock.Now(), "", math.MaxInt)
	if err != nil {
		return err
	}
	e.registry.MeasureGrants(granted, true)
	for _, g := range granted {
		if why := directory.WhyNoMore(g); why != "" {
			allow, _ := g.Rule.Patterns()
			e.log.Warn("a rule that was given does not count any more", "grant", g.ID, "caller", g.Caller, "allow", allow, "why", why)
		}
	}
	if err := e.RecoverEvents(ctx); err != nil {
		return err
	}
	now := e.clock.Now()
	last, err := e.store.Heartbeat(ctx, time.Time{})
	if err != nil {
		return err
	}
	if !last.IsZero() {
		e.away = max(now.Sub(last), 0)
	}
	newest, err := e.store.NewestTime(ctx)
	if err != nil {
		return err
	}
	if behind := newest.Sub(e.clock.Now()); behind > 0 {
		e.clockSetBack = true
		e.log.Warn("clock is behind the audit; earlier grants are not used", "behind", behind)
	}
	if _, err := e.registry.Sweep(ctx); err != nil {
		return err
	}
	return e.ForgetShown(ctx)
}
