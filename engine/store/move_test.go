package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// TestAStoreIsMovedToPostgreSQL, also where that was interrupted: what waits, what was decided, grants and the audit are there, and no
// daemon goes on with the file.
func TestAStoreIsMovedToPostgreSQL(t *testing.T) {
	path, url := filepath.Join(t.TempDir(), "daycared.db"), emptyDatabase(t)
	file, err := Open(t.Context(), options(path))
	if err != nil {
		t.Fatal(err)
	}
	odd := newAsk()
	odd.Request.Reason = "a\x00b\x1a\xffc"
	odd.Request.Digest = permissions.ComputeDigest(odd.Request)
	waits, _, err := file.Open(t.Context(), odd)
	if err != nil {
		t.Fatal(err)
	}
	decided := approve(t, file, permissions.Always)
	held, err := file.Grants(t.Context(), decided.Caller.Name, time.Now())
	if err != nil || len(held) == 0 {
		t.Fatalf("%d grants, %v", len(held), err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	o := options(path)
	o.Server = url
	cut, cancel := context.WithCancel(t.Context())
	o.Progress = func(what string, _, _ int64) {
		if strings.HasPrefix(what, "rows of entries") {
			cancel()
		}
	}
	if _, err := Move(cut, o); err == nil {
		t.Fatal("it was not interrupted")
	}
	if s, err := Open(t.Context(), o); err == nil {
		t.Errorf("half a copy is a store: %v", s.Close())
	}
	o.Progress = nil
	sum, err := Move(t.Context(), o)
	if err != nil || sum.Requests != 2 || len(sum.Chains) != 1 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	s := openOn(t.Context(), t, path, url)
	if got, err := s.Read(t.Context(), waits.ID); err != nil || got.Reason != odd.Request.Reason || got.State != permissions.Pending {
		t.Errorf("what waits is %s, %q, %v", got.State, got.Reason, err)
	}
	if got, err := s.Grants(t.Context(), decided.Caller.Name, time.Now()); err != nil || len(got) != len(held) {
		t.Errorf("%d grants, %v", len(got), err)
	}
	if s.Coder() != file.Coder() {
		t.Error("codes are others now")
	}
	if c, err := s.Apply(t.Context(), waits.ID, fayAllows()); err != nil || c.After.State != permissions.Approved {
		t.Errorf("it is %s, %v", c.After.State, err)
	}
	if next := insert(t, s); next.Number <= decided.Number {
		t.Errorf("the next number is %d", next.Number)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.Context(), options(path))
	if err == nil || !strings.Contains(err.Error(), "is in PostgreSQL, or was being moved there") {
		t.Errorf("a new file beside it: %v, %v", other, err)
	}
}

// toBeMoved are the options for moving a file with one request into an empty database.
func toBeMoved(t *testing.T) Options {
	t.Helper()
	o := options(filepath.Join(t.TempDir(), "daycared.db"))
	file, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	insert(t, file)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	o.Server = emptyDatabase(t)
	return o
}

// TestAMoveThatWasInterruptedLate is finished, unless the file or the database has gone on since. Meanwhile no daemon begins with either.
func TestAMoveThatWasInterruptedLate(t *testing.T) {
	o := toBeMoved(t)
	path, url := o.Path, o.Server
	cut, cancel := context.WithCancel(t.Context())
	o.Progress = func(what string, _, _ int64) {
		if strings.HasPrefix(what, "entries and requests") {
			cancel()
		}
	}
	if _, err := Move(cut, o); err == nil {
		t.Fatal("it was not interrupted")
	}
	o.Progress = nil
	for what, with := range map[string]Options{"the file": options(path), "the database": o} {
		if s, err := Open(t.Context(), with); err == nil || !strings.Contains(err.Error(), "daycared migrate-store") {
			t.Errorf("a daemon begins with %s: %v, %v", what, s, err)
		}
	}
	if sum, err := Move(t.Context(), o); err != nil || sum.Requests != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	if err := os.Rename(path+movedSuffix, path); err != nil { // somebody puts the file back, and the database has gone on
		t.Fatal(err)
	}
	at := options(filepath.Join(t.TempDir(), "daycared.db"))
	at.Server, at.KeyFile = url, filepath.Join(filepath.Dir(path), KeyName)
	s, err := Open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	insert(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Move(t.Context(), o); err == nil || !strings.Contains(err.Error(), "one of the two has gone on since") {
		t.Errorf("it was moved over what is there: %v", err)
	}
}

// TestACopyThatDiffersIsNoMove: a row that somebody changes between copying and comparing is found.
func TestACopyThatDiffersIsNoMove(t *testing.T) {
	o := toBeMoved(t)
	url := o.Server
	o.Progress = func(what string, _, _ int64) {
		if strings.HasPrefix(what, "rows of requests") {
			query(t, url, `UPDATE requests SET reason = 'another' RETURNING reason`)
		}
	}
	_, err := Move(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "the copy differs (1 rows in the file, 1 in the database)") {
		t.Errorf("it said %v", err)
	}
}
