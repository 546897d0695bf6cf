package engine_test

import (
	"slices"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// A waiting call is handed the approval in the commit that approves: the row is never approved and unused in between.
func TestAnApprovalIsUsedInTheCommitOfItsDecision(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	q := network("x")
	q.Call = "one"
	call := st.ask(t.Context(), q)
	r := f.must(t, st.shown(f.Memory, 1).Request.ID, allow())
	if r.UsedAt.IsZero() || r.UsedCall == "" {
		t.Errorf("it was not used by the decision: %+v", r)
	}
	if got := st.get(call); got.Revision != r.Revision || !got.UsedAt.Equal(r.UsedAt) {
		t.Errorf("the call got revision %d, and the decision made %d", got.Revision, r.Revision)
	}
	var types []permissions.Type
	entries, err := st.rows.Audit(t.Context(), "", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Request == r.ID {
			types = append(types, e.Type)
		}
	}
	want := []permissions.Type{permissions.RequestSettled, permissions.RequestUsed, permissions.PermissionApplied}
	if n := len(types); n < len(want) || !slices.Equal(types[n-len(want):], want) {
		t.Errorf("the audit has %v", types)
	}
}

// An approval of something that policy forbids by now is not handed over.
func TestNothingIsHandedThatIsForbiddenByNow(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	call := st.ask(t.Context(), tool("write_file", `{"path":"a"}`))
	id := st.shown(f.Memory, 1).Request.ID
	stricter := usual()
	stricter.Policy.Forbidden = []string{"write_file"}
	st.Configure(stricter)
	if r := f.must(t, id, allow()); !r.UsedAt.IsZero() {
		t.Errorf("it was used: %+v", r)
	}
	refused(t, (<-call).err, permissions.CodeForbidden)
}

// narrow is a channel that can show nothing whole.
type narrow struct{ *phone }

func (narrow) Fits(connectors.Prompt) bool { return false }

func TestNothingIsAllowedThatCannotHaveBeenShownWhole(t *testing.T) {
	t.Run("B1/not shown whole", func(t *testing.T) {
		f := narrow{newPhone(fay, "fays-phone")}
		st := newEnv(t, usual(), f)
		call := st.ask(t.Context(), network("x"))
		id := st.shown(f.Memory, 1).Request.ID
		_, err := f.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()})
		refused(t, err, permissions.CodeTooBig)
		f.must(t, id, permissions.Deny)
		if r := st.get(call); r.State != permissions.Denied {
			t.Errorf("it is %s", r.State)
		}
	})
}
