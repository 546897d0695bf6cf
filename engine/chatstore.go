package engine

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

// ChatStore keeps what people and agents of ours tell each other until it is where it should be.
type ChatStore interface {
	// Hear keeps a message for its agent. The key of one that is kept already changes nothing. When so many wait for the
	// agent it refuses with [permissions.CodeLimit]. One with a HeardAt is kept by its key alone.
	Hear(ctx context.Context, m permissions.Message, most int) error
	// Known tells whether a message or an order of that key was taken.
	Known(ctx context.Context, key string) (bool, error)
	// Unheard lists at most limit messages that an agent does not have yet, oldest first.
	Unheard(ctx context.Context, agent string, limit int) ([]permissions.Message, error)
	// Heard notes that the agent has a message, and forgets its words.
	Heard(ctx context.Context, number int64, at time.Time) error

	// Say keeps an utterance. The key of one of the same agent's changes nothing. When so many of the agent's are still to
	// be sent it refuses with [permissions.CodeLimit].
	Say(ctx context.Context, u permissions.Utterance, most int) error
	// Unsaid lists at most limit utterances of an agent's of which something is still to be sent, oldest first.
	Unsaid(ctx context.Context, agent string, limit int) ([]permissions.Utterance, error)
	// Said notes that u.Sent of an utterance's messages were sent by now, the last as ref (empty: it was not sent), and
	// with done that this was all; then its words are forgotten. Of an agent's messages the last thousand are known.
	Said(ctx context.Context, u permissions.Utterance, ref string, done bool, at time.Time) error
	// Author is the agent that the message of that name in a channel is from; empty where that is not known.
	Author(ctx context.Context, via, ref string) (agent string, err error)

	// Foreground is the agent that a person chose in a channel; empty for none.
	Foreground(ctx context.Context, person, via string) (agent string, err error)
	// Choose has a person talk to an agent in the channel of the bond.
	Choose(ctx context.Context, b permissions.Bond) error

	// PendingNumbers are those of every request that is pending.
	PendingNumbers(ctx context.Context) ([]int64, error)
}
