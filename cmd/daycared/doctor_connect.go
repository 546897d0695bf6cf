package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/daycared/daycared/agents/acp"
	"github.com/daycared/daycared/agents/hooks"
	"github.com/daycared/daycared/agents/mcp"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/cmd/daycared/connect"
)

// tryWithin bounds the test call of one hook.
const tryWithin = 5 * time.Second

// examineConnections finds the connected agents of this account, queries whether they run the hook, if they can be queried, and
// tests the hook of each that does.
func (c *CLI) examineConnections(ctx context.Context, cfg *config.Config, up bool) (findings []finding, table []agentRow) {
	if c.env("HOME") != "" { // without a home there are no agents
		place, err := c.here()
		if err != nil {
			findings = append(findings, newFinding("wrong", "connected agents are not looked for: "+err.Error(), "set it as the agents have it"))
		}
		for _, name := range connect.Names() {
			if err == nil {
				seen, rows := c.examineConnection(ctx, cfg, place, name, up)
				findings, table = append(findings, seen...), append(table, rows...)
			}
		}
	}
	for _, a := range cfg.Agents {
		if len(a.ACP) > 0 {
			table = append(table, boundByACP(a))
		}
	}
	return findings, table
}

// boundByACP is the table row of a configured agent that is a separate program.
func boundByACP(a config.Agent) agentRow {
	row := agentRow{Agent: a.Name, Mode: a.Mode, Verdict: connect.BindsUnless,
		Note: "the daemon sets it before each prompt; what the program's own settings allow, it does not ask about"}
	switch {
	case a.Mode == "":
		row.Mode = "the first that asks"
		row.Note += "; one that offers no mode that is known to ask stays in its own"
	case !acp.Asks(a.Mode):
		row.Verdict, row.Note = connect.Nothing, "not a mode that is known to ask"
	}
	return row
}

// examineConnection checks one agent. Each problem is reported once, with a fix.
func (c *CLI) examineConnection(
	ctx context.Context, cfg *config.Config, place connect.Target, name string, up bool,
) (findings []finding, rows []agentRow) {
	place.Gate = connect.GateAll
	a, _ := place.Find(name)
	again := "write it anew with: daycared connect " + name + " --write"
	if says(a, "--gate risky", `"--gate","risky"`) {
		place.Gate = connect.GateRisky
		a, _ = place.Find(name)
		again += " --gate risky"
	}
	has, stale, loose, err := connected(a)
	root := c.managed(a)
	if has == 0 && err == nil && root.verdict == "" {
		return nil, []agentRow{{Agent: name, Mode: "any", Verdict: connect.Nothing, Note: "not connected"}}
	}
	wrong := func(what, remedy string) ([]finding, []agentRow) {
		return []finding{newFinding("wrong", name+what, remedy)}, rowsOf(a, hookStatus{why: "see above"}, managed{})
	}
	switch {
	case err != nil:
		return wrong(": "+err.Error(), "fix that file by hand")
	case loose:
		return wrong(" is connected, and its settings do not say which daemon it asks: the environment that it runs in does", again)
	case has == 0: // only root's files have it
	case stale && !place.Keyboard && says(a, " --keyboard"):
		return wrong(" is connected so that its keyboard answers, too, and a route says that people do", again)
	case has < len(a.Files), stale:
		if lacks := missingHooks(a); len(lacks) > 0 {
			return wrong(" is connected in part: it lacks the hooks "+strings.Join(lacks, ", "), again)
		}
		return wrong(" is connected in part, or to another daycared than this", again)
	case !loaded(a):
		return wrong(" is connected, and has not loaded its plugin since that was written", "restart "+name)
	}
	h := c.runsHook(ctx, a, root.verdict != "")
	rows = rowsOf(a, h, root)
	switch {
	case h.why != "":
		findings = append(findings, newFinding("wrong", name+" is connected, and "+h.why, h.remedy))
	case !up: // reported already
		findings = append(findings, newFinding("note", name+" is connected; while the daemon cannot be asked, it is denied what asks", ""))
	case a.Dialect == "":
		findings = append(findings, c.tryTools(ctx, place, a))
	default:
		findings = append(findings, c.tryHook(ctx, cfg, place, a))
	}
	if h.unasked != "" {
		findings = append(findings, newFinding("note", name+" was not asked whether it runs the hook: "+h.unasked, ""))
	}
	return findings, rows
}

// says reports whether our entries of an agent contain one of these words.
func says(a connect.Agent, these ...string) bool {
	return slices.ContainsFunc(a.Files, func(f connect.File) bool {
		s, err := look(f)
		return err == nil && slices.ContainsFunc(these, func(one string) bool { return strings.Contains(s.text, one) })
	})
}

// connected returns how many of an agent's files have entries of ours, whether any are outdated (stale), and whether any do not
// name the daemon (loose).
func connected(a connect.Agent) (has int, stale, loose bool, err error) {
	for _, f := range a.Files {
		s, err := look(f)
		if err != nil || !s.there {
			if err != nil {
				return 0, false, false, err
			}
			continue
		}
		clean, err := s.Remove(s.text)
		if err != nil {
			return 0, false, false, fmt.Errorf("read %s: %w", s.path, err)
		}
		if clean == s.text {
			continue
		}
		has++
		next, err := s.Install(s.text)
		if err != nil {
			return 0, false, false, fmt.Errorf("%s: %w", s.path, err)
		}
		stale = stale || next != s.text
		loose = loose || !s.Pinned(s.text)
	}
	return has, stale, loose, nil
}

// missingHooks lists our hooks that are not in an agent's settings.
func missingHooks(a connect.Agent) (names []string) {
	for _, f := range a.Files {
		if s, err := look(f); err == nil {
			names = append(names, s.Missing(s.text)...)
		}
	}
	return names
}

// loaded reports whether the agent has loaded our entries, for agents that leave a mark when they do.
func loaded(a connect.Agent) bool {
	if a.Loaded == "" {
		return true
	}
	written, err := os.Stat(a.Files[len(a.Files)-1].Path)
	mark, none := os.Stat(a.Loaded)
	return err == nil && none == nil && !mark.ModTime().Before(written.ModTime())
}

// tryHook runs the hook as the agent would, for a tool that needs no approval, so that nobody is asked.
func (c *CLI) tryHook(ctx context.Context, cfg *config.Config, place connect.Target, a connect.Agent) finding {
	d, known := hooks.Find(a.Dialect)
	i := slices.IndexFunc(cfg.Tools.Auto, func(t string) bool { return !strings.ContainsAny(t, `*?[\`) })
	if !known || i < 0 {
		return newFinding("note", a.Name+" is connected; tools.auto names no tool to try its hook with", "")
	}
	tool := cfg.Tools.Auto[i]
	limited, done := context.WithTimeout(ctx, 2*tryWithin)
	defer done()
	args := append(slices.Clone(place.Command[1:]), "hook", d.Name, "--within", tryWithin.String())
	cmd := exec.CommandContext(limited, place.Command[0], args...) //nolint:gosec // this very program
	cmd.Env = c.Environ
	cmd.Stdin = bytes.NewReader(d.Probe(tool, place.Home))
	began := time.Now()
	out, err := cmd.Output()
	if err != nil || !d.Allows(out) {
		return newFinding("wrong", fmt.Sprintf("%s is connected, and its hook denies even %s, which runs by itself",
			a.Name, tool), "see what it says with: daycared hook "+d.Name)
	}
	gate := ""
	if place.Gate == connect.GateRisky {
		gate = "; it asks about what is risky (--gate risky), and leaves what is harmless in its folder to " + a.Name
	}
	return newFinding("ok", fmt.Sprintf("%s is connected: its hook asked and was answered in %d ms%s",
		a.Name, time.Since(began).Milliseconds(), gate), "")
}

// tryTools starts the MCP server as the agent would, and initializes a session.
func (c *CLI) tryTools(ctx context.Context, place connect.Target, a connect.Agent) finding {
	name, err := c.greet(ctx, place)
	if err != nil || name != "daycared" {
		return newFinding("wrong", fmt.Sprintf("%s is connected, and daycared mcp does not answer it: %v", a.Name, err),
			"see what it says with: daycared mcp")
	}
	return newFinding("ok", a.Name+" is connected: daycared mcp answered; it enforces nothing, its model is told of the tools", "")
}

// greet returns the MCP server's name.
func (c *CLI) greet(ctx context.Context, place connect.Target) (name string, err error) {
	limited, done := context.WithTimeout(ctx, tryWithin)
	defer done()
	args := append(slices.Clone(place.Command[1:]), "mcp")
	cmd := exec.CommandContext(limited, place.Command[0], args...) //nolint:gosec // this very program
	cmd.Env = c.Environ
	return mcp.Greet(limited, cmd, version)
}
