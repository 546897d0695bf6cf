package hooks

import (
	"encoding/json"
	"strings"

	"github.com/daycared/daycared/agents/schema"
	"github.com/daycared/daycared/permissions"
)

// convertTalk handles the tools by which Claude Code talks to the person. A plan is shown completely and allowed once, for this
// input only. Questions are asked one by one, and the answers are returned in the input.
func (c *Call) convertTalk() (err error) {
	var input members
	if json.Unmarshal(c.Request.Input, &input) != nil {
		return nil //nolint:nilerr // the hook was called about no tool
	}
	switch c.Request.Tool {
	case "ExitPlanMode":
		c.echo, c.Request.Widest = string(c.Request.Input), permissions.Once
		if c.Request.Details = input.optionalText("plan"); c.Request.Details != "" {
			delete(input, "plan") // it is in the details
			c.Request.Input = input.encode()
		}
	case schema.ClaudeAsks:
		c.echo = string(c.Request.Input)
		c.questions, err = schema.Questions(c.Request.Input)
	}
	return err
}

// question makes a call of the agent's own tool for asking the person a question to people: its hook cannot give the tool a result, so that
// the answers are the reason for a denial. What cannot be asked, or of which the hook says more than the input, stays a call.
func (c *Call) question(tool string) {
	if tool == "" || c.Request.Tool != tool || c.questions != nil || strings.EqualFold(c.event, "permissionRequest") ||
		strings.Contains(string(c.Request.Input), `"`+hookPrefix) {
		return
	}
	if asked, err := schema.Questions(c.Request.Input); err == nil {
		c.echo, c.questions, c.dialogAsks = string(c.Request.Input), asked, true
	}
}

// requests returns the requests for a call that asks questions, in order.
func (c Call) requests() []permissions.Request {
	all := make([]permissions.Request, len(c.questions))
	for i, q := range c.questions {
		r := c.Request
		q.Hook, q.Agent, q.Claimed, q.Session, q.Host = r.Hook, r.Agent, r.Claimed, r.Session, r.Host
		q.Cwd, q.SessionTitle, q.LastPrompt = r.Cwd, r.SessionTitle, r.LastPrompt
		all[i] = q
	}
	return all
}
