package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	_ "github.com/mattn/go-sqlite3"    // the driver

	"github.com/daycared/daycared/engine/wiretest"
)

// Damage makes the n-th request of the store at path unreadable, as another program does, in its file or in the database that tests use
// instead.
func Damage(t *testing.T, path string, n int64) {
	t.Helper()
	driver, name, again := "sqlite3", "file:"+path+"?_busy_timeout=10000", ""
	if url := wiretest.DatabaseOf(path); url != "" {
		driver, name, again = "pgx", url, "; UPDATE writer SET version = version + 1" // what the daemon has read is no longer so
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), fmt.Sprintf("UPDATE requests SET scope = 'nonsense' WHERE number = %d", n)+again); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// PutBack replaces tables of the SQLite file at path with those of an earlier copy, except its count of openings.
func PutBack(ctx context.Context, path, from string, tables ...string) error {
	texts := []string{`ATTACH '` + from + `' AS was`, `CREATE TEMP TABLE opened AS SELECT opens, marked, answered FROM main.meta`}
	for _, table := range tables {
		texts = append(texts, `DELETE FROM main.`+table, `INSERT INTO main.`+table+` SELECT * FROM was.`+table)
	}
	texts = append(texts, `UPDATE main.meta SET (opens, marked, answered) = (SELECT opens, marked, answered FROM opened)`)
	return Change(ctx, path, texts...)
}

// Change runs statements directly on the SQLite file at path.
func Change(ctx context.Context, path string, texts ...string) (err error) {
	db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=10000&_foreign_keys=off")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, text := range texts {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}
