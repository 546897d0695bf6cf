package modeltest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/anthropic"
	"github.com/daycared/daycared/agents/models/modeltest"
	"github.com/daycared/daycared/agents/models/openai"
	"github.com/daycared/daycared/agents/models/provider"
	"github.com/daycared/daycared/agents/models/script"
)

// A script plays the same in both dialects.
func TestAScriptRunsTheSameInBothDialects(t *testing.T) {
	played, err := script.Parse("job", []byte(`
turns:
  - {name: write, after: start, said: go, say: I write., calls: [{tool: write_file, input: {path: a}}]}
  - {name: done, after: write, say: "Done: {{result}}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	s := modeltest.New(t)
	s.Answer(modeltest.Play(played))
	one, err := openai.New(provider.ModelOptions{Name: "m", BaseURL: s.URL(modeltest.OpenAI)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(one.Close)
	other, err := anthropic.New(provider.ModelOptions{Name: "m", BaseURL: s.URL(modeltest.Anthropic)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	for _, m := range []models.Model{one, other} {
		p := models.Prompt{Messages: []models.Message{{Role: models.User, Text: "go"}}}
		reply, err := m.Reply(t.Context(), p, nil)
		if err != nil || reply.Text != "I write." || len(reply.Calls) != 1 || reply.Calls[0].ID != "write-1" {
			t.Fatalf("%+v, %v", reply, err)
		}
		p.Messages = append(p.Messages,
			models.Message{Role: models.Assistant, Text: reply.Text, Calls: reply.Calls},
			models.Message{Role: models.Results, Results: []models.Result{{ID: "write-1", Text: "written"}}})
		if reply, err = m.Reply(t.Context(), p, nil); err != nil || reply.Text != "Done: written" {
			t.Errorf("%+v, %v", reply, err)
		}
		p.Messages = []models.Message{{Role: models.User, Text: "what?"}}
		if _, err = m.Reply(t.Context(), p, nil); !errors.Is(err, models.ErrRefused) || !strings.Contains(err.Error(), "no turn after start") {
			t.Error(err)
		}
	}
}
