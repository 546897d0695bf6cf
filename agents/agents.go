// Package agents is who asks. An agent's door, wherever the agent runs, holds an [Asker] and nothing that decides: that
// the asker never decides is a fact of the types.
//
// A [Resident] is an agent of our own. It hears its person and speaks to them through a [Speaker], which decides nothing
// either.
//
// [github.com/daycared/daycared/agents/mcp] is the door of agents that speak MCP, and
// [github.com/daycared/daycared/agents/api] the door of agents that run elsewhere (HTTP on agent.sock) and the
// client that `daycared ask` and the demo's agent use.
package agents

import (
	"context"

	"github.com/daycared/daycared/permissions"
)

// Asker puts a question to people and waits for the answer.
type Asker interface {
	// Ask returns the settled request. It fills in what the door leaves open (options, who is asked, deadline, and the
	// id, unless q proposes one of its own making, by which it is found again when the first reply was lost).
	//
	// When ctx ends first, Ask returns the request as it stands and the error of ctx, and nothing is cancelled: after
	// a deadline, a q that carries a Call keeps its place for a short while and goes on waiting when asked again with
	// the same Call and the ID it was told; after a cancellation the call has left. A question that is not put to
	// anybody is a *permissions.Refusal. Ask is safe for concurrent use.
	Ask(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.Request, error)
}
