package runtime_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/runtime"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// events are the events for fay's front end, from the first, each with its request and its payload as JSON.
func (s *env) events(types ...permissions.Type) (all []wire.Event) {
	s.t.Helper()
	for after := int64(0); ; {
		list, seen, err := s.Events(s.t.Context(), fayHere, after, 100)
		if err != nil {
			s.t.Fatal(err)
		}
		if seen == after {
			return all
		}
		after = seen
		for _, h := range list {
			if e := server.EventOf(h); len(types) == 0 || slices.Contains(types, e.Type) {
				all = append(all, e)
			}
		}
	}
}

// payloads are the payloads of a type of event.
func (s *env) payloads(t permissions.Type) (all []string) {
	for _, e := range s.events(t) {
		text, _ := json.Marshal(e.Payload)
		all = append(all, string(text))
	}
	return all
}

// settledCard is the final line under a request's card.
func (s *env) settledCard(id permissions.ID) string {
	s.t.Helper()
	r, err := s.rows.Read(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return card.Settled(r, card.Options{})
}

// answerCall answers one call of a step as fay.
func (s *env) answerCall(r permissions.Request, call int, a permissions.Answer, reason string) {
	s.t.Helper()
	s.answer(r, a, func(d *connectors.Decision) { d.Call, d.Comment = call, reason })
}

// TestEachCallOfAStepHasItsOwnRecord: answer, reason, scope and time, in artifacts, on the card and in events.
func TestEachCallOfAStepHasItsOwnRecord(t *testing.T) {
	tool := permissions.Allow(permissions.SessionTool)
	type said struct {
		answer permissions.Answer
		reason string
		want   string // of the artifact: its type, and its scope or reason
	}
	for name, c := range map[string]struct {
		calls []string
		said  [2]said
		card  []string
	}{
		"one denied, one allowed": {[]string{noteA, noteB},
			[2]said{{permissions.Deny, "not one", "approval_denied not one"}, {once, "", "approval_granted once"}},
			[]string{`#1 denied`, `"not one"`}},
		"two reasons": {[]string{noteA, noteB},
			[2]said{{permissions.Deny, "REASON ONE", "approval_denied REASON ONE"}, {permissions.Deny, "REASON TWO", "approval_denied REASON TWO"}},
			[]string{`#1 denied`, `"REASON ONE"`, `#2 denied`, `"REASON TWO"`}},
		"one reason": {[]string{noteA, noteB},
			[2]said{{permissions.Deny, "r1", "approval_denied r1"}, {permissions.Deny, "", "approval_denied user_denied"}},
			[]string{`#1 denied`, `"r1"`, `#2 denied`}},
		"two scopes of equal calls": {[]string{noteA, noteA},
			[2]said{{once, "", "approval_granted once"}, {tool, "", "approval_granted session_tool"}},
			[]string{"#1 allowed once", "#2 allowed for this session"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, helper(firstCalls("write_file", c.calls[0], "write_file", c.calls[1])))
			s.write("go")
			r := s.card(1)
			var times []time.Time
			for i, x := range c.said {
				s.answerCall(r, i+1, x.answer, x.reason)
				now, err := s.rows.Read(t.Context(), r.ID)
				if err != nil {
					t.Fatal(err)
				}
				times = append(times, now.Votes[i].At)
				s.advance(time.Minute)
			}
			s.waitActivity("helper", permissions.Idle)
			s.waitMessage("told:")
			found := append(s.rows.artifacts(agents.ArtifactApprovalDenied), s.rows.artifacts(agents.ArtifactApprovalGranted)...)
			for i, x := range c.said {
				kind, why, _ := strings.Cut(x.want, " ")
				at := times[i].Format(time.RFC3339Nano)
				if !slices.ContainsFunc(found, func(a map[string]any) bool {
					return (a["scope"] == why && kind == "approval_granted" || a["reason"] == why && kind == "approval_denied") && a["timestamp"] == at
				}) {
					t.Errorf("no artifact says of call %d %s at %s: %v", i+1, x.want, at, found)
				}
			}
			line := s.settledCard(r.ID)
			for _, want := range c.card {
				if at := strings.Index(line, want); at < 0 {
					t.Errorf("the card does not say %s, each in its place: %s", want, s.settledCard(r.ID))
				} else {
					line = line[at+len(want):]
				}
			}
			for i, x := range c.said {
				_, why, _ := strings.Cut(x.want, " ")
				of := permissions.AckApproved
				if x.answer == permissions.Deny {
					of = permissions.AckRejected
				}
				own, _ := json.Marshal(wire.Answered{
					Call: i + 1, Tool: wire.OrNull("write_file"), Person: wire.OrNull("fay"), At: &times[i], Reason: wire.OrNull(x.reason),
					Scope: func() *string {
						if x.answer == permissions.Deny {
							return nil
						}
						return &why
					}(),
				})
				if events := strings.Join(s.payloads(of), "\n"); !strings.Contains(events, string(own)) {
					t.Errorf("no %s says %s:\n%s", of, own, events)
				}
			}
		})
	}
}

// TestADenialEndsTheRunWithItsWholeStep: if denials terminate, the allowed calls of the step do not run either, and the card,
// events, rows and artifacts say so.
func TestADenialEndsTheRunWithItsWholeStep(t *testing.T) {
	for name, order := range map[string][]int{"denied first": {1, 2}, "denied last": {2, 1}} {
		t.Run(name, func(t *testing.T) {
			a := helper(firstCalls("write_file", noteA, "write_file", noteB, "look", noteA))
			a.Terminates = true
			s := newEnv(t, a)
			s.write("go")
			r := s.card(1)
			if !r.DenialEndsRun() {
				t.Error("the card does not say that a denial ends the run")
			}
			for _, n := range order {
				if n == 1 {
					s.answerCall(r, 1, permissions.Deny, "not a")
				} else {
					s.answerCall(r, 2, permissions.Allow(permissions.SessionTool), "")
				}
			}
			s.waitMessage("I stop here: you denied what I needed.")
			done := s.waitActivity("helper", permissions.Interrupted)
			if s.file("a") != "" || s.file("b") != "" {
				t.Error("something ran")
			}
			if got := s.payloads(permissions.RunFinished); len(got) != 1 || !strings.Contains(got[0], `"reason":"user_denied"`) {
				t.Errorf("the run ended as %v", got)
			}
			if got := s.payloads(permissions.AckApproved); len(got) != 1 || !strings.Contains(got[0], `"call":2,`) ||
				strings.Contains(got[0], `"call":1,`) {
				t.Errorf("allowed: %v", got)
			}
			if got := s.payloads(permissions.AckRejected); len(got) != 1 || !strings.Contains(got[0], `"call":1,`) ||
				strings.Contains(got[0], `"call":2,`) {
				t.Errorf("denied: %v", got)
			}
			handled := s.payloads(permissions.AckDecisionHandled)
			if len(handled) != 2 || !strings.Contains(strings.Join(handled, ""), `"decision":"approve","person":"fay"`) ||
				!strings.Contains(strings.Join(handled, ""), `"decision":"deny","person":"fay"`) {
				t.Errorf("handled: %v", handled)
			}
			if line := s.settledCard(r.ID); !strings.Contains(line, "Denied by fay") ||
				!strings.Contains(line, `"not a"`) || !strings.Contains(line, "#2 allowed") || !strings.Contains(line, ", but not run") {
				t.Errorf("the card says %s", line)
			}
			rows, err := s.rows.Executions(t.Context(), done.ID, 1)
			if err != nil || len(rows) != 3 || slices.ContainsFunc(rows, func(x agents.Execution) bool { return x.Success || x.Error == "" }) {
				t.Errorf("the rows are %+v, %v", rows, err)
			}
		})
	}
}

// TestAnAnswerIsKeptWhenTheRestOfItsStepExpires: the allowed call does not run, and its record has the person, the time and the
// reason.
func TestAnAnswerIsKeptWhenTheRestOfItsStepExpires(t *testing.T) {
	s := newEnv(t, helper(firstCalls("write_file", noteA, "write_file", noteB)))
	s.write("go")
	r := s.card(1)
	s.answerCall(r, 1, once, "")
	s.advance(time.Hour)
	s.waitMessage("told:")
	got := s.payloads(permissions.AckRejected)
	if len(got) != 1 || !strings.Contains(got[0], `"reason":"ack_timeout"`) || strings.Count(got[0], `"person":"fay"`) != 1 ||
		strings.Count(got[0], `"person":null`) != 1 || strings.Count(got[0], `"scope":null`) != 2 {
		t.Errorf("it was rejected as %v", got)
	}
	if told := s.settledCard(r.ID); !strings.Contains(told, "#1 allowed by fay") || !strings.Contains(told, ", but not run") {
		t.Errorf("its card ends with %s", told)
	}
	rows, err := s.rows.Executions(t.Context(), s.current("helper").ID, 1)
	if err != nil || len(rows) != 2 || !strings.Contains(rows[0].Error, "another call of the step was not answered in time") {
		t.Errorf("its rows are %+v, %v", rows, err)
	}
}

// TestEveryWaitIsClosed: each opened wait is closed once, with the reason, and each call has a row.
func TestEveryWaitIsClosed(t *testing.T) {
	const gone = `{"reason":"cancelled","response":null}`
	ends := map[string]struct {
		do   func(*env, permissions.Request)
		why  string
		dlog string // the closing record of the dialog
	}{
		"stop":    {func(s *env, _ permissions.Request) { s.order(permissions.OrderStop) }, "stopped", gone},
		"new":     {func(s *env, _ permissions.Request) { s.order(permissions.OrderNew) }, "stopped", gone},
		"quit":    {func(s *env, _ permissions.Request) { s.order(permissions.OrderQuit) }, "stopped", gone},
		"silence": {func(s *env, _ permissions.Request) { s.advance(time.Hour) }, "ack_timeout", `{"response":"0"}`},
		"cancel": {func(s *env, r permissions.Request) {
			if _, err := s.Cancel(s.t.Context(), fayHere, string(r.ID)); err != nil {
				s.t.Error(err)
			}
		}, "cancelled", gone},
		"kill switch": {func(s *env, _ permissions.Request) {
			if _, err := s.StopAll(s.t.Context(), fayHere); err != nil {
				s.t.Error(err)
			}
		}, "cancelled", gone},
		"a restart and stop": {func(s *env, _ permissions.Request) {
			s.restart()
			s.order(permissions.OrderStop)
		}, "stopped", gone},
		"the agent is taken out": {func(s *env, _ permissions.Request) {
			s.stop()
			s.agents[0].Name = "another"
			s.open()
		}, "stopped", gone},
	}
	for name, end := range ends {
		for _, calls := range [][]string{
			{"write_file", noteA, "write_file", noteB}, {"ask_user", `{"question":"How many?","options":["0","1"]}`},
		} {
			t.Run(name+" of "+calls[0], func(t *testing.T) {
				s := newEnv(t, helper(firstCalls(calls...)))
				s.write("go")
				r := s.card(1)
				id := s.waitAsking("helper").ID
				end.do(s, r)
				s.waitEnded(id)
				open, shut := s.pairs()
				if len(open) != 1 || len(shut) != 1 {
					t.Errorf("%d were opened, %d closed", len(open), len(shut))
				}
				rows, err := s.rows.Executions(t.Context(), id, 1)
				if err != nil || len(rows) != len(calls)/2 {
					t.Errorf("%d rows for %d calls, %v", len(rows), len(calls)/2, err)
				}
				if calls[0] == "ask_user" {
					got := slices.Concat(s.payloads(permissions.DialogResponded), s.payloads(permissions.DialogTimeout))
					if !slices.Equal(got, []string{end.dlog}) {
						t.Errorf("the dialog ended as %v, want %s", got, end.dlog)
					}
					return
				}
				if got := s.payloads(permissions.AckRejected); len(got) != 1 || !strings.Contains(got[0], `"reason":"`+end.why+`"`) ||
					!strings.Contains(got[0], `"call":1`) || !strings.Contains(got[0], `"call":2`) {
					t.Errorf("it was rejected as %v, want %s", got, end.why)
				}
				if got := s.payloads(permissions.AckDecisionHandled); got != nil {
					t.Errorf("nobody decided, and %v", got)
				}
				if got := s.rows.artifacts(agents.ArtifactApprovalDenied); len(got) != 2 {
					t.Errorf("it is logged as %v", got)
				}
			})
		}
	}
}

// waitEnded waits until a session is idle.
func (s *env) waitEnded(id permissions.ID) {
	s.t.Helper()
	for late := time.After(patience); ; {
		changed := s.rows.Changed()
		x, err := s.rows.AgentSession(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		if x.Request == "" && (x.Status == permissions.Idle || x.Status == permissions.Interrupted) &&
			!strings.Contains(string(x.Step), `"state"`) {
			return
		}
		select {
		case <-changed:
		case <-late:
			s.t.Fatalf("session %s is %+v at %s", id, x, x.Step)
		}
	}
}

// pairs lists what was opened and closed so far: each call that people were asked about, and each dialog.
func (s *env) pairs() (open, shut []string) {
	for _, e := range s.events() {
		switch e.Type {
		case permissions.WaitAckEnter, permissions.DialogRequested:
			open = append(open, string(*e.Request))
		case permissions.AckApproved, permissions.AckRejected, permissions.DialogResponded, permissions.DialogTimeout:
			shut = append(shut, string(*e.Request))
		}
	}
	slices.Sort(open)
	slices.Sort(shut)
	return open, shut
}

// TestOpeningsAndClosingsPairUp over random runs: whatever agents ask and however it ends, each call and each dialog is closed
// once.
func TestOpeningsAndClosingsPairUp(t *testing.T) {
	all := 0
	defer func() {
		if all == 0 {
			t.Error("nothing was opened")
		}
	}()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 17))
			asks := [][]string{
				{"write_file", noteA}, {"write_file", noteA, "write_file", noteB}, {"write_file", noteB, "look", noteA, "other", noteA},
				{"ask_user", `{"question":"How many?","options":["0","1"]}`}, {"pause", `{"message":"look"}`},
				{"request_permission", `{"permission":"@network","reason":"r"}`},
				{"ask_user", `{"question":"Which?","options":["0","1"]}`, "write_file", noteB},
			}
			a := helper(func(int, models.Prompt) models.Reply { return calls(asks[random.IntN(len(asks))]...) })
			a.Terminates = seed%2 == 0
			s := newEnv(t, a)
			for round := range 6 {
				if s.write(fmt.Sprintf("go %d", round)); !s.asked() {
					break
				}
				s.answerRandomly(random)
			}
			s.order(permissions.OrderQuit)
			open, shut := map[string]int{}, map[string]int{}
			for _, e := range s.events() {
				id := ""
				if e.Request != nil {
					id = string(*e.Request)
				}
				switch e.Type {
				case permissions.DialogRequested:
					open[id]++
				case permissions.DialogResponded, permissions.DialogTimeout:
					shut[id]++
				case permissions.WaitAckEnter:
					tools, _ := e.Payload["tools"].([]wire.Gated)
					for i := range tools {
						open[fmt.Sprint(id, i+1)]++
					}
				case permissions.AckApproved, permissions.AckRejected:
					answered, _ := e.Payload["calls"].([]wire.Answered)
					for _, c := range answered {
						shut[fmt.Sprint(id, c.Call)]++
					}
				}
			}
			for id, n := range open {
				if n != 1 || shut[id] != 1 {
					t.Errorf("%s was opened %d times and closed %d times", id, n, shut[id])
				}
			}
			if all += len(open); len(open) != len(shut) {
				t.Errorf("%d were opened, %d closed", len(open), len(shut))
			}
		})
	}
}

// asked waits until the agent waits for a person or is idle, and reports the former.
func (s *env) asked() bool {
	s.t.Helper()
	return s.waitSession("helper", func(x permissions.AgentSession) bool { return x.Request != "" }).Request != ""
}

// answerRandomly ends what the agent waits for in a random way.
func (s *env) answerRandomly(random *rand.Rand) {
	s.t.Helper()
	waits := s.waitAsking("helper")
	r, err := s.rows.Read(s.t.Context(), waits.Request)
	if err != nil || r.State != permissions.Pending {
		return
	}
	switch random.IntN(9) {
	case 0:
		s.order(permissions.OrderStop)
	case 1:
		s.order(permissions.OrderNew)
	case 2:
		s.advance(2 * time.Hour)
		s.waitSession("helper", func(x permissions.AgentSession) bool { return x.Request != waits.Request })
	case 3:
		if _, err := s.Cancel(s.t.Context(), fayHere, string(r.ID)); err != nil {
			s.t.Error(err)
		}
	case 4:
		s.restart()
	default:
		for _, n := range random.Perm(max(len(r.Calls), 1)) {
			o := r.Options[random.IntN(len(r.Options))].ID
			_, _ = s.OnPermission(s.t.Context(), connectors.Decision{ // refused if it is decided already
				Request: r.ID, Answer: o, Call: min(n+1, len(r.Calls)), From: fayHere,
			})
		}
	}
}

// TestTheBeginningOfACallIsWrittenOnce: later writes of a call's row keep its beginning, and a review by a person keeps the
// command's exit code and duration. The clock advances a minute with every commit.
func TestTheBeginningOfACallIsWrittenOnce(t *testing.T) {
	ask, four := `{"question":"How many?","options":["0","1"]}`, 4
	stop := func(s *env) { s.order(permissions.OrderStop) }
	for name, c := range map[string]struct {
		calls  []string
		hold   bool
		place  []permissions.Tag
		change func(*engine.Settings)
		do     func(*env)
	}{
		"answered": {calls: []string{"ask_user", ask}, do: func(s *env) { s.answer(s.card(1), permissions.Choose(2)) }},
		"held already": {calls: []string{"request_permission", `{"permission":"@network","reason":"r"}`},
			place: []permissions.Tag{permissions.Network}},
		"may not ask": {calls: []string{"request_permission", `{"permission":"@network","reason":"r","agentId":"x"}`}},
		"refused": {calls: []string{"ask_user", ask, "ask_user", ask}, change: func(s *engine.Settings) { s.Limits.RequestsPerHour = 1 },
			do: func(s *env) { s.answer(s.card(1), permissions.Choose(2)) }},
		"stopped": {calls: []string{"ask_user", ask}, do: func(s *env) { s.card(1); stop(s) }},
		"restart": {calls: []string{"look", noteA}, hold: true, do: func(s *env) { s.waitCall("helper"); s.restart() }},
		"shown":   {calls: []string{"look", noteA}, do: func(s *env) { s.answer(s.card(1), permissions.Continue) }},
	} {
		t.Run(name, func(t *testing.T) {
			a := helper(firstCalls(c.calls...))
			p := noteTool{name: "look", exit: &four}
			if a.Place.Tags = c.place; c.hold {
				p.hold = make(chan struct{})
			}
			if name == "shown" {
				p.pause = "look at it"
			}
			a.Tools = []tools.Tool{p}
			s := newEnvWith(t, c.change, a)
			last := len(c.calls) / 2
			var began, ended time.Time // of the first row, and of the first row that has ended
			watch := func(c agents.Commit) error {
				for _, x := range c.Executions {
					if x.Call != last {
						continue
					}
					if began.IsZero() {
						began = x.Began
					}
					if ended.IsZero() {
						ended = x.Ended
					}
				}
				s.advance(time.Minute)
				return nil
			}
			s.rows.mu.Lock()
			s.rows.fails = watch
			s.rows.mu.Unlock()
			s.write("go")
			if c.do != nil {
				c.do(s)
			}
			if name != "stopped" {
				s.waitMessage("told:")
			}
			id := s.current("helper").ID
			s.waitEnded(id)
			rows, err := s.rows.Executions(t.Context(), id, 1)
			if err != nil || len(rows) != last {
				t.Fatalf("%+v, %v", rows, err)
			}
			x := rows[last-1]
			if !x.Began.Equal(began) ||
				name != "restart" && !x.Ended.Equal(ended) || x.Ended.Sub(x.Began) < time.Minute && name != "restart" {
				t.Errorf("it took from %s to %s, and began at %s", x.Began, x.Ended, began)
			}
			if name == "shown" && (x.Exit == nil || *x.Exit != 4 || !x.Success) {
				t.Errorf("its row is %+v", x)
			}
		})
	}
}

// TestWhatRunsUnderAGrantSaysSo: each call under a grant, for the tool or the tags that it needs, has an artifact with the scope
// and the grant, and is counted; so is a request for permissions that are held already.
func TestWhatRunsUnderAGrantSaysSo(t *testing.T) {
	net := `{"permission":"@network","reason":"r"}`
	a := helper(func(turn int, _ models.Prompt) models.Reply {
		switch turn {
		case 0:
			return calls("request_permission", net)
		case 1, 2, 3:
			return calls("write_file", fmt.Sprintf(`{"path":"f%d","text":"x"}`, turn))
		case 4:
			return calls("look", noteA)
		case 5:
			return calls("request_permission", net)
		}
		return says("told: done")
	})
	needs := func(string) []permissions.Tag { return []permissions.Tag{permissions.Network} }
	a.Tools = []tools.Tool{noteTool{name: "write_file"}, noteTool{name: "look", needs: needs}}
	s := newEnv(t, a)
	s.write("go")
	s.answer(s.card(1), always)
	s.answer(s.card(2), permissions.Allow(permissions.SessionTool))
	s.waitMessage("told: done")
	grants, err := s.Grants(t.Context(), fayHere, "", 99)
	if err != nil || len(grants) != 2 {
		t.Fatalf("%+v, %v", grants, err)
	}
	granted := s.rows.artifacts(agents.ArtifactApprovalGranted)
	var got []string
	for _, x := range granted {
		got = append(got, fmt.Sprint(x["tool"], " ", x["scope"], " ", x["grants"] != nil))
	}
	want := []string{
		"request_permission session false", "write_file session_tool false", "write_file session_tool true", "write_file session_tool true",
		"look session true", "request_permission session true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("it is logged as %q, want %q", got, want)
	}
	for _, g := range grants {
		if g.Used != 2 {
			t.Errorf("the grant of %s %v was used %d times, want 2", g.Tool, g.Tags, g.Used)
		}
	}
}

// TestTheContractNamesEveryReasonOfARun, so that front ends know all values.
func TestTheContractNamesEveryReasonOfARun(t *testing.T) {
	said := server.Events().Events[permissions.RunFinished].Payload["reason"].Description
	for _, reason := range []string{
		agents.ReasonDenied, agents.ReasonTimeout, agents.ReasonStopped, runtime.ReasonInterrupted, runtime.ReasonModel,
		runtime.ReasonSteps, "restarted", "agent", "empty",
	} {
		if !strings.Contains(said, reason) {
			t.Errorf("%s is missing: %s", reason, said)
		}
	}
}

// TestAStopFindsWhatWasAskedAndNotStored: if the step with the request's id was not stored, the request is still withdrawn and
// its dialog closed.
func TestAStopFindsWhatWasAskedAndNotStored(t *testing.T) {
	for name, c := range map[string]struct {
		step           []string
		opened, closed permissions.Type
	}{
		"calls": {[]string{"write_file", noteA}, permissions.WaitAckEnter, permissions.AckRejected},
		"a question": {
			[]string{"ask_user", `{"question":"Q?","options":["0","1"]}`}, permissions.DialogRequested, permissions.DialogResponded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, helper(firstCalls(c.step...)))
			s.rows.mu.Lock()
			s.rows.fails = func(c agents.Commit) error {
				if c.Session.Request != "" {
					return errors.New("the disk is full")
				}
				return nil
			}
			s.rows.mu.Unlock()
			s.write("go")
			s.card(1)
			s.order(permissions.OrderStop)
			s.waitActivity("helper", permissions.Interrupted)
			told := map[permissions.Type]int{}
			for _, e := range s.events() {
				told[e.Type]++
			}
			if told[c.opened] != 1 || told[c.closed] != 1 || told[permissions.RequestSettled] != 1 {
				t.Errorf("it is told %v", told)
			}
		})
	}
}
