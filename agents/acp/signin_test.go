package acp_test

import (
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
)

// An agent that requires signing in is signed in with the configured method: once per program, and again only after the
// sign-in expired. Its conversation is still loaded.
func TestSignIn(t *testing.T) {
	s := newEnvWith(t, testAgent{name: "coder", person: "fay", like: []string{"locked", "shy"}, auth: "key"})
	s.write("remember")
	before := s.waitMessage("prompt 1 of conversation-")
	s.write("say Still here.", "expire")
	s.waitMessage("I was signed in 1 times")
	s.write("say Once more.", "expire")
	s.waitMessage("I was signed in 2 times")
	s.write("crash")
	s.waitMessage("its program has ended")
	s.write("remember")
	_, name, _ := strings.Cut(strings.TrimSpace(before), " of ")
	s.waitMessage("prompt 5 of " + name)
	s.waitActivity("coder", permissions.Idle)
}

// An agent that reports a missing sign-in only when prompted is not prompted twice: fay is told, and another program
// gets her next message.
func TestAMissingSignInIsReportedOnce(t *testing.T) {
	s := newEnv(t, "shy")
	s.write("say hello")
	text := s.waitMessage("I cannot go on: it is not signed in (Authentication required).")
	if strings.Contains(text, "reaches its workspace") || !strings.Contains(text, "acp_auth of its entry") {
		t.Errorf("it says %q", text)
	}
	s.waitActivity("coder", permissions.Interrupted)
}

// A failed sign-in is reported with its reason and the other methods; a conversation that waits for it is kept.
func TestSignInFails(t *testing.T) {
	s := newEnv(t)
	s.write("remember")
	before := s.waitMessage("prompt 1 of conversation-")
	s.stop()
	s.testAgents[0].like, s.testAgents[0].auth = []string{"locked"}, "login"
	s.open()
	s.write("remember")
	s.waitMessage("it is not signed in (signing it in by \"login\" fails: there is no browser). It offers:\n- \"login\"")
	s.stop()
	s.testAgents[0].auth = "key"
	s.open()
	s.write("remember")
	_, name, _ := strings.Cut(strings.TrimSpace(before), " of ")
	s.waitMessage("prompt 2 of " + name)
}
