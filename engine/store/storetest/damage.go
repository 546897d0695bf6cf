package storetest

import (
	"database/sql"
	"testing"

	_ "github.com/mattn/go-sqlite3" // the driver
)

// Damage makes the n-th request in the SQLite file at path one that cannot be read.
func Damage(t *testing.T, path string, n int64) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE requests SET scope = 'nonsense' WHERE number = $1`, n); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
