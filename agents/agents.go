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

// Asked is what callers do about what they asked. It cannot decide what an agent may do.
type Asked interface {
	// Find gives a request of this caller's, as it stands. Another's is refused as unknown.
	Find(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.Standing, error)
	// Await is Find once the request is settled; when ctx ends first, as it stands then, with a nil error.
	Await(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.Standing, error)
	// Withdraw cancels a request of this caller's.
	Withdraw(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.Standing, error)
	// Reply answers a request of this caller's by what the dialog of its own editor brought, which showed what has that
	// digest. What permits anything is refused, and everything where the settings do not allow it.
	Reply(
		ctx context.Context, caller permissions.Caller, id permissions.ID, a permissions.Answer, shown permissions.Digest,
	) (permissions.Standing, error)
}

// Desk is where agents of our own ask without waiting: what they ask is a row, and what becomes of it is told to a
// [Witness]. It cannot decide. It is safe for concurrent use.
type Desk interface {
	// Judge tells, by policy and grants alone, what q would need just now: nothing is stored and nobody is asked. What
	// could not be asked at all, forbidden tools and all that is stopped among it, is a *permissions.Refusal.
	Judge(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.Verdict, error)
	// Forbids reports whether a tool never runs for the caller.
	Forbids(caller permissions.Caller, tool string) bool
	// TooOften counts a call of a tool that policy alone allows, and reports whether the caller has had as many of it in this minute
	// as run unasked.
	TooOften(caller permissions.Caller, tool string) bool
	// Held are the tags that the caller holds just now in a session: by the configuration, and by grants.
	Held(ctx context.Context, caller permissions.Caller, session string) ([]permissions.Tag, error)
	// Pose puts q to people and returns the row, settled or not, without waiting. Its Key is required: the same key again
	// finds the same row, whatever has become of it. Refusals are those of [Asker]. Where a new row waits for people, told goes
	// to the audit in the same commit, about that request.
	Pose(ctx context.Context, caller permissions.Caller, q permissions.Request, told ...permissions.Record) (permissions.Request, error)
	// Read gives a request of the caller's.
	Read(ctx context.Context, caller permissions.Caller, id permissions.ID) (permissions.Request, error)
	// Use hands an approval to the call that acts on it, after looking once more whether it still may: what was approved is
	// what the row says, and policy and grants allow it now. The same call again changes nothing, and no other can use
	// what was allowed once. Of a step, one call stands for all that it uses.
	Use(ctx context.Context, caller permissions.Caller, id permissions.ID, call string) (permissions.Request, error)
	// Withdraw cancels a pending request of the caller's. One that is settled stays as it is.
	Withdraw(ctx context.Context, caller permissions.Caller, id permissions.ID, by string) error
	// EndSession ends a session's grants, and cancels what waits in it, whichever agent of ours asked. It may be repeated.
	EndSession(ctx context.Context, caller permissions.Caller, session string) error
}

// Witness is told, in the order of commits, what becomes of what agents of ours asked, also of what happened while the
// daemon was down. It is called by one goroutine.
type Witness interface {
	// Witness returns nil once it has stored what it needs of it; after an error, or a crash, the same comes again. The
	// happening is REQUEST_SHOWN (with the person in its detail "to"), REQUEST_SETTLED, or another of the request r, as it
	// is now; or ALL_STOPPED, without a request.
	Witness(ctx context.Context, h permissions.Happening, r permissions.Request) error
}

// Resident is an agent of our own: somebody's, in whose chat it hears what that person writes, and speaks. Every method
// is safe for concurrent use.
type Resident interface {
	// Bond says whose it is. It never changes, and no two residents have the same name.
	Bond() permissions.Bond
	// Run works until ctx ends; when it returns before, it is run again. Other methods may be called before.
	Run(ctx context.Context, s Speaker) error
	// Hear takes a message, which has been stored for it. Nil means that the resident has stored it itself, or is done
	// with it; after an error or a crash the same message, known by its Key, comes again, before any later one.
	Hear(ctx context.Context, m permissions.Message) error
	// Obey does what its person orders, at once: it returns within a few seconds. The same order may come twice.
	Obey(ctx context.Context, o permissions.Order) error
	// Activity is what it does just now. It does not wait for anything.
	Activity() permissions.Activity
}

// Speaker is what a resident speaks through, to its own person. It cannot decide, nor speak as another. It is safe for
// concurrent use.
type Speaker interface {
	// Say returns nil once the text is stored; it is sent after what was said before, whatever happens meanwhile. The
	// same key again, unless it is empty, changes nothing. A *permissions.Refusal with [permissions.CodeInvalid] means
	// that the text is empty or has more than [permissions.MaxUtterance] bytes, one with [permissions.CodeLimit] that so
	// much is still to be sent that it was not taken.
	Say(ctx context.Context, key, text string) error
	// Working shows the person that the resident works, or no longer. It does not wait for anything.
	Working(on bool)
}
