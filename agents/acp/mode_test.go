package acp_test

import (
	"strings"
	"testing"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// An agent that begins in a mode without questions is put into the one that asks, or the configured one, before it is
// prompted: in new and loaded conversations, with either form of modes.
func TestAnAgentIsInTheModeThatAsks(t *testing.T) {
	for _, c := range []struct{ name, like, mode, in string }{
		{"modes of the protocol", "modes", "", "default"},
		{"modes as an option", "options", "", "default"},
		{"the configured one", "modes", "plan", "plan"},
		{"one that the configuration allows to act", "options", "yolo", "yolo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newEnvWith(t, testAgent{name: "coder", person: "fay", like: []string{c.like}, mode: c.mode})
			s.write("remember")
			s.waitMessage("prompt 1 in " + c.in)
			s.restart()
			s.write("remember")
			s.waitMessage("prompt 2 in " + c.in)
		})
	}
}

// An agent that enters a mode in which it may act without asking loses its turn, and gets its next one in the mode that
// asks. A mode that only plans is permitted.
func TestATurnThatLeavesTheModesThatAskEnds(t *testing.T) {
	for _, like := range []string{"modes", "options"} {
		t.Run(like, func(t *testing.T) {
			s := newEnv(t, like)
			s.write("mode plan", "remember")
			s.waitMessage("prompt 1 in plan")
			s.waitActivity("coder", permissions.Idle)
			s.write("mode auto", "wait", "say It was not stopped.")
			s.waitMessage(`I cannot go on: it went into the mode "auto" by itself, where it may act without asking.`)
			s.waitActivity("coder", permissions.Interrupted)
			s.write("remember")
			s.waitMessage("prompt 3 in default")
			s.write("mode auto", "calls "+strings.TrimPrefix(ask("execute", `{}`), "call "), "deaf") // until its program ends
			s.waitMessage("I did not stop when I was told to, so my program was ended")
			if copies := s.phone.Copies(); len(copies) != 0 {
				t.Errorf("in a mode in which it may not be, it asks %v", copies[0].First.Request.Tool)
			}
		})
	}
}

// An agent that cannot be put into its mode is not prompted, and its person is told why.
func TestAnAgentInAnotherModeIsNotPrompted(t *testing.T) {
	for _, c := range []struct {
		name, mode string
		like       []string
		says       string
	}{
		{"it refuses", "", []string{"modes", "stuck"}, `it is in the mode "auto", and does not change to "default": an administrator has fixed`},
		{"it refuses the option", "", []string{"options", "stuck"}, `it is in the mode "auto", and does not change to "default": an`},
		{"it has no such mode", "ask", []string{"modes"}, `it offers no mode "ask"; write one of these as mode of its entry in the ` +
			`configuration: auto, plan, yolo, default`},
		{"it has no modes", "ask", nil, `it offers no modes; leave mode: ask out of its entry`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newEnvWith(t, testAgent{name: "coder", person: "fay", like: c.like, mode: c.mode})
			s.write("remember")
			s.waitMessage("I cannot go on: " + c.says)
			s.waitActivity("coder", permissions.Interrupted)
			if all := strings.Join(s.said(agents.ArtifactAssistantMessage), "\n"); strings.Contains(all, "prompt 1") {
				t.Errorf("it was prompted, and says %q", all)
			}
		})
	}
}
