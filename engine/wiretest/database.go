package wiretest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/internal/pgtest"
)

// Database is the URL of an empty PostgreSQL database of the test's own, with the tables of a store. A later test may use it again.
func Database(t testing.TB) string {
	t.Helper()
	return pgtest.Database(t, "tables", emptyTables)
}

// OpenDatabase is [Database] for what is no test; release gives it back.
func OpenDatabase() (url string, release func() error, err error) {
	return pgtest.Open("tables", emptyTables)
}

// DatabaseOf is the URL of the database that [OpenStore] has made for a path; it is empty if the store is in that file.
func DatabaseOf(path string) string {
	databases.mu.Lock()
	defer databases.mu.Unlock()
	return databases.at[path].url
}

var databases = places{at: map[string]place{}}

// places has the databases of stores, by the path that they would have as files.
type places struct {
	mu sync.Mutex
	at map[string]place
}

type place struct {
	url     string
	release func() error
}

// of is the URL of the database of the store with that path, which is empty if there was none. Those of folders that were removed, as
// those of tests are at their ends, are given back.
func (p *places) of(path string) (url string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found, is := p.at[path]; is {
		return found.url, nil
	}
	for old, database := range p.at {
		if _, gone := os.Stat(filepath.Dir(old)); errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, database.release())
			delete(p.at, old)
		}
	}
	url, release, failed := OpenDatabase()
	p.at[path] = place{url, release}
	return url, errors.Join(err, failed)
}

// emptyTables makes the tables of a store that no daemon has used, or deletes what is in them.
func emptyTables(url string, used bool) error {
	ctx := context.Background()
	if !used {
		if err := makeTables(ctx, url); err != nil {
			return err
		}
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, deleteAll)
	return errors.Join(err, conn.Close(ctx))
}

// deleteAll empties all tables of a store.
const deleteAll = `
SET session_replication_role = replica; -- references are not checked
DO $$ DECLARE name TEXT; BEGIN
	FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public'
		AND tablename NOT IN ('writer', 'goose_db_version', 'whatsmeow_version') LOOP
		EXECUTE format('DELETE FROM %I', name);
	END LOOP;
	PERFORM setval(format('%I', sequencename)::regclass, 1, FALSE) FROM pg_sequences
		WHERE schemaname = 'public' AND sequencename NOT LIKE 'goose%';
END $$;
UPDATE writer SET version = version + 1`

func makeTables(ctx context.Context, url string) error {
	folder, err := os.MkdirTemp("", "daycared-tables-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }() // it is left to the system
	s, err := store.Open(ctx, store.Options{Path: folder + "/store.db", Server: url, Log: Quiet, Now: time.Now})
	if err != nil {
		return err
	}
	return s.Close()
}
