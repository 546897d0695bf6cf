package engine_test

import (
	"database/sql"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// damage takes the seal of a request out behind the daemon's back.
func (s *stage) damage(id permissions.ID) {
	s.t.Helper()
	db, err := sql.Open("sqlite3", s.path())
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(s.t.Context(), "UPDATE requests SET mac = x'' WHERE id = $1", id); err != nil {
		s.t.Fatal(err)
	}
}

// TestADamagedApprovalKeepsNobodyFromAsking: D9/what it left behind for a session opens nothing, and people are asked.
func TestADamagedApprovalKeepsNobodyFromAsking(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := play(t, usual(), f)
	r := st.approved(f.Memory, tagged("s1", "@network"), permissions.Allow(permissions.Session), false)
	st.damage(r.ID)
	call := st.ask(t.Context(), tagged("s1", "@network"))
	again := st.shown(f.Memory, 2)
	if again.Request.ID == r.ID {
		t.Error("the damaged one is shown")
	}
	if _, err := f.Do(t.Context(), connectors.Decision{Button: again.Button, Ref: f.Copies()[1].Ref, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	if r := st.get(call); r.State != permissions.Approved {
		t.Error(r.State)
	}
}

// TestADamagedRequestKeepsNoCardFromBeingShownAgain: D9/a channel that was away has the others' cards sent anew, at once.
func TestADamagedRequestKeepsNoCardFromBeingShownAgain(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := play(t, usual(), f)
	st.ask(t.Context(), network("x"))
	bad := st.shown(f.Memory, 1)
	st.ask(t.Context(), network("y"))
	good := st.shown(f.Memory, 2)
	st.damage(bad.Request.ID)
	were, err := st.ShowAgain(t.Context(), f.Name())
	if err != nil || len(were) != 1 || were[0].Request.ID != good.Request.ID {
		t.Errorf("shown were %+v, %v", were, err)
	}
	st.shown(f.Memory, 3)
}
