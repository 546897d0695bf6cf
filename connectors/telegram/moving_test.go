package telegram

import (
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// A group becomes a supergroup: the card is shown again there, routes that have the old id keep working, also across a
// restart, and health says what to write into the configuration.
func TestAGroupBecomesASupergroup(t *testing.T) {
	s, o := newGroupEnv(t, "group")
	call := s.ask(network("before"))
	old := s.card("fay@ops", "before")
	s.until("the card is noted", s.upToDate)
	was := s.phones["fay@ops"]
	to := o.Migrates(s.phones["fay"])
	s.enter(to, 0)
	quick(s.bot, s.groups)
	s.card("fay@ops", "before")
	s.until("the card is noted", s.upToDate)
	s.drained()
	if !to.HasBot() {
		t.Fatal("the bot has left it")
	}
	s.toast(was.TapsData(old.ID, data(t, old, "Allow once")), "shown again below")
	s.waits(call)
	s.sick("write chat: -100")
	s.stop()
	s.open()
	call = s.ask(network("before"))
	s.card("fay@ops", "before")
	s.until("the card is noted", s.upToDate)
	s.taps("fay@ops", s.card("fay@ops", "before"), "Allow once", "✅")
	s.get(call, permissions.Approved)
	call = s.ask(network("after"))
	s.taps("sam@ops", s.card("sam@ops", "after"), "Allow once", "✅")
	s.get(call, permissions.Approved)
	s.alone("fay", "sam")
	if n := s.audited(permissions.GroupRenamed)[""]; n != 1 {
		t.Errorf("the move was audited %d times", n)
	}

	s.settings.Routes[0].Group = Place(to.ID(), 0) // as it was told
	s.Configure(s.settings)
	s.bot.groups.look.Notify()
	s.well()
}

// The bot may learn of it by what it is refused, before any update says so: while it asks, edits or reminds.
func TestAGroupsNewIDIsTakenFromARefusal(t *testing.T) {
	s, o := newGroupEnv(t, "group", func(s *env) { s.settings.Routes[0].Quorum = 2 })
	call := s.ask(network("early"))
	m := s.card("fay@ops", "early")
	s.until("the card is noted", s.upToDate)
	s.server.FailNext("getUpdates", -1, telegramtest.BadGateway())
	to := o.Migrates(s.phones["fay"])
	s.enter(to, 0)
	quick(s.bot, s.groups)
	if _, err := s.OnPermission(t.Context(), connectors.Decision{
		Request: s.only().ID, Answer: permissions.Allow(permissions.Once), From: connectors.Identity{Via: "web", UID: int(ids["fay"])},
	}); err != nil {
		t.Fatal(err)
	}
	if again := s.card("sam@ops", "1 of 2"); again.Chat != to.ID() || m.Chat != o.ID() {
		t.Errorf("shown again in %d", again.Chat)
	}
	late := s.ask(network("late"))
	s.card("sam@ops", "late")
	s.server.FailNext("getUpdates", 0, telegramtest.BadGateway())
	s.waits(late)
	s.waits(call)
}

// A group that no route names is left: at once, once a change of the configuration is noticed, and not while something
// waits there.
func TestAGroupThatNoRouteNamesIsLeft(t *testing.T) {
	s, o := newGroupEnv(t, "supergroup")
	other := s.server.Supergroup("Other", s.phones["eve"])
	other.AddsBot(s.phones["eve"])
	s.until("it has left", func() bool { return !other.HasBot() })
	call := s.ask(network("waits"))
	m := s.card("fay@ops", "waits")
	s.until("the card is noted", s.upToDate)
	s.settings.Routes = []engine.Route{{Ask: []string{"fay"}}}
	s.Configure(s.settings)
	s.phones["fay@ops"].Writes("/help")
	s.told("fay@ops", "Commands are for")
	if !o.HasBot() {
		t.Fatal("it has left while somebody is asked there")
	}
	s.taps("fay@ops", m, "Allow once", "✅")
	s.get(call, permissions.Approved)
	s.becomes("fay@ops", m.ID, "✅")
	s.phones["eve@ops"].Writes("/help")
	s.until("it has left", func() bool { return !o.HasBot() })
	channel := s.server.Channel("News", s.phones["eve"])
	channel.AddsBot(s.phones["eve"])
	s.until("it has left the channel", func() bool { return !channel.HasBot() })
}

// Reminders come once to all, as a reply to the card, and so does an escalation, whose people are asked by the same card.
func TestAGroupIsRemindedOnceForAll(t *testing.T) {
	s, o := newGroupEnv(t, "forum", func(s *env) {
		s.settings.Routes[0].Escalate.Moment, s.settings.Routes[0].Escalate.To = engine.Moment{Percent: 60}, []string{"kim"}
		s.settings.Approvals.Remind = []engine.Moment{{Percent: 30}}
	})
	call := s.ask(network("slow"))
	m := s.card("fay@ops", "slow")
	s.until("the card is noted", s.upToDate)
	s.server.Advance(5 * time.Minute)
	reminder := s.told("fay@ops", "⏰ fay, sam\n1 request waits for your answer")
	card, ok := s.phones["fay@ops"].Message(reminder.ReplyTo)
	if !ok || codeIn(card) != codeIn(m) || reminder.Thread != o.thread {
		t.Errorf("reminded by %+v", reminder)
	}
	s.server.Advance(5 * time.Minute)
	s.told("fay@ops", "⏰ fay, sam, kim\n1 request")
	s.card("kim@ops", "👥 asks fay, sam, kim")
	s.until("it is kim's as well", func() bool { return len(s.standing().Copies) == 3 && s.upToDate() })
	s.taps("kim@ops", s.card("kim@ops", "slow"), "Allow once", "✅")
	s.get(call, permissions.Approved)
	s.alone("fay", "sam", "kim")
}

// Quiet hours are those of all: one who is awake is enough for a sound.
func TestAGroupIsQuietWhenAllOfThemAre(t *testing.T) {
	s, _ := newGroupEnv(t, "group", func(s *env) {
		all := connectors.Hours{To: 24*60 - 1}
		for i := range s.settings.People {
			if s.settings.People[i].Name != "sam" {
				s.settings.People[i].Quiet = all
			}
		}
		one := s.settings.Routes[0]
		one.Agents, one.Ask = []string{"uid:1000"}, []string{"fay", "kim"}
		one.Tags = []permissions.Tag{permissions.Network}
		s.settings.Routes = append([]engine.Route{one}, s.settings.Routes...)
	})
	first := s.ask(network("quietly"))
	if m := s.card("fay@ops", "quietly"); !m.Silent {
		t.Error("it made a sound though all of them have quiet hours")
	}
	second := s.ask(permissions.Request{
		Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Events}, Reason: "aloud", Session: "s",
	})
	if m := s.card("fay@ops", "aloud"); m.Silent {
		t.Error("it made no sound though sam is awake")
	}
	s.waits(first)
	s.waits(second)
}

// What is looked at in a group, and what its health says.
func TestHealthOfAGroup(t *testing.T) {
	s, o := newGroupEnv(t, "supergroup", func(s *env) {
		s.settings.Routes = append(s.settings.Routes, engine.Route{Ask: []string{"kim"}, Group: Place(-1004711, 0)})
	})
	s.sick("group -1004711: the bot is not in it")
	if c := (connectors.Contact{Health: s.bot.Health(), People: map[string]error{"fay": nil}}); !c.Reaches("fay") {
		t.Error("a group without the bot has people of other chats be out of reach")
	}
	o.MutesBot(s.phones["fay"])
	s.sick("the bot may not write there")
	s.settings.Routes = []engine.Route{{Ask: []string{"fay"}, Group: Place(o.ID(), 7)}}
	s.Configure(s.settings)
	o.PromotesBot(s.phones["fay"])
	s.sick("it has no topics")
	s.settings.Routes[0].Group = Place(o.ID(), 0)
	s.Configure(s.settings)
	s.bot.groups.look.Notify()
	s.well()
}

// A card that somebody took away from a group is shown again with the next change, one whose end is to be told has a word
// of its own.
func TestACardThatIsTakenAwayFromAGroup(t *testing.T) {
	s, o := newGroupEnv(t, "forum", quorum(2))
	call := s.ask(network("gone"))
	m := s.card("fay@ops", "gone")
	s.until("the card is noted", s.upToDate)
	s.phones["fay@ops"].Deletes(m.ID)
	decide := func(name string) {
		t.Helper()
		if _, err := s.OnPermission(t.Context(), connectors.Decision{
			Request: s.only().ID, Answer: permissions.Allow(permissions.Once), From: connectors.Identity{Via: "web", UID: int(ids[name])},
		}); err != nil {
			t.Fatal(err)
		}
	}
	decide("fay")
	again := s.card("sam@ops", "1 of 2")
	s.until("the card is noted", s.upToDate)
	s.phones["fay@ops"].Deletes(again.ID)
	decide("sam")
	s.get(call, permissions.Approved)
	if end := s.told("fay@ops", "✅ Allowed once by fay and sam"); end.Thread != o.thread {
		t.Errorf("told in %d", end.Thread)
	}
}

func codeIn(m telegramtest.Message) string {
	code, _ := codeOf(m)
	return code
}

func TestPlaces(t *testing.T) {
	for name, want := range map[string]spot{
		Place(-5, 0): {-5, 0}, Place(-1001234567890, 7): {-1001234567890, 7},
	} {
		if at, err := parsePlace(name); err != nil || at != want {
			t.Errorf("%s is %+v, %v", name, at, err)
		}
	}
	for _, name := range []string{"", "telegram:", "telegram:5", "telegram:0", "telegram:-5/", "telegram:-5/0", "telegram:-5/x",
		"telegram:-5/-7", "whatsapp:-5", "-5"} {
		if at, err := parsePlace(name); err == nil {
			t.Errorf("%q is %+v", name, at)
		}
	}
	for text, want := range map[string]string{
		"👥 asks fay\n── K7F3Q ──\nci wants": "K7F3Q", "── K7F3Q ──": "K7F3Q",
		"ci wants network access\n── AAAAA ──\nK7F3Q · until 14:15": "K7F3Q", "✅ Allowed\nK7F3Q": "K7F3Q",
		"│ ── K7F3Q ──": "", "── K7F3 ──": "", "": "",
	} {
		if got := codeOfCard(text); got != want {
			t.Errorf("the code of %q is %q", text, got)
		}
	}
	if text := strings.Repeat("n", 900); len(toAnswer([]connectors.Prompt{{Request: permissions.Request{Asked: []string{text}}}})) > 400 {
		t.Error("a reminder of a long name is long")
	}
}

// A group is looked at again soon while it is not known by what name the bot is addressed there.
func TestTheBotsNameIsLookedFor(t *testing.T) {
	s, o := newGroupEnv(t, "supergroup")
	s.until("the group was looked at", func() bool { return s.called("getChatMember") > 0 })
	d := &handler{Connector: s.bot}
	place := connectors.Group{Name: Place(o.ID(), 0), Now: Place(o.ID(), 0), Routed: true}
	s.server.FailNext("getMe", -1, telegramtest.BadGateway())
	s.until("it is not done without a name", func() bool {
		s.bot.self.Store(nil) // which a call that was on its way may find meanwhile
		return !d.checkGroup(t.Context(), place)
	})
	s.server.FailNext("getMe", 0, telegramtest.BadGateway())
	if !d.checkGroup(t.Context(), place) || s.bot.self.Load() == nil {
		t.Error("it is not done")
	}
}

// TestAnotherAccountAllowsWhatItWasShown: what was shown to a person's former account is shown to the new one before that allows it.
func TestAnotherAccountAllowsWhatItWasShown(t *testing.T) {
	s := newEnv(t)
	other := s.server.Person(telegramtest.User{ID: 1009, FirstName: "fay"})
	other.Start("")
	call := s.ask(rows())
	m := s.card("fay", "/srv/long")
	s.until("the card is noted", s.upToDate)
	s.server.FailNext("sendDocument", -1, telegramtest.Refuse(500, "Internal Server Error"))
	s.account("fay", 1009)
	s.Configure(s.settings)
	s.becomes("fay", m.ID, "another account")
	s.phones["fay"] = other
	s.until("its file is refused", func() bool { return s.called("sendDocument") > 2 })
	s.says("fay", "yes "+codeIn(m), "has not been shown to you yet; look at it first")
	s.waits(call)
	s.server.FailNext("sendDocument", 0, telegramtest.BadGateway())
	s.card("fay", "/srv/long")
	s.until("the card is noted", s.upToDate)
	s.server.Advance(secondStep)
	s.phones["fay"].Writes("yes " + codeIn(m))
	s.get(call, permissions.Approved)
}

// TestAnotherAccountAllowsNothingOfWhatIsStillAtTheFormerOne: what arrived at a person's former account counts for nothing from a reload
// on, however long the work on their cards takes.
func TestAnotherAccountAllowsNothingOfWhatIsStillAtTheFormerOne(t *testing.T) {
	for name, holds := range map[string]func(s *env) (answer func()){
		"cards and a list": func(s *env) func() {
			s.burst(network("third"), network("fourth"))
			until, before := make(chan struct{}), s.called("editMessageText")
			s.server.FailNext("editMessageText", 1, telegramtest.Late(until))
			if _, err := s.Refresh(s.t.Context(), Name); err != nil {
				s.t.Fatal(err)
			}
			s.until("one is being edited", func() bool { return s.called("editMessageText") > before })
			return func() { close(until) }
		},
		"a card that is being sent": func(s *env) func() {
			s.asked("one")
			_, _, answer := s.late("fay", "another")
			return answer
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, few)
			other := s.server.Person(telegramtest.User{ID: 1009, FirstName: "fay"})
			other.Start("")
			answer := holds(s)
			s.account("fay", 1009)
			s.Configure(s.settings)
			s.phones["fay"] = other
			s.server.Advance(secondStep)
			all, err := s.Pending(t.Context(), operator, "", 10)
			if err != nil || len(all) < 2 {
				t.Fatal(all, err)
			}
			for _, one := range all {
				s.says("fay", "yes "+one.Code, "has not been shown to you yet; look at it first")
			}
			answer()
			s.card("fay", all[0].Request.Reason)
			s.until("the cards are noted", s.upToDate)
			s.server.Advance(secondStep)
			s.phones["fay"].Writes("yes " + all[0].Code)
			s.until("it is allowed", func() bool {
				n, err := s.CountPending(t.Context())
				return err == nil && n == len(all)-1
			})
		})
	}
}
