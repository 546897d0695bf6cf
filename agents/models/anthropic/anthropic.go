// Package anthropic asks models over the Messages of Anthropic.
//
// The configuration alone decides what is sent and where: the ANTHROPIC_… variables of the environment, and the profiles
// that the library looks for in the home folder, are not read.
package anthropic

import (
	"cmp"
	"context"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/provider"
)

const (
	// Base is Anthropic's own address.
	Base = "https://api.anthropic.com"
	// Window is that of a model of which the configuration says none, in tokens.
	Window = 200_000
	// Most is how many tokens a reply may have where the configuration does not say.
	Most = 8192
)

// Options are what a model needs. Only the name is required.
type Options struct {
	Name    string // as the provider calls the model
	BaseURL string // without the v1; empty: [Base]
	Key     models.Key
	Window  int64 // tokens of a prompt and its reply together; 0: [Window]
	Most    int64 // tokens that one reply may have; 0: [Most]
	Price   models.Price
	Link    provider.Options // how often and how long; its Base and Key are not looked at
}

// Model is one model at one provider. It is safe for concurrent use.
type Model struct {
	o       Options
	link    *provider.Link
	service func() anthropic.MessageService // a function, as that does not print
}

var _ models.Model = (*Model)(nil)

// New makes a model. Nothing is sent. The error is about the address or the key, and shows neither.
func New(o Options) (*Model, error) {
	o.BaseURL, o.Window, o.Most = cmp.Or(o.BaseURL, Base), cmp.Or(o.Window, Window), cmp.Or(o.Most, Most)
	o.Link.Base, o.Link.Key = o.BaseURL, o.Key
	link, err := provider.New(o.Link)
	if err != nil {
		return nil, err
	}
	key := o.Key
	o.Key, o.Link.Key = "", ""
	return &Model{o: o, link: link, service: func() anthropic.MessageService {
		// Not the library's client, which reads the environment; tracing reads it, too, and is told before it looks.
		options := []option.RequestOption{option.WithBaseURL(link.Base()), option.WithMaxRetries(0),
			option.WithoutOpenTelemetry(), option.WithOpenTelemetryPropagation(false)}
		if key != "" {
			options = append(options, option.WithAPIKey(string(key)))
		}
		return anthropic.NewMessageService(options...)
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

// once asks once.
func (m *Model) once(ctx context.Context, p models.Prompt, params anthropic.MessageNewParams, write func(string)) (
	models.Reply, error,
) {
	x := m.link.Exchange(ctx)
	service := m.service()
	stream := service.NewStreaming(x.Context(), params, option.WithHTTPClient(x))
	read := reading{write: write, blocks: map[int64]*block{}}
	for stream.Next() {
		read.event(stream.Current())
	}
	err := x.End(ctx, m.fault(stream.Err()))
	if err != nil {
		return models.Reply{}, err
	}
	reply, err := read.end(m.link, p)
	if err != nil {
		return models.Reply{}, err
	}
	reply.Usage = provider.Spent(reply.Usage, p, reply)
	return reply, nil
}
