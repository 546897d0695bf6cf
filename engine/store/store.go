// Package store keeps everything durable in one SQLite file, or in a PostgreSQL database: requests, votes, copies, grants, the audit, the
// outbox, and the sessions of our own agents (commit.go, sessions.go). It is the only package with SQL.
//
// One connection writes and a few read. Every write is one immediate transaction (write.go) with the whole change: the row, the vote,
// the grants and the audit records, so that nothing happens unaudited. Concurrent writes share a transaction and its sync
// (writequeue.go), and the last requests written are cached for the next write. A method that returns nil has its change on the
// disk (WAL with synchronous=FULL). The package storetest specifies what a second database has to do.
//
// Each statement stands beside the method that runs it and is valid for PostgreSQL as well: parameters are $1, $2 and so on in the
// order of their first appearance (SQLite binds by that order), times are integers, lists are JSON text. A limit is "0 + $1",
// because SQLite prepares a statement again whenever a bare one is bound.
//
// What follows about files is SQLite's. In PostgreSQL (postgres.go), any number of daemons write, one transaction at a time as well; the
// few texts that differ are in dialect.go, what is sent at once in pipeline.go, and what the daemons know of each other in daemons.go.
//
// When SQLite fails, the error is an [*Error], which matches [permissions.ErrBroken] and says what to do. A damaged file is not
// written again until the daemon restarts. A file that is no longer at its path, or whose log is not, is neither read nor written.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/daycared/daycared/permissions"
)

const (
	// defaultBusyTimeout is how long a write waits for another process that locks the file.
	defaultBusyTimeout = 5 * time.Second
	// readers is the maximum number of reading connections.
	readers = 5
	// defaultLowPriorityWait is how long a low-priority write waits for others.
	defaultLowPriorityWait = 5 * time.Millisecond
)

// Options configure a store. Path, Now and Log are required.
type Options struct {
	// Path is the file. It is created with mode 0600 if missing; its folder has to exist.
	Path string
	// Server is the URL of the PostgreSQL database that has the rows; empty: they are in the file. Beside Path stand the mark and the
	// audit key in both cases.
	Server string
	Now    func() time.Time
	Log    *slog.Logger
	// Busy is how long a write waits for another process that locks the file; 0 for five seconds.
	Busy time.Duration
	// LowPriorityWait is how long a low-priority write may wait for others to join; 0 for five milliseconds, negative for not at all.
	LowPriorityWait time.Duration
	// KeyFile is the path of the audit key, which is created if the store has none yet; empty: [KeyName] in the store's folder.
	KeyFile string
	// NewKey replaces the audit key, even a lost one, and begins a new life: everything that opens a gate is suspended.
	NewKey bool
	// CopyKey is the path of the audit key of a copy that [Restore] restores, if it differs; empty: unknown.
	CopyKey string
	// Lost, unless it is nil, is told once when other daemons on the database of Server have taken this one's place, because it was
	// silent for too long. The store is of no use any more.
	Lost func(error)
	// Progress, unless it is nil, is told how far a copy, its verification or a migration is.
	Progress func(what string, done, all int64)

	moving   bool    // from the file into the database
	restored bool    // a copy that Restore put in place
	copyKey  *sealer // of CopyKey
}

// tell calls o.Progress.
func (o Options) tell(what string, done, all int64) {
	if o.Progress != nil {
		o.Progress(what, done, all)
	}
}

// Store keeps everything in one SQLite file or PostgreSQL database. It is safe for concurrent use. A context bounds a write's wait for its
// turn; a write that has begun is finished.
type Store struct {
	path      string
	server    *postgres      // nil: SQLite
	files     []fileIdentity // the store and, once open, its log and the log's index
	now       func() time.Time
	log       *slog.Logger
	tell      func(what string, done, all int64)
	chain     string
	types     map[permissions.Type]int64 // numbers of the types of entries
	coder     permissions.Coder
	writer    *sql.DB    // one connection
	readers   *sql.DB    // read-only
	verifying sync.Mutex // held by who may use two of them at once

	seals    *sealer
	from     *sealer  // seals the rows; nil: unknown
	newKey   string   // why the store gets new seals; empty: it does not
	unsealed sync.Map // names of the unused rows already logged
	sessions sync.Map // by ID: the version of an agent's session that this process wrote last

	writes          writeQueue    // the write queue
	lowPriorityWait time.Duration // wait of low-priority writes

	// ledger, tried, stale, version and cookie belong to the owner of the write turn.
	ledger  ledger
	tried   head  // of the last commit tried, which may have succeeded although it failed
	stale   bool  // the ledger has to be read again
	version int64 // data_version: changes with other processes' commits
	cookie  int64 // schema version of the prepared statements; 0: none

	memory // what was written last

	restoredAt time.Time // start of the newest life, unless it is the first; see restored.go
	above      int64     // new requests get greater numbers; 0: follow the existing ones

	// marking guards the last mark written; see ledger.go.
	marking  sync.Mutex
	started  bool // there is something to mark
	closing  bool // the log is about to be removed
	opens    int64
	marked   mark
	unmarked bool // the last attempt failed

	halt     atomic.Pointer[string] // who stopped everything; nil: nobody, or a write has to look
	appended broadcast              // notified by every commit with audit entries
	damage   atomic.Pointer[Error]  // set when the file proves damaged or its audit modified
	checked  atomic.Int64           // when checkPaths last found the files, in nanoseconds
	lost     atomic.Pointer[Error]  // set when the log is gone or the store is closed, which removes it
}

// Coder makes the codes of requests. Its key belongs to the store and does not change while it is open.
func (s *Store) Coder() permissions.Coder { return s.coder }

// name says to people where the rows are.
func (s *Store) name() string {
	if s.server != nil {
		return s.server.name
	}
	return s.path
}

func (s *Store) dir() string { return filepath.Dir(s.path) }

// explain puts SQLite's errors into words. Refusals and context errors stay as they are.
func (s *Store) explain(ctx context.Context, err error) error {
	var failed sqlite3.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed), errors.Is(err, sql.ErrTxDone), errors.Is(err, sql.ErrConnDone), serverFailed(err):
		return s.fault(ctx, err)
	case errors.Is(err, errClosed):
		return &Error{What: err.Error(), Advice: "try again", away: true}
	}
	return s.advised(err)
}

// advised is err with the advice for PostgreSQL in place of that for a file.
func (s *Store) advised(err error) error {
	var known *Error
	if s.server == nil || !errors.As(err, &known) || !strings.Contains(known.Advice, restoresFile) {
		return err
	}
	what := strings.Replace(err.Error(), "; "+known.Advice, "", 1)
	return &Error{What: what, Advice: strings.ReplaceAll(known.Advice, restoresFile, restoresServer), Err: err, Row: known.Row}
}

// fault puts a database error into words, and remembers damage.
func (s *Store) fault(ctx context.Context, err error) error {
	var known *Error
	var failed sqlite3.Error
	errors.As(err, &failed)
	switch {
	case errors.As(err, &known):
		return s.advised(err)
	case ctx.Err() != nil && (failed.Code == 0 || failed.Code == sqlite3.ErrInterrupt):
		return ctx.Err() // the caller left
	case s.server != nil:
		return s.serverFault(err)
	}
	e := diagnose(s.path, failed, err)
	if e.damage {
		s.log.Error("store damaged: not written until restart", "path", s.path, "err", err)
		s.damage.CompareAndSwap(nil, e)
	}
	return e
}

// serverFault puts an error of PostgreSQL into words. A daemon whose place others have taken does nothing more.
func (s *Store) serverFault(err error) error {
	e := diagnoseServer(s.server.name, err)
	if errors.Is(err, errReplaced) && s.lost.CompareAndSwap(nil, e) {
		s.log.Error("store unusable until restart", "err", e)
		s.server.lost(e)
	}
	return e
}

// checkPaths returns nil while the paths of the store, its log and the log's index lead to the open files. A deleted, moved or replaced
// file can still be written, but the next start loses those writes, and a new connection would use another file. Without its log
// the store is not used any more: only the open connections know its content, and closing them moves it into the store.
func (s *Store) checkPaths() error {
	if lost := s.lost.Load(); lost != nil {
		return lost
	}
	for i, file := range s.files {
		found, err := newPlacedFile(file.path)
		switch {
		case err == nil && found == file:
		case i > 0 && (err == nil || errors.Is(err, fs.ErrNotExist)):
			e := &Error{
				What: fmt.Sprintf("%s, a part of the store, was deleted or replaced while it was open", file.path), Err: err,
				Advice: "end daycared with: daycared stop (or SIGTERM), which saves what was decided; do not kill it; then start it again",
			}
			if s.lost.CompareAndSwap(nil, e) {
				s.log.Error("store unusable until restart", "err", e)
			}
			return s.lost.Load()
		case err != nil:
			return &Error{
				What: fmt.Sprintf("the store %s is no longer there (%v)", file.path, err), Err: err,
				Advice: "stop daycared, put the file or a backup back in its place, and start it again",
			}
		default:
			return &Error{
				What:   fmt.Sprintf("the store %s was replaced by another file while it was open", s.path),
				Advice: "stop daycared, see to it that the right file is in its place, and start it again",
			}
		}
	}
	return nil
}

// checkedFor is how long [Store.checkPaths] need not be repeated for a read.
const checkedFor = 100 * time.Millisecond

// checkPathsLately is checkPaths for reads, of which there are many.
func (s *Store) checkPathsLately(ctx context.Context) error {
	now := time.Now().UnixNano()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if lost := s.lost.Load(); lost != nil {
		return lost
	}
	if now-s.checked.Load() < int64(checkedFor) {
		return nil
	}
	err := s.checkPaths()
	if err == nil {
		s.checked.Store(now)
	}
	return err
}

// LibraryVersion is the version of the SQLite library in this build.
func LibraryVersion() string {
	name, _, _ := sqlite3.Version()
	return name
}
