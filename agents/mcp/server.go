// Package mcp is the door of agents that speak MCP: the tools request_permission, ask_user, pause, await_request and
// approve_tool, over HTTP ([Server.Handler], for /mcp) and over stdio ([Server.Serve], for `daycared mcp`).
//
// A call blocks until people have answered. While it does, a client that gave a progress token is sent a sign of life at
// once and then every ten seconds, by which clients hold their own timeouts off. The result is the sentence of the
// contract as text, and the same as JSON beside it, since some agents show their model only one of the two.
//
// Leaving cancels nothing. A client that drops a call and asks the same again finds its place, and the decision taken
// meanwhile: the door remembers who left without an answer (abandoned.go). A client that said `cancelled` and does not come
// back within a minute takes its request with it (abandoned.go); one whose connection was lost never does.
//
// What permits nothing, a clarification and a pause that continues, is shown as the client's own dialog as well, where it
// declares elicitation and the desk says that it may be (dialog.go): over stdio the client is called meanwhile, and
// the dialog is withdrawn when somebody else was first; since the revision of 2026-07-28 the result of the call asks, and
// the client calls again with a sealed id, while the door keeps its place.
//
// There are no sessions: every call is whole in itself, in both eras of the protocol, and the caller is proven by what
// stands before this door. Nothing here decides what an agent may do.
package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

const (
	signsEvery  = 10 * time.Second // between two signs of life
	cancelAfter = time.Minute      // a cancelled call that nobody has joined again cancels its request
)

// Requests is what this door needs of the engine. It cannot decide what an agent may do.
type Requests interface {
	agents.Asker
	agents.Requests
	// Begin is Ask that does not wait: the request as it stands. An Ask with the same Call and its id goes on from there.
	Begin(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.RequestView, error)
	// Regret withdraws a request of this caller's after so long, unless somebody has asked the same again by then, or waits for it.
	Regret(ctx context.Context, caller permissions.Caller, id permissions.ID, after time.Duration) (permissions.RequestView, error)
	// Hold has a request of this caller's count as waited for, or no longer: its client shows a dialog, and comes back.
	Hold(ctx context.Context, caller permissions.Caller, id permissions.ID, held bool) error
}

// Options are what a [Server] needs.
type Options struct {
	Desk Requests
	// CallerOf is who makes a call, as what stands before this door has proven; nil where the desk itself knows.
	CallerOf func(context.Context) permissions.Caller
	// Version is the daemon's, as clients are told it.
	Version string
	// Cwd and Host are where the agent runs, if that is known; people see them on the card.
	Cwd, Host string
	// BehindProxy has calls taken whose Host is not this machine's: somebody else has looked at it.
	BehindProxy bool
	// Every is how often a waiting client gets a sign of life, and Regret how long after its `cancelled` a request that
	// nobody has joined again is cancelled; 0 for the ten seconds and the minute of the contract.
	Every, Regret time.Duration
	Log           *slog.Logger
}

// Server answers calls of MCP clients.
type Server struct {
	o     Options
	sdk   *mcp.Server
	left  *memory
	heard heard
	seal  stateToken
}

// New makes a server. It starts nothing.
func New(o Options) *Server {
	if o.CallerOf == nil {
		o.CallerOf = func(context.Context) permissions.Caller { return permissions.Caller{} }
	}
	o.Every, o.Regret = cmp.Or(o.Every, signsEvery), cmp.Or(o.Regret, cancelAfter)
	s := &Server{o: o, left: newMemory(), heard: heard{all: map[string]time.Time{}}, seal: newStateToken()}
	s.sdk = mcp.NewServer(&mcp.Implementation{Name: "daycared", Title: "daycared", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for _, t := range tools() {
		definition := &mcp.Tool{Name: t.name, Title: t.title, Description: t.says, InputSchema: json.RawMessage(t.schema)}
		if !t.free {
			definition.OutputSchema = json.RawMessage(outcome)
		}
		s.sdk.AddTool(definition, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return t.call(ctx, s, r), nil
		})
	}
	s.sdk.AddReceivingMiddleware(called)
	return s
}

// Serve answers one client over in and out until in ends or ctx does; both are closed then. What waits is left standing.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	locked := &lockedWriter{WriteCloser: out}
	line := &line{ReadCloser: in}
	line.messages = wire.NewLines(in, mostBody, func(text []byte) (bool, error) {
		if len(bytes.TrimSpace(text)) == 0 {
			return false, nil
		}
		err := wire.CheckMessage(text)
		if err != nil {
			_, _ = locked.Write(malformed(err)) // a client that has gone reads nothing
		}
		return err == nil, nil
	})
	visit := &connection{talks: true, cancelled: func() bool { return running.Err() == nil && !line.ended.Load() }}
	s.sdk.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			ctx, end := context.WithCancel(ctx)
			defer end()
			defer context.AfterFunc(running, end)() // the library would wait for what waits
			return next(context.WithValue(ctx, connectionKey{}, visit), method, r)
		}
	})
	err := s.sdk.Run(ctx, &mcp.IOTransport{Reader: line, Writer: locked, MaxLineLength: mostBody})
	ended := line.ended.Load() || ctx.Err() != nil
	if !ended {
		return err
	}
	return nil
}

// malformed is the answer to a message that is none.
func malformed(err error) []byte {
	line, _ := json.Marshal(map[string]any{ // it always can be written
		"jsonrpc": "2.0", "id": nil,
		"error": map[string]any{"code": jsonrpc.CodeInvalidRequest, "message": "not a JSON-RPC message: " + err.Error()},
	})
	return append(line, '\n')
}

// lockedWriter is written by several, one message at a time.
type lockedWriter struct {
	io.WriteCloser
	mu sync.Mutex
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(p)
}

// line is what a client writes, which knows when it has ended: from then on, no call that ends was cancelled.
type line struct {
	io.ReadCloser
	messages *wire.Lines
	ended    atomic.Bool
}

func (l *line) Read(p []byte) (int, error) {
	n, err := l.messages.Read(p)
	if err != nil {
		l.ended.Store(true)
	}
	return n, err
}

// Greet starts a server that talks over its standard streams, ends it again, and returns the name by which it answered.
func Greet(ctx context.Context, server *exec.Cmd, version string) (name string, err error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "daycared doctor", Version: version}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: server}, nil)
	if err != nil {
		return "", err
	}
	return session.InitializeResult().ServerInfo.Name, session.Close()
}
