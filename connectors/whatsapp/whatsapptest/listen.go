package whatsapptest

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// era is the time between an Up and the next Down.
type era struct {
	server *http.Server
	ctx    context.Context //nolint:containedctx // it is the life of every connection of the era
	end    context.CancelFunc
	busy   sync.WaitGroup // the accepting goroutine, and what serves a connection
}

// Up makes the server listen, at the same address as ever. It does nothing while it does.
func (s *Server) Up() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.era != nil {
		return nil
	}
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return fmt.Errorf("start a WhatsApp server: %w", err)
	}
	s.addr = listener.Addr().String()
	e := &era{}
	e.ctx, e.end = context.WithCancel(context.Background())
	e.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(e, w, r) }),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				e.busy.Add(1)
			case http.StateHijacked, http.StateClosed:
				e.busy.Done()
			}
		},
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	e.busy.Go(func() { _ = e.server.Serve(listener) })
	s.era = e
	s.change()
	return nil
}

// Down refuses and cuts all connections. What was received before is done, what waits for the client is kept, and
// people go on writing.
func (s *Server) Down() {
	s.mu.Lock()
	e := s.era
	s.era = nil
	s.mu.Unlock()
	if e == nil {
		return
	}
	e.end()
	_ = e.server.Close()
	e.busy.Wait()
}

// Addr is where the server listens, host and port. It stays the same while the server is down.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// Client leads to the server whatever address it is asked for, without TLS: of a websocket, of media, of the web page.
// Whoever calls it may close its idle connections.
func (s *Server) Client() *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr())
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DialTLSContext: dial}}
}

// serve answers by host and path, as the addresses of WhatsApp are.
func (s *Server) serve(e *era, w http.ResponseWriter, r *http.Request) {
	switch host, _, _ := strings.Cut(r.Host, ":"); {
	case host == "web.whatsapp.com" && r.URL.Path == "/ws/chat":
		e.busy.Add(1) // the connection leaves the HTTP server
		defer e.busy.Done()
		s.serveSocket(e, w, r)
	case host == "web.whatsapp.com" && strings.Trim(r.URL.Path, "/") == "":
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintf(w, `<!doctype html><script>{"server_revision":%d,"client_revision":%d,"tier":"c2"}</script>`, s.latest, s.latest)
	case host == mediaHost && r.Method == http.MethodPost:
		s.upload(w, r)
	case host == mediaHost && r.Method == http.MethodGet:
		s.download(w, r)
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.violate("%s of https://%s%s", r.Method, host, r.URL.Path)
		http.NotFound(w, r)
	}
}
