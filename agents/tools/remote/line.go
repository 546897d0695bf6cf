package remote

import (
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
	"github.com/daycared/daycared/internal/wire"
)

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
	strict := wire.NewLines(run.Stdout, maxLine, func(text []byte) (bool, error) {
		err := wire.CheckMessage(text)
		return true, err
	})
	replies := struct {
		io.Reader
		io.Closer
	}{strict, run.Stdout}
	l.session, err = client.Connect(ctx, &mcp.IOTransport{Reader: replies, Writer: l.run.Stdin, MaxLineLength: maxLine},
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
		_ = run.Stdout.Close() // ends the connection, whoever else holds it
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
