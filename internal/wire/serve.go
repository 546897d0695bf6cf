package wire

import (
	"bytes"
	"context"
	"errors"
	logger "log"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	headerWithin   = 5 * time.Second
	idleWithin     = time.Minute
	maxHeader      = 16 << 10
	stopWithin     = 900 * time.Millisecond
	defaultPerPeer = 1024
)

// Serve answers calls on l until ctx ends. Then it takes no new ones, ends the context of those under way, so that
// whoever waits is answered with the row as it stands, and returns nil within a second. perPeer is how many connections
// one account may have at a time; 0 is 1024. Serve closes l.
func Serve(ctx context.Context, l net.Listener, h http.Handler, perPeer int, log *slog.Logger) error {
	if perPeer <= 0 {
		perPeer = defaultPerPeer
	}
	known := &peerListener{Listener: l, know: account, most: perPeer, log: log, open: map[string]*held{}}
	return serve(ctx, known, h, log)
}

func serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerWithin,
		IdleTimeout:       idleWithin,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withPeer,
		ErrorLog:          logger.New(faults{log}, "", 0),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return errors.Join(err, server.Close())
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		log.Warn("calls under way were cut off", "err", err)
		_ = server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// faults takes what net/http has to say of connections and handlers. Anybody who finds a TCP port can spoil a handshake,
// so nothing is made of that.
type faults struct{ log *slog.Logger }

// Write is that of an io.Writer, for one line.
func (f faults) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.HasPrefix(line, []byte("http: TLS handshake error")) {
		level = slog.LevelDebug
	}
	f.log.Log(context.Background(), level, "serving", "fault", string(bytes.TrimSpace(line)))
	return len(line), nil
}
