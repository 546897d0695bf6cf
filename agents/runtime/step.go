package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/permissions"
)

// Event is what happens to a run. The events below are all there are.
type Event interface{ event() }

type (
	// Begin begins a run: a person wrote, unless something else was told.
	Begin struct{ Person bool }
	// Replied is what the model answered.
	Replied struct {
		Words string
		Calls []Call // as it wrote them; N is set here
	}
	// Broke says that the model cannot be asked, or must not any more, and why.
	Broke struct{ Reason string }
	// Judged is what is to become of each call, in their order.
	Judged struct{ Calls []Verdict }
	// Posed says which request is waited for now.
	Posed struct{ Request permissions.ID }
	// Refused says that nobody was asked, and what the model is told instead.
	Refused struct{ Text string }
	// Settled is the request that was waited for, settled. Ends says that a denial, or silence, ends the run.
	Settled struct {
		Request permissions.Request
		Ends    bool
		Voided  string // not empty: the approval may not be used, and why
	}
	// Began says that a call begins to run.
	Began struct{ N int }
	// Asked says that a call which has begun waits for a person. With Shows it is done, with this for the model: a person
	// looks at it.
	Asked struct {
		N     int
		Shows bool
		Text  string
		Error bool
		Look  string            // what the person looks at
		Needs []permissions.Tag // of a permission that is asked for: what is not held
	}
	// Ran is how a call ended. Denied says that a person said no to what it asked, and Tags what was granted to it.
	Ran struct {
		N      int
		Text   string
		Error  bool
		Denied bool
		About  string // what a denial was about
		Tags   []permissions.Tag
		Stops  string // not empty: the run ends with it, for this reason
	}
	// Resumed says that the daemon was started anew.
	Resumed struct{}
	// Observed says that the results are in the transcript.
	Observed struct{}
	// Committed says that the step is done with.
	Committed struct{}
	// Stopped ends the run, whatever it does.
	Stopped struct{ Reason string }
	// Finished says that everybody who is told of a run's end was.
	Finished struct{}
)

// Verdict is what is to become of one call.
type Verdict struct {
	Fate  CallFate
	Input json.RawMessage // canonical; empty: as it was
	Plan  tools.Plan
	Held  []permissions.Tag // of what the plan needed
	Text  string            // of a Spared one
}

func (Begin) event()     {}
func (Replied) event()   {}
func (Broke) event()     {}
func (Judged) event()    {}
func (Posed) event()     {}
func (Refused) event()   {}
func (Settled) event()   {}
func (Began) event()     {}
func (Asked) event()     {}
func (Ran) event()       {}
func (Resumed) event()   {}
func (Observed) event()  {}
func (Committed) event() {}
func (Stopped) event()   {}
func (Finished) event()  {}

// ErrStep is what [Next] says of an event that cannot happen in a state. Nothing has changed then.
var ErrStep = errors.New("no such step")

// maxSteps is how many steps a run may have.
const maxSteps = 200

// Next is the state machine: what an event makes of a run. It is pure and total.
func Next(r Run, e Event) (Run, error) {
	next := r
	next.Calls = slices.Clone(r.Calls)
	ok := false
	switch e := e.(type) {
	case Begin:
		ok = next.begin(e)
	case Replied:
		ok = next.replied(e)
	case Broke:
		ok = r.State == Plan
		next.terminate(Failed, e.Reason)
	case Judged:
		ok = next.judged(e)
	case Posed:
		ok = r.Request == "" && e.Request != "" && (r.State == WaitAck || r.State == Execute && r.asking() > 0)
		next.Request = e.Request
	case Refused:
		ok = next.refused(e)
	case Settled:
		ok = next.settled(e)
	case Began, Asked, Ran:
		ok = r.State == Execute && next.execute(e)
	case Resumed:
		ok = true
		next.resume()
	case Observed:
		ok = r.State == Observe
		next.State = Commit
	case Committed:
		ok = r.State == Commit
		next.committed()
	case Stopped:
		ok = r.State != Idle && r.State != Terminate
		next.terminate(Interrupted, e.Reason)
	case Finished:
		ok = r.State == Terminate
		next = Run{N: r.N, Step: r.Step, Given: r.Given, Where: r.Where, Outcome: r.Outcome, Reason: r.Reason, Denied: r.Denied, Known: r.Known}
	}
	if !ok {
		return r, fmt.Errorf("%w: %T in state %q", ErrStep, e, r.State)
	}
	return next, nil
}

// begin begins a run. What was denied too often may be asked again when the person has written since.
func (r *Run) begin(e Begin) bool {
	if r.State != Idle {
		return false
	}
	denied := r.Denied
	if e.Person {
		denied = nil
	}
	*r = Run{N: r.N + 1, Step: r.Step, Given: r.Given, Where: r.Where, State: Plan, Denied: denied, Known: r.Known}
	return true
}

func (r *Run) replied(e Replied) bool {
	if r.State != Plan {
		return false
	}
	r.Step++
	r.Steps++
	r.State, r.Words, r.Last = ValidateCalls, e.Words, len(e.Calls) == 0
	r.Calls = slices.Clone(e.Calls)
	for i := range r.Calls {
		r.Calls[i].N = i + 1
	}
	return true
}

func (r *Run) judged(e Judged) bool {
	if r.State != ValidateCalls || len(e.Calls) != len(r.Calls) {
		return false
	}
	for i, v := range e.Calls {
		c := &r.Calls[i]
		c.Fate, c.Plan, c.Held = v.Fate, v.Plan, v.Held
		if len(v.Input) > 0 {
			c.Input = v.Input
		}
		if v.Fate == Spared {
			c.Text, c.Error = v.Text, true
		}
	}
	switch {
	case r.Last:
		r.State = Commit
	case len(r.asked()) > 0:
		r.State = WaitAck
	default:
		r.goOn()
	}
	return true
}

// goOn has what may run run, or ends the step.
func (r *Run) goOn() {
	r.State, r.Request, r.Shows = Execute, "", false
	if _, more := r.next(); !more {
		r.State = Observe
	}
}

func (r *Run) refused(e Refused) bool {
	switch {
	case r.State == WaitAck && r.Request == "":
		for i := range r.Calls {
			if c := &r.Calls[i]; c.Fate == Asks {
				c.spare(e.Text, true)
			}
		}
		r.goOn()
		return true
	case r.State == Execute && r.Request == "" && r.asking() > 0:
		c := &r.Calls[r.asking()-1]
		if r.Shows { // what it did is done; that nobody could look at it ends nothing
			c.Text += "\n" + e.Text
		} else {
			c.Text, c.Error = e.Text, true
		}
		c.Phase = Ended
		r.goOn()
		return true
	}
	return false
}

// spare has a call not run, and says why.
func (c *Call) spare(text string, isError bool) { c.Fate, c.Text, c.Error = Spared, text, isError }

// settled takes what became of the request of the step. That of a call which asks ends with [Ran].
func (r *Run) settled(e Settled) bool {
	q := e.Request
	if r.State != WaitAck || r.Request == "" || q.ID != r.Request || q.State == permissions.Pending {
		return false
	}
	denied := false
	for i, answer := range r.answers(q) {
		if c := &r.Calls[i]; c.Fate == Asks {
			r.answer(c, q, answer, e.Voided)
			denied = denied || c.Denied
		}
	}
	switch {
	case e.Ends && denied:
		r.terminate(Interrupted, ReasonDenied)
	case e.Ends && q.State == permissions.Expired:
		r.terminate(Interrupted, ReasonTimeout)
	default:
		r.goOn()
	}
	return true
}

// answers are what was answered to each call that q asks about, in the order of the run's calls.
func (r Run) answers(q permissions.Request) []permissions.Call {
	all, given := make([]permissions.Call, len(r.Calls)), q.ToolCalls()
	for i, c := range r.Calls {
		if c.Fate == Asks && len(given) > 0 {
			all[i], given = given[0], given[1:]
		}
	}
	return all
}

// is reports whether a call of a request is that very call.
func (c Call) is(asked permissions.Call) bool {
	return asked.Tool == c.Tool && string(asked.Input) == string(c.Input)
}

// answer has one call run or not. It runs only where its own call in the request was allowed, and is that very call.
func (r *Run) answer(c *Call, q permissions.Request, answer permissions.Call, voided string) {
	alone := q.Only(answer)
	told := permissions.Result(alone)
	switch {
	case !c.is(answer):
		c.spare("This was not run: what was approved is another call.", true)
	case alone.State == permissions.Approved && voided != "":
		c.spare(voided, true)
	case alone.State == permissions.Approved && q.State == permissions.Denied:
		c.spare(told.Text+" It is not run: another call of the step was denied.", true)
	case alone.State == permissions.Approved && q.VoidAt.IsZero():
		c.Fate, c.Request = Runs, q.ID
		r.Denied = r.Denied.without(subject(c.Tool, c.Input))
	case alone.State == permissions.Denied:
		c.spare(told.Text, told.Error)
		c.Denied = true
		r.count(c, subject(c.Tool, c.Input))
	default:
		c.spare(told.Text, told.Error)
	}
}

// count counts a denial, and says so where it is one too many.
func (r *Run) count(c *Call, what string) {
	r.Denied = r.Denied.more(what)
	if r.Denied.spent(what) {
		c.Text += " " + enough
	}
}

// enough is what is told of what was denied too often.
const enough = "This was denied three times and is not asked again. Stop, and tell the person what you cannot do."

func (r *Run) execute(e Event) bool {
	c, ok := r.next()
	if !ok {
		return false
	}
	call := &r.Calls[c.N-1]
	switch e := e.(type) {
	case Began:
		ok = e.N == c.N && c.Phase == Planned
		call.Phase = Begun
	case Asked:
		ok = e.N == c.N && c.Phase == Begun
		call.Phase, call.Text, call.Error, call.Look = Asking, e.Text, e.Error, e.Look
		call.Plan.Needs = e.Needs
		r.Shows = e.Shows
	case Ran:
		ok = e.N == c.N && (c.Phase == Begun || c.Phase == Asking)
		call.Phase, call.Text, call.Error, call.Denied = Ended, e.Text, e.Error, e.Denied
		r.Tags = append(slices.Clone(r.Tags), e.Tags...)
		if e.Denied {
			r.count(call, e.About)
		}
		r.goOn()
		if e.Stops != "" {
			r.terminate(Interrupted, e.Stops)
		}
	}
	return ok
}

// resume is what a start makes of what was going on: what was begun has ended, nobody knows how.
func (r *Run) resume() {
	if r.State != Execute {
		return
	}
	for i := range r.Calls {
		if c := &r.Calls[i]; c.Phase == Begun {
			c.Phase, c.Text, c.Error = Ended, unknown, true
			r.goOn()
		}
	}
}

func (r *Run) committed() {
	switch {
	case r.Last:
		r.terminate(Done, "")
	case r.Steps >= maxSteps:
		r.terminate(Interrupted, ReasonSteps)
	default:
		r.State, r.Calls, r.Words = Plan, nil, ""
	}
}

// terminate ends the run. Calls without a result get one: the model is told of each, whenever it is asked again.
func (r *Run) terminate(o Outcome, reason string) {
	for i := range r.Calls {
		c := &r.Calls[i]
		switch {
		case c.Phase == Begun:
			c.Phase, c.Text, c.Error = Ended, unknownStop, true
		case c.Phase == Asking && r.Shows:
			c.Phase = Ended
		case c.Phase == Asking || (c.Fate != Spared && c.Phase != Ended):
			c.Phase, c.Text, c.Error = Ended, notRun, true
		}
	}
	r.State, r.Outcome, r.Reason, r.Request, r.Shows, r.Tags = Terminate, o, reason, "", false, nil
}

const unknownStop = "This was stopped while it ran. Its outcome is unknown."
