package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// ErrUnreachable is matched by errors that mean there is no daemon to ask, or none any more.
var ErrUnreachable = wire.ErrUnreachable

// ErrOtherRow is matched by errors that mean the answer is about another request than the one that it was asked for, such as
// one that a proxy mixed up. Nothing is permitted by it.
var ErrOtherRow = errors.New("the answer is about another request than this one")

// Client asks over agent.sock, or at a URL, as the account that this process runs as, or as whom its token says. It is safe for
// concurrent use; end it with [Client.Close].
type Client struct {
	// TokenFile, if set before the first call, holds the token to present (one line; mode 0600 keeps it from others). A
	// file that cannot be read, or holds no token, is an error of every call; whoever waits already tries it again.
	TokenFile string
	// Progress, if set before the first question, is told each request when it has been created, when it has been shown
	// somewhere, and when a lost connection is back.
	Progress func(permissions.RequestView)
	// Lost, if set before the first question, is told once when a connection is lost, or when the daemon's store fails while
	// a question waits, before it is tried again.
	Lost func(error)

	wire *wire.Client
}

var _ agents.Asker = (*Client)(nil)

// NewClient makes a client of the daemon that serves the socket at that path. It does not connect yet.
// A token is presented to this account, root, the owner of its file, and whose socket nobody else can have put there.
func NewClient(socket string) *Client {
	c := &Client{}
	c.wire = wire.NewClient(socket, func(uid int) bool { return wire.Owns(uid, c.TokenFile) || wire.IsTrustedSocket(uid, socket) })
	return c
}

// NewRemoteClient makes a client of the daemon at a URL ([wire.NewRemoteClient]), where only a token proves anything. It
// does not connect yet.
func NewRemoteClient(url string, way wire.RemoteOptions) (*Client, error) {
	c, err := wire.NewRemoteClient(url, way)
	if err != nil {
		return nil, err
	}
	return &Client{wire: c}, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.wire.Close() }

// Ask is [agents.Asker], by [Client.Put]. The caller is not read: the socket proves it. A connection lost on the way, or a
// store that fails, is tried again until the request's deadline.
func (c *Client) Ask(ctx context.Context, _ permissions.Caller, q permissions.Request) (permissions.Request, error) {
	s, err := c.Put(ctx, q)
	return s.Request, err
}

// Put asks what q says, whatever its kind, and waits until it is settled. When ctx ends first, or the daemon stays away until
// the deadline, the error says so and the request is as it was last told. Without a connection to begin with it fails at
// once with [ErrUnreachable]. What the daemon refuses is a *[permissions.Refusal].
func (c *Client) Put(ctx context.Context, q permissions.Request) (permissions.RequestView, error) {
	a, err := newAsking(c, q)
	if err != nil {
		return permissions.RequestView{}, err
	}
	err = a.run(ctx)
	if a.row.ID == "" {
		return permissions.RequestView{}, err
	}
	s, unread := a.row.Standing()
	if err == nil {
		err = unread
	}
	return s, err
}

// Begin is [Client.Put] that does not wait: the request as it stands. A Put with the same Call, if it has one, and the
// request's id goes on from there.
func (c *Client) Begin(ctx context.Context, q permissions.Request) (permissions.RequestView, error) {
	a, err := newAsking(c, q)
	if err != nil {
		return permissions.RequestView{}, err
	}
	if q.Call == "" {
		a.header.Del(headerCall)
	}
	if err := a.post(ctx, 0); err != nil {
		return permissions.RequestView{}, err
	}
	return a.row.Standing()
}

// Reply answers a request of this caller's by what the dialog of its own editor brought, where it may be answered there
// ([permissions.RequestView].Editor); shown is the digest of what was shown.
func (c *Client) Reply(
	ctx context.Context, id permissions.ID, a permissions.Answer, shown permissions.Digest,
) (permissions.RequestView, error) {
	s, err := c.row(ctx, http.MethodPost, id, "/answer", nil, wire.Reply{Answer: a, Digest: shown.String()}, 0)
	if err == nil && s.Request.Digest != shown {
		return permissions.RequestView{}, fmt.Errorf("%w, %s", ErrOtherRow, id)
	}
	return s, err
}

// Get reads a request of this caller's, waiting at most wait, which is at most 50 s, for it to be settled.
func (c *Client) Get(ctx context.Context, id permissions.ID, wait time.Duration) (permissions.RequestView, error) {
	return c.row(ctx, http.MethodGet, id, "?wait="+wait.String(), nil, nil, wait)
}

// Cancel withdraws a pending request of this caller's.
func (c *Client) Cancel(ctx context.Context, id permissions.ID) (permissions.RequestView, error) {
	return c.cancel(ctx, id, nil)
}

// Regret withdraws a pending request of this caller's after so long, at most an hour, unless somebody has asked the same again by then,
// or waits for it.
func (c *Client) Regret(ctx context.Context, id permissions.ID, after time.Duration) (permissions.RequestView, error) {
	return c.row(ctx, http.MethodPost, id, "/cancel?after="+after.String(), nil, nil, 0)
}

// Forgo withdraws a pending request of this caller's, unless another call than the one of that name waits for it; then
// it stays as it is.
func (c *Client) Forgo(ctx context.Context, id permissions.ID, call string) (permissions.RequestView, error) {
	return c.cancel(ctx, id, http.Header{headerCall: {call}})
}

// Recall withdraws what the caller asked and needs no answer any more, and returns how many requests that was.
func (c *Client) Recall(ctx context.Context, m permissions.Recall) (withdrawn int, err error) {
	var out wire.Recalled
	err = c.call(ctx, http.MethodPost, "/v1/recall", nil, wire.MootOf(m), 0, &out)
	return out.Withdrawn, err
}

// Tell has somebody told something, and returns who that is. An empty name is whoever the caller belongs to.
func (c *Client) Tell(
	ctx context.Context, to string, about permissions.About, t permissions.Telling,
) (person string, err error) {
	var out wire.Told
	err = c.call(ctx, http.MethodPost, "/v1/tell", nil, wire.TellOf(to, about, t), 0, &out)
	return out.To, err
}

func (c *Client) cancel(ctx context.Context, id permissions.ID, header http.Header) (permissions.RequestView, error) {
	return c.row(ctx, http.MethodPost, id, "/cancel", header, nil, 0)
}

// row is one call about a request, which must be answered by its row.
func (c *Client) row(
	ctx context.Context, method string, id permissions.ID, rest string, header http.Header, in any, wait time.Duration,
) (permissions.RequestView, error) {
	var w wire.Request
	if err := c.call(ctx, method, "/v1/requests/"+url.PathEscape(string(id))+rest, header, in, wait, &w); err != nil {
		return permissions.RequestView{}, err
	}
	if w.ID != id {
		return permissions.RequestView{}, fmt.Errorf("%w, %s", ErrOtherRow, w.ID)
	}
	return w.Standing()
}

// Ready is nil while questions can be stored and answered; the error says what to do.
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

// maxTokenFile is more than any file with one token has, in bytes.
const maxTokenFile = 4096

var errNoToken = errors.New("there is no token in it; it holds one line, which begins with dcd_a_")
var errNotRegular = errors.New("it is not a regular file")

// present adds the token to h, if the client has one. The file is read for every call, so that one token can replace
// another while somebody waits.
func (c *Client) present(h http.Header) (http.Header, error) {
	if c.TokenFile == "" {
		return h, nil
	}
	secret, err := readToken(c.TokenFile)
	if err != nil {
		return nil, &tokenFileError{file: c.TokenFile, err: err}
	}
	if h = h.Clone(); h == nil {
		h = http.Header{}
	}
	h.Set(headerToken, bearer+" "+string(secret))
	return h, nil
}

// tokenFileError says that there is no token to be had from the file just now.
type tokenFileError struct {
	file string
	err  error
}

func (e *tokenFileError) Error() string {
	return fmt.Sprintf("read the token file %s: %v", e.file, e.err)
}

// Unwrap gives the cause.
func (e *tokenFileError) Unwrap() error { return e.err }

// readToken reads a token and the line end behind it. No error tells what the file holds.
func readToken(file string) (permissions.Secret, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the account that asks names its own file
	if err != nil {
		return "", permissions.Cause(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errNotRegular
	}
	text, err := io.ReadAll(io.LimitReader(f, maxTokenFile))
	if err != nil {
		return "", permissions.Cause(err)
	}
	secret := permissions.Secret(strings.TrimRight(string(text), "\r\n"))
	if _, ok := secret.Hash(); !ok {
		return "", errNoToken
	}
	return secret, nil
}
