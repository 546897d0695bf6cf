package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

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

// CallFate is the decision about a call.
type CallFate string

// The fates; empty for a call that was not judged yet.
const (
	Runs   CallFate = "runs"   // no approval needed, or approved
	Asks   CallFate = "asks"   // people are asked
	Spared CallFate = "spared" // not run; its Text says why
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
	N       int               `json:"n"` // from 1
	ID      string            `json:"id"`
	Tool    string            `json:"tool"`
	Input   json.RawMessage   `json:"input"` // canonical
	Plan    tools.Plan        `json:"plan"`
	Fate    CallFate          `json:"fate,omitempty"`
	Phase   Phase             `json:"phase,omitempty"`
	Request permissions.ID    `json:"request,omitempty"` // the approving request
	Held    []permissions.Tag `json:"held,omitempty"`    // needed tags that were held when it was judged
	Denied  bool              `json:"denied,omitempty"`  // by a person
	Text    string            `json:"text,omitempty"`    // for the model
	Error   bool              `json:"error,omitempty"`
	Look    string            `json:"look,omitempty"` // what a person reviews before the model sees the result
}

// Run is the stored state of a session's run. It is a value.
type Run struct {
	N       int               `json:"n,omitempty"`     // number of the run in its session
	Step    int               `json:"step,omitempty"`  // number of the step in its session; names its executions
	Steps   int               `json:"steps,omitempty"` // of this run
	Given   []permissions.Tag `json:"given,omitempty"` // by the session that started this one, or for a scheduled run; see [turn.given]
	Where   string            `json:"where,omitempty"` // the workspace of the latest run; see [agent.where]
	State   State             `json:"state,omitempty"`
	Calls   []Call            `json:"calls,omitempty"`
	Last    bool              `json:"last,omitempty"`    // the model called no tool: the run's last step
	Words   string            `json:"words,omitempty"`   // the model's text in this step
	Request permissions.ID    `json:"request,omitempty"` // the pending request: of the step in WAIT_ACK, of the asking call in EXECUTE
	Shows   bool              `json:"shows,omitempty"`   // the asking call has run; a person reviews its result
	Tags    []permissions.Tag `json:"tags,omitempty"`    // allowed once: held until the run ends
	Handed  []permissions.ID  `json:"handed,omitempty"`  // the approvals that were handed to the session; see [turn.unwrap]
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

// subject identifies a call in [Denials].
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

// Waits reports whether the run only waits for a person's answer.
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

func (r Run) next() (c Call, ok bool) {
	at := slices.IndexFunc(r.Calls, func(c Call) bool { return c.Fate == Runs && c.Phase != Ended })
	if at < 0 {
		return Call{}, false
	}
	return r.Calls[at], true
}

// asked returns the calls that need approval.
func (r Run) asked() []Call {
	return slices.DeleteFunc(slices.Clone(r.Calls), func(c Call) bool { return c.Fate != Asks })
}

// open reports whether the model made calls in this step that have no results yet.
func (r Run) open() bool {
	return len(r.Calls) > 0 && slices.Contains([]State{ValidateCalls, WaitAck, Execute, Observe}, r.State)
}

func (r Run) results() models.Message {
	return models.Message{Role: models.Results, Results: wire.Each(r.Calls, func(c Call) models.Result {
		return models.Result{ID: c.ID, Text: c.Text, Error: c.Error}
	})}
}

// unknown is the result of a call that was running when the daemon ended.
const unknown = "This was interrupted: the daemon ended while it ran. Its outcome is unknown, and it was not run again. " +
	"Look at what it did before you go on."

const notRun = "This was not run: the run was stopped before it."
