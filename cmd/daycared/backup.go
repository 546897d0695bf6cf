package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) backupCommand() *cobra.Command {
	return newCommand("backup [FILE]", arguments(cobra.MaximumNArgs(1)), func(cmd *cobra.Command, args []string) error {
		_, paths, err := c.load()
		if err != nil {
			return err
		}
		to := ""
		if len(args) == 1 {
			to = args[0]
			if err := checkBackupName(to); err != nil {
				return err
			}
		}
		return c.backup(cmd.Context(), paths, to)
	})
}

// storeCopy is a verified copy of a store in JSON.
type storeCopy struct {
	File     string       `json:"file"`
	Bytes    int64        `json:"bytes"`
	Requests int          `json:"requests"`
	Grants   int          `json:"grants"`
	Chains   []soundChain `json:"chains"`
	// Unchecked lists what could not be checked without the audit key.
	Unchecked []string `json:"unchecked"`
}

func copyOf(s store.Summary) storeCopy {
	return storeCopy{s.Path, s.Bytes, s.Requests, s.Grants, wire.Map(s.Chains, chainOf), append([]string{}, s.Unchecked...)}
}

// backup copies the store of a data directory to the given file, or one named after the time, and prints a summary of the copy.
func (c *CLI) backup(ctx context.Context, paths config.Paths, to string) error {
	if paths.Database != "" {
		return errors.New("the store is in PostgreSQL: back it up with the tools of PostgreSQL, as in: pg_dump --format=custom DATABASE " +
			">daycared.dump; and keep a copy of the audit key, " + paths.AuditKey + ", elsewhere")
	}
	dataDir, from := paths.DataDir, filepath.Join(paths.DataDir, storeName)
	if to == "" {
		if _, err := os.Stat(from); err != nil { // do not create a folder for nothing
			return fmt.Errorf("back up the store: %w", err)
		}
		if err := owns(dataDir, c.UID); err != nil {
			return fmt.Errorf("%w; or name a file elsewhere", err)
		}
		folder := filepath.Join(dataDir, "backups")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("make the folder for backups (or name a file): %w", err)
		}
		to = filepath.Join(folder, "daycared-"+time.Now().UTC().Format("20060102T150405Z")+".db")
	}
	o := storeOptions(paths, nil)
	tell, end := c.progressBar()
	o.Progress = tell
	sum, err := store.Backup(ctx, o, to)
	if end(); err != nil {
		return err
	}
	unchecked := error(nil)
	if len(sum.Unchecked) > 0 {
		unchecked = fmt.Errorf("the copy is complete, but not checked: %s", strings.Join(sum.Unchecked, "; "))
	}
	if c.asJSON {
		return errors.Join(c.json(copyOf(sum)), unchecked)
	}
	c.print("%s: %d bytes, %s, %s, verified\n", sum.Path, sum.Bytes,
		count(sum.Requests, "request", "requests"), count(sum.Grants, "grant", "grants"))
	for _, e := range sum.Chains {
		c.print("chain %s: %s, head %d:%s\n", e.Chain, entries(e.First, e.Seq, e.Entries), e.Seq, e.Hash)
	}
	return unchecked
}

func (c *CLI) restoreCommand() *cobra.Command {
	key := ""
	cmd := newCommand("restore FILE", arguments(cobra.ExactArgs(1), "the backup to put in place of the store"),
		func(cmd *cobra.Command, args []string) error {
			_, paths, err := c.load()
			if err != nil {
				return err
			}
			from, err := openFile(args[0])
			if err != nil {
				return usage("restore the store from %s: %s", args[0], err)
			}
			_ = from.Close() // before the store opens it: closing it later would release the store's locks
			return c.restore(cmd.Context(), paths, args[0], key)
		})
	cmd.Flags().StringVar(&key, "audit-key", "", "the `file` of the audit key that FILE was sealed with, where that is another")
	return cmd
}

// restored is the result of a restore in JSON.
type restored struct {
	storeCopy
	BackTo     *string `json:"back_to"`     // SEQ:HASH of the newest audit entry in the copy
	Was        *string `json:"was"`         // the same of the replaced store; null: there was none, or it is unknown
	Kept       *string `json:"kept"`        // the path of the replaced store
	NotCarried *string `json:"not_carried"` // why revocations since the backup are unknown
	Suspended  struct {
		Grants   int `json:"grants"`
		Tokens   int `json:"tokens"`
		Pairings int `json:"pairings"`
	} `json:"suspended"`
}

func restoredFrom(r store.Restored) restored {
	told := restored{storeCopy: copyOf(r.Summary), BackTo: wire.OrNull(r.BackTo), Was: wire.OrNull(r.Was), Kept: wire.OrNull(r.Kept)}
	if r.Left != nil {
		told.NotCarried = wire.OrNull(r.Left.Error())
	}
	told.Suspended.Grants, told.Suspended.Tokens, told.Suspended.Pairings = len(r.Now.Grants), len(r.Now.Tokens), len(r.Now.Pairings)
	return told
}

func (c *CLI) restore(ctx context.Context, paths config.Paths, from, key string) error {
	if paths.Database != "" {
		return errors.New("the store is in PostgreSQL: stop every daemon, restore the database with the tools of PostgreSQL, as in: " +
			"pg_restore --clean --dbname=DATABASE daycared.dump; and start daycared again")
	}
	dir, err := openDataDir(paths.DataDir, c.UID, "")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()                                              // it is released when the process ends
	log := slog.NewTextHandler(c.Err, &slog.HandlerOptions{Level: slog.LevelError}) // the rest is printed here
	o := storeOptions(paths, slog.New(log))
	o.CopyKey = key
	tell, end := c.progressBar()
	o.Progress = tell
	r, err := store.Restore(ctx, o, from)
	if end(); err != nil {
		return err
	}
	if c.asJSON {
		return errors.Join(c.json(restoredFrom(r)), notChecked(r.Verified))
	}
	c.print("%s: %s, %s, verified and restored\n",
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
		c.print("the replaced store is kept as %s\n", r.Kept)
	}
	c.printNewLife(r.Now)
	if r.Left != nil && !errors.Is(r.Left, store.ErrPruned) || r.Was == "" {
		c.print("locks made since the backup, if any, are lost: lock again whoever is to be locked\n")
	}
	return notChecked(r.Verified)
}

// printNewLife prints what is suspended after a restore, and what to do.
func (c *CLI) printNewLife(now permissions.Suspended) {
	fmt.Fprintf(c.Out, "suspended: %s, %s, %s\n", count(len(now.Grants), "grant", "grants"),
		count(len(now.Tokens), "token", "tokens"), count(len(now.Pairings), "pairing", "pairings"))
	fmt.Fprintln(c.Out, "start the daemon again, then: daycared suspended, and daycared reinstate ID…|--all")
}

// notChecked is the error of a verification that was incomplete; nil if it was complete.
func notChecked(v store.Verified) error {
	if len(v.Unchecked) == 0 {
		return nil
	}
	return fmt.Errorf("not checked: %s; give the right key with --audit-key FILE", strings.Join(v.Unchecked, "; "))
}

func (c *CLI) suspendedCommand() *cobra.Command {
	return c.adminCommand("suspended", nil, func(cmd *cobra.Command, _ []string, client *admin.Client) error {
		local := here(cmd.Context(), client)
		since, err := c.listing.begin(local)
		if err != nil {
			return err
		}
		list, err := client.Suspended(cmd.Context())
		if err != nil {
			return err
		}
		none := len(list) == 0
		list = newest(list, since, c.listing.limit, func(s admin.Suspended) time.Time { return s.SuspendedAt })
		if c.asJSON {
			return c.json(append([]admin.Suspended{}, list...)) // [] if empty
		}
		if err := c.sayAccounts(cmd.Context(), client, none); err != nil {
			return err
		}
		if len(list) > 0 {
			c.say("if a backup was put back by hand, locks made since, if any, are lost: lock again whoever is to be locked")
		}
		return c.printSuspended(list, local)
	})
}

// sayAccounts says which accounts are suspended for another reason than a restore, or that nothing is suspended, if none is for that.
func (c *CLI) sayAccounts(ctx context.Context, client *admin.Client, none bool) error {
	s, err := client.Status(ctx)
	if err != nil {
		return err
	}
	for _, a := range s.Suspended {
		if !strings.Contains(a.Text, "daycared reinstate") {
			c.say("%s", a.Text)
			none = false
		}
	}
	if none {
		c.say("nothing is suspended")
	}
	return nil
}

func (c *CLI) printSuspended(list []admin.Suspended, local card.Options) error {
	zone := local.Location
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	for _, s := range list {
		opens, by, last := "", "", ""
		switch {
		case s.Grant != nil:
			g, err := s.Grant.Permissions()
			if err != nil {
				return err
			}
			opens = covers(g, permissions.RequestView{}) + " for " + spelled(g.Caller) + ", " + lasts(g, zone)
			by, last = fmt.Sprintf("by %s, %s", spelled(g.By), when(g.CreatedAt, zone)), fmt.Sprintf("used %d", g.Used)
		case s.Token != nil:
			opens, by = "agent "+spelled(s.Token.Name)+", "+valid(*s.Token, local.Now), "made "+when(s.Token.CreatedAt, zone)
			last = used(*s.Token)
		case s.Pairing != nil:
			opens = fmt.Sprintf("%s answers with %s", spelled(s.Pairing.Person), spelled(s.Pairing.Address))
			by = "paired " + when(s.Pairing.PairedAt, zone)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", s.Kind, suspendedName(s), opens, by, last)
	}
	return table.Flush()
}

// suspendedName is what daycared reinstate calls it: the short form of an id, or the name of a pairing.
func suspendedName(s admin.Suspended) string {
	if s.Pairing != nil {
		return spelled(s.ID)
	}
	return permissions.ID(s.ID).Short()
}

func (c *CLI) reinstateCommand() *cobra.Command {
	all := false
	cmd := c.adminCommand("reinstate ID…|--all", cobra.ArbitraryArgs, func(cmd *cobra.Command, args []string, client *admin.Client) error {
		if all == (len(args) > 0) {
			return usage("name what to reinstate, as daycared suspended lists it, or say --all")
		}
		list, err := client.Reinstate(cmd.Context(), args)
		if err != nil {
			return err
		}
		if err := c.sayAccounts(cmd.Context(), client, len(list) == 0); err != nil {
			return err
		}
		if c.asJSON {
			return c.json(map[string]any{"reinstated": append([]admin.Suspended{}, list...)})
		}
		for _, s := range list {
			fmt.Fprintf(c.Out, "reinstated %s %s\n", s.Kind, suspendedName(s))
		}
		return nil
	})
	cmd.Flags().BoolVar(&all, "all", false, "everything that is suspended")
	return cmd
}

// sinceRestored is a note for lists of suspended things.
func sinceRestored(suspended bool) string {
	if !suspended {
		return ""
	}
	return "\tsuspended"
}

// verbs maps words that people mistake for subcommands of backup to the right commands.
var verbs = map[string]string{
	"restore": "daycared restore FILE", "verify": "daycared backup, which verifies what it writes, or daycared audit verify",
	"list": "ls on the folder backups of the data directory", "create": "daycared backup", "make": "daycared backup",
	"now": "daycared backup", "store": "daycared backup", "delete": "rm FILE", "remove": "rm FILE", "show": "daycared pending",
	"help": "daycared backup --help",
}

// checkBackupName rejects such a word as a file name when it was typed.
func checkBackupName(name string) error {
	if strings.ContainsAny(name, `/.`) {
		return nil
	}
	if meant, known := verbs[strings.ToLower(name)]; known {
		return usage("%q would be a file here, which backup writes; you may mean: %s. For a file of that name say ./%s", name, meant, name)
	}
	return nil
}

// migrateCommand brings a PostgreSQL database to the schema of this version.
func (c *CLI) migrateCommand() *cobra.Command {
	dry := false
	cmd := newCommand("migrate", nil, func(cmd *cobra.Command, _ []string) error {
		_, paths, err := c.load()
		if err != nil {
			return err
		}
		if paths.Database == "" {
			return errors.New("the store is in a file, which the next start of the daemon brings to the newest schema")
		}
		m, err := store.MigrateServer(cmd.Context(), storeOptions(paths, nil), dry)
		if err == nil && m.Has == m.Knows {
			c.print("%s: schema %d, which is the newest\n", m.Name, m.Has)
			return nil
		}
		for _, step := range m.Steps {
			how := "safe while older daemons run"
			if slices.Contains(m.Alone, step) {
				how = "every daemon has to stop first"
			}
			c.print("%s: %s\n", step, how)
		}
		if err == nil && !dry {
			c.print("%s: migrated from schema %d to %d\n", m.Name, m.Has, m.Knows)
		}
		return err
	})
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what would be done")
	return cmd
}

// migrateStoreCommand moves a store from a file to PostgreSQL.
func (c *CLI) migrateStoreCommand() *cobra.Command {
	from, to := "", ""
	cmd := newCommand("migrate-store", nil, func(cmd *cobra.Command, _ []string) error {
		_, paths, err := c.load()
		if err != nil {
			return err
		}
		if err := config.CheckDatabase(to); err != nil {
			return usage("--to: %s", err)
		}
		if paths.Database = cmp.Or(to, paths.Database); paths.Database == "" {
			return usage("say to which database: --to postgres://daycared@db.example.org/daycared, or the key database of the configuration")
		}
		return c.migrateStore(cmd.Context(), paths, cmp.Or(from, filepath.Join(paths.DataDir, storeName)))
	})
	cmd.Flags().StringVar(&from, "from", "", "the `file` of the store; without it, the one in the data directory")
	cmd.Flags().StringVar(&to, "to", "", "the `URL` of an empty PostgreSQL database; without it, the one of the configuration")
	return cmd
}

func (c *CLI) migrateStore(ctx context.Context, paths config.Paths, from string) error {
	dir, err := openDataDir(paths.DataDir, c.UID, "")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // it is released when the process ends
	o := storeOptions(paths, slog.New(slog.NewTextHandler(c.Err, &slog.HandlerOptions{Level: slog.LevelError})))
	o.Path = from
	tell, end := c.progressBar()
	o.Progress = tell
	sum, err := store.Move(ctx, o)
	if end(); err != nil {
		return err
	}
	if c.asJSON {
		return c.json(copyOf(sum))
	}
	c.print("%s: %s, %s, copied and verified\n", sum.Path, count(sum.Requests, "request", "requests"), count(sum.Grants, "grant", "grants"))
	for _, e := range sum.Chains {
		c.print("chain %s: %s, head %d:%s\n", e.Chain, entries(e.First, e.Seq, e.Entries), e.Seq, e.Hash)
	}
	c.print("the file is kept as %s.moved; the configuration has to have: database: %s\n", from, paths.Database)
	return nil
}
