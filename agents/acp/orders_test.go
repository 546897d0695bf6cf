package acp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// /stop cancels the turn and its requests at once, and the program keeps running.
func TestStop(t *testing.T) {
	s := play(t)
	s.writes("remember", ask("execute", `{"command":"make"}`), "say never")
	s.card(1)
	s.orders(permissions.OrderStop)
	s.settled(1, permissions.Cancelled)
	s.hears(`{"outcome":{"outcome":"cancelled"}}`)
	s.stands("coder", permissions.Interrupted)
	s.writes("calls "+strings.TrimPrefix(ask("execute", `{}`), "call "), "wait", "say never")
	s.card(2)
	s.orders(permissions.OrderStop)
	s.settled(2, permissions.Cancelled)
	s.stands("coder", permissions.Interrupted)
	s.writes("remember")
	s.hears("prompt 3 of")
	if strings.Contains(s.phone.Seen(), "never") {
		t.Errorf("it went on:\n%s", s.phone.Seen())
	}
}

// An agent that does not stop is killed within an order's two seconds.
func TestAnAgentThatDoesNotStopIsKilled(t *testing.T) {
	s := play(t)
	s.writes("calls "+strings.TrimPrefix(ask("execute", `{}`), "call "), "deaf")
	s.card(1) // it no longer reads
	s.orders(permissions.OrderStop)
	s.hears("I did not stop when I was told to, so my program was ended")
	s.writes("remember")
	s.hears("prompt 2 of") // the same conversation in a new program
}

// A start that hangs is given up; /stop does not wait for it.
func TestMute(t *testing.T) {
	s := playAll(t, cast{name: "coder", person: "fay", like: []string{"mute"}, start: 2 * time.Second})
	s.writes("say hello")
	s.stands("coder", permissions.Running)
	s.orders(permissions.OrderStop)
	s.stands("coder", permissions.Interrupted)
	s.writes("say hello")
	s.hears("I cannot go on: it gives no answer in time")
}

// /new begins another conversation, and /quit ends the program; the next message starts over.
func TestNewAndQuit(t *testing.T) {
	s := play(t)
	s.orders(permissions.OrderNew)
	s.writes("remember")
	first := s.hears("prompt 1 of conversation-")
	s.orders(permissions.OrderNew)
	before := s.stands("coder", permissions.Idle)
	s.writes("remember", "say another")
	second := s.hears("another")
	if strings.TrimSpace(strings.Split(first, " of ")[1]) == strings.TrimSpace(strings.Fields(strings.Split(second, " of ")[1])[0]) {
		t.Errorf("it is the same conversation: %q and %q", first, second)
	}
	s.writes("wait")
	s.stands("coder", permissions.Running)
	s.orders(permissions.OrderQuit)
	ended, err := s.rows.AgentSession(t.Context(), before.ID)
	if err != nil || ended.EndedAt.IsZero() {
		t.Errorf("the session goes on: %+v, %v", ended, err)
	}
	if _, open, err := s.rows.CurrentSession(t.Context(), "coder"); open || err != nil {
		t.Errorf("there is a session, %v", err)
	}
	s.orders(permissions.OrderQuit)
	s.writes("remember", "say anew")
	if text := s.hears("anew"); !strings.Contains(text, "prompt 1 of") {
		t.Errorf("it says %q", text)
	}
}

// A stop ends the turn and the program, and nothing is started until resume.
func TestKillSwitch(t *testing.T) {
	s := play(t)
	s.writes(ask("execute", `{"command":"make"}`))
	s.card(1)
	atFay := connectors.Identity{Via: "phone", UID: fay.UID}
	if _, err := s.StopAll(t.Context(), atFay); err != nil {
		t.Fatal(err)
	}
	s.settled(1, permissions.Cancelled)
	s.stands("coder", permissions.Interrupted)
	s.writes("say hello")
	s.hears("everything was stopped")
	if err := s.Resume(t.Context(), atFay); err != nil {
		t.Fatal(err)
	}
	s.writes("say back")
	s.hears("back")
}

// A question outside a turn is cancelled or refused.
func TestAQuestionOutsideATurnIsRefused(t *testing.T) {
	s := play(t)
	s.writes("calls fs/read_text_file "+`{"sessionId":"$S","path":"`+s.at("x")+`"}`, "stop end_turn")
	s.hears("fs/read_text_file")
	if strings.Contains(s.phone.Seen(), "gives") {
		t.Errorf("it was read:\n%s", s.phone.Seen())
	}
}
