package whatsapp

import (
	"context"
	"strings"

	"go.mau.fi/whatsmeow/types"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/talk"
)

// mostSaid is how many characters a message of an agent's has; longer ones are several.
const mostSaid = 4000

// Talk is [connectors.Talker].
func (c *Connector) Talk(ctx context.Context, s connectors.Saying) (name string, more bool, err error) {
	if err := c.Reach(s.To); err != nil {
		return "", false, err
	}
	parts := talk.Parts(s, talk.Limits{Text: mostSaid, Unit: card.Characters})
	if s.Part >= len(parts) {
		return "", false, nil
	}
	r := ref{s.To.WhatsApp, newID("")}
	if err := c.post(ctx, r, text(spoken(parts[s.Part]))); err != nil {
		return "", false, c.failed(s.To, err)
	}
	return r.String(), s.Part+1 < len(parts), nil
}

// spoken is a message of an agent's: its code between the signs that WhatsApp has for that, and nothing else formatted.
func spoken(p talk.Part) string {
	var b strings.Builder
	at := 0
	for _, code := range p.Code {
		sign := "`"
		if code.Block {
			sign = fence
		}
		b.WriteString(formats.Replace(p.Text[at:code.Start]))
		b.WriteString(sign + fenced(p.Text[code.Start:code.End]) + sign)
		at = code.End
	}
	b.WriteString(formats.Replace(p.Text[at:]))
	return b.String()
}

// Typing is [connectors.Typer].
func (c *Connector) Typing(ctx context.Context, to connectors.Person) error {
	cli := c.client.Load()
	if cli == nil || !c.state.connected() || c.Reach(to) != nil {
		return nil //nolint:nilerr // a failure is nobody's loss
	}
	return cli.SendChatPresence(ctx, address(to.WhatsApp), types.ChatPresenceComposing, types.ChatPresenceMediaText)
}
