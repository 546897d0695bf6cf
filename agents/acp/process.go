package acp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// Program is how an agent's program is started. See [Options].
type Program struct {
	// Command makes the program, not started yet, as Command of package agents/sandbox does: when ctx ends it is killed with all
	// that it started, and release is called once it has ended, or was not started after all. It is called for each start.
	// The standard streams are ours.
	Command func(ctx context.Context) (cmd *exec.Cmd, release func(), err error)
	Auth    string        // the way to sign it in where it asks for that, by its id; empty: nobody does
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
	way   string             // see Program.Auth
	ways  []string           // in which it can be signed in, for people
	every time.Duration      // see Program.Progress
	kill  context.CancelFunc // ends the program and all that it started
	gone  chan struct{}      // it has ended
	last  lastWords
	stdin *os.File
	works sync.WaitGroup

	doomed atomic.Bool // it is to end

	mu     sync.Mutex
	closed bool // no call of its is answered any more
	calls  sync.WaitGroup
}

// launch starts the program and greets it. answer is what its calls meet, and updates is told what it tells of its work,
// before anything that it says after. The program's life is not that of ctx.
func launch(ctx context.Context, o Program, answer sdk.MethodHandler, updates func(json.RawMessage)) (*process, error) {
	p := &process{gone: make(chan struct{}), way: o.Auth, every: cmp.Or(o.Progress, progressEvery)}
	stdout, err := p.begin(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("start its program: %w", err)
	}
	ready := make(chan struct{}) // the library's logger is set before it has anything to log
	p.conn = sdk.NewConnection(p.counted(answer), p.stdin, newLines(stdout, ready, updates))
	p.conn.SetLogger(slog.New(demoted{o.Log.Handler()}))
	close(ready)
	p.works.Go(func() { // what it says cannot be read any more
		<-p.conn.Done()
		p.kill()
		<-p.gone
		_ = stdout.Close()
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

// begin starts the program, and has its stderr logged.
func (p *process) begin(ctx context.Context, o Program) (stdout *os.File, err error) {
	life, kill := context.WithCancel(context.WithoutCancel(ctx))
	cmd, release, err := o.Command(life)
	if err != nil {
		kill()
		return nil, err
	}
	var ours, theirs [3]*os.File
	for i := range ours {
		r, w, failed := os.Pipe()
		if i == 0 { // they read it
			r, w = w, r
		}
		ours[i], theirs[i], err = r, w, cmp.Or(err, failed)
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
	p.kill, p.stdin = kill, ours[0]
	p.works.Go(func() { p.last.follow(ours[2], o.Log) })
	p.works.Go(func() {
		_ = cmd.Wait() // how it ended is read from its state
		release()
		kill()
		// What it wrote last is still read; what got away from its walls may keep the pipes open for ever.
		_ = ours[1].SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_ = ours[2].SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		p.last.ended(cmd.ProcessState)
		close(p.gone)
	})
	return ours[1], nil
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
	p.kill()
}

// alive tells whether the program can still be spoken to.
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
	p.kill()
	<-p.gone
	_ = p.stdin.Close()
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
		<-p.gone
		return fmt.Errorf("%w%s", errEnded, p.last.words())
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

// lastWords is how a program ended, and the last line that it wrote to stderr.
type lastWords struct {
	mu    sync.Mutex
	line  string
	state string
}

// follow logs what a program writes to stderr.
func (l *lastWords) follow(stderr *os.File, log *slog.Logger) {
	const most = 2000 // bytes of a line; a longer one is several
	defer stderr.Close()
	lines := bufio.NewReaderSize(stderr, most)
	for {
		text, _, err := lines.ReadLine()
		if err != nil {
			return
		}
		log.Debug("an acp agent wrote to stderr", "text", string(text))
		if line := strings.TrimSpace(string(text)); line != "" {
			l.mu.Lock()
			l.line = short(line, mostTold)
			l.mu.Unlock()
		}
	}
}

func (l *lastWords) ended(state *os.ProcessState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = state.String()
}

// words are told behind "its program has ended".
func (l *lastWords) words() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := " (" + l.state + ")"
	if l.line != "" {
		text += "; it wrote last: " + l.line
	}
	return text
}

// demoted logs everything as debug: the library would log above it what agents write.
type demoted struct{ slog.Handler }

func (d demoted) Enabled(ctx context.Context, _ slog.Level) bool {
	return d.Handler.Enabled(ctx, slog.LevelDebug)
}

func (d demoted) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return d.Handler.Handle(ctx, r)
}
