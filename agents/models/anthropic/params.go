package anthropic

import (
	"encoding/json"
	"regexp"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
)

// request is what Messages take.
type request struct {
	Model     string    `json:"model"`
	MaxTokens int64     `json:"max_tokens"`
	System    []block   `json:"system,omitempty"`
	Messages  []message `json:"messages"`
	Tools     []tool    `json:"tools,omitempty"`
	Stream    bool      `json:"stream"`
}

type message struct {
	Role    models.Role `json:"role"`
	Content []block     `json:"content"`
}

// block is a text, a call or a result, and has the fields of its type.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   []block         `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

type tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"input_schema"`
}

// params writes a prompt as Messages take it.
func (m *Model) params(p models.Prompt) request {
	params := request{Model: m.o.Name, MaxTokens: m.o.Most, Stream: true}
	if p.System != "" {
		params.System = []block{words(p.System)}
	}
	for _, turn := range p.Messages {
		blocks := blocksOf(turn)
		if len(blocks) == 0 {
			continue // a turn without a word is refused
		}
		role := models.User
		if turn.Role == models.Assistant {
			role = models.Assistant
		}
		if n := len(params.Messages); n > 0 && params.Messages[n-1].Role == role { // roles take turns
			params.Messages[n-1].Content = append(params.Messages[n-1].Content, blocks...)
			continue
		}
		params.Messages = append(params.Messages, message{Role: role, Content: blocks})
	}
	for _, t := range p.Tools {
		params.Tools = append(params.Tools, tool{Name: t.Name, Description: t.Description, InputSchema: provider.Schema(t.Schema)})
	}
	return params
}

func words(text string) block { return block{Type: "text", Text: text} }

func blocksOf(m models.Message) []block {
	var blocks []block
	if m.Role == models.Results {
		for _, r := range m.Results {
			result := block{Type: "tool_result", ToolUseID: safe(r.ID), IsError: r.Error}
			if r.Text != "" {
				result.Content = []block{words(r.Text)}
			}
			blocks = append(blocks, result)
		}
		return blocks
	}
	if m.Text != "" {
		blocks = append(blocks, words(m.Text))
	}
	for _, c := range m.Calls {
		blocks = append(blocks, block{Type: "tool_use", ID: safe(c.ID), Name: provider.Name(c.Tool), Input: provider.Object(c.Input)})
	}
	return blocks
}

var unsafe = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// safe is an id, which another provider may have given, as this one takes it.
func safe(id string) string { return unsafe.ReplaceAllLiteralString(id, "_") }
