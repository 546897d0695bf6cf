// Package remote makes the tools of MCP servers available to our agents. A [Server] is a program that the operator
// configured; it is started when first needed, and again after it died, in the sandbox that the caller provides.
//
// A server is not trusted. Its tool names are normalised and prefixed with its own name, so that none can pass for one
// of ours; its descriptions are bounded and marked as its words; its annotations ("read only") are ignored. What a
// person was shown is what runs: a tool whose definition has changed is refused. The server's own requests, for
// sampling, elicitation and roots, are refused as well.
//
// A call that does not end in time or is stopped ends the server with all its descendants, because it could otherwise
// continue unnoticed.
package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/internal/wire"
)

// Options configure a server.
type Options struct {
	Name    string        // prefix of its tools' names, normalised
	Command sandbox.Maker // called for each start; the standard streams are ours
	Log     *slog.Logger
	Version string        // daycared's version, sent to the program
	Start   time.Duration // time limit for starting and listing tools; 0: 30 seconds
	Limit   time.Duration // time limit of a call; 0: 10 minutes
	Most    int           // bytes of output for the model; 0: 16 KiB
}

// Server is one MCP server. It is safe for concurrent use.
type Server struct {
	o    Options
	turn chan *conn // holds the connection, nil before the first; its taker may start another
	over chan struct{}
}

// ErrOver is returned (wrapped) once Run has ended.
var ErrOver = errors.New("the server is not run any more")

// New makes a server without starting it.
func New(o Options) *Server {
	o.Start, o.Limit = cmp.Or(o.Start, 30*time.Second), cmp.Or(o.Limit, 10*time.Minute)
	o.Most = cmp.Or(o.Most, 16<<10)
	o.Log = o.Log.With("server", o.Name)
	s := &Server{o: o, turn: make(chan *conn, 1), over: make(chan struct{})}
	s.turn <- nil
	return s
}

// Run returns when ctx has ended and with it the program and its descendants. It is called once.
func (s *Server) Run(ctx context.Context) error {
	<-ctx.Done()
	close(s.over)
	if l := <-s.turn; l != nil { // and never returned
		l.stop(exitTimeout)
	}
	return nil
}

// Tools returns the server's current tools, starting it if needed. A tool that the server changes afterwards does not run.
func (s *Server) Tools(ctx context.Context) ([]tools.Tool, error) {
	_, found, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	return wire.Map(found, func(d definition) tools.Tool { return &Tool{server: s, definition: d} }), nil
}

// ready returns the connection and the server's current tools. A server that does not answer in time is ended.
func (s *Server) ready(ctx context.Context) (*conn, []definition, error) {
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

// connect returns the connection, a new one if there is none or it has ended.
func (s *Server) connect(ctx context.Context) (*conn, error) {
	select {
	case <-s.over:
		return nil, fmt.Errorf("the MCP server %s: %w", s.o.Name, ErrOver)
	default:
	}
	var l *conn
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
		case <-s.over: // Run waits for our turn to end
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

const (
	// protocol is the requested version. Newer servers speak it too; older ones answer with their own.
	protocol = "2025-11-25"

	// exitTimeout is how long a server may take to exit after its input ended.
	exitTimeout = time.Second

	maxLine = 8 << 20 // bytes per message
)

// conn is a running program and its connection.
type conn struct {
	o       *Options
	run     *sandbox.Piped
	session *mcp.ClientSession // nil until connected

	ended chan struct{} // closed when the connection has ended
	works sync.WaitGroup
}

// start starts the program and initialises the connection.
func (s *Server) start(ctx context.Context) (*conn, error) {
	run, err := sandbox.Start(ctx, s.o.Command, func(line string) { s.o.Log.Debug("an mcp server wrote to stderr", "text", line) })
	if err != nil {
		return nil, wire.Plain(err)
	}
	l := &conn{o: &s.o, run: run, ended: make(chan struct{})}
	client := mcp.NewClient(&mcp.Implementation{Name: "daycared", Version: s.o.Version}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{}, Logger: slog.New(slog.DiscardHandler), // it would log what servers say
	})
	client.AddReceivingMiddleware(refuse)
	unanswered := &wire.Unanswered{Most: wire.MaxUnanswered}
	strict := wire.NewLines(run.Stdout, maxLine, func(text []byte) (bool, error) {
		err := wire.CheckMessage(text)
		if err == nil {
			err = unanswered.Received(text)
		}
		if err != nil {
			s.o.Log.Warn("mcp server ended for what it says", "err", err)
			run.Kill() // an answer that it does not read would wait for ever
		}
		return true, err
	})
	replies := struct {
		io.Reader
		io.Closer
	}{strict, run.Stdout}
	l.session, err = client.Connect(ctx, &mcp.IOTransport{Reader: replies, Writer: unanswered.Writer(l.run.Stdin), MaxLineLength: maxLine},
		&mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		if err = answer(ctx, err); errors.Is(err, errEnded) {
			select { // its own exit is more informative than our kill
			case <-run.Gone:
			case <-time.After(exitTimeout):
			}
		}
		run.Kill()
		if how := words(run.How(), 500); errors.Is(err, errEnded) {
			err = fmt.Errorf("%w %s", err, how)
		}
		_ = run.Stdout.Close() // ends the connection even while a child process has it open
		return nil, err
	}
	l.works.Go(func() {
		_ = l.session.Wait() // the error is irrelevant
		close(l.ended)
		l.run.Kill()
	})
	s.o.Log.Debug("mcp server started")
	return l, nil
}

func (l *conn) alive() bool {
	select {
	case <-l.ended:
		return false
	default:
		return true
	}
}

// stop ends the program, killing it after a time, and waits for all its descendants.
func (l *conn) stop(after time.Duration) {
	if after > 0 {
		_ = l.run.Stdin.Close() // asks it to exit
		select {
		case <-l.run.Gone:
		case <-time.After(after):
		}
	}
	l.run.Kill()
	<-l.run.Gone
	_ = l.session.Close() // it has ended in any case
	l.works.Wait()
}

// refuse refuses the requests of servers to their client.
func refuse(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		switch method {
		case "sampling/createMessage", "elicitation/create", "roots/list":
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "daycared gives servers no " + method}
		}
		return next(ctx, method, r)
	}
}

// answer translates a library error.
func answer(ctx context.Context, err error) error {
	var told *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return wire.Plain(ctx.Err())
	case errors.As(err, &told):
		return fmt.Errorf("it answers: %s", words(told.Message, 500))
	case errors.Is(err, mcp.ErrConnectionClosed), errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed), errors.Is(err, syscall.EPIPE):
		return errEnded
	}
	return errors.New("what it says is not MCP")
}

var errEnded = errors.New("the program has ended")
