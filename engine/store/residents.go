package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/daycared/daycared/permissions"
)

// What agents of ours ask by rows alone: the callers of these statements are those whose names begin with "agent:".

// Keyed finds the request of a key of this caller's that is still in use, settled or not.
func (s *Store) Keyed(ctx context.Context, caller, key string) (r permissions.Request, found bool, err error) {
	err = s.read(ctx, func(from source) error {
		r, err = s.one(ctx, from, readByKey, caller, key)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		found = err == nil
		return err
	})
	return r, found, err
}

const (
	readPendingOfSession = `SELECT id FROM requests WHERE state = 'pending' AND caller >= 'agent:' AND caller < 'agent;' ` +
		`AND session = $1`

	readGrantsOfSession = `SELECT ` + grantColumns + ` FROM grants WHERE revoked_at = 0 AND ended_at = 0 ` +
		`AND caller >= 'agent:' AND caller < 'agent;' AND session = $1`
)

// PendingOfSession are the pending requests of a session of an agent of ours, whichever of them asked.
func (s *Store) PendingOfSession(ctx context.Context, session string) (ids []permissions.ID, err error) {
	field := func(id *permissions.ID) []any { return []any{id} }
	err = s.read(ctx, func(from source) error {
		ids, err = collect(ctx, from, "a request", field, readPendingOfSession, session)
		return err
	})
	return ids, err
}

// EndSessionGrants is [engine.Store].
func (s *Store) EndSessionGrants(ctx context.Context, session string, now time.Time) (ended []permissions.Grant, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		if ended, err = collect(ctx, t, "a grant", grantFields, readGrantsOfSession, session); err != nil {
			return err
		}
		for _, g := range ended {
			if err := s.noteEnd(ctx, t, g, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ended, nil
}

const (
	readCursor = `SELECT seq FROM cursors WHERE name = $1`

	writeCursor = `INSERT INTO cursors (name, seq) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET seq = excluded.seq`
)

// Cursor is how far in the daemon's chain a follower of that name has come. One that is new begins behind the newest entry.
func (s *Store) Cursor(ctx context.Context, name string) (seq int64, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		err := t.QueryRowContext(ctx, readCursor, name).Scan(&seq)
		if errors.Is(err, sql.ErrNoRows) {
			seq = t.seq
			_, err = t.ExecContext(ctx, writeCursor, name, seq)
		}
		return err
	})
	return seq, err
}

// SetCursor keeps how far a follower has come.
func (s *Store) SetCursor(ctx context.Context, name string, seq int64) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := t.ExecContext(ctx, writeCursor, name, seq)
		return err
	})
}
