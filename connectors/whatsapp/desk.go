package whatsapp

import (
	"context"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/permissions"
)

// Desk is what this connector needs of the engine besides deciding. Whoever is nobody here, or asks for what is not
// theirs, gets a *permissions.Refusal.
type Desk interface {
	conversation.Desk
	// Person is who an identity is.
	Person(id connectors.Identity) (connectors.Person, error)
	// Stranger notes that an account of nobody here wrote; At is not read.
	Stranger(ctx context.Context, s permissions.Stranger) error
	// Suspend has an account be nobody's until it is enrolled again, since it may be somebody else's by now.
	Suspend(ctx context.Context, via, address string) error
}
