package telegram

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
)

func TestStartCode(t *testing.T) {
	from, private := &user{ID: 1}, chat{Type: "private"}
	tests := []struct {
		m    message
		want string
	}{
		{message{From: from, Chat: private, Text: "/start abc"}, "abc"},
		{message{From: from, Chat: private, Text: "/start@our_bot  abc "}, "abc"},
		{message{From: from, Chat: private, Text: "/start"}, ""},
		{message{From: from, Chat: private, Text: "/starting abc"}, ""},
		{message{From: from, Chat: private, Text: "/start abc", Forward: &origin{}}, ""},
		{message{From: from, Chat: private, Text: "/start abc", Through: &user{ID: 7}}, ""},
		{message{From: from, Chat: chat{Type: "group"}, Text: "/start abc"}, ""},
		{message{From: &user{ID: 1, IsBot: true}, Chat: private, Text: "/start abc"}, ""},
		{message{From: from, SenderChat: &chat{ID: -1}, Chat: private, Text: "/start abc"}, ""},
		{message{Chat: private, Text: "/start abc"}, ""},
	}
	for _, test := range tests {
		if got, is := startCode(&test.m); is != (test.want != "") || is && got != test.want {
			t.Errorf("%+v: %q, %v", test.m, got, is)
		}
	}
}

// TestReceive pairs a person without a daemon, and leaves nothing for a later daemon.
func TestReceive(t *testing.T) {
	server := telegramtest.New(t)
	c := New(Options{Token: Token(server.Token()), APIURL: server.URL(), Host: "vps", Now: time.Now, Log: slog.New(slog.DiscardHandler)}, nil)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Receive(ctx) }()
	i, err := c.Invite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://t.me/" + server.Bot().Username + "?start=" + i.Code; i.Link != want {
		t.Errorf("the link is %s, want %s", i.Link, want)
	}
	fay := server.Person(telegramtest.User{ID: 4242, FirstName: "Fay", LastName: "Example", LanguageCode: "de"})
	fay.Start(i.Code)
	g, err := c.AwaitCandidate(t.Context(), i.Code)
	if want := (connectors.PairingCandidate{Address: "4242", Name: "Fay Example", Language: "de"}); err != nil || g != want {
		t.Errorf("%+v, %v", g, err)
	}
	c.Greet(i.Code, g.Address, "fay")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	texts := ""
	for _, m := range fay.Messages() {
		texts += m.Text + "\n"
	}
	for _, want := range []string{"fragt jetzt nach", "gelten für daycared auf vps als die von fay"} {
		if !strings.Contains(texts, want) {
			t.Errorf("%q is not told:\n%s", want, texts)
		}
	}
	left := 0
	p := newPoller(c.api, c.state, time.Now, c.log)
	if batch, err := p.poll(t.Context(), 0); err != nil {
		t.Error(err)
	} else {
		left = len(batch)
	}
	c.api.close()
	if left != 0 {
		t.Errorf("%d updates are left", left)
	}
}

func TestABotsErrorsAreInWords(t *testing.T) {
	server := telegramtest.New(t)
	c := New(Options{Token: "1:wrong", APIURL: server.URL(), Now: time.Now, Log: slog.New(slog.DiscardHandler)}, nil)
	if _, err := c.Bot(t.Context()); !errors.Is(err, ErrToken) {
		t.Errorf("a wrong token: %v", err)
	}
	c.api.close()
	server.Down()
	c = New(Options{Token: Token(server.Token()), APIURL: server.URL(), Now: time.Now, Log: slog.New(slog.DiscardHandler)}, nil)
	if _, err := c.Invite(t.Context()); err == nil || strings.Contains(err.Error(), server.Token()) {
		t.Errorf("without a network: %v", err)
	}
	c.api.close()
}
