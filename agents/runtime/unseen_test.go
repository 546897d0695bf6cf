package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions/rules"
)

// comparingTool is one whose plan fails where a text is not in the file that it changes.
type comparingTool struct{ noteTool }

func (c comparingTool) Plan(ctx context.Context, p tools.Workspace, input json.RawMessage) (tools.Plan, error) {
	plan, err := c.noteTool.Plan(ctx, p, input)
	plan.AffectedPath = p.Workspace + "/a"
	if err == nil && !p.Unseen && strings.Contains(string(input), "wrong") {
		err = errors.New("it is not in the file")
	}
	return plan, err
}

// TestAPlanTellsNothingOfAFileThatTheAgentMayNotRead: a call answers each guess at the content alike,
// unless the agent may read the file unasked.
func TestAPlanTellsNothingOfAFileThatTheAgentMayNotRead(t *testing.T) {
	const right, wrong = `{"path":"a","old_text":"right"}`, `{"path":"a","old_text":"wrong"}`
	for name, c := range map[string]struct {
		auto  []string
		rule  rules.Rule
		input string
		says  string // empty: people are asked
	}{
		"denied, right": {rule: rules.Rule{Deny: []string{"read ./a"}}, input: right, says: "forbidden here: rule 1"},
		"denied, wrong": {rule: rules.Rule{Deny: []string{"read ./a"}}, input: wrong, says: "forbidden here: rule 1"},
		"asked, right":  {rule: rules.Rule{Ask: []string{"read ./a"}}, input: right, auto: []string{"read_file"}},
		"asked, wrong":  {rule: rules.Rule{Ask: []string{"read ./a"}}, input: wrong, auto: []string{"read_file"}},
		"no rule":       {input: wrong},
		"readable":      {input: wrong, auto: []string{"read_file"}, says: "told: it is not in the file"},
		"allowed":       {rule: rules.Rule{Allow: []string{"read ./a"}}, input: wrong, says: "told: it is not in the file"},
	} {
		t.Run(name, func(t *testing.T) {
			a := helper(firstCalls("edit_file", c.input))
			a.Tools = []tools.Tool{comparingTool{noteTool{name: "edit_file"}}}
			s := newEnvWith(t, func(s *engine.Settings) {
				s.Policy.Auto = c.auto
				if len(c.rule.Deny)+len(c.rule.Ask)+len(c.rule.Allow) > 0 {
					s.Rules, _ = rules.Compile([]rules.Rule{c.rule})
				}
			}, a)
			s.write("go")
			if c.says != "" {
				s.waitMessage(c.says)
				return
			}
			if r := s.card(1); r.Tool != "edit_file" {
				t.Errorf("people are asked about %s", r.Tool)
			}
		})
	}
}
