package engine

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions/timing"
)

const (
	// pruneEvery is the interval of pruning.
	pruneEvery = time.Hour
	// pruneAtOnce bounds what is deleted in one transaction, so that others do not wait long.
	pruneAtOnce = 500
	// maxAstray is how far the wall and the monotonic clock may diverge before pruning stops: the wall clock was set,
	// and either of its times may have been wrong.
	maxAstray = 30 * time.Minute
)

// prune deletes what is older than the settings allow, and withdraws what the callers of expired tokens left, until ctx
// ends. A clock that is wrong at the start and corrected later deletes nothing.
func (e *Engine) prune(ctx context.Context) error {
	wall, passed := e.clock.Now().Round(0), e.clock.Elapsed()
	for timing.Pause(ctx, e.pruning) == nil {
		now := e.clock.Now().Round(0)
		if astray := now.Sub(wall) - (e.clock.Elapsed() - passed); astray.Abs() > maxAstray {
			e.log.Warn("clock jumped; pruning paused until restart", "by", astray)
			return nil
		}
		if err := e.clearExpired(ctx); err != nil && ctx.Err() == nil {
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
