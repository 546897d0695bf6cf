package registry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/permissions"
)

func TestOnlyTheLastToLeaveIsTold(t *testing.T) {
	m := newRoom()
	first, r := m.ask(t, m.fresh(nil))
	second, _ := m.ask(t, m.fresh(nil))
	first.Leave(t.Context())
	if !m.store.row(r.ID).LeftAt.IsZero() || m.Waiting(r.ID) != 1 {
		t.Error("one still waits")
	}
	second.Leave(t.Context())
	left := m.store.row(r.ID)
	if left.LeftAt.IsZero() || left.State != permissions.Pending || m.Waiting(r.ID) != 0 {
		t.Errorf("nobody waits: %s, %s", left.LeftAt, left.State)
	}
	third, back := m.ask(t, m.fresh(nil))
	if back.ID != r.ID || !back.LeftAt.IsZero() || !m.store.row(r.ID).LeftAt.IsZero() {
		t.Errorf("somebody waits again: %+v", back.LeftAt)
	}
	third.Leave(t.Context())
	reader, back, err := m.Attach(t.Context(), r.ID)
	if err != nil || !back.LeftAt.IsZero() {
		t.Errorf("a reader came back: %v, %s", err, back.LeftAt)
	}
	reader.Leave(t.Context())
	if want := []string{"Leave", "Return", "Leave", "Return", "Leave"}; !slices.Equal(m.store.events(), want) {
		t.Errorf("stored %v, want %v", m.store.events(), want)
	}
}

func TestLeavingAfterTheAnswerStoresNothing(t *testing.T) {
	m := newRoom()
	w, r := m.ask(t, m.fresh(nil))
	m.decide(t, r.ID, permissions.Deny)
	if _, err := rings(t, w); err != nil {
		t.Fatal(err)
	}
	w.Leave(t.Context())
	if got := m.store.events(); len(got) != 1 {
		t.Errorf("stored %v", got)
	}
	if m.Waiting(r.ID) != 0 {
		t.Error("it still waits")
	}
}

// A call arrives while it is being stored that nobody waits.
func TestComingWhileTheLastLeaves(t *testing.T) {
	m := newRoom()
	first, r := m.ask(t, m.fresh(nil))
	var second *Waiter
	m.store.beforeApply = func(_ permissions.ID, e permissions.Transition) error {
		if _, leaves := e.(permissions.Leave); leaves && second == nil {
			second, _ = m.ask(t, m.fresh(nil)) // it reads the row before the Leave is in it
		}
		return nil
	}
	first.Leave(t.Context())
	if row := m.store.row(r.ID); !row.LeftAt.IsZero() || m.Waiting(r.ID) != 1 {
		t.Errorf("%d wait, and the row says nobody since %s", m.Waiting(r.ID), row.LeftAt)
	}
}

// A call that arrived leaves again while it is being stored that somebody waits.
func TestComingAndGoingWhileTheLastLeaves(t *testing.T) {
	m := newRoom()
	first, r := m.ask(t, m.fresh(nil))
	var second *Waiter
	m.store.beforeApply = func(_ permissions.ID, e permissions.Transition) error {
		switch _, returns := e.(permissions.Return); {
		case second == nil:
			second, _ = m.ask(t, m.fresh(nil))
		case returns:
			second.Leave(t.Context()) // its own Leave is stored before this Return
		}
		return nil
	}
	first.Leave(t.Context())
	if row := m.store.row(r.ID); row.LeftAt.IsZero() || m.Waiting(r.ID) != 0 {
		t.Errorf("%d wait, and the row says nobody since %s", m.Waiting(r.ID), row.LeftAt)
	}
	if want := []string{"Leave", "Leave", "Return", "Leave"}; !slices.Equal(m.store.events(), want) {
		t.Errorf("stored %v, want %v", m.store.events(), want)
	}
}

func TestWhatCannotBeStoredOfLeavingIsLogged(t *testing.T) {
	m := newRoom()
	w, _ := m.ask(t, m.fresh(nil))
	m.store.breakDown(permissions.ErrBroken)
	w.Leave(t.Context())
	if log := m.log.String(); !strings.Contains(log, "record that the last waiter left") {
		t.Errorf("logged %s", log)
	}
	m = newRoom()
	w, _ = m.ask(t, m.fresh(nil))
	m.store.breakDown(context.Canceled)
	over, end := context.WithCancel(t.Context())
	end()
	w.Leave(over)
	if log := m.log.String(); log != "nothing" {
		t.Errorf("of a leave that was itself cancelled, logged %s", log)
	}
}

// leased runs a test in virtual time beside a running registry.
func leased(t *testing.T, test func(*testing.T, *room)) {
	synctest.Test(t, func(t *testing.T) {
		m := newRoom()
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- m.Run(ctx) }()
		test(t, m)
		end()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

func named(call string) func(*permissions.Request) {
	return func(r *permissions.Request) { r.Call = call }
}

func TestAParkedPlaceIsKept(t *testing.T) {
	leased(t, func(t *testing.T, m *room) {
		w, r := m.ask(t, m.fresh(named("a")))
		other, _ := m.ask(t, m.fresh(named("b")))
		if _, ok := m.Rejoin("a"); ok {
			t.Error("a waiter that was not parked was given away")
		}
		w.Park(10 * time.Second)
		<-time.After(9 * time.Second)
		back, ok := m.Rejoin("a")
		if !ok || back != w || m.Waiting(r.ID) != 2 {
			t.Fatalf("got %v, %v", back, ok)
		}
		if _, again := m.Rejoin("a"); again {
			t.Error("the same place was given away twice")
		}
		<-time.After(time.Minute) // the lease is over and has no effect
		m.decide(t, r.ID, permissions.Allow(permissions.Once))
		if state, err := rings(t, back); state != permissions.Approved || err != nil {
			t.Errorf("whoever waited longest got %s, %v", state, err)
		}
		if _, err := rings(t, other); !errors.Is(err, ErrUsedElsewhere) {
			t.Errorf("the other got %v", err)
		}
	})
}

// A call that returned before its first connection was found closed keeps its place when that leaves.
func TestACallThatCameTwiceKeepsItsLaterPlace(t *testing.T) {
	m := newRoom()
	first, r := m.ask(t, m.fresh(nil))
	join := func() *Waiter {
		w, _, err := m.Join(t.Context(), r.ID, "a call")
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	lost, again := join(), join()
	again.Park(time.Minute)
	lost.Leave(t.Context())
	if w, ok := m.Rejoin("a call"); !ok || w != again {
		t.Errorf("the call comes back to %v, %v; want its later place", w, ok)
	}
	again.Leave(t.Context())
	first.Leave(t.Context())
	if len(m.calls) != 0 {
		t.Errorf("calls that have left are kept: %v", m.calls)
	}
}

func TestAParkedPlaceIsGivenUpAfterItsLease(t *testing.T) {
	leased(t, func(t *testing.T, m *room) {
		w, r := m.ask(t, m.fresh(named("a")))
		w.Park(10 * time.Second)
		<-time.After(10*time.Second - 1)
		if synctest.Wait(); m.Waiting(r.ID) != 1 {
			t.Error("the place was given up early")
		}
		<-time.After(tick)
		synctest.Wait()
		if _, ok := m.Rejoin("a"); ok || m.Waiting(r.ID) != 0 || m.store.row(r.ID).LeftAt.IsZero() {
			t.Error("the place was kept for too long, or nobody was told")
		}
		if m.store.row(r.ID).State != permissions.Pending {
			t.Error("leaving cancelled the request")
		}
	})
}

// A lease that ended as its call returned must not end the next one.
func TestAnOldLeaseDoesNotEndANewOne(t *testing.T) {
	leased(t, func(t *testing.T, m *room) {
		w, r := m.ask(t, m.fresh(named("a")))
		for range 5 {
			w.Park(1500 * time.Millisecond)
			<-time.After(1400 * time.Millisecond)
			if _, ok := m.Rejoin("a"); !ok {
				t.Fatal("the place is gone")
			}
		}
		w.Park(5 * time.Second)
		<-time.After(4 * time.Second)
		if synctest.Wait(); m.Waiting(r.ID) != 1 {
			t.Error("an old lease ended it")
		}
	})
}

func TestOneOfTwoParkedLeasesEnds(t *testing.T) {
	leased(t, func(t *testing.T, m *room) {
		short, r := m.ask(t, m.fresh(named("a")))
		long, _ := m.ask(t, m.fresh(named("b")))
		short.Park(2 * time.Second)
		long.Park(time.Minute)
		m.jump.Store(int64(-24 * time.Hour)) // a lease does not depend on the wall clock
		<-time.After(4 * time.Second)
		synctest.Wait()
		if m.Waiting(r.ID) != 1 || !m.store.row(r.ID).LeftAt.IsZero() {
			t.Errorf("%d wait, left %s", m.Waiting(r.ID), m.store.row(r.ID).LeftAt)
		}
	})
}

func TestADecisionFindsAParkedWaiter(t *testing.T) {
	leased(t, func(t *testing.T, m *room) {
		w, r := m.ask(t, m.fresh(named("a")))
		w.Park(10 * time.Second)
		m.decide(t, r.ID, permissions.Deny)
		back, ok := m.Rejoin("a")
		if !ok {
			t.Fatal("the place is gone")
		}
		if state, err := rings(t, back); state != permissions.Denied || err != nil {
			t.Errorf("got %s, %v", state, err)
		}
		back.Leave(t.Context())
		if _, ok := m.Rejoin("a"); ok {
			t.Error("a call that has left came back")
		}
	})
}

func TestNobodyRejoinsWithoutAName(t *testing.T) {
	m := newRoom()
	w, _ := m.ask(t, m.fresh(nil))
	w.Park(time.Minute)
	if _, ok := m.Rejoin(""); ok {
		t.Error("a call without a name found a place")
	}
	if _, ok := m.Rejoin("unknown"); ok {
		t.Error("an unknown call found a place")
	}
}

// WaitSettled takes nothing away: however often it is called first, Wait returns the result once.
func TestWaitSettledTakesNothing(t *testing.T) {
	m := newRoom()
	w, r := m.ask(t, m.fresh(nil))
	over, end := context.WithCancel(t.Context())
	end()
	w.WaitSettled(over, time.Time{})
	silent(t, w)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.WaitSettled(t.Context(), time.Time{})
	}()
	m.decide(t, r.ID, permissions.Deny)
	<-done
	w.WaitSettled(t.Context(), time.Time{})
	if state, err := rings(t, w); state != permissions.Denied || err != nil {
		t.Errorf("rang with %s, %v", state, err)
	}
	silent(t, w)
}
