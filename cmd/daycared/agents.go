package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/anthropic"
	"github.com/daycared/daycared/agents/models/openai"
	"github.com/daycared/daycared/agents/models/provider"
	playbook "github.com/daycared/daycared/agents/models/script"
	"github.com/daycared/daycared/agents/runtime"
	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/agents/tools/remote"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// walls are those of all that agents of ours run. What the daemon itself is stays out of their reach.
func walls(cfg *config.Config, s engine.Settings) *sandbox.Sandbox {
	mode := sandbox.On
	if !cfg.Sandbox {
		mode = sandbox.Off
	}
	return sandbox.New(sandbox.Options{Own: s.Own, Mode: mode})
}

// ownAgents makes the runtime of the agents of our own that think with a model.
func (c *CLI) ownAgents(
	cfg *config.Config, s engine.Settings, walls *sandbox.Sandbox, rows runtime.Store, log *slog.Logger,
) (own *runtime.Runtime, servers []*remote.Server, err error) {
	var all []runtime.Agent
	var others []string
	for _, a := range cfg.Agents {
		if len(a.ACP) > 0 {
			others = append(others, a.Name)
			continue
		}
		one, err := c.ownAgent(a, cfg, walls, log)
		if err != nil {
			return nil, nil, err
		}
		one.Person = cmp.Or(a.Person, s.Operator().Name)
		for _, m := range a.MCP {
			server := c.server(m, a.Name, walls, log)
			one.Servers, servers = append(one.Servers, server), append(servers, server)
		}
		all = append(all, one)
	}
	return runtime.New(runtime.Options{Agents: all, Others: others, Store: rows, Now: time.Now, Log: log}), servers, nil
}

// server is an MCP server of an agent's, in walls of its own: it reaches what its entry names, and no more.
func (c *CLI) server(m config.MCPServer, agent string, walls *sandbox.Sandbox, log *slog.Logger) *remote.Server {
	reach := sandbox.Walls{Read: m.Read, Write: m.Write, Network: m.Network}
	for _, name := range m.Env {
		if value := c.env(name); value != "" {
			reach.Env = append(reach.Env, name+"="+value)
		}
	}
	return remote.New(remote.Options{
		Name: m.Name, Version: version, Log: log.With("agent", agent, "mcp", m.Name),
		Command: func(ctx context.Context) (*exec.Cmd, func(), error) { return walls.Command(ctx, reach, m.Command...) },
	})
}

// ownAgent is one agent, with its model and its tools.
func (c *CLI) ownAgent(a config.Agent, cfg *config.Config, walls *sandbox.Sandbox, log *slog.Logger) (runtime.Agent, error) {
	model, err := c.model(a, log)
	if err != nil {
		return runtime.Agent{}, err
	}
	instructions, err := agentInstructions(a)
	if err != nil {
		return runtime.Agent{}, err
	}
	one := runtime.Agent{
		Name: a.Name, Person: a.Person, Via: a.Connector, Parent: a.Parent, Model: model, Instructions: instructions,
		Tools: tools.All(walls), Terminates: a.OnDenial == config.Terminate, Prompt: a.Prompt,
		Place: tools.Place{Agent: a.Name, Workspace: a.Workspace, Tags: a.Holds(), AllowPrivate: cfg.Fetch.AllowPrivate},
	}
	if a.Schedule.Given() {
		one.Schedule = &runtime.Schedule{Next: a.Schedule.Next, Needs: a.Schedule.Needs, AskAt: a.Schedule.Ask}
	}
	return one, nil
}

// model is what an agent thinks with.
func (c *CLI) model(a config.Agent, log *slog.Logger) (models.Model, error) {
	m := a.Model
	if m.Provider == config.Script {
		data, err := os.ReadFile(m.File)
		if err != nil {
			return nil, fmt.Errorf("agent %s: %s cannot be read (%w)", a.Name, m.File, cause(err))
		}
		return playbook.Parse(m.File, data)
	}
	key, err := c.agentKey(a)
	if err != nil {
		return nil, err
	}
	link := provider.Options{Log: log.With("agent", a.Name)}
	price := models.Price{Read: int64(m.InputPrice), Written: int64(m.OutputPrice)}
	if m.Provider == config.Anthropic {
		return anthropic.New(anthropic.Options{
			Name: m.Name, BaseURL: m.BaseURL, Key: key, Window: int64(m.Window), Price: price, Link: link,
		})
	}
	return openai.New(openai.Options{
		Name: m.Name, BaseURL: m.BaseURL, Key: key, Window: int64(m.Window), Price: price, Link: link,
	})
}

// ruleAgents says in the settings of the engine whose the agents of our own are, what they hold, and what they may run.
func ruleAgents(cfg *config.Config, s *engine.Settings) {
	s.Bonds, s.Holdings = map[string]permissions.Bond{}, map[string][]permissions.Tag{}
	s.Policies = map[string]permissions.Policy{}
	for _, a := range cfg.Agents {
		caller := permissions.AgentCaller(a.Name).Name
		s.Bonds[caller] = permissions.Bond{Agent: a.Name, Person: cmp.Or(a.Person, s.Operator().Name), Via: a.Connector}
		s.Holdings[caller] = a.Holds()
		p := s.Policy
		p.Auto, p.Gated, p.Forbidden = a.Tools.Auto, a.Tools.Gated, a.Tools.Forbidden
		s.Policies[caller] = p
	}
}

// keepAgents has agents of our own stay whose they are, and hold what they held, while the daemon runs: they are those of
// the start. What they may run is what the configuration says now; who is no longer in it keeps to what it said before.
// What the daemon began with stays its own.
func keepAgents(next *engine.Settings, began engine.Settings) {
	next.Bonds, next.Holdings = began.Bonds, began.Holdings
	for caller, p := range began.Policies {
		if _, still := next.Policies[caller]; !still {
			next.Policies[caller] = p
		}
	}
	next.Own = slices.Compact(slices.Sorted(slices.Values(slices.Concat(next.Own, began.Own))))
}
