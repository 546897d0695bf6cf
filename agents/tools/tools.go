// Package tools is what agents of ours can do in the world: files, commands, the network. A tool decides nothing: whoever
// runs it has asked. What it can reach is held by the kernel to what its [Place] says, in a process of its own
// (agents/sandbox).
package tools

import (
	"context"
	"encoding/json"
	"net/netip"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/permissions"
)

// Place is where a tool is used: what is within its reach for this one call.
type Place struct {
	Agent        string
	Workspace    string            // absolute; relative paths start here. Empty: the agent has none
	Tags         []permissions.Tag // what is held for this call; the workspace may be read, and written with @workspace
	AllowPrivate []netip.Prefix    // that fetch_url may reach, though they are private
}

// Plan is what a call would do, as people are shown it. Nothing has been done yet.
type Plan struct {
	Needs        []permissions.Tag // what has to be held for it; people are asked for what is not
	AffectedPath string            // the one file or folder that it changes or reads; empty: none
	Details      string            // what people are shown besides the input, as a diff; may be empty
	// Basis is what the plan was made from, as a file's content. Run refuses when that is another by then: what was shown
	// is what runs. It is the tool's own and kept with the call.
	Basis string
}

// Outcome is what a call did.
type Outcome struct {
	Text      string // for the model, bounded
	Error     bool
	Exit      *int              // of a command
	Artifacts []agents.Artifact // the whole of what was bounded; Step and Call are not set here
	Pause     string            // not empty: it is to be shown to the person, with this, before the model is told
}

// Tool is one tool. Implementations are safe for concurrent use and keep nothing between calls.
type Tool interface {
	// Spec is the tool as models are told of it.
	Spec() models.Tool
	// Plan looks at an input and says what the call would do, doing nothing. Within the place's tags it may look at files.
	// The error is for the model: what is wrong with the input and what would be right.
	Plan(ctx context.Context, p Place, input json.RawMessage) (Plan, error)
	// Run does it, within the place's tags. What fails is an Outcome with Error set; it never panics, and it ends soon
	// after ctx does, with all that it started.
	Run(ctx context.Context, p Place, input json.RawMessage, plan Plan) Outcome
}
