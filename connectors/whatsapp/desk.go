package whatsapp

import (
	"context"

	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/permissions"
)

// Desk is what this connector needs of the engine besides deciding. Whoever is nobody here, or asks for what is not
// theirs, gets a *permissions.Refusal.
type Desk interface {
	conversation.Desk
	// Stranger notes that an account of nobody here wrote; At is not read.
	Stranger(ctx context.Context, s permissions.Stranger) error
	// Found has a person asked again to whom nothing could be written.
	Found(ctx context.Context, via, person, place string) error
	// Suspend has an account be nobody's until it is enrolled again, since it may be somebody else's by now.
	Suspend(ctx context.Context, via, address string) error
}
