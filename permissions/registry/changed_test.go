package registry

import (
	"testing"

	"github.com/daycared/daycared/permissions"
)

// TestWhatAnotherProcessChanged wakes its waiters and goes to whoever follows; what nobody here waits for or follows is not read.
func TestWhatAnotherProcessChanged(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, _ func()) {
		w, r := m.ask(t, m.fresh(nil))
		other := m.fresh(nil)
		m.store.rows[other.ID] = other
		vote := permissions.Cast{Vote: permissions.Vote{By: "fay", Answer: permissions.Allow(permissions.Once), At: m.wall()}}
		for _, id := range []permissions.ID{r.ID, other.ID} {
			if _, err := m.store.Apply(t.Context(), id, vote); err != nil {
				t.Fatal(err)
			}
		}
		m.Changed(t.Context(), []permissions.ID{other.ID, r.ID})
		if state, err := rings(t, w); state != permissions.Approved || err != nil {
			t.Errorf("its waiter was told %s, %v", state, err)
		}
		feed := m.Subscribe(4)
		defer feed.Close()
		m.Changed(t.Context(), []permissions.ID{other.ID})
		if told := <-feed.C; told.ID != other.ID || told.State != permissions.Approved {
			t.Errorf("who follows was told %s of %s", told.State, told.ID)
		}
		m.store.breakDown(permissions.ErrBroken)
		feed.Close()
		if m.Changed(t.Context(), []permissions.ID{other.ID}); m.isIndeterminate() {
			t.Error("what nobody waits for was read")
		}
	})
}
