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
	s := newEnv(t)
	s.write("remember", ask("execute", `{"command":"make"}`), "say never")
	s.card(1)
	s.order(permissions.OrderStop)
	s.waitSettled(1, permissions.Cancelled)
	s.waitMessage(`{"outcome":{"outcome":"cancelled"}}`)
	s.waitActivity("coder", permissions.Interrupted)
	s.write("calls "+strings.TrimPrefix(ask("execute", `{}`), "call "), "wait", "say never")
	s.card(2)
	s.order(permissions.OrderStop)
	s.waitSettled(2, permissions.Cancelled)
	s.waitActivity("coder", permissions.Interrupted)
	s.write("remember")
	s.waitMessage("prompt 3 of")
	if strings.Contains(s.phone.Seen(), "never") {
		t.Errorf("it went on:\n%s", s.phone.Seen())
	}
}

// An agent that does not stop is killed within an order's two seconds.
func TestAnAgentThatDoesNotStopIsKilled(t *testing.T) {
	s := newEnv(t)
	s.write("calls "+strings.TrimPrefix(ask("execute", `{}`), "call "), "deaf")
	s.card(1) // it no longer reads
	s.order(permissions.OrderStop)
	s.waitMessage("I did not stop when I was told to, so my program was ended")
	s.write("remember")
	s.waitMessage("prompt 2 of") // the same conversation in a new program
}

// A start that hangs is given up; /stop does not wait for it.
func TestMute(t *testing.T) {
	s := newEnvWith(t, testAgent{name: "coder", person: "fay", like: []string{"mute"}, start: 2 * time.Second})
	s.write("say hello")
	s.waitActivity("coder", permissions.Running)
	s.order(permissions.OrderStop)
	s.waitActivity("coder", permissions.Interrupted)
	s.write("say hello")
	s.waitMessage("I cannot go on: it gives no answer in time")
}

// A program that hangs in the kernel is left, be it at the start or later, and its person is told.
func TestAProgramThatHangsIsLeft(t *testing.T) {
	for _, how := range []string{"mute", "deaf"} {
		t.Run(how, func(t *testing.T) {
			s := newEnv(t, how, "unkillable")
			s.write("calls "+strings.TrimPrefix(ask("execute", `{}`), "call "), "deaf")
			if s.waitActivity("coder", permissions.Running); how == "deaf" {
				s.card(1) // it no longer reads
			}
			s.order(permissions.OrderStop)
			s.waitMessage("My program was killed, and has not ended yet. It may still do something. " +
				"Write, and it is started anew.")
		})
	}
}

// /new begins another conversation, and /quit ends the program; the next message starts over.
func TestNewAndQuit(t *testing.T) {
	s := newEnv(t)
	s.order(permissions.OrderNew)
	s.write("remember")
	first := s.waitMessage("prompt 1 of conversation-")
	s.order(permissions.OrderNew)
	before := s.waitActivity("coder", permissions.Idle)
	s.write("remember", "say another")
	second := s.waitMessage("another")
	if strings.TrimSpace(strings.Split(first, " of ")[1]) == strings.TrimSpace(strings.Fields(strings.Split(second, " of ")[1])[0]) {
		t.Errorf("it is the same conversation: %q and %q", first, second)
	}
	s.write("wait")
	s.waitActivity("coder", permissions.Running)
	s.order(permissions.OrderQuit)
	ended, err := s.rows.AgentSession(t.Context(), before.ID)
	if err != nil || ended.EndedAt.IsZero() {
		t.Errorf("the session goes on: %+v, %v", ended, err)
	}
	if _, open, err := s.rows.CurrentSession(t.Context(), "coder"); open || err != nil {
		t.Errorf("there is a session, %v", err)
	}
	s.order(permissions.OrderQuit)
	s.write("remember", "say anew")
	if text := s.waitMessage("anew"); !strings.Contains(text, "prompt 1 of") {
		t.Errorf("it says %q", text)
	}
}

// A stop ends the turn and the program, and nothing is started until resume.
func TestKillSwitch(t *testing.T) {
	s := newEnv(t)
	s.write(ask("execute", `{"command":"make"}`))
	s.card(1)
	atFay := connectors.Identity{Via: "phone", UID: fay.UID}
	if _, err := s.StopAll(t.Context(), atFay); err != nil {
		t.Fatal(err)
	}
	s.waitSettled(1, permissions.Cancelled)
	s.waitActivity("coder", permissions.Interrupted)
	s.write("say hello")
	s.waitMessage("everything was stopped")
	if err := s.Resume(t.Context(), atFay); err != nil {
		t.Fatal(err)
	}
	s.write("say back")
	s.waitMessage("back")
}

// A stop of the agent alone ends its turn and its program, that of another one does not.
func TestAStopOfTheAgentEndsItsProgram(t *testing.T) {
	s := newEnvWith(t, testAgent{name: "coder", person: "fay"}, testAgent{name: "other", person: "fay"})
	boss := connectors.Identity{Via: "cli", Operator: true}
	s.write(ask("execute", `{"command":"make"}`), "wait")
	s.card(1)
	if _, _, err := s.StopAgent(t.Context(), boss, "other"); err != nil {
		t.Fatal(err)
	}
	if now := s.own[0].Activity(); now != permissions.AwaitingUser {
		t.Errorf("after the stop of another one it is %s", now)
	}
	if _, _, err := s.StopAgent(t.Context(), boss, "coder"); err != nil {
		t.Fatal(err)
	}
	s.waitActivity("coder", permissions.Interrupted)
	s.write("say hello")
	s.waitMessage("I stop here: everything was stopped, or I alone.")
	if _, err := s.ResumeAgent(t.Context(), boss, "coder"); err != nil {
		t.Fatal(err)
	}
	s.write("remember", "say back")
	s.waitMessage("back")
}

// A question outside a turn is cancelled or refused.
func TestAQuestionOutsideATurnIsRefused(t *testing.T) {
	s := newEnv(t)
	s.write("calls fs/read_text_file "+`{"sessionId":"$S","path":"`+s.at("x")+`"}`, "stop end_turn")
	s.waitMessage("fs/read_text_file")
	if strings.Contains(s.phone.Seen(), "gives") {
		t.Errorf("it was read:\n%s", s.phone.Seen())
	}
}
