package main

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) configCommand() *cobra.Command {
	cmd := newCommand("config", nil, func(*cobra.Command, []string) error {
		return usage("say config check or config show")
	})
	cmd.AddCommand(c.checkCommand(), c.configShowCommand())
	return cmd
}

func (c *CLI) configShowCommand() *cobra.Command {
	return newCommand("show [KEY]", arguments(cobra.MaximumNArgs(1), "one key at most"), func(_ *cobra.Command, args []string) error {
		if len(args) == 1 {
			return c.showKey(args[0])
		}
		cfg, _, err := c.load()
		if err != nil {
			return err
		}
		if c.asJSON {
			return c.json(map[string]any{"file": wire.OrNull(absolute(cfg.File)), "settings": cfg.Settings()})
		}
		return cfg.Show(c.Out)
	})
}

func (c *CLI) showKey(key string) error {
	cfg, _, err := c.load()
	if err != nil && !c.hidden(err) {
		return err
	}
	paths, missing := c.places("")
	if missing != nil {
		return missing
	}
	path, is := map[string]string{
		"data_dir": paths.DataDir, "api.agent_socket": paths.AgentSocket, "api.admin_socket": paths.AdminSocket,
	}[key]
	text := path
	if !is {
		if err != nil {
			return err
		}
		if text, err = cfg.Value(key); err != nil {
			return usage("%s", err)
		}
	}
	if !c.asJSON {
		_, err = fmt.Fprintln(c.Out, text)
		return err
	}
	told := config.Setting{Key: key, Value: text, From: "default"}
	if err == nil { // otherwise this account may not read it
		for _, s := range cfg.Settings() {
			if s.Key == key {
				told.Value, told.From = s.Value, s.From
			}
		}
	}
	if is {
		told.Value = path
	}
	return c.json(told)
}

// check is load that also verifies that the named accounts exist.
func (c *CLI) check() (*config.Config, error) {
	path, _ := config.Find(c.configFlag, c.Environ, exists)
	cfg, err := config.Check(path, c.Environ, config.Accounts{
		User:  func(name string) bool { _, err := user.Lookup(name); return err == nil },
		Group: func(name string) bool { _, err := user.LookupGroup(name); return err == nil },
	})
	return cfg, c.misnamed(err)
}

func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func (c *CLI) checkCommand() *cobra.Command {
	as := ""
	cmd := newCommand("check [FILE]", arguments(cobra.MaximumNArgs(1), "one file at most"), func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			c.configFlag = args[0]
		}
		return c.checkConfig(cmd.Context(), as)
	})
	cmd.Flags().StringVar(&as, "as", "", "the account that will serve (default: the one whose the data directory is, else this one)")
	return cmd
}

// checkReport is the JSON output of config check.
type checkReport struct {
	OK       bool      `json:"ok"`   // no errors were found
	File     string    `json:"file"` // empty: the defaults
	For      string    `json:"for"`  // the account that runs the daemon
	Findings []checked `json:"findings"`
	Blind    []string  `json:"not_looked_at"`
}

type checked struct {
	Severity string `json:"severity"` // error or warning
	config.Problem
	Cause  string `json:"cause"`
	Remedy string `json:"remedy"`
}

func (r *checkReport) add(severity string, all ...config.Problem) {
	for _, p := range all {
		cause, remedy := p.Split()
		r.Findings = append(r.Findings, checked{severity, p, cause, remedy})
		r.OK = r.OK && severity != "error"
	}
}

// checkConfig checks a configuration for the account that runs the daemon.
func (c *CLI) checkConfig(ctx context.Context, as string) error {
	r := checkReport{OK: true, Findings: []checked{}, Blind: []string{}}
	r.File, _ = config.Find(c.configFlag, c.Environ, exists)
	cfg, err := c.check()
	var in *inspection
	if err == nil {
		// For another account, problems are only doubts, since modes do not show everything that an account may do.
		if in, err = c.lookFor(ctx, cfg, as); err == nil && in.as.self() {
			err = in.refusal()
		}
	}
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) {
		return err
	}
	r.add("error", problems...)
	if in != nil {
		r.For, r.Blind = in.as.String(), append(r.Blind, in.blind...)
		r.add("warning", cfg.Warnings...)
		r.add("warning", in.doubts()...)
	}
	switch {
	case c.asJSON:
		if err = c.json(r); !r.OK {
			err = errors.Join(err, exitCode(permissions.ExitOther))
		}
		return err
	case in == nil:
		return err
	}
	for _, w := range append(cfg.Warnings, in.doubts()...) {
		c.say("%s", w)
	}
	c.say("%s", in.scope())
	if err != nil {
		return err
	}
	c.printValid(cfg, in)
	return nil
}

// lookFor inspects the machine for the given account, otherwise for the one that runs the daemon.
func (c *CLI) lookFor(ctx context.Context, cfg *config.Config, name string) (*inspection, error) {
	paths := cfg.Paths(c.UID, c.Environ)
	if _, err := settings(cfg, paths, c.UID); err != nil {
		return nil, err
	}
	running := c.daemonOf(ctx, paths)
	as := c.serves(paths, running)
	if name != "" {
		known, err := user.Lookup(name)
		if err != nil {
			return nil, usage("--as %s: this machine does not know that account", name)
		}
		uid, err := strconv.Atoi(known.Uid)
		if err != nil {
			return nil, fmt.Errorf("look up the account %q: %w", name, err)
		}
		as = accountOf(uid)
	}
	return c.inspect(cfg, paths, as, running), nil
}

// printValid prints that no errors were found, and what was not checked.
func (c *CLI) printValid(cfg *config.Config, in *inspection) {
	if cfg.File == "" {
		fmt.Fprintln(c.Out, "no configuration file: the defaults are in force")
		return
	}
	parts := []string{count(len(cfg.People), "person", "people"), count(len(cfg.Routes), "route", "routes")}
	if len(cfg.Agents) > 0 {
		parts = append(parts, count(len(cfg.Agents), "agent", "agents"))
	}
	right := "is right"
	if in.refusal() != nil {
		right = "is well written, and would hardly be served on this machine"
	}
	c.print("%s %s: %s\n", cfg.File, right, strings.Join(parts, ", "))
	if len(cfg.People) == 0 {
		fmt.Fprint(c.Out, nobodyNamed)
	}
}

// nobodyNamed explains a configuration without people.
const nobodyNamed = `It names nobody, so the operator is asked: the account that runs the daemon. To name people, write for each

  people:
    - name: fay       # on cards and in commands
      user: fay       # the account that they have on this machine
  routes:
    - ask: [fay]      # put everything to them
`
