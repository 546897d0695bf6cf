package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
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
// that exists and is readable; the daemon creates it at its first start. With a key it calls only a server that runs as this
// account, root or the owner of keyFile; without one also an account whose socket nobody else can have put there.
func NewClient(socket, keyFile string) *Client {
	c := &Client{
		Opened: func() {}, Lost: func(error) {}, Back: func() {}, Noticed: func([]string) {}, Said: func(Said) {}, keyFile: keyFile,
	}
	c.wire = wire.NewClient(socket, func(uid int) bool { return c.knows(uid, socket) })
	return c
}

func (c *Client) knows(uid int, socket string) bool {
	return wire.Owns(uid, c.keyFile) || c.header("").Get(headerKey) == "" && wire.IsTrustedSocket(uid, socket)
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
		return w.View()
	}
	beside := wire.RequestOf(err)
	if beside == nil {
		return permissions.RequestView{}, err
	}
	s, unread := beside.View()
	if unread != nil {
		return permissions.RequestView{}, err
	}
	return s, err
}

// List lists at most limit pending requests after the one given, oldest first; 0 is the daemon's limit.
func (c *Client) List(ctx context.Context, after permissions.ID, limit int) ([]permissions.RequestView, error) {
	path := "/v1/requests" + page(permissions.Pending, after, limit)
	return fetchEach(ctx, c, path, 0, wire.Request.View)
}

// History lists at most of.Limit settled requests, oldest first; 0 is the daemon's limit.
func (c *Client) History(ctx context.Context, of permissions.HistoryQuery) ([]permissions.Request, error) {
	query := url.Values{}
	if !of.Since.IsZero() {
		query.Set("since", of.Since.Format(time.RFC3339Nano))
	}
	for name, value := range map[string]string{"agent": of.Caller, "after": string(of.After)} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if of.Limit > 0 {
		query.Set("limit", strconv.Itoa(of.Limit))
	}
	return fetchEach(ctx, c, "/v1/history?"+query.Encode(), 0, func(w wire.Request) (permissions.Request, error) {
		s, err := w.View()
		return s.Request, err
	})
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
	return w.View()
}

// Audit lists at most limit entries of the daemon's chain after seq, oldest first; 0 is the daemon's limit.
func (c *Client) Audit(ctx context.Context, after int64, limit int) ([]permissions.Entry, error) {
	query := url.Values{"after": {strconv.FormatInt(after, 10)}}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return fetchEach(ctx, c, "/v1/audit?"+query.Encode(), wire.MaxWait, Entry.Permissions) // a long chain takes time to read
}

// Verify checks every audit chain and returns their heads. The error names the entry at which a chain is broken. It asks again until
// the daemon is done; the functions are told how far that is.
func (c *Client) Verify(ctx context.Context, told ...func(wire.Progress)) ([]permissions.Head, error) {
	for {
		heads, err := fetchEach(ctx, c, "/v1/audit/verify", 0, func(h Head) (permissions.Head, error) {
			entry, err := h.Permissions()
			return permissions.Head{Entry: entry, First: h.First, Entries: h.Entries, Unkeyed: h.Unkeyed}, err
		})
		p, is := errors.AsType[*wire.Problem](err)
		if !is || p.Progress == nil {
			return heads, err
		}
		for _, tell := range told {
			tell(*p.Progress)
		}
	}
}

// WhoAmI returns this account's identity at the daemon.
func (c *Client) WhoAmI(ctx context.Context) (Me, error) {
	me, err := fetch[Me](ctx, c, "/v1/whoami")
	if me.Now.IsZero() { // an error, or an older daemon
		me.Now = time.Now()
	}
	return me, err
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
	return wire.TryMap(list, convert)
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

// Inbox calls handle with everything pending for this account and then with every change, once each, until ctx ends or
// handle returns an error, which it returns. While it runs, the person counts as reachable. The first connection must
// succeed; later ones are retried forever, and what was settled meanwhile is handed over then.
func (c *Client) Inbox(ctx context.Context, handle func(permissions.RequestView) error) error {
	f := &inboxFollower{link: link{client: c}, handle: handle, known: map[permissions.ID]known{}}
	return f.keepReading(ctx, f.follow)
}

// inboxFollower is an inbox across reconnections.
type inboxFollower struct {
	link
	handle func(permissions.RequestView) error
	known  map[permissions.ID]known // what was handed over as pending
	opened bool
}

type known struct {
	revision int64
	current  bool // sent by the daemon in this connection
	over     bool // handed over as settled, before the stream says so
}

// follow reads one connection to its end.
func (f *inboxFollower) follow(ctx context.Context) error {
	body, err := f.client.wire.Stream(ctx, "/v1/inbox", f.client.header(viaTerminal))
	if err != nil {
		return err
	}
	defer body.Close()
	if !f.opened {
		f.client.Opened()
	}
	f.opened = true
	events := newEventReader(body)
	for id, k := range f.known {
		if k.over {
			delete(f.known, id)
			continue
		}
		k.current = false
		f.known[id] = k
	}
	for {
		e, err := events.next()
		if err != nil {
			return errors.Join(wire.ErrLost, err)
		}
		switch e.kind {
		case eventRequest:
			err = f.handOver(e)
		case eventSynced:
			err = f.synced(ctx)
		case eventNotice:
			err = take(e, func(n notice) { f.client.Noticed(n.Lines) })
		case eventSaid:
			err = take(e, f.client.Said)
		}
		if err != nil {
			return err
		}
	}
}

// handOver hands over a row, unless the inbox has it already.
func (f *inboxFollower) handOver(e event) error {
	var w wire.Request
	if err := json.Unmarshal([]byte(e.data), &w); err != nil {
		return err
	}
	s, err := w.View()
	if err != nil {
		return err
	}
	_, digits, _ := strings.Cut(e.id, ":")
	s.Request.Revision, _ = strconv.ParseInt(digits, 10, 64) // 0 is older than any
	old, again := f.known[w.ID]
	if old.over {
		if s.Request.State != permissions.Pending {
			delete(f.known, w.ID)
		}
		return nil
	}
	if s.Request.State == permissions.Pending {
		f.known[w.ID] = known{revision: s.Request.Revision, current: true}
	} else {
		delete(f.known, w.ID)
	}
	if again && s.Request.Revision <= old.revision {
		return nil
	}
	return f.give(s)
}

func (f *inboxFollower) give(s permissions.RequestView) error {
	f.failed = f.handle(s)
	return f.failed
}

// synced hands over what is no longer pending, or is about to be sent again, and reports that the connection is back. The
// rows that it reads may be newer than what the stream sends next.
func (f *inboxFollower) synced(ctx context.Context) error {
	for id, k := range f.known {
		if k.current {
			continue
		}
		s, err := f.client.Show(ctx, string(id))
		refused := permissions.AsRefusal(err) != nil
		if err != nil && !refused {
			return err
		}
		if refused { // it no longer concerns this person
			delete(f.known, id)
			continue
		}
		f.known[id] = known{current: true, over: s.Request.State != permissions.Pending}
		if err := f.give(s); err != nil {
			return err
		}
	}
	f.isUp()
	return nil
}

// take hands over a message that is not a row.
func take[T any](e event, to func(T)) error {
	var message T
	err := json.Unmarshal([]byte(e.data), &message)
	if err == nil {
		to(message)
	}
	return err
}

// link is a stream that reconnects.
type link struct {
	client        *Client
	connectedOnce bool  // a connection was complete once
	away          bool  // the connection was lost and is not back
	failed        error // error of the callback
}

// keepReading reads one connection after the other until ctx ends, the callback returns an error, or the daemon refuses. The first
// connection must succeed; later ones are retried forever.
func (l *link) keepReading(ctx context.Context, read func(context.Context) error) error {
	tries := wire.NewClientBackoff()
	for {
		err := read(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case l.failed != nil:
			return l.failed
		case !l.connectedOnce || !wire.IsConnectionError(err):
			return err
		}
		if !l.away {
			l.client.Lost(err)
			tries.Reset()
		}
		l.away = true
		if err := timing.Pause(ctx, tries.NextBackOff()); err != nil {
			return err
		}
	}
}

func (l *link) isUp() {
	if l.away {
		l.client.Back()
	}
	l.connectedOnce, l.away = true, false
}
