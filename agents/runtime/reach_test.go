package runtime_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/runtime"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// TestWhatAParentGaveEndsWithItsOwn: a child holds what it was given only while its parent holds it: permissions for once end
// with the parent's run, and those removed from the configuration end too.
func TestWhatAParentGaveEndsWithItsOwn(t *testing.T) {
	needs := func(string) []permissions.Tag { return []permissions.Tag{permissions.Network} }
	parent := func(held []permissions.Tag, before ...string) (runtime.Agent, chan struct{}) {
		hold := make(chan struct{})
		a := helper(func(turn int, p models.Prompt) models.Reply {
			child := strings.HasPrefix(p.System, "You are helper/x")
			switch {
			case child && turn == 0:
				return calls("wait", noteB)
			case child && turn == 1:
				return calls("look", noteA)
			case !child && turn == 0:
				return calls(append(before, "start_agent", `{"name":"x","prompt":"p","permissions":["@network"]}`)...)
			}
			return says("done")
		})
		a.Tools = []tools.Tool{noteTool{name: "look", needs: needs}, noteTool{name: "wait", hold: hold}}
		a.Place.Tags = held
		return a, hold
	}
	asks := func(t *testing.T, s *env, cards int) {
		t.Helper()
		if r := s.card(cards); r.Agent != "helper/x" || r.Tool != "look" || len(r.Missing()) != 1 {
			t.Errorf("it asks %+v", r)
		}
		if s.file("a") != "" {
			t.Errorf("it wrote %q", s.file("a"))
		}
	}
	t.Run("allowed once", func(t *testing.T) {
		a, hold := parent(nil, "request_permission", `{"permission":"@network","reason":"r"}`)
		s := newEnvWith(t, withAuto("wait"), a)
		s.write("go")
		s.answer(s.card(1), once)
		s.waitCall("helper/x")
		s.waitActivity("helper", permissions.Idle)
		close(hold)
		asks(t, s, 2)
	})
	t.Run("by the configuration", func(t *testing.T) {
		a, _ := parent([]permissions.Tag{permissions.Network})
		a.Tools[1] = noteTool{name: "wait"} // and it is gated
		s := newEnv(t, a)
		s.write("go")
		r := s.card(1)
		s.stop()
		s.agents[0].Place.Tags = nil
		s.open()
		s.answer(r, once)
		asks(t, s, 1) // on the phone of this start
	})
}

// TestAScheduledRunsPermissionEndsWithIt covers only that night's run, not another run in the same session.
func TestAScheduledRunsPermissionEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := nightly(true)
		a.Model = modelFunc(func(turn int, p models.Prompt) models.Reply {
			if said := newest(p); strings.Contains(said, "once more") || turn == 0 {
				return calls("look", noteA)
			}
			return says("the report: " + newest(p))
		})
		h := helper(func(turn int, p models.Prompt) models.Reply {
			if strings.HasSuffix(newest(p), "again, please") {
				return calls("message_agent", `{"agent":"nightly","text":"once more"}`)
			}
			return says("told: " + newest(p))
		})
		noon()
		s := newEnv(t, h, a)
		<-time.After(9 * time.Hour)
		s.answer(s.card(1), once)
		<-time.After(6*time.Hour + time.Minute)
		s.waitMessage("[agent nightly] I am done.")
		s.write("again, please")
		if r := s.card(2); r.Agent != "nightly" || r.Tool != "look" || len(r.Missing()) != 1 || s.file("a") != "one\n" {
			t.Errorf("it asks %+v, and wrote %q", r, s.file("a"))
		}
	})
}

// TestWhatIsForbiddenAfterTheYes: an approval before a restart does not run a tool that is forbidden after it.
func TestWhatIsForbiddenAfterTheYes(t *testing.T) {
	for name, call := range map[string][2]string{
		"gated":   {"write_file", noteA},
		"our own": {"message_agent", `{"agent":"x","text":"t"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, helper(firstCalls(call[0], call[1])))
			stuck := make(chan struct{}, 100)
			s.rows.mu.Lock()
			s.rows.fails = func(c agents.Commit) error {
				if len(c.Executions) > 0 && c.Executions[0].Ended.IsZero() { // the call begins
					stuck <- struct{}{}
					return permissions.Broken("the disk is full")
				}
				return nil
			}
			s.rows.mu.Unlock()
			s.write("go")
			if call[0] == "write_file" {
				s.answer(s.card(1), once)
			}
			<-stuck
			s.stop()
			s.change = func(c *engine.Settings) { c.Policy.Forbidden = []string{call[0]} }
			s.open()
			s.waitMessage("told: Tool " + call[0] + " is forbidden here.")
			if s.file("a") != "" {
				t.Errorf("it wrote %q", s.file("a"))
			}
		})
	}
}

// TestASessionScopeForAChild covers the child's session, whose card it was on.
func TestASessionScopeForAChild(t *testing.T) {
	needs := func(string) []permissions.Tag { return []permissions.Tag{permissions.Network} }
	hold := make(chan struct{})
	a := helper(func(turn int, p models.Prompt) models.Reply {
		child := strings.HasPrefix(p.System, "You are helper/x")
		switch {
		case child && turn == 0:
			return calls("wait", noteB)
		case child && turn == 1:
			return calls("look", noteA)
		case !child && turn == 0:
			return calls("start_agent", `{"name":"x","prompt":"p"}`,
				"request_permission", `{"permission":"@network","reason":"for x","agentId":"x"}`)
		}
		return says("told: " + newest(p))
	})
	a.Tools = []tools.Tool{noteTool{name: "look", needs: needs}, noteTool{name: "wait", hold: hold}}
	s := newEnvWith(t, withAuto("look", "wait"), a)
	s.write("go")
	r := s.card(1)
	if want := s.current("helper/x").ID; r.Session != string(want) {
		t.Errorf("it is asked for session %s, and the child's is %s", r.Session, want)
	}
	s.answer(r, always)
	s.waitMessage("Permission granted for network access.")
	close(hold)
	s.waitMessage("[agent helper/x] I am done.")
	if n := len(s.phone.Copies()); n != 1 || s.file("a") != "one\n" {
		t.Errorf("%d cards, and it wrote %q", n, s.file("a"))
	}
}

// TestTheQuestionIsTheSameAfterAKill: although other tags may be held by then, the submitted request is found again, with what
// was shown.
func TestTheQuestionIsTheSameAfterAKill(t *testing.T) {
	needs := func(string) []permissions.Tag { return []permissions.Tag{permissions.Network} }
	for name, tool := range map[string]string{"a gated call": noteA, "a permission": `{"permission":"@network","reason":"r"}`} {
		t.Run(name, func(t *testing.T) {
			a := helper(firstCalls("write_file", tool))
			if name == "a permission" {
				a = helper(firstCalls("request_permission", tool))
			}
			a.Tools = []tools.Tool{noteTool{name: "write_file", needs: needs}}
			s := newEnv(t, a)
			stuck := make(chan struct{}, 100)
			s.fail(func(c agents.Commit) error {
				if c.Session.Request != "" { // it was submitted
					stuck <- struct{}{}
					return permissions.Broken("the daemon is killed before this")
				}
				return nil
			})
			s.write("go")
			r := s.card(1)
			<-stuck
			s.stop()
			s.agents[0].Place.Tags = []permissions.Tag{permissions.Network}
			s.open()
			if got := s.waitAsking("helper").Request; got != r.ID {
				t.Errorf("it waits for %s, and people were shown %s", got, r.ID)
			}
			s.answer(r, once)
			s.waitMessage(map[string]string{noteA: "told: wrote a"}[tool])
			s.waitActivity("helper", permissions.Idle)
		})
	}
}

// TestAnotherWorkspaceMeanwhile: a call shown for one folder does not run in another.
func TestAnotherWorkspaceMeanwhile(t *testing.T) {
	s := newEnv(t, helper(firstCalls("write_file", noteA)))
	s.write("go")
	r := s.card(1)
	s.waitAsking("helper")
	s.stop()
	s.agents[0].Place = s.agents[0].Place.In(t.TempDir())
	s.open()
	s.answer(r, once)
	s.waitMessage("told: This was not run: the workspace is another folder by now.")
}

// TestWhatASessionWasGrantedIsForItsWorkspace: session grants survive a restart, but not a change of the folder.
func TestWhatASessionWasGrantedIsForItsWorkspace(t *testing.T) {
	s := newEnv(t, helper(func(_ int, p models.Prompt) models.Reply {
		if strings.HasSuffix(newest(p), "write it") {
			return calls("write_file", noteA)
		}
		return says("told: " + newest(p))
	}))
	s.write("write it")
	s.answer(s.card(1), permissions.Allow(permissions.Session))
	s.waitMessage("told: wrote a")
	s.waitActivity("helper", permissions.Idle)
	s.restart()
	s.write("again, write it")
	s.waitMessage("told: wrote a")
	s.waitActivity("helper", permissions.Idle)
	if n := len(s.phone.Copies()); n != 0 {
		t.Fatalf("in the same folder, %d cards", n)
	}
	session := s.current("helper").ID
	s.stop()
	s.agents[0].Place = s.agents[0].Place.In(t.TempDir())
	s.open()
	s.write("once more, write it")
	r := s.card(1)
	if other := s.agents[0].Place; r.Cwd != other.Workspace || r.Folder != other.Folder() || r.Folder == "" {
		t.Errorf("it asks for %q, %q", r.Cwd, r.Folder)
	}
	if now := s.current("helper").ID; now != session {
		t.Errorf("session %s has become %s", session, now)
	}
	s.answer(r, once)
	s.waitMessage("told: wrote a")
}
