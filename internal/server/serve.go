package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	logger "log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

const (
	headerWithin   = 5 * time.Second
	idleWithin     = time.Minute
	maxHeader      = 16 << 10
	defaultPerPeer = 1024

	// When the daemon stops, calls have bodyWithin to send their bodies. Complete ones are answered: repliesWithin
	// bounds the wait for that, and flushWithin the sending.
	bodyWithin, repliesWithin, flushWithin = 800 * time.Millisecond, 3 * time.Second, 100 * time.Millisecond
)

// Serve answers calls on l until ctx ends. Then it accepts no new ones, cancels the running ones, so that waiting
// callers get the current request, and returns nil when all are answered; calls with incomplete bodies are dropped
// after a moment. perPeer is the most connections of one account; 0 is 1024. Serve closes l.
func Serve(ctx context.Context, l net.Listener, h http.Handler, perPeer int, log *slog.Logger) error {
	if perPeer <= 0 {
		perPeer = defaultPerPeer
	}
	known := &peerListener{Listener: l, know: account, most: perPeer, log: log, open: map[string]*held{}}
	return serve(ctx, known, h, log)
}

func serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	under := &calls{changed: timing.NewSignal()}
	server := &http.Server{
		Handler:           under.count(h),
		ReadHeaderTimeout: headerWithin,
		IdleTimeout:       idleWithin,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withPeer,
		ErrorLog:          logger.New(httpErrorLog{log}, "", 0),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return errors.Join(err, server.Close())
	case <-ctx.Done():
	}
	_ = server.Shutdown(ctx) // ctx has ended: this only stops accepting
	under.wait()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushWithin)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		if n := under.left(); n > 0 { // else an idle connection
			log.Warn("running calls cut off", "calls", n)
		}
		_ = server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// calls counts the running calls, and those with incomplete bodies.
type calls struct {
	mu         sync.Mutex
	n, reading int
	changed    timing.Signal
}

// count counts the calls of a handler.
func (c *calls) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := &counted{ReadCloser: r.Body, calls: c}
		r.Body = b
		c.add(1, 0)
		defer c.add(-1, 0)
		if r.ContentLength != 0 {
			b.unread.Store(true)
			c.add(0, 1)
			defer b.over()
		}
		h.ServeHTTP(w, r)
	})
}

func (c *calls) add(n, reading int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += n
	c.reading += reading
	c.changed.Notify()
}

func (c *calls) left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// wait returns when no call is running, except those whose bodies stay incomplete.
func (c *calls) wait() {
	patience, most := time.After(bodyWithin), time.After(repliesWithin)
	late := false
	for {
		c.mu.Lock()
		over := c.n == 0 || late && c.n == c.reading
		c.mu.Unlock()
		if over {
			return
		}
		select {
		case <-c.changed:
		case <-patience:
			late = true
		case <-most:
			return
		}
	}
}

// counted is a call's body that records when it was read completely.
type counted struct {
	io.ReadCloser
	calls  *calls
	unread atomic.Bool
}

// Read implements [io.Reader].
func (b *counted) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.over()
	}
	return n, err
}

// over records that the body is complete, or never will be.
func (b *counted) over() {
	if b.unread.Swap(false) {
		b.calls.add(0, -1)
	}
}

// httpErrorLog logs net/http's errors. Anybody who finds a TCP port can fail a handshake, so that is logged as debug only.
type httpErrorLog struct{ log *slog.Logger }

// Write implements [io.Writer] for one line.
func (f httpErrorLog) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.HasPrefix(line, []byte("http: TLS handshake error")) {
		level = slog.LevelDebug
	}
	f.log.Log(context.Background(), level, "serve http", "fault", string(bytes.TrimSpace(line)))
	return len(line), nil
}

const (
	defaultPerAddress = 256
	defaultTotal      = 2048
)

// TCP configures a TCP server.
type TCP struct {
	// TLS encrypts; nil: no encryption.
	TLS *tls.Config
	// BehindProxy means that a proxy, perhaps on this machine, connects for callers anywhere. Its address identifies
	// nobody, and it may use all connections.
	BehindProxy bool
	// PerAddress and Total are the most connections of one address and of all; 0 for 256 and 2048.
	PerAddress, Total int
}

// ServeTCP is [Serve] for TCP, over HTTP/1.1: a connection is one call at a time, so that limiting connections limits
// calls. Callers are not identified: [PeerUID] only reports whether it may be an account of this machine.
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

// know identifies a connection's peer. Any account of this machine may have made a local one.
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
		p.name = netip.PrefixFrom(address, 64).Masked().String() // usually one machine's
	}
	return p, nil
}

// ownAddress reports whether this machine has an address; true if unknown.
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
