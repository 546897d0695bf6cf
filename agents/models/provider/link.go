// Package provider is what all model providers share: how they are reached, when a request is retried, and what errors mean.
//
// A library may write the requests of a dialect, but none sends or reads one: libraries follow redirects, wait as long as they are
// told, count comments as errors, and put addresses into error texts. So each attempt is an [Attempt] of ours: it follows no
// redirect, bounds silence and length, tolerates the events of real servers, and turns everything but success into a *[Fault];
// [Client.Try] knows which fault is transient and when to retry.
package provider

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/internal/wire"
)

// Options configure how a provider is reached.
type Options struct {
	Base  string // base URL, such as https://api.openai.com/v1
	Key   models.Key
	Retry Retry
	// Silence is the longest time without data. 0: five minutes, since a local server may have to load its model first.
	Silence time.Duration
	Log     *slog.Logger // logs retries; nil: none
}

// Retry bounds the retries of transient faults. Zero fields have defaults.
type Retry struct {
	Tries   int           // at most, including the first; 5
	Wait    time.Duration // before the first retry without a hint; later ones wait longer; half a second
	Longest time.Duration // no retry if the provider asks for more; two minutes
}

// Client is a connection to a provider. It is safe for concurrent use.
type Client struct {
	base    string
	client  *http.Client
	retry   Retry
	silence time.Duration
	hide    *strings.Replacer
	log     *slog.Logger
}

// New makes a link without sending anything. The error does not contain the address.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.Base)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, errors.New("the base URL of a model is written as in http://127.0.0.1:11434/v1")
	case u.User != nil || strings.ContainsAny(o.Base, "?#"):
		return nil, errors.New("the base URL of a model has a host and a path only; secrets go into the key's file")
	case u.Scheme == "http" && o.Key != "" && !wire.Loopback(u.Hostname()):
		return nil, errors.New("the base URL of a model would send the key in the clear; write https://…")
	case strings.ContainsFunc(string(o.Key), func(c rune) bool { return c <= ' ' || c > '~' }):
		return nil, errors.New("the key of a model has characters that no key has, such as spaces or line breaks")
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // a dead HTTP/2 connection would hang all sessions at once
	return &Client{
		base: strings.TrimRight(o.Base, "/") + "/",
		client: &http.Client{
			Transport: &http.Transport{
				Proxy:               http.ProxyFromEnvironment,
				DialContext:         (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
				TLSHandshakeTimeout: 15 * time.Second,
				IdleConnTimeout:     90 * time.Second,
				Protocols:           protocols,
			},
			// A redirect would send the key and the conversation elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		retry: Retry{
			Tries: cmp.Or(o.Retry.Tries, 5), Wait: cmp.Or(o.Retry.Wait, 500*time.Millisecond),
			Longest: cmp.Or(o.Retry.Longest, 2*time.Minute),
		},
		silence: cmp.Or(o.Silence, 5*time.Minute),
		hide:    keyRedactor(string(o.Key)),
		log:     cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
	}, nil
}

// Base is the base URL with a trailing slash.
func (l *Client) Base() string { return l.base }

// Close closes idle connections. The link remains usable.
func (l *Client) Close() { l.client.CloseIdleConnections() }

// lost is a connection error without the address and the key.
func (l *Client) lost(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errSilence):
		err = fmt.Errorf("nothing came for %v", l.silence)
	case errors.Is(cause, errLong):
		return &Fault{Text: fmt.Sprintf("the reply was not whole after %v", maxTotal), kind: models.ErrAway}
	}
	return &Fault{Transient: true, Text: l.sanitize(wire.Plain(err).Error()), kind: models.ErrAway}
}

// sanitize makes a provider's text fit for logs and people.
func (l *Client) sanitize(text string) string {
	const most = 400 // characters
	text = l.hide.Replace(strings.ToValidUTF8(text, "�"))
	text = strings.TrimSpace(strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' {
			return ' '
		}
		if c < ' ' || c == 0x7f || (c >= 0x80 && c < 0xa0) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) {
			return -1
		}
		return c
	}, text))
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}

// keyRedactor removes a key, in every encoding in which servers and libraries repeat it.
func keyRedactor(key string) *strings.Replacer {
	if key == "" {
		return strings.NewReplacer()
	}
	hidden := models.Key(key).String()
	return strings.NewReplacer(key, hidden, url.QueryEscape(key), hidden, url.PathEscape(key), hidden,
		base64.StdEncoding.EncodeToString([]byte(key)), hidden)
}

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
	reply, err := read.End(strings.TrimSpace(string(x.tail)))
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
