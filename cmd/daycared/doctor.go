package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// finding is one result of doctor.
type finding struct {
	level  string // ok, note, wrong
	what   string
	remedy string // how to fix it; empty if nothing is to be done
	at     config.Problem
}

func (c *CLI) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, _, err := c.load(); errors.Is(err, errUsage) {
				return err
			}
			report := struct {
				OK       bool       `json:"ok"`
				Findings []finding  `json:"findings"`
				Agents   []agentRow `json:"agents"`
			}{OK: true, Agents: []agentRow{}}
			report.Findings = c.examine(cmd.Context(), &report.Agents)
			for _, f := range report.Findings {
				report.OK = report.OK && f.level != "wrong"
			}
			if c.asJSON {
				if err := c.json(report); err != nil {
					return err
				}
			} else {
				for _, f := range report.Findings {
					c.print("%-5s  %s\n", f.level, f.what)
					if f.remedy != "" {
						c.print("       → %s\n", f.remedy)
					}
				}
				if err := c.printTable(report.Agents); err != nil {
					return err
				}
			}
			if !report.OK {
				return exitCode(permissions.ExitOther)
			}
			return nil
		},
	}
}

// MarshalJSON encodes a finding for programs.
func (f finding) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Level  string `json:"level"`
		What   string `json:"what"`
		Remedy string `json:"remedy"`
		Key    string `json:"key"`
		Where  string `json:"where"`
		Line   int    `json:"line"`
	}{f.level, f.what, f.remedy, f.at.Key, f.at.Where, f.at.Line})
}

// saw returns a finding without a configuration key.
func newFinding(level, what, remedy string) finding {
	return finding{level: level, what: what, remedy: remedy}
}

// examine checks everything that can prevent a question from being answered, innermost first, and adds the agents of this
// account and of the configuration to the table.
func (c *CLI) examine(ctx context.Context, table *[]agentRow) []finding {
	findings := []finding{newFinding("ok", "daycared "+version+", SQLite "+store.LibraryVersion(), "")}
	cfg, paths, err := c.load()
	if c.hidden(err) { // as for every client
		daemon, _, _, _ := c.examineDaemon(ctx)
		findings = append(findings, newFinding("note", "the configuration cannot be looked at from this account", ""))
		return append(findings, daemon...)
	}
	if err == nil {
		cfg, err = c.check()
	}
	if err != nil {
		return append(findings, refused(err)...)
	}
	current, err := settings(cfg, paths, c.UID)
	if err != nil {
		return append(findings, refused(err)...)
	}
	if cfg.File == "" {
		findings = append(findings, newFinding("ok", "no configuration file; the defaults are in force and the operator is asked", ""))
	} else {
		findings = append(findings, newFinding("ok", "configuration "+cfg.File, ""))
	}
	for _, w := range cfg.Warnings {
		findings = append(findings, found("note", w))
	}
	running := c.daemonOf(ctx, paths)
	in := c.inspect(cfg, paths, c.serves(paths, running), running)
	findings = append(findings, in.findings()...)
	findings = append(findings, in.examineData(ctx)...)
	findings = append(findings, in.examineAdminKey()...)
	findings = append(findings, in.examineListener()...)
	findings = append(findings, examineSandbox(cfg, current.Own)...)
	daemon, people, up, both := c.examineDaemon(ctx)
	findings = append(findings, daemon...)
	findings = append(findings, examineReach(running)...)
	findings = append(findings, examineLocks(running, &current)...)
	findings = append(findings, c.examinePeople(cfg, current, people)...)
	findings = append(findings, in.examineServices(ctx)...)
	connections, rows := c.examineConnections(ctx, cfg, up)
	findings, *table = append(findings, connections...), append(*table, rows...)
	if both && !cfg.API.AllowSameUser { // otherwise a warning has said more
		findings = append(findings, c.examineAccount())
	}
	return findings
}

// refused returns the findings for a configuration that cannot be served.
func refused(err error) (findings []finding) {
	var all config.Problems
	if !errors.As(err, &all) {
		return []finding{newFinding("wrong", err.Error(), "fix what is named, then run: daycared config check")}
	}
	for _, p := range all {
		findings = append(findings, found("wrong", p))
	}
	return findings
}

// found converts a configuration problem to a finding.
func found(level string, p config.Problem) finding {
	remedy := p.Remedy()
	p.Text = p.Cause()
	return finding{level, p.String(), remedy, p}
}

// access is the result of connecting to one of the two sockets.
type access struct {
	err  error    // nil: this account has access
	shut bool     // the daemon runs but refuses this account
	me   admin.Me // of a person
	open int      // how many requests wait for them

	channels []admin.Channel
	people   []admin.Person // only the operator gets these
}

// examineDaemon queries the running daemon at both sockets, and which channels reach people. up reports whether it accepts
// questions; both reports whether this account asks and decides, or may do so once the daemon runs.
func (c *CLI) examineDaemon(ctx context.Context) (findings []finding, people []admin.Person, up, both bool) {
	ctx, done := context.WithTimeout(ctx, 5*time.Second)
	defer done()
	asks, decides := c.askSocket(ctx), c.decideSocket(ctx)
	both = (asks.err == nil || !asks.shut) && (decides.err == nil || !decides.shut)
	return describeAccess(asks, decides, c.UID), decides.people, asks.err == nil, both
}

func (c *CLI) askSocket(ctx context.Context) (d access) {
	client, err := c.agentClient()
	if err != nil {
		return access{err: err}
	}
	defer client.Close()
	err = client.Ready(ctx)
	return access{err: err, shut: errors.Is(err, fs.ErrPermission)}
}

func (c *CLI) decideSocket(ctx context.Context) (d access) {
	client, err := c.adminClient()
	if err != nil {
		return access{err: err}
	}
	defer client.Close()
	if d.me, d.err = client.WhoAmI(ctx); d.err == nil {
		var list []permissions.RequestView
		list, d.err = client.List(ctx, "", 0)
		d.open = len(list)
		d.channels, _ = client.Health(ctx) // an older daemon does not have it
		d.people, _ = client.People(ctx)
	}
	d.shut = errors.Is(d.err, fs.ErrPermission) || permissions.CodeOf(d.err) == permissions.CodeNotYours
	return d
}

// lacksAccess says what a person's account lacks at a socket that is shut to it.
func lacksAccess(d access) string {
	if errors.Is(d.err, fs.ErrPermission) { // it may be named already, and cannot be told
		return "if a person uses it, name it as user of one of people, and write api.admin_group, a group that it is in: without one " +
			"admin.sock opens to the daemon's own account alone"
	}
	return "name it as user of one of people if a person uses it"
}

// describeAccess describes the account's access to the sockets. Access to only one of them is normal.
func describeAccess(asks, decides access, uid int) (findings []finding) {
	var other *wire.Problem // not a refusal
	switch {
	case asks.shut && decides.shut:
		return []finding{newFinding("wrong", fmt.Sprintf("this account, uid %d, neither asks nor answers here: %s", uid, asks.err),
			lacksAccess(decides)+"; put it into the group of api.agent_group if agents run as it")}
	case asks.shut && decides.err == nil:
		findings = append(findings, newFinding("note",
			"this account answers as "+decides.me.Name+"; it cannot ask here, which is as it should be", ""))
	case asks.err != nil:
		remedy := "start it with: daycared serve"
		if isBroken(asks.err) {
			remedy = "" // it runs, and says what to do
		}
		findings = append(findings, newFinding("wrong", "the daemon cannot take questions: "+asks.err.Error(), remedy))
	default:
		findings = append(findings, newFinding("ok", "the daemon takes questions", ""))
	}
	switch {
	case decides.shut && asks.err == nil:
		findings = append(findings, newFinding("note",
			"this account asks; it cannot answer here, which is as it should be for agents",
			lacksAccess(decides)))
	case errors.As(decides.err, &other) && asks.err == nil:
		findings = append(findings, newFinding("note", "this is not the socket of people: "+decides.err.Error(), ""))
	case decides.err != nil && asks.err == nil:
		findings = append(findings, newFinding("wrong", "people cannot answer here: "+decides.err.Error(), ""))
	case decides.err == nil:
		if note := stopNote(decides.me); note != "" {
			findings = append(findings, newFinding("note", note, "go on with: daycared resume"))
		}
		findings = append(findings, newFinding("ok",
			fmt.Sprintf("this account answers as %s; %d waiting", decides.me.Name, decides.open), ""))
	}
	for _, c := range decides.channels {
		if c.OK {
			findings = append(findings, newFinding("ok", c.Name+" is connected", ""))
		} else {
			findings = append(findings, newFinding("wrong", c.Name+": "+c.Text, ""))
		}
	}
	return findings
}

// examinePeople says how people can be reached: according to the running daemon, otherwise to the configuration, which does not
// know who was paired.
func (c *CLI) examinePeople(cfg *config.Config, s engine.Settings, told []admin.Person) []finding {
	var findings []finding
	if cfg.Connectors.Terminal.Enabled && !terminal.IsConsole(c.In) {
		findings = append(findings, newFinding("note", "this shell has no console; a daemon started here could not prompt in it", ""))
	}
	kinds := connectors.KindNames()
	for _, p := range s.People {
		reached := slices.ContainsFunc(kinds, func(kind string) bool { return p.Addresses[kind] != "" && cfg.On(kind) })
		if at := slices.IndexFunc(told, func(t admin.Person) bool { return t.Name == p.Name }); at >= 0 {
			reached = len(told[at].Via) > 0
		}
		if reached || p.UID != permissions.NoUID {
			continue
		}
		via := ""
		if first := slices.IndexFunc(kinds, cfg.On); first > 0 {
			via = " --via " + kinds[first]
		}
		findings = append(findings, newFinding("wrong", p.Name+" can be reached by no channel that is switched on",
			"pair a phone with: daycared pair "+p.Name+via+"; or give "+p.Name+" a user, who opens daycared inbox"))
	}
	return findings
}

// examineAccount says what the machine cannot enforce if this account decides.
func (c *CLI) examineAccount() finding {
	return newFinding("note", fmt.Sprintf("agents that run as uid %d share the approver's account: through the admin socket they may "+
		"deny, not allow, but the machine cannot keep them from the terminal's own input", c.UID),
		"run agents under another account; only then is the approver's finger independent")
}
