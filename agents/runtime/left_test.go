package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/permissions"
)

// hangingTool has a process that hangs in a file system: once its call is ended, the process is left.
type hangingTool struct {
	noteTool
	plans bool // it hangs already while its call is planned
	began chan struct{}
}

func (h hangingTool) Plan(ctx context.Context, p tools.Workspace, input json.RawMessage) (tools.Plan, error) {
	if !h.plans {
		return h.noteTool.Plan(ctx, p, input)
	}
	close(h.began)
	<-ctx.Done()
	return tools.Plan{}, fmt.Errorf("read a: %w", tools.ErrLeft)
}

func (h hangingTool) Run(ctx context.Context, _ tools.Workspace, _ json.RawMessage, _ tools.Plan) tools.Outcome {
	close(h.began)
	<-ctx.Done()
	return tools.Outcome{Text: tools.ErrLeft.Error(), Error: true, Left: tools.Left(tools.ErrLeft)}
}

// TestAStopSaysThatAProcessHangs, be it of a call or of its plan, and the agent goes on.
func TestAStopSaysThatAProcessHangs(t *testing.T) {
	for plans, told := range map[bool]string{false: tools.ErrLeft.Error(), true: "This was not run: the run was stopped before it."} {
		t.Run(fmt.Sprintf("planned %v", plans), func(t *testing.T) {
			a := helper(func(turn int, p models.Prompt) models.Reply {
				if turn == 0 {
					return calls("look", noteA)
				}
				return says("told: " + newest(p))
			})
			hangs := hangingTool{noteTool{name: "look"}, plans, make(chan struct{})}
			a.Tools = []tools.Tool{hangs}
			s := newEnv(t, a)
			s.write("go")
			<-hangs.began
			s.order(permissions.OrderStop)
			s.waitActivity("helper", permissions.Interrupted)
			s.waitMessage("I go on without a process of look: it was killed, and has not ended yet. " +
				"It may still do something.")
			s.write("and now?")
			s.waitMessage("told: " + told + "\nand now?")
		})
	}
}
