package telegram

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/permissions"
)

func TestPassesTheSuite(t *testing.T) {
	connectortest.Run(t, func(t *testing.T) connectortest.Harness {
		s := newSuite(t)
		return connectortest.Harness{
			Connector: s, To: s.fay, Do: s.do, Writes: s.writes, Sees: s.sees, Seen: s.seen, Stranger: s.stranger,
			Is: func(id connectors.Identity) bool { return id.Telegram == s.fay.Telegram },
		}
	})
}

// suite is a connector whose cards are known by their buttons, as an engine knows them, and fay's phone.
type suite struct {
	*Connector
	server *telegramtest.Server
	fay    connectors.Person
	phone  *telegramtest.Person
	eve    *telegramtest.Person

	mu    sync.Mutex
	cards []connectors.Prompt // with what they carry
	at    []time.Time
	taps  []*telegramtest.Tap
}

func newSuite(t *testing.T) *suite {
	server := telegramtest.New(t)
	s := &suite{
		Connector: New(Options{
			Token: Token(server.Token()), APIURL: server.URL(), Now: server.Now, Log: slog.New(slog.DiscardHandler),
		}),
		server: server, fay: connectors.Person{Name: "fay", Telegram: 2001, Location: time.UTC},
		phone: server.Person(telegramtest.User{ID: 2001, FirstName: "Fay"}),
		eve:   server.Person(telegramtest.User{ID: eveID, FirstName: "Eve"}),
	}
	s.phone.Start("")
	s.eve.Start("")
	quick(s.Connector, []connectors.Person{s.fay})
	return s
}

// Run puts what an engine knows of buttons between the connector and the suite's desk.
func (s *suite) Run(ctx context.Context, h connectors.Handler) error {
	return s.Connector.Run(ctx, &counter{Desk: h.(connectortest.Desk), suite: s})
}

// Send gives the card a button value of its own.
func (s *suite) Send(ctx context.Context, p connectors.Prompt) (string, error) {
	s.mu.Lock()
	p.Button = fmt.Sprintf("%d-abcdefghijklmnopqrstuv", len(s.cards))
	s.cards, s.at = append(s.cards, p), append(s.at, s.server.Now())
	n := len(s.cards) - 1
	s.mu.Unlock()
	name, err := s.Connector.Send(ctx, p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cards[n].Ref = name
	return name, err
}

// Edit edits the card with its button value.
func (s *suite) Edit(ctx context.Context, name string, p connectors.Prompt) error {
	s.mu.Lock()
	for i, c := range s.cards {
		if c.Ref == name {
			p.Ref, p.Button = name, c.Button
			s.cards[i] = p
		}
	}
	s.mu.Unlock()
	return s.Connector.Edit(ctx, name, p)
}

// pressed waits for the card with a button that fits, and presses it.
func (s *suite) pressed(t testing.TB, code string, fits func(press) bool) {
	t.Helper()
	found := ""
	m := s.shown(t, "a button of "+code, func(m telegramtest.Message) bool {
		for _, b := range slices.Concat(m.Keyboard...) {
			if p, ok := parseData(b.Data); ok && strings.Contains(m.Text, code) && fits(p) {
				found = b.Data
				return true
			}
		}
		return false
	})
	tap := s.phone.TapsData(m.ID, found)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taps = append(s.taps, tap)
}

func (s *suite) shown(t testing.TB, what string, fits func(telegramtest.Message) bool) telegramtest.Message {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), longEnough)
	defer done()
	m, err := s.phone.Sees(ctx, fits)
	if err != nil {
		t.Fatalf("wait for %s: %v", what, err)
	}
	return m
}

func (s *suite) do(t testing.TB, p connectors.Prompt, d connectors.Decision) {
	t.Helper()
	switch {
	case d.Comment != "" && d.Call != 0: // no button denies one call with a reason
		s.writes(t, p, fmt.Sprintf("no %s #%d because %s", p.Code, d.Call, d.Comment))
	case d.Comment != "":
		step := stepReason
		if d.Answer == permissions.Other {
			step = stepOther
		}
		s.pressed(t, p.Code, func(b press) bool { return b.Step == step })
		m := s.shown(t, "the question for a reason", func(m telegramtest.Message) bool {
			return m.ForceReply != nil && strings.Contains(m.Text, p.Code)
		})
		s.phone.Replies(m.ID, d.Comment)
	default:
		if d.Really {
			s.pressed(t, p.Code, func(b press) bool { return b.Answer == d.Answer && b.Step == stepReally })
		}
		s.pressed(t, p.Code, func(b press) bool { return b.Answer == d.Answer && b.Call == d.Call && b.Step == "" })
	}
}

func (s *suite) writes(t testing.TB, p connectors.Prompt, text string) {
	t.Helper()
	s.sees(t, p.Code)
	s.phone.Writes(text)
}

func (s *suite) sees(t testing.TB, text string) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for over := time.After(longEnough); !strings.Contains(s.seen(), text); {
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("fay does not see %q but\n%s", text, s.seen())
		}
	}
}

// seen is what was on the phone: messages, what they were before, and toasts.
func (s *suite) seen() string {
	var all strings.Builder
	for _, m := range s.phone.Messages() {
		for _, v := range m.History {
			all.WriteString(v.Text + "\n")
		}
		if all.WriteString(m.Text + "\n"); m.Document != nil {
			all.Write(m.Document.Bytes)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tap := range s.taps {
		if tap.Answered() {
			toast, _ := tap.Toast(context.Background())
			all.WriteString(toast.Text + "\n")
		}
	}
	return all.String()
}

// stranger presses fay's button on her message, as a client can that makes up what it sends.
func (s *suite) stranger(t testing.TB, p connectors.Prompt) {
	m := s.shown(t, "the card", func(m telegramtest.Message) bool { return strings.Contains(m.Text, p.Code) })
	s.eve.TapsData(m.ID, data(t, m, "Allow once"))
	s.eve.Writes("yes " + p.Code)
}

// counter wraps the suite's desk.
type counter struct {
	connectortest.Desk
	suite *suite
}

var _ Desk = (*counter)(nil)

// find is the card whose button was pressed.
func (c *counter) find(d connectors.Decision) (p connectors.Prompt, n int, err error) {
	s := c.suite
	s.mu.Lock()
	defer s.mu.Unlock()
	n = slices.IndexFunc(s.cards, func(p connectors.Prompt) bool { return p.Button == d.Button })
	switch {
	case n < 0:
		return p, n, permissions.Unknown("button")
	case d.From.Telegram != s.fay.Telegram:
		return p, n, permissions.NotYours()
	case s.cards[n].Ref != d.Ref && s.cards[n].Ref != "":
		return p, n, permissions.Moved()
	}
	return s.cards[n], n, nil
}

// OnPermission names the request for the suite's desk.
func (c *counter) OnPermission(ctx context.Context, d connectors.Decision) (permissions.Request, error) {
	if d.Button == "" {
		r, err := c.Desk.OnPermission(ctx, d)
		c.note(r)
		return r, err
	}
	p, _, err := c.find(d)
	if err != nil {
		return permissions.Request{}, err
	}
	d.Request = p.Request.ID
	r, err := c.Desk.OnPermission(ctx, d)
	c.note(r)
	return r, err
}

func (c *counter) note(r permissions.Request) {
	c.suite.mu.Lock()
	defer c.suite.mu.Unlock()
	for i := range c.suite.cards {
		if c.suite.cards[i].Request.ID == r.ID {
			c.suite.cards[i].Request = r
		}
	}
}

func (c *counter) Preview(_ context.Context, d connectors.Decision) (connectors.Prompt, error) {
	p, _, err := c.find(d)
	if err == nil && p.Request.State != permissions.Pending {
		err = permissions.Refused(&permissions.SettledError{Request: p.Request})
	}
	return p, err
}

func (c *counter) Person(id connectors.Identity) (connectors.Person, error) {
	if id.Telegram != c.suite.fay.Telegram {
		return connectors.Person{}, permissions.NotConfigured(id.UID)
	}
	return c.suite.fay, nil
}

func (c *counter) NoteUnknownSender(context.Context, permissions.UnknownSender) error { return nil }

func (c *counter) Pending(
	context.Context, connectors.Identity, permissions.ID, int,
) (waiting []permissions.RequestView, err error) {
	c.suite.mu.Lock()
	defer c.suite.mu.Unlock()
	for i, p := range c.suite.cards {
		if p.Request.State == permissions.Pending {
			shown := permissions.Copy{Person: p.To.Name, Connector: Name, Ref: p.Ref, SentAt: c.suite.at[i]}
			waiting = append(waiting, permissions.RequestView{
				Request: p.Request, Code: p.Code, Copies: []permissions.Copy{shown},
			})
		}
	}
	return waiting, nil
}

func (c *counter) Grants(context.Context, connectors.Identity) ([]permissions.Grant, error) {
	return nil, nil
}

func (c *counter) Revoke(context.Context, connectors.Identity, permissions.ID) (permissions.Revoked, error) {
	return permissions.Revoked{}, permissions.Unknown("grant")
}

func (c *counter) Void(context.Context, connectors.Identity, string) (permissions.RequestView, error) {
	return permissions.RequestView{}, permissions.Unknown("request")
}

func (c *counter) Agents(context.Context, connectors.Identity) ([]permissions.Presence, error) {
	return nil, permissions.NoAgent()
}

func (c *counter) Use(context.Context, connectors.Identity, string) (string, error) {
	return "", permissions.NoAgent()
}

func (c *counter) Order(context.Context, connectors.Identity, permissions.Order, string) (string, error) {
	return "", permissions.NoAgent()
}

func (c *counter) StopAll(context.Context, connectors.Identity) (int, error) { return 0, nil }
func (c *counter) Resume(context.Context, connectors.Identity) error         { return nil }
func (c *counter) StoppedBy() string                                         { return "" }
func (c *counter) Stop() connectors.Stop                                     { return connectors.Stop{} }
func (c *counter) Downtime() time.Duration                                   { return 0 }

func (c *counter) EndStop(context.Context, connectors.Identity, time.Time) error { return nil }

func (c *counter) Groups(context.Context) ([]connectors.Group, error) { return nil, nil }
func (c *counter) RenameGroup(context.Context, string, string) error  { return nil }

func (c *counter) ChatLost(context.Context, string, string, string, string) error { return nil }
func (c *counter) ChatRecovered(context.Context, string, string, string) error    { return nil }
func (c *counter) ShowAgain(context.Context, string) ([]connectors.Prompt, error) { return nil, nil }
func (c *counter) LivePrompts(context.Context, string, int) ([]connectors.Prompt, error) {
	return nil, nil
}

func (c *counter) Refresh(context.Context, string) ([]connectors.Prompt, error) { return nil, nil }
