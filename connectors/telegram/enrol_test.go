package telegram

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
)

func TestALinkWorksOnceAndForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLinks(time.Now)
		fay, eve := user{ID: 4242, FirstName: "Fay"}, user{ID: 6666}
		ended, stop := context.WithCancel(t.Context())
		stop()
		guest := func(code string) int64 {
			t.Helper()
			u, err := l.wait(ended, code)
			if u.ID == 0 && err == nil {
				t.Error("nobody came, and no error says so")
			}
			return u.ID
		}
		code, until := l.make()
		if got := time.Until(until); got != 10*time.Minute {
			t.Errorf("it works for %v", got)
		}
		if l.take("wrong", fay) || l.take("", fay) || guest(code) != 0 {
			t.Error("a wrong code is taken")
		}
		<-time.After(10*time.Minute - 1)
		for range 2 { // Start may be pressed again
			if !l.take(code, fay) {
				t.Error("it is not taken")
			}
		}
		if l.take(code, eve) || guest(code) != fay.ID {
			t.Error("it is not the first account's, and theirs alone")
		}
		if u, came := l.end(code); !came || u != fay {
			t.Errorf("ended with %v", u)
		}
		if _, err := l.wait(t.Context(), code); !errors.Is(err, connectors.ErrNoInvitation) || l.take(code, fay) {
			t.Errorf("after its end: %v", err)
		}

		late, _ := l.make()
		waited := make(chan error, 1)
		go func() { _, err := l.wait(t.Context(), late); waited <- err }()
		<-time.After(10 * time.Minute)
		synctest.Wait()
		if err := <-waited; !errors.Is(err, connectors.ErrNoInvitation) || l.take(late, fay) {
			t.Errorf("after its time: %v", err)
		}
		given, _ := l.make()
		go func() { _, err := l.wait(t.Context(), given); waited <- err }()
		synctest.Wait()
		l.end(given)
		if err := <-waited; !errors.Is(err, connectors.ErrNoInvitation) {
			t.Errorf("taken back while it is waited for: %v", err)
		}
	})
}

func TestWrongLinksAreAnsweredFiveTimesADay(t *testing.T) {
	now := time.Now()
	l := newLinks(func() time.Time { return now })
	for i := range 7 {
		if got := l.wrong(6666); got != (i < mostWrong) {
			t.Errorf("the wrong link %d is answered: %v", i+1, got)
		}
	}
	if !l.wrong(7777) {
		t.Error("somebody else is not answered")
	}
	now = now.Add(wrongLife + 1)
	if !l.wrong(6666) {
		t.Error("the day after, it is not answered")
	}
}

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

// TestReceive enrols somebody without a daemon, and leaves nothing for the daemon that comes.
func TestReceive(t *testing.T) {
	server := telegramtest.New(t)
	c := New(Options{Token: Token(server.Token()), APIURL: server.URL(), Host: "vps", Now: time.Now, Log: slog.New(slog.DiscardHandler)})
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
	g, err := c.Guest(t.Context(), i.Code)
	if want := (connectors.Guest{Address: "4242", Name: "Fay Example", Language: "de"}); err != nil || g != want {
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
	for _, want := range []string{"is asking now", "You answer for daycared on vps as fay"} {
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
	c := New(Options{Token: "1:wrong", APIURL: server.URL(), Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if _, err := c.Bot(t.Context()); !errors.Is(err, ErrToken) {
		t.Errorf("a wrong token: %v", err)
	}
	c.api.close()
	server.Down()
	c = New(Options{Token: Token(server.Token()), APIURL: server.URL(), Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if _, err := c.Invite(t.Context()); err == nil || strings.Contains(err.Error(), server.Token()) {
		t.Errorf("without a network: %v", err)
	}
	c.api.close()
}
