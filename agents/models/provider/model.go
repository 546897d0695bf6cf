package provider

import (
	"cmp"
	"context"
	"slices"

	"github.com/daycared/daycared/agents/models"
)

// ModelOptions configure a model. Only Name is required; the dialects have defaults for the others.
type ModelOptions struct {
	Name    string // the provider's name of the model
	BaseURL string
	Key     models.Key
	Window  int64 // tokens of prompt and reply together
	Most    int64 // most tokens of one reply
	Price   models.Price
	Link    Options // retries and time limits; its Base and Key are ignored
}

// Model is one model at one provider. It is safe for concurrent use.
type Model struct {
	name    string
	window  int64
	price   models.Price
	Link    *Client
	Dialect Dialect
}

var _ models.Model = (*Model)(nil)

// Dialect is the API of a provider.
type Dialect interface {
	// Request prepares a request, which send sends in one attempt.
	Request(p models.Prompt) (send func(*Attempt) error, err error)
	// Reading begins to read a reply.
	Reading(write func(string)) Reading
}

// Reading assembles a reply from the events of a stream.
type Reading interface {
	Event(name string, data []byte) error
	// End returns the reply; tail is the end of the stream. The error is a *[Fault].
	End(tail string) (models.Reply, error)
}

// NewModel makes a model without sending anything. The error is about the address or the key, and contains neither.
func NewModel(o ModelOptions, dialect func(*Client) Dialect) (*Model, error) {
	o.Link.Base, o.Link.Key = o.BaseURL, o.Key
	link, err := New(o.Link)
	if err != nil {
		return nil, err
	}
	return &Model{name: o.Name, window: o.Window, price: o.Price, Link: link, Dialect: dialect(link)}, nil
}

// Name implements [models.Model].
func (m *Model) Name() string { return m.name }

// Window implements [models.Model].
func (m *Model) Window() int64 { return m.window }

// Cost implements [models.Model].
func (m *Model) Cost(u models.Usage) int64 { return m.price.Cost(u) }

// Close closes idle connections. The model remains usable.
func (m *Model) Close() { m.Link.Close() }

// Reply implements [models.Model].
func (m *Model) Reply(ctx context.Context, p models.Prompt, write func(string)) (models.Reply, error) {
	if write == nil {
		write = func(string) {}
	}
	send, err := m.Dialect.Request(p)
	if err != nil {
		return models.Reply{}, err
	}
	return m.Link.Try(ctx, func() (models.Reply, error) { return m.once(ctx, p, send, write) }, func() { write("") })
}

// once makes one attempt. Missing usage is estimated.
func (m *Model) once(ctx context.Context, p models.Prompt, send func(*Attempt) error, write func(string)) (models.Reply, error) {
	x, read := m.Link.Exchange(ctx), m.Dialect.Reading(write)
	err := send(x)
	if err == nil {
		err = x.Events(read.Event)
	}
	if err := x.End(ctx, err); err != nil {
		return models.Reply{}, err
	}
	reply, err := read.End(x.Tail())
	switch {
	case err != nil:
		return models.Reply{}, err
	case slices.ContainsFunc(reply.Calls, func(c models.Call) bool { return c.Tool == "" }):
		return models.Reply{}, m.Link.Broken("the reply calls a tool without a name")
	}
	reply.Calls = storable(reply.Calls, p)
	reply.Usage.Read = cmp.Or(reply.Usage.Read, models.Estimate(p))
	said := models.Message{Role: models.Assistant, Text: reply.Text, Calls: reply.Calls}
	reply.Usage.Written = cmp.Or(reply.Usage.Written, models.EstimateMessage(said))
	return reply, nil
}
