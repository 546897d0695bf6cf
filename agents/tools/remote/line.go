package remote

import (
	"bufio"
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
	kill    context.CancelFunc // ends the program and all that it started
	stdin   *os.File
	stderr  *os.File
	session *mcp.ClientSession // nil until connected

	ended chan struct{} // the connection has ended
	gone  chan struct{} // the program has, with all that it started
	works sync.WaitGroup
}

// start starts the program and greets it.
func (s *Server) start(ctx context.Context) (*line, error) {
	l := &line{o: &s.o, ended: make(chan struct{}), gone: make(chan struct{})}
	stdout, err := l.launch(ctx)
	if err != nil {
		return nil, err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "daycared", Version: s.o.Version}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{}, Logger: slog.New(slog.DiscardHandler), // it would log what servers say
	})
	client.AddReceivingMiddleware(refuse)
	l.session, err = client.Connect(ctx, &mcp.IOTransport{Reader: stdout, Writer: l.stdin, MaxLineLength: mostLine},
		&mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		l.kill()
		l.works.Wait()
		_ = stdout.Close() // so that the connection ends, whatever is left of it
		return nil, answer(ctx, err)
	}
	l.works.Go(func() {
		_ = l.session.Wait() // how it ended makes no difference
		close(l.ended)
		l.kill()
	})
	s.o.Log.Debug("an mcp server was started")
	return l, nil
}

// launch starts the program, whose life is not that of ctx, and has its stderr logged.
func (l *line) launch(ctx context.Context) (stdout *os.File, err error) {
	life, kill := context.WithCancel(context.WithoutCancel(ctx))
	cmd, release, err := l.o.Command(life)
	if err != nil {
		kill()
		return nil, err
	}
	var ours, theirs []*os.File // stdin, stdout, stderr
	for i := range 3 {
		r, w, failed := os.Pipe()
		if i == 0 {
			r, w = w, r // they read it
		}
		ours, theirs, err = append(ours, r), append(theirs, w), cmp.Or(err, failed)
	}
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
		err = cmd.Start()
	}
	for _, end := range theirs {
		_ = end.Close() // nil as well
	}
	if err != nil {
		kill()
		release()
		for _, end := range ours {
			_ = end.Close()
		}
		return nil, err
	}
	l.kill, l.stdin, l.stderr = kill, ours[0], ours[2]
	l.works.Go(l.log)
	l.works.Go(func() {
		_ = cmd.Wait() // how it ended is told by its connection
		release()
		kill()
		// What it wrote last is still read; what got away from its walls may keep the pipes open for ever.
		_ = ours[1].SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_ = ours[2].SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		close(l.gone)
	})
	return ours[1], nil
}

// log logs what the program writes to stderr.
func (l *line) log() {
	const most = 2000 // bytes of a line; a longer one is several
	defer l.stderr.Close()
	lines := bufio.NewReaderSize(l.stderr, most)
	for {
		text, _, err := lines.ReadLine()
		if err != nil {
			return
		}
		l.o.Log.Debug("an mcp server wrote to stderr", "text", string(text))
	}
}

// alive tells whether the connection stands.
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
		_ = l.stdin.Close() // which asks it to end
		select {
		case <-l.gone:
		case <-time.After(after):
		}
	}
	l.kill()
	<-l.gone
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
		return ctx.Err()
	case errors.As(err, &told):
		return fmt.Errorf("it answers: %s", words(told.Message, 500))
	case errors.Is(err, mcp.ErrConnectionClosed), errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed), errors.Is(err, syscall.EPIPE):
		return errEnded
	}
	return fmt.Errorf("what it says cannot be read: %s", words(err.Error(), 500))
}

var errEnded = errors.New("the program has ended")
