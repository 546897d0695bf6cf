package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// channel is a chat service, which lives on when the daemon dies: what everybody has on their screen.
type channel struct {
	name  string
	named bool // what is sent there has a name before it is: sent twice, it is one message
	bound bool // to the daemon's process: what it shows ends with it, and only fay looks
	away  bool // nothing gets through just now
	gone  map[string]bool
	cards []*card
	made  int
}

// card is a request as somebody has it before them.
type card struct {
	ref, person  string
	request      permissions.Request
	button, code string
}

// cardAt is whose card of what it is, and where.
type cardAt struct {
	request           permissions.ID
	person, connector string
}

// line is a connector of one life of the daemon to a channel.
type line struct {
	*channel
	w    *world
	gate *gate
}

var (
	_ connectors.Connector          = (*line)(nil)
	_ connectors.Editor             = (*line)(nil)
	_ connectors.Notifier           = (*line)(nil)
	_ connectors.MessageIDAllocator = (*naming)(nil)
	_ connectors.EphemeralChannel   = (*screen)(nil)
	_ connectors.Screen             = (*screen)(nil)
)

// naming is a line to a channel that names its messages.
type naming struct{ *line }

// AllocateID is [connectors.MessageIDAllocator]. The name follows from what it is about, so that a name that got lost is the same again.
func (n *naming) AllocateID(p connectors.Prompt) string { return nameFor(p) }

func nameFor(p connectors.Prompt) string { return "n-" + p.To.Name + "-" + string(p.Request.ID) }

// screen is a line to what ends with the daemon.
type screen struct{ *line }

// Ephemeral is [connectors.EphemeralChannel].
func (*screen) Ephemeral() {}

// Screen is [connectors.Screen].
func (*screen) Screen() {}

// connect makes the connector of a new life.
func (c *channel) connect(w *world, g *gate) connectors.Connector {
	l := &line{channel: c, w: w, gate: g}
	switch {
	case c.named:
		return &naming{l}
	case c.bound:
		c.cards = nil
		return &screen{l}
	}
	return l
}

// Name is [connectors.Connector].
func (l *line) Name() string { return l.name }

// Run waits: what people do is delivered by the driver.
func (l *line) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

var errAway = errors.New("nothing gets through just now")

// later is an error that says when to try again.
type later struct{ error }

func (later) RetryAfter() time.Duration { return 3 * time.Second }

func away() error { return errAway }

// reaches is why nothing gets to a person just now, or ever. The world's lock is held.
func (l *line) reaches(person string) error {
	switch {
	case l.gone[person]:
		return &connectors.UnreachableError{Reason: person + " has blocked the bot"}
	case l.away && l.named:
		return later{errAway}
	case l.away:
		return errAway
	}
	return nil
}

// Send is [connectors.Connector].
func (l *line) Send(ctx context.Context, p connectors.Prompt) (string, error) {
	at := cardAt{p.Request.ID, p.To.Name, l.name}
	what := fmt.Sprintf("%s sends %s %d of %s", l.name, p.To.Name, p.Request.Revision, l.w.nameOf(p.Request.ID))
	ref, done, err := through(ctx, l.gate, sending, what, away, func() (string, error) {
		l.w.mu.Lock()
		defer l.w.mu.Unlock()
		if err := l.reaches(p.To.Name); err != nil {
			return "", err
		}
		return l.put(p), nil
	})
	if done && err != nil {
		l.w.unsure(at)
	}
	return ref, err
}

// put shows a card. The lock is held.
func (l *line) put(p connectors.Prompt) string {
	if l.named {
		p.Ref = nameFor(p)
		if i := slices.IndexFunc(l.cards, func(c *card) bool { return c.ref == p.Ref }); i >= 0 {
			l.cards[i].request = p.Request
			return p.Ref
		}
	}
	ref := p.Ref
	if !l.named {
		l.made++
		ref = fmt.Sprintf("%s-%d", l.name, l.made)
	}
	l.cards = append(l.cards, &card{ref: ref, person: p.To.Name, request: p.Request, button: p.Button, code: p.Code})
	return ref
}

// Edit is [connectors.Editor].
func (l *line) Edit(ctx context.Context, ref string, p connectors.Prompt) error {
	what := fmt.Sprintf("%s edits %s %d of %s", l.name, p.To.Name, p.Request.Revision, l.w.nameOf(p.Request.ID))
	_, _, err := through(ctx, l.gate, sending, what, away, func() (struct{}, error) {
		l.w.mu.Lock()
		defer l.w.mu.Unlock()
		if err := l.reaches(p.To.Name); err != nil {
			return struct{}{}, err
		}
		i := slices.IndexFunc(l.cards, func(c *card) bool { return c.ref == ref })
		if i < 0 {
			return struct{}{}, connectors.ErrResend
		}
		l.cards[i].request = p.Request
		return struct{}{}, nil
	})
	return err
}

// Notify is [connectors.Notifier].
func (l *line) Notify(ctx context.Context, n connectors.Notice) error {
	what := fmt.Sprintf("%s tells %s of %s", l.name, n.To.Name, n.About)
	_, _, err := through(ctx, l.gate, sending, what, away, func() (struct{}, error) {
		l.w.mu.Lock()
		defer l.w.mu.Unlock()
		return struct{}{}, l.reaches(n.To.Name)
	})
	return err
}

// Reach is [connectors.ReachabilityChecker].
func (l *line) Reach(p connectors.Person) error {
	if (l.bound && p.Name != "fay") || (!l.bound && p.Addresses[l.name] == "") {
		return &connectors.UnreachableError{Reason: p.Name + " has no account at " + l.name}
	}
	return nil
}
