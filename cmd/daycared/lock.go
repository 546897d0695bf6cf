package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/conversation"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) lockCommand() *cobra.Command {
	since := ""
	cmd := c.adminCommand("lock [NAME]", arguments(cobra.MaximumNArgs(1), "the name of a person"),
		func(cmd *cobra.Command, args []string, client *admin.Client) error {
			if len(args) == 1 && args[0] == "" {
				return usage("lock needs the name of a person, not an empty one")
			}
			if len(args) == 0 {
				s, err := client.Status(cmd.Context())
				if err == nil && c.asJSON {
					return c.json(s.Locked)
				}
				for _, l := range s.Locked {
					fmt.Fprintf(c.Out, "%s is locked %s\n", spelled(l.Person), lockedSince(l))
				}
				return err
			}
			me, err := client.WhoAmI(cmd.Context())
			if err != nil {
				return err
			}
			from := time.Time{}
			if cmd.Flags().Changed("since") {
				if from, err = parseSince(since, me.Now, me.Location()); err != nil {
					return err
				}
			}
			l, err := client.Lock(cmd.Context(), args[0], from)
			switch {
			case err != nil:
				return err
			case c.asJSON:
				err = c.json(l)
			default:
				err = c.printLock(l, from, at(me))
			}
			if err == nil && from.After(me.Now) {
				return fmt.Errorf("%s is locked, but nothing was taken back: --since %s is in the future",
					spelled(l.Person), stamp(from, me.Location()))
			}
			return err
		})
	cmd.Flags().StringVar(&since, "since", "", "take back what the person gave since then: 2h, 7d, 14:00, 2026-11-20 or 2026-11-20T14:00")
	return cmd
}

// printLock prints a lock, the approvals given since a time (zero: none) that it revoked, and what had run.
func (c *CLI) printLock(l admin.Lock, since time.Time, o card.Options) error {
	name, already := spelled(l.Person), ""
	if l.Already {
		already = " already, " + lockedSince(l)
	}
	fmt.Fprintf(c.Out, "%s is locked%s: nothing from %s's accounts counts until: daycared unlock %s\n", name, already, name, name)
	if !since.IsZero() && !since.After(o.Now) {
		what := "since %s:\n"
		if len(l.Voided)+len(l.Used)+len(l.Revoked) == 0 {
			what = "nothing was given since %s\n"
		}
		fmt.Fprintf(c.Out, what, stamp(since, o.Location))
	}
	var took []permissions.Revoked
	for _, w := range l.Revoked {
		revoked, err := w.Revoked()
		if err != nil {
			return err
		}
		took = append(took, revoked)
	}
	for i, w := range slices.Concat(l.Voided, l.Used) {
		r, err := w.Permissions()
		if err != nil {
			return err
		}
		what := "used since"
		switch {
		case i < len(l.Voided):
			what = "taken back"
		case r.Kind == permissions.KindPermission && r.Scope == permissions.Once && r.Caller.IsOurs():
			what = "used since, and held until its run ends"
		case slices.ContainsFunc(took, func(g permissions.Revoked) bool { return g.Grant.Request == r.ID }):
			what = "used since for what was asked, and the grant that it left is taken back below"
		}
		fmt.Fprintf(c.Out, "%s: %s wants %s\n", what, spelled(r.AgentLabel()), oneRow(card.Wants(r)))
	}
	for _, revoked := range took {
		if err := c.printRevoked(revoked, o); err != nil {
			return err
		}
	}
	return nil
}

// lockedSince says when and by whom a person was locked, and who agreed to unlock them.
func lockedSince(l admin.Lock) string {
	text := fmt.Sprintf("since %s by %s (%s)", stamp(l.LockedAt, time.Local), spelled(l.LockedBy), spelled(l.Via))
	if len(l.Holds) > 0 {
		text += "; the configuration has these accounts under " + spelled(strings.Join(l.Holds, ", ")) + " now"
	}
	if l.Unsaved {
		text += "; not saved: a restart forgets it"
	}
	if len(l.Unlocking) > 0 {
		text += "; " + spelled(strings.Join(l.Unlocking, ", ")) + " would unlock"
	}
	return text
}

func (c *CLI) unlockCommand() *cobra.Command {
	return c.adminCommand("unlock NAME", arguments(cobra.ExactArgs(1), "the name of a person who is locked"),
		func(cmd *cobra.Command, args []string, client *admin.Client) error {
			if args[0] == "" {
				return usage("unlock needs the name of a person, not an empty one")
			}
			l, err := client.Unlock(cmd.Context(), args[0])
			switch {
			case err != nil:
				return err
			case c.asJSON:
				return c.json(l)
			case l.Locked:
				c.say("noted; %s stays locked until one more person, or the operator, says the same", spelled(l.Person))
			default:
				fmt.Fprintf(c.Out, "%s is unlocked\n", spelled(l.Person))
			}
			return nil
		})
}

func (c *CLI) awayCommand() *cobra.Command {
	return c.adminCommand("away [UNTIL [to NAME]]", arguments(cobra.ArbitraryArgs, "until when, and who is asked instead"),
		func(cmd *cobra.Command, args []string, client *admin.Client) error {
			me, err := client.WhoAmI(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) > 0 {
				until, to, err := conversation.ParseAway(strings.Join(args, " "), me.Now, me.Location())
				if err != nil {
					return usage("%s", permissions.AsRefusal(err).Text)
				}
				if err := client.SetAway(cmd.Context(), connectors.Identity{}, until, to); err != nil {
					return err
				}
				if me, err = client.WhoAmI(cmd.Context()); err != nil {
					return err
				}
			}
			if me.Away == nil {
				return c.result(nil, "%s is not away\n", spelled(me.Name))
			}
			return c.result(me.Away, "%s; end it with: daycared away off\n", awayUntil(*me.Away, me.Location()))
		})
}

// awayUntil says until when somebody is away, and who is asked instead.
func awayUntil(a admin.Absence, zone *time.Location) string {
	text := spelled(a.Person) + " is away until " + when(a.Until, zone)
	if a.To != nil {
		text += ", and " + spelled(*a.To) + " is asked instead where a route allows it"
	}
	return text
}
