package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// ErrUnreachable is matched by errors that mean there is no daemon to ask, or none any more.
var ErrUnreachable = wire.ErrUnreachable

// Client asks over agent.sock, or at a URL, as the account that this process runs as, or as whom its token says. It is safe for
// concurrent use; end it with [Client.Close].
type Client struct {
	// TokenFile, if set before the first call, holds the token to present (one line; mode 0600 keeps it from others). A
	// file that cannot be read, or holds no token, is an error of every call; whoever waits already tries it again.
	TokenFile string
	// Progress, if set before the first question, is told each request when it has been created, when it has been shown
	// somewhere, and when a lost connection is back.
	Progress func(wire.Request)
	// Lost, if set before the first question, is told once when a connection is lost, or when the daemon's store fails while
	// a question waits, before it is tried again.
	Lost func(error)

	wire *wire.Client
}

var _ agents.Asker = (*Client)(nil)

// NewClient makes a client of the daemon that serves the socket at that path. It does not connect yet.
func NewClient(socket string) *Client { return &Client{wire: wire.NewClient(socket)} }

// NewRemoteClient makes a client of the daemon at a URL ([wire.NewRemoteClient]), where only a token proves anything. It
// does not connect yet.
func NewRemoteClient(url string) (*Client, error) {
	c, err := wire.NewRemoteClient(url)
	if err != nil {
		return nil, err
	}
	return &Client{wire: c}, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.wire.Close() }

// Ask is [agents.Asker]. The caller is not read: the socket proves it. Without a connection it fails at once with
// [ErrUnreachable]; a connection lost later, or a store that fails, is tried again until the request's deadline.
func (c *Client) Ask(ctx context.Context, _ permissions.Caller, q permissions.Request) (permissions.Request, error) {
	s, err := c.Put(ctx, q)
	return s.Request, err
}

// Put is [Client.Ask] that also tells where the request was shown.
func (c *Client) Put(ctx context.Context, q permissions.Request) (permissions.Standing, error) {
	a := newAsking(c, q)
	err := a.run(ctx)
	if a.row.ID == "" {
		return permissions.Standing{}, err
	}
	s, unread := a.row.Standing()
	if err == nil {
		err = unread
	}
	return s, err
}

// Begin is [Client.Put] that does not wait: the request as it stands. A Put with the same Call and the request's id goes on
// from there.
func (c *Client) Begin(ctx context.Context, q permissions.Request) (permissions.Standing, error) {
	a := newAsking(c, q)
	if err := a.post(ctx, 0); err != nil {
		return permissions.Standing{}, err
	}
	return a.row.Standing()
}

// Reply answers a request of this caller's by what the dialog of its own editor brought, which showed what has that digest.
func (c *Client) Reply(
	ctx context.Context, id permissions.ID, a permissions.Answer, shown permissions.Digest,
) (permissions.Standing, error) {
	path := "/v1/requests/" + url.PathEscape(string(id)) + "/answer"
	var w wire.Request
	if err := c.call(ctx, http.MethodPost, path, nil, wire.Reply{Answer: a, Digest: shown.String()}, 0, &w); err != nil {
		return permissions.Standing{}, err
	}
	return w.Standing()
}

// Get reads a request of this caller's, waiting at most wait for it to be settled.
func (c *Client) Get(ctx context.Context, id permissions.ID, wait time.Duration) (permissions.Standing, error) {
	path := "/v1/requests/" + url.PathEscape(string(id)) + "?wait=" + wait.String()
	var w wire.Request
	if err := c.call(ctx, http.MethodGet, path, nil, nil, wait, &w); err != nil {
		return permissions.Standing{}, err
	}
	return w.Standing()
}

// Cancel withdraws a pending request of this caller's.
func (c *Client) Cancel(ctx context.Context, id permissions.ID) (permissions.Standing, error) {
	return c.cancel(ctx, id, nil)
}

// Forgo withdraws a pending request of this caller's, unless another call than the one of that name waits for it; then
// it stays as it is.
func (c *Client) Forgo(ctx context.Context, id permissions.ID, call string) (permissions.Standing, error) {
	return c.cancel(ctx, id, http.Header{headerCall: {call}})
}

func (c *Client) cancel(ctx context.Context, id permissions.ID, header http.Header) (permissions.Standing, error) {
	path := "/v1/requests/" + url.PathEscape(string(id)) + "/cancel"
	var w wire.Request
	if err := c.call(ctx, http.MethodPost, path, header, nil, 0, &w); err != nil {
		return permissions.Standing{}, err
	}
	return w.Standing()
}

// Ready is nil while requests can be stored and answered.
func (c *Client) Ready(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, "/readyz", nil, nil, 0, nil)
}

// call is one call, with the token if there is one.
func (c *Client) call(
	ctx context.Context, method, path string, header http.Header, in any, wait time.Duration, out any,
) error {
	header, err := c.present(header)
	if err != nil {
		return err
	}
	return c.wire.Call(ctx, method, path, header, in, wait, out)
}
