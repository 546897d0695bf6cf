package registry

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/permissions"
)

// The absence of a call that returns within the grace is not recorded; that of one that stays away is.
func TestLeaveSoonIsToldAfterItsGrace(t *testing.T) {
	leased(t, func(t *testing.T, m *room) {
		w, r := m.ask(t, m.fresh(nil))
		w.LeaveSoon(2 * time.Second)
		if m.Waiting(r.ID) != 0 {
			t.Error("whoever left still waits")
		}
		<-time.After(1500 * time.Millisecond)
		back, _, err := m.Join(t.Context(), r.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(3 * time.Second)
		if synctest.Wait(); !m.store.row(r.ID).LeftAt.IsZero() {
			t.Error("somebody waits, and people were told that nobody does")
		}
		back.LeaveSoon(2 * time.Second)
		<-time.After(3500 * time.Millisecond)
		if synctest.Wait(); m.store.row(r.ID).LeftAt.IsZero() {
			t.Error("nobody waits, and nobody was told")
		}
	})
}

// An approval for once does not go to a call that has left, even within its grace.
func TestLeaveSoonTakesNothing(t *testing.T) {
	leased(t, func(t *testing.T, m *room) {
		first, r := m.ask(t, m.fresh(nil))
		second, _ := m.ask(t, m.fresh(nil))
		first.LeaveSoon(time.Minute)
		m.decide(t, r.ID, permissions.Allow(permissions.Once))
		if state, err := rings(t, second); state != permissions.Approved || err != nil {
			t.Errorf("the one who stayed got %s, %v", state, err)
		}
	})
}
