package admin

import (
	"context"
	"crypto/rand"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/talk"
)

var _ connectors.Talker = (*Connector)(nil)

// mostSaid is how many characters a message of an agent's has; longer ones are several, so that a card can come between.
const mostSaid = 4000

// Said is one message of an agent's, as it is to be shown: it begins with the agent's name.
type Said struct {
	Agent string `json:"agent"`
	Text  string `json:"text"`
	// Ref is what a reply names it by.
	Ref string `json:"ref"`
}

// Talk is [connectors.Talker]: the message goes to every inbox that the person has open, and was sent once one of them has
// been written. While there is none the error is a [connectors.Awaited].
func (c *Connector) Talk(ctx context.Context, s connectors.Saying) (ref string, more bool, err error) {
	parts := talk.Parts(s, talk.Limits{Text: mostSaid, Unit: card.Characters})
	if s.Part >= len(parts) {
		return "", false, nil
	}
	ref = "said-" + rand.Text()
	err = c.inboxes.hand(ctx, s.To, Said{Agent: s.Agent, Text: parts[s.Part].Plain(), Ref: ref})
	if err != nil {
		return "", false, err
	}
	return ref, s.Part+1 < len(parts), nil
}

// hand hands over a message and returns once it is written to one inbox at least.
func (i *inboxes) hand(ctx context.Context, to connectors.Person, s Said) error {
	taken, written, await := i.offer(to.Name, s)
	if await != nil {
		return &absent{error: away(to), back: await}
	}
	for range taken {
		select {
		case ok := <-written:
			if ok {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return away(to) // they fell behind, or have just closed
}

// offer puts the message in every inbox that the person has open. taken of them will say whether they wrote it. Where none
// is open, await is closed when one opens.
func (i *inboxes) offer(name string, s Said) (taken int, written <-chan bool, await <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	streams := i.open[name]
	if len(streams) == 0 {
		if i.await == nil {
			i.await = map[string]chan struct{}{}
		}
		if i.await[name] == nil {
			i.await[name] = make(chan struct{})
		}
		return 0, nil, i.await[name]
	}
	results := make(chan bool, len(streams))
	for _, to := range streams {
		select {
		case to <- parcel{said: &s, written: results}:
			taken++
		default:
		}
	}
	return taken, results, nil
}

// absent is the error of what is said to somebody without an open inbox.
type absent struct {
	error
	back <-chan struct{}
}

// Awaits is [connectors.Awaited].
func (a *absent) Awaits() <-chan struct{} { return a.back }

// Unwrap is what is wrong, in words.
func (a *absent) Unwrap() error { return a.error }
