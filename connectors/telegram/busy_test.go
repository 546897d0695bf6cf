package telegram

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// calls are the calls of a method for a person's chat.
func (s *env) calls(who, method string) (all []telegramtest.Call) {
	for _, c := range s.server.Calls() {
		if c.Method == method && c.Params["chat_id"] == strconv.FormatInt(ids[who], 10) {
			all = append(all, c)
		}
	}
	return all
}

// leftAlone checks that after the refusal that was the first of some calls the next came as late as Telegram wanted, and
// a tenth later at most.
func leftAlone(t *testing.T, what string, calls []telegramtest.Call, want time.Duration) {
	t.Helper()
	if len(calls) < 2 || calls[0].Code != 429 {
		t.Fatalf("%s: %d calls", what, len(calls))
	}
	if got := calls[1].At.Sub(calls[0].Ended); got < want || got > want+want/10 {
		t.Errorf("%s: the chat was left alone for %v; want %v", what, got, want)
	}
}

// Telegram asks to be left alone with fay's chat: her card, its end and a notice come when it said, and sam's meanwhile.
func TestAChatThatIsBusyIsLeftAloneForAsLongAsItAsks(t *testing.T) {
	const wait = 3 * time.Second
	s := newEnv(t, func(s *env) {
		s.settings.UID = int(ids["fay"])
		sams, err := permissions.ParseTag("@read:/sam")
		if err != nil {
			t.Fatal(err)
		}
		s.settings.Routes = []engine.Route{{Tags: []permissions.Tag{sams}, Ask: []string{"sam"}}, {Ask: []string{"fay"}}}
	})
	meanwhile := func(n int) {
		t.Helper()
		q := network(fmt.Sprintf("sam's %d.", n))
		q.Tags = []permissions.Tag{s.settings.Routes[0].Tags[0]}
		began := time.Now()
		call := s.ask(q)
		s.taps("sam", s.card("sam", q.Reason), "Allow once", "✅")
		s.get(call, permissions.Approved)
		if took := time.Since(began); took > wait/2 {
			t.Errorf("sam's card was held up for %v", took)
		}
	}
	refuse := func(method string) {
		s.server.FailNext(method, 1, telegramtest.TooManyRequests(wait))
	}

	refuse("sendMessage")
	call := s.ask(network("x"))
	s.until("it was refused", func() bool { return len(s.calls("fay", "sendMessage")) == 1 })
	meanwhile(1)
	m := s.card("fay", "x")
	leftAlone(t, "the card", s.calls("fay", "sendMessage"), wait)
	s.until("the card is noted", s.upToDate)

	refuse("editMessageText")
	s.taps("fay", m, "⛔ Deny", "⛔")
	s.get(call, permissions.Denied)
	s.until("it was refused", func() bool { return len(s.calls("fay", "editMessageText")) == 1 })
	meanwhile(2)
	s.becomes("fay", m.ID, "⛔ You denied this")
	leftAlone(t, "its end", s.calls("fay", "editMessageText"), wait)

	before := len(s.calls("fay", "sendMessage"))
	refuse("sendMessage")
	if err := s.NoteUnknownSender(t.Context(), permissions.UnknownSender{Via: Name, Account: "6666", Name: "Eve"}); err != nil {
		t.Fatal(err)
	}
	s.until("it was refused", func() bool { return len(s.calls("fay", "sendMessage")) == before+1 })
	meanwhile(3)
	s.told("fay", "1 unknown account")
	leftAlone(t, "the notice", s.calls("fay", "sendMessage")[before:], wait)
}

// What the engine is told of a refusal says when to try again, also where nothing was called since Telegram wants to be
// left alone; and no other error does.
func TestErrorsSayWhenToTryAgain(t *testing.T) {
	fay := connectors.Person{Name: "fay"}
	c := New(Options{Token: "1:x"}, nil)
	busy := &apiError{Method: "sendMessage", Code: 429, Pause: time.Minute}
	c.pace.noteResult(fayChat, busy)
	turn := c.turn(t.Context(), fayChat, 0)
	if !errors.Is(turn, errTurn) {
		t.Fatalf("turn = %v", turn)
	}
	for name, e := range map[string]struct {
		err         error
		least, most time.Duration
	}{
		"refused":    {fmt.Errorf("send: %w", busy), time.Minute, time.Minute},
		"not called": {turn, 59 * time.Second, time.Minute},
		"broken":     {&apiError{Code: 502}, 0, 0},
		"gone":       {&apiError{Code: 403, Pause: time.Minute}, 0, 0},
		"nothing":    {nil, 0, 0},
	} {
		if got := connectors.RetryAfter(New(Options{Now: time.Now}, nil).sendError(spot{}, fay, e.err)); got < e.least || got > e.most {
			t.Errorf("%s: after %v", name, got)
		}
	}
	if err := c.turn(t.Context(), samChat, 0); err != nil {
		t.Errorf("another chat: %v", err)
	}
}
