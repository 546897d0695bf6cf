package whatsapp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// list waits for a list with so many requests, which are noted.
func (s *env) list(n int) whatsapptest.Message {
	s.t.Helper()
	m := s.sees("fay", fmt.Sprintf("*deny all %d*", n))
	s.until("it is noted", func() bool {
		rows, err := s.rows.StaleCopies(s.t.Context(), Name, "", 10)
		return err == nil && len(rows) == 0
	})
	return m
}

// burst fills fay's chat with two cards, and then asks the others, which join one list.
func (s *env) burst(all ...permissions.Request) (calls []<-chan ended, m whatsapptest.Message) {
	s.t.Helper()
	for _, name := range []string{"first.", "second."} {
		s.ask(network(name))
		s.card("fay", name)
	}
	for i, q := range all {
		calls = append(calls, s.ask(q))
		s.until("it waits", func() bool {
			n, err := s.CountPending(s.t.Context())
			return err == nil && n == 3+i
		})
	}
	return calls, s.list(len(all))
}

// A list is answered by a reply that says how many requests it has, which what joined it later is not among; a number opens a
// request, which is then a card below. Other replies to it decide nothing.
func TestAListIsAnsweredInWords(t *testing.T) {
	s := newEnv(t, func(s *env) { s.settings.Limits.MaxCards = 2 })
	input, err := json.Marshal(map[string]string{"path": "/srv/a", "content": strings.Repeat("x", 1000)})
	if err != nil {
		t.Fatal(err)
	}
	calls, list := s.burst(network("third."), toolCall("run_command", `{"command":"make"}`), toolCall("write_file", string(input)))
	fay := s.phones["fay"]
	if !strings.Contains(list.Text, "once 3 is open *allow all 3*") || !strings.Contains(list.Text, "or in a file alone, is never among") {
		t.Errorf("the list says %q", list.Text)
	}
	s.server.Advance(2 * time.Second)
	for _, try := range []struct{ text, say string }{
		{"yes", "write how many requests it has, as in: deny all 3"},
		{"deny all", "write how many requests it has, as in: deny all 3"},
		{"allow all 3", "Nothing was allowed: open 3 first"},
		{"deny all 2", "The list has changed since it was shown, or was only just sent, so nothing was decided."},
		{"allow all 4!", "The list has changed since it was shown"},
		{"deny all 3?", ""},
		{"9", "write how many requests"},
	} {
		id := fay.Quotes(list.ID, try.text)
		m, err := fay.Sees(soon(t), func(m whatsapptest.Message) bool { return m.Quotes == id && strings.Contains(m.Text, try.say) })
		if err != nil {
			t.Fatalf("%q is not answered with %q: %v, %q", try.text, try.say, err, m.Text)
		}
	}
	for _, call := range calls {
		s.waits(call)
	}
	_, after, _ := strings.Cut(list.Text, "open it.")
	s.says("fay", "yes "+anyCode.FindString(after), "has not been shown to you yet; look at it first")
	s.waits(calls[2])
	fay.Quotes(list.ID, "3")
	own := s.sees("fay", strings.Repeat("x", 1000))
	if own.Quotes != list.ID {
		t.Errorf("the card replies to %q, not to the list", own.Quotes)
	}
	s.becomes("fay", list.ID, "*allow all 3*")
	s.until("the card is noted", func() bool {
		b, err := s.BurstOf(t.Context(), Name, "fay", "+"+numbers["fay"]+"/"+list.ID)
		return err == nil && len(b.Items) == 3 && b.Items[2].Seen
	})
	fay.Quotes(list.ID, "Allow all 3.")
	s.get(calls[0], permissions.Approved)
	s.get(calls[2], permissions.Approved)
	s.waits(calls[1])
	s.becomes("fay", list.ID, "✅")
	fay.Quotes(list.ID, "deny all 3")
	s.get(calls[1], permissions.Denied)
}

// TestAnOpenedEntryIsAllowedOnceItsCardHasCome: to open what a list does not show whole is not to see it. A card that WhatsApp refuses is
// sent again.
func TestAnOpenedEntryIsAllowedOnceItsCardHasCome(t *testing.T) {
	for name, refused := range map[string]int{"refused": 1000, "refused once": 1} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, func(s *env) { s.settings.Limits.MaxCards = 2 })
			calls, list := s.burst(toolCall("write_file", `{"path":"/srv/a","content":"`+strings.Repeat("x", 1000)+`"}`))
			_, after, _ := strings.Cut(list.Text, "open it.")
			code := anyCode.FindString(after)
			s.server.Advance(2 * time.Second)
			s.server.RefuseMessages(refused, 500)
			sent := len(s.server.Stanzas())
			s.phones["fay"].Quotes(list.ID, "1")
			if refused > 1 {
				s.until("its card is refused", func() bool {
					return slices.ContainsFunc(s.server.Stanzas()[sent:], func(z whatsapptest.Stanza) bool { return z.Is("message", "") })
				})
				s.phones["fay"].Says("yes " + code)
				s.phones["fay"].Quotes(list.ID, "allow all 1")
				s.acknowledged()
				s.waits(calls[0])
				return
			}
			s.sees("fay", strings.Repeat("x", 1000))
			s.until("it is noted", s.noted)
			s.server.Advance(2 * time.Second)
			s.phones["fay"].Says("yes " + code)
			s.get(calls[0], permissions.Approved)
		})
	}
}

// A list whose confirmation is lost is sent again as the same message, and then says what joined it meanwhile.
func TestAListWhoseConfirmationIsLost(t *testing.T) {
	s := newEnv(t, func(s *env) { s.settings.Limits.MaxCards = 2 })
	for _, name := range []string{"first.", "second."} {
		s.ask(network(name))
		s.card("fay", name)
	}
	s.phones["fay"].Leaves()
	s.server.LoseAcks(1)
	sent := len(s.server.Stanzas())
	messages := func() (ids []string) {
		for _, z := range s.server.Stanzas()[sent:] {
			if z.Is("message", "") {
				ids = append(ids, z.ID())
			}
		}
		return ids
	}
	s.ask(network("third."))
	s.until("it is sent", func() bool { return len(messages()) == 1 })
	s.ask(network("fourth."))
	s.server.Cut()
	s.until("both lists are noted", s.noted)
	s.phones["fay"].Returns()
	if list := s.list(2); list.ID != messages()[0] || s.count("fay", "third.") != 1 {
		t.Errorf("fay sees %d lists, the last is %s; sent were %v", s.count("fay", "third."), list.ID, messages())
	}
}

// What answers a list that WhatsApp has not confirmed is to be repeated, and decides nothing for a person who is locked meanwhile.
func TestBetweenAListAndWhatsAppsAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(s *env)
		says    string // empty: nothing
		state   permissions.State
	}{
		"nothing": {func(*env) {}, "only just sent", permissions.Approved},
		"a lock": {func(s *env) {
			if _, err := s.Lock(s.t.Context(), operator, "fay", time.Time{}); err != nil {
				s.t.Fatal(err)
			}
		}, "", permissions.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, func(s *env) {
				s.settings.Limits.MaxCards = 2
				s.settings.Routes = []engine.Route{{Ask: []string{"fay", "sam"}}}
			})
			for _, name := range []string{"first.", "second."} {
				s.ask(network(name))
				s.card("fay", name)
			}
			confirm := s.server.HoldAcks()
			t.Cleanup(confirm)
			call := s.ask(network("third."))
			list := s.sees("fay", "*deny all 1*")
			s.server.Advance(2 * time.Second)
			c.happens(s)
			again := s.phones["fay"].Quotes(list.ID, "allow all 1")
			s.acknowledged()
			s.waits(call)
			if c.says != "" {
				s.answers("fay", again, c.says)
			}
			confirm()
			s.until("the list is noted", s.noted)
			s.server.Advance(2 * time.Second)
			s.phones["fay"].Quotes(list.ID, "allow all 1")
			s.acknowledged()
			if c.state == permissions.Pending {
				s.waits(call)
			} else {
				s.get(call, c.state)
			}
		})
	}
}
