package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
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
	place string // for people
	base  string // of every URL
	http  *http.Client
}

// NewClient makes a client of the socket at that path. It does not connect yet.
func NewClient(socket string) *Client {
	return newClient(socket, "http://"+clientHost, &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	})
}

func newClient(place, base string, t *http.Transport) *Client {
	t.IdleConnTimeout, t.DisableCompression = idleBefore, true
	return &Client{place: place, base: base, http: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// idleBefore is how long a client keeps a connection that it does not use: less than a server does.
const idleBefore = 30 * time.Second

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

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
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return c.lost(ctx, err)
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
	for name, values := range header {
		request.Header[name] = values
	}
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return c.http.Do(request)
}

// lost says what an error of the connection means. It keeps the cause, without the URL that net/http puts before it.
func (c *Client) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var dial *net.OpError
	switch {
	case errors.Is(err, errElsewhere), untrusted(err):
		return fmt.Errorf("call daycared at %s: %w", c.place, withoutURL(err))
	case errors.As(err, &dial) && (dial.Op == "dial" || dial.Op == "proxyconnect"):
		return fmt.Errorf("%w at %s: %w", ErrUnreachable, c.place, dial.Err)
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
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
	var r *refused
	if errors.As(err, &r) {
		return r.problem.Request
	}
	return nil
}
