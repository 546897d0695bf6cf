package store

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/permissions"
)

// TestRemovedLog: if a killed store loses its log, revoked things are not in force again, even after a failed start in
// between. A crash with its log, a failed start and an unwritable mark at closing are no restore.
func TestRemovedLog(t *testing.T) {
	fail := func(t *testing.T, path string) {
		steps := fstest.MapFS{"00001_requests.sql": {Data: []byte("nonsense")}}
		if s, err := openStore(t.Context(), options(path), steps); err == nil {
			t.Fatal("it opened", s.Close())
		}
	}
	cut := func(n int64) func(t *testing.T, path string) { // below 0: truncated by so many bytes
		return func(t *testing.T, path string) {
			is, err := fileSize(path + logSuffix)
			if err != nil {
				t.Fatal(err)
			}
			if n >= 0 {
				is = 0
			}
			if err := os.Truncate(path+logSuffix, is+n); err != nil {
				t.Fatal(err)
			}
		}
	}
	marked := func(t *testing.T, path string) { // about to empty its log
		m, _, err := readMark(path)
		if err != nil || !m.InUse {
			t.Fatal(m, err)
		}
		m.InUse = false
		if err := writeMark(path, *m); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string)
		lives int
	}{
		"removed": {func(t *testing.T, path string) {
			if err := os.Remove(path + logSuffix); err != nil {
				t.Fatal(err)
			}
		}, 1},
		"removed, a start failed": {func(t *testing.T, path string) {
			if err := os.Remove(path + logSuffix); err != nil {
				t.Fatal(err)
			}
			fail(t, path)
		}, 1},
		"H1/cut to nothing":           {cut(0), 1},
		"H1/cut to its header":        {cut(32), 1},
		"H1/without its newest entry": {cut(-1), 1},
		"H1/overwritten": {func(t *testing.T, path string) {
			n, err := fileSize(path + logSuffix)
			if err == nil {
				err = os.WriteFile(path+logSuffix, make([]byte, n), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, 1},
		"a start died before it emptied the log": {marked, 0},
		"a start died after it emptied the log": {func(t *testing.T, path string) {
			marked(t, path)
			err := change(t.Context(), path, statements(emptyLog))
			if err == nil {
				err = os.WriteFile(path+logSuffix, nil, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, 0},
		"a start failed": {fail, 0},
		"no room for the mark": {func(t *testing.T, path string) {
			if err := os.MkdirAll(markName(path)+draftSuffix+"/x", 0o700); err != nil {
				t.Fatal(err)
			}
			if err := reopen(t, path).Close(); err != nil {
				t.Fatal(err)
			}
			fail(t, path)
		}, 0},
		"closed": {func(t *testing.T, path string) {
			if err := reopen(t, path).Close(); err != nil || fileExists(path+logSuffix) {
				t.Fatal("closed, it has a log", err)
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path, dead := filepath.Join(t.TempDir(), "daycared.db"), filepath.Join(t.TempDir(), "daycared.db")
			s := reopen(t, path)
			r := approve(t, s, permissions.For(time.Hour))
			if err := use(t, s, r); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = reopen(t, path)
			grants, err := s.Grants(t.Context(), r.Caller.Name, time.Now())
			if err != nil || len(grants) != 1 {
				t.Fatal(grants, err)
			}
			if _, err := s.Revoke(t.Context(), grants[0].ID, "fay", "cli", time.Now(), 1); err != nil {
				t.Fatal(err)
			}
			copyFiles(t, path, dead, "", logSuffix)
			copyFiles(t, markName(path), markName(dead), "")
			c.spoil(t, dead)
			for range 2 {
				s := reopen(t, dead)
				began := restorations(t, s)
				if len(began) != c.lives || c.lives > 0 && began[0].Detail["why"] == "" {
					t.Errorf("lives: %v", began)
				}
				if grants, err := s.Grants(t.Context(), r.Caller.Name, time.Now()); err != nil || len(grants) != 0 {
					t.Errorf("in force: %v, %v", grants, err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestLifeWithoutRoomForItsMark: a new life whose mark cannot be written is still the same after a crash.
func TestLifeWithoutRoomForItsMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daycared.db")
	s := reopen(t, path)
	insert(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, spoil := range []func() error{
		func() error { return os.Remove(markName(path)) },
		func() error { return os.WriteFile(markName(path), []byte("garbage"), 0o600) },
		func() error {
			return os.WriteFile(markName(path), []byte(`{"chain":"other","seq":7,"opens":3}`), 0o600)
		},
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(markName(path)+draftSuffix+"/x", 0o700); err != nil {
			t.Fatal(err)
		}
		before := 0
		for i := range 3 {
			s := reopen(t, path)
			insert(t, s)
			n := len(restorations(t, s))
			if i > 0 && n != before {
				t.Errorf("start %d is another life", i+1)
			}
			before = n
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.RemoveAll(markName(path) + draftSuffix); err != nil {
			t.Fatal(err)
		}
		if s := reopen(t, path); len(restorations(t, s)) != before || s.Close() != nil {
			t.Error("with a mark at last, it is another life")
		}
	}
}

// TestForeignLog: a log of another file is neither replayed nor deleted.
func TestForeignLog(t *testing.T) {
	for name, put := range map[string]func(t *testing.T, path, backup, old string) error{
		"a backup":      func(_ *testing.T, path, backup, _ string) error { return os.Rename(backup, path) },
		"an older copy": func(_ *testing.T, path, _, old string) error { return os.Rename(old, path) },
		"empty":         func(_ *testing.T, path, _, _ string) error { return os.Truncate(path, 0) },
		"none":          func(_ *testing.T, path, _, _ string) error { return os.Remove(path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "daycared.db")
			kept, old := filepath.Join(t.TempDir(), "backup.db"), filepath.Join(t.TempDir(), "old.db")
			s := reopen(t, path)
			insert(t, s)
			if _, err := Backup(t.Context(), options(path), kept); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			copyFiles(t, path, old, "")
			s = reopen(t, path)
			insert(t, s)
			dead := filepath.Join(t.TempDir(), "daycared.db")
			copyFiles(t, path, dead, "", logSuffix)
			copyFiles(t, markName(path), markName(dead), "")
			if n, err := fileSize(dead + logSuffix); err != nil || n == 0 {
				t.Fatalf("the log has %d bytes, %v", n, err)
			}
			alive := filepath.Join(t.TempDir(), "daycared.db")
			copyFiles(t, dead, alive, "", logSuffix)
			copyFiles(t, markName(dead), markName(alive), "")
			if s := reopen(t, alive); len(restorations(t, s)) != 0 {
				t.Error("a death is another life")
			}
			if err := put(t, dead, kept, old); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(dead + logSuffix)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				_, err = Open(context.Background(), options(dead))
				if !errors.Is(err, permissions.ErrBroken) || !strings.Contains(err.Error(), "daycared restore FILE") {
					t.Errorf("got %v", err)
				}
			}
			if after, err := os.ReadFile(dead + logSuffix); err != nil || string(after) != string(before) {
				t.Errorf("the log was changed: %v", err)
			}
		})
	}
}

// TestACrashAtTheBeginningOfALife: a crash between the commit of a new life and its mark is not taken for a foreign log,
// and the life does not begin twice. A reader keeps the log from being moved.
func TestACrashAtTheBeginningOfALife(t *testing.T) {
	for _, marked := range []bool{false, true} {
		path, old := filepath.Join(t.TempDir(), "daycared.db"), filepath.Join(t.TempDir(), "old.db")
		for opened := range 4 {
			s := reopen(t, path)
			insert(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if opened == 0 {
				copyFiles(t, path, old, "")
			}
		}
		copyFiles(t, old, path, "")
		before, _, err := readMark(path)
		if err != nil {
			t.Fatal(err)
		}
		reader := lookInto(path, "")
		tx, err := reader.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var opens int64
		if err := tx.QueryRowContext(t.Context(), "SELECT opens FROM meta").Scan(&opens); err != nil {
			t.Fatal(err)
		}
		s := reopen(t, path)
		dead := filepath.Join(t.TempDir(), "daycared.db")
		copyFiles(t, path, dead, "", logSuffix)
		copyFiles(t, markName(path), markName(dead), "")
		if !marked { // killed before
			if _, _, err := announceRestore(dead, *before); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			again, err := Open(t.Context(), options(dead))
			if err != nil {
				t.Fatalf("marked %t: %v", marked, err)
			}
			if n := len(restorations(t, again)); n != 1 {
				t.Errorf("marked %t: %d lives began", marked, n)
			}
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(tx.Rollback(), reader.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMarksThatAreNone: a mark with impossible numbers is damage, and the audit remains valid. A pipe is no mark.
func TestMarksThatAreNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daycared.db")
	s := reopen(t, path)
	insert(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	m, _, err := readMark(path)
	if err != nil {
		t.Fatal(err)
	}
	m.Seq = 1<<63 - 1000
	text, err := json.Marshal(m)
	if err == nil {
		err = os.WriteFile(markName(path), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s = reopen(t, path)
	if found := restorations(t, s); len(found) != 1 || found[0].Seq < gap || found[0].Seq > maxSeq {
		t.Errorf("got %v", found)
	}
	if err := errors.Join(s.Close(), os.Remove(markName(path)), unix.Mkfifo(markName(path), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), options(path)); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("got %v", err)
	}
}
