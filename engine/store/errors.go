package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-sqlite3"

	"github.com/daycared/daycared/permissions"
)

// Error is a fault of the store itself. It matches [permissions.ErrBroken]; its text is for the operator.
type Error struct {
	What   string // is wrong
	Advice string // what to do about it
	Err    error  // as SQLite or the system said it
	Row    bool   // concerns one row; all others are usable
	away   bool   // passes by itself
	damage bool   // of the whole file
}

func (e *Error) Error() string { return e.What + "; " + e.Advice }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches [permissions.ErrBroken], [permissions.ErrRow] if Row is set, and [permissions.ErrAway] if it passes by itself.
func (e *Error) Is(target error) bool {
	return target == permissions.ErrBroken || e.Row && target == permissions.ErrRow || e.away && target == permissions.ErrAway
}

// What puts a backup of a store in its place: of one in a file, and in PostgreSQL.
const (
	restoresFile   = "daycared restore FILE"
	restoresServer = "pg_restore of a dump of the database, while no daemon runs on it"
)

// damaged is the error of a row with invalid content.
func damaged(what string, err error) error {
	return &Error{
		What: fmt.Sprintf("%s is damaged in the store (%v)", what, err), Err: err,
		Advice: "stop daycared and put a backup in its place: " + restoresFile,
	}
}

// unsealed is the error of a row whose seal does not hold.
func unsealed(row string) error {
	return &Error{
		Row: true, What: row + " does not carry the seal of this store: it was changed behind daycared's back, or is damaged",
		Advice: "see daycared audit verify, and put a backup in its place: " + restoresFile,
	}
}

// unreadable is the error of reading a row: SQLite's own, explained later, or that of the row's content.
func unreadable(what string, err error) error {
	var failed sqlite3.Error
	if errors.As(err, &failed) || serverFailed(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, sql.ErrNoRows) || errors.Is(err, sql.ErrTxDone) || errors.Is(err, permissions.ErrBroken) {
		return err
	}
	return damaged(what, err)
}

// ignoreNoRows is err, unless that says that there is no row.
func ignoreNoRows(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// isDatabaseError reports whether err came from the database and is no refusal.
func isDatabaseError(err error) bool {
	var failed sqlite3.Error
	return errors.As(err, &failed) || serverFailed(err) || errors.Is(err, permissions.ErrBroken)
}

// IsFull reports whether err says that a disk is full, so that a retry makes sense.
func IsFull(err error) bool {
	var failed sqlite3.Error
	errors.As(err, &failed)
	return failed.Code == sqlite3.ErrFull || sqlState(err) == diskFull ||
		failed.SystemErrno == syscall.ENOSPC || failed.SystemErrno == syscall.EDQUOT ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// diagnose finds what is wrong with the store at path and what to do.
func diagnose(path string, failed sqlite3.Error, err error) *Error {
	e := &Error{Err: err}
	// Where a file ends too early, SQLite speaks of the disk, with whatever error the system had last. A disk that fails has one of its own.
	cut := (failed.ExtendedCode == sqlite3.ErrIoErrShortRead || failed.ExtendedCode == sqlite3.ErrIoErr.Extend(0)) &&
		slices.Contains([]syscall.Errno{0, syscall.ENOENT, syscall.EAGAIN}, failed.SystemErrno)
	switch {
	case cut, failed.Code == sqlite3.ErrCorrupt, failed.Code == sqlite3.ErrNotADB:
		if cut {
			err = errors.New("a part of its file is missing")
		}
		e.What, e.damage = fmt.Sprintf("the store %s is damaged (%v)", path, err), true
		e.Advice = "stop daycared and put a backup in its place: " + restoresFile
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
	case failed.Code == sqlite3.ErrCantOpen:
		e.What = fmt.Sprintf("the store %s cannot be opened (%v)", path, err)
		e.Advice = "check that its folder exists and that both belong to the daemon's account"
	case failed.Code == sqlite3.ErrIoErr:
		e.What = fmt.Sprintf("the disk under %s fails (%v)", filepath.Dir(path), err)
		e.Advice = "check the disk and what the kernel says of it, then start daycared again"
	case failed.Code == sqlite3.ErrError, failed.Code == sqlite3.ErrConstraint: // a foreign schema, for example
		e.What = fmt.Sprintf("the store %s does not work (%v)", path, err)
		e.Advice = "stop daycared and put a backup in its place: " + restoresFile + "; if that does not help, this is a fault of daycared"
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
	case failed.Code == sqlite3.ErrFull, failed.Code == sqlite3.ErrIoErr && !diagnose(from, failed, err).damage:
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

// isGone reports whether PostgreSQL did not answer, or ended the transaction for a reason that passes.
func isGone(err error) bool {
	switch state := sqlState(err); {
	case err == nil, !serverFailed(err), errors.Is(err, errReplaced):
		return false
	case state == "":
		return true
	default:
		return slices.Contains([]string{"25P03", "40001", "40P01", "55P03", "57P01", "57P02", "57P03"}, state) || strings.HasPrefix(state, "08")
	}
}

// errReplaced ends the work of a daemon whose place others have taken.
var errReplaced = errors.New("other daemons took the place of this one")

// errNewLife ends the work of a daemon on a store that was put back from a copy.
var errNewLife = fmt.Errorf("the store began a new life: %w", errReplaced)

// diskFull is the code of PostgreSQL.
const diskFull = "53100"

// serverFailed reports whether an error came from PostgreSQL or from the way to it.
func serverFailed(err error) bool {
	var said *pgconn.PgError
	var connect *pgconn.ConnectError
	var network net.Error
	if errors.As(err, &said) || errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) {
		return true
	}
	return slices.ContainsFunc([]error{driver.ErrBadConn, errReplaced, pgconn.ErrConnClosed, net.ErrClosed, io.EOF, io.ErrUnexpectedEOF},
		func(of error) bool { return errors.Is(err, of) })
}

// sqlState is PostgreSQL's code of an error; empty if it has none.
func sqlState(err error) string {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return said.Code
	}
	return ""
}

// diagnoseServer finds what is wrong with the PostgreSQL database of that name and what to do.
func diagnoseServer(name string, err error) *Error {
	e := &Error{Err: err}
	state := sqlState(err)
	switch {
	case errors.Is(err, errNewLife):
		e.What = "the " + name + " was put back from a copy while this daemon ran"
		e.Advice = "start it again"
	case errors.Is(err, errReplaced):
		e.What = "other daemons took the place of this one, because it did not reach the " + name + " in time"
		e.Advice = "start it again"
	case state == diskFull:
		e.What, e.Advice = "the disk of the "+name+" is full", "free some space, nothing needs a restart"
	case strings.HasPrefix(state, "28"):
		e.What = fmt.Sprintf("the %s refuses daycared's account (%v)", name, err)
		e.Advice = "set the right account and password, in the URL or in libpq's password file"
	case state == "25006":
		e.What = fmt.Sprintf("the %s is a standby, or read-only (%v)", name, err)
		e.Advice = "connect to the primary"
	case state == "42501":
		e.What = fmt.Sprintf("the %s lets daycared's account do too little (%v)", name, err)
		e.Advice = "make that account the owner of the database"
	case strings.HasPrefix(state, "57"), strings.HasPrefix(state, "08"), strings.HasPrefix(state, "53"), state == "":
		e.What = fmt.Sprintf("the %s does not answer (%v)", name, err)
		e.Advice, e.away = "start PostgreSQL or mend the way to it, nothing needs a restart", true
	case strings.HasPrefix(state, "XX"):
		e.What = fmt.Sprintf("the %s is damaged (%v)", name, err)
		e.Advice = "stop daycared and restore the database"
	default:
		e.What = fmt.Sprintf("the %s does not work (%v)", name, err)
		e.Advice = "if its tables were changed, restore the database; else this is a fault of daycared"
	}
	return e
}
