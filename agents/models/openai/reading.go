package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
	"github.com/daycared/daycared/internal/wire"
)

// chunk is an event of a stream, with the fields that we read.
type chunk struct {
	Error   json.RawMessage
	Choices []struct {
		Index provider.Number
		Delta struct {
			Content, Refusal provider.Text
			ToolCalls        []piece `json:"tool_calls"`
		}
		FinishReason provider.Text `json:"finish_reason"`
	}
	Usage struct {
		Prompt     provider.Number `json:"prompt_tokens"`
		Completion provider.Number `json:"completion_tokens"`
		Total      provider.Number `json:"total_tokens"`
	}
}

type piece struct {
	Index    provider.Number
	ID       provider.Text
	Function struct{ Name, Arguments provider.Text }
}

// reading assembles a reply from the chunks of a stream.
type reading struct {
	link   *provider.Client
	write  func(string)
	text   strings.Builder
	calls  []*call
	usage  models.Usage
	finish provider.Text
}

// call is a call whose input arrives in pieces.
type call struct {
	index     provider.Number
	id, name  string
	arguments strings.Builder
}

// Event processes one event. Fields of unexpected types are ignored; an event that is no object is an error.
func (r *reading) Event(_ string, data []byte) error {
	switch {
	case len(data) == 0:
		return nil
	case bytes.HasPrefix(data, []byte("[DONE]")):
		return io.EOF
	}
	var c chunk
	var odd *json.UnmarshalTypeError
	if err := json.Unmarshal(data, &c); err != nil && (!errors.As(err, &odd) || odd.Field == "") {
		return err
	}
	if err := wire.CheckNames(data); err != nil { // other parsers could read another value
		return err
	}
	if c.Error != nil {
		return r.link.Streamed(data)
	}
	r.chunk(c)
	return nil
}

// chunk processes one chunk. Chunks without a choice carry usage or keep the connection alive.
func (r *reading) chunk(c chunk) {
	if u := c.Usage; u.Total > 0 || u.Prompt > 0 || u.Completion > 0 {
		r.usage = models.Usage{Read: int64(u.Prompt), Written: int64(u.Completion)}
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		if words := string(choice.Delta.Content + choice.Delta.Refusal); words != "" {
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

// piece adds a piece of a call. Some servers give every call the first index: another id starts a new call, and so does
// another name once the arguments are complete.
func (r *reading) piece(p piece) {
	id, name := string(p.ID), string(p.Function.Name)
	var at *call
	for _, c := range r.calls {
		if c.index == p.Index {
			at = c // the last with this index
		}
	}
	other := at == nil || id != "" && at.id != "" && id != at.id ||
		id == "" && name != "" && at.name != "" && json.Valid([]byte(at.arguments.String()))
	if other {
		at = &call{index: p.Index}
		r.calls = append(r.calls, at)
	}
	at.id = cmp.Or(at.id, id)
	if at.name != name { // some repeat it with every piece
		at.name += name
	}
	at.arguments.WriteString(string(p.Function.Arguments))
}

// End returns the reply. A stream without a finish reason and without its end mark broke off.
func (r *reading) End(tail string) (models.Reply, error) {
	done := strings.HasSuffix(tail, "[DONE]")
	reply := models.Reply{Text: r.text.String(), Usage: r.usage, Cut: r.finish == "length"}
	switch {
	case r.finish == "" && !done:
		return reply, r.link.Broken("the reply broke off")
	case r.finish == "error":
		return reply, r.link.Broken("the provider ended the reply with an error")
	case r.finish == "content_filter":
		return reply, r.link.Refused("the provider's filter ended the reply")
	}
	for _, c := range r.calls {
		reply.Calls = append(reply.Calls, models.Call{ID: c.id, Tool: c.name, Input: json.RawMessage(c.arguments.String())})
	}
	return reply, nil
}
