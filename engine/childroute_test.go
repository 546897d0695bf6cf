package engine_test

import (
	"testing"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// TestAChildDoesNotChooseWhoIsAsked: a model chose the part of the name after the slash. The child follows the routes of
// the configured agent, unless a route is for children.
func TestAChildDoesNotChooseWhoIsAsked(t *testing.T) {
	for _, c := range []struct{ pattern, agent, asked string }{
		{"*-trusted", "helper/x-trusted", "fay"},
		{"*trusted*", "helper/trusted", "fay"},
		{"helper?x", "helper/x", "fay"},
		{"helper", "helper/x", "sam"},
		{"help*", "helper/x", "sam"},
		{"*", "helper/x", "sam"},
		{"helper/*", "helper/x", "sam"},
		{"helper/*", "helper", "fay"},
		{"*-trusted", "x-trusted", "sam"},
	} {
		t.Run(c.pattern+" "+c.agent, func(t *testing.T) {
			s := usual()
			s.Routes = []engine.Route{{Agents: []string{c.pattern}, Ask: []string{"sam"}}, {Ask: []string{"fay"}}}
			st := newEnv(t, s)
			q := asking(permissions.Network)
			q.Key = "k"
			r, err := st.Approvals().Submit(t.Context(), permissions.AgentCaller(c.agent), q)
			if err != nil || len(r.Asked) != 1 || r.Asked[0] != c.asked {
				t.Errorf("asked are %v, %v", r.Asked, err)
			}
		})
	}
}
