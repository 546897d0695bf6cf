package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

const demoIntro = `daycared demo · everything in a scratch folder · no account, no network · q quits
An agent, scribe, has a job: publish the release notes. It must ask. You are the person it asks.`

// demoQuestions is how many questions the job has when a person denies the first command.
const demoQuestions = 5

func (c *CLI) demoCommand() *cobra.Command {
	answers := ""
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "The whole loop in one terminal: no account, no network",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			scripted := cmd.Flags().Changed("answer")
			if !scripted && !terminal.IsTerminal(c.In) {
				return usage("demo needs a terminal, or --answer allow,deny:keep old/,allow,2,continue")
			}
			script, err := parseScript(answers)
			if scripted && err != nil {
				return err
			}
			return c.demo(cmd.Context(), scripted, script)
		},
	}
	cmd.Flags().StringVar(&answers, "answer", "", "answer by itself: allow, session, 15m, deny, deny:why, 2, continue, interrupt")
	return cmd
}

// demo is the stage: a scratch folder, the daemon as a child process, the agent, and the person's terminal.
type demo struct {
	cli    *CLI
	folder string
	child  *child // the terminal's goroutine replaces it
	people *admin.Client
	agents *api.Client
	screen *terminal.Terminal
	script *script // nil: a person types
	quit   func()
	told   chan permissions.ID // requests whose end is on the screen
	fault  error               // what went wrong on the screen's side
	kills  int

	answered atomic.Int32 // questions
	tally    tally        // the agent's goroutine keeps it
}

// tally is what the last lines count.
type tally struct {
	allowed, denied, chosen, continued, interrupted int
	waited                                          time.Duration
}

func (c *CLI) demo(ctx context.Context, scripted bool, words []string) error {
	// A closed terminal ends the demo, and its daemon and folder with it. The signal may come after the keyboard's end
	// has: it is caught until the folder is gone.
	ctx, release := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer release()
	folder, err := os.MkdirTemp("", "daycared-demo-")
	if err != nil {
		return fmt.Errorf("make the scratch folder: %w", err)
	}
	defer os.RemoveAll(folder)
	d := &demo{cli: c, folder: folder, told: make(chan permissions.ID, demoQuestions)}
	if err := d.furnish(); err != nil {
		return fmt.Errorf("furnish the scratch folder: %w", err)
	}
	ctx, d.quit = context.WithCancel(ctx)
	defer d.quit()
	in := c.In
	if scripted {
		if d.script, err = newScript(words); err != nil {
			return err
		}
		defer d.script.Close()
		in = d.script.reader
	}
	d.people, d.agents = admin.NewClient(d.path("admin.sock"), d.path("data", "admin.key")), api.NewClient(d.path("agent.sock"))
	if d.child, err = startChild(ctx, d); err != nil {
		return err
	}
	defer func() { d.child.stop() }() // whichever it is by then
	d.screen = terminal.New(terminal.Options{
		In: in, Out: c.Out, UID: c.UID, Self: engine.OperatorName, Now: time.Now, Log: quiet(),
		Who:     func(permissions.Request) string { return "scribe" }, // this process started it, so the name is more than a claim
		Heading: d.heading, Asking: d.asking, Told: func(r permissions.Request) { d.told <- r.ID },
		Quit: d.quit, Closed: d.quit,
	})
	fmt.Fprintln(c.Out, demoIntro)
	return d.play(ctx)
}

// play runs the agent and the person's terminal side by side until the job has ended.
func (d *demo) play(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	stage, end := context.WithCancel(ctx)
	defer end()
	var jobErr error
	group.Go(func() error {
		person := connectors.Person{Name: engine.OperatorName, UID: d.cli.UID, Location: time.Local}
		return (&inbox{client: d.people, handler: d.people, screen: d.screen, person: person}).run(stage)
	})
	group.Go(func() error {
		defer end()
		s := &scribe{asker: d.agents, folder: d.folder, session: "demo", say: d.say, ended: d.count, ran: d.ran}
		jobErr = s.work(ctx)
		return nil
	})
	err := group.Wait()
	switch {
	case d.fault != nil:
		return d.fault
	case err != nil && !errors.Is(err, context.Canceled):
		return err
	case errors.Is(jobErr, context.Canceled):
		d.cli.say("left before the end; nothing was kept")
		return exitCode(permissions.ExitCancelled)
	case jobErr != nil && !errors.Is(jobErr, errStopped):
		return jobErr
	}
	if d.script != nil {
		if err := d.script.unused(); err != nil {
			return err
		}
	}
	return d.sum()
}

// heading numbers the questions.
func (d *demo) heading(permissions.Request) string {
	return fmt.Sprintf("%d/%d", d.answered.Load()+1, demoQuestions)
}

// say shows what the agent does. A screen that is gone has nobody before it.
func (d *demo) say(format string, args ...any) {
	_ = d.screen.Say("   " + fmt.Sprintf(format, args...))
}

func (d *demo) path(names ...string) string {
	return filepath.Join(append([]string{d.folder}, names...)...)
}

// count keeps the tally of answers as the agent got them, and holds the agent until the person has been told.
func (d *demo) count(ctx context.Context, r permissions.Request) {
	d.tally.waited += r.DecidedAt.Sub(r.CreatedAt)
	switch {
	case r.State == permissions.Approved:
		d.tally.allowed++
	case r.State == permissions.Denied:
		d.tally.denied++
	case r.Answer == permissions.Continue:
		d.tally.continued++
	case r.Answer == permissions.Interrupt:
		d.tally.interrupted++
	case r.Choice() != "":
		d.tally.chosen++
	}
	d.answered.Add(1)
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-d.told:
			if id == r.ID {
				return
			}
		}
	}
}

// ran tells, from what the command left on disk, that it ran exactly once.
func (d *demo) ran(r permissions.Request) error {
	ledger, err := os.ReadFile(d.path("ledger"))
	if err != nil {
		return fmt.Errorf("look what ran: %w", err)
	}
	if runs := strings.Count(string(ledger), "\n"); runs != 1 {
		return fmt.Errorf("the command ran %d times", runs)
	}
	across := ""
	if d.kills > 0 {
		across = "across a restart · "
	}
	d.say("%sran exactly once, as shown (sha256 %s)", across, r.Digest.Short())
	return nil
}

// furnish makes the site, the old pages, the script that publishes, and the daemon's configuration.
func (d *demo) furnish() error {
	const publish = "#!/bin/sh\nset -e\nmkdir -p published\ncp -r site/. published/\necho published >> ledger\n"
	const configuration = "connectors: {terminal: {enabled: false}}\n" +
		"api: {agent_socket: %q, admin_socket: %q, allow_same_user: true}\n" +
		"high_risk: {tools: []}\ndata_dir: %q\n"
	if err := os.MkdirAll(d.path("site", "old"), 0o700); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(d.path("site", "old", "2024.md"), []byte("# Older notes\n"), 0o600),
		os.WriteFile(d.path("publish.sh"), []byte(publish), 0o700), //nolint:gosec // a script has to be executable
		os.WriteFile(d.path("config.yaml"), fmt.Appendf(nil, configuration,
			d.path("agent.sock"), d.path("admin.sock"), d.path("data")), 0o600),
	)
}

// sum prints the last lines and checks that nothing was lost.
func (d *demo) sum() error {
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	entries, err := wholeAudit(ctx, d.people)
	if err != nil {
		return err
	}
	if _, err := d.people.Verify(ctx); err != nil {
		return err
	}
	settled := 0
	for _, e := range entries {
		if e.Type == permissions.RequestSettled {
			settled++
		}
	}
	t, asked, times := d.tally, int(d.answered.Load()), "times"
	if d.kills == 1 {
		times = "time"
	}
	lost := asked - settled
	line := fmt.Sprintf("asked %d · allowed %d · denied %d · chosen %d · continued %d", asked, t.allowed, t.denied, t.chosen, t.continued)
	if t.interrupted > 0 {
		line += fmt.Sprintf(" · interrupted %d", t.interrupted)
	}
	fmt.Fprintln(d.cli.Out, strings.Repeat("─", 52))
	fmt.Fprintf(d.cli.Out, "%s · your time %d s · daemon killed %d %s, lost %d\n", line, int(t.waited.Seconds()), d.kills, times, lost)
	fmt.Fprintf(d.cli.Out, "files   %s   audit %d rows, chain verified\n", d.files(), len(entries))
	if lost != 0 {
		return fmt.Errorf("%d answers are missing in the audit", lost)
	}
	return nil
}

// files says what the job left behind, as it is on disk.
func (d *demo) files() string {
	var found []string
	if exists(d.path("site", "notes.md")) {
		found = append(found, "site/notes.md")
	}
	if exists(d.path("site", "old")) {
		found = append(found, "site/old/ (kept)")
	} else {
		found = append(found, "site/old/ (removed)")
	}
	if exists(d.path("published", "notes.md")) {
		return strings.Join(found, "  ") + "   published ✓"
	}
	return strings.Join(found, "  ") + "   not published"
}
