package storetest

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/daycared/daycared/engine/wiretest"
)

// Behind changes the store behind daycared's back: main is its schema, kept another one, in a file beside it or in the database that tests
// use instead.
func Behind(t testing.TB, path, statements string) {
	t.Helper()
	driver, name, first := "sqlite3", path, "ATTACH '"+path+".kept' AS kept; "
	if url := wiretest.DatabaseOf(path); url != "" {
		driver, name, first = "pgx", url, "CREATE SCHEMA IF NOT EXISTS kept; "
		statements = strings.ReplaceAll(statements, "main.", "public.")
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), first+statements)
	if closed := db.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
}
