package provider

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/daycared/daycared/agents/models"
)

// Calls makes calls fit to be kept: each has an id that is no other's in the conversation, and an input that is JSON. Some
// servers give no ids, or begin to count anew with every reply, which others refuse to be told.
func Calls(calls []models.Call, p models.Prompt) []models.Call {
	seen := map[string]bool{}
	for _, m := range p.Messages {
		for _, c := range m.Calls {
			seen[c.ID] = true
		}
	}
	for i := range calls {
		c := &calls[i]
		for c.ID == "" || seen[c.ID] {
			c.ID = rand.Text()[:9] // nine letters and digits: some models take no other
		}
		seen[c.ID] = true
		c.Input = input(string(c.Input))
	}
	return calls
}

// input is what the model wrote, if that is a JSON object. Nothing is an empty one, and anything else a string.
func input(text string) json.RawMessage {
	trimmed := strings.TrimSpace(strings.ToValidUTF8(text, "�"))
	if trimmed == "" {
		return json.RawMessage(`{}`)
	}
	if raw := json.RawMessage(trimmed); trimmed[0] == '{' && json.Valid(raw) {
		return raw
	}
	raw, _ := json.Marshal(trimmed) // a string always can be written
	return raw
}

// Name is the name of a tool as providers take it back: 1 to 64 letters, digits, - and _. Models make up others, and a
// conversation that has one would be refused from then on.
func Name(tool string) string {
	clean := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, tool)
	return cmp.Or(clean[:min(len(clean), 64)], "_")
}

// Object is the input of a call as providers take it back: an object in any case.
func Object(input json.RawMessage) json.RawMessage {
	if trimmed := bytes.TrimSpace(input); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		return trimmed
	}
	if len(input) == 0 || !json.Valid(input) {
		input, _ = json.Marshal(string(input)) // a string always can be written
	}
	raw, _ := json.Marshal(map[string]json.RawMessage{"not_an_object": input}) // it is valid
	return raw
}

// Schema is that of a tool's input as providers take it: an object with properties.
func Schema(raw json.RawMessage) map[string]any {
	var schema map[string]any
	if json.Unmarshal(raw, &schema) != nil || schema == nil {
		schema = map[string]any{}
	}
	schema["type"] = "object"
	if _, ok := schema["properties"].(map[string]any); !ok {
		schema["properties"] = map[string]any{}
	}
	return schema
}

// Spent is the usage that a provider told, and an estimate of what it did not.
func Spent(told models.Usage, p models.Prompt, r models.Reply) models.Usage {
	if told.Read == 0 {
		told.Read = models.Estimate(p)
	}
	if told.Written == 0 {
		told.Written = models.EstimateMessage(models.Message{Role: models.Assistant, Text: r.Text, Calls: r.Calls})
	}
	return told
}
