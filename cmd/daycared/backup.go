package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/engine/store"
)

func (c *CLI) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup [FILE]",
		Short: "Copy the store to a new file and verify the copy, while the daemon runs or not",
		Example: "  daycared backup\n" +
			"  daycared backup /mnt/backups/daycared-monday.db",
		Long: "Copy the store to a new file and verify the copy, while the daemon runs or not. Without FILE, the copy is named\n" +
			"after the time and goes to the folder backups of the data directory. daycared restore puts it back.",
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
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
			return c.backup(cmd.Context(), paths.DataDir, to)
		},
	}
}

// backup copies the store of a data directory to a file, or to one named after the time, and prints what the copy holds.
func (c *CLI) backup(ctx context.Context, dataDir, to string) error {
	from := filepath.Join(dataDir, storeName)
	if to == "" {
		if _, err := os.Stat(from); err != nil { // a folder for backups of nothing is not made
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
	sum, err := store.Backup(ctx, from, to)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%s: %d bytes, %s, %s, verified\n", sum.Path, sum.Bytes,
		count(sum.Requests, "request", "requests"), count(sum.Grants, "grant", "grants"))
	for _, e := range sum.Chains {
		fmt.Fprintf(c.Out, "chain %s: %s, head %d:%s\n", e.Chain, entries(e.First, e.Seq, e.Entries), e.Seq, e.Hash)
	}
	return nil
}
