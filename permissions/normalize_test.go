package permissions

import "testing"

// TestNormalize: a proven name is the row's, unless another is claimed; tool inputs are canonical, and calls numbered.
func TestNormalize(t *testing.T) {
	for name, c := range map[string]struct {
		caller, agent, want string
		claimed             bool
	}{
		"nothing claimed":     {"token:deploy", "", "deploy", false},
		"the same claimed":    {"token:deploy", "deploy", "deploy", false},
		"another claimed":     {"token:deploy", "root", "root", true},
		"nothing proven":      {"uid:1000", "", "", true},
		"claimed, not proven": {"uid:1000", "uid:1000", "uid:1000", true},
	} {
		t.Run("A4/"+name, func(t *testing.T) {
			r := Request{Kind: KindPermission, Caller: Caller{Name: c.caller}, Agent: c.agent, Claimed: true, Input: []byte("no JSON")}
			if err := r.Normalize(); err != nil || r.Agent != c.want || r.Claimed != c.claimed {
				t.Errorf("%q, claimed %v, %v", r.Agent, r.Claimed, err)
			}
		})
	}
	one := Request{Kind: KindTool, Input: []byte(`{ "b":1, "a":2 }`)}
	if err := one.Normalize(); err != nil || string(one.Input) != `{"a":2,"b":1}` {
		t.Errorf("one call: %s, %v", one.Input, err)
	}
	two := Request{Kind: KindTool, Input: []byte("no JSON"), Calls: []Call{{Input: []byte(`{ }`)}, {N: 7, Input: []byte(`[ ]`), Comment: "x"}}}
	if err := two.Normalize(); err != nil || two.Calls[0].N != 1 || two.Calls[1].N != 2 || two.Calls[1].Comment != "" ||
		string(two.Calls[0].Input)+string(two.Calls[1].Input) != "{}[]" {
		t.Errorf("two calls: %+v, %v", two.Calls, err)
	}
}

// TestWhatAShellsAgentSaysIsNotItsAction, and what any other tool is given is.
func TestWhatAShellsAgentSaysIsNotItsAction(t *testing.T) {
	for name, c := range map[string]struct{ tool, input, want string }{
		"said":       {"Bash", `{"command":"ls","description":"x"}`, `{"command":"ls"}`},
		"not said":   {"Bash", `{"b":1,"command":"<"}`, `{"b":1,"command":"<"}`},
		"no object":  {"Bash", `["ls"]`, `["ls"]`},
		"other tool": {"send", `{"description":"x"}`, `{"description":"x"}`},
	} {
		t.Run("F1/"+name, func(t *testing.T) {
			if got := (Call{Tool: c.tool, Input: []byte(c.input)}).inputWithoutDescription(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
