package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

func TestStopWhileAPromptIsOpen(t *testing.T) {
	s := newEnv(t, helper(writer))
	s.write("go")
	r := s.card(1)
	s.order(permissions.OrderStop)
	s.waitActivity("helper", permissions.Interrupted)
	if now, err := s.rows.Read(t.Context(), r.ID); err != nil || now.State != permissions.Cancelled || now.DecidedBy != "fay" {
		t.Errorf("its request is %s by %q, %v", now.State, now.DecidedBy, err)
	}
	s.write("go on") // the transcript is complete: each call has a result
	s.answer(s.card(2), once)
}

func TestStopWhileAToolRuns(t *testing.T) {
	a := helper(writer)
	a.Tools = []tools.Tool{noteTool{name: "write_file", hold: make(chan struct{})}}
	s := newEnv(t, a)
	s.write("go")
	s.answer(s.card(1), once)
	s.waitActivity("helper", permissions.Running)
	s.order(permissions.OrderStop)
	s.waitActivity("helper", permissions.Interrupted)
	if s.file("a") != "" {
		t.Errorf("it wrote %q", s.file("a"))
	}
}

func TestNewWhileAPromptIsOpen(t *testing.T) {
	s := newEnv(t, helper(writer))
	s.write("go")
	s.card(1)
	was := s.current("helper")
	s.order(permissions.OrderNew)
	if now := s.current("helper"); now.ID == was.ID || now.Status != permissions.Idle {
		t.Errorf("then the session is %+v", now)
	}
}

func TestAMessageWhileItWaits(t *testing.T) {
	s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
		if turn == 0 {
			return calls("write_file", noteA)
		}
		return says("told: " + newest(p))
	}))
	s.write("go")
	r := s.card(1)
	s.write("by the way")
	s.answer(r, once)
	s.waitMessage("told: wrote a\nby the way") // it reads the message after the answer, when the result is in the transcript
	if s.file("a") != "one\n" {
		t.Errorf("it wrote %q", s.file("a"))
	}
}

func TestRestartWhileItWaits(t *testing.T) {
	s := newEnv(t, helper(writer))
	s.write("go")
	r := s.card(1)
	s.restart()
	if got := s.current("helper"); got.Status != permissions.AwaitingUser {
		t.Errorf("it is %s after the restart", got.Status)
	}
	s.answer(r, once)
	s.card(1) // of b, on the new phone
	if s.file("a") != "one\n" {
		t.Errorf("it wrote %q", s.file("a"))
	}
}

// TestAToolThatWasInterrupted: its outcome is unknown, so it does not run again, and the model is told.
func TestAToolThatWasInterrupted(t *testing.T) {
	hold := make(chan struct{})
	a := helper(func(turn int, p models.Prompt) models.Reply {
		if turn == 0 {
			return calls("write_file", noteA)
		}
		return says("told: " + newest(p))
	})
	a.Tools = []tools.Tool{noteTool{name: "write_file", hold: hold}}
	s := newEnv(t, a)
	s.write("go")
	s.answer(s.card(1), once)
	s.waitActivity("helper", permissions.Running)
	s.waitCall("helper")
	s.restart()
	close(hold)
	s.waitMessage("told: This was interrupted: the daemon ended while it ran. Its outcome is unknown")
	if s.file("a") != "" {
		t.Errorf("it wrote %q", s.file("a"))
	}
	rows, err := s.rows.Executions(t.Context(), s.current("helper").ID, 1)
	if err != nil || len(rows) != 1 || rows[0].Success || rows[0].Ended.IsZero() {
		t.Errorf("its row is %+v, %v", rows, err)
	}
}

func TestAModelThatFails(t *testing.T) {
	a := helper(writer)
	a.Model = failing{}
	s := newEnv(t, a)
	s.write("go")
	s.waitMessage("I cannot think just now: the provider refuses the request: no such model")
	s.waitActivity("helper", permissions.Idle)
	if d := s.rows.artifacts(agents.ArtifactDiagnostics); len(d) != 1 || d[0]["model"] != "failing" ||
		d[0]["error"] != "the provider refuses the request: no such model" {
		t.Errorf("the diagnostics are %v", d)
	}
}

// TestPromptsAreKept: each stored prompt has only the messages that are new to the model.
func TestPromptsAreKept(t *testing.T) {
	s := newEnvWith(t, func(s *engine.Settings) { s.Policy = permissions.Policy{Auto: []string{"write_file"}} }, helper(writer))
	s.write("write both")
	s.waitMessage("told: wrote b")
	all := s.rows.artifacts(agents.ArtifactPrompt)
	if len(all) != 3 {
		t.Fatalf("there are %d prompts", len(all))
	}
	for i, words := range []string{"write both", "wrote a", "wrote b"} {
		told, _ := all[i]["new"].([]any)
		if text := fmt.Sprint(told); len(told) != 1 || !strings.Contains(text, words) || all[i]["messages"] != float64(2*i+1) ||
			!strings.HasPrefix(fmt.Sprint(all[i]["system"]), "You are helper") || !strings.Contains(fmt.Sprint(all[i]["tools"]), "write_file") {
			t.Errorf("prompt %d is %v", i+1, all[i])
		}
	}
}

// failing is a model whose provider refuses requests.
type failing struct{ modelFunc }

func (failing) Name() string { return "failing" }

func (failing) Reply(context.Context, models.Prompt, func(string)) (models.Reply, error) {
	return models.Reply{}, &models.Error{Kind: models.ErrRefused, Text: "no such model", After: time.Second}
}

// TestTheKillSwitchIsTold also to the person whose agent was busy.
func TestTheKillSwitchIsTold(t *testing.T) {
	a := helper(firstCalls("look", noteA))
	a.Tools = []tools.Tool{noteTool{name: "look", hold: make(chan struct{})}}
	s := newEnv(t, a)
	s.write("go")
	s.waitCall("helper")
	if _, err := s.StopAll(t.Context(), fayHere); err != nil {
		t.Fatal(err)
	}
	s.waitMessage("I stop here: everything was stopped")
}

// TestAStopOfAnAgentEndsWhatItRuns, with what those run that it started, and tells its person; another agent goes on.
func TestAStopOfAnAgentEndsWhatItRuns(t *testing.T) {
	never, later := make(chan struct{}), make(chan struct{})
	a, b := helper(nil), helper(firstCalls("wait", noteB))
	a.Model = modelFunc(func(turn int, p models.Prompt) models.Reply {
		if turn == 0 && !strings.HasPrefix(p.System, "You are helper/") {
			return calls("start_agent", `{"name":"x","prompt":"p"}`, "look", noteA)
		}
		return calls("look", noteA)
	})
	b.Name = "other"
	a.Tools, b.Tools = []tools.Tool{noteTool{name: "look", hold: never}}, []tools.Tool{noteTool{name: "wait", hold: later}}
	s := newEnvWith(t, withAuto("look", "wait"), a, b)
	s.write("go")
	if _, err := s.Use(t.Context(), fayHere, "other"); err != nil {
		t.Fatal(err)
	}
	s.write("go")
	for _, name := range []string{"helper", "helper/x", "other"} {
		s.waitCall(name)
	}
	if _, _, err := s.StopAgent(t.Context(), connectors.Identity{Via: "cli", Operator: true}, "helper"); err != nil {
		t.Fatal(err)
	}
	s.waitActivity("helper", permissions.Interrupted)
	s.waitActivity("helper/x", permissions.Interrupted)
	s.waitMessage("I stop here: everything was stopped, or I alone.")
	close(later)
	s.waitActivity("other", permissions.Idle)
	if s.file("a") != "" || s.file("b") == "" {
		t.Errorf("a has %q, b %q", s.file("a"), s.file("b"))
	}
}

// TestTheKillSwitchEndsRuns: waiting runs end, and no model is called until the switch is off.
func TestTheKillSwitchEndsRuns(t *testing.T) {
	s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
		if turn == 0 {
			return calls("write_file", noteA)
		}
		return says("told: " + newest(p))
	}))
	s.write("go")
	s.card(1)
	if _, err := s.StopAll(t.Context(), fayHere); err != nil {
		t.Fatal(err)
	}
	s.waitActivity("helper", permissions.Interrupted)
	s.waitMessage("I stop here: everything was stopped")
	s.write("are you there?")
	s.waitSession("helper", func(x permissions.AgentSession) bool {
		return strings.Contains(string(x.Step), `"n":2`) && x.Status == permissions.Interrupted
	})
	if got := s.current("helper"); got.Tokens != 11 {
		t.Errorf("its model was asked: %d tokens", got.Tokens)
	}
	if err := s.Resume(t.Context(), fayHere); err != nil {
		t.Fatal(err)
	}
	s.write("and now?")
	s.waitMessage("\nare you there?\n\nand now?") // after the call's result, whichever end came first
}

// TestStopWhileTheModelThinks: a stop does not wait for the model.
func TestStopWhileTheModelThinks(t *testing.T) {
	a := helper(nil)
	a.Model = hanging{asked: make(chan struct{}, 1)}
	s := newEnv(t, a)
	for _, o := range []permissions.Order{permissions.OrderStop, permissions.OrderNew, permissions.OrderQuit} {
		s.write("go")
		<-a.Model.(hanging).asked
		s.order(o)
	}
	ends := s.rows.records(permissions.RunFinished)
	if len(ends) != 3 || ends[2].Detail["reason"] != "stopped" {
		t.Errorf("the runs ended as %+v", ends)
	}
}

// hanging is a model that never answers.
type hanging struct {
	modelFunc
	asked chan struct{}
}

func (h hanging) Reply(ctx context.Context, _ models.Prompt, _ func(string)) (models.Reply, error) {
	h.asked <- struct{}{}
	<-ctx.Done()
	return models.Reply{}, ctx.Err()
}
