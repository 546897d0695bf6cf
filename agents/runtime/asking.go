package runtime

import (
	"context"
	"errors"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/schema"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/permissions"
)

// askTool is a built-in tool that asks people or messages other agents. It needs no permission, but policy can forbid it.
type askTool struct {
	spec models.Tool
	// question builds the request from the input; for a tool with do, it only validates the input.
	question func(input []byte) (permissions.Request, error)
	// do runs the tool and returns the text for the model; nil for a tool that asks.
	do func(ctx context.Context, sh *turn, c Call) (string, error)
}

// askingTools is set in init to avoid an initialization cycle.
var askingTools []askTool

func init() {
	const key = "key" // a call has a key of its own
	for _, t := range schema.AskingTools {
		askingTools = append(askingTools, askTool{
			spec:     models.Tool{Name: t.Name, Description: t.Says, Schema: t.Schema(key)},
			question: func(input []byte) (permissions.Request, error) { return t.Question(input, key) },
		})
	}
	askingTools = append(askingTools,
		askTool{spec: models.Tool{Name: startAgent, Description: startWords, Schema: schema.Of[startInput]()},
			question: checked[startInput](startAgent), do: start},
		askTool{spec: models.Tool{Name: messageAgent, Description: messageWords, Schema: schema.Of[messageInput]()},
			question: checked[messageInput](messageAgent), do: message})
}

func askingTool(name string) (askTool, bool) {
	for _, t := range askingTools {
		if t.spec.Name == name {
			return t, true
		}
	}
	return askTool{}, false
}

// checked validates the input of a tool that asks nothing.
func checked[T any](tool string) func(input []byte) (permissions.Request, error) {
	return func(input []byte) (q permissions.Request, err error) {
		_, err = schema.Decode[T](tool, input)
		return q, err
	}
}

// asks returns the request that a call makes; zero for a tool that does not ask.
func (c Call) asks() (permissions.Request, error) {
	if t, is := askingTool(c.Tool); is {
		return t.question(c.Input)
	}
	return permissions.Request{}, nil
}

// begin starts a call of a built-in tool: it runs the tool, or asks.
func (sh *turn) begin(ctx context.Context, c Call, t askTool) error {
	x := sh.execution(c)
	if t.do == nil {
		needs, err := sh.lacks(ctx, c)
		if err != nil {
			return err
		}
		return sh.advance(ctx, agents.Commit{Executions: []agents.Execution{x}}, Began{c.N}, Asked{N: c.N, Needs: needs})
	}
	if err := sh.began(ctx, x, nil); err != nil {
		return err
	}
	text, err := t.do(ctx, sh, c)
	if ctx.Err() != nil || errors.Is(err, permissions.ErrBroken) { // not for the model
		return err
	}
	if err != nil {
		sh.runtime.log.Debug("agent tool call failed", "agent", sh.agent.Name, "tool", c.Tool, "err", err)
		text = err.Error()
	}
	return sh.ended(ctx, x, tools.Outcome{Text: text, Error: err != nil}, Ran{N: c.N, Text: text, Error: err != nil})
}

// lacks returns the tags that a call requests and the session does not hold. Tags requested for a child are returned unfiltered.
func (sh *turn) lacks(ctx context.Context, c Call) ([]permissions.Tag, error) {
	if c.Tool != schema.RequestPermission {
		return nil, nil
	}
	q, err := c.asks()
	if err != nil || q.Agent != "" {
		return q.Tags, err
	}
	held, err := sh.held(ctx)
	return permissions.Missing(q.Tags, held), err
}
