package telegram

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
)

// Cards and their ends go before the answers to whatever anybody writes: half of them at once, so that a busy machine is
// not taken for a busy channel.
func TestWhatIsWrittenToTheBotHoldsUpNoCard(t *testing.T) {
	const people, waiting = 40, 5
	for name, write := range map[string]func(s *stage){
		"E2/400 strangers": func(s *stage) {
			for i := range 400 {
				s.server.Person(telegramtest.User{ID: int64(9000 + i), FirstName: "hi"}).Start("")
			}
		},
		"E2/400 strangers with a wrong link": func(s *stage) {
			for i := range 400 {
				s.server.Person(telegramtest.User{ID: int64(9000 + i), FirstName: "hi"}).Start("nonsense")
			}
		},
		"E2/commands of many people": func(s *stage) {
			for i := range 5 * people {
				s.phones[fmt.Sprintf("p%d", i%people)].Writes("/pending")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := play(t, others(people+waiting))
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
				s.becomes(who, m.ID, "⛔ Denied by")
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

// isAnswer reports whether a call answers what somebody wrote.
func isAnswer(c telegramtest.Call) bool {
	text := c.Params["text"]
	return c.Method == "sendMessage" && (strings.Contains(text, "does not know you") || text == toLate || c.Params["reply_parameters"] != "")
}

// However much somebody writes, their own card comes next, and what they are told about it is brought up to date.
func TestOnesOwnCommandsHoldUpNoCard(t *testing.T) {
	s := play(t, func(s *stage) { s.paced = true })
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
		s.becomes("fay", m.ID, "✅ Allowed")
		if ended := time.Since(began); shown > 2*time.Second || ended > 4*time.Second {
			t.Errorf("the card took %v, and its end %v", shown, ended)
		} else {
			t.Log(shown, ended)
		}
	}
}
