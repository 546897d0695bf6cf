package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/daycared/daycared/permissions"
)

// next is the migrations and one more.
func next(t *testing.T, statement string) fstest.MapFS {
	t.Helper()
	all := fstest.MapFS{"00003_next.sql": {Data: []byte("-- +goose Up\n" + statement + ";\n")}}
	for _, name := range []string{"00001_requests.sql", "00002_restoring.sql"} {
		text, err := migrations.ReadFile("migrations/" + name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = &fstest.MapFile{Data: text}
	}
	return all
}

// TestMigrate: a store with rows is copied before it changes, and the daemon before the change refuses it.
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
	if err := os.WriteFile(path+".v2.part", []byte("left behind by a crash"), 0o600); err != nil {
		t.Fatal(err)
	}

	s, err = open(t.Context(), options(path), next(t, "CREATE TABLE next (x INTEGER)"))
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
	want := "open store: this store was written by a newer daycared (schema 3, this one knows 2); " +
		"start that one again, or go back with: daycared restore " + path + ".v2"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}

	if m := mode(t, path+".v2"); m != 0o600 {
		t.Errorf("the copy has mode %o", m)
	}
	if _, err := os.Stat(path + ".v2.part"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a draft of the copy is left: %v", err)
	}
	old, err := Open(t.Context(), options(path+".v2"))
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

// TestMigrateFails: a migration that cannot be done leaves the store as it was.
func TestMigrateFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daycared.db")
	s, err := Open(t.Context(), options(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = open(t.Context(), options(path), next(t, "CREATE TABLE audit (x)"))
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
