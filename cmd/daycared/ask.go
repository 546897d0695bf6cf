package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// question holds what all asking commands share.
type question struct {
	request permissions.Request
	details string // a file, or - for standard input
	scope   string
	timeout time.Duration
	timed   func() bool // reports whether a flag set the timeout; nil if there is no such flag
	began   time.Time   // when it was submitted
}

func (q *question) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.details, "details", "", "file that the person is shown whole (- for standard input)")
	f.DurationVar(&q.timeout, "timeout", 0, "how long to wait, such as 90s or 15m (default: the daemon's)")
	q.timed = func() bool { return f.Changed("timeout") }
	f.StringVar(&q.request.Key, "key", "",
		"name of this question: asking again with it finds the same request, and its answer for approvals.redeem_window (10m)")
	f.StringVar(&q.request.Agent, "agent", "", "name to show; people see it as a claim")
	f.StringVar(&q.request.Session, "session", "", "session that the answer may hold for")
}

func (c *CLI) askCommand() *cobra.Command {
	q := &question{request: permissions.Request{Kind: permissions.KindPermission}}
	cmd := newCommand("ask TAG… --reason TEXT", arguments(cobra.MinimumNArgs(1), "at least one permission, such as @network"),
		func(cmd *cobra.Command, args []string) (err error) {
			if q.request.Tags, err = permissions.ParseTags(args); err != nil {
				return usage("%s", err)
			}
			if q.scope != "" {
				if q.request.Widest, err = permissions.ParseScope(q.scope); err != nil {
					return usage("%s", err)
				}
			}
			return c.ask(cmd.Context(), q)
		})
	q.flags(cmd)
	cmd.Flags().StringVar(&q.request.Reason, "reason", "", "why, in a sentence that the person reads")
	cmd.Flags().StringVar(&q.scope, "scope", "", "the widest scope to offer: once, session, 15m, always (default: every configured one)")
	return cmd
}

func (c *CLI) confirmCommand() *cobra.Command {
	q := &question{request: permissions.Request{Kind: permissions.KindPause, Mode: permissions.ModeConfirm}}
	cmd := newCommand("confirm QUESTION", arguments(cobra.ExactArgs(1), "one question, in quotes"),
		func(cmd *cobra.Command, args []string) error {
			if q.request.Message = args[0]; strings.TrimSpace(args[0]) == "" {
				return usage("confirm needs a question")
			}
			return c.ask(cmd.Context(), q)
		})
	q.flags(cmd)
	return cmd
}

func (c *CLI) chooseCommand() *cobra.Command {
	q := &question{request: permissions.Request{Kind: permissions.KindClarification}}
	cmd := newCommand("choose QUESTION --option A --option B", arguments(cobra.ExactArgs(1), "one question, in quotes"),
		func(cmd *cobra.Command, args []string) error {
			if q.request.Message = args[0]; strings.TrimSpace(args[0]) == "" {
				return usage("choose needs a question")
			}
			if n := len(q.request.Choices); n < 2 || n > permissions.MaxOptions {
				times := map[int]string{0: "at all", 1: "once"}
				return usage("choose takes --option two to twenty times, not %s", cmp.Or(times[n], fmt.Sprintf("%d times", n)))
			}
			return c.ask(cmd.Context(), q)
		})
	q.flags(cmd)
	cmd.Flags().StringArrayVar(&q.request.Choices, "option", nil, "one option; give it at least twice")
	return cmd
}

// ask submits the question, waits, and prints the outcome. Ctrl-C cancels it; after SIGTERM the request stays pending.
func (c *CLI) ask(ctx context.Context, q *question) error {
	if err := c.complete(q); err != nil {
		return err
	}
	asks, err := c.agentClient()
	if err != nil {
		return err
	}
	progress := &progress{cli: c, wanted: q.timeout}
	asks.Progress = progress.tell
	asks.Lost = func(err error) {
		why := "the daemon is away"
		if refusal := permissions.AsRefusal(err); refusal != nil {
			why = strings.TrimSuffix(refusal.Error(), ".")
		}
		stands := ""
		if progress.told != "" { // without progress, no request is known to exist
			stands = "stands and "
		}
		c.say("%s; the question %sis asked again until its time is over", why, stands)
	}
	if ctx.Err() != nil { // the signal came before the question was submitted
		return endedBefore()
	}
	defer asks.Close()
	r, err := c.submit(ctx, asks, q)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		if errors.Is(context.Cause(ctx), errTerminated) {
			return c.left(q, r.Request.ID)
		}
		r, err = c.cancelOwn(ctx, asks, cmp.Or(r.Request.ID, q.request.ID))
	}
	if err != nil {
		return err
	}
	return c.outcome(q, progress, r)
}

// submit submits the question. With --timeout it waits and retries when the caller has too many pending requests.
func (c *CLI) submit(ctx context.Context, asks *client.Client, q *question) (permissions.RequestView, error) {
	for told := false; ; told = true {
		s, err := asks.Put(ctx, q.request)
		var full *permissions.Refusal
		if !errors.As(err, &full) || full.Code != permissions.CodeLimit || time.Until(q.began.Add(q.timeout)) < full.After+time.Second {
			return s, err
		}
		if !told {
			c.say("%s; it is asked again until %s", strings.TrimSuffix(full.Text, "."), when(q.began.Add(q.timeout), time.Local))
		}
		if timing.Pause(ctx, full.After) != nil {
			return s, endedBefore()
		}
		q.request.WantedTimeout = max(time.Second, time.Until(q.began.Add(q.timeout)))
	}
}

// complete adds where this process runs and the content of files.
func (c *CLI) complete(q *question) (err error) {
	r := &q.request
	r.Claimed = r.Agent != ""
	if r.Cwd, err = os.Getwd(); err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	r.Host, _ = os.Hostname() // empty if it fails
	if q.timed != nil && q.timed() && q.timeout < time.Second {
		return usage("--timeout %s is too short; it is at least 1s", q.timeout)
	}
	r.WantedTimeout = q.timeout
	q.began = time.Now()
	r.ID = permissions.NewID(q.began) // proposed, so that it can be cancelled before the first reply
	if q.details != "" {
		text, err := c.read(q.details)
		if err != nil {
			return usage("read --details %s: %s", q.details, err)
		}
		if r.Details = text; len(text) <= permissions.MaxDetails { // not cut
			r.Details = strings.TrimSuffix(text, "\n") // it would start another line on a card
		}
	}
	if err := q.checkText(); err != nil {
		return err
	}
	if err := r.Validate(); err != nil {
		return usage("%s", err)
	}
	return nil
}

// checkText rejects invalid UTF-8, naming the flag or argument that has it.
func (q *question) checkText() error {
	r := q.request
	for _, text := range [][2]string{
		{"--reason", r.Reason}, {"--agent", r.Agent}, {"--session", r.Session}, {"--key", r.Key},
		{"the question", r.Message}, {"--option", strings.Join(r.Choices, "\n")}, {"the name of the working directory", r.Cwd},
	} {
		if !utf8.ValidString(text[1]) {
			return usage("%s is not UTF-8", text[0])
		}
	}
	if len(r.Details) <= permissions.MaxDetails && !utf8.ValidString(r.Details) { // a longer one is not read to its end
		return usage("what --details names is not UTF-8")
	}
	return nil
}

func (c *CLI) tellCommand() *cobra.Command {
	t := permissions.CallerMessage{}
	cmd := newCommand("tell NAME TEXT", arguments(cobra.ExactArgs(2), "the name of a person, and a text"),
		func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return usage("tell needs the name of a person, not an empty one")
			}
			if t.Text = args[1]; t.Text == "-" {
				text, err := c.read("-")
				if err != nil {
					return usage("read standard input: %s", err)
				}
				t.Text = strings.TrimRight(text, "\n")
			}
			if err := t.Validate(permissions.AboutText); err != nil {
				return usage("%s", err)
			}
			return c.tell(cmd.Context(), args[0], t)
		})
	cmd.Flags().StringVar(&t.Agent, "agent", "", "name to show; people see it as a claim")
	cmd.Flags().StringVar(&t.Title, "title", "", "what it is about, in at most 100 characters")
	cmd.Flags().BoolVar(&t.Silent, "silent", false, "without a sound, where the channel can do that")
	return cmd
}

func (c *CLI) tell(ctx context.Context, name string, t permissions.CallerMessage) error {
	asks, err := c.agentClient()
	if err != nil {
		return err
	}
	defer asks.Close()
	to, err := asks.Tell(ctx, name, permissions.AboutText, t)
	if err != nil {
		return err
	}
	return c.result(wire.Told{To: to}, "Notice to %s taken.\n", spelled(to))
}

func (c *CLI) read(file string) (string, error) {
	in := io.Reader(c.In)
	if file != "-" {
		f, err := openFile(file)
		if errors.Is(err, errNoFile) {
			err = fmt.Errorf("%w; for a pipe write - and hand it in as standard input", err)
		}
		if err != nil {
			return "", err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, permissions.MaxDetails+1))
	return string(text), err
}

// cancelOwn withdraws the request after Ctrl-C. An answer that came first stays valid; a request that was never stored needs nothing.
func (c *CLI) cancelOwn(ctx context.Context, asks *client.Client, id permissions.ID) (permissions.RequestView, error) {
	work, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	cancelled, err := asks.Cancel(work, id)
	switch {
	case err == nil:
		return cancelled, nil
	case permissions.CodeOf(err) == permissions.CodeSettled:
		return asks.Get(work, id, 0)
	case permissions.CodeOf(err) == permissions.CodeUnknown:
		return cancelled, endedBefore()
	}
	return cancelled, ended(permissions.ExitCancelled, "the request %s could not be cancelled and may stand: %s", id, err)
}

// ended is the error of a question that a signal ended without an outcome.
func ended(exit int, format string, args ...any) error {
	return &problem{fmt.Sprintf(format, args...), codeEnded, exit}
}

func endedBefore() error {
	return ended(permissions.ExitCancelled, "ended before the question was asked")
}

// left says how to return to a request that stayed pending after SIGTERM; id is empty if no daemon has confirmed one.
func (c *CLI) left(q *question, id permissions.ID) error {
	if id == "" {
		return ended(permissions.ExitOther, "ended before the daemon confirmed the question; it is not known to stand")
	}
	if q.request.Key != "" {
		return ended(permissions.ExitOther, "the request %s stands; ask again with --key %s to join it", id, q.request.Key)
	}
	cancel := "daycared cancel " + string(id)
	for _, flag := range [][2]string{
		{"--url", c.urlFlag}, {"--proxy", c.proxyFlag}, {"--ca-file", c.caFlag}, {"--token-file", c.tokenFlag},
	} {
		if flag[1] != "" {
			cancel += " " + flag[0] + " " + flag[1]
		}
	}
	return ended(permissions.ExitOther,
		"the request %s stands, and nobody waits for its answer; ask the same again to join it, or cancel it with: %s", id, cancel)
}

// outcome prints the outcome as a sentence or a JSON object, and returns the exit code.
func (c *CLI) outcome(q *question, progress *progress, s permissions.RequestView) error {
	result := permissions.Result(s.Request)
	progress.again(s.Request)
	if at := s.Request.DecidedAt; q.request.Key != "" && at.Before(q.began) && !at.IsZero() {
		c.say("answered at %s already, under this key", when(at, time.Local))
	}
	if c.asJSON {
		if err := c.json(wire.From(s, false)); err != nil {
			return fmt.Errorf("print the request: %w", err)
		}
	} else {
		text := result.Text // unescaped, for programs that compare it
		if out, isFile := c.outFile(); !isFile || terminal.IsTerminal(out) {
			text = card.Spell(permissions.EscapeControls(text))
		}
		fmt.Fprintln(c.Out, text)
	}
	if result.Exit != permissions.ExitYes {
		return exitCode(result.Exit)
	}
	return nil
}

// progress reports on stderr what happens to a question.
type progress struct {
	cli    *CLI
	wanted time.Duration // how long to wait; 0: unknown
	told   string        // the request and its recipients
	anew   bool          // the notice about an earlier answer was printed
}

// again says, once, that an earlier answer has expired and the question is asked again.
func (p *progress) again(r permissions.Request) {
	if r.EarlierAt.IsZero() || p.anew {
		return
	}
	p.anew = true
	p.cli.say("the answer of %s under this key is over; it was asked again", when(r.EarlierAt, time.Local))
}

func (p *progress) tell(s permissions.RequestView) {
	r, told := s.Request, string(s.Request.ID)
	line := []string{"asked " + strings.Join(r.Asked, ", ")}
	for _, d := range s.Copies {
		if slices.Contains(r.Asked, d.Person) { // otherwise it was taken back
			told += " " + d.Person + " " + d.Connector
			line = append(line, fmt.Sprintf("delivered %s (%s)", d.SentAt.In(time.Local).Format("15:04:05"), d.Connector))
		}
	}
	if len(s.Delayed) > 0 {
		told += " delayed " + strings.Join(s.Delayed, " ")
		line = append(line, "not delivered yet by "+strings.Join(s.Delayed, ", "))
	}
	if r.State != permissions.Pending || p.told == told {
		return
	}
	p.again(r)
	p.told = told
	line = append(line, "until "+when(r.Deadline, time.Local))
	if short := r.Shortened(p.wanted); short != "" {
		line = append(line, short)
	}
	fmt.Fprintln(p.cli.Err, card.Spell(permissions.EscapeControls(strings.Join(line, " · "))))
}
