package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// migrations only go forward: the way back is the copy that was made before.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema to the newest of steps, after copying a store that has one already.
func (s *Store) migrate(ctx context.Context, steps fs.FS) error {
	provider, err := newProvider(s.writer, steps)
	if err != nil {
		return err
	}
	has, known, err := provider.GetVersions(ctx)
	switch {
	case err != nil:
		return s.fault(ctx, err)
	case has > known:
		return fmt.Errorf("this store was written by a newer daycared (schema %d, this one knows %d); "+
			"start that one again, or go back with: daycared restore %s", has, known, s.copyName(known))
	case has > 0:
		if err := s.checkSchema(ctx, steps, has); err != nil || has == known {
			return err
		}
		if err := s.checkRoom(); err != nil {
			return err
		}
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

// checkRoom refuses to bring a store up to date where the disk has too little room for that: for the copy, for a log that may
// have each page anew, and for what the file itself grows by.
func (s *Store) checkRoom() error {
	var disk unix.Statfs_t
	if err := unix.Statfs(s.dir(), &disk); err != nil {
		return err
	}
	need := int64(1 << 20)
	for _, file := range []string{s.path, s.path + logSuffix} {
		n, err := size(file)
		if err != nil {
			return err
		}
		need += 3 * n
	}
	free := int64(disk.Bavail) * int64(disk.Bsize) //nolint:unconvert // the types differ between systems
	if free >= need {
		return nil
	}
	const mib = 1 << 20
	return &Error{
		What: fmt.Sprintf("the disk under %s has too little room to bring the store up to date: it needs %d MiB, and %d MiB are free",
			s.dir(), (need+mib-1)/mib, free/mib),
		Advice: "free some space, nothing needs a restart", Err: unix.ENOSPC,
	}
}

// copyName is the file that holds the store as it was with that schema.
func (s *Store) copyName(version int64) string { return fmt.Sprintf("%s.v%d", s.path, version) }
