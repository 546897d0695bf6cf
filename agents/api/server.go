// Package api serves agents that are separate programs: HTTP on agent.sock and, for those on other machines, over TCP. Their
// client is the package client.
//
// The [Server] identifies a caller by the account at the other end of the socket, or by the token that a call presents, which
// then takes precedence and over TCP is the only way. It passes questions to its [Requests], which can put them to people but
// cannot decide. No route decides anything, or shows another caller's requests. One route accepts the result of a dialog in the
// caller's own editor, for requests that grant nothing, if that is enabled.
//
// A call waits at most [wire.MaxWait]; the row is the source of truth, so callers repeat the call: with its call's name and the
// request's id a caller continues after every wait, a lost connection or a restart of the daemon.
package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/permissions"
)

// Options configure a [Server].
type Options struct {
	Requests Requests
	Socket   string // path of agent.sock
	Group    string // whose members may ask too; empty: only this account and root
	// Connections is the maximum number of connections per account; 0 for the default of 1024.
	Connections int
	// CallsPerSecond limits the calls of one caller; 0 for the default of 500 with a burst of 2000.
	CallsPerSecond int
	// TCP configures the listener for remote agents; nil: none.
	TCP *TCP
	// Metrics serves /metrics; nil: there is no such route.
	Metrics http.Handler
	// Mounts are further handlers by pattern (as of [http.ServeMux]: "/mcp", "POST /hook/{dialect}"). They receive admitted and
	// authenticated calls ([CallerOf]) whose bodies are size-checked JSON, read completely. Their responses may take any time
	// ([server.Stream]); the contexts of their calls end when the daemon stops.
	Mounts map[string]http.Handler
	Log    *slog.Logger
}

// Server serves agents.
type Server struct {
	options  Options
	listener net.Listener
	remote   *remote // nil without TCP
	present  presence
}

// New returns a server. It does no I/O.
func New(o Options) *Server {
	return &Server{options: o, present: presence{of: map[string]map[string]process{}}}
}

// Listen opens the socket and any TCP listener, so that their problems surface first. Connections queue until [Server.Run].
func (s *Server) Listen() error {
	l, err := server.Listen(s.options.Socket, s.options.Group)
	if err != nil {
		return err
	}
	if s.options.TCP != nil {
		if s.remote, err = s.listenTCP(*s.options.TCP); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	s.listener = l
	return nil
}

// Address is the address of the TCP listener, after [Server.Listen]; nil without one.
func (s *Server) Address() net.Addr {
	if s.remote == nil {
		return nil
	}
	return s.remote.listener.Addr()
}

// Routes returns the patterns that agents can reach, sorted.
func (s *Server) Routes() []string { return s.newServer().Routes() }

// Run serves until ctx ends, calling [Server.Listen] if necessary. At the end it answers every waiting call within a second with
// the current state of its request.
func (s *Server) Run(ctx context.Context) error {
	if s.listener == nil {
		if err := s.Listen(); err != nil {
			return err
		}
	}
	srv := s.newServer()
	g := gate{requests: s.options.Requests, srv: srv, pace: newPace(s.options.CallsPerSecond)}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		h := srv.Handler(server.Listener{Guard: g.admit})
		return server.Serve(ctx, s.listener, h, s.options.Connections, s.options.Log)
	})
	group.Go(func() error { return s.present.watch(ctx, s.options.Requests) })
	if s.remote != nil {
		group.Go(func() error { return s.remote.serve(ctx, srv, g, s.options) })
	}
	return group.Wait()
}

func (s *Server) newServer() *server.Server {
	srv := server.New("daycared for agents", s.options.Requests.Ready, s.options.Log)
	(&routes{requests: s.options.Requests, srv: srv, present: &s.present, log: s.options.Log}).register()
	if s.options.Metrics != nil {
		srv.Metrics(s.options.Metrics)
	}
	for pattern, h := range s.options.Mounts {
		srv.Handle(pattern, server.Stream(h))
	}
	return srv
}

// Requests is the part of the engine that this server uses. It cannot decide what an agent may do.
type Requests interface {
	// AskDeferred is [agents.Asker.Ask] for thousands of waiting calls: while it waits, until then at most, it needs little stack
	// and holds no request. question returns the request, again when it must be submitted anew; its error is returned unchanged.
	// The deferred answer is never nil.
	AskDeferred(
		ctx context.Context, until time.Time, caller permissions.Caller, question func() (permissions.Request, error),
	) (*permissions.Request, error)
	agents.Requests
	// WaitSettled returns when Await would, until then at most, with little stack. A request of another caller is refused as unknown.
	WaitSettled(ctx context.Context, until time.Time, caller permissions.Caller, id permissions.ID) error
	// LeaveOrCancel removes the named call from a request of the caller, and cancels the request if no other call waits; via is
	// [permissions.ViaInterrupt] if the call's process was killed, else empty.
	LeaveOrCancel(ctx context.Context, caller permissions.Caller, id permissions.ID, call, via string) (permissions.RequestView, error)
	// WithdrawLater withdraws a request of the caller after a delay, unless the same is asked again by then or a call waits for it.
	WithdrawLater(ctx context.Context, caller permissions.Caller, id permissions.ID, after time.Duration) (permissions.RequestView, error)
	// KeepProcess stores which local process waits for a request of the caller, so that it survives a restart; a process without
	// an id deletes the entry. Processes returns the stored entries with their callers.
	KeepProcess(ctx context.Context, caller permissions.Caller, w permissions.Wait) error
	Processes(ctx context.Context) ([]permissions.Wait, []permissions.Caller, error)
	// Recall withdraws the caller's requests that match m, and returns how many there were.
	Recall(ctx context.Context, caller permissions.Caller, m permissions.Recall) (withdrawn int, err error)
	// Tell sends a notice from the caller to a person and returns their name; an empty name means the caller's own person.
	Tell(
		ctx context.Context, caller permissions.Caller, to string, about permissions.About, t permissions.CallerMessage,
	) (person string, err error)
	// Prove returns the caller that a token identifies, over a connection of that account. An invalid token is refused.
	Prove(ctx context.Context, secret permissions.Secret, uid int) (permissions.Caller, error)
	// Bear returns a context for a call with a token. It ends with a refusal when the token is revoked or expires. The caller of
	// Bear calls done after the call.
	Bear(ctx context.Context, secret permissions.Secret) (_ context.Context, done func())
	// Ready returns nil while requests can be stored and answered; otherwise the error says what to do.
	Ready(ctx context.Context) error
}

// TCP configures a listener for remote agents, which authenticate with tokens.
type TCP struct {
	Address string // host:port, as for [net.Listen]
	// CertFile and KeyFile hold the certificate and its key; empty: plain HTTP, only from this machine or from the proxy.
	CertFile, KeyFile string
	// BehindProxy says that a proxy makes the connections ([server.TCP]). Its claims about the client are ignored.
	BehindProxy bool
	// Hosts are accepted host names besides those of the certificate, the listener's address, and localhost.
	Hosts []string
	// AllowAnonymous reports whether callers from this machine are admitted without a token, at each of their calls; nil: never.
	AllowAnonymous func() bool
	// PerAddress and Total limit the number of connections ([server.TCP]).
	PerAddress, Total int
}

type remote struct {
	TCP
	listener    net.Listener
	certificate *certificate // nil without TLS
}

func (s *Server) listenTCP(o TCP) (*remote, error) {
	r := &remote{TCP: o}
	var err error
	if o.CertFile != "" {
		if r.certificate, err = openCertificate(o.CertFile, o.KeyFile, s.options.Log); err != nil {
			return nil, err
		}
	}
	if r.listener, err = new(net.ListenConfig).Listen(context.Background(), "tcp", o.Address); err != nil {
		return nil, fmt.Errorf("listen for agents: %w", err)
	}
	return r, nil
}

// hosts reports whether a host name is this listener's. Any name but a configured one could be rebound to it by a web page.
func (r *remote) hosts(name string) bool {
	own, _, _ := net.SplitHostPort(r.Address)
	ip := net.ParseIP(own)
	switch {
	case name == "localhost", name == "127.0.0.1", name == "::1":
		return true
	case ip != nil && !ip.IsUnspecified() && ip.Equal(net.ParseIP(name)):
		return true
	case slices.ContainsFunc(r.Hosts, func(h string) bool { return strings.EqualFold(h, name) }):
		return true
	case strings.Contains(name, ":"): // VerifyHostname wants IPv6 addresses in brackets
		name = "[" + name + "]"
	}
	return r.certificate != nil && !strings.Contains(name, "*") && r.certificate.get().Leaf.VerifyHostname(name) == nil
}

func (r *remote) serve(ctx context.Context, srv *server.Server, g gate, o Options) error {
	g.remote = true
	if !r.BehindProxy {
		g.anonymous = r.AllowAnonymous
	}
	options := server.TCP{BehindProxy: r.BehindProxy, PerAddress: r.PerAddress, Total: r.Total}
	if r.certificate != nil {
		options.TLS = &tls.Config{
			MinVersion:     tls.VersionTLS12,
			NextProtos:     []string{"http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return r.certificate.get(), nil },
		}
	}
	h := srv.Handler(server.Listener{Hosts: r.hosts, Guard: g.admit})
	return server.ServeTCP(ctx, r.listener, h, options, o.Log)
}

// certificate is the listener's certificate, reloaded when its file changes, so that a renewal needs no restart. If the new one
// cannot be read, the old one stays in use.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	written time.Time // modification time of the file when last checked
}

func openCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	loaded, err := LoadCertificate(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	c.current = loaded
	if info, err := os.Stat(certFile); err == nil {
		c.written = info.ModTime()
	}
	return c, nil
}

// LoadCertificate loads a certificate and its key. Errors do not reveal the content of the files.
func LoadCertificate(certFile, keyFile string) (*tls.Certificate, error) {
	return own.LookUp(certFile, func() (*tls.Certificate, error) { return loadCertificate(certFile, keyFile) })
}

func loadCertificate(certFile, keyFile string) (*tls.Certificate, error) {
	for _, file := range []string{certFile, keyFile} { // opening a pipe would block
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("read the certificate %s and its key: %s is not a regular file", certFile, file)
		}
	}
	loaded, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("read the certificate %s and its key: %w", certFile, err)
	}
	return &loaded, nil
}

// get returns the current certificate.
func (c *certificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := own.LookUp(c.certFile, func() (os.FileInfo, error) { return os.Stat(c.certFile) })
	if err != nil || info.ModTime().Equal(c.written) {
		return c.current
	}
	loaded, err := LoadCertificate(c.certFile, c.keyFile)
	if err != nil { // retry: the key may not have been written yet
		c.log.Warn("reload certificate: keeping the old one", "err", err)
		return c.current
	}
	c.current, c.written = loaded, info.ModTime()
	c.log.Info("certificate reloaded", "not_after", loaded.Leaf.NotAfter)
	return c.current
}
