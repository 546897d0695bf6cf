package store

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
)

// TestVerifyNamesTheWrongRows: ten of them, and how many there are; a single one alone.
func TestVerifyNamesTheWrongRows(t *testing.T) {
	s := reopen(t, filepath.Join(t.TempDir(), "daycared.db"))
	var all []permissions.ID
	for range 12 {
		all = append(all, insert(t, s).ID)
	}
	if err := locked(t, s, permissions.PersonLocked); err != nil {
		t.Fatal(err)
	}
	verify := func() string {
		t.Helper()
		_, err := s.Verify(t.Context())
		if err == nil {
			t.Fatal("it verifies")
		}
		return err.Error()
	}
	meddle(t, s, `UPDATE requests SET asked = '["eve"]' WHERE id = $1`, all[3])
	if got := verify(); !strings.Contains(got, string(all[3])) || strings.Contains(got, "in all") {
		t.Error(got)
	}
	meddle(t, s, `UPDATE requests SET asked = '["eve"]'`)
	meddle(t, s, `DELETE FROM locks`)
	got, named := verify(), 0
	for _, id := range all {
		named += strings.Count(got, string(id))
	}
	if named != 10 || strings.Count(got, "put a backup in its place") != 1 || !strings.Contains(got, "; 13 rows in all") {
		t.Errorf("%d are named: %s", named, got)
	}
}
