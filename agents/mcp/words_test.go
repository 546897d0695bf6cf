package mcp_test

import (
	"context"
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/agents/mcp"
	"github.com/daycared/daycared/agents/schema"
	"github.com/daycared/daycared/agents/schema/schematest"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// TestNoToolSpeaksOfGo sends every tool every kind of wrong input, and checks the error texts.
func TestNoToolSpeaksOfGo(t *testing.T) {
	env := wiretest.NewEnv(t)
	env.Fail(permissions.NoRoute("bot")) // so that valid input fails as well
	s := newEnv(t, func(o *mcp.Options) { o.Requests = env })
	c := s.client(legacy)
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]int{} // by the tools themselves
	speaks := func(tool string, with any) {
		r, text := wait(t, "a result", call(t.Context(), c, tool, with)), ""
		if r.err != nil { // not a valid message, which ends the client's connection
			text, c = r.err.Error(), s.client(legacy)
		} else {
			text = textOf(t, r.CallToolResult)
			refused[tool]++
		}
		if schematest.Leak(text) != "" {
			t.Errorf("%s %.80s: %q speaks of %q", tool, with, text, schematest.Leak(text))
		}
	}
	for _, tool := range list.Tools {
		described, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		for _, input := range schematest.Wrong(described) {
			if json.Valid([]byte(input)) {
				speaks(tool.Name, json.RawMessage(input))
			}
		}
	}
	for _, tool := range schema.AskingTools {
		if refused[tool.Name] < 100 {
			t.Errorf("%s refused only %d wrong inputs", tool.Name, refused[tool.Name])
		}
	}
	for _, failure := range []error{context.DeadlineExceeded, context.Canceled} {
		env.Fail(failure)
		speaks("request_permission", network)
		speaks("await_request", arguments{"id": "01J"})
		speaks("approve_tool", shell)
	}
}

// TestAnEditorIsToldWhyItsDialogIsWithdrawn in words.
func TestAnEditorIsToldWhyItsDialogIsWithdrawn(t *testing.T) {
	s := newDialogEnv(t)
	e := newEditor(t)
	reasons := make(chan string, 1)
	c := s.stdioAs(legacy, nil, e.options(), func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if p, is := r.GetParams().(*sdk.CancelledParams); is {
				reasons <- p.Reason
			}
			return next(ctx, method, r)
		}
	})
	waits := call(t.Context(), c, "ask_user", choose)
	wait(t, "a dialog", e.shown)
	s.decide(s.pending(1)[0].ID, permissions.Choose(2), "")
	s.get(waits)
	if reason := wait(t, "a reason", reasons); reason != "the question is not open here any more" {
		t.Errorf("the editor is told %q", reason)
	}
}
