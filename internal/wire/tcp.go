package wire

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"

	"github.com/daycared/daycared/permissions"
)

const (
	defaultPerAddress = 256
	defaultTotal      = 2048
)

// TCP is how calls come over TCP.
type TCP struct {
	// TLS encrypts; nil: nothing does.
	TLS *tls.Config
	// BehindProxy says that a proxy makes the connections, for callers who may be anywhere: on this very machine, too. Its
	// address stands for nobody, so it has as many connections as there may be.
	BehindProxy bool
	// PerAddress and Total are how many connections one address may have at a time, and all of them; 0 for 256 and 2048.
	PerAddress, Total int
}

// ServeTCP is [Serve] for a TCP listener, over HTTP/1.1: a connection is one call at a time, so that counting the one
// bounds the other. Who calls is not known: [PeerUID] only tells whether it may be an account of this machine.
func ServeTCP(ctx context.Context, l net.Listener, h http.Handler, o TCP, log *slog.Logger) error {
	if o.Total <= 0 {
		o.Total = defaultTotal
	}
	if o.PerAddress <= 0 {
		o.PerAddress = defaultPerAddress
	}
	if o.BehindProxy {
		o.PerAddress = o.Total
	}
	var known net.Listener = &peerListener{
		Listener: l, know: o.know, most: o.PerAddress, total: o.Total, log: log, open: map[string]*held{},
	}
	if o.TLS != nil {
		known = tls.NewListener(known, o.TLS)
	}
	return serve(ctx, known, h, log)
}

// know finds out whether a connection comes from this machine: then any account of it may have made it.
func (o TCP) know(c net.Conn) (peer, error) {
	far, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return peer{}, fmt.Errorf("read the address of a connection: %w", err)
	}
	address := far.Addr().Unmap().WithZone("")
	if o.BehindProxy {
		return peer{uid: permissions.AnyUID, name: "proxy"}, nil
	}
	p := peer{uid: permissions.NoUID, name: address.String()}
	if address.IsLoopback() || ownAddress(address) {
		p.uid = permissions.AnyUID
	}
	if address.Is6() && !address.IsLoopback() {
		p.name = netip.PrefixFrom(address, 64).Masked().String() // all of it is one machine's, as a rule
	}
	return p, nil
}

// ownAddress tells whether this machine has an address. Where it cannot be told, it has.
func ownAddress(a netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, own := range all {
		if n, err := netip.ParsePrefix(own.String()); err == nil && n.Addr().Unmap().WithZone("") == a {
			return true
		}
	}
	return false
}
