package telegramtest

import (
	"strings"
	"testing"
	"time"
)

const yesKeyboard = `{"inline_keyboard":[[{"text":"Yes","callback_data":"y"}]]}`

// sends sends a text to fay and returns its id.
func sends(t *testing.T, s *Server, pairs ...string) int {
	t.Helper()
	var m sent
	must(t, s, &m, "sendMessage", append([]string{"chat_id", "42"}, pairs...)...)
	return m.ID
}

func TestEdit(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	id := sends(t, s, "text", "first", "reply_markup", yesKeyboard)
	var m sent
	must(t, s, &m, "editMessageText", "chat_id", "42", "message_id", itoa(id), "text", "second")
	if m.Text != "second" || m.Markup != nil || m.EditDate == 0 {
		t.Errorf("edited to %+v", m)
	}
	must(t, s, &m, "editMessageReplyMarkup", "chat_id", "42", "message_id", itoa(id), "reply_markup", yesKeyboard)
	seen, _ := fay.Message(id)
	if seen.Text != "second" || len(seen.Keyboard) != 1 || seen.Edits != 2 || len(seen.History) != 2 ||
		seen.History[0].Text != "first" || len(seen.History[0].Keyboard) != 1 || len(seen.History[1].Keyboard) != 0 {
		t.Errorf("seen as %+v", seen)
	}
}

func TestEditRefusals(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	id := sends(t, s, "text", "same", "reply_markup", yesKeyboard, "entities", `[{"type":"bold","offset":0,"length":4}]`)
	own := fay.Writes("mine")
	lost, gone := sends(t, s, "text", "lost"), sends(t, s, "text", "gone")
	s.Forget(42, lost)
	fay.Deletes(gone)
	tests := []struct {
		name string
		id   int
		text string
		want string
	}{
		{"not modified", id, "same\n", "message is not modified: specified new message content and reply markup are exactly " +
			"the same as a current content and reply markup of the message"},
		{"not there", 999, "x", "message to edit not found"},
		{"inaccessible", lost, "x", "message to edit not found"},
		{"deleted by the person", gone, "x", "message to edit not found"},
		{"the person's own", own, "x", "message can't be edited"},
		{"no message", 0, "x", "message identifier is not specified"},
		{"no text", id, "", "message text is empty"},
		{"long text", id, strings.Repeat("x", 4097), "MESSAGE_TOO_LONG"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := call(t, s, "editMessageText", "chat_id", "42", "message_id", itoa(test.id), "text", test.text,
				"reply_markup", yesKeyboard, "entities", `[{"type":"bold","offset":0,"length":4}]`)
			if r.ErrorCode != 400 || r.Description != "Bad Request: "+test.want {
				t.Errorf("%d %q", r.ErrorCode, r.Description)
			}
		})
	}
	fay.Blocks()
	if r := call(t, s, "editMessageText", "chat_id", "42", "message_id", itoa(id), "text", "x"); r.ErrorCode != 403 {
		t.Errorf("edited for somebody who blocked the bot: %+v", r)
	}
}

func TestDelete(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	id, old := sends(t, s, "text", "x"), sends(t, s, "text", "old")
	must(t, s, nil, "deleteMessage", "chat_id", "42", "message_id", itoa(id))
	if _, ok := fay.Message(id); ok || len(fay.Messages()) != 2 || !s.Messages(42)[1].Deleted {
		t.Errorf("still seen: %+v", fay.Messages())
	}
	if r := call(t, s, "deleteMessage", "chat_id", "42", "message_id", itoa(id)); r.Description !=
		"Bad Request: message to delete not found" {
		t.Errorf("deleted twice: %+v", r)
	}
	s.Advance(48 * time.Hour)
	if r := call(t, s, "deleteMessage", "chat_id", "42", "message_id", itoa(old)); r.Description !=
		"Bad Request: message can't be deleted for everyone" {
		t.Errorf("deleted after two days: %+v", r)
	}
}

func TestReaction(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	id := fay.Writes("yes")
	must(t, s, nil, "setMessageReaction", "chat_id", "42", "message_id", itoa(id), "reaction", `[{"type":"emoji","emoji":"👍"}]`)
	if m, _ := fay.Message(id); len(m.Reactions) != 1 || m.Reactions[0] != "👍" {
		t.Errorf("reactions: %q", m.Reactions)
	}
	must(t, s, nil, "setMessageReaction", "chat_id", "42", "message_id", itoa(id), "reaction", `[]`)
	if m, _ := fay.Message(id); len(m.Reactions) != 0 {
		t.Errorf("reactions: %q", m.Reactions)
	}
	if r := call(t, s, "setMessageReaction", "chat_id", "42", "message_id", "99"); r.Description !=
		"Bad Request: message to react not found" {
		t.Errorf("a reaction to nothing: %+v", r)
	}
}
