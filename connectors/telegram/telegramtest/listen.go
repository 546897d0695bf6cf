package telegramtest

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// era is the time between an Up and the next Down.
type era struct {
	server *http.Server
	end    context.CancelFunc // of all calls
	busy   sync.WaitGroup     // the accepting goroutine, connections, and calls that took over theirs
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
		return fmt.Errorf("start a Bot API server: %w", err)
	}
	s.addr = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	e := &era{end: cancel}
	e.server = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(e, w, r) }),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnState:         e.count,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	e.busy.Add(1)
	go func() {
		defer e.busy.Done()
		_ = e.server.Serve(listener)
	}()
	s.era = e
	s.change()
	return nil
}

// Down refuses and cuts all connections. What was received before is done, what the server knows is kept, and people
// go on writing.
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

// count keeps account of the connections' goroutines.
func (e *era) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		e.busy.Add(1)
	case http.StateHijacked, http.StateClosed:
		e.busy.Done()
	}
}

// reset cuts the connection of a call so that the client sees it reset.
func (e *era) reset(w http.ResponseWriter) {
	e.busy.Add(1)
	defer e.busy.Done()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the client has gone
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
