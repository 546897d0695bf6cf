package telegram

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/permissions"
)

// ended is what a call got.
type ended struct {
	permissions.Request
	err error
}

// ask starts a call and returns where its answer comes.
func (s *env) ask(q permissions.Request) <-chan ended { return s.asks(s.t.Context(), q) }

func (s *env) asks(ctx context.Context, q permissions.Request) <-chan ended {
	done := make(chan ended, 1)
	go func() {
		r, err := s.Ask(ctx, permissions.CallerUID(1000), q)
		done <- ended{r, err}
	}()
	return done
}

// get waits for the answer of a call, which must come without an error.
func (s *env) get(from <-chan ended, want permissions.State) permissions.Request {
	s.t.Helper()
	select {
	case a := <-from:
		if a.err != nil || a.State != want {
			s.t.Fatalf("the call got %s (%s), %v; want %s", a.State, a.Failure, a.err, want)
		}
		return a.Request
	case <-time.After(longEnough):
		s.t.Fatalf("no answer; want %s", want)
		return permissions.Request{}
	}
}

// waits checks that no answer has come.
func (s *env) waits(from <-chan ended) {
	s.t.Helper()
	select {
	case a := <-from:
		s.t.Fatalf("the call got %s, %v; want that it waits", a.State, a.err)
	default:
	}
}

// card waits for the bot's newest message to a person that has buttons and a matching text.
func (s *env) card(who, text string) telegramtest.Message {
	s.t.Helper()
	return s.sees(who, text, func(m telegramtest.Message) bool { return len(m.Keyboard) > 0 })
}

// told waits for a message of the bot without buttons.
func (s *env) told(who, text string) telegramtest.Message {
	s.t.Helper()
	return s.sees(who, text, func(m telegramtest.Message) bool { return len(m.Keyboard) == 0 })
}

// becomes waits until a message has no buttons and says how it ended.
func (s *env) becomes(who string, id int, text string) telegramtest.Message {
	s.t.Helper()
	return s.sees(who, text, func(m telegramtest.Message) bool { return m.ID == id && len(m.Keyboard) == 0 })
}

func (s *env) sees(who, text string, fits func(telegramtest.Message) bool) telegramtest.Message {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), longEnough)
	defer done()
	m, err := s.phones[who].Sees(ctx, func(m telegramtest.Message) bool {
		return strings.Contains(m.Text, text) && fits(m)
	})
	if err != nil {
		s.t.Fatalf("%s waits for %q: %v", who, text, err)
	}
	return m
}

// taps presses the button of a message, which must be there, and checks the toast.
func (s *env) taps(who string, m telegramtest.Message, button, toast string) {
	s.t.Helper()
	tap, err := s.phones[who].Taps(m.ID, button)
	if err != nil && strings.Contains(fmt.Sprint(m.Keyboard), "⋯ More") { // it is behind that
		s.until("the card is noted", s.upToDate)
		s.toast(s.phones[who].TapsData(m.ID, data(s.t, m, "⋯ More")), "")
		s.sees(who, "", func(now telegramtest.Message) bool {
			return now.ID == m.ID && fmt.Sprint(now.Keyboard) != fmt.Sprint(m.Keyboard)
		})
		tap, err = s.phones[who].Taps(m.ID, button)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.toast(tap, toast)
}

func (s *env) toast(tap *telegramtest.Tap, want string) {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), longEnough)
	defer done()
	toast, err := tap.Toast(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	if !strings.Contains(toast.Text, want) || want == "" && toast.Text != "" {
		s.t.Errorf("the toast says %q; want %q", toast.Text, want)
	}
}

// until waits until something is so.
func (s *env) until(what string, is func() bool) {
	s.t.Helper()
	s.within(longEnough, what, is)
}

func (s *env) within(limit time.Duration, what string, is func() bool) {
	s.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for over := time.After(limit); !is(); {
		select {
		case <-tick.C:
		case <-over:
			s.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// drained waits until every update was confirmed.
func (s *env) drained() {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), longEnough)
	defer done()
	if err := s.server.Drained(ctx); err != nil {
		s.t.Fatal(err)
	}
}

// data is what a button carries that has that text.
func data(t testing.TB, m telegramtest.Message, text string) string {
	t.Helper()
	boards := [][][]telegramtest.Button{m.Keyboard}
	for _, v := range m.History {
		boards = append(boards, v.Keyboard)
	}
	for _, board := range boards {
		for _, b := range slices.Concat(board...) {
			if strings.Contains(b.Text, text) {
				return b.Data
			}
		}
	}
	t.Fatalf("message %d has no button %q", m.ID, text)
	return ""
}

// audited counts the entries of one type in the audit, for each request.
func (s *env) audited(kind permissions.Type) map[permissions.ID]int {
	s.t.Helper()
	n := map[permissions.ID]int{}
	for after := int64(0); ; {
		entries, err := s.rows.Audit(s.t.Context(), "", after, 1000)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, e := range entries {
			after = e.Seq
			if e.Type == kind {
				n[e.Request]++
			}
		}
		if len(entries) < 1000 {
			return n
		}
	}
}

func network(reason string) permissions.Request {
	return permissions.Request{
		Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network}, Reason: reason, Key: reason, Session: "s",
	}
}

// memory is a second channel, in which everything is approved.
func memory() *connectortest.Memory {
	return connectortest.NewMemory(connectors.Identity{Via: "memory", UID: int(ids["fay"])},
		connectortest.Always(permissions.Allow(permissions.Once)))
}

// only is the one request that is pending, or the newest of all.
func (s *env) only() permissions.Request {
	s.t.Helper()
	rows, err := s.rows.Pending(s.t.Context(), "", "", 1)
	if err != nil || len(rows) != 1 {
		s.t.Fatalf("%d requests are pending, %v; want one", len(rows), err)
	}
	return rows[0]
}

// called counts the calls of a method.
func (s *env) called(method string) (n int) {
	for _, c := range s.server.Calls() {
		if c.Method == method {
			n++
		}
	}
	return n
}

// canceled is a context that a test ends.
func canceled(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

// standing is the state of the only pending request.
func (s *env) standing() permissions.RequestView {
	s.t.Helper()
	stands, err := s.View(s.t.Context(), s.only())
	if err != nil {
		s.t.Fatal(err)
	}
	return stands
}

// upToDate reports whether every copy is up to date.
func (s *env) upToDate() bool {
	lagging, err := s.rows.StaleCopies(s.t.Context(), Name, "", 1)
	return err == nil && len(lagging) == 0
}

// codeOf is the code at the end of a card.
func codeOf(m telegramtest.Message) (code string, ok bool) {
	code = codeOfCard(m.Text)
	return code, code != ""
}

// polled waits until so many more polls were refused, the bot having given up the one that hangs.
func (s *env) polled(refused int) {
	s.t.Helper()
	before := s.called("getUpdates")
	s.phones["eve"].Writes("/whoami") // ends the poll that hangs
	s.until("polls are refused", func() bool { return s.called("getUpdates") >= before+refused })
}
