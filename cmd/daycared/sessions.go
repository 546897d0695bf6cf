package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) agentsCommand() *cobra.Command {
	l := listing{}
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "List the agents of our own that are at work, and what they wait for",
		Long: "List the agents of our own that are at work: whose they are, how they stand, what they wait for, the tokens of their\n" +
			"model and what those cost, and since when.",
		Example: "  daycared agents\n" +
			"  daycared agents --json",
		Args: arguments(cobra.NoArgs),
		RunE: c.atDesk(func(cmd *cobra.Command, _ []string, client *admin.Client) error {
			list, err := pages(func(after permissions.ID) ([]wire.Session, error) {
				return client.Sessions(cmd.Context(), false, after, 0)
			}, func(s wire.Session) permissions.ID { return s.ID })
			if err != nil {
				return err
			}
			zone := here(cmd.Context(), client).Location
			from, err := l.begin(zone)
			if err != nil {
				return err
			}
			list = newest(list, from, l.limit, func(s wire.Session) time.Time {
				if s.Changed == nil {
					return time.Time{}
				}
				return *s.Changed
			})
			if l.asJSON {
				return c.json(append([]wire.Session{}, list...))
			}
			if len(list) == 0 {
				c.say("no agent of yours has a session")
				return nil
			}
			table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "AGENT\tPERSON\tSTATUS\tWAITING ON\tTOKENS\tCOST\tSINCE")
			for _, s := range list {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", card.Visible(s.Agent), card.Visible(s.Person), s.Status,
					waitingOn(s), s.Tokens, cost(s.Cost), since(s, zone))
			}
			return table.Flush()
		}),
	}
	l.flags(cmd, "print a JSON array")
	return cmd
}

// waitingOn is in a few words what a session waits for.
func waitingOn(s wire.Session) string {
	w := s.WaitingOn
	if w == nil {
		return "-"
	}
	var words []string
	if w.Kind != nil {
		words = append(words, string(*w.Kind))
	}
	if w.Tool != nil {
		words = append(words, card.Visible(*w.Tool))
	}
	return strings.Join(append(words, string(w.Request)), " ")
}

// cost is an amount in millionths, in the currency of the configured prices.
func cost(millionths int64) string {
	if millionths == 0 {
		return "-"
	}
	return fmt.Sprintf("%d.%04d", millionths/1_000_000, millionths%1_000_000/100)
}

// since is when a session was changed last.
func since(s wire.Session, zone *time.Location) string {
	if s.Changed == nil {
		return "-"
	}
	return when(*s.Changed, zone)
}
