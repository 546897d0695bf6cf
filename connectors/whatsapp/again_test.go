package whatsapp

import (
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
	"github.com/daycared/daycared/permissions"
)

// What could not be stored is not acknowledged: it comes again with the next connection, and is decided once.
func TestAnAnswerThatCannotBeStoredComesAgain(t *testing.T) {
	s := newEnv(t)
	for name, answer := range map[string]func(id, code string) string{
		"text":   func(_, code string) string { return s.phones["fay"].Says("yes " + code) },
		"quoted": func(id, _ string) string { return s.phones["fay"].Quotes(id, "yes") },
		"thumb":  func(id, _ string) string { return s.phones["fay"].Reacts(id, "👍") },
	} {
		call, m, code := s.asked("while the store fails: " + name)
		before := s.desk.decisions()
		s.desk.mu.Lock()
		s.desk.failures = 2
		s.desk.mu.Unlock()
		id := answer(m.ID, code)
		s.get(call, permissions.Approved)
		s.acknowledged()
		if n := s.desk.decisions() - before; n != 1 {
			t.Errorf("%s: decided %d times", name, n)
		}
		s.becomes("fay", m.ID, "You allowed this once")
		if name != "thumb" {
			s.marked("fay", id, "✅")
		}
		s.well()
	}
	s.desk.mu.Lock()
	s.desk.failures = 1
	s.desk.mu.Unlock()
	s.phones["eve"].Says("hi")
	s.sees("fay", "eve")
}

// A message that comes more than once does what it does once, and its author is told once.
func TestAMessageThatComesTwice(t *testing.T) {
	t.Run("A7/a message that comes twice", func(t *testing.T) {
		s := newEnv(t)
		fay := s.phones["fay"]
		call, _, code := s.asked("twice.")
		_, other, _ := s.asked("meanwhile.")
		unclear := fay.Says("yes " + code + "?")
		s.answers("fay", unclear, "Nothing was decided")
		yes := fay.Says("yes " + code)
		thumb := fay.Reacts(other.ID, "👎")
		s.get(call, permissions.Approved)
		s.marked("fay", yes, "✅")
		s.becomes("fay", other.ID, "You denied this")
		for _, id := range []string{unclear, yes, thumb} {
			fay.Repeats(id)
			fay.Echoes(id)
			fay.Repeats(id)
		}
		s.acknowledged()
		s.restart()
		for _, id := range []string{yes, thumb} {
			fay.Repeats(id)
			fay.Echoes(id)
		}
		s.acknowledged()
		s.says("fay", "/pending", "Nothing waits")
		if n := s.desk.decisions(); n != 4 { // the two that come again are known to the store
			t.Errorf("%d decisions", n)
		}
		if n := s.count("fay", "Nothing was"); n != 1 {
			t.Errorf("fay is told %d times that nothing was decided", n)
		}
		if n := s.count("fay", "oo late"); n != 0 {
			t.Errorf("fay is told %d times of being late", n)
		}
	})
}

// Wherever the connection is cut while a card goes out or an answer comes in: the card is there once, and the answer
// counts once.
func TestAConnectionCutAnywhereLosesNothing(t *testing.T) {
	s := newEnv(t)
	fay := s.phones["fay"]
	is := func(tag string) func(whatsapptest.Stanza) bool {
		return func(z whatsapptest.Stanza) bool { return z.Is(tag, "") }
	}
	for _, c := range []struct {
		name  string
		where whatsapptest.Where
		fits  func(whatsapptest.Stanza) bool
		sends bool // it is about the card
	}{
		{"the card is lost", whatsapptest.BeforeReceiving, is("message"), true},
		{"the card's confirmation is lost", whatsapptest.AfterReceiving, is("message"), true},
		{"the question for devices is lost", whatsapptest.BeforeReceiving, is("iq"), true},
		{"the card's receipt is lost", whatsapptest.BeforeSending, is("receipt"), true},
		{"what says that its receipt came is lost", whatsapptest.BeforeReceiving, is("ack"), true},
		{"the answer is lost", whatsapptest.BeforeSending, is("message"), false},
		{"it is cut behind the answer", whatsapptest.AfterSending, is("message"), false},
		{"the answer's receipt is lost", whatsapptest.BeforeReceiving, is("receipt"), false},
		{"it is cut behind the answer's receipt", whatsapptest.AfterReceiving, is("receipt"), false},
		{"the mark is lost", whatsapptest.BeforeReceiving, is("message"), false},
		{"the mark's confirmation is lost", whatsapptest.AfterReceiving, is("message"), false},
	} {
		t.Run("D5/"+c.name, func(t *testing.T) {
			before := s.desk.decisions()
			if c.sends {
				s.server.CutAt(c.where, c.fits)
			}
			call, m, code := s.asked("cut: " + c.name + ".")
			if !c.sends {
				s.server.CutAt(c.where, c.fits)
			}
			yes := fay.Says("yes " + code)
			s.get(call, permissions.Approved)
			s.becomes("fay", m.ID, "You allowed this once")
			s.marked("fay", yes, "✅")
			s.acknowledged()
			s.well()
			if n := s.count("fay", "cut: "+c.name+"."); n != 1 {
				t.Errorf("%s: fay has the card %d times", c.name, n)
			}
			if n := s.desk.decisions() - before; n != 1 && n != 2 { // a second comes with the same key, which the store knows
				t.Errorf("%s: decided %d times", c.name, n)
			}
		})
	}
}

// What was answered while the daemon was away counts, unless it is older than its card.
func TestAnsweredWhileAway(t *testing.T) {
	s := newEnv(t)
	fay := s.phones["fay"]
	for name, answer := range map[string]func(id, code string){
		"text":   func(_, code string) { fay.Says("yes " + code) },
		"quoted": func(id, _ string) { fay.Quotes(id, "yes") },
		"thumb":  func(id, _ string) { fay.Reacts(id, "👍🏿") },
	} {
		_, m, code := s.asked("old, then new: " + name)
		s.stop()
		fay.Ago(time.Hour).Says("yes " + code)
		fay.Ago(time.Hour).Quotes(m.ID, "yes")
		fay.Ago(time.Hour).Reacts(m.ID, "👍")
		s.open()
		s.acknowledged()
		if r, err := s.rows.ByCode(t.Context(), code); err != nil || r.State != permissions.Pending {
			t.Errorf("%s: after old answers it is %s, %v", name, r.State, err)
		}
		s.stop()
		answer(m.ID, code)
		s.server.Advance(time.Minute)
		s.open()
		s.becomes("fay", m.ID, "You allowed this once")
	}
	if n := strings.Count(s.got("fay"), "You allowed this once"); n != 3 {
		t.Errorf("%d are allowed", n)
	}
}
