package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// question is one question of Claude Code's AskUserQuestion tool.
type question struct {
	Question    string
	Options     []struct{ Label, Description string }
	MultiSelect bool
}

var errNoQuestion = errors.New("the input of AskUserQuestion has no questions")

// converse handles the tools by which Claude Code talks to the person. A plan is shown completely and allowed once, for this
// input only. Questions are asked one by one, and the answers are returned in the input.
func (c *Call) converse() error {
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
	case "AskUserQuestion":
		c.echo = string(c.Request.Input)
		if json.Unmarshal(input["questions"], &c.questions) != nil || len(c.questions) == 0 {
			return errNoQuestion
		}
		for _, q := range c.asks() {
			if err := q.Validate(); err != nil {
				return fmt.Errorf("a question of AskUserQuestion cannot be asked: %w", err)
			}
		}
	}
	return nil
}

// asks returns the requests for a call that asks questions, in order.
func (c Call) asks() []permissions.Request {
	all := make([]permissions.Request, len(c.questions))
	for i, q := range c.questions {
		r := c.Request
		all[i] = permissions.Request{
			Kind: permissions.KindClarification, Hook: r.Hook, Agent: r.Agent, Claimed: r.Claimed, Session: r.Session, Host: r.Host,
			Cwd: r.Cwd, SessionTitle: r.SessionTitle, LastPrompt: r.LastPrompt,
		}
		var says strings.Builder
		says.WriteString(q.Question)
		for _, o := range q.Options {
			all[i].Choices = append(all[i].Choices, o.Label)
			if o.Description != "" {
				fmt.Fprintf(&says, "\n- %s: %s", o.Label, o.Description)
			}
		}
		if q.MultiSelect {
			says.WriteString(permissions.SeveralAnswers)
		}
		all[i].Message = says.String()
	}
	return all
}

// answered is the input of a call that asks questions, with the answers added.
func (c Call) answered(answers map[string]string) string {
	var input members
	_ = json.Unmarshal(json.RawMessage(c.echo), &input) // it is an object
	input["answers"], _ = json.Marshal(answers)
	return string(input.encode())
}
