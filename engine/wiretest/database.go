package wiretest

import (
	"context"
	"errors"
	"os"
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
	FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN ('writer', 'goose_db_version') LOOP
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
