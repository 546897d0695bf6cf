// Package openai asks models over the Chat Completions of OpenAI, which Ollama, llama.cpp, vLLM, OpenRouter and many
// others speak as well, each a little differently. What they leave out is filled in: ids of calls, what was used, the
// reason why a reply ended. So the library writes the requests alone. Its reader of streams takes only what OpenAI itself
// sends: it loses an error after a comment, and refuses a chunk for the type of a field that nobody needs.
//
// The configuration alone decides what is sent and where: the OPENAI_… variables of the environment are not read.
package openai

import (
	"cmp"
	"context"
	"net/url"

	"github.com/sashabaranov/go-openai"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
)

const (
	// Base is OpenAI's own address.
	Base = "https://api.openai.com/v1"
	// Window is that of a model of which the configuration says none, in tokens.
	Window = 128_000
)

// Options are what a model needs. Only the name is required.
type Options struct {
	Name    string // as the provider calls the model
	BaseURL string // empty: [Base]
	Key     models.Key
	Window  int64 // tokens of a prompt and its reply together; 0: [Window]
	Most    int64 // tokens that one reply may have; 0: what the provider has by default
	Price   models.Price
	Link    provider.Options // how often and how long; its Base and Key are not looked at
}

// Model is one model at one provider. It is safe for concurrent use.
type Model struct {
	o      Options
	link   *provider.Link
	client func(*provider.Exchange) *openai.Client // a function, as that does not print
}

var _ models.Model = (*Model)(nil)

// New makes a model. Nothing is sent. The error is about the address or the key, and shows neither.
func New(o Options) (*Model, error) {
	o.BaseURL, o.Window = cmp.Or(o.BaseURL, Base), cmp.Or(o.Window, Window)
	o.Link.Base, o.Link.Key = o.BaseURL, o.Key
	link, err := provider.New(o.Link)
	if err != nil {
		return nil, err
	}
	key := o.Key
	o.Key, o.Link.Key = "", ""
	return &Model{o: o, link: link, client: func(x *provider.Exchange) *openai.Client {
		config := openai.DefaultConfig(string(key))
		config.BaseURL, config.HTTPClient = link.Base(), sender{Exchange: x, model: o.Name}
		return openai.NewClientWithConfig(config)
	}}, nil
}

// Name is [models.Model].
func (m *Model) Name() string { return m.o.Name }

// Window is [models.Model].
func (m *Model) Window() int64 { return m.o.Window }

// Cost is [models.Model].
func (m *Model) Cost(u models.Usage) int64 { return m.o.Price.Cost(u) }

// Close ends the connections that are idle. The model can still be asked.
func (m *Model) Close() { m.link.Close() }

// Reply is [models.Model].
func (m *Model) Reply(ctx context.Context, p models.Prompt, write func(string)) (models.Reply, error) {
	if write == nil {
		write = func(string) {}
	}
	params := m.params(p)
	return m.link.Try(ctx, func() (models.Reply, error) {
		return m.once(ctx, p, params, write)
	}, func() { write("") })
}

// once asks once. What answers is read from the exchange, which closes it, too.
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

// ours tells whether the model is at OpenAI itself, which no longer takes all that the others still do.
func (m *Model) ours() bool {
	u, err := url.Parse(m.o.BaseURL)
	return err == nil && u.Hostname() == "api.openai.com"
}
