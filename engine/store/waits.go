package store

import (
	"context"

	"github.com/daycared/daycared/permissions"
)

const (
	waitColumns = `request, kind, call, pid, began, until`

	// The request may have been settled meanwhile.
	keepWait = `INSERT INTO waits (` + waitColumns + `) SELECT $1, $2, $3, $4, $5, $6 ` +
		`WHERE EXISTS (SELECT 1 FROM requests WHERE id = $1 AND state = 'pending') ` +
		`ON CONFLICT (request, kind, call) DO UPDATE SET (pid, began, until) = (excluded.pid, excluded.began, excluded.until)`

	dropWait = `DELETE FROM waits WHERE request = $1 AND kind = $2 AND call = $3`

	dropWaits = `DELETE FROM waits WHERE request = $1`

	readWaits = `SELECT ` + waitColumns + ` FROM waits ORDER BY request, kind, call`
)

func waitFields(w *permissions.Wait) []any {
	return []any{&w.Request, &w.Kind, &w.Call, &w.PID, &w.Began, instant{&w.Until}}
}

// KeepWait stores a wait, replacing one of the same request, kind and call, if its request is pending.
func (s *Store) KeepWait(ctx context.Context, w permissions.Wait) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := t.ExecContext(ctx, keepWait, waitFields(&w)...)
		return err
	})
}

// DropWait deletes the wait of the same request, kind and call.
func (s *Store) DropWait(ctx context.Context, w permissions.Wait) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := t.ExecContext(ctx, dropWait, w.Request, w.Kind, w.Call)
		return err
	})
}

// Waits lists the stored waits. An unreadable row is skipped.
func (s *Store) Waits(ctx context.Context) (all []permissions.Wait, err error) {
	err = s.read(ctx, func(from source) error {
		all, err = collectReadable(ctx, s, from, "a wait", waitFields, readWaits)
		return err
	})
	return all, err
}
