package modeltest

import (
	"cmp"
	"maps"

	"github.com/daycared/daycared/agents/models"
)

// object is a JSON object.
type object = map[string]any

// chunks builds a stream of OpenAI's dialect.
type chunks struct {
	a      Answer
	events []event
}

func openAIEvents(a Answer) []event {
	c := &chunks{a: a}
	c.delta(object{"role": "assistant", "content": ""})
	for _, words := range pieces(a.Text, a.Pieces) {
		c.delta(object{"content": words})
	}
	finish := "stop"
	for i, call := range a.Calls {
		c.call(i, call)
		finish = "tool_calls"
	}
	if !a.Odd.NoFinish {
		c.chunk([]any{object{"index": 0, "delta": object{}, "finish_reason": cmp.Or(a.Finish, finish)}}, nil)
	}
	if !a.Odd.NoUsage {
		c.chunk([]any{}, object{"prompt_tokens": a.Usage.Read, "completion_tokens": a.Usage.Written,
			"total_tokens": a.Usage.Read + a.Usage.Written})
	}
	if !a.Odd.NoDone {
		c.events = append(c.events, event{data: "[DONE]"})
	}
	return c.events
}

func (c *chunks) chunk(choices []any, usage object) {
	body := object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}
	if usage != nil {
		body["usage"] = usage
	}
	c.events = append(c.events, event{data: body})
}

func (c *chunks) delta(d object) {
	if c.a.Odd.NoChoice {
		c.chunk([]any{}, nil)
	}
	c.chunk([]any{object{"index": 0, "delta": d, "finish_reason": nil}}, nil)
}

// call is a head with the name, then the input in pieces; a single piece is in the head, as with Ollama.
func (c *chunks) call(index int, call models.Call) {
	if c.a.Odd.NoIndex {
		index = 0
	}
	parts := pieces(string(call.Input), c.a.Pieces)
	function := object{"name": call.Tool, "arguments": ""}
	if c.a.Pieces == 1 && len(parts) > 0 {
		function["arguments"], parts = parts[0], nil
	}
	head := object{"index": index, "type": "function", "function": function}
	if !c.a.Odd.NoIDs {
		head["id"] = call.ID
	}
	c.delta(object{"tool_calls": []any{head}})
	for _, part := range parts {
		c.delta(object{"tool_calls": []any{object{"index": index, "function": object{"arguments": part}}}})
	}
}

// blocks builds a stream of Anthropic's dialect.
type blocks struct {
	a      Answer
	events []event
	index  int
}

func anthropicEvents(a Answer) []event {
	b := &blocks{a: a}
	first, last := object{"input_tokens": a.Usage.Read, "output_tokens": 1}, object{"output_tokens": a.Usage.Written}
	if a.Odd.NoUsage {
		first, last = object{}, object{}
	}
	b.add("message_start", object{"message": object{"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": first}})
	b.add("ping", nil)
	if a.Text != "" {
		b.block(object{"type": "text", "text": ""}, "text_delta", "text", a.Text)
	}
	finish := "end_turn"
	for _, call := range a.Calls {
		b.block(object{"type": "tool_use", "id": call.ID, "name": call.Tool, "input": object{}},
			"input_json_delta", "partial_json", string(call.Input))
		finish = "tool_use"
	}
	b.add("message_delta", object{"delta": object{"stop_reason": cmp.Or(a.Finish, finish), "stop_sequence": nil}, "usage": last})
	b.add("message_stop", nil)
	return b.events
}

func (b *blocks) add(name string, more object) {
	body := object{"type": name}
	maps.Copy(body, more)
	b.events = append(b.events, event{name: name, data: body})
}

// block is one block with its text in pieces.
func (b *blocks) block(head object, kind, key, text string) {
	b.add("content_block_start", object{"index": b.index, "content_block": head})
	for _, part := range pieces(text, b.a.Pieces) {
		b.add("content_block_delta", object{"index": b.index, "delta": object{"type": kind, key: part}})
	}
	b.add("content_block_stop", object{"index": b.index})
	b.index++
}
