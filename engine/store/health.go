package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mattn/go-sqlite3"
)

const nextBeat = `UPDATE meta SET beat = CAST(beat AS BIGINT) % 1000000000 + 1 RETURNING beat` // whatever its value was

// needed are the statements for asking, deciding and finding pending work.
var needed = []string{
	findByKey, findEqual, readNumber, readRequest, readByKey, readVotesOf, releaseKey, insertRequest, insertCopy, updateRequest,
	countKey, addVote, deleteVotes, deleteFailed, addGrant, readGrants, readGrantInForce, readGrantsOf, countUse, addUse, prolong, addNotice,
	addEntry, readNumbered, newestEntry, readMeta, readNewest, countPending, readPending, duePending, nextPending, readCopies,
	upsertCopy, noteShownOne,
}

// prepare prepares the needed statements, unless that was done since the last schema change.
func (s *Store) prepare(ctx context.Context, t *tx) error {
	var cookie int64
	if s.server != nil {
		return nil // the connection prepares each when it is first used
	}
	if err := t.QueryRowContext(ctx, `PRAGMA schema_version`).Scan(&cookie); err != nil || cookie == s.cookie {
		return err
	}
	for _, text := range needed {
		statement, err := t.conn.PrepareContext(ctx, text)
		if err != nil {
			return err
		}
		_ = statement.Close() //nolint:sqlclosecheck // it was never run, and there are many
	}
	s.cookie = cookie
	return nil
}

// healthTime is how long PostgreSQL may take to answer before it counts as not ready.
const healthTime = 3 * time.Second

const readBeat = `SELECT beat FROM meta`

// Health prepares the statements for asking and deciding, then writes and reads a small value. Its error matches
// [permissions.ErrBroken] and says what to do.
func (s *Store) Health(ctx context.Context) error {
	var written, read int64
	if s.server != nil { // a write would wait until it answers
		limited, done := context.WithTimeout(ctx, healthTime)
		err := s.readers.QueryRowContext(limited, readBeat).Scan(&read) // which ends with limited, other than s.read
		if done(); err != nil {
			return s.fault(ctx, err)
		}
	}
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		t.fail(s.prepare(ctx, t))
		t.returning(ctx, &written, nextBeat)
		return nil
	})
	if err != nil {
		return err
	}
	err = s.read(ctx, func(from source) error { return from.QueryRowContext(ctx, readBeat).Scan(&read) })
	if err != nil {
		return err
	}
	if read < written {
		return damaged("the health check", fmt.Errorf("wrote %d, read %d", written, read))
	}
	return nil
}

// Heartbeat records that the daemon runs, unless at is zero, and returns when it last did: zero for never. It prepares what
// [Store.Health] does and updates the mark.
func (s *Store) Heartbeat(ctx context.Context, at time.Time) (last time.Time, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		t.marks = true
		if err := s.prepare(ctx, t); err != nil {
			return err
		}
		if err := t.QueryRowContext(ctx, `SELECT alive_at FROM meta`).Scan(lenientTime{&last}); err != nil || at.IsZero() {
			return err
		}
		t.exec(ctx, `UPDATE meta SET alive_at = $1`, micros(at))
		return nil
	})
	return last, err
}

// NewestEntry returns the time of the newest entry of a store's audit, without changing it; zero: there is none.
func NewestEntry(ctx context.Context, path string) (at time.Time, err error) {
	db := lookInto(path, readOnlySettings(path))
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRowContext(ctx, `SELECT COALESCE(MAX(at), 0) FROM (SELECT at FROM entries ORDER BY key DESC LIMIT 1)`).Scan(instant{&at})
	return at, err
}

// Inspect reads all pages of a store that no daemon has open, without changing it. For a damaged one the error is an [Error].
func Inspect(ctx context.Context, path string) (err error) {
	db := lookInto(path, readOnlySettings(path))
	defer func() { err = errors.Join(err, db.Close()) }()
	pages, failed := "", sqlite3.Error{}
	err = db.QueryRowContext(ctx, checkPages).Scan(&pages)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &failed):
		return diagnose(path, failed, err)
	case err == nil && pages != "ok":
		return diagnose(path, sqlite3.Error{Code: sqlite3.ErrCorrupt}, errors.New(pages))
	}
	return err
}
