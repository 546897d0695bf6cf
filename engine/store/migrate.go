package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// migrations only go forward: the way back is the copy that was made before.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema to the newest of steps, after copying a store that has one already.
func (s *Store) migrate(ctx context.Context, steps fs.FS) error {
	provider, err := goose.NewProvider(goose.DialectSQLite3, s.writer, steps,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	has, known, err := provider.GetVersions(ctx)
	switch {
	case err != nil:
		return s.fault(ctx, err)
	case has == known:
		return nil
	case has > known:
		return fmt.Errorf("this store was written by a newer daycared (schema %d, this one knows %d); "+
			"start that one again, or go back with: daycared restore %s", has, known, s.copyName(known))
	case has > 0:
		err := copyInto(ctx, s.writer, s.path, s.copyName(has), func(string) error { return nil })
		if err != nil {
			return fmt.Errorf("copy the store: %w", err)
		}
		s.log.Info("store copied before it is brought up to date", "path", s.copyName(has), "schema", has)
	}
	if _, err := provider.Up(ctx); err != nil {
		return s.fault(ctx, err)
	}
	s.log.Info("store brought up to date", "path", s.path, "from", has, "schema", known)
	return nil
}

// copyName is the file that holds the store as it was with that schema.
func (s *Store) copyName(version int64) string { return fmt.Sprintf("%s.v%d", s.path, version) }
