package anthropic

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
)

// reading puts the events of a stream together.
type reading struct {
	write  func(string)
	text   strings.Builder
	blocks map[int64]*block
	calls  []*block // of them, in the order in which they began
	usage  models.Usage
	reason anthropic.StopReason
	ended  bool
}

// block is a call as it comes, in pieces.
type block struct {
	id, name string
	whole    json.RawMessage // what it began with: all of it, where no pieces come
	pieces   strings.Builder
}

// event takes one. Events and blocks of kinds that we do not know are passed over, as the provider asks of its clients.
func (r *reading) event(e anthropic.MessageStreamEventUnion) {
	switch e := e.AsAny().(type) {
	case anthropic.MessageStartEvent:
		u := e.Message.Usage
		r.used(u.InputTokens+u.CacheCreationInputTokens+u.CacheReadInputTokens, u.OutputTokens)
	case anthropic.ContentBlockStartEvent:
		r.begin(e)
	case anthropic.ContentBlockDeltaEvent:
		switch b := r.blocks[e.Index]; {
		case e.Delta.Type == "text_delta":
			r.say(e.Delta.Text)
		case e.Delta.Type == "input_json_delta" && b != nil:
			b.pieces.WriteString(e.Delta.PartialJSON)
		}
	case anthropic.MessageDeltaEvent:
		r.reason = e.Delta.StopReason
		u := e.Usage
		r.used(u.InputTokens+u.CacheCreationInputTokens+u.CacheReadInputTokens, u.OutputTokens)
	case anthropic.MessageStopEvent:
		r.ended = true
	}
}

func (r *reading) begin(e anthropic.ContentBlockStartEvent) {
	switch e.ContentBlock.Type {
	case "text":
		if len(r.text.String()) > 0 {
			r.say("\n\n")
		}
		r.say(e.ContentBlock.Text)
	case "tool_use":
		whole, _ := json.Marshal(e.ContentBlock.Input) // it was JSON a moment ago
		b := &block{id: e.ContentBlock.ID, name: e.ContentBlock.Name, whole: whole}
		r.blocks[e.Index], r.calls = b, append(r.calls, b)
	}
}

func (r *reading) say(words string) {
	if words != "" {
		r.text.WriteString(words)
		r.write(words)
	}
}

// used takes counts that grow; what an event leaves out is 0.
func (r *reading) used(read, written int64) {
	r.usage = models.Usage{Read: max(r.usage.Read, read), Written: max(r.usage.Written, written)}
}

// end is the reply. A stream that does not say that it ended broke off.
func (r *reading) end(link *provider.Link, p models.Prompt) (models.Reply, error) {
	reply := models.Reply{Text: r.text.String(), Usage: r.usage,
		Cut: r.reason == anthropic.StopReasonMaxTokens || r.reason == "model_context_window_exceeded"}
	switch {
	case !r.ended:
		return reply, link.Broken("the reply broke off")
	case r.reason == anthropic.StopReasonRefusal:
		return reply, link.Refused("the model refuses to go on with this conversation")
	}
	for _, b := range r.calls {
		if b.name == "" {
			return reply, link.Broken("the reply calls a tool without a name")
		}
		input := json.RawMessage(b.pieces.String())
		if len(input) == 0 {
			input = b.whole
		}
		reply.Calls = append(reply.Calls, models.Call{ID: b.id, Tool: b.name, Input: input})
	}
	reply.Calls = provider.Calls(reply.Calls, p)
	return reply, nil
}

// fault is what the library's error is about; an error inside a stream is the provider's own.
func (m *Model) fault(err error) error {
	var streamed *anthropic.Error
	if errors.As(err, &streamed) {
		return m.link.Streamed([]byte(streamed.RawJSON()))
	}
	return err
}
