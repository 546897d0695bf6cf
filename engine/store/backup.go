package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/mattn/go-sqlite3"
)

// Summary is what a backup holds.
type Summary struct {
	Path     string
	Bytes    int64
	Requests int
	Grants   int
	Chains   []Chain // of the audit
}

// Backup copies the store at from, which a daemon may be writing meanwhile, to a new file at to, readable by this
// account only, and verifies the copy: its pages, its references and its audit. An existing file at to is refused, and
// a copy that is not sound is removed again.
//
// To put it back: end the daemon, delete the store together with its companions (-wal and -shm, which belong to the old
// file), and copy the backup to its name.
func Backup(ctx context.Context, from, to string) (Summary, error) {
	sum, err := backUp(ctx, from, to)
	if err != nil {
		return Summary{}, fmt.Errorf("back up the store: %w", err)
	}
	return sum, nil
}

func backUp(ctx context.Context, from, to string) (sum Summary, err error) {
	if from, err = filepath.Abs(from); err != nil {
		return sum, err
	}
	if to, err = filepath.Abs(to); err != nil {
		return sum, err
	}
	if err := readable(from); err != nil {
		return sum, err
	}
	f, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return sum, fmt.Errorf("%s exists already; name a file that does not", to)
	}
	if err != nil {
		return sum, err
	}
	defer func() {
		_ = f.Close() // synced below
		if err != nil {
			err = errors.Join(err, os.Remove(to))
		}
	}()
	if err := copyTo(ctx, from, to); err != nil {
		return sum, err
	}
	if err := f.Sync(); err != nil {
		return sum, err
	}
	if err := syncFolder(filepath.Dir(to)); err != nil {
		return sum, err
	}
	if sum, err = inspect(ctx, to); err != nil {
		return sum, fmt.Errorf("the copy is not sound and was removed: %w", err)
	}
	return sum, nil
}

// readable tells what is wrong with the name of a store.
func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("the store %s cannot be read (%w); name the right file, and use the daemon's account",
			path, cause(err))
	}
	defer func() { _ = f.Close() }() // only opened
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("the store %s is not a file", path)
	}
	return err
}

// copyTo has SQLite write all that is committed into the empty file at to. Nobody who writes has to wait for that.
func copyTo(ctx context.Context, from, to string) (err error) {
	db, err := lookInto(from, "_busy_timeout=5000")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, "VACUUM INTO $1", to)
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

const (
	checkPages      = `SELECT integrity_check FROM pragma_integrity_check LIMIT 1`
	countReferences = `SELECT COUNT(*) FROM pragma_foreign_key_check`
	countRequests   = `SELECT COUNT(*) FROM requests`
	countGrants     = `SELECT COUNT(*) FROM grants`
)

// inspect reads all of a copy, without leaving companions beside it.
func inspect(ctx context.Context, path string) (sum Summary, err error) {
	sum.Path = path
	info, err := os.Stat(path)
	if err != nil {
		return sum, err
	}
	sum.Bytes = info.Size()
	db, err := lookInto(path, "immutable=1")
	if err != nil {
		return sum, err
	}
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
	sum.Chains, err = verify(ctx, db)
	return sum, err
}

// lookInto makes one connection that cannot write. It is not opened yet.
func lookInto(path, settings string) (*sql.DB, error) {
	name := url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro&" + settings}
	db, err := sql.Open("sqlite3", name.String())
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
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
