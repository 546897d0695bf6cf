package anthropic

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
	"github.com/daycared/daycared/internal/wire"
)

type streamEvent struct {
	Type         provider.Text
	Index        provider.Number
	Message      struct{ Usage usage }
	ContentBlock struct {
		Type, Text, ID, Name provider.Text
		Input                json.RawMessage // its type depends on the tool
	} `json:"content_block"`
	Delta struct {
		Type, Text  provider.Text
		PartialJSON provider.Text `json:"partial_json"`
		StopReason  provider.Text `json:"stop_reason"`
	}
	Usage usage
}

type usage struct {
	Input         provider.Number `json:"input_tokens"`
	CacheCreation provider.Number `json:"cache_creation_input_tokens"`
	CacheRead     provider.Number `json:"cache_read_input_tokens"`
	Output        provider.Number `json:"output_tokens"`
}

// reading assembles a reply from the events of a stream.
type reading struct {
	link   *provider.Client
	write  func(string)
	text   strings.Builder
	blocks map[provider.Number]*call
	calls  []*call // in the order in which they started
	usage  models.Usage
	reason provider.Text
	ended  bool
}

// call is a call whose input arrives in pieces.
type call struct {
	id, name string
	whole    json.RawMessage // the initial input: complete if no pieces follow
	pieces   strings.Builder
}

// Event processes one event. Unknown types of events and blocks are ignored, as the provider requires, and so are
// fields of unexpected types.
func (r *reading) Event(name string, data []byte) error {
	switch {
	case name == "error":
		return r.link.Streamed(data)
	case name == "", name == "ping", len(strings.TrimSuffix(string(data), "\n")) == 0:
		return nil
	}
	var e streamEvent
	var odd *json.UnmarshalTypeError
	if err := json.Unmarshal(data, &e); err != nil && !errors.As(err, &odd) {
		return err
	}
	if err := wire.CheckNames(data); err != nil { // other parsers could read another value
		return err
	}
	switch e.Type {
	case "message_start":
		r.used(e.Message.Usage)
	case "content_block_start":
		r.begin(e)
	case "content_block_delta":
		switch b := r.blocks[e.Index]; {
		case e.Delta.Type == "text_delta":
			r.say(e.Delta.Text)
		case e.Delta.Type == "input_json_delta" && b != nil:
			b.pieces.WriteString(string(e.Delta.PartialJSON))
		}
	case "message_delta":
		r.reason = e.Delta.StopReason
		r.used(e.Usage)
	case "message_stop":
		r.ended = true
	}
	return nil
}

func (r *reading) begin(e streamEvent) {
	switch e.ContentBlock.Type {
	case "text":
		if r.text.Len() > 0 {
			r.say("\n\n")
		}
		r.say(e.ContentBlock.Text)
	case "tool_use":
		c := &call{id: string(e.ContentBlock.ID), name: string(e.ContentBlock.Name), whole: e.ContentBlock.Input}
		r.blocks[e.Index], r.calls = c, append(r.calls, c)
	}
}

func (r *reading) say(words provider.Text) {
	if words != "" {
		r.text.WriteString(string(words))
		r.write(string(words))
	}
}

// used adds counts, which only grow; a missing one is 0.
func (r *reading) used(u usage) {
	r.usage.Read = max(r.usage.Read, int64(u.Input+u.CacheCreation+u.CacheRead))
	r.usage.Written = max(r.usage.Written, int64(u.Output))
}

// End returns the reply. A stream without its end event broke off.
func (r *reading) End(string) (models.Reply, error) {
	reply := models.Reply{Text: r.text.String(), Usage: r.usage,
		Cut: r.reason == "max_tokens" || r.reason == "model_context_window_exceeded"}
	switch {
	case !r.ended:
		return reply, r.link.Broken("the reply broke off")
	case r.reason == "refusal":
		return reply, r.link.Refused("the model refuses to go on with this conversation")
	}
	for _, c := range r.calls {
		input := json.RawMessage(c.pieces.String())
		if len(input) == 0 {
			var whole any
			_ = json.Unmarshal(c.whole, &whole) // valid or missing
			input, _ = json.Marshal(whole)
		}
		reply.Calls = append(reply.Calls, models.Call{ID: c.id, Tool: c.name, Input: input})
	}
	return reply, nil
}
