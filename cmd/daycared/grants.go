package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) grantsCommand() *cobra.Command {
	l := listing{}
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "List what is granted for longer than once",
		Long: "List what is granted for longer than once, oldest first: the grant's id, the code of the request that it comes from,\n" +
			"what it covers, for whom, until when, how often it was used, and who gave it. daycared revoke takes one back.",
		Example: "  daycared grants\n" +
			"  daycared grants --since 7d --json",
		Args: arguments(cobra.NoArgs),
		RunE: c.atDesk(func(cmd *cobra.Command, _ []string, client *admin.Client) error {
			me, err := client.WhoAmI(cmd.Context())
			if err != nil {
				return err
			}
			since, err := l.begin(me.Location())
			if err != nil {
				return err
			}
			list, err := client.Grants(cmd.Context())
			if err != nil {
				return err
			}
			list = newest(list, since, l.limit, func(g permissions.Grant) time.Time { return g.CreatedAt })
			if me.StoppedBy != nil && len(list) > 0 {
				c.say("everything is stopped by %s: these grants are suspended until: daycared resume", card.Visible(*me.StoppedBy))
			}
			if l.asJSON {
				views := make([]wire.Grant, len(list))
				for i, g := range list {
					views[i] = wire.FromGrant(g)
				}
				return c.json(views)
			}
			if len(list) == 0 {
				c.say("nothing is granted for longer than once")
			}
			table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
			for _, g := range list {
				s, _ := client.Show(cmd.Context(), string(g.Request)) // one that is no longer kept has no code
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\tused %d\tby %s%s\n", g.ID, dash(s.Code), covers(g), card.Visible(g.Caller),
					lasts(g, me.Location()), g.Used, card.Visible(g.By), sinceRestored(!g.SuspendedAt.IsZero()))
			}
			return table.Flush()
		}),
	}
	l.flags(cmd, "print a JSON array")
	return cmd
}

func (c *CLI) revokeCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Take back a grant, or an approval that was not used yet",
		Example: "  daycared revoke 01JD3XKQ2N8Z5T7W9Y1B3C5D7F\n" +
			"  daycared revoke K7F3Q --json",
		Long: "Take back a grant by its id, and say what ran under it; or an approval that was not used yet, by the id or the\n" +
			"code of its request, and with it the grants that it left behind.",
		Args: arguments(cobra.ExactArgs(1), "the id of a grant, or the id or the code of a request"),
		RunE: c.atDesk(func(cmd *cobra.Command, args []string, client *admin.Client) error {
			if len(args[0]) != permissions.CodeLength { // a grant has no code
				took, err := client.Revoke(cmd.Context(), permissions.ID(args[0]))
				if !isUnknown(err) {
					if err == nil {
						err = c.tookBack(took, here(cmd.Context(), client), asJSON)
					}
					return err
				}
			}
			s, err := client.Void(cmd.Context(), args[0])
			if isUnknown(err) {
				return nearRequest(cmd.Context(), client, args[0], unknown("There is no grant and no request %s.", card.Visible(args[0])))
			}
			if isCode(err, permissions.CodeNoUse) && !asJSON {
				return c.usedAlready(cmd.Context(), client, args[0], err)
			}
			if err != nil {
				return err
			}
			return c.settled(cmd.Context(), client, s, asJSON)
		}),
	}
	objectFlag(cmd, &asJSON)
	return cmd
}

// usedAlready says which grants stand of an approval that cannot be taken back as one, and how they can.
func (c *CLI) usedAlready(ctx context.Context, client *admin.Client, name string, refused error) error {
	s, err := client.Show(ctx, name)
	if err != nil {
		return refused
	}
	list, err := client.Grants(ctx)
	if err != nil {
		return refused
	}
	list = slices.DeleteFunc(list, func(g permissions.Grant) bool { return g.Request != s.Request.ID })
	if len(list) == 0 {
		return refused
	}
	for _, g := range list {
		c.say("it was used; what it granted stands: daycared revoke %s", g.ID)
	}
	return exitCode(permissions.ExitOther)
}

// tookBack tells of a grant that is no more, and of what ran under it.
func (c *CLI) tookBack(took permissions.Revoked, o card.Options, asJSON bool) error {
	if asJSON {
		ran := make([]wire.Request, len(took.Ran))
		for i, r := range took.Ran {
			ran[i] = wire.From(permissions.Standing{Request: r}, true)
		}
		return c.json(map[string]any{"grant": wire.FromGrant(took.Grant), "ran": ran})
	}
	for _, line := range card.Revoked(took.Grant, took.Ran, o) {
		fmt.Fprintln(c.Out, line)
	}
	return nil
}

// covers is what a grant covers, in words.
func covers(g permissions.Grant) string {
	words := card.Visible(permissions.DescribeTags(g.Tags))
	switch {
	case g.Tool == permissions.AllTools:
		words = "all gated tools except high risk"
	case g.Call != (permissions.Digest{}):
		words = "this exact call of " + card.Visible(g.Tool) + " (" + g.Call.String()[:len("sha256:")+8] + "…)"
	case g.Tool != "":
		words = "tool " + card.Visible(g.Tool)
	}
	if g.Session != "" {
		words += ", session " + card.Visible(g.Session)
	}
	return words
}

// lasts is how long a grant lasts, in words.
func lasts(g permissions.Grant, zone *time.Location) string {
	switch {
	case !g.Until.IsZero():
		return "until " + when(g.Until, zone)
	case g.Session != "":
		return "for the session"
	}
	return "until revoked"
}

// isUnknown tells whether the daemon knows nothing of that name, or nothing that is this person's.
func isUnknown(err error) bool { return isCode(err, permissions.CodeUnknown) }

func isCode(err error, code permissions.Code) bool {
	var refusal *permissions.Refusal
	return errors.As(err, &refusal) && refusal.Code == code
}
