// Package mcp serves agents that speak MCP, with the tools request_permission, ask_user, pause, await_request and approve_tool,
// over HTTP ([Server.Handler], for /mcp) and over stdio ([Server.Serve], for `daycared mcp`).
//
// A call blocks until people have answered. Meanwhile a client that gave a progress token receives a progress message at once
// and then every ten seconds, which keeps its timeout from expiring. The result is the contract's sentence as text, and the same
// as JSON, since some agents show their model only one of the two.
//
// A disconnected call cancels nothing: the server remembers it (abandoned.go), and a client that asks the same again continues
// it and gets the decision taken meanwhile. A call ended with `cancelled` withdraws its request after one minute, unless it is
// asked again.
//
// Questions that grant nothing (a clarification, and a pause that continues) also appear in the client's own dialog, if it
// declares elicitation and the engine allows it (dialog.go). Over stdio, the client is called during the call, and the dialog is
// withdrawn when somebody else answers first. Since revision 2026-07-28 the result of the call asks, and the client calls again
// with a signed id; meanwhile its request counts as waited for.
//
// There are no sessions: every call is self-contained, in both protocol eras, and authenticated before it arrives here. Nothing
// here decides what an agent may do.
package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/schema"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

const (
	progressEvery = 10 * time.Second // between progress messages
	cancelAfter   = time.Minute      // before the request of a cancelled call is withdrawn
)

// Requests is the part of the engine that this server uses. It cannot decide what an agent may do.
type Requests interface {
	agents.Asker
	agents.Requests
	// Begin is Ask without waiting: it returns the current state. An Ask with the same Call and id continues it.
	Begin(ctx context.Context, caller permissions.Caller, q permissions.Request) (permissions.RequestView, error)
	// WithdrawLater withdraws a request of the caller after a delay, unless the same is asked again by then or a call waits for it.
	WithdrawLater(ctx context.Context, caller permissions.Caller, id permissions.ID, after time.Duration) (permissions.RequestView, error)
	// Hold marks a request of the caller as waited for, or ends that, while its client shows a dialog and will call again.
	Hold(ctx context.Context, caller permissions.Caller, id permissions.ID, held bool) error
}

// Options configure a [Server].
type Options struct {
	Requests Requests
	// CallerOf returns the authenticated caller of a call; nil if Requests identifies the caller itself.
	CallerOf func(context.Context) permissions.Caller
	// Version is the daemon's version, as reported to clients.
	Version string
	// Cwd and Host are the agent's location, if known; cards show them.
	Cwd, Host string
	// Leads resolves the links of a tool call of Claude Code on the agent's machine; nil on any other one, where nobody looks.
	Leads func(permissions.Request) (permissions.Leads, error)
	// BehindProxy accepts calls for any host name, because a server in front has checked it.
	BehindProxy bool
	// Every is the interval between progress messages, and WithdrawAfter the delay before a cancelled call's request is withdrawn; 0
	// for the contract's ten seconds and one minute.
	Every, WithdrawAfter time.Duration
	Log                  *slog.Logger
}

// Server serves MCP clients.
type Server struct {
	o          Options
	sdk        *mcp.Server
	abandoned  *memory
	stateToken stateToken
}

// New returns a server. It starts nothing.
func New(o Options) *Server {
	if o.CallerOf == nil {
		o.CallerOf = func(context.Context) permissions.Caller { return permissions.Caller{} }
	}
	o.Every, o.WithdrawAfter = cmp.Or(o.Every, progressEvery), cmp.Or(o.WithdrawAfter, cancelAfter)
	s := &Server{o: o, abandoned: newMemory(), stateToken: stateToken{make([]byte, sha256.Size)}}
	_, _ = rand.Read(s.stateToken.key) // never fails
	s.sdk = mcp.NewServer(&mcp.Implementation{Name: "daycared", Title: "daycared", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for _, t := range tools() {
		definition := &mcp.Tool{Name: t.name, Title: t.title, Description: t.description, InputSchema: json.RawMessage(t.schema)}
		if !t.ownShape {
			definition.OutputSchema = json.RawMessage(outcome)
		}
		s.sdk.AddTool(definition, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return t.call(ctx, s, r), nil
		})
	}
	s.sdk.AddReceivingMiddleware(aliasAskUser)
	return s
}

// Serve serves one client over in and out until in or ctx ends, and closes both. Pending requests stay open.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	locked := &lockedWriter{WriteCloser: out}
	line := &line{ReadCloser: in}
	line.messages = wire.NewLines(in, maxBody, func(text []byte) (bool, error) {
		if len(bytes.TrimSpace(text)) == 0 {
			return false, nil
		}
		err := checkMessage(text)
		if err == nil && isBatch(text) && !s.takesBatches() {
			err = errors.New("this version of the protocol has no batches")
		}
		if err != nil {
			_, _ = locked.Write(malformed(err)) // the client may have gone
		}
		return err == nil, nil
	})
	line.messages.TooLong = func() {
		_, _ = locked.Write(malformed(fmt.Errorf("a message has at most %d bytes", maxBody)))
	}
	conn := &connection{acceptsCalls: true, cancelled: func() bool { return running.Err() == nil && !line.ended.Load() }}
	s.sdk.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			ctx, end := context.WithCancel(ctx)
			defer end()
			defer context.AfterFunc(running, end)() // the library would wait for pending calls
			return next(context.WithValue(ctx, connectionKey{}, conn), method, r)
		}
	})
	err := s.sdk.Run(ctx, &mcp.IOTransport{Reader: line, Writer: locked, MaxLineLength: maxBody})
	ended := line.ended.Load() || ctx.Err() != nil
	if !ended {
		return err
	}
	return nil
}

// takesBatches reports whether the one session began with a version of the protocol that has batches.
func (s *Server) takesBatches() bool {
	for session := range s.sdk.Sessions() {
		began := session.InitializeParams()
		return began == nil || slices.Contains([]string{"2024-11-05", "2025-03-26"}, began.ProtocolVersion)
	}
	return false
}

func isBatch(text []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) }

// maxID is up to where the library, which reads the ids of messages as floating-point numbers, keeps integers apart.
const maxID = 1 << 53

// checkMessage is [wire.CheckMessage], and refuses what the library would answer under another id or end the connection for.
func checkMessage(text []byte) error {
	if err := wire.CheckMessage(text); err != nil {
		return err
	}
	var messages []json.RawMessage
	if !isBatch(text) {
		messages = []json.RawMessage{text}
	} else if err := json.Unmarshal(text, &messages); err != nil {
		return err
	}
	if len(messages) == 0 {
		return errors.New("a batch has at least one message")
	}
	seen := map[jsonrpc.ID]bool{}
	for _, each := range messages {
		m, err := jsonrpc.DecodeMessage(each)
		if err != nil {
			return err
		}
		var is struct {
			ID any `json:"id"`
		}
		_ = json.Unmarshal(each, &is) // it was read already
		if n, isNumber := is.ID.(float64); isNumber && (n != math.Trunc(n) || math.Abs(n) >= maxID) {
			return errors.New("an id is text or an integer of at most 53 bits")
		}
		if call, is := m.(*jsonrpc.Request); is && call.ID.IsValid() {
			if seen[call.ID] {
				return errors.New("two messages of a batch have the same id")
			}
			seen[call.ID] = true
		}
	}
	return nil
}

func malformed(err error) []byte {
	line, _ := json.Marshal(map[string]any{ // cannot fail
		"jsonrpc": "2.0", "id": nil,
		"error": map[string]any{"code": jsonrpc.CodeInvalidRequest, "message": "not a JSON-RPC message: " + err.Error()},
	})
	return append(line, '\n')
}

// lockedWriter serializes concurrent writes of messages.
type lockedWriter struct {
	io.WriteCloser
	mu sync.Mutex
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(p)
}

// line is a client's input; it records its end, after which a call that ends was not cancelled.
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

// Greet starts a stdio server, initializes a session, ends it again, and returns the server's name.
func Greet(ctx context.Context, server *exec.Cmd, version string) (name string, err error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "daycared doctor", Version: version}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: server}, nil)
	if err != nil {
		return "", err
	}
	return session.InitializeResult().ServerInfo.Name, session.Close()
}

// The texts that models read are here and in agents/schema.

const instructions = `daycared asks the people answerable for you, in the chat they have open, and waits for their answer.
Ask with request_permission before you do something that needs their consent, ask_user when a choice is theirs, and pause
when they should look before you go on. A call may take many minutes: that is a person thinking. If your own client gives
up waiting, call the same tool again with the same arguments: you find your place, and nobody is asked twice.
No answer is never a yes. A denial is final: read its reason, and do something else.`

// tool is one tool as clients see it, and what a call of it does.
type tool struct {
	name, title, description string
	schema                   []byte
	ownShape                 bool // its results have a shape of their own
	call                     func(context.Context, *Server, *mcp.CallToolRequest) *mcp.CallToolResult
}

// tools returns the asking tools, which all servers share, and the ones of this package.
func tools() (all []tool) {
	for _, t := range schema.AskingTools {
		all = append(all, tool{name: t.Name, title: t.Title, description: t.Says, schema: t.Schema(), call: asks(t)})
		if t.Name == schema.AskUser {
			all = append(all, tool{name: askPerson, title: t.Title, description: t.Says, schema: t.Schema(), call: asks(t)})
		}
	}
	return append(all, tool{
		name: "await_request", title: "Wait for an earlier request", schema: schema.Of[awaitInput](), call: await,
		description: "Wait for the answer to a request of yours that is still open, by the id that its result had. Asks nobody again.",
	}, tool{
		name: approveTool, title: "Approve a tool call", schema: schema.Of[approveInput](), call: approve, ownShape: true,
		description: "For agent programs, not for models: asks a person whether one tool call may run, and answers with JSON text, " +
			`{"behavior":"allow","updatedInput":…} or {"behavior":"deny","message":…}. Claude Code calls it with ` +
			"--permission-prompt-tool mcp__daycared__approve_tool.",
	})
}

// askPerson is the alias of ask_user for Gemini CLI, which without a person at it refuses any tool of that name.
const askPerson = "ask_person"

// aliasAskUser lists ask_user under a name that the client does not hide, and maps it back.
func aliasAskUser(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, r)
		hidden, name := askPerson, schema.AskUser
		if session, is := r.GetSession().(*mcp.ServerSession); is && session.InitializeParams() != nil {
			if who := session.InitializeParams().ClientInfo; who != nil && strings.HasPrefix(who.Name, "gemini-cli") {
				hidden, name = name, hidden
			}
		}
		switch told := result.(type) {
		case *mcp.InitializeResult:
			told.Instructions = strings.ReplaceAll(told.Instructions, schema.AskUser, name)
		case *mcp.ListToolsResult:
			told.Tools = slices.DeleteFunc(slices.Clone(told.Tools), func(t *mcp.Tool) bool { return t.Name == hidden })
		}
		return result, err
	}
}

// ToolNames returns the names of all tools. Each of them only asks or waits for an answer.
func ToolNames() []string {
	return wire.Map(tools(), func(t tool) string { return t.name })
}

const approveTool = "approve_tool"

// outcome is the schema of what stands beside the sentence.
//
//go:embed outcome.json
var outcome []byte

// maxBody is the maximum size of a message in bytes: details of [permissions.MaxDetails], escaped, and everything else.
const maxBody = 2*permissions.MaxDetails + 2*wire.MaxBody

type awaitInput struct {
	ID permissions.ID `json:"id" need:"yes" size:"1..64" say:"the id of the request"`
}

type approveInput struct {
	Tool  string          `json:"tool_name" need:"yes" size:"1..200" say:"the tool that is to run"`
	Input json.RawMessage `json:"input" need:"yes" say:"its input, which people are shown whole"`
	Use   string          `json:"tool_use_id" say:"the caller's own id of the call"` // unused
}

func (in approveInput) question() (q permissions.Request, err error) {
	q = permissions.Request{Kind: permissions.KindTool, Tool: in.Tool}
	q.Input, err = permissions.CanonicalJSON(in.Input)
	return q, err
}
