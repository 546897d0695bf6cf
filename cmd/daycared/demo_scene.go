package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// scene is the demo's screen. What scribe says and what it asks reach it by two ways, so it puts them in order: words come
// before the question that they lead to, and after the answer that they follow from.
type scene struct {
	screen
	ran    func(permissions.Request) (string, error) // what to say of a command that was allowed and has run
	failed func()                                    // called when something is wrong
	over   func()                                    // called at the end of the job

	mu       sync.Mutex
	counted  tally
	asks     permissions.ID // the question on the screen; empty while there is none
	spoke    bool           // something was said since the last answer
	words    []string       // to be said
	heard    map[string]bool
	card     *connectors.Prompt   // to be asked
	allowed  *permissions.Request // a command whose effect was not looked at yet
	finished bool                 // the job
	done     bool                 // and all of it was shown
	wrong    error
}

// tally is what the last lines count.
type tally struct {
	asked                                           int // and answered
	allowed, denied, chosen, continued, interrupted int
	waited                                          time.Duration
}

func (s *scene) tally() tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counted
}

// ended reports whether the job has come to its end, on the screen as well.
func (s *scene) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// fault is what went wrong first.
func (s *scene) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrong
}

// fail ends the demo.
func (s *scene) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broke(err)
}

// broke notes what went wrong first. The lock is held.
func (s *scene) broke(err error) {
	if s.wrong == nil {
		s.wrong = err
	}
	s.failed()
}

// Send is [connectors.Connector]: the card is shown when it is its turn.
func (s *scene) Send(_ context.Context, p connectors.Prompt) (ref string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.card = &p
	s.turn()
	return string(p.Request.ID), nil
}

// said takes what the agent says. After a kill -9 it may come again, and is not said twice.
func (s *scene) said(m admin.Said) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard[m.Text] {
		return
	}
	if s.heard == nil {
		s.heard = map[string]bool{}
	}
	s.heard[m.Text], s.spoke = true, true
	s.words = append(s.words, staged(m))
	s.turn()
}

// staged is what an agent says as a row of the play: "scribe: Done." or "scribe is done".
func staged(m admin.Said) string {
	text := strings.TrimPrefix(m.Text, m.Agent+": ")
	if first, _ := utf8.DecodeRuneInString(text); unicode.IsLower(first) {
		text = m.Agent + " " + text
	} else {
		text = m.Agent + ": " + text
	}
	return "   " + strings.ReplaceAll(text, "\n", "\n   ")
}

// told is called when the end of a request has been told.
func (s *scene) told(r permissions.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asks != r.ID {
		return
	}
	s.asks, s.spoke = "", len(s.words) > 0 // which follow from the answer, and were faster
	s.counted.count(r)
	if r.Kind == permissions.KindTool && r.State == permissions.Approved {
		s.allowed = &r
	}
	s.turn()
}

func (t *tally) count(r permissions.Request) {
	t.asked++
	t.waited += r.DecidedAt.Sub(r.CreatedAt)
	switch {
	case r.State == permissions.Approved:
		t.allowed++
	case r.State == permissions.Denied:
		t.denied++
	case r.Answer == permissions.Continue:
		t.continued++
	case r.Answer == permissions.Interrupt:
		t.interrupted++
	case r.Choice() != "", r.Answer == permissions.Other:
		t.chosen++
	}
}

// happened follows the job to its end.
func (s *scene) happened(e wire.Event) error {
	if e.Type != permissions.RunFinished {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = true
	if e.Payload["outcome"] == "failed" {
		s.broke(fmt.Errorf("the job has failed: %v", e.Payload["reason"]))
	}
	s.turn()
	return nil
}

// turn shows what is next, unless a question is open. The lock is held. A screen that is gone has nobody before it.
func (s *scene) turn() {
	if s.asks != "" {
		return
	}
	next := s.card != nil && (s.spoke || !speaks(s.card.Request))
	if s.allowed != nil && (next || len(s.words) > 0 || s.finished) {
		s.looked()
	}
	for _, text := range s.words {
		_ = s.Say(text)
	}
	s.words = nil
	switch {
	case next:
		s.asks = s.card.Request.ID
		_, _ = s.screen.Send(context.Background(), *s.card)
		s.card = nil
	case s.finished && s.spoke && s.card == nil: // its last words have come
		s.done = true
		s.over()
	}
}

// speaks reports whether a request comes with words that its agent says besides: they stand as its reason. What is asked
// for by request_permission has a reason of its own.
func speaks(r permissions.Request) bool {
	return r.Kind != permissions.KindPermission && r.Reason != ""
}

// looked says what the command did that was allowed last. The lock is held.
func (s *scene) looked() {
	words, err := s.ran(*s.allowed)
	s.allowed = nil
	if err != nil {
		s.broke(err)
		return
	}
	_ = s.Say("   " + words)
}
