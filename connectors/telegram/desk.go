package telegram

import (
	"context"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/permissions"
)

// Desk is what this connector needs of the engine besides deciding. Whoever is nobody here, or asks for what is not
// theirs, gets a *permissions.Refusal.
type Desk interface {
	conversation.Desk
	// Stranger notes that an account of nobody here wrote; At is not read.
	Stranger(ctx context.Context, s permissions.Stranger) error
	// Look is the request that a decision would be about, without deciding.
	Look(ctx context.Context, d connectors.Decision) (connectors.Prompt, error)
	// ShowAgain has what is pending and was shown through a connector sent anew, and returns it as it was.
	ShowAgain(ctx context.Context, connector string) ([]connectors.Prompt, error)
	// Places are where several people are asked at once.
	Places(ctx context.Context) ([]connectors.Place, error)
	// Rename notes that a place goes by another name from now on, and has what waits there sent anew.
	Rename(ctx context.Context, was, now string) error
	// Lost notes that nothing can be written in a place any more, or to that person, and why: others are asked at once.
	Lost(ctx context.Context, via, person, place, why string) error
	// Found has a person asked again who was lost; with a place, what stands there is kept up to date again.
	Found(ctx context.Context, via, person, place string) error
	// Away is for how long the daemon did not run before this start.
	Away() time.Duration
	// Live is what people see through a connector of the newest pending requests, so many at most.
	Live(ctx context.Context, connector string, limit int) ([]connectors.Prompt, error)
	// Refresh has what is pending and was shown through a connector edited, and returns it.
	Refresh(ctx context.Context, connector string) ([]connectors.Prompt, error)
}
