package registry

import (
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// What another process changed wakes its waiters and goes to whoever follows.
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
	})
}

// A request of another process, which may be left to this one, gets no more than its time, however the clock is set.
func TestTheTimeOfWhatAnotherProcessOpenedIsMeasured(t *testing.T) {
	t.Run("D6/the clock is set back before another daemon takes over", func(t *testing.T) {
		ticking(t, func(t *testing.T, m *room, start func()) {
			start()
			other := m.fresh(nil)
			m.store.rows[other.ID] = other
			m.Changed(t.Context(), []permissions.ID{other.ID})
			pass(time.Minute)
			m.jump.Store(int64(-time.Hour))
			pass(13 * time.Minute)
			if m.state(other.ID) != permissions.Pending {
				t.Errorf("before its time is over it is %s", m.state(other.ID))
			}
			if pass(time.Minute + tick); m.state(other.ID) != permissions.Expired {
				t.Errorf("when its time is over it is %s", m.state(other.ID))
			}
		})
	})
}
