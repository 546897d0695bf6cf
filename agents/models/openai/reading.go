package openai

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
)

// reading puts the chunks of a stream together.
type reading struct {
	write  func(string)
	text   strings.Builder
	calls  []*call
	usage  models.Usage
	finish string
}

// call is a call as it comes, in pieces.
type call struct {
	index     int64
	id, name  string
	arguments strings.Builder
}

// chunk takes one. Those without a choice tell what was used, or keep the line alive.
func (r *reading) chunk(c openai.ChatCompletionChunk) {
	if c.Usage.TotalTokens > 0 || c.Usage.PromptTokens > 0 || c.Usage.CompletionTokens > 0 {
		r.usage = models.Usage{Read: c.Usage.PromptTokens, Written: c.Usage.CompletionTokens}
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		if words := choice.Delta.Content + choice.Delta.Refusal; words != "" {
			r.text.WriteString(words)
			r.write(words)
		}
		for _, piece := range choice.Delta.ToolCalls {
			r.piece(piece)
		}
		if choice.FinishReason != "" {
			r.finish = choice.FinishReason
		}
	}
}

// piece takes a piece of a call. Some servers count every call as the first one: another id begins another call, and so
// does another name once the arguments so far are whole.
func (r *reading) piece(p openai.ChatCompletionChunkChoiceDeltaToolCall) {
	var at *call
	for _, c := range r.calls {
		if c.index == p.Index {
			at = c // the last of this index
		}
	}
	other := at == nil || p.ID != "" && at.id != "" && p.ID != at.id ||
		p.ID == "" && p.Function.Name != "" && at.name != "" && json.Valid([]byte(at.arguments.String()))
	if other {
		at = &call{index: p.Index}
		r.calls = append(r.calls, at)
	}
	if at.id == "" {
		at.id = p.ID
	}
	if at.name != p.Function.Name { // some repeat it with every piece
		at.name += p.Function.Name
	}
	at.arguments.WriteString(p.Function.Arguments)
}

// end is the reply. A stream that says neither why it ended nor that it did broke off.
func (r *reading) end(link *provider.Link, p models.Prompt, tail string) (models.Reply, error) {
	done := strings.HasSuffix(tail, "[DONE]")
	reply := models.Reply{Text: r.text.String(), Usage: r.usage, Cut: r.finish == "length"}
	switch {
	case r.finish == "" && !done:
		return reply, link.Broken("the reply broke off")
	case r.finish == "error":
		return reply, link.Broken("the provider ended the reply with an error")
	case r.finish == "content_filter":
		return reply, link.Refused("the provider's filter ended the reply")
	}
	for _, c := range r.calls {
		if c.name == "" {
			return reply, link.Broken("the reply calls a tool without a name")
		}
		reply.Calls = append(reply.Calls, models.Call{ID: c.id, Tool: c.name, Input: json.RawMessage(c.arguments.String())})
	}
	reply.Calls = provider.Calls(reply.Calls, p)
	return reply, nil
}

// fault is what the library's error is about; an error inside a stream is the provider's own.
func (m *Model) fault(err error) error {
	var streamed *ssestream.StreamError
	if errors.As(err, &streamed) {
		return m.link.Streamed(streamed.Event.Data)
	}
	return err
}
