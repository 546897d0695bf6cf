package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
)

// smallModel is a model with a small context window that can summarize.
type smallModel struct{ modelFunc }

func (smallModel) Window() int64 { return 3500 }

func (n smallModel) Reply(ctx context.Context, p models.Prompt, write func(string)) (models.Reply, error) {
	if models.Estimate(p) > n.Window() {
		return models.Reply{}, &models.Error{Kind: models.ErrTooLong, Text: "too long"}
	}
	if len(p.Tools) == 0 { // it is asked for a summary only
		return models.Reply{Text: "fay told of apples", Usage: models.Usage{Read: 1}}, nil
	}
	return n.modelFunc.Reply(ctx, p, write)
}

// TestALongTalkIsMadeShorter: summaries replace the oldest turns, repeatedly; the newest turns stay word for word.
func TestALongTalkIsMadeShorter(t *testing.T) {
	a := helper(nil)
	a.Model = smallModel{func(_ int, p models.Prompt) models.Reply {
		return says(fmt.Sprintf("heard %s of %s", newest(p)[:8], p.Messages[0].Text[:20]))
	}}
	s := newEnv(t, a)
	for i := range 12 {
		s.write(fmt.Sprintf("apple-%02d %s", i, strings.Repeat("and another one ", 60)))
		s.waitMessage(fmt.Sprintf("heard apple-%02d", i))
	}
	s.waitMessage("heard apple-11 of [What was said befor")
	summaries := s.rows.artifacts(agents.ArtifactSummary)
	if len(summaries) == 0 || !strings.Contains(summaries[0]["text"].(string), "fay told of apples") {
		t.Errorf("the summaries are %v", summaries)
	}
	turns, err := s.rows.Turns(t.Context(), s.current("helper").ID)
	if err != nil || len(turns) > 12 {
		t.Errorf("%d turns are left, %v", len(turns), err)
	}
}

func TestWhatCannotBeMadeShorter(t *testing.T) {
	a := helper(nil)
	a.Model = smallModel{func(int, models.Prompt) models.Reply { return says("never") }}
	a.Instructions = strings.Repeat("mind this ", 3000)
	s := newEnv(t, a)
	s.write("go")
	s.waitMessage("I cannot think just now: the conversation is longer than the model's window")
}
