package telegramtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

const tooOld = "Bad Request: query is too old and response timeout expired or query ID is invalid"

func TestTap(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	id := sends(t, s, "text", "may I?", "reply_markup", `{"inline_keyboard":[[{"text":"✅ Allow once","callback_data":"a"},`+
		`{"text":"⛔ Deny","callback_data":"d"}],[{"text":"⛔ Deny with reason","callback_data":"r"},`+
		`{"text":"Read","url":"https://example.org"}]]}`)
	for _, button := range []string{"Allow once", "a", "⛔ Deny", "with reason"} {
		if _, err := fay.Taps(id, button); err != nil {
			t.Error(err)
		}
	}
	for _, button := range []string{"Deny ", "Read", "e", "", "none"} {
		if tap, err := fay.Taps(id, button); err == nil && button != "Deny " {
			t.Errorf("tapped %q as %+v", button, tap)
		}
	}
	if _, err := fay.Taps(id+1, "a"); err == nil {
		t.Error("tapped a message that is not there")
	}
	found := getUpdates(t, s)
	var data []string
	for _, u := range found {
		data = append(data, u.Callback.Data)
	}
	if got := strings.Join(data, " "); got != "a a d r r" {
		t.Errorf("the taps arrived as %q", got)
	}
	c := found[0].Callback
	if c.From.ID != 42 || c.Message.ID != id || c.Message.Text != "may I?" || len(c.Message.Markup.Rows) != 2 ||
		c.Instance != found[1].Callback.Instance {
		t.Errorf("a tap arrived as %+v", c)
	}
}

func TestToast(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	tap := fay.TapsData(1, "x")
	done := make(chan Toast)
	go func() {
		toast, _ := tap.Toast(t.Context())
		done <- toast
	}()
	if tap.Answered() {
		t.Error("answered already")
	}
	must(t, s, nil, "answerCallbackQuery", "callback_query_id", tap.ID(), "text", "Too late.", "show_alert", "true")
	if toast := <-done; toast.Text != "Too late." || !toast.Alert || !tap.Answered() {
		t.Errorf("the toast is %+v", toast)
	}
	late := fay.TapsData(1, "x")
	if r := call(t, s, "answerCallbackQuery", "callback_query_id", late.ID(), "text", strings.Repeat("x", 201)); r.OK {
		t.Error("a toast of 201")
	}
	s.Advance(15 * time.Second)
	for _, id := range []string{late.ID(), "1", ""} {
		if r := call(t, s, "answerCallbackQuery", "callback_query_id", id); r.Description != tooOld || r.ErrorCode != 400 {
			t.Errorf("answered %q: %+v", id, r)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := late.Toast(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("waited for an answer that does not come: %v", err)
	}
}

// What the bot cannot see any more, or never sent, comes as a message of the year 1970.
func TestInaccessibleMessages(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	lost, deleted := sends(t, s, "text", "x", "reply_markup", yesKeyboard), sends(t, s, "text", "y", "reply_markup", yesKeyboard)
	s.Forget(42, lost)
	fay.Deletes(deleted)
	if _, err := fay.Taps(lost, "Yes"); err != nil {
		t.Fatal(err)
	}
	fay.TapsData(deleted, "y")
	fay.TapsData(4711, "y")
	for i, u := range getUpdates(t, s) {
		m := u.Callback.Message
		if m.Date != 0 || m.Text != "" || m.Chat.ID != 42 || m.ID != []int{lost, deleted, 4711}[i] {
			t.Errorf("arrived as %+v", m)
		}
	}
}
