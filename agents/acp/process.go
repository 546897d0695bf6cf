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
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/internal/wire"
)

// Program is how an agent's program is started. See [Options].
type Program struct {
	Command sandbox.Maker // is called for each start; the standard streams are ours
	Auth    string        // the way to sign it in where it asks for that, by its id; empty: nobody does
	Mode    string        // that it is to be in, by its id; empty: one that asks, of those that are known
	Start   time.Duration // how long it may take to greet us, and to begin a conversation; 0: a minute
	// Progress is how often people are told what goes on in a long turn, where there is something new; 0: every 20 seconds.
	Progress time.Duration
	Log      *slog.Logger
	Version  string // of daycared, which the program is told
}

// patience is how long the program may take to begin.
func (p Program) patience() time.Duration { return cmp.Or(p.Start, usualStart) }

// endTime is how long after a failure it shows that the program has ended.
const endTime = 100 * time.Millisecond

// usualStart leaves room for a program that is fetched first.
const usualStart = time.Minute

// process is a program that runs, and the connection to it.
type process struct {
	conn  *sdk.Connection
	able  sdk.AgentCapabilities
	way   string        // see Program.Auth
	mode  string        // see Program.Mode
	ways  []string      // in which it can be signed in, for people
	every time.Duration // see Program.Progress
	run   *sandbox.Piped
	works sync.WaitGroup

	doomed atomic.Bool // it is to end

	mu     sync.Mutex
	closed bool // no call of its is answered any more
	calls  sync.WaitGroup
}

// launch starts the program and greets it. answer is what its calls meet, and updates is told what it tells of its work,
// before anything that it says after. The program's life is not that of ctx.
func launch(ctx context.Context, o Program, answer sdk.MethodHandler, updates func(json.RawMessage)) (*process, error) {
	p := &process{way: o.Auth, mode: o.Mode, every: cmp.Or(o.Progress, progressEvery)}
	run, err := sandbox.Start(ctx, o.Command, func(line string) { o.Log.Debug("an acp agent wrote to stderr", "text", line) })
	if err != nil {
		return nil, fmt.Errorf("start its program: %w", wire.Plain(err))
	}
	p.run = run
	ready := make(chan struct{}) // the library's logger is set before it has anything to log
	p.conn = sdk.NewConnection(p.counted(answer), p.run.Stdin, newLines(run.Stdout, ready, updates))
	p.conn.SetLogger(slog.New(demoted{o.Log.Handler()}))
	close(ready)
	p.works.Go(func() { // what it says cannot be read any more
		<-p.conn.Done()
		p.run.Kill()
		<-p.run.Gone
		_ = run.Stdout.Close()
	})
	limited, done := context.WithTimeout(ctx, o.patience())
	defer done()
	if err := p.greet(limited, o); err != nil {
		err = p.why(ctx, err)
		p.stop()
		return nil, err
	}
	return p, nil
}

// greet agrees on the protocol.
func (p *process) greet(ctx context.Context, o Program) error {
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
	p.able, p.ways = hello.AgentCapabilities, offers(hello.AuthMethods)
	return nil
}

// call calls a method of the agent's. A program that does not even read does not hold it up when ctx ends.
func call[T any](ctx context.Context, p *process, method string, in any) (out T, err error) {
	type reply struct {
		out T
		err error
	}
	came := make(chan reply, 1)
	p.works.Go(func() {
		out, err := sdk.SendRequest[T](p.conn, ctx, method, in)
		came <- reply{out, err}
	})
	select {
	case r := <-came:
		return r.out, r.err
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

// tell sends the agent what has no answer. It does not wait for a program that does not read.
func (p *process) tell(ctx context.Context, method string, in any) {
	p.works.Go(func() { _ = p.conn.SendNotification(ctx, method, in) }) // one that is gone needs to be told nothing
}

// counted has answer's calls joined when the program ends.
func (p *process) counted(answer sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, params json.RawMessage) (any, *sdk.RequestError) {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, sdk.NewRequestCancelled(nil)
		}
		p.calls.Add(1)
		p.mu.Unlock()
		defer p.calls.Done()
		return answer(ctx, method, params)
	}
}

// doom has the program end, and does not wait for it.
func (p *process) doom() {
	p.doomed.Store(true)
	p.run.Kill()
}

// alive reports whether the program can still be spoken to.
func (p *process) alive() bool {
	if p.doomed.Load() {
		return false
	}
	select {
	case <-p.conn.Done():
		return false
	default:
		return true
	}
}

// stop kills the program with all that it started, and waits until all of it is gone.
func (p *process) stop() {
	p.run.Kill()
	<-p.run.Gone
	_ = p.run.Stdin.Close()
	<-p.conn.Done() // its output has ended
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.calls.Wait()
	p.works.Wait()
}

// why is what an error of a call means: mostly that the program has ended, and how.
func (p *process) why(ctx context.Context, err error) error {
	var told *sdk.RequestError
	select {
	case <-p.conn.Done():
	case <-ctx.Done():
	case <-time.After(endTime): // what could not be written was told before that
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !p.alive():
		return fmt.Errorf("%w %s", errEnded, short(p.run.How(), mostTold))
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("it gives no answer in time")
	case errors.As(err, &told):
		text := short(told.Message+detail(told.Data), mostTold)
		if told.Code == codeSignIn {
			text = p.signIn(text)
		}
		return &refused{code: told.Code, text: text}
	}
	return err
}

var errEnded = errors.New("its program has ended")

// refused is what the agent answered instead of a result.
type refused struct {
	code int
	text string
}

func (r *refused) Error() string { return r.text }

// detail is what an error says besides its message, where that is text.
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

// mostTold is how many bytes of an agent's error people are told.
const mostTold = 500

// demoted logs everything as debug: the library would log above it what agents write.
type demoted struct{ slog.Handler }

func (d demoted) Enabled(ctx context.Context, _ slog.Level) bool {
	return d.Handler.Enabled(ctx, slog.LevelDebug)
}

func (d demoted) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return d.Handler.Handle(ctx, r)
}

// mostLine is how many bytes one message of an agent's may have. A longer one ends the connection.
const mostLine = 10 << 20

// lines is what an agent writes, without its updates: these are handed on at once. The library would take them in its own
// time, so that a question could be put before what the agent said of it, and would end the connection when many wait.
type lines struct {
	*wire.Lines
	ready   chan struct{} // nothing is read before it is closed
	updates func(json.RawMessage)
}

func newLines(from io.Reader, ready chan struct{}, updates func(json.RawMessage)) *lines {
	l := &lines{ready: ready, updates: updates}
	l.Lines = wire.NewLines(from, mostLine, func(line []byte) (bool, error) {
		if json.Valid(line) && wire.CheckEnvelope(line) != nil {
			return false, nil //nolint:nilerr // passed over, as what cannot be read is: this could be read in two ways
		}
		return !l.isUpdate(line), nil
	})
	return l
}

func (l *lines) Read(p []byte) (int, error) {
	<-l.ready
	return l.Lines.Read(p)
}

// isUpdate hands on a line that is an update.
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

// codeSignIn is what an agent answers that is not signed in.
const codeSignIn = -32000

// signedIn calls a method of the agent's. Where it answers that it is not signed in, it is signed in by the way that the
// configuration names, and called once more: it has done nothing yet.
func signedIn[T any](ctx context.Context, p *process, method string, in any) (out T, err error) {
	out, err = call[T](ctx, p, method, in)
	if p.way == "" || !unsigned(err) {
		return out, err
	}
	_, err = call[sdk.AuthenticateResponse](ctx, p, sdk.AgentMethodAuthenticate, sdk.AuthenticateRequest{MethodId: p.way})
	var told *sdk.RequestError
	switch {
	case errors.As(err, &told):
		return out, &sdk.RequestError{
			Code: codeSignIn, Message: fmt.Sprintf("signing it in by %q fails: %s", p.way, told.Message), Data: told.Data,
		}
	case err != nil:
		return out, err
	}
	return call[T](ctx, p, method, in)
}

// unsigned reports whether an agent answered that it is not signed in.
func unsigned(err error) bool {
	told, is := errors.AsType[*sdk.RequestError](err)
	return is && told.Code == codeSignIn
}

// signIn is what people are told of an agent that is not signed in: what it said, and what there is to do.
func (p *process) signIn(said string) string {
	text := "it is not signed in (" + said + "). "
	if len(p.ways) > 0 {
		text += "It offers:\n- " + strings.Join(p.ways, "\n- ") + "\n"
	}
	return text + "One that needs neither a browser nor a terminal is named as acp_auth of its entry in the configuration. Else sign it " +
		"in by hand on the daemon's machine, under the daemon's account, and name the folder where it keeps that under write; or hand " +
		"on its key with env"
}

// mostWays is how many ways to sign in people are told of.
const mostWays = 10

// offers are the ways in which an agent can be signed in, as people are told of them.
func offers(methods []sdk.AuthMethod) (all []string) {
	for _, m := range methods[:min(len(methods), mostWays)] {
		switch {
		case m.Agent != nil:
			all = append(all, offer(m.Agent.Id, m.Agent.Name, m.Agent.Description))
		case m.EnvVar != nil:
			var names []string
			for _, v := range m.EnvVar.Vars {
				names = append(names, v.Name)
			}
			all = append(all, offer(m.EnvVar.Id, m.EnvVar.Name, m.EnvVar.Description)+
				"; set "+oneLine(short(strings.Join(names, ", "), mostTold))+" for the daemon, and name it under env")
		case m.Terminal != nil:
			args := slices.Clone(m.Terminal.Args)
			for i, word := range args {
				args[i] = quote(word)
			}
			all = append(all, offer(m.Terminal.Id, m.Terminal.Name, m.Terminal.Description)+
				"; run its program in a terminal with: "+oneLine(short(strings.Join(args, " "), mostTold)))
		}
	}
	return all
}

func offer(id, name string, about *string) string {
	text := strconv.Quote(short(id, mostTold))
	if name != "" && name != id {
		text += ", " + oneLine(short(name, mostTold))
	}
	if about != nil && *about != "" {
		text += ": " + oneLine(short(*about, mostTold))
	}
	return text
}
