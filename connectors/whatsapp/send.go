package whatsapp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/talk"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

const (
	// ackTime is how long WhatsApp has to confirm a message.
	ackTime = 15 * time.Second
	// editTime is how long a message can be edited, with a margin: the apps allow 15 minutes, the library 20.
	editTime = 14 * time.Minute
	// coldContact is WhatsApp's error for a recipient who has not written first.
	coldContact = "463"
	// noAccount is the library's error for a number that is not on WhatsApp.
	noAccount = "no LID found"
)

var errAway = errors.New("WhatsApp is not connected")

// AllocateID is [connectors.MessageIDAllocator].
func (c *Connector) AllocateID(p connectors.Prompt) string {
	return ref{p.To.Addresses[Name], newID(p.Code)}.String()
}

// SentTo is [connectors.AddressChecker].
func (c *Connector) SentTo(name string, p connectors.Person) bool {
	at, err := parseRef(name)
	return err == nil && p.Addresses[Name] == at.number
}

// Send shows a request in the person's chat: first a document with what does not fit, then the card, with the id in p.Ref.
func (c *Connector) Send(ctx context.Context, p connectors.Prompt) (string, error) {
	if err := c.Reach(p.To); err != nil {
		return "", err
	}
	r, err := parseRef(p.Ref)
	if err != nil || r.number != p.To.Addresses[Name] { // the person has another number now
		r = ref{p.To.Addresses[Name], newID(p.Code)}
	}
	out := show(p, c.now())
	c.whole.Note(p.Request.ID, !out.TooBig)
	c.inText.Note(p.Request.ID, !out.hidden())
	if out.Document != nil && !c.arrived(r.id+documented) {
		if err := c.document(ctx, r, *out.Document, p); err != nil {
			return "", c.sendError(p.To, err)
		}
		c.remember(r.id + documented)
	}
	m := text(out.Text)
	if list, err := parseRef(p.Burst); err == nil && list.number == r.number {
		m = c.textMessage(r.number, out.Text, list.id, true)
	}
	if err := c.deliverTo(ctx, r, m, c.due(ctx, r, p, m, true)); err != nil {
		return "", c.sendError(p.To, err)
	}
	return r.String(), nil
}

// due waits for the turn of a card or its document, and renders the card again if it has changed.
func (c *Connector) due(ctx context.Context, to ref, p connectors.Prompt, m *waE2E.Message, begins bool) func() error {
	return func() error {
		was, err := p.Request.Revision, c.pace.wait(ctx, to.number)
		if err == nil {
			p, err = p.Refreshed(ctx, begins)
		}
		if m.ExtendedTextMessage != nil && p.Request.Revision != was {
			m.ExtendedTextMessage.Text = proto.String(show(p, c.now()).Text)
		}
		return err
	}
}

// documented is the suffix of a document's id; the rest is its card's.
const documented = "D"

// tooLarge ends the error of an upload that is refused for good; the library has no type for it.
const tooLarge = "status code 413"

func (c *Connector) document(ctx context.Context, r ref, d card.Document, p connectors.Prompt) error {
	cli := c.client.Load()
	if cli == nil {
		return errAway
	}
	up, err := cli.Upload(ctx, d.Body, whatsmeow.MediaDocument)
	if err != nil && strings.HasSuffix(err.Error(), " "+tooLarge) {
		return &connectors.UnreachableError{Reason: "WhatsApp does not take the file that the card needs: it is too large"}
	}
	if err != nil {
		return fmt.Errorf("upload the document: %w", err)
	}
	m := &waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{
		FileName: proto.String(d.Name), Title: proto.String(d.Name), Mimetype: proto.String(d.Type), Caption: proto.String(d.Caption),
		URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256,
		FileSHA256: up.FileSHA256, FileLength: &up.FileLength,
	}}
	return c.deliverTo(ctx, ref{r.number, r.id + documented}, m, c.due(ctx, r, p, m, false))
}

// Edit updates a card. If it can no longer be edited, a reply says how the request ended.
func (c *Connector) Edit(ctx context.Context, name string, p connectors.Prompt) error {
	r, err := parseRef(name)
	if err != nil {
		return &connectors.UnreachableError{Reason: err.Error()}
	}
	sent := p.SentAt
	if sent.IsZero() { // the id was allocated, but a crash or a lost confirmation hides the time of sending, which is later than this
		sent = p.Request.CreatedAt
	}
	switch over := c.now().Sub(sent) > editTime; {
	case p.Request.State == permissions.Pending && p.To.Addresses[Name] != "" && p.To.Addresses[Name] != r.number:
		c.inBackground(ctx, func(ctx context.Context) error { return c.endThere(ctx, r, p, over) })
		return connectors.ErrResend // the person has another number now
	case over && p.Untitled, p.Untitled && p.Request.State == permissions.Pending && fit(p).Document != nil:
		return connectors.ErrResend
	case over && p.Request.State == permissions.Pending:
		return nil // the outcome will include the change
	case over:
		return c.replyOutcome(ctx, r, p)
	}
	cli := c.client.Load()
	if cli == nil {
		return errAway
	}
	err = c.add(ctx, ref{r.number, newID("")}, edits, cli.BuildEdit(address(r.number), r.id, text(show(p, c.now()).Text)))
	return c.sendError(p.To, err)
}

// endThere says at a number that is no longer the person's, in the card or in a reply, that the card cannot be answered any more.
func (c *Connector) endThere(ctx context.Context, r ref, p connectors.Prompt, over bool) error {
	p.Locked, p.To.Name = true, ""
	cli := c.client.Load()
	switch {
	case cli == nil:
		return errAway
	case over:
		return c.add(ctx, ref{r.number, newID("")}, edits, c.textMessage(r.number, p.Code+" · "+head(p, c.now()), r.id, true))
	}
	return c.add(ctx, ref{r.number, newID("")}, edits, cli.BuildEdit(address(r.number), r.id, text(show(p, c.now()).Text)))
}

// SendBurst is [connectors.BurstSender]. A list that WhatsApp did not confirm is sent again as the same message.
func (c *Connector) SendBurst(ctx context.Context, b connectors.Burst) (string, error) {
	if err := c.Reach(b.To); err != nil {
		return "", err
	}
	l := list{number: b.To.Addresses[Name]}
	for _, it := range b.Items[:min(1, len(b.Items))] {
		l.first = it.Request.ID
	}
	sent, again := c.lists.Get(l)
	if !again {
		sent = [2]string{newID(""), c.listed(b)}
	}
	r := ref{l.number, sent[0]}
	turn := func() error {
		err := c.pace.wait(ctx, r.number)
		if err == nil {
			b.Begin()
		}
		return err
	}
	err := c.deliverTo(ctx, r, text(sent[1]), turn)
	if err == nil && c.listed(b) != sent[1] {
		err = c.EditBurst(ctx, r.String(), b)
	}
	if err != nil {
		c.lists.Add(l, sent)
	} else {
		c.lists.Remove(l)
	}
	return r.String(), c.sendError(b.To, err)
}

// list is a list that was sent to a number, by its first request.
type list struct {
	number string
	first  permissions.ID
}

// EditBurst is [connectors.BurstSender]. A list that can no longer be edited stays as it is.
func (c *Connector) EditBurst(ctx context.Context, name string, b connectors.Burst) error {
	r, err := parseRef(name)
	if err != nil {
		return &connectors.UnreachableError{Reason: err.Error()}
	}
	if b.To.Addresses[Name] != "" && b.To.Addresses[Name] != r.number {
		return connectors.ErrResend
	}
	for _, it := range b.Items {
		switch over := !it.SentAt.IsZero() && c.now().Sub(it.SentAt) > editTime; {
		case over && b.Untitled():
			return connectors.ErrResend
		case over:
			return nil
		}
	}
	cli := c.client.Load()
	if cli == nil {
		return errAway
	}
	turn := func() error { return c.pace.room(r.number, edits) }
	if b.Joined > 0 { // it is how they are shown first
		turn = func() error { return c.pace.wait(ctx, r.number) }
	}
	begins := func() error {
		err := turn()
		if err == nil {
			b.Begin()
		}
		return err
	}
	m := cli.BuildEdit(address(r.number), r.id, text(c.listed(b)))
	return c.sendError(b.To, c.deliverTo(ctx, ref{r.number, newID("")}, m, begins))
}

// maxEnds is how many cards [Connector.lastReplies] remembers.
const maxEnds = 1000

// replyOutcome replies to a card that cannot be edited, once for each outcome.
func (c *Connector) replyOutcome(ctx context.Context, r ref, p connectors.Prompt) error {
	words := p.Code + " · " + card.Outcome(p.Request, card.Options{Location: p.To.Location, Language: p.To.Language, Self: p.To.Name}).Text
	if known, _ := c.lastReplies.Get(r); known == words {
		return nil
	}
	if err := c.add(ctx, ref{r.number, newID("")}, edits, c.textMessage(r.number, spelled(words), r.id, true)); err != nil {
		return c.sendError(p.To, err)
	}
	c.lastReplies.Add(r, words)
	return nil
}

// Notify sends a notice. A reminder replies to the newest of its cards.
func (c *Connector) Notify(ctx context.Context, n connectors.Notice) error {
	if err := c.Reach(n.To); err != nil {
		return err
	}
	text := renderNotice(n, c.now())
	if text == "" {
		return nil
	}
	about := ""
	for _, p := range n.Waiting {
		if r, err := parseRef(p.Ref); err == nil && r.number == n.To.Addresses[Name] {
			about = r.id
		}
	}
	message := c.textMessage(n.To.Addresses[Name], text, about, true)
	return c.sendError(n.To, c.add(ctx, ref{n.To.Addresses[Name], newID("")}, edits, message))
}

// sendText sends a text under an id that was allocated for it, so that retries send one message. Unless about is empty it
// replies to that message, which is ours or theirs.
func (c *Connector) sendText(ctx context.Context, to ref, words, about string, ours bool) error {
	return c.add(ctx, to, replies, c.textMessage(to.number, words, about, ours))
}

func (c *Connector) textMessage(number, words, about string, ours bool) *waE2E.Message {
	m := text(words)
	if about != "" {
		participant := address(number)
		if cli := c.client.Load(); ours && cli != nil {
			participant = cli.Store.GetJID().ToNonAD()
		}
		m.ExtendedTextMessage.ContextInfo = &waE2E.ContextInfo{
			StanzaID: proto.String(about), Participant: proto.String(participant.String()),
			QuotedMessage: &waE2E.Message{Conversation: proto.String("")},
		}
	}
	return m
}

// mark puts an emoji on a received message, under an id that was allocated for it.
func (c *Connector) mark(ctx context.Context, as ref, id, emoji string) error {
	chat := address(as.number)
	return c.add(ctx, as, replies, &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{
		Key: &waCommon.MessageKey{
			RemoteJID: proto.String(chat.String()), FromMe: proto.Bool(false), ID: proto.String(id),
		},
		Text: proto.String(emoji), SenderTimestampMS: proto.Int64(c.now().UnixMilli()),
	}})
}

func text(words string) *waE2E.Message {
	return &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: proto.String(words)}}
}

// add sends a message that can wait. If that would use the reserve for more urgent ones, the error has the delay.
func (c *Connector) add(ctx context.Context, to ref, part int, m *waE2E.Message) error {
	return c.deliverTo(ctx, to, m, func() error { return c.pace.room(to.number, part) })
}

// deliverTo sends one message once turn returns, and waits until WhatsApp or a phone confirms it.
func (c *Connector) deliverTo(ctx context.Context, to ref, m *waE2E.Message, turn func() error) error {
	cli := c.client.Load()
	if c.arrived(to.id) { // the confirmation was lost
		return nil
	}
	if cli == nil || !c.state.in(isConnected) {
		return errAway
	}
	if err := turn(); err != nil {
		return err
	}
	sending, there := context.WithCancel(ctx)
	defer there()
	c.onReceipt.Add(to.id, there)
	defer c.onReceipt.Remove(to.id)
	at, err := c.queue.send(sending, cli, to, m)
	switch {
	case err != nil && ctx.Err() == nil && c.arrived(to.id):
		return nil
	case err != nil:
		return &unsent{err}
	}
	c.clock(to.id, at)
	return nil
}

// unsent is an error of the library about a message, without addresses.
type unsent struct{ err error }

// addresses matches addresses of people and devices.
var addresses = regexp.MustCompile(`[0-9][0-9.:_]*@[a-z.]+|[0-9]{6,}`)

func (u *unsent) Error() string {
	return "send to WhatsApp: " + addresses.ReplaceAllLiteralString(u.err.Error(), "…")
}

func (u *unsent) Unwrap() error { return u.err }

// sendError converts an error of sending for the engine: permanent with a reason for people, or temporary.
func (c *Connector) sendError(p connectors.Person, err error) error {
	switch {
	case err == nil:
		return nil
	case isCold(err):
		c.lost.Note(p.Addresses[Name], "WhatsApp lets nobody write to "+p.Name+", who has not written first; "+
			p.Name+" sends the linked number any message", c.now())
		return c.lost.Reach(p.Addresses[Name], p, c.now())
	case hasNoAccount(err):
		return &connectors.UnreachableError{Reason: p.Name + "'s number is not on WhatsApp"}
	}
	return err
}

// isCold and hasNoAccount report permanent reasons why a number gets no messages; retrying could get the account banned.
func isCold(err error) bool {
	return errors.Is(err, whatsmeow.ErrServerReturnedError) && strings.HasSuffix(err.Error(), " "+coldContact)
}

func hasNoAccount(err error) bool { return strings.Contains(err.Error(), noAccount) }

// withoutAddresses is an error's text without addresses.
func withoutAddresses(err error) string {
	if told := wire.Plain(err).Error(); told != err.Error() {
		return told
	}
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err.Error()
}

// ref identifies one of our messages by its recipient's number and its id.
type ref struct{ number, id string }

func (r ref) String() string { return r.number + "/" + r.id }

func parseRef(text string) (r ref, err error) {
	number, id, ok := strings.Cut(text, "/")
	if !ok || !strings.HasPrefix(number, "+") || id == "" {
		return r, errors.New("not a WhatsApp message")
	}
	return ref{number, id}, nil
}

// randomBytes makes our ids as long as those of WhatsApp's own client.
const randomBytes = 4

// newID allocates a message's id in the form of WhatsApp's own client. It contains the code of its request, if any, by
// which a late answer finds the request. The decision still compares the whole id with the copy's.
func newID(code string) string {
	var about [permissions.CodeLength]byte
	var random [randomBytes]byte
	copy(about[:], code)
	_, _ = rand.Read(random[:]) // never fails
	if code == "" {
		_, _ = rand.Read(about[:])
		about[0] |= 0x80 // no code begins like that
	}
	return whatsmeow.WebMessageIDPrefix + strings.ToUpper(hex.EncodeToString(append(about[:], random[:]...)))
}

// codeOf is the code in an id; empty if the message is not ours or about no request.
func codeOf(id string) string {
	rest, ours := strings.CutPrefix(id, whatsmeow.WebMessageIDPrefix)
	raw, err := hex.DecodeString(rest)
	if !ours || err != nil || len(raw) != permissions.CodeLength+randomBytes {
		return ""
	}
	code := string(raw[:permissions.CodeLength])
	if _, known := (permissions.Coder{}).Decode(code); !known {
		return ""
	}
	return code
}

const (
	// backgroundTime limits background sends.
	backgroundTime = time.Minute
	// stopGrace is what remains of it at a stop.
	stopGrace = 500 * time.Millisecond
)

// inBackground sends in the background, so that nothing waits for it. It retries for backgroundTime, or for stopGrace once ctx ends.
func (c *Connector) inBackground(ctx context.Context, send func(context.Context) error) {
	c.inBackgroundAfter(ctx, 0, send)
}

func (c *Connector) inBackgroundAfter(ctx context.Context, delay time.Duration, send func(context.Context) error) {
	c.work.Go(func() {
		lasting, done := context.WithTimeout(context.WithoutCancel(ctx), delay+backgroundTime)
		defer done()
		defer context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, done) })()
		if timing.Pause(lasting, delay) != nil {
			return
		}
		tries := c.newTries()
		for {
			err := send(lasting)
			if err == nil {
				return
			}
			if isCold(err) || hasNoAccount(err) || timing.Pause(lasting, cmp.Or(connectors.RetryAfter(err), tries.NextBackOff())) != nil {
				c.log.Debug("message not sent", "err", err)
				return
			}
		}
	})
}

// maxSaid limits one agent message in characters; longer ones are split.
const maxSaid = 4000

// SendMessage is [connectors.MessageSender].
func (c *Connector) SendMessage(ctx context.Context, s connectors.AgentMessage) (name string, more bool, err error) {
	if err := c.Reach(s.To); err != nil {
		return "", false, err
	}
	parts := talk.Parts(s, talk.Limits{Text: maxSaid, Unit: card.Characters})
	if s.Part >= len(parts) {
		return "", false, nil
	}
	r := ref{s.To.Addresses[Name], newID("")}
	turn := func() error { return c.pace.wait(ctx, r.number) }
	if err := c.deliverTo(ctx, r, text(renderMessage(parts[s.Part])), turn); err != nil {
		return "", false, c.sendError(s.To, err)
	}
	return r.String(), s.Part+1 < len(parts), nil
}

// renderMessage renders an agent message: code between WhatsApp's signs, nothing else formatted.
func renderMessage(p talk.Part) string {
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

// ShowTyping is [connectors.TypingIndicator].
func (c *Connector) ShowTyping(ctx context.Context, to connectors.Person) error {
	cli := c.client.Load()
	if cli == nil || !c.state.in(isConnected) || c.Reach(to) != nil {
		return nil //nolint:nilerr // the indicator is optional
	}
	return cli.SendChatPresence(ctx, address(to.Addresses[Name]), types.ChatPresenceComposing, types.ChatPresenceMediaText)
}
