// Package openai is a client of OpenAI's Chat Completions, which Ollama, llama.cpp, vLLM, OpenRouter and many others
// speak as well, each a little differently. It fills in what they leave out: call ids, usage, finish reasons. The
// library is used to write requests only: its stream reader accepts only what OpenAI itself sends, loses an error after
// a comment, and fails on the type of an unused field.
//
// Only the configuration determines what is sent and where: the OPENAI_… environment variables are not read.
package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"github.com/sashabaranov/go-openai"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
)

const (
	// Base is OpenAI's address.
	Base = "https://api.openai.com/v1"
	// Window is the default context window in tokens.
	Window = 128_000
)

// Options configure a model. Only Name is required.
type Options struct {
	Name    string // the provider's name of the model
	BaseURL string // empty: [Base]
	Key     models.Key
	Window  int64 // tokens of prompt and reply together; 0: [Window]
	Most    int64 // most tokens of one reply; 0: the provider's default
	Price   models.Price
	Link    provider.Options // retries and time limits; its Base and Key are ignored
}

// Model is one model at one provider. It is safe for concurrent use.
type Model struct {
	o      Options
	link   *provider.Client
	client func(*provider.Attempt) *openai.Client // a function, so that it is never printed
}

var _ models.Model = (*Model)(nil)

// New makes a model without sending anything. The error is about the address or the key, and contains neither.
func New(o Options) (*Model, error) {
	o.BaseURL, o.Window = cmp.Or(o.BaseURL, Base), cmp.Or(o.Window, Window)
	o.Link.Base, o.Link.Key = o.BaseURL, o.Key
	link, err := provider.New(o.Link)
	if err != nil {
		return nil, err
	}
	key := o.Key
	o.Key, o.Link.Key = "", ""
	return &Model{o: o, link: link, client: func(x *provider.Attempt) *openai.Client {
		config := openai.DefaultConfig(string(key))
		config.BaseURL, config.HTTPClient = link.Base(), sender{Attempt: x, model: o.Name}
		return openai.NewClientWithConfig(config)
	}}, nil
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
	params := m.params(p)
	return m.link.Try(ctx, func() (models.Reply, error) {
		return m.once(ctx, p, params, write)
	}, func() { write("") })
}

// once makes one attempt. The response is read from the exchange, which also closes it.
func (m *Model) once(ctx context.Context, p models.Prompt, params openai.ChatCompletionRequest, write func(string)) (
	models.Reply, error,
) {
	x := m.link.Exchange(ctx)
	read := reading{link: m.link, write: write}
	_, err := m.client(x).CreateChatCompletionStream(x.Context(), params)
	if err == nil {
		err = x.Events(read.event)
	}
	if err := x.End(ctx, err); err != nil {
		return models.Reply{}, err
	}
	reply, err := read.end(p, x.Tail())
	if err != nil {
		return models.Reply{}, err
	}
	reply.Usage = provider.Spent(reply.Usage, p, reply)
	return reply, nil
}

// ours reports whether the provider is OpenAI itself, which no longer accepts all that others do.
func (m *Model) ours() bool {
	u, err := url.Parse(m.o.BaseURL)
	return err == nil && u.Hostname() == "api.openai.com"
}

// sender sends the library's request with what the library cannot write: a model name that it rejects for this API, an
// empty result or description.
type sender struct {
	*provider.Attempt
	model string
}

// Do is called by the library.
func (s sender) Do(r *http.Request) (*http.Response, error) {
	var body map[string]any
	in := json.NewDecoder(r.Body)
	in.UseNumber()
	if err := in.Decode(&body); err != nil {
		return nil, err
	}
	body["model"] = s.model
	for _, message := range objects(body["messages"]) {
		if message["role"] == "tool" && message["content"] == nil {
			message["content"] = ""
		}
	}
	for _, tool := range objects(body["tools"]) {
		if function, ok := tool["function"].(map[string]any); ok && function["description"] == nil {
			function["description"] = ""
		}
	}
	out, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(out)), int64(len(out))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out)), nil }
	return s.Attempt.Do(r)
}

func objects(list any) []map[string]any {
	var all []map[string]any
	values, _ := list.([]any)
	for _, value := range values {
		if object, ok := value.(map[string]any); ok {
			all = append(all, object)
		}
	}
	return all
}

// params converts a prompt, except for what [sender] adds.
func (m *Model) params(p models.Prompt) openai.ChatCompletionRequest {
	params := openai.ChatCompletionRequest{StreamOptions: &openai.StreamOptions{IncludeUsage: true}}
	switch {
	case m.o.Most > 0 && m.ours():
		params.MaxCompletionTokens = int(m.o.Most)
	case m.o.Most > 0:
		params.MaxTokens = int(m.o.Most) //nolint:staticcheck // deprecated at OpenAI alone; most others know no other
	}
	if p.System != "" {
		params.Messages = append(params.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: p.System})
	}
	for _, message := range p.Messages {
		params.Messages = append(params.Messages, messages(message)...)
	}
	for _, t := range p.Tools {
		params.Tools = append(params.Tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: provider.Schema(t.Schema),
		}})
	}
	return params
}

// messages converts a turn. One without text and calls is left out, since providers refuse it.
func messages(m models.Message) []openai.ChatCompletionMessage {
	var all []openai.ChatCompletionMessage
	switch {
	case m.Role == models.Results:
		for _, r := range m.Results {
			text := r.Text
			if r.Error {
				text = "Error: " + text // the dialect has no error field
			}
			all = append(all, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, Content: text, ToolCallID: r.ID})
		}
	case m.Role == models.Assistant && (m.Text != "" || len(m.Calls) > 0):
		said := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: m.Text}
		for _, c := range m.Calls {
			said.ToolCalls = append(said.ToolCalls, openai.ToolCall{ID: c.ID, Type: openai.ToolTypeFunction,
				Function: openai.FunctionCall{Name: provider.Name(c.Tool), Arguments: string(provider.Object(c.Input))}})
		}
		all = append(all, said)
	case m.Role == models.User && m.Text != "":
		all = append(all, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: m.Text})
	}
	return all
}
