package acp_test

import (
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
)

// One that has to be signed in is, by the way that the configuration names, when it asks for that: once in a program's life,
// and again only when it was signed in no longer. Its conversation is loaded all the same.
func TestSignIn(t *testing.T) {
	s := playAll(t, cast{name: "coder", person: "fay", like: []string{"locked", "shy"}, auth: "key"})
	s.writes("remember")
	before := s.hears("prompt 1 of conversation-")
	s.writes("say Still here.", "expire")
	s.hears("I was signed in 1 times")
	s.writes("say Once more.", "expire")
	s.hears("I was signed in 2 times")
	s.writes("crash")
	s.hears("its program has ended")
	s.writes("remember")
	_, name, _ := strings.Cut(strings.TrimSpace(before), " of ")
	s.hears("prompt 5 of " + name)
	s.stands("coder", permissions.Idle)
}

// One that says only when it is prompted that it is not signed in is asked nothing twice: fay is told, and another program
// hears her next message.
func TestSignInOfOneThatIsShy(t *testing.T) {
	s := play(t, "shy")
	s.writes("say hello")
	text := s.hears("I cannot go on: it is not signed in (Authentication required).")
	if strings.Contains(text, "reaches its workspace") || !strings.Contains(text, "acp_auth of its entry") {
		t.Errorf("it says %q", text)
	}
	s.stands("coder", permissions.Interrupted)
}

// A way that fails is told with why, and the others with it; a conversation that waits for it is not given up.
func TestSignInFails(t *testing.T) {
	s := play(t)
	s.writes("remember")
	before := s.hears("prompt 1 of conversation-")
	s.stop()
	s.casts[0].like, s.casts[0].auth = []string{"locked"}, "login"
	s.open()
	s.writes("remember")
	s.hears("it is not signed in (signing it in by \"login\" fails: there is no browser). It offers:\n- \"login\"")
	s.stop()
	s.casts[0].auth = "key"
	s.open()
	s.writes("remember")
	_, name, _ := strings.Cut(strings.TrimSpace(before), " of ")
	s.hears("prompt 2 of " + name)
}
