package mcp

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// outcomeOf is what stands beside the sentence.
type outcomeOf struct {
	State     permissions.State   `json:"state"`
	Answer    *permissions.Answer `json:"answer"`
	Scope     *string             `json:"scope"`
	ID        permissions.ID      `json:"id"`
	Digest    string              `json:"digest"`
	Comment   *string             `json:"comment"`
	DecidedBy *string             `json:"decided_by"`
	Result    string              `json:"result"`
}

// told is a request's outcome, in the words of the contract, and note in a line of its own. One that is still open says how
// to come back to it.
func told(r permissions.Request, note string) *mcp.CallToolResult {
	o := permissions.Result(r)
	if note != "" {
		o.Text += "\n(" + note + ")"
	}
	if r.State == permissions.Pending {
		o.Text += fmt.Sprintf("\nNobody has said no: call await_request with the id %s, or ask the same again.", r.ID)
	}
	w := wire.From(permissions.Standing{Request: r}, false)
	return &mcp.CallToolResult{
		IsError: o.Error, Content: text(o.Text),
		StructuredContent: outcomeOf{
			State: w.State, Answer: w.Answer, Scope: w.Scope, ID: w.ID, Digest: w.Digest,
			Comment: w.Comment, DecidedBy: w.DecidedBy, Result: o.Text,
		},
	}
}

// refused is a question that was not put to anybody.
func refused(err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: text(why(err))}
}

// why is an error in words for models.
func why(err error) string {
	if wire.Gone(err) {
		return err.Error() + "; nothing is granted. It is started with: daycared serve"
	}
	return err.Error()
}

func text(s string) []mcp.Content { return []mcp.Content{&mcp.TextContent{Text: s}} }

// verdict is a tool request's outcome as Claude Code reads it: what was shown is what runs.
func verdict(r permissions.Request) *mcp.CallToolResult {
	o := permissions.Result(r)
	if r.State != permissions.Approved || o.Error || o.Exit != permissions.ExitYes {
		return denied(o.Text)
	}
	return said(map[string]any{"behavior": "allow", "updatedInput": r.Input})
}

func denied(why string) *mcp.CallToolResult {
	return said(map[string]any{"behavior": "deny", "message": why})
}

func said(v map[string]any) *mcp.CallToolResult {
	line, err := wire.Encode(v)
	if err != nil { // an input that was canonical a moment ago
		line = []byte(`{"behavior":"deny","message":"the verdict could not be written"}`)
	}
	return &mcp.CallToolResult{Content: text(string(line))}
}
