package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/acp"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/anthropic"
	"github.com/daycared/daycared/agents/models/openai"
	"github.com/daycared/daycared/agents/models/provider"
	playbook "github.com/daycared/daycared/agents/models/script"
	"github.com/daycared/daycared/agents/runtime"
	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/agents/tools/remote"
	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions"
)

// newSandbox returns the sandbox for everything that the daemon's agents run. The daemon's own files are out of its reach.
func newSandbox(cfg *config.Config, s engine.Settings) *sandbox.Sandbox {
	mode := sandbox.On
	if !cfg.Sandbox {
		mode = sandbox.Off
	}
	return sandbox.New(sandbox.Options{Own: s.Own, Mode: mode})
}

// ownAgents builds the runtime of the agents that use a model.
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
			reach := sandbox.Policy{Read: m.Read, Write: m.Write, Network: m.Network, Env: c.passedVariables(m.Env)}
			server := remote.New(remote.Options{
				Name: m.Name, Version: version, Log: log.With("agent", a.Name, "mcp", m.Name),
				Command: func(ctx context.Context) (*exec.Cmd, func(), error) { return walls.Command(ctx, reach, m.Command...) },
			})
			one.Servers, servers = append(one.Servers, server), append(servers, server)
		}
		all = append(all, one)
	}
	return runtime.New(runtime.Options{Agents: all, Others: others, Store: rows, Now: time.Now, Log: log}), servers, nil
}

func (c *CLI) ownAgent(a config.Agent, cfg *config.Config, walls *sandbox.Sandbox, log *slog.Logger) (runtime.Agent, error) {
	model, err := c.model(a, log)
	if err != nil {
		return runtime.Agent{}, err
	}
	instructions, err := agentInstructions(a)
	if err != nil {
		return runtime.Agent{}, err
	}
	usable := slices.DeleteFunc(tools.All(walls), func(t tools.Tool) bool { return cfg.WebSearch.URL == "" && t.Spec().Name == "web_search" })
	one := runtime.Agent{
		Name: a.Name, Person: a.Person, Via: a.Connector, Parent: a.Parent, Model: model, Instructions: instructions,
		Tools: usable, Terminates: a.OnDenial == config.Terminate, Prompt: a.Prompt,
		Place: placeOf(a, cfg),
	}
	if a.Schedule.Given() {
		one.Schedule = &runtime.Schedule{Next: a.Schedule.Next, Needs: a.Schedule.Needs, AskAt: a.Schedule.Ask}
	}
	return one, nil
}

func (c *CLI) model(a config.Agent, log *slog.Logger) (models.Model, error) {
	m := a.Model
	if m.Provider == config.Script {
		data, err := config.ReadFile(m.File, maxAgentFile)
		if err != nil {
			return nil, fmt.Errorf("agent %s: %s cannot be read (%w)", a.Name, m.File, permissions.Cause(err))
		}
		return playbook.Parse(m.File, data)
	}
	key, err := c.agentKey(a)
	if err != nil {
		return nil, err
	}
	o := provider.ModelOptions{
		Name: m.Name, BaseURL: m.BaseURL, Key: key, Window: int64(m.Window), Link: provider.Options{Log: log.With("agent", a.Name)},
		Price: models.Price{Read: int64(m.InputPrice), Written: int64(m.OutputPrice)},
	}
	if m.Provider == config.Anthropic {
		return anthropic.New(o)
	}
	return openai.New(o)
}

// addAgentSettings adds the agents' owners, permissions and policies to the engine's settings.
func addAgentSettings(cfg *config.Config, s *engine.Settings) {
	s.Bindings, s.Holdings = map[string]permissions.Binding{}, map[string][]permissions.Tag{}
	s.Policies = map[string]permissions.Policy{}
	for _, a := range cfg.Agents {
		caller := permissions.AgentCaller(a.Name).Name
		s.Bindings[caller] = permissions.Binding{Agent: a.Name, Person: cmp.Or(a.Person, s.Operator().Name), Via: a.Connector}
		s.Holdings[caller] = a.GrantedTags()
		p := s.Policy
		p.Auto, p.Gated, p.Forbidden = a.Tools.Auto, a.Tools.Gated, a.Tools.Forbidden
		s.Policies[caller] = p
	}
}

// keepAgents keeps the agents, their owners and permissions as they were at the start, since a reload does not change them.
// Policies change; an agent that the new configuration no longer has keeps its old one. Own files of the start stay protected.
// Unless the sandbox was on at the start (walled), nothing keeps commands in their workspace, whatever the new configuration says.
func keepAgents(next *engine.Settings, began engine.Settings, walled bool) {
	next.Policy.Sandboxed = next.Policy.Sandboxed && walled
	next.Bindings, next.Holdings = began.Bindings, began.Holdings
	for caller, p := range began.Policies {
		if changed, still := next.Policies[caller]; still {
			p = changed
			p.Sandboxed = p.Sandboxed && walled
		}
		next.Policies[caller] = p
	}
	next.Own = slices.Compact(slices.Sorted(slices.Values(slices.Concat(next.Own, began.Own))))
}

// agentFolders rejects agent folders that contain the daemon's own files or lie among them. Links are resolved.
func agentFolders(cfg *config.Config, files []string) error {
	for i, a := range cfg.Agents {
		at := fmt.Sprintf("agents.%d", i)
		type list struct {
			key     string
			folders []string
		}
		given := []list{{"read", a.Read}, {"write", a.Write}}
		if a.Workspace != "" {
			given = append(given, list{"workspace", []string{a.Workspace}})
		}
		for j, s := range a.MCP {
			mcp := fmt.Sprintf("mcp.%d.", j)
			given = append(given, list{mcp + "read", s.Read}, list{mcp + "write", s.Write})
		}
		for _, l := range given {
			for _, folder := range l.folders {
				if cfg.Sandbox && folder == "/proc" && strings.HasSuffix(l.key, "read") {
					continue // the sandbox's kernel rules protect the daemon's files there
				}
				// Where a folder does not answer, the sandbox looks again before each use.
				touched, _ := own.LookUp(folder, func() (string, error) { touched, _ := own.Find(files, folder); return touched, nil })
				if touched != "" {
					return fmt.Errorf("%s: agents.%s: %s covers or lies in daycared's own %s, which %s is not given; name another folder",
						cfg.Position(at+"."+l.key), l.key, folder, touched, a.Name)
				}
			}
		}
	}
	return nil
}

// checkConsoleAgents rejects agents that chat in a terminal which belongs to another person.
func checkConsoleAgents(cfg *config.Config, s engine.Settings) error {
	operator := s.Operator().Name
	for i, a := range cfg.Agents {
		if a.Connector == terminal.Name && a.Person != "" && a.Person != operator {
			return fmt.Errorf("%s: %s is %s's, and the daemon's own console is %s's; write another connector, or run the daemon as %[3]s",
				cfg.Position(fmt.Sprintf("agents.%d.person", i)), a.Name, a.Person, operator)
		}
	}
	return nil
}

// agentKey reads the key of an agent's model from its file or the service's credentials; empty: it needs none. Errors do not reveal it.
func (c *CLI) agentKey(a config.Agent) (models.Key, error) {
	file := a.Model.APIKeyFile
	if folder := c.env("CREDENTIALS_DIRECTORY"); file == "" && folder != "" && a.Model.Provider != config.Script {
		file = filepath.Join(folder, a.Model.Credential)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			file = ""
		}
	}
	switch {
	case file == "" && (a.Model.Provider == config.Script || a.Model.BaseURL != ""):
		return "", nil
	case file == "":
		return "", fmt.Errorf("agent %s: model.api_key_file is empty, and there is no credential %s; "+
			"put the key that %s gave you into a file of mode 0600 and name it there", a.Name, a.Model.Credential, a.Model.Provider)
	case a.Model.KeyInTheClear():
		return "", fmt.Errorf("agent %s: model.base_url would send the key in the clear; write https, or take the key away", a.Name)
	}
	key, err := readSecret(file, "the key that "+a.Model.Provider+" gave you")
	if err != nil {
		return "", fmt.Errorf("agent %s: model.api_key_file: %w", a.Name, err)
	}
	odd := func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsGraphic(r) || r == ' ' }
	if len(key) > maxSecret || strings.ContainsFunc(key, odd) {
		return "", fmt.Errorf("agent %s: model.api_key_file: what %s holds is no key; write it alone, on one line", a.Name, file)
	}
	return models.Key(key), nil
}

const maxAgentFile = 64 << 20

func agentInstructions(a config.Agent) (string, error) {
	if a.InstructionsFile == "" {
		return a.Instructions, nil
	}
	text, err := config.ReadFile(a.InstructionsFile, maxAgentFile)
	if err != nil {
		return "", fmt.Errorf("agent %s: read its instructions: %w", a.Name, err)
	}
	if err := config.CheckWords(string(text)); err != nil {
		return "", fmt.Errorf("agent %s: %s: %w", a.Name, a.InstructionsFile, err)
	}
	return string(text), nil
}

// acpAgents builds the agents that are separate programs.
func (c *CLI) acpAgents(
	cfg *config.Config, s engine.Settings, walls *sandbox.Sandbox, rows agents.SessionStore, log *slog.Logger,
) (all []*acp.Agent) {
	for _, a := range cfg.Agents {
		if len(a.ACP) == 0 {
			continue
		}
		all = append(all, acp.New(acp.Options{
			Name: a.Name, Person: cmp.Or(a.Person, s.Operator().Name), Via: a.Connector,
			Program: c.program(a, placeOf(a, cfg), walls, log), Store: rows, Now: time.Now,
		}))
	}
	return all
}

// placeOf is the workspace in which an agent's tools run.
func placeOf(a config.Agent, cfg *config.Config) tools.Workspace {
	return tools.Workspace{Tags: a.GrantedTags(), AllowPrivate: cfg.Fetch.AllowPrivate, Search: cfg.WebSearch.URL}.In(a.Workspace)
}

// program describes how an agent's program is started: in a sandbox that reaches what its entry names.
func (c *CLI) program(a config.Agent, place tools.Workspace, walls *sandbox.Sandbox, log *slog.Logger) acp.Program {
	return acp.Program{
		Log: log.With("agent", a.Name), Auth: a.ACPAuth, Mode: a.Mode, Version: version, Place: place, Sandbox: walls,
		Command: func(ctx context.Context) (*exec.Cmd, func(), error) {
			held, err := place.Held()
			if err != nil {
				return nil, nil, err
			}
			work := held.Path
			reach := sandbox.Policy{
				Held: held,
				Read: a.Read, Write: append([]string{work}, a.Write...), Network: a.Network, Dir: work, Home: c.homeOf(a, work),
				Env: c.passedVariables(a.Env),
			}
			return walls.Command(ctx, reach, a.ACP...)
		},
	}
}

// passedVariables returns the given environment variables that are set.
func (c *CLI) passedVariables(names []string) (environ []string) {
	for _, name := range names {
		if value := c.env(name); value != "" {
			environ = append(environ, name+"="+value)
		}
	}
	return environ
}

// homeOf is the HOME of an agent's program: that of the daemon's account, if the agent's entry names something in it, else its workspace.
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

// eventHandlers calls each handler for every event of requests that agents made.
type eventHandlers []agents.EventHandler

// HandleEvent implements [agents.EventHandler].
func (all eventHandlers) HandleEvent(ctx context.Context, h permissions.Event, r permissions.Request) (err error) {
	for _, w := range all {
		err = errors.Join(err, w.HandleEvent(ctx, h, r))
	}
	return err
}

func (c *CLI) runCommand() *cobra.Command {
	var o outside
	cmd := &cobra.Command{
		Use: "run AGENT [PROMPT] | run [flags] -- PROGRAM [ARGUMENT...]",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() == 0 && len(args) > 0 {
				return nil
			}
			return arguments(cobra.RangeArgs(1, 2), "an agent of the configuration, and what it is to do, in quotes; or -- and a program")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() == 0 {
				return c.runOutside(cmd.Context(), o, args)
			}
			if cmd.Flags().NFlag() > 0 && (o.network || o.workspace+strings.Join(slices.Concat(o.read, o.write, o.env), "") != "") {
				return usage("the configuration says what %s reaches; these flags are for -- PROGRAM", args[0])
			}
			prompt := "-"
			if len(args) == 2 {
				prompt = args[1]
			}
			return c.runAgent(cmd.Context(), args[0], prompt)
		},
	}
	cmd.Flags().StringVar(&o.workspace, "workspace", "", "with -- PROGRAM: the folder that it may write (default: this one)")
	cmd.Flags().StringArrayVar(&o.read, "read", nil, "with -- PROGRAM: another file or folder that it may read; may be repeated")
	cmd.Flags().StringArrayVar(&o.write, "write", nil, "with -- PROGRAM: another one that it may write; may be repeated")
	cmd.Flags().StringArrayVar(&o.env, "env", nil, "with -- PROGRAM: a variable that it gets, by its name; may be repeated")
	cmd.Flags().BoolVar(&o.network, "network", false, "with -- PROGRAM: let it reach any address")
	return cmd
}

// outside is what a program that is not configured may reach.
type outside struct {
	workspace        string
	read, write, env []string
	network          bool
}

// runOutside runs a program in the sandbox, whatever the configuration says of it, with this command's streams.
func (c *CLI) runOutside(ctx context.Context, o outside, argv []string) error {
	cfg, paths, err := c.load()
	if err != nil {
		return err
	}
	places := slices.Concat([]string{cmp.Or(o.workspace, ".")}, o.write, o.read)
	for i, name := range places {
		if places[i], err = filepath.Abs(name); err == nil {
			places[i], err = filepath.EvalSymlinks(places[i])
		}
		if err != nil {
			return usage("%s: %s", name, permissions.Cause(err))
		}
	}
	named := config.Agent{Write: places[1 : 1+len(o.write)], Read: places[1+len(o.write):]}
	code, err := sandbox.New(sandbox.Options{Own: append(ownFiles(cfg, paths), runningData()...)}).Job(ctx, sandbox.Policy{
		Read: named.Read, Write: places[:1+len(o.write)], Network: o.network, Dir: places[0], Home: c.homeOf(named, places[0]),
		Env: c.passedVariables(o.env),
	}, sandbox.Streams{In: c.In, Out: c.Out, Err: c.Err}, argv...)
	switch {
	case ctx.Err() != nil:
		return ended(permissions.ExitCancelled, "%s was interrupted", argv[0])
	case code > 0:
		return exitCode(code)
	case err != nil:
		return ended(sandbox.NotStarted, "run %s: %v", argv[0], err)
	}
	return nil
}

func (c *CLI) runAgent(ctx context.Context, name, prompt string) error {
	cfg, paths, err := c.load()
	if err != nil {
		return err
	}
	agent, err := acpAgent(cfg, name)
	if err != nil {
		return err
	}
	if prompt == "-" {
		if prompt, err = c.read("-"); err != nil {
			return usage("read the prompt from standard input: %s", err)
		}
	}
	if prompt = strings.TrimSpace(prompt); prompt == "" {
		return usage("there is no prompt; write what %s is to do, in quotes", name)
	}
	asks, err := c.agentClient()
	if err != nil {
		return err
	}
	defer asks.Close()
	if err := asks.Ready(ctx); err != nil { // before anything starts that could not ask
		return err
	}
	asks.Progress = (&progress{cli: c}).tell
	walls := newSandbox(cfg, engine.Settings{Own: append(ownFiles(cfg, paths), runningData()...)})
	err = acp.Once(ctx, acp.OneShot{
		Name: agent.Name, Session: "run-" + string(permissions.NewID(time.Now())),
		Program: c.program(agent, placeOf(agent, cfg), walls, slog.New(slog.DiscardHandler)),
		Asker:   socketAsker{asks}, Say: c.printMessage,
	}, prompt)
	switch {
	case errors.Is(err, acp.ErrUnfinished):
		return exitCode(permissions.ExitOther) // the reason was printed
	case ctx.Err() != nil:
		return ended(permissions.ExitCancelled, "%s was interrupted", name)
	case err != nil:
		return fmt.Errorf("run %s: %w", name, err)
	}
	return nil
}

// acpAgent finds a configured agent that is a separate program.
func acpAgent(cfg *config.Config, name string) (config.Agent, error) {
	i := slices.IndexFunc(cfg.Agents, func(a config.Agent) bool { return a.Name == name })
	switch {
	case i < 0:
		return config.Agent{}, usage("there is no agent %s under agents of %s; %s", name, cmp.Or(cfg.File, "the configuration"),
			suggestSimilar(name, agentNames(cfg), "add it there"))
	case len(cfg.Agents[i].ACP) == 0:
		return config.Agent{}, usage("%s thinks with a model, and the daemon runs it; write to it where its person does (%s)",
			name, cmp.Or(cfg.Agents[i].Connector, "its parent does that"))
	}
	return cfg.Agents[i], nil
}

// printMessage prints an agent's message, without control characters.
func (c *CLI) printMessage(text string) error {
	for line := range strings.Lines(text) {
		if _, err := fmt.Fprintln(c.Out, card.Visible(strings.TrimRight(line, "\r\n"))); err != nil {
			return fmt.Errorf("print what the agent says: %w", err)
		}
	}
	return nil
}

// socketAsker asks at the agents' socket, and withdraws requests whose call has ended.
type socketAsker struct{ *client.Client }

func (s socketAsker) Ask(ctx context.Context, _ permissions.Caller, q permissions.Request) (permissions.Request, error) {
	q.Host, _ = os.Hostname() // empty if it fails
	q.ID = permissions.NewID(time.Now())
	q.Claimed = true
	got, err := s.Put(ctx, q)
	r := got.Request
	if ctx.Err() != nil {
		late, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		_, _ = s.Cancel(late, cmp.Or(r.ID, q.ID)) // fails if the request is settled or was never stored
		return r, ctx.Err()
	}
	return r, err
}
