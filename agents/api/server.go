// Package api is the door of agents that run elsewhere: HTTP on agent.sock and, for those on other
// machines, over TCP; and the client that speaks to it.
//
// The [Server] proves who calls by the account at the other end of the socket, or by the token that a call presents,
// which then says alone who asks, and over TCP is the only proof; and hands the question to its [Requests], which can put it
// to people and cannot decide. No route here decides, lists or shows what is another caller's. One takes what the dialog of
// the caller's own editor brought, for what permits nothing, where that is switched on.
//
// A call waits at most [wire.MaxWait]; the row is the truth, so a caller simply asks again. The [Client] does that: it
// names its call, and with that name and the id it was told it finds its place again after every wait, after a lost
// connection and after a restart of the daemon. It is an [agents.Asker] like the engine itself.
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
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Options are what a [Server] needs.
type Options struct {
	Desk   Requests
	Socket string // path of agent.sock
	Group  string // whose members may ask as well; empty: this account and root only
	// Connections is how many connections one account may have at a time; 0 for the default of 1024.
	Connections int
	// CallsPerSecond is how often one caller may call; 0 for the default of 500, and 2000 at once.
	CallsPerSecond int
	// TCP is a listener for agents that run elsewhere; nil: there is none.
	TCP *TCP
	// Metrics answers /metrics; nil: nothing does.
	Metrics http.Handler
	// Mounts answer besides the door's own routes, each what matches its pattern (as of [http.ServeMux]: "/mcp",
	// "POST /hook/{dialect}"). They stand behind the same admission and the same proof of the caller ([CallerOf]), and
	// what they are given to read is JSON within bounds, read whole already. Their answers may go on for as long as they
	// like ([wire.Stream]); their calls' contexts end when the daemon stops.
	Mounts map[string]http.Handler
	Log    *slog.Logger
}

// Server is the agents' door.
type Server struct {
	options  Options
	listener net.Listener
	remote   *remote // nil without
	present  presence
}

// New makes a server. It does nothing yet.
func New(o Options) *Server { return &Server{options: o, present: presence{of: map[string]process{}}} }

// Listen opens the socket, and the TCP listener if there is to be one, so that what is wrong with them is known before
// anything else is started. Callers wait in the listeners' queues until [Server.Run].
func (s *Server) Listen() error {
	l, err := wire.Listen(s.options.Socket, s.options.Group)
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

// Address is where the TCP listener listens, after [Server.Listen]; nil without one.
func (s *Server) Address() net.Addr {
	if s.remote == nil {
		return nil
	}
	return s.remote.listener.Addr()
}

// Routes are the patterns of everything that agents may reach here, in order: what has none is not there.
func (s *Server) Routes() []string { return s.door().Routes() }

// Run serves until ctx ends, after [Server.Listen] if that was not called. At the end every waiting call is answered
// with its request as it stands, within a second.
func (s *Server) Run(ctx context.Context) error {
	if s.listener == nil {
		if err := s.Listen(); err != nil {
			return err
		}
	}
	door := s.door()
	g := gate{desk: s.options.Desk, door: door, pace: newPace(s.options.CallsPerSecond)}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		h := door.Handler(wire.Listener{Guard: g.admit})
		return wire.Serve(ctx, s.listener, h, s.options.Connections, s.options.Log)
	})
	group.Go(func() error { return s.present.watch(ctx, s.options.Desk) })
	if s.remote != nil {
		group.Go(func() error { return s.remote.serve(ctx, door, g, s.options) })
	}
	return group.Wait()
}

// door has all that agents may reach.
func (s *Server) door() *wire.Server {
	door := wire.NewServer("daycared for agents", s.options.Desk.Ready, s.options.Log)
	(&routes{desk: s.options.Desk, door: door, present: &s.present, log: s.options.Log}).register()
	if s.options.Metrics != nil {
		door.Metrics(s.options.Metrics)
	}
	for pattern, h := range s.options.Mounts {
		door.Handle(pattern, wire.Stream(h))
	}
	return door
}

// Requests is what this door needs of the engine. It cannot decide what an agent may do.
type Requests interface {
	// AskDeferred is [agents.Asker.Ask], for thousands who wait: it needs little of a stack, and keeps no request meanwhile.
	// question says what is asked, again when that has to be asked anew; its error is returned as it is. The answer is
	// never nil.
	AskDeferred(
		ctx context.Context, caller permissions.Caller, question func() (permissions.Request, error),
	) (*permissions.Request, error)
	agents.Requests
	// WaitSettled returns when Await would, and needs little of a stack. Another's request is refused as unknown.
	WaitSettled(ctx context.Context, caller permissions.Caller, id permissions.ID) error
	// LeaveOrCancel takes one call from a request of this caller's, by the call's own name, and cancels it when no other waits.
	LeaveOrCancel(ctx context.Context, caller permissions.Caller, id permissions.ID, call string) (permissions.RequestView, error)
	// Killed takes a call whose process was ended from a request of this caller's, and cancels that when no other waits.
	Killed(ctx context.Context, caller permissions.Caller, id permissions.ID, call string) error
	// Regret withdraws a request of this caller's after so long, unless somebody has asked the same again by then, or waits for it.
	Regret(ctx context.Context, caller permissions.Caller, id permissions.ID, after time.Duration) (permissions.RequestView, error)
	// KeepProcess keeps, beyond a restart, which process of this machine waits for a request of this caller's; one without an id is
	// forgotten. Processes are those that are kept, with the callers that they ask as.
	KeepProcess(ctx context.Context, caller permissions.Caller, w permissions.Wait) error
	Processes(ctx context.Context) ([]permissions.Wait, []permissions.Caller, error)
	// Recall withdraws what this caller says needs no answer any more, and returns how many requests that was.
	Recall(ctx context.Context, caller permissions.Caller, m permissions.Recall) (withdrawn int, err error)
	// Tell has somebody told what this caller says, and returns who that is. An empty name is whoever the caller belongs to.
	Tell(
		ctx context.Context, caller permissions.Caller, to string, about permissions.About, t permissions.Telling,
	) (person string, err error)
	// Prove is who asks with a token, over a connection of that account. A token that is not valid is refused.
	Prove(ctx context.Context, secret permissions.Secret, uid int) (permissions.Caller, error)
	// Bear gives the context of a call that presents a token, which ends with a refusal when the token is revoked or expires
	// meanwhile. The caller calls done after the call.
	Bear(ctx context.Context, secret permissions.Secret) (_ context.Context, done func())
	// Ready is nil while requests can be stored and answered; the error says what to do.
	Ready(ctx context.Context) error
}

// TCP is a listener for agents that run elsewhere, who prove themselves by tokens.
type TCP struct {
	Address string // host:port, as of [net.Listen]
	// CertFile and KeyFile hold the certificate and its key; empty: calls come in the clear, from this machine or from
	// the proxy.
	CertFile, KeyFile string
	// BehindProxy says that a proxy makes the connections ([wire.TCP]). Nothing that it says about a caller is believed.
	BehindProxy bool
	// Hosts are the names by which the listener is called, besides those of its certificate, its own address, and
	// localhost.
	Hosts []string
	// AllowAnonymous lets callers from this machine ask without a token.
	AllowAnonymous bool
	// PerAddress and Total are how many connections there may be at a time ([wire.TCP]).
	PerAddress, Total int
}

// remote is a TCP listener that is open.
type remote struct {
	TCP
	listener    net.Listener
	certificate *certificate // nil without
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

// hosts reports whether a host is one of this listener's. A name that a name server could give to somebody else would let
// a page from anywhere in, so only those that were named are.
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
	}
	return r.certificate != nil && r.certificate.names(name)
}

func (r *remote) serve(ctx context.Context, door *wire.Server, g gate, o Options) error {
	g.remote, g.anonymous = true, r.AllowAnonymous && !r.BehindProxy
	options := wire.TCP{BehindProxy: r.BehindProxy, PerAddress: r.PerAddress, Total: r.Total}
	if r.certificate != nil {
		options.TLS = r.certificate.config()
	}
	h := door.Handler(wire.Listener{Hosts: r.hosts, Guard: g.admit})
	return wire.ServeTCP(ctx, r.listener, h, options, o.Log)
}

// certificate is the listener's, read again when its file has changed, so that a renewed one needs no restart. One that
// cannot be read leaves the old one in force.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	written time.Time // when the file was, that was last looked at
}

// openCertificate reads the certificate for the first time.
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

// LoadCertificate reads a certificate and its key. The error tells nothing of what the files hold.
func LoadCertificate(certFile, keyFile string) (*tls.Certificate, error) {
	for _, file := range []string{certFile, keyFile} { // a pipe would have us wait for its writer
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

// get is the certificate in force.
func (c *certificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.certFile)
	if err != nil || info.ModTime().Equal(c.written) {
		return c.current
	}
	loaded, err := LoadCertificate(c.certFile, c.keyFile)
	if err != nil { // its key may still be about to be written, so it is tried again
		c.log.Warn("the new certificate is refused and the old one stays", "err", err)
		return c.current
	}
	c.current, c.written = loaded, info.ModTime()
	c.log.Info("the certificate was read again", "not_after", loaded.Leaf.NotAfter)
	return c.current
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(), nil },
	}
}

// names reports whether the certificate is for a host.
func (c *certificate) names(host string) bool {
	leaf := c.get().Leaf
	return !strings.Contains(host, "*") && leaf.VerifyHostname(bracketed(host)) == nil
}

// bracketed is how VerifyHostname wants an address that may be one of IPv6.
func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}
