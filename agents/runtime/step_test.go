package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// call is a judged call of a step.
func call(n int, fate CallDecision, phase Phase) Call {
	return Call{N: n, ID: fmt.Sprintf("id-%d", n), Tool: "write_file", Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)),
		Decision: fate, Phase: phase}
}

// stands are runs in every state, and for EXECUTE in every phase of the call.
var stands = map[string]Run{
	"idle":           {N: 1, Step: 4, Outcome: agents.Done},
	"plan":           {N: 2, Step: 4, State: Plan},
	"validate":       {N: 2, Step: 5, State: ValidateCalls, Calls: []Call{call(1, "", Planned), call(2, "", Planned)}},
	"validate, last": {N: 2, Step: 5, State: ValidateCalls, Last: true},
	"ack":            {N: 2, Step: 5, State: WaitAck, Calls: []Call{call(1, Runs, Planned), call(2, Asks, Planned)}},
	"ack, posed":     {N: 2, Step: 5, State: WaitAck, Request: "R", Calls: []Call{call(1, Runs, Planned), call(2, Asks, Planned)}},
	"execute":        {N: 2, Step: 5, State: Execute, Calls: []Call{call(1, Runs, Planned), call(2, Skipped, Planned)}},
	"begun":          {N: 2, Step: 5, State: Execute, Calls: []Call{call(1, Runs, Begun), call(2, Runs, Planned)}},
	"asking":         {N: 2, Step: 5, State: Execute, Calls: []Call{call(1, Runs, Asking)}},
	"asking, posed":  {N: 2, Step: 5, State: Execute, Request: "R", Calls: []Call{call(1, Runs, Asking)}},
	"showing":        {N: 2, Step: 5, State: Execute, Shows: true, Request: "R", Calls: []Call{call(1, Runs, Asking)}},
	"observe":        {N: 2, Step: 5, State: Observe, Calls: []Call{call(1, Runs, Ended)}},
	"commit":         {N: 2, Step: 5, State: Commit, Calls: []Call{call(1, Runs, Ended)}},
	"commit, last":   {N: 2, Step: 5, State: Commit, Last: true},
	"terminate":      {N: 2, Step: 5, State: Terminate, Outcome: agents.Done},
}

// settledAs is the settled request R about call 2 of "ack, posed".
func settledAs(s permissions.State, a permissions.Answer) permissions.Request {
	c := call(2, Asks, Planned)
	return permissions.Request{ID: "R", Kind: permissions.KindTool, Tool: c.Tool, Input: c.Input, State: s, Answer: a}
}

var happens = map[string]Event{
	"begin":           Begin{},
	"replied":         Replied{Words: "I call", Calls: []Call{{ID: "a", Tool: "x"}}},
	"silent":          Replied{Words: "I am done"},
	"broke":           Broke{ReasonModel},
	"judged":          Judged{[]Verdict{{Decision: Runs}, {Decision: Asks}}},
	"all run":         Judged{[]Verdict{{Decision: Runs}, {Decision: Skipped, Text: "no"}}},
	"none runs":       Judged{[]Verdict{{Decision: Skipped, Text: "no"}, {Decision: Skipped, Text: "no"}}},
	"nothing":         Judged{},
	"posed":           Submitted{"R"},
	"refused":         Refused{"nobody can be asked"},
	"allowed":         Settled{Request: settledAs(permissions.Approved, permissions.Allow(permissions.Once)), Ends: true},
	"denied":          Settled{Request: settledAs(permissions.Denied, permissions.Deny)},
	"denied, ends":    Settled{Request: settledAs(permissions.Denied, permissions.Deny), Ends: true},
	"expired, ends":   Settled{Request: settledAs(permissions.Expired, ""), Ends: true},
	"cancelled, ends": Settled{Request: settledAs(permissions.Cancelled, ""), Ends: true},
	"pending":         Settled{Request: settledAs(permissions.Pending, "")},
	"began":           Began{1},
	"began 2":         Began{2},
	"asked":           Asked{N: 1},
	"ran":             Ran{N: 1, Text: "done"},
	"ran, ends":       Ran{N: 1, Text: "no", Stops: ReasonInterrupted},
	"resumed":         Resumed{},
	"observed":        Observed{},
	"committed":       Committed{},
	"stopped":         Stopped{ReasonStopped},
	"finished":        Finished{},
}

// leads is the transition table; a missing entry is an impossible step.
var leads = map[string]map[string]State{
	"idle":           {"begin": Plan, "resumed": Idle},
	"plan":           {"replied": ValidateCalls, "silent": ValidateCalls, "broke": Terminate, "resumed": Plan, "stopped": Terminate},
	"validate":       {"judged": WaitAck, "all run": Execute, "none runs": Observe, "resumed": ValidateCalls, "stopped": Terminate},
	"validate, last": {"nothing": Commit, "resumed": ValidateCalls, "stopped": Terminate},
	"ack":            {"posed": WaitAck, "refused": Execute, "resumed": WaitAck, "stopped": Terminate},
	"ack, posed": {"allowed": Execute, "denied": Execute, "denied, ends": Terminate, "expired, ends": Terminate,
		"cancelled, ends": Execute, "resumed": WaitAck, "stopped": Terminate},
	"execute":       {"began": Execute, "resumed": Execute, "stopped": Terminate},
	"begun":         {"asked": Execute, "ran": Execute, "ran, ends": Terminate, "resumed": Execute, "stopped": Terminate},
	"asking":        {"posed": Execute, "refused": Observe, "ran": Observe, "ran, ends": Terminate, "resumed": Execute, "stopped": Terminate},
	"asking, posed": {"ran": Observe, "ran, ends": Terminate, "resumed": Execute, "stopped": Terminate},
	"showing":       {"ran": Observe, "ran, ends": Terminate, "resumed": Execute, "stopped": Terminate},
	"observe":       {"observed": Commit, "resumed": Observe, "stopped": Terminate},
	"commit":        {"committed": Plan, "resumed": Commit, "stopped": Terminate},
	"commit, last":  {"committed": Terminate, "resumed": Commit, "stopped": Terminate},
	"terminate":     {"resumed": Terminate, "finished": Idle},
}

func TestNext(t *testing.T) {
	for from, r := range stands {
		for what, e := range happens {
			t.Run(from+"/"+what, func(t *testing.T) {
				before, _ := json.Marshal(r)
				next, err := Next(r, e)
				if after, _ := json.Marshal(r); string(after) != string(before) {
					t.Errorf("the run that was there has changed: %s", after)
				}
				want, leads := leads[from][what]
				switch {
				case !leads && !errors.Is(err, ErrStep):
					t.Errorf("it leads to %q (%v), and is no step", next.State, err)
				case !leads && !cmp.Equal(next, r, tags):
					t.Errorf("what is no step changes the run: %s", cmp.Diff(r, next, tags))
				case leads && (err != nil || next.State != want):
					t.Errorf("it leads to %q (%v), want %q", next.State, err, want)
				}
			})
		}
	}
}

var tags = cmp.Comparer(func(a, b permissions.Tag) bool { return a == b })

func TestNextUnknown(t *testing.T) {
	if _, err := Next(Run{State: Plan}, nil); !errors.Is(err, ErrStep) {
		t.Errorf("nothing is a step: %v", err)
	}
}

// TestEachCallHasAResult tries every way to end: the model gets one result for each call.
func TestEachCallHasAResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, ran := Run{}, map[string]int{}
		for range rapid.IntRange(1, 60).Draw(t, "length") {
			e := draw(t, r)
			next, err := Next(r, e)
			if err != nil {
				t.Fatalf("%T in %s: %v", e, r.State, err)
			}
			if b, ok := e.(Began); ok {
				ran[fmt.Sprintf("%d/%d", next.Step, b.N)]++
			}
			ended := r.open() && !next.open() && (next.State == Terminate || next.State == Commit)
			for _, res := range next.results().Results {
				if ended && res.Text == "" {
					t.Fatalf("after %T in %s, call %s has no result: %+v", e, r.State, res.ID, next)
				}
			}
			if (next.State == Idle || next.State == Terminate) && (next.Request != "" || len(next.Tags) > 0) {
				t.Fatalf("what is over holds something: %+v", next)
			}
			r = next
		}
		for which, times := range ran {
			if times > 1 {
				t.Fatalf("call %s began %d times", which, times)
			}
		}
	})
}

// draw is a random event.
func draw(t *rapid.T, r Run) Event {
	if r.State != Idle && r.State != Terminate && rapid.IntRange(0, 20).Draw(t, "order") == 0 {
		return Stopped{ReasonStopped}
	}
	if rapid.IntRange(0, 6).Draw(t, "crash") == 0 {
		return Resumed{}
	}
	switch r.State {
	case Idle:
		return Begin{rapid.Bool().Draw(t, "person")}
	case Plan:
		e := Replied{Words: "w"}
		for n := range rapid.IntRange(0, 4).Draw(t, "calls") {
			c := call(n+1, "", Planned)
			e.Calls = append(e.Calls, Call{ID: c.ID, Tool: c.Tool, Input: c.Input})
		}
		return e
	case ValidateCalls:
		e := Judged{}
		for range r.Calls {
			e.Calls = append(e.Calls, Verdict{Text: "why not",
				Decision: rapid.SampledFrom([]CallDecision{Runs, Asks, Skipped}).Draw(t, "fate")})
		}
		return e
	case WaitAck:
		if r.Request == "" {
			return Submitted{"R"}
		}
		return Settled{Request: answered(t, r), Ends: rapid.Bool().Draw(t, "ends")}
	case Execute:
		c, _ := r.next()
		switch {
		case c.Phase == Planned:
			return Began{c.N}
		case c.Phase == Begun && rapid.Bool().Draw(t, "asks"):
			return Asked{N: c.N, Shows: true, Text: "brought"}
		case c.Phase == Asking && r.Request == "":
			return Refused{"nobody"}
		}
		return Ran{N: c.N, Text: "ran"}
	case Observe:
		return Observed{}
	case Commit:
		return Committed{}
	}
	return Finished{}
}

// answered is the step's request with an answer to each call.
func answered(t *rapid.T, r Run) permissions.Request {
	q := permissions.Request{ID: "R", Kind: permissions.KindTool, State: permissions.Denied}
	for i, c := range r.asked() {
		a := rapid.SampledFrom([]permissions.Answer{permissions.Allow(permissions.Once), permissions.Deny}).Draw(t, "answer")
		if a != permissions.Deny {
			q.State = permissions.Approved
		}
		q.Calls = append(q.Calls, permissions.Call{N: i + 1, Tool: c.Tool, Input: c.Input, Answer: a})
	}
	return q
}

func TestAnotherCallThanApproved(t *testing.T) {
	q := settledAs(permissions.Approved, permissions.Allow(permissions.Once))
	q.Input = json.RawMessage(`{"n":3}`)
	next, err := Next(stands["ack, posed"], Settled{Request: q})
	if err != nil || next.Calls[1].Decision != Skipped || !next.Calls[1].Error {
		t.Errorf("a call runs that is not what was approved: %+v, %v", next.Calls[1], err)
	}
}

func TestAVoidApprovalRunsNothing(t *testing.T) {
	e := Settled{Request: settledAs(permissions.Approved, permissions.Allow(permissions.Once)), Voided: "taken back"}
	next, err := Next(stands["ack, posed"], e)
	if c := next.Calls[1]; err != nil || c.Decision != Skipped || c.Text != "taken back" {
		t.Errorf("it runs all the same: %+v, %v", c, err)
	}
}

// Other questions in between do not reset the count: the third denial of a call is its last.
func TestThreeDenialsEndTheAskingOfACall(t *testing.T) {
	r := Run{}
	settle := func(n int, state permissions.State, answer permissions.Answer) string {
		c := call(n, Asks, Planned)
		c.N = 1
		q := settledAs(state, answer)
		q.Tool, q.Input = c.Tool, c.Input
		r.State, r.Request, r.Calls = WaitAck, "R", []Call{c}
		var err error
		if r, err = Next(r, Settled{Request: q}); err != nil {
			t.Fatal(err)
		}
		return r.Calls[0].Text
	}
	about := func(n int) string { return subject("write_file", call(n, "", "").Input) }
	const what, other = 2, 3
	for range maxDenied - 1 {
		settle(what, permissions.Denied, permissions.Deny)
		settle(other, permissions.Denied, permissions.Deny)
		if r.Denied.spent(about(what)) || r.Denied.spent(about(other)) {
			t.Fatal("it is not asked any more too soon")
		}
	}
	settle(other, permissions.Approved, permissions.Allow(permissions.Once))
	settle(other, permissions.Denied, permissions.Deny)
	if r.Denied.spent(about(other)) {
		t.Error("what was allowed meanwhile is not asked any more")
	}
	if got := settle(what, permissions.Denied, permissions.Deny); !r.Denied.spent(about(what)) ||
		got != "Tool write_file denied by the user. "+enough {
		t.Errorf("after three denials the model reads %q", got)
	}
	over, _ := Next(Run{State: Terminate, Denied: r.Denied}, Finished{})
	if again, _ := Next(over, Begin{}); !again.Denied.spent(about(what)) {
		t.Error("a run that nobody wrote for asks again")
	}
	if again, _ := Next(over, Begin{Person: true}); again.Denied.spent(about(what)) {
		t.Error("it is never asked again, though the person wrote since")
	}
}
