package telegram

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// late shows a card on a phone whose sendMessage is answered only when answer is called, at the latest at the end.
func (s *env) late(who, reason string) (call <-chan ended, m telegramtest.Message, answer func()) {
	s.t.Helper()
	until := s.hold()
	return s.ask(network(reason)), s.card(who, reason), until
}

// hold has the next sendMessage done at once, and answered when the function is called that it returns.
func (s *env) hold() (answer func()) {
	until := make(chan struct{})
	s.server.FailNext("sendMessage", 1, telegramtest.Late(until))
	done := false
	answer = func() {
		if !done {
			done = true
			close(until)
		}
	}
	s.t.Cleanup(answer)
	return answer
}

// decide decides what is pending elsewhere.
func (s *env) decide(who string, a permissions.Answer) {
	s.t.Helper()
	if _, err := s.OnPermission(s.t.Context(), connectors.Decision{
		Request: s.only().ID, Answer: a, From: connectors.Identity{Via: "web", UID: int(ids[who])},
	}); err != nil {
		s.t.Fatal(err)
	}
}

// shownOnce checks that a person has one card of theirs, and that showing it was audited once.
func (s *env) shownOnce(who string, r permissions.Request) {
	s.t.Helper()
	if n := s.sent(who, func(m telegramtest.Message) bool { return codeIn(m) != "" }); n != 1 {
		s.t.Errorf("%s has %d messages; want the card", who, n)
	}
	if n := s.audited(permissions.RequestShown)[r.ID]; n != 1 {
		s.t.Errorf("showing it was audited %d times", n)
	}
}

// operator is the daemon's operator.
var operator = connectors.Identity{Via: "cli", UID: 1, Operator: true}

// pairs pairs a person with their account.
func (s *env) pairs(who string) {
	s.t.Helper()
	i, err := s.Invite(s.t.Context(), operator, who, Name)
	if err != nil {
		s.t.Fatal(err)
	}
	s.phones[who].Start(i.Code)
	g, err := s.Guest(s.t.Context(), operator, i.Code)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, _, err := s.Pair(s.t.Context(), operator, i.Code, g.Address); err != nil {
		s.t.Fatal(err)
	}
}

// escalating has sam asked when fay cannot be reached.
func escalating(s *env) {
	s.settings.Routes[0].Escalate.Moment, s.settings.Routes[0].Escalate.To = engine.Moment{Percent: 90}, []string{"sam"}
}

// account gives a person another account in the settings, or none.
func (s *env) account(who string, id int64) {
	s.settings.People = slices.Clone(s.settings.People)
	for i, p := range s.settings.People {
		if p.Name == who {
			s.moves(i, id)
		}
	}
}

// Whatever happens between a card's being on the phone and Telegram's answer to sendMessage finds the card: what decides
// there counts before the answer, and afterwards the card shows the outcome.
func TestBetweenACardAndTelegramsAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(s *env, m telegramtest.Message)
		state   permissions.State
		says    string
	}{
		"a tap": {func(s *env, m telegramtest.Message) { s.taps("fay", m, "Allow once", "✅ You allowed this once") },
			permissions.Approved, "✅ You allowed this once"},
		"words": {func(s *env, m telegramtest.Message) { s.phones["fay"].Writes("yes " + codeIn(m)) },
			permissions.Approved, "✅ You allowed this once"},
		"a reply": {func(s *env, m telegramtest.Message) { s.phones["fay"].Replies(m.ID, "yes") },
			permissions.Approved, "✅ You allowed this once"},
		"a reason": {func(s *env, m telegramtest.Message) { s.phones["fay"].Writes("no " + codeIn(m) + " because not now") },
			permissions.Denied, "⛔ You denied this"},
		"a settlement": {func(s *env, _ telegramtest.Message) { s.decide("fay", permissions.Deny) }, permissions.Denied, "⛔ You denied this"},
		"stop all": {func(s *env, _ telegramtest.Message) {
			if _, err := s.StopAll(s.t.Context(), identity(ids["sam"])); err != nil {
				s.t.Fatal(err)
			}
		}, permissions.Cancelled, "by sam"},
		"a stop of the agent that is resumed": {func(s *env, m telegramtest.Message) {
			s.phones["fay"].Writes("/stop " + codeIn(m))
			s.until("it is stopped", func() bool { return s.audited(permissions.AgentStopped)[""] == 1 })
			s.phones["fay"].Writes("/resume uid:1000")
			s.until("it is resumed", func() bool { return s.audited(permissions.AgentResumed)[""] == 1 })
			s.toast(s.phones["fay"].TapsData(m.ID, data(s.t, m, "Allow once")), "Too late")
		}, permissions.Denied, "⛔"},
		"an absence": {func(s *env, m telegramtest.Message) {
			s.phones["fay"].Writes("/away 2h")
			s.until("fay is away", func() bool { return s.audited(permissions.PersonAway)[""] == 1 })
			s.taps("fay", m, "Allow once", "✅ You allowed this once")
		}, permissions.Approved, "✅ You allowed this once"},
		"quiet": {func(s *env, m telegramtest.Message) {
			s.phones["fay"].Writes("/quiet uid:1000 1h")
			s.taps("fay", m, "Allow once", "✅ You allowed this once")
		}, permissions.Approved, "✅ You allowed this once"},
		"another language": {func(s *env, m telegramtest.Message) {
			s.settings.People = slices.Clone(s.settings.People)
			for i := range s.settings.People {
				s.settings.People[i].Language = "de"
			}
			s.Configure(s.settings)
			s.taps("fay", m, "Allow once", "✅ Von Ihnen")
		}, permissions.Approved, "✅ Von Ihnen"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			call, m, answer := s.late("fay", "late")
			c.happens(s, m)
			r := s.get(call, c.state)
			answer()
			s.becomes("fay", m.ID, c.says)
			s.until("the card is noted", s.upToDate)
			s.shownOnce("fay", r)
		})
	}
}

// A card follows its person to another account: the one that is no longer theirs cannot answer, and sees that.
func TestACardFollowsItsPersonToAnotherAccount(t *testing.T) {
	s := newEnv(t)
	call, m, _ := s.asked("moves along.")
	s.enrol("new", 4343).Start("")
	s.settings.People = slices.Clone(s.settings.People)
	for i, p := range s.settings.People {
		switch p.Name {
		case "fay":
			s.moves(i, 4343)
		case "new":
			s.settings.People = slices.Delete(s.settings.People, i, i+1)
		}
	}
	s.Configure(s.settings)
	now := s.card("new", "moves along.")
	s.becomes("fay", m.ID, "fay is asked at another account now.")
	s.toast(s.phones["fay"].TapsData(m.ID, data(t, m, "Allow once")), "not yours to decide")
	s.taps("new", now, "Allow once", "✅ You allowed this once")
	s.get(call, permissions.Approved)
	s.becomes("new", now.ID, "✅ You allowed this once")
}

// The same while that card is being sent: once it is noted, and when an edit of it is.
func TestACardThatIsBeingSentFollowsItsPersonToAnotherAccount(t *testing.T) {
	for name, sends := range map[string]func(s *env) (call <-chan ended, m telegramtest.Message, answer func()){
		"its first card": func(s *env) (<-chan ended, telegramtest.Message, func()) { return s.late("fay", "moves along.") },
		"an edit": func(s *env) (<-chan ended, telegramtest.Message, func()) {
			call, m, _ := s.asked("moves along.")
			s.until("the card is noted", s.upToDate)
			until := make(chan struct{})
			s.server.FailNext("editMessageText", 1, telegramtest.Late(until))
			if _, err := s.Refresh(s.t.Context(), Name); err != nil {
				s.t.Fatal(err)
			}
			s.until("it is being edited", func() bool { return len(s.calls("fay", "editMessageText")) == 1 })
			return call, m, func() { close(until) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, func(s *env) {
				s.enrol("new", 4343).Start("")
				s.enrol("other", 4344).Start("")
				s.settings.People = s.settings.People[:len(s.settings.People)-2]
				s.settings.Routes = []engine.Route{{Tags: []permissions.Tag{permissions.Workspace}, Ask: []string{"sam"}}, s.settings.Routes[0]}
			})
			call, m, answer := sends(s)
			sams := network("sam is asked.")
			sams.Tags = s.settings.Routes[0].Tags
			s.ask(sams)
			s.card("sam", "sam is asked.")
			s.until("the card is noted", func() bool {
				live, err := s.LivePrompts(t.Context(), Name, 1)
				return err == nil && len(live) == 1 && live[0].To.Name == "sam"
			})
			s.account("fay", 4343)
			s.account("sam", 4344)
			s.Configure(s.settings)
			s.card("other", "sam is asked.") // the reload has been seen to
			answer()
			now := s.card("new", "moves along.")
			s.becomes("fay", m.ID, "fay is asked at another account now.")
			s.taps("new", now, "Allow once", "✅ You allowed this once")
			s.get(call, permissions.Approved)
		})
	}
}

// renames gives a person another name in the settings and in their requests.
func (s *env) renames(who, now string) {
	s.settings.People = slices.Clone(s.settings.People)
	for i, p := range s.settings.People {
		if p.Name == who {
			s.settings.People[i].Name = now
		}
	}
	s.settings.Routes = []engine.Route{{Ask: []string{now}}}
	s.Configure(s.settings)
}

// ends waits until a card can no longer be answered, and says no more than that.
func (s *env) ends(who string, m telegramtest.Message) {
	s.t.Helper()
	if is := s.becomes(who, m.ID, notAnswered); len(is.Keyboard) > 0 || contains(is, "by sam") {
		s.t.Errorf("%s's card says\n%s\nand has %v", who, is.Text, is.Keyboard)
	}
}

// The card of a person who is no longer configured loses its buttons. They come back with the person.
func TestWhoIsRemovedHasNoButtons(t *testing.T) {
	s := newEnv(t)
	call, m, _ := s.asked("it waits")
	s.until("the card is noted", s.upToDate)
	s.renames("fay", "zoe")
	s.ends("fay", m)
	s.renames("zoe", "fay")
	s.sees("fay", "it waits", func(is telegramtest.Message) bool { return is.ID == m.ID && withButtons(is) })
	s.taps("fay", m, "Allow once", "✅ You allowed this once")
	s.get(call, permissions.Approved)
	s.becomes("fay", m.ID, "✅ You allowed this once")
	s.renames("fay", "zoe")
	s.until("the cards are noted", s.upToDate)
	s.becomes("fay", m.ID, "✅ You allowed this once")
}

// The card of a person whose account is taken from them has no buttons either, whatever takes it. They come back with the account.
func TestWhoLosesTheAccountHasNoButtons(t *testing.T) {
	without := func(s *env) { s.account("fay", 0) }
	for name, c := range map[string]struct {
		before     with
		takes, has func(s *env)
	}{
		"a reload": {func(*env) {}, func(s *env) { without(s); s.Configure(s.settings) },
			func(s *env) { s.account("fay", ids["fay"]); s.Configure(s.settings) }},
		"it is unpaired": {without, func(s *env) {
			if _, err := s.Unpair(s.t.Context(), operator, "fay", Name); err != nil {
				s.t.Fatal(err)
			}
		}, func(s *env) { s.pairs("fay") }},
		"while the daemon is down": {func(*env) {}, func(s *env) { s.stop(); without(s); s.open() },
			func(s *env) { s.account("fay", ids["fay"]); s.Configure(s.settings) }},
		"the person, while the daemon is down": {func(*env) {}, func(s *env) {
			s.stop()
			s.settings.People = slices.DeleteFunc(slices.Clone(s.settings.People), func(p connectors.Person) bool { return p.Name == "fay" })
			s.open()
		}, func(s *env) { s.stop(); s.enrol("fay", ids["fay"]); s.open() }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, func(s *env) { s.settings.Routes[0].Ask = []string{"fay", "sam"} }, c.before)
			if name == "it is unpaired" {
				s.pairs("fay")
			}
			s.ask(network("it waits"))
			m := s.card("fay", "it waits")
			sams := s.card("sam", "it waits")
			s.until("the cards are noted", s.upToDate)
			c.takes(s)
			s.ends("fay", m)
			s.until("the cards are noted", s.upToDate)
			c.has(s)
			s.until("fay is asked again", func() bool { return slices.Contains(s.only().Asked, "fay") && s.upToDate() })
			s.sees("fay", "it waits", func(is telegramtest.Message) bool { return is.ID == m.ID && withButtons(is) })
			s.taps("fay", m, "⛔ Deny", "⛔")
			s.becomes("fay", m.ID, "⛔ You denied this")
			s.becomes("sam", sams.ID, "⛔ Denied by fay")
		})
	}
}

// A daemon that is killed while it sends a card does not know the message: its buttons go when they are pressed, if by then its
// person may not answer.
func TestACardThatTheDaemonDoesNotKnowLosesItsButtonsWhenPressed(t *testing.T) {
	s := newEnv(t, func(s *env) { s.settings.Routes[0].Ask = []string{"fay", "sam"} })
	s.ask(network("late"))
	m := s.card("fay", "late")
	s.until("the cards are noted", s.upToDate)
	copies, err := s.rows.Copies(t.Context(), s.only().ID)
	if err != nil || len(copies) != 2 {
		t.Fatal(copies, err)
	}
	if err := s.rows.SendAgain(t.Context(), copies[0]); err != nil { // as it was before Telegram's answer
		t.Fatal(err)
	}
	s.account("fay", 0)
	s.Configure(s.settings)
	s.until("the cards are noted", s.upToDate)
	s.toast(s.phones["fay"].TapsData(m.ID, data(t, m, "Allow once")), "not yours to decide")
	s.sees("fay", "late", func(is telegramtest.Message) bool { return is.ID == m.ID && len(is.Keyboard) == 0 })
}

// A reload, and an account that is suspended, while a card is being sent: who is asked now has a card, who is not cannot
// answer.
func TestOthersAreAskedWhileACardIsBeingSent(t *testing.T) {
	t.Run("a reload with other routes", func(t *testing.T) {
		s := newEnv(t)
		call, m, answer := s.late("fay", "late")
		s.settings.Routes = []engine.Route{{Ask: []string{"sam"}}}
		s.Configure(s.settings)
		s.card("sam", "late")
		answer()
		s.until("the card is noted", s.upToDate)
		s.taps("fay", m, "Allow once", "✅ You allowed this once")
		s.get(call, permissions.Approved)
		s.becomes("fay", m.ID, "✅ You allowed this once")
	})
	t.Run("a reload without the person", func(t *testing.T) {
		s := newEnv(t)
		call, m, answer := s.late("fay", "late")
		s.settings.Routes = []engine.Route{{Ask: []string{"sam"}}}
		for i, p := range s.settings.People {
			if p.Name == "fay" {
				s.settings.People = append(s.settings.People[:i:i], s.settings.People[i+1:]...)
				break
			}
		}
		s.Configure(s.settings)
		other := s.card("sam", "late")
		s.toast(s.phones["fay"].TapsData(m.ID, data(t, m, "Allow once")), "not yours to decide")
		answer()
		s.ends("fay", m)
		s.taps("sam", other, "⛔ Deny", "⛔")
		s.get(call, permissions.Denied)
		s.until("the cards are noted", s.upToDate)
		s.ends("fay", m) // and does not say how it ended
	})
	t.Run("a reload with another name", func(t *testing.T) {
		s := newEnv(t)
		call, m, answer := s.late("fay", "late")
		s.renames("fay", "faye")
		s.until("somebody else is asked", func() bool { return s.only().Asked[0] == "faye" })
		answer()
		s.ends("fay", m)
		s.taps("fay", s.sees("fay", "late", withButtons), "Allow once", "✅ You allowed this once")
		s.get(call, permissions.Approved)
	})
	t.Run("an account that is suspended", func(t *testing.T) {
		s := newEnv(t, escalating)
		call, m, answer := s.late("fay", "late")
		if err := s.Suspend(t.Context(), Name, strconv.FormatInt(ids["fay"], 10)); err != nil {
			t.Fatal(err)
		}
		other := s.card("sam", "late")
		s.toast(s.phones["fay"].TapsData(m.ID, data(t, m, "Allow once")), "not yours to decide")
		answer()
		s.taps("sam", other, "Allow once", "✅")
		s.get(call, permissions.Approved)
		s.until("the cards are noted", s.upToDate)
	})
	t.Run("a lock", func(t *testing.T) {
		s := newEnv(t, escalating)
		call, m, answer := s.late("fay", "late")
		if _, err := s.Lock(t.Context(), operator, "fay", time.Time{}); err != nil {
			t.Fatal(err)
		}
		other := s.card("sam", "late")
		s.toast(s.phones["fay"].TapsData(m.ID, data(t, m, "Allow once")), "locked")
		s.waits(call)
		answer()
		s.becomes("fay", m.ID, "You are locked: nothing from this account counts")
		s.taps("sam", other, "⛔ Deny", "⛔")
		s.get(call, permissions.Denied)
		s.until("the cards are noted", s.upToDate)
	})
	t.Run("a reload without the account", func(t *testing.T) {
		s := newEnv(t, escalating)
		call, m, answer := s.late("fay", "late")
		s.account("fay", 0)
		s.Configure(s.settings)
		other := s.card("sam", "late")
		s.toast(s.phones["fay"].TapsData(m.ID, data(t, m, "Allow once")), "not yours to decide")
		answer()
		s.ends("fay", m)
		s.account("fay", ids["fay"])
		s.Configure(s.settings)
		s.sees("fay", "late", func(is telegramtest.Message) bool { return is.ID == m.ID && withButtons(is) })
		s.taps("fay", m, "⛔ Deny", "⛔")
		s.get(call, permissions.Denied)
		s.becomes("sam", other.ID, "⛔ Denied by fay")
		s.becomes("fay", m.ID, "⛔ You denied this")
	})
	t.Run("an account that is unpaired", func(t *testing.T) {
		s := newEnv(t, escalating, func(s *env) { s.account("fay", 0) })
		s.pairs("fay")
		call, m, answer := s.late("fay", "late")
		if _, err := s.Unpair(t.Context(), operator, "fay", Name); err != nil {
			t.Fatal(err)
		}
		other := s.card("sam", "late")
		s.toast(s.phones["fay"].TapsData(m.ID, data(t, m, "Allow once")), "not yours to decide")
		answer()
		s.ends("fay", m)
		s.until("the cards are noted", s.upToDate)
		s.pairs("fay") // and is asked again
		again := s.sees("fay", "late", withButtons)
		s.waits(call)
		s.taps("fay", again, "⛔ Deny", "⛔")
		s.get(call, permissions.Denied)
		s.becomes("sam", other.ID, "⛔ Denied by fay")
	})
}

// The same in a group, which moves and from which the bot may be removed besides.
func TestBetweenAGroupsCardAndTelegramsAnswer(t *testing.T) {
	for name, decides := range map[string]func(s *env, m telegramtest.Message){
		"a tap": func(s *env, m telegramtest.Message) { s.taps("sam@ops", m, "Allow once", "✅ You allowed this once") },
		"words": func(s *env, m telegramtest.Message) {
			s.phones["sam@ops"].Writes("yes " + codeIn(m) + " @" + s.server.Bot().Username)
		},
		"a reply": func(s *env, m telegramtest.Message) { s.phones["sam@ops"].Replies(m.ID, "yes") },
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newGroupEnv(t, "supergroup")
			s.until("the bot knows its name", func() bool { return s.bot.self.Load() != nil })
			call, m, answer := s.late("fay@ops", "late")
			decides(s, m)
			s.get(call, permissions.Approved)
			answer()
			s.becomes("fay@ops", m.ID, "✅ Allowed once by sam")
			s.alone("fay", "sam")
		})
	}
	t.Run("it moves", func(t *testing.T) {
		s, o := newGroupEnv(t, "group")
		call, _, answer := s.late("fay@ops", "late")
		to := o.Migrates(s.phones["fay"])
		s.enter(to, 0)
		quick(s.bot, s.groups)
		s.until("the move is known", func() bool { return s.audited(permissions.GroupRenamed)[""] == 1 })
		answer()
		m := s.card("fay@ops", "late")
		s.until("the card is noted", s.upToDate)
		s.taps("fay@ops", m, "Allow once", "✅")
		s.get(call, permissions.Approved)
		s.becomes("fay@ops", m.ID, "✅ Allowed once by fay")
		s.alone("fay", "sam")
	})
	t.Run("a tap on the new card of one that has moved", func(t *testing.T) {
		s, o := newGroupEnv(t, "group")
		call := s.ask(network("late"))
		s.card("fay@ops", "late")
		s.until("the card is noted", s.upToDate)
		answer := s.hold()
		to := o.Migrates(s.phones["fay"])
		s.enter(to, 0)
		quick(s.bot, s.groups)
		m := s.card("fay@ops", "late")
		s.taps("fay@ops", m, "Allow once", "✅")
		s.get(call, permissions.Approved)
		answer()
		s.becomes("fay@ops", m.ID, "✅ Allowed once by fay")
		s.until("the card is noted", s.upToDate)
	})
	t.Run("the bot is removed", func(t *testing.T) {
		s, o := newGroupEnv(t, "supergroup", func(s *env) { s.settings.Routes[0].Escalate.Moment = engine.Moment{Percent: 90} })
		call, _, answer := s.late("fay@ops", "late")
		o.KicksBot(s.phones["kim"])
		m := s.card("fay", "late") // while Telegram has not answered
		s.card("sam", "late")
		answer()
		s.taps("fay", m, "Allow once", "✅")
		s.get(call, permissions.Approved)
		s.becomes("sam", s.sees("sam", "late", func(telegramtest.Message) bool { return true }).ID, "✅ Allowed once by fay")
	})
}

// A card is sent twice, since the answer to the first was lost, and the first is pressed while the second is being sent:
// that counts, and both say so.
func TestACardThatIsSentTwice(t *testing.T) {
	s := newEnv(t)
	s.server.FailNext("sendMessage", 1, telegramtest.ReplyLost())
	answer := s.hold()
	call := s.ask(network("twice"))
	first := s.card("fay", "twice")
	second := s.sees("fay", "twice", func(m telegramtest.Message) bool { return m.ID != first.ID })
	s.taps("fay", first, "Allow once", "✅")
	s.get(call, permissions.Approved)
	answer()
	s.becomes("fay", second.ID, "✅ You allowed this once")
	s.becomes("fay", first.ID, "✅ You allowed this once")
	s.until("the card is noted", s.upToDate)
}

// The daemon was killed between sending a card and noting it, and has sent it again: a reply to the first counts as its code
// would. A reply to a card of what has ended decides nothing about what waits.
func TestAReplyToACardThatWasNotNoted(t *testing.T) {
	s := newEnv(t)
	over, old, _ := s.asked("over")
	s.taps("fay", old, "⛔ Deny", "⛔")
	s.get(over, permissions.Denied)
	answer := s.hold()
	s.ask(network("killed"))
	first := s.card("fay", "killed")
	s.stop()
	answer()
	s.open()
	second := s.sees("fay", "killed", func(m telegramtest.Message) bool { return m.ID != first.ID })
	s.until("the second card is noted", s.upToDate)
	s.phones["fay"].Replies(old.ID, "yes")
	s.told("fay", "already denied")
	s.phones["fay"].Replies(first.ID, "yes")
	s.becomes("fay", second.ID, "✅ You allowed this once")
}

// A card whose tap is refused shows the request's state: it never stays without buttons or a reason.
func TestACardThatIsRefusedIsDrawnAgain(t *testing.T) {
	s := newEnv(t, asking(engine.Route{Ask: []string{"fay", "sam"}, Quorum: 2}))
	s.server.FailNext("sendMessage", 1, telegramtest.ReplyLost())
	call := s.ask(network("again"))
	s.until("it is shown", func() bool {
		return s.sent("fay", withButtons)+s.sent("sam", withButtons) == 3 && s.upToDate()
	})
	known, who := map[string]bool{}, "fay"
	for _, c := range s.standing().Copies {
		known[c.Ref] = true
	}
	if s.sent("sam", withButtons) == 2 {
		who = "sam"
	}
	first := s.sees(who, "again", func(m telegramtest.Message) bool { return !known[ref{m.Chat, int64(m.ID)}.String()] })
	s.toast(s.phones[who].TapsData(first.ID, data(t, first, "Allow once")), "shown again below")
	s.becomes(who, first.ID, "is shown again below")
	s.decide("fay", permissions.Deny)
	s.get(call, permissions.Denied)
	s.toast(s.phones[who].TapsData(first.ID, data(t, first, "Allow once")), "Too late")
	s.becomes(who, first.ID, map[bool]string{true: "⛔ You denied this", false: "⛔ Denied by fay"}[who == "fay"])
}

// An outage that ends with a tap that Telegram still has: it counts, the card says so within five seconds of contact, and
// nobody is told of what did not happen. What still waits is shown again, and its person told what to do.
func TestATapThatOutlivesAnOutageCounts(t *testing.T) {
	for name, taps := range map[string]int{"one card": 1, "one of two": 2} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			call, m, _ := s.asked("it counts")
			for i := 1; i < taps; i++ {
				s.ask(network("it waits"))
				s.card("fay", "it waits")
			}
			s.until("the cards are noted", s.upToDate)
			s.server.Down()
			s.until("there is no contact", func() bool { return s.bot.Health() != nil })
			s.server.Advance(110 * time.Second)
			s.phones["fay"].TapsData(m.ID, data(t, m, "Allow once"))
			s.server.Advance(60 * time.Second)
			if err := s.server.Up(); err != nil {
				t.Fatal(err)
			}
			back := time.Now()
			s.becomes("fay", m.ID, "✅ You allowed this once")
			if took := time.Since(back); took > 5*time.Second {
				t.Errorf("the card said so after %v", took)
			}
			s.get(call, permissions.Approved)
			if taps == 2 {
				s.told("fay", "If you pressed something and the card has not changed, press again.")
				s.told("fay", "is shown again below")
				s.until("it is shown again", func() bool { return s.sent("fay", withButtons) == 1 && s.upToDate() })
				return
			}
			s.drained()
			if n := s.sent("fay", func(m telegramtest.Message) bool { return contains(m, "no contact") || withButtons(m) }); n != 0 {
				t.Errorf("%d messages of what did not happen", n)
			}
		})
	}
}

// Who has blocked the bot is asked no longer: others are at once, health says since when and what to do, and who presses
// Start again is shown what still waits.
func TestWhoHasBlockedTheBot(t *testing.T) {
	s := newEnv(t, func(s *env) {
		s.settings.Routes[0].Escalate.Moment, s.settings.Routes[0].Escalate.To = engine.Moment{Percent: 90}, []string{"sam"}
	})
	call, m, _ := s.asked("it waits")
	s.until("the card is noted", s.upToDate)
	s.phones["fay"].Blocks()
	other := s.card("sam", "it waits")
	want := "fay has blocked the bot since " + s.server.Now().UTC().Format("15:04 MST") + "; fay has to press Start"
	if err := s.Health()[Name]; err == nil || err.Error() != want {
		t.Errorf("health is %v; want %s", err, want)
	}
	sent := len(s.calls("fay", "sendMessage"))
	s.ask(network("it waits, too"))
	s.card("sam", "it waits, too")
	if n := len(s.calls("fay", "sendMessage")) - sent; n != 0 {
		t.Errorf("%d messages were tried to fay", n)
	}
	s.phones["fay"].Unblocks()
	s.card("fay", "it waits, too")
	if err := s.Health()[Name]; err != nil {
		t.Error(err)
	}
	s.taps("sam", other, "Allow once", "✅")
	s.get(call, permissions.Approved)
	s.becomes("fay", m.ID, "✅ Allowed once by sam")
}

// Who never pressed Start, and who deleted their account, are not tried again and again.
func TestWhoCannotBeWrittenTo(t *testing.T) {
	for name, c := range map[string]struct {
		is   with
		says string
		back func(s *env)
	}{
		"never pressed Start": {func(s *env) {
			s.settings.Routes[0].Ask = []string{"zoe"}
			s.enrol("zoe", 9001)
		}, "zoe never pressed Start; zoe has to open the bot and press Start", func(s *env) { s.phones["zoe"].Start("") }},
		"no account": {func(s *env) {
			s.settings.Routes[0].Ask = []string{"zoe"}
			s.enrol("zoe", 9001).Deactivates()
		}, "zoe has no Telegram account any more", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, c.is)
			for range 2 {
				if r := s.get(s.ask(network("x")), permissions.Undeliverable); !strings.Contains(r.Failure, c.says) {
					t.Errorf("failed as %q; want %q", r.Failure, c.says)
				}
			}
			tried := 0
			for _, c := range s.server.Calls() {
				if c.Method == "sendMessage" && c.Params["chat_id"] == "9001" {
					tried++
				}
			}
			if tried != 1 {
				t.Errorf("it was tried %d times", tried)
			}
			if err := s.Health()[Name]; err == nil || err.Error() != c.says {
				t.Errorf("health is %v", err)
			}
			if c.back == nil {
				return
			}
			c.back(s)
			s.until("it is known", func() bool { return s.Health()[Name] == nil })
			call := s.ask(network("back"))
			s.taps("zoe", s.card("zoe", "back"), "Allow once", "✅")
			s.get(call, permissions.Approved)
		})
	}
}

// A person who is asked because others did not answer is told so, and the others are told, too.
func TestAnEscalationSaysWhy(t *testing.T) {
	s := newEnv(t, func(s *env) {
		s.settings.Routes[0].Escalate.Moment, s.settings.Routes[0].Escalate.To = engine.Moment{Percent: 50}, []string{"sam"}
		s.settings.Approvals.Timeout = 4 * time.Minute
		for i := range s.settings.People {
			s.settings.People[i].Location = time.FixedZone("CET", 3600)
		}
	})
	call, m, _ := s.asked("why me")
	s.until("the card is noted", s.upToDate)
	asked := s.server.Now().Add(time.Hour).UTC().Format("15:04")
	s.server.Advance(125 * time.Second)
	other := s.card("sam", "why me")
	if want := "fay was asked at " + asked + " and has not answered."; !contains(other, want) {
		t.Errorf("the card says\n%s\nwant %s", other.Text, want)
	}
	s.sees("fay", "sam is asked, too, since "+s.server.Now().Add(time.Hour).UTC().Format("15:04"), func(is telegramtest.Message) bool {
		return is.ID == m.ID && withButtons(is)
	})
	s.taps("sam", other, "Allow once", "✅")
	s.get(call, permissions.Approved)
	if end := s.becomes("fay", m.ID, "✅ Allowed once by sam"); contains(end, "is asked") {
		t.Errorf("the card says\n%s", end.Text)
	}
	s.toast(s.phones["fay"].TapsData(m.ID, data(t, m, "Allow once")), " CET. Nothing was changed.")
}

// mutes has an agent muted whose notice to fay is on the phone, and answered by Telegram only when answer is called.
func (s *env) mutes() (m telegramtest.Message, answer func()) {
	s.t.Helper()
	for i := range 2 {
		text := fmt.Sprintf("bad %d", i)
		call := s.ask(network(text))
		s.taps("fay", s.card("fay", text), "⛔ Deny", "⛔")
		s.get(call, permissions.Denied)
		s.until("the card is noted", s.upToDate)
	}
	answer = s.hold()
	if _, err := s.Ask(s.t.Context(), permissions.CallerUID(1000), network("bad 2")); err == nil {
		s.t.Fatal("it is not muted")
	}
	return s.sees("fay", "", func(m telegramtest.Message) bool { return strings.Contains(fmt.Sprint(m.Keyboard), "❓ Why") }), answer
}

// What is pressed below the notice of a muted agent, while Telegram has not answered for it, counts if its person may do it then.
func TestBetweenTheNoticeOfAMutedAgentAndTelegramsAnswer(t *testing.T) {
	const resume, stop, why, nothing = "▶️ Resume", "⛔ Stop", "❓ Why", "belongs to nothing"
	lock := func(s *env) {
		if _, err := s.Lock(s.t.Context(), operator, "fay", time.Time{}); err != nil {
			s.t.Fatal(err)
		}
	}
	without := func(s *env) { s.account("fay", 0); s.Configure(s.settings) }
	sams := func(s *env) { s.settings.Routes = []engine.Route{{Ask: []string{"sam"}}}; s.Configure(s.settings) }
	for name, c := range map[string]struct {
		happens       func(s *env)
		button, toast string
		is            permissions.Type // what is audited; empty: nothing
	}{
		"resume":        {func(*env) {}, resume, "uid:1000 goes on", permissions.AgentResumed},
		"stop":          {func(*env) {}, stop, "uid:1000", permissions.AgentStopped},
		"a lock":        {lock, resume, "fay is locked", ""},
		"a lock, why":   {lock, why, "fay is locked", ""},
		"no account":    {without, resume, nothing, ""},
		"another route": {sams, stop, "no agent", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, func(s *env) { s.settings.Limits.MutedAfter = 2 })
			m, answer := s.mutes()
			c.happens(s)
			s.toast(s.phones["fay"].TapsData(m.ID, data(t, m, c.button)), c.toast)
			answer()
			for _, kind := range []permissions.Type{permissions.AgentResumed, permissions.AgentStopped} {
				if n := s.audited(kind)[""]; (n == 1) != (kind == c.is) {
					t.Errorf("%s: %d", kind, n)
				}
			}
		})
	}
}

// What is pressed below the question whether to trust an agent, while Telegram has not answered for it, counts if its person may do it
// then.
func TestBetweenTheQuestionOfTrustAndTelegramsAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(s *env)
		toast   string
		trusts  int
	}{
		"nothing": {func(*env) {}, "🤝 what is read", 1},
		"a lock": {func(s *env) {
			if _, err := s.Lock(s.t.Context(), operator, "fay", time.Time{}); err != nil {
				s.t.Fatal(err)
			}
		}, "fay is locked", 0},
		"no account":    {func(s *env) { s.account("fay", 0); s.Configure(s.settings) }, "belongs to nothing", 0},
		"another route": {func(s *env) { s.settings.Routes = []engine.Route{{Ask: []string{"sam"}}}; s.Configure(s.settings) }, "no agent", 0},
		"two decide": {func(s *env) {
			s.settings.Routes = []engine.Route{{Ask: []string{"fay", "sam"}, Quorum: 2}}
			s.Configure(s.settings)
		}, "several people decide", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			if _, _, err := s.CreateToken(t.Context(), operator, "coder", "", 0); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Begin(t.Context(), coder, ofCoder("make")); err != nil {
				t.Fatal(err)
			}
			s.taps("fay", s.card("fay", "make"), "Allow once", "✅")
			s.until("the card is noted", s.upToDate)
			answer := s.hold()
			s.phones["fay"].Writes("/trust coder 30m")
			m := s.sees("fay", "", func(m telegramtest.Message) bool { return strings.Contains(fmt.Sprint(m.Keyboard), "Yes, trust it") })
			c.happens(s)
			s.toast(s.phones["fay"].TapsData(m.ID, data(t, m, "⚠️ Yes, trust it for 30m")), c.toast)
			answer()
			grants, err := s.Grants(t.Context(), operator, "", 9)
			if err != nil || len(grants) != c.trusts {
				t.Errorf("%+v, %v", grants, err)
			}
		})
	}
}

// coder is an agent with a token.
var coder = permissions.Token{Name: "coder"}.Caller(permissions.NoUID)

// ofCoder is a call of its.
func ofCoder(command string) permissions.Request {
	return permissions.Request{
		Kind: permissions.KindTool, Hook: "claude-code", Tool: "Bash", Input: []byte(`{"command":"` + command + `"}`),
		Cwd: "/srv/code", Session: "s1",
	}
}

// anyCode matches a code.
var anyCode = regexp.MustCompile(`\b[0-9A-Z]{5}\b`)

// TestACodeIsToldBeforeItsCardIsShown: a code alone, as /pending tells it, allows nothing of which the file or the card has not come.
func TestACodeIsToldBeforeItsCardIsShown(t *testing.T) {
	s := newEnv(t)
	s.server.FailNext("sendDocument", 1000, telegramtest.Refuse(500, "Internal Server Error"))
	call := s.ask(calling("write_file", "long", 9000))
	s.until("its file is refused", func() bool { return len(s.calls("fay", "sendDocument")) > 1 })
	pending := s.says("fay", "/pending", "wants")
	code := anyCode.FindString(pending.Text)
	s.says("fay", "yes "+code, "has not been shown to you yet; look at it first")
	s.toast(s.phones["fay"].TapsData(pending.ID, s.button("fay", pending, code)), "is shown again below.")
	s.says("fay", "yes "+code, "has not been shown to you yet; look at it first")
	s.waits(call)
	s.phones["fay"].Writes("no " + code)
	s.get(call, permissions.Denied)
}

// TestAReloadThatShowsMoreAllowsNothingBeforeItIsShown: as long as a card shows no more than the title, nothing allows what it wants, in
// words, by a reply or by made-up data of a button.
func TestAReloadThatShowsMoreAllowsNothingBeforeItIsShown(t *testing.T) {
	s := newEnv(t)
	whole := s.settings
	s.settings.OnlyTitles = map[string]bool{Name: true}
	s.Configure(s.settings)
	call := s.ask(network("kept out."))
	m := s.card("fay", "no more than the title")
	s.until("the card is noted", s.upToDate)
	s.server.FailNext("editMessageText", 1000, telegramtest.Refuse(500, "Internal Server Error"))
	s.Configure(whole)
	s.says("fay", "yes "+codeIn(m), "no more than the title, so it cannot be allowed here")
	made := strings.Replace(s.button("fay", m, "Deny"), "deny", "allow_once", 1)
	s.toast(s.phones["fay"].TapsData(m.ID, made), "no more than the title, so it cannot be allowed here")
	s.waits(call)
	s.phones["fay"].Writes("no " + codeIn(m))
	s.get(call, permissions.Denied)
}

// TestAReloadThatShowsMoreSendsTheFileFirst: a card of the title alone has no file. What needs one is shown anew below it, and is not
// allowed before.
func TestAReloadThatShowsMoreSendsTheFileFirst(t *testing.T) {
	s := newEnv(t)
	whole := s.settings
	s.settings.OnlyTitles = map[string]bool{Name: true}
	s.Configure(s.settings)
	call := s.ask(rows())
	m := s.card("fay", "no more than the title")
	s.until("the card is noted", s.upToDate)
	s.server.FailNext("sendDocument", -1, telegramtest.Refuse(500, "Internal Server Error"))
	s.Configure(whole)
	s.until("its file is refused", func() bool { return len(s.calls("fay", "sendDocument")) > 1 })
	s.says("fay", "yes "+codeIn(m), "has not been shown to you yet; look at it first")
	made := strings.Replace(s.button("fay", m, "Deny"), "deny", "allow_once", 1)
	s.toast(s.phones["fay"].TapsData(m.ID, made), "no more than the title, so it cannot be allowed here")
	s.waits(call)
	s.server.FailNext("sendDocument", 0, telegramtest.BadGateway())
	own := s.card("fay", "All of it is in the file above")
	file := s.sees("fay", "the whole edit", func(m telegramtest.Message) bool { return m.Document != nil })
	if own.ID == m.ID || file.ID > own.ID {
		t.Errorf("the card is %d, its file %d; the title was %d", own.ID, file.ID, m.ID)
	}
	s.becomes("fay", m.ID, "is shown again below")
	s.until("the card is noted", s.upToDate)
	s.taps("fay", own, "Allow once", "✅")
	s.get(call, permissions.Approved)
}
