package telegram

import (
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// TestAStolenPhone: another person locks its owner from their own phone, and two people unlock them.
func TestAStolenPhone(t *testing.T) {
	t.Run("A8/lock in Telegram", func(t *testing.T) {
		s := newEnv(t, asking(engine.Route{Ask: []string{"fay", "sam"}}))
		call := s.ask(network("x"))
		m := s.card("fay", "x")
		s.card("sam", "x")
		s.until("the cards are noted", s.upToDate)
		s.says("sam", "/unlock fay", "fay is not locked.")
		s.says("sam", "/lock zoe", "nobody in the configuration is called")
		s.says("sam", "/lock fay", "fay is locked: nothing from fay's accounts counts until the operator")
		locked := s.sees("fay", "You are locked", func(now telegramtest.Message) bool { return now.ID == m.ID })
		if len(locked.Keyboard) > 0 {
			t.Errorf("her card still has %v", locked.Keyboard)
		}
		code, _ := codeOf(m)
		s.phones["fay"].Writes("yes " + code)
		s.told("fay", "fay is locked: nothing from this account counts")
		s.phones["fay"].Writes("/lock sam")
		s.waits(call)
		s.says("sam", "/unlock FAY", `nobody in the configuration is called "FAY"; did you mean fay?`)
		s.says("sam", "/unlock fay", "stays locked until one more person")
		s.says("kim", "/unlock", "Say who")
		s.says("kim", "/unlock fay", "fay is unlocked.")
		s.sees("fay", "x", func(now telegramtest.Message) bool { return now.ID == m.ID && len(now.Keyboard) > 0 })
		s.taps("fay", m, "Allow once", "✅")
		s.get(call, permissions.Approved)
	})
	t.Run("A8/lock oneself from the other phone", func(t *testing.T) {
		s := newEnv(t)
		s.says("fay", "/lock", "fay is locked")
		s.phones["fay"].Writes("/whoami")
		s.told("fay", "fay is locked: nothing from this account counts")
	})
}

// TestAButtonThatIsPressedWhileLocked, on the card that the phone still shows.
func TestAButtonThatIsPressedWhileLocked(t *testing.T) {
	s := newEnv(t, asking(engine.Route{Ask: []string{"fay", "sam"}}))
	call := s.ask(network("x"))
	m := s.card("fay", "x")
	s.card("sam", "x")
	s.until("the cards are noted", s.upToDate)
	s.says("sam", "/lock fay", "fay is locked")
	s.toast(s.phones["fay"].TapsData(m.ID, m.Keyboard[0][0].Data), "fay is locked: nothing from this account counts")
	s.waits(call)
}

// TestTheButtonsBelowAStopEndWithALock: A8/whoever had a stolen phone may have got to either of the two steps; after the lock, neither
// counts.
func TestTheButtonsBelowAStopEndWithALock(t *testing.T) {
	s := newEnv(t)
	m := s.stopsAll()
	s.taps("fay", m, resumeFirst, "Nothing is resumed yet")
	again := s.stepOfStop(m, resumeSecond)
	s.says("sam", "/lock fay", "fay is locked")
	if _, _, err := s.Unlock(t.Context(), operator, "fay"); err != nil {
		t.Fatal(err)
	}
	for _, k := range [][]telegramtest.Button{m.Keyboard[0], again.Keyboard[0]} {
		for _, b := range k {
			s.toast(s.phones["fay"].TapsData(m.ID, b.Data), "You were locked since")
		}
	}
	s.isStopped("fay")
	if now := s.becomes("fay", m.ID, "You were locked since"); len(now.Keyboard) > 0 {
		t.Errorf("it still has %v", now.Keyboard)
	}
	s.says("fay", "/resume", "Resumed")
}

// TestTheCardOfALockedPerson stays as it is through an outage and a stop.
func TestTheCardOfALockedPerson(t *testing.T) {
	s := newEnv(t, asking(engine.Route{Ask: []string{"fay", "sam"}}))
	s.ask(network("x"))
	m := s.card("fay", "x")
	was := s.card("sam", "x")
	s.until("the cards are noted", s.upToDate)
	s.says("sam", "/lock fay", "fay is locked")
	s.becomes("fay", m.ID, lockedOut)
	seen := func(when string) {
		t.Helper()
		for _, m := range s.phones["fay"].Messages() {
			if len(m.Keyboard) > 0 || strings.Contains(m.Text, notRunning) || strings.Contains(m.Text, "again below") {
				t.Errorf("%s, she sees %q", when, m.Text)
			}
		}
	}
	s.stop()
	s.becomes("sam", was.ID, notRunning)
	seen("after the stop")
	s.open()
	s.sees("sam", "x", func(m telegramtest.Message) bool { return m.ID == was.ID && len(m.Keyboard) > 0 })
	s.until("the cards are noted", s.upToDate)
	s.outage(10*time.Minute, func() {})
	s.sees("sam", "x", func(m telegramtest.Message) bool { return m.ID != was.ID && len(m.Keyboard) > 0 })
	s.becomes("sam", was.ID, "again below")
	seen("after the outage")
	s.becomes("fay", m.ID, lockedOut)
}
