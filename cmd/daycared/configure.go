package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (c *CLI) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check the configuration, or show what is in force and from where",
		Args:  arguments(cobra.NoArgs),
		RunE:  func(*cobra.Command, []string) error { return usage("say config check or config show") },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "check [FILE]",
		Short: "Say what is wrong in the configuration, line by line, and what would be right",
		Args:  arguments(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				c.configFlag = args[0]
			}
			cfg, paths, err := c.load()
			if err != nil {
				return err
			}
			if _, err := settings(cfg, paths, c.UID); err != nil {
				return err
			}
			for _, w := range cfg.Warnings {
				c.say("%s", w)
			}
			if cfg.File == "" {
				fmt.Fprintln(c.Out, "no configuration file: the defaults are in force")
				return nil
			}
			fmt.Fprintf(c.Out, "%s is right: %d people, %d routes\n", cfg.File, len(cfg.People), len(cfg.Routes))
			return nil
		},
	}, &cobra.Command{
		Use:   "show",
		Short: "Show what is in force, and for every line from where",
		Args:  arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			cfg, _, err := c.load()
			if err != nil {
				return err
			}
			return cfg.Show(c.Out)
		},
	})
	return cmd
}
