package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/daycared/daycared/agents/models"
)

// event is one of a stream.
type event struct {
	name string // Anthropic's have one
	data any
}

// write answers.
func (s *Server) write(w http.ResponseWriter, r *http.Request, d Dialect, a Answer) {
	switch {
	case a.Fault != nil:
		a.Fault.write(w, d)
		return
	case a.Plain != "":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, a.Plain)
		return
	case a.Page != "":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, a.Page)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	flush := func() { _ = http.NewResponseController(w).Flush() }
	if a.Raw != "" {
		_, _ = io.WriteString(w, a.Raw)
		return
	}
	a = a.whole()
	events := openAIEvents(a)
	if d == Anthropic {
		events = anthropicEvents(a)
	}
	for i, e := range events {
		if i == len(events)/2 {
			flush()
			switch {
			case !s.wait(r.Context(), a.Pause), a.Odd.Short:
				return
			case a.Odd.Cut:
				panic(http.ErrAbortHandler)
			case a.Odd.Error:
				f := Fault{Type: "overloaded_error", Text: "Overloaded"}
				e = event{name: "error", data: f.body(d)}
				writeEvent(w, e)
				return
			}
		}
		if a.Odd.Comments {
			_, _ = io.WriteString(w, ": still here\n\n")
		}
		writeEvent(w, e)
		flush()
	}
}

func writeEvent(w io.Writer, e event) {
	if e.name != "" {
		fmt.Fprintf(w, "event: %s\n", e.name)
	}
	if text, ok := e.data.(string); ok {
		fmt.Fprintf(w, "data: %s\n\n", text)
		return
	}
	data, err := json.Marshal(e.data)
	if err != nil {
		panic(fmt.Sprintf("modeltest: an event: %v", err))
	}
	fmt.Fprintf(w, "data: %s\n\n", data)
}

// whole fills in what an answer leaves out.
func (a Answer) whole() Answer {
	if a.Usage == (models.Usage{}) {
		a.Usage = models.Usage{Read: 10, Written: 5}
	}
	if a.Pieces == 0 {
		a.Pieces = 3
	}
	calls := make([]models.Call, len(a.Calls))
	for i, c := range a.Calls {
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%s_%d", c.Tool, i)
		}
		calls[i] = c
	}
	a.Calls = calls
	return a
}

// pieces cuts a text into n, at any byte but not within a letter.
func pieces(text string, n int) []string {
	letters := []rune(text)
	var all []string
	for i := range n {
		if piece := letters[len(letters)*i/n : len(letters)*(i+1)/n]; len(piece) > 0 {
			all = append(all, string(piece))
		}
	}
	return all
}

func openAIEvents(a Answer) []event {
	var events []event
	chunk := func(choices []any, more map[string]any) {
		body := map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}
		for k, v := range more {
			body[k] = v
		}
		events = append(events, event{data: body})
	}
	delta := func(d map[string]any) {
		if a.Odd.NoChoice {
			chunk([]any{}, nil)
		}
		chunk([]any{map[string]any{"index": 0, "delta": d, "finish_reason": nil}}, nil)
	}
	delta(map[string]any{"role": "assistant", "content": ""})
	for _, words := range pieces(a.Text, a.Pieces) {
		delta(map[string]any{"content": words})
	}
	for i, c := range a.Calls {
		if a.Odd.NoIndex {
			i = 0
		}
		head := map[string]any{"index": i, "type": "function", "function": map[string]any{"name": c.Tool, "arguments": ""}}
		if !a.Odd.NoIDs {
			head["id"] = c.ID
		}
		parts := pieces(string(c.Input), a.Pieces)
		if a.Pieces == 1 && len(parts) > 0 { // as Ollama: all at once
			head["function"] = map[string]any{"name": c.Tool, "arguments": parts[0]}
			parts = nil
		}
		delta(map[string]any{"tool_calls": []any{head}})
		for _, part := range parts {
			delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": part}}}})
		}
	}
	finish := a.Finish
	if finish == "" {
		finish = "stop"
		if len(a.Calls) > 0 {
			finish = "tool_calls"
		}
	}
	if !a.Odd.NoFinish {
		chunk([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}}, nil)
	}
	if !a.Odd.NoUsage {
		chunk([]any{}, map[string]any{"usage": map[string]any{"prompt_tokens": a.Usage.Read,
			"completion_tokens": a.Usage.Written, "total_tokens": a.Usage.Read + a.Usage.Written}})
	}
	if !a.Odd.NoDone {
		events = append(events, event{data: "[DONE]"})
	}
	return events
}

func anthropicEvents(a Answer) []event {
	var events []event
	add := func(name string, more map[string]any) {
		body := map[string]any{"type": name}
		for k, v := range more {
			body[k] = v
		}
		events = append(events, event{name: name, data: body})
	}
	first, last := map[string]any{"input_tokens": a.Usage.Read, "output_tokens": 1}, map[string]any{"output_tokens": a.Usage.Written}
	if a.Odd.NoUsage {
		first, last = map[string]any{}, map[string]any{}
	}
	add("message_start", map[string]any{"message": map[string]any{"id": "msg_1", "type": "message", "role": "assistant",
		"model": "m", "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": first}})
	add("ping", nil)
	index := 0
	if a.Text != "" {
		add("content_block_start", map[string]any{"index": index, "content_block": map[string]any{"type": "text", "text": ""}})
		for _, words := range pieces(a.Text, a.Pieces) {
			add("content_block_delta", map[string]any{"index": index, "delta": map[string]any{"type": "text_delta", "text": words}})
		}
		add("content_block_stop", map[string]any{"index": index})
		index++
	}
	for _, c := range a.Calls {
		add("content_block_start", map[string]any{"index": index,
			"content_block": map[string]any{"type": "tool_use", "id": c.ID, "name": c.Tool, "input": map[string]any{}}})
		for _, part := range pieces(string(c.Input), a.Pieces) {
			add("content_block_delta", map[string]any{"index": index,
				"delta": map[string]any{"type": "input_json_delta", "partial_json": part}})
		}
		add("content_block_stop", map[string]any{"index": index})
		index++
	}
	finish := a.Finish
	if finish == "" {
		finish = "end_turn"
		if len(a.Calls) > 0 {
			finish = "tool_use"
		}
	}
	add("message_delta", map[string]any{"delta": map[string]any{"stop_reason": finish, "stop_sequence": nil}, "usage": last})
	add("message_stop", nil)
	return events
}
