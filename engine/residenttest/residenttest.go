// Package residenttest is the suite for every agent that the daemon runs: the same events in the same order, the same
// rows and the same artifacts.
package residenttest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/permissions"
)

// Env is fay, and an agent of hers on a real engine.
type Env struct {
	Engine  func() *engine.Engine // the running one
	Fay     connectors.Identity
	Asks    func()                                                       // fay writes what makes the agent make one gated call
	Card    func(n int) permissions.Request                              // waits for the n-th prompt
	Answers func(r permissions.Request, a permissions.Answer, r2 string) // fay answers, with a reason
	Cancels func(r permissions.Request)
	Orders  func(permissions.Order)
	Pass    func() // lets a question's deadline pass
	Restart func() // stops everything, and starts it again with the same store
	Ended   func() // waits until the agent is idle after its run
	Row     func() []agents.Execution
	Said    func(agents.ArtifactType) []string // the content of the artifacts of a type, in JSON
	Waits   bool                               // it continues to wait after a restart
}

// Run runs the suite.
func Run(t *testing.T, open func(t *testing.T) Env) {
	const tail = " RUN_FINISHED SESSION_STATUS:"
	for name, c := range map[string]struct {
		do      func(*Env, permissions.Request)
		events  string // after the request was created, without REQUEST_SHOWN
		success bool
		granted string
		denied  string
	}{
		"allowed": {func(s *Env, r permissions.Request) { s.Answers(r, permissions.Allow(permissions.Once), "") },
			"WAIT_ACK_ENTER REQUEST_SETTLED REQUEST_USED ACK_APPROVED ACK_DECISION_HANDLED:approve SESSION_STATUS:running TOOL_FINISHED" +
				tail + "idle", true, `"scope":"once"`, ""},
		"denied": {func(s *Env, r permissions.Request) { s.Answers(r, permissions.Deny, "not so") },
			"WAIT_ACK_ENTER REQUEST_SETTLED TOOL_FINISHED ACK_REJECTED:user_denied ACK_DECISION_HANDLED:deny SESSION_STATUS:running" +
				tail + "idle", false, "", `"reason":"not so"`},
		"silence": {func(s *Env, _ permissions.Request) { s.Pass() },
			"WAIT_ACK_ENTER REQUEST_SETTLED TOOL_FINISHED ACK_REJECTED:ack_timeout SESSION_STATUS:running" + tail + "idle",
			false, "", `"reason":"ack_timeout"`},
		"cancelled": {func(s *Env, r permissions.Request) { s.Cancels(r) },
			"WAIT_ACK_ENTER REQUEST_SETTLED TOOL_FINISHED ACK_REJECTED:cancelled SESSION_STATUS:running" + tail + "idle",
			false, "", `"reason":"cancelled"`},
		"stop": {func(s *Env, _ permissions.Request) { s.Orders(permissions.OrderStop) },
			"WAIT_ACK_ENTER REQUEST_SETTLED TOOL_FINISHED ACK_REJECTED:stopped" + tail + "interrupted", false, "", `"reason":"cancelled"`},
		"new": {func(s *Env, _ permissions.Request) { s.Orders(permissions.OrderNew) },
			"WAIT_ACK_ENTER REQUEST_SETTLED TOOL_FINISHED ACK_REJECTED:stopped" + tail + "interrupted", false, "", `"reason":"cancelled"`},
		"restart": {func(s *Env, _ permissions.Request) {
			if s.Restart(); s.Waits {
				s.Orders(permissions.OrderStop)
			}
		}, "WAIT_ACK_ENTER REQUEST_SETTLED TOOL_FINISHED ACK_REJECTED:stopped" + tail + "interrupted", false, "", `"reason":"cancelled"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.Asks()
			r := s.Card(1)
			if !slices.Contains(s.events(t), "WAIT_ACK_ENTER") {
				t.Error("a card is out before anybody was told that it is waited for")
			}
			c.do(&s, r)
			s.Ended()
			all := s.events(t)
			at := slices.IndexFunc(all, func(e string) bool { return e == "REQUEST_CREATED" })
			if at < 1 || all[at-1] != "SESSION_STATUS:awaiting_user" {
				t.Errorf("before anybody was asked its status was not told: %v", all)
			}
			if got := strings.Join(all[at+1:], " "); !strings.HasPrefix(got, c.events) {
				t.Errorf("it tells\n%s, want\n%s", got, c.events)
			}
			rows := s.Row()
			if len(rows) != 1 || rows[0].Success != c.success || rows[0].Ended.IsZero() || (rows[0].Error == "") != c.success ||
				strings.Contains(string(rows[0].Arguments), `": `) {
				t.Errorf("its rows are %+v", rows)
			}
			for kind, want := range map[agents.ArtifactType]string{
				agents.ArtifactApprovalGranted: c.granted, agents.ArtifactApprovalDenied: c.denied,
			} {
				if got := s.Said(kind); (len(got) == 1) != (want != "") || want != "" && !strings.Contains(got[0], want) {
					t.Errorf("the %s artifacts are %v, want %s", kind, got, want)
				}
			}
		})
	}
}

// events are the event types that fay's front end receives, some with a detail.
func (s Env) events(t *testing.T) (all []string) {
	t.Helper()
	for after := int64(0); ; {
		list, seen, err := s.Engine().Events(t.Context(), s.Fay, after, 100)
		if err != nil {
			t.Fatal(err)
		}
		if seen == after {
			return all
		}
		after = seen
		for _, h := range list {
			e := server.EventOf(h)
			word := ""
			for _, key := range []string{"status", "reason", "decision"} {
				if v := e.Payload[key]; v != nil && e.Type != permissions.RunFinished && v != "" {
					word = fmt.Sprint(":", v)
				}
			}
			if e.Type != permissions.RequestShown && e.Type != permissions.RequestVoted {
				all = append(all, string(e.Type)+word)
			}
		}
	}
}
