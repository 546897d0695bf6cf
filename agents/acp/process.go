package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions/acts"
)

// Program is how an agent's program is started. See [Options].
type Program struct {
	Command sandbox.Maker // called for each start; the standard streams are ours
	Auth    string        // id of the sign-in method; empty: never sign in
	Mode    string        // id of the required mode; empty: a known one that asks
	Start   time.Duration // time limit for initialize and for starting a conversation; 0: a minute
	// Progress is how often people get news of a long turn; 0: every 20 seconds.
	Progress time.Duration
	Log      *slog.Logger
	Version  string // daycared's version, sent to the program
	// Place is where its files and commands are held, with the configured Tags. Sandbox holds our tools that serve its calls.
	Place   tools.Workspace
	Sandbox *sandbox.Sandbox
}

// start starts the program, for whose calls g decides.
func (p Program) start(ctx context.Context, g gate) (*session, error) {
	c := &client{gate: g, place: p.Place, log: p.Log, read: tools.Whole(p.Sandbox), tools: map[string]tools.Tool{}}
	for _, t := range tools.All(p.Sandbox) {
		c.tools[t.Spec().Name] = t
	}
	running, err := launch(ctx, p, c.answer, c.update)
	if err != nil {
		return nil, err
	}
	return &session{c, running}, nil
}

func (p Program) conversation() sdk.NewSessionRequest {
	return sdk.NewSessionRequest{Cwd: p.Place.Workspace, McpServers: []sdk.McpServer{}}
}

func (p Program) patience() time.Duration { return cmp.Or(p.Start, usualStart) }

// endTime is how long after a failed call to wait for the program's exit.
const endTime = 100 * time.Millisecond

// usualStart allows for a program that is downloaded first.
const usualStart = time.Minute

type process struct {
	conn         *sdk.Connection
	capabilities sdk.AgentCapabilities
	authMethod   string        // see Program.Auth
	mode         string        // see Program.Mode
	authMethods  []string      // its sign-in methods, for people
	every        time.Duration // see Program.Progress
	run          *sandbox.Piped
	works        sync.WaitGroup

	ending atomic.Bool // it is to end

	callsMu sync.Mutex
	closed  bool // its calls are no longer answered
	calls   sync.WaitGroup
}

// launch starts the program and initialises the connection. answer handles its calls; updates receives its reports,
// each before anything that the program sends later. The program outlives ctx.
func launch(ctx context.Context, o Program, answer sdk.MethodHandler, updates func(json.RawMessage)) (*process, error) {
	p := &process{authMethod: o.Auth, mode: o.Mode, every: cmp.Or(o.Progress, progressEvery)}
	run, err := sandbox.Start(ctx, o.Command, func(line string) { o.Log.Debug("an acp agent wrote to stderr", "text", line) })
	if err != nil {
		return nil, fmt.Errorf("start its program: %w", wire.Plain(err))
	}
	p.run = run
	ready := make(chan struct{}) // the library's logger is set before it can log
	unanswered := &wire.Unanswered{Most: wire.MaxUnanswered}
	p.conn = sdk.NewConnection(p.countCalls(answer), unanswered.Writer(p.run.Stdin),
		newLines(run.Stdout, ready, updates, func(line []byte) error {
			err := unanswered.Received(line)
			if err != nil {
				o.Log.Warn("program of an acp agent ended for what it says", "err", err)
			}
			return err
		}))
	p.conn.SetLogger(slog.New(debugHandler{o.Log.Handler()}))
	close(ready)
	p.works.Go(func() { // its output cannot be read any more
		<-p.conn.Done()
		p.run.Kill()
		<-p.run.Gone
		_ = run.Stdout.Close()
	})
	limited, done := context.WithTimeout(ctx, o.patience())
	defer done()
	if err := p.initialize(limited, o); err != nil {
		err = p.why(ctx, err)
		p.stop()
		return nil, cmp.Or(p.run.Left(), err)
	}
	return p, nil
}

func (p *process) initialize(ctx context.Context, o Program) error {
	hello, err := call[sdk.InitializeResponse](ctx, p, sdk.AgentMethodInitialize, sdk.InitializeRequest{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		ClientInfo:      &sdk.Implementation{Name: "daycared", Version: o.Version},
		ClientCapabilities: sdk.ClientCapabilities{
			Fs: sdk.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}, Terminal: true,
		},
	})
	if err != nil {
		return err
	}
	if hello.ProtocolVersion != sdk.ProtocolVersionNumber {
		return fmt.Errorf("it speaks version %d of the protocol, and daycared version %d", hello.ProtocolVersion, sdk.ProtocolVersionNumber)
	}
	p.capabilities, p.authMethods = hello.AgentCapabilities, offers(hello.AuthMethods)
	return nil
}

// call calls a method of the agent. It returns when ctx ends, even if the program does not read.
func call[T any](ctx context.Context, p *process, method string, in any) (out T, err error) {
	select {
	case r := <-later(p, func() (T, error) { return sdk.SendRequest[T](p.conn, ctx, method, in) }):
		return r.out, r.err
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

type result[T any] struct {
	out T
	err error
}

// later sends the result of a call, for which the end of the program waits.
func later[T any](p *process, do func() (T, error)) <-chan result[T] {
	came := make(chan result[T], 1)
	p.works.Go(func() {
		out, err := do()
		came <- result[T]{out, err}
	})
	return came
}

// tell sends a notification. It does not wait for a program that does not read.
func (p *process) tell(ctx context.Context, method string, in any) {
	p.works.Go(func() { _ = p.conn.SendNotification(ctx, method, in) }) // a program that is gone needs no notification
}

// countCalls makes stop wait for the calls that answer handles.
func (p *process) countCalls(answer sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, params json.RawMessage) (any, *sdk.RequestError) {
		p.callsMu.Lock()
		if p.closed {
			p.callsMu.Unlock()
			return nil, sdk.NewRequestCancelled(nil)
		}
		p.calls.Add(1)
		p.callsMu.Unlock()
		defer p.calls.Done()
		return answer(ctx, method, params)
	}
}

// alive reports whether the program can still be called.
func (p *process) alive() bool { return !p.ending.Load() && !closed(p.conn.Done()) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// stop kills the program with its descendants, and waits for their end.
func (p *process) stop() {
	p.run.Kill()
	<-p.run.Gone
	_ = p.run.Stdin.Close()
	<-p.conn.Done() // its output has ended
	p.callsMu.Lock()
	p.closed = true
	p.callsMu.Unlock()
	p.calls.Wait()
	p.works.Wait()
}

// why explains a failed call: usually the program has ended, and how.
func (p *process) why(ctx context.Context, err error) error {
	var told *sdk.RequestError
	select {
	case <-p.conn.Done():
	case <-ctx.Done():
	case <-time.After(endTime): // a failed write was reported before
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !p.alive():
		return fmt.Errorf("%w %s", errEnded, short(p.run.How(), maxTold))
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("it gives no answer in time")
	case errors.As(err, &told):
		text := short(told.Message+detail(told.Data), maxTold)
		if told.Code == codeSignIn {
			text = p.signIn(text)
		}
		return &refused{code: told.Code, text: text}
	}
	return err
}

var errEnded = errors.New("its program has ended")

// refused is an error that the agent answered.
type refused struct {
	code int
	text string
}

func (r *refused) Error() string { return r.text }

func detail(data any) string {
	if members, ok := data.(map[string]any); ok {
		for _, name := range []string{"details", "message", "error"} {
			if text, ok := members[name].(string); ok {
				return ": " + text
			}
		}
	}
	if text, ok := data.(string); ok {
		return ": " + text
	}
	return ""
}

// maxTold is the most bytes of an agent's error for people.
const maxTold = 500

// debugHandler logs everything as debug: the library logs agents' texts at higher levels.
type debugHandler struct{ slog.Handler }

func (d debugHandler) Enabled(ctx context.Context, _ slog.Level) bool {
	return d.Handler.Enabled(ctx, slog.LevelDebug)
}

func (d debugHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return d.Handler.Handle(ctx, r)
}

// maxLine is the most bytes of one message of an agent. A longer one ends the connection.
const maxLine = 10 << 20

// lines is an agent's output without its updates, which are passed on at once. The library would process them later, so
// that a question could overtake the agent's words before it, and it would end the connection when many wait.
type lines struct {
	*wire.Lines
	ready   chan struct{} // nothing is read until it is closed
	updates func(json.RawMessage)
}

// newLines counts each line that is passed on; an error ends the connection.
func newLines(from io.Reader, ready chan struct{}, updates func(json.RawMessage), count func(line []byte) error) *lines {
	l := &lines{ready: ready, updates: updates}
	l.Lines = wire.NewLines(from, maxLine, func(line []byte) (bool, error) {
		if json.Valid(line) && wire.CheckEnvelope(line) != nil {
			return false, nil //nolint:nilerr // passed over, as what cannot be read is: this could be read in two ways
		}
		if l.isUpdate(line) {
			return false, nil
		}
		return true, count(line)
	})
	return l
}

func (l *lines) Read(p []byte) (int, error) {
	<-l.ready
	return l.Lines.Read(p)
}

// isUpdate passes a line on if it is an update.
func (l *lines) isUpdate(line []byte) bool {
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if !bytes.Contains(line, []byte(sdk.ClientMethodSessionUpdate)) || json.Unmarshal(line, &message) != nil ||
		message.Method != sdk.ClientMethodSessionUpdate || len(message.ID) > 0 {
		return false
	}
	l.updates(message.Params)
	return true
}

const codeSignIn = -32000

// signedIn calls a method; if the agent requires it, it signs in first and calls again: the failed call did nothing.
func signedIn[T any](ctx context.Context, p *process, method string, in any) (out T, err error) {
	out, err = call[T](ctx, p, method, in)
	if p.authMethod == "" || !needsSignIn(err) {
		return out, err
	}
	_, err = call[sdk.AuthenticateResponse](ctx, p, sdk.AgentMethodAuthenticate, sdk.AuthenticateRequest{MethodId: p.authMethod})
	var told *sdk.RequestError
	switch {
	case errors.As(err, &told):
		return out, &sdk.RequestError{
			Code: codeSignIn, Message: fmt.Sprintf("signing it in by %q fails: %s", p.authMethod, told.Message), Data: told.Data,
		}
	case err != nil:
		return out, err
	}
	return call[T](ctx, p, method, in)
}

// needsSignIn reports whether an agent requires signing in.
func needsSignIn(err error) bool {
	told, is := errors.AsType[*sdk.RequestError](err)
	return is && told.Code == codeSignIn
}

// signIn tells people what the agent said, and how to sign it in.
func (p *process) signIn(said string) string {
	text := "it is not signed in (" + said + "). "
	if len(p.authMethods) > 0 {
		text += "It offers:\n- " + strings.Join(p.authMethods, "\n- ") + "\n"
	}
	return text + "One that needs neither a browser nor a terminal is named as acp_auth of its entry in the configuration. Else sign it " +
		"in by hand on the daemon's machine, under the daemon's account, and name the folder where it keeps that under write; or hand " +
		"on its key with env"
}

const maxWays = 10

// offers describes an agent's sign-in methods for people.
func offers(methods []sdk.AuthMethod) (all []string) {
	for _, m := range methods[:min(len(methods), maxWays)] {
		switch {
		case m.Agent != nil:
			all = append(all, offer(m.Agent.Id, m.Agent.Name, m.Agent.Description))
		case m.EnvVar != nil:
			names := wire.Map(m.EnvVar.Vars, func(v sdk.AuthEnvVar) string { return v.Name })
			all = append(all, offer(m.EnvVar.Id, m.EnvVar.Name, m.EnvVar.Description)+
				"; set "+oneLine(short(strings.Join(names, ", "), maxTold))+" for the daemon, and name it under env")
		case m.Terminal != nil:
			line := strings.Join(wire.Map(m.Terminal.Args, acts.Quote), " ")
			all = append(all, offer(m.Terminal.Id, m.Terminal.Name, m.Terminal.Description)+
				"; run its program in a terminal with: "+oneLine(short(line, maxTold)))
		}
	}
	return all
}

func offer(id, name string, about *string) string {
	text := strconv.Quote(short(id, maxTold))
	if name != "" && name != id {
		text += ", " + oneLine(short(name, maxTold))
	}
	if says := wire.Value(about); says != "" {
		text += ": " + oneLine(short(says, maxTold))
	}
	return text
}
