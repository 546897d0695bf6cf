package runtime_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/runtime"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// TestAStoreThatFails: a failed commit is retried, and no tool runs twice.
func TestAStoreThatFails(t *testing.T) {
	s := newEnv(t, helper(writer))
	var failed atomic.Int64
	s.rows.mu.Lock()
	s.rows.fails = func(agents.Commit) error { // every second commit
		if failed.Add(1)%2 == 1 {
			return permissions.Broken("the disk is full")
		}
		return nil
	}
	s.rows.mu.Unlock()
	s.write("go")
	s.answer(s.card(1), once)
	s.answer(s.card(2), once)
	s.waitMessage("told: wrote b")
	if s.file("a") != "one\n" || s.file("b") != "two\n" || failed.Load() < 10 {
		t.Errorf("it wrote %q and %q in %d tries", s.file("a"), s.file("b"), failed.Load())
	}
}

// TestTheRowWasChangedMeanwhile: the loser of a conflict reads again, and a tool that has run does not run again.
func TestTheRowWasChangedMeanwhile(t *testing.T) {
	s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
		if turn == 0 {
			return calls("look", noteA)
		}
		return says("told: " + newest(p))
	}))
	var once atomic.Bool
	s.rows.mu.Lock()
	s.rows.fails = func(c agents.Commit) error {
		if len(c.Executions) > 0 && !c.Executions[0].Ended.IsZero() && once.CompareAndSwap(false, true) {
			return agents.ErrStale
		}
		return nil
	}
	s.rows.mu.Unlock()
	s.write("go")
	s.waitMessage("told: This was interrupted")
	if s.file("a") != "one\n" {
		t.Errorf("it wrote %q", s.file("a"))
	}
}

func TestTheKillSwitch(t *testing.T) {
	hold := make(chan struct{})
	a, b := helper(firstCalls("look", noteA)), helper(writer)
	a.Tools, b.Name = []tools.Tool{noteTool{name: "look", hold: hold}}, "other"
	s := newEnv(t, a, b)
	s.write("go")
	s.waitCall("helper")
	if _, err := s.Use(t.Context(), fayHere, "other"); err != nil {
		t.Fatal(err)
	}
	s.write("go")
	r := s.card(1)
	if _, err := s.StopAll(t.Context(), fayHere); err != nil {
		t.Fatal(err)
	}
	s.waitActivity("helper", permissions.Interrupted)
	s.waitActivity("other", permissions.Interrupted)
	if now, err := s.rows.Read(t.Context(), r.ID); err != nil || now.State != permissions.Cancelled || s.file("a") != "" {
		t.Errorf("the request is %s, %v, and %q was written", now.State, err, s.file("a"))
	}
}

// TestAnAgentThatIsGone: its session ends, and its request can no longer be answered.
func TestAnAgentThatIsGone(t *testing.T) {
	s := newEnv(t, helper(writer))
	s.write("go")
	r, id := s.card(1), s.current("helper").ID
	s.stop()
	s.agents = []runtime.Agent{{Name: "heir", Person: "fay", Via: "phone", Model: hearer, Place: s.agents[0].Place}}
	s.open()
	s.waitEnd(id)
	if now, err := s.rows.Read(t.Context(), r.ID); err != nil || now.State != permissions.Cancelled {
		t.Errorf("what it asked is %s, %v", now.State, err)
	}
	s.write("hello")
	s.waitMessage("told: hello")
}

// waitEnd waits until a session has ended.
func (s *env) waitEnd(id permissions.ID) {
	s.t.Helper()
	for {
		s.rows.mu.Lock()
		changed := s.rows.changed
		s.rows.mu.Unlock()
		found, err := s.rows.AgentSession(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		if !found.EndedAt.IsZero() {
			return
		}
		<-changed
	}
}

// TestForbiddenToolsAreNotOfferedToModels: neither their schemas nor their names, and they do not run.
func TestForbiddenToolsAreNotOfferedToModels(t *testing.T) {
	var offered []string
	s := newEnvWith(t, func(s *engine.Settings) { s.Policy.Forbidden = append(s.Policy.Forbidden, "pause") }, helper(
		func(turn int, p models.Prompt) models.Reply {
			if turn > 0 {
				return says("told: " + newest(p))
			}
			for _, tool := range p.Tools {
				offered = append(offered, tool.Name)
			}
			reply := calls("no_such_tool", `{}`)
			reply.Calls = append(reply.Calls, models.Call{ID: "c2", Tool: "delete_it", Input: []byte(noteA)})
			return reply
		}))
	s.write("go")
	s.waitMessage("told: There is no tool no_such_tool here. There are ask_user, look, message_agent, other, request_permission, " +
		"start_agent, write_file.\nTool delete_it is forbidden here.")
	if got := strings.Join(offered, " "); got != "request_permission ask_user start_agent message_agent write_file look other" {
		t.Errorf("the model is offered %s", got)
	}
}

// TestWhatIsForbiddenMeanwhile is denied at the reload, or before it runs if nobody was asked.
func TestWhatIsForbiddenMeanwhile(t *testing.T) {
	s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
		if turn == 0 {
			return calls("write_file", noteA, "look", noteB)
		}
		return says("told: " + newest(p))
	}))
	s.write("go")
	s.card(1)
	stricter := settings()
	stricter.Policy.Forbidden = []string{"write_file", "look"}
	stricter.Bindings = map[string]permissions.Binding{"agent:helper": {Agent: "helper", Person: "fay", Via: "phone"}}
	s.Configure(stricter)
	s.waitMessage("told: Tool write_file is forbidden here: tools.forbidden.\nTool look is forbidden here.")
	if s.file("a")+s.file("b") != "" {
		t.Errorf("it wrote %q and %q", s.file("a"), s.file("b"))
	}
}

// TestWhatIsGatedMeanwhile: a call that needed no approval when judged, and needs it now, does not run.
func TestWhatIsGatedMeanwhile(t *testing.T) {
	s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
		if turn == 0 {
			return calls("write_file", noteA, "look", noteB)
		}
		return says("told: " + newest(p))
	}))
	s.write("go")
	r := s.card(1)
	stricter := settings()
	stricter.Policy.Auto = nil
	stricter.Bindings = map[string]permissions.Binding{"agent:helper": {Agent: "helper", Person: "fay", Via: "phone"}}
	s.Configure(stricter)
	s.answer(r, once)
	s.waitMessage("told: wrote a\nThis was not run: it is not allowed any more. Call it again to ask.")
	if s.file("b") != "" {
		t.Errorf("it wrote %q", s.file("b"))
	}
}

func TestNobodyCanBeReached(t *testing.T) {
	s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
		switch turn {
		case 0:
			return calls("write_file", noteA)
		case 1:
			return calls("ask_user", `{"question":"q","options":["a","b"]}`)
		case 2:
			return calls("pause", `{"message":"look"}`)
		case 3:
			return calls("request_permission", `{"permission":"@network","reason":"r"}`)
		}
		return says("told: " + transcriptOf(p))
	}))
	s.phone.FailReach(&connectors.UnreachableError{Reason: "fay has no phone"})
	s.write("go")
	for _, want := range []string{
		"Tool approval could not be delivered: fay has no phone", "Question could not be delivered: fay has no phone",
		"Nobody to ask; continuing.", "Permission request could not be delivered: fay has no phone",
	} {
		s.waitMessage(want)
	}
}

// transcriptOf is everything that a model was told.
func transcriptOf(p models.Prompt) string {
	var all []string
	for _, m := range p.Messages {
		all = append(all, m.Text)
		for _, r := range m.Results {
			all = append(all, r.Text)
		}
	}
	return strings.Join(all, "\n")
}

func TestOrdersWithoutARun(t *testing.T) {
	s := newEnv(t, helper(hearer))
	for _, o := range []permissions.Order{permissions.OrderStop, permissions.OrderQuit, permissions.OrderNew, permissions.OrderStop} {
		s.order(o)
	}
	if got := s.own.Residents()[0].Activity(); got != permissions.Idle {
		t.Errorf("then it is %s", got)
	}
	id := s.current("helper").ID
	s.order(permissions.OrderQuit)
	s.waitEnd(id)
	s.write("hello")
	s.waitMessage("told: hello")
}

// TestTooManySteps: an endless run is stopped.
func TestTooManySteps(t *testing.T) {
	s := newEnvWith(t, func(s *engine.Settings) { s.Policy.Forbidden = nil }, helper(func(int, models.Prompt) models.Reply {
		return calls("nothing", `{}`)
	}))
	s.write("go")
	s.waitMessage("I stop here: this takes more steps than I may make at once.")
}

// TestAServerOfTools: its tools may change, and a missing one does not run.
func TestAServerOfTools(t *testing.T) {
	box := &toolServer{}
	a := helper(func(turn int, p models.Prompt) models.Reply {
		if strings.Contains(newest(p), "again") || turn == 0 {
			return calls("their__pen", noteA)
		}
		return says("told: " + newest(p))
	})
	a.Servers = []runtime.Server{box}
	s := newEnv(t, a)
	box.set(noteTool{name: "their__pen"})
	s.write("go")
	r := s.card(1)
	box.set()
	s.answer(r, once)
	s.waitMessage("told: This was not run: the tool their__pen is not there just now.")
	s.write("again")
	s.waitMessage("told: There is no tool their__pen here.")
	box.set(noteTool{name: "their__pen"})
	s.write("again")
	s.answer(s.card(2), once)
	s.waitMessage("told: wrote a")
}

// toolServer is a server of tools.
type toolServer struct{ now atomic.Pointer[[]tools.Tool] }

func (b *toolServer) set(all ...tools.Tool) { b.now.Store(&all) }

func (b *toolServer) Tools(context.Context) ([]tools.Tool, error) {
	if all := *b.now.Load(); len(all) > 0 {
		return all, nil
	}
	return nil, errors.New("the server is away")
}
