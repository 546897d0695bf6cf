package telegramtest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestStart(t *testing.T) {
	s := New(t)
	fay := s.Person(fayUser)
	fay.Start("k7f3q")
	got := getUpdates(t, s)
	m := got[0].Message
	if m.Text != "/start k7f3q" || m.Entities[0].Type != "bot_command" || m.Entities[0].Length != 6 ||
		m.From.LanguageCode != "de" || m.From.ID != m.Chat.ID {
		t.Errorf("arrived as %+v", m)
	}
	drain(t, s)
	fay.Blocks()
	fay.Blocks()
	fay.Start("")
	got = getUpdates(t, s)
	if len(got) != 3 || got[0].Member.New.Status != "kicked" || got[1].Member.New.Status != "member" || got[2].Message == nil {
		t.Errorf("blocked and started again: %+v", got)
	}
}

func TestEditsAndForwards(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	g := s.Supergroup("Ops", fay)
	g.AddsBot(fay)
	var card sent
	must(t, s, &card, "sendMessage", "chat_id", itoa(int(g.ID())), "text", "card", "reply_markup", yesKeyboard)
	drain(t, s)
	id := fay.Writes("yes K7F3Q")
	fay.Edits(id, "no K7F3Q")
	copied := fay.In(g).Forwards(card.ID, fay)
	got := getUpdates(t, s)
	if got[1].Edited == nil || got[1].Edited.ID != id || got[1].Edited.Text != "no K7F3Q" || got[1].Edited.EditDate == 0 {
		t.Errorf("the edit arrived as %+v", got[1])
	}
	if m := got[2].Message; m.ID != copied || m.Text != "card" || m.Markup != nil || !strings.Contains(string(m.Forward), "sender_user") {
		t.Errorf("the copy arrived as %+v", m)
	}
	if m, _ := fay.Message(copied); len(m.Keyboard) != 0 || m.ForwardFrom.ID != s.Bot().ID {
		t.Errorf("the copy is seen as %+v", m)
	}
}

func TestPicksAnInlineResult(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	drain(t, s)
	id := fay.Picks(User{ID: 7777, FirstName: "Lunch"}, 0, "pizza")
	m := getUpdates(t, s)[0].Message
	if m.ID != id || m.Text != "pizza" || m.From.ID != fay.User().ID || m.Through == nil || m.Through.ID != 7777 || !m.Through.IsBot {
		t.Errorf("it arrived as %+v", m)
	}
}

func TestSeesEdits(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	fay.Writes("card") // her own does not count
	done := make(chan Message)
	go func() {
		m, _ := fay.Sees(t.Context(), func(m Message) bool { return strings.HasPrefix(m.Text, "card") && m.Edits == 1 })
		done <- m
	}()
	id := sends(t, s, "text", "card")
	must(t, s, nil, "editMessageText", "chat_id", "42", "message_id", itoa(id), "text", "card, settled")
	if m := <-done; m.ID != id || m.Text != "card, settled" {
		t.Errorf("she sees %+v", m)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := fay.Sees(ctx, func(Message) bool { return false })
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "card, settled") {
		t.Errorf("she does not see it: %v", err)
	}
}

func TestCommands(t *testing.T) {
	s := lenient(t) // an empty command is not as the schema has it
	started(t, s)
	if menu := s.Commands(42); len(menu) != 0 {
		t.Errorf("a menu from the start: %v", menu)
	}
	must(t, s, nil, "setMyCommands", "commands", `[{"command":"help","description":"for all"}]`)
	must(t, s, nil, "setMyCommands", "commands", `[{"command":"pending","description":"what waits"}]`,
		"scope", `{"type":"chat","chat_id":42}`)
	if menu := s.Commands(42); len(menu) != 1 || menu[0].Command != "pending" {
		t.Errorf("fay's menu: %v", menu)
	}
	if menu := s.Commands(43); len(menu) != 1 || menu[0].Command != "help" {
		t.Errorf("everybody's menu: %v", menu)
	}
	var menu []Command
	must(t, s, &menu, "getMyCommands", "scope", `{"type":"chat","chat_id":42}`)
	if len(menu) != 1 || menu[0].Description != "what waits" {
		t.Errorf("told as %v", menu)
	}
	must(t, s, nil, "deleteMyCommands", "scope", `{"type":"chat","chat_id":42}`)
	if menu := s.Commands(42); len(menu) != 1 || menu[0].Command != "help" {
		t.Errorf("fay's menu after hers was deleted: %v", menu)
	}
	for commands, want := range map[string]string{
		`[{"command":"Pending","description":"x"}]`:                             "BOT_COMMAND_INVALID",
		`[{"command":"stop all","description":"x"}]`:                            "BOT_COMMAND_INVALID",
		`[{"command":"stop","description":""}]`:                                 "BOT_COMMAND_DESCRIPTION_INVALID",
		`[` + strings.Repeat(`{"command":"a","description":"b"},`, 100) + `{}]`: "BOT_COMMANDS_TOO_MUCH",
	} {
		if r := call(t, s, "setMyCommands", "commands", commands); r.Description != "Bad Request: "+want {
			t.Errorf("%.50s: %+v", commands, r)
		}
	}
	r := call(t, s, "setMyCommands", "commands", "[]", "scope", `{"type":"chat","chat_id":99}`)
	if r.Description != "Bad Request: chat not found" {
		t.Errorf("a menu for nobody: %+v", r)
	}
}

// Many at once: every message is told once and has a number of its own.
func TestManyAtOnce(t *testing.T) {
	s := New(t)
	const people, each = 8, 20
	var all sync.WaitGroup
	for i := range people {
		p := s.Person(User{ID: int64(100 + i), FirstName: "P"})
		p.Start("")
		all.Go(func() {
			for range each {
				p.Writes("x")
				must(t, s, nil, "sendMessage", "chat_id", itoa(100+i), "text", "y")
			}
		})
	}
	all.Wait()
	numbers := map[int]bool{}
	for i := range people {
		for _, m := range s.Messages(int64(100 + i)) {
			numbers[m.ID] = true
		}
	}
	if n := people * (1 + 2*each); len(numbers) != n {
		t.Errorf("%d numbers for %d messages", len(numbers), n)
	}
	if n := s.Pending(); n != people*(1+each) {
		t.Errorf("%d updates", n)
	}
}
