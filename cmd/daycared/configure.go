package main

import (
	"fmt"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/internal/wire"
)

func (c *CLI) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check the configuration, or show what is in force and from where",
		Long: "Check the configuration, or show what is in force and from where. It is looked for in --config, DAYCARED_CONFIG,\n" +
			"~/.config/daycared/config.yaml and /etc/daycared/config.yaml.",
		Example: "  daycared config check\n" +
			"  daycared config show",
		Args: arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return usage("say config check or config show") },
	}
	cmd.AddCommand(c.checkCommand(), c.configShowCommand())
	return cmd
}

func (c *CLI) configShowCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "show [KEY]",
		Short: "Show what is in force, and for every line from where; with KEY, that value alone",
		Long: "Show what is in force as a configuration, and for every line from where it came. With a KEY, such as approvals.timeout,\n" +
			"print its value alone. Of data_dir, api.agent_socket and api.admin_socket that is the path in use, whether it was\n" +
			"configured or not: the sockets are those that the commands of this account connect to.",
		Example: "  daycared config show\n" +
			"  curl --unix-socket \"$(daycared config show api.agent_socket)\" http://localhost/healthz\n" +
			"  daycared config show --json | jq '.settings[] | select(.from != \"default\")'",
		Args: arguments(cobra.MaximumNArgs(1), "one key at most"),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return c.showKey(args[0], asJSON)
			}
			cfg, _, err := c.load()
			if err != nil {
				return err
			}
			if asJSON {
				return c.json(map[string]any{"file": wire.OrNull(absolute(cfg.File)), "settings": cfg.Settings()})
			}
			return cfg.Show(c.Out)
		},
	}
	objectFlag(cmd, &asJSON)
	return cmd
}

// showKey prints the effective value of one key.
func (c *CLI) showKey(key string, asJSON bool) error {
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
	if !asJSON {
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

// count formats a number of things.
func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
