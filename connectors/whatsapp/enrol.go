package whatsapp

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"

	"github.com/daycared/daycared/connectors"
)

// pairing is the word that is written before a pairing code.
const pairing = "pair"

// codeLength and codeLetters make codes that are easy to type; wrong codes are rarely answered.
const (
	codeLength  = 8
	codeLetters = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
)

func pairCode(text string) (code string, is bool) {
	words := strings.Fields(text)
	if len(words) != 2 || !strings.EqualFold(words[0], pairing) || len(words[1]) != codeLength {
		return "", false
	}
	return strings.ToUpper(words[1]), true
}

// arrive takes an account that sends a code, and tells it the result. A wrong code from an account that is not configured
// is treated like any message from an unknown sender.
func (d *handler) arrive(ctx context.Context, from sender, name, code string) error {
	if d.Take(code, connectors.PairingCandidate{Address: from.number, Alias: from.lid, Name: name}) {
		d.Write(from.number, "Thank you. The machine that showed the code is asking now whether you are the one it expects. "+
			"You will be told here.")
		return nil
	}
	if _, err := d.in.Person(from.identity()); err != nil {
		return d.unknownSender(ctx, from, name)
	}
	if d.Wrong(from.number) {
		d.Write(from.number, "This code does not work: it was used already, its ten minutes are over, or it never was one. "+
			"Nothing was changed.")
	}
	return nil
}

// Invite is [connectors.Pairer].
func (c *Connector) Invite(context.Context) (connectors.Invitation, error) {
	cli := c.client.Load()
	if cli == nil || !c.state.connected() {
		if err := c.state.Health(); err != nil {
			return connectors.Invitation{}, err
		}
		return connectors.Invitation{}, errAway
	}
	number := e164(cli.Store.GetJID().ToNonAD())
	if number == "" {
		return connectors.Invitation{}, errors.New("the linked account has no number")
	}
	var random [codeLength]byte
	_, _ = rand.Read(random[:]) // never fails
	code := make([]byte, codeLength)
	for i, b := range random {
		code[i] = codeLetters[int(b)%len(codeLetters)]
	}
	text := pairing + " " + string(code)
	link := "https://wa.me/" + strings.TrimPrefix(number, "+") + "?text=" + url.QueryEscape(text)
	return connectors.Invitation{
		Code: string(code), Link: link, Until: c.Add(string(code)),
		How: "writes \"" + text + "\" to " + number + " in WhatsApp, which this link prepares",
	}, nil
}

const welcome = " What agents want to do comes here, with how to answer below it. /help says what else you can write."

func (d *handler) deliver(ctx context.Context) error {
	return d.SendQueued(ctx, func(number, text string) {
		as := ref{number, newID("")}
		d.aside(ctx, func(ctx context.Context) error { return d.say(ctx, as, loose(text), "", true) })
	})
}

const help = `daycared asks you here when an agent needs a permission. Answer below the card, or write:

yes K7F3Q · allow once
yes K7F3Q session · or 15m: allow for longer
no K7F3Q because … · deny, with a reason
K7F3Q 2 · choose an option
K7F3Q other: … · answer in your own words
YES K7F3Q RUN · allow what is high risk

In a reply to the card the code is left out, and 👍 or 👎 on it counts too; a yes or no by itself never does.

/pending · what waits for your answer
/grants · what you have allowed for longer than once
/revoke ID · take that back, or an approval that was not used
/agents, /use NAME, /status, /new, /quit, /stop · your agents
/stop all · cancel everything, and refuse all that is new
/resume · go on after that
/lock NAME · have nothing count from their accounts, as when a phone is stolen; without a name, from yours
/unlock NAME · end that; it takes two people, or the operator
/whoami · who you are here
/help · this`
