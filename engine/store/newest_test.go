package store

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// withSteps has the store know more migrations, until the test ends.
func withSteps(t *testing.T, more ...string) {
	t.Helper()
	was := serverSteps
	known, err := was()
	if err != nil {
		t.Fatal(err)
	}
	all := fstest.MapFS{}
	names, err := fs.Glob(known, "*.sql")
	for _, name := range names {
		text, failed := fs.ReadFile(known, name)
		all[name], err = &fstest.MapFile{Data: text}, errors.Join(err, failed)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range more {
		all[name] = &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE added" + name[:5] + " (n INTEGER);\n")}
	}
	serverSteps = func() (fs.FS, error) { return all, nil }
	t.Cleanup(func() { serverSteps = was })
}

// TestAMigrationWaitsForOlderDaemons only where it is not safe beside them; they go on beside every other one.
func TestAMigrationWaitsForOlderDaemons(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	o := options(path)
	o.Server = url
	fresh, err := MigrateServer(t.Context(), o, true)
	if err != nil || fresh.Has != 0 || len(fresh.Steps) != int(fresh.Knows) {
		t.Fatalf("an empty database: %+v, %v", fresh, err)
	}
	older := openOn(t.Context(), t, path, url)
	withSteps(t, "90001_more.sql")
	if m, err := MigrateServer(t.Context(), o, true); err != nil || m.Has != fresh.Knows || !slices.Equal(m.Steps, []string{"90001_more"}) {
		t.Errorf("to be shown: %+v, %v", m, err)
	}
	if m, err := MigrateServer(t.Context(), o, false); err != nil || m.Knows != 90001 || len(m.Alone) > 0 {
		t.Errorf("a safe one: %+v, %v", m, err)
	}
	insert(t, older)
	withSteps(t, "90001_more.sql", "90002_alone_less.sql")
	_, err = MigrateServer(t.Context(), o, false)
	_, failed := Open(t.Context(), o)
	for name, err := range map[string]error{"the command": err, "a start": failed} {
		if err == nil || !strings.Contains(err.Error(), "1 other daemons use the PostgreSQL database") {
			t.Errorf("%s, while an older daemon runs: %v", name, err)
		}
	}
	insert(t, older)
	if err := older.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err := MigrateServer(t.Context(), o, false); err != nil || !slices.Equal(m.Alone, []string{"90002_alone_less"}) {
		t.Errorf("once it has stopped: %+v, %v", m, err)
	}
	if m, err := MigrateServer(t.Context(), o, false); err != nil || len(m.Steps) > 0 || m.Has != 90002 {
		t.Errorf("again: %+v, %v", m, err)
	}
}
