package admin

import (
	"context"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Desk is what this door needs of the engine besides deciding. An identity that is nobody here, or that asks for what
// is not routed to it, gets a *permissions.Refusal; the operator sees everything.
type Desk interface {
	connectors.Handler
	// Who is the name of the person that an identity is.
	Who(id connectors.Identity) (name string, err error)
	// Pending lists at most limit pending requests created after the one named, oldest first.
	Pending(ctx context.Context, id connectors.Identity, after permissions.ID, limit int) ([]permissions.Standing, error)
	// Show gives one request by its id or its code.
	Show(ctx context.Context, id connectors.Identity, name string) (permissions.Standing, error)
	// Cancel withdraws a pending request, by its id or its code.
	Cancel(ctx context.Context, id connectors.Identity, name string) (permissions.Standing, error)
	// Audit lists at most limit entries of the daemon's chain after seq, oldest first; for the operator only.
	Audit(ctx context.Context, id connectors.Identity, after int64, limit int) ([]permissions.Entry, error)
	// Verify checks every audit chain and returns their heads; for the operator only.
	Verify(ctx context.Context, id connectors.Identity) ([]permissions.Entry, error)
	// Subscribe follows every committed change.
	Subscribe(buffer int) *permissions.Feed
	// Stand is a row with its code, copies and waiters.
	Stand(ctx context.Context, r permissions.Request) (permissions.Standing, error)
	// Ready is nil while requests can be stored and answered; the error says what to do.
	Ready(ctx context.Context) error
}
