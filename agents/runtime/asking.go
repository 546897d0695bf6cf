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

// askTool is a tool of the runtime's own: it asks people, or speaks to other agents. None of them needs a gate; what is
// forbidden is forbidden all the same.
type askTool struct {
	spec models.Tool
	// question is what people are asked; of a tool that does something instead, it only looks at the input.
	question func(input []byte) (permissions.Request, error)
	// do does it, and says what the model is told; nil of a tool that asks.
	do func(ctx context.Context, sh *turn, c Call) (string, error)
}

// askingTools are set in init, since what they do looks at them.
var askingTools []askTool

func init() {
	const key = "key" // a call has one already
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

// checked looks at the input of a tool that asks nothing.
func checked[T any](tool string) func(input []byte) (permissions.Request, error) {
	return func(input []byte) (q permissions.Request, err error) {
		_, err = schema.Decode[T](tool, input)
		return q, err
	}
}

// asks is what a call asks people, where it does.
func (c Call) asks() (permissions.Request, error) {
	if t, is := askingTool(c.Tool); is {
		return t.question(c.Input)
	}
	return permissions.Request{}, nil
}

// begin begins a call of a tool of our own: it does something, or it asks.
func (sh *turn) begin(ctx context.Context, c Call, t askTool) error {
	x := sh.execution(c)
	row := agents.Commit{Executions: []agents.Execution{x}}
	if t.do == nil {
		needs, err := sh.lacks(ctx, c)
		if err != nil {
			return err
		}
		return sh.advance(ctx, row, Began{c.N}, Asked{N: c.N, Needs: needs})
	}
	if err := sh.advance(ctx, row, Began{c.N}); err != nil {
		return err
	}
	text, err := t.do(ctx, sh, c)
	if ctx.Err() != nil || errors.Is(err, permissions.ErrBroken) { // which is no model's business
		return err
	}
	if err != nil {
		sh.runtime.log.Debug("what an agent wants of another is not done", "agent", sh.agent.Name, "tool", c.Tool, "err", err)
		text = err.Error()
	}
	return sh.ended(ctx, x, tools.Outcome{Text: text, Error: err != nil}, Ran{N: c.N, Text: text, Error: err != nil})
}

// lacks is what a call asks for that is not held: of a permission of one's own, since what a child holds is the child's.
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
