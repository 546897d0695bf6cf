package store

import (
	"bytes"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
)

// TestFile: only the daemon's account may read the store, whatever its name and whoever created the file.
func TestFile(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, path string){
		"new":                        func(*testing.T, string) {},
		"a b?mode=ro#c%41;d'ü\"&x=y": func(*testing.T, string) {},
		"open to all": func(t *testing.T, path string) {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			prepare(t, path)
			s, err := Open(t.Context(), options(path))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			insert(t, s)
			for _, file := range []string{path, path + "-wal", path + "-shm"} {
				if m := mode(t, file); m != 0o600 {
					t.Errorf("%s has mode %o", file, m)
				}
			}
		})
	}
}

// TestSettings reads back the settings for durability and safety.
func TestSettings(t *testing.T) {
	s := newStore(t)
	for _, c := range []struct {
		db            *sql.DB
		pragma, value string
	}{
		{s.writer, "journal_mode", "wal"}, {s.writer, "synchronous", "2"}, {s.writer, "foreign_keys", "1"},
		{s.writer, "journal_size_limit", "67108864"},
		{s.writer, "busy_timeout", "20"}, {s.readers, "query_only", "1"}, {s.readers, "busy_timeout", "20"},
	} {
		got := ""
		if err := c.db.QueryRowContext(t.Context(), "PRAGMA "+c.pragma).Scan(&got); err != nil || got != c.value {
			t.Errorf("%s is %q, want %q; %v", c.pragma, got, c.value, err)
		}
	}
	if n := s.writer.Stats().MaxOpenConnections; n != 1 {
		t.Errorf("%d connections write", n)
	}
	if _, err := s.readers.ExecContext(t.Context(), "DELETE FROM entries"); err == nil {
		t.Error("a reader can write")
	}
}

// TestOpenFails: the error says what is wrong and what to do.
func TestOpenFails(t *testing.T) {
	page := make([]byte, 4096)
	for i := range page {
		page[i] = byte(i)
	}
	store := func(t *testing.T, path string) []byte {
		s, err := Open(t.Context(), options(path))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, path string) error
		want    string
	}{
		{"no folder", func(t *testing.T, path string) error {
			return os.Remove(filepath.Dir(path))
		}, "check that its folder exists"},
		{"a folder", func(t *testing.T, path string) error {
			return os.Mkdir(path, 0o700)
		}, "cannot be opened (is a directory)"},
		{"another file", func(t *testing.T, path string) error {
			return os.WriteFile(path, page, 0o600)
		}, "put a backup in its place"},
		{"a damaged header", func(t *testing.T, path string) error {
			return os.WriteFile(path, append(page[:16:16], store(t, path)[16:]...), 0o600)
		}, "put a backup in its place"},
		{"a damaged schema", func(t *testing.T, path string) error {
			b := store(t, path)
			copy(b[100:], page[:200])
			return os.WriteFile(path, b, 0o600)
		}, "put a backup in its place"},
		{"cut short", func(t *testing.T, path string) error {
			return os.WriteFile(path, store(t, path)[:5000], 0o600)
		}, "put a backup in its place"},
		{"no key", func(t *testing.T, path string) error {
			store(t, path)
			db, err := sql.Open("sqlite3", path)
			if err != nil {
				return err
			}
			_, err = db.ExecContext(t.Context(), "UPDATE meta SET code_key = zeroblob(32)")
			return errors.Join(err, db.Close())
		}, "the store's own key is damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data", "daycared.db")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := c.prepare(t, path); err != nil {
				t.Fatal(err)
			}
			s, err := Open(t.Context(), options(path))
			if err == nil {
				_ = s.Close()
				t.Fatal("it opens")
			}
			if !errors.Is(err, permissions.ErrBroken) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, want %q", err, c.want)
			}
		})
	}
}

// TestClosed: a closed store says so and returns nothing.
func TestClosed(t *testing.T) {
	var log bytes.Buffer
	o := options(filepath.Join(t.TempDir(), "daycared.db"))
	o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r := insert(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, read := s.Read(t.Context(), r.ID)
	_, write := s.Apply(t.Context(), r.ID, fayAllows())
	for _, err := range []error{read, write, s.Health(t.Context())} {
		if !errors.Is(err, permissions.ErrBroken) {
			t.Errorf("got %v", err)
		}
	}
	if log.Len() > 0 {
		t.Errorf("a stop logs:\n%s", &log)
	}
}
