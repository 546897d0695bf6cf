package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// maxSocketPath is what the kernels we run on allow (macOS: 104 bytes with the final NUL).
const maxSocketPath = 103

// Listen opens a unix socket for this account (0600), or also for the members of group (0660; a name or number). It makes the
// folder if missing. It replaces a dead socket; a live one is an error. Closing the listener removes the socket.
func Listen(path, group string) (net.Listener, error) {
	l, err := listen(path, group)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

func listen(path, group string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of a socket has at most %d bytes, and this has %d", maxSocketPath, len(path))
	}
	gid, err := GroupID(group)
	if err != nil {
		return nil, err
	}
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// On Linux the socket inherits the mode of its descriptor when bound, so nobody else can connect before chmod.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) })
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	if err := admitGroup(path, gid); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	made, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if unix, is := l.(*net.UnixListener); is {
		unix.SetUnlinkOnClose(false)
	}
	remove := sync.OnceFunc(func() {
		if now, err := os.Lstat(path); err == nil && os.SameFile(now, made) { // while it is open, no other file has its inode
			_ = os.Remove(path) // a dead socket is replaced
		}
	})
	return socket{l, remove}, nil
}

// socket removes its file when it is closed, but not another of that name, which is a later daemon's.
type socket struct {
	net.Listener
	remove func()
}

// Close is [net.Listener].
func (s socket) Close() error {
	s.remove()
	return s.Listener.Close()
}

const noGroup = -1

// GroupID is the id of a group, given by name or number; -1 for none.
func GroupID(name string) (int, error) {
	if name == "" {
		return noGroup, nil
	}
	if gid, err := strconv.Atoi(name); err == nil {
		return gid, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return noGroup, err
	}
	return strconv.Atoi(g.Gid)
}

// makeFolder makes the folder of a socket, which both servers share. An existing one is left as it is.
func makeFolder(folder string) error {
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return os.Chmod(folder, 0o711) //nolint:gosec // others may pass, not look; each socket has a mode of its own
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("there is something else of that name, which is not a socket")
	}
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "unix", path)
	if err == nil {
		as := ""
		if uid, _, err := wire.PeerCredentials(c); err == nil {
			as = ", as uid " + strconv.Itoa(uid)
		}
		return errors.Join(fmt.Errorf("another daemon serves here%s; daycared status says which, and daycared stop ends it", as), c.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

func admitGroup(path string, gid int) error {
	if gid == noGroup {
		return os.Chmod(path, 0o600)
	}
	if err := os.Chown(path, -1, gid); err != nil {
		return err
	}
	return os.Chmod(path, 0o660) //nolint:gosec // so the group may ask
}

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

type countedKey struct{}

// CountAs returns the context of a call whose turns and bytes count as those of an authenticated caller, not of its peer.
func CountAs(ctx context.Context, caller string) context.Context {
	return context.WithValue(ctx, countedKey{}, caller)
}

func countedAs(ctx context.Context) string {
	if caller, is := ctx.Value(countedKey{}).(string); is {
		return caller
	}
	return PeerName(ctx)
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
