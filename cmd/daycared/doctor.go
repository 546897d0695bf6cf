package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// finding is one thing that doctor looked at.
type finding struct {
	level string // ok, note, wrong
	what  string
	mend  string // what to do about it; empty when nothing is to be done
}

func (c *CLI) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong, and how to mend it",
		Example: "  daycared doctor\n" +
			"  daycared doctor --config /etc/daycared/config.yaml",
		Long: "Say what is wrong, and how to mend it. Exit code 1 when something is wrong.",
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			wrong := 0
			for _, f := range c.examine(cmd.Context()) {
				fmt.Fprintf(c.Out, "%-5s  %s\n", f.level, f.what)
				if f.mend != "" {
					fmt.Fprintf(c.Out, "       → %s\n", f.mend)
				}
				if f.level == "wrong" {
					wrong++
				}
			}
			if wrong > 0 {
				return exitCode(permissions.ExitOther)
			}
			return nil
		},
	}
}

// examine looks at everything that can keep a question from being answered, from the inside out.
func (c *CLI) examine(ctx context.Context) []finding {
	findings := []finding{{"ok", "daycared " + version + ", SQLite " + store.LibraryVersion(), ""}}
	cfg, paths, err := c.load()
	if c.hidden(err) { // as for every client
		daemon, _, _ := c.examineDaemon(ctx)
		findings = append(findings, finding{"note", "the configuration cannot be looked at from this account", ""})
		return append(findings, daemon...)
	}
	if err != nil {
		return append(findings, refused(err)...)
	}
	current, err := settings(cfg, paths, c.UID)
	if err != nil {
		return append(findings, refused(err)...)
	}
	if cfg.File == "" {
		findings = append(findings, finding{"ok", "no configuration file; the defaults are in force and the operator is asked", ""})
	} else {
		findings = append(findings, finding{"ok", "configuration " + cfg.File, ""})
	}
	for _, w := range cfg.Warnings {
		findings = append(findings, found("note", w))
	}
	findings = append(findings, c.examineData(paths))
	findings = append(findings, examineListener(ctx, cfg.API)...)
	findings = append(findings, examineSandbox(cfg, current.Own)...)
	daemon, people, both := c.examineDaemon(ctx)
	findings = append(findings, daemon...)
	findings = append(findings, c.examinePeople(cfg, current, people)...)
	findings = append(findings, c.examineConnections(ctx, cfg)...)
	if both && !cfg.API.AllowSameUser { // else a warning has said more
		findings = append(findings, c.examineAccount())
	}
	return findings
}

// refused is what doctor says of a configuration that is not served.
func refused(err error) (findings []finding) {
	var all config.Problems
	if !errors.As(err, &all) {
		return []finding{{"wrong", err.Error(), "mend what is named, then run: daycared config check"}}
	}
	for _, p := range all {
		findings = append(findings, found("wrong", p))
	}
	return findings
}

// found is a problem of the configuration as a finding.
func found(level string, p config.Problem) finding {
	remedy := p.Remedy()
	p.Text = p.Cause()
	return finding{level, p.String(), remedy}
}

// examineData looks at the data directory as far as this account may.
func (c *CLI) examineData(paths config.Paths) finding {
	info, err := os.Stat(paths.DataDir)
	if errors.Is(err, fs.ErrPermission) {
		return hidden(paths.DataDir)
	}
	switch {
	case os.IsNotExist(err):
		return finding{"note", "the data directory " + paths.DataDir + " does not exist yet", "daycared serve makes it"}
	case err != nil:
		return finding{"wrong", err.Error(), "run doctor as the account that runs the daemon"}
	case info.Mode().Perm()&0o077 != 0:
		return finding{"wrong", fmt.Sprintf("the data directory %s is open to other accounts (%#o)", paths.DataDir, info.Mode().Perm()),
			"chmod 700 " + paths.DataDir}
	}
	if _, err := os.ReadDir(paths.DataDir); errors.Is(err, fs.ErrPermission) {
		return hidden(paths.DataDir)
	}
	return finding{"ok", "data directory " + paths.DataDir, ""}
}

func hidden(dir string) finding {
	return finding{"note", "the data directory " + dir + " cannot be looked at from this account", ""}
}

// door is what doctor found at one of the two sockets.
type door struct {
	err  error    // nil: this account is let in
	shut bool     // the daemon is there, and this account is not for it
	me   admin.Me // of a person
	open int      // how many requests wait for them

	channels []admin.Channel
	people   []admin.Person // only the operator is told
}

// examineDaemon asks the running daemon at both doors, and by which channels people can be reached; both tells whether
// this account asks and decides, or may once the daemon runs.
func (c *CLI) examineDaemon(ctx context.Context) (findings []finding, people []admin.Person, both bool) {
	ctx, done := context.WithTimeout(ctx, 5*time.Second)
	defer done()
	asks, decides := c.agentsDoor(ctx), c.peoplesDoor(ctx)
	return atDoors(asks, decides, c.UID), decides.people, (asks.err == nil || !asks.shut) && (decides.err == nil || !decides.shut)
}

func (c *CLI) agentsDoor(ctx context.Context) (d door) {
	client, err := c.agentClient()
	if err != nil {
		return door{err: err}
	}
	defer client.Close()
	err = client.Ready(ctx)
	return door{err: err, shut: errors.Is(err, fs.ErrPermission)}
}

func (c *CLI) peoplesDoor(ctx context.Context) (d door) {
	client, err := c.adminClient()
	if err != nil {
		return door{err: err}
	}
	defer client.Close()
	if d.me, d.err = client.WhoAmI(ctx); d.err == nil {
		var list []permissions.Standing
		list, d.err = client.List(ctx, "", 0)
		d.open = len(list)
		d.channels, _ = client.Health(ctx) // an older daemon does not tell
		d.people, _ = client.People(ctx)
	}
	d.shut = errors.Is(d.err, fs.ErrPermission) || isCode(d.err, permissions.CodeNotYours)
	return d
}

// atDoors says what two doors mean for an account. That it comes in at only one of them is as it should be.
func atDoors(asks, decides door, uid int) (findings []finding) {
	var other *wire.Problem // no refusal
	switch {
	case asks.shut && decides.shut:
		return []finding{{"wrong", fmt.Sprintf("this account, uid %d, neither asks nor answers here: %s", uid, asks.err),
			"name it as user of one of people if a person uses it; put it into the group of api.agent_group if agents run as it"}}
	case asks.shut && decides.err == nil:
		findings = append(findings, finding{"note",
			"this account answers as " + decides.me.Name + "; it cannot ask here, which is as it should be", ""})
	case asks.err != nil:
		findings = append(findings, finding{"wrong", "the daemon cannot take questions: " + asks.err.Error(),
			"start it with: daycared serve"})
	default:
		findings = append(findings, finding{"ok", "the daemon takes questions", ""})
	}
	switch {
	case decides.shut && asks.err == nil:
		findings = append(findings, finding{"note",
			"this account asks; it cannot answer here, which is as it should be for agents",
			"name it as user of one of people if a person uses it"})
	case errors.As(decides.err, &other) && asks.err == nil:
		findings = append(findings, finding{"note", "this is not the socket of people: " + decides.err.Error(), ""})
	case decides.err != nil && asks.err == nil:
		findings = append(findings, finding{"wrong", "people cannot answer here: " + decides.err.Error(), ""})
	case decides.err == nil:
		if note := stopNote(decides.me); note != "" {
			findings = append(findings, finding{"note", note, "go on with: daycared resume"})
		}
		findings = append(findings, finding{"ok",
			fmt.Sprintf("this account answers as %s; %d waiting", decides.me.Name, decides.open), ""})
	}
	for _, c := range decides.channels {
		if c.OK {
			findings = append(findings, finding{"ok", c.Name + " is connected", ""})
		} else {
			findings = append(findings, finding{"wrong", c.Name + ": " + c.Text, ""})
		}
	}
	return findings
}

// examinePeople says how people can be reached: as the running daemon has it, if it tells, else by the configuration alone,
// which does not know who was paired.
func (c *CLI) examinePeople(cfg *config.Config, s engine.Settings, told []admin.Person) []finding {
	var findings []finding
	if cfg.Connectors.Terminal.Enabled && !terminal.IsConsole(c.In) {
		findings = append(findings, finding{"note", "this shell has no console; a daemon started here could not prompt in it", ""})
	}
	byTelegram, byWhatsApp := cfg.Connectors.Telegram.Enabled, cfg.Connectors.WhatsApp.Enabled
	for _, p := range s.People {
		reached := (p.Telegram != 0 && byTelegram) || (p.WhatsApp != "" && byWhatsApp)
		if at := slices.IndexFunc(told, func(t admin.Person) bool { return t.Name == p.Name }); at >= 0 {
			reached = len(told[at].Via) > 0
		}
		if reached || p.UID != permissions.NoUID {
			continue
		}
		via := ""
		if byWhatsApp && !byTelegram {
			via = " --via whatsapp"
		}
		findings = append(findings, finding{"wrong", p.Name + " can be reached by no channel that is switched on",
			"pair a phone with: daycared pair " + p.Name + via + "; or give " + p.Name + " a user, who opens daycared inbox"})
	}
	return findings
}

// examineAccount says what the machine cannot enforce where this account decides.
func (c *CLI) examineAccount() finding {
	return finding{"note", fmt.Sprintf("agents that run as uid %d share the approver's account: through the admin socket they may "+
		"deny, not allow, but the machine cannot keep them from the terminal's own input", c.UID),
		"run agents under another account; only then is the approver's finger independent"}
}
