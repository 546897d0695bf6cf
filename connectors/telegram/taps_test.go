package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

func toolCall(name, input string) permissions.Request {
	return permissions.Request{Kind: permissions.KindTool, Tool: name, Input: json.RawMessage(input), Session: "s"}
}

func TestEveryKindOfTap(t *testing.T) {
	pause := permissions.Request{Kind: permissions.KindPause, Mode: permissions.ModeContinue, Message: "look"}
	confirm := permissions.Request{Kind: permissions.KindPause, Mode: permissions.ModeConfirm, Message: "drop it?"}
	choose := permissions.Request{
		Kind: permissions.KindClarification, Message: "announce where?", Choices: []string{"blog", "mail"},
	}
	writes := toolCall("write_file", `{"path":"a"}`)
	for _, c := range []struct {
		name, button, toast, ends string
		ask                       permissions.Request
		answer                    permissions.Answer
		state                     permissions.State
	}{
		{"allowed", "Allow once", "✅ You allowed this once", "✅ You allowed this once",
			network("x"), permissions.Allow(permissions.Once), permissions.Approved},
		{"denied", "⛔ Deny", "⛔ You denied this", "⛔ You denied this", network("x"), permissions.Deny, permissions.Denied},
		{"session", "session", "session", "You ", network("x"), permissions.Allow(permissions.Session), permissions.Approved},
		{"minutes", "15 minutes", "15 minutes", "You ",
			writes, permissions.Allow(permissions.For(15 * 60e9)), permissions.Approved},
		{"tool", "exact call for this session", "✅", "You ",
			writes, permissions.Allow(permissions.SessionTool), permissions.Approved},
		{"option", "2 · mail", "mail", "mail", choose, permissions.Choose(2), permissions.Answered},
		{"continued", "Continue", "✅ You continued", "You ", pause, permissions.Continue, permissions.Answered},
		{"interrupted", "Interrupt", "⛔ You interrupted", "You ", pause, permissions.Interrupt, permissions.Answered},
		{"approved", "Approve", "✅", "You ", confirm, permissions.Allow(permissions.Once), permissions.Approved},
		{"not approved", "⛔ Deny", "⛔", "You ", confirm, permissions.Deny, permissions.Denied},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newEnv(t)
			call := s.ask(c.ask)
			m := s.card("fay", "")
			s.taps("fay", m, c.button, c.toast)
			if r := s.get(call, c.state); r.Answer != c.answer || r.DecidedVia != Name {
				t.Errorf("it was answered %s via %s", r.Answer, r.DecidedVia)
			}
			s.becomes("fay", m.ID, c.ends)
		})
	}
}

// What an agent suggests is on the card with a button of its own, which says that it allows. A press on one that was not offered is none.
func TestASuggestionIsTapped(t *testing.T) {
	hook := toolCall("Bash", `{"command":"npm run build"}`)
	hook.Hook, hook.Cwd = "claude-code", "/srv/code"
	hook.Choices = []string{"add Bash(npm run:*) to the session", "add " + strings.Repeat("/folder", 28)}
	hook.Message = "It also suggests: setMode acceptEdits (session)"
	s := newEnv(t)
	call := s.ask(hook)
	m := s.card("fay", "Allow once, and as it suggests:\n1  add Bash(npm run:*) to the session")
	if !strings.Contains(m.Text, "setMode acceptEdits (session)") || !strings.Contains(m.Text, hook.Choices[1]) {
		t.Errorf("the card says %s", m.Text)
	}
	s.taps("fay", m, "1 · Allow once, and add Bash(npm run:*)", "✅ You allowed this once, with suggestion 1")
	if r := s.get(call, permissions.Approved); r.Answer != permissions.AllowWithSuggestion(1) || r.Scope != permissions.Once {
		t.Errorf("it was answered %s", r.Answer)
	}
	s.becomes("fay", m.ID, "✅ You allowed this once, with suggestion 1")

	p := prompt(t, permissions.KindTool, func(r *permissions.Request) { r.Hook, r.Choices = "claude-code", hook.Choices })
	pressable(t, keys(p), false)
	for _, data := range []string{".allow_with_0", ".allow_with_5", ".allow_with_1#1", ".!allow_with_1", ".allow_with_01"} {
		if pr, ok := parseData(aButton + data); ok {
			t.Errorf("%s is read as %+v", data, pr)
		}
	}
}

// The first confirmation of high risk allows nothing, there is a way back, and the second button is elsewhere.
func TestHighRiskIsTappedTwice(t *testing.T) {
	t.Run("A8/a second tap", func(t *testing.T) {
		s := newEnv(t)
		call := s.ask(toolCall("run_command", `{"command":"rm -r old"}`))
		first := s.card("fay", "⚠ High risk: ")
		s.until("the card is noted", s.upToDate)
		s.taps("fay", first, "Allow once", "nothing is allowed yet")
		second := func() telegramtest.Message {
			return s.sees("fay", "⚠ High risk: ", func(m telegramtest.Message) bool { return m.ID == first.ID && len(m.Keyboard) == 1 })
		}
		asked := second()
		if row := asked.Keyboard[0]; len(row) != 2 || !strings.Contains(row[0].Text, "Back") {
			t.Fatalf("the second step has %v", row)
		}
		s.edits()
		if m := s.card("fay", "⚠ High risk: "); fmt.Sprint(m.Keyboard) != fmt.Sprint(asked.Keyboard) {
			t.Errorf("after an edit, the second step has %v", m.Keyboard)
		}
		s.waits(call)
		s.taps("fay", asked, "Back", "")
		back := s.sees("fay", "⚠ High risk: ", func(m telegramtest.Message) bool { return m.ID == first.ID && len(m.Keyboard) > 1 })
		s.taps("fay", back, "Allow once", "nothing is allowed yet")
		s.server.Advance(secondStep)
		s.taps("fay", second(), "Yes, allow once", "✅ You allowed this once")
		s.get(call, permissions.Approved)
		s.becomes("fay", first.ID, "✅ You allowed this once")
	})
}

// Where nothing of an action fits the card, what allows it stands behind a button that says that the file was read.
func TestTheFileIsReadBeforeItIsAllowed(t *testing.T) {
	s := newEnv(t)
	row, err := json.Marshal(map[string]string{"file_path": "/srv/min.js", "content": strings.Repeat("x", 9000)})
	if err != nil {
		t.Fatal(err)
	}
	call := s.ask(toolCall("Write", string(row)))
	first := s.card("fay", "min.js")
	s.until("the card is noted", s.upToDate)
	for _, row := range first.Keyboard {
		for _, b := range row {
			if strings.Contains(b.Text, "Allow") {
				t.Errorf("it can be allowed at once: %q", b.Text)
			}
		}
	}
	code, _ := codeOf(first)
	s.phones["fay"].Writes("yes " + code)
	s.told("fay", "what "+code+" wants is not on its card. Read the file above it")
	s.phones["fay"].Reacts(first.ID, "👍")
	s.drained()
	s.waits(call)
	s.taps("fay", first, "I have read the file", "")
	read := s.sees("fay", "min.js", func(m telegramtest.Message) bool {
		return m.ID == first.ID && strings.Contains(m.Keyboard[0][0].Text, "Allow once")
	})
	s.waits(call)
	s.taps("fay", read, "Allow once", "✅ You allowed this once")
	s.get(call, permissions.Approved)

	call = s.ask(toolCall("Write", strings.Replace(string(row), "min", "max", 1)))
	s.card("fay", "max.js")
	s.until("the card is noted", s.upToDate)
	file := s.sees("fay", "the whole edit", func(m telegramtest.Message) bool { return m.Document != nil && m.Document.Name == "max.js.diff" })

	other := s.ask(toolCall("Write", strings.Replace(string(row), "min", "mid", 1)))
	code, _ = codeOf(s.card("fay", "mid.js"))
	s.until("the card is noted", s.upToDate)
	for _, text := range []string{"yes " + code, "yes " + code + " 15m"} {
		s.phones["fay"].Replies(file.ID, text) // the file of another request
		s.told("fay", "Nothing was decided: you replied to the card of ")
		s.waits(other)
	}
	s.phones["fay"].Replies(file.ID, "yes")
	s.get(call, permissions.Approved)
	s.phones["fay"].Replies(file.ID, "yes "+code) // of a settled one
	s.drained()
	s.waits(other)
}

// The second yes counts only after a first one of the same person, which an alert has answered, and a second later.
func TestADoubleTapIsNotTwoYeses(t *testing.T) {
	s := newEnv(t)
	call := s.ask(toolCall("run_command", `{"command":"rm -r old"}`))
	m := s.card("fay", "⚠ High risk: ")
	s.until("the card is noted", s.upToDate)
	first, err := s.phones["fay"].Taps(m.ID, "Allow once")
	if err != nil {
		t.Fatal(err)
	}
	ctx, done := context.WithTimeout(t.Context(), longEnough)
	defer done()
	if toast, err := first.Toast(ctx); err != nil || !toast.Alert || toast.Text != toastReally {
		t.Errorf("the first tap is answered by %+v, %v", toast, err)
	}
	s.waits(call)

	at, p, now := ref{1, 2}, press{Answer: permissions.Allow(permissions.Once)}, s.server.Now()
	for _, step := range []struct {
		person int64
		after  time.Duration
		want   bool
	}{{7, 0, false}, {7, 0, false}, {7, secondStep - 1, false}, {8, 2 * secondStep, false}, {7, secondStep, true}} {
		if got := s.bot.maySecondStep(at, taker{account: step.person}, p, now.Add(step.after)); got != step.want {
			t.Errorf("%d after %v may take the second step: %v", step.person, step.after, got)
		}
		s.bot.beginStep(at, taker{account: step.person}, p, now.Add(step.after))
	}
	if s.bot.forgetSteps(at, 7); s.bot.maySecondStep(at, taker{account: 7}, p, now.Add(time.Hour)) {
		t.Error("after the way back there is a first step still")
	}
}

// A second step that follows no first, as after a restart, only begins.
func TestASecondYesWithoutAFirstAllowsNothing(t *testing.T) {
	s := newEnv(t)
	call := s.ask(toolCall("run_command", `{"command":"rm -r old"}`))
	m := s.card("fay", "⚠ High risk: ")
	s.until("the card is noted", s.upToDate)
	yes := strings.Replace(data(t, m, "Allow once"), stepReally, "", 1)
	s.toast(s.phones["fay"].TapsData(m.ID, yes), "nothing is allowed yet")
	s.waits(call)
}

// A decision arrives while the buttons of the second step are being sent: the card still ends correctly.
func TestASecondStepDoesNotBringButtonsBack(t *testing.T) {
	s := newEnv(t, asking(engine.Route{Ask: []string{"fay", "sam"}}))
	call := s.ask(toolCall("run_command", `{"command":"rm -r old"}`))
	m := s.card("fay", "⚠ High risk: ")
	other := s.card("sam", "⚠ High risk: ")
	s.until("the cards are noted", s.upToDate)
	s.server.FailNext("editMessageReplyMarkup", 1, telegramtest.Slow(1e9)) // answered, and done, a second later
	s.taps("fay", m, "Allow once", "nothing is allowed yet")
	s.taps("sam", other, "⛔ Deny", "You denied this")
	s.get(call, permissions.Denied)
	s.becomes("fay", m.ID, "⛔ Denied by sam")
	s.until("the late buttons have come", func() bool {
		m, _ := s.phones["fay"].Message(m.ID)
		return m.Edits >= 2
	})
	s.becomes("fay", m.ID, "⛔ Denied by sam")
}

func TestAStepIsAnsweredCallByCall(t *testing.T) {
	s := newEnv(t)
	q := permissions.Request{Kind: permissions.KindTool, Session: "s"}
	for i := range 3 {
		q.Calls = append(q.Calls, permissions.Call{
			N: i + 1, Tool: "write_file", Input: json.RawMessage(fmt.Sprintf(`{"path":"notes-%d.md"}`, i+1)),
		})
	}
	call := s.ask(q)
	m := s.card("fay", "notes-3.md")
	s.taps("fay", m, "#1 ✅", "#1 allowed · #2 open")
	s.taps("fay", s.sees("fay", "", func(m telegramtest.Message) bool { return m.Edits == 1 }), "#2 ⛔", "#2 denied · #3 open")
	s.waits(call)
	left := s.sees("fay", "", func(m telegramtest.Message) bool { return m.Edits == 2 && len(m.Keyboard) > 0 })
	s.taps("fay", left, "Allow the rest", "You allowed #1 #3 once")
	r := s.get(call, permissions.Approved)
	var got []string
	for _, c := range r.Calls {
		got = append(got, string(c.Answer))
	}
	if want := "allow_once deny allow_once"; strings.Join(got, " ") != want {
		t.Errorf("the calls were answered %s; want %s", got, want)
	}
	s.becomes("fay", m.ID, "You ")
}

// A second tap on one's own answer needs nobody's attention; one that comes too late for another answer does.
func TestASecondTapOnOnesOwnAnswerOnlyShowsAToast(t *testing.T) {
	for _, c := range []struct{ first, second, want string }{
		{"Allow once", "Allow once", "✅ You allowed this."},
		{"⛔ Deny", "⛔ Deny", "⛔ You denied this."},
		{"Allow once", "⛔ Deny", "Too late: already approved by fay"},
	} {
		s := newEnv(t)
		call := s.ask(network("x"))
		m := s.card("fay", "network access")
		second := data(t, m, c.second)
		s.taps("fay", m, c.first, "You ")
		<-call
		toast, err := s.phones["fay"].TapsData(m.ID, second).Toast(t.Context())
		if err != nil || !strings.Contains(toast.Text, c.want) || toast.Alert == strings.Contains(c.want, "You") {
			t.Errorf("%s, then %s: %+v, %v", c.first, c.second, toast, err)
		}
	}
}

// A person who is not asked can decide nothing in any way, and the audit records the attempt.
func TestWhoIsNotAskedDecidesNothing(t *testing.T) {
	s := newEnv(t)
	call := s.ask(network("mine"))
	m := s.card("fay", "mine")
	allow := data(t, m, "Allow once")
	fay, eve, sam := s.phones["fay"], s.phones["eve"], s.phones["sam"]
	bot := s.server.Person(telegramtest.User{ID: 7777, FirstName: "Robot", IsBot: true})
	crowd := s.server.Supergroup("us", fay, eve)
	elsewhere := s.server.Supergroup("others", fay)
	s.server.FailNext("leaveChat", -1, telegramtest.Refuse(400, "Bad Request: it has to stay"))
	crowd.AddsBot(fay)
	elsewhere.AddsBot(fay)
	const notYours, moved = "This is not yours to decide.", "This card was shown again below"
	for _, c := range []struct {
		name, toast string
		tap         func() *telegramtest.Tap
	}{
		{"a stranger", notYours, func() *telegramtest.Tap { return eve.TapsData(m.ID, allow) }},
		{"a person who is not asked", notYours, func() *telegramtest.Tap { return sam.TapsData(m.ID, allow) }},
		{"a bot", notYours, func() *telegramtest.Tap { return bot.TapsData(m.ID, allow) }},
		{"somebody anonymous", notYours, func() *telegramtest.Tap { return fay.In(crowd).Anonymously().TapsData(m.ID, allow) }},
		{"a channel", notYours, func() *telegramtest.Tap {
			return fay.In(crowd).AsChannel(s.server.Channel("news", fay)).TapsData(m.ID, allow)
		}},
		{"in another chat", moved, func() *telegramtest.Tap { return fay.In(elsewhere).TapsData(m.ID, allow) }},
		{"on another message", moved, func() *telegramtest.Tap { return fay.TapsData(fay.Writes("/whoami"), allow) }},
		{"on a forwarded copy", moved, func() *telegramtest.Tap {
			return fay.In(crowd).TapsData(fay.Forwards(m.ID, fay.In(crowd)), allow)
		}},
		{"a step of a stranger", notYours, func() *telegramtest.Tap {
			return eve.TapsData(m.ID, strings.TrimSuffix(allow, "allow_once")+stepReason)
		}},
	} {
		t.Run("A1/"+c.name, func(t *testing.T) {
			before := s.audited(permissions.DecisionRefused)
			s.toast(c.tap(), c.toast)
			r := s.only()
			if after := s.audited(permissions.DecisionRefused); after[r.ID] != before[r.ID]+1 {
				t.Errorf("%s: the audit has %d refusals; want one more than %d", c.name, after[r.ID], before[r.ID])
			}
		})
	}
	s.waits(call)
	if now, _ := fay.Message(m.ID); len(now.Keyboard) == 0 {
		t.Error("the card has lost its buttons")
	}
	s.taps("fay", m, "Allow once", "✅")
	s.get(call, permissions.Approved)
}

// An anonymous administrator is nobody, even if the configuration has the group's account.
func TestAnAnonymousAdministratorIsNobody(t *testing.T) {
	t.Run("A1/a bot of the configuration", func(t *testing.T) {
		s := newEnv(t, func(s *env) {
			all := connectors.Person{Name: "all", UID: permissions.NoUID}
			s.settings.People = append(s.settings.People, all.WithAddress(Name, "1087968824"))
			s.settings.Routes = []engine.Route{{Ask: []string{"fay", "all"}}}
		})
		call := s.ask(network("x"))
		m := s.card("fay", "x")
		group := s.server.Supergroup("us", s.phones["fay"])
		s.server.FailNext("leaveChat", -1, telegramtest.Refuse(400, "Bad Request: it has to stay"))
		group.AddsBot(s.phones["fay"])
		s.toast(s.phones["fay"].In(group).Anonymously().TapsData(m.ID, data(t, m, "Allow once")), "not yours")
		s.waits(call)
	})
}

func TestMadeUpDataChangesNothing(t *testing.T) {
	s := newEnv(t)
	call := s.ask(network("x"))
	m := s.card("fay", "x")
	allow := data(t, m, "Allow once")
	button, _, _ := strings.Cut(allow, ".")
	number, random, _ := strings.Cut(button, "-")
	for _, made := range []string{
		"x", "allow_once", ".allow_once", button, button + ".", button + ".allow_onc", button + ".allow_always_everything",
		button + ".choose_1", "9" + allow, number + "-" + strings.Repeat("A", len(random)) + ".allow_once",
		number + "-.allow_once", "-" + random + ".allow_once", button + ".continue", allow + " ", strings.ToUpper(allow),
		button + ".allow_once#1", button + ".allow_once#-1", strings.Repeat("z", 64), "' or 1=1 --", "\x00", "💥",
	} {
		t.Run("A5/"+made, func(t *testing.T) {
			ctx := t.Context()
			toast, err := s.phones["fay"].TapsData(m.ID, made).Toast(ctx)
			if err != nil || toast.Text == "" || strings.Contains(toast.Text, "Allowed") {
				t.Errorf("%q: the toast says %q, %v", made, toast.Text, err)
			}
		})
	}
	s.waits(call)
	s.taps("fay", m, "⛔ Deny", "⛔")
	if r := s.get(call, permissions.Denied); s.audited(permissions.RequestVoted)[r.ID] > 1 {
		t.Error("it was decided more than once")
	}
}

func TestALateTapIsToldHowItEnded(t *testing.T) {
	t.Run("D3/a late tap", func(t *testing.T) {
		s := newEnv(t, asking(engine.Route{Ask: []string{"fay", "sam"}}))
		call := s.ask(network("x"))
		fays, sams := s.card("fay", "x"), s.card("sam", "x")
		s.taps("sam", sams, "Allow once", "✅")
		s.get(call, permissions.Approved)
		s.becomes("fay", fays.ID, "✅ Allowed once by sam")
		s.toast(s.phones["fay"].TapsData(fays.ID, data(t, fays, "⛔ Deny")), "Too late: already approved by sam")
		s.toast(s.phones["fay"].TapsData(fays.ID, data(t, fays, "✏️ Deny, say why")), "Too late: already approved by sam")
		s.toast(s.phones["sam"].TapsData(sams.ID, data(t, sams, "Allow once")), "✅ You allowed this.")

		late := network("soon over")
		late.WantedTimeout = 60e9
		call = s.ask(late)
		m := s.card("fay", "soon over")
		s.server.Advance(61e9)
		s.get(call, permissions.Expired)
		s.becomes("fay", m.ID, "⌛")
		s.toast(s.phones["fay"].TapsData(m.ID, data(t, m, "Allow once")), "Too late: expired")

		ctx, cancel := canceled(t)
		gone := s.asks(ctx, network("taken back"))
		m = s.card("fay", "taken back")
		cancel()
		<-gone
		s.until("the caller has gone", func() bool { return s.standing().Waiting == 0 })
		if _, err := s.Withdraw(t.Context(), permissions.CallerUID(1000), s.only().ID); err != nil {
			t.Fatal(err)
		}
		s.becomes("fay", m.ID, "✖")
		s.toast(s.phones["fay"].TapsData(m.ID, data(t, m, "Allow once")), "Too late: cancelled")
	})
}

// Updates come up to five times and in any order: each press has its effect once.
func TestReplayedTapsCountOnce(t *testing.T) {
	s := newEnv(t, asking(engine.Route{Ask: []string{"fay", "sam", "kim"}, Quorum: 2}))
	s.server.Redeliver(5, true, 3)
	for i := range 10 {
		t.Run(fmt.Sprintf("A7/a tap five times, %d", i), func(t *testing.T) {
			name := fmt.Sprintf("number %d.", i)
			call := s.ask(network(name))
			m := s.card("fay", name)
			tap, err := s.phones["fay"].Taps(m.ID, "Allow once")
			if err != nil {
				t.Fatal(err)
			}
			s.toast(tap, "1 of 2")
			s.drained()
			s.waits(call) // the same yes five times is one yes
			s.taps("sam", s.card("sam", name), "Allow once", "✅")
			r := s.get(call, permissions.Approved)
			s.becomes("fay", m.ID, "✅ Allowed once by you and sam")
			if n := len(r.Votes); n != 2 {
				t.Errorf("%d votes; want 2", n)
			}
		})
	}
}

// Telegram does not show the bot old messages any more; a tap on one has its name nevertheless, and the card, which
// cannot be edited, gets a reply.
func TestATapOnAnInaccessibleMessageCounts(t *testing.T) {
	s := newEnv(t)
	call := s.ask(network("x"))
	m := s.card("fay", "x")
	s.server.Forget(m.Chat, m.ID)
	s.taps("fay", m, "Allow once", "✅ You allowed this once")
	s.get(call, permissions.Approved)
	code, _ := codeOf(m)
	end := code + " · ✅ You allowed this once"
	s.told("fay", end)
	s.until("the copy is up to date", s.upToDate)
	told := 0
	for _, m := range s.phones["fay"].Messages() {
		if strings.Contains(m.Text, end) {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the end is told %d times", told)
	}
}

// The card was deleted: its outcome is still sent, and words from right to left move nothing in it.
func TestADeletedCardIsAnsweredByAMessage(t *testing.T) {
	s := newEnv(t, asking(engine.Route{Ask: []string{"fay", "sam"}}))
	call := s.ask(network("x"))
	m := s.card("fay", "x")
	s.phones["fay"].Deletes(m.ID)
	other := s.card("sam", "x")
	code, _ := codeOf(other)
	s.phones["sam"].Replies(s.question("sam", other, code).ID, "לא 1")
	s.get(call, permissions.Denied)
	m = s.told("fay", "⛔ Denied by sam")
	if want := `"` + card.FSI + "לא" + card.PDI + ` 1"`; !strings.Contains(m.Text, want) {
		t.Errorf("%q has no %q", m.Text, want)
	}
}

// A card that was edited, but of which that is not known, is edited again, and Telegram refuses as nothing changes.
func TestAnEditThatChangesNothingIsDone(t *testing.T) {
	s := newEnv(t)
	call := s.ask(network("x"))
	m := s.card("fay", "x")
	s.server.FailNext("editMessageText", 1, telegramtest.ReplyLost())
	s.taps("fay", m, "Allow once", "✅")
	s.get(call, permissions.Approved)
	s.becomes("fay", m.ID, "✅ You allowed this once")
	s.until("the copy is up to date", s.upToDate)
	if m, _ := s.phones["fay"].Message(m.ID); m.Edits != 1 || s.called("editMessageText") < 2 {
		t.Errorf("%d edits in %d calls; want one that was lost, and that it was tried again", m.Edits, s.called("editMessageText"))
	}
}

// The toast is lost: the decision and the edit come all the same.
func TestALostToastStopsNothing(t *testing.T) {
	s := newEnv(t)
	s.server.FailNext("answerCallbackQuery", -1, telegramtest.BadGateway())
	call := s.ask(network("x"))
	m := s.card("fay", "x")
	if _, err := s.phones["fay"].Taps(m.ID, "Allow once"); err != nil {
		t.Fatal(err)
	}
	s.get(call, permissions.Approved)
	s.becomes("fay", m.ID, "✅ You allowed this once")
}

// What cannot be shown whole has no button that allows it, and neither a forged one nor a text does.
func TestWhatIsTooBigCannotBeAllowed(t *testing.T) {
	t.Run("B1/too big for Telegram", func(t *testing.T) {
		s := newEnv(t)
		q := toolCall("write_file", `{"path":"notes.md"}`)
		q.Details = strings.Repeat("\n", 900_000) + "x"
		call := s.ask(q)
		m := s.card("fay", "Too big to be shown here whole")
		s.until("the card is noted", s.upToDate)
		code, _ := codeOf(m)
		deny := data(t, m, "Deny")
		press, _ := parseData(deny)
		press.Answer = permissions.Allow(permissions.Once)
		s.toast(s.phones["fay"].TapsData(m.ID, press.data()), "too big to be shown here whole")
		s.phones["fay"].Writes("yes " + code)
		s.told("fay", "too big to be shown here whole")
		s.waits(call)
		s.taps("fay", m, "Deny", "You denied this")
		s.get(call, permissions.Denied)
	})
}

// edits has the pending cards edited, as when who waits changes.
func (s *env) edits() {
	s.t.Helper()
	if _, err := s.Refresh(s.t.Context(), Name); err != nil {
		s.t.Fatal(err)
	}
	s.until("the cards are up to date", s.upToDate)
}

// TestMoreShowsWhatAllowsMoreAndTheWayBack: the wider scopes are one press away, and the first buttons come back.
func TestMoreShowsWhatAllowsMoreAndTheWayBack(t *testing.T) {
	s := newEnv(t)
	call := s.ask(toolCall("write_file", `{"path":"a"}`))
	m := s.card("fay", "")
	first := fmt.Sprint(m.Keyboard)
	s.until("the card is noted", s.upToDate)
	s.taps("fay", m, "⋯ More", "")
	m = s.sees("fay", "", func(now telegramtest.Message) bool { return now.ID == m.ID && fmt.Sprint(now.Keyboard) != first })
	var got []string
	for _, row := range m.Keyboard {
		got = append(got, row[0].Text)
	}
	want := []string{
		"Allow this exact call for this session", "Allow this exact call for 15 minutes", "⛔ Deny and stop this agent", "↩︎ Back",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	s.edits()
	if now := s.card("fay", ""); fmt.Sprint(now.Keyboard) != fmt.Sprint(m.Keyboard) {
		t.Errorf("after an edit it has %v", now.Keyboard)
	}
	s.toast(s.phones["eve"].TapsData(m.ID, data(t, m, "stop this agent")), "not yours to decide")
	s.waits(call)
	s.taps("fay", m, "Back", "")
	m = s.sees("fay", "", func(now telegramtest.Message) bool { return now.ID == m.ID && fmt.Sprint(now.Keyboard) == first })
	s.taps("fay", m, "Allow once", "✅ You allowed this once")
	s.get(call, permissions.Approved)
}

// TestARuleIsShownAndGivenByASecondTap: the first tap shows the rule and allows nothing, there is a way back, and the second gives it.
func TestARuleIsShownAndGivenByASecondTap(t *testing.T) {
	s := newEnv(t, func(s *env) { s.settings.Approvals.Scopes = append(s.settings.Approvals.Scopes, permissions.Rule) })
	q := toolCall("Bash", `{"command":"npm run lint"}`)
	q.Hook, q.Cwd = "claude-code", "/srv/code"
	call := s.ask(q)
	m := s.card("fay", "npm run lint")
	s.until("the card is noted", s.upToDate)
	more := func(m telegramtest.Message) telegramtest.Message {
		s.taps("fay", m, "⋯ More", "")
		return s.sees("fay", "npm run lint", func(now telegramtest.Message) bool {
			return now.ID == m.ID && strings.Contains(fmt.Sprint(now.Keyboard), "Always like this")
		})
	}
	s.taps("fay", more(m), "Always like this", "Nothing is allowed yet")
	shown := s.sees("fay", "Always like this?", func(telegramtest.Message) bool { return true })
	for _, want := range []string{"run npm run lint", "/srv/code", "Nothing like this was asked in the last 30 days"} {
		if !strings.Contains(shown.Text, want) {
			t.Errorf("%q is not in\n%s", want, shown.Text)
		}
	}
	second := func() telegramtest.Message {
		return s.sees("fay", "npm run lint", func(now telegramtest.Message) bool { return now.ID == m.ID && len(now.Keyboard) == 1 })
	}
	s.taps("fay", second(), "Back", "")
	back := s.sees("fay", "npm run lint", func(now telegramtest.Message) bool { return now.ID == m.ID && len(now.Keyboard) > 1 })
	s.taps("fay", more(back), "Always like this", "Nothing is allowed yet")
	s.waits(call)
	asked := second()
	other := strings.Replace(data(t, asked, "Yes, always"), "=", "=00", 1)
	s.toast(s.phones["fay"].TapsData(m.ID, other[:len(other)-2]), "Nothing is allowed yet") // another rule than the one that was shown
	s.waits(call)
	s.server.Advance(secondStep)
	s.taps("fay", second(), "Yes, always like this", "✅ You allowed")
	s.get(call, permissions.Approved)
	if r := s.get(s.ask(q), permissions.Approved); r.DecidedVia != permissions.ViaGrant {
		t.Errorf("it was asked again: %s", r.DecidedVia)
	}
}
