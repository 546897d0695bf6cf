package runtime_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/runtime"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/store/storetest"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// path is the file of the store.
func (s *env) path() string { return filepath.Join(s.dir, "store.db") }

// meddle changes the store directly, as somebody does who can write the file and has no audit key.
func (s *env) meddle(texts ...string) {
	s.t.Helper()
	if err := storetest.Change(s.t.Context(), s.path(), texts...); err != nil {
		s.t.Fatal(err)
	}
}

// keep copies the store as it is; putBack replaces tables with theirs of then.
func (s *env) keep() (kept string) {
	s.t.Helper()
	kept = filepath.Join(s.t.TempDir(), "kept.db")
	s.meddle("VACUUM INTO '" + kept + "'")
	return kept
}

func (s *env) putBack(kept string, tables ...string) {
	s.t.Helper()
	if err := storetest.PutBack(s.t.Context(), s.path(), kept, tables...); err != nil {
		s.t.Fatal(err)
	}
}

// changedRow begins what the person hears.
const changedRow = "what I had noted of my work was changed behind daycared's back"

func network(string) []permissions.Tag { return []permissions.Tag{permissions.Network} }

// reader writes a, which is asked about, and then looks, which needs the network.
func reader() runtime.Agent {
	a := helper(func(turn int, p models.Prompt) models.Reply {
		switch turn {
		case 0:
			return calls("write_file", noteA)
		case 1:
			return calls("look", noteB)
		}
		return says("done: " + newest(p))
	})
	a.Tools = []tools.Tool{noteTool{name: "write_file"}, noteTool{name: "look", needs: network}}
	return a
}

// TestASessionThatSomebodyChangedRunsNothing: B5, H1/whoever writes the file gives a session nothing that nobody allowed: it ends,
// its person is told, and audit verify names it until then.
func TestASessionThatSomebodyChangedRunsNothing(t *testing.T) {
	for name, change := range map[string]string{
		"tags that nobody allowed":         `UPDATE sessions SET step = json_set(step, '$.tags', json('["@network"]'))`,
		"tags that the card does not show": `UPDATE sessions SET step = json_set(step, '$.calls[0].plan.Needs', json('["@network"]'))`,
		"permissions of its start":         `UPDATE sessions SET step = json_set(step, '$.given', json('["@network"]'))`,
		"another step":                     `UPDATE sessions SET step = json_set(step, '$.step', 7)`,
		"no seal":                          `UPDATE sessions SET mac = ''`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, reader())
			s.write("go")
			r := s.card(1)
			s.waitAsking("helper")
			s.meddle(change)
			if _, err := s.rows.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "session ") {
				t.Errorf("verify says %v", err)
			}
			// Whoever reads the session before the answer does ends it, and the answer is too late.
			d := connectors.Decision{Request: r.ID, Answer: once, From: connectors.Identity{Via: "phone", UID: fay.UID}}
			if _, err := s.OnPermission(t.Context(), d); err != nil {
				if now, _ := s.rows.Read(t.Context(), r.ID); now.State != permissions.Cancelled {
					t.Fatalf("answer %s: %v", once, err)
				}
			}
			s.waitMessage(changedRow)
			s.waitOver(r.Session)
			if a, b := s.file("a"), s.file("b"); a+b != "" || len(s.phone.Copies()) != 1 {
				t.Errorf("it wrote %q and %q, after %d cards", a, b, len(s.phone.Copies()))
			}
			if _, err := s.rows.Verify(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// waitOver waits until a session has ended.
func (s *env) waitOver(id string) {
	s.t.Helper()
	for deadline := time.After(patience); ; {
		s.rows.mu.Lock()
		changed := s.rows.changed
		s.rows.mu.Unlock()
		if is, err := s.rows.AgentSession(s.t.Context(), permissions.ID(id)); err == nil && !is.EndedAt.IsZero() {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			s.t.Fatalf("session %s never ends", id)
		}
	}
}

// TestAnotherCallInAnApprovedStepIsNotRun: B5/a call is compared with what was approved again before it runs, although the seals of
// its session and of the request are valid.
func TestAnotherCallInAnApprovedStepIsNotRun(t *testing.T) {
	for name, change := range map[string]func(*runtime.Call){
		"B5/another input": func(c *runtime.Call) {
			c.Input = []byte(strings.ReplaceAll(string(c.Input), `"b"`, `"c"`))
			c.Plan.AffectedPath = strings.TrimSuffix(c.Plan.AffectedPath, "b") + "c"
		},
		"B5/another tool": func(c *runtime.Call) { c.Tool = "look" },
		"B5/more tags":    func(c *runtime.Call) { c.Plan.Needs = []permissions.Tag{permissions.Network} },
	} {
		t.Run(name, func(t *testing.T) {
			hold := make(chan struct{})
			a := helper(firstCalls("wait", noteA, "write_file", noteB))
			a.Tools = []tools.Tool{noteTool{name: "wait", hold: hold}, noteTool{name: "write_file"}, noteTool{name: "look"}}
			s := newEnv(t, a)
			s.write("go")
			r := s.card(1)
			s.answerCall(r, 1, once, "")
			s.answerCall(r, 2, once, "")
			s.waitCall("helper")
			s.stop()
			s.commit(func(x *runtime.Run) { change(&x.Calls[1]) })
			close(hold)
			s.open()
			s.waitMessage("This was not run: what was approved is another call.")
			if got := s.file("b") + s.file("c"); got != "" {
				t.Errorf("it wrote %q", got)
			}
		})
	}
}

// commit changes the run of helper's session in the closed store, with a valid seal.
func (s *env) commit(change func(*runtime.Run)) {
	s.t.Helper()
	rows, err := wiretest.OpenStore(s.t.Context(), store.Options{Path: s.path(), Now: s.now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	x, _, err := rows.CurrentSession(s.t.Context(), "helper")
	var run runtime.Run
	if err == nil {
		err = json.Unmarshal(x.Step, &run)
	}
	change(&run)
	x.Version++
	if err == nil {
		x.Step, err = agents.Encode(run)
	}
	if err == nil {
		err = rows.Commit(s.t.Context(), agents.Commit{Session: x})
	}
	if err := errors.Join(err, rows.Close()); err != nil {
		s.t.Fatal(err)
	}
}

// TestAGrantThatComesBeforeTheQuestionRunsTheCall: a step that was to be asked about is allowed by a grant of meanwhile, and what
// nobody has to be shown is stored in short.
func TestAGrantThatComesBeforeTheQuestionRunsTheCall(t *testing.T) {
	s := newEnv(t, helper(firstCalls("write_file", `{"path":"a","text":"`+strings.Repeat("long ", 100)+`"}`)))
	judged, granted := make(chan permissions.AgentSession), make(chan struct{})
	s.fail(func(c agents.Commit) error {
		if strings.Contains(string(c.Session.Step), `"WAIT_ACK"`) && c.Session.Request == "" {
			judged <- c.Session
			<-granted
		}
		return nil
	})
	s.write("go")
	x := <-judged
	_, err := s.Approvals().Submit(t.Context(), x.Caller(), permissions.Request{
		Kind: permissions.KindTool, Agent: x.Agent, Session: string(x.ID), Tool: "write_file", Input: []byte(noteB), Key: "before",
		Cwd: s.agents[0].Place.Workspace, Folder: s.agents[0].Place.Folder(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.answer(s.card(1), permissions.Allow(permissions.SessionTool))
	close(granted)
	s.waitMessage("told: wrote a")
	if n := len(s.phone.Copies()); n != 1 {
		t.Errorf("%d cards", n)
	}
}

// TestASessionThatWasPutBackRunsNothingAgain: A7/an older row has a valid seal, but the approval that it waits for, or has, is used.
func TestASessionThatWasPutBackRunsNothingAgain(t *testing.T) {
	t.Run("A7/before the answer", func(t *testing.T) {
		for _, restarted := range []bool{false, true} {
			s := newEnv(t, reader())
			s.write("go")
			r := s.card(1)
			s.waitAsking("helper")
			kept := s.keep()
			s.answer(r, once)
			s.card(2)
			if restarted {
				s.stop()
				s.putBack(kept, "sessions")
				s.open()
			} else {
				s.putBack(kept, "sessions")
				s.write("hello")
			}
			s.waitMessage(changedRow)
			s.waitOver(r.Session)
			if s.file("a") != "one\n" {
				t.Errorf("restarted: %t; it wrote %q", restarted, s.file("a"))
			}
			s.stop()
			if why := "session stopped.* err=.*session " + r.Session; !regexp.MustCompile(why).MatchString(s.log.String()) {
				t.Errorf("restarted: %t; the log does not say why:\n%s", restarted, s.log.String())
			}
		}
	})
	t.Run("A7/while the call runs", func(t *testing.T) {
		a, hold := reader(), make(chan struct{})
		a.Tools[0] = noteTool{name: "write_file", hold: hold}
		s := newEnv(t, a)
		s.write("go")
		r := s.card(1)
		s.waitAsking("helper")
		kept := s.keep()
		s.answer(r, once)
		s.waitCall("helper")
		s.putBack(kept, "sessions")
		close(hold)
		s.waitMessage(changedRow)
		s.waitOver(r.Session)
		if s.file("a") != "one\n" {
			t.Errorf("it wrote %q", s.file("a"))
		}
	})
}

// TestASessionWhoseRequestSomebodyChangedEnds: H1/a request whose seal does not hold opens nothing, so the session that waits for it ends
// and obeys orders.
func TestASessionWhoseRequestSomebodyChangedEnds(t *testing.T) {
	const unseal = `UPDATE requests SET mac = ''`
	for name, change := range map[string]func(s *env, r permissions.Request){
		"H1/found at the start": func(s *env, _ permissions.Request) {
			s.stop()
			s.meddle(unseal)
			s.open()
		},
		"H1/found by an order": func(s *env, _ permissions.Request) {
			s.meddle(unseal)
			s.order(permissions.OrderStop)
		},
		"A7/put back with its session": func(s *env, r permissions.Request) {
			kept := s.keep()
			s.answer(r, permissions.Deny)
			s.card(2)
			s.stop()
			s.putBack(kept, "sessions", "requests", "request_votes")
			s.open()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, reader())
			s.write("go")
			r := s.card(1)
			s.waitAsking("helper")
			change(s, r)
			s.waitMessage(changedRow)
			s.waitOver(r.Session)
			if s.file("a") != "" {
				t.Errorf("it wrote %q", s.file("a"))
			}
		})
	}
	t.Run("H1/a question", func(t *testing.T) {
		s := newEnv(t, helper(firstCalls("ask_user", `{"question":"which?","options":["x","y"]}`)))
		s.write("go")
		r := s.card(1)
		s.waitAsking("helper")
		s.stop()
		s.meddle(unseal)
		s.open()
		s.waitMessage(changedRow)
		s.waitOver(r.Session)
	})
}

// TestACallThatHadBegunIsNotBegunAgain: A7/the daemon ended while a call ran, and somebody puts back the session's row of before it.
func TestACallThatHadBegunIsNotBegunAgain(t *testing.T) {
	for name, c := range map[string]struct {
		agent func(hold chan struct{}) runtime.Agent
		asks  bool
	}{
		"A7/a call that a person allowed": {func(hold chan struct{}) runtime.Agent {
			a := reader()
			a.Tools[0] = noteTool{name: "write_file", hold: hold}
			return a
		}, true},
		"A7/a call that the policy allows": {func(hold chan struct{}) runtime.Agent {
			a := helper(firstCalls("look", noteA))
			a.Tools = []tools.Tool{noteTool{name: "look", hold: hold}}
			return a
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			hold, reached, copied := make(chan struct{}), make(chan struct{}), make(chan struct{})
			s := newEnv(t, c.agent(hold))
			s.rows.mu.Lock()
			s.rows.fails = func(c agents.Commit) error {
				if len(c.Executions) > 0 { // the call begins
					close(reached)
					<-copied
				}
				return nil
			}
			s.rows.mu.Unlock()
			s.write("go")
			if c.asks {
				s.answer(s.card(1), once)
			}
			<-reached
			kept := s.keep()
			close(copied)
			s.waitCall("helper")
			id := s.current("helper").ID
			s.stop()
			s.putBack(kept, "sessions", "tool_calls", "artifacts")
			close(hold)
			s.open()
			s.waitMessage(changedRow)
			s.waitOver(string(id))
			if s.file("a") != "" {
				t.Errorf("it was run again, and wrote %q", s.file("a"))
			}
		})
	}
}

// TestAPermissionIsNotHandedTwice: A7/what somebody posts to a session gives it nothing.
func TestAPermissionIsNotHandedTwice(t *testing.T) {
	t.Run("A7/its own of an earlier run", func(t *testing.T) {
		a := helper(func(turn int, p models.Prompt) models.Reply {
			switch turn {
			case 0:
				return calls("request_permission", `{"permission":"@network","reason":"r"}`)
			case 1:
				return says("first: " + newest(p))
			case 2:
				return calls("write_file", noteA)
			case 3:
				return calls("look", noteB)
			}
			return says("done: " + newest(p))
		})
		a.Tools = reader().Tools
		s := newEnv(t, a)
		s.write("go")
		r := s.card(1)
		s.answer(r, once)
		s.waitMessage("first: ")
		s.waitActivity("helper", permissions.Idle)
		s.write("and now")
		next := s.card(2)
		s.waitAsking("helper")
		s.meddle(`INSERT INTO posts (session, key, sender, silent, chain, at, taken_at, text) VALUES ('` +
			r.Session + `', 'gift/` + string(r.ID) + `', '', 1, 0, 1, 0, 'You hold it.')`)
		s.answer(next, once)
		if r := s.card(3); r.Tool != "look" || len(r.Missing()) != 1 {
			t.Errorf("it asks %+v", r)
		}
		if s.file("b") != "" {
			t.Errorf("it wrote %q", s.file("b"))
		}
	})
	t.Run("A7/a child's of an earlier run", func(t *testing.T) {
		hold := make(chan struct{})
		a := helper(func(turn int, p models.Prompt) models.Reply {
			child := strings.HasPrefix(p.System, "You are helper/x")
			switch {
			case child && turn == 0:
				return calls("wait", noteB)
			case child && (turn == 1 || turn == 3):
				return calls("look", noteA)
			case child:
				return says("the child says: " + newest(p))
			case turn == 0:
				return calls("start_agent", `{"name":"x","prompt":"p"}`,
					"request_permission", `{"permission":"@network","reason":"for x","agentId":"x"}`)
			case strings.Contains(newest(p), "once more"):
				return calls("message_agent", `{"agent":"x","text":"again"}`)
			}
			return says("told: " + newest(p))
		})
		a.Tools = []tools.Tool{noteTool{name: "look", needs: network}, noteTool{name: "wait", hold: hold}}
		s := newEnvWith(t, withAuto("look", "wait"), a)
		s.write("go")
		s.answer(s.card(1), once)
		s.waitMessage("Permission granted for network access.")
		close(hold)
		s.waitMessage("the child says: wrote a")
		s.waitActivity("helper/x", permissions.Idle)
		s.meddle(`UPDATE posts SET taken_at = 0, text = 'You hold it.' WHERE key LIKE 'gift/%'`)
		s.write("once more")
		if r := s.card(2); r.Tool != "look" || len(r.Missing()) != 1 {
			t.Errorf("it asks %+v", r)
		}
		if s.file("a") != "one\n" {
			t.Errorf("it wrote %q", s.file("a"))
		}
	})
}

// TestATimetableThatSomebodyChanged gives no run what was allowed for another.
func TestATimetableThatSomebodyChanged(t *testing.T) {
	ran := func(t *testing.T) (s *env, r permissions.Request, kept string) {
		t.Helper()
		noon()
		s = newEnv(t, helper(hearer), nightly(true))
		<-time.After(9 * time.Hour)
		r = s.card(1)
		<-time.After(time.Hour)
		s.answer(r, once)
		synctest.Wait()
		kept = s.keep()
		<-time.After(5 * time.Hour)
		s.waitMessage("the report: wrote a")
		return s, r, kept
	}
	t.Run("A7/the row of the run before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, _, kept := ran(t)
			s.stop()
			s.putBack(kept, "timetables", "sessions")
			s.open()
			<-time.After(time.Minute)
			if r := s.card(1); r.Tool != "look" || s.file("a") != "one\n" {
				t.Errorf("it asks %+v, and wrote %q", r, s.file("a"))
			}
		})
	})
	t.Run("H1/the request for a run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			noon()
			s := newEnv(t, helper(hearer), nightly(true))
			<-time.After(9 * time.Hour)
			r := s.card(1)
			<-time.After(time.Hour)
			s.answer(r, once)
			synctest.Wait()
			s.meddle(`UPDATE requests SET mac = ''`)
			<-time.After(5 * time.Hour)
			if r := s.card(2); r.Tool != "look" || s.file("a") != "" {
				t.Errorf("it asks %+v, and wrote %q", r, s.file("a"))
			}
		})
	})
	t.Run("H1/a run that names another's request", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, r, _ := ran(t)
			s.stop()
			s.meddle(`UPDATE timetables SET asked = '`+string(r.ID)+`', next_at = 1`, `UPDATE sessions SET ended_at = 1`)
			s.open()
			<-time.After(time.Minute)
			if s.file("a") != "one\n" || len(s.phone.Copies()) != 0 {
				t.Errorf("it wrote %q, after %d cards", s.file("a"), len(s.phone.Copies()))
			}
			<-time.After(23 * time.Hour)
			if r := s.card(1); r.Tool != "" || len(r.Missing()) != 1 {
				t.Errorf("the next evening it asks %+v", r)
			}
		})
	})
}
