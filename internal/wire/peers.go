package wire

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"

	"github.com/daycared/daycared/permissions"
)

type peerKey struct{}

// PeerUID is the account at the other end of the connection that a call came over, proven by the kernel, or
// [permissions.NoUID] for a context that is not of a call.
func PeerUID(ctx context.Context) int {
	if uid, ok := ctx.Value(peerKey{}).(int); ok {
		return uid
	}
	return permissions.NoUID
}

// withPeer is the ConnContext of our servers.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	if p, ok := c.(*peerConn); ok {
		return context.WithValue(ctx, peerKey{}, p.uid)
	}
	return ctx
}

// peerListener accepts only connections whose account it knows, and of each account at most most at a time.
type peerListener struct {
	net.Listener
	most int
	log  *slog.Logger

	mu   sync.Mutex
	open map[int]int // connections by uid
}

func (l *peerListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		uid, err := connUID(c)
		if err != nil {
			l.log.Warn("a connection without credentials was closed", "err", err)
			_ = c.Close()
			continue
		}
		if !l.enter(uid) {
			l.log.Warn("an account has too many connections", "uid", uid, "most", l.most)
			_ = c.Close()
			continue
		}
		return &peerConn{Conn: c, uid: uid, leave: sync.OnceFunc(func() { l.leave(uid) })}, nil
	}
}

func (l *peerListener) enter(uid int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[uid] >= l.most {
		return false
	}
	l.open[uid]++
	return true
}

func (l *peerListener) leave(uid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[uid]--; l.open[uid] == 0 {
		delete(l.open, uid)
	}
}

// peerConn knows who is at its other end.
type peerConn struct {
	net.Conn
	uid   int
	leave func()
}

func (c *peerConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// connUID reads the credentials of a unix socket. A TCP socket is refused by its type: Linux gives it credentials too,
// which say nothing.
func connUID(c net.Conn) (uid int, err error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0, errors.New("not a unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, err
	}
	if failed := raw.Control(func(fd uintptr) { uid, err = peerUID(int(fd)) }); failed != nil {
		return 0, failed
	}
	return uid, err
}
