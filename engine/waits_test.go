package engine_test

import (
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// left returns a request whose call has left.
func (s *env) left(q permissions.Request) permissions.ID {
	s.t.Helper()
	standing, err := s.Begin(s.t.Context(), self, q)
	if err != nil {
		s.t.Fatal(err)
	}
	return standing.Request.ID
}

func (s *env) state(id permissions.ID) permissions.State {
	s.t.Helper()
	r, err := s.rows.Read(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.State
}

// The request of a cancelled call is withdrawn after its time, also after a restart, unless the same is asked again or
// somebody waits for it.
func TestACancelledCallIsWithdrawnAfterARestart(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		s := newEnv(t, usual(), connectortest.NewMemory(fayAt("telegram"), nil))
		gone, back := call("", "write_file", `{"path":"/a"}`), call("", "write_file", `{"path":"/b"}`)
		waited := call("", "write_file", `{"path":"/c"}`)
		shown := s.left(call("", "write_file", `{"path":"/d"}`))
		ids := map[string]permissions.ID{"gone": s.left(gone), "back": s.left(back), "waited": s.left(waited), "shown": shown}
		if err := s.Hold(t.Context(), self, shown, true); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if _, err := s.WithdrawLater(t.Context(), self, id, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.WithdrawLater(t.Context(), permissions.CallerUID(7), ids["gone"], 0); permissions.CodeOf(err) != permissions.CodeUnknown {
			t.Errorf("another's: %v", err)
		}
		s.left(back)
		if restarts {
			s.stop()
			s.open()
		}
		waits := s.ask(t.Context(), waited)
		s.waiting(ids["waited"], 1)
		if s.state(ids["gone"]) != permissions.Pending {
			t.Errorf("restarted %v: it is withdrawn at once", restarts)
		}
		s.advance(time.Minute + time.Second)
		wiretest.Eventually(t, "it is withdrawn", func() bool { return s.state(ids["gone"]) == permissions.Cancelled })
		s.advance(time.Minute)
		for _, name := range []string{"back", "waited", "shown"} {
			if state := s.state(ids[name]); state != permissions.Pending {
				t.Errorf("restarted %v: what is %s is %s", restarts, name, state)
			}
		}
		if kept, err := s.rows.Waits(t.Context()); err != nil || len(kept) != 1 || kept[0].Kind != permissions.WaitDialog {
			t.Errorf("restarted %v: still kept are %+v, %v", restarts, kept, err)
		}
		if _, err := s.Withdraw(t.Context(), self, ids["waited"]); err != nil {
			t.Error(err)
		}
		<-waits
	}
}

// A question that a hook asks without waiting is withdrawn if no other hook waits for it soon: its agent was interrupted
// between the two. One that is waited for, or that no hook asked, stays.
func TestAHooksQuestionThatNobodyWaitsForIsWithdrawn(t *testing.T) {
	s := newEnv(t, usual(), connectortest.NewMemory(fayAt("telegram"), nil))
	alone, followed := hook("Bash", `{"command":"make a"}`), hook("Bash", `{"command":"make b"}`)
	alone.HookStage, followed.HookStage = permissions.HookBefore, permissions.HookBefore
	ids := map[string]permissions.ID{"alone": s.left(alone), "followed": s.left(followed),
		"a call": s.left(call("", "write_file", `{"path":"/a"}`))}
	followed.HookStage = permissions.HookAgain
	waits := s.ask(t.Context(), followed)
	s.waiting(ids["followed"], 1)
	s.advance(9 * time.Second)
	if got := s.state(ids["alone"]); got != permissions.Pending {
		t.Errorf("after 9 seconds the question is %s", got)
	}
	s.advance(2 * time.Second)
	wiretest.Eventually(t, "the question is withdrawn", func() bool { return s.state(ids["alone"]) == permissions.Cancelled })
	s.advance(time.Minute)
	for _, name := range []string{"followed", "a call"} {
		if got := s.state(ids[name]); got != permissions.Pending {
			t.Errorf("the question of %s is %s", name, got)
		}
	}
	if _, err := s.Withdraw(t.Context(), self, ids["followed"]); err != nil {
		t.Error(err)
	}
	<-waits
}

// A hook's question that was stored right before the daemon was killed is withdrawn as well after the restart: the hook that asked it
// has ended without it.
func TestAHooksQuestionIsWithdrawnAfterAKillInItsMoment(t *testing.T) {
	f := &flakyStore{}
	f.keepWait.Store(1) // the kill comes before
	s := newEnvOver(t, f, usual(), connectortest.NewMemory(fayAt("telegram"), nil))
	alone, followed := hook("Bash", `{"command":"make a"}`), hook("Bash", `{"command":"make b"}`)
	alone.HookStage, followed.HookStage = permissions.HookBefore, permissions.HookBefore
	cut, err := s.Begin(t.Context(), self, alone)
	if err == nil {
		t.Fatal("the hook was told of its question")
	}
	left := s.left(followed)
	s.stop()
	s.open()
	followed.HookStage = permissions.HookAgain
	waits := s.ask(t.Context(), followed)
	s.waiting(left, 1)
	s.advance(time.Minute)
	wiretest.Eventually(t, "the question is withdrawn", func() bool { return s.state(cut.Request.ID) == permissions.Cancelled })
	if got := s.state(left); got != permissions.Pending {
		t.Errorf("the question that another hook waits for is %s", got)
	}
	if _, err := s.Withdraw(t.Context(), self, left); err != nil {
		t.Error(err)
	}
	<-waits
}

// The place of a client that shows a dialog is kept across a restart, until it returns or its request is settled.
func TestTheDialogOfAClientIsWaitedForAfterARestart(t *testing.T) {
	s := newEnv(t, usual(), connectortest.NewMemory(fayAt("telegram"), nil))
	id, settled := s.left(call("", "write_file", `{"path":"/a"}`)), s.left(call("", "write_file", `{"path":"/b"}`))
	waiting := func(id permissions.ID) int {
		st, err := s.Find(t.Context(), self, id)
		if err != nil {
			t.Fatal(err)
		}
		return st.Waiting
	}
	for _, one := range []permissions.ID{id, settled} {
		if err := s.Hold(t.Context(), self, one, true); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Withdraw(t.Context(), self, settled); err != nil {
		t.Fatal(err)
	}
	s.stop()
	s.open()
	if a, b := waiting(id), waiting(settled); a != 1 || b != 0 {
		t.Errorf("%d and %d wait", a, b)
	}
	if err := s.Hold(t.Context(), self, id, false); err != nil {
		t.Fatal(err)
	}
	if n := waiting(id); n != 0 {
		t.Errorf("%d wait once it is back", n)
	}
	s.stop()
	s.open()
	if n := waiting(id); n != 0 {
		t.Errorf("%d wait after another restart", n)
	}
	if err := s.Hold(t.Context(), permissions.CallerUID(7), id, true); permissions.CodeOf(err) != permissions.CodeUnknown {
		t.Errorf("another's: %v", err)
	}
}
