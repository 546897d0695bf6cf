package client

import (
	"context"
	"errors"
	"time"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// ErrUnreachable is matched by errors that mean there is no daemon to ask, or none any more.
var ErrUnreachable = api.ErrUnreachable

// Options say where the daemon is, and who asks.
type Options struct {
	// Socket is the path of agent.sock. The account that this process runs as is who asks, unless there is a token.
	Socket string
	// URL is where a daemon on another machine listens, instead of Socket: https, or http on this machine. Redirects are
	// not followed. There only a token proves who asks.
	URL string
	// Proxy is the URL of the proxy on the way to URL, and CAFile holds certificates in PEM that are trusted there instead of
	// the machine's; empty: as the environment has it (HTTPS_PROXY, SSL_CERT_FILE).
	Proxy, CAFile string
	// TokenFile holds the token to present, on one line; empty: none is. It is read for every call, so that one token can
	// replace another. At a socket it is presented only to this account, root, its file's owner, and an account whose socket
	// nobody else can have put there.
	TokenFile string
}

// Client asks one daemon. It is safe for concurrent use; end it with [Client.Close].
type Client struct {
	// Progress, if set before the first question, is told each request when it has been created, when it has been shown
	// somewhere, and when a lost connection is back.
	Progress func(permissions.Standing)
	// Lost, if set before the first question, is told once when a connection is lost, before it is tried again.
	Lost func(error)

	calls *api.Client
}

// New makes a client. It does not connect yet. The error says what is wrong with the options.
func New(o Options) (*Client, error) {
	c := &Client{}
	switch {
	case (o.Socket == "") == (o.URL == ""):
		return nil, errors.New("name either the daemon's socket or its URL")
	case o.URL == "" && (o.Proxy != "" || o.CAFile != ""):
		return nil, errors.New("a proxy and certificates are for a URL, not for a socket")
	case o.Socket != "":
		c.calls = api.NewClient(o.Socket)
	default:
		var err error
		if c.calls, err = api.NewRemoteClient(o.URL, wire.Way{Proxy: o.Proxy, CAFile: o.CAFile}); err != nil {
			return nil, err
		}
	}
	c.calls.TokenFile = o.TokenFile
	c.calls.Progress = func(w wire.Request) {
		if c.Progress == nil {
			return
		}
		if s, err := w.Standing(); err == nil {
			c.Progress(s)
		}
	}
	c.calls.Lost = func(err error) {
		if c.Lost != nil {
			c.Lost(err)
		}
	}
	return c, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.calls.Close() }

// ErrOtherRow is matched by errors that mean the answer is about another request than the one that was asked. Nothing is
// permitted by it.
var ErrOtherRow = api.ErrOtherRow

// Put asks what q says, whatever its kind, and waits until it is settled. When ctx ends first, or the daemon stays away
// until the deadline, the error says so and the request is as it was last told. Without a connection to begin with it
// fails at once with [ErrUnreachable]. What the daemon refuses is a *[permissions.Refusal].
func (c *Client) Put(ctx context.Context, q permissions.Request) (permissions.Standing, error) {
	return c.calls.Put(ctx, q)
}

// Begin is [Client.Put] that does not wait: the request as it stands. A Put with the same Call, which must not be empty, and
// the request's id goes on from there.
func (c *Client) Begin(ctx context.Context, q permissions.Request) (permissions.Standing, error) {
	return c.calls.Begin(ctx, q)
}

// Reply answers a request that this caller asked by what the dialog of its own editor brought, where it may be answered
// there ([permissions.Standing].Editor); shown is the digest of what was shown.
func (c *Client) Reply(
	ctx context.Context, id permissions.ID, a permissions.Answer, shown permissions.Digest,
) (permissions.Standing, error) {
	return c.calls.Reply(ctx, id, a, shown)
}

// Get reads a request that this caller asked, waiting at most wait, which is at most 50 s, for it to be settled.
func (c *Client) Get(ctx context.Context, id permissions.ID, wait time.Duration) (permissions.Standing, error) {
	return c.calls.Get(ctx, id, wait)
}

// Forgo withdraws a pending request that this caller asked, unless a call of another name ([permissions.Request].Call)
// waits for the same; then it stays as it is.
func (c *Client) Forgo(ctx context.Context, id permissions.ID, call string) (permissions.Standing, error) {
	return c.calls.Forgo(ctx, id, call)
}

// Cancel withdraws a pending request that this caller asked.
func (c *Client) Cancel(ctx context.Context, id permissions.ID) (permissions.Standing, error) {
	return c.calls.Cancel(ctx, id)
}

// Ready is nil while questions can be stored and answered; the error says what to do.
func (c *Client) Ready(ctx context.Context) error { return c.calls.Ready(ctx) }
