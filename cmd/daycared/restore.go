package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/engine/store"
)

func (c *CLI) restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in place of the store, while the daemon does not run",
		Long: "Put a backup in place of the store, while the daemon does not run. FILE is verified first: its pages, its schema\n" +
			"and its audit. The store that is replaced is kept beside it, under a name with the time. Nothing old opens anything\n" +
			"then: codes on cards are others, and grants, tokens and pairings are suspended until daycared reinstate confirms them.",
		Example: "  daycared stop\n  daycared restore /var/lib/daycared/backups/daycared-20261122T173000Z.db\n  daycared serve",
		Args:    arguments(cobra.ExactArgs(1), "the backup to put in place of the store"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, paths, err := c.load()
			if err != nil {
				return err
			}
			from, err := openFile(args[0])
			if err != nil {
				return usage("restore the store from %s: %s", args[0], err)
			}
			_ = from.Close() // before the store opens it: closing it later would end the store's locks
			return c.restore(cmd.Context(), paths.DataDir, args[0])
		},
	}
}

func (c *CLI) restore(ctx context.Context, dataDir, from string) error {
	dir, err := openDataDir(dataDir, c.UID, "")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // it ends with the process, too
	r, err := store.Restore(ctx, store.Options{
		Path: filepath.Join(dir.path, storeName), Now: time.Now,
		Log: slog.New(slog.NewTextHandler(c.Err, &slog.HandlerOptions{Level: slog.LevelError})), // all else is printed here
	}, from)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%s: %s, %s, verified and restored\n",
		r.Path, count(r.Requests, "request", "requests"), count(r.Grants, "grant", "grants"))
	if r.BackTo == "" {
		fmt.Fprint(c.Out, "audit: back to its beginning, the copy has no entry")
	} else {
		fmt.Fprintf(c.Out, "audit: back to entry %s", r.BackTo)
	}
	switch {
	case r.Was != "":
		fmt.Fprintf(c.Out, ", from %s\n", r.Was)
	case r.Kept != "":
		fmt.Fprintf(c.Out, "; how far the replaced store had come cannot be read\n")
	default:
		fmt.Fprintln(c.Out)
	}
	if r.Left != nil {
		c.say("what was taken back since the backup is not known: %s", r.Left)
	}
	if r.Kept != "" {
		fmt.Fprintf(c.Out, "the replaced store is kept as %s\n", r.Kept)
	}
	fmt.Fprintf(c.Out, "suspended: %s, %s, %s\n", count(len(r.Now.Grants), "grant", "grants"),
		count(len(r.Now.Tokens), "token", "tokens"), count(len(r.Now.Pairings), "pairing", "pairings"))
	fmt.Fprintln(c.Out, "start the daemon again, then: daycared suspended, and daycared reinstate ID…|--all")
	return nil
}

func (c *CLI) suspendedCommand() *cobra.Command {
	l := listing{}
	cmd := &cobra.Command{
		Use:   "suspended",
		Short: "List the grants, tokens and pairings that a restore suspended",
		Long: "List the grants, tokens and pairings that open nothing since the store was restored: some may have been taken back\n" +
			"after the backup was made. Confirm the right ones with daycared reinstate, and revoke the others.",
		Example: "  daycared suspended\n  daycared suspended --json --limit 20",
		Args:    arguments(cobra.NoArgs),
		RunE: c.atDesk(func(cmd *cobra.Command, _ []string, client *admin.Client) error {
			zone := here(cmd.Context(), client).Location
			since, err := l.begin(zone)
			if err != nil {
				return err
			}
			list, err := client.Suspended(cmd.Context())
			if err != nil {
				return err
			}
			list = newest(list, since, l.limit, func(s admin.Suspended) time.Time { return s.SuspendedAt })
			if l.asJSON {
				return c.json(slices.Concat([]admin.Suspended{}, list)) // [] where there is none
			}
			if len(list) == 0 {
				c.say("nothing is suspended")
			}
			return c.printSuspended(list, zone)
		}),
	}
	l.flags(cmd, "print a JSON array")
	return cmd
}

func (c *CLI) printSuspended(list []admin.Suspended, zone *time.Location) error {
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	for _, s := range list {
		opens, by, last := "", "", ""
		switch {
		case s.Grant != nil:
			g, err := s.Grant.Permissions()
			if err != nil {
				return err
			}
			opens = covers(g) + " for " + card.Visible(g.Caller) + ", " + lasts(g, zone)
			by, last = fmt.Sprintf("by %s, %s", card.Visible(g.By), when(g.CreatedAt, zone)), fmt.Sprintf("used %d", g.Used)
		case s.Token != nil:
			opens, by = "agent "+s.Token.Name+", "+valid(*s.Token), "made "+when(s.Token.CreatedAt, zone)
			last = used(*s.Token)
		case s.Pairing != nil:
			opens = fmt.Sprintf("%s answers with %s", card.Visible(s.Pairing.Person), card.Visible(s.Pairing.Address))
			by = "paired " + when(s.Pairing.PairedAt, zone)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", s.Kind, card.Visible(s.ID), opens, by, last)
	}
	return table.Flush()
}

func (c *CLI) reinstateCommand() *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:   "reinstate ID…|--all",
		Short: "Confirm what a restore suspended, so that it opens again what it opened",
		Long: "Confirm what a restore suspended, so that it opens again what it opened: grants and tokens by their ids, pairings as\n" +
			"NAME/CHANNEL, as daycared suspended lists them. Only the operator can, at this machine.",
		Example: "  daycared reinstate fay/telegram 01JD2X3W8Q7F6T5R4E3W2Q1A0Z\n  daycared reinstate --all",
		RunE: c.atDesk(func(cmd *cobra.Command, args []string, client *admin.Client) error {
			if all == (len(args) > 0) {
				return usage("name what to reinstate, as daycared suspended lists it, or say --all")
			}
			list, err := client.Reinstate(cmd.Context(), args)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				c.say("nothing is suspended")
			}
			for _, s := range list {
				fmt.Fprintf(c.Out, "reinstated %s %s\n", s.Kind, card.Visible(s.ID))
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "everything that is suspended")
	return cmd
}

// sinceRestored is what lists of what opens something add to what is suspended.
func sinceRestored(suspended bool) string {
	if !suspended {
		return ""
	}
	return "\tsuspended"
}

// verbs are words that somebody takes for commands below backup, and what they are called.
var verbs = map[string]string{
	"restore": "daycared restore FILE", "verify": "daycared backup, which verifies what it writes, or daycared audit verify",
	"list": "ls on the folder backups of the data directory", "create": "daycared backup", "make": "daycared backup",
	"now": "daycared backup", "store": "daycared backup", "delete": "rm FILE", "remove": "rm FILE", "show": "daycared pending",
	"help": "daycared backup --help",
}

// checkBackupName refuses a word that is no file's name to whoever typed it.
func checkBackupName(name string) error {
	if strings.ContainsAny(name, `/.`) {
		return nil
	}
	if meant, known := verbs[strings.ToLower(name)]; known {
		return usage("%q would be a file here, which backup writes; you may mean: %s. For a file of that name say ./%s", name, meant, name)
	}
	return nil
}
