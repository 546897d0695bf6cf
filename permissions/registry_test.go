package permissions

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAWaiterIsRegisteredBeforeTheRowIsThere(t *testing.T) {
	m := newRoom()
	r := m.fresh(nil)
	waiting := 0
	m.store.beforeOpen = func() { waiting = m.Waiting(r.ID) }
	w, _ := m.ask(t, r)
	defer w.Leave(t.Context())
	if waiting != 1 || w.ID() != r.ID {
		t.Errorf("%d waited for %s when the row was inserted", waiting, w.ID())
	}
}

func TestOnlyANewRequestIsToBeShown(t *testing.T) {
	m := newRoom()
	for _, want := range []bool{true, false, false} {
		w, _, created, err := m.Register(t.Context(), Opening{Request: m.fresh(nil)})
		if err != nil || created != want {
			t.Errorf("created %v, %v; want %v", created, err, want)
		}
		t.Cleanup(func() { w.LeaveSoon(0) })
	}
}

func TestADecisionRingsOnce(t *testing.T) {
	m := newRoom()
	w, r := m.ask(t, m.fresh(nil))
	silent(t, w)
	m.decide(t, r.ID, Deny)
	if state, err := rings(t, w); state != Denied || err != nil {
		t.Errorf("rang with %s, %v", state, err)
	}
	if _, err := m.Resolve(t.Context(), r.ID, Withdraw{At: m.wall()}); !errors.Is(err, ErrSettled) {
		t.Errorf("a second ending: %v", err)
	}
	silent(t, w)
}

func TestAVoteThatSettlesNothingRingsNobody(t *testing.T) {
	m := newRoom()
	w, r := m.ask(t, m.fresh(func(r *Request) { r.Quorum = 2 }))
	m.decide(t, r.ID, Allow(Once))
	silent(t, w)
}

// Two calls wait for one request. Some outcomes go to both, some only to the one that has waited longer.
func TestTwoCallers(t *testing.T) {
	for _, c := range []struct {
		name   string
		key    string
		settle func(*testing.T, *room, ID)
		state  State
		second error
	}{
		{"approved once", "", func(t *testing.T, m *room, id ID) { m.decide(t, id, Allow(Once)) }, Approved, ErrUsedElsewhere},
		{"approved once, with a key", "k", func(t *testing.T, m *room, id ID) { m.decide(t, id, Allow(Once)) },
			Approved, nil},
		{"approved for the session", "", func(t *testing.T, m *room, id ID) { m.decide(t, id, Allow(Session)) },
			Approved, nil},
		{"denied", "", func(t *testing.T, m *room, id ID) { m.decide(t, id, Deny) }, Denied, nil},
		{"cancelled", "", func(t *testing.T, m *room, id ID) {
			if c, err := m.Cancel(t.Context(), id, "fay", "cli"); err != nil || c.After.DecidedBy != "fay" {
				t.Errorf("cancel: %v, %+v", err, c)
			}
		}, Cancelled, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newRoom()
			ask := func() (*Waiter, Request) { return m.ask(t, m.fresh(func(r *Request) { r.Key = c.key })) }
			first, r := ask()
			second, same := ask()
			if same.ID != r.ID || second.ID() != r.ID || m.Waiting(r.ID) != 2 {
				t.Fatalf("the second call did not join: %s, %s", r.ID, same.ID)
			}
			reader, _, err := m.Attach(t.Context(), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			c.settle(t, m, r.ID)
			if state, err := rings(t, first); state != c.state || err != nil {
				t.Errorf("the first got %s, %v", state, err)
			}
			if state, err := rings(t, second); state != c.state || !errors.Is(err, c.second) {
				t.Errorf("the second got %s, %v, want %v", state, err, c.second)
			}
			if state, err := rings(t, reader); state != c.state || err != nil {
				t.Errorf("the reader got %s, %v", state, err)
			}
		})
	}
}

func TestTheApprovalGoesToWhoeverWaitedLongestOfThoseWhoWait(t *testing.T) {
	m := newRoom()
	first, r := m.ask(t, m.fresh(nil))
	reader, _, err := m.Attach(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	second, _ := m.ask(t, m.fresh(nil))
	third, _ := m.ask(t, m.fresh(nil))
	first.Leave(t.Context())
	m.decide(t, r.ID, Allow(Once))
	silent(t, first)
	if _, err := rings(t, reader); err != nil {
		t.Errorf("the reader got %v", err)
	}
	if _, err := rings(t, second); err != nil {
		t.Errorf("the second got %v", err)
	}
	if _, err := rings(t, third); !errors.Is(err, ErrUsedElsewhere) {
		t.Errorf("the third got %v", err)
	}
}

// The request that a call joins is settled after Open has found it and before the call waits for it.
func TestSettledBetweenOpenAndTheMoveIsNotLost(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer Answer
		state  State
		leaves bool // the first call has received its answer and left
		want   error
	}{
		{"denied", Deny, Denied, false, nil},
		{"approved for the session", Allow(Session), Approved, false, nil},
		{"approved once, for the first", Allow(Once), Approved, false, ErrUsedElsewhere},
		{"approved once, and the first is gone", Allow(Once), Approved, true, nil}, // its use is refused
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newRoom()
			first, r := m.ask(t, m.fresh(nil))
			m.store.afterOpen = func(created bool) {
				if created {
					t.Error("the second call did not join")
				}
				m.decide(t, r.ID, c.answer)
				if c.leaves {
					first.Leave(t.Context())
				}
			}
			second, row := m.ask(t, m.fresh(nil))
			if row.State != c.state {
				t.Errorf("the row is %s", row.State)
			}
			if state, err := rings(t, second); state != c.state || !errors.Is(err, c.want) {
				t.Errorf("the second got %s, %v, want %v", state, err, c.want)
			}
			if c.leaves {
				return
			}
			if state, err := rings(t, first); state != c.state || err != nil {
				t.Errorf("the first got %s, %v", state, err)
			}
		})
	}
}

func TestSettledBeforeRegisterReturns(t *testing.T) {
	m := newRoom()
	r := m.fresh(nil)
	m.store.afterOpen = func(bool) { m.decide(t, r.ID, Deny) }
	w, _ := m.ask(t, r)
	if state, err := rings(t, w); state != Denied || err != nil {
		t.Errorf("got %s, %v", state, err)
	}
}

func TestWhatIsHeldAlreadyRingsAtOnce(t *testing.T) {
	m := newRoom()
	feed := m.Subscribe(1)
	defer feed.Close()
	w, r := m.ask(t, m.fresh(func(r *Request) {
		r.State, r.Scope, r.DecidedVia, r.DecidedAt = Approved, Once, ViaGrant, r.CreatedAt
	}))
	if state, err := rings(t, w); state != Approved || err != nil {
		t.Errorf("got %s, %v", state, err)
	}
	if got := <-feed.C; got.ID != r.ID {
		t.Errorf("told of %s", got.ID)
	}
}

func TestNothingIsLeftOfWhatWasNotOpened(t *testing.T) {
	m := newRoom()
	_, _ = m.ask(t, m.fresh(func(r *Request) { r.Key = "k" }))
	other := m.fresh(func(r *Request) { r.Key, r.Tool, r.Call = "k", "other", "c" })
	w, _, created, err := m.Register(t.Context(), Opening{Request: other})
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Code != CodeKeyTaken || w != nil || created {
		t.Errorf("got %v, %v", w, err)
	}
	if _, ok := m.Rejoin("c"); ok || m.Waiting(other.ID) != 0 {
		t.Error("somebody waits for what was not opened")
	}
}

// A call that cannot read the row it has joined does not wait for it.
func TestNothingIsLeftOfAJoinThatCannotRead(t *testing.T) {
	m := newRoom()
	first, r := m.ask(t, m.fresh(nil))
	defer first.Leave(t.Context())
	m.store.afterOpen = func(bool) { m.store.breakDown(ErrBroken) }
	w, row, created, err := m.Register(t.Context(), Opening{Request: m.fresh(nil)})
	if !errors.Is(err, ErrBroken) || w != nil || created || row.ID != "" {
		t.Errorf("got %v, %s, %v, %v", w, row.ID, created, err)
	}
	m.store.breakDown(nil)
	if n := m.Waiting(r.ID); n != 1 {
		t.Errorf("%d wait", n)
	}
}

func TestAttach(t *testing.T) {
	m := newRoom()
	w, r := m.ask(t, m.fresh(nil))
	defer w.Leave(t.Context())
	early, row, err := m.Attach(t.Context(), r.ID)
	if err != nil || row.State != Pending || m.Waiting(r.ID) != 2 {
		t.Fatalf("%v, %s", err, row.State)
	}
	m.decide(t, r.ID, Allow(Once))
	late, row, err := m.Attach(t.Context(), r.ID)
	if err != nil || row.State != Approved {
		t.Fatalf("%v, %s", err, row.State)
	}
	for _, reader := range []*Waiter{early, late} {
		if state, err := rings(t, reader); state != Approved || err != nil {
			t.Errorf("a reader got %s, %v", state, err)
		}
		reader.Leave(t.Context())
	}
	var refusal *Refusal
	if _, _, err := m.Attach(t.Context(), "01J"); !errors.As(err, &refusal) || refusal.Code != CodeUnknown {
		t.Errorf("attach to nothing: %v", err)
	}
	if m.Waiting("01J") != 0 {
		t.Error("somebody waits for nothing")
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	m := newRoom()
	w, r := m.ask(t, m.fresh(nil))
	ctx, end := context.WithTimeout(t.Context(), time.Millisecond)
	defer end()
	if _, err := w.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if m.store.row(r.ID).State != Pending {
		t.Error("a wait that ended settled something")
	}
	m.decide(t, r.ID, Deny)
	if got, err := w.Wait(ctx); err != nil || got.State != Denied { // a decision counts
		t.Errorf("got %s, %v", got.State, err)
	}
}

// A call that knows the id waits like the others, in its turn.
func TestJoin(t *testing.T) {
	m := newRoom()
	first, r := m.ask(t, m.fresh(nil))
	second, row, err := m.Join(t.Context(), r.ID, "c")
	if err != nil || row.State != Pending || m.Waiting(r.ID) != 2 {
		t.Fatalf("%v, %s", err, row.State)
	}
	second.Park(time.Minute)
	if back, ok := m.Rejoin("c"); !ok || back != second {
		t.Error("the place of the call is not its own")
	}
	m.decide(t, r.ID, Allow(Once))
	if _, err := rings(t, first); err != nil {
		t.Errorf("the first got %v", err)
	}
	if _, err := rings(t, second); !errors.Is(err, ErrUsedElsewhere) {
		t.Errorf("the second got %v", err)
	}
	first.Leave(t.Context())
	second.Leave(t.Context())
	late, _, err := m.Join(t.Context(), r.ID, "d")
	if err != nil {
		t.Fatal(err)
	}
	if state, err := rings(t, late); state != Approved || err != nil {
		t.Errorf("who comes late, to an approval that nobody waits for, got %s, %v", state, err)
	}
	if _, _, err := m.Join(t.Context(), "01J", "e"); err == nil || m.Waiting("01J") != 0 {
		t.Errorf("join nothing: %v", err)
	}
}

func TestStopAllRingsWhoeverWaited(t *testing.T) {
	m := newRoom()
	a, r := m.ask(t, m.fresh(nil))
	feed := m.Subscribe(4)
	defer feed.Close()
	n, err := m.StopAll(t.Context(), "fay", "cli")
	if err != nil || n != 1 || m.store.row(r.ID).State != Cancelled || m.store.row(r.ID).DecidedBy != "fay" {
		t.Fatalf("cancelled %d, %v", n, err)
	}
	if state, err := rings(t, a); state != Cancelled || err != nil {
		t.Errorf("rang with %s, %v", state, err)
	}
	if told := <-feed.C; told.State != Cancelled {
		t.Errorf("told %s", told.State)
	}
	select {
	case <-m.Noticed():
	default:
		t.Error("nobody is told to look for notices")
	}
}

// After a stop that could not be stored nothing is opened, until one is.
func TestAStopHaltsUntilItIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which detects that nobody waits for ever
		m := newRoom()
		open := func() error {
			_, _, err := m.Open(t.Context(), Opening{Request: m.fresh(nil)})
			return err
		}
		m.store.breakDown(ErrBroken)
		if _, err := m.StopAll(t.Context(), "fay", "cli"); !errors.Is(err, ErrBroken) {
			t.Fatal(err)
		}
		m.store.breakDown(nil)
		if err := open(); err == nil || err.Error() != Stopped("fay").Error() {
			t.Errorf("after a stop that is not stored: %v", err)
		}
		if _, err := m.StopAll(t.Context(), "fay", "cli"); err != nil {
			t.Fatal(err)
		}
		if err := open(); err != nil {
			t.Errorf("after a stop that is stored: %v", err)
		}
	})
}

func TestAReminderRingsForNotices(t *testing.T) {
	m := newRoom()
	_, r := m.ask(t, m.fresh(func(r *Request) { r.Reminders = []time.Time{r.CreatedAt} }))
	for range 2 { // each is woken once at most
		m.NotifyNotices()
	}
	<-m.Noticed()
	if _, err := m.Resolve(t.Context(), r.ID, Remind{At: m.wall()}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-m.Noticed():
	default:
		t.Error("a reminder does not ring")
	}
	if _, err := m.Resolve(t.Context(), r.ID, Extend{Until: r.Deadline.Add(time.Hour), At: m.wall()}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-m.Noticed():
		t.Error("more time, of which nobody is told, rings as well")
	default:
	}
}

// A feed has each visible change of a row, and nothing else.
func TestChangesAreFollowed(t *testing.T) {
	m := newRoom()
	_, r := m.ask(t, m.fresh(func(r *Request) { r.Reminders = []time.Time{r.CreatedAt} }))
	feed := m.Subscribe(4)
	defer feed.Close()
	later := r.Deadline.Add(time.Hour)
	for _, e := range []Transition{Remind{At: m.wall()}, Extend{Until: later, At: m.wall()}, Extend{Until: noon, At: m.wall()}} {
		if _, err := m.Resolve(t.Context(), r.ID, e); err != nil {
			t.Fatal(err)
		}
	}
	m.decide(t, r.ID, Deny)
	if len(feed.C) != 2 {
		t.Fatalf("told %d times", len(feed.C))
	}
	if told := <-feed.C; told.State != Pending || !told.Deadline.Equal(later) {
		t.Errorf("first %s until %s", told.State, told.Deadline)
	}
	if told := <-feed.C; told.State != Denied {
		t.Errorf("then %s", told.State)
	}
}
