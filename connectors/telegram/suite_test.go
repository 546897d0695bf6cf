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
	connectortest.Run(t, func(t *testing.T, in connectors.Services) connectortest.Harness {
		s := newSuite(t, in)
		return connectortest.Harness{
			Connector: s.Connector, To: s.fay, Now: s.server.Now, Do: s.do, Writes: s.writes,
			Sees: s.sees, Seen: s.seen, Stranger: s.stranger, Line: s.line,
			Is: func(id connectors.Identity) bool { return id.Address == s.fay.Addresses[Name] },
		}
	})
}

// suite is a connector and fay's phone.
type suite struct {
	*Connector
	server *telegramtest.Server
	fay    connectors.Person
	phone  *telegramtest.Person
	eve    *telegramtest.Person

	mu   sync.Mutex
	taps []*telegramtest.Tap
}

func newSuite(t *testing.T, in connectors.Services) *suite {
	server := telegramtest.New(t)
	s := &suite{
		Connector: New(Options{
			Token: Token(server.Token()), APIURL: server.URL(), Now: server.Now, Log: slog.New(slog.DiscardHandler),
		}, in),
		server: server, fay: connectors.Person{Name: "fay", Addresses: map[string]string{Name: "2001"}, Location: time.UTC},
		phone: server.Person(telegramtest.User{ID: 2001, FirstName: "Fay"}),
		eve:   server.Person(telegramtest.User{ID: eveID, FirstName: "Eve"}),
	}
	s.phone.Start("")
	s.eve.Start("")
	quick(s.Connector, []connectors.Person{s.fay})
	return s
}

// line makes a share of the calls fail before or after they happen, or late.
func (s *suite) line(l connectortest.Line) {
	s.server.FailRate(l.Lost, 7, telegramtest.Reset(), telegramtest.ReplyLost(), telegramtest.Slow(l.Slow))
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
			code := p.Code
			s.shown(t, "the second step", func(m telegramtest.Message) bool {
				return slices.ContainsFunc(slices.Concat(m.Keyboard...), func(b telegramtest.Button) bool {
					p, ok := parseData(b.Data)
					return ok && strings.Contains(m.Text, code) && p.Answer == d.Answer && p.Call == d.Call && p.Step == ""
				})
			})
			s.server.Advance(secondStep)
		}
		if scope, allows := d.Answer.Scope(); allows && !d.Really && (scope != permissions.Once || d.Answer.SuggestionNumber() > 0) {
			s.pressed(t, p.Code, func(b press) bool { return b.Step == stepMore })
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
