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

// scene is the demo's screen. The agent's messages and its questions arrive separately, so scene orders them: a message precedes
// the question that it leads to, and follows the answer that caused it.
type scene struct {
	screen
	ran    func(permissions.Request) (string, error) // what to print about an allowed command that has run
	failed func()                                    // called on an error
	over   func()                                    // called at the end of the job

	mu       sync.Mutex
	counted  tally
	asks     permissions.ID // the question on the screen; empty if none
	spoke    bool           // a message was shown since the last answer
	words    []string       // messages not yet shown
	heard    map[string]bool
	card     *connectors.Prompt   // the next question
	allowed  *permissions.Request // an allowed command whose effect was not checked yet
	finished bool                 // the job has ended
	done     bool                 // and everything was shown
	wrong    error
}

// tally counts for the summary.
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

// ended reports whether the job has ended and everything was shown.
func (s *scene) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// fault returns the first error.
func (s *scene) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrong
}

// fail ends the demo with an error.
func (s *scene) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broke(err)
}

// broke records the first error. The caller holds the lock.
func (s *scene) broke(err error) {
	if s.wrong == nil {
		s.wrong = err
	}
	s.failed()
}

// Send implements [connectors.Connector]: it queues the card.
func (s *scene) Send(_ context.Context, p connectors.Prompt) (ref string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.card = &p
	s.turn()
	return string(p.Request.ID), nil
}

// said queues an agent's message. One that is repeated after a kill -9 is shown once.
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

// staged formats a message: "scribe: Done." or "scribe is done".
func staged(m admin.Said) string {
	text := strings.TrimPrefix(m.Text, m.Agent+": ")
	if first, _ := utf8.DecodeRuneInString(text); unicode.IsLower(first) {
		text = m.Agent + " " + text
	} else {
		text = m.Agent + ": " + text
	}
	return "   " + strings.ReplaceAll(text, "\n", "\n   ")
}

// told is called when a request's end was shown.
func (s *scene) told(r permissions.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asks != r.ID {
		return
	}
	s.asks, s.spoke = "", len(s.words) > 0 // messages that already arrived follow from the answer
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

// happened watches for the end of the job.
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

// turn shows what is next, unless a question is open. The caller holds the lock. Errors of a closed screen are ignored: nobody
// sees it.
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
	case s.finished && s.spoke && s.card == nil: // its last message was shown
		s.done = true
		s.over()
	}
}

// speaks reports whether the agent also sends a request's reason as a message. A request_permission has a reason of its own.
func speaks(r permissions.Request) bool {
	return r.Kind != permissions.KindPermission && r.Reason != ""
}

// looked prints the effect of the last allowed command. The caller holds the lock.
func (s *scene) looked() {
	words, err := s.ran(*s.allowed)
	s.allowed = nil
	if err != nil {
		s.broke(err)
		return
	}
	_ = s.Say("   " + words)
}
