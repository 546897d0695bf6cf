package store_test

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/store/storetest"
	"github.com/daycared/daycared/engine/wiretest"
)

var _ engine.Store = (*store.Store)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestStore runs the suite on a file.
func TestStore(t *testing.T) {
	runSuite(t, func(t *testing.T) store.Options {
		t.Helper()
		return store.Options{Path: filepath.Join(t.TempDir(), "daycared.db")}
	})
}

// TestStoreOnPostgreSQL runs the suite on a PostgreSQL of the tests' own.
func TestStoreOnPostgreSQL(t *testing.T) {
	runSuite(t, func(t *testing.T) store.Options {
		t.Helper()
		return store.Options{Path: filepath.Join(t.TempDir(), "daycared.db"), Server: wiretest.Database(t)}
	})
}

// runSuite runs the suite on stores that are opened with options.
func runSuite(t *testing.T, options func(*testing.T) store.Options) {
	t.Helper()
	var mu sync.Mutex
	of, meddled := map[engine.Store]store.Options{}, map[engine.Store]bool{}
	open := func(t *testing.T, o store.Options) engine.Store {
		t.Helper()
		o.Now, o.Log = time.Now, slog.New(slog.DiscardHandler)
		s, err := store.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if !meddled[s] {
				store.RowsAreTheFile(t, s)
			}
			_ = s.Close()
		})
		mu.Lock()
		defer mu.Unlock()
		of[s] = o
		return s
	}
	where := func(s engine.Store) store.Options {
		mu.Lock()
		defer mu.Unlock()
		return of[s]
	}
	storetest.Run(t, storetest.Backend{
		Open: func(t *testing.T) engine.Store { return open(t, options(t)) },
		Reopen: func(t *testing.T, s engine.Store) engine.Store {
			if err := s.(*store.Store).Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, where(s))
		},
		Exec: func(t *testing.T, s engine.Store, statement string) {
			mu.Lock()
			meddled[s] = true
			mu.Unlock()
			driver, name := "sqlite3", where(s).Path
			if where(s).Server != "" {
				driver, name = "pgx", where(s).Server
			}
			db, err := sql.Open(driver, name)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			if where(s).Server != "" {
				// References are not checked, as with SQLite, and what the daemon has read is no longer so.
				statement = "SET session_replication_role = replica; " + statement + "; UPDATE writer SET version = version + 1"
			}
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
			store.Reseal(t, s.(*store.Store))
		},
	})
}
