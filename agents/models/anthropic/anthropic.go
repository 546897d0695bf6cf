// Package anthropic is a client of Anthropic's Messages API, streamed. It is our own because the provider's library
// takes longer to compile than all of daycared.
//
// Only the configuration determines what is sent and where: the ANTHROPIC_… environment variables are not read.
package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
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
	return func(x *provider.Attempt) error { return d.send(x, body) }, err
}

func (d *dialect) Reading(write func(string)) provider.Reading {
	return &reading{link: d.link, write: write, blocks: map[provider.Number]*call{}}
}

// send sends the request. The response is read from the exchange, which also closes it.
func (d *dialect) send(x *provider.Attempt, body []byte) error {
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
	_, err = x.Do(r) //nolint:bodyclose // see above
	return err
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
