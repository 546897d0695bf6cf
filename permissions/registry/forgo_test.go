package registry

import (
	"errors"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Of several calls that wait for the same request, one that leaves takes nothing from the others; the last one cancels.
func TestLeaveOrCancel(t *testing.T) {
	m := newRoom()
	named := func(call string) func(*permissions.Request) { return func(r *permissions.Request) { r.Call = call } }
	first, r := m.ask(t, m.fresh(named("a")))
	second, _ := m.ask(t, m.fresh(named("b")))
	reader, _, err := m.Attach(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Leave(t.Context())
	if left, err := m.LeaveOrCancel(t.Context(), r.ID, "a", ""); err != nil || left.State != permissions.Pending {
		t.Fatalf("while another waits: %s, %v", left.State, err)
	}
	first.LeaveSoon(0) // its disconnection is noticed a moment later
	second.Park(time.Minute)
	if left, err := m.LeaveOrCancel(t.Context(), r.ID, "a", ""); err != nil || left.State != permissions.Pending {
		t.Fatalf("while another keeps its place: %s, %v", left.State, err)
	}
	if left, err := m.LeaveOrCancel(t.Context(), r.ID, "b", ""); err != nil || left.State != permissions.Cancelled {
		t.Fatalf("the last one: %s, %v", left.State, err)
	}
	if got, err := rings(t, second); err != nil || got != permissions.Cancelled {
		t.Errorf("who still waits is told %s, %v", got, err)
	}
	if _, ok := m.Rejoin("a"); ok {
		t.Error("who was forgone has a place")
	}
	if _, err := m.LeaveOrCancel(t.Context(), r.ID, "b", ""); !errors.Is(err, permissions.ErrSettled) {
		t.Errorf("what is settled: %v", err)
	}
}

// A call without a name has left already: every waiting call is another one. A name does not affect other requests.
func TestLeaveOrCancelWithoutAName(t *testing.T) {
	m := newRoom()
	first, r := m.ask(t, m.fresh(nil))
	second, _ := m.ask(t, m.fresh(nil))
	other, o := m.ask(t, m.fresh(func(q *permissions.Request) { q.Call, q.Reason = "a", "another" }))
	defer other.Leave(t.Context())
	first.Leave(t.Context())
	for _, call := range []string{"", "a"} {
		if left, err := m.LeaveOrCancel(t.Context(), r.ID, call, ""); err != nil || left.State != permissions.Pending {
			t.Errorf("%q, while another waits: %s, %v", call, left.State, err)
		}
	}
	second.Leave(t.Context())
	if left, err := m.LeaveOrCancel(t.Context(), r.ID, "", ""); err != nil || left.State != permissions.Cancelled {
		t.Errorf("the last one: %s, %v", left.State, err)
	}
	if m.Waiting(o.ID) != 1 {
		t.Error("another request lost its call")
	}
}
