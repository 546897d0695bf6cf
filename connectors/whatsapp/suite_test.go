package whatsapp

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
	"github.com/daycared/daycared/permissions"
)

func TestPassesTheSuite(t *testing.T) {
	connectortest.Run(t, func(t *testing.T, in connectors.Services) connectortest.Harness {
		s := newSuite(t, in)
		return connectortest.Harness{
			Connector: s.Connector, To: s.fay, Now: s.server.Now, Do: s.do, Writes: s.writes, Sees: s.sees, Seen: s.seen, Stranger: s.stranger,
			Is: func(id connectors.Identity) bool { return id.Address == s.fay.Addresses[Name] },
		}
	}, abandoned, unanswered)
}

// suite is a connector and fay's phone.
type suite struct {
	*Connector
	server *whatsapptest.Server
	fay    connectors.Person
	phone  *whatsapptest.Person
	eve    *whatsapptest.Person
}

func newSuite(t testing.TB, in connectors.Services) *suite {
	server := whatsapptest.New(t)
	path, log := filepath.Join(t.TempDir(), "whatsapp.db"), slog.New(slog.DiscardHandler)
	o := Linking{Path: path, HTTP: server.Client(), Log: log}
	if _, err := Link(soon(t), o, &hand{t: t, phone: server.Phone()}); err != nil {
		t.Fatal(err)
	}
	s := &suite{
		Connector: New(Options{Path: path, HTTP: server.Client(), Now: server.Now, Log: log}, in),
		server:    server, fay: connectors.Person{Name: "fay", Addresses: map[string]string{Name: "+" + numbers["fay"]}, Location: time.UTC},
		phone: server.Person(numbers["fay"], "fay"), eve: server.Person(numbers["eve"], "eve"),
	}
	s.pace.all.SetLimit(rate.Inf)
	s.pace.every = rate.Inf
	s.again, s.firstTry = 50*time.Millisecond, 10*time.Millisecond
	return s
}

func (s *suite) card(t testing.TB, code string) whatsapptest.Message {
	t.Helper()
	m, err := s.phone.Gets(soon(t), func(m whatsapptest.Message) bool { return codeOn(m) == code })
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
