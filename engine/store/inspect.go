package store

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mattn/go-sqlite3"
)

// Inspect says whether a store is sound that no daemon has open: all its pages are read, and nothing is changed. The error
// of one that is damaged is an [Error].
func Inspect(ctx context.Context, path string) (err error) {
	settings := "immutable=1" // all is in the file
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		settings = "_busy_timeout=5000" // and what was written last is beside it
	}
	db, err := lookInto(path, settings)
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	pages, failed := "", sqlite3.Error{}
	err = db.QueryRowContext(ctx, checkPages).Scan(&pages)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &failed):
		return (&Store{path: path}).diagnose(failed, err)
	case err == nil && pages != "ok":
		return (&Store{path: path}).diagnose(sqlite3.Error{Code: sqlite3.ErrCorrupt}, errors.New(pages))
	}
	return err
}
