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
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// Who cannot be reached is told to the asker in words, and the next channel is tried.
func TestWhoCannotBeReached(t *testing.T) {
	refuse := func(code int, text string) func(*env) {
		return func(s *env) { s.server.FailNext("sendMessage", -1, telegramtest.Refuse(code, text)) }
	}
	for _, c := range []struct {
		name, why string
		happens   func(*env)
	}{
		{"blocked", "fay has blocked the bot", func(s *env) { s.phones["fay"].Blocks() }},
		{"deactivated", "fay has no Telegram account any more", func(s *env) { s.phones["fay"].Deactivates() }},
		{"never pressed Start", "fay never pressed Start; fay has to open the bot and press Start", func(s *env) {
			s.moves(0, 9001)
			s.server.Person(telegramtest.User{ID: 9001, FirstName: "F"})
		}},
		{"not known to the bot", "fay never pressed Start; fay has to open the bot and press Start", func(s *env) {
			s.moves(0, 9002)
		}},
		{"kicked", "the bot was removed from the group", refuse(403, "Forbidden: bot was kicked from the group chat")},
		{"refused in other words", "Telegram does not let the bot write to fay", refuse(403, "Forbidden: because")},
		{"without an account", "fay has no Telegram account here", func(s *env) { s.moves(0, 0) }},
	} {
		fayFirst := func(s *env) {
			for i, p := range s.settings.People {
				if p.Name == "fay" {
					s.settings.People[0], s.settings.People[i] = p, s.settings.People[0]
				}
			}
		}
		t.Run("E1/"+c.name, func(t *testing.T) {
			s := newEnv(t, fayFirst, c.happens)
			if r := s.get(s.ask(network("x")), permissions.Undeliverable); !strings.HasPrefix(r.Failure, c.why) {
				t.Errorf("it could not be delivered: %s; want %s", r.Failure, c.why)
			}
		})
		t.Run("E1/"+c.name+", and reached elsewhere", func(t *testing.T) {
			s := newEnv(t, fayFirst, func(s *env) {
				s.settings.People[0].Via = []string{Name, "memory"}
				s.others = append(s.others, memory())
			}, c.happens)
			if r := s.get(s.ask(network("x")), permissions.Approved); r.DecidedVia != "memory" {
				t.Errorf("it was decided via %s", r.DecidedVia)
			}
		})
	}
}

// What fails for now is done later.
func TestWhatFailsForNowIsDoneLater(t *testing.T) {
	for _, fault := range []telegramtest.Fault{
		telegramtest.InternalError(), telegramtest.BadGateway(), telegramtest.Reset(), telegramtest.Hang(),
		telegramtest.TooManyRequests(time.Second), telegramtest.Refuse(500, "Internal Server Error"),
	} {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			s := newEnv(t, impatient)
			for _, method := range []string{"sendMessage", "editMessageText", "answerCallbackQuery"} {
				s.server.FailNext(method, 1, fault)
			}
			call := s.ask(network("x"))
			m := s.card("fay", "x")
			s.taps("fay", m, "Deny, say why", "Nothing is denied yet")
			s.server.FailNext("sendMessage", 1, fault)
			s.taps("fay", m, "Allow once", "✅")
			s.get(call, permissions.Approved)
			s.becomes("fay", m.ID, "✅ You allowed this once")
			s.told("fay", string(whyNot.before))
		})
	}
}

// Telegram asks for a pause: nothing is sent to that chat before it is over, and the card soon after.
func TestAPauseThatTelegramAsksForIsKept(t *testing.T) {
	const pause = 2 * time.Second
	s := newEnv(t)
	s.server.FailNext("sendMessage", 1, telegramtest.TooManyRequests(pause))
	s.ask(network("x"))
	s.card("fay", "x")
	var times []time.Time
	for _, c := range s.server.Calls() {
		if c.Method == "sendMessage" && strings.Contains(c.Params["text"], "network access") {
			times = append(times, c.At, c.Ended)
		}
	}
	if len(times) != 4 {
		t.Fatalf("%d calls; want two", len(times)/2)
	}
	if waited := times[2].Sub(times[1]); waited < pause || waited > pause*11/10 {
		t.Errorf("it was tried again after %v; want %v, within a tenth", waited, pause)
	}
}

// The answer to a sent card is lost, so it is sent twice: one of the two decides, once, and neither keeps its buttons.
func TestACardThatIsThereTwiceDecidesOnce(t *testing.T) {
	s := newEnv(t)
	s.server.FailNext("sendMessage", 1, telegramtest.ReplyLost())
	call := s.ask(network("x"))
	s.until("it is there twice", func() bool { return s.sent("fay", withButtons) == 2 })
	s.until("the card is noted", s.upToDate)
	var cards []telegramtest.Message
	for _, m := range s.phones["fay"].Messages() {
		if withButtons(m) {
			cards = append(cards, m)
		}
	}
	s.taps("fay", cards[0], "Allow once", "shown again below")
	s.waits(call)
	s.taps("fay", cards[1], "Allow once", "✅ You allowed this once")
	s.get(call, permissions.Approved)
	s.becomes("fay", cards[1].ID, "✅ You allowed this once")
	s.becomes("fay", cards[0].ID, "network access")
}

// sick waits until the health says something.
func (s *env) sick(want string) {
	s.t.Helper()
	s.until("the health says "+want, func() bool {
		err := s.bot.Health()
		return err != nil && strings.Contains(err.Error(), want)
	})
	if text := s.bot.Health(); text != nil && leaked(text.Error(), string(s.token)) != "" {
		s.t.Errorf("the health holds the token: %v", text)
	}
}

func (s *env) well() {
	s.t.Helper()
	s.until("the health is good", func() bool { return s.bot.Health() == nil })
}

func TestHealthTurnsRedAndTellsNoSecret(t *testing.T) {
	t.Run("another token", func(t *testing.T) {
		s := newEnv(t, func(s *env) { s.token = "123456789:ANOTHER-TOKEN_THAT-IS-NOT-ACCEPTED0" })
		s.sick("does not accept the bot's token")
		call := s.ask(network("x"))
		s.until("a card was tried", func() bool { return strings.Contains(s.logged.String(), "update prompts of a request: retrying") })
		s.waits(call)
	})
	t.Run("no server", func(t *testing.T) {
		s := newEnv(t)
		s.well()
		s.server.Down()
		s.sick("no contact with Telegram")
		call := s.ask(network("x"))
		s.until("a card was tried", func() bool { return strings.Contains(s.logged.String(), "update prompts of a request: retrying") })
		if err := s.server.Up(); err != nil {
			t.Fatal(err)
		}
		s.taps("fay", s.card("fay", "x"), "Allow once", "✅")
		s.get(call, permissions.Approved)
		s.well()
	})
	t.Run("a webhook", func(t *testing.T) {
		s := newEnv(t, func(s *env) { s.server.Webhook("https://hooks.example.org/secret-path") })
		s.sick("the bot has a webhook")
		if strings.Contains(s.bot.Health().Error(), "secret-path") {
			t.Errorf("the health tells the path: %v", s.bot.Health())
		}
	})
	t.Run("another poller", func(t *testing.T) {
		s := newEnv(t)
		s.well()
		other := newAPI(s.token, s.server.URL(), slog.New(slog.DiscardHandler))
		defer other.close()
		ctx, cancel := canceled(t)
		done := make(chan error, 1)
		go func() {
			var err error
			for ctx.Err() == nil { // what comes between two polls of ours ends in the other's conflict, not in ours
				err = errors.Join(err, other.call(ctx, "getUpdates", map[string]any{"timeout": 50, "offset": 0}, nil))
			}
			done <- err
		}()
		s.sick("another program polls")
		cancel()
		if err := <-done; err == nil || leaked(err.Error(), string(s.token)) != "" {
			t.Errorf("the other poll ended with %v", err)
		}
	})
}

// A stop in the middle of a long poll takes less than a second, whatever hangs besides, and the cards are told.
func TestAStopTakesLessThanASecond(t *testing.T) {
	for _, c := range []struct {
		name   string
		hangs  string
		cards  int
		people []string
	}{
		{"alone", "", 0, nil},
		{"with cards", "", 3, nil},
		{"while toasts hang", "answerCallbackQuery", 1, nil},
		{"while edits hang", "editMessageText", 2, nil},
		{"while everything hangs", "", 2, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newEnv(t, asking(engine.Route{Ask: []string{"fay", "sam"}}))
			for i := range c.cards {
				s.asked(strings.Repeat("x", i+1))
			}
			if c.name == "while everything hangs" || c.hangs != "" {
				s.server.FailNext(c.hangs, -1, telegramtest.Hang())
			}
			if c.cards > 0 {
				m := s.card("fay", "x")
				s.phones["fay"].TapsData(m.ID, "what")
			}
			s.stopsSoon()
			if c.cards > 0 && c.hangs != "editMessageText" && c.name != "while everything hangs" {
				for _, who := range []string{"fay", "sam"} {
					s.told(who, "daycared is not running")
					if n := s.sent(who, withButtons); n != 0 {
						t.Errorf("%d cards of %s have buttons", n, who)
					}
				}
			}
		})
	}
}

// A token that was renewed is used without a restart; one of another bot is not.
func TestATokenIsRenewed(t *testing.T) {
	old := strings.Repeat("x", 35)
	s := newEnv(t, func(s *env) {
		id, _, _ := strings.Cut(s.server.Token(), ":")
		s.token = Token(id + ":" + old)
	})
	s.sick("does not accept the bot's token")
	if err := s.bot.Renew(Token("1" + s.server.Token())); err == nil {
		t.Error("the token of another bot is taken")
	}
	if err := s.bot.Renew(Token(s.server.Token())); err != nil {
		t.Fatal(err)
	}
	s.well()
	if got := s.bot.api.hide(s.server.Token() + " " + old); strings.Contains(got, old) || strings.Contains(got, s.server.Token()) {
		t.Errorf("not hidden: %s", got)
	}
}

func (s *env) stopsSoon() {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), longEnough)
	defer done()
	_ = s.server.Polling(ctx) // unless that hangs as well
	before := time.Now()
	s.stop()
	if took := time.Since(before); took > time.Second {
		s.t.Errorf("the stop took %v", took)
	}
}

// Errors that this package gives hold no token, wherever they come from.
func TestErrorsHoldNoToken(t *testing.T) {
	s := newEnv(t, impatient)
	p := connectors.Prompt{To: s.settings.People[0], Request: network("x"), Code: "K7F3Q"}
	for _, fault := range []telegramtest.Fault{
		telegramtest.InternalError(), telegramtest.Reset(), telegramtest.Hang(), telegramtest.ReplyLost(),
		telegramtest.Refuse(400, "Bad Request: your token is "+string(s.token)), telegramtest.Refuse(404, "Not Found"),
	} {
		s.server.FailNext("sendMessage", 1, fault)
		if _, err := s.bot.Send(t.Context(), p); err == nil || leaked(err.Error(), string(s.token)) != "" {
			t.Errorf("%s: %v", fault, err)
		}
		s.server.FailNext("editMessageText", 1, fault)
		if err := s.bot.Edit(t.Context(), "2001:1", p); err == nil || leaked(err.Error(), string(s.token)) != "" {
			t.Errorf("%s: %v", fault, err)
		}
	}
	s.server.Down()
	if _, err := s.bot.Send(t.Context(), p); err == nil || leaked(err.Error(), string(s.token)) != "" {
		t.Error(err)
	}
	s.stop()
	if _, err := s.bot.Send(t.Context(), p); !errors.Is(err, errStopped) {
		t.Errorf("after the stop: %v", err)
	}
}
