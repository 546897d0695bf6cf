package acp_test

import (
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
)

// An agent that requires signing in is signed in with the configured method: once per program, and again only after the
// sign-in expired. Its conversation is still loaded.
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

// An agent that reports a missing sign-in only when prompted is not prompted twice: fay is told, and another program
// gets her next message.
func TestAMissingSignInIsReportedOnce(t *testing.T) {
	s := play(t, "shy")
	s.writes("say hello")
	text := s.hears("I cannot go on: it is not signed in (Authentication required).")
	if strings.Contains(text, "reaches its workspace") || !strings.Contains(text, "acp_auth of its entry") {
		t.Errorf("it says %q", text)
	}
	s.stands("coder", permissions.Interrupted)
}

// A failed sign-in is reported with its reason and the other methods; a conversation that waits for it is kept.
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
