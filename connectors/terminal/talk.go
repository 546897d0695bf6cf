package terminal

import (
	"context"
	"crypto/rand"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/talk"
)

var _ connectors.Talker = (*Terminal)(nil)

// mostSaid is how many characters a message of an agent's has; longer ones are several, so that a card can come between.
const mostSaid = 4000

// Talk is [connectors.Talker]: the message is put on the screen, among the cards.
func (t *Terminal) Talk(_ context.Context, s connectors.Saying) (ref string, more bool, err error) {
	if err := t.Reach(s.To); err != nil {
		return "", false, err
	}
	parts := talk.Parts(s, talk.Limits{Text: mostSaid, Unit: card.Characters})
	if s.Part >= len(parts) {
		return "", false, nil
	}
	err = t.tell(news{says: true, text: parts[s.Part].Plain(), prompt: connectors.Prompt{To: s.To}})
	return "said-" + rand.Text(), s.Part+1 < len(parts), err
}
