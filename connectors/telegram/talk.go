package telegram

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/talk"
)

// maxEntities limits the entities of a message; Telegram drops the rest.
const maxEntities = 100

// SendMessage is [connectors.MessageSender]. It never delays a card.
func (c *Connector) SendMessage(ctx context.Context, s connectors.AgentMessage) (name string, more bool, err error) {
	if err := c.Reach(s.To); err != nil {
		return "", false, err
	}
	parts := talk.Parts(s, talk.Limits{Text: maxText, Unit: card.UTF16, Code: maxEntities})
	if s.Part >= len(parts) {
		return "", false, nil
	}
	chat := chatWith(s.To)
	params := spoken(parts[s.Part]).params()
	params["chat_id"], params["disable_notification"] = chat, s.Silent
	brief, done := context.WithTimeout(ctx, turnTime)
	defer done()
	if err := c.pace.yield(brief, chat); err != nil {
		return "", false, fmt.Errorf("%w: %w", errTurn, err)
	}
	var sent message
	err = c.speak(ctx, chat, params, &sent)
	if _, formatted := params["entities"]; formatted && neverTaken(err) { // send the text without formatting
		delete(params, "entities")
		err = c.speak(ctx, chat, params, &sent)
	}
	if neverTaken(err) { // the rest of the text does not wait for it
		return "", false, &connectors.UnreachableError{Reason: "Telegram does not take it"}
	}
	if err != nil {
		return "", false, c.failed(spot{chat: chat}, s.To, err)
	}
	return ref{chat, sent.ID}.String(), s.Part+1 < len(parts), nil
}

func (c *Connector) speak(ctx context.Context, chat int64, params map[string]any, sent *message) error {
	if err := c.turn(ctx, chat, 0); err != nil {
		return err
	}
	err := c.api.call(ctx, "sendMessage", params, sent)
	c.pace.told(chat, err)
	return err
}

// neverTaken reports whether Telegram refused a call because of its content.
func neverTaken(err error) bool {
	refused, is := errors.AsType[*apiError](err)
	return is && refused.Code == http.StatusBadRequest && means(err, meansUnknown)
}

// spoken renders an agent message.
func spoken(p talk.Part) outgoing {
	var spans []span
	for _, c := range p.Code {
		s := span{format: asCode, start: c.Start, end: c.End}
		if c.Block {
			s.format, s.language = asPre, c.Language
		}
		spans = append(spans, s)
	}
	return outgoing{Text: p.Text, Entities: entitiesOf(p.Text, spans)}
}

// ShowTyping is [connectors.TypingIndicator]: Telegram shows it for five seconds. It is skipped while anything else is being written.
func (c *Connector) ShowTyping(ctx context.Context, to connectors.Person) error {
	chat := chatWith(to)
	if chat == 0 || c.pace.room(chat, typing) > 0 {
		return nil
	}
	err := c.api.call(ctx, "sendChatAction", map[string]any{"chat_id": chat, "action": "typing"}, nil)
	c.pace.told(chat, err)
	return err
}
