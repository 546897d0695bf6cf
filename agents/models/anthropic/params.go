package anthropic

import (
	"regexp"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
)

// params writes a prompt as Messages take it.
func (m *Model) params(p models.Prompt) anthropic.MessageNewParams {
	params := anthropic.MessageNewParams{Model: m.o.Name, MaxTokens: m.o.Most}
	if p.System != "" {
		params.System = []anthropic.TextBlockParam{{Text: p.System}}
	}
	for _, message := range p.Messages {
		blocks := blocksOf(message)
		if len(blocks) == 0 {
			continue // a turn without a word is refused
		}
		role := anthropic.MessageParamRoleUser
		if message.Role == models.Assistant {
			role = anthropic.MessageParamRoleAssistant
		}
		if n := len(params.Messages); n > 0 && params.Messages[n-1].Role == role { // roles take turns
			params.Messages[n-1].Content = append(params.Messages[n-1].Content, blocks...)
			continue
		}
		params.Messages = append(params.Messages, anthropic.MessageParam{Role: role, Content: blocks})
	}
	for _, t := range p.Tools {
		schema := provider.Schema(t.Schema)
		delete(schema, "type") // it is always an object
		params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: t.Name, Description: anthropic.String(t.Description),
			InputSchema: anthropic.ToolInputSchemaParam{ExtraFields: schema},
		}})
	}
	return params
}

func blocksOf(m models.Message) []anthropic.ContentBlockParamUnion {
	var blocks []anthropic.ContentBlockParamUnion
	if m.Role == models.Results {
		for _, r := range m.Results {
			block := anthropic.ToolResultBlockParam{ToolUseID: safe(r.ID)}
			if r.Text != "" {
				block.Content = []anthropic.ToolResultBlockParamContentUnion{{OfText: &anthropic.TextBlockParam{Text: r.Text}}}
			}
			if r.Error {
				block.IsError = anthropic.Bool(true)
			}
			blocks = append(blocks, anthropic.ContentBlockParamUnion{OfToolResult: &block})
		}
		return blocks
	}
	if m.Text != "" {
		blocks = append(blocks, anthropic.NewTextBlock(m.Text))
	}
	for _, c := range m.Calls {
		blocks = append(blocks, anthropic.NewToolUseBlock(safe(c.ID), provider.Object(c.Input), provider.Name(c.Tool)))
	}
	return blocks
}

var unsafe = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// safe is an id, which another provider may have given, as this one takes it.
func safe(id string) string { return unsafe.ReplaceAllLiteralString(id, "_") }
