package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// What is wrong with the connection, for errors.Is.
var (
	// ErrUnreachable is matched when there is no connection to be had: the daemon does not run, or not there.
	ErrUnreachable = errors.New("daycared cannot be reached")
	// ErrLost is matched when the daemon was there and the answer did not come: it stopped, or was killed.
	ErrLost = errors.New("the connection to daycared was lost")
)

const (
	// clientHost is the host that our clients name; no name server knows it.
	clientHost = "daycared"
	// answerWithin is how much longer than it was to wait a call may take before the daemon counts as lost.
	answerWithin = 15 * time.Second
	maxAnswer    = 64 << 20
)

// Client makes calls to one daemon. It is safe for concurrent use; end it with [Client.Close].
type Client struct {
	place  string // for people
	base   string // of every URL
	http   *http.Client
	secret *http.Client // for calls that present a secret
	peer   func(net.Conn) (uid int, err error)
}

// NewClient makes a client of the socket at that path. It does not connect yet. What a call presents as Authorization goes
// only to this account, root, and those that knows, if it is not nil, says may have it: another account may have put a
// socket of its own there.
func NewClient(socket string, knows func(uid int) bool) *Client {
	c := newClient(socket, "http://"+clientHost, dialing(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}))
	c.peer = connUID
	c.secret = newClient(socket, c.base, dialing(func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, err
		}
		uid, err := c.peer(conn)
		if err == nil && uid != 0 && uid != os.Geteuid() && (knows == nil || !knows(uid)) {
			err = fmt.Errorf("%w, uid %d", errStranger, uid)
		}
		if err != nil {
			_ = conn.Close() // nothing was said over it
			return nil, err
		}
		return conn, nil
	})).http
	return c
}

// errStranger is that a socket belongs to an account that must not learn what a call would present.
var errStranger = errors.New("the key or token is not presented there, as the socket is served by another account than the daemon's")

// Owns reports whether a file or folder belongs to an account.
func Owns(uid int, path string) bool {
	var s unix.Stat_t
	return unix.Stat(path, &s) == nil && int(s.Uid) == uid
}

// Placed reports whether a socket at that path can only have been put there by that account or root: the folder is the
// account's, or root's and nobody else may write to it.
func Placed(uid int, socket string) bool {
	folder := filepath.Dir(socket)
	info, err := os.Stat(folder)
	return Owns(uid, folder) || Owns(0, folder) && err == nil && info.Mode().Perm()&0o022 == 0
}

func dialing(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	return &http.Transport{DialContext: dial}
}

func newClient(place, base string, t *http.Transport) *Client {
	t.IdleConnTimeout, t.DisableCompression = idleBefore, true
	calls := &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Client{place: place, base: base, http: calls, secret: calls}
}

// idleBefore is how long a client keeps a connection that it does not use: less than a server does.
const idleBefore = 30 * time.Second

// Close lets go of idle connections.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.secret.CloseIdleConnections()
}

// Call makes one call and reads its JSON answer into out, if out is not nil. in is the body, nil for none; wait is how
// long the daemon was asked to wait. What the daemon refuses is a *permissions.Refusal or a *[Problem]; other errors
// match [ErrUnreachable], [ErrLost], or the context's.
func (c *Client) Call(
	ctx context.Context, method, path string, header http.Header, in any, wait time.Duration, out any,
) error {
	limited, cancel := context.WithTimeout(ctx, wait+answerWithin)
	defer cancel()
	answer, err := c.send(limited, method, path, header, in)
	if err != nil {
		return c.lost(ctx, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return c.lost(ctx, err)
	case len(body) > maxAnswer:
		return fmt.Errorf("the answer of daycared is longer than %d MiB; ask for less at a time", maxAnswer>>20)
	}
	if answer.StatusCode != http.StatusOK {
		return readProblem(answer, body)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("read the answer of daycared: %w", err)
	}
	return nil
}

// Stream makes a call whose answer goes on. The caller closes it.
func (c *Client) Stream(ctx context.Context, path string, header http.Header) (io.ReadCloser, error) {
	answer, err := c.send(ctx, http.MethodGet, path, header, nil)
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	return nil, readProblem(answer, body)
}

func (c *Client) send(ctx context.Context, method, path string, header http.Header, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		line, err := Encode(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(line)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, header)
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if request.Header.Get("Authorization") != "" {
		return c.secret.Do(request)
	}
	return c.http.Do(request)
}

// lost says what an error of the connection means, in words of our own where net/http has only a programmer's.
func (c *Client) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var dial *net.OpError
	switch {
	case errors.Is(err, errElsewhere), errors.Is(err, errStranger), untrusted(err):
		return fmt.Errorf("call daycared at %s: %w", c.place, Plain(withoutURL(err)))
	case errors.As(err, &dial) && (dial.Op == "dial" || dial.Op == "proxyconnect"):
		return fmt.Errorf("%w at %s: %w", ErrUnreachable, c.place, Plain(dial.Err))
	}
	why := withoutURL(err).Error()
	switch {
	case errors.As(err, &dial):
		why = Plain(dial.Err).Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		why = "it ended without an answer"
	case errors.Is(err, context.DeadlineExceeded):
		why = "no answer came in time"
	case strings.Contains(why, "malformed HTTP"):
		why = "what answers there is not daycared"
	}
	return fmt.Errorf("%w: %s", ErrLost, why)
}

// readProblem is the error that an answer tells.
func readProblem(answer *http.Response, body []byte) error {
	p := &Problem{}
	if err := json.Unmarshal(body, p); err != nil || p.Code == "" {
		return unexplained(answer.StatusCode)
	}
	if p.Code == codeAgain {
		return fmt.Errorf("%w: %w", ErrLost, p)
	}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
		p.after = time.Duration(seconds) * time.Second
	}
	return &refused{problem: p, error: p.refusal()}
}

// refused is what the daemon refused, with the row that came beside it.
type refused struct {
	error
	problem *Problem
}

func (r *refused) Unwrap() error { return r.error }

// Beside is the row that the daemon told beside a refusal, or nil.
func Beside(err error) *Request {
	if r, is := errors.AsType[*refused](err); is {
		return r.problem.Request
	}
	return nil
}

// NewTries is how often our clients try a lost connection again: after 50 ms at first, then up to a second apart.
func NewTries() *backoff.ExponentialBackOff { return Tries(50*time.Millisecond, time.Second) }

// Tries are the pauses before something is tried again: the first about so long, the further ones longer, up to most.
func Tries(first, most time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = first, most
	return b
}

// Gone reports whether an error is only about the connection, so that trying again may help.
func Gone(err error) bool { return errors.Is(err, ErrLost) || errors.Is(err, ErrUnreachable) }
