// Command daycared lets people decide what AI agents may do. This package wires the parts together. Output on stdout is for
// programs, on stderr for people.
//
// Wording of messages: one short sentence says what happened, a second one what to do. No exclamation marks, no "please", no
// stack traces. Refusals have the same wording everywhere; exit codes are those of the contract.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

func main() {
	sandbox.Main(tools.Operations()) // does not return in a helper process of the sandbox or the tools
	os.Exit(run(os.Args[1:]))
}

// run executes one command line with the process's streams and signals and returns its exit code.
func run(args []string) int {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	cli := &CLI{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), UID: os.Getuid()}
	return cli.Run(ctx, args)
}

// CLI is the command line with its environment, so that tests can replace it.
type CLI struct {
	In       *os.File
	Out, Err io.Writer
	Environ  []string
	UID      int

	configFlag, socketFlag, tokenFlag string // of the command being run
	urlFlag, proxyFlag, caFlag        string
	asJSON                            bool
	listing                           listing

	socketOrigins map[string]string // what determined a socket's path, by path; see places
	warned        bool              // the error of the configuration was printed
	statusRefused bool              // the daemon's status was refused to this account
}

// Run executes one command line and returns its exit code.
func (c *CLI) Run(ctx context.Context, args []string) int {
	root := c.root()
	about, _, err := root.Find(args)
	if err == nil {
		defer c.fit(about, args)()
	}
	out := &written{}
	if file, isFile := c.Out.(*os.File); isFile && err == nil && widthOf(file) == 0 && !slices.Contains(ownOutput, pathOf(about)) {
		out.to, c.Out = file, out
	}
	// A closed terminal ends a command like Ctrl-C, so that its question is withdrawn; the daemon reloads at that signal.
	if (err != nil || about.Name() != "serve") && !signal.Ignored(syscall.SIGHUP) {
		var stop func()
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stop()
	}
	root.SetArgs(args)
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if lost := out.failed.Load(); lost != nil && (err == nil || errors.As(err, new(exitCode))) {
		err = fmt.Errorf("standard output cannot be written: %w", permissions.Cause(*lost))
	}
	return c.exit(err, c.printsErrors(cmd, args))
}

// ownOutput are commands that give their output away, or go on without it.
var ownOutput = []string{"serve", "inbox", "demo", "mcp", "hook", "run"}

// written is an output that remembers its first error, as few commands look at each.
type written struct {
	to     *os.File
	failed atomic.Pointer[error]
}

func (w *written) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if err != nil {
		w.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

// outFile is standard output, if it is a file.
func (c *CLI) outFile() (out *os.File, isFile bool) {
	if w, is := c.Out.(*written); is {
		return w.to, true
	}
	out, isFile = c.Out.(*os.File)
	return out, isFile
}

// exit prints an error, also as JSON with asJSON, and returns its exit code.
func (c *CLI) exit(err error, asJSON bool) int {
	var code exitCode
	switch {
	case err == nil:
		return permissions.ExitYes
	case errors.As(err, &code):
		return int(code)
	}
	p := explain(err)
	if errors.Is(err, client.ErrUnreachable) {
		p.Text += c.explainSocket(p.Text)
	}
	if errors.Is(err, client.ErrUnreachable) && errors.Is(err, fs.ErrPermission) {
		p.Text += "; api.agent_group and api.admin_group say which group may use the sockets"
	}
	c.say("%s", p.Text)
	if p.Code == string(permissions.CodeOwnAsk) {
		c.say("%s", permissions.OwnAskElsewhere)
	}
	if asJSON {
		_ = c.json(p) // if it cannot be written, the exit code remains
	}
	return p.Exit
}

// explainSocket says what determined the path of the socket that an error mentions; empty if none is mentioned.
func (c *CLI) explainSocket(text string) string {
	for socket, why := range c.socketOrigins {
		if strings.Contains(text, " at "+socket+": ") {
			return " (" + why + ")"
		}
	}
	return ""
}

// spelled formats other people's text for a row on a terminal: nothing in it is hidden, or moves the text beside it.
func spelled(text string) string { return card.Spell(card.Visible(text)) }

// say prints one line to stderr. Control characters are neutralized, since it may quote other people's text.
func (c *CLI) say(format string, args ...any) {
	text := card.Spell(permissions.EscapeControls(fmt.Sprintf(format, args...)))
	fmt.Fprint(c.Err, wrapRows("daycared: "+text+"\n", widthOf(c.Err)))
}

// print writes to stdout. Control characters are neutralized, since the text may contain file names or other people's text.
func (c *CLI) print(format string, args ...any) {
	fmt.Fprint(c.Out, card.Spell(permissions.EscapeControls(fmt.Sprintf(format, args...))))
}

// result prints what a command did: as JSON if that was asked for, otherwise as a sentence.
func (c *CLI) result(v any, sentence string, args ...any) error {
	if c.asJSON {
		return c.json(v)
	}
	_, err := fmt.Fprintf(c.Out, sentence, args...)
	return err
}

// exitCode ends a command that has printed everything already.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// problem is an error in JSON form. As a Go error it reads as Text.
type problem struct {
	Text string `json:"error"`
	Code string `json:"code"`
	Exit int    `json:"exit"`
}

func (p *problem) Error() string { return p.Text }

// The codes of problems that are not refusals by the daemon, which have codes of their own.
const (
	codeUnreachable = "unreachable"
	codeEnded       = "ended" // by a signal
	codeOther       = "other"
)

// explain converts an error to a problem.
func explain(err error) *problem {
	var told *problem
	var fault *wire.Problem
	switch refusal := permissions.AsRefusal(err); {
	case errors.As(err, &told):
		return told
	case refusal != nil:
		return &problem{refusal.Text, string(refusal.Code), refusal.Exit}
	case errors.Is(err, client.ErrUnreachable):
		return &problem{err.Error(), codeUnreachable, permissions.ExitUnreachable}
	case errors.Is(err, errUsage):
		return &problem{err.Error(), string(permissions.CodeInvalid), permissions.ExitUsage}
	case errors.As(err, &fault):
		return &problem{err.Error(), fault.Code, permissions.ExitOther}
	}
	return &problem{err.Error(), codeOther, permissions.ExitOther}
}

// errUsage is matched by errors of wrong usage (exit code 2).
var errUsage = errors.New("wrong usage")

// usage returns an error that matches errUsage; its text is only the given one.
func usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

type usageError struct{ text string }

func (e *usageError) Error() string   { return e.text }
func (e *usageError) Is(t error) bool { return t == errUsage }

// The causes ([context.Cause]) of a context that a signal ended.
var (
	errInterrupted = errors.New("interrupted")
	errTerminated  = errors.New("terminated")
)

// untilSignal returns a context that ends, with a cause, at the first SIGINT or SIGTERM, so that the process drains. A second
// signal kills the process: signals are no longer caught once the context has ended.
func untilSignal(ctx context.Context) (ended context.Context, stop func()) {
	ended, cancel := context.WithCancelCause(ctx)
	signals, over := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer close(over)
		var first os.Signal
		select {
		case first = <-signals:
		case <-ended.Done():
		}
		signal.Stop(signals)
		switch {
		case first == syscall.SIGTERM:
			cancel(errTerminated)
		case first != nil:
			cancel(errInterrupted)
		}
		select {
		case second := <-signals: // it arrived before signal.Stop
			if number, ok := second.(syscall.Signal); ok && first != nil {
				_ = syscall.Kill(os.Getpid(), number) // it fails only if the process does not exist
			}
		default:
		}
	}()
	return ended, func() {
		cancel(nil)
		<-over
	}
}
