package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// The answer that a second hook would be told is told no more once whoever gave it is locked or gone, once it was taken back or
// everything was stopped, and once its session is over.
func TestASecondAnswerDoesNotOutliveWhatItRestsOn(t *testing.T) {
	ends := func(session, agent string) func(*env) error {
		return func(s *env) error {
			_, err := s.Recall(s.t.Context(), self, permissions.Recall{Session: session, Agent: agent, Via: permissions.ViaSessionEnd})
			return err
		}
	}
	lock := func(since time.Duration) func(*env) error {
		return func(s *env) error {
			at := time.Time{}
			if since > 0 {
				at = s.now().Add(-since)
			}
			_, err := s.Lock(s.t.Context(), samAt, "fay", at)
			return err
		}
	}
	for name, c := range map[string]struct {
		then func(*env) error
		told bool
	}{
		"nothing":                {func(*env) error { return nil }, true},
		"asked by another agent": {func(*env) error { return nil }, false},
		"another session's end":  {ends("s2", "claude-code"), true},
		"another agent's end":    {ends("s1", "codex"), true},
		"its session's end":      {ends("s1", "claude-code"), false},
		"a lock":                 {lock(0), false},
		"a lock since":           {lock(time.Hour), false},
		"a reload without the person": {func(s *env) error {
			next := usual()
			next.People, next.Routes = []connectors.Person{sam}, []engine.Route{{Ask: []string{"sam"}}}
			s.Configure(next)
			return nil
		}, false},
		"a stop that is over": {func(s *env) error {
			if _, err := s.StopAll(s.t.Context(), operator); err != nil {
				return err
			}
			return s.Resume(s.t.Context(), operator)
		}, false},
		"its grant taken back": {func(s *env) error {
			grants, err := s.Grants(s.t.Context(), operator, "", 99)
			if err != nil || len(grants) != 1 {
				return fmt.Errorf("%d grants, %w", len(grants), err)
			}
			_, err = s.Revoke(s.t.Context(), operator, grants[0].ID)
			return err
		}, false},
		"its approval, which was used, taken back": {func(s *env) error {
			all, err := s.rows.Audit(s.t.Context(), "", 0, 100)
			asked := slices.IndexFunc(all, func(e permissions.Entry) bool { return e.Request != "" })
			if err != nil || asked < 0 {
				return fmt.Errorf("%d entries, %w", len(all), err)
			}
			if _, err = s.Void(s.t.Context(), operator, string(all[asked].Request)); err == nil {
				return errors.New("what was used could be taken back")
			}
			return nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := connectortest.NewMemory(fayAt("memory"), nil)
			st := newEnv(t, usual(), m)
			q := again(`{"command":"ls"}`)
			q.Agent, q.Claimed, q.HookStage = "claude-code", true, permissions.HookBefore
			a := permissions.Allow(permissions.Once)
			if name == "its grant taken back" {
				a = permissions.Allow(permissions.SessionTool)
			}
			done := st.ask(t.Context(), q)
			st.decide(m, 1, a)
			st.get(done)
			if err := c.then(st); err != nil {
				t.Fatal(err)
			}
			q.HookStage = permissions.HookAgain
			if name == "asked by another agent" {
				q.Agent = "codex"
			}
			if r, err := st.Ask(over(t), self, q); (r.State == permissions.Approved) != c.told {
				t.Errorf("%s, %v", r.State, err)
			}
		})
	}
}

// momentary opens an engine with a person who allows a request once in the moment after a call with the returned context has
// read it, once that is armed.
func momentary(t *testing.T) (st *env, ctx context.Context, armed *atomic.Bool) {
	t.Helper()
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st = &env{t: t, dir: t.TempDir(), settings: usual(), people: []connectors.Connector{m}}
	type watched struct{}
	armed = new(atomic.Bool)
	st.through = func(rows engine.Store) engine.Store {
		return failing{Store: rows, read: func(ctx context.Context, id permissions.ID) {
			if ctx.Value(watched{}) != nil && armed.CompareAndSwap(true, false) {
				d := connectors.Decision{Request: id, Answer: permissions.Allow(permissions.Once), From: fayAt("memory")}
				if _, err := st.OnPermission(t.Context(), d); err != nil {
					t.Error(err)
				}
			}
		}}
	}
	st.open()
	t.Cleanup(func() { st.stop() })
	return st, context.WithValue(t.Context(), watched{}, true), armed
}

// An approval that comes in the moment in which the first hook of a call stops waiting is the second hook's: nobody is asked
// twice. One that comes in the moment in which the call is said to have run allows no second run.
func TestAnAnswerInTheMomentOfAChange(t *testing.T) {
	for name, runs := range map[string]bool{"the first hook leaves": false, "the call has run": true} {
		t.Run(name, func(t *testing.T) {
			st, watched, armed := momentary(t)
			q := again(`{"command":"ls"}`)
			q.Agent, q.Claimed, q.HookStage = "claude-code", true, permissions.HookBefore
			armed.Store(!runs)
			begun, err := st.Begin(watched, self, q)
			if err != nil {
				t.Fatal(err)
			}
			armed.Store(runs)
			if runs {
				recall := permissions.Recall{
					Session: q.Session, Agent: q.Agent, Kind: q.Kind, Tool: q.Tool, Input: q.Input, Via: permissions.ViaKeyboard,
				}
				if n, err := st.Recall(watched, self, recall); n != 0 || err != nil {
					t.Errorf("%d were withdrawn, %v", n, err)
				}
			}
			q.HookStage = permissions.HookAgain
			if runs {
				if r, _ := st.Ask(over(t), self, q); r.State == permissions.Approved {
					t.Errorf("allowed once more by %s", r.ID)
				}
			} else if r := st.get(st.ask(t.Context(), q)); r.ID != begun.Request.ID || r.State != permissions.Approved {
				t.Errorf("%s of %s, not of %s", r.State, r.ID, begun.Request.ID)
			}
		})
	}
}

// An approval that arrived while the call ran already, allowed at the keyboard, allows no second run of it. That of another
// call stays.
func TestWhatWasAllowedForACallThatHasRunIsOver(t *testing.T) {
	for name, stage := range map[string]string{"the first hook": permissions.HookBefore, "the second hook": permissions.HookAgain} {
		t.Run(name, func(t *testing.T) {
			m := connectortest.NewMemory(fayAt("memory"), nil)
			st := newEnv(t, usual(), m)
			ran, other := again(`{"command":"ls"}`), again(`{"command":"pwd"}`)
			ids := []permissions.ID{}
			for i, q := range []*permissions.Request{&ran, &other} {
				q.Agent, q.Claimed, q.HookStage = "claude-code", true, permissions.HookBefore
				begun, err := st.Begin(t.Context(), self, *q)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, begun.Request.ID)
				st.decide(m, i+1, permissions.Allow(permissions.Once))
				q.HookStage = stage
			}
			recall := permissions.Recall{
				Session: ran.Session, Agent: ran.Agent, Kind: ran.Kind, Tool: ran.Tool, Input: ran.Input, Via: permissions.ViaKeyboard,
			}
			if n, err := st.Recall(t.Context(), self, recall); n != 0 || err != nil {
				t.Errorf("%d were withdrawn, %v", n, err)
			}
			if r, _ := st.Ask(over(t), self, ran); r.ID == ids[0] || r.State == permissions.Approved {
				t.Errorf("asked once more: %s of %s", r.State, r.ID)
			}
			if r := st.get(st.ask(t.Context(), other)); r.ID != ids[1] || r.State != permissions.Approved {
				t.Errorf("the other call: %s of %s", r.State, r.ID)
			}
		})
	}
}

// An answer that a second hook was given, that was dropped, or that a newer question about the call has superseded does not
// come back when its own request is told to the first hook once more.
func TestAnAnswerThatIsToldAgainIsNotKeptAgain(t *testing.T) {
	for name, then := range map[string]func(s *env, m *connectortest.Memory, q permissions.Request){
		"given a second time": func(s *env, _ *connectortest.Memory, q permissions.Request) {
			q.HookStage = permissions.HookAgain
			if r := s.get(s.ask(s.t.Context(), q)); r.State != permissions.Approved {
				s.t.Fatalf("the second hook: %s", r.State)
			}
		},
		"its session's end": func(s *env, _ *connectortest.Memory, q permissions.Request) {
			m := permissions.Recall{Session: q.Session, Agent: q.Agent, Via: permissions.ViaSessionEnd}
			if _, err := s.Recall(s.t.Context(), self, m); err != nil {
				s.t.Fatal(err)
			}
		},
		"the call has run": func(s *env, _ *connectortest.Memory, q permissions.Request) {
			m := permissions.Recall{
				Session: q.Session, Agent: q.Agent, Kind: q.Kind, Tool: q.Tool, Input: q.Input, Via: permissions.ViaKeyboard,
			}
			if _, err := s.Recall(s.t.Context(), self, m); err != nil {
				s.t.Fatal(err)
			}
			q.HookStage, q.Call = permissions.HookAgain, ""
			if r, _ := s.Ask(over(s.t), self, q); r.State == permissions.Approved {
				s.t.Error("the answer about a call that has run answers the next one")
			}
		},
		"asked once more": func(s *env, _ *connectortest.Memory, q permissions.Request) {
			q.Call = "call-2"
			if r, err := s.Ask(over(s.t), self, q); r.State != permissions.Pending {
				s.t.Fatalf("asked once more: %s, %v", r.State, err)
			}
		},
		"asked once more and denied": func(s *env, m *connectortest.Memory, q permissions.Request) {
			q.Call = "call-2"
			done := s.ask(s.t.Context(), q)
			s.decide(m, 2, permissions.Deny)
			s.get(done)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := connectortest.NewMemory(fayAt("memory"), nil)
			s := newEnv(t, usual(), m)
			q := again(`{"command":"ls"}`)
			q.Agent, q.Claimed, q.HookStage, q.Call = "claude-code", true, permissions.HookBefore, "call-1"
			done := s.ask(t.Context(), q)
			s.decide(m, 1, allow())
			first := s.get(done)
			then(s, m, q)
			second := q
			second.HookStage, second.Call = permissions.HookAgain, ""
			if name == "asked once more" {
				if r, _ := s.Ask(over(t), self, second); r.State == permissions.Approved {
					t.Error("an older yes answers a newer question")
				}
			}
			q.ID = first.ID
			if r := s.get(s.ask(t.Context(), q)); r.State != permissions.Approved || r.ID != first.ID {
				t.Fatalf("told once more: %s", r.State)
			}
			if r, _ := s.Ask(over(t), self, second); r.State == permissions.Approved {
				t.Error("the answer came back")
			}
		})
	}
}

// TestARefusedCallThatNobodyWasAskedAbout: F2/a limit that kept people from being asked does not count as having asked them.
func TestARefusedCallThatNobodyWasAskedAbout(t *testing.T) {
	settings := usual()
	settings.Limits.PromptsPerMinute, settings.Approvals.AskRefused = 1, true
	s := newEnv(t, settings, connectortest.NewMemory(fayAt("telegram"), nil))
	q := again(`{"command":"ls"}`)
	q.HookStage, q.Reason = permissions.HookDenied, "refused"
	s.ask(t.Context(), network("x"))
	s.pending(1)
	if got := <-s.ask(t.Context(), q); permissions.CodeOf(got.err) != permissions.CodeLimit {
		t.Fatalf("it is not limited: %+v", got)
	}
	s.advance(time.Minute)
	s.ask(t.Context(), q)
	s.pending(2)
	if got := <-s.ask(t.Context(), q); permissions.CodeOf(got.err) != permissions.CodeInvalid {
		t.Errorf("it is asked about twice: %+v", got)
	}
}

// What an agent's own judgement has refused is asked about once, if the settings say so; a yes counts once for the same
// call, and a no leaves it refused.
func TestWhatTheAgentHasRefusedIsAskedAboutOnce(t *testing.T) {
	settings := usual()
	phone := connectortest.NewMemory(fayAt("telegram"), nil)
	s := newEnv(t, settings, phone)
	refusedAt := func(input string) permissions.Request {
		q := again(input)
		q.HookStage, q.Harmless, q.Reason = permissions.HookDenied, true, "refused"
		return q
	}
	before := func(input string) permissions.Request {
		q := again(input)
		q.HookStage = permissions.HookBefore
		return q
	}
	ls, rm := `{"command":"ls"}`, `{"command":"rm"}`
	if got := <-s.ask(t.Context(), refusedAt(ls)); permissions.CodeOf(got.err) != permissions.CodeInvalid {
		t.Fatalf("it is asked about unless the settings say so: %+v", got)
	}
	settings.Approvals.AskRefused = true
	s.Configure(settings)
	asked := func(q permissions.Request, a permissions.Answer) {
		t.Helper()
		waits := s.ask(t.Context(), q)
		id := s.pending(1)[0].ID
		if _, err := s.OnPermission(t.Context(), connectors.Decision{From: fayAt("telegram"), Request: id, Answer: a}); err != nil {
			t.Fatal(err)
		}
		s.get(waits)
		s.pending(0)
	}
	asked(refusedAt(ls), permissions.Allow(permissions.Once))
	other := before(ls)
	other.Session = "s2"
	asked(other, permissions.Deny) // the yes was another session's
	if r := s.get(s.ask(t.Context(), before(ls))); r.State != permissions.Approved || r.DecidedBy != "fay" {
		t.Errorf("tried again it is %s, by %q", r.State, r.DecidedBy)
	}
	asked(before(ls), permissions.Deny) // once
	if got := <-s.ask(t.Context(), refusedAt(ls)); permissions.CodeOf(got.err) != permissions.CodeInvalid {
		t.Errorf("refused again it is asked about again: %+v", got)
	}
	asked(refusedAt(rm), permissions.Deny)
	asked(before(rm), permissions.Allow(permissions.Once)) // a no to it decides nothing else
}
