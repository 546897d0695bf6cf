package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// Put submits q, of any kind, and waits until it is settled. If ctx ends first, or the daemon stays away until the deadline, it
// returns an error with the last known state of the request. If there is no connection at the start, it fails at once with
// [ErrUnreachable]. A refusal by the daemon is a *[permissions.Refusal].
func (c *Client) Put(ctx context.Context, q permissions.Request) (permissions.RequestView, error) {
	a, err := newAsking(c, q)
	if err != nil {
		return permissions.RequestView{}, err
	}
	err = a.run(ctx)
	if a.row.ID == "" {
		return permissions.RequestView{}, err
	}
	s, unread := a.row.View()
	if err == nil {
		err = unread
	}
	return s, err
}

// Begin is [Client.Put] without waiting: it returns the request as it is. A Put with its id, and the same Call if set, continues it.
func (c *Client) Begin(ctx context.Context, q permissions.Request) (permissions.RequestView, error) {
	a, err := newAsking(c, q)
	if err != nil {
		return permissions.RequestView{}, err
	}
	if q.Call == "" {
		a.header.Del(wire.HeaderCall)
	}
	if err := a.post(ctx, 0); err != nil {
		return permissions.RequestView{}, err
	}
	return a.row.View()
}

// Reply answers one of the caller's requests with the result of its editor's dialog, where that is allowed
// ([permissions.RequestView].Editor); shown is the digest of what the dialog showed.
func (c *Client) Reply(
	ctx context.Context, id permissions.ID, a permissions.Answer, shown permissions.Digest,
) (permissions.RequestView, error) {
	s, err := c.row(ctx, http.MethodPost, id, "/answer", nil, wire.Reply{Answer: a, Digest: shown.String()}, 0)
	if err == nil && s.Request.Digest != shown {
		return permissions.RequestView{}, fmt.Errorf("%w, %s", ErrOtherRow, id)
	}
	return s, err
}

// Get returns one of the caller's requests, waiting up to wait (at most 50 s) for it to be settled.
func (c *Client) Get(ctx context.Context, id permissions.ID, wait time.Duration) (permissions.RequestView, error) {
	return c.row(ctx, http.MethodGet, id, "?wait="+wait.String(), nil, nil, wait)
}

// Wait returns one of the caller's requests once it is settled. A lost connection is tried again until the request's deadline.
// If ctx ends first, it returns the last known state and a nil error.
func (c *Client) Wait(ctx context.Context, id permissions.ID) (permissions.RequestView, error) {
	last, err := c.Get(ctx, id, 0)
	tries := wire.NewClientBackoff()
	for err == nil && ctx.Err() == nil && last.Request.State == permissions.Pending {
		next, lost := c.Get(ctx, id, wire.MaxWait)
		switch {
		case lost == nil:
			last = next
			tries.Reset()
		case ctx.Err() != nil: // the last known state
		case wire.IsConnectionError(lost) && time.Now().Before(last.Request.Deadline):
			_ = timing.Pause(ctx, tries.NextBackOff()) // the loop checks ctx
		default:
			err = lost
		}
	}
	return last, err
}

// Cancel withdraws a pending request of the caller.
func (c *Client) Cancel(ctx context.Context, id permissions.ID) (permissions.RequestView, error) {
	return c.row(ctx, http.MethodPost, id, "/cancel", nil, nil, 0)
}

// CancelAfter withdraws a pending request of the caller after a delay of at most an hour, unless the same is asked again by then
// or a call waits for it. A lost connection is tried again until ctx ends.
func (c *Client) CancelAfter(ctx context.Context, id permissions.ID, after time.Duration) (permissions.RequestView, error) {
	tries := wire.NewClientBackoff()
	for {
		s, err := c.row(ctx, http.MethodPost, id, "/cancel?after="+after.String(), nil, nil, 0)
		if err == nil || !wire.IsConnectionError(err) || timing.Pause(ctx, tries.NextBackOff()) != nil {
			return s, err
		}
	}
}

// Leave takes the named call from a pending request of the caller, and withdraws the request unless another call waits for it. If
// the call proposed id and joined another request, before it was told so, it leaves that one, which is returned.
func (c *Client) Leave(ctx context.Context, id permissions.ID, call string) (permissions.RequestView, error) {
	if call == "" {
		return c.row(ctx, http.MethodPost, id, "/cancel", http.Header{wire.HeaderCall: {call}}, nil, 0)
	}
	var w wire.Request
	path := "/v1/requests/" + url.PathEscape(string(id)) + "/cancel"
	if err := c.call(ctx, http.MethodPost, path, http.Header{wire.HeaderCall: {call}}, nil, 0, &w); err != nil {
		return permissions.RequestView{}, err
	}
	return w.View()
}

// Recall withdraws the caller's requests that match m, and returns how many there were.
func (c *Client) Recall(ctx context.Context, m permissions.Recall) (withdrawn int, err error) {
	var out wire.Recalled
	err = c.call(ctx, http.MethodPost, "/v1/recall", nil, m, 0, &out)
	return out.Withdrawn, err
}

// Tell sends a notice to a person and returns their name. An empty name means the person that the caller belongs to.
func (c *Client) Tell(
	ctx context.Context, to string, about permissions.About, t permissions.CallerMessage,
) (person string, err error) {
	var out wire.Told
	err = c.call(ctx, http.MethodPost, "/v1/tell", nil, wire.Tell{To: to, About: about, CallerMessage: t}, 0, &out)
	return out.To, err
}

// row makes a call that must be answered with the row of the given request.
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
	return w.View()
}

// Ready returns nil while the daemon can store and answer questions; otherwise the error says what to do.
func (c *Client) Ready(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, "/readyz", nil, nil, 0, nil)
}

// call makes one call, presenting the token if there is one.
func (c *Client) call(
	ctx context.Context, method, path string, header http.Header, in any, wait time.Duration, out any,
) error {
	header, err := c.present(header)
	if err != nil {
		return err
	}
	return c.wire.Call(ctx, method, path, header, in, wait, out)
}

const maxTokenFile = 4096

var errNoToken = errors.New("there is no token in it; it holds one line, which begins with dcd_a_")
var errNotRegular = errors.New("it is not a regular file")

// present adds the token to h, if the client has one. The file is read for every call, so that a token can be replaced meanwhile.
func (c *Client) present(h http.Header) (http.Header, error) {
	if c.tokenFile == "" {
		return h, nil
	}
	secret, err := c.token()
	if err != nil {
		return nil, &tokenFileError{fmt.Errorf("read the token file %s: %w", c.tokenFile, err)}
	}
	if h = h.Clone(); h == nil {
		h = http.Header{}
	}
	h.Set("Authorization", "Bearer "+string(secret))
	return h, nil
}

// readWithin is how long reading the token file may take, and maxReading how many calls of it may be in progress.
const (
	readWithin = 5 * time.Second
	maxReading = 64
)

var errHangs = errors.New("its file system does not answer")

// token reads the token file, without waiting for a file system that does not answer.
func (c *Client) token() (permissions.Secret, error) {
	type read struct {
		secret permissions.Secret
		err    error
	}
	late, done := time.NewTimer(readWithin), make(chan read, 1)
	defer late.Stop()
	select {
	case c.reading <- struct{}{}:
	case <-late.C:
		return "", errHangs
	}
	go func() {
		secret, err := c.readToken(c.tokenFile)
		<-c.reading
		done <- read{secret, err}
	}()
	select {
	case r := <-done:
		return r.secret, r.err
	case <-late.C:
		return "", errHangs
	}
}

// tokenFileError says why no token could be read from a file.
type tokenFileError struct{ error }

// Unwrap returns the cause.
func (e *tokenFileError) Unwrap() error { return e.error }

// readToken reads a file's only line. No error reveals the content.
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

const (
	// firstWait doubles with every call, so that an early answer arrives promptly and a long wait costs few calls.
	firstWait = time.Second
	// patience bounds the retries on a lost connection while the request's deadline is unknown.
	patience = 15 * time.Minute
)

// asking is the state of one question: the calls that create and follow its request.
type asking struct {
	client *Client
	body   wire.Ask
	asked  permissions.Request // sent in the body
	header http.Header
	stays  time.Time // until then the process lives; zero: unknown
	until  time.Time // when to give up on a lost connection or a failing store
	tries  *wire.Backoff

	row  wire.Request // the last view received; its ID is empty before the first
	met  bool         // the daemon has answered before
	lost bool         // the connection was lost since row was received
}

func newAsking(c *Client, q permissions.Request) (*asking, error) {
	body := wire.AskOf(q)
	asked, _, err := body.Question()
	if err != nil {
		return nil, err
	}
	longest := patience
	if q.WantedTimeout > 0 {
		longest = q.WantedTimeout
	}
	a := &asking{
		client: c, body: body, asked: asked, header: http.Header{
			wire.HeaderCall: {cmp.Or(q.Call, rand.Text())}, wire.HeaderRequest: {string(cmp.Or(q.ID, permissions.NewID(time.Now())))},
		},
		until: time.Now().Add(longest), tries: wire.NewClientBackoff(),
	}
	if q.ProcessTimeout > 0 {
		a.stays = time.Now().Add(q.ProcessTimeout)
	}
	return a, nil
}

// run asks until the request is settled. The first call does not wait, so that the request's id is known early.
func (a *asking) run(ctx context.Context) error {
	var file *tokenFileError
	for wait := time.Duration(0); ; {
		began := time.Now()
		err := a.post(ctx, wait)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && a.row.State != permissions.Pending:
			return nil
		case err == nil && time.Since(began) >= wait/2:
			a.tries.Reset()
			wait = min(max(firstWait, 2*wait), wire.MaxWait)
			continue
		case err == nil: // answered early because the daemon stops
		case wire.SlowDown(err) > 0 && time.Now().Before(a.until):
			if err := timing.Pause(ctx, wire.SlowDown(err)); err != nil {
				return err
			}
			continue
		case a.row.ID != "" && errors.As(err, &file) && time.Now().Before(a.until): // the file is perhaps being replaced
		case permissions.CodeOf(err) == permissions.CodeBroken && (a.row.ID != "" || errors.Is(err, permissions.ErrAway)) &&
			time.Now().Before(a.until): // the request is still pending and may yet be answered, or can be stored later
			a.missing(err)
			wait = 0
		case !a.met || !wire.IsConnectionError(err):
			return err
		case !time.Now().Before(a.until):
			return fmt.Errorf("%w, and the time to wait for it is over: %w", ErrUnreachable, err)
		default:
			a.missing(err)
			wait = 0
		}
		if err := timing.Pause(ctx, a.tries.NextBackOff()); err != nil {
			return err
		}
	}
}

// missing reports once that the daemon or its store is unavailable.
func (a *asking) missing(err error) {
	if !a.lost && a.client.Lost != nil {
		a.client.Lost(err)
	}
	a.lost = true
}

// post makes one call and reports progress.
func (a *asking) post(ctx context.Context, wait time.Duration) error {
	a.body.Wait = wait.String()
	if left := time.Until(a.stays); !a.stays.IsZero() && left > 0 {
		a.header.Set(wire.HeaderStays, left.String())
	} else {
		a.header.Del(wire.HeaderStays)
	}
	if a.row.ID != "" {
		a.header.Set(wire.HeaderRequest, string(a.row.ID))
	}
	var row wire.Request
	err := a.client.call(ctx, http.MethodPost, "/v1/requests", a.header, a.body, wait, &row)
	a.met = a.met || !errors.Is(err, ErrUnreachable)
	if err != nil {
		return err
	}
	told, err := row.View()
	switch {
	case err != nil:
		return err
	case !told.Request.IsRowOf(a.asked):
		return fmt.Errorf("%w, %s", ErrOtherRow, told.Request.ID)
	}
	news := a.lost || row.ID != a.row.ID || len(row.Delivered) > len(a.row.Delivered) || !slices.Equal(row.Delayed, a.row.Delayed)
	a.row, a.lost = row, false
	if deadline := row.Until(); !deadline.IsZero() {
		a.until = deadline
	}
	if news && a.client.Progress != nil {
		a.client.Progress(told)
	}
	return nil
}
