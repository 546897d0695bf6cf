// Package agents declares the side that asks. An agent's server, wherever the agent runs, holds an [Asker] and nothing
// that decides: the types guarantee that whoever asks cannot decide.
//
// A [Resident] is an agent of our own. It receives its person's messages and answers through a [Speaker], which cannot
// decide either.
//
// [github.com/daycared/daycared/agents/mcp] serves agents that speak MCP. [github.com/daycared/daycared/agents/api]
// serves agents that run elsewhere (HTTP on agent.sock).
package agents

import (
	"context"

	"github.com/daycared/daycared/permissions"
)

// Asker asks people a question and waits for the answer.
type Asker interface {
	// Ask returns the settled request. It fills in what the caller leaves open: options, recipients, deadline and id, unless q
	// proposes an id of its own to be found by if the reply is lost.
	//
	// When ctx ends first, Ask returns the current request and ctx's error, and cancels nothing. After a deadline, a q with a Call
	// keeps its place for a short while; asking again with the same Call and the returned ID continues to wait. After a
	// cancellation the call has left. If nobody is asked, the error is a *permissions.Refusal. Ask is safe for concurrent use.
	Ask(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.Request, error)
}

// Requests is what callers do with their own requests. It cannot decide what an agent may do.
type Requests interface {
	// Find returns the caller's request in its current state. Another caller's is refused as unknown.
	Find(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.RequestView, error)
	// Await is Find once the request is settled. When ctx ends first, it returns the current state and a nil error.
	Await(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.RequestView, error)
	// Withdraw cancels the caller's request.
	Withdraw(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.RequestView, error)
	// Reply answers the caller's request with the result of a dialog in its own editor, which showed a question with
	// that digest. It refuses an answer that permits anything, and every answer if the settings forbid them.
	Reply(
		ctx context.Context, caller permissions.Caller, id permissions.ID, a permissions.Answer, shown permissions.Digest,
	) (permissions.RequestView, error)
}

// Approvals lets our own agents ask without waiting: a question is a row, and its outcome is delivered to a [EventHandler]. It
// cannot decide. It is safe for concurrent use.
type Approvals interface {
	// Evaluate returns what q would need now, by policy and grants alone, without storing or asking anything. If q cannot
	// be asked at all (a forbidden tool, everything stopped), the error is a *permissions.Refusal.
	Evaluate(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.Verdict, error)
	// Forbids reports whether a tool never runs for the caller.
	Forbids(caller permissions.Caller, tool string) bool
	// OverRate counts the calls of q, which policy alone allows, and reports whether the caller has used up this minute's for a tool.
	OverRate(caller permissions.Caller, q permissions.Request) bool
	// Held returns the tags that the caller holds now in a session, from the configuration and grants.
	Held(ctx context.Context, caller permissions.Caller, session string) ([]permissions.Tag, error)
	// Submit asks people q and returns the row, settled or not, without waiting. Its Key is required: the same key later
	// finds the same row, in any state. Refusals are those of [Asker]. If a new row waits for people, the records told
	// about it are appended to the audit in the same commit.
	Submit(ctx context.Context, caller permissions.Caller, q permissions.Request, told ...permissions.Record) (permissions.Request, error)
	// Find returns the row that Submit finds for a key, if there is one, and opens none.
	Find(ctx context.Context, caller permissions.Caller, key string) (q permissions.Request, found bool, err error)
	// Read returns the caller's request.
	Read(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.Request, error)
	// Use assigns an approval to the call that acts on it, after checking again that the approval matches the row and
	// that policy and grants allow it now. Repeating the same call changes nothing; another call cannot use an approval
	// for once. In a step, one call counts for all.
	Use(ctx context.Context, caller permissions.Caller, id permissions.ID, call string) (permissions.Request, error)
	// Withdraw cancels the caller's pending request. A settled one stays as it is.
	Withdraw(ctx context.Context, caller permissions.Caller, id permissions.ID, by string) error
	// Tell sends the caller's own person a notice, which asks nothing. If nobody can be told it is refused.
	Tell(ctx context.Context, caller permissions.Caller, about permissions.About, t permissions.CallerMessage) error
	// EndSession ends a session's grants and cancels its requests, whichever of our agents asked. It may be repeated.
	EndSession(ctx context.Context, caller permissions.Caller, session string) error
}

// EventHandler receives the events of what our agents asked, also from the daemon's absence, in commit order and serially.
type EventHandler interface {
	// HandleEvent returns nil once it has stored what it needs of the event; after an error or a crash the event comes
	// again. The event is one of the request r, in its current state, such as REQUEST_SHOWN (its detail "to" is the
	// person) or REQUEST_SETTLED; or without a request ALL_STOPPED, or AGENT_STOPPED, which comes at once, also while another is
	// handled, and never again.
	HandleEvent(ctx context.Context, h permissions.Event, r permissions.Request) error
}

// Resident is one of our own agents, in the chat of the person whom it belongs to. Every method is safe for concurrent use.
type Resident interface {
	// Binding is the agent's person and channel. It never changes, and no two residents have the same name.
	Binding() permissions.Binding
	// Run works until ctx ends; if it returns earlier, it is run again. Other methods may be called before it.
	Run(ctx context.Context, s Speaker) error
	// Receive receives a message, which is already stored. Nil means that the resident has stored or processed it; after
	// an error or a crash the same message, identified by its Key, comes again before any later one.
	Receive(ctx context.Context, m permissions.Message) error
	// Obey executes the person's order within a few seconds. The same order may come twice.
	Obey(ctx context.Context, o permissions.Order) error
	// Activity is what the agent does now. It does not block.
	Activity() permissions.Activity
}

// Speaker lets a resident write to its own person. It cannot decide or speak as another agent. It is safe for concurrent use.
type Speaker interface {
	// Say returns nil once the text is stored; texts are sent in order, also after a restart. A repeated non-empty key
	// changes nothing. A *permissions.Refusal with [permissions.CodeInvalid] means that the text is empty or longer
	// than [permissions.MaxAgentMessage] bytes, one with [permissions.CodeLimit] that the outbox is full.
	Say(ctx context.Context, key, text string) error
	// Working shows the person whether the resident works. It does not block.
	Working(on bool)
}
