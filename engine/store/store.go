// Package store keeps everything durable in one SQLite file: requests, votes, copies, grants, the audit, the outbox, and the
// sessions of our own agents (commit.go, sessions.go). It is the only package with SQL.
//
// One connection writes and a few read. Every write is one immediate transaction (tx.go) with the whole change: the row, the vote,
// the grants and the audit records, so that nothing happens unaudited. Concurrent writes share a transaction and its sync
// (writequeue.go), and the last rows written are cached for the next write (row.go). A method that returns nil has its change on the
// disk (WAL with synchronous=FULL). The package storetest specifies what a second database has to do.
//
// Each statement stands beside the method that runs it and is valid for PostgreSQL as well: parameters are $1, $2 and so on in the
// order of their first appearance (SQLite binds by that order), times are integers, lists are JSON text. A limit is "0 + $1",
// because SQLite prepares a statement again whenever a bare one is bound.
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
	readers = 4
	// defaultLowPriorityWait is how long a low-priority write waits for others.
	defaultLowPriorityWait = 5 * time.Millisecond
)

// Options configure a store. Path, Now and Log are required.
type Options struct {
	// Path is the file. It is created with mode 0600 if missing; its folder has to exist.
	Path string
	Now  func() time.Time
	Log  *slog.Logger
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

	restored bool    // a copy that Restore put in place
	copyKey  *sealer // of CopyKey
}

// Store keeps everything in one SQLite file. It is safe for concurrent use. A context bounds a write's wait for its
// turn; a write that has begun is finished.
type Store struct {
	path    string
	files   []fileIdentity // the store and, once open, its log and the log's index
	now     func() time.Time
	log     *slog.Logger
	chain   string
	coder   permissions.Coder
	writer  *sql.DB // one connection
	readers *sql.DB // read-only

	seals    *sealer
	from     *sealer  // seals the rows; nil: unknown
	newKey   string   // why the store gets new seals; empty: it does not
	unsealed sync.Map // names of the unused rows already logged
	sessions sync.Map // by ID: the version of an agent's session that this process wrote last

	writes          writeQueue    // the write queue
	lowPriorityWait time.Duration // wait of low-priority writes

	// ledger, tried, stale, version, cookie and rows belong to the owner of the write turn.
	ledger  ledger
	tried   head  // of the last commit tried, which may have succeeded although it failed
	stale   bool  // the ledger has to be read again
	version int64 // data_version: changes with other processes' commits
	cookie  int64 // schema version of the prepared statements; 0: none
	rows    *rows

	restoredAt time.Time // start of the newest life, unless it is the first; see restored.go
	above      int64     // new requests get greater numbers; 0: follow the existing ones

	// marking guards the last mark written; see watermark.go.
	marking  sync.Mutex
	started  bool // there is something to mark
	closing  bool // the log is about to be removed
	opens    int64
	marked   mark
	unmarked bool // the last attempt failed

	halt   atomic.Pointer[string] // who stopped everything; nil: nobody, or a write has to look
	bell   bell                   // notified by every commit with audit entries
	damage atomic.Pointer[Error]  // set when the file proves damaged or its audit modified
	lost   atomic.Pointer[Error]  // set when the log is gone or the store is closed, which removes it
}

// Open opens the store, creating or migrating it as needed. A store with rows is copied before a migration, and one from a newer
// daemon is refused. A store restored from a copy begins a new life (restored.go); one beside another file's log is refused (watermark.go).
//
// The header and the schema are checked here, the pages when they are read: checking all would take too long for a large store, and
// the daemon has to restart within a second.
func Open(ctx context.Context, o Options) (*Store, error) {
	steps, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s, err := open(ctx, o, steps)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// Close waits for running calls and closes the file. Later calls fail.
func (s *Store) Close() error {
	s.marking.Lock()
	again := s.closing
	s.closing = true
	s.marking.Unlock()
	if again {
		return nil
	}
	if s.started {
		_ = s.turn(context.Background(), func(ctx context.Context, conn *sql.Conn) error { // a broken store keeps its mark
			if s.stale {
				return nil
			}
			err := s.checkMark(ctx, conn)
			if err == nil {
				s.noteMark(s.ledger.head)
			}
			return err
		})
	}
	s.lost.CompareAndSwap(nil, &Error{What: "the store " + s.path + " is closed", Advice: "start daycared again", Err: sql.ErrConnDone})
	err := s.readers.Close()
	if !s.noteClosing() {
		err = errors.Join(err, s.keepLog())
	}
	if err := errors.Join(err, s.writer.Close()); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// Coder makes the codes of requests. Its key belongs to the store and does not change while it is open.
func (s *Store) Coder() permissions.Coder { return s.coder }

func (s *Store) dir() string { return filepath.Dir(s.path) }

// LibraryVersion is the version of the SQLite library in this build.
func LibraryVersion() string {
	name, _, _ := sqlite3.Version()
	return name
}
