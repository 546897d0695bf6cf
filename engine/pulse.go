package engine

import (
	"context"
	"time"
)

// pulseEvery is how often the daemon notes that it runs, so that the next start knows for how long it did not.
const pulseEvery = 30 * time.Second

// pulse notes that the daemon runs, until ctx ends. What cannot be noted once is noted the next time.
func (e *Engine) pulse(ctx context.Context) error {
	for pause(ctx, pulseEvery) == nil {
		if _, err := e.store.Pulse(ctx, e.clock.Now()); err != nil && ctx.Err() == nil {
			e.log.Debug("that the daemon runs cannot be noted just now", "err", err)
		}
	}
	last, done := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer done()
	_, _ = e.store.Pulse(last, e.clock.Now()) // a stop that cannot be noted looks longer than it was
	return nil
}

// Away is for how long the daemon did not run before this start, to about half a minute; 0 when it never did.
func (e *Engine) Away() time.Duration { return e.away }
