package main

import (
	"fmt"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/cmd/daycared/config"
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
	cmd.AddCommand(&cobra.Command{
		Use:   "check [FILE]",
		Short: "Say what is wrong in the configuration, line by line, and what would be right",
		Long: "Say what is wrong in the configuration, line by line, and what would be right. FILE is looked at instead of the\n" +
			"configuration that is in force. Exit code 1 when something is wrong.",
		Example: "  daycared config check\n" +
			"  daycared config check ./config.yaml",
		Args: arguments(cobra.MaximumNArgs(1), "one file at most"),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				c.configFlag = args[0]
			}
			cfg, err := c.check()
			if err != nil {
				return err
			}
			if _, err := settings(cfg, cfg.Paths(c.UID, c.Environ), c.UID); err != nil {
				return err
			}
			for _, w := range cfg.Warnings {
				c.say("%s", w)
			}
			if cfg.File == "" {
				fmt.Fprintln(c.Out, "no configuration file: the defaults are in force")
				return nil
			}
			parts := []string{count(len(cfg.People), "person", "people"), count(len(cfg.Routes), "route", "routes")}
			if len(cfg.Agents) > 0 {
				parts = append(parts, count(len(cfg.Agents), "agent", "agents"))
			}
			fmt.Fprintf(c.Out, "%s is right: %s\n", cfg.File, strings.Join(parts, ", "))
			if len(cfg.People) == 0 {
				fmt.Fprint(c.Out, nobodyNamed)
			}
			return nil
		},
	}, c.configShowCommand())
	return cmd
}

func (c *CLI) configShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show [KEY]",
		Short: "Show what is in force, and for every line from where; with KEY, that value alone",
		Long: "Show what is in force as a configuration, and for every line from where it came. With a KEY, such as approvals.timeout,\n" +
			"print its value alone. Of data_dir, api.agent_socket and api.admin_socket that is the path in use, whether it was\n" +
			"configured or not: the sockets are those that the commands of this account connect to.",
		Example: "  daycared config show\n" +
			"  curl --unix-socket \"$(daycared config show api.agent_socket)\" http://localhost/healthz",
		Args: arguments(cobra.MaximumNArgs(1), "one key at most"),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return c.showKey(args[0])
			}
			cfg, _, err := c.load()
			if err != nil {
				return err
			}
			return cfg.Show(c.Out)
		},
	}
}

// nobodyNamed is what a configuration without people means.
const nobodyNamed = `It names nobody, so the operator is asked: the account that runs the daemon. To name people, write for each

  people:
    - name: fay       # on cards and in commands
      user: fay       # the account that they have on this machine
  routes:
    - ask: [fay]      # put everything to them
`

// showKey prints what is in force for one key.
func (c *CLI) showKey(key string) error {
	paths, err := c.places()
	if err != nil {
		return err
	}
	if path, is := map[string]string{
		"data_dir": paths.DataDir, "api.agent_socket": paths.AgentSocket, "api.admin_socket": paths.AdminSocket,
	}[key]; is {
		fmt.Fprintln(c.Out, path)
		return nil
	}
	cfg, _, err := c.load()
	if err != nil {
		return err
	}
	value, err := cfg.Value(key)
	if err != nil {
		return usage("%s", err)
	}
	fmt.Fprintln(c.Out, value)
	return nil
}

// check is load that also asks which accounts the machine knows.
func (c *CLI) check() (*config.Config, error) {
	path, _ := config.Find(c.configFlag, c.Environ, exists)
	return config.Check(path, c.Environ, config.Accounts{
		User:  func(name string) bool { _, err := user.Lookup(name); return err == nil },
		Group: func(name string) bool { _, err := user.LookupGroup(name); return err == nil },
	})
}

// count is a number of things, in words.
func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
