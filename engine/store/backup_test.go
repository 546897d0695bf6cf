package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/permissions"
)

// backup makes a backup, which must succeed.
func backup(t *testing.T, from string) Summary {
	t.Helper()
	to := filepath.Join(t.TempDir(), "backup.db")
	o, told := options(from), int64(0)
	o.Progress = func(what string, done, all int64) {
		if what == "entries and requests verified" && done == all {
			told = all
		}
	}
	sum, err := Backup(t.Context(), o, to)
	if err != nil {
		t.Fatal(err)
	}
	if told < int64(sum.Requests) {
		t.Errorf("of %d requests, %d are said to be verified", sum.Requests, told)
	}
	if names, err := filepath.Glob(to + "*"); err != nil || len(names) != 1 {
		t.Errorf("beside the backup is %v, %v", names, err)
	}
	return sum
}

// TestBackup backs up a store during writes, restores it, and continues with it.
func TestBackup(t *testing.T) {
	s := newStore(t)
	waiting := insert(t, s)
	quarter := permissions.For(15 * time.Minute)
	lasting := newAsk()
	lasting.Request.Options = permissions.Offer(lasting.Request, []permissions.Scope{quarter}, quarter)
	r, _, err := s.Open(t.Context(), lasting)
	if err != nil {
		t.Fatal(err)
	}
	said := fayAllows()
	said.Vote.Answer = permissions.Allow(quarter)
	if c, err := s.Apply(t.Context(), r.ID, said); err != nil || len(c.Grants) != 1 {
		t.Fatalf("%d grants, %v", len(c.Grants), err)
	}

	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				if _, _, err := s.Open(context.Background(), newAsk()); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	end := sync.OnceFunc(func() {
		close(stop)
		<-stopped
	})
	defer end()
	for range 5 {
		backup(t, s.path)
	}
	end()

	sum := backup(t, s.path)
	heads, err := s.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(sum.Path)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	if err := s.readers.QueryRowContext(t.Context(), countRequests).Scan(&count); err != nil {
		t.Fatal(err)
	}
	chain := permissions.Head{Entry: heads[0].Entry, First: 1, Entries: int(heads[0].Seq)}
	want := Summary{Path: sum.Path, Bytes: info.Size(), Requests: count, Grants: 1, Verified: Verified{Chains: []permissions.Head{chain}}}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Errorf("the summary (-want +got):\n%s", diff)
	}
	if m := mode(t, sum.Path); m != 0o600 {
		t.Errorf("the backup has mode %o", m)
	}
	insert(t, s) // is not in the backup
	coder, newest := s.Coder(), insert(t, s).Number
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	closed := backup(t, s.path) // closed store
	if closed.Requests != sum.Requests+2 {
		t.Errorf("%d requests of a store that is closed, want %d", closed.Requests, sum.Requests+2)
	}

	if err := os.Rename(sum.Path, s.path); err != nil {
		t.Fatal(err)
	}
	s, err = Open(t.Context(), options(s.path))
	if err != nil {
		t.Fatalf("a backup that was put back does not open: %v", err)
	}
	defer func() { _ = s.Close() }()
	if c, err := s.Apply(t.Context(), waiting.ID, fayAllows()); err != nil || c.After.State != permissions.Approved {
		t.Errorf("what waited cannot be decided: %v", err)
	}
	next := insert(t, s)
	if next.Number < newest+gap || s.Coder() == coder {
		t.Errorf("the next has number %d, after %d; the same codes: %v", next.Number, newest, s.Coder() == coder)
	}
	if again, err := s.Verify(t.Context()); err != nil || again[0].Chain != heads[0].Chain || again[0].Seq < heads[0].Seq+gap {
		t.Errorf("the chain did not go on: %v, %v", again, err)
	}
}

// TestBackupFails: nothing is overwritten, and no incomplete file is left.
func TestBackupFails(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, s *Store, to string) (from string)
		want    string
		kept    bool // a file exists at to, and stays
	}{
		{"no store", func(*testing.T, *Store, string) string {
			return "/nowhere/daycared.db"
		}, "cannot be read (no such file", false},
		{"a folder", func(_ *testing.T, s *Store, _ string) string { return s.dir() }, "is not a file", false},
		{"another file", func(t *testing.T, s *Store, to string) string {
			path := filepath.Join(filepath.Dir(to), "notes.txt")
			if err := os.WriteFile(path, []byte(strings.Repeat("no store ", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, "is damaged", false},
		{"another database", func(t *testing.T, s *Store, to string) string {
			path := filepath.Join(filepath.Dir(to), "other.db")
			db, err := sql.Open("sqlite3", path)
			if err != nil {
				t.Fatal(err)
			}
			exec(t, db, "CREATE TABLE x (y)")
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			return path
		}, "the copy is not sound and was removed: no such table", false},
		{"something is there", func(t *testing.T, s *Store, to string) string {
			if err := os.WriteFile(to, []byte("mine"), 0o644); err != nil {
				t.Fatal(err)
			}
			return s.path
		}, "exists already", true},
		{"onto itself", func(t *testing.T, s *Store, to string) string {
			if err := os.Symlink(s.path, to); err != nil {
				t.Fatal(err)
			}
			return s.path
		}, "exists already", true},
		{"an audit that was changed", func(t *testing.T, s *Store, _ string) string {
			exec(t, s.writer, "UPDATE entries SET actor = 'mallory'")
			return s.path
		}, "the copy is not sound and was removed: chain ", false},
		{"a row astray", func(t *testing.T, s *Store, _ string) string {
			exec(t, s.writer, "PRAGMA foreign_keys = off")
			exec(t, s.writer, "DELETE FROM requests")
			s.rows.dropAll() // what was written last
			return s.path
		}, "rows that are missing", false},
		{"damaged pages", func(t *testing.T, s *Store, _ string) string {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			scribble(t, s.path, 4096)
			return s.path
		}, "is damaged", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			r := newAsk()
			r.Copies = []permissions.Copy{{Request: r.Request.ID, Person: "fay", Connector: "terminal"}}
			if _, _, err := s.Open(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(t.TempDir(), "backup.db")
			from := c.prepare(t, s, to)
			sum, err := Backup(t.Context(), options(from), to)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "back up the store") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if sum.Path != "" {
				t.Errorf("it is told of %+v", sum)
			}
			if _, err := os.Lstat(to); errors.Is(err, os.ErrNotExist) == c.kept {
				t.Errorf("what is at the backup's name: %v", err)
			}
		})
	}
	s := newStore(t)
	to := filepath.Join(t.TempDir(), "none", "backup.db")
	if _, err := Backup(t.Context(), options(s.path), to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("into no folder: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	to = filepath.Join(t.TempDir(), "backup.db")
	if _, err := Backup(ctx, options(s.path), to); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("cancelled, it is left: %v", err)
	}
}

// TestTheLogIsCutAfterALongRead: what is written while something reads makes the log longer, and only until that has ended.
func TestTheLogIsCutAfterALongRead(t *testing.T) {
	s := newStore(t)
	err := s.read(t.Context(), func(from source) error {
		if _, err := count(t.Context(), from, countRequests); err != nil { // from here on the log is kept
			return err
		}
		exec(t, s.writer, "CREATE TABLE long AS SELECT zeroblob(80000000) AS text")
		exec(t, s.writer, "DROP TABLE long")
		return nil
	})
	long, unread := fileSize(s.path + logSuffix)
	exec(t, s.writer, checkpointLog)
	insert(t, s)
	short, cut := fileSize(s.path + logSuffix)
	if err := errors.Join(err, unread, cut); err != nil || long < 80_000_000 || short > 64<<20 {
		t.Errorf("the log had %d bytes, and has %d; %v", long, short, err)
	}
}
