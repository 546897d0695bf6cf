// Package remote makes the tools of MCP servers tools of our agents. A [Server] is a program that the operator has
// configured; it is started when it is first needed, and again when it has died, in whatever wrapper the caller gives it.
//
// What a server says is not believed. Its names are made fit and begin with the server's own, so that none can pass for one
// of ours; its descriptions are bounded and marked as its words; its annotations ("read only") are not looked at. What a
// person was shown is what runs: a tool whose definition is another by then is refused. The server's own requests, for
// words of a model, for answers of a person, for folders, are refused as well.
//
// A call that does not end in time, or that is stopped, ends the server with all that it started: nobody could tell
// otherwise whether it goes on.
package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/internal/wire"
)

// Options are what a server needs.
type Options struct {
	Name    string        // begins the names of its tools, made fit for them
	Command sandbox.Maker // is called for each start; the standard streams are ours
	Log     *slog.Logger
	Version string        // of daycared, which the program is told
	Start   time.Duration // how long it may take to start and to list its tools; 0: 30 seconds
	Limit   time.Duration // how long a call may take; 0: 10 minutes
	Most    int           // bytes of its output that a model is told at once; 0: 16 KiB
}

// Server is one MCP server. It is safe for concurrent use.
type Server struct {
	o    Options
	turn chan *line // holds the connection, nil before the first; whoever has taken it may start another
	over chan struct{}
}

// ErrOver is returned (wrapped) once Run has ended.
var ErrOver = errors.New("the server is not run any more")

// New makes a server. Nothing is started.
func New(o Options) *Server {
	o.Start, o.Limit = cmp.Or(o.Start, 30*time.Second), cmp.Or(o.Limit, 10*time.Minute)
	o.Most = cmp.Or(o.Most, 16<<10)
	o.Log = o.Log.With("server", o.Name)
	s := &Server{o: o, turn: make(chan *line, 1), over: make(chan struct{})}
	s.turn <- nil
	return s
}

// Run lasts until ctx ends, and then ends the program with all that it started. It is called once; tools are listed and
// run meanwhile.
func (s *Server) Run(ctx context.Context) error {
	<-ctx.Done()
	close(s.over)
	if l := <-s.turn; l != nil { // and nobody else takes it any more
		l.stop(farewell)
	}
	return nil
}

// Tools are those that the server has just now. It is started where it does not run. They stay as they were listed: one
// that the server has changed since then does not run.
func (s *Server) Tools(ctx context.Context) ([]tools.Tool, error) {
	_, found, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	return wire.Each(found, func(d definition) tools.Tool { return &Tool{server: s, definition: d} }), nil
}

// ready is the connection, and the tools that the server has now. A server that does not tell in time is ended.
func (s *Server) ready(ctx context.Context) (*line, []definition, error) {
	limited, cancel := context.WithTimeout(ctx, s.o.Start)
	defer cancel()
	l, err := s.connect(limited)
	if err != nil {
		return nil, nil, err
	}
	found, err := l.list(limited)
	if err == nil {
		return l, found, nil
	}
	if ctx.Err() == nil && limited.Err() != nil {
		l.stop(0)
		err = fmt.Errorf("it says nothing for %v, and was ended", s.o.Start)
	}
	return nil, nil, fmt.Errorf("list the tools of the MCP server %s: %w", s.o.Name, err)
}

// connect is the connection, a new one where there is none or it has ended.
func (s *Server) connect(ctx context.Context) (*line, error) {
	select {
	case <-s.over:
		return nil, fmt.Errorf("the MCP server %s: %w", s.o.Name, ErrOver)
	default:
	}
	var l *line
	select {
	case l = <-s.turn:
	case <-s.over:
		return nil, fmt.Errorf("the MCP server %s: %w", s.o.Name, ErrOver)
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the MCP server %s: %w", s.o.Name, ctx.Err())
	}
	if l != nil && l.alive() {
		s.turn <- l
		return l, nil
	}
	if l != nil {
		l.stop(0)
	}
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-s.over: // Run waits for us
			cancel()
		case <-ctx.Done():
		}
	})
	l, err := s.start(ctx)
	cancel()
	watch.Wait()
	s.turn <- l
	if err != nil {
		return nil, fmt.Errorf("start the MCP server %s: %w", s.o.Name, err)
	}
	return l, nil
}
