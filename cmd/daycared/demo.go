package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

const demoIntro = `daycared demo · everything in a scratch folder · no account, no network · q quits
An agent, scribe, has a job: publish the release notes. It must ask. You are the person it asks.`

// demoQuestions is how many questions the job asks if the person denies the first command.
const demoQuestions = 5

func (c *CLI) demoCommand() *cobra.Command {
	answers := ""
	cmd := newCommand("demo", nil, func(cmd *cobra.Command, _ []string) error {
		scripted := cmd.Flags().Changed("answer")
		if !scripted && !terminal.IsTerminal(c.In) {
			return usage("demo needs a terminal, or --answer allow,deny:keep old/,allow,2,continue")
		}
		script, err := parseScript(answers)
		if scripted && err != nil {
			return err
		}
		return c.demo(cmd.Context(), scripted, script)
	})
	cmd.Flags().StringVar(&answers, "answer", "", "answer by itself, each question in its turn: "+answerWords)
	return cmd
}

// demo is a scratch folder, the daemon with its agent as a child process, and the person's terminal.
type demo struct {
	cli    *CLI
	folder string
	child  *child        // replaced by the terminal's goroutine
	people *admin.Client // for the inbox
	watch  *admin.Client // for events
	scene  *scene
	script *script // nil: a person types
	quit   func()
	kills  int

	finished bool // the job ended normally: its output is kept
}

func (c *CLI) demo(ctx context.Context, scripted bool, words []string) error {
	folder, err := os.MkdirTemp("", "daycared-demo-")
	if err != nil {
		return fmt.Errorf("make the scratch folder: %w", err)
	}
	d := &demo{cli: c, folder: folder}
	defer d.clean()
	open := missingPromises(sandbox.Check())
	if err := d.writeFiles(open == ""); err != nil {
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
	d.people, d.watch = d.client(), d.client()
	defer d.people.Close()
	defer d.watch.Close()
	if d.child, err = startChild(ctx, d); err != nil {
		return err
	}
	defer func() { d.child.stop() }() // the current one
	d.scene = &scene{ran: d.ran, failed: d.quit}
	person := connectors.Person{Name: engine.OperatorName, UID: c.UID, Location: time.Local}
	d.scene.screen = terminal.New(terminal.Options{
		In: in, Out: c.Out, UID: c.UID, Self: engine.OperatorName, Now: time.Now, Log: quiet(),
		Heading: func(permissions.Request) string { return fmt.Sprintf("%d/%d", d.scene.tally().asked+1, demoQuestions) },
		Asking:  d.asking, Told: d.scene.noteEnd, Quit: d.quit, Closed: d.quit,
	}, demoInbound{inboxInbound{d.people, person}})
	d.print(demoIntro)
	if open != "" {
		d.print("This kernel cannot hold what scribe runs (%s): here it runs without the sandbox.", open)
	}
	return d.runTerminal(ctx, person)
}

// demoInbound leaves the agent out: it follows a script and reads nothing.
type demoInbound struct{ inboxInbound }

// Agents returns none.
func (demoInbound) Agents(context.Context, connectors.Identity) ([]permissions.Presence, error) {
	return nil, permissions.NoAgent()
}

// print writes rows, wrapped at words on a narrow terminal.
func (d *demo) print(format string, args ...any) {
	fmt.Fprintln(d.cli.Out, card.Wrap(fmt.Sprintf(format, args...), d.columns(), 0))
}

// rule draws a line, at most as wide as the terminal.
func (d *demo) rule() {
	most := 52
	if columns := d.columns(); columns > 0 {
		most = min(most, columns)
	}
	fmt.Fprintln(d.cli.Out, strings.Repeat("─", most))
}

// columns is the width of the terminal in cells, 0 without one.
func (d *demo) columns() int { return widthOf(d.cli.In) }

// client returns a client of the demo's daemon, as its operator.
func (d *demo) client() *admin.Client {
	return admin.NewClient(d.path("admin.sock"), d.path("data", "admin.key"))
}

// runTerminal runs the terminal until the agent's job has ended.
func (d *demo) runTerminal(ctx context.Context, person connectors.Person) error {
	group, ctx := errgroup.WithContext(ctx)
	stage, end := context.WithCancel(ctx)
	defer end()
	d.scene.over = end
	opened := make(chan struct{})
	group.Go(func() error {
		return (&inbox{
			client: d.people, screen: d.scene, person: person, opened: func() { close(opened) }, said: d.scene.queueMessage,
		}).run(stage)
	})
	group.Go(func() error {
		select {
		case <-stage.Done():
			return nil
		case <-opened:
			return d.people.OnMessage(stage, connectors.Message{Text: demoJob, Key: "demo"})
		}
	})
	group.Go(func() error { return d.watch.Events(stage, 0, d.scene.handleEvent) })
	err := group.Wait()
	switch _, done, fault := d.scene.state(); {
	case fault != nil:
		return fault
	case err != nil && !errors.Is(err, context.Canceled):
		return err
	case !done:
		d.cli.say("left before the end; nothing was kept")
		return exitCode(permissions.ExitCancelled)
	}
	if d.script != nil {
		if err := d.script.unused(); err != nil {
			return err
		}
	}
	return d.sum()
}

// demoJob is the person's message to the agent.
const demoJob = "Publish the release notes."

func (d *demo) path(names ...string) string {
	return filepath.Join(append([]string{d.folder}, names...)...)
}

// ran verifies, by what the command left on disk, that it ran exactly once.
func (d *demo) ran(r permissions.Request) (string, error) {
	ledger, err := os.ReadFile(d.path("work", "ledger"))
	if err != nil {
		return "", fmt.Errorf("look what ran: %w", err)
	}
	if runs := strings.Count(string(ledger), "\n"); runs != 1 {
		return "", fmt.Errorf("the command ran %d times", runs)
	}
	across := ""
	if d.kills > 0 {
		across = "across a restart · "
	}
	return fmt.Sprintf("%sran exactly once, as shown (sha256 %s)", across, r.ShownDigest().Short()), nil
}

// sum prints the summary and checks that no answer was lost.
func (d *demo) sum() error {
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	settled, rows := 0, 0
	read := func(after int64) ([]permissions.Entry, error) { return d.people.Audit(ctx, after, 0) }
	err := eachEntry(read, 0, func(e permissions.Entry) error {
		if rows++; e.Type == permissions.RequestSettled && e.Via != permissions.ViaGrant { // nobody was asked about a grant's use
			settled++
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := d.people.Verify(ctx); err != nil {
		return err
	}
	t, times := d.scene.tally(), "times"
	if d.kills == 1 {
		times = "time"
	}
	lost := t.asked - settled
	line := fmt.Sprintf("asked %d · allowed %d · denied %d · chosen %d · continued %d", t.asked, t.allowed, t.denied, t.chosen, t.continued)
	if t.interrupted > 0 {
		line += fmt.Sprintf(" · interrupted %d", t.interrupted)
	}
	d.rule()
	d.print("%s · your time %d s · daemon killed %d %s, lost %d", line, int(t.waited.Seconds()), d.kills, times, lost)
	d.print("files   %s   audit %d rows, chain verified", d.files(), rows)
	if lost != 0 {
		return fmt.Errorf("%d answers are missing in the audit", lost)
	}
	d.finished = true
	d.next()
	return nil
}

// next prints where the files are, and what to do next; on a narrow terminal each command is above its purpose.
func (d *demo) next() {
	rows, lead := "kept    "+d.folder+", until you delete it\n", "next"
	for _, row := range [][2]string{
		{"daycared setup", "be asked on your phone"},
		{"daycared serve", "be asked here; from another terminal: daycared ask @network"},
		{"daycared connect claude-code", "have an agent that you already run ask here"},
	} {
		if most := d.columns(); most > 0 && most < 100 {
			rows += fmt.Sprintf("%-8s%s\n          %s\n", lead, row[0], row[1])
		} else {
			rows += fmt.Sprintf("%-8s%-30s %s\n", lead, row[0], row[1])
		}
		lead = ""
	}
	fmt.Fprint(d.cli.Out, wrapRows(rows, d.columns()))
}

// clean removes the demo's files. If the job has ended, the site and what it published stay.
func (d *demo) clean() {
	if !d.finished {
		os.RemoveAll(d.folder)
		return
	}
	_ = os.Rename(d.path("work", "published"), d.path("published")) // it exists only if something was published
	entries, _ := os.ReadDir(d.folder)
	for _, e := range entries {
		if name := e.Name(); name != "site" && name != "published" {
			os.RemoveAll(d.path(name))
		}
	}
}

// files describes the job's result on disk.
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
	if exists(d.path("work", "published", "notes.md")) {
		return strings.Join(found, "  ") + "   published ✓"
	}
	return strings.Join(found, "  ") + "   not published"
}
