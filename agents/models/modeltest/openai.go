package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/daycared/daycared/agents/models"
)

type openAIRequest struct {
	Model         string          `json:"model"`
	Messages      []openAIMessage `json:"messages"`
	Tools         []openAITool    `json:"tools"`
	Stream        bool            `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           int64 `json:"max_tokens"`
	MaxCompletionTokens int64 `json:"max_completion_tokens"`
}

type openAIMessage struct {
	Role       string       `json:"role"`
	Content    *string      `json:"content"`
	ToolCalls  []openAICall `json:"tool_calls"`
	ToolCallID string       `json:"tool_call_id"`
}

type openAICall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type openAITool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func parseOpenAI(header http.Header, body []byte) (Request, error) {
	var in openAIRequest
	if err := strictly(body, &in); err != nil {
		return Request{}, err
	}
	if auth := header.Get("Authorization"); auth != "" && !strings.HasPrefix(auth, "Bearer ") {
		return Request{}, errors.New("the authorization is not a bearer's")
	}
	out := Request{Dialect: OpenAI, Model: in.Model, Most: max(in.MaxTokens, in.MaxCompletionTokens)}
	for _, t := range in.Tools {
		if t.Type != "function" {
			return Request{}, fmt.Errorf("a tool of type %q", t.Type)
		}
		out.Prompt.Tools = append(out.Prompt.Tools,
			models.Tool{Name: t.Function.Name, Description: t.Function.Description, Schema: t.Function.Parameters})
	}
	for i, m := range in.Messages {
		if err := m.add(&out.Prompt, i); err != nil {
			return Request{}, fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	return out, out.check(in.Stream)
}

// add adds a message. Consecutive results, each a message here, are one of our messages.
func (m openAIMessage) add(p *models.Prompt, i int) error {
	var text string
	if m.Content != nil {
		text = *m.Content
	}
	switch {
	case m.Role == "system" && i == 0 && text != "":
		p.System = text
		return nil
	case m.Role != "assistant" && (m.Content == nil || m.ToolCalls != nil), m.Role != "tool" && m.ToolCallID != "":
		return fmt.Errorf("a %s's message has no content, or what is another's", m.Role)
	case m.Role == "user":
		p.Messages = append(p.Messages, models.Message{Role: models.User, Text: text})
	case m.Role == "assistant":
		said := models.Message{Role: models.Assistant, Text: text}
		for _, c := range m.ToolCalls {
			if c.Type != "function" {
				return fmt.Errorf("a call of type %q", c.Type)
			}
			said.Calls = append(said.Calls,
				models.Call{ID: c.ID, Tool: c.Function.Name, Input: json.RawMessage(c.Function.Arguments)})
		}
		p.Messages = append(p.Messages, said)
	case m.Role == "tool":
		if n := len(p.Messages); n == 0 || p.Messages[n-1].Role != models.Results {
			p.Messages = append(p.Messages, models.Message{Role: models.Results})
		}
		last := &p.Messages[len(p.Messages)-1]
		failed := strings.HasPrefix(text, "Error: ")
		last.Results = append(last.Results, models.Result{ID: m.ToolCallID, Text: strings.TrimPrefix(text, "Error: "), Error: failed})
	default:
		return fmt.Errorf("a message of %q is not possible here", m.Role)
	}
	return nil
}
