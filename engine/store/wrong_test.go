package store

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
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
	if named != 10 || strings.Count(got, "put a backup in its place") != 1 || !strings.Contains(got, "; 14 faults in all") {
		t.Errorf("%d are named: %s", named, got)
	}
}

// TestVerifyNamesEveryKindOfFault at once: sessions, timetables, absences, copies, uses, other chains, and who stopped everything.
func TestVerifyNamesEveryKindOfFault(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	at := time.Now()
	want := []string{"session " + string(begun(t, o.Store).ID), "session " + string(begun(t, o.Store).ID), "chain x is broken at entry 1",
		"chain y is broken at entry 1", "a use of the grant ", "; 10 faults in all"}
	for i, name := range []string{"nightly", "weekly"} {
		person := []string{"fay", "sam"}[i]
		a := permissions.Absence{Person: person, Until: at.Add(time.Hour), To: "kim", At: at, Via: "telegram"}
		if err := errors.Join(o.SetTimetable(t.Context(), agents.Timetable{Agent: name, Next: at, Asked: "-"}),
			o.PutAbsence(t.Context(), a, a.Record(permissions.PersonAway, "telegram", at))); err != nil {
			t.Fatal(err)
		}
		want = append(want, "timetable of "+name, "absence of "+person)
	}
	if _, err := o.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	meddle(t, o.Store, "UPDATE sessions SET step = '{}'; UPDATE timetables SET next_at = 1; UPDATE away SET to_name = 'eve'; "+
		"INSERT INTO uses SELECT grants.id, number FROM grants, requests WHERE state = 'denied'; "+
		"INSERT INTO chains VALUES (70, 'x'), (71, 'y'); CREATE TABLE kept.first AS SELECT * FROM entries ORDER BY key LIMIT 1; "+
		"UPDATE kept.first SET key = 70 << 48 | 1; INSERT INTO entries SELECT * FROM kept.first; "+
		"UPDATE kept.first SET key = 71 << 48 | 1; INSERT INTO entries SELECT * FROM kept.first")
	_, err := o.Verify(t.Context())
	if err == nil {
		t.Fatal("it verifies")
	}
	for _, each := range want {
		if !strings.Contains(err.Error(), each) {
			t.Errorf("%q is not in: %v", each, err)
		}
	}
}
