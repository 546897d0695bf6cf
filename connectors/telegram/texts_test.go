package telegram

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// asked asks fay and waits for the card.
func (s *env) asked(reason string) (call <-chan ended, m telegramtest.Message, code string) {
	s.t.Helper()
	call = s.ask(network(reason))
	m = s.card("fay", reason)
	s.until("the card is noted", s.upToDate)
	code, ok := codeOf(m)
	if !ok {
		s.t.Fatalf("the card has no code: %q", m.Text)
	}
	return call, m, code
}

// question is where a reason is to be written, after a tap on its button.
func (s *env) question(who string, m telegramtest.Message, code string) telegramtest.Message {
	s.t.Helper()
	s.taps(who, m, "Deny, say why", "Nothing is denied yet")
	return s.wants(who, m, whyNot.text(code, i18n.English))
}

// wants is the question with a text that replies to the card of m.
func (s *env) wants(who string, m telegramtest.Message, text string) telegramtest.Message {
	s.t.Helper()
	asked := s.told(who, text)
	if asked.ForceReply == nil || asked.ReplyTo != m.ID {
		s.t.Errorf("the question is %+v", asked)
	}
	return asked
}

// Two reasons are asked for at once, and each reaches its own caller.
func TestReasonsAreKeptApart(t *testing.T) {
	s := newEnv(t)
	first, one, code1 := s.asked("first")
	second, two, code2 := s.asked("second")
	q1, q2 := s.question("fay", one, code1), s.question("fay", two, code2)
	s.waits(first)
	s.waits(second)
	s.phones["fay"].Replies(q2.ID, "use the mirror")
	if r := s.get(second, permissions.Denied); r.Comment != "use the mirror" {
		t.Errorf("the reason is %q", r.Comment)
	}
	s.waits(first)
	s.phones["fay"].Replies(q1.ID, "yes")
	if r := s.get(first, permissions.Denied); r.Comment != "yes" {
		t.Errorf("the reason is %q", r.Comment)
	}
	s.becomes("fay", one.ID, "⛔ You denied this")
	s.becomes("fay", two.ID, "⛔ You denied this")
}

// A reason counts as the reply of who was asked for it, to our own question, in words of their own.
func TestOnlyAReplyIsAReason(t *testing.T) {
	s := newEnv(t, asking(engine.Route{Ask: []string{"fay"}}))
	call, m, code := s.asked("x")
	q := s.question("fay", m, code)
	fay, eve := s.phones["fay"], s.phones["eve"]

	eve.Replies(q.ID, "a stranger's") // in the unknown sender's own chat, without such a message
	own := fay.Writes(whyNot.text(code, i18n.English))
	fay.Replies(own, "to my own words")
	fay.Replies(m.ID, "to the card")
	said := fay.Writes("said before")
	fay.Edits(said, "yes "+code)
	forwarded := eve.Writes(whyNot.text(code, i18n.English))
	fay.Replies(eve.Forwards(forwarded, fay), "to a forwarded question")
	eve.Forwards(eve.Writes("yes "+code), fay)
	fay.Forwards(said, fay)
	lunch := telegramtest.User{ID: 7777, FirstName: "Lunch", Username: "lunch_bot"}
	fay.Picks(lunch, 0, "yes "+code)
	fay.Picks(lunch, q.ID, "another bot's")
	s.drained()
	s.waits(call)
	s.told("fay", "holds somebody else's words")

	fay.Replies(q.ID, "now it is one")
	if r := s.get(call, permissions.Denied); r.Comment != "now it is one" {
		t.Errorf("the reason is %q", r.Comment)
	}
	fay.Replies(q.ID, "and another")
	s.told("fay", "Too late: already denied by fay")
}

func TestAReasonThatIsTooLongIsRefused(t *testing.T) {
	s := newEnv(t)
	call, m, code := s.asked("x")
	q := s.question("fay", m, code)
	s.phones["fay"].Replies(q.ID, strings.Repeat("because ", permissions.MaxReason/8+1))
	s.told("fay", "a reason has at most")
	s.waits(call)
}

func TestAnswersInWords(t *testing.T) {
	for i, c := range []struct {
		text   string
		quoted bool
		state  permissions.State
	}{
		{"yes CODE", false, permissions.Approved},
		{"  YES code ", false, permissions.Approved},
		{"no CODE because not now", false, permissions.Denied},
		{"yes", true, permissions.Approved},
		{"no", true, permissions.Denied},
		{"👍", true, permissions.Approved},
	} {
		s := newEnv(t) // what was denied twice is not asked again
		fay := s.phones["fay"]
		call, m, code := s.asked(fmt.Sprintf("number %d.", i))
		text := strings.NewReplacer("CODE", code, "code", strings.ToLower(code)).Replace(c.text)
		if c.quoted {
			fay.Replies(m.ID, text)
		} else {
			fay.Writes(text)
		}
		s.get(call, c.state)
		s.becomes("fay", m.ID, "You ")
	}
}

// A thumb on a card counts as a reply does, and texts mention it only where one was received. The rest is answered.
func TestReactionsAreHeard(t *testing.T) {
	s := newEnv(t)
	fay := s.phones["fay"]
	call, m, code := s.asked("the first.")
	fay.Writes("yes")
	if said := s.told("fay", "an answer names its request"); strings.Contains(said.Text, "react") {
		t.Errorf("nobody has reacted yet: %q", said.Text)
	}
	s.phones["eve"].Reacts(m.ID, "👍") // of another chat
	fay.Reacts(m.ID, "❤")
	s.told("fay", "Nothing was decided. Reply YES "+code+" or NO "+code+", or react 👍 / 👎.")
	fay.Reacts(m.ID, "👍", "👎")
	s.drained()
	fay.Reacts(m.ID)
	s.told("fay", "taking a reaction back undoes nothing")
	s.waits(call)
	fay.Reacts(m.ID, "👍")
	s.get(call, permissions.Approved)
	s.becomes("fay", m.ID, "✅ You allowed this once")
	call, m, _ = s.asked("the second.")
	fay.Reacts(m.ID, "👎")
	s.get(call, permissions.Denied)
	call = s.ask(toolCall("run_command", `{"command":"rm -r old"}`))
	m = s.card("fay", "⚠ High risk: ")
	s.until("the card is noted", s.upToDate)
	fay.Reacts(m.ID, "👍")
	s.told("fay", "is high risk and takes a message of its own")
	s.waits(call)
}

func TestSeveralCodesInOneMessage(t *testing.T) {
	s := newEnv(t)
	first, one, code1 := s.asked("first")
	second, two, code2 := s.asked("second")
	s.phones["fay"].Writes("no " + code1 + " " + code2)
	s.told("fay", "several requests at once can only be allowed")
	s.waits(first)
	s.phones["fay"].Writes("yes " + code1 + " " + code2)
	s.get(first, permissions.Approved)
	s.get(second, permissions.Approved)
	s.becomes("fay", one.ID, "✅")
	s.becomes("fay", two.ID, "✅")
}

// What is no answer decides nothing, and each such message is told once what would be right.
func TestWhatIsUnclearIsToldOnce(t *testing.T) {
	s := newEnv(t)
	call, _, code := s.asked("x")
	fay := s.phones["fay"]
	for _, c := range []struct{ text, want string }{
		{"yes", "Nothing was decided: an answer names its request"},
		{"yes " + code + " but only today", "Nothing was decided: an answer is a whole message"},
		{"good morning", "No agent is bound"},
	} {
		id := fay.Writes(c.text)
		is := func(m telegramtest.Message) bool { return m.ReplyTo == id }
		s.sees("fay", c.want, is)
		s.drained()
		n := 0
		for _, m := range fay.Messages() {
			if is(m) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%q got %d answers", c.text, n)
		}
	}
	s.waits(call)
}

func TestTenWrongCodesMute(t *testing.T) {
	s := newEnv(t)
	call, m, code := s.asked("x")
	fay := s.phones["fay"]
	for i := range 10 {
		wrong := permissions.Coder{}.Encode(int64(1000 + i))
		fay.Writes("yes " + wrong)
	}
	s.drained()
	s.until("ten answers came", func() bool {
		return s.sent("fay", func(m telegramtest.Message) bool { return m.ReplyTo != 0 }) == 10
	})
	fay.Writes("yes " + code)
	s.told("fay", "too many wrong codes")
	s.waits(call)
	s.taps("fay", m, "Allow once", "✅") // buttons are not guesses
	s.get(call, permissions.Approved)

	call, _, code = s.asked("a minute later")
	s.server.Advance(61 * time.Second)
	fay.Writes("yes " + code)
	s.get(call, permissions.Approved)
}

// A yes that was written before the card was shown cannot have meant it, though it is read later.
func TestAMessageOlderThanTheCardDecidesNothing(t *testing.T) {
	t.Run("A7/older than the card", func(t *testing.T) {
		s := newEnv(t)
		code := s.rows.Coder().Encode(1)
		s.server.FailNext("getUpdates", -1, telegramtest.TooManyRequests(time.Second))
		s.polled(1)
		s.phones["fay"].Writes("yes " + code)
		s.server.Advance(10 * time.Second)
		call, _, is := s.asked("x")
		if is != code {
			t.Fatalf("the code is %s, not %s", is, code)
		}
		s.server.FailNext("getUpdates", 0, telegramtest.Fault{})
		s.told("fay", "Nothing was decided")
		s.waits(call)
		s.phones["fay"].Writes("yes " + code)
		s.get(call, permissions.Approved)
	})
}

// Configured people are told once a minute that what they sent is not read; nobody else is.
func TestWhatIsNotReadIsSaid(t *testing.T) {
	s, _ := newGroupEnv(t, "forum", func(s *env) {
		s.settings.Routes = append([]engine.Route{{Ask: []string{"fay"}}}, s.settings.Routes...)
	})
	call, m, code := s.asked("x")
	fay, eve := s.phones["fay"], s.phones["eve"]
	told := func(text string) { s.told("fay", "I can't read "+text+", so nothing was decided.") }
	q := s.question("fay", m, code)
	eve.Speaks(0)
	s.phones["eve@ops"].Speaks(0)
	s.phones["fay@ops"].Speaks(0)
	fay.Speaks(q.ID)
	told("voice messages")
	s.told("fay", "as in: no "+code+" because …")
	fay.Sends("photo.jpg", []byte("x"), "yes "+code)
	s.drained()
	said := func(who string) int {
		return s.sent(who, func(m telegramtest.Message) bool { return contains(m, "I can't read") })
	}
	if fays, eves := said("fay"), said("eve")+said("eve@ops")+said("fay@ops"); fays != 1 || eves != 0 {
		t.Errorf("fay is told %d times, and others %d", fays, eves)
	}
	s.server.Advance(61 * time.Second)
	fay.Sends("photo.jpg", []byte("x"), "yes "+code)
	told("files")
	s.server.Advance(61 * time.Second)
	fay.Edits(fay.Writes("/whoami"), "yes "+code)
	s.told("fay", "I can't read edited messages, so the edit changed nothing of what was decided.")
	s.waits(call)
}

// A vote that waits for another one counts after its author edited it, in a group too. They are told so, and what stops the request.
func TestAnEditedVoteStillCounts(t *testing.T) {
	two := func(s *env) { s.settings.Routes[0].Quorum = 2 }
	private := newEnv(t, asking(engine.Route{Ask: []string{"fay", "sam"}}), two)
	group, _ := newGroupEnv(t, "group", two)
	for at, s := range map[string]*env{"": private, "@ops": group} {
		call := s.ask(network("x"))
		m := s.card("fay"+at, "x")
		code, fay := codeIn(m), s.phones["fay"+at]
		yes := fay.Replies(m.ID, "yes "+code)
		s.drained()
		fay.Edits(yes, "no")
		s.told("fay"+at, "Your answer to "+code+" still counts")
		s.waits(call)
		fay.Edits(fay.Writes("good morning"), "no "+code) // no vote
		s.drained()
		s.phones["sam"+at].Replies(s.card("sam"+at, "x").ID, "yes")
		s.get(call, permissions.Approved)
		if n := s.sent("fay"+at, func(m telegramtest.Message) bool { return contains(m, "still counts") }); n != 1 {
			t.Errorf("fay%s is told %d times", at, n)
		}
	}
}

// What is struck through, quoted or hidden is no answer, whatever it would answer.
func TestWhatIsStruckThroughIsNoAnswer(t *testing.T) {
	s := newEnv(t)
	call, m, code := s.asked("x")
	fay, want := s.phones["fay"], 0
	q := s.question("fay", m, code)
	for _, as := range []string{"strikethrough", "blockquote", "expandable_blockquote", "spoiler"} {
		for to, text := range map[int]string{0: "yes " + code, m.ID: "yes", q.ID: "why", m.ID + 999: "/stop all"} {
			fay.Formats(to, text, as)
			s.drained()
			want++
			s.until("it is said", func() bool {
				return s.sent("fay", func(m telegramtest.Message) bool { return contains(m, "is struck through, quoted or hidden") }) == want
			})
		}
	}
	s.waits(call)
	fay.Formats(0, "yes "+code, "bold")
	s.get(call, permissions.Approved)
}

// Nor is it in a group.
func TestWhatIsStruckThroughInAGroupIsNoAnswer(t *testing.T) {
	s, _ := newGroupEnv(t, "supergroup")
	call := s.ask(network("x"))
	m := s.card("fay@ops", "x")
	s.until("the card is noted", s.upToDate)
	s.phones["fay@ops"].Formats(m.ID, "yes", "strikethrough")
	s.told("fay@ops", "is struck through, quoted or hidden")
	s.waits(call)
	s.phones["fay@ops"].Replies(m.ID, "yes")
	s.get(call, permissions.Approved)
}

// Words are compared with the card by Telegram's clock, whatever the machine's says, and after a restart as well.
func TestWordsCountOnAMachineWhoseClockIsAhead(t *testing.T) {
	s := newEnv(t)
	s.server.DatesBack(90 * time.Second)
	first, m, _ := s.asked("first")
	second, _, code := s.asked("second")
	s.phones["fay"].Replies(m.ID, "yes")
	s.get(first, permissions.Approved)
	s.phones["fay"].Writes("yes " + code)
	s.get(second, permissions.Approved)
	_, _, code = s.asked("third")
	s.stop()
	s.open()
	s.phones["fay"].Writes("yes " + code)
	s.until("the third is allowed", func() bool {
		r, err := s.rows.ByCode(t.Context(), code)
		return err == nil && r.State == permissions.Approved
	})
}

// How far the clocks of Telegram and of the machine differ is said, and no longer once they agree again.
func TestHowFarTheClocksDifferIsSaid(t *testing.T) {
	for back, want := range map[time.Duration]string{ // Telegram's counts in whole seconds
		90 * time.Second: `^this machine's clock is 1m3[01]s ahead of that of telegram, .*; set the machine's clock$`,
		-time.Hour:       `^this machine's clock is (59m59s|1h0m[01]s) behind that of telegram, .*; set the machine's clock$`,
		2 * time.Second:  "^$",
		-3 * time.Second: "^$",
	} {
		t.Run("D6/"+back.String(), func(t *testing.T) {
			s := newEnv(t)
			s.server.DatesBack(back)
			s.asked("first")
			s.until("the card is noted", s.upToDate)
			said := ""
			if err := s.Health()[Name]; err != nil {
				said = err.Error()
			}
			if !regexp.MustCompile(want).MatchString(said) {
				t.Errorf("%q does not match %s", said, want)
			}
			s.server.DatesBack(0)
			s.asked("second")
			s.until("the card is noted", s.upToDate)
			if err := s.Health()[Name]; err != nil {
				t.Errorf("the clocks agree: %v", err)
			}
		})
	}
}

// Only private chats are read, and an unknown sender is answered once a day.
func TestOnlyPrivateChatsAreRead(t *testing.T) {
	s := newEnv(t)
	call, _, code := s.asked("x")
	fay, eve := s.phones["fay"], s.phones["eve"]
	group := s.server.Supergroup("us", fay, eve)
	s.server.FailNext("leaveChat", -1, telegramtest.Refuse(400, "Bad Request: it has to stay"))
	group.AddsBot(fay)
	group.PromotesBot(fay)
	fay.In(group).Writes("yes " + code)
	fay.In(group).Anonymously().Writes("yes " + code)
	for i := range 5 {
		eve.Writes(fmt.Sprintf("yes %s %d", code, i))
		eve.Writes("/stop all")
	}
	s.drained()
	s.told("eve", "6666")
	s.waits(call)
	said := func() (n int) {
		for _, m := range eve.Messages() {
			if m.FromBot {
				n++
			}
		}
		return n
	}
	if n := said(); n != 1 {
		t.Errorf("the stranger was answered %d times", n)
	}
	s.server.Advance(25 * time.Hour)
	s.drained()
	eve.Writes("hello again")
	s.until("the stranger is answered the next day", func() bool { return said() == 2 })
}

// The owner is told of unknown senders once a day, silently, by their ids and claimed names.
func TestTheOwnerIsToldOfUnknownSenders(t *testing.T) {
	s := newEnv(t, func(s *env) { s.settings.UID = int(ids["fay"]) })
	mallory := s.server.Person(telegramtest.User{ID: 7777, FirstName: "Fay\u202e", LastName: strings.Repeat("x", 300)})
	mallory.Start("")
	m := s.told("fay", "1 unknown account wrote since ")
	if !strings.Contains(m.Text, `   7777 · Telegram · calls itself "Fay\u{202E} xxx`) || !m.Silent || len(m.Text) > 300 {
		t.Errorf("told, silently %v: %s", m.Silent, m.Text)
	}
	s.phones["eve"].Writes("yes")
	mallory.Writes("no")
	s.server.Person(telegramtest.User{ID: 8888}).Start("")
	s.drained()
	s.told("eve", "6666")
	s.until("both are stored", func() bool {
		met, err := s.rows.UnknownSenders(t.Context())
		return err == nil && met.Count() >= 2
	})
	s.server.Advance(25 * time.Hour)
	mallory.Writes("and now?") // perhaps in time for the next notice
	m = s.told("fay", "unknown accounts wrote since ")
	if !strings.Contains(m.Text, "   6666 · Telegram · calls itself \"eve\"\n   8888 · Telegram · without a name\n") {
		t.Errorf("told: %s", m.Text)
	}
	if n := s.sent("fay", func(m telegramtest.Message) bool { return contains(m, "wrote since") }); n != 2 {
		t.Errorf("%d notices in two days", n)
	}
}

// The owner is told of an unknown account that presses a button; the account is still answered when it writes.
func TestTheOwnerIsToldOfAnUnknownAccountsTap(t *testing.T) {
	s, _ := newGroupEnv(t, "forum", func(s *env) { s.settings.UID = int(ids["fay"]) })
	s.ask(network("x"))
	m := s.card("fay@ops", "network access")
	s.until("the card is noted", s.upToDate)
	s.toast(s.phones["eve@ops"].TapsData(m.ID, data(t, m, "Allow once")), "not yours to decide")
	s.told("fay", "6666 · Telegram · calls itself \"eve\"")
	s.phones["eve"].Writes("hello?")
	s.told("eve", "6666")
}

// A message that comes again, since the daemon was killed between two of its decisions, decides what was left.
func TestAMessageOfSeveralAnswersThatComesAgain(t *testing.T) {
	s := newEnv(t)
	first, _, one := s.asked("alpha")
	second, _, two := s.asked("bravo")
	s.until("the cards are noted", s.upToDate)
	fay, err := s.Person(identity(ids["fay"]))
	if err != nil {
		t.Fatal(err)
	}
	reader := conversation.New(conversation.Options{Inbound: s.Engine, Now: s.server.Now})
	m := conversation.Message{Who: fay, At: s.server.Now().Add(time.Second), Message: connectors.Message{
		From: identity(ids["fay"]), Text: "yes " + one + " " + two, Key: "telegram:1:2",
	}}
	_, err = s.OnPermission(t.Context(), connectors.Decision{
		Code: one, Answer: permissions.Allow(permissions.Once), From: m.From, Key: m.Key + ":0",
	})
	if err != nil {
		t.Fatal(err)
	}
	s.get(first, permissions.Approved)
	did, err := reader.Read(t.Context(), m)
	if err != nil || len(did.Say) != 0 || len(did.Decided) != 2 {
		t.Errorf("%q: %+v, %v", m.Text, did, err)
	}
	s.get(second, permissions.Approved)
	m.Key = "telegram:1:3" // the same again is another message
	if did, err = reader.Read(t.Context(), m); err != nil || len(did.Decided) != 0 {
		t.Errorf("%+v, %v", did, err)
	}
}

// A card that was sent before cards had today's layout is answered by a reply.
func TestACardOfTheEarlierLayoutIsAnswered(t *testing.T) {
	s := newEnv(t)
	call, m, code := s.asked("from before.")
	earlier := "── " + code + " ──\nuid 1000 wants\n┃ network access\nit says      │ from before.\nuntil          14:15 UTC · sha256 4f3a…91"
	var old message
	if err := s.bot.api.call(t.Context(), "sendMessage", map[string]any{"chat_id": m.Chat, "text": earlier}, &old); err != nil {
		t.Fatal(err)
	}
	s.phones["fay"].Replies(int(old.ID), "yes")
	s.get(call, permissions.Approved)
}
