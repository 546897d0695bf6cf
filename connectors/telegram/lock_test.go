package telegram

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
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

// ends are what ends a person's right, and gives it back.
var ends = map[string][2]func(s *env){
	"a lock": {func(s *env) { s.says("sam", "/lock fay", "fay is locked") }, func(s *env) {
		if _, _, err := s.Unlock(s.t.Context(), operator, "fay"); err != nil {
			s.t.Fatal(err)
		}
	}},
	"a lock, and a restart": {func(s *env) { s.says("sam", "/lock fay", "fay is locked") }, func(s *env) {
		if _, _, err := s.Unlock(s.t.Context(), operator, "fay"); err != nil {
			s.t.Fatal(err)
		}
		s.stop()
		s.open()
	}},
	"a reload without the account": {func(s *env) { s.account("fay", 0); s.Configure(s.settings) },
		func(s *env) { s.account("fay", ids["fay"]); s.Configure(s.settings) }},
	"a reload without the person": {func(s *env) {
		s.settings.People = slices.DeleteFunc(slices.Clone(s.settings.People), func(p connectors.Person) bool { return p.Name == "fay" })
		s.Configure(s.settings)
	}, func(s *env) {
		s.settings.People = append(s.settings.People, connectors.Person{Name: "fay"}.WithAddress(Name, address(ids["fay"])))
		s.Configure(s.settings)
	}},
	"a suspension": {func(s *env) {
		if err := s.Suspend(s.t.Context(), Name, address(ids["fay"])); err != nil {
			s.t.Fatal(err)
		}
	}, func(s *env) { s.pairs("fay") }},
}

// TestAFirstStepEndsWithWhatEndsTheRight: A8/whoever had a stolen phone may have taken the first of two steps; it counts no more
// afterwards, towards the end of a stop and towards what is high risk.
func TestAFirstStepEndsWithWhatEndsTheRight(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, func(s *env) {
				s.settings.Policy.HighRiskTags = []permissions.Tag{permissions.Network}
				s.settings.Routes[0].Ask = []string{"fay", "sam"}
			})
			s.ask(network("twice"))
			card := s.card("fay", "twice")
			s.until("the cards are noted", s.upToDate)
			s.taps("fay", card, "Allow once", "nothing is allowed yet")
			yes := data(t, s.sees("fay", "twice", func(m telegramtest.Message) bool { return strings.Contains(labelled(m), "Yes") }), "Yes")
			s.server.Advance(secondStep)
			end[0](s)
			end[1](s)
			s.until("fay is asked again", func() bool { return slices.Contains(s.only().Asked, "fay") && s.upToDate() })
			s.toast(s.phones["fay"].TapsData(card.ID, yes), "nothing is allowed yet")
			if r := s.only(); len(r.Votes) > 0 {
				t.Errorf("it counted: %v", r.Votes)
			}

			m := s.stopsAll()
			s.taps("fay", m, resumeFirst, "Nothing is resumed yet")
			second := s.stepOfStop(m, resumeSecond)
			s.server.Advance(secondStep)
			end[0](s)
			end[1](s)
			s.taps("fay", second, resumeSecond, "Nothing is resumed yet")
			s.isStopped("fay")
			s.server.Advance(secondStep)
			s.taps("fay", second, resumeSecond, resumed)
			s.isStopped("")
		})
	}
}

// TestAButtonOfALockedPersonSaysThat, whatever it is about.
func TestAButtonOfALockedPersonSaysThat(t *testing.T) {
	s := newEnv(t)
	fay := s.phones["fay"]
	fay.Writes("/whoami")
	m := s.told("fay", "Your numeric Telegram id is")
	if _, err := s.Lock(t.Context(), operator, "fay", time.Time{}); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{
		listData("/trust coder 30m yes"), listData("/revoke G1"), listData("/pair sam 7"), listData(opens + "K7F3Q"), allPrefix + "deny.AAAA",
		resumeData("", s.server.Now()),
	} {
		s.toast(fay.TapsData(m.ID, data), "fay is locked")
	}
	s.toast(s.phones["eve"].TapsData(s.phones["eve"].Writes("hello"), listData("/trust coder 30m yes")), toastUnknown)
}

func listData(command string) string { return listPrefix + command }

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
