// Package anthropic is a client of Anthropic's Messages API, streamed. It is our own because the provider's library
// takes longer to compile than all of daycared.
//
// Only the configuration determines what is sent and where: the ANTHROPIC_… environment variables are not read.
package anthropic

import (
	"bytes"
	"cmp"
	"context"
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

// Options configure a model. Only Name is required.
type Options struct {
	Name    string // the provider's name of the model
	BaseURL string // without /v1; empty: [Base]
	Key     models.Key
	Window  int64 // tokens of prompt and reply together; 0: [Window]
	Most    int64 // most tokens of one reply; 0: [Most]
	Price   models.Price
	Link    provider.Options // retries and time limits; its Base and Key are ignored
}

// Model is one model at one provider. It is safe for concurrent use.
type Model struct {
	o    Options
	link *provider.Client
	key  func() string // a function, so that it is never printed
}

var _ models.Model = (*Model)(nil)

// New makes a model without sending anything. The error is about the address or the key, and contains neither.
func New(o Options) (*Model, error) {
	o.BaseURL, o.Window, o.Most = cmp.Or(o.BaseURL, Base), cmp.Or(o.Window, Window), cmp.Or(o.Most, Most)
	o.Link.Base, o.Link.Key = o.BaseURL, o.Key
	link, err := provider.New(o.Link)
	if err != nil {
		return nil, err
	}
	key := string(o.Key)
	o.Key, o.Link.Key = "", ""
	return &Model{o: o, link: link, key: func() string { return key }}, nil
}

// Name implements [models.Model].
func (m *Model) Name() string { return m.o.Name }

// Window implements [models.Model].
func (m *Model) Window() int64 { return m.o.Window }

// Cost implements [models.Model].
func (m *Model) Cost(u models.Usage) int64 { return m.o.Price.Cost(u) }

// Close closes idle connections. The model remains usable.
func (m *Model) Close() { m.link.Close() }

// Reply implements [models.Model].
func (m *Model) Reply(ctx context.Context, p models.Prompt, write func(string)) (models.Reply, error) {
	if write == nil {
		write = func(string) {}
	}
	body, err := json.Marshal(m.params(p))
	if err != nil {
		return models.Reply{}, err
	}
	return m.link.Try(ctx, func() (models.Reply, error) {
		return m.once(ctx, p, body, write)
	}, func() { write("") })
}

// once makes one attempt.
func (m *Model) once(ctx context.Context, p models.Prompt, body []byte, write func(string)) (models.Reply, error) {
	x := m.link.Exchange(ctx)
	read := reading{link: m.link, write: write, blocks: map[provider.Number]*call{}}
	err := m.send(x, body)
	if err == nil {
		err = x.Events(read.event)
	}
	if err := x.End(ctx, err); err != nil {
		return models.Reply{}, err
	}
	reply, err := read.end(p)
	if err != nil {
		return models.Reply{}, err
	}
	reply.Usage = provider.Spent(reply.Usage, p, reply)
	return reply, nil
}

// send sends the request. The response is read from the exchange, which also closes it.
func (m *Model) send(x *provider.Attempt, body []byte) error {
	r, err := http.NewRequestWithContext(x.Context(), http.MethodPost, m.link.Base()+"v1/messages", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Anthropic-Version", version)
	if key := m.key(); key != "" {
		r.Header.Set("X-Api-Key", key)
	}
	_, err = x.Do(r) //nolint:bodyclose // see above
	return err
}

// request is the body of a Messages request.
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

// params converts a prompt.
func (m *Model) params(p models.Prompt) request {
	params := request{Model: m.o.Name, MaxTokens: m.o.Most, Stream: true}
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
