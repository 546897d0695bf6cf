// Package gateway is a small but complete channel: it reaches people through a chat gateway that speaks HTTP. The page
// docs/contributing/connector.md explains it step by step.
//
// The gateway has three calls. POST /messages sends a text under an ID of the bot's choice, and does nothing if it has that already;
// PUT /messages/ID replaces it; GET /updates?after=N confirms the updates up to N and waits for later ones. It proves who wrote: an
// update's "from" is an account that cannot be forged. Cards are texts, and people answer in words.
package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/connectors/talk"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
	"github.com/daycared/daycared/permissions/timing"
)

// Name identifies this connector in copies, decided_via and the configuration.
const Name = "gateway"

const (
	maxText    = 4000 // characters of one message
	maxReply   = 1 << 20
	callTime   = 10 * time.Second
	pollTime   = time.Minute
	retryDelay = time.Second
)

const help = "daycared asks you here when an agent needs a permission. Answer as the last line of a card says, or write /pending."

// Options configure a [Connector].
type Options struct {
	URL   string // of the gateway, without a slash at its end
	Token string // of the bot; it is sent with every call and never logged
	HTTP  *http.Client
	Now   func() time.Time
	Log   *slog.Logger
	Retry time.Duration // after a failed poll; 0: a second
}

// Connector is one bot at a gateway. It is safe for concurrent use.
type Connector struct {
	Options
	in        connectors.Services
	reader    *conversation.Reader
	strangers connectors.OncePerDay[string] // unknown accounts reported to the owner
	stopped   atomic.Bool
}

var (
	_ connectors.Connector           = (*Connector)(nil)
	_ connectors.Editor              = (*Connector)(nil)
	_ connectors.ReachabilityChecker = (*Connector)(nil)
	_ connectors.Notifier            = (*Connector)(nil)
	_ connectors.FitChecker          = (*Connector)(nil)
	_ connectors.MessageIDAllocator  = (*Connector)(nil)
	_ connectors.MessageSender       = (*Connector)(nil)
)

// Kind is this channel's row in [connectors.Kinds].
var Kind = connectors.Kind{
	Name: Name, Label: "Gateway", Description: "an account", Example: `"fay@example.org"`, Parse: func(s string) (string, error) {
		name, host, _ := strings.Cut(s, "@")
		odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '@' }
		if name == "" || host == "" || strings.ContainsFunc(name+host, odd) {
			return "", errors.New("is not an account; write one, as in fay@example.org")
		}
		return s, nil
	},
}

// New makes a connector that hands what people write to in. It performs no I/O.
func New(o Options, in connectors.Services) *Connector {
	o.HTTP, o.Retry = cmp.Or(o.HTTP, &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a redirected message may not arrive
	}}), cmp.Or(o.Retry, retryDelay)
	return &Connector{Options: o, in: in, reader: conversation.New(conversation.Options{
		Inbound: in, Now: o.Now, Help: help,
		Account: func(id connectors.Identity, in i18n.Language) string {
			return in.Sprintf("Your account is %s.", card.Visible(id.Address))
		},
	})}
}

// Name is [Name].
func (c *Connector) Name() string { return Name }

// Reach reports whether a person has an account.
func (c *Connector) Reach(p connectors.Person) error {
	if p.Addresses[Name] == "" {
		return &connectors.UnreachableError{Reason: p.Name + " has no account at the gateway"}
	}
	return nil
}

// render is the card of a prompt, its state, and how to answer.
func (c *Connector) render(p connectors.Prompt) (text string, tooBig bool) {
	o := card.Options{Now: c.Now(), Location: p.To.Location}
	m := card.Fit(p, o, card.Limits{Text: maxText, Unit: card.Characters, Document: -1})
	rows := []string{m.Text, card.Settled(p.Request, o)}
	switch {
	case p.Request.State != permissions.Pending || p.Locked:
	case m.TooBig:
		rows = append(rows, "Reply NO "+p.Code+": what cannot be shown whole cannot be allowed here.")
	default:
		rows = append(rows, reply.ChatHelp(p.Request, p.Code, false, p.To.Language)+".")
	}
	return strings.Join(rows, "\n"), m.TooBig
}

// Fits is [connectors.FitChecker].
func (c *Connector) Fits(p connectors.Prompt) bool {
	_, tooBig := c.render(p)
	return !tooBig
}

// AllocateID is [connectors.MessageIDAllocator]: a reply that overtakes the gateway's confirmation finds its card, and a card that
// is sent again is still one message.
func (c *Connector) AllocateID(connectors.Prompt) string { return rand.Text() }

// Send shows a request.
func (c *Connector) Send(ctx context.Context, p connectors.Prompt) (ref string, err error) {
	text, _ := c.render(p)
	return p.Ref, c.post(ctx, p.To, message{ID: p.Ref, Text: text})
}

// Edit updates the card of a request.
func (c *Connector) Edit(ctx context.Context, ref string, p connectors.Prompt) error {
	text, _ := c.render(p)
	return c.call(ctx, http.MethodPut, "/messages/"+url.PathEscape(ref), message{Text: card.Isolate(text)}, nil)
}

// Notify is [connectors.Notifier].
func (c *Connector) Notify(ctx context.Context, n connectors.Notice) error {
	rows := card.Notice(n, card.Options{Now: c.Now(), Location: n.To.Location, Self: n.To.Name})
	if len(rows) == 0 {
		return nil
	}
	return c.post(ctx, n.To, message{ID: rand.Text(), Text: strings.Join(rows, "\n")})
}

// SendMessage is [connectors.MessageSender].
func (c *Connector) SendMessage(ctx context.Context, s connectors.AgentMessage) (ref string, more bool, err error) {
	parts := talk.Parts(s, talk.Limits{Text: maxText, Unit: card.Characters})
	if s.Part >= len(parts) {
		return "", false, nil
	}
	ref = rand.Text()
	return ref, s.Part+1 < len(parts), c.post(ctx, s.To, message{ID: ref, Text: parts[s.Part].Plain()})
}

// Run hands on what people write until ctx ends. It confirms an update only once everything up to it was stored.
func (c *Connector) Run(ctx context.Context) error {
	defer c.stopped.Store(true)
	for done := int64(0); ctx.Err() == nil; {
		next, err := c.poll(ctx, done)
		done = next
		if err != nil && ctx.Err() == nil {
			c.Log.Warn("poll the gateway: retrying", "err", err)
			_ = timing.Pause(ctx, c.Retry) // the loop checks ctx
		}
	}
	return nil
}

// poll waits for updates after the one given, handles them in order, and returns the last one that was stored.
func (c *Connector) poll(ctx context.Context, done int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	var updates []update
	if err := c.call(ctx, http.MethodGet, "/updates?after="+strconv.FormatInt(done, 10), nil, &updates); err != nil {
		return done, err
	}
	slices.SortFunc(updates, func(a, b update) int { return cmp.Compare(a.Number, b.Number) })
	for _, u := range updates {
		if u.Number <= done { // it came again
			continue
		}
		if err := c.handle(ctx, u); err != nil {
			return done, err
		}
		done = u.Number
	}
	return done, nil
}

// handle hands one message on. A nil error means that it is stored or refused.
func (c *Connector) handle(ctx context.Context, u update) error {
	id := connectors.Identity{Via: Name, UID: permissions.NoUID, Address: u.From}
	who, err := c.in.Person(id)
	if permissions.AsRefusal(err) != nil {
		_, err = c.strangers.Do(u.From, c.Now(), func() error {
			return c.in.NoteUnknownSender(ctx, permissions.UnknownSender{Via: Name, Account: u.From})
		})
		return err
	}
	if err != nil {
		return err
	}
	did, err := c.reader.Read(ctx, conversation.Message{
		Message: connectors.Message{From: id, Text: u.Text, ReplyTo: u.ReplyTo, Key: Name + ":" + u.ID}, Who: who, At: c.Now(),
	})
	if err != nil {
		return err
	}
	say := did.Say
	for _, d := range did.Decided {
		say = append(say, d.Words)
	}
	for _, words := range say { // best effort: the card shows what counts
		if err := c.post(ctx, who, message{ID: rand.Text(), Text: card.Plain(words), ReplyTo: u.ID}); err != nil {
			c.Log.Debug("reply to a message", "err", err)
		}
	}
	return nil
}

// message is a text on its way to a person.
type message struct {
	ID      string `json:"id,omitzero"`
	To      string `json:"to,omitzero"`
	Text    string `json:"text,omitzero"`
	ReplyTo string `json:"reply_to,omitzero"`
}

// update is a message from a person.
type update struct {
	Number  int64  `json:"number"`
	ID      string `json:"id"`
	From    string `json:"from"`
	Text    string `json:"text"`
	ReplyTo string `json:"reply_to"`
}

// post sends a text to a person.
func (c *Connector) post(ctx context.Context, to connectors.Person, m message) error {
	if err := c.Reach(to); err != nil {
		return err
	}
	m.To, m.Text = to.Addresses[Name], card.Isolate(m.Text)
	return c.call(ctx, http.MethodPost, "/messages", m, nil)
}

var errStopped = errors.New("the connector has stopped")

// call makes one call. An error matches [connectors.ErrUnreachable] if the gateway says that no retry can help.
func (c *Connector) call(ctx context.Context, method, path string, in, out any) error {
	if c.stopped.Load() {
		return errStopped
	}
	if method != http.MethodGet {
		short, done := context.WithTimeout(ctx, callTime)
		defer done()
		ctx = short
	}
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("call the gateway: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("call the gateway: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	answer, err := c.HTTP.Do(r)
	if err != nil {
		return fmt.Errorf("call the gateway: %w", err)
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusGone:
		return &connectors.UnreachableError{Reason: "the gateway does not know this account or message any more"}
	case answer.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("call the gateway: it answers %s", answer.Status)
	case out == nil:
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxReply)).Decode(out); err != nil {
		return fmt.Errorf("read the gateway's answer: %w", err)
	}
	return nil
}
