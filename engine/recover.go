package engine

import (
	"context"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

const (
	// page is how many rows are read at a time.
	page = 500
	// returnGrace is how long after a start callers have to come back before people are told that nobody waits.
	returnGrace = time.Minute
)

// Recover puts the rows right after a stop, before any door opens: what is overdue expires first, so that no old button
// is read against it; then what forgetful connectors showed is prepared to be shown again. A restart makes nothing
// undeliverable.
func (e *Engine) Recover(ctx context.Context) error {
	if _, err := e.registry.Sweep(ctx); err != nil {
		return err
	}
	for _, c := range e.couriers {
		if _, forgets := c.connector.(connectors.Forgetful); forgets {
			if err := e.store.Forget(ctx, c.connector.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// catchUp kicks the couriers for every copy that is not up to date.
func (e *Engine) catchUp(ctx context.Context) error {
	for _, c := range e.couriers {
		after := permissions.ID("")
		for {
			ids, err := e.store.Lagging(ctx, c.connector.Name(), after, page)
			if err != nil {
				return err
			}
			for _, id := range ids {
				c.kick(id)
				after = id
			}
			if len(ids) < page {
				break
			}
		}
	}
	return nil
}

// noteAbsence tells people of the pending requests whose callers have not come back after a start.
func (e *Engine) noteAbsence(ctx context.Context) error {
	timer := time.NewTimer(returnGrace)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-timer.C:
	}
	after := permissions.ID("")
	for ctx.Err() == nil {
		pending, err := e.store.Pending(ctx, "", after, page)
		if err != nil {
			e.log.Error("pending requests cannot be listed just now", "err", err)
			return nil
		}
		for _, r := range pending {
			after = r.ID
			if r.LeftAt.IsZero() && e.registry.Waiting(r.ID) == 0 {
				_, _ = e.registry.NotePresence(ctx, r.ID) // settled meanwhile: all the better
			}
		}
		if len(pending) < page {
			break
		}
	}
	return nil
}
