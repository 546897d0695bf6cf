package directory

import (
	"encoding/json"
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

// TestARouteForAServersToolsIsForTheirJoinedNames: it is one of those that decide wherever a name may be such a tool's, and decides alone
// only where it is nothing else.
func TestARouteForAServersToolsIsForTheirJoinedNames(t *testing.T) {
	for _, c := range []struct {
		pattern, hook, tool, input string
		whole, part                bool
	}{
		{"fs/delete", "opencode", "fs_delete", `{}`, false, true}, {"fs__delete", "copilot", "fs-delete", `{}`, false, true},
		{"fs/delete", "vscode", "mcp_fs_delete", `{}`, false, true}, {"fs/delete", "claude-code", "mcp__fs__delete", `{}`, false, true},
		{"fs/delete", "cursor", "mcp__delete", `{}`, false, true}, {"fs/delete", "opencode", "fs_read", `{}`, false, false},
		{"fs_*", "opencode", "fs_delete", `{}`, true, true}, {"fs_*", "opencode", "fs_x_delete", `{}`, false, true},
		{"fs_x_delete", "opencode", "fs_x_delete", `{}`, true, true}, {"*", "opencode", "fs_x_delete", `{}`, true, true},
		{"mcp__fs__*", "claude-code", "mcp__fs__x__go", `{"hook.mcp_server":{"name":"fs__x"}}`, false, true},
		{"mcp__fs__*", "claude-code", "mcp__fs__x__go", `{"hook.mcp_server":{"name":"fs"}}`, true, true},
		{"delete", "claude-code", "mcp__fs__delete", `{}`, false, false}, {"run_*", "", "run_command", `{}`, true, true},
	} {
		r := permissions.Request{Kind: permissions.KindTool, Hook: c.hook, Tool: c.tool, Input: json.RawMessage(c.input)}
		if whole, part := (Route{Tools: []string{c.pattern}}).matches(r); whole != c.whole || part != c.part {
			t.Errorf("%s for %s %s %s: the whole %t, a part %t", c.pattern, c.hook, c.tool, c.input, whole, part)
		}
	}
}
