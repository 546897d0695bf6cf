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
	// protocol is asked for. Servers that speak later ones speak it, too; those of before answer with their own.
	protocol = "2025-11-25"

	// farewell is how long a server may take to end by itself once its input has ended.
	farewell = time.Second

	mostLine = 8 << 20 // bytes of one message
)

// line is a program that runs, and the connection to it.
type line struct {
	o       *Options
	run     *sandbox.Piped
	session *mcp.ClientSession // nil until connected

	ended chan struct{} // the connection has ended
	works sync.WaitGroup
}

// start starts the program and greets it.
func (s *Server) start(ctx context.Context) (*line, error) {
	run, err := sandbox.Start(ctx, s.o.Command, func(line string) { s.o.Log.Debug("an mcp server wrote to stderr", "text", line) })
	if err != nil {
		return nil, wire.Plain(err)
	}
	l := &line{o: &s.o, run: run, ended: make(chan struct{})}
	client := mcp.NewClient(&mcp.Implementation{Name: "daycared", Version: s.o.Version}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{}, Logger: slog.New(slog.DiscardHandler), // it would log what servers say
	})
	client.AddReceivingMiddleware(refuse)
	strict := wire.NewLines(run.Stdout, mostLine, func(text []byte) (bool, error) {
		err := wire.CheckMessage(text)
		return true, err
	})
	replies := struct {
		io.Reader
		io.Closer
	}{strict, run.Stdout}
	l.session, err = client.Connect(ctx, &mcp.IOTransport{Reader: replies, Writer: l.run.Stdin, MaxLineLength: mostLine},
		&mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		if err = answer(ctx, err); errors.Is(err, errEnded) {
			select { // how it ended by itself says more than that it was killed
			case <-run.Gone:
			case <-time.After(farewell):
			}
		}
		run.Kill()
		if how := words(run.How(), 500); errors.Is(err, errEnded) {
			err = fmt.Errorf("%w %s", err, how)
		}
		_ = run.Stdout.Close() // so that the connection ends, whatever is left of it
		return nil, err
	}
	l.works.Go(func() {
		_ = l.session.Wait() // how it ended makes no difference
		close(l.ended)
		l.run.Kill()
	})
	s.o.Log.Debug("an mcp server was started")
	return l, nil
}

// alive reports whether the connection stands.
func (l *line) alive() bool {
	select {
	case <-l.ended:
		return false
	default:
		return true
	}
}

// stop ends the program, killing it after so long, and waits until all of it is gone.
func (l *line) stop(after time.Duration) {
	if after > 0 {
		_ = l.run.Stdin.Close() // which asks it to end
		select {
		case <-l.run.Gone:
		case <-time.After(after):
		}
	}
	l.run.Kill()
	<-l.run.Gone
	_ = l.session.Close() // it has ended, one way or the other
	l.works.Wait()
}

// refuse refuses what a server asks of its client.
func refuse(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		switch method {
		case "sampling/createMessage", "elicitation/create", "roots/list":
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "daycared gives servers no " + method}
		}
		return next(ctx, method, r)
	}
}

// answer is what an error of the library's means.
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
