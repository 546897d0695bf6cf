package directory

import (
	"testing"
	"testing/synctest"

	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions"
)

func TestWhereANameLeadsIsUnknownWhereItsFileSystemDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		defer close(answers)
		for range 4 {
			_, _ = own.LookUpFor("helper", "/", func() (int, error) { <-answers; return 0, nil })
		}
		if to := linkResolver("helper")("/etc/../srv"); to != "" {
			t.Errorf("it leads to %q", to)
		}
		if to := linkResolver("other")("/etc/../srv"); to != "/srv" {
			t.Errorf("for another agent it leads to %q", to)
		}
	})
}

// TestRulesAreToldOfTheLinksInACall, as its hook tells them: a name in a text may lead through one of them.
func TestRulesAreToldOfTheLinksInACall(t *testing.T) {
	r := permissions.Request{Hook: "claude-code", Cwd: "/srv/code", Tool: "mcp__fs__x", Leads: permissions.Leads{
		Root: "/srv/code", Names: map[string]string{"/srv/code": "/srv/code", "/srv/code/lk": "/srv/secrets"},
	}}
	c := (&Settings{}).ruleCall(r, permissions.Call{Tool: r.Tool})
	if to := c.Leads.Follow("/srv/code/lk/y"); to != "/srv/secrets/y" || c.Resolve("/srv/code/lk/y") != "" {
		t.Errorf("it leads to %q", to)
	}
}
