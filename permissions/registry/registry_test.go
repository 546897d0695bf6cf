package registry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/permissions"
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
		w, _, created, err := m.Register(t.Context(), permissions.Opening{Request: m.fresh(nil)}, false)
		if err != nil || created != want {
			t.Errorf("created %v, %v; want %v", created, err, want)
		}
		t.Cleanup(func() { w.LeaveSoon(0) })
	}
}

func TestADecisionWakesOnce(t *testing.T) {
	m := newRoom()
	w, r := m.ask(t, m.fresh(nil))
	silent(t, w)
	m.decide(t, r.ID, permissions.Deny)
	if state, err := rings(t, w); state != permissions.Denied || err != nil {
		t.Errorf("rang with %s, %v", state, err)
	}
	if _, err := m.Resolve(t.Context(), r.ID, permissions.Withdraw{At: m.wall()}); !errors.Is(err, permissions.ErrSettled) {
		t.Errorf("a second ending: %v", err)
	}
	silent(t, w)
}

func TestAVoteThatSettlesNothingWakesNobody(t *testing.T) {
	m := newRoom()
	w, r := m.ask(t, m.fresh(func(r *permissions.Request) { r.Quorum = 2 }))
	m.decide(t, r.ID, permissions.Allow(permissions.Once))
	silent(t, w)
}

// Two calls wait for one request. Some outcomes go to both, some only to the one that has waited longer.
func TestTwoCallers(t *testing.T) {
	for _, c := range []struct {
		name   string
		key    string
		settle func(*testing.T, *room, permissions.ID)
		state  permissions.State
		second error
	}{
		{
			"approved once", "", func(t *testing.T, m *room, id permissions.ID) {
				m.decide(t, id, permissions.Allow(permissions.Once))
			}, permissions.Approved, ErrUsedElsewhere,
		},
		{"approved once, with a key", "k", func(t *testing.T, m *room, id permissions.ID) {
			m.decide(t, id, permissions.Allow(permissions.Once))
		},
			permissions.Approved, nil},
		{"approved for the session", "", func(t *testing.T, m *room, id permissions.ID) {
			m.decide(t, id, permissions.Allow(permissions.Session))
		},
			permissions.Approved, nil},
		{"denied", "", func(t *testing.T, m *room, id permissions.ID) { m.decide(t, id, permissions.Deny) }, permissions.Denied, nil},
		{"cancelled", "", func(t *testing.T, m *room, id permissions.ID) {
			if c, err := m.Cancel(t.Context(), id, "fay", "cli"); err != nil || c.After.DecidedBy != "fay" {
				t.Errorf("cancel: %v, %+v", err, c)
			}
		}, permissions.Cancelled, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newRoom()
			ask := func() (*Waiter, permissions.Request) {
				return m.ask(t, m.fresh(func(r *permissions.Request) { r.Key = c.key }))
			}
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
	m.decide(t, r.ID, permissions.Allow(permissions.Once))
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
		answer permissions.Answer
		state  permissions.State
		leaves bool // the first call has received its answer and left
		want   error
	}{
		{"denied", permissions.Deny, permissions.Denied, false, nil},
		{"approved for the session", permissions.Allow(permissions.Session), permissions.Approved, false, nil},
		{"approved once, for the first", permissions.Allow(permissions.Once), permissions.Approved, false, ErrUsedElsewhere},
		{"approved once, and the first is gone", permissions.Allow(permissions.Once), permissions.Approved, true, nil}, // its use is refused
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
	m.store.afterOpen = func(bool) { m.decide(t, r.ID, permissions.Deny) }
	w, _ := m.ask(t, r)
	if state, err := rings(t, w); state != permissions.Denied || err != nil {
		t.Errorf("got %s, %v", state, err)
	}
}

func TestARequestSettledByAGrantWakesItsWaiterAtOnce(t *testing.T) {
	m := newRoom()
	feed := m.Subscribe(1)
	defer feed.Close()
	rule := permissions.Grant{ID: "g", Rule: "run ls", CreatedAt: m.wall(), Until: m.wall().Add(time.Hour)}
	m.MeasureGrants([]permissions.Grant{rule}, false)
	end := m.deadlines.grants[rule.ID].end
	w, r := m.ask(t, m.fresh(func(r *permissions.Request) {
		r.State, r.Scope, r.DecidedVia, r.DecidedAt = permissions.Approved, permissions.Once, permissions.ViaGrant, r.CreatedAt
		r.Grants = []permissions.ID{rule.ID}
	}))
	if moved := m.deadlines.grants[rule.ID].end; moved <= end {
		t.Errorf("the rule that was used ends at %v, as before at %v", moved, end)
	}
	if state, err := rings(t, w); state != permissions.Approved || err != nil {
		t.Errorf("got %s, %v", state, err)
	}
	if got := <-feed.C; got.ID != r.ID {
		t.Errorf("told of %s", got.ID)
	}
}

func TestNothingIsLeftOfWhatWasNotOpened(t *testing.T) {
	m := newRoom()
	_, first := m.ask(t, m.fresh(func(r *permissions.Request) { r.Key, r.Call = "k", "a" }))
	other := m.fresh(func(r *permissions.Request) { r.Key, r.Tool, r.Call = "k", "other", "c" })
	w, _, created, err := m.Register(t.Context(), permissions.Opening{Request: other}, false)
	var refusal *permissions.Refusal
	if !errors.As(err, &refusal) || refusal.Code != permissions.CodeKeyTaken || w != nil || created {
		t.Errorf("got %v, %v", w, err)
	}
	if m.Hold(first.ID, true); m.Waiting(first.ID) != 2 || m.RequestOf("a") != first.ID {
		t.Errorf("%d wait, with whoever is elsewhere, and the call waits for %q", m.Waiting(first.ID), m.RequestOf("a"))
	}
	if _, ok := m.Rejoin("c"); ok || m.Waiting(other.ID) != 0 || m.RequestOf("c") != "" {
		t.Error("somebody waits for what was not opened")
	}
}

// A call that cannot read the row it has joined does not wait for it.
func TestNothingIsLeftOfAJoinThatCannotRead(t *testing.T) {
	m := newRoom()
	first, r := m.ask(t, m.fresh(nil))
	defer first.Leave(t.Context())
	m.store.afterOpen = func(bool) { m.store.breakDown(permissions.ErrBroken) }
	w, row, created, err := m.Register(t.Context(), permissions.Opening{Request: m.fresh(nil)}, false)
	if !errors.Is(err, permissions.ErrBroken) || w != nil || created || row.ID != "" {
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
	if err != nil || row.State != permissions.Pending || m.Waiting(r.ID) != 2 {
		t.Fatalf("%v, %s", err, row.State)
	}
	m.decide(t, r.ID, permissions.Allow(permissions.Once))
	late, row, err := m.Attach(t.Context(), r.ID)
	if err != nil || row.State != permissions.Approved {
		t.Fatalf("%v, %s", err, row.State)
	}
	for _, reader := range []*Waiter{early, late} {
		if state, err := rings(t, reader); state != permissions.Approved || err != nil {
			t.Errorf("a reader got %s, %v", state, err)
		}
		reader.Leave(t.Context())
	}
	var refusal *permissions.Refusal
	if _, _, err := m.Attach(t.Context(), "01J"); !errors.As(err, &refusal) || refusal.Code != permissions.CodeUnknown {
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
	if m.store.row(r.ID).State != permissions.Pending {
		t.Error("a wait that ended settled something")
	}
	m.decide(t, r.ID, permissions.Deny)
	if got, err := w.Wait(ctx); err != nil || got.State != permissions.Denied { // a decision counts
		t.Errorf("got %s, %v", got.State, err)
	}
}

// A call that knows the id waits like the others, in its turn.
func TestJoin(t *testing.T) {
	m := newRoom()
	first, r := m.ask(t, m.fresh(nil))
	second, row, err := m.Join(t.Context(), r.ID, "c")
	if err != nil || row.State != permissions.Pending || m.Waiting(r.ID) != 2 {
		t.Fatalf("%v, %s", err, row.State)
	}
	second.Park(time.Minute)
	if back, ok := m.Rejoin("c"); !ok || back != second {
		t.Error("the place of the call is not its own")
	}
	m.decide(t, r.ID, permissions.Allow(permissions.Once))
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
	if state, err := rings(t, late); state != permissions.Approved || err != nil {
		t.Errorf("who comes late, to an approval that nobody waits for, got %s, %v", state, err)
	}
	if _, _, err := m.Join(t.Context(), "01J", "e"); err == nil || m.Waiting("01J") != 0 {
		t.Errorf("join nothing: %v", err)
	}
}

func TestStopAllWakesWhoeverWaits(t *testing.T) {
	m := newRoom()
	a, r := m.ask(t, m.fresh(nil))
	feed := m.Subscribe(4)
	defer feed.Close()
	n, err := m.StopAll(t.Context(), "fay", "cli")
	if err != nil || n != 1 || m.store.row(r.ID).State != permissions.Cancelled || m.store.row(r.ID).DecidedBy != "fay" {
		t.Fatalf("cancelled %d, %v", n, err)
	}
	if state, err := rings(t, a); state != permissions.Cancelled || err != nil {
		t.Errorf("rang with %s, %v", state, err)
	}
	if told := <-feed.C; told.State != permissions.Cancelled {
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
			_, _, err := m.Open(t.Context(), permissions.Opening{Request: m.fresh(nil)})
			return err
		}
		m.store.breakDown(permissions.ErrBroken)
		if _, err := m.StopAll(t.Context(), "fay", "cli"); !errors.Is(err, permissions.ErrBroken) {
			t.Fatal(err)
		}
		m.store.breakDown(nil)
		if err := open(); err == nil || err.Error() != permissions.Stopped("fay").Error() {
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

func TestAReminderWakesTheNotifier(t *testing.T) {
	m := newRoom()
	_, r := m.ask(t, m.fresh(func(r *permissions.Request) { r.Reminders = []time.Time{r.CreatedAt} }))
	for range 2 { // each is woken once at most
		m.NotifyNotices()
	}
	<-m.Noticed()
	if _, err := m.Resolve(t.Context(), r.ID, permissions.Remind{At: m.wall()}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-m.Noticed():
	default:
		t.Error("a reminder does not ring")
	}
	if _, err := m.Resolve(t.Context(), r.ID, permissions.Extend{Until: r.Deadline.Add(time.Hour), At: m.wall()}); err != nil {
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
	_, r := m.ask(t, m.fresh(func(r *permissions.Request) { r.Reminders = []time.Time{r.CreatedAt} }))
	feed := m.Subscribe(4)
	defer feed.Close()
	later := r.Deadline.Add(time.Hour)
	for _, e := range []permissions.Transition{
		permissions.Remind{At: m.wall()}, permissions.Extend{Until: later, At: m.wall()}, permissions.Extend{Until: r.CreatedAt, At: m.wall()},
	} {
		if _, err := m.Resolve(t.Context(), r.ID, e); err != nil {
			t.Fatal(err)
		}
	}
	m.decide(t, r.ID, permissions.Deny)
	if len(feed.C) != 2 {
		t.Fatalf("told %d times", len(feed.C))
	}
	if told := <-feed.C; told.State != permissions.Pending || !told.Deadline.Equal(later) {
		t.Errorf("first %s until %s", told.State, told.Deadline)
	}
	if told := <-feed.C; told.State != permissions.Denied {
		t.Errorf("then %s", told.State)
	}
}

// That an agent of ours rests is not recorded as an absence.
func TestOursAreNeverAbsent(t *testing.T) {
	m := newRoom()
	w, r := m.ask(t, m.fresh(func(r *permissions.Request) { r.Caller = permissions.AgentCaller("scribe") }))
	w.Leave(t.Context())
	if !m.store.row(r.ID).LeftAt.IsZero() {
		t.Error("it left")
	}
}

// A caller that does not wait is not woken, and those that do are.
func TestOpenWithoutWaiting(t *testing.T) {
	m := newRoom()
	feed := m.Subscribe(9)
	defer feed.Close()
	q := m.fresh(nil)
	r, created, err := m.Open(t.Context(), permissions.Opening{Request: q})
	if err != nil || !created || r.ID != q.ID || m.Waiting(q.ID) != 0 {
		t.Fatalf("created %v, %v, %d wait", created, err, m.Waiting(q.ID))
	}
	if told := <-feed.C; told.ID != q.ID {
		t.Errorf("told of %s", told.ID)
	}
	again, created, err := m.Open(t.Context(), permissions.Opening{Request: m.fresh(nil)})
	if err != nil || created || again.ID != q.ID {
		t.Errorf("an equal one: created %v, %s, %v", created, again.ID, err)
	}
	w, _ := m.ask(t, m.fresh(nil))
	m.decide(t, q.ID, permissions.Deny)
	if state, err := rings(t, w); state != permissions.Denied || err != nil {
		t.Errorf("%s, %v", state, err)
	}
	m.store.breakDown(permissions.ErrBroken)
	if _, _, err := m.Open(
		t.Context(), permissions.Opening{Request: m.fresh(func(r *permissions.Request) { r.Reason = "another" })},
	); err == nil {
		t.Error("a store that is down took it")
	}
}
