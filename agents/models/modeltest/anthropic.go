package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/daycared/daycared/agents/models"
)

type anthropicRequest struct {
	Model     string             `json:"model"`
	MaxTokens int64              `json:"max_tokens"`
	System    []anthropicBlock   `json:"system"`
	Messages  []anthropicMessage `json:"messages"`
	Tools     []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	Stream bool `json:"stream"`
}

type anthropicMessage struct {
	Role    string           `json:"role"`
	Content []anthropicBlock `json:"content"`
}

type anthropicBlock struct {
	Type      string           `json:"type"`
	Text      string           `json:"text"`
	ID        string           `json:"id"`
	Name      string           `json:"name"`
	Input     json.RawMessage  `json:"input"`
	ToolUseID string           `json:"tool_use_id"`
	Content   []anthropicBlock `json:"content"`
	IsError   bool             `json:"is_error"`
}

func parseAnthropic(header http.Header, body []byte) (Request, error) {
	var in anthropicRequest
	if err := strictly(body, &in); err != nil {
		return Request{}, err
	}
	out := Request{Dialect: Anthropic, Model: in.Model, Most: in.MaxTokens}
	switch {
	case header.Get("Anthropic-Version") != "2023-06-01":
		return out, errors.New("anthropic-version: header is required")
	case header.Get("Authorization") != "":
		return out, errors.New("the key is not a bearer's")
	case in.MaxTokens <= 0:
		return out, errors.New("max_tokens: field required")
	}
	var err error
	if out.Prompt.System, err = texts(in.System); err != nil {
		return out, fmt.Errorf("system: %w", err)
	}
	for _, t := range in.Tools {
		out.Prompt.Tools = append(out.Prompt.Tools, models.Tool{Name: t.Name, Description: t.Description, Schema: t.InputSchema})
	}
	for i, m := range in.Messages {
		if i > 0 && in.Messages[i-1].Role == m.Role {
			return out, fmt.Errorf("messages.%d: roles must alternate", i)
		}
		if err := m.add(&out.Prompt); err != nil {
			return out, fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	return out, out.check(in.Stream)
}

// add adds a message. A user's may contain results, first, and text.
func (m anthropicMessage) add(p *models.Prompt) error {
	if m.Role != "user" && m.Role != "assistant" || len(m.Content) == 0 {
		return fmt.Errorf("a message of %q with %d blocks", m.Role, len(m.Content))
	}
	role := models.Role(m.Role)
	said := models.Message{Role: role}
	results := models.Message{Role: models.Results}
	var words []anthropicBlock
	for _, b := range m.Content {
		switch {
		case b.Type == "text":
			words = append(words, b)
		case b.Type == "tool_use" && role == models.Assistant:
			said.Calls = append(said.Calls, models.Call{ID: b.ID, Tool: b.Name, Input: b.Input})
		case b.Type == "tool_result" && role == models.User && len(words) == 0:
			text, err := texts(b.Content)
			if err != nil {
				return err
			}
			results.Results = append(results.Results, models.Result{ID: b.ToolUseID, Text: text, Error: b.IsError})
		default:
			return fmt.Errorf("a block of type %q is not possible here", b.Type)
		}
	}
	var err error
	if said.Text, err = texts(words); err != nil {
		return err
	}
	if len(results.Results) > 0 {
		p.Messages = append(p.Messages, results)
	}
	if len(words) > 0 || len(said.Calls) > 0 {
		p.Messages = append(p.Messages, said)
	}
	return nil
}

// texts joins the texts of blocks, one per line.
func texts(blocks []anthropicBlock) (string, error) {
	var all []string
	for _, b := range blocks {
		if b.Type != "text" || b.Text == "" {
			return "", fmt.Errorf("a block of type %q has no text", b.Type)
		}
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n"), nil
}
