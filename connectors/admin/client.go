package admin

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// ErrUnreachable is matched by errors that mean there is no daemon at the socket.
var ErrUnreachable = wire.ErrUnreachable

// Client decides over admin.sock, as the account that this process runs as, and as the operator where it can read the
// admin key. It is safe for concurrent use; end it with [Client.Close].
type Client struct {
	// Opened, if set before [Client.Inbox], is told when the inbox is open, before anything is handed over: from then on
	// its person can be reached.
	Opened func()
	// Lost and Back, if set before [Client.Inbox] or [Client.Events], are told when its connection is lost, and when it
	// is back; of an inbox, when all that is pending has been handed over again.
	Lost func(error)
	Back func()
	// Noticed, if set before [Client.Inbox], is handed messages that ask nothing.
	Noticed func(lines []string)
	// Said, if set before [Client.Inbox], is handed what agents of this account's say.
	Said func(Said)

	wire    *wire.Client
	keyFile string
}

// A process that shows prompts hands what people do to the daemon through this client. Of the identities nothing is read
// but the Via of a decision: the socket proves the rest.
var (
	_ connectors.Handler = (*Client)(nil)
	_ connectors.Talks   = (*Client)(nil)
)

// NewClient makes a client of the daemon that serves the socket at that path. It does not connect yet. With every call
// it presents the admin key in keyFile, if there is one that it may read: the daemon makes it when it first starts. The key
// goes only to this account, root and the owner of its file.
func NewClient(socket, keyFile string) *Client {
	knows := func(uid int) bool { return wire.Owns(uid, keyFile) }
	return &Client{wire: wire.NewClient(socket, knows), keyFile: keyFile}
}

// Close lets go of idle connections.
func (c *Client) Close() { c.wire.Close() }

// OnPermission is [connectors.Handler]: [Client.Decide], and the row after, also beside a refusal.
func (c *Client) OnPermission(ctx context.Context, d connectors.Decision) (permissions.Request, error) {
	s, err := c.Decide(ctx, d)
	return s.Request, err
}

// Decide decides. Of d's identity only Via is read: the socket proves the rest. Beside a refusal it returns the row as
// it stands, where the caller may see it.
func (c *Client) Decide(ctx context.Context, d connectors.Decision) (permissions.Standing, error) {
	body, name := bodyOf(d)
	var w wire.Request
	err := c.wire.Call(ctx, http.MethodPost, requestPath(name)+"/decision", c.header(d.From.Via), body, 0, &w)
	if err == nil {
		return w.Standing()
	}
	beside := wire.Beside(err)
	if beside == nil {
		return permissions.Standing{}, err
	}
	s, unread := beside.Standing()
	if unread != nil {
		return permissions.Standing{}, err
	}
	return s, err
}

// List lists at most limit pending requests after the one named, oldest first; 0 is as many as the daemon gives.
func (c *Client) List(ctx context.Context, after permissions.ID, limit int) ([]permissions.Standing, error) {
	query := url.Values{"state": {string(permissions.Pending)}}
	if after != "" {
		query.Set("after", string(after))
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var list []wire.Request
	if err := c.get(ctx, "/v1/requests?"+query.Encode(), &list); err != nil {
		return nil, err
	}
	return wire.TryEach(list, wire.Request.Standing)
}

// Show gives one request by its id or its code.
func (c *Client) Show(ctx context.Context, name string) (permissions.Standing, error) {
	return c.row(ctx, http.MethodGet, requestPath(name))
}

// Cancel withdraws a pending request, by its id or its code.
func (c *Client) Cancel(ctx context.Context, name string) (permissions.Standing, error) {
	return c.row(ctx, http.MethodPost, requestPath(name)+"/cancel")
}

// row is one call about a request, which is answered by its row.
func (c *Client) row(ctx context.Context, method, path string) (permissions.Standing, error) {
	var w wire.Request
	if err := c.wire.Call(ctx, method, path, c.header(""), nil, 0, &w); err != nil {
		return permissions.Standing{}, err
	}
	return w.Standing()
}

// Audit lists at most limit entries of the daemon's chain after seq, oldest first; 0 is as many as the daemon gives.
func (c *Client) Audit(ctx context.Context, after int64, limit int) ([]permissions.Entry, error) {
	query := url.Values{"after": {strconv.FormatInt(after, 10)}}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return c.entries(ctx, "/v1/audit?"+query.Encode())
}

// Verify checks every audit chain and returns their heads. The error says at which entry a chain is broken.
func (c *Client) Verify(ctx context.Context) ([]permissions.Head, error) {
	var list []Head
	// A long chain takes its time to read.
	if err := c.wire.Call(ctx, http.MethodGet, "/v1/audit/verify", c.header(""), nil, wire.MaxWait, &list); err != nil {
		return nil, err
	}
	return wire.TryEach(list, func(h Head) (permissions.Head, error) {
		entry, err := h.Permissions()
		return permissions.Head{Entry: entry, First: h.First, Entries: h.Entries, Unkeyed: h.Unkeyed}, err
	})
}

// WhoAmI is who this account is to the daemon.
func (c *Client) WhoAmI(ctx context.Context) (Me, error) {
	var me Me
	return me, c.get(ctx, "/v1/whoami", &me)
}

// Ready is nil while requests can be stored and answered; the error says what to do.
func (c *Client) Ready(ctx context.Context) error { return c.get(ctx, "/readyz", nil) }

func (c *Client) entries(ctx context.Context, path string) ([]permissions.Entry, error) {
	var list []Entry
	// A long chain takes its time to read.
	if err := c.wire.Call(ctx, http.MethodGet, path, c.header(""), nil, wire.MaxWait, &list); err != nil {
		return nil, err
	}
	return wire.TryEach(list, Entry.Permissions)
}

func (c *Client) get(ctx context.Context, path string, out any) error {
	return c.wire.Call(ctx, http.MethodGet, path, c.header(""), nil, 0, out)
}

// header presents the key, if there is one, and says through what a decision comes.
func (c *Client) header(via string) http.Header {
	h := http.Header{}
	if text, err := os.ReadFile(c.keyFile); err == nil {
		h.Set(headerKey, bearer+strings.TrimSpace(string(text)))
	}
	if via == viaTerminal {
		h.Set(headerVia, via)
	}
	return h
}

func requestPath(name string) string { return "/v1/requests/" + url.PathEscape(name) }
