package anthropic

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
	"github.com/daycared/daycared/internal/wire"
)

// streamEvent is one of a stream, with the fields of every type that we read.
type streamEvent struct {
	Type         provider.Text
	Index        provider.Number
	Message      struct{ Usage usage }
	ContentBlock struct {
		Type, Text, ID, Name provider.Text
		Input                json.RawMessage // of a kind that the tool decides
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

// reading puts the events of a stream together.
type reading struct {
	link   *provider.Link
	write  func(string)
	text   strings.Builder
	blocks map[provider.Number]*call
	calls  []*call // of them, in the order in which they began
	usage  models.Usage
	reason provider.Text
	ended  bool
}

// call is a call as it comes, in pieces.
type call struct {
	id, name string
	whole    json.RawMessage // what it began with: all of it, where no pieces come
	pieces   strings.Builder
}

// event takes one. Events and blocks of kinds that we do not know are passed over, as the provider asks of its clients, and
// so are fields of other types than theirs.
func (r *reading) event(name string, data []byte) error {
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
	if err := wire.CheckNames(data); err != nil { // what others read in it may be something else
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

// used takes counts that grow; what an event leaves out is 0.
func (r *reading) used(u usage) {
	r.usage.Read = max(r.usage.Read, int64(u.Input+u.CacheCreation+u.CacheRead))
	r.usage.Written = max(r.usage.Written, int64(u.Output))
}

// end is the reply. A stream that does not say that it ended broke off.
func (r *reading) end(p models.Prompt) (models.Reply, error) {
	reply := models.Reply{Text: r.text.String(), Usage: r.usage,
		Cut: r.reason == "max_tokens" || r.reason == "model_context_window_exceeded"}
	switch {
	case !r.ended:
		return reply, r.link.Broken("the reply broke off")
	case r.reason == "refusal":
		return reply, r.link.Refused("the model refuses to go on with this conversation")
	}
	for _, c := range r.calls {
		if c.name == "" {
			return reply, r.link.Broken("the reply calls a tool without a name")
		}
		input := json.RawMessage(c.pieces.String())
		if len(input) == 0 {
			var whole any
			_ = json.Unmarshal(c.whole, &whole) // it is valid, or missing
			input, _ = json.Marshal(whole)
		}
		reply.Calls = append(reply.Calls, models.Call{ID: c.id, Tool: c.name, Input: input})
	}
	reply.Calls = provider.Calls(reply.Calls, p)
	return reply, nil
}
