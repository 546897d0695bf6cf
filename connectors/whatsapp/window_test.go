package whatsapp

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// late shows a card on fay's phone that WhatsApp does not confirm until confirm is called, at the latest at the end.
func (s *env) late(reason string) (call <-chan ended, m whatsapptest.Message, code string, confirm func()) {
	s.t.Helper()
	confirm = s.server.HoldAcks()
	s.t.Cleanup(confirm)
	call = s.ask(network(reason))
	m = s.sees("fay", reason)
	code = codeOn(m)
	return call, m, code, confirm
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
	s.phones[who].Says("pair " + i.Code)
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

func (s *env) noted() bool {
	lagging, err := s.rows.StaleCopies(s.t.Context(), Name, "", 1)
	return err == nil && len(lagging) == 0
}

// Whatever happens between a card's being on the phone and WhatsApp's word that it took it finds the card: what decides
// there counts before that, and afterwards the card shows the outcome.
func TestBetweenACardAndWhatsAppsAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(s *env, m whatsapptest.Message, code string)
		state   permissions.State
		says    string
	}{
		"a reaction": {func(s *env, m whatsapptest.Message, _ string) { s.phones["fay"].Reacts(m.ID, "👍") },
			permissions.Approved, "✅ *You allowed this once*"},
		"words": {func(s *env, _ whatsapptest.Message, code string) { s.phones["fay"].Says("yes " + code) },
			permissions.Approved, "✅ *You allowed this once*"},
		"a reply": {func(s *env, m whatsapptest.Message, _ string) { s.phones["fay"].Quotes(m.ID, "no") },
			permissions.Denied, "⛔ *You denied this*"},
		"a settlement": {func(s *env, _ whatsapptest.Message, code string) {
			if _, err := s.OnPermission(s.t.Context(), connectors.Decision{
				Code: code, Answer: permissions.Deny, From: connectors.Identity{Via: Name, Address: s.fay().Addresses[Name], UID: permissions.NoUID},
			}); err != nil {
				s.t.Fatal(err)
			}
		}, permissions.Denied, "⛔ *You denied this*"},
		"stop all": {func(s *env, _ whatsapptest.Message, _ string) {
			id := connectors.Identity{Via: Name, Address: "+" + numbers["sam"], UID: permissions.NoUID}
			if _, err := s.StopAll(s.t.Context(), id); err != nil {
				s.t.Fatal(err)
			}
		}, permissions.Cancelled, "by sam"},
		"a stop of the agent that is resumed": {func(s *env, _ whatsapptest.Message, code string) {
			id := connectors.Identity{Via: Name, Address: s.fay().Addresses[Name], UID: permissions.NoUID}
			_, n, err := s.StopAgent(s.t.Context(), id, code)
			if _, failed := s.ResumeAgent(s.t.Context(), id, "uid:1000"); err != nil || failed != nil || n != 1 {
				s.t.Fatal(n, err, failed)
			}
			s.phones["fay"].Says("yes " + code)
		}, permissions.Denied, "⛔"},
		"an absence": {func(s *env, _ whatsapptest.Message, code string) {
			s.phones["fay"].Says("/away 2h")
			s.sees("fay", "away until")
			s.phones["fay"].Says("yes " + code)
		}, permissions.Approved, "✅ *You allowed this once*"},
		"another language": {func(s *env, _ whatsapptest.Message, code string) {
			s.settings.People = slices.Clone(s.settings.People)
			for i := range s.settings.People {
				s.settings.People[i].Language = "de"
			}
			s.Configure(s.settings)
			s.phones["fay"].Says("ja " + code)
		}, permissions.Approved, "✅ *Von Ihnen"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			call, m, code, confirm := s.late("late.")
			c.happens(s, m, code)
			s.get(call, c.state)
			confirm()
			s.becomes("fay", m.ID, c.says)
			s.until("the card is noted", s.noted)
			if n := s.count("fay", "late."); n != 1 {
				t.Errorf("fay has %d cards", n)
			}
		})
	}
}

// A call waits for WhatsApp's word while a question of its agent is open: what answers the question decides nothing about the call, nor the
// other way round, and a high risk still takes the whole sentence.
func TestBetweenACardBesideAQuestionAndWhatsAppsAnswer(t *testing.T) {
	s := newEnv(t)
	asks := s.ask(permissions.Request{
		Kind: permissions.KindClarification, Session: "s", Message: "Go on?", Choices: []string{"no", "yes", "run"},
	})
	q, _ := s.card("fay", "Go on?")
	confirm := s.server.HoldAcks()
	t.Cleanup(confirm)
	risky := network("late.")
	risky.Kind, risky.Tool, risky.Input, risky.Tags, risky.Reason = permissions.KindTool, "Bash", []byte(`{"command":"rm -rf /srv"}`), nil, ""
	risky.Hook, risky.Key, risky.Cwd = "claude-code", "", "/srv/code"
	call := s.ask(risky)
	m := s.sees("fay", "rm -rf")
	for _, text := range []string{"yes", "2", "run", "YES RUN"} {
		s.phones["fay"].Says(text)
	}
	s.phones["fay"].Quotes(m.ID, "yes") // once, for high risk
	s.acknowledged()
	s.waits(call)
	s.waits(asks)
	s.phones["fay"].Quotes(q.ID, "yes")
	if r := s.get(asks, permissions.Answered); r.Answer != "option_2" {
		t.Errorf("the answer is %q", r.Answer)
	}
	s.waits(call)
	s.phones["fay"].Quotes(m.ID, "YES "+codeOn(m)+" RUN")
	s.get(call, permissions.Approved)
	confirm()
	s.becomes("fay", m.ID, "✅ *You allowed this once*")
	s.until("the cards are noted", s.noted)
}

// A card that a chat may no longer show whole, or may again, is drawn as the chat may show it.
func TestAReloadShowsCardsAsTheirChatMay(t *testing.T) {
	s := newEnv(t, func(s *env) { s.settings.Approvals.Timeout = time.Hour })
	call, m, code := s.asked("kept out.")
	whole := s.settings
	s.settings.OnlyTitles = map[string]bool{Name: true}
	s.Configure(s.settings)
	s.becomes("fay", m.ID, "no more than the title")
	s.Configure(whole)
	s.becomes("fay", m.ID, "kept out.")
	only := whole
	only.Routes = []engine.Route{{Ask: []string{"fay"}, OnlyTitle: true}}
	s.Configure(only)
	s.becomes("fay", m.ID, "no more than the title")
	s.says("fay", "yes "+code, "no more than the title of "+code)
	s.server.Advance(20 * time.Minute) // now it cannot be edited
	s.Configure(whole)
	now, err := s.phones["fay"].Sees(soon(t), func(now whatsapptest.Message) bool {
		return now.ID != m.ID && strings.Contains(now.Text, "kept out.")
	})
	if err != nil {
		t.Fatal(err)
	}
	s.until("the new card is noted", s.noted)
	s.phones["fay"].Says("yes " + code)
	s.get(call, permissions.Approved)
	s.becomes("fay", now.ID, "You allowed this once")
}

// TestAReloadThatShowsMoreSendsTheFileFirst: a card of the title alone has no file. What needs one is shown anew below it.
func TestAReloadThatShowsMoreSendsTheFileFirst(t *testing.T) {
	s := newEnv(t)
	whole := s.settings
	s.settings.OnlyTitles = map[string]bool{Name: true}
	s.Configure(s.settings)
	call := s.ask(toolCall("write_file", `{"path":"/srv/a","content":"`+strings.Repeat(`a row\n`, 4000)+`"}`))
	m, code := s.card("fay", "no more than the title")
	s.until("the card is noted", s.noted)
	s.server.FailMedia(1, 500)
	s.Configure(whole)
	own := s.sees("fay", "in the file above")
	if !slices.ContainsFunc(s.phones["fay"].Messages(), func(m whatsapptest.Message) bool { return m.Document != nil }) || own.ID == m.ID {
		t.Errorf("its file has not come:\n%s", s.got("fay"))
	}
	s.until("the card is noted", s.noted)
	s.server.Advance(2 * time.Second)
	s.phones["fay"].Says("yes " + code)
	s.get(call, permissions.Approved)
}

// TestARestartThatShowsMoreSendsTheFileFirst: what the process of before has sent as a title is one until all of it is shown.
func TestARestartThatShowsMoreSendsTheFileFirst(t *testing.T) {
	s := newEnv(t)
	whole := s.settings
	s.settings.OnlyTitles = map[string]bool{Name: true}
	s.Configure(s.settings)
	s.ask(toolCall("write_file", `{"path":"/srv/a","content":"`+strings.Repeat(`a row\n`, 4000)+`"}`))
	_, code := s.card("fay", "no more than the title")
	s.server.FailMedia(1000, 500)
	s.settings = whole
	s.restart()
	s.until("it is to be sent again", func() bool { return s.only().State == permissions.Pending && !s.noted() })
	s.phones["fay"].Says("yes " + code)
	s.acknowledged()
	if s.only().State != permissions.Pending {
		t.Error("its title alone was enough to allow it")
	}
	s.server.FailMedia(0, 0)
	s.sees("fay", "in the file above")
	s.until("the card is noted", s.noted)
	s.server.Advance(2 * time.Second)
	s.phones["fay"].Says("yes " + code)
	s.sees("fay", "You allowed this once")
}

// TestACardThatAnEarlierProcessNamedIsAllowedOnceItHasCome: its code is told in other places, too. A reply to it proves that it has come.
func TestACardThatAnEarlierProcessNamedIsAllowedOnceItHasCome(t *testing.T) {
	s := newEnv(t)
	s.server.FailMedia(1000, 500)
	q := network("named.")
	q.Details = strings.Repeat("a line of what will be done\n", 3000)
	s.named(q)
	s.restart()
	s.says("fay", "yes "+s.rows.Coder().Encode(s.only().Number), "has not been shown to you yet")
	s.server.FailMedia(0, 0)
	m, code := s.card("fay", "named.")
	s.until("the card is noted", s.noted)
	s.server.Advance(2 * time.Second)
	s.phones["fay"].Says("yes " + code)
	s.becomes("fay", m.ID, "You allowed this once")
}

// A card follows its person to another account: the one that is no longer theirs cannot answer.
func TestACardFollowsItsPersonToAnotherAccount(t *testing.T) {
	s := newEnv(t)
	call, m, code := s.asked("moves along.")
	s.settings.People = slices.Clone(s.settings.People)
	s.moves(0, "+"+numbers["eve"])
	s.Configure(s.settings)
	s.sees("eve", "moves along.")
	s.becomes("fay", m.ID, "This can no longer be answered")
	s.phones["fay"].Says("yes " + code)
	s.acknowledged()
	s.waits(call)
	s.phones["eve"].Says("yes " + code)
	s.get(call, permissions.Approved)
}

// TestAnotherAccountAllowsNothingOfWhatIsStillAtTheFormerOne: what arrived at a person's former account counts for nothing from a reload
// on, however long the work on their cards takes.
func TestAnotherAccountAllowsNothingOfWhatIsStillAtTheFormerOne(t *testing.T) {
	s := newEnv(t)
	call, _, code := s.asked("noted.")
	also, _, sent, confirm := s.late("on its way.")
	s.settings.People = slices.Clone(s.settings.People)
	s.moves(0, "+"+numbers["eve"])
	s.Configure(s.settings)
	for _, code := range []string{code, sent} {
		s.says("eve", "yes "+code, "has not been shown to you yet; look at it first")
	}
	confirm()
	s.sees("eve", "noted.")
	s.sees("eve", "on its way.")
	s.until("the cards are noted", s.noted)
	s.server.Advance(2 * time.Second)
	s.phones["eve"].Says("yes " + code)
	s.get(call, permissions.Approved)
	s.waits(also)
}

// A card that can no longer be edited has a reply that says so.
func TestAnOldCardFollowsItsPersonToAnotherAccount(t *testing.T) {
	s := newEnv(t, func(s *env) { s.settings.Approvals.Timeout = time.Hour })
	call, m, code := s.asked("moves along.")
	s.server.Advance(20 * time.Minute)
	s.settings.People = slices.Clone(s.settings.People)
	s.moves(0, "+"+numbers["eve"])
	s.Configure(s.settings)
	s.sees("eve", "moves along.")
	s.answers("fay", m.ID, code+" · This can no longer be answered.")
	s.until("the card is noted", s.noted) // until then no code allows it
	s.phones["eve"].Says("yes " + code)
	s.get(call, permissions.Approved)
}

// The same while that card is being sent, once it is noted.
func TestACardThatIsBeingSentFollowsItsPersonToAnotherAccount(t *testing.T) {
	s := newEnv(t, func(s *env) {
		s.phones["other"] = s.server.Person("491700000777", "other")
		s.settings.Routes = []engine.Route{{Tags: []permissions.Tag{permissions.Workspace}, Ask: []string{"sam"}}, s.settings.Routes[0]}
	})
	sams := network("sam is asked.")
	sams.Tags = s.settings.Routes[0].Tags
	s.ask(sams)
	s.card("sam", "sam is asked.")
	s.until("the card is noted", s.noted)
	call, m, code, confirm := s.late("moves along.")
	s.settings.People = slices.Clone(s.settings.People)
	s.moves(0, "+"+numbers["eve"])
	s.moves(1, "+491700000777")
	s.Configure(s.settings)
	s.sees("other", "sam is asked.") // the reload has been seen to
	confirm()
	s.sees("eve", "moves along.")
	s.becomes("fay", m.ID, "This can no longer be answered")
	s.phones["fay"].Says("yes " + code)
	s.acknowledged()
	s.waits(call)
	s.phones["eve"].Says("yes " + code)
	s.get(call, permissions.Approved)
}

// A card that is known by another name by now, since its person had another phone meanwhile: a reply to it counts as its
// code would. A reply to a card of what has ended decides nothing about what waits.
func TestAReplyToACardThatWasNotNoted(t *testing.T) {
	s := newEnv(t)
	over, old, _ := s.asked("over.")
	s.phones["fay"].Quotes(old.ID, "no")
	s.get(over, permissions.Denied)
	call, first, _ := s.asked("moves along.")
	for _, number := range []string{numbers["eve"], numbers["fay"]} {
		s.settings.People = slices.Clone(s.settings.People)
		s.moves(0, "+"+number)
		s.Configure(s.settings)
		s.until("it is shown there", func() bool {
			r, err := s.rows.Pending(t.Context(), "fay", "", 1)
			if err != nil || len(r) != 1 {
				return false
			}
			copies, err := s.rows.Copies(t.Context(), r[0].ID)
			return err == nil && len(copies) == 1 && copies[0].Shown == r[0].Revision &&
				strings.HasPrefix(copies[0].Ref, "+"+number) && !strings.HasSuffix(copies[0].Ref, first.ID)
		})
	}
	s.answers("fay", s.phones["fay"].Quotes(old.ID, "yes"), "lready denied")
	s.waits(call)
	s.phones["fay"].Quotes(first.ID, "yes")
	s.get(call, permissions.Approved)
}

// A reload, an account that is suspended and a connection that ends while a card is being sent.
func TestOthersAreAskedWhileACardIsBeingSent(t *testing.T) {
	t.Run("a reload with other routes", func(t *testing.T) {
		s := newEnv(t)
		call, m, code, confirm := s.late("late.")
		s.settings.Routes = []engine.Route{{Ask: []string{"sam"}}}
		s.Configure(s.settings)
		s.sees("sam", "late.")
		s.phones["fay"].Says("yes " + code)
		s.get(call, permissions.Approved)
		confirm()
		s.becomes("fay", m.ID, "✅ *You allowed this once*")
	})
	t.Run("an account that is suspended", func(t *testing.T) {
		s := newEnv(t, escalating)
		call, _, code, confirm := s.late("late.")
		if err := s.Suspend(t.Context(), Name, s.fay().Addresses[Name]); err != nil {
			t.Fatal(err)
		}
		s.sees("sam", "late.")
		s.phones["fay"].Says("yes " + code)
		s.acknowledged()
		s.waits(call)
		confirm()
		s.phones["sam"].Says("no " + code)
		s.get(call, permissions.Denied)
		s.until("the cards are noted", s.noted)
	})
	t.Run("a lock", func(t *testing.T) {
		s := newEnv(t, escalating)
		call, m, code, confirm := s.late("late.")
		if _, err := s.Lock(t.Context(), operator, "fay", time.Time{}); err != nil {
			t.Fatal(err)
		}
		s.sees("sam", "late.")
		s.phones["fay"].Says("yes " + code)
		s.phones["fay"].Quotes(m.ID, "yes")
		s.phones["fay"].Reacts(m.ID, "👍")
		s.acknowledged()
		s.waits(call)
		confirm()
		s.becomes("fay", m.ID, "You are locked")
		s.phones["sam"].Says("no " + code)
		s.get(call, permissions.Denied)
		s.until("the cards are noted", s.noted)
	})
	t.Run("a reload without the person", func(t *testing.T) {
		s := newEnv(t)
		call, m, code, confirm := s.late("late.")
		s.settings.Routes = []engine.Route{{Ask: []string{"sam"}}}
		s.settings.People = slices.DeleteFunc(slices.Clone(s.settings.People), func(p connectors.Person) bool { return p.Name == "fay" })
		s.Configure(s.settings)
		s.sees("sam", "late.")
		s.phones["fay"].Says("yes " + code)
		s.acknowledged()
		s.waits(call)
		confirm()
		s.becomes("fay", m.ID, "This can no longer be answered")
		s.phones["sam"].Says("no " + code)
		s.get(call, permissions.Denied)
		s.until("the cards are noted", s.noted)
		s.becomes("fay", m.ID, "This can no longer be answered") // and does not say how it ended
	})
	t.Run("a reload without the account", func(t *testing.T) {
		s := newEnv(t, escalating)
		call, m, code, confirm := s.late("late.")
		s.settings.People = slices.Clone(s.settings.People)
		s.moves(0, "")
		s.Configure(s.settings)
		s.sees("sam", "late.")
		s.phones["fay"].Says("yes " + code)
		s.acknowledged()
		s.waits(call)
		confirm()
		s.becomes("fay", m.ID, "This can no longer be answered")
		s.settings.People = slices.Clone(s.settings.People)
		s.moves(0, "+"+numbers["fay"])
		s.Configure(s.settings)
		s.becomes("fay", m.ID, "Reply to this message")
		s.phones["fay"].Says("no " + code)
		s.get(call, permissions.Denied)
		s.until("the cards are noted", s.noted)
	})
	t.Run("an account that is unpaired", func(t *testing.T) {
		s := newEnv(t, escalating, func(s *env) { s.moves(0, "") })
		s.pairs("fay")
		call, m, code, confirm := s.late("late.")
		if _, err := s.Unpair(t.Context(), operator, "fay", Name); err != nil {
			t.Fatal(err)
		}
		s.sees("sam", "late.")
		s.phones["fay"].Says("yes " + code)
		s.acknowledged()
		s.waits(call)
		confirm()
		s.becomes("fay", m.ID, "This can no longer be answered")
		s.until("the cards are noted", s.noted)
		s.pairs("fay") // and is asked again
		s.phones["fay"].Says("no " + code)
		s.get(call, permissions.Denied)
	})
	t.Run("a connection that ends", func(t *testing.T) {
		s := newEnv(t)
		call, m, code, confirm := s.late("late.")
		s.server.Cut()
		confirm()
		s.well()
		s.until("the card is noted", s.noted) // before, nobody knows whether it has come
		s.phones["fay"].Says("yes " + code)
		s.get(call, permissions.Approved)
		s.becomes("fay", m.ID, "✅ *You allowed this once*")
		if n := s.count("fay", "late."); n != 1 {
			t.Errorf("fay has %d cards", n)
		}
	})
}

// without takes fay's account, or fay, out of the configuration.
func (s *env) without(person bool) {
	s.settings.People = slices.Clone(s.settings.People)
	if s.moves(0, ""); person {
		s.settings.People = s.settings.People[1:]
	}
}

// The card of a person who is taken out of the configuration while the daemon is down, or whose account is, says so.
func TestWhoIsRemovedWhileTheDaemonIsDownSeesIt(t *testing.T) {
	for name, person := range map[string]bool{"the account": false, "the person": true} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, func(s *env) { s.settings.Routes = []engine.Route{{Ask: []string{"fay", "sam"}}} })
			_, m, code := s.asked("it waits.")
			s.sees("sam", "it waits.")
			s.until("the cards are noted", s.noted)
			people := s.settings.People
			s.stop()
			s.without(person)
			s.open()
			s.becomes("fay", m.ID, "This can no longer be answered")
			s.until("the cards are noted", s.noted)
			s.settings.People = people
			s.Configure(s.settings)
			s.becomes("fay", m.ID, "Reply to this message")
			s.phones["fay"].Says("no " + code)
			s.becomes("fay", m.ID, "You denied this")
		})
	}
}

// A daemon that is started again while a card is being sent knows the card by the name that it gave it, whether or not WhatsApp
// confirmed it: the card shows that its person is locked, or gone, and how the request ended.
func TestARestartBetweenACardAndWhatsAppsAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		before  func(s *env) // while the daemon is down
		happens func(s *env, code string)
		says    string
	}{
		"a lock": {func(*env) {}, func(s *env, _ string) {
			if _, err := s.Lock(s.t.Context(), operator, "fay", time.Time{}); err != nil {
				s.t.Fatal(err)
			}
		}, "You are locked"},
		"without the person":  {func(s *env) { s.without(true) }, func(*env, string) {}, "This can no longer be answered"},
		"without the account": {func(s *env) { s.without(false) }, func(*env, string) {}, "This can no longer be answered"},
		"a settlement":        {func(*env) {}, func(s *env, code string) { s.phones["sam"].Says("no " + code) }, "Denied by sam"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, func(s *env) { s.settings.Routes = []engine.Route{{Ask: []string{"fay", "sam"}}} })
			_, m, code, confirm := s.late("late.")
			s.sees("sam", "late.")
			s.stop()
			c.before(s)
			s.open()
			c.happens(s, code)
			s.becomes("fay", m.ID, c.says)
			confirm()
		})
	}
}
