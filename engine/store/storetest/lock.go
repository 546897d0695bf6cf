package storetest

import (
	"database/sql"
	"testing"

	_ "github.com/mattn/go-sqlite3" // the driver
)

// Lock takes the write lock of the SQLite file at path, as another process would, until unlock is called.
func Lock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate&_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = tx.Rollback() // it is empty
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
