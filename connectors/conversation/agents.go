package conversation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// agent hands a message that is no answer to the agent that it is for, and gives the words about that: line if the agent
// has it, else why not. With waiting, so many requests still wait for its author.
func (r *Reader) agent(ctx context.Context, m Message, line string, waiting int) (words string, err error) {
	err = r.Desk.OnMessage(ctx, m.Message)
	var refusal *permissions.Refusal
	switch {
	case err == nil:
		return line, nil
	case errors.As(err, &refusal) && refusal.Code == permissions.CodeNoAgent:
		return nobodyBound(waiting), nil
	case errors.As(err, &refusal) && refusal.Code != permissions.CodeBroken: // which is tried again until it is stored
		return card.Visible(refusal.Text), nil
	}
	return "", err
}

// nobodyBound answers a message for an agent where there is none; waiting is how many requests it did not answer.
func nobodyBound(waiting int) string {
	none := permissions.NoAgent().Text
	switch {
	case waiting == 1:
		return none + " One request still waits for your answer: /pending"
	case waiting > 1:
		return none + fmt.Sprintf(" %d requests still wait for your answer: /pending", waiting)
	}
	return none + " /help says what works here."
}

// agents lists somebody's agents.
func (r *Reader) agents(ctx context.Context, id connectors.Identity) (string, error) {
	all, err := r.Desk.Agents(ctx, id)
	if err != nil {
		return "", err
	}
	rows := []string{"Your agents in this chat:"}
	for _, a := range all {
		row := card.Visible(a.Agent) + " · " + activity(a.Activity)
		if a.Foreground {
			row += " · your messages go there"
		}
		rows = append(rows, row)
	}
	if len(all) > 1 {
		rows = append(rows, "/use NAME · send your messages to another one")
	}
	return strings.Join(rows, "\n"), nil
}

// use has somebody's messages go to another agent.
func (r *Reader) use(ctx context.Context, id connectors.Identity, name string) (string, error) {
	if name == "" {
		return r.agents(ctx, id)
	}
	agent, err := r.Desk.Use(ctx, id, name)
	if err != nil {
		return "", err
	}
	return "Your messages go to " + card.Visible(agent) + " from now on. A reply to a message goes to the agent that wrote it.", nil
}

// status says what the agent in the foreground does, and what waits for somebody's answer.
func (r *Reader) status(ctx context.Context, id connectors.Identity) (string, error) {
	all, err := r.Desk.Agents(ctx, id)
	if err != nil {
		return "", err
	}
	waiting, err := r.Desk.Pending(ctx, id, "", mostOpen)
	if err != nil {
		return "", err
	}
	var rows []string
	for _, a := range all {
		if !a.Foreground {
			continue
		}
		rows = append(rows, card.Visible(a.Agent)+" · "+activity(a.Activity))
		if a.Unheard > 0 {
			rows = append(rows, count(a.Unheard, "message")+" of yours not read yet")
		}
	}
	if len(waiting) == 0 {
		return strings.Join(append(rows, "Nothing waits for your answer."), "\n"), nil
	}
	return strings.Join(append(rows, count(len(waiting), "request")+" waiting for your answer: /pending"), "\n"), nil
}

// order has the agent in the foreground obey.
func (r *Reader) order(ctx context.Context, m Message, o permissions.Order) (string, error) {
	agent, err := r.Desk.Order(ctx, m.From, o, m.Key)
	if err != nil {
		return "", err
	}
	name := card.Visible(agent)
	switch o {
	case permissions.OrderQuit:
		return name + " ends its session.", nil
	case permissions.OrderNew:
		return name + " begins a new session.", nil
	}
	return name + " stops what it works on. Other agents go on; /stop all stops everything.", nil
}

// activity is what an agent does, in words.
func activity(a permissions.Activity) string {
	switch a {
	case permissions.AwaitingUser:
		return "waits for you"
	case permissions.Idle, permissions.Running, permissions.Paused, permissions.Interrupted:
		return string(a)
	}
	return "unknown"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
