package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// Connection errors, for errors.Is.
var (
	// ErrUnreachable means that there is no connection: the daemon does not run, or not there.
	ErrUnreachable = errors.New("daycared cannot be reached")
	// ErrLost means that the connection broke before the answer: the daemon stopped or was killed.
	ErrLost = errors.New("the connection to daycared was lost")
)

const (
	// Host is the Host header of our clients; no name server knows it.
	Host = "daycared"
	// answerWithin is how much longer than its wait a call may take before the daemon counts as lost.
	answerWithin = 15 * time.Second
	maxAnswer    = 64 << 20
)

// Client makes calls to one daemon. It is safe for concurrent use; end it with [Client.Close].
type Client struct {
	place string // for people
	base  string // base of every URL
	http  *http.Client
	peer  func(net.Conn) (uid int, err error)
}

// NewClient makes a client of the socket at that path, without connecting. It calls only a server of this account, root, or one that
// knows accepts (nil: none), because another account may have put its own socket there, and answer as it likes.
func NewClient(socket string, knows func(uid int) bool) *Client {
	t := &http.Transport{}
	c := newClient(socket, "http://"+Host, t)
	c.peer = connUID
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, err
		}
		uid, err := c.peer(conn)
		if err == nil && uid != 0 && uid != os.Geteuid() && (knows == nil || !knows(uid)) {
			err = fmt.Errorf("%w, uid %d, which may not be the daemon's; let the daemon make it in a folder that only root or that "+
				"account can change, as /run/daycared is", errUntrustedServer, uid)
		}
		if err != nil {
			_ = conn.Close() // nothing was sent over it
			return nil, err
		}
		return conn, nil
	}
	return c
}

// errUntrustedServer means that a socket belongs to an account that is not known to be the daemon's.
var errUntrustedServer = errors.New("the socket is served by another account")

// Owns reports whether a file or folder belongs to an account.
func Owns(uid int, path string) bool {
	var s unix.Stat_t
	return unix.Stat(path, &s) == nil && int(s.Uid) == uid
}

// IsTrustedSocket reports whether only that account, root or this one can have made a socket at that path: its folder and each above it
// is the account's, or root's or this one's and not writable by others.
func IsTrustedSocket(uid int, socket string) bool {
	at, err := filepath.Abs(socket)
	trusted := err == nil
	for trusted && at != filepath.Dir(at) {
		at = filepath.Dir(at)
		info, err := os.Stat(at)
		kept := err == nil && info.Mode().Perm()&0o022 == 0
		trusted = Owns(uid, at) || kept && (Owns(0, at) || Owns(os.Geteuid(), at))
	}
	return trusted
}

func newClient(place, base string, t *http.Transport) *Client {
	t.IdleConnTimeout, t.DisableCompression = idleBefore, true
	return &Client{place: place, base: base, http: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// idleBefore is how long a client keeps an idle connection: shorter than a server does.
const idleBefore = 30 * time.Second

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Call makes one call and decodes its JSON answer into out, unless nil. in is the body, nil for none; wait is how long
// the daemon was asked to wait. A refusal is a *permissions.Refusal or a *[Problem]; other errors match
// [ErrUnreachable], [ErrLost], or the context's.
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

// Stream makes a call with a streamed answer, which the caller closes.
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
	return c.http.Do(request)
}

// lost explains a connection error, in our own words where net/http's are technical.
func (c *Client) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var dial *net.OpError
	switch {
	case errors.Is(err, errElsewhere), errors.Is(err, errUntrustedServer), untrusted(err):
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

func readProblem(answer *http.Response, body []byte) error {
	p := &Problem{}
	if err := json.Unmarshal(body, p); err != nil || p.Code == "" {
		return foreignAnswer(answer.StatusCode)
	}
	if p.Code == CodeAgain {
		return fmt.Errorf("%w: %w", ErrLost, p)
	}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
		p.After = time.Duration(seconds) * time.Second
	}
	return &refused{problem: p, error: p.refusal()}
}

// refused is a refusal with its request.
type refused struct {
	error
	problem *Problem
}

func (r *refused) Unwrap() error { return r.error }

// RequestOf is the request that came with a refusal, or nil.
func RequestOf(err error) *Request {
	if r, is := errors.AsType[*refused](err); is {
		return r.problem.Request
	}
	return nil
}

// NewClientBackoff returns the backoff of our clients for a lost connection: from 50 ms to a second.
func NewClientBackoff() *Backoff { return NewBackoff(50*time.Millisecond, time.Second) }

// NewBackoff returns an exponential backoff from first to most.
func NewBackoff(first, most time.Duration) *Backoff {
	return &Backoff{first: first, most: most, next: first}
}

// Backoff is a sequence of delays that grow by half each time, each varied by up to half, so that clients of one daemon do not
// come back at once. It is not safe for concurrent use.
type Backoff struct{ first, most, next time.Duration }

// NextBackOff is the delay before the next try.
func (b *Backoff) NextBackOff() time.Duration {
	delay := b.next/2 + rand.N(b.next+1) //nolint:gosec // it spreads load, and hides nothing
	b.next = min(b.next+b.next/2, b.most)
	return delay
}

// Reset begins anew, after a success.
func (b *Backoff) Reset() { b.next = b.first }

// IsConnectionError reports whether err is only about the connection, so that a retry may help.
func IsConnectionError(err error) bool {
	return errors.Is(err, ErrLost) || errors.Is(err, ErrUnreachable)
}

// connUID is the account at the other end of a unix socket.
func connUID(c net.Conn) (uid int, err error) {
	uid, _, err = PeerCredentials(c)
	return uid, err
}

// PeerCredentials reads the credentials of a unix socket. It refuses TCP sockets, for which Linux returns meaningless ones.
func PeerCredentials(c net.Conn) (uid, pid int, err error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0, 0, errors.New("not a unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	if failed := raw.Control(func(fd uintptr) { uid, pid, err = peerUID(int(fd)) }); failed != nil {
		return 0, 0, failed
	}
	return uid, pid, err
}

// dialWithin is the time limit for connecting to a remote daemon.
const dialWithin = 10 * time.Second

// errElsewhere means that a name for this machine leads to another one.
var errElsewhere = errors.New("the name leads away from this machine, and a token would go there in the clear")

// RemoteOptions is how to reach a remote daemon. Empty fields come from the environment (HTTPS_PROXY, SSL_CERT_FILE) and the system.
type RemoteOptions struct {
	Proxy  string // its URL
	CAFile string // PEM certificates to trust for the daemon instead of the system's
	// EnvironmentProxy finds the environment's proxy; nil: [http.ProxyFromEnvironment].
	EnvironmentProxy func(*http.Request) (*url.URL, error)
}

// NewRemoteClient makes a client of the daemon at a URL, without connecting: https, or http on this machine, so that
// secrets cannot be read in transit. It follows no redirect. The error says what is wrong with the URL or the options.
func NewRemoteClient(address string, way RemoteOptions) (*Client, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Host == "", u.Opaque != "", u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%q is not the URL of a daemon; write it as in https://daycared.example", address)
	case u.User != nil:
		return nil, errors.New("a URL is no place for a secret; write the token into a file")
	case u.RawQuery != "", u.Fragment != "":
		return nil, fmt.Errorf("%q has more than a host and a path; write it as in https://daycared.example", address)
	case u.Scheme == "http" && !Loopback(u.Hostname()):
		return nil, fmt.Errorf("%s would carry the token in the clear; write https://%s", address, u.Host+u.Path)
	}
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialWithin}).DialContext,
		TLSHandshakeTimeout: dialWithin,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		Proxy:               http.ProxyFromEnvironment,
	}
	if err := way.apply(u, t); err != nil {
		return nil, err
	}
	if u.Scheme == "http" {
		t.DialContext = (&net.Dialer{Timeout: dialWithin, ControlContext: onlyHere}).DialContext
		t.Proxy = nil
	}
	return newClient(address, strings.TrimRight(u.Scheme+"://"+u.Host+u.EscapedPath(), "/"), t), nil
}

func (w RemoteOptions) apply(u *url.URL, t *http.Transport) error {
	if u.Scheme == "http" && (w.Proxy != "" || w.CAFile != "") {
		return errors.New("a proxy and certificates are for https; this URL is of this machine")
	}
	if w.EnvironmentProxy != nil {
		t.Proxy = w.EnvironmentProxy
	}
	if w.Proxy != "" {
		proxy, err := url.Parse(w.Proxy)
		if err != nil || proxy.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, proxy.Scheme) {
			return errors.New("the proxy is not a URL such as http://proxy.example:3128")
		}
		t.Proxy = http.ProxyURL(proxy)
	}
	if w.CAFile == "" {
		return nil
	}
	if info, err := os.Stat(w.CAFile); err == nil && !info.Mode().IsRegular() { // opening a pipe would block
		return fmt.Errorf("read the certificates: %s is not a regular file", w.CAFile)
	}
	text, err := os.ReadFile(w.CAFile)
	if err != nil {
		return fmt.Errorf("read the certificates: %w", err)
	}
	t.TLSClientConfig.RootCAs = x509.NewCertPool()
	if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s holds no certificate in PEM", w.CAFile)
	}
	return nil
}

// Loopback reports whether a host without port can only be this machine.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// onlyHere refuses to connect to another machine, whatever DNS says.
func onlyHere(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return errElsewhere
	}
	return nil
}

// untrusted reports whether err means that the server's identity is wrong, so that a retry does not help.
func untrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	return errors.As(err, &certificate) || errors.As(err, &plain) || errors.Is(err, http.ErrSchemeMismatch)
}

// withoutURL is the cause of a call's error, without the URL that net/http adds.
func withoutURL(err error) error {
	if of, is := errors.AsType[*url.Error](err); is {
		return of.Err
	}
	return err
}

// foreignAnswer describes an answer that is not daycared's, such as that of a proxy that cannot reach it.
func foreignAnswer(status int) error {
	switch {
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return fmt.Errorf("%w: a proxy before it answers with status %d", ErrUnreachable, status)
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest:
		return fmt.Errorf("daycared's address answers with status %d, which leads elsewhere and is not followed", status)
	}
	return fmt.Errorf("daycared answered with status %d and no reason", status)
}

// SlowDown is how long to wait before repeating a call, 0 if err does not say.
func SlowDown(err error) time.Duration {
	if p, is := errors.AsType[*Problem](err); is && p.Code == CodeSlowDown {
		return max(p.After, time.Second)
	}
	return 0
}

// Secret is a key or a token. Printing, logging or encoding it shows a placeholder; a conversion to string gives its text.
type Secret string

func (Secret) String() string { return "‹key›" }

// GoString returns the placeholder.
func (s Secret) GoString() string { return s.String() }

// LogValue returns the placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns the placeholder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
