package openai

import (
	"github.com/openai/openai-go/v3"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
)

// params writes a prompt as Chat Completions take it.
func (m *Model) params(p models.Prompt) openai.ChatCompletionNewParams {
	params := openai.ChatCompletionNewParams{
		Model:         m.o.Name,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	switch {
	case m.o.Most > 0 && m.ours():
		params.MaxCompletionTokens = openai.Int(m.o.Most)
	case m.o.Most > 0:
		params.MaxTokens = openai.Int(m.o.Most)
	}
	if p.System != "" {
		params.Messages = append(params.Messages, openai.SystemMessage(p.System))
	}
	for _, message := range p.Messages {
		params.Messages = append(params.Messages, messages(message)...)
	}
	for _, t := range p.Tools {
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: t.Name, Description: openai.String(t.Description), Parameters: provider.Schema(t.Schema),
		}))
	}
	return params
}

// messages are those that a turn is. One without a word and a call is none: providers refuse it.
func messages(m models.Message) []openai.ChatCompletionMessageParamUnion {
	var all []openai.ChatCompletionMessageParamUnion
	switch {
	case m.Role == models.Results:
		for _, r := range m.Results {
			text := r.Text
			if r.Error {
				text = "Error: " + text // there is no other place for it
			}
			all = append(all, openai.ToolMessage(text, r.ID))
		}
	case m.Role == models.Assistant && (m.Text != "" || len(m.Calls) > 0):
		said := openai.ChatCompletionAssistantMessageParam{}
		if m.Text != "" {
			said.Content.OfString = openai.String(m.Text)
		}
		for _, c := range m.Calls {
			said.ToolCalls = append(said.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
					ID: c.ID,
					Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
						Name: provider.Name(c.Tool), Arguments: string(provider.Object(c.Input)),
					},
				},
			})
		}
		all = append(all, openai.ChatCompletionMessageParamUnion{OfAssistant: &said})
	case m.Role == models.User && m.Text != "":
		all = append(all, openai.UserMessage(m.Text))
	}
	return all
}
