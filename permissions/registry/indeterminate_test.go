package registry

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// lose makes the store do one thing and report a failure.
func (m *room) lose(t testing.TB, do func() error) {
	t.Helper()
	loses := func(yes bool) {
		m.store.mu.Lock()
		defer m.store.mu.Unlock()
		m.store.loses = yes
	}
	loses(true)
	if err := do(); !errors.Is(err, permissions.ErrBroken) {
		t.Fatalf("got %v", err)
	}
	loses(false)
}

// measures reports whether a grant is measured.
func (m *room) measures(id permissions.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.deadlines.grants[id]
	return known
}

func forAMinute(r *permissions.Request) {
	r.Options = permissions.Offer(*r, []permissions.Scope{permissions.For(time.Minute)}, r.Widest)
}

func TestAnUnconfirmedAnswerWakesItsWaiter(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		start()
		w, r := m.ask(t, m.fresh(forAMinute))
		feed := m.Subscribe(4)
		defer feed.Close()
		m.lose(t, func() error {
			_, err := m.Resolve(
				t.Context(), r.ID, permissions.Cast{
					Vote: permissions.Vote{By: "fay", Answer: permissions.Allow(permissions.For(time.Minute)), At: m.wall()},
				},
			)
			return err
		})
		silent(t, w)
		pass(tick)
		if state, err := rings(t, w); state != permissions.Approved || err != nil {
			t.Errorf("got %s, %v", state, err)
		}
		if told := <-feed.C; told.State != permissions.Approved {
			t.Errorf("told %s", told.State)
		}
		m.jump.Store(int64(-24 * time.Hour)) // its grant is measured, and ended
		id := m.store.row(r.ID).GrantsLeft()[0].ID
		if pass(time.Minute - 2*tick); !m.measures(id) {
			t.Error("what it granted is not measured, or is over before its time")
		}
		if pass(3 * tick); m.measures(id) {
			t.Error("what it granted has not ended after its time")
		}
	})
}

// A grant that is measured already is not measured again.
func TestWhatIsMeasuredIsNotMeasuredAnew(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		start()
		_, r := m.ask(t, m.fresh(forAMinute))
		c, err := m.Resolve(
			t.Context(), r.ID, permissions.Cast{
				Vote: permissions.Vote{By: "fay", Answer: permissions.Allow(permissions.For(time.Minute)), At: m.wall()},
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		pass(30 * time.Second)
		m.lose(t, func() error {
			_, err := m.Resolve(t.Context(), r.ID, permissions.Collect{At: m.wall()})
			return err
		})
		pass(31 * time.Second)
		if m.InForce(c.Grants[0], false) {
			t.Error("it is in force after its time")
		}
	})
}

func TestARequestThatTheStoreDidNotConfirmIsTold(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		start()
		feed := m.Subscribe(4)
		defer feed.Close()
		r := m.fresh(nil)
		m.lose(t, func() error {
			_, _, _, err := m.Register(t.Context(), permissions.Opening{Request: r}, false)
			return err
		})
		m.store.breakDown(permissions.ErrBroken) // and keeps failing
		pass(10 * tick)
		m.store.breakDown(nil)
		pass(tick)
		if told := <-feed.C; told.ID != r.ID || told.State != permissions.Pending {
			t.Errorf("told %s %s", told.ID, told.State)
		}
		pass(r.Timeout() - 10*tick)
		if m.state(r.ID) != permissions.Expired {
			t.Errorf("after its deadline it is %s", m.state(r.ID))
		}
	})
}

// A request that was stored although the store failed is measured like any other, even while the store cannot confirm it
// and the wall clock is set back.
func TestWhatTheStoreDidNotConfirmIsMeasured(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		start()
		r := m.fresh(nil)
		m.lose(t, func() error {
			_, _, _, err := m.Register(t.Context(), permissions.Opening{Request: r}, false)
			return err
		})
		m.store.breakDown(permissions.ErrBroken)
		m.jump.Store(int64(-24 * time.Hour))
		pass(r.Timeout())
		m.store.breakDown(nil)
		pass(2 * tick)
		if m.state(r.ID) != permissions.Expired {
			t.Errorf("after its time it is %s", m.state(r.ID))
		}
	})
}

// meddling is a store with a hook in the middle of a call.
type meddling struct {
	*memory
	once func()
}

func (m *meddling) meddle() {
	if once := m.once; once != nil {
		m.once = nil
		once()
	}
}

func (m *meddling) Read(ctx context.Context, id permissions.ID) (permissions.Request, error) {
	r, err := m.memory.Read(ctx, id)
	m.meddle()
	return r, err
}

func (m *meddling) Due(ctx context.Context, now time.Time, redeem time.Duration, limit int) ([]permissions.Due, time.Time, error) {
	m.meddle()
	return m.memory.Due(ctx, now, redeem, limit)
}

func (m *meddling) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	c, err := m.memory.Apply(ctx, id, e)
	m.meddle()
	return c, err
}

// A request that a failing store did not open, and then is opened at the moment this is found out, is measured.
func TestWhatIsOpenedWhileItIsLookedForIsMeasured(t *testing.T) {
	for name, look := range map[string]func(*room) error{
		"read again": func(m *room) error { m.reread(context.Background(), func(permissions.Request) {}); return nil },
		"over":       func(m *room) error { return m.expireSpent(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			ticking(t, func(t *testing.T, m *room, _ func()) {
				store := &meddling{memory: m.store}
				m.Registry.store = store
				r := m.fresh(func(r *permissions.Request) {
					r.EscalateTo, r.EscalateAt = []string{"robin"}, r.CreatedAt.Add(time.Minute)
				})
				m.store.breakDown(permissions.ErrBroken)
				if _, _, err := m.Open(t.Context(), permissions.Opening{Request: r}); !errors.Is(err, permissions.ErrBroken) {
					t.Fatal(err)
				}
				m.store.breakDown(nil)
				pass(time.Hour)
				m.deadlines.back = true
				store.once = func() {
					r.CreatedAt = m.wall().UTC()
					r.Deadline = r.CreatedAt.Add(time.Hour)
					r.EscalateAt = time.Time{}
					if _, created, err := m.Open(t.Context(), permissions.Opening{Request: r}); err != nil || !created {
						t.Errorf("opened: %t, %v", created, err)
					}
				}
				if err := look(m); err != nil {
					t.Error(err)
				}
				if m.measuredEnd(r.ID) == 0 || m.state(r.ID) != permissions.Pending {
					t.Errorf("it is %s, and measured to %s", m.state(r.ID), m.measuredEnd(r.ID))
				}
			})
		})
	}
}

// A request that was not opened does not keep others from ending.
func TestWhatWasNotOpenedIsNotEscalated(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, _ func()) {
		r := m.fresh(func(r *permissions.Request) {
			r.EscalateTo, r.EscalateAt = []string{"robin"}, r.CreatedAt.Add(time.Minute)
		})
		m.store.breakDown(permissions.ErrBroken)
		if _, _, err := m.Open(t.Context(), permissions.Opening{Request: r}); !errors.Is(err, permissions.ErrBroken) {
			t.Fatal(err)
		}
		m.store.breakDown(nil)
		m.jump.Store(int64(-time.Hour))
		pass(2 * time.Minute)
		if err := m.expireSpent(t.Context()); err != nil || len(m.deadlines.more) > 0 {
			t.Errorf("%v, and %d are still to be escalated", err, len(m.deadlines.more))
		}
	})
}

func TestWhatWasNotOpenedIsNotMeasured(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		r := m.fresh(nil)
		m.store.breakDown(permissions.ErrBroken)
		if _, _, err := m.Open(t.Context(), permissions.Opening{Request: r}); !errors.Is(err, permissions.ErrBroken) {
			t.Fatal(err)
		}
		m.store.breakDown(nil)
		_, other := m.ask(t, m.fresh(func(r *permissions.Request) { r.Tool = "other" }))
		m.jump.Store(int64(-24 * time.Hour))
		pass(r.Timeout())
		if _, err := m.Sweep(t.Context()); err != nil || m.state(other.ID) != permissions.Expired { // before it is read again
			t.Errorf("the other is %s, %v", m.state(other.ID), err)
		}
		start()
		pass(tick)
		if m.measuredEnd(r.ID) != 0 {
			t.Error("what was not opened is measured")
		}
	})
}

func TestWhatWasNotOpenedIsNotLookedForAgain(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		start()
		m.store.breakDown(permissions.ErrBroken)
		if _, _, err := m.Open(context.Background(), permissions.Opening{Request: m.fresh(nil)}); !errors.Is(err, permissions.ErrBroken) {
			t.Fatal(err)
		}
		m.store.breakDown(nil)
		pass(tick)
		if m.isIndeterminate() || len(m.indeterminate) > 0 {
			t.Error("it is still looked for")
		}
	})
}

func TestAnUnconfirmedStopWakesWhoeverWaits(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		start()
		w, _ := m.ask(t, m.fresh(nil))
		m.lose(t, func() error {
			_, err := m.StopAll(t.Context(), "fay", "cli")
			return err
		})
		pass(tick)
		if state, err := rings(t, w); state != permissions.Cancelled || err != nil {
			t.Errorf("got %s, %v", state, err)
		}
		<-m.Noticed()
	})
}

// A store that cannot be written is not tried again before the next tick.
func TestAFullDiskDoesNotKeepTheClockBusy(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		start()
		tries := 0
		m.store.beforeApply = func(permissions.ID, permissions.Transition) error {
			tries++
			return permissions.ErrBroken
		}
		m.ask(t, m.fresh(nil))
		pass(15*time.Minute + 10*tick)
		if tries < 5 || tries > 25 {
			t.Errorf("it was tried %d times in ten ticks", tries)
		}
	})
}

// A damaged row is retried, and does not keep the waiters of another from their answer.
func TestADamagedRowKeepsNobodyElseFromAnAnswerThatWasNotConfirmed(t *testing.T) {
	ticking(t, func(t *testing.T, m *room, start func()) {
		start()
		_, bad := m.ask(t, m.fresh(nil))
		pass(time.Second) // the other is newer and comes later
		w, _ := m.ask(t, m.fresh(func(r *permissions.Request) { r.Key = "another" }))
		m.store.mu.Lock()
		m.store.damaged = bad.ID
		m.store.mu.Unlock()
		m.lose(t, func() error {
			_, err := m.StopAll(t.Context(), "fay", "cli")
			return err
		})
		pass(tick)
		if state, err := rings(t, w); state != permissions.Cancelled || err != nil {
			t.Errorf("got %s, %v", state, err)
		}
		if pass(tick); !m.isIndeterminate() {
			t.Error("the damaged one is not looked for any more")
		}
	})
}
