package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/mattn/go-sqlite3"

	"github.com/daycared/daycared/permissions"
)

// Error is a fault of the store itself. It matches [permissions.ErrBroken]; its text is for the operator.
type Error struct {
	What   string // is wrong
	Advice string // what to do about it
	Err    error  // as SQLite or the system said it
	Row    bool   // concerns one row; all others are usable
}

func (e *Error) Error() string { return e.What + "; " + e.Advice }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches [permissions.ErrBroken], and [permissions.ErrRow] if Row is set.
func (e *Error) Is(target error) bool {
	return target == permissions.ErrBroken || e.Row && target == permissions.ErrRow
}

// damaged is the error of a row with invalid content.
func damaged(what string, err error) error {
	return &Error{
		What: fmt.Sprintf("%s is damaged in the store (%v)", what, err), Err: err,
		Advice: "stop daycared and put a backup in its place: daycared restore FILE",
	}
}

// unsealed is the error of a row whose seal does not hold.
func unsealed(row string) error {
	return &Error{
		Row: true, What: row + " does not carry the seal of this store: it was changed behind daycared's back, or is damaged",
		Advice: "see daycared audit verify, and put a backup in its place: daycared restore FILE",
	}
}

// unreadable is the error of reading a row: SQLite's own, explained later, or that of the row's content.
func unreadable(what string, err error) error {
	var failed sqlite3.Error
	if errors.As(err, &failed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, sql.ErrNoRows) || errors.Is(err, sql.ErrTxDone) || errors.Is(err, permissions.ErrBroken) {
		return err
	}
	return damaged(what, err)
}

// orNone is err, unless that says that there is no row.
func orNone(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// broke reports whether err came from the database and is no refusal.
func broke(err error) bool {
	var failed sqlite3.Error
	return errors.As(err, &failed) || errors.Is(err, permissions.ErrBroken)
}

// IsFull reports whether err says that a disk is full, so that a retry makes sense.
func IsFull(err error) bool {
	var failed sqlite3.Error
	errors.As(err, &failed)
	return failed.Code == sqlite3.ErrFull || failed.SystemErrno == syscall.ENOSPC || failed.SystemErrno == syscall.EDQUOT ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// diagnose finds what is wrong with the store at path and what to do.
func diagnose(path string, failed sqlite3.Error, err error) *Error {
	e := &Error{Err: err}
	switch {
	case IsFull(err):
		e.What = "the disk under " + filepath.Dir(path) + " is full"
		e.Advice = "free some space, nothing needs a restart"
	case failed.SystemErrno == syscall.EFBIG:
		e.What = "the files of the store in " + filepath.Dir(path) + " may not grow any further (" + syscall.EFBIG.Error() + ")"
		e.Advice = "raise the limit on the size of the daemon's files (LimitFSIZE of its unit, ulimit -f), nothing needs a restart"
	case failed.Code == sqlite3.ErrBusy, failed.Code == sqlite3.ErrLocked:
		e.What = "another process holds the store " + path + " locked"
		e.Advice = "let it finish or end it (a backup, a sqlite3 shell, a second daemon), nothing needs a restart"
	case failed.Code == sqlite3.ErrReadonly, failed.Code == sqlite3.ErrPerm, failed.SystemErrno == syscall.EROFS,
		failed.Code == sqlite3.ErrIoErr && (failed.SystemErrno == syscall.EPERM || failed.SystemErrno == syscall.EACCES):
		e.What = fmt.Sprintf("the store %s cannot be written (%v)", path, err)
		e.Advice = "make the file, its folder and its disk writable for the daemon's account, then start daycared again"
	case failed.Code == sqlite3.ErrCorrupt, failed.Code == sqlite3.ErrNotADB:
		e.What = fmt.Sprintf("the store %s is damaged (%v)", path, err)
		e.Advice = "stop daycared and put a backup in its place: daycared restore FILE"
	case failed.Code == sqlite3.ErrCantOpen:
		e.What = fmt.Sprintf("the store %s cannot be opened (%v)", path, err)
		e.Advice = "check that its folder exists and that both belong to the daemon's account"
	case failed.Code == sqlite3.ErrIoErr:
		e.What = fmt.Sprintf("the disk under %s fails (%v)", filepath.Dir(path), err)
		e.Advice = "check the disk and what the kernel says of it, then start daycared again"
	case failed.Code == sqlite3.ErrError, failed.Code == sqlite3.ErrConstraint: // a foreign schema, for example
		e.What = fmt.Sprintf("the store %s does not work (%v)", path, err)
		e.Advice = "stop daycared and put a backup in its place: daycared restore FILE; if that does not help, this is a fault of daycared"
	default:
		e.What = fmt.Sprintf("the store %s does not work (%v)", path, err)
		e.Advice = "stop daycared and check the store: daycared audit verify " + path + "; if it is sound, this is a fault of daycared"
	}
	return e
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
		return diagnose(to, failed, err)
	}
	return diagnose(from, failed, err)
}

// unusable changes the advice for damage in a file to be restored to trying another one: for a store in use it is to restore.
func unusable(err error) error {
	var failed sqlite3.Error
	var known *Error
	switch {
	case errors.As(err, &failed) && (failed.Code == sqlite3.ErrCorrupt || failed.Code == sqlite3.ErrNotADB):
		return fmt.Errorf("the file is damaged or no database (%w); try another backup", failed)
	case !errors.As(err, &failed) && errors.As(err, &known):
		return fmt.Errorf("%s; try another backup", known.What)
	}
	return err
}
