package api

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/daycared/daycared/internal/wire"
)

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

// hosts tells whether a host is one of this listener's. A name that a name server could give to somebody else would let
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

func (r *remote) serve(ctx context.Context, door *wire.Door, g gate, o Options) error {
	g.remote, g.anonymous = true, r.AllowAnonymous && !r.BehindProxy
	options := wire.TCP{BehindProxy: r.BehindProxy, PerAddress: r.PerAddress, Total: r.Total}
	if r.certificate != nil {
		options.TLS = r.certificate.config()
	}
	h := door.Handler(wire.Entrance{Hosts: r.hosts, Guard: g.admit})
	return wire.ServeTCP(ctx, r.listener, h, options, o.Log)
}
