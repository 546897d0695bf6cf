package whatsapp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// handler handles messages: it hands what people do to the engine.
type handler struct {
	*Connector
	reader *conversation.Reader
}

func newHandler(c *Connector) *handler {
	return &handler{c, conversation.New(conversation.Options{
		Inbound: c.in, Lists: c.in, Unread: c.unread, Whole: c.ShowsWhole, Now: c.now, Help: help, Theirs: c.theirTime,
		Account: func(id connectors.Identity, in i18n.Language) string {
			return in.Sprintf("Your number is %s.", card.Visible(id.Address))
		},
	})}
}

// message handles a message. It returns false for one that has to be redelivered.
func (d *handler) message(ctx context.Context, e *events.Message) bool {
	h, not := decode(e)
	if not != isCopy {
		d.unreadable.Remove(e.Info.ID)
	}
	if not != "" {
		d.log.Debug("ignore whatsapp message", "why", not)
		if (h.unread != "" || h.changes != "") && !d.read(h) {
			d.noteRead(h)
			d.answerUnread(ctx, h)
		}
		return true
	}
	if d.read(h) { // the same id, encrypted again
		return true
	}
	err := d.take(ctx, h, e.Info.PushName)
	if err == nil {
		d.noteRead(h)
	} else if ctx.Err() == nil {
		d.log.Error("store whatsapp message: waiting for redelivery", "err", err)
	}
	return err == nil
}

func (d *handler) take(ctx context.Context, h incoming, name string) error {
	cli := d.client.Load()
	if cli == nil {
		return errAway
	}
	from, err := senderOf(ctx, cli.Store.LIDs, h.source)
	if err != nil {
		return err
	}
	if from.number == "" {
		d.log.Warn("skip message from an account that does not show its number")
		return nil
	}
	if code, is := pairCode(h.text); is && !h.reaction {
		return d.arrive(ctx, from, name, code)
	}
	id := from.identity()
	who, err := d.in.Person(id)
	if refusal := permissions.AsRefusal(err); refusal != nil {
		return d.unknownSender(ctx, from, name)
	}
	if err != nil {
		return err
	}
	if err := d.lost.Recover(who.Addresses[Name], func() error { return d.in.ChatRecovered(ctx, Name, who.Name, "") }); err != nil {
		return err
	}
	m := conversation.Message{
		Message: connectors.Message{From: id, Text: h.text, Key: Name + ":" + from.number + ":" + h.id},
		Who:     who, Reaction: h.reaction, Thumbs: true, At: h.at,
	}
	if h.quotes != "" && h.onOurs(cli.Store.GetJID(), cli.Store.GetLID()) {
		if card := strings.TrimSuffix(h.quotes, documented); codeOf(card) != "" {
			m.File, h.quotes = card != h.quotes, card
		}
		m.ReplyTo, m.Card = ref{from.number, h.quotes}.String(), codeOf(h.quotes)
	}
	did, err := d.reader.Read(ctx, m)
	if err != nil {
		return err
	}
	d.tellAbout(ctx, from.number, h, did)
	return nil
}

// answerUnread tells a configured person that what they sent is not read, or that the vote that they edited or deleted still counts.
func (d *handler) answerUnread(ctx context.Context, h incoming) {
	cli := d.client.Load()
	if cli == nil {
		return
	}
	from, err := senderOf(ctx, cli.Store.LIDs, h.source)
	if err != nil || from.number == "" {
		return
	}
	id := from.identity()
	who, err := d.in.Person(id)
	if err != nil {
		return // unknown accounts get no answer
	}
	words, err := "", error(nil)
	if h.changes != "" {
		words, err = d.reader.StillCounts(ctx, id, who, Name+":"+from.number+":"+h.changes)
	}
	if err == nil && words == "" && h.unread != "" {
		words, err = d.reader.Unheard(ctx, id, who, h.unread, true)
	}
	if err != nil || words == "" {
		return
	}
	as := ref{from.number, newID("")}
	d.inBackground(ctx, func(ctx context.Context) error { return d.sendText(ctx, as, escapeText(words), h.id, false) })
}

// tellAbout reports to an author what their message did: by an emoji on it for a decision, otherwise in words.
func (d *handler) tellAbout(ctx context.Context, number string, h incoming, did conversation.Did) {
	for _, taken := range did.Decided {
		if h.reaction {
			continue // the card shows it
		}
		emoji := "✅"
		if taken.Answer == permissions.Deny || taken.Answer == permissions.Interrupt {
			emoji = "⛔"
		}
		as := ref{number, newID("")}
		d.inBackground(ctx, func(ctx context.Context) error { return d.mark(ctx, as, h.id, emoji) })
		break // one emoji per message
	}
	about, own := h.id, false
	if h.reaction { // a reaction cannot be replied to
		about, own = h.quotes, !h.onOwn
	}
	for _, words := range did.Say {
		as := ref{number, newID("")}
		d.inBackground(ctx, func(ctx context.Context) error { return d.sendText(ctx, as, spelled(words), about, own) })
	}
}

// unknownSender records an unknown account for the owner. It gets no answer: accounts that write to strangers are banned.
func (d *handler) unknownSender(ctx context.Context, from sender, name string) error {
	claimed := []rune(name)
	noted, err := d.reportedSenders.Do(from.number, d.now(), func() error {
		return d.in.NoteUnknownSender(ctx, permissions.UnknownSender{
			Via: Name, Account: from.number, Alias: from.lid, Name: string(claimed[:min(len(claimed), permissions.MaxName)]),
		})
	})
	if err != nil {
		return fmt.Errorf("record an unknown sender: %w", err)
	}
	if noted {
		d.log.Info("message from an unknown account")
	}
	return nil
}

// suspendChanged suspends an account whose keys have changed: it may be a new phone, or somebody else.
func (d *handler) suspendChanged(ctx context.Context, whose types.JID) error {
	cli := d.client.Load()
	if cli == nil {
		return errAway
	}
	whose = whose.ToNonAD()
	number := e164(whose)
	if whose.Server == types.HiddenUserServer {
		pn, err := cli.Store.LIDs.GetPNForLID(ctx, whose)
		if err != nil {
			return fmt.Errorf("look up the account whose keys changed: %w", err)
		}
		number = e164(pn)
	}
	if number == "" || number == e164(cli.Store.GetJID().ToNonAD()) {
		return nil
	}
	if err := d.in.Suspend(ctx, Name, number); err != nil {
		return fmt.Errorf("suspend an account whose keys have changed: %w", err)
	}
	return nil
}

// unreadAfter is how long redelivery of an undecryptable message is awaited, which mostly succeeds.
const unreadAfter = 5 * time.Second

// unread asks the sender to repeat a message that could not be read, unless it is redelivered.
func (d *handler) unread(ctx context.Context, e *events.UndecryptableMessage) {
	i := e.Info
	if i.IsFromMe || i.IsGroup || !private(i.Chat) || e.DecryptFailMode == events.DecryptFailHide {
		return
	}
	if !d.noteUnreadable(i.ID) {
		return
	}
	as := newID("")
	d.inBackgroundAfter(ctx, d.redeliveryWait, func(ctx context.Context) error {
		cli := d.client.Load()
		switch {
		case !d.unreadable.Contains(i.ID):
			return nil
		case cli == nil:
			return errAway
		}
		from, err := senderOf(ctx, cli.Store.LIDs, i.MessageSource)
		if err != nil || from.number == "" {
			return err
		}
		if _, err := d.in.Person(from.identity()); err != nil {
			return nil //nolint:nilerr // unknown accounts get no answer
		}
		return d.sendText(ctx, ref{from.number, as}, "I could not read your message. Please send it again; nothing was decided.", "", true)
	})
}

// noteUnreadable records an undecryptable message and reports whether it is new; the library reports every redelivery.
func (c *Connector) noteUnreadable(id string) bool {
	known, _ := c.unreadable.ContainsOrAdd(id, true)
	return !known
}

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
	if cli == nil || !c.state.in(isConnected) {
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
/quiet AGENT 1h · make its cards silent, and tell then what it asked; /quiet AGENT off ends that
/trust AGENT 30m · have it do unasked what stays in its folder, after a second step; a denial ends that
/stop CODE · deny that, and refuse what its agent asks until /resume AGENT
/lock NAME · have nothing count from their accounts, as when a phone is stolen; without a name, from yours
/unlock NAME · end that; it takes two people, or the operator
/away until Monday to NAME · others are asked instead, as far as a route names any; /away off ends that
/whoami · who you are here
/help · this`
