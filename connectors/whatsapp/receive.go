package whatsapp

import (
	"context"
	"fmt"
	"time"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/permissions"
)

// desktop is a connector that is being served: what people write reaches the desk.
type desktop struct {
	*Connector
	desk   Desk
	reader *conversation.Reader
}

func newDesktop(c *Connector, desk Desk) *desktop {
	return &desktop{c, desk, conversation.New(conversation.Options{
		Desk: desk, Now: c.now, Help: help, Thumbs: true, Theirs: c.theirTime, Account: func(id connectors.Identity) string {
			return "Your number is " + card.Visible(id.WhatsApp) + "."
		},
	})}
}

// message does what a message says. It returns false for one that has to come again.
func (d *desktop) message(ctx context.Context, e *events.Message) bool {
	h, not := hear(e)
	if not != isCopy {
		d.unreadable.Remove(e.Info.ID)
	}
	if not != "" {
		d.log.Debug("a message of whatsapp's decides nothing", "why", not)
		if h.unread != "" && !d.read(h) {
			d.noteRead(h)
			d.unheard(ctx, h)
		}
		return true
	}
	if d.read(h) { // encrypted once more, with the same id
		return true
	}
	err := d.take(ctx, h, e.Info.PushName)
	if err == nil {
		d.noteRead(h)
	} else if ctx.Err() == nil {
		d.log.Error("a message of whatsapp's cannot be stored; it comes again", "err", err)
	}
	return err == nil
}

func (d *desktop) take(ctx context.Context, h heard, name string) error {
	cli := d.client.Load()
	if cli == nil {
		return errAway
	}
	from, err := known(ctx, cli.Store.LIDs, h.source)
	if err != nil {
		return err
	}
	if from.number == "" {
		d.log.Warn("a message of whatsapp's is passed over: it does not tell whose it is")
		return nil
	}
	if code, is := pairCode(h.text); is && !h.reaction {
		return d.arrive(ctx, from, name, code)
	}
	id := from.identity()
	who, err := d.desk.Person(id)
	if refusal := permissions.AsRefusal(err); refusal != nil {
		return d.stranger(ctx, from, name)
	}
	if err != nil {
		return err
	}
	if err := d.lost.Found(who.WhatsApp, func() error { return d.desk.Found(ctx, Name, who.Name, "") }); err != nil {
		return err
	}
	m := conversation.Message{
		Message: connectors.Message{From: id, Text: h.text, Key: Name + ":" + from.number + ":" + h.id},
		Who:     who, Reaction: h.reaction, At: h.at,
	}
	if h.quotes != "" && h.onOurs(cli.Store.GetJID(), cli.Store.GetLID()) {
		m.ReplyTo, m.Card = ref{from.number, h.quotes}.String(), codeOf(h.quotes)
	}
	did, err := d.reader.Read(ctx, m)
	if err != nil {
		return err
	}
	d.tellAbout(ctx, from.number, h, did)
	return nil
}

// unheard tells one of the people of the configuration that what they sent is not read.
func (d *desktop) unheard(ctx context.Context, h heard) {
	cli := d.client.Load()
	if cli == nil {
		return
	}
	from, err := known(ctx, cli.Store.LIDs, h.source)
	if err != nil || from.number == "" {
		return
	}
	id := from.identity()
	who, err := d.desk.Person(id)
	if err != nil {
		return // strangers are not answered
	}
	words, err := d.reader.Unheard(ctx, id, who, h.unread, true)
	if err != nil || words == "" {
		return
	}
	as := ref{from.number, newID("")}
	d.aside(ctx, func(ctx context.Context) error { return d.say(ctx, as, loose(words), h.id, false) })
}

// tellAbout tells the author of a message what it did: a decision with an emoji on the message, since the card says the
// rest; all else in words.
func (d *desktop) tellAbout(ctx context.Context, number string, h heard, did conversation.Did) {
	for _, taken := range did.Decided {
		if h.reaction {
			continue // the card says it
		}
		emoji := "✅"
		if taken.Answer == permissions.Deny || taken.Answer == permissions.Interrupt {
			emoji = "⛔"
		}
		as := ref{number, newID("")}
		d.aside(ctx, func(ctx context.Context) error { return d.mark(ctx, as, h.id, emoji) })
		break // a message has one
	}
	about, ours := h.id, false
	if h.reaction { // which nothing can reply to
		about, ours = h.quotes, !h.onOwn
	}
	for _, words := range did.Say {
		as := ref{number, newID("")}
		d.aside(ctx, func(ctx context.Context) error { return d.say(ctx, as, loose(words), about, ours) })
	}
}

// stranger notes somebody who is nobody here, for the owner. They are not answered: what keeps an account alive is to
// write little, and to nobody who might not want it.
func (d *desktop) stranger(ctx context.Context, from sender, name string) error {
	claimed := []rune(name)
	noted, err := d.strangers.Once(from.number, d.now(), func() error {
		return d.desk.Stranger(ctx, permissions.Stranger{
			Via: Name, Account: from.number, Name: string(claimed[:min(len(claimed), permissions.MaxName)]),
		})
	})
	if err != nil {
		return fmt.Errorf("note a stranger: %w", err)
	}
	if noted {
		d.log.Info("somebody who is nobody here wrote to the whatsapp account")
	}
	return nil
}

// changed has an account whose keys are others than they were be nobody's: it may be a new phone, or somebody else.
func (d *desktop) changed(ctx context.Context, whose types.JID) error {
	cli := d.client.Load()
	if cli == nil {
		return errAway
	}
	whose = whose.ToNonAD()
	number := e164(whose)
	if whose.Server == types.HiddenUserServer {
		pn, err := cli.Store.LIDs.GetPNForLID(ctx, whose)
		if err != nil {
			return fmt.Errorf("look up whose keys have changed: %w", err)
		}
		number = e164(pn)
	}
	if number == "" || number == e164(cli.Store.GetJID().ToNonAD()) {
		return nil
	}
	if err := d.desk.Suspend(ctx, Name, number); err != nil {
		return fmt.Errorf("suspend an account whose keys have changed: %w", err)
	}
	return nil
}

// unreadAfter is how long a message that could not be decrypted has to come again, which it mostly does.
const unreadAfter = 5 * time.Second

// unread asks somebody to write again what could not be read, unless it comes again by itself.
func (d *desktop) unread(ctx context.Context, e *events.UndecryptableMessage) {
	i := e.Info
	if i.IsFromMe || i.IsGroup || !private(i.Chat) || e.DecryptFailMode == events.DecryptFailHide {
		return
	}
	if !d.noteUnreadable(i.ID) {
		return
	}
	as := newID("")
	d.asideAfter(ctx, d.patience, func(ctx context.Context) error {
		cli := d.client.Load()
		switch {
		case !d.unreadable.Contains(i.ID):
			return nil
		case cli == nil:
			return errAway
		}
		from, err := known(ctx, cli.Store.LIDs, i.MessageSource)
		if err != nil || from.number == "" {
			return err
		}
		if _, err := d.desk.Person(from.identity()); err != nil {
			return nil //nolint:nilerr // strangers are not answered
		}
		return d.say(ctx, ref{from.number, as}, "I could not read your message. Please send it again; nothing was decided.", "", true)
	})
}

// noteUnreadable remembers a message that could not be decrypted, and tells whether that is news: each time that it comes
// again in vain is told by the library.
func (c *Connector) noteUnreadable(id string) bool {
	known, _ := c.unreadable.ContainsOrAdd(id, true)
	return !known
}
