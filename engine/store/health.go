package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"
)

const beat = `UPDATE meta SET beat = CAST(beat AS BIGINT) % 1000000000 + 1 RETURNING beat` // whatever its value was

// needed are the statements for asking, deciding and finding pending work.
var needed = []string{
	meetByKey, meetEqual, readKept, readNumber, readRequest, readByKey, readVotesOf, releaseKey, insertRequest, insertCopy, updateRequest,
	countKey, addVote, deleteVotes, deleteFailed, addGrant, readGrants, readGrantInForce, readGrantsOf, countUse, addUse, addNotice, addEntry,
	newestEntry, readMeta, readNewest, countPending, readPending, readPendingOf, overdue, coming, readCopies, upsertCopy, noteShownOne,
}

// prepare prepares the needed statements, unless that was done since the last schema change.
func (s *Store) prepare(ctx context.Context, t *tx) error {
	var cookie int64
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

// Health prepares the statements for asking and deciding, then writes and reads a small value. Its error matches
// [permissions.ErrBroken] and says what to do.
func (s *Store) Health(ctx context.Context) error {
	var written, read int64
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		t.fail(s.prepare(ctx, t))
		t.returning(ctx, &written, beat)
		return nil
	})
	if err != nil {
		return err
	}
	err = s.read(ctx, func(from source) error { return from.QueryRowContext(ctx, `SELECT beat FROM meta`).Scan(&read) })
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

// fileIdentity identifies a file that SQLite writes to, as it was opened.
type fileIdentity struct {
	path     string
	dev, ino uint64
}

func newPlacedFile(path string) (fileIdentity, error) {
	var found unix.Stat_t
	err := unix.Stat(path, &found)
	return fileIdentity{path, uint64(found.Dev), found.Ino}, err //nolint:unconvert // its type differs between systems
}

// checkPaths returns nil while the paths of the store, its log and the log's index lead to the open files. A deleted, moved or replaced
// file can still be written, but the next start loses those writes, and a new connection would use another file. Without its log
// the store is not used any more: only the open connections know its content, and closing them moves it into the store.
func (s *Store) checkPaths() error {
	if lost := s.lost.Load(); lost != nil {
		return lost
	}
	for i, file := range s.files {
		found, err := newPlacedFile(file.path)
		switch {
		case err == nil && found == file:
		case i > 0 && (err == nil || errors.Is(err, fs.ErrNotExist)):
			e := &Error{
				What: fmt.Sprintf("%s, a part of the store, was deleted or replaced while it was open", file.path), Err: err,
				Advice: "end daycared with: daycared stop (or SIGTERM), which saves what was decided; do not kill it; then start it again",
			}
			if s.lost.CompareAndSwap(nil, e) {
				s.log.Error("store unusable until restart", "err", e)
			}
			return s.lost.Load()
		case err != nil:
			return &Error{
				What: fmt.Sprintf("the store %s is no longer there (%v)", file.path, err), Err: err,
				Advice: "stop daycared, put the file or a backup back in its place, and start it again",
			}
		default:
			return &Error{
				What:   fmt.Sprintf("the store %s was replaced by another file while it was open", s.path),
				Advice: "stop daycared, see to it that the right file is in its place, and start it again",
			}
		}
	}
	return nil
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
		return (&Store{path: path}).diagnose(failed, err)
	case err == nil && pages != "ok":
		return (&Store{path: path}).diagnose(sqlite3.Error{Code: sqlite3.ErrCorrupt}, errors.New(pages))
	}
	return err
}
