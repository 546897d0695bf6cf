package engine

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

// ResidentStore keeps what agents of ours ask and do, as far as the engine has to do with it.
type ResidentStore interface {
	// Keyed finds the request of a key of this caller's that is still in use, settled or not. The keys of agents of ours
	// are, for as long as there are rows.
	Keyed(ctx context.Context, caller, key string) (r permissions.Request, found bool, err error)
	// PendingOfSession are the pending requests of a session of an agent of ours, whichever of them asked.
	PendingOfSession(ctx context.Context, session string) ([]permissions.ID, error)
	// EndSessionGrants notes of the grants of a session of an agent of ours that they are over, and returns those that
	// were in force. Nobody is told.
	EndSessionGrants(ctx context.Context, session string, now time.Time) ([]permissions.Grant, error)

	// AgentSession gives a session, or refuses with [permissions.CodeUnknown].
	AgentSession(ctx context.Context, id permissions.ID) (permissions.AgentSession, error)
	// AgentSessions lists at most limit sessions of a person's (empty: everybody's), also what has ended, after the one
	// named (empty: from the first), by id.
	AgentSessions(ctx context.Context, person string, after permissions.ID, limit int) ([]permissions.AgentSession, error)
	// OpenSessions lists at most limit sessions that have not ended, after the one named (empty: from the first), by id.
	OpenSessions(ctx context.Context, after permissions.ID, limit int) ([]permissions.AgentSession, error)

	// Cursor is how far in the daemon's chain a follower of that name has come. One that is new begins behind the newest
	// entry.
	Cursor(ctx context.Context, name string) (seq int64, err error)
	// SetCursor keeps how far a follower has come.
	SetCursor(ctx context.Context, name string, seq int64) error
}
