package runtime_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/residenttest"
	"github.com/daycared/daycared/permissions"
)

// TestResident checks the events, rows and artifacts of a resident agent.
func TestResident(t *testing.T) {
	residenttest.Run(t, func(t *testing.T) residenttest.Env {
		s := newEnv(t, helper(firstCalls("write_file", noteA)))
		var id permissions.ID
		return residenttest.Env{
			Engine: func() *engine.Engine { return s.Engine }, Fay: fayHere, Waits: true,
			Asks: func() { s.write("go") },
			Card: func(n int) permissions.Request {
				id = s.waitAsking("helper").ID
				return s.card(n)
			},
			Answers: func(r permissions.Request, a permissions.Answer, why string) {
				s.answer(r, a, func(d *connectors.Decision) { d.Comment = why })
			},
			Cancels: func(r permissions.Request) {
				if _, err := s.Cancel(t.Context(), fayHere, string(r.ID)); err != nil {
					t.Error(err)
				}
			},
			Orders: s.order, Pass: func() { s.advance(time.Hour) }, Restart: s.restart, Ended: func() { s.waitEnded(id) },
			Row: func() []agents.Execution {
				rows, err := s.rows.Executions(t.Context(), id, 1)
				if err != nil {
					t.Error(err)
				}
				return rows
			},
			Said: func(of agents.ArtifactType) (all []string) {
				for _, c := range s.rows.all() {
					for _, a := range c.Artifacts {
						if a.Type == of {
							all = append(all, string(a.Content))
						}
					}
				}
				return slices.DeleteFunc(all, func(x string) bool { return strings.TrimSpace(x) == "" })
			},
		}
	})
}
