package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	sum, err := backUp(ctx, o, from, to)
	if err != nil {
		return Summary{}, fmt.Errorf("back up the store to %s: %w", to, err)
	}
	return sum, nil
}

func backUp(ctx context.Context, o Options, from, to string) (sum Summary, err error) {
	if err := foreignLog(from); err != nil {
		return sum, err
	}
	db := lookInto(from, "_busy_timeout=5000")
	defer func() { err = errors.Join(err, db.Close()) }()
	removeDrafts(filepath.Dir(to))
	err = copyInto(ctx, db, from, to, o.tell, func(draft string) error {
		if sum, err = inspect(ctx, draft, o); err != nil {
			return fmt.Errorf("the copy is not sound and was removed: %w", err)
		}
		return nil
	})
	sum.Path = to
	return sum, err
}

const (
	countReferences = `SELECT COUNT(*) FROM pragma_foreign_key_check`
	countRequests   = `SELECT COUNT(*) FROM requests`
	countGrants     = `SELECT COUNT(*) FROM grants`
)

// inspect reads a whole copy without leaving SQLite's companion files beside it.
func inspect(ctx context.Context, path string, o Options) (sum Summary, err error) {
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
	told := func(done, all int64) { o.tell("entries and requests verified", done, all) }
	sum.Verified, err = verifyAll(ctx, snapshotsOf(db), true, []func(done, all int64){told}, o.keys()...)
	return sum, err
}
