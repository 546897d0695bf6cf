package telegram

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// ops is a group of fay, sam, kim and eve; in it, they are called fay@ops and so on.
type ops struct {
	*telegramtest.Group
	thread int
}

// newGroupEnv makes a group in which fay and sam are asked, with the bot in it. kind is group, supergroup or forum; of a
// forum, they are asked in a topic.
func newGroupEnv(t *testing.T, kind string, changes ...with) (*env, *ops) {
	t.Helper()
	o := &ops{}
	s := newEnv(t, append([]with{func(s *env) {
		members := []*telegramtest.Person{s.phones["fay"], s.phones["sam"], s.phones["kim"], s.phones["eve"]}
		switch kind {
		case "group":
			o.Group = s.server.Group("Ops", members...)
		case "supergroup":
			o.Group = s.server.Supergroup("Ops", members...)
		case "forum":
			o.Group = s.server.Forum("Ops", members...)
			o.thread = o.Topic(s.phones["fay"], "deploys")
		}
		o.AddsBot(s.phones["fay"])
		s.enter(o.Group, o.thread)
		s.settings.Routes = []engine.Route{{Ask: []string{"fay", "sam"}, Group: Place(o.ID(), int64(o.thread))}}
	}}, changes...)...)
	return s, o
}

// enter gives everybody a phone in a group.
func (s *env) enter(g *telegramtest.Group, thread int) {
	for _, name := range []string{"fay", "sam", "kim", "eve"} {
		s.phones[name+"@ops"] = s.phones[name].In(g).InThread(thread)
	}
	s.groups = append(s.groups, at(g.ID()))
}

func quorum(n int) with { return func(s *env) { s.settings.Routes[0].Quorum = n } }

// cards counts the messages of the bot in a group that have buttons.
func (o *ops) cards() (n int) {
	for _, m := range o.Messages() {
		if m.FromBot && !m.Deleted && len(m.Keyboard) > 0 {
			n++
		}
	}
	return n
}

// alone checks that a person got no private messages, except about unknown senders.
func (s *env) alone(names ...string) {
	s.t.Helper()
	for _, name := range names {
		var texts []string
		s.sent(name, func(m telegramtest.Message) bool {
			if !contains(m, "wrote since") {
				texts = append(texts, m.Text)
			}
			return true
		})
		if len(texts) != 0 {
			s.t.Errorf("%s was sent by themselves: %q", name, texts)
		}
	}
}

// One card in the topic of a group can be answered by the two people who are asked, and by nobody else.
func TestAGroupIsAskedByOneCard(t *testing.T) {
	s, o := newGroupEnv(t, "forum", quorum(2))
	call := s.ask(network("together"))
	m := s.card("fay@ops", "together")
	s.until("the card is noted", s.upToDate)
	if m.Thread != o.thread || m.Silent || !strings.Contains(m.Text, "\n👥 asks fay, sam · ") ||
		!strings.Contains(m.Text, "it takes 2 people") || !strings.HasSuffix(m.Text, " UTC") {
		t.Errorf("the card is %+v", m)
	}
	allow := data(t, m, "Allow once")
	for who, phone := range map[string]*telegramtest.Person{
		"a stranger": s.phones["eve@ops"], "a person who is not asked": s.phones["kim@ops"],
		"an anonymous administrator": s.phones["fay@ops"].Anonymously(),
		"a channel":                  s.phones["fay@ops"].AsChannel(s.server.Channel("News", s.phones["fay"])),
	} {
		t.Run("A1/"+who, func(t *testing.T) {
			t.Log(who)
			s.toast(phone.TapsData(m.ID, allow), "not yours to decide")
		})
	}
	if n := s.audited(permissions.DecisionRefused)[s.only().ID]; n != 4 {
		t.Errorf("%d refusals are audited; want 4", n)
	}
	forwarded := s.phones["fay@ops"].Forwards(m.ID, s.phones["fay"])
	s.toast(s.phones["fay"].TapsData(forwarded, allow), "shown again")
	s.taps("fay@ops", m, "Allow once", "1 of 2")
	s.taps("fay@ops", s.card("sam@ops", "1 of 2, allowed by fay"), "Allow once", "1 of 2") // for sam, the button stays
	s.waits(call)
	standing := s.standing()
	if len(standing.Copies) != 2 || standing.Copies[0].Ref != standing.Copies[1].Ref || standing.Copies[0].Group == "" {
		t.Errorf("the copies are %+v", standing.Copies)
	}
	s.taps("sam@ops", s.card("fay@ops", "1 of 2"), "Allow once", "✅")
	s.get(call, permissions.Approved)
	s.becomes("fay@ops", m.ID, "✅ Allowed once by fay and sam")
	s.alone("sam", "kim")
	if n := s.audited(permissions.RequestShown)[standing.Request.ID]; n != 2 {
		t.Errorf("showing it was audited %d times; want once for each", n)
	}
}

// The question for a reason is for the person who pressed the button: another person's reply is not the reason.
func TestAReasonInAGroupIsThatOfWhoeverPressed(t *testing.T) {
	s, _ := newGroupEnv(t, "forum")
	call := s.ask(network("why"))
	m := s.card("fay@ops", "why")
	s.until("the card is noted", s.upToDate)
	s.taps("fay@ops", m, "Deny, say why", "Nothing is denied yet")
	q := s.told("fay@ops", "fay: Reply to this message with your reason")
	if q.ForceReply == nil || !q.ForceReply.Selective || q.ReplyTo != m.ID || len(q.Entities) != 1 ||
		q.Entities[0].User == nil || q.Entities[0].User.ID != ids["fay"] || q.Entities[0].Of(q.Text) != "fay" {
		t.Errorf("the question is %+v", q)
	}
	refusals := s.audited(permissions.DecisionRefused)[s.only().ID]
	s.phones["eve@ops"].Replies(q.ID, "because I can")
	s.phones["sam@ops"].Anonymously().Replies(q.ID, "because I hide")
	s.phones["sam@ops"].Replies(q.ID, "because of sam")
	s.told("sam@ops", "that question is for fay")
	s.waits(call)
	if n := s.audited(permissions.DecisionRefused)[s.only().ID] - refusals; n != 2 {
		t.Errorf("%d refusals are audited; want 2", n)
	}
	s.phones["fay@ops"].Replies(q.ID, "use the mirror")
	if r := s.get(call, permissions.Denied); r.Comment != "use the mirror" || r.DecidedBy != "fay" {
		t.Errorf("denied by %s: %q", r.DecidedBy, r.Comment)
	}
	s.becomes("fay@ops", m.ID, "⛔ Denied by fay")
}

// High risk takes two steps by the same person: one person's second step is only another's first.
func TestHighRiskInAGroupTakesTwoStepsOfOnePerson(t *testing.T) {
	s, _ := newGroupEnv(t, "supergroup")
	call := s.ask(permissions.Request{
		Kind: permissions.KindTool, Tool: "run_command", Input: []byte(`{"command":"reboot"}`), Session: "s",
	})
	m := s.card("fay@ops", "reboot")
	s.until("the card is noted", s.upToDate)
	s.taps("fay@ops", m, "Allow once", "nothing is allowed yet")
	again := s.sees("sam@ops", "reboot", func(m telegramtest.Message) bool {
		return slices.ContainsFunc(slices.Concat(m.Keyboard...), func(b telegramtest.Button) bool {
			return strings.Contains(b.Text, "Yes")
		})
	})
	s.taps("sam@ops", again, "Yes", "nothing is allowed yet")
	s.waits(call)
	s.server.Advance(secondStep)
	s.taps("sam@ops", again, "Yes", "✅")
	if r := s.get(call, permissions.Approved); r.DecidedBy != "sam" {
		t.Errorf("approved by %s", r.DecidedBy)
	}
}

// In words: a reply to the card, or the code; of others, nobody hears anything.
func TestWordsInAGroup(t *testing.T) {
	s, o := newGroupEnv(t, "forum")
	call := s.ask(network("words"))
	m := s.card("fay@ops", "words")
	s.until("the card is noted", s.upToDate)
	code, _ := codeOf(m)
	name := "@" + s.server.Bot().Username
	before := len(o.Messages())
	s.phones["eve@ops"].Replies(m.ID, "yes")
	s.phones["eve@ops"].Writes(name + " yes " + code)
	s.phones["eve@ops"].Writes("/pending")
	s.phones["fay@ops"].Anonymously().Replies(m.ID, "yes")
	s.phones["fay@ops"].AsChannel(s.server.Channel("News", s.phones["fay"])).Replies(m.ID, "yes")
	s.phones["fay@ops"].Replies(m.ID, "is that the one of this morning?")
	s.phones["fay@ops"].Writes("yes") // of which the bot does not hear
	s.phones["fay@ops"].Writes(name + " yes")
	s.phones["fay@ops"].Picks(telegramtest.User{ID: 7777, FirstName: "Lunch"}, m.ID, "yes")
	s.drained()
	s.waits(call)
	for _, m := range o.Messages()[before:] {
		if m.FromBot {
			t.Errorf("the bot said %q", m.Text)
		}
	}
	if n := s.audited(permissions.DecisionRefused)[s.only().ID]; n != 4 {
		t.Errorf("%d refusals are audited; want 4", n)
	}
	s.phones["kim@ops"].Replies(m.ID, "yes")
	if said := s.told("kim@ops", "not yours to decide"); said.Thread != o.thread {
		t.Errorf("said in %d", said.Thread)
	}
	s.phones["fay@ops"].Writes("/grants")
	s.phones["fay@ops"].Writes("/stop all")
	s.told("fay@ops", "Commands are for your own chat")
	s.phones["fay@ops"].Replies(m.ID, "yes but only today "+code)
	s.told("fay@ops", "an answer is a whole message")
	s.waits(call)
	s.phones["sam@ops"].Replies(m.ID, "no")
	if r := s.get(call, permissions.Denied); r.DecidedBy != "sam" {
		t.Errorf("denied by %s", r.DecidedBy)
	}
	s.told("sam@ops", "⛔ Denied by sam")
	n := 0
	for _, m := range o.Messages() {
		if m.FromBot && strings.Contains(m.Text, "Commands are for") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("fay was pointed to her chat %d times; want once", n)
	}
	call = s.ask(network("by its code"))
	m = s.card("fay@ops", "by its code")
	s.until("the card is noted", s.upToDate)
	code, _ = codeOf(m)
	s.phones["fay@ops"].Writes("yes " + code + " " + name)
	s.get(call, permissions.Approved)
	s.phones["fay@ops"].Writes(name + ", yes " + code)
	s.told("fay@ops", "Too late: already approved by fay")

	call = s.ask(toolCall("Write", `{"file_path":"/srv/min.js","content":"`+strings.Repeat("x", 9000)+`"}`))
	m = s.card("fay@ops", "min.js")
	s.until("the card is noted", s.upToDate)
	s.phones["fay@ops"].Replies(m.ID, "yes")
	s.told("fay@ops", "wants is not on its card. Read the file above it")
	s.waits(call)
	file := s.sees("fay@ops", "the whole edit", func(m telegramtest.Message) bool { return m.Document != nil })
	s.phones["fay@ops"].Replies(file.ID, "yes")
	s.get(call, permissions.Approved)
}

// No command does anything in a group or says what is nobody else's business, whoever writes it: somebody who is not asked, or an
// unknown account, to which nothing is said.
func TestCommandsInAGroupDoNothing(t *testing.T) {
	s, o := newGroupEnv(t, "supergroup")
	call := s.ask(network("commands"))
	code, _ := codeOf(s.card("fay@ops", "commands"))
	s.until("the card is noted", s.upToDate)
	entries := func() int {
		all, err := s.rows.Audit(t.Context(), "", 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before, audited := len(o.Messages()), entries()
	at := "@" + s.server.Bot().Username
	for _, c := range menu {
		for _, rest := range []string{"", " all", " fay", " " + code, " fay 6666", " until 2099-01-01 to sam"} {
			for _, who := range []string{"kim@ops", "eve@ops"} {
				s.phones[who].Writes("/" + c.command + at + rest)
				s.phones[who].Writes("/" + strings.ToUpper(c.command) + rest)
			}
		}
	}
	for _, text := range []string{"/pair max 6666", "/unpair max 6666", "/start", "/start " + code, "/dance"} {
		s.phones["kim@ops"].Writes(text)
		s.phones["eve@ops"].Writes(text)
	}
	s.drained()
	s.waits(call)
	var said []string
	for _, m := range o.Messages()[before:] {
		if m.FromBot {
			said = append(said, m.Text)
		}
	}
	if !slices.Equal(said, []string{commandsElsewhere}) {
		t.Errorf("the bot said %q; want that kim is pointed to her own chat, once", said)
	}
	if by := s.StoppedBy(); by != "" || len(s.Locks()) > 0 || len(s.Absences()) > 0 || entries() != audited {
		t.Errorf("stopped by %q, locked %v, away %v, %d entries more", by, s.Locks(), s.Absences(), entries()-audited)
	}
	s.alone("kim", "eve")
}

// Where the bot cannot write any more, those who were asked together are asked by themselves, before the card was
// shown or while it waits.
func TestAGroupThatCannotBeAskedAnyMore(t *testing.T) {
	for name, ends := range map[string]func(*env, *ops){
		"kicked":  func(s *env, o *ops) { o.KicksBot(s.phones["kim"]) },
		"muted":   func(s *env, o *ops) { o.MutesBot(s.phones["kim"]) },
		"a topic": func(_ *env, o *ops) { o.DeletesTopic(o.thread) },
	} {
		t.Run(name, func(t *testing.T) {
			s, o := newGroupEnv(t, "forum", quorum(2))
			s.until("the group was looked at", func() bool { return s.called("getChatMember") > 0 })
			before := s.ask(network("before"))
			m := s.card("fay@ops", "before")
			s.until("the card is noted", s.upToDate)
			s.taps("sam@ops", m, "Allow once", "1 of 2")
			s.card("sam@ops", "1 of 2")
			s.until("the card is noted", s.upToDate)
			ends(s, o)
			after := s.ask(network("after"))
			for _, who := range []string{"fay", "sam"} {
				s.card(who, "after")
			}
			switch name {
			case "kicked":
				s.taps("fay", s.card("fay", "before"), "Allow once", "✅ Allowed once by sam and you")
				s.get(before, permissions.Approved)
				s.sick("the bot is not in it; add it")
			case "muted": // who presses its card there is still heard
				s.card("fay", "before")
				s.taps("fay@ops", m, "Allow once", "✅ Allowed once by sam and you")
				s.get(before, permissions.Approved)
				s.sick("the bot may not write there")
			default:
				s.waits(before)
			}
			s.taps("fay", s.card("fay", "after"), "⛔ Deny", "⛔")
			s.get(after, permissions.Denied)
		})
	}
}

// Telegram does not tell the bot that its group lets nobody write any more: it is found out with the next card, and then
// those are asked by themselves, too, whose card stands there already.
func TestAMuteThatIsFoundOut(t *testing.T) {
	s, o := newGroupEnv(t, "supergroup")
	s.until("the group was looked at", func() bool { return s.called("getChatMember") > 0 })
	before := s.ask(network("before"))
	s.card("fay@ops", "before")
	s.until("the card is noted", s.upToDate)
	o.MutesAll()
	after := s.ask(network("after"))
	for _, reason := range []string{"before", "after"} {
		s.card("sam", reason)
		s.taps("fay", s.card("fay", reason), "Allow once", "✅ You allowed this once")
	}
	s.get(before, permissions.Approved)
	s.get(after, permissions.Approved)
	s.sick("the bot may not write there")
}

// The bot is removed from a group and added again: its card there can be answered like those that people were sent by
// themselves meanwhile, and says with them how the request ended, whichever of them is pressed.
func TestACardOfAGroupThatTheBotIsBackIn(t *testing.T) {
	for name, who := range map[string]string{"answered in the group": "fay@ops", "answered by oneself": "fay"} {
		t.Run(name, func(t *testing.T) {
			s, o := newGroupEnv(t, "supergroup")
			call := s.ask(network("back"))
			m := s.card("fay@ops", "back")
			s.until("the card is noted", s.upToDate)
			o.KicksBot(s.phones["kim"])
			o.AddsBot(s.phones["kim"])
			s.card("sam", "back")
			s.card("fay", "back") // else there is nothing of hers to change
			s.taps(who, s.card(who, "back"), "⛔ Deny", "⛔")
			s.get(call, permissions.Denied)
			s.becomes("fay@ops", m.ID, "⛔ Denied by fay")
			s.becomes("fay", s.told("fay", "⛔ You denied this").ID, "⛔ You denied this")
			s.becomes("sam", s.told("sam", "⛔ Denied by fay").ID, "⛔ Denied by fay")
			if n := o.cards(); n != 0 {
				t.Errorf("%d cards in the group can still be pressed", n)
			}
		})
	}
}

// A person without a Telegram account is asked elsewhere; one who cannot be reached at all is reported as usual.
func TestAGroupWithoutAnybodyToReach(t *testing.T) {
	s, o := newGroupEnv(t, "group", func(s *env) {
		s.settings.Routes[0].Ask = []string{"zoe"}
		s.settings.People = append(s.settings.People, connectors.Person{Name: "zoe", UID: 9, Location: time.UTC})
	})
	if r := s.get(s.ask(network("nobody")), permissions.Undeliverable); !strings.Contains(r.Failure, "zoe has no Telegram account") {
		t.Errorf("failed as %q", r.Failure)
	}
	if o.cards() != 0 {
		t.Error("the group was asked")
	}
}

// A group has few turns, and nobody else waits for them.
func TestAGroupDoesNotHoldUpPeople(t *testing.T) {
	s, o := newGroupEnv(t, "group", func(s *env) {
		s.groups = nil // with the limits of a group
		private := engine.Route{Ask: []string{"kim"}, Tags: []permissions.Tag{permissions.Events}}
		s.settings.Routes = append([]engine.Route{private}, s.settings.Routes...)
	})
	const many = 12
	for i := range many {
		s.ask(network(strings.Repeat("x", i+1)))
	}
	s.until("the group has had its turns", func() bool { return o.cards() >= groupBurst })
	s.ask(permissions.Request{
		Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Events}, Reason: "privately", Session: "s",
	})
	s.card("kim", "privately")
	if n := o.cards(); n >= many {
		t.Errorf("the group got all of its %d cards first", n)
	}
}

// A question and a pause are answered in a group like everything else, by the first who is asked.
func TestQuestionsInAGroup(t *testing.T) {
	s, _ := newGroupEnv(t, "supergroup", quorum(2))
	call := s.ask(permissions.Request{
		Kind: permissions.KindClarification, Message: "Announce where?", Choices: []string{"blog", "mail"}, Session: "s",
	})
	m := s.card("fay@ops", "Announce where?")
	s.until("the card is noted", s.upToDate)
	s.toast(s.phones["eve@ops"].TapsData(m.ID, data(t, m, "mail")), "not yours to decide")
	s.phones["eve@ops"].Replies(m.ID, "1")
	s.phones["sam@ops"].Replies(m.ID, "both")
	s.phones["sam@ops"].Replies(m.ID, "2.")
	if r := s.get(call, permissions.Answered); r.Answer != permissions.Choose(2) || r.DecidedBy != "sam" {
		t.Errorf("%s by %s", r.Answer, r.DecidedBy)
	}
	call = s.ask(permissions.Request{
		Kind: permissions.KindPause, Mode: permissions.ModeContinue, Message: "Look at the notes.", Session: "s",
	})
	s.taps("fay@ops", s.card("fay@ops", "Look at the notes."), "Continue", "You continued this")
	if r := s.get(call, permissions.Answered); r.DecidedBy != "fay" {
		t.Errorf("continued by %s", r.DecidedBy)
	}
}

// In a group edits leave turns to cards, and cards leave the last one to what a tap waits for.
func TestAnswersToTapsGoFirstInAGroup(t *testing.T) {
	s, o := newGroupEnv(t, "group")
	s.bot.pace.mu.Lock()
	s.bot.pace.chats[o.ID()] = &lane{limit: rate.NewLimiter(rate.Every(time.Hour), groupBurst)}
	s.bot.pace.mu.Unlock()
	edited, shown := 0, 0
	for s.bot.pace.tryTurn(o.ID(), edits) == 0 {
		edited++
	}
	for s.bot.turn(t.Context(), o.ID(), cards) == nil {
		shown++
	}
	if edited != 6 || shown != 1 {
		t.Errorf("%d edits and then %d cards took turns of %d", edited, shown, groupBurst)
	}
	err := s.bot.sendError(spot{}, connectors.Person{}, s.bot.writeIfRoom(t.Context(), o.ID(), edits, "sendMessage", nil, nil))
	if !errors.Is(err, errTurn) || connectors.RetryAfter(err) < time.Hour {
		t.Errorf("an edit for which there is no room: %v", err)
	}
	if err := s.bot.turn(t.Context(), o.ID(), 0); err != nil {
		t.Errorf("what a finger waits for: %v", err)
	}
	if err := s.bot.turn(t.Context(), ids["fay"], cards); err != nil {
		t.Errorf("elsewhere: %v", err)
	}
}

// A first step counts only for the person who took it, and no longer after they went back.
func TestAFirstStepInAGroupIsOfOnePerson(t *testing.T) {
	s, _ := newGroupEnv(t, "supergroup", func(s *env) { s.settings.Policy.HighRiskTags = []permissions.Tag{permissions.Network} })
	call := s.ask(network("twice"))
	m := s.card("fay@ops", "twice")
	s.until("the card is noted", s.upToDate)
	with := func(button string) telegramtest.Message {
		return s.sees("fay@ops", "twice", func(m telegramtest.Message) bool { return strings.Contains(labelled(m), button) })
	}
	s.taps("sam@ops", m, "Allow once", "nothing is allowed yet")
	s.taps("fay@ops", with("Yes, allow once"), "Yes", "nothing is allowed yet")
	s.taps("sam@ops", with("Yes"), "Back", "")
	s.taps("fay@ops", with("Allow once"), "Allow once", "nothing is allowed yet")
	s.taps("sam@ops", with("Yes"), "Yes", "nothing is allowed yet")
	s.waits(call)
	s.server.Advance(secondStep)
	s.taps("sam@ops", with("Yes"), "Yes", "✅")
	s.get(call, permissions.Approved)
}

// That somebody has read the file says nothing of another person, who is told what to do first; nor does it after a restart.
func TestTheFileIsReadByEachPersonOfAGroup(t *testing.T) {
	s, _ := newGroupEnv(t, "supergroup")
	row := fmt.Sprintf(`{"file_path":"/srv/min.js","content":%q}`, strings.Repeat("x", 9000))
	call := s.ask(toolCall("Write", row))
	m := s.card("fay@ops", "min.js")
	s.until("the card is noted", s.upToDate)
	with := func(button string) telegramtest.Message {
		t.Helper()
		s.server.Advance(secondStep)
		return s.sees("fay@ops", "min.js", func(each telegramtest.Message) bool {
			return each.ID == m.ID && strings.Contains(each.Keyboard[0][0].Text, button)
		})
	}
	const read, unread = "I have read the file", "Nothing is allowed yet: first read the file"
	s.taps("sam@ops", m, read, "")
	allow := data(t, with("Allow once"), "Allow once")
	s.taps("fay@ops", with("Allow once"), "Allow once", unread)
	s.waits(call)
	s.taps("fay@ops", with(read), read, "")
	s.bot.firstSteps.Purge() // as after a restart
	s.taps("fay@ops", with("Allow once"), "Allow once", unread)
	s.taps("sam@ops", with(read), read, "")
	with("Allow once")
	s.toast(s.phones["fay@ops"].TapsData(m.ID, allow), unread)
	s.waits(call)
	s.taps("fay@ops", with(read), read, "")
	s.taps("fay@ops", with("Allow once"), "Allow once", "✅")
	s.get(call, permissions.Approved)
}

// A first step that was taken before a lock counts no longer after it.
func TestAFirstStepInAGroupEndsWithALock(t *testing.T) {
	s, _ := newGroupEnv(t, "supergroup", func(s *env) { s.settings.Policy.HighRiskTags = []permissions.Tag{permissions.Network} })
	call := s.ask(network("locked"))
	m := s.card("fay@ops", "locked")
	s.until("the card is noted", s.upToDate)
	s.taps("sam@ops", m, "Allow once", "nothing is allowed yet")
	yes := data(t, s.sees("sam@ops", "locked", func(m telegramtest.Message) bool { return strings.Contains(labelled(m), "Yes") }), "Yes")
	really := func(says string) {
		t.Helper()
		s.server.Advance(secondStep)
		s.toast(s.phones["sam@ops"].TapsData(m.ID, yes), says)
	}
	if _, err := s.Lock(t.Context(), operator, "sam", time.Time{}); err != nil {
		t.Fatal(err)
	}
	really("sam is locked")
	if _, _, err := s.Unlock(t.Context(), operator, "sam"); err != nil {
		t.Fatal(err)
	}
	s.until("sam is asked again", func() bool { return slices.Contains(s.only().Asked, "sam") })
	really("nothing is allowed yet")
	s.waits(call)
	really("✅")
	s.get(call, permissions.Approved)
}

// labelled are the words on the buttons of a message.
func labelled(m telegramtest.Message) string {
	var words []string
	for _, b := range slices.Concat(m.Keyboard...) {
		words = append(words, b.Text)
	}
	return strings.Join(words, " · ")
}

// A tap that no first step of the same person precedes is not the second yes, and is tried again if it cannot be stored.
func TestATapWithoutAFirstStepIsNoSecondYes(t *testing.T) {
	o := Options{APIURL: "http://127.0.0.1:1", Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	broken := errors.New("the disk does not answer")
	d := &handler{Connector: New(o, brokenEngine{t: t, why: broken})}
	u := update{ID: 1, Callback: &callback{
		ID: "a", From: user{ID: 3}, Message: &message{ID: 2, Chat: chat{ID: -5}},
		Data: press{Button: "1-a", Answer: permissions.Allow(permissions.Once)}.data(),
	}}
	if err := d.tap(t.Context(), u); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	d.work.Wait()
}

// brokenEngine stores nothing.
type brokenEngine struct {
	connectortest.Nobody
	t   *testing.T
	why error
}

func (e brokenEngine) OnPermission(_ context.Context, d connectors.Decision) (permissions.Request, error) {
	if d.Really {
		e.t.Error("it is a second yes")
	}
	return permissions.Request{}, e.why
}

// Words of one's own stay as they were written, around the bot's name.
func TestLinesInAGroup(t *testing.T) {
	s, _ := newGroupEnv(t, "supergroup")
	call := s.ask(permissions.Request{
		Kind: permissions.KindClarification, Message: "Announce where?", Choices: []string{"blog", "mail"}, Session: "s",
	})
	m := s.card("fay@ops", "Announce where?")
	s.until("the card is noted", s.upToDate)
	name := "@" + s.server.Bot().Username
	s.phones["fay@ops"].Writes(name + " " + codeIn(m) + " other: at first\n  nowhere " + name + "\nthen mail, " + name)
	if r := s.get(call, permissions.Answered); r.Comment != "at first\n  nowhere "+name+"\nthen mail," {
		t.Errorf("the answer is %q", r.Comment)
	}
}

// A person who guessed too often is told that their answer was not accepted.
func TestAnAnswerOfTheMutedInAGroup(t *testing.T) {
	s, _ := newGroupEnv(t, "supergroup")
	call := s.ask(network("muted"))
	m := s.card("fay@ops", "muted")
	s.until("the card is noted", s.upToDate)
	for range 10 {
		s.phones["fay@ops"].Writes("@" + s.server.Bot().Username + " yes ZZZZ9")
	}
	s.phones["fay@ops"].Replies(m.ID, "a word about lunch")
	s.phones["fay@ops"].Replies(m.ID, "no")
	s.told("fay@ops", "too many wrong codes")
	s.waits(call)
}

// A message that comes again, since the daemon was killed between two of its decisions, decides what was left.
func TestAMessageInAGroupThatComesAgain(t *testing.T) {
	s, o := newGroupEnv(t, "supergroup")
	var calls []<-chan ended
	text := "yes"
	for _, reason := range []string{"alpha", "bravo"} {
		calls = append(calls, s.ask(network(reason)))
		m := s.card("fay@ops", reason)
		s.until("the card is noted", s.upToDate)
		text += " " + codeIn(m)
	}
	d := newHandler(s.bot)
	u := update{ID: 77, Message: &message{
		ID: 9999, From: &user{ID: ids["fay"]}, Chat: chat{ID: o.ID(), Type: "supergroup"}, Text: text,
		Date: s.server.Now().Add(time.Second).Unix(),
	}}
	_, err := s.OnPermission(t.Context(), connectors.Decision{
		Code: text[4:9], Answer: permissions.Allow(permissions.Once), From: identity(ids["fay"]), Key: d.eventKey(u) + ":0",
	})
	if err != nil {
		t.Fatal(err)
	}
	s.get(calls[0], permissions.Approved)
	if err := d.groupMessage(t.Context(), u); err != nil {
		t.Error(err)
	}
	s.get(calls[1], permissions.Approved)
	s.bot.work.Wait()
}
