package admin

import (
	"context"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Desk is what this door needs of the engine besides deciding. An identity that is nobody here, or that asks for what
// is not routed to it, gets a *permissions.Refusal; the operator sees everything.
type Desk interface {
	connectors.Handler
	connectors.Controls
	connectors.Talks
	connectors.Locker
	// Who is the name of the person that an identity is.
	Who(id connectors.Identity) (name string, err error)
	// Show gives one request by its id or its code.
	Show(ctx context.Context, id connectors.Identity, name string) (permissions.Standing, error)
	// Cancel withdraws a pending request, by its id or its code.
	Cancel(ctx context.Context, id connectors.Identity, name string) (permissions.Standing, error)

	// Sessions lists at most limit sessions of agents of ours after the one named, by id: those of this person's, and only
	// with ended also those that have.
	Sessions(
		ctx context.Context, id connectors.Identity, ended bool, after permissions.ID, limit int,
	) ([]permissions.Sitting, error)
	// Session gives one of them.
	Session(ctx context.Context, id connectors.Identity, session permissions.ID) (permissions.Sitting, error)

	// CreateToken makes a token for an agent; expires is how long it is valid, 0 for ever. The secret is told this once.
	// For the operator only, as is all about tokens.
	CreateToken(
		ctx context.Context, id connectors.Identity, name string, expires time.Duration,
	) (permissions.Secret, permissions.Token, error)
	// Tokens lists the tokens that are not revoked.
	Tokens(ctx context.Context, id connectors.Identity) ([]permissions.Token, error)
	// RevokeToken revokes one token by its id, or all of a name.
	RevokeToken(ctx context.Context, id connectors.Identity, name string) ([]permissions.Token, error)

	// Happenings lists at most limit events after seq that this person may see, and how far it looked: where to go on.
	// An after that lies before everything that is still kept is refused with [permissions.CodeGone], unless it is 0:
	// from wherever the list begins.
	Happenings(ctx context.Context, id connectors.Identity, after int64, limit int) (list []permissions.Happening, seen int64, err error)
	// Changed is closed when there may be new ones.
	Changed() <-chan struct{}

	// Audit lists at most limit entries of the daemon's chain after seq, oldest first; for the operator only.
	Audit(ctx context.Context, id connectors.Identity, after int64, limit int) ([]permissions.Entry, error)
	// Verify checks every audit chain and returns their heads; for the operator only.
	Verify(ctx context.Context, id connectors.Identity) ([]permissions.Head, error)
	// Invite makes a link by which somebody brings the account that is to answer as the person of that name.
	Invite(ctx context.Context, id connectors.Identity, name, via string) (connectors.Invitation, error)
	// Guest waits until somebody has come by the link.
	Guest(ctx context.Context, id connectors.Identity, code string) (connectors.Guest, error)
	// Pair has the guest with that address answer as the person, and returns the account that did before, if another.
	Pair(ctx context.Context, id connectors.Identity, code, address string) (now, was permissions.Pairing, err error)
	// Dismiss ends the invitation.
	Dismiss(ctx context.Context, id connectors.Identity, code string) error
	// Unpair takes the account away that somebody was paired with.
	Unpair(ctx context.Context, id connectors.Identity, name, via string) (permissions.Pairing, error)

	// Locks are the people who are locked.
	Locks() []permissions.Lock
	// Suspended lists what opens nothing since the store was restored.
	Suspended(ctx context.Context, id connectors.Identity) (permissions.Suspended, error)
	// Reinstate has what the names mean open again what it opened, or everything without names, and returns it.
	Reinstate(ctx context.Context, id connectors.Identity, names []string) (permissions.Suspended, error)

	// Subscribe follows every committed change.
	Subscribe(buffer int) *permissions.Feed
	// Stand is a row with its code, copies and waiters.
	Stand(ctx context.Context, r permissions.Request) (permissions.Standing, error)
	// Health is what is wrong with each channel that knows, and with people's accounts there, by the channel's name; nil
	// for one that is well.
	Health() map[string]error
	// Ways are the channels by which each person can be reached.
	Ways() map[string][]string
	// Contacts are all channels that are switched on, with whom each can reach just now.
	Contacts() []connectors.Contact
	// Waiting is how many requests wait for an identity, and since when the oldest does; zero where none waits.
	Waiting(ctx context.Context, id connectors.Identity) (count int, since time.Time, err error)
	// Ready is nil while requests can be stored and answered; the error says what to do.
	Ready(ctx context.Context) error
}
