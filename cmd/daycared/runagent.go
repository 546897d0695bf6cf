package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/agents/acp"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) runCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "run AGENT [PROMPT]",
		Short:   "Have an agent of the configuration that speaks ACP do one thing, from this terminal",
		Example: "  daycared run coder \"write the release notes\"",
		Long: "Have an agent of the configuration that speaks ACP do one thing: it is started here, told PROMPT (or what standard input " +
			"says), and ends with its turn. What it asks is put to people through the daemon.\n" +
			"Exit code: 0 done, 1 not done, 5 interrupted, 7 no daemon, 2 wrong usage.",
		Args: arguments(cobra.RangeArgs(1, 2), "an agent of the configuration, and what it is to do, in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			prompt := "-"
			if len(args) == 2 {
				prompt = args[1]
			}
			return c.runAgent(cmd.Context(), args[0], prompt)
		},
	}
}

// runAgent runs an agent for one prompt.
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
	walls := walls(cfg, engine.Settings{Own: ownFiles(cfg, paths)})
	files, place := kitOf(walls), placeOf(agent, cfg)
	err = acp.Once(ctx, acp.Errand{
		Name: agent.Name, Session: "run-" + string(permissions.NewID(time.Now())),
		Program: c.program(agent, place, walls, slog.New(slog.DiscardHandler)), Place: place,
		Read: tools.Whole(walls), Write: files["write_file"], Run: files["run_command"],
		Asker: atSocket{asks}, Say: c.hear,
	}, prompt)
	switch {
	case errors.Is(err, acp.ErrUndone):
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
			meant(name, agentNames(cfg), "add it there"))
	case len(cfg.Agents[i].ACP) == 0:
		return config.Agent{}, usage("%s thinks with a model, and the daemon runs it; write to it where its person does (%s)",
			name, cmp.Or(cfg.Agents[i].Connector, "its parent does that"))
	}
	return cfg.Agents[i], nil
}

// hear prints an agent's message, without control characters.
func (c *CLI) hear(text string) error {
	for line := range strings.Lines(text) {
		if _, err := fmt.Fprintln(c.Out, card.Visible(strings.TrimRight(line, "\r\n"))); err != nil {
			return fmt.Errorf("print what the agent says: %w", err)
		}
	}
	return nil
}

// atSocket asks at the agents' socket, and withdraws requests whose call has ended.
type atSocket struct{ *client.Client }

func (s atSocket) Ask(ctx context.Context, _ permissions.Caller, q permissions.Request) (permissions.Request, error) {
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
