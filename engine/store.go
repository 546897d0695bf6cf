package engine

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Store is the truth: requests, copies, grants and the audit. Every write is durable when its method returns nil.
type Store interface {
	permissions.Store

	// Coder gives requests their codes. Its key belongs to the store and never changes.
	Coder() permissions.Coder
	// ByCode finds the newest request that has the code, or refuses with [permissions.CodeUnknown].
	ByCode(ctx context.Context, code string) (permissions.Request, error)
	// Pending lists at most limit pending requests created after the one named (empty: from the first), oldest first;
	// asked, if not empty, keeps only what was put to that person.
	Pending(ctx context.Context, asked string, after permissions.ID, limit int) ([]permissions.Request, error)
	// Grants lists the grants of a caller that are neither revoked nor over at now.
	Grants(ctx context.Context, caller string, now time.Time) ([]permissions.Grant, error)

	// Copies lists the copies of a request.
	Copies(ctx context.Context, id permissions.ID) ([]permissions.Copy, error)
	// Lagging lists at most limit requests, after the one named, of which this connector's copy has neither failed nor
	// been shown at the request's revision.
	Lagging(ctx context.Context, connector string, after permissions.ID, limit int) ([]permissions.ID, error)
	// Shown notes that a copy was sent or edited: its Ref, Shown and SentAt. The first time is audited.
	Shown(ctx context.Context, c permissions.Copy) error
	// Failed notes that a copy will never be shown, and why (c.Failed).
	Failed(ctx context.Context, c permissions.Copy) error
	// Forget prepares a forgetful connector's start: its copies of pending requests are to be sent again, the others
	// are done with.
	Forget(ctx context.Context, connector string) error

	// Record appends to the audit what changed no request.
	Record(ctx context.Context, r permissions.Record) error
	// Audit lists at most limit entries after seq, of the chain given (empty: this daemon's own), oldest first.
	Audit(ctx context.Context, chain string, after int64, limit int) ([]permissions.Entry, error)
	// Verify reads every chain from the start and returns the head of each. The error says at which entry a chain is
	// broken.
	Verify(ctx context.Context) ([]permissions.Entry, error)

	// Health writes and reads something small. Its error matches [permissions.ErrBroken] and says what to do.
	Health(ctx context.Context) error
}
