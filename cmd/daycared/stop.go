package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
)

func (c *CLI) stopAllCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "stop-all",
		Short:   "Cancel everything that waits, suspend every grant, and refuse what is new until resume",
		Long:    "The kill switch: cancel everything that waits, suspend every grant, and refuse what is new until daycared resume.",
		Example: "  daycared stop-all",
		Args:    arguments(cobra.NoArgs),
		RunE: c.atDesk(func(cmd *cobra.Command, _ []string, client *admin.Client) error {
			n, err := client.StopAll(cmd.Context())
			if err != nil {
				return err
			}
			c.say("nothing is asked and nothing granted holds until: daycared resume")
			if asJSON {
				return c.json(map[string]any{"stopped": true, "cancelled": n})
			}
			_, err = fmt.Fprintf(c.Out, "stopped, %d cancelled\n", n)
			return err
		}),
	}
	objectFlag(cmd, &asJSON)
	return cmd
}

func (c *CLI) resumeCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "resume",
		Short:   "End what stop-all began; for the operator and for whoever stopped",
		Long:    "End what stop-all began: grants hold again, and agents may ask. For the operator and for whoever stopped.",
		Example: "  daycared resume",
		Args:    arguments(cobra.NoArgs),
		RunE: c.atDesk(func(cmd *cobra.Command, _ []string, client *admin.Client) error {
			me, err := client.WhoAmI(cmd.Context())
			if err != nil {
				return err
			}
			if err := client.Resume(cmd.Context()); err != nil {
				return err
			}
			if me.StoppedBy == nil {
				c.say("nothing was stopped")
			}
			switch {
			case asJSON:
				return c.json(map[string]bool{"resumed": me.StoppedBy != nil})
			case me.StoppedBy != nil:
				fmt.Fprintln(c.Out, "resumed")
			}
			return nil
		}),
	}
	objectFlag(cmd, &asJSON)
	return cmd
}

// stopNote says that everything is stopped, and by whom; it is empty while nothing is.
func stopNote(me admin.Me) string {
	if me.StoppedBy == nil {
		return ""
	}
	return "everything is stopped by " + card.Visible(*me.StoppedBy) + ", and nothing is asked"
}
