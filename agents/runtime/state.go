package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// State is where a run is.
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

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	Done        Outcome = "done"
	Interrupted Outcome = "interrupted"
	Failed      Outcome = "failed"
)

// The reasons of runs that did not end by themselves.
const (
	ReasonDenied      = agents.ReasonDenied
	ReasonTimeout     = agents.ReasonTimeout
	ReasonStopped     = agents.ReasonStopped
	ReasonInterrupted = "user_interrupted"
	ReasonModel       = "model"
	ReasonSteps       = "too_many_steps"
)

// CallFate is what is to become of a call.
type CallFate string

// The fates. A call that nobody has judged has none.
const (
	Runs   CallFate = "runs"   // nobody has to be asked, or somebody has allowed it
	Asks   CallFate = "asks"   // people are asked
	Spared CallFate = "spared" // it does not run: its Text says why
)

// Phase is how far a call is that runs.
type Phase string

// The phases.
const (
	Planned Phase = ""
	Begun   Phase = "begun"
	Asking  Phase = "asking" // it waits for a person: a tool that asks, or one that shows what it did
	Ended   Phase = "ended"
)

// Call is one call of a step.
type Call struct {
	N       int               `json:"n"` // from 1
	ID      string            `json:"id"`
	Tool    string            `json:"tool"`
	Input   json.RawMessage   `json:"input"` // canonical
	Plan    tools.Plan        `json:"plan"`
	Fate    CallFate          `json:"fate,omitempty"`
	Phase   Phase             `json:"phase,omitempty"`
	Request permissions.ID    `json:"request,omitempty"` // that allowed it
	Held    []permissions.Tag `json:"held,omitempty"`    // of what it needs: what was held when it was judged
	Denied  bool              `json:"denied,omitempty"`  // by a person
	Text    string            `json:"text,omitempty"`    // what the model is told
	Error   bool              `json:"error,omitempty"`
	Look    string            `json:"look,omitempty"` // what a person looks at before the model is told
}

// Run is where the run of a session stands: what is stored between two steps. It is a value.
type Run struct {
	N       int               `json:"n,omitempty"`     // counts the runs of the session
	Step    int               `json:"step,omitempty"`  // counts the steps of the session; names its executions
	Steps   int               `json:"steps,omitempty"` // of this run
	Given   []permissions.Tag `json:"given,omitempty"` // by whoever started the session; see [turn.given]
	Where   string            `json:"where,omitempty"` // the workspace of the newest run, and which folder that was
	State   State             `json:"state,omitempty"`
	Calls   []Call            `json:"calls,omitempty"`
	Last    bool              `json:"last,omitempty"`    // the model called nothing: this step is the run's last
	Words   string            `json:"words,omitempty"`   // what it said in this step
	Request permissions.ID    `json:"request,omitempty"` // that it waits for: of the step in WAIT_ACK, of the call that asks in EXECUTE
	Shows   bool              `json:"shows,omitempty"`   // the call that asks is done: a person looks at what it brought
	Tags    []permissions.Tag `json:"tags,omitempty"`    // allowed once: held until the run ends
	Outcome Outcome           `json:"outcome,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Chain   int               `json:"chain,omitempty"` // see [agents.Post]

	Denied Denials         `json:"denials,omitempty"`
	Known  models.Measured `json:"known,omitzero"` // of the size of the transcript
}

// Denials counts how often each subject was denied since it was last allowed, by a digest of it.
type Denials map[string]int

// mostDenied is how often the same may be denied; then it is not asked again until the person writes.
const mostDenied = 3

// subject is what a call is about, for comparing it with what was denied before.
func subject(tool string, input json.RawMessage) string { return tool + " " + string(input) }

func subjectKey(what string) string {
	sum := sha256.Sum256([]byte(what))
	return hex.EncodeToString(sum[:16])
}

// spent reports whether a call asks for what was denied too often.
func (d Denials) spent(what string) bool { return d[subjectKey(what)] >= mostDenied }

// more counts one denial.
func (d Denials) more(what string) Denials {
	next := maps.Clone(d)
	if next == nil {
		next = Denials{}
	}
	next[subjectKey(what)]++
	return next
}

// without forgets the denials of what was allowed since.
func (d Denials) without(what string) Denials {
	next := maps.Clone(d)
	delete(next, subjectKey(what))
	return next
}

// Waits reports whether the run needs nothing but a person's answer to a request that was put.
func (r Run) Waits() bool { return r.Request != "" }

// asking is the number of the call that waits for a person; 0 for none.
func (r Run) asking() int {
	for _, c := range r.Calls {
		if c.Phase == Asking {
			return c.N
		}
	}
	return 0
}

// next is the call that is to run next; ok is false when there is none.
func (r Run) next() (c Call, ok bool) {
	at := slices.IndexFunc(r.Calls, func(c Call) bool { return c.Fate == Runs && c.Phase != Ended })
	if at < 0 {
		return Call{}, false
	}
	return r.Calls[at], true
}

// asked are the calls that people are asked about.
func (r Run) asked() (calls []Call) {
	for _, c := range r.Calls {
		if c.Fate == Asks {
			calls = append(calls, c)
		}
	}
	return calls
}

// open reports whether the model has called something in this step of which it has no results yet.
func (r Run) open() bool {
	return len(r.Calls) > 0 && slices.Contains([]State{ValidateCalls, WaitAck, Execute, Observe}, r.State)
}

// results are what the model is told of its calls.
func (r Run) results() models.Message {
	m := models.Message{Role: models.Results}
	for _, c := range r.Calls {
		m.Results = append(m.Results, models.Result{ID: c.ID, Text: c.Text, Error: c.Error})
	}
	return m
}

// unknown is what is told of a call that was begun when the daemon ended.
const unknown = "This was interrupted: the daemon ended while it ran. Its outcome is unknown, and it was not run again. " +
	"Look at what it did before you go on."

const notRun = "This was not run: the run was stopped before it."

// names are the tools of calls, for people.
func names(calls []Call) string {
	return strings.Join(slices.Compact(wire.Each(calls, func(c Call) string { return c.Tool })), ", ")
}
