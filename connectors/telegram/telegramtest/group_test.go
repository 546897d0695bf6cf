package telegramtest

import (
	"net/http"
	"strings"
	"testing"
)

// texts are what the bot heard, in one line.
func texts(found []got) string {
	var all []string
	for _, u := range found {
		if u.Message != nil && u.Message.Text != "" {
			all = append(all, u.Message.Text)
		}
	}
	return strings.Join(all, " | ")
}

func TestGroupIsJoinedAndLeft(t *testing.T) {
	s := New(t)
	fay, sam := s.Person(fayUser), s.Person(User{ID: 43, FirstName: "Sam"})
	g := s.Group("Ops", fay, sam)
	chat := itoa(int(g.ID()))
	if r := call(t, s, "sendMessage", "chat_id", chat, "text", "x"); r.Description != "Bad Request: chat not found" {
		t.Errorf("before it was added: %+v", r)
	}
	g.AddsBot(fay)
	got := getUpdates(t, s)
	if len(got) != 2 || got[0].Member.New.Status != "member" || got[0].Member.From.ID != 42 ||
		got[1].Message.NewMembers[0].ID != s.Bot().ID || got[1].Message.Chat.Type != "group" {
		t.Errorf("added as %+v", got)
	}
	must(t, s, nil, "sendMessage", "chat_id", chat, "text", "hello all")
	if m, err := sam.In(g).Sees(within(t), func(m Message) bool { return m.Text == "hello all" }); err != nil || !m.FromBot {
		t.Errorf("sam sees %+v, %v", m, err)
	}
	for id, want := range map[string]string{"42": "creator", "43": "member", itoa(int(s.Bot().ID)): "member"} {
		var is struct {
			Status string `json:"status"`
		}
		if must(t, s, &is, "getChatMember", "chat_id", chat, "user_id", id); is.Status != want {
			t.Errorf("%s is %s", id, is.Status)
		}
	}
	must(t, s, nil, "getChat", "chat_id", chat)
	must(t, s, nil, "leaveChat", "chat_id", chat)
	if r := call(t, s, "sendMessage", "chat_id", chat, "text", "x"); g.HasBot() || r.ErrorCode != http.StatusForbidden ||
		r.Description != "Forbidden: bot is not a member of the group chat" {
		t.Errorf("after it left: %+v", r)
	}
	g.AddsBot(fay)
	g.KicksBot(fay)
	if r := call(t, s, "sendMessage", "chat_id", chat, "text", "x"); r.Description !=
		"Forbidden: bot was kicked from the group chat" {
		t.Errorf("after it was kicked: %+v", r)
	}
	drain(t, s)
	fay.In(g).Writes("/secret")
	fay.In(g).TapsData(1, "x")
	if n := s.Pending(); n != 0 {
		t.Errorf("it still hears %d", n)
	}
}

func TestPrivacyMode(t *testing.T) {
	s := New(t)
	fay := s.Person(fayUser)
	g := s.Supergroup("Ops", fay)
	g.AddsBot(fay)
	var m sent
	must(t, s, &m, "sendMessage", "chat_id", itoa(int(g.ID())), "text", "card")
	drain(t, s)
	in := fay.In(g)
	in.Writes("chatter")
	in.Writes("/pending now")
	in.Writes("/pending@" + s.Bot().Username)
	in.Writes("/pending@other_bot")
	in.Writes("hey @" + strings.ToUpper(s.Bot().Username) + ", look")
	in.Replies(m.ID, "yes")
	want := "/pending now | /pending@daycared_test_bot | hey @DAYCARED_TEST_BOT, look | yes"
	if got := texts(getUpdates(t, s)); got != want {
		t.Errorf("it hears %s", got)
	}
	in.TapsData(m.ID, "x")
	if got := getUpdates(t, s); got[len(got)-1].Callback == nil {
		t.Error("a tap did not arrive")
	}
	g.PromotesBot(fay)
	drain(t, s)
	in.Writes("chatter")
	getUpdates(t, s, "allowed_updates", `["message_reaction"]`)
	in.Reacts(m.ID, "👍")
	if got := getUpdates(t, s); len(got) != 2 || got[1].Reaction.Is[0].Emoji != "👍" {
		t.Errorf("as an administrator it hears %+v", got)
	}
}

func TestHiddenSenders(t *testing.T) {
	s := New(t)
	fay := s.Person(fayUser)
	g, c := s.Supergroup("Ops", fay), s.Channel("News", fay)
	g.AddsBot(fay)
	c.AddsBot(fay)
	drain(t, s)
	fay.In(g).Anonymously().Writes("/yes")
	fay.In(g).AsChannel(c).Writes("/yes")
	fay.In(g).Anonymously().TapsData(1, "x")
	c.Posts("news")
	got := getUpdates(t, s)
	if m := got[0].Message; m.From.ID != 1087968824 || !m.From.IsBot || m.SenderChat.ID != g.ID() {
		t.Errorf("an anonymous administrator is %+v", m)
	}
	if m := got[1].Message; m.From.ID != 136817688 || m.SenderChat.ID != c.ID() {
		t.Errorf("a channel is %+v", m)
	}
	if c := got[2].Callback; c.From.ID != 1087968824 {
		t.Errorf("an anonymous tap is %+v", c)
	}
	if m := got[3].Post; m.From != nil || m.SenderChat.ID != c.ID() || m.Chat.Type != "channel" {
		t.Errorf("a post is %+v", m)
	}
	var m sent
	must(t, s, &m, "sendMessage", "chat_id", itoa(int(c.ID())), "text", "x")
	if m.From != nil || len(c.Messages()) != 2 || !c.Messages()[1].FromBot {
		t.Errorf("posted as %+v", m)
	}
}

func TestMigration(t *testing.T) {
	s := New(t)
	fay := s.Person(fayUser)
	g := s.Group("Ops", fay)
	g.AddsBot(fay)
	drain(t, s)
	to := g.Migrates(fay)
	got := getUpdates(t, s)
	if len(got) != 3 || got[0].Member.New.Status != "member" {
		t.Fatalf("told as %+v", got)
	}
	if got = got[1:]; got[0].Message.MigrateTo != to.ID() || got[0].Message.Chat.ID != g.ID() ||
		got[1].Message.MigrateFrom != g.ID() || got[1].Message.Chat.ID != to.ID() || got[1].Message.Chat.Type != "supergroup" {
		t.Errorf("told as %+v", got)
	}
	r := call(t, s, "sendMessage", "chat_id", itoa(int(g.ID())), "text", "x")
	if r.ErrorCode != 400 || r.Description != "Bad Request: group chat was upgraded to a supergroup chat" ||
		r.Parameters.MigrateTo != to.ID() {
		t.Errorf("the old group says %+v", r)
	}
	must(t, s, nil, "sendMessage", "chat_id", itoa(int(to.ID())), "text", "x")
	if m := g.Messages(); m[len(m)-1].MigratedTo != to.ID() {
		t.Errorf("seen as %+v", m)
	}
}

func TestTopics(t *testing.T) {
	s := New(t)
	fay := s.Person(fayUser)
	g := s.Forum("Ops", fay)
	g.AddsBot(fay)
	thread := g.Topic(fay, "deploys")
	drain(t, s)
	chat := itoa(int(g.ID()))
	var m, answer sent
	must(t, s, &m, "sendMessage", "chat_id", chat, "message_thread_id", itoa(thread), "text", "card")
	must(t, s, &answer, "sendMessage", "chat_id", chat, "reply_parameters", `{"message_id":`+itoa(m.ID)+`}`, "text", "more")
	if m.Thread != thread || !m.Topic || answer.Thread != thread {
		t.Errorf("sent as %+v and %+v", m, answer)
	}
	fay.In(g).InThread(thread).Writes("/yes")
	if got := getUpdates(t, s); got[0].Message.Thread != thread || !got[0].Message.Topic {
		t.Errorf("written as %+v", got[0].Message)
	}
	if r := call(t, s, "sendMessage", "chat_id", chat, "message_thread_id", "4711", "text", "x"); r.Description !=
		"Bad Request: message thread not found" {
		t.Errorf("no such topic: %+v", r)
	}
}

func TestMutedBot(t *testing.T) {
	s := New(t)
	fay := s.Person(fayUser)
	g := s.Forum("Ops", fay)
	g.AddsBot(fay)
	thread := g.Topic(fay, "deploys")
	chat := itoa(int(g.ID()))
	var m sent
	must(t, s, &m, "sendMessage", "chat_id", chat, "message_thread_id", itoa(thread), "text", "card")
	g.MutesBot(fay)
	var is struct {
		Status string `json:"status"`
		Write  bool   `json:"can_send_messages"`
	}
	must(t, s, &is, "getChatMember", "chat_id", chat, "user_id", itoa(int(s.Bot().ID)))
	if is.Status != "restricted" || is.Write {
		t.Errorf("the bot is %+v", is)
	}
	if r := call(t, s, "sendMessage", "chat_id", chat, "text", "x"); r.Description !=
		"Bad Request: not enough rights to send text messages to the chat" {
		t.Errorf("it is told %+v", r)
	}
	must(t, s, nil, "editMessageText", "chat_id", chat, "message_id", itoa(m.ID), "text", "edited")
	drain(t, s)
	fay.In(g).Replies(m.ID, "yes")
	if got := texts(getUpdates(t, s)); got != "yes" {
		t.Errorf("it hears %q", got)
	}
	g.DeletesTopic(thread)
	if r := call(t, s, "editMessageText", "chat_id", chat, "message_id", itoa(m.ID), "text", "again"); r.Description !=
		"Bad Request: message to edit not found" {
		t.Errorf("of a topic that was deleted: %+v", r)
	}
}
