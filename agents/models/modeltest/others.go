package modeltest

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"

	"github.com/daycared/daycared/agents/models"
)

// ServeOthers starts a server for other programs, whose requests contain more than ours. It checks nothing, and reads
// only the tool names and the newest message. It speaks [Responses] and [Gemini] as well.
func ServeOthers() *Server {
	paths := maps.Clone(native)
	maps.Copy(paths, foreign)
	return serve(paths, func(d Dialect) parser {
		return func(_ http.Header, body []byte) (Request, error) { return glance(d, body) }
	})
}

// glance reads what the dialects share.
func glance(d Dialect, body []byte) (Request, error) {
	switch d {
	case Responses:
		return glanceResponses(body)
	case Gemini:
		return glanceGemini(body)
	}
	var in struct {
		Model    string
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []struct {
			Name     string
			Function struct{ Name string }
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	if len(in.Messages) == 0 {
		return Request{}, errors.New("there is no message")
	}
	r := Request{Dialect: d, Model: in.Model}
	for _, t := range in.Tools {
		r.Prompt.Tools = append(r.Prompt.Tools, models.Tool{Name: t.Name + t.Function.Name})
	}
	last := in.Messages[len(in.Messages)-1]
	for i := len(in.Messages) - 2; i >= 0 && last.Role == "system"; i-- { // Claude Code appends system messages
		last = in.Messages[i]
	}
	r.Prompt.Messages = []models.Message{newest(last.Role, last.Content)}
	return r, nil
}

// newest converts a message of either dialect: Anthropic's results are blocks of a user message.
func newest(role string, content json.RawMessage) models.Message {
	m := models.Message{Role: models.Role(role)}
	if json.Unmarshal(content, &m.Text) == nil {
		return m
	}
	var blocks []struct {
		Type, Text string
		Content    json.RawMessage
	}
	_ = json.Unmarshal(content, &blocks) // anything else has no text
	var words []string
	for _, b := range blocks {
		if b.Type == "tool_result" {
			m.Role = models.Results
			b.Text = newest(role, b.Content).Text
		}
		words = append(words, b.Text)
	}
	m.Text = strings.Join(words, "\n")
	return m
}
