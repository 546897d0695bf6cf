package telegramtest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

// The library of the connector, as the connector uses it, against the server.

func libraryBot(s *Server) *tgbotapi.BotAPI {
	b := &tgbotapi.BotAPI{Token: s.Token(), Client: http.DefaultClient, Buffer: 1}
	b.SetAPIEndpoint(s.URL() + "/bot%s/%s")
	return b
}

func TestLibrary(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	b := libraryBot(s)
	me, err := b.GetMe()
	if err != nil || me.ID != s.Bot().ID || !me.IsBot || me.UserName != s.Bot().Username {
		t.Fatalf("getMe is %+v, %v", me, err)
	}

	p := tgbotapi.Params{"chat_id": "42", "text": "deploy wants network access"}
	markup := map[string]any{"inline_keyboard": [][]map[string]any{{
		{"text": "✅ Allow once", "callback_data": "a:1", "style": "success"},
		{"text": "⛔ Deny", "callback_data": "d:1", "style": "danger"},
	}}}
	entities := []map[string]any{{"type": "bold", "offset": 0, "length": 6}}
	if err := errors.Join(p.AddInterface("reply_markup", markup), p.AddInterface("entities", entities)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.MakeRequest("sendMessage", p); err != nil {
		t.Fatal(err)
	}
	card, err := fay.Sees(within(t), func(m Message) bool { return strings.Contains(m.Text, "deploy") })
	if err != nil || card.Entities[0].Of(card.Text) != "deploy" || card.Keyboard[0][1].Style != "danger" {
		t.Fatalf("fay sees %+v, %v", card, err)
	}

	tap, err := fay.Taps(card.ID, "Allow once")
	if err != nil {
		t.Fatal(err)
	}
	updates, err := b.GetUpdates(tgbotapi.UpdateConfig{Timeout: 1, AllowedUpdates: []string{"message", "callback_query"}})
	if err != nil || len(updates) != 1 {
		t.Fatalf("%d updates, %v", len(updates), err)
	}
	press := updates[0].CallbackQuery
	if press.ID != tap.ID() || press.From.ID != 42 || press.Data != "a:1" || press.Message.MessageID != card.ID {
		t.Fatalf("the tap arrived as %+v", press)
	}
	if _, err := b.Request(tgbotapi.NewCallback(press.ID, "Allowed")); err != nil {
		t.Fatal(err)
	}
	if toast, err := tap.Toast(within(t)); err != nil || toast.Text != "Allowed" || toast.Alert {
		t.Fatalf("the toast is %+v, %v", toast, err)
	}
	if _, err := b.MakeRequest("editMessageText", tgbotapi.Params{
		"chat_id": "42", "message_id": "13", "text": "x",
	}); !strings.Contains(err.Error(), "message to edit not found") {
		t.Errorf("editing what is not there: %v", err)
	}
}

func TestLibraryUploads(t *testing.T) {
	s := New(t)
	started(t, s)
	b := libraryBot(s)
	answer, err := b.UploadFiles("sendDocument", tgbotapi.Params{
		"chat_id": "42", "caption": "the details", "disable_notification": "true",
	}, []tgbotapi.RequestFile{{Name: "document", Data: tgbotapi.FileBytes{Name: "details.txt", Bytes: []byte("all of it")}}})
	if err != nil {
		t.Fatal(err)
	}
	var m sent
	if err := json.Unmarshal(answer.Result, &m); err != nil {
		t.Fatal(err)
	}
	if m.Document.Name != "details.txt" || m.Document.MIME != "text/plain" || m.Document.Size != 9 || m.Caption != "the details" {
		t.Errorf("sent as %+v", m.Document)
	}
	seen := s.Messages(42)[1]
	if string(seen.Document.Bytes) != "all of it" || !seen.Silent || seen.Text != "the details" {
		t.Errorf("seen as %+v", seen)
	}
	if got := s.Calls()[0]; got.Method != "sendDocument" || got.Files["document"] != 9 || got.Code != http.StatusOK {
		t.Errorf("noted as %+v", got)
	}

	file, err := b.GetFile(tgbotapi.FileConfig{FileID: m.Document.FileID})
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.Get(s.URL() + "/file/bot" + s.Token() + "/" + file.FilePath)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if text, _ := io.ReadAll(got.Body); string(text) != "all of it" {
		t.Errorf("downloaded %q", text)
	}
}

// What the library does by itself is not as the Bot API has it today; the server takes it all the same.
func TestLibraryIsOld(t *testing.T) {
	s := lenient(t)
	fay := started(t, s)
	first := fay.Writes("hello")
	m := tgbotapi.NewMessage(42, "hi")
	m.ReplyToMessageID, m.DisableWebPagePreview = first, true
	if _, err := libraryBot(s).Send(m); err != nil {
		t.Fatal(err)
	}
	if got := s.Messages(42)[2]; got.ReplyTo != first || !got.NoPreview {
		t.Errorf("sent as %+v", got)
	}
	if v := s.Violations(); len(v) != 1 || v[0].What != "sendMessage request" ||
		!strings.Contains(v[0].Detail, "reply_to_message_id") || !strings.Contains(v[0].Detail, "entities") {
		t.Errorf("violations: %+v", v)
	}
}

// A poll of the library ends with the context of its client, as the connector makes it.
func TestLibraryPollIsCut(t *testing.T) {
	s := New(t)
	ctx, cancel := context.WithCancel(t.Context())
	b := *libraryBot(s)
	b.Client = doer(func(r *http.Request) (*http.Response, error) { return http.DefaultClient.Do(r.WithContext(ctx)) })
	done := make(chan error)
	go func() {
		_, err := b.GetUpdates(tgbotapi.UpdateConfig{Timeout: 50, AllowedUpdates: []string{"message"}})
		done <- err
	}()
	if err := s.Polling(within(t)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the poll ended with %v", err)
	}
	if err := s.AwaitCalls(within(t), func(c []Call) bool { return !c[0].Ended.IsZero() && c[0].Code == 0 }); err != nil {
		t.Errorf("the server has not noticed: %v", err)
	}
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }
