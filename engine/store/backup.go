package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/permissions"
)

// Summary counts what a backup contains.
type Summary struct {
	Path     string
	Bytes    int64
	Requests int
	Grants   int
	Verified
}

// Backup copies the store at o.Path, which may be in use, to a new file at to with mode 0600, and verifies the copy:
// pages, references, audit, and seals if the audit key is readable. It refuses an existing file, and names the copy
// only when it is complete and verified. The key is not included. [Restore] restores it.
func Backup(ctx context.Context, o Options, to string) (Summary, error) {
	from, err := filepath.Abs(o.Path)
	if err != nil {
		return Summary{}, err
	}
	if to, err = filepath.Abs(to); err != nil {
		return Summary{}, err
	}
	if err := readable(from); err != nil {
		return Summary{}, fmt.Errorf("back up the store: %w", err)
	}
	if _, err := os.Lstat(to); err == nil {
		return Summary{}, fmt.Errorf("back up the store to %s: it exists already; name a file that does not", to)
	}
	sum, err := backUp(ctx, from, to, o.keys())
	if err != nil {
		return Summary{}, fmt.Errorf("back up the store to %s: %w", to, err)
	}
	return sum, nil
}

func backUp(ctx context.Context, from, to string, keys []*sealer) (sum Summary, err error) {
	if err := foreignLog(from); err != nil {
		return sum, err
	}
	db := lookInto(from, "_busy_timeout=5000")
	defer func() { err = errors.Join(err, db.Close()) }()
	removeDrafts(filepath.Dir(to))
	err = copyInto(ctx, db, from, to, func(draft string) error {
		if sum, err = inspect(ctx, draft, keys); err != nil {
			return fmt.Errorf("the copy is not sound and was removed: %w", err)
		}
		return nil
	})
	sum.Path = to
	return sum, err
}

// copyInto writes the committed content of db, the file at from, to a file at to: complete, synced and verified, or not
// at all. The copy is marked as one in its header. Writers do not wait for it.
func copyInto(ctx context.Context, db *sql.DB, from, to string, sound func(draft string) error) (err error) {
	draft := to + draftSuffix
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a killed attempt
		return err
	}
	f, err := os.OpenFile(draft, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return permissions.Cause(err)
	}
	defer func() {
		_ = f.Close() // synced below
		if err != nil {
			_ = os.Remove(draft + journalSuffix)
			err = errors.Join(err, os.Remove(draft))
		}
	}()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil { // see removeDrafts
		return err
	}
	if _, err := db.ExecContext(ctx, "VACUUM INTO $1", draft); err != nil {
		return copyError(ctx, err, from, draft)
	}
	if err := change(ctx, draft, statements(markCopy)); err != nil {
		return copyError(ctx, err, draft, draft)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := sound(draft); err != nil {
		return err
	}
	if err := os.Rename(draft, to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

// removeDrafts deletes drafts that killed attempts left in a folder. A draft that is being written is locked.
func removeDrafts(folder string) {
	drafts, _ := filepath.Glob(filepath.Join(folder, "daycared-*.db"+draftSuffix)) // the pattern is valid
	for _, draft := range drafts {
		f, err := os.OpenFile(draft, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.Remove(draft) // a leftover only takes space
			_ = os.Remove(draft + journalSuffix)
		}
		_ = f.Close()
	}
}

// change runs do on a copy that nobody else has open, with one connection.
func change(ctx context.Context, path string, do func(context.Context, *sql.DB) error) (err error) {
	db := pool(path, 1, "mode=rw&_synchronous=FULL")
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(ctx, db)
}

// statements returns a function that runs them in order.
func statements(all ...string) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error {
		for _, text := range all {
			if _, err := db.ExecContext(ctx, text); err != nil {
				return err
			}
		}
		return nil
	}
}

// copyError says which of two files failed.
func copyError(ctx context.Context, err error, from, to string) error {
	var failed sqlite3.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &failed):
		return err
	case failed.Code == sqlite3.ErrFull, failed.Code == sqlite3.ErrIoErr:
		return (&Store{path: to}).diagnose(failed, err)
	}
	return (&Store{path: from}).diagnose(failed, err)
}

// readable checks the name of a store.
func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("the store %s cannot be read (%w); name the right file, and use the daemon's account",
			path, permissions.Cause(err))
	}
	defer func() { _ = f.Close() }() // only opened
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("the store %s is not a file", path)
	}
	return err
}

const (
	checkPages      = `SELECT integrity_check FROM pragma_integrity_check LIMIT 1`
	countReferences = `SELECT COUNT(*) FROM pragma_foreign_key_check`
	countRequests   = `SELECT COUNT(*) FROM requests`
	countGrants     = `SELECT COUNT(*) FROM grants`
)

// inspect reads a whole copy without leaving SQLite's companion files beside it.
func inspect(ctx context.Context, path string, keys []*sealer) (sum Summary, err error) {
	sum.Path = path
	info, err := os.Stat(path)
	if err != nil {
		return sum, err
	}
	sum.Bytes = info.Size()
	db := lookInto(path, "immutable=1")
	defer func() { err = errors.Join(err, db.Close()) }()
	pages, astray := "", 0
	for _, q := range []struct {
		text string
		into any
	}{
		{checkPages, &pages}, {countReferences, &astray}, {countRequests, &sum.Requests}, {countGrants, &sum.Grants},
	} {
		if err := db.QueryRowContext(ctx, q.text).Scan(q.into); err != nil {
			return sum, err
		}
	}
	switch {
	case pages != "ok":
		return sum, fmt.Errorf("its pages are damaged: %s", pages)
	case astray > 0:
		return sum, fmt.Errorf("%d of its rows belong to rows that are missing", astray)
	}
	sum.Verified, err = verify(ctx, db, keys...)
	return sum, err
}

// draftSuffix ends the name of an incomplete file.
const draftSuffix = ".part"

// WriteFile replaces the content and mode of a file atomically and durably: after a crash or power cut there is the old
// file or the new one. The error does not contain the path.
func WriteFile(path string, content []byte, mode os.FileMode) (err error) {
	draft := path + draftSuffix
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a killed attempt
		return err
	}
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(draft, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes a new name in a folder durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // only read
	return d.Sync()
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
