package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/daycared/daycared/permissions"
)

func exec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// unwell fails the test unless err matches ErrBroken and says what is wrong and what to do.
func unwell(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, permissions.ErrBroken) {
		t.Errorf("%s: got %v", what, err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, err, w)
		}
	}
}

// TestFaults breaks what the open store depends on: nothing is granted, the error says what to do, and after the repair
// everything works without a restart.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		breaks func(t *testing.T, s *Store) (mend func())
		words  []string
		health bool // Health detects it too
	}{
		{"D10/disk full", func(t *testing.T, s *Store) func() {
			exec(t, s.writer, "PRAGMA max_page_count = 1") // no more pages than exist
			return func() { exec(t, s.writer, "PRAGMA max_page_count = 1000000") }
		}, []string{"the disk under ", " is full", "free some space, nothing needs a restart"}, false},
		{"D10/read-only", func(t *testing.T, s *Store) func() {
			exec(t, s.writer, "PRAGMA query_only = on")
			return func() { exec(t, s.writer, "PRAGMA query_only = off") }
		}, []string{"cannot be written", "writable for the daemon's account"}, true},
		{"D10/locked", func(t *testing.T, s *Store) func() {
			other := connect(s.path, time.Second, 1, "")
			exec(t, other, "BEGIN EXCLUSIVE")
			return func() {
				exec(t, other, "ROLLBACK")
				if err := other.Close(); err != nil {
					t.Error(err)
				}
			}
		}, []string{"another process holds the store", "nothing needs a restart"}, true},
		{"H2/no audit", func(t *testing.T, s *Store) func() {
			exec(t, s.writer, "CREATE TRIGGER silent BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'no'); END")
			return func() { exec(t, s.writer, "DROP TRIGGER silent") }
		}, []string{"does not work"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			first := insert(t, s)
			mend := c.breaks(t, s)

			large := newAsk() // larger than the free space of the last pages
			large.Request.Details = strings.Repeat("x", 1<<20)
			large.Request.Digest = permissions.ComputeDigest(large.Request)
			_, created, err := s.Open(t.Context(), large)
			unwell(t, "open", err, c.words...)
			if created {
				t.Error("a request that cannot be stored is created")
			}
			said := fayAllows()
			said.Vote.Comment = large.Request.Details
			change, err := s.Apply(t.Context(), first.ID, said)
			unwell(t, "apply", err, c.words...)
			if change.Settled() || change.After.ID != "" {
				t.Errorf("a decision that cannot be stored is given: %+v", change)
			}
			if c.health {
				unwell(t, "health", s.Health(t.Context()), c.words...)
			}
			got, err := s.Read(t.Context(), first.ID)
			if err != nil || got.State != permissions.Pending || len(got.Votes) != 0 {
				t.Errorf("the row is %s with %d votes, %v", got.State, len(got.Votes), err)
			}
			if _, err := s.Read(t.Context(), large.Request.ID); errors.Is(err, permissions.ErrBroken) || err == nil {
				t.Errorf("what was not stored is found: %v", err)
			}

			mend()
			if err := s.Health(t.Context()); err != nil {
				t.Errorf("health after it was mended: %v", err)
			}
			large.Total = 2 // one pending, and this one
			if _, created, err := s.Open(t.Context(), large); err != nil || !created {
				t.Errorf("open after it was mended: created %v, %v", created, err)
			}
			if change, err = s.Apply(t.Context(), first.ID, said); err != nil || !change.Settled() {
				t.Errorf("apply after it was mended: %v", err)
			}
			heads, err := s.Verify(t.Context())
			if err != nil || len(heads) != 1 || heads[0].Seq != 3 {
				t.Errorf("the audit: %v, %v", heads, err)
			}
		})
	}
}

// scribble overwrites a file except its first skip bytes.
func scribble(t *testing.T, path string, skip int64) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt([]byte(strings.Repeat("damage! ", int(info.Size()-skip)/8)), skip); err != nil {
		t.Fatal(err)
	}
}

// TestDamage overwrites the file: whichever call finds the damage, nothing is written afterwards.
func TestDamage(t *testing.T) {
	const page = 4096
	words := []string{"is damaged", "stop daycared and put a backup in its place: daycared restore FILE"}
	for _, c := range []struct {
		name  string
		meets func(s *Store, id permissions.ID) error
	}{
		{"a read", func(s *Store, id permissions.ID) error {
			_, err := s.Read(context.Background(), id)
			return err
		}},
		{"a decision", func(s *Store, id permissions.ID) error {
			_, err := s.Apply(context.Background(), id, fayAllows())
			return err
		}},
		{"a health check", func(s *Store, _ permissions.ID) error { return s.Health(context.Background()) }},
		{"the audit", func(s *Store, _ permissions.ID) error {
			_, err := s.Verify(context.Background())
			return err
		}},
	} {
		t.Run("D10/"+c.name, func(t *testing.T) {
			s := newStore(t)
			r := insert(t, s)
			if err := s.Close(); err != nil { // everything is in the file, nothing cached
				t.Fatal(err)
			}
			s, err := Open(t.Context(), options(s.path))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			skip := int64(page) // the schema stays readable
			if c.name == "a health check" {
				skip = 0
			}
			scribble(t, s.path, skip)

			unwell(t, c.name, c.meets(s, r.ID), words...)
			unwell(t, "health", s.Health(t.Context()), words...)
			_, err = s.Apply(t.Context(), r.ID, fayAllows())
			unwell(t, "apply", err, words...)
			_, _, err = s.Open(t.Context(), newAsk())
			unwell(t, "open", err, words...)
			unwell(t, "record", s.Record(t.Context(), permissions.Record{Type: "X"}), words...)
		})
	}
}

// TestLeaves: a caller that leaves while it waits for its turn gets its context's error, and nothing is written.
func TestLeaves(t *testing.T) {
	s := newStore(t)
	r := insert(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	err := s.turn(t.Context(), func(context.Context, *sql.Conn) error {
		left := make(chan error)
		go func() {
			_, err := s.Apply(ctx, r.ID, fayAllows())
			left <- err
		}()
		cancel()
		return <-left
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, permissions.ErrBroken) {
		t.Errorf("a write: %v", err)
	}
	for what, err := range map[string]error{
		"read":  second(s.Read(ctx, r.ID)),
		"audit": second(s.Audit(ctx, "", 0, 1)),
		"write": s.Health(ctx),
	} {
		if !errors.Is(err, context.Canceled) || errors.Is(err, permissions.ErrBroken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got, err := s.Read(t.Context(), r.ID); err != nil || got.State != permissions.Pending {
		t.Errorf("the row is %s, %v", got.State, err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestDiagnose: faults that cannot be caused here are distinguished by SQLite's and the system's errors.
func TestDiagnose(t *testing.T) {
	s := &Store{path: "/srv/daycared/daycared.db"}
	for _, c := range []struct {
		failed sqlite3.Error
		want   string
	}{
		{sqlite3.Error{Code: sqlite3.ErrFull}, "the disk under /srv/daycared is full; free"},
		{sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.ENOSPC}, "the disk under /srv/daycared is full; free"},
		{sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.EDQUOT}, "the disk under /srv/daycared is full; free"},
		{sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.EFBIG}, "in /srv/daycared may not grow any further"},
		{sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.EIO}, "/srv/daycared fails (disk I/O error"},
		{sqlite3.Error{Code: sqlite3.ErrIoErr, ExtendedCode: sqlite3.ErrIoErr.Extend(0), SystemErrno: syscall.EIO}, "/srv/daycared fails (disk"},
		{sqlite3.Error{Code: sqlite3.ErrIoErr, ExtendedCode: sqlite3.ErrIoErrShortRead, SystemErrno: syscall.ENOENT},
			"the store /srv/daycared/daycared.db is damaged (a part of its file is missing)"},
		{sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.EROFS}, "cannot be written"},
		{sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.EPERM}, "cannot be written"},
		{sqlite3.Error{Code: sqlite3.ErrReadonly}, "the store /srv/daycared/daycared.db cannot be written"},
		{sqlite3.Error{Code: sqlite3.ErrLocked}, "another process holds the store /srv/daycared/daycared.db locked"},
		{sqlite3.Error{Code: sqlite3.ErrCantOpen, SystemErrno: syscall.EACCES}, "cannot be opened"},
		{sqlite3.Error{Code: sqlite3.ErrNotADB}, "the store /srv/daycared/daycared.db is damaged"},
		{sqlite3.Error{Code: sqlite3.ErrNomem}, "does not work (out of memory); stop daycared and check the store: daycared audit verify "},
	} {
		if got := diagnose(s.path, c.failed, c.failed); !strings.Contains(got.Error(), c.want) {
			t.Errorf("%v: %q, want %q", c.failed, got, c.want)
		}
	}
}

// TestAFileThatHasJustGoneIsSaidToBeGone, although it was looked for a moment ago.
func TestAFileThatHasJustGoneIsSaidToBeGone(t *testing.T) {
	s := newStore(t)
	s.readers.SetMaxIdleConns(0) // each read opens the file
	s.checked.Store(time.Now().Add(time.Hour).UnixNano())
	if err := os.Rename(s.path, s.path+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CountPending(t.Context()); err == nil || !strings.Contains(err.Error(), "is no longer there") {
		t.Error(err)
	}
	if err := os.Rename(s.path+".away", s.path); err != nil {
		t.Fatal(err)
	}
}
