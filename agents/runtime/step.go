package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Event is an input of the state machine. The types below are all of them.
type Event interface{ event() }

type (
	// Begin begins a run; Person says that the person wrote.
	Begin struct{ Person bool }
	// Replied is the model's reply.
	Replied struct {
		Words string
		Calls []Call // as the model wrote them; Next sets N
	}
	// Broke ends the run because the model cannot or must not be called.
	Broke struct{ Reason string }
	// Judged holds the verdict on each call, in order.
	Judged struct{ Calls []Verdict }
	// Submitted names the request that is now pending.
	Submitted struct{ Request permissions.ID }
	// Refused says that the request was refused; Text is for the model.
	Refused struct{ Text string }
	// Settled is the settled request. Ends says that a denial or timeout ends the run.
	Settled struct {
		Request permissions.Request
		Ends    bool
		Voided  string // if not empty, why the approval must not be used
	}
	// Began says that a call starts to run.
	Began struct{ N int }
	// Asked says that a call which has begun waits for a person. With Shows, it is done and the person reviews its result.
	Asked struct {
		N     int
		Shows bool
		Text  string
		Error bool
		Look  string            // what the person reviews
		Needs []permissions.Tag // the requested tags that are not held
	}
	// Ran is the end of a call. Denied says that a person denied its request; Tags were granted to it.
	Ran struct {
		N      int
		Text   string
		Error  bool
		Denied bool
		About  string // the subject of the denial
		Tags   []permissions.Tag
		Stops  string // if not empty, ends the run for this reason
	}
	// Resumed says that the daemon was restarted.
	Resumed struct{}
	// Observed says that the results are in the transcript.
	Observed struct{}
	// Committed ends the step.
	Committed struct{}
	// Stopped ends the run, whatever its state.
	Stopped struct{ Reason string }
	// Finished is recorded once all end-of-run notifications are sent.
	Finished struct{}
)

// Verdict is the decision about one call.
type Verdict struct {
	Decision CallDecision
	Input    json.RawMessage // canonical; empty: unchanged
	Plan     tools.Plan
	Held     []permissions.Tag // tags that the plan needed and the session held
	Text     string            // of a Skipped one
}

func (Begin) event()     {}
func (Replied) event()   {}
func (Broke) event()     {}
func (Judged) event()    {}
func (Submitted) event() {}
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

// ErrStep is returned by [Next] for an event that cannot occur in a state; the run is unchanged.
var ErrStep = errors.New("no such step")

const maxSteps = 200

// Next is the transition function: it applies an event to a run. It is pure and total.
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
		next.terminate(agents.Failed, e.Reason)
	case Judged:
		ok = next.judged(e)
	case Submitted:
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
		next.terminate(agents.Interrupted, e.Reason)
	case Finished:
		ok = r.State == Terminate
		next = Run{
			N: r.N, Step: r.Step, Given: r.Given, Where: r.Where, Handed: r.Handed, Outcome: r.Outcome, Reason: r.Reason,
			Denied: r.Denied, Known: r.Known,
		}
	}
	if !ok {
		return r, fmt.Errorf("%w: %T in state %q", ErrStep, e, r.State)
	}
	return next, nil
}

// begin begins a run. If the person wrote, denials are forgotten.
func (r *Run) begin(e Begin) bool {
	if r.State != Idle {
		return false
	}
	denied := r.Denied
	if e.Person {
		denied = nil
	}
	*r = Run{N: r.N + 1, Step: r.Step, Given: r.Given, Where: r.Where, Handed: r.Handed, State: Plan, Denied: denied, Known: r.Known}
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
		c.Decision, c.Plan, c.Held = v.Decision, v.Plan, v.Held
		if len(v.Input) > 0 {
			c.Input = v.Input
		}
		if v.Decision == Skipped {
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

// goOn continues with the calls that may run, or ends the step.
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
			if c := &r.Calls[i]; c.Decision == Asks {
				c.skip(e.Text, true)
			}
		}
		r.goOn()
		return true
	case r.State == Execute && r.Request == "" && r.asking() > 0:
		c := &r.Calls[r.asking()-1]
		if r.Shows { // the call is done; a failed review ends nothing
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

func (c *Call) skip(text string, isError bool) { c.Decision, c.Text, c.Error = Skipped, text, isError }

// settled applies the settled request of the step. A request of an asking call is applied by [Ran] instead.
func (r *Run) settled(e Settled) bool {
	q := e.Request
	if r.State != WaitAck || r.Request == "" || q.ID != r.Request || q.State == permissions.Pending {
		return false
	}
	denied := false
	for i, answer := range r.answers(q) {
		if c := &r.Calls[i]; c.Decision == Asks {
			r.answer(c, q, answer, e.Voided)
			denied = denied || c.Denied
		}
	}
	switch {
	case e.Ends && denied:
		r.terminate(agents.Interrupted, ReasonDenied)
	case e.Ends && q.State == permissions.Expired:
		r.terminate(agents.Interrupted, ReasonTimeout)
	default:
		r.goOn()
	}
	return true
}

// answers matches the decisions of q to the run's calls, in their order.
func (r Run) answers(q permissions.Request) []permissions.Call {
	all, given := make([]permissions.Call, len(r.Calls)), q.ToolCalls()
	for i, c := range r.Calls {
		if c.Decision == Asks && len(given) > 0 {
			all[i], given = given[0], given[1:]
		}
	}
	return all
}

func (c Call) is(asked permissions.Call) bool {
	return asked.Tool == c.Tool && string(asked.Input) == string(c.Input)
}

// answer decides one call. It runs only if its own entry in the request was approved and is identical to it.
func (r *Run) answer(c *Call, q permissions.Request, answer permissions.Call, voided string) {
	alone := q.ForCall(answer)
	told := permissions.Result(alone)
	switch {
	case !c.is(answer):
		c.skip(anotherCall, true)
	case alone.State == permissions.Approved && voided != "":
		c.skip(voided, true)
	case alone.State == permissions.Approved && q.State == permissions.Denied:
		c.skip(told.Text+" It is not run: another call of the step was denied.", true)
	case alone.State == permissions.Approved && q.VoidAt.IsZero():
		c.Decision, c.Request = Runs, q.ID
		r.Denied = r.Denied.without(subject(c.Tool, c.Input))
	case alone.State == permissions.Denied:
		c.skip(told.Text, told.Error)
		c.Denied = true
		r.count(c, subject(c.Tool, c.Input))
	default:
		c.skip(told.Text, told.Error)
	}
}

// count counts a denial, and adds a note to the call's text when the limit is reached.
func (r *Run) count(c *Call, what string) {
	r.Denied = r.Denied.more(what)
	if r.Denied.spent(what) {
		c.Text += " " + enough
	}
}

// enough is added to the last denial that is counted.
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
			r.terminate(agents.Interrupted, e.Stops)
		}
	}
	return ok
}

// resume marks calls that were running when the daemon ended as interrupted.
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
		r.terminate(agents.Done, "")
	case r.Steps >= maxSteps:
		r.terminate(agents.Interrupted, ReasonSteps)
	default:
		r.State, r.Calls, r.Words = Plan, nil, ""
	}
}

// terminate ends the run. Each call without a result gets one, because models require a result for every call.
func (r *Run) terminate(outcome string, reason string) {
	for i := range r.Calls {
		c := &r.Calls[i]
		switch {
		case c.Phase == Begun:
			c.Phase, c.Text, c.Error = Ended, unknownStop, true
		case c.Phase == Asking && r.Shows:
			c.Phase = Ended
		case c.Phase == Asking || (c.Decision != Skipped && c.Phase != Ended):
			c.Phase, c.Text, c.Error = Ended, notRun, true
		}
	}
	r.State, r.Outcome, r.Reason, r.Request, r.Shows, r.Tags = Terminate, outcome, reason, "", false, nil
}

const unknownStop = "This was stopped while it ran. Its outcome is unknown."

// State is the state of a run.
type State string

// The states. A session without a run is Idle.
const (
	Idle          State = ""
	Plan          State = "PLAN"
	ValidateCalls State = "VALIDATE_CALLS"
	WaitAck       State = "WAIT_ACK"
	Execute       State = "EXECUTE"
	Observe       State = "OBSERVE"
	Commit        State = "COMMIT"
	Terminate     State = "TERMINATE"
)

// The reasons of runs that did not end by themselves.
const (
	ReasonDenied      = agents.ReasonDenied
	ReasonTimeout     = agents.ReasonTimeout
	ReasonStopped     = agents.ReasonStopped
	ReasonInterrupted = "user_interrupted"
	ReasonModel       = "model"
	ReasonSteps       = "too_many_steps"
	ReasonChanged     = "changed" // the session's row was, without the daemon
)

// CallDecision is the decision about a call.
type CallDecision string

// The decisions; empty for a call that was not judged yet.
const (
	Runs    CallDecision = "runs"   // no approval needed, or approved
	Asks    CallDecision = "asks"   // people are asked
	Skipped CallDecision = "spared" // not run; its Text says why
)

// Phase is the progress of a call that runs.
type Phase string

// The phases.
const (
	Planned Phase = ""
	Begun   Phase = "begun"
	Asking  Phase = "asking" // waits for a person: the tool asks, or its result is reviewed
	Ended   Phase = "ended"
)

// Call is one tool call of a step.
type Call struct {
	N        int               `json:"n"` // from 1
	ID       string            `json:"id"`
	Tool     string            `json:"tool"`
	Input    json.RawMessage   `json:"input"` // canonical
	Plan     tools.Plan        `json:"plan"`
	Decision CallDecision      `json:"fate,omitempty"`
	Phase    Phase             `json:"phase,omitempty"`
	Request  permissions.ID    `json:"request,omitempty"` // the approving request
	Held     []permissions.Tag `json:"held,omitempty"`    // needed tags that were held when it was judged
	Denied   bool              `json:"denied,omitempty"`  // by a person
	Text     string            `json:"text,omitempty"`    // for the model
	Error    bool              `json:"error,omitempty"`
	Look     string            `json:"look,omitempty"` // what a person reviews before the model sees the result
}

// Run is the stored state of a session's run. It is a value.
type Run struct {
	N       int               `json:"n,omitempty"`     // number of the run in its session
	Step    int               `json:"step,omitempty"`  // number of the step in its session; names its executions
	Steps   int               `json:"steps,omitempty"` // of this run
	Given   []permissions.Tag `json:"given,omitempty"` // by the session that started this one, or a schedule; see [turn.inheritedTags]
	Where   string            `json:"where,omitempty"` // the workspace of the latest run; see [agent.where]
	State   State             `json:"state,omitempty"`
	Calls   []Call            `json:"calls,omitempty"`
	Last    bool              `json:"last,omitempty"`    // the model called no tool: the run's last step
	Words   string            `json:"words,omitempty"`   // the model's text in this step
	Request permissions.ID    `json:"request,omitempty"` // the pending request: of the step in WAIT_ACK, of the asking call in EXECUTE
	Shows   bool              `json:"shows,omitempty"`   // the asking call has run; a person reviews its result
	Tags    []permissions.Tag `json:"tags,omitempty"`    // allowed once: held until the run ends
	Handed  []permissions.ID  `json:"handed,omitempty"`  // the approvals that were handed to the session; see [turn.applyHandover]
	Outcome string            `json:"outcome,omitempty"` // agents.Done …
	Reason  string            `json:"reason,omitempty"`
	Chain   int               `json:"chain,omitempty"` // see [agents.Post]

	Denied Denials         `json:"denials,omitempty"`
	Known  models.Measured `json:"known,omitzero"` // the measured size of the transcript
}

// Denials counts how often each subject, by its digest, was denied since it was last allowed.
type Denials map[string]int

// maxDenied is how many denials of the same subject end asking for it, until the person writes.
const maxDenied = 3

func subject(tool string, input json.RawMessage) string { return tool + " " + string(input) }

func subjectKey(what string) string {
	sum := sha256.Sum256([]byte(what))
	return hex.EncodeToString(sum[:16])
}

// spent reports whether a subject was denied too often.
func (d Denials) spent(what string) bool { return d[subjectKey(what)] >= maxDenied }

func (d Denials) more(what string) Denials {
	next := maps.Clone(d)
	if next == nil {
		next = Denials{}
	}
	next[subjectKey(what)]++
	return next
}

// without forgets the denials of a subject that was allowed.
func (d Denials) without(what string) Denials {
	next := maps.Clone(d)
	delete(next, subjectKey(what))
	return next
}

// asking is the number of the call that waits for a person; 0 for none.
func (r Run) asking() int {
	for _, c := range r.Calls {
		if c.Phase == Asking {
			return c.N
		}
	}
	return 0
}

func (r Run) next() (c Call, ok bool) {
	at := slices.IndexFunc(r.Calls, func(c Call) bool { return c.Decision == Runs && c.Phase != Ended })
	if at < 0 {
		return Call{}, false
	}
	return r.Calls[at], true
}

func (r Run) asked() []Call {
	return slices.DeleteFunc(slices.Clone(r.Calls), func(c Call) bool { return c.Decision != Asks })
}

// open reports whether the model made calls in this step that have no results yet.
func (r Run) open() bool {
	return len(r.Calls) > 0 && slices.Contains([]State{ValidateCalls, WaitAck, Execute, Observe}, r.State)
}

func (r Run) results() models.Message {
	return models.Message{Role: models.Results, Results: wire.Map(r.Calls, func(c Call) models.Result {
		return models.Result{ID: c.ID, Text: c.Text, Error: c.Error}
	})}
}

// unknown is the result of a call that was running when the daemon ended.
const unknown = "This was interrupted: the daemon ended while it ran. Its outcome is unknown, and it was not run again. " +
	"Look at what it did before you go on."

const notRun = "This was not run: the run was stopped before it."
