package engine

import (
	"context"
	"time"
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
	for pause(ctx, e.pruning) == nil {
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
