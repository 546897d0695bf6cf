package whatsapp

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
	"github.com/daycared/daycared/permissions"
)

func TestPassesTheSuite(t *testing.T) {
	connectortest.Run(t, func(t *testing.T) connectortest.Harness {
		s := newSuite(t)
		return connectortest.Harness{
			Connector: s, To: s.fay, Do: s.do, Writes: s.writes, Sees: s.sees, Seen: s.seen, Stranger: s.stranger,
			Is: func(id connectors.Identity) bool { return id.WhatsApp == s.fay.WhatsApp },
		}
	}, abandoned, unanswered)
}

// suite is a connector whose cards are known by their names, as an engine knows them, and fay's phone.
type suite struct {
	*Connector
	server *whatsapptest.Server
	fay    connectors.Person
	phone  *whatsapptest.Person
	eve    *whatsapptest.Person

	mu    sync.Mutex
	cards []connectors.Prompt
	at    []time.Time
}

func newSuite(t testing.TB) *suite {
	server := whatsapptest.New(t)
	path, log := filepath.Join(t.TempDir(), "whatsapp.db"), slog.New(slog.DiscardHandler)
	o := Linking{Path: path, HTTP: server.Client(), Log: log}
	if _, err := Link(soon(t), o, &hand{t: t, phone: server.Phone()}); err != nil {
		t.Fatal(err)
	}
	s := &suite{
		Connector: New(Options{Path: path, HTTP: server.Client(), Now: server.Now, Log: log}),
		server:    server, fay: connectors.Person{Name: "fay", WhatsApp: "+" + numbers["fay"], Location: time.UTC},
		phone: server.Person(numbers["fay"], "fay"), eve: server.Person(numbers["eve"], "eve"),
	}
	s.pace.all.SetLimit(rate.Inf)
	s.pace.every = rate.Inf
	s.again, s.firstTry = 50*time.Millisecond, 10*time.Millisecond
	return s
}

// Run puts what an engine knows of people and cards between the connector and the suite's desk.
func (s *suite) Run(ctx context.Context, h connectors.Handler) error {
	desk, ok := h.(connectortest.Desk)
	if !ok {
		return fmt.Errorf("the handler is a %T", h)
	}
	return s.Connector.Run(ctx, &counter{Desk: desk, suite: s})
}

// Send names the card before, as an engine does.
func (s *suite) Send(ctx context.Context, p connectors.Prompt) (string, error) {
	p.Ref = s.AllocateID(p)
	s.mu.Lock()
	s.cards, s.at = append(s.cards, p), append(s.at, s.server.Now())
	s.mu.Unlock()
	for tick := time.Tick(5 * time.Millisecond); s.starting() && ctx.Err() == nil; { // an engine would try again
		<-tick
	}
	return s.Connector.Send(ctx, p)
}

// starting reports whether the connector has not been connected yet.
func (s *suite) starting() bool {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	return s.state.is == isStarting
}

// Edit edits the card, and records the state of its request.
func (s *suite) Edit(ctx context.Context, name string, p connectors.Prompt) error {
	s.mu.Lock()
	for i, c := range s.cards {
		if c.Ref == name {
			p.SentAt = s.at[i]
			s.cards[i].Request = p.Request
		}
	}
	s.mu.Unlock()
	return s.Connector.Edit(ctx, name, p)
}

func (s *suite) card(t testing.TB, code string) whatsapptest.Message {
	t.Helper()
	m, err := s.phone.Gets(soon(t), func(m whatsapptest.Message) bool { return strings.HasPrefix(m.Text, "*"+code+"*") })
	if err != nil {
		t.Fatalf("wait for the card of %s: %v", code, err)
	}
	return m
}

// do answers with a thumb where that will do, and else in words.
func (s *suite) do(t testing.TB, p connectors.Prompt, d connectors.Decision) {
	t.Helper()
	m := s.card(t, p.Code)
	scope, allows := d.Answer.Scope()
	call := ""
	if d.Call > 0 {
		call = fmt.Sprintf(" #%d", d.Call)
	}
	switch {
	case d.Answer == permissions.Deny && d.Comment != "":
		s.phone.Says("no " + p.Code + call + " because " + d.Comment)
	case d.Answer == permissions.Other:
		s.phone.Quotes(m.ID, "other: "+d.Comment)
	case d.Answer == permissions.Deny && call == "":
		s.phone.Reacts(m.ID, "👎")
	case d.Really:
		s.phone.Says("yes " + p.Code + " run")
	case allows && scope == permissions.Once && call == "":
		s.phone.Reacts(m.ID, "👍")
	case allows:
		s.phone.Says("yes " + p.Code + call + " " + scope.String())
	default:
		s.phone.Says(p.Code + " " + strings.TrimPrefix(string(d.Answer), "option_"))
	}
}

func (s *suite) writes(t testing.TB, p connectors.Prompt, text string) {
	t.Helper()
	s.card(t, p.Code)
	s.phone.Says(text)
}

func (s *suite) sees(t testing.TB, text string) {
	t.Helper()
	_, err := s.phone.Gets(soon(t), func(m whatsapptest.Message) bool {
		return strings.Contains(plain(strings.Join(append(m.Before, m.Text), "\n")), text)
	})
	if err != nil {
		t.Fatalf("fay does not see %q but\n%s", text, s.seen())
	}
}

// seen is what was on the phone: messages, and what they were before.
func (s *suite) seen() string {
	var all strings.Builder
	for _, m := range s.phone.Messages() {
		if m.From != s.server.Number() {
			continue
		}
		all.WriteString(plain(strings.Join(append(m.Before, m.Text), "\n")) + "\n")
		if m.Document != nil {
			all.Write(m.Document.Bytes)
		}
	}
	return all.String()
}

func (s *suite) stranger(t testing.TB, p connectors.Prompt) {
	m := s.card(t, p.Code)
	s.eve.Says("yes " + p.Code)
	s.eve.Quotes(m.ID, "yes")
	s.eve.Reacts(m.ID, "👍")
}

// counter wraps the suite's desk.
type counter struct {
	connectortest.Desk
	nobodys
	suite *suite
}

var _ Desk = (*counter)(nil)

// OnPermission records the state of the request.
func (c *counter) OnPermission(ctx context.Context, d connectors.Decision) (permissions.Request, error) {
	r, err := c.Desk.OnPermission(ctx, d)
	c.suite.mu.Lock()
	defer c.suite.mu.Unlock()
	for i := range c.suite.cards {
		if c.suite.cards[i].Request.ID == r.ID {
			c.suite.cards[i].Request = r
		}
	}
	return r, err
}

func (c *counter) Person(id connectors.Identity) (connectors.Person, error) {
	if id.WhatsApp != c.suite.fay.WhatsApp {
		return connectors.Person{}, permissions.NotConfigured(id.UID)
	}
	return c.suite.fay, nil
}

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

// nobodys has no agents and no grants.
type nobodys struct{}

func (nobodys) NoteUnknownSender(context.Context, permissions.UnknownSender) error { return nil }
func (nobodys) ChatRecovered(context.Context, string, string, string) error        { return nil }
func (nobodys) Suspend(context.Context, string, string) error                      { return nil }
func (nobodys) StopAll(context.Context, connectors.Identity) (int, error)          { return 0, nil }
func (nobodys) Resume(context.Context, connectors.Identity) error                  { return nil }
func (nobodys) StoppedBy() string                                                  { return "" }

func (nobodys) Grants(context.Context, connectors.Identity) ([]permissions.Grant, error) {
	return nil, nil
}

func (nobodys) Revoke(context.Context, connectors.Identity, permissions.ID) (permissions.Revoked, error) {
	return permissions.Revoked{}, permissions.Unknown("grant")
}

func (nobodys) Void(context.Context, connectors.Identity, string) (permissions.RequestView, error) {
	return permissions.RequestView{}, permissions.Unknown("request")
}

func (nobodys) Agents(context.Context, connectors.Identity) ([]permissions.Presence, error) {
	return nil, permissions.NoAgent()
}

func (nobodys) Use(context.Context, connectors.Identity, string) (string, error) {
	return "", permissions.NoAgent()
}

func (nobodys) Order(context.Context, connectors.Identity, permissions.Order, string) (string, error) {
	return "", permissions.NoAgent()
}
