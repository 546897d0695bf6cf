package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/engine/store"
)

func (c *CLI) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(c.Out, "daycared %s · %s · SQLite %s · %s/%s\n", version, runtime.Version(),
				store.LibraryVersion(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
