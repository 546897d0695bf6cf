package modeltest

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"github.com/daycared/daycared/agents/models"
)

// Wire formats that only other programs speak; see [ServeOthers].
const (
	Responses Dialect = "responses" // OpenAI's Responses, for Codex
	Gemini    Dialect = "gemini"    // Google's generateContent and streamGenerateContent
)

// foreign are the paths of those formats.
var foreign = map[Dialect]string{
	Responses: "POST /v1/responses",
	Gemini:    "POST /v1beta/models/{call}",
}

// glanceResponses reads the tools and the newest item of an OpenAI Responses request.
func glanceResponses(body []byte) (Request, error) {
	var in struct {
		Model string
		Tools []struct{ Name, Type string }
		Input []struct {
			Type, Role      string
			Content, Output json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	if len(in.Input) == 0 {
		return Request{}, errors.New("there is no input")
	}
	r := Request{Dialect: Responses, Model: in.Model}
	for _, t := range in.Tools {
		r.Prompt.Tools = append(r.Prompt.Tools, models.Tool{Name: t.Name})
	}
	last := in.Input[len(in.Input)-1]
	m := newest(last.Role, last.Content)
	if strings.HasSuffix(last.Type, "_output") {
		m = newest(string(models.Results), last.Output)
	}
	r.Prompt.Messages = []models.Message{m}
	return r, nil
}

// glanceGemini reads the tools and the newest content of a Gemini request.
func glanceGemini(body []byte) (Request, error) {
	var in struct {
		Tools []struct {
			FunctionDeclarations []struct{ Name string }
		}
		Contents []struct {
			Role  string
			Parts []struct {
				Text             string
				FunctionResponse *struct{ Response json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	if len(in.Contents) == 0 {
		return Request{}, errors.New("there are no contents")
	}
	r := Request{Dialect: Gemini}
	for _, list := range in.Tools {
		for _, t := range list.FunctionDeclarations {
			r.Prompt.Tools = append(r.Prompt.Tools, models.Tool{Name: t.Name})
		}
	}
	last := in.Contents[len(in.Contents)-1]
	m := models.Message{Role: models.Role(last.Role)}
	var words []string
	for _, part := range last.Parts {
		if part.FunctionResponse != nil {
			m.Role = models.Results
			part.Text = string(part.FunctionResponse.Response)
		}
		words = append(words, part.Text)
	}
	m.Text = strings.Join(words, "\n")
	r.Prompt.Messages = []models.Message{m}
	return r, nil
}

// responsesEvents is an OpenAI Responses stream.
func responsesEvents(a Answer) []event {
	var events []event
	add := func(name string, more object) {
		body := object{"type": name, "sequence_number": len(events)}
		maps.Copy(body, more)
		events = append(events, event{name: name, data: body})
	}
	var items []object
	if a.Text != "" {
		items = append(items, object{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
			"content": []any{object{"type": "output_text", "text": a.Text, "annotations": []any{}}}})
	}
	for _, c := range a.Calls {
		space, name, within := strings.Cut(c.Tool, "/") // a tool in a namespace is NAMESPACE/NAME
		item := object{"type": "function_call", "id": "fc_" + c.ID, "call_id": c.ID, "name": c.Tool,
			"arguments": string(c.Input), "status": "completed"}
		if within {
			item["namespace"], item["name"] = space, name
		}
		items = append(items, item)
	}
	whole := object{"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": items,
		"usage": object{"input_tokens": a.Usage.Read, "input_tokens_details": object{"cached_tokens": 0},
			"output_tokens": a.Usage.Written, "output_tokens_details": object{"reasoning_tokens": 0},
			"total_tokens": a.Usage.Read + a.Usage.Written}}
	add("response.created", object{"response": object{"id": "resp_1", "object": "response", "status": "in_progress", "output": []any{}}})
	for i, item := range items {
		add("response.output_item.added", object{"output_index": i, "item": item})
		add("response.output_item.done", object{"output_index": i, "item": item})
	}
	add("response.completed", object{"response": whole})
	return events
}

// geminiEvents is a Gemini stream of one part.
func geminiEvents(a Answer) []event {
	var parts []object
	if a.Text != "" {
		parts = append(parts, object{"text": a.Text})
	}
	for _, c := range a.Calls {
		parts = append(parts, object{"functionCall": object{"name": c.Tool, "args": c.Input}})
	}
	return []event{{data: object{
		"candidates": []any{object{"index": 0, "finishReason": "STOP", "content": object{"role": "model", "parts": parts}}},
		"usageMetadata": object{"promptTokenCount": a.Usage.Read, "candidatesTokenCount": a.Usage.Written,
			"totalTokenCount": a.Usage.Read + a.Usage.Written},
		"modelVersion": "m",
	}}}
}
