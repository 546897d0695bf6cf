package whatsapp

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/connectors/reply/replytest"
	"github.com/daycared/daycared/permissions"
)

// examiner is a desk with the pending requests of the grammar's messages, whatever is decided about them. What came is
// kept by the id of the message that it came by.
type examiner struct {
	connectortest.Nobody
	fay   connectors.Person
	open  []reply.Open
	names map[string]string // of cards, by code

	mu      sync.Mutex
	decided map[string][]connectors.Decision
	passed  map[string]string
}

// idIn is the id of a message in the key of what it did.
func idIn(key string) string { return strings.Split(key, ":")[2] }

func (e *examiner) OnPermission(_ context.Context, d connectors.Decision) (permissions.Request, error) {
	if d.Answer == "" {
		return permissions.Request{}, permissions.Unknown(d.Code)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.decided[idIn(d.Key)] = append(e.decided[idIn(d.Key)], d)
	return permissions.Request{ID: d.Request, State: permissions.Approved, Answer: d.Answer}, nil
}

func (e *examiner) OnMessage(_ context.Context, m connectors.Message) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.passed[idIn(m.Key)] = m.Text
	return nil
}

func (e *examiner) Person(connectors.Identity) (connectors.Person, error) { return e.fay, nil }

func (e *examiner) Pending(
	context.Context, connectors.Identity, permissions.ID, int,
) (waiting []permissions.RequestView, err error) {
	for _, o := range e.open {
		s := permissions.RequestView{Request: o.Request, Code: o.Code}
		if !o.ShownAt.IsZero() {
			s.Copies = []permissions.Copy{{Person: "fay", Connector: Name, Ref: e.names[o.Code], SentAt: o.ShownAt}}
		}
		waiting = append(waiting, s)
	}
	return waiting, nil
}

// Every message of the grammar means the same when it comes through a Signal session.
func TestTheGrammarThroughSignal(t *testing.T) {
	e := &examiner{
		names: map[string]string{}, decided: map[string][]connectors.Decision{}, passed: map[string]string{},
	}
	s := newSuite(t, e)
	e.fay, e.open = s.fay, replytest.Waiting(s.server.Now().Add(-time.Hour))
	ids := map[string]string{"ZZZZ9": newID("ZZZZ9")} // of cards, the last of the past
	for _, o := range e.open {
		ids[o.Code] = newID(o.Code)
		e.names[o.Code] = ref{s.fay.Addresses[Name], ids[o.Code]}.String()
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()

	hello := s.phone.Says("hello")
	type sent struct {
		id, about, table string
		replytest.Message
		said reply.Result
	}
	var all []sent
	for _, table := range replytest.Tables() {
		for _, c := range table.Messages {
			if table.How.Console || (strings.TrimSpace(c.Text) == "" && !table.How.Reaction) { // which nobody can send
				continue
			}
			m := table.How
			m.Text, m.At, m.Thumbs = c.Text, s.server.Now(), true
			quoted := ids[strings.ToUpper(m.Quotes)]
			var id string
			switch {
			case m.Reaction:
				if quoted == "" {
					quoted = hello
				}
				id, m.Text = s.phone.Reacts(quoted, c.Text), plainEmoji(c.Text)
			case quoted != "":
				id = s.phone.Quotes(quoted, c.Text)
			default:
				id = s.phone.Says(c.Text)
			}
			one := sent{id: id, about: id, table: table.Name, Message: c, said: reply.Read(m, e.open)}
			if m.Reaction {
				one.about = quoted
			}
			all = append(all, one)
			if one.said.Guesses > 0 { // or they would mute what follows
				if err := s.server.Acknowledged(soon(t)); err != nil {
					t.Fatal(err)
				}
				s.server.Advance(10 * time.Minute)
			}
		}
	}
	if err := s.server.Acknowledged(soon(t)); err != nil {
		t.Fatal(err)
	}
	if len(all) < 200 {
		t.Errorf("%d messages; want at least 200", len(all))
	}
	for _, c := range all {
		got := replytest.Outcome(reply.Result{Decisions: e.decided[c.id], Reply: "x"})
		if decides := len(c.said.Decisions) > 0; decides != (len(e.decided[c.id]) > 0) || (decides && got != c.Want) {
			t.Errorf("%s: %q: %s; want %s", c.table, c.Text, got, c.Want)
		}
		if text, passed := e.passed[c.id]; passed != (c.Want == replytest.Passed) || (passed && text != c.Text) {
			t.Errorf("%s: %q: passed on %v, as %q; want %s", c.table, c.Text, passed, text, c.Want)
		}
	}
	for _, c := range all {
		switch words := plain(escapeText(c.said.Reply)); {
		case len(c.said.Decisions) > 0 || c.Want == replytest.Nothing || c.Want == replytest.Command:
		case len(c.said.Unknown) > 0:
			s.told(t, c.about, "There is no request")
		default:
			s.told(t, c.about, words)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// told waits for a reply to a message.
func (s *suite) told(t testing.TB, about, words string) {
	t.Helper()
	over := soon(t)
	for tick := time.Tick(5 * time.Millisecond); ; {
		for _, m := range s.phone.Messages() {
			if m.Quotes == about && strings.Contains(plain(m.Text), words) {
				return
			}
		}
		select {
		case <-tick:
		case <-over.Done():
			t.Fatalf("fay is not told %q about %s", words, about)
		}
	}
}
