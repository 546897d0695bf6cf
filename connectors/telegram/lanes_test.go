package telegram

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// heldUp is how long one chat may delay another person's first card.
const heldUp = 500 * time.Millisecond

// others adds people who are asked for what carries their tag; all else is asked of fay.
func others(n int) with {
	return func(s *env) {
		s.paced = true
		s.settings.Routes = nil
		for i := range n {
			name := fmt.Sprintf("p%d", i)
			s.enrol(name, int64(3000+i)).Start("")
			s.settings.Routes = append(s.settings.Routes, engine.Route{Tags: []permissions.Tag{tagOf(s.t, i)}, Ask: []string{name}})
		}
		s.settings.Routes = append(s.settings.Routes, engine.Route{Ask: []string{"fay"}})
	}
}

func tagOf(t testing.TB, i int) permissions.Tag {
	t.Helper()
	tag, err := permissions.ParseTag(fmt.Sprintf("@read:/p%d", i))
	if err != nil {
		t.Fatal(err)
	}
	return tag
}

// Whatever fay's chat is kept busy with, the first card of others is sent at once: half of them at least, so that a busy
// machine is not taken for a busy chat, and all of them while fay's chat is still busy.
func TestOneChatHoldsUpNoOther(t *testing.T) {
	for name, busy := range map[string]func(s *env){
		"E2/a call that hangs": func(s *env) {
			s.server.FailNext("sendMessage", 1, telegramtest.Hang())
			s.ask(network("it hangs."))
			s.until("it hangs", func() bool { return len(s.calls("fay", "sendMessage")) == 1 })
		},
		"E2/an answer that is slow": func(s *env) {
			s.server.FailNext("sendMessage", 1, telegramtest.Slow(time.Hour))
			s.ask(network("it is slow."))
			s.until("it is sent", func() bool { return len(s.calls("fay", "sendMessage")) == 1 })
		},
		"F1/a burst of questions": func(s *env) {
			for i := range 60 {
				s.ask(network(fmt.Sprintf("one of many, %d.", i)))
			}
			s.until("the burst is used up", func() bool { return len(s.calls("fay", "sendMessage")) >= personBurst })
		},
		"F2/calls that come and go": func(s *env) {
			for i := range 4 {
				q := network(fmt.Sprintf("it comes and goes, %d.", i))
				go func() {
					for s.t.Context().Err() == nil {
						brief, done := context.WithTimeout(s.t.Context(), 100*time.Millisecond)
						_, _ = s.Ask(brief, permissions.CallerUID(1000), q)
						done()
						select {
						case <-time.After(1100 * time.Millisecond):
						case <-s.t.Context().Done():
						}
					}
				}()
			}
			brief, leave := context.WithCancel(s.t.Context())
			s.asks(brief, network("it goes for good."))
			s.card("fay", "it goes for good.")
			leave() // whether an edit says that the others left depends on when the daemon looks
			s.until("it was told that somebody left", func() bool { return len(s.calls("fay", "editMessageText")) > 0 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			const people = 5
			s := newEnv(t, others(people))
			busy(s)
			var took []time.Duration
			for i := range people {
				q := network(fmt.Sprintf("somebody else's %d.", i))
				q.Tags = []permissions.Tag{tagOf(t, i)}
				began := time.Now()
				s.ask(q)
				s.card(fmt.Sprintf("p%d", i), q.Reason)
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			if took[people/2] > heldUp {
				t.Errorf("the cards of others took %v", took)
			}
			t.Log(took)
			if s.upToDate() {
				t.Error("fay's chat was not busy")
			}
		})
	}
}

// A card whose chat does not answer is given up when its time is over, though the call still hangs: those whom the
// request escalates to are asked then.
func TestACardThatHangsIsGivenUpInTime(t *testing.T) {
	s := newEnv(t, func(s *env) {
		s.settings.Routes[0].Escalate.Moment, s.settings.Routes[0].Escalate.To = engine.Moment{Percent: 90}, []string{"sam"}
		s.settings.Approvals.DeliverWithin = 10 * time.Second
	})
	s.server.FailNext("sendMessage", 1, telegramtest.Hang())
	call := s.ask(network("x"))
	s.until("it hangs", func() bool { return len(s.calls("fay", "sendMessage")) == 1 })
	s.server.Advance(11 * time.Second)
	s.taps("sam", s.card("sam", "x"), "Allow once", "✅")
	s.get(call, permissions.Approved)
	if ended := s.calls("fay", "sendMessage")[0].Ended; !ended.IsZero() {
		t.Error("the call had ended")
	}
}

// One chat has 200 cards to come, and ten others one each, all at the same time.
func TestABurstInOneChatHoldsUpNoOther(t *testing.T) {
	t.Run("F1/200 cards in one chat", func(t *testing.T) {
		const burst, people = 200, 10
		s := newEnv(t, others(people))
		for i := range burst {
			s.ask(network(fmt.Sprintf("one of many, %d.", i)))
		}
		s.until("all of them wait, and the burst is used up", func() bool {
			n, err := s.CountPending(t.Context())
			return err == nil && n == burst && len(s.calls("fay", "sendMessage")) > personBurst
		})
		began := time.Now()
		for i := range people {
			q := network(fmt.Sprintf("somebody else's %d.", i))
			q.Tags = []permissions.Tag{tagOf(t, i)}
			s.ask(q)
		}
		var took []time.Duration
		for i := range people {
			s.card(fmt.Sprintf("p%d", i), "somebody else's")
			took = append(took, time.Since(began))
		}
		if slices.Sort(took); took[people/2] > heldUp || took[people-1] > 2*heldUp { // a busy machine is no busy chat
			t.Errorf("the cards of others took %v", took)
		}
		t.Log(took)
		if s.upToDate() {
			t.Error("fay's chat was not busy")
		}
	})
}
