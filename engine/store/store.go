// Package store is the truth on disk: requests, votes, copies, grants and the audit, what is still to be told, and the
// sessions of agents of ours (commit.go, sessions.go), in one SQLite file. It is the only package that sees SQL.
//
// One connection writes and a few read. Every write is in one immediate transaction (tx.go) that holds all of a change:
// the row, the vote, the grants and the audit records, so that what is not audited has not happened. Writes that come at
// the same time share a transaction and its sync (group.go), and what was written last is in memory for the next (row.go).
// It is on the disk when the method returns nil (WAL with synchronous=FULL). What a second database has to do is in
// storetest.
//
// The statements stand beside the methods that run them and are written for PostgreSQL as well: parameters are $1, $2
// and so on in the order of their first appearance (SQLite binds them by that order), times are integers, and lists
// are JSON text. A limit is "0 + $1", since SQLite prepares a statement anew each time that a bare one is bound.
//
// When SQLite fails, the error is an [*Error]: it matches [permissions.ErrBroken] and tells people what is wrong and
// what to do. A damaged file is not written any more until the daemon has been started again, and one that is no longer
// at its path, or whose log is not, is neither read nor written.
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
	// usualBusy is how long a write waits for another process that holds the file locked.
	usualBusy = 5 * time.Second
	// readers is the most connections that read at a time.
	readers = 4
	// usualLeisure is how long a write that nobody waits for lets others go first.
	usualLeisure = 5 * time.Millisecond
)

// Options say where the store is. Path, Now and Log are required.
type Options struct {
	// Path is the file. It is created, with mode 0600, if it is missing; its folder has to exist.
	Path string
	Now  func() time.Time
	Log  *slog.Logger
	// Busy is how long a write waits for another process that holds the file locked; 0 for five seconds.
	Busy time.Duration
	// Leisure is how long a write that nobody waits for may wait for others to go with; 0 for five milliseconds, less for
	// not at all.
	Leisure time.Duration
	// KeyFile holds the audit key; empty: [KeyName] in the store's folder. A store that has none yet gets one there.
	KeyFile string
	// NewKey makes a new audit key, whatever became of the one before, and begins a new life of the store under it: what
	// opens a gate is suspended.
	NewKey bool
	// CopyKey holds the audit key of a copy that [Restore] puts in place, where that is another; empty: nobody has it.
	CopyKey string

	restored bool    // the store is a copy that Restore has put in place
	copyKey  *sealer // of CopyKey
}

// Store keeps everything in one SQLite file. It is safe for concurrent use. The context of a write bounds the wait for
// its turn; once it has begun, a write is finished.
type Store struct {
	path    string
	files   []placedFile // that SQLite writes to: the store, and once it is open its log and that one's index
	now     func() time.Time
	log     *slog.Logger
	chain   string
	coder   permissions.Coder
	writer  *sql.DB // one connection
	readers *sql.DB // read-only

	seals    *sealer
	from     *sealer  // whose seals the rows carry; nil: nobody's whom we know
	newKey   string   // why the store is sealed anew; empty: it is not
	unsealed sync.Map // the rows of which it was said that they are not used, by their names

	line    line          // of those who write
	leisure time.Duration // of those who are in no hurry

	// ledger, tried, stale, version, cookie and rows belong to whoever holds the writer's connection.
	ledger  ledger
	tried   head  // of the last commit that was tried, which may have been made although it failed
	stale   bool  // the ledger has to be read again
	version int64 // of the file, by the commits of others
	cookie  int64 // of the schema that the statements needed were prepared with; 0: none
	rows    *rows

	restoredAt time.Time // when the newest life began that is not the first; see life.go
	above      int64     // new requests have greater numbers; 0: they follow those that are there

	// marking guards the mark as it was written last; see mark.go.
	marking  sync.Mutex
	started  bool // there is something to mark
	closing  bool // the log is about to be removed
	opens    int64
	marked   mark
	unmarked bool // the last try failed

	halt   atomic.Pointer[string] // who is known to have stopped everything; nil: nobody, or a write has to look
	bell   bell                   // rung with every commit that appended to the audit
	damage atomic.Pointer[Error]  // set once the file proved to be damaged, or its audit to be changed
	lost   atomic.Pointer[Error]  // set once the log proved to be gone, or the store was closed, which removes it
}

var _ permissions.Store = (*Store)(nil)

// Open opens the store, creating it or bringing it up to date as needed. A store that has rows is copied beside itself
// before it is brought up to date, and one written by a newer daemon is refused. One that was put back from a copy begins a
// new life (life.go), and one beside another file's log is refused (mark.go).
//
// The header and the schema are checked here, and the pages when they are read: checking them all would take longer the
// more there is, and the daemon has to be back within a second.
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

// Close waits for what is under way and closes the file. Every later call fails.
func (s *Store) Close() error {
	s.marking.Lock()
	again := s.closing
	s.closing = true
	s.marking.Unlock()
	if again {
		return nil
	}
	if s.started {
		_ = s.turn(context.Background(), func(ctx context.Context, conn *sql.Conn) error { // a broken one keeps the mark that it has
			if s.stale {
				return nil
			}
			err := s.keepsMark(ctx, conn)
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

// Coder gives requests their codes. Its key belongs to the store and does not change while it is open.
func (s *Store) Coder() permissions.Coder { return s.coder }

// dir is the folder of the store, for advice.
func (s *Store) dir() string { return filepath.Dir(s.path) }

// LibraryVersion is the version of SQLite that this build carries.
func LibraryVersion() string {
	name, _, _ := sqlite3.Version()
	return name
}
