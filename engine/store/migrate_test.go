package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/fstest"

	"github.com/daycared/daycared/permissions"
)

// next are the migrations and one more; last is the number of the last existing one.
func next(t *testing.T, statement string) (all fstest.MapFS, last int) {
	t.Helper()
	all = stepsUpTo(t, 0)
	for name := range all {
		number, err := strconv.Atoi(name[:5])
		if err != nil {
			t.Fatal(err)
		}
		last = max(last, number)
	}
	all[fmt.Sprintf("%05d_next.sql", last+1)] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + statement + ";\n")}
	return all, last
}

// TestMigrate: a store with rows is copied before it changes, and the previous daemon refuses it.
func TestMigrate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daycared.db")
	s, err := Open(t.Context(), options(path))
	if err != nil {
		t.Fatal(err)
	}
	r := insert(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	newer, last := next(t, "CREATE TABLE next (x INTEGER)")
	kept := fmt.Sprintf("%s.v%d", path, last)
	if err := os.WriteFile(kept+".part", []byte("left behind by a crash"), 0o600); err != nil {
		t.Fatal(err)
	}

	s, err = openStore(t.Context(), options(path), newer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.writer.ExecContext(t.Context(), "SELECT x FROM next"); err != nil {
		t.Errorf("the migration did not run: %v", err)
	}
	if _, err := s.Read(t.Context(), r.ID); err != nil {
		t.Errorf("the request did not survive: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	_, err = Open(t.Context(), options(path))
	want := fmt.Sprintf("open store: this store was written by a newer daycared (schema %d, this one knows %d); "+
		"start that one again, or go back with: daycared restore %s", last+1, last, kept)
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}

	if m := mode(t, kept); m != 0o600 {
		t.Errorf("the copy has mode %o", m)
	}
	if _, err := os.Stat(kept + ".part"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a draft of the copy is left: %v", err)
	}
	old, err := Open(t.Context(), options(kept))
	if err != nil {
		t.Fatalf("the copy is no store: %v", err)
	}
	defer func() { _ = old.Close() }()
	if got, err := old.Read(t.Context(), r.ID); err != nil || got.Digest != r.Digest {
		t.Errorf("the copy does not hold the request: %v", err)
	}
}

// TestMigrateNew: a new store has nothing to copy.
func TestMigrateNew(t *testing.T) {
	s := newStore(t)
	names, err := filepath.Glob(s.path + ".v*")
	if err != nil || len(names) != 0 {
		t.Errorf("copies %v, %v", names, err)
	}
}

// TestMigrateFails: a failing migration leaves the store unchanged.
func TestMigrateFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daycared.db")
	s, err := Open(t.Context(), options(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	newer, _ := next(t, "CREATE TABLE audit (x)")
	_, err = openStore(t.Context(), options(path), newer)
	if !errors.Is(err, permissions.ErrBroken) {
		t.Errorf("got %v", err)
	}
	if s, err = Open(t.Context(), options(path)); err != nil {
		t.Fatalf("it does not open any more: %v", err)
	}
	insert(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
