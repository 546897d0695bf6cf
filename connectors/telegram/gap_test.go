package telegram

import (
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/permissions"
)

// outage takes the network away for a time in which meanwhile happens.
func (s *env) outage(d time.Duration, meanwhile func()) {
	s.t.Helper()
	s.server.Down()
	meanwhile()
	s.server.Advance(d)
	if err := s.server.Up(); err != nil {
		s.t.Fatal(err)
	}
}

// sent counts the bot's matching messages to a person.
func (s *env) sent(who string, fits func(telegramtest.Message) bool) (n int) {
	for _, m := range s.phones[who].Messages() {
		if m.FromBot && fits(m) {
			n++
		}
	}
	return n
}

func withButtons(m telegramtest.Message) bool { return len(m.Keyboard) > 0 }

func contains(m telegramtest.Message, text string) bool { return strings.Contains(m.Text, text) }

// The network is away for ten minutes, and fay presses a button in that time. Telegram forgets the tap: the cards come
// again, once, the old ones point to them, and fay is told that her tap did not arrive.
func TestANetworkThatWasAwayShowsTheCardsAgain(t *testing.T) {
	s := newEnv(t, func(s *env) { s.settings.Approvals.Timeout = time.Hour })
	first, one, _ := s.asked("first")
	second, two, _ := s.asked("second")
	s.outage(10*time.Minute, func() { s.phones["fay"].TapsData(one.ID, data(t, one, "Allow once")) })
	s.becomes("fay", one.ID, "is shown again below")
	s.becomes("fay", two.ID, "is shown again below")
	s.told("fay", "had no contact with Telegram for 10 minutes")
	again := s.card("fay", "first")
	s.card("fay", "second")
	s.until("the cards are noted", s.upToDate)
	s.drained()
	s.waits(first)
	if n := s.sent("fay", withButtons); n != 2 {
		t.Errorf("%d cards with buttons; want 2", n)
	}
	if n := s.sent("fay", func(m telegramtest.Message) bool { return m.ReplyTo == 0 && !withButtons(m) }); n != 3 {
		t.Errorf("%d messages without; want two old cards and one notice", n)
	}
	if again.ID == one.ID {
		t.Fatal("it is the old card")
	}
	s.toast(s.phones["fay"].TapsData(one.ID, data(t, one, "Allow once")), "shown again below")
	s.waits(first)
	s.taps("fay", again, "Allow once", "✅")
	s.get(first, permissions.Approved)

	// Another outage right away, and one in which the cards cannot be sent, leave one card for one request.
	s.outage(5*time.Minute, func() {})
	s.server.FailNext("sendMessage", 3, telegramtest.BadGateway())
	s.until("it is told again", func() bool {
		return s.sent("fay", func(m telegramtest.Message) bool { return m.ReplyTo == 0 && contains(m, "for 5 minutes") }) == 1
	})
	s.until("there is one card", func() bool { return s.sent("fay", withButtons) == 1 && s.upToDate() })
	s.outage(5*time.Minute, func() {})
	s.until("it is told a third time", func() bool {
		return s.sent("fay", func(m telegramtest.Message) bool { return contains(m, "for 5 minutes") }) == 2
	})
	s.until("there is one card", func() bool { return s.sent("fay", withButtons) == 1 && s.upToDate() })
	s.taps("fay", s.card("fay", "second"), "⛔ Deny", "⛔")
	s.get(second, permissions.Denied)
}

// A short outage loses no tap, and nothing is shown again.
func TestAShortOutageLosesNothing(t *testing.T) {
	s := newEnv(t)
	call, m, _ := s.asked("x")
	s.outage(time.Minute, func() { s.phones["fay"].TapsData(m.ID, data(t, m, "Allow once")) })
	s.get(call, permissions.Approved)
	s.becomes("fay", m.ID, "✅ You allowed this once")
	if n := s.sent("fay", func(m telegramtest.Message) bool { return contains(m, "no contact") }); n != 0 {
		t.Errorf("%d notices of a gap", n)
	}
}

// A request that is about to end, and whose caller waits, gets five minutes; one whose caller has gone does not.
func TestAfterAGapThereIsTimeToAnswer(t *testing.T) {
	s := newEnv(t)
	call, _, _ := s.asked("x")
	ctx, cancel := canceled(t)
	left := s.asks(ctx, network("nobody waits"))
	s.card("fay", "nobody waits")
	s.until("the card is noted", s.upToDate)
	cancel()
	<-left
	s.outage(12*time.Minute, func() {})
	s.told("fay", "had no contact with Telegram for 12 minutes")
	s.until("each has one card", func() bool { return s.sent("fay", withButtons) == 2 && s.upToDate() })
	rows, err := s.rows.Pending(t.Context(), "", "", 10)
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d are pending, %v", len(rows), err)
	}
	for _, r := range rows {
		long := r.Deadline.Sub(s.server.Now())
		if r.Reason == "x" && (long < 4*time.Minute+30*time.Second || long > 5*time.Minute) || r.Reason != "x" && long > 4*time.Minute {
			t.Errorf("%q has %v left", r.Reason, long)
		}
	}
	s.server.Advance(2 * time.Minute) // longer would be another gap
	s.waits(call)
	s.taps("fay", s.card("fay", "\nx"), "Allow once", "✅")
	s.get(call, permissions.Approved)
}

// leaves asks fay, and stops while her card waits.
func (s *env) leaves(t *testing.T) telegramtest.Message {
	t.Helper()
	ctx, cancel := canceled(t)
	call := s.asks(ctx, network("x"))
	m := s.card("fay", "x")
	s.until("the card is noted", s.upToDate)
	s.stop()
	cancel()
	<-call
	s.becomes("fay", m.ID, "daycared is not running")
	return m
}

// The daemon did not run for longer than Telegram keeps taps, and starts before the network is there.
func TestAStartAfterALongStop(t *testing.T) {
	s := newEnv(t)
	m := s.leaves(t)
	s.server.Advance(8 * time.Minute)
	s.server.Down()
	s.open()
	s.until("there is no network", func() bool { return s.bot.Health() != nil })
	if err := s.server.Up(); err != nil {
		t.Fatal(err)
	}
	s.told("fay", "had no contact with Telegram for 8 minutes")
	s.becomes("fay", m.ID, "is shown again below")
	again := s.card("fay", "x")
	s.taps("fay", again, "Allow once", "✅")
}

// The daemon ends, and starts, in the middle of an outage that neither of the two sees as a long one.
func TestAStartInAnOutageKnowsSinceWhenItIs(t *testing.T) {
	t.Run("E1/taps that were lost before the start", func(t *testing.T) {
		s := newEnv(t)
		cut := func() bool { err := s.bot.Health(); return err != nil && strings.Contains(err.Error(), "no contact") }
		ctx, cancel := canceled(t)
		call := s.asks(ctx, network("x"))
		m := s.card("fay", "x")
		s.until("the card is noted", s.upToDate)
		s.outage(2*time.Minute, func() {
			s.phones["fay"].TapsData(m.ID, data(t, m, "Allow once"))
			s.server.Advance(2 * time.Minute)
			s.until("there is no contact", cut)
			s.stop()
			cancel()
			<-call
			s.server.Advance(time.Minute)
			s.open()
			s.until("there is no contact", cut)
		})
		s.told("fay", "had no contact with Telegram for 5 minutes")
		s.becomes("fay", m.ID, "is shown again below")
		s.taps("fay", s.card("fay", "x"), "Allow once", "✅")
	})
}

// A stop of a moment loses no tap: the card gets its buttons back, and is no other.
func TestAStartAfterAShortStop(t *testing.T) {
	s := newEnv(t)
	m := s.leaves(t)
	s.open()
	s.taps("fay", s.card("fay", "x"), "Allow once", "✅")
	s.becomes("fay", m.ID, "✅ You allowed this once")
}
