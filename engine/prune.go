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
)

// prune deletes what is older than the settings say, until ctx ends.
func (e *Engine) prune(ctx context.Context) error {
	for ctx.Err() == nil {
		more, err := e.store.Prune(ctx, e.settings.Load().Keep, e.clock.Now(), pruneAtOnce)
		if err != nil && ctx.Err() == nil {
			e.log.Error("what is too old cannot be deleted just now", "err", err)
		}
		if more && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(pruneEvery):
		}
	}
	return nil
}
