package telegramtest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestRefusals(t *testing.T) {
	s := lenient(t)
	fay := started(t, s)
	id := fay.Writes("hello")
	stranger, blocker := s.Person(User{ID: 7, FirstName: "S"}), s.Person(User{ID: 8, FirstName: "B"})
	gone := s.Person(User{ID: 9, FirstName: "G"})
	blocker.Start("")
	blocker.Blocks()
	gone.Start("")
	gone.Deactivates()
	button := func(b string) string { return `{"inline_keyboard":[[` + b + `]]}` }
	tests := []struct {
		name, method string
		pairs        []string
		code         int
		text         string
	}{
		{"no chat", "sendMessage", []string{"text", "x"}, 400, "Bad Request: chat_id is empty"},
		{"unknown chat", "sendMessage", []string{"chat_id", "99", "text", "x"}, 400, "Bad Request: chat not found"},
		{"never started", "sendMessage", []string{"chat_id", "7", "text", "x"}, 403,
			"Forbidden: bot can't initiate conversation with a user"},
		{"blocked", "sendMessage", []string{"chat_id", "8", "text", "x"}, 403, "Forbidden: bot was blocked by the user"},
		{"deactivated", "sendChatAction", []string{"chat_id", "9", "action", "typing"}, 403, "Forbidden: user is deactivated"},
		{"no text", "sendMessage", []string{"chat_id", "42"}, 400, "Bad Request: message text is empty"},
		{"blank text", "sendMessage", []string{"chat_id", "42", "text", " \u200b\n"}, 400, "Bad Request: text must be non-empty"},
		{"too long", "sendMessage", []string{"chat_id", "42", "text", strings.Repeat("🙂", 2048) + "x"}, 400,
			"Bad Request: message is too long"},
		{"no UTF-8", "sendMessage", []string{"chat_id", "42", "text", "\xff"}, 400, "Bad Request: strings must be encoded in UTF-8"},
		{"parse mode", "sendMessage", []string{"chat_id", "42", "text", "x", "parse_mode", "HTML"}, 400,
			"Bad Request: unsupported parse_mode"},
		{"no such thread", "sendMessage", []string{"chat_id", "42", "text", "x", "message_thread_id", "5"}, 400,
			"Bad Request: message thread not found"},
		{"no such reply", "sendMessage", []string{"chat_id", "42", "text", "x", "reply_parameters", `{"message_id":5}`}, 400,
			"Bad Request: message to be replied not found"},
		{"long data", "sendMessage", []string{"chat_id", "42", "text", "x", "reply_markup",
			button(`{"text":"a","callback_data":"` + strings.Repeat("ä", 32) + `x"}`)}, 400, "Bad Request: BUTTON_DATA_INVALID"},
		{"empty data", "sendMessage", []string{"chat_id", "42", "text", "x", "reply_markup",
			button(`{"text":"a","callback_data":""}`)}, 400, "Bad Request: BUTTON_DATA_INVALID"},
		{"only text", "sendMessage", []string{"chat_id", "42", "text", "x", "reply_markup", button(`{"text":"a"}`)}, 400,
			"Bad Request: can't parse inline keyboard button: text buttons are unallowed in the inline keyboard"},
		{"two actions", "sendMessage", []string{"chat_id", "42", "text", "x", "reply_markup",
			button(`{"text":"a","callback_data":"a","url":"https://x.org"}`)}, 400,
			"Bad Request: can't parse inline keyboard button: exactly one optional field must be used"},
		{"unknown style", "sendMessage", []string{"chat_id", "42", "text", "x", "reply_markup",
			button(`{"text":"a","callback_data":"a","style":"green"}`)}, 400,
			"Bad Request: can't parse inline keyboard button: invalid button style specified"},
		{"nameless button", "sendMessage", []string{"chat_id", "42", "text", "x", "reply_markup",
			button(`{"text":"","callback_data":"a"}`)}, 400, "Bad Request: BUTTON_TEXT_INVALID"},
		{"101 buttons", "sendMessage", []string{"chat_id", "42", "text", "x", "reply_markup",
			button(strings.Repeat(`{"text":"a","callback_data":"a"},`, 100) + `{"text":"a","callback_data":"a"}`)}, 400,
			"Bad Request: reply markup is too long"},
		{"no markup", "sendMessage", []string{"chat_id", "42", "text", "x", "reply_markup", "{"}, 400,
			"Bad Request: can't parse reply keyboard markup JSON object"},
		{"a list as markup", "sendMessage", []string{"chat_id", "42", "text", "x", "reply_markup", "[]"}, 400,
			"Bad Request: object expected as reply markup"},
		{"long placeholder", "sendMessage", []string{"chat_id", "42", "text", "x", "reply_markup",
			`{"force_reply":true,"input_field_placeholder":"` + strings.Repeat("x", 65) + `"}`}, 400,
			"Bad Request: PLACEHOLDER_INVALID"},
		{"no document", "sendDocument", []string{"chat_id", "42"}, 400, "Bad Request: there is no document in the request"},
		{"unknown document", "sendDocument", []string{"chat_id", "42", "document", "F99"}, 400,
			"Bad Request: wrong file identifier/HTTP URL specified"},
		{"unknown action", "sendChatAction", []string{"chat_id", "42", "action", "dance"}, 400,
			"Bad Request: wrong parameter action in request"},
		{"unknown reaction", "setMessageReaction", []string{"chat_id", "42", "message_id", itoa(id), "reaction",
			`[{"type":"emoji","emoji":"🫖"}]`}, 400, "Bad Request: REACTION_INVALID"},
		{"leaving a person", "leaveChat", []string{"chat_id", "42"}, 400,
			"Bad Request: chat member status can't be changed in private chats"},
		{"a chat never met", "getChat", []string{"chat_id", "7"}, 400, "Bad Request: chat not found"},
		{"no such method", "sendLove", nil, 404, "Not Found"},
	}
	before := len(s.Messages(42))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := call(t, s, test.method, test.pairs...)
			if r.OK || r.ErrorCode != test.code || r.status != test.code || r.Description != test.text {
				t.Errorf("%d %q, want %d %q", r.ErrorCode, r.Description, test.code, test.text)
			}
		})
	}
	if after := len(s.Messages(42)); after != before {
		t.Errorf("%d messages were sent all the same", after-before)
	}
	stranger.Start("")
	blocker.Unblocks()
	must(t, s, nil, "sendMessage", "chat_id", "7", "text", "x")
	must(t, s, nil, "sendMessage", "chat_id", "8", "text", "x")
}

func TestTokens(t *testing.T) {
	s := New(t)
	for token, want := range map[string]int{
		"123456789:TEST-TOKEN-THAT-IS-NOT-A-SECRET-999": http.StatusUnauthorized,
		"123456789":      http.StatusNotFound,
		"nonsense/bot/x": http.StatusNotFound,
		"":               http.StatusNotFound,
	} {
		r, err := post(within(t), s.URL()+"/bot"+token+"/getMe", "", "")
		if err != nil || r.OK || r.ErrorCode != want {
			t.Errorf("token %q: %d %q, %v", token, r.ErrorCode, r.Description, err)
		}
	}
	if calls := s.Calls(); len(calls) != 0 {
		t.Errorf("noted %+v", calls)
	}
}

func TestSendMessage(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	question := fay.Writes("may I?")
	var m sent
	must(t, s, &m, "sendMessage", "chat_id", "42", "text", "  run it \n", "disable_notification", "true",
		"protect_content", "true", "entities", `[{"type":"code","offset":2,"length":3}]`,
		"reply_parameters", `{"message_id":`+itoa(question)+`}`, "link_preview_options", `{"is_disabled":true}`,
		"reply_markup", `{"inline_keyboard":[[{"text":"Yes","callback_data":"y","style":"success"}],[]]}`)
	if m.Text != "run it" || m.Entities[0].Of(m.Text) != "run" || m.ReplyTo.Text != "may I?" || m.From.ID != s.Bot().ID ||
		m.Chat.Type != "private" || m.Markup.Rows[0][0].Data != "y" {
		t.Errorf("sent as %+v", m)
	}
	seen, err := fay.Sees(within(t), func(m Message) bool { return m.ReplyTo == question })
	if err != nil || !seen.Silent || !seen.Protected || !seen.NoPreview || !seen.FromBot || len(seen.Keyboard) != 1 {
		t.Errorf("seen as %+v, %v", seen, err)
	}
	if v := s.Violations(); len(v) != 0 {
		t.Errorf("violations: %+v", v)
	}
}

func TestForceReply(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	var m sent
	must(t, s, &m, "sendMessage", "chat_id", "42", "text", "why?", "reply_markup",
		`{"force_reply":true,"selective":true,"input_field_placeholder":"because …"}`)
	if got, ok := fay.Message(m.ID); !ok || got.ForceReply.Placeholder != "because …" || !got.ForceReply.Selective {
		t.Errorf("seen as %+v", got)
	}
	fay.Replies(m.ID, "keep old/")
	if got := getUpdates(t, s); len(got) != 1 || got[0].Message.ReplyTo.ID != m.ID || got[0].Message.Text != "keep old/" {
		t.Errorf("answered with %+v", got)
	}
	r := call(t, s, "editMessageText", "chat_id", "42", "message_id", itoa(m.ID), "text", "x")
	if r.Description != "Bad Request: message can't be edited" {
		t.Errorf("edited a message with a forced reply: %+v", r)
	}
}

// Parameters come in the address, in a form, in parts and as JSON.
func TestEncodings(t *testing.T) {
	s := New(t)
	started(t, s)
	at := s.URL() + "/bot" + s.Token() + "/"
	bodies := []struct{ path, kind, body string }{
		{"sendMessage?chat_id=42&text=hi", "", ""},
		{"sendmessage", "application/x-www-form-urlencoded; charset=utf-8", "chat_id=42&text=hi"},
		{"sendMessage", "application/json", `{"chat_id":42,"text":"hi","reply_markup":{"inline_keyboard":[]}}`},
		{"sendMessage", "application/json", `{"chat_id":"42","text":"hi","disable_notification":true}`},
		{"sendMessage", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n" +
			"42\r\n--b\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nhi\r\n--b--\r\n"},
	}
	for _, b := range bodies {
		r, err := post(within(t), at+b.path, b.kind, b.body)
		var m sent
		if err != nil || !r.OK || json.Unmarshal(r.Result, &m) != nil || m.Text != "hi" {
			t.Errorf("%s as %s: %+v, %v", b.path, b.kind, r, err)
		}
	}
	r, err := post(within(t), at+"sendMessage", "application/json", "{")
	if err != nil || r.ErrorCode != http.StatusBadRequest {
		t.Errorf("half an object: %+v, %v", r, err)
	}
}

func TestDocumentAgain(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	fay.Sends("notes.txt", []byte("mine"), "look")
	got := getUpdates(t, s)[0].Message
	if got.Caption != "look" || got.Document.Name != "notes.txt" {
		t.Fatalf("received %+v", got)
	}
	var m sent
	must(t, s, &m, "sendDocument", "chat_id", "42", "document", got.Document.FileID)
	if m.Document.FileID != got.Document.FileID || m.Caption != "" {
		t.Errorf("sent back as %+v", m)
	}
	r := call(t, s, "sendDocument", "chat_id", "42", "document", got.Document.FileID, "caption", strings.Repeat("x", 1025))
	if r.Description != "Bad Request: message caption is too long" {
		t.Errorf("a long caption: %+v", r)
	}
	r = call(t, s, "editMessageText", "chat_id", "42", "message_id", itoa(m.ID), "text", "x")
	if r.Description != "Bad Request: there is no text in the message to edit" {
		t.Errorf("the text of a document: %+v", r)
	}
}

func TestClock(t *testing.T) {
	s := New(t)
	before := time.Now()
	s.Advance(time.Hour)
	if now := s.Now(); now.Before(before.Add(time.Hour)) || now.After(time.Now().Add(time.Hour)) {
		t.Errorf("it is %v", now)
	}
	started(t, s)
	var m sent
	if must(t, s, &m, "sendMessage", "chat_id", "42", "text", "x"); m.Date < before.Add(time.Hour).Unix() {
		t.Errorf("sent at %v", time.Unix(m.Date, 0))
	}
}
