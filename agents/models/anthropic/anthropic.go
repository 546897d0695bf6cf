// Package anthropic is a client of Anthropic's Messages API, streamed. It is our own because the provider's library
// takes longer to compile than all of daycared.
//
// Only the configuration determines what is sent and where: the ANTHROPIC_… environment variables are not read.
package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
	"github.com/daycared/daycared/internal/wire"
)

const (
	// Base is Anthropic's address.
	Base = "https://api.anthropic.com"
	// Window is the default context window in tokens.
	Window = 200_000
	// Most is the default maximum of reply tokens.
	Most = 8192

	version = "2023-06-01" // the API's version header
)

// New makes a model without sending anything. The URL has no /v1; without one it is [Base]. The error is about the address
// or the key, and contains neither.
func New(o provider.ModelOptions) (*provider.Model, error) {
	o.BaseURL, o.Window, o.Most = cmp.Or(o.BaseURL, Base), cmp.Or(o.Window, Window), cmp.Or(o.Most, Most)
	key := string(o.Key)
	return provider.NewModel(o, func(link *provider.Client) provider.Dialect {
		return &dialect{name: o.Name, most: o.Most, link: link, key: func() string { return key }}
	})
}

type dialect struct {
	name string
	most int64
	link *provider.Client
	key  func() string // a function, so that it is never printed
}

func (d *dialect) Request(p models.Prompt) (send func(*provider.Attempt) error, err error) {
	body, err := json.Marshal(d.params(p))
	return func(x *provider.Attempt) error {
		r, err := http.NewRequestWithContext(x.Context(), http.MethodPost, d.link.Base()+"v1/messages", bytes.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Anthropic-Version", version)
		if key := d.key(); key != "" {
			r.Header.Set("X-Api-Key", key)
		}
		_, err = x.Do(r) //nolint:bodyclose // the exchange reads and closes it
		return err
	}, err
}

func (d *dialect) Reading(write func(string)) provider.Reading {
	return &reading{link: d.link, write: write, blocks: map[provider.Number]*call{}}
}

type request struct {
	Model     string    `json:"model"`
	MaxTokens int64     `json:"max_tokens"`
	System    []block   `json:"system,omitempty"`
	Messages  []message `json:"messages"`
	Tools     []tool    `json:"tools,omitempty"`
	Stream    bool      `json:"stream"`
}

type message struct {
	Role    models.Role `json:"role"`
	Content []block     `json:"content"`
}

// block is a text, a call or a result, with the fields of its type.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   []block         `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

type tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"input_schema"`
}

func (d *dialect) params(p models.Prompt) request {
	params := request{Model: d.name, MaxTokens: d.most, Stream: true}
	if p.System != "" {
		params.System = []block{words(p.System)}
	}
	for _, turn := range p.Messages {
		blocks := blocksOf(turn)
		if len(blocks) == 0 {
			continue // empty turns are refused
		}
		role := models.User
		if turn.Role == models.Assistant {
			role = models.Assistant
		}
		if n := len(params.Messages); n > 0 && params.Messages[n-1].Role == role { // roles must alternate
			params.Messages[n-1].Content = append(params.Messages[n-1].Content, blocks...)
			continue
		}
		params.Messages = append(params.Messages, message{Role: role, Content: blocks})
	}
	for _, t := range p.Tools {
		params.Tools = append(params.Tools, tool{Name: t.Name, Description: t.Description, InputSchema: provider.Schema(t.Schema)})
	}
	return params
}

func words(text string) block { return block{Type: "text", Text: text} }

func blocksOf(m models.Message) []block {
	var blocks []block
	if m.Role == models.Results {
		for _, r := range m.Results {
			result := block{Type: "tool_result", ToolUseID: safe(r.ID), IsError: r.Error}
			if r.Text != "" {
				result.Content = []block{words(r.Text)}
			}
			blocks = append(blocks, result)
		}
		return blocks
	}
	if m.Text != "" {
		blocks = append(blocks, words(m.Text))
	}
	for _, c := range m.Calls {
		blocks = append(blocks, block{Type: "tool_use", ID: safe(c.ID), Name: provider.Name(c.Tool), Input: provider.Object(c.Input)})
	}
	return blocks
}

var unsafe = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// safe makes an id of any provider valid here.
func safe(id string) string { return unsafe.ReplaceAllLiteralString(id, "_") }

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

// Event processes one event. Unknown types of events, blocks and fields are ignored, as the provider requires.
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
