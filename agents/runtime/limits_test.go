package runtime_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// TestTooManyRequests: the model is told of a refused request, and its row says so.
func TestTooManyRequests(t *testing.T) {
	s := newEnvWith(t, func(s *engine.Settings) { s.Limits.PromptsPerMinute = 1 }, helper(func(turn int, p models.Prompt) models.Reply {
		switch turn {
		case 0:
			return calls("write_file", noteA)
		case 1:
			return calls("write_file", noteB)
		case 2:
			return calls("pause", `{"message":"look"}`)
		}
		return says("told: " + transcriptOf(p))
	}))
	s.write("go")
	s.answer(s.card(1), permissions.Deny)
	s.waitMessage("Too many requests by limits.")
	id := s.current("helper").ID
	for step := 2; step <= 3; step++ {
		rows, err := s.rows.Executions(t.Context(), id, step)
		if err != nil || len(rows) != 1 || rows[0].Success || !strings.Contains(rows[0].Error, "Too many requests") {
			t.Errorf("the row of step %d is %+v, %v", step, rows, err)
		}
	}
}

// Tool output stored per agent and hour is bounded, and the excess counted. What people and models said is always stored.
func TestWhatCallsLeaveInTheStoreIsBounded(t *testing.T) {
	const each = 20 << 20
	content, _ := json.Marshal(map[string]any{"text": strings.Repeat("x", each), "bytes": each, "missing": 0})
	a := helper(func(turn int, _ models.Prompt) models.Reply {
		if turn < 5 {
			return calls("look", noteA)
		}
		return says("done")
	})
	a.Tools = []tools.Tool{noteTool{name: "look", leaves: []agents.Artifact{{Type: agents.ArtifactStdout, Content: content}}}}
	s := newEnv(t, a)
	s.write("go")
	s.waitMessage("done")
	kept := s.rows.artifacts(agents.ArtifactStdout)
	if len(kept) != 5 {
		t.Fatalf("%d artifacts", len(kept))
	}
	for i, a := range kept {
		missing := 0.0
		if i >= 3 {
			missing = each
		}
		if text, _ := a["text"].(string); a["bytes"] != float64(each) || a["missing"] != missing || len(text) != each-int(missing) {
			t.Errorf("artifact %d: %d bytes of text, %v, %v missing", i, len(text), a["bytes"], a["missing"])
		}
	}
	if n := len(s.rows.artifacts(agents.ArtifactPrompt)); n != 6 {
		t.Errorf("%d prompts are kept", n)
	}
}

func TestAPermissionThatEndsTheRun(t *testing.T) {
	ask := helper(firstCalls("request_permission", `{"permission":"@network","reason":"r","timeout_minutes":2}`))
	ask.Terminates = true
	s := newEnv(t, ask)
	s.write("go")
	s.answer(s.card(1), permissions.Deny)
	s.waitMessage("I stop here: you denied what I needed.")
	s.write("again")
	s.waitActivity("helper", permissions.Idle)

	s = newEnv(t, ask)
	s.write("go")
	s.card(1)
	s.advance(3 * time.Minute)
	s.waitMessage("I stop here: nobody answered in time what I needed.")
}

func TestStartingAgentsHasBounds(t *testing.T) {
	s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
		if strings.HasPrefix(p.System, "You are helper/") {
			if strings.Count(p.System[:60], "/x") < 5 && turn == 0 {
				return calls("start_agent", `{"name":"x","prompt":"p"}`)
			}
			return says("deep: " + transcriptOf(p))
		}
		if turn == 0 {
			all := []string{}
			for range 12 {
				all = append(all, "start_agent", `{"name":"n`+strings.Repeat("i", len(all)/2)+`","prompt":"p"}`)
			}
			return calls(append(all, "start_agent", `{"name":"N/x","prompt":"p"}`, "start_agent", `{"name":"y","prompt":""}`,
				"message_agent", `{"agent":"","text":"t"}`)...)
		}
		return says("told: " + transcriptOf(p))
	}))
	s.write("go")
	s.waitMessage("you have started 10 agents; that is the most at once")
	s.waitMessage("name must match ^[a-z0-9-]{1,32}$")
	s.waitMessage("prompt is empty")
	s.waitMessage("agent is empty")
	s.waitMessage("an agent that was started 3 times over may not start another")
}

func TestTheSameChildTwice(t *testing.T) {
	s := newEnv(t, helper(withChild(`{"name":"x","prompt":"p"}`, firstCalls("write_file", noteA))))
	s.write("go")
	s.card(1)
	s.waitMessage("told: Started helper/x")
	again := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
		if strings.HasPrefix(p.System, "You are helper/") {
			return calls("pause", `{"message":"look at this"}`)
		}
		if turn == 0 {
			return calls("start_agent", `{"name":"x","prompt":"p"}`, "start_agent", `{"name":"x","prompt":"p"}`)
		}
		return says("told: " + newest(p))
	}))
	again.write("go")
	again.waitMessage("there is an agent x already; write to it with message_agent")
}

// TestTheForegroundIsToldOfEveryKind of request of a background agent.
func TestTheForegroundIsToldOfEveryKind(t *testing.T) {
	s := newEnv(t, helper(withChild(`{"name":"x","prompt":"p"}`, func(turn int, p models.Prompt) models.Reply {
		switch turn {
		case 0:
			return calls("pause", `{"message":"look at it"}`)
		case 1:
			return calls("ask_user", `{"question":"which?","options":["a","b"]}`)
		}
		return says("done")
	})))
	s.write("go")
	s.answer(s.card(1), permissions.Continue)
	s.answer(s.card(2), permissions.Choose(2))
	s.waitMessage("[agent helper/x] I am done.")
	notes := s.silentMessage("helper")
	for _, want := range []string{
		`for a look: "look at it"`, `for a choice: "which?"`, "is settled (fay, phone): Resumed.", "is settled (fay, phone): b",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("it is not told %q, but %s", want, notes)
		}
	}
}

// TestAScheduleWhoseNeedsNobodyCanBeAsked runs all the same, and asks when it needs something.
func TestAScheduleWhoseNeedsNobodyCanBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon()
		a := nightly(true)
		a.Schedule.AskAt = func(run time.Time) time.Time { return run } // at its start
		s := newEnv(t, helper(hearer), a)
		s.phone.FailReach(&connectors.UnreachableError{Reason: "fay has no phone"})
		<-time.After(15*time.Hour + time.Minute)
		s.phone.FailReach(nil)
		s.waitMessage("the report: ")
		s.stop()
	})
}

// TestAScheduleThatAsksWhenItBegins waits for the answer before it starts.
func TestAScheduleThatAsksWhenItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon()
		a := nightly(true)
		a.Schedule.AskAt = func(run time.Time) time.Time { return run }
		s := newEnv(t, helper(hearer), a)
		<-time.After(15*time.Hour + 5*time.Minute)
		r := s.card(1)
		if r.CreatedAt.Format("15:04") != "03:00" || r.Timeout() != 15*time.Minute {
			t.Errorf("it asks %+v", r)
		}
		s.answer(r, once)
		s.waitMessage("the report: wrote a")
	})
}

// Calls under tools.auto are counted per minute, and a call beyond the rate is asked about.
func TestCallsBeyondTheRateOfAnAutoToolAreAsked(t *testing.T) {
	auto := func(s *engine.Settings) {
		s.Limits.AutoPerMinute, s.Policy.Auto, s.Policy.Gated = map[string]int{"*": 2}, []string{"write_file"}, nil
	}
	s := newEnvWith(t, auto, helper(func(turn int, p models.Prompt) models.Reply {
		if turn < 3 {
			return calls("write_file", noteA)
		}
		return says("told: " + transcriptOf(p))
	}))
	s.write("go")
	q := s.card(1)
	s.answer(q, permissions.Allow(permissions.Once))
	s.waitMessage("told: ")
	id := s.current("helper").ID
	for step := 1; step <= 3; step++ {
		rows, err := s.rows.Executions(t.Context(), id, step)
		if err != nil || len(rows) != 1 || !rows[0].Success {
			t.Errorf("the row of step %d is %+v, %v", step, rows, err)
		}
	}
}
