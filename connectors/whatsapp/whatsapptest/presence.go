package whatsapptest

import (
	"slices"
	"time"

	"go.mau.fi/whatsmeow/binary"
)

// Typing is what the account told somebody of its writing.
type Typing struct {
	At    time.Time
	To    string // the number
	State string // composing or paused
}

// Typings are what the account told of its writing, in the order in which it came.
func (s *Server) Typings() []Typing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.typing)
}

// Presence is what the account last told of itself: available, unavailable, or nothing yet.
func (s *Server) Presence() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.presence
}

func (s *Server) takeTyping(node *binary.Node) {
	a := s.accounts[address(*node, "to").User]
	states := node.GetChildren()
	if a == nil || len(states) != 1 || (states[0].Tag != "composing" && states[0].Tag != "paused") {
		s.violate("a state %s", node.String())
		return
	}
	s.typing = append(s.typing, Typing{At: s.now(), To: a.pn.User, State: states[0].Tag})
}
