package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/daycared/daycared/agents/hooks"
	"github.com/daycared/daycared/cmd/daycared/connect"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/rules"
)

func (c *CLI) hookCommand() *cobra.Command {
	var within time.Duration
	var keyboard, notice bool
	var gate string
	cmd := newCommand("hook DIALECT [--within D] [--keyboard] [--gate all|risky] [--notice]",
		arguments(cobra.ExactArgs(1), "one dialect: "+strings.Join(hooks.Names(), ", ")),
		func(cmd *cobra.Command, args []string) error {
			d, known := hooks.Find(args[0])
			switch {
			case !known:
				return usage("there is no dialect %q; %s", args[0],
					suggestSimilar(args[0], hooks.Names(), "there are "+strings.Join(hooks.Names(), ", ")))
			case within == 0:
				within = d.Within
			case within < time.Second:
				return usage("--within %s is too short; it is at least 1s", within)
			case !slices.Contains(connect.Gates, gate):
				return unknownGate(gate)
			}
			c.pin()
			if notice {
				c.notice(cmd.Context(), d)
				return nil
			}
			return c.hook(cmd.Context(), d, time.Now().Add(within), keyboard, gate)
		})
	cmd.Flags().DurationVar(&within, "within", 0,
		"how long the agent waits for its hook, less a little (default: what the dialect's agent does by itself)")
	cmd.Flags().BoolVar(&keyboard, "keyboard", false, "let whoever is at the agent's keyboard answer, too (claude-code in a terminal)")
	cmd.Flags().BoolVar(&notice, "notice", false, "have a person told what has happened; decide nothing")
	gateFlag(cmd, &gate)
	return cmd
}

// notice reports an event of an agent's hook to the agent's person. It prints nothing and ignores all errors, because agents
// interpret a hook's output and a non-zero exit code.
func (c *CLI) notice(ctx context.Context, d hooks.Dialect) {
	c.Out, c.Err = io.Discard, io.Discard
	ctx, done := context.WithTimeout(ctx, recallWithin)
	defer done()
	input, err := c.hookInput(ctx)
	if err != nil {
		return
	}
	n, ok := d.ReadNotice(input, c.env)
	if !ok {
		return
	}
	asks, err := c.agentClient()
	if err != nil {
		return
	}
	defer asks.Close()
	_, _ = asks.Tell(ctx, "", n.About, n.CallerMessage)
}

func gateFlag(cmd *cobra.Command, gate *string) {
	cmd.Flags().StringVar(gate, "gate", connect.GateAll,
		"what to ask about: `all`, or risky, which leaves harmless calls to the agent's own mode")
}

func unknownGate(gate string) error {
	return usage("there is no --gate %q; %s", gate, suggestSimilar(gate, connect.Gates, "there are all and risky"))
}

// hook handles one call, before deadline. Every path returns a verdict.
func (c *CLI) hook(ctx context.Context, d hooks.Dialect, deadline time.Time, keyboard bool, gate string) error {
	if c.discardsOutput() {
		nothing, _ := d.Read(nil)
		deaf := nothing.Reply(hooks.Refuse(errors.New("standard output is closed or /dev/null, so no verdict can be read from it")))
		return c.reply(deaf)
	}
	signal.Ignore(syscall.SIGPIPE) // even if nobody reads the verdict, the request must be cancelled
	if terminal.IsTerminal(c.In) {
		c.say("this reads an agent's call as JSON from standard input, so the agent is to start it; daycared connect AGENT tells one to; " +
			"Ctrl-D ends it")
	}
	call, err := c.hookCall(ctx, d, deadline)
	switch {
	case call.Recall.Via != "":
		if err == nil {
			c.recall(ctx, call.Recall)
		}
		return nil // this hook decides nothing
	case err != nil:
		return c.reply(call.Reply(hooks.Refuse(err)))
	}
	if own := time.Now().Add(call.Within(time.Until(deadline))); own.Before(deadline) {
		deadline = own
	}
	seen, err := hooks.InTime(time.Until(deadline), func() (hooks.Call, error) {
		seen := call
		err := c.look(d, &seen, keyboard, gate)
		return seen, err
	})
	if err != nil {
		return c.reply(call.Reply(hooks.Refuse(err)))
	}
	call = seen
	asks, err := c.agentClient()
	if err != nil {
		return c.reply(call.Reply(hooks.VerdictOf(permissions.Request{}, err)))
	}
	defer asks.Close()
	call.Request.Call = rand.Text() // names this hook's wait, so that only it is ended
	ctx, over := c.untilHangup(ctx)
	verdict := hooks.Race(ctx, remoteRequests{client: asks}, permissions.Caller{}, call, time.Until(deadline))
	over()
	return c.reply(call.Reply(verdict))
}

// look adds to a call what this machine knows of it. It returns an error if the call is not to be asked about.
func (c *CLI) look(d hooks.Dialect, call *hooks.Call, keyboard bool, gate string) error {
	call.Request.Host, _ = os.Hostname() // empty if it fails
	if binary, err := os.Executable(); err == nil {
		if own, err := c.pinned(binary); err == nil {
			call.ForgetServer(append(own, "mcp"))
		}
	}
	if err := c.ownSettings(d, *call); err != nil {
		return err
	}
	call.ReadContext()
	call.Request.Harmless = gate == connect.GateRisky && call.Harmless(c.env)
	call.FollowLinks(c.env)
	call.Keyboard = keyboard && call.Attended(c.env)
	return nil
}

// ownSettings returns an error if a call would change the settings by which its agent asks here, or their whole folder. Nobody is asked
// about that: it would end the asking. Of a program that the call only names nothing is known.
func (c *CLI) ownSettings(d hooks.Dialect, call hooks.Call) error {
	place, err := c.here()
	if err != nil {
		return nil //nolint:nilerr // without a home folder there are no settings of this account
	}
	deny := []string{"run daycared connect --remove"}
	agent, _ := place.Find(d.Name)
	for _, f := range agent.Files {
		s, err := look(f)
		if err != nil || !strings.Contains(s.text, ours) {
			continue
		}
		names := []string{f.Path, s.path}
		for _, name := range names { // what removes or renames their folder
			if folder := filepath.Dir(name); folder != filepath.Clean(c.env("HOME")) {
				names = append(names, folder)
			}
		}
		for _, name := range names {
			deny = append(deny, "write '"+name+"'")
			if below, err := filepath.Rel(c.env("HOME"), name); err == nil && filepath.IsLocal(below) {
				deny = append(deny, "write '**/~/"+below+"'") // ~ stands in the names of commands as it is
			}
		}
	}
	set, found := rules.Compile([]rules.Rule{{Deny: deny}})
	if rules.FirstError(found) != nil { // a path that no pattern can have
		set, _ = rules.Compile([]rules.Rule{{Deny: deny[:1]}})
	}
	q := call.Request
	input, _ := q.FullInput(permissions.Call{Input: q.Input})
	v := set.Judge(rules.Call{
		Dialect: d.Name, Tool: q.Tool, Input: input, Folder: q.Cwd, Root: q.Cwd, Resolve: own.Resolve, At: time.Now(),
	})
	if v.Effect != rules.Deny {
		return nil
	}
	return fmt.Errorf("it would change the settings by which %s asks for approval; whoever wants that does it without the agent: "+
		"daycared connect %s", d.Name, d.Name)
}

// ours is in all settings that connect writes.
const ours = "daycared"

// recallWithin bounds how long a hook that decides nothing delays its agent.
const recallWithin = 2 * time.Second

// recall withdraws requests that need no answer any more.
func (c *CLI) recall(ctx context.Context, m permissions.Recall) {
	asks, err := c.agentClient()
	if err != nil {
		return
	}
	defer asks.Close()
	limited, done := context.WithTimeout(ctx, recallWithin)
	defer done()
	_, _ = asks.Recall(limited, m)
}

// discardsOutput reports whether standard output discards everything: it is a device other than a terminal, such as /dev/null, which Go
// also opens in place of a closed descriptor.
func (c *CLI) discardsOutput() bool {
	out, isFile := c.outFile()
	if !isFile {
		return false
	}
	info, err := out.Stat()
	return err != nil || info.Mode()&os.ModeCharDevice != 0 && !term.IsTerminal(int(out.Fd()))
}

var errNoInput = errors.New("nothing came on standard input in time")

// hookCall reads and parses the call, before deadline.
func (c *CLI) hookCall(ctx context.Context, d hooks.Dialect, deadline time.Time) (hooks.Call, error) {
	limited, done := context.WithDeadline(ctx, deadline)
	defer done()
	text, unread := c.hookInput(limited)
	call, err := d.Read(text)
	if unread != nil {
		err = unread
	}
	return call, err
}

// hookInput reads standard input until ctx ends. If the other side keeps it open, the read is abandoned and ends with the
// process.
func (c *CLI) hookInput(ctx context.Context) ([]byte, error) {
	type read struct {
		text []byte
		err  error
	}
	whole := make(chan read, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(c.In, hooks.MaxInput+1))
		whole <- read{text, err}
	}()
	select {
	case <-ctx.Done():
		return nil, errNoInput
	case in := <-whole:
		if in.err != nil {
			return in.text, fmt.Errorf("read standard input: %w", in.err)
		}
		return in.text, nil
	}
}

// reply prints a verdict. If it cannot be written, the exit code denies.
func (c *CLI) reply(r hooks.Reply) error {
	if r.Complaint != "" {
		fmt.Fprintln(c.Err, card.Spell(permissions.EscapeControls(r.Complaint)))
	}
	if len(r.Body) > 0 {
		if _, err := c.Out.Write(r.Body); err != nil {
			return exitCode(permissions.ExitUsage)
		}
	}
	if r.Exit != 0 {
		return exitCode(r.Exit)
	}
	return nil
}
