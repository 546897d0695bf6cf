package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/permissions"
)

// modelFunc is a model whose replies follow from the transcript alone. turn counts its earlier replies.
type modelFunc func(turn int, p models.Prompt) models.Reply

func (m modelFunc) Name() string              { return "mind" }
func (m modelFunc) Window() int64             { return 100_000 }
func (m modelFunc) Cost(u models.Usage) int64 { return 2 * (u.Read + u.Written) }
func (m modelFunc) Reply(ctx context.Context, p models.Prompt, _ func(string)) (models.Reply, error) {
	turn := 0
	for _, said := range p.Messages {
		if said.Role == models.Assistant {
			turn++
		}
	}
	r := m(turn, p)
	r.Usage = models.Usage{Read: 10, Written: 1}
	return r, ctx.Err()
}

// says is a reply with text only.
func says(words string) models.Reply { return models.Reply{Text: words} }

// calls is a reply that calls tools: name, input, name, input …
func calls(pairs ...string) (r models.Reply) {
	for i := 0; i+1 < len(pairs); i += 2 {
		r.Calls = append(r.Calls, models.Call{ID: fmt.Sprintf("c%d", i/2), Tool: pairs[i], Input: json.RawMessage(pairs[i+1])})
	}
	return r
}

// newest is what is new to the model: results and messages.
func newest(p models.Prompt) string {
	text := ""
	for _, m := range p.Messages {
		switch m.Role {
		case models.Assistant:
			text = ""
		case models.Results:
			for _, r := range m.Results {
				text += r.Text + "\n"
			}
		case models.User:
			text += m.Text + "\n"
		}
	}
	return strings.TrimSpace(text)
}

// noteTool is a tool that writes a file, which also counts its writes.
type noteTool struct {
	name   string
	needs  func(input string) []permissions.Tag
	hold   chan struct{} // not nil: the tool blocks until this is closed or its context ends
	pause  string
	leaves []agents.Artifact
	exit   *int
}

func (p noteTool) Spec() models.Tool {
	return models.Tool{Name: p.name, Description: "writes", Schema: json.RawMessage(`{"type":"object"}`)}
}

type noteInput struct{ Path, Text string }

func (p noteTool) Plan(_ context.Context, at tools.Workspace, input json.RawMessage) (plan tools.Plan, err error) {
	var in noteInput
	if err := json.Unmarshal(input, &in); err != nil || in.Path == "" {
		return plan, fmt.Errorf("path is missing")
	}
	plan.AffectedPath, plan.Details = filepath.Join(at.Workspace, in.Path), "+ "+in.Text
	if p.needs != nil {
		plan.Needs = permissions.Missing(p.needs(plan.AffectedPath), at.Tags) // as the built-in tools do
	}
	return plan, nil
}

func (p noteTool) Run(ctx context.Context, at tools.Workspace, input json.RawMessage, plan tools.Plan) tools.Outcome {
	var in noteInput
	_ = json.Unmarshal(input, &in)
	if missing := permissions.Missing(plan.Needs, at.Tags); len(missing) > 0 {
		return tools.Outcome{Text: "not held: " + missing[0].String(), Error: true}
	}
	if p.hold != nil {
		select {
		case <-p.hold:
		case <-ctx.Done():
			return tools.Outcome{Text: "stopped", Error: true}
		}
	}
	f, err := os.OpenFile(plan.AffectedPath, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return tools.Outcome{Text: err.Error(), Error: true}
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, in.Text); err != nil {
		return tools.Outcome{Text: err.Error(), Error: true}
	}
	return tools.Outcome{Text: "wrote " + in.Path, Pause: p.pause, Exit: p.exit, Artifacts: p.leaves}
}
