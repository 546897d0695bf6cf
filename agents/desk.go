package agents

import (
	"context"

	"github.com/daycared/daycared/permissions"
)

// Desk is where agents of our own ask without waiting: what they ask is a row, and what becomes of it is told to a
// [Witness]. It cannot decide. It is safe for concurrent use.
type Desk interface {
	// Judge tells, by policy and grants alone, what q would need just now: nothing is stored and nobody is asked. What
	// could not be asked at all, forbidden tools and all that is stopped among it, is a *permissions.Refusal.
	Judge(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.Verdict, error)
	// Held are the tags that the caller holds just now in a session: by the configuration, and by grants.
	Held(ctx context.Context, caller permissions.Caller, session string) ([]permissions.Tag, error)
	// Pose puts q to people and returns the row, settled or not, without waiting. Its Key is required: the same key again
	// finds the same row, whatever has become of it. Refusals are those of [Asker].
	Pose(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.Request, error)
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
