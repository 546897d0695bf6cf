package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/acp"
	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// acpAgents makes the agents that are programs of their own.
func (c *CLI) acpAgents(
	cfg *config.Config, s engine.Settings, walls *sandbox.Sandbox, rows acp.Store, log *slog.Logger,
) (all []*acp.Agent) {
	for _, a := range cfg.Agents {
		if len(a.ACP) == 0 {
			continue
		}
		files := kitOf(walls)
		all = append(all, acp.New(acp.Options{
			Name: a.Name, Person: cmp.Or(a.Person, s.Operator().Name), Via: a.Connector, Program: c.program(a, walls, log),
			Place: placeOf(a, cfg), Read: tools.Whole(walls), Write: files["write_file"], Run: files["run_command"],
			Store: rows, Now: time.Now,
		}))
	}
	return all
}

// kitOf are the tools of our own, by their names.
func kitOf(walls *sandbox.Sandbox) map[string]tools.Tool {
	all := map[string]tools.Tool{}
	for _, t := range tools.All(walls) {
		all[t.Spec().Name] = t
	}
	return all
}

// placeOf is where the tools of an agent are used.
func placeOf(a config.Agent, cfg *config.Config) tools.Place {
	return tools.Place{Agent: a.Name, Workspace: a.Workspace, Tags: a.Holds(), AllowPrivate: cfg.Fetch.AllowPrivate}
}

// program is how the program of an agent is started: in walls of its own, of what its entry names.
func (c *CLI) program(a config.Agent, walls *sandbox.Sandbox, log *slog.Logger) acp.Program {
	return acp.Program{
		Log: log.With("agent", a.Name), Auth: a.ACPAuth, Version: version,
		Command: func(ctx context.Context) (*exec.Cmd, func(), error) {
			work, err := filepath.EvalSymlinks(a.Workspace) // its name is the operator's, who may have links in it
			if err != nil {
				return nil, nil, err
			}
			reach := sandbox.Walls{
				Read: a.Read, Write: append([]string{work}, a.Write...), Network: a.Network, Dir: work, Home: c.homeOf(a, work),
			}
			for _, name := range a.Env {
				if value := c.env(name); value != "" {
					reach.Env = append(reach.Env, name+"="+value)
				}
			}
			return walls.Command(ctx, reach, a.ACP...)
		},
	}
}

// homeOf is where a program looks for what is its own: the home of the daemon's account, if its entry names something
// there, else its workspace.
func (c *CLI) homeOf(a config.Agent, work string) string {
	home := c.env("HOME")
	within, err := permissions.ParseTag("@read:" + home)
	if err != nil {
		return work
	}
	inside := func(p string) bool {
		t, err := permissions.ParseTag("@read:" + p)
		return err == nil && within.Covers(t)
	}
	if slices.ContainsFunc(a.Read, inside) || slices.ContainsFunc(a.Write, inside) {
		return home
	}
	return work
}

// witnesses are told, each, what becomes of what agents of ours asked.
type witnesses []agents.Witness

// Witness is [agents.Witness].
func (all witnesses) Witness(ctx context.Context, h permissions.Happening, r permissions.Request) (err error) {
	for _, w := range all {
		err = errors.Join(err, w.Witness(ctx, h, r))
	}
	return err
}
