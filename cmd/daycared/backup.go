package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/internal/wire"
)

func (c *CLI) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:  "backup [FILE]",
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
			return c.backup(cmd.Context(), paths, to)
		},
	}
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
	return storeCopy{s.Path, s.Bytes, s.Requests, s.Grants, wire.Each(s.Chains, chainOf), append([]string{}, s.Unchecked...)}
}

// backup copies the store of a data directory to the given file, or one named after the time, and prints a summary of the copy.
func (c *CLI) backup(ctx context.Context, paths config.Paths, to string) error {
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
	sum, err := store.Backup(ctx, storeOptions(paths, nil), to)
	if err != nil {
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
