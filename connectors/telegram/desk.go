package telegram

import (
	"context"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Desk is what this connector needs of the engine besides deciding. Whoever is nobody here, or asks for what is not
// theirs, gets a *permissions.Refusal.
type Desk interface {
	connectors.Handler
	connectors.Listener
	// Agents are those of an identity's in the chat that it came from, in the order in which they are listed.
	Agents(ctx context.Context, id connectors.Identity) ([]permissions.Presence, error)
	// Use has an identity's messages go to the agent of that name, and returns its name.
	Use(ctx context.Context, id connectors.Identity, name string) (agent string, err error)
	// Order has the agent in the foreground obey at once, and returns its name. The key is that of the chat event; the
	// same one again changes nothing.
	Order(ctx context.Context, id connectors.Identity, o permissions.Order, key string) (agent string, err error)
	// Person is who an identity is.
	Person(id connectors.Identity) (connectors.Person, error)
	// Stranger notes that an account of nobody here wrote; At is not read.
	Stranger(ctx context.Context, s permissions.Stranger) error
	// Look is the request that a decision would be about, without deciding.
	Look(ctx context.Context, d connectors.Decision) (connectors.Prompt, error)
	// Pending lists what waits for an identity's answer, oldest first.
	Pending(ctx context.Context, id connectors.Identity, after permissions.ID, limit int) ([]permissions.Standing, error)
	// Grants lists the grants in force that came of what was put to this person.
	Grants(ctx context.Context, id connectors.Identity) ([]permissions.Grant, error)
	// Revoke takes a grant back and tells what ran under it.
	Revoke(ctx context.Context, id connectors.Identity, grant permissions.ID) (permissions.Revoked, error)
	// Void takes an approval that was not used back, by its id or its code.
	Void(ctx context.Context, id connectors.Identity, name string) (permissions.Standing, error)
	// StopAll cancels everything that is pending and refuses everything new until somebody resumes.
	StopAll(ctx context.Context, id connectors.Identity) (cancelled int, err error)
	// StoppedBy is who stopped everything, or empty.
	StoppedBy() string
	// ShowAgain has what is pending and was shown through a connector sent anew, and returns it as it was.
	ShowAgain(ctx context.Context, connector string) ([]connectors.Prompt, error)
	// Places are where several people are asked at once.
	Places(ctx context.Context) ([]connectors.Place, error)
	// Rename notes that a place goes by another name from now on, and has what waits there sent anew.
	Rename(ctx context.Context, was, now string) error
	// Away is for how long the daemon did not run before this start.
	Away() time.Duration
	// Refresh has what is pending and was shown through a connector edited, and returns it.
	Refresh(ctx context.Context, connector string) ([]connectors.Prompt, error)
}
