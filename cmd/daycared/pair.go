package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) pairCommand() *cobra.Command {
	via, sure := connectors.Kinds[0].Name, ""
	cmd := &cobra.Command{
		Use:  "pair NAME",
		Args: arguments(cobra.ExactArgs(1), "the name of a person in the configuration"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if sure == "" && !terminal.IsTerminal(c.In) {
				return usage("pair asks you whether it is the right account; without a terminal, name it: --yes-if-id ID")
			}
			client, err := c.adminClient()
			if err != nil {
				return err
			}
			defer client.Close()
			return c.pair(cmd.Context(), client, args[0], via, sure)
		},
	}
	cmd.Flags().StringVar(&via, "via", via, "the channel that the account is of")
	cmd.Flags().StringVar(&sure, "yes-if-id", "", "say yes to the account with this id, and no to every other")
	return cmd
}

func (c *CLI) pair(ctx context.Context, client *admin.Client, name, via, sure string) error {
	i, err := client.Invite(ctx, name, via)
	if err != nil {
		return err
	}
	talk := dialogue{in: c.In, out: c.Err}
	if terminal.IsTerminal(c.In) {
		talk.say("Within ten minutes, %s %s:", spelled(name), i.How)
		talk.link(i.Link)
	} else {
		fmt.Fprintln(c.Out, i.Link)
	}
	c.say("waiting until %s; Ctrl-C takes the link back", when(i.Until, time.Local))
	yes := false
	guest, err := client.Guest(ctx, i.Code)
	if err == nil {
		yes, err = talk.knows(ctx, guest, name, sure)
	}
	if err != nil || !yes {
		last, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		_ = client.Dismiss(last, i.Code) // it would expire soon anyway
	}
	switch {
	case ctx.Err() != nil:
		return &problem{Text: "left before the end; nobody was paired", Code: codeEnded, Exit: permissions.ExitCancelled}
	case err != nil:
		return err
	case !yes:
		c.say("nobody was paired")
		return exitCode(permissions.ExitNo)
	}
	p, err := client.Pair(ctx, i.Code, guest.Address)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%s answers via %s with %s from now on\n", spelled(p.Person), p.Via, spelled(p.Address))
	if p.Was != nil {
		c.say("the account %s, which did before, has been told", *p.Was)
	}
	return nil
}

// knows shows who used a pairing link, and asks whether that is the right person; sure is the id of a confirmed one.
func (d dialogue) knows(ctx context.Context, g admin.Guest, name, sure string) (bool, error) {
	d.say("Somebody came:")
	d.say("  id         %s", spelled(g.Address))
	d.say("  name       %s (as the account calls itself)", spelled(g.Name))
	d.say("  language   %s", spelled(cmp.Or(g.Language, "not told")))
	if sure != "" {
		return g.Address == sure, nil
	}
	return d.yes(ctx, "Is this "+spelled(name)+"?", false)
}

func (c *CLI) unpairCommand() *cobra.Command {
	via := connectors.Kinds[0].Name
	cmd := &cobra.Command{
		Use:  "unpair NAME",
		Args: arguments(cobra.ExactArgs(1), "the name of a person"),
		RunE: c.withAdmin(func(cmd *cobra.Command, args []string, client *admin.Client) error {
			p, err := client.Unpair(cmd.Context(), args[0], via)
			if err != nil {
				return err
			}
			if c.asJSON {
				return c.json(p)
			}
			fmt.Fprintf(c.Out, "%s no longer answers via %s with %s\n", spelled(p.Person), p.Via, spelled(p.Address))
			return nil
		}),
	}
	cmd.Flags().StringVar(&via, "via", via, "the channel that the account is of")
	return cmd
}
