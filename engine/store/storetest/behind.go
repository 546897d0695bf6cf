package storetest

import (
	"database/sql"
	"testing"
)

// Behind changes the store in a file behind daycared's back; tables of kept are in a file beside it.
func Behind(t testing.TB, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "ATTACH '"+path+".kept' AS kept; "+statements)
	if closed := db.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
}
