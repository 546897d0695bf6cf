// Command daycared stands between AI agents and the people answerable for them. This package picks the real parts and
// joins them; everything it says on stdout is meant for programs, everything on stderr for people.
//
// How we talk: one short sentence says what happened, a second one what to do about it. No exclamation marks, no "please",
// no stack traces. A refusal is told in the same words everywhere; exit codes are those of the contract.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

func main() {
	sandbox.Main(tools.Operations()) // where this process is one of ours before a command
	os.Exit(run(os.Args[1:]))
}

// run executes one command line with the process's own streams and signals and returns its exit code.
func run(args []string) int {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	cli := &CLI{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), UID: os.Getuid()}
	return cli.Run(ctx, args)
}

// CLI is the command line with what it touches, so that tests can run it.
type CLI struct {
	In       *os.File
	Out, Err io.Writer
	Environ  []string
	UID      int

	configFlag, socketFlag, tokenFlag string // of the command being run
	urlFlag, proxyFlag, caFlag        string

	whence   map[string]string // what says where a socket is, by its path; see places
	warned   bool              // the configuration is refused, and that was said
	stranger bool              // the daemon that was asked how it stands says nothing to this account
}

// Run executes one command line and returns its exit code.
func (c *CLI) Run(ctx context.Context, args []string) int {
	root := c.root()
	if about, _, err := root.Find(args); err == nil {
		defer c.fit(about, args)()
	}
	root.SetArgs(args)
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	cmd, err := root.ExecuteContextC(ctx)
	return c.exit(err, printsObject(cmd, args))
}

// exit tells people about an error, once, and turns it into an exit code. With asJSON, programs are told, too.
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
		p.Text += c.whyThere(p.Text)
	}
	if errors.Is(err, client.ErrUnreachable) && errors.Is(err, fs.ErrPermission) {
		p.Text += "; api.agent_group and api.admin_group say which group may use the sockets"
	}
	c.say("%s", p.Text)
	if p.Code == string(permissions.CodeOwnAsk) {
		c.say("%s", permissions.OwnAskElsewhere)
	}
	if asJSON {
		_ = c.json(p) // whoever closed the output reads the exit code
	}
	return p.Exit
}

// whyThere says of the socket that an error is about what named it; it is empty where no client looked for one.
func (c *CLI) whyThere(text string) string {
	for socket, why := range c.whence {
		if strings.Contains(text, " at "+socket+": ") {
			return " (" + why + ")"
		}
	}
	return ""
}

// spelled is a text that others wrote, in a row of ours on a terminal: nothing in it is hidden, or moves what is beside it.
func spelled(text string) string { return card.Spell(card.Visible(text)) }

// say tells people one line. It may quote what others wrote, so nothing in it controls their terminal.
func (c *CLI) say(format string, args ...any) {
	text := card.Spell(permissions.Harmless(fmt.Sprintf(format, args...)))
	fmt.Fprint(c.Err, wrapRows("daycared: "+text+"\n", widthOf(c.Err)))
}

// print writes to standard output what may name files or quote what others wrote, so nothing in it controls a terminal.
func (c *CLI) print(format string, args ...any) {
	fmt.Fprint(c.Out, card.Spell(permissions.Harmless(fmt.Sprintf(format, args...))))
}

// exitCode ends a command that has said everything already.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// problem is why a command has no result, as programs read it. It is an error that people read as Text.
type problem struct {
	Text string `json:"error"`
	Code string `json:"code"`
	Exit int    `json:"exit"`
}

func (p *problem) Error() string { return p.Text }

// The codes of problems that the daemon did not refuse: the others are those of refusals.
const (
	codeUnreachable = "unreachable"
	codeEnded       = "ended" // by a signal
	codeOther       = "other"
)

// explain says what an error means for whoever called.
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

// errUsage is matched by errors of wrong usage: exit code 2.
var errUsage = errors.New("wrong usage")

// usage is an error that matches errUsage and reads as it is written.
func usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

type usageError struct{ text string }

func (e *usageError) Error() string   { return e.text }
func (e *usageError) Is(t error) bool { return t == errUsage }

// What [context.Cause] says of a context that a signal ended.
var (
	errInterrupted = errors.New("interrupted")
	errTerminated  = errors.New("terminated")
)

// untilSignal is ctx until the first SIGINT or SIGTERM, which is the cause and has the process drain. The second one
// kills: signals are no longer caught before anybody can know that the context has ended.
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
		case second := <-signals: // it came before they were let go
			if number, ok := second.(syscall.Signal); ok && first != nil {
				_ = syscall.Kill(os.Getpid(), number) // it can only fail for a process that is not there
			}
		default:
		}
	}()
	return ended, func() {
		cancel(nil)
		<-over
	}
}
