package runtime_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/runtime"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// firstCalls makes these calls first and then repeats its results.
func firstCalls(steps ...string) modelFunc {
	return func(turn int, p models.Prompt) models.Reply {
		if turn == 0 {
			return calls(steps...)
		}
		return says("told: " + newest(p))
	}
}

func TestPause(t *testing.T) {
	tests := []struct {
		name, input string
		status      permissions.Activity
		answer      permissions.Answer
		hears       string
		ends        permissions.Activity
	}{
		{"continue", `{"message":"look"}`, permissions.Paused, permissions.Continue, "told: Resumed.", permissions.Idle},
		{"interrupt", `{"message":"look"}`, permissions.Paused, permissions.Interrupt, "I stop here, as you said.", permissions.Interrupted},
		{"confirm, yes", `{"message":"go?","mode":"confirm"}`, permissions.Paused, once, "told: Approved.", permissions.Idle},
		{"confirm, no", `{"message":"go?","mode":"confirm"}`, permissions.Paused, permissions.Deny, "told: Denied.", permissions.Idle},
		{"confirm, interrupt", `{"message":"go?","mode":"confirm"}`, permissions.Paused, permissions.Interrupt, "I stop here",
			permissions.Interrupted},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newEnv(t, helper(firstCalls("pause", test.input)))
			s.write("go")
			r := s.card(1)
			if got := s.waitAsking("helper"); got.Status != test.status || got.Request != r.ID || got.Tool != "pause" {
				t.Errorf("while it waits it is %+v", got)
			}
			s.answer(r, test.answer)
			s.waitMessage(test.hears)
			s.waitActivity("helper", test.ends)
			goesOn := test.answer == permissions.Continue || test.answer == once
			rows, err := s.rows.Executions(t.Context(), s.current("helper").ID, 1)
			if err != nil || len(rows) != 1 || rows[0].Success != goesOn || (rows[0].Error == "") != goesOn {
				t.Errorf("its row is %+v, %v", rows, err)
			}
		})
	}
}

func TestAToolThatPauses(t *testing.T) {
	for answer, hears := range map[permissions.Answer]string{permissions.Continue: "told: wrote a", permissions.Interrupt: "I stop here"} {
		a := helper(firstCalls("fetch", noteA))
		a.Tools = []tools.Tool{noteTool{name: "fetch", pause: "the whole page"}}
		s := newEnvWith(t, func(s *engine.Settings) { s.Policy.Auto = []string{"fetch"} }, a)
		s.write("go")
		r := s.card(1)
		if r.Kind != permissions.KindPause || r.Details != "the whole page" || s.file("a") != "one\n" {
			t.Errorf("it shows %+v, and wrote %q", r, s.file("a"))
		}
		s.answer(r, answer)
		s.waitMessage(hears)
		if s.file("a") != "one\n" {
			t.Errorf("it ran twice: %q", s.file("a"))
		}
	}
}

// TestSessionsThatPauseNeverTouchEachOther pauses a hundred sessions and answers them in another order.
func TestSessionsThatPauseNeverTouchEachOther(t *testing.T) {
	const many = 100
	var own []runtime.Agent
	for i := range many {
		a := helper(firstCalls("pause", fmt.Sprintf(`{"message":"look at %d"}`, i)))
		a.Name = fmt.Sprintf("helper-%d", i)
		own = append(own, a)
	}
	s := newEnvWith(t, func(s *engine.Settings) { s.Limits.PendingTotal = 1000 }, own...)
	for _, a := range own {
		if _, err := s.Use(t.Context(), fayHere, a.Name); err != nil {
			t.Fatal(err)
		}
		s.write("go")
	}
	s.card(many)
	cards := s.phone.Copies()
	for i := range cards {
		r := cards[(i*37+11)%many].First.Request // 37 and 100 are coprime: each once
		answer, want := permissions.Continue, permissions.Idle
		if i%3 == 0 {
			answer, want = permissions.Interrupt, permissions.Interrupted
		}
		s.answer(r, answer)
		s.waitActivity(r.Agent, want)
		if i%10 == 0 { // no other session has moved
			for j := i + 1; j < len(cards); j++ {
				other := cards[(j*37+11)%many].First.Request
				if got := s.current(other.Agent); got.Status != permissions.Paused || got.Request != other.ID {
					t.Fatalf("%s is %+v after an answer to %s", other.Agent, got, r.Agent)
				}
			}
		}
	}
}

func TestClarification(t *testing.T) {
	s := newEnv(t, helper(firstCalls("ask_user", `{"question":"where?","options":["blog","mail"]}`)))
	s.write("go")
	r := s.card(1)
	if got := s.waitAsking("helper"); got.Status != permissions.AwaitingUser || got.Request != r.ID {
		t.Errorf("while it waits it is %+v", got)
	}
	s.answer(r, permissions.Choose(2))
	s.waitMessage("told: mail")
}

func TestClarificationInTime(t *testing.T) {
	s := newEnv(t, helper(firstCalls("ask_user", `{"question":"where?","options":["blog","mail"]}`)))
	s.write("go")
	s.card(1)
	s.advance(6 * 60 * 1e9)
	s.waitMessage("told: blog\n(nobody answered within 5 minutes; first option taken)")
}

func TestRequestPermission(t *testing.T) {
	ask := `{"permission":"@network","reason":"to look it up"}`
	s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
		switch turn {
		case 0, 1, 3:
			return calls("request_permission", ask)
		}
		return says(fmt.Sprintf("told %d: %s", turn, newest(p)))
	}))
	s.write("go")
	r := s.card(1)
	if r.Kind != permissions.KindPermission || r.Reason != "to look it up" {
		t.Errorf("it asks %+v", r)
	}
	s.answer(r, once)
	s.waitMessage("told 2: Permission already granted for network access.") // until the run ends
	s.write("again")
	r = s.card(2) // the run has ended
	s.answer(r, permissions.Deny, func(d *connectors.Decision) { d.Comment = "not now" })
	s.waitMessage(`told 4: Permission denied for network access. fay: "not now"`)
}

func TestPermissionForTheSession(t *testing.T) {
	s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
		if turn%2 == 0 {
			return calls("request_permission", `{"permissions":["@network","@read:/srv"],"reason":"r"}`)
		}
		return says(fmt.Sprintf("told %d: %s", turn, newest(p)))
	}))
	s.write("go")
	s.answer(s.card(1), always)
	s.waitMessage("told 1: Permission granted for network access, read access to /srv.")
	s.write("again")
	s.waitMessage("told 3: Permission already granted")
	if n := len(s.phone.Copies()); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
}

// TestOneActOnePrompt: a call's gate and the tags it needs are one card, and the call gets the tags; the next call does not.
func TestOneActOnePrompt(t *testing.T) {
	needs := func(string) []permissions.Tag { return []permissions.Tag{permissions.Network} }
	a := helper(func(turn int, p models.Prompt) models.Reply {
		switch turn {
		case 0:
			return calls("send", noteA)
		case 1:
			return calls("look", noteB)
		}
		return says("told: " + newest(p))
	})
	a.Tools = []tools.Tool{noteTool{name: "send", needs: needs}, noteTool{name: "look", needs: needs}}
	s := newEnv(t, a)
	s.write("go")
	r := s.card(1)
	if len(r.Missing()) != 1 || r.Tool != "send" {
		t.Errorf("the card is %+v", r)
	}
	s.answer(r, once)
	r = s.card(2) // the gate is open, but tags are missing
	if s.file("a") != "one\n" || r.Tool != "look" || len(r.Missing()) != 1 {
		t.Errorf("%q was written, and it asks %+v", s.file("a"), r)
	}
	s.answer(r, permissions.Deny)
	s.waitMessage("told: Tool look denied by the user.")
	if s.file("b") != "" {
		t.Error("it ran all the same")
	}
}

func TestAStepOfSeveralCalls(t *testing.T) {
	s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
		if turn == 0 {
			return calls("write_file", noteA, "look", `{"path":"c","text":"three"}`, "write_file", noteB, "delete_it", noteA)
		}
		return says("told: " + newest(p))
	}))
	s.write("go")
	r := s.card(1)
	if len(r.Calls) != 2 || r.Details != "#1 write_file\n+ one\n#2 write_file\n+ two" {
		t.Errorf("the card has %+v with %q", r.Calls, r.Details)
	}
	s.answer(r, once, func(d *connectors.Decision) { d.Call = 2 })
	if s.file("b") != "" {
		t.Error("it ran before all was answered")
	}
	s.answer(r, permissions.Deny, func(d *connectors.Decision) { d.Call = 1 })
	s.waitMessage("told: Tool write_file denied by the user.\nwrote c\nwrote b\nTool delete_it is forbidden here.")
	if s.file("a") != "" || s.file("b") != "two\n" || s.file("c") != "three\n" {
		t.Errorf("it wrote %q, %q, %q", s.file("a"), s.file("b"), s.file("c"))
	}
}

func TestDenialThatTerminates(t *testing.T) {
	a := helper(writer)
	a.Terminates = true
	s := newEnv(t, a)
	s.write("go")
	s.answer(s.card(1), permissions.Deny)
	s.waitMessage("I stop here: you denied what I needed.")
	s.waitActivity("helper", permissions.Interrupted)
	ends := s.rows.records(permissions.RunFinished)
	if len(ends) != 1 || ends[0].Detail["outcome"] != "interrupted" || ends[0].Detail["reason"] != "user_denied" {
		t.Errorf("it ended as %+v", ends)
	}
	s.write("what happened?") // the agent still answers, and its transcript is complete
	s.card(2)
}

func TestSilenceThatTerminates(t *testing.T) {
	a := helper(writer)
	a.Terminates = true
	s := newEnv(t, a)
	s.write("go")
	s.card(1)
	s.advance(16 * 60 * 1e9)
	s.waitMessage("nobody answered in time")
	rejected := s.rows.records(permissions.AckRejected)
	if len(rejected) != 1 || rejected[0].Detail["reason"] != "ack_timeout" {
		t.Errorf("it was rejected as %+v", rejected)
	}
}

func TestWrongCalls(t *testing.T) {
	s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
		if turn == 0 {
			return calls("nothing", `{}`, "write_file", `{"path":""}`, "pause", `{"message":"x","mod":1}`, "look", `{"a":`,
				"request_permission", `{"permission":"@root","reason":"r"}`, "ask_user", `{"question":"q","options":["one"]}`,
				"request_permission", `{"permission":"@network","reason":"r","timeout_minutes":61}`)
		}
		return says("told: " + newest(p))
	}))
	s.write("go")
	s.waitMessage("told: There is no tool nothing here. There are ask_user, look,")
	all := s.phone.Copies()
	if len(all) != 0 {
		t.Errorf("somebody was asked: %+v", all)
	}
	transcript := ""
	for _, c := range s.rows.all() {
		for _, turn := range c.Turns {
			transcript += string(turn.Content)
		}
	}
	for _, want := range []string{"path is missing", `did you mean \"mode\"?`, "no JSON", "@root", "2 to 20 items", "from 1 to 60"} {
		if !strings.Contains(transcript, want) {
			t.Errorf("the model is not told of %q: %s", want, transcript)
		}
	}
}

// TestThreeDenialsEndTheAsking: after the third denial nobody is asked, and the model is told to stop.
func TestThreeDenialsEndTheAsking(t *testing.T) {
	s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
		if turn < 4 {
			return calls("write_file", noteA)
		}
		return says("told: " + newest(p))
	}))
	s.write("go")
	s.answer(s.card(1), permissions.Deny)
	s.answer(s.card(2), permissions.Deny)
	s.answer(s.card(3), permissions.Deny)
	s.waitMessage("told: " + "This was denied three times and is not asked again. Stop, and tell the person")
	if n := len(s.phone.Copies()); n != 3 {
		t.Errorf("%d cards", n)
	}
}

// TestTooManyCalls: too many calls are neither shown nor planned.
func TestTooManyCalls(t *testing.T) {
	t.Run("C5/too many calls", func(t *testing.T) {
		var flood []string
		for i := range permissions.MaxCalls + 1 {
			flood = append(flood, "look", fmt.Sprintf(`{"path":"f%d","text":"x"}`, i))
		}
		s := newEnv(t, helper(func(turn int, p models.Prompt) models.Reply {
			if turn == 0 {
				return calls(flood...)
			}
			return says("told: " + newest(p))
		}))
		s.write("go")
		s.waitMessage("told: A step may have at most 50 calls, not 51: none of them was run.")
		if s.file("f0") != "" {
			t.Error("it ran")
		}
	})
}
