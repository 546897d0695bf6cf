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
)

var _ engine.Store = (*store.Store)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestStore runs the suite for every database.
func TestStore(t *testing.T) {
	var mu sync.Mutex
	paths, meddled := map[engine.Store]string{}, map[engine.Store]bool{}
	open := func(t *testing.T, path string) engine.Store {
		t.Helper()
		s, err := store.Open(t.Context(), store.Options{Path: path, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
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
		paths[s] = path
		return s
	}
	where := func(s engine.Store) string {
		mu.Lock()
		defer mu.Unlock()
		return paths[s]
	}
	storetest.Run(t, storetest.Backend{
		Open: func(t *testing.T) engine.Store { return open(t, filepath.Join(t.TempDir(), "daycared.db")) },
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
			db, err := sql.Open("sqlite3", where(s))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
			store.Reseal(t, s.(*store.Store))
		},
	})
}
