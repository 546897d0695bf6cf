package acp_test

import (
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/residenttest"
	"github.com/daycared/daycared/permissions"
)

// TestResident: the common suite of events, rows and artifacts, for calls that the agent asks permission for and for
// those that the daemon runs for it.
func TestResident(t *testing.T) {
	for name, line := range map[string]string{
		"session/request_permission": ask("execute", `{"command": "make"}`),
		"fs/write_text_file":         "call fs/write_text_file " + `{"sessionId":"$S","path":"$WS/a","content":"a\n"}`,
	} {
		t.Run(name, func(t *testing.T) {
			residenttest.Run(t, func(t *testing.T) residenttest.Env {
				s := newEnv(t)
				line := replaceWorkspace(line, s.at(""))
				lines := []string{line}
				if name == "session/request_permission" {
					lines = append(lines, `note session/update {"sessionId":"$S","update":{"sessionUpdate":"tool_call_update",`+
						`"toolCallId":"c1","status":"completed"}}`)
				}
				var id permissions.ID
				return residenttest.Env{
					Engine: func() *engine.Engine { return s.Engine }, Fay: connectors.Identity{Via: "phone", UID: fay.UID},
					Asks: func() { s.write(lines...) },
					Card: func(n int) permissions.Request {
						r := s.card(n)
						id = permissions.ID(r.Session)
						return r
					},
					Answers: func(r permissions.Request, a permissions.Answer, why string) { s.answer(r, a, why) },
					Cancels: func(r permissions.Request) {
						if _, err := s.Cancel(t.Context(), connectors.Identity{Via: "phone", UID: fay.UID}, string(r.ID)); err != nil {
							t.Error(err)
						}
					},
					Orders: s.order, Pass: func() { s.advance(time.Hour) }, Restart: s.restart,
					Ended: func() { s.waitEnded(id) },
					Row: func() []agents.Execution {
						rows, err := s.rows.Executions(t.Context(), id, 1)
						if err != nil {
							t.Error(err)
						}
						return rows
					},
					Said: s.said,
				}
			})
		})
	}
}
