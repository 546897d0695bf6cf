package telegram

import (
	"slices"
	"strings"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// says writes a command and waits for the answer to it.
func (s *env) says(who, text, want string) telegramtest.Message {
	s.t.Helper()
	id := s.phones[who].Writes(text)
	return s.sees(who, want, func(m telegramtest.Message) bool { return m.ReplyTo == id })
}

func TestCommands(t *testing.T) {
	s := newEnv(t)
	s.says("fay", "/pending", "Nothing waits for your answer.")
	s.says("fay", "/grants", "Nothing is granted.")
	s.says("fay", "/whoami", "You are fay here. Your numeric Telegram id is 2001.")
	s.says("fay", "/help", "daycared asks you here")
	s.says("fay", "Help ", "daycared asks you here")
	s.says("fay", "/WhoAmI@daycared_test_bot", "You are fay here.")
	s.says("fay", "/revoke", "Say which")
	s.says("fay", "/revoke nothing", "")
	s.says("fay", "/dance", "There is no command /dance")
	for _, command := range []string{"/stop", "/use scribe", "/use", "/agents", "/status", "/new", "/quit"} {
		s.says("fay", command, "No agent is bound")
	}

	call, m, code := s.asked("for a while")
	s.says("fay", "/pending", code)
	s.says("sam", "/pending", "Nothing waits for your answer.")
	s.taps("fay", m, "15 minutes", "✅")
	s.get(call, permissions.Approved)
	granted := s.says("fay", "/grants", "network access")
	s.says("sam", "/grants", "Nothing is granted.")
	_, id, _ := strings.Cut(granted.Text, "/revoke ")
	id, _, _ = strings.Cut(id, "\n")
	s.says("sam", "/revoke "+id, "")
	s.says("fay", "/grants", "network access")
	s.says("fay", "/revoke "+strings.ToLower(id), "network access")
	s.says("fay", "/grants", "Nothing is granted.")
}

func TestAnApprovalThatWasNotUsedIsTakenBack(t *testing.T) {
	s := newEnv(t)
	ctx, cancel := canceled(t)
	call := s.asks(ctx, network("x"))
	m := s.card("fay", "x")
	s.until("the card is noted", s.upToDate)
	code, _ := codeOf(m)
	cancel()
	<-call
	s.until("nobody waits", func() bool { return s.standing().Waiting == 0 })
	s.taps("fay", s.card("fay", "x"), "Allow once", "✅")
	s.says("fay", "/revoke "+strings.ToLower(code), "")
	r, err := s.rows.ByCode(t.Context(), code)
	if err != nil || s.audited(permissions.RequestVoided)[r.ID] != 1 {
		t.Errorf("it is %s, and was not taken back (%v)", r.State, err)
	}
}

func TestStopAll(t *testing.T) {
	s := newEnv(t)
	call, m, _ := s.asked("x")
	fay := s.phones["fay"]
	fay.Forwards(s.phones["eve"].Forwards(s.phones["eve"].Writes("/stop all"), fay), fay)
	s.told("fay", "somebody else's words")
	s.waits(call)
	s.says("fay", "/stop ALL", "Stopped. 1 request was cancelled")
	s.get(call, permissions.Cancelled)
	s.becomes("fay", m.ID, "✖ You cancelled this")
	s.says("sam", "/pending", "Everything was stopped by fay")
	s.says("sam", "/resume", "only fay and the operator can resume")
	s.says("fay", "yes", "")
}

// stopsAll has fay stop everything, and returns the message with the button that ends the stop.
func (s *env) stopsAll() telegramtest.Message {
	s.t.Helper()
	id := s.phones["fay"].Writes("/stop all")
	return s.sees("fay", "⛔ Stopped.", func(m telegramtest.Message) bool { return m.ReplyTo == id && len(m.Keyboard) == 1 })
}

// stepOfStop waits for the step of a message about a stop that has such a button.
func (s *env) stepOfStop(m telegramtest.Message, button string) telegramtest.Message {
	s.t.Helper()
	return s.sees("fay", "⛔ Stopped.", func(now telegramtest.Message) bool {
		return now.ID == m.ID && slices.ContainsFunc(now.Keyboard[0], func(b telegramtest.Button) bool { return b.Text == button })
	})
}

func (s *env) isStopped(by string) {
	s.t.Helper()
	if got := s.StoppedBy(); got != by {
		s.t.Fatalf("everything is stopped by %q; want %q", got, by)
	}
}

const (
	resumeFirst  = "▶️ Resume"
	resumeSecond = "⚠️ Yes, resume"
	resumed      = "▶️ Resumed: requests are asked again"
)

func TestAStopIsEndedByTwoTaps(t *testing.T) {
	s := newEnv(t)
	m := s.stopsAll()
	first := data(t, m, resumeFirst)
	s.taps("fay", m, resumeFirst, "Nothing is resumed yet")
	s.toast(s.phones["fay"].TapsData(m.ID, first), "Nothing is resumed yet") // a double tap
	second := s.stepOfStop(m, resumeSecond)
	s.isStopped("fay")
	for place, b := range second.Keyboard[0] {
		if b.Text == resumeSecond && m.Keyboard[0][place].Text == resumeFirst || len(m.Keyboard[0]) != len(second.Keyboard[0]) {
			t.Fatalf("the second yes is where the first was pressed: %v, then %v", m.Keyboard, second.Keyboard)
		}
	}
	s.taps("fay", second, "Stay stopped", "Everything stays stopped.")
	s.taps("fay", s.stepOfStop(m, resumeFirst), resumeFirst, "Nothing is resumed yet")
	yes := s.stepOfStop(m, resumeSecond)
	s.taps("fay", yes, resumeSecond, "Nothing is resumed yet") // a double tap
	s.isStopped("fay")
	s.server.Advance(secondStep)
	again := data(t, yes, resumeSecond)
	s.taps("fay", yes, resumeSecond, resumed)
	s.isStopped("")
	s.becomes("fay", m.ID, resumed)
	s.toast(s.phones["fay"].TapsData(m.ID, again), resumed)
}

// A change of buttons that is tried again does not undo a later one.
func TestTheLastChangeOfButtonsStays(t *testing.T) {
	s := newEnv(t)
	m := s.stopsAll()
	stay := data(t, m, "Stay stopped")
	s.server.FailNext("editMessageReplyMarkup", 1, telegramtest.InternalError())
	s.taps("fay", m, resumeFirst, "Nothing is resumed yet")
	s.until("the first change has failed", func() bool { return s.called("editMessageReplyMarkup") == 1 })
	s.toast(s.phones["fay"].TapsData(m.ID, stay), "Everything stays stopped.")
	s.until("the second is sent", func() bool { return s.called("editMessageReplyMarkup") > 1 })
	s.stop() // ends when all is sent
	if now, _ := s.phones["fay"].Message(m.ID); now.Keyboard[0][1].Text != m.Keyboard[0][1].Text {
		t.Errorf("the buttons are %v; want %v", now.Keyboard, m.Keyboard)
	}
}

func TestAMessageAboutAStopSaysThatItWasEndedElsewhere(t *testing.T) {
	for name, resume := range map[string]func(s *env){
		"command": func(s *env) { s.says("fay", "/resume", resumed) },
		"operator": func(s *env) {
			if err := s.Resume(t.Context(), connectors.Identity{Via: "cli", UID: 1, Operator: true}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			m, again := s.stopsAll(), s.stopsAll()
			resume(s)
			s.becomes("fay", m.ID, resumed)
			s.becomes("fay", again.ID, resumed)
		})
	}
}

// The buttons of the second step arrive after the stop has ended.
func TestAStopThatEndsBetweenTwoStepsKeepsNoButtons(t *testing.T) {
	s := newEnv(t)
	m := s.stopsAll()
	d := &handler{Connector: s.bot}
	at := ref{ids["fay"], int64(m.ID)}
	stop := s.Stop().At
	s.says("fay", "/resume", resumed)
	s.becomes("fay", m.ID, resumed)
	d.keysOfStop(t.Context(), at, stop, keysResume(stop, i18n.English), i18n.English)
	s.until("the late buttons have come, and gone", func() bool {
		m, _ := s.phones["fay"].Message(m.ID)
		return m.Edits == 3
	})
	s.becomes("fay", m.ID, resumed)
}

func TestAnOldButtonEndsNoLaterStop(t *testing.T) {
	s := newEnv(t)
	old := s.stopsAll()
	s.taps("fay", old, resumeFirst, "Nothing is resumed yet")
	yes := data(t, s.stepOfStop(old, resumeSecond), resumeSecond)
	s.says("fay", "/resume", resumed)
	s.becomes("fay", old.ID, resumed)
	m := s.stopsAll()
	s.toast(s.phones["fay"].TapsData(old.ID, yes), "stopped again since")
	s.becomes("fay", old.ID, "/resume ends that")
	s.isStopped("fay")
	err := s.EndStop(t.Context(), identity(ids["fay"]), s.Stop().At.Add(-1000))
	if permissions.CodeOf(err) != permissions.CodeSettled {
		t.Errorf("the end of another stop: %v", err)
	}
	s.isStopped("fay")
	s.taps("fay", m, resumeFirst, "Nothing is resumed yet")
	s.server.Advance(secondStep)
	s.taps("fay", s.stepOfStop(m, resumeSecond), resumeSecond, resumed)
	s.isStopped("")
}

func TestTheButtonsOfAStopOutliveTheDaemon(t *testing.T) {
	s := newEnv(t)
	m := s.stopsAll()
	again := func() {
		s.stop()
		s.open()
	}
	again()
	s.taps("fay", m, resumeFirst, "Nothing is resumed yet")
	second := s.stepOfStop(m, resumeSecond)
	again()
	s.server.Advance(secondStep)
	s.taps("fay", second, resumeSecond, "Nothing is resumed yet") // the first step ends with the daemon
	s.isStopped("fay")
	s.server.Advance(secondStep)
	s.taps("fay", second, resumeSecond, resumed)
	s.isStopped("")
	s.becomes("fay", m.ID, resumed)

	m = s.stopsAll()
	again()
	s.says("fay", "/resume", resumed)
	s.taps("fay", m, resumeFirst, resumed)
	s.becomes("fay", m.ID, resumed)
}

func TestOnlyWhoStoppedEndsAStopByAButton(t *testing.T) {
	s, o := newGroupEnv(t, "supergroup")
	call := s.ask(network("x"))
	s.until("the card is there", func() bool { return o.cards() == 1 })
	var card telegramtest.Message
	for _, m := range o.Messages() {
		if len(m.Keyboard) > 0 {
			card = m
		}
	}
	m := s.stopsAll()
	s.get(call, permissions.Cancelled)
	first := data(t, m, resumeFirst)
	yes := strings.Replace(first, stepReally, "", 1)
	id := s.phones["sam"].Writes("/stop all")
	sams := s.sees("sam", "⛔ Stopped.", func(m telegramtest.Message) bool { return m.ReplyTo == id })
	if len(sams.Keyboard) > 0 {
		t.Errorf("the message to sam about fay's stop has %v", sams.Keyboard)
	}
	for who, want := range map[string]string{"sam": "only fay and the operator can resume", "eve": "not yours", "fay@ops": toastUnknown} {
		for _, each := range []string{first, yes} {
			message := card.ID
			if who != "fay@ops" {
				message = sams.ID
			}
			s.toast(s.phones[who].TapsData(message, each), want)
		}
	}
	s.isStopped("fay")
	if _, err := s.StopAll(t.Context(), connectors.Identity{Via: "cli", UID: 1, Operator: true}); err != nil {
		t.Fatal(err)
	}
	s.taps("fay", m, resumeFirst, "only "+engine.OperatorName)
	s.isStopped(engine.OperatorName)
	for _, wrong := range []string{"resume.", "resume.x", "resume.!", "resume.01", "resume.!!1", "resume.+1", yes + " "} {
		s.toast(s.phones["fay"].TapsData(m.ID, wrong), toastUnknown)
	}
}

// The notice of an unknown account has buttons that say whose it is. It takes two people; what others press, or press too late,
// does nothing.
func TestAnUnknownAccountIsPairedByButtons(t *testing.T) {
	s := newEnv(t, func(s *env) {
		s.settings.UID = int(ids["fay"])
		s.settings.People = append(s.settings.People, connectors.Person{Name: "max", UID: permissions.NoUID})
	})
	paired := func(is bool) {
		t.Helper()
		name, _ := s.Who(identity(eveID))
		if (name == "max") != is {
			t.Fatalf("the account is %q's", name)
		}
	}
	const first, second = "🔗 6666 is max", "✅ Yes, it is max"
	s.phones["eve"].Writes("hello")
	notice := s.sees("fay", "1 unknown account wrote", func(m telegramtest.Message) bool { return len(m.Keyboard) == 1 })
	s.toast(s.phones["fay"].TapsData(notice.ID, listPrefix+"/pair max 7777"), toastUnknown)
	s.toast(s.phones["fay"].TapsData(notice.ID, listPrefix+"/pair sam 6666"), "sam has an account there already")
	say := func() (kims telegramtest.Message) {
		t.Helper()
		before := s.sent("kim", func(m telegramtest.Message) bool { return contains(m, "fay says that") })
		s.taps("fay", notice, first, "")
		s.until("kim is asked", func() bool {
			return s.sent("kim", func(m telegramtest.Message) bool { return contains(m, "fay says that") }) == before+1
		})
		all := s.phones["kim"].Messages()
		paired(false)
		return all[len(all)-1]
	}
	kims := say()
	mine := s.sees("fay", "You say that 6666 is max's. Nothing is paired before", func(m telegramtest.Message) bool {
		return len(m.Keyboard) == 1
	})
	s.taps("fay", notice, first, "It takes somebody else")
	s.toast(s.phones["eve"].TapsData(s.phones["eve"].Messages()[0].ID, data(t, kims, second)), toastUnknown)
	paired(false)
	s.taps("fay", mine, "✖ Take it back", "")
	s.told("fay", "Taken back: max is not paired with 6666")
	s.taps("kim", kims, second, "Only fay, who hears of unknown accounts")
	s.taps("kim", kims, "✖ No, take it back", "Nobody says now that 6666 is max's")
	paired(false)

	kims = say()
	s.stop()
	s.open()
	s.taps("kim", kims, second, "")
	s.told("kim", "max answers with 6666 from now on")
	s.told("eve", "as max.")
	paired(true)
	s.taps("kim", kims, second, toastUnknown)
	s.taps("fay", notice, first, toastUnknown)
	if n := s.audited(permissions.PairingProposed)[""] + s.audited(permissions.PairingWithdrawn)[""]; n != 3 {
		t.Errorf("%d records of proposals", n)
	}
}

// The menu is for people who are enrolled, each in their own chat, and nobody else sees it.
func TestTheMenuIsForWhoIsEnrolled(t *testing.T) {
	late := int64(2004)
	s := newEnv(t, func(s *env) {
		s.server.FailNext("setMyCommands", 1, telegramtest.Refuse(400, "Bad Request: chat not found"))
		s.enrol("robin", late) // and never presses Start
	})
	has := func(id int64) bool { return len(s.server.Commands(id)) == len(menu) }
	s.until("all but one have it", func() bool {
		n := 0
		for _, id := range []int64{2001, 2002, 2003, late} {
			if has(id) {
				n++
			}
		}
		return n == 3
	})
	for name := range s.phones {
		s.phones[name].Start("")
	}
	s.until("who writes has it", func() bool { return has(2001) && has(2002) && has(2003) && has(late) })
	s.told("eve", "6666")
	if group := s.server.Supergroup("us", s.phones["fay"]); len(s.server.Commands(eveID)) > 0 || len(s.server.Commands(group.ID())) > 0 {
		t.Error("a stranger or a group has the menu")
	}
}

// A change of who is enrolled changes who has the menu.
func TestTheMenuFollowsTheConfiguration(t *testing.T) {
	s := newEnv(t)
	s.until("the running bot has given its menus", func() bool { // which are not what is tested here
		return !slices.ContainsFunc(s.settings.People, func(p connectors.Person) bool {
			return p.Addresses[Name] != "" && len(s.server.Commands(chatWith(p))) == 0
		})
	})
	given := map[int64]offered{}
	d := &handler{Connector: s.bot}
	d.align(t.Context(), given, s.settings.People[:2])
	two := []int64{chatWith(s.settings.People[0]), chatWith(s.settings.People[1])}
	if !given[two[0]].taken || !given[two[1]].taken || len(given) != 2 {
		t.Fatalf("given to %v; want %v", given, two)
	}
	s.server.FailNext("deleteMyCommands", 1, telegramtest.BadGateway())
	left := []connectors.Person{s.settings.People[0], {Name: "nobody"}}
	d.align(t.Context(), given, left) // fails for now
	d.align(t.Context(), given, left)
	if len(s.server.Commands(two[0])) == 0 || len(s.server.Commands(two[1])) > 0 || len(given) != 1 {
		t.Errorf("the menu stays with %v; want it with %d alone", given, two[0])
	}
}

// Nothing that is said aside holds up what people do.
func TestAMenuThatHangsHoldsUpNothing(t *testing.T) {
	s := newEnv(t, func(s *env) { s.server.FailNext("setMyCommands", -1, telegramtest.Hang()) })
	s.server.FailNext("getWebhookInfo", -1, telegramtest.Hang())
	s.until("the menu hangs", func() bool { return s.called("setMyCommands") > 0 })
	call := s.ask(network("x"))
	s.taps("fay", s.card("fay", "x"), "Allow once", "✅")
	s.get(call, permissions.Approved)
}

// pressed waits for the button of a message, and returns its data.
func (s *env) button(who string, m telegramtest.Message, text string) string {
	s.t.Helper()
	for _, b := range slices.Concat(m.Keyboard...) {
		if strings.Contains(b.Text, text) {
			return b.Data
		}
	}
	s.t.Fatalf("%s has no button %q in %v", who, text, m.Keyboard)
	return ""
}

// TestAListOpensTheCardOfWhatWaits: an item of /pending shows its card again, below, where it is answered; the older one points there.
func TestAListOpensTheCardOfWhatWaits(t *testing.T) {
	s := newEnv(t)
	call, m, code := s.asked("for a while")
	s.until("the card is noted", s.upToDate)
	list := s.says("fay", "/pending", code)
	open := s.button("fay", list, code)
	s.toast(s.phones["fay"].TapsData(list.ID, open), "⬇️ "+code+" is shown again below.")
	again := s.sees("fay", code+" · until", func(now telegramtest.Message) bool { return now.ID > list.ID && len(now.Keyboard) > 0 })
	s.sees("fay", code+" is shown again below", func(now telegramtest.Message) bool { return now.ID == m.ID })
	s.taps("fay", again, "Allow once", "✅ You allowed this once")
	s.get(call, permissions.Approved)
	s.becomes("fay", again.ID, "✅ You allowed this once")
	s.toast(s.phones["fay"].TapsData(list.ID, open), "Too late: already approved by fay")
}

// TestAListsButtonsAreItsPersonsOnly: nobody else opens, takes back or stops anything by them, whatever the data says.
func TestAListsButtonsAreItsPersonsOnly(t *testing.T) {
	s := newEnv(t)
	call, m, code := s.asked("for a while")
	list := s.says("fay", "/pending", code)
	s.toast(s.phones["eve"].TapsData(list.ID, s.button("fay", list, code)), "belongs to nothing")
	mine := s.says("sam", "/pending", "Nothing waits")
	for data, want := range map[string]string{
		"list.open " + code: "not yours to decide", "list.open AAAAA": "belongs to nothing", "list./lock": "belongs to nothing",
		"list.yes " + code: "belongs to nothing", "list./stop all": "belongs to nothing", "list./stop ALL": "belongs to nothing",
		"list./stop  all": "belongs to nothing",
	} {
		s.toast(s.phones["sam"].TapsData(mine.ID, data), want)
	}
	s.isStopped("")
	s.waits(call)
	s.sees("fay", code, func(now telegramtest.Message) bool { return now.ID == m.ID && len(now.Keyboard) > 0 })
}

// TestAGrantIsTakenBackByItsButton: the list is then as it is without that grant; its short name in the text does the same.
func TestAGrantIsTakenBackByItsButton(t *testing.T) {
	s := newEnv(t)
	for range 2 {
		call, m, _ := s.asked("for a while")
		s.taps("fay", m, "15 minutes", "✅")
		s.get(call, permissions.Approved)
		list := s.says("fay", "/grants", "1  network access")
		if len(list.Keyboard) != 1 {
			t.Fatalf("%q has the buttons %v", list.Text, list.Keyboard)
		}
		s.taps("fay", list, "Take back 1", "✖ Taken back: network access")
		s.sees("fay", "Nothing is granted.", func(now telegramtest.Message) bool { return now.ID == list.ID && len(now.Keyboard) == 0 })
		s.says("fay", "/grants", "Nothing is granted.")
	}
}

// TestAgentsAreStoppedAndChosenByButtons: a button names its agent, and stops no other one that is chosen since.
func TestAgentsAreStoppedAndChosenByButtons(t *testing.T) {
	s := newEnv(t, withAgents(newScribe("helper", permissions.Running), newScribe("coder", permissions.Running)))
	list := s.says("fay", "/agents", "helper · running · your messages go there")
	stop := s.button("fay", list, "Stop helper")
	s.taps("fay", list, "Stop helper", "helper stops what it works on")
	s.taps("fay", list, "Write to coder", "Your messages go to coder")
	s.sees("fay", "coder · running · your messages go there", func(now telegramtest.Message) bool {
		return now.ID == list.ID && strings.Contains(now.Keyboard[0][0].Text+now.Keyboard[1][0].Text, "Stop coder")
	})
	s.toast(s.phones["fay"].TapsData(list.ID, stop), "Nothing stops: your messages go to coder")
}
