package engine

import (
	"context"
	"time"

	"github.com/daycared/daycared/engine/agenthost"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/dispatch"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/registry"
)

// Store keeps requests, copies, grants and the audit: the source of truth. A write is durable when its method returns nil.
type Store interface {
	registry.Store
	directory.Store
	agenthost.Store
	dispatch.Store

	// DeniedBefore reports whether what r is about was denied to its caller since a time, or in its session at any time.
	DeniedBefore(ctx context.Context, r permissions.Request, since time.Time) (bool, error)
	// Unheeded lists the requests of a caller that were denied or not answered in time since a time, and since it was last resumed, the
	// newest first: each once for everybody who was shown it.
	Unheeded(ctx context.Context, caller string, since time.Time) ([]permissions.Unheeded, error)
	// History lists requests that are settled and still whole, oldest first.
	History(ctx context.Context, of permissions.HistoryQuery) ([]permissions.Request, error)
	// Grants lists the grants of a caller that are neither revoked, suspended nor over at now.
	Grants(ctx context.Context, caller string, now time.Time) ([]permissions.Grant, error)

	// SetQuiet stores a notice of [permissions.AboutQuiet], replacing the one to that person about that agent.
	SetQuiet(ctx context.Context, n permissions.Notice) error
	// AddCallerMessage stores a caller's (n.By) notice to a person, replacing an unsent one to them about the same session of the
	// same agent. If the caller has most unsent notices it refuses with [permissions.CodeLimit].
	AddCallerMessage(ctx context.Context, n permissions.Notice, most int) error

	// GrantsInForce lists at most limit grants after one (-N: the last N) that are neither revoked nor over at now, including suspended
	// ones, oldest first; asked, if not empty, keeps only those whose request had that recipient.
	GrantsInForce(
		ctx context.Context, asked string, now time.Time, after permissions.ID, limit int,
	) ([]permissions.Grant, error)
	// Revoke revokes a grant and leaves a notice for everybody else who allowed it. It returns the grant as it was and
	// at most limit of the requests that ran under it, newest first. A revoked grant stays as it is.
	Revoke(ctx context.Context, id permissions.ID, by, via string, at time.Time, limit int) (permissions.Revoked, error)
	// StoppedBy returns who stopped everything, and when; empty: nobody.
	StoppedBy(ctx context.Context) (by string, at time.Time, err error)
	// Resume ends a Stop. Without one it changes nothing. It refuses everybody who did not stop, unless force.
	Resume(ctx context.Context, by, via string, force bool, at time.Time) error

	// AddToken stores a token. It refuses one without a person whose name last had one with [permissions.CodeInvalid].
	AddToken(ctx context.Context, t permissions.Token, by, via string) error
	// VerifyToken finds the token with that hash and records its use, to the minute; it refuses with
	// [permissions.CodeToken] one that is unknown, suspended or not valid at now.
	VerifyToken(ctx context.Context, hash permissions.Digest, now time.Time) (permissions.Token, error)
	// LeftRequests lists the requests of a caller that the next holder of its name would find: pending ones, unused approvals,
	// and what was settled since a time and not collected.
	LeftRequests(ctx context.Context, caller string, since time.Time) ([]permissions.ID, error)
	// Callers lists who has pending requests, or grants in force at now.
	Callers(ctx context.Context, now time.Time) ([]string, error)
	// RevokeToken revokes one token by its id, or all of a name, and returns them, or refuses with [permissions.CodeUnknown].
	RevokeToken(ctx context.Context, name, by, via string, at time.Time) ([]permissions.Token, error)

	// ApprovedBy lists at most limit approvals, not taken back, that a person helped to give since a time, unused ones first.
	ApprovedBy(ctx context.Context, person string, since time.Time, limit int) ([]permissions.Request, error)

	// ByNumber finds the request of that number with its copies, or refuses with [permissions.CodeUnknown].
	ByNumber(ctx context.Context, number int64) (permissions.Request, []permissions.Copy, error)
	// KeepWait stores a wait while its request is pending, replacing the one of the same request, kind and call.
	KeepWait(ctx context.Context, w permissions.Wait) error
	// DropWait deletes the wait of the same request, kind and call.
	DropWait(ctx context.Context, w permissions.Wait) error
	// Waits lists the stored waits.
	Waits(ctx context.Context) ([]permissions.Wait, error)

	// Record appends an entry to the audit that changes no request.
	Record(ctx context.Context, r permissions.Record) error
	// Audit lists at most limit entries after seq, below 0 from so many before the end on, of the given chain (empty: this daemon's
	// own), oldest first.
	Audit(ctx context.Context, chain string, after int64, limit int) ([]permissions.Entry, error)
	// Codes are the codes of those requests that are kept.
	Codes(ctx context.Context, ids []permissions.ID) (map[permissions.ID]string, error)
	// NewestTime is the time of the newest entry of the audit; zero without one.
	NewestTime(ctx context.Context) (time.Time, error)
	// Prune deletes at most limit of what is older at now than keep allows, and reports whether there may be more.
	Prune(ctx context.Context, keep permissions.Keep, now time.Time, limit int) (more bool, err error)
	// Verify reads every chain from the start, or from the entry that signs off what was deleted, and returns the head
	// of each. The error says at which entry a chain is broken.
	Verify(ctx context.Context, told ...func(done, all int64)) ([]permissions.Head, error)

	// Heartbeat records that the daemon runs, unless at is zero, and returns when it last did so: zero for never.
	Heartbeat(ctx context.Context, at time.Time) (last time.Time, err error)
	// CatchUp returns once this daemon knows what others had written to its database up to a moment ago: at once, unless it was stopped
	// or cut off. Its error matches [permissions.ErrBroken].
	CatchUp(ctx context.Context) error
	// Health writes and reads a small row. Its error matches [permissions.ErrBroken] and says what to do.
	Health(ctx context.Context) error

	// ByKey finds the request of a caller's key that is in use, settled or not; keys of our own agents are while rows exist.
	ByKey(ctx context.Context, caller, key string) (r permissions.Request, found bool, err error)
	// PendingOfSession lists the pending requests of a caller's session, or without a caller of any agent of ours in it.
	PendingOfSession(ctx context.Context, caller, session string) ([]permissions.ID, error)
	// KeptOfSession lists the approvals of a caller's session that nobody has collected or used.
	KeptOfSession(ctx context.Context, caller, session string) ([]permissions.ID, error)
	// EndSessionGrants records that the grants of a caller's session, or without a caller of any agent of ours in it, are over, and
	// returns those that were in force. It leaves no notices.
	EndSessionGrants(ctx context.Context, caller, session string, now time.Time) ([]permissions.Grant, error)
}
