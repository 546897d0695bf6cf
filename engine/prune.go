package engine

import (
	"context"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

const (
	// pruneEvery is how often what is too old is looked for.
	pruneEvery = time.Hour
	// pruneAtOnce is how much is deleted in one transaction, so that nobody waits long for theirs.
	pruneAtOnce = 500
	// mostAstray is how far the two clocks may go apart before nothing is deleted any more: the one on the wall was set,
	// and nobody knows which of its times was right.
	mostAstray = 30 * time.Minute
)

// prune deletes what is older than the settings say, until ctx ends. A clock that is wrong at the start, and set right
// later, deletes nothing.
func (e *Engine) prune(ctx context.Context) error {
	wall, passed := e.clock.Now().Round(0), e.clock.Elapsed()
	for permissions.Pause(ctx, e.pruning) == nil {
		now := e.clock.Now().Round(0)
		if astray := now.Sub(wall) - (e.clock.Elapsed() - passed); astray.Abs() > mostAstray {
			e.log.Warn("the clock was set: nothing is deleted until the next start", "by", astray)
			return nil
		}
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = e.store.Prune(ctx, e.settings.Load().Keep, now, pruneAtOnce); err != nil && ctx.Err() == nil {
				e.log.Error("what is too old cannot be deleted just now", "err", err)
				break
			}
		}
	}
	return nil
}

// heartbeatEvery is how often the daemon notes that it runs, so that the next start knows for how long it did not.
const heartbeatEvery = 30 * time.Second

// heartbeat notes that the daemon runs, until ctx ends. What cannot be noted once is noted the next time.
func (e *Engine) heartbeat(ctx context.Context) error {
	for wait := retryDelay; permissions.Pause(ctx, wait) == nil; wait = heartbeatEvery {
		if _, err := e.store.Heartbeat(ctx, e.heard(false)); err != nil && ctx.Err() == nil {
			e.log.Debug("that the daemon runs cannot be noted just now", "err", err)
		}
	}
	last, done := noting(ctx)
	defer done()
	_, _ = e.store.Heartbeat(last, e.heard(true)) // a stop that cannot be noted looks longer than it was
	return nil
}

// heard is until when everything that people did has arrived; zero while a channel does not know that.
func (e *Engine) heard(stops bool) time.Time {
	at := e.clock.Now()
	for _, c := range e.dispatchers {
		if h, knows := c.connector.(connectors.ReceiptTracker); knows {
			if until := h.ReceivedUntil(stops); until.Before(at) {
				at = until
			}
		}
	}
	return at
}

// Downtime is for how long the daemon did not run before this start, or had no contact with a channel in which that loses what
// people do, to about a minute and a half; 0 when it never ran.
func (e *Engine) Downtime() time.Duration { return e.away }
