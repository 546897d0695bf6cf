package engine

import (
	"context"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions/timing"
)

const (
	// pruneEvery is the interval of pruning.
	pruneEvery = time.Hour
	// pruneAtOnce bounds what is deleted in one transaction, so that others do not wait long.
	pruneAtOnce = 500
	// mostAstray is how far the wall and the monotonic clock may diverge before pruning stops: the wall clock was set,
	// and either of its times may have been wrong.
	mostAstray = 30 * time.Minute
)

// prune deletes what is older than the settings allow, and withdraws what the callers of expired tokens left, until ctx ends. A clock that is wrong at the start and corrected
// later deletes nothing.
func (e *Engine) prune(ctx context.Context) error {
	wall, passed := e.clock.Now().Round(0), e.clock.Elapsed()
	for timing.Pause(ctx, e.pruning) == nil {
		now := e.clock.Now().Round(0)
		if astray := now.Sub(wall) - (e.clock.Elapsed() - passed); astray.Abs() > mostAstray {
			e.log.Warn("clock jumped; pruning paused until restart", "by", astray)
			return nil
		}
		if err := e.vacateExpired(ctx); err != nil && ctx.Err() == nil {
			e.log.Error("withdraw what expired tokens left", "err", err)
		}
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = e.store.Prune(ctx, e.Settings().Keep, now, pruneAtOnce); err != nil && ctx.Err() == nil {
				e.log.Error("prune", "err", err)
				break
			}
		}
	}
	return nil
}

// heartbeatEvery is the interval of the heartbeat, from which the next start computes the downtime.
const heartbeatEvery = 30 * time.Second

// heartbeat records that the daemon runs, until ctx ends. A failure waits for the next interval.
func (e *Engine) heartbeat(ctx context.Context) error {
	for wait := shared.RetryDelay; timing.Pause(ctx, wait) == nil; wait = heartbeatEvery {
		if _, err := e.store.Heartbeat(ctx, e.heard(false)); err != nil && ctx.Err() == nil {
			e.log.Debug("write heartbeat", "err", err)
		}
	}
	last, done := shared.Noting(ctx)
	defer done()
	_, _ = e.store.Heartbeat(last, e.heard(true)) // after a failure the downtime looks longer than it was
	return nil
}

// heard returns until when everything that people did has arrived; zero while a channel does not know.
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

// Downtime is how long the daemon did not run before this start, or had no contact with a channel that loses messages
// meanwhile, to about a minute and a half; 0 if it never ran.
func (e *Engine) Downtime() time.Duration { return e.away }
