package admin

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// ErrUnreachable is matched by errors that mean that no daemon serves the socket.
var ErrUnreachable = wire.ErrUnreachable

// Client calls admin.sock as the account of this process, and as the operator if it can read the admin key. It is safe for
// concurrent use. Call [Client.Close] when done.
type Client struct {
	// Opened, if set before [Client.Inbox], is called once the inbox is open and its person reachable, before its first item.
	Opened func()
	// Lost and Back, if set before [Client.Inbox] or [Client.Events], are called when the connection is lost and when it is
	// back; for an inbox, after everything pending was handed over again.
	Lost func(error)
	Back func()
	// Noticed, if set before [Client.Inbox], gets messages that need no answer.
	Noticed func(lines []string)
	// Said, if set before [Client.Inbox], gets messages of this account's agents.
	Said func(Said)

	wire    *wire.Client
	keyFile string
}

// NewClient makes a client of the daemon at a socket. It does not connect. Every call presents the admin key in keyFile, if
// that exists and is readable; the daemon creates it at its first start. The key is sent only to a server that runs as this
// account, root or the owner of keyFile.
func NewClient(socket, keyFile string) *Client {
	knows := func(uid int) bool { return wire.Owns(uid, keyFile) }
	return &Client{
		Opened: func() {}, Lost: func(error) {}, Back: func() {}, Noticed: func([]string) {}, Said: func(Said) {},
		wire: wire.NewClient(socket, knows), keyFile: keyFile,
	}
}

// Close closes idle connections.
func (c *Client) Close() { c.wire.Close() }

// OnPermission is that of [connectors.Inbound]. It calls [Client.Decide].
func (c *Client) OnPermission(ctx context.Context, d connectors.Decision) (permissions.Request, error) {
	s, err := c.Decide(ctx, d)
	return s.Request, err
}

// Decide decides a request. Of d's identity only Via counts. With a refusal it returns the row, if the caller may see it.
func (c *Client) Decide(ctx context.Context, d connectors.Decision) (permissions.RequestView, error) {
	body, name := bodyOf(d)
	var w wire.Request
	err := c.wire.Call(ctx, http.MethodPost, requestPath(name)+"/decision", c.header(d.From.Via), body, 0, &w)
	if err == nil {
		return w.Standing()
	}
	beside := wire.RequestOf(err)
	if beside == nil {
		return permissions.RequestView{}, err
	}
	s, unread := beside.Standing()
	if unread != nil {
		return permissions.RequestView{}, err
	}
	return s, err
}

// List lists at most limit pending requests after the one given, oldest first; 0 is the daemon's limit.
func (c *Client) List(ctx context.Context, after permissions.ID, limit int) ([]permissions.RequestView, error) {
	path := "/v1/requests" + page(permissions.Pending, after, limit)
	return fetchEach(ctx, c, path, 0, wire.Request.Standing)
}

// Show returns a request by its id or code.
func (c *Client) Show(ctx context.Context, name string) (permissions.RequestView, error) {
	return c.row(ctx, http.MethodGet, requestPath(name))
}

// Cancel withdraws a pending request by its id or code.
func (c *Client) Cancel(ctx context.Context, name string) (permissions.RequestView, error) {
	return c.row(ctx, http.MethodPost, requestPath(name)+"/cancel")
}

// row makes a call that returns a request's row.
func (c *Client) row(ctx context.Context, method, path string) (permissions.RequestView, error) {
	w, err := ask[wire.Request](ctx, c, method, path, nil, 0)
	if err != nil {
		return permissions.RequestView{}, err
	}
	return w.Standing()
}

// Audit lists at most limit entries of the daemon's chain after seq, oldest first; 0 is the daemon's limit.
func (c *Client) Audit(ctx context.Context, after int64, limit int) ([]permissions.Entry, error) {
	query := url.Values{"after": {strconv.FormatInt(after, 10)}}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return fetchEach(ctx, c, "/v1/audit?"+query.Encode(), wire.MaxWait, Entry.Permissions) // a long chain takes time to read
}

// Verify checks every audit chain and returns their heads. The error names the entry at which a chain is broken.
func (c *Client) Verify(ctx context.Context) ([]permissions.Head, error) {
	return fetchEach(ctx, c, "/v1/audit/verify", wire.MaxWait, func(h Head) (permissions.Head, error) {
		entry, err := h.Permissions()
		return permissions.Head{Entry: entry, First: h.First, Entries: h.Entries, Unkeyed: h.Unkeyed}, err
	})
}

// WhoAmI returns this account's identity at the daemon.
func (c *Client) WhoAmI(ctx context.Context) (Me, error) {
	return fetch[Me](ctx, c, "/v1/whoami")
}

// Ready is nil while requests can be stored and answered; otherwise the error says what to do.
func (c *Client) Ready(ctx context.Context) error {
	return c.wire.Call(ctx, http.MethodGet, "/readyz", c.header(""), nil, 0, nil)
}

// ask makes a call and decodes its answer. wait is how long the daemon may take to answer, beyond the usual time.
func ask[T any](ctx context.Context, c *Client, method, path string, body any, wait time.Duration) (answer T, err error) {
	err = c.wire.Call(ctx, method, path, c.header(""), body, wait, &answer)
	return answer, err
}

func fetch[T any](ctx context.Context, c *Client, path string) (T, error) {
	return ask[T](ctx, c, http.MethodGet, path, nil, 0)
}

func fetchEach[W, T any](
	ctx context.Context, c *Client, path string, wait time.Duration, convert func(W) (T, error),
) ([]T, error) {
	list, err := ask[[]W](ctx, c, http.MethodGet, path, nil, wait)
	if err != nil {
		return nil, err
	}
	return wire.TryEach(list, convert)
}

// page is the query for the part of a list that follows an id; 0 is the daemon's limit.
func page[S ~string](state S, after permissions.ID, limit int) string {
	query := url.Values{}
	if state != "" {
		query.Set("state", string(state))
	}
	if after != "" {
		query.Set("after", string(after))
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return "?" + query.Encode()
}

// header presents the key, if there is one, and the channel of a decision.
func (c *Client) header(via string) http.Header {
	h := http.Header{}
	if text, err := os.ReadFile(c.keyFile); err == nil {
		h.Set(headerKey, bearer+strings.TrimSpace(string(text)))
	}
	if via != viaTerminal {
		via = viaCLI
	}
	h.Set(headerVia, via)
	return h
}

func requestPath(name string) string { return "/v1/requests/" + url.PathEscape(name) }
