package registry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/permissions"
)

// hand is a person's answer now, with a use for the waiting call.
func (m *room) hand(t testing.TB, id permissions.ID, a permissions.Answer) permissions.Change {
	t.Helper()
	c, err := m.Resolve(t.Context(), id, permissions.Cast{
		Vote: permissions.Vote{By: "fay", Via: "terminal", Answer: a, At: m.wall()}, Use: &permissions.Use{At: m.wall()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnApprovalIsHandedToTheCallThatWaitsLongest(t *testing.T) {
	for _, scope := range []permissions.Scope{permissions.Once, permissions.Session} {
		m := newRoom()
		first, r := m.ask(t, m.fresh(named("first")))
		reader, _, err := m.Attach(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		second, _ := m.ask(t, m.fresh(named("second")))
		if c := m.hand(t, r.ID, permissions.Allow(scope)); !c.ApprovedAndUsed() || c.After.UsedCall != "first" {
			t.Fatalf("%s: %+v", scope, c.After)
		}
		if _, err := rings(t, first); err != nil || !first.Handed() {
			t.Errorf("%s: the first got %v, handed %v", scope, err, first.Handed())
		}
		if _, err := rings(t, second); errors.Is(err, ErrUsedElsewhere) != (scope == permissions.Once) || second.Handed() {
			t.Errorf("%s: the second got %v, handed %v", scope, err, second.Handed())
		}
		if _, err := rings(t, reader); err != nil || reader.Handed() {
			t.Errorf("%s: the reader got %v, handed %v", scope, err, reader.Handed())
		}
	}
}

// A disconnected call keeps its turn, and uses its approval when it is back.
func TestADisconnectedCallIsNotHandedTheApproval(t *testing.T) {
	m := newRoom()
	first, r := m.ask(t, m.fresh(named("first")))
	second, _ := m.ask(t, m.fresh(named("second")))
	first.Park(time.Minute)
	if c := m.hand(t, r.ID, permissions.Allow(permissions.Once)); c.ApprovedAndUsed() {
		t.Fatalf("%+v", c.After)
	}
	if w, ok := m.Rejoin("first"); !ok || w != first {
		t.Fatal("its place is gone")
	}
	if _, err := rings(t, first); err != nil || first.Handed() {
		t.Errorf("the first got %v, handed %v", err, first.Handed())
	}
	if _, err := rings(t, second); !errors.Is(err, ErrUsedElsewhere) {
		t.Errorf("the second got %v", err)
	}
}

// applied remembers the last event applied.
type applied struct {
	Store
	last permissions.Transition
}

func (a *applied) Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error) {
	a.last = e
	return a.Store.Apply(ctx, id, e)
}

// A late answer is handed to nobody: the waiting calls are told meanwhile that the time is over, and may or may not have
// left by then.
func TestNothingIsHandedOnceTheTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newRoom()
		_, r := m.ask(t, m.fresh(named("first")))
		a := &applied{Store: m.Registry.store}
		m.Registry.store = a
		<-time.After(r.Timeout() + time.Second)
		_, err := m.Resolve(t.Context(), r.ID, permissions.Cast{
			Vote: permissions.Vote{
				By: "fay", Via: "terminal", Answer: permissions.Allow(permissions.Once), At: m.wall(),
			}, Use: &permissions.Use{At: m.wall()},
		})
		if cast, is := a.last.(permissions.Cast); err == nil || !is || cast.Use != nil {
			t.Errorf("%+v, %v", a.last, err)
		}
	})
}

func TestNothingIsHandedToAReaderOrToNobody(t *testing.T) {
	m := newRoom()
	w, r := m.ask(t, m.fresh(nil))
	reader, _, err := m.Attach(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	w.Leave(t.Context())
	if c := m.hand(t, r.ID, permissions.Allow(permissions.Once)); c.ApprovedAndUsed() || !c.After.UsedAt.IsZero() {
		t.Fatalf("%+v", c.After)
	}
	if _, err := rings(t, reader); err != nil || reader.Handed() {
		t.Errorf("the reader got %v", err)
	}
}

// The call leaves at the moment of the commit: its own retry finds the approval, and no other call does.
func TestACallThatLeavesDuringHandover(t *testing.T) {
	m := newRoom()
	first, r := m.ask(t, m.fresh(named("first")))
	second, _ := m.ask(t, m.fresh(named("second")))
	m.store.beforeApply = func(_ permissions.ID, e permissions.Transition) error {
		if _, votes := e.(permissions.Cast); votes {
			first.LeaveSoon(time.Minute)
		}
		return nil
	}
	c := m.hand(t, r.ID, permissions.Allow(permissions.Once))
	if !c.ApprovedAndUsed() || c.After.UsedCall != "first" {
		t.Fatalf("%+v", c.After)
	}
	if _, err := rings(t, second); !errors.Is(err, ErrUsedElsewhere) {
		t.Errorf("the second got %v", err)
	}
	if _, err := m.Resolve(t.Context(), r.ID, permissions.Use{Call: "first", At: m.wall()}); err != nil {
		t.Errorf("its retry: %v", err)
	}
	if _, err := m.Resolve(t.Context(), r.ID, permissions.Use{Call: "second", At: m.wall()}); !errors.Is(err, permissions.ErrNoUse) {
		t.Errorf("the other: %v", err)
	}
}

// A call arrives between the commit and the wake-up: the call that was handed the approval is told so anyway.
func TestACallThatArrivesDuringHandover(t *testing.T) {
	for name, come := range map[string]func(m *room, id permissions.ID) (*Waiter, permissions.Request, error){
		"another call": func(m *room, id permissions.ID) (*Waiter, permissions.Request, error) {
			return m.Join(t.Context(), id, "")
		},
		"a reader": func(m *room, id permissions.ID) (*Waiter, permissions.Request, error) {
			return m.Attach(t.Context(), id)
		},
	} {
		m := newRoom()
		first, r := m.ask(t, m.fresh(nil)) // a call without a name
		var late *Waiter
		m.store.afterApply = func(e permissions.Transition) {
			if _, votes := e.(permissions.Cast); !votes {
				return
			}
			var err error
			if late, _, err = come(m, r.ID); err != nil {
				t.Error(err)
			}
		}
		if c := m.hand(t, r.ID, permissions.Allow(permissions.Once)); !c.ApprovedAndUsed() {
			t.Fatalf("%s: %+v", name, c.After)
		}
		if _, err := rings(t, first); err != nil || !first.Handed() {
			t.Errorf("%s: the first got %v, handed %v", name, err, first.Handed())
		}
		if _, err := rings(t, late); errors.Is(err, ErrUsedElsewhere) != (name == "another call") || late.Handed() {
			t.Errorf("%s: it got %v, handed %v", name, err, late.Handed())
		}
	}
}

// A call that retries before its disconnection was noticed is one call.
func TestACallThatWaitsTwiceIsOne(t *testing.T) {
	m := newRoom()
	gone, r := m.ask(t, m.fresh(named("first")))
	again, _, err := m.Join(t.Context(), r.ID, "first")
	if err != nil {
		t.Fatal(err)
	}
	other, _ := m.ask(t, m.fresh(named("second")))
	if c := m.hand(t, r.ID, permissions.Allow(permissions.Once)); c.After.UsedCall != "first" {
		t.Fatalf("%+v", c.After)
	}
	for _, w := range []*Waiter{gone, again} {
		if _, err := rings(t, w); err != nil || !w.Handed() {
			t.Errorf("it got %v, handed %v", err, w.Handed())
		}
	}
	if _, err := rings(t, other); !errors.Is(err, ErrUsedElsewhere) || other.Handed() {
		t.Errorf("the other got %v, handed %v", err, other.Handed())
	}
}
