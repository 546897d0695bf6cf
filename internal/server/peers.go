package server

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"sync"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// peer is the other end of a connection, as far as the connection identifies it.
type peer struct {
	uid  int    // the account, [permissions.AnyUID] or [permissions.NoUID]
	pid  int    // the process that connected; 0: unknown
	name string // an account or address, by which connections and calls are counted
}

type peerKey struct{}

// PeerUID is the account at the other end of a call's connection: proven by the kernel for a unix socket,
// [permissions.AnyUID] for TCP from this machine, else [permissions.NoUID].
func PeerUID(ctx context.Context) int {
	if p, ok := ctx.Value(peerKey{}).(peer); ok {
		return p.uid
	}
	return permissions.NoUID
}

// PeerPID is the process that made a call's connection; 0 if unknown.
func PeerPID(ctx context.Context) int {
	p, _ := ctx.Value(peerKey{}).(peer)
	return p.pid
}

// PeerName is the name by which a peer's calls are counted: an account, an address, or a network that one machine may
// own. It proves nothing, and is empty outside a call.
func PeerName(ctx context.Context) string {
	p, _ := ctx.Value(peerKey{}).(peer)
	return p.name
}

// withPeer is the ConnContext of our servers.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secure.NetConn()
	}
	if p, ok := c.(*peerConn); ok {
		return context.WithValue(ctx, peerKey{}, p.peer)
	}
	return ctx
}

// peerListener accepts only connections whose peer it can identify, at most most of each peer and total of all.
type peerListener struct {
	net.Listener
	know        func(net.Conn) (peer, error)
	most, total int // total: 0 for no limit
	log         *slog.Logger

	mu   sync.Mutex
	open map[string]*held // by peer name
	sum  int
}

// held are the connections of one peer.
type held struct {
	open int
	told bool // its excess was logged, since it last had fewer
}

func (l *peerListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p, err := l.know(c)
		if err != nil {
			l.log.Warn("a connection without credentials was closed", "err", err)
			_ = c.Close()
			continue
		}
		if !l.enter(p.name) {
			_ = c.Close()
			continue
		}
		return &peerConn{Conn: c, peer: p, leave: sync.OnceFunc(func() { l.leave(p.name) })}, nil
	}
}

func (l *peerListener) enter(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.open[name]
	if h == nil {
		h = &held{}
		l.open[name] = h
	}
	if h.open < l.most && (l.total == 0 || l.sum < l.total) {
		h.open++
		l.sum++
		return true
	}
	if !h.told {
		h.told = true
		l.log.Warn("too many connections, refusing more", "peer", name, "open", h.open, "in_all", l.sum)
	}
	if h.open == 0 {
		delete(l.open, name)
	}
	return false
}

func (l *peerListener) leave(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.open[name]
	h.open--
	h.told = false
	l.sum--
	if h.open == 0 {
		delete(l.open, name)
	}
}

// peerConn is a connection with its peer.
type peerConn struct {
	net.Conn
	peer  peer
	leave func()
}

func (c *peerConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// account identifies the peer of a unix socket.
func account(c net.Conn) (peer, error) {
	uid, pid, err := wire.PeerCredentials(c)
	return peer{uid: uid, pid: pid, name: "uid:" + strconv.Itoa(uid)}, err
}
