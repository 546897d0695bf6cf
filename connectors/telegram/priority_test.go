package telegram

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/permissions"
)

// Cards and their ends go before the answers to whatever anybody writes: half of them at once, so that a busy machine is
// not taken for a busy channel.
func TestWhatIsWrittenToTheBotHoldsUpNoCard(t *testing.T) {
	const people, waiting = 40, 5
	for name, write := range map[string]func(s *env){
		"E2/400 strangers": func(s *env) {
			for i := range 400 {
				s.server.Person(telegramtest.User{ID: int64(9000 + i), FirstName: "hi"}).Start("")
			}
		},
		"E2/400 strangers with a wrong link": func(s *env) {
			for i := range 400 {
				s.server.Person(telegramtest.User{ID: int64(9000 + i), FirstName: "hi"}).Start("nonsense")
			}
		},
		"E2/commands of many people": func(s *env) {
			for i := range 5 * people {
				s.phones[fmt.Sprintf("p%d", i%people)].Writes("/pending")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, others(people+waiting))
			write(s)
			s.until("answers are sent", func() bool { return slices.ContainsFunc(s.server.Calls(), isAnswer) })
			began := time.Now()
			for i := range waiting {
				q := network(fmt.Sprintf("in between, %d.", i))
				q.Tags = s.settings.Routes[people+i].Tags
				s.ask(q)
			}
			var shown, ended []time.Duration
			var cards [waiting]telegramtest.Message
			for i := range waiting {
				cards[i] = s.card(fmt.Sprintf("p%d", people+i), "in between")
				shown = append(shown, time.Since(began))
			}
			for i, m := range cards {
				who := fmt.Sprintf("p%d", people+i)
				s.taps(who, m, "⛔ Deny", "⛔")
				began = time.Now()
				s.becomes(who, m.ID, "⛔ You denied this")
				ended = append(ended, time.Since(began))
			}
			slices.Sort(shown)
			slices.Sort(ended)
			if shown[waiting/2] > heldUp || ended[waiting/2] > heldUp {
				t.Errorf("cards took %v, and their ends %v", shown, ended)
			}
			t.Log(shown, ended)
		})
	}
}

// isAnswer reports whether a call replies to what a person wrote.
func isAnswer(c telegramtest.Call) bool {
	text := c.Params["text"]
	return c.Method == "sendMessage" && (strings.Contains(text, "does not know you") || text == toLate || c.Params["reply_parameters"] != "")
}

// However much a person writes, their own card comes next, and it is kept up to date.
func TestOnesOwnCommandsHoldUpNoCard(t *testing.T) {
	s := newEnv(t, func(s *env) { s.paced = true })
	for range 200 {
		s.phones["fay"].Writes("/pending")
	}
	s.until("answers are sent", func() bool { return len(s.calls("fay", "sendMessage")) >= 2 })
	for i := range 3 {
		began := time.Now()
		s.ask(network(fmt.Sprintf("in between, %d.", i)))
		m := s.card("fay", fmt.Sprintf("in between, %d.", i))
		shown := time.Since(began)
		s.taps("fay", m, "Allow once", "✅")
		began = time.Now()
		s.becomes("fay", m.ID, "✅ You allowed")
		if ended := time.Since(began); shown > 2*time.Second || ended > 4*time.Second {
			t.Errorf("the card took %v, and its end %v", shown, ended)
		} else {
			t.Log(shown, ended)
		}
	}
}

// narrow leaves no room to send to a person for a while.
func (s *env) narrow(who string, d time.Duration) {
	l := &lane{limit: rate.NewLimiter(rate.Every(d), 1), talk: rate.NewLimiter(rate.Inf, 1)}
	l.limit.Allow()
	s.bot.pace.mu.Lock()
	defer s.bot.pace.mu.Unlock()
	s.bot.pace.chats[ids[who]] = l
}

// held waits until a message to a person waits for room.
func (s *env) held(who string) {
	s.t.Helper()
	s.until("something waits for its turn", func() bool {
		s.bot.pace.mu.Lock()
		defer s.bot.pace.mu.Unlock()
		return s.bot.pace.chats[ids[who]].users > 0
	})
}

// A card of a request that ends while it waits for its turn is never sent, and nothing says that it was shown.
func TestACardWhoseRequestEndsBeforeItsTurnIsNotSent(t *testing.T) {
	for name, details := range map[string]string{"E2/a card": "", "E2/a card with a file": strings.Repeat("long\n", 5000)} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.narrow("fay", 2*time.Second)
			q := network("too late")
			q.Details = details
			call := s.ask(q)
			s.held("fay")
			s.decide("fay", permissions.Deny)
			r := s.get(call, permissions.Denied)
			var copies []permissions.Copy
			s.until("it is given up", func() (over bool) {
				copies, _ = s.rows.Copies(t.Context(), r.ID)
				return len(copies) == 1 && (copies[0].Failed != "" || !copies[0].SentAt.IsZero())
			})
			if sent := len(s.calls("fay", "sendMessage")) + len(s.calls("fay", "sendDocument")); sent > 0 || copies[0].Failed == "" {
				t.Errorf("%d messages were sent: %+v", sent, copies)
			}
			if n := s.audited(permissions.RequestShown)[r.ID]; n != 0 {
				t.Errorf("showing it was audited %d times", n)
			}
		})
	}
}

// A card is shown when Telegram has it: not while it waits for its turn, nor while Telegram does not answer.
func TestACardIsShownWhenTelegramHasIt(t *testing.T) {
	s := newEnv(t)
	s.narrow("fay", 2*time.Second)
	answer := s.hold()
	call := s.ask(network("later"))
	m := s.card("fay", "later")
	s.decide("fay", permissions.Deny)
	r := s.get(call, permissions.Denied)
	answer()
	s.becomes("fay", m.ID, "⛔ You denied this")
	s.until("the card is noted", s.upToDate)
	copies, err := s.rows.Copies(t.Context(), r.ID)
	if err != nil || len(copies) != 1 || copies[0].SentAt.Before(r.DecidedAt) || copies[0].SentAt.Before(s.calls("fay", "sendMessage")[0].At) {
		t.Errorf("shown at %v, sent at %v and denied at %v: %v", copies[0].SentAt, s.calls("fay", "sendMessage")[0].At, r.DecidedAt, err)
	}
}

// Who answers before Telegram says that it has the card was shown it before that, and not before it was sent.
func TestAnAnswerBeforeTelegramsIsToACardThatWasSent(t *testing.T) {
	s := newEnv(t)
	const every = 2 * time.Second
	turn := time.Now().Add(every).Truncate(time.Microsecond) // not before it
	s.narrow("fay", every)
	answer := s.hold()
	call := s.ask(network("quick"))
	m := s.card("fay", "quick")
	s.phones["fay"].Writes("yes " + codeIn(m))
	r := s.get(call, permissions.Approved)
	answer()
	s.becomes("fay", m.ID, "✅ You allowed this once")
	copies, err := s.rows.Copies(t.Context(), r.ID)
	if err != nil || len(copies) != 1 || copies[0].SentAt.After(r.DecidedAt) || copies[0].SentAt.Before(turn) {
		t.Errorf("shown at %v, sent from %v and allowed at %v: %v", copies[0].SentAt, turn, r.DecidedAt, err)
	}
}

// A call that hangs, which sends the card of what is over by then, does not keep its person's next card long.
func TestACallForWhatIsOverHoldsNoCardUp(t *testing.T) {
	s := newEnv(t)
	call, _, _ := s.late("fay", "over.")
	s.decide("fay", permissions.Deny)
	s.get(call, permissions.Denied)
	began := time.Now()
	s.ask(network("next."))
	s.card("fay", "next.")
	if took := time.Since(began); took > callLimit/2 {
		t.Errorf("it came after %v", took)
	}
}
