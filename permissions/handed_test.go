package permissions

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// handing is fay's answer, with a use of the approval.
func handing(a Answer, call string) Cast {
	c := vote("fay", a)
	c.Use = &Use{Call: call, At: c.Vote.At}
	return c
}

// A vote that approves is one change with the use of the approval, and any other vote uses nothing.
func TestAVoteThatHandsOver(t *testing.T) {
	two := toolRequest()
	two.Asked, two.Quorum = []string{"fay", "sam"}, 2
	c, err := Step(toolRequest(), handing(Allow(Once), "a"))
	if err != nil || !c.Handed() || c.After.State != Approved || c.After.UsedCall != "a" || c.After.UsedAt.IsZero() ||
		c.After.CollectedAt.IsZero() || c.After.Revision != c.Before.Revision+1 {
		t.Fatalf("%v, %+v", err, c.After)
	}
	types := []Type{c.Records[0].Type, c.Records[len(c.Records)-1].Type}
	if want := []Type{RequestSettled, RequestUsed}; !slices.Equal(types, want) {
		t.Errorf("the audit has %v, want %v", types, want)
	}
	if _, err := Step(c.After, Use{Call: "b", At: soon}); !errors.Is(err, ErrNoUse) {
		t.Errorf("another call: %v", err)
	}
	for name, c := range map[string]Change{
		"denied":       must(Step(toolRequest(), handing(Deny, "a"))),
		"below quorum": must(Step(two, handing(Allow(Once), "a"))),
		"chosen":       must(Step(clarification(), handing(Choose(1), "a"))),
	} {
		if c.Handed() || !c.After.UsedAt.IsZero() {
			t.Errorf("%s: it was used", name)
		}
	}
}

// hand is a person's answer now, with a use for the waiting call.
func (m *room) hand(t testing.TB, id ID, a Answer) Change {
	t.Helper()
	c, err := m.Resolve(t.Context(), id, Cast{
		Vote: Vote{By: "fay", Via: "terminal", Answer: a, At: m.wall()}, Use: &Use{At: m.wall()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnApprovalIsHandedToTheCallThatWaitsLongest(t *testing.T) {
	for _, scope := range []Scope{Once, Session} {
		m := newRoom()
		first, r := m.ask(t, m.fresh(named("first")))
		reader, _, err := m.Attach(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		second, _ := m.ask(t, m.fresh(named("second")))
		if c := m.hand(t, r.ID, Allow(scope)); !c.Handed() || c.After.UsedCall != "first" {
			t.Fatalf("%s: %+v", scope, c.After)
		}
		if _, err := rings(t, first); err != nil || !first.Handed() {
			t.Errorf("%s: the first got %v, handed %v", scope, err, first.Handed())
		}
		if _, err := rings(t, second); errors.Is(err, ErrUsedElsewhere) != (scope == Once) || second.Handed() {
			t.Errorf("%s: the second got %v, handed %v", scope, err, second.Handed())
		}
		if _, err := rings(t, reader); err != nil || reader.Handed() {
			t.Errorf("%s: the reader got %v, handed %v", scope, err, reader.Handed())
		}
	}
}

// A disconnected call keeps its turn, and uses its approval when it is back.
func TestNothingIsHandedToWhoIsAway(t *testing.T) {
	m := newRoom()
	first, r := m.ask(t, m.fresh(named("first")))
	second, _ := m.ask(t, m.fresh(named("second")))
	first.Park(time.Minute)
	if c := m.hand(t, r.ID, Allow(Once)); c.Handed() {
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
	last Transition
}

func (a *applied) Apply(ctx context.Context, id ID, e Transition) (Change, error) {
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
		_, err := m.Resolve(t.Context(), r.ID, Cast{
			Vote: Vote{By: "fay", Via: "terminal", Answer: Allow(Once), At: m.wall()}, Use: &Use{At: m.wall()},
		})
		if cast, is := a.last.(Cast); err == nil || !is || cast.Use != nil {
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
	if c := m.hand(t, r.ID, Allow(Once)); c.Handed() || !c.After.UsedAt.IsZero() {
		t.Fatalf("%+v", c.After)
	}
	if _, err := rings(t, reader); err != nil || reader.Handed() {
		t.Errorf("the reader got %v", err)
	}
}

// The call leaves at the moment of the commit: its own retry finds the approval, and no other call does.
func TestWhoLeavesWhileItIsHandedOver(t *testing.T) {
	m := newRoom()
	first, r := m.ask(t, m.fresh(named("first")))
	second, _ := m.ask(t, m.fresh(named("second")))
	m.store.beforeApply = func(_ ID, e Transition) error {
		if _, votes := e.(Cast); votes {
			first.LeaveSoon(time.Minute)
		}
		return nil
	}
	c := m.hand(t, r.ID, Allow(Once))
	if !c.Handed() || c.After.UsedCall != "first" {
		t.Fatalf("%+v", c.After)
	}
	if _, err := rings(t, second); !errors.Is(err, ErrUsedElsewhere) {
		t.Errorf("the second got %v", err)
	}
	if _, err := m.Resolve(t.Context(), r.ID, Use{Call: "first", At: m.wall()}); err != nil {
		t.Errorf("its retry: %v", err)
	}
	if _, err := m.Resolve(t.Context(), r.ID, Use{Call: "second", At: m.wall()}); !errors.Is(err, ErrNoUse) {
		t.Errorf("the other: %v", err)
	}
}

// A call arrives between the commit and the wake-up: the call that was handed the approval is told so anyway.
func TestWhoComesWhileItIsHandedOver(t *testing.T) {
	for name, come := range map[string]func(m *room, id ID) (*Waiter, Request, error){
		"another call": func(m *room, id ID) (*Waiter, Request, error) { return m.Join(t.Context(), id, "") },
		"a reader":     func(m *room, id ID) (*Waiter, Request, error) { return m.Attach(t.Context(), id) },
	} {
		m := newRoom()
		first, r := m.ask(t, m.fresh(nil)) // a call without a name
		var late *Waiter
		m.store.afterApply = func(e Transition) {
			if _, votes := e.(Cast); !votes {
				return
			}
			var err error
			if late, _, err = come(m, r.ID); err != nil {
				t.Error(err)
			}
		}
		if c := m.hand(t, r.ID, Allow(Once)); !c.Handed() {
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
	if c := m.hand(t, r.ID, Allow(Once)); c.After.UsedCall != "first" {
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
