package openai

import (
	"github.com/sashabaranov/go-openai"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
)

// params writes a prompt as Chat Completions take it, but for what [sender] adds.
func (m *Model) params(p models.Prompt) openai.ChatCompletionRequest {
	params := openai.ChatCompletionRequest{StreamOptions: &openai.StreamOptions{IncludeUsage: true}}
	switch {
	case m.o.Most > 0 && m.ours():
		params.MaxCompletionTokens = int(m.o.Most)
	case m.o.Most > 0:
		params.MaxTokens = int(m.o.Most) //nolint:staticcheck // deprecated at OpenAI alone; most others know no other
	}
	if p.System != "" {
		params.Messages = append(params.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: p.System})
	}
	for _, message := range p.Messages {
		params.Messages = append(params.Messages, messages(message)...)
	}
	for _, t := range p.Tools {
		params.Tools = append(params.Tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: provider.Schema(t.Schema),
		}})
	}
	return params
}

// messages are those that a turn is. One without a word and a call is none: providers refuse it.
func messages(m models.Message) []openai.ChatCompletionMessage {
	var all []openai.ChatCompletionMessage
	switch {
	case m.Role == models.Results:
		for _, r := range m.Results {
			text := r.Text
			if r.Error {
				text = "Error: " + text // there is no other place for it
			}
			all = append(all, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, Content: text, ToolCallID: r.ID})
		}
	case m.Role == models.Assistant && (m.Text != "" || len(m.Calls) > 0):
		said := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: m.Text}
		for _, c := range m.Calls {
			said.ToolCalls = append(said.ToolCalls, openai.ToolCall{ID: c.ID, Type: openai.ToolTypeFunction,
				Function: openai.FunctionCall{Name: provider.Name(c.Tool), Arguments: string(provider.Object(c.Input))}})
		}
		all = append(all, said)
	case m.Role == models.User && m.Text != "":
		all = append(all, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: m.Text})
	}
	return all
}
