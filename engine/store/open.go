package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/daycared/daycared/permissions"
)

const (
	// oldest is the first SQLite version without the bug that could corrupt a WAL database when its log is reset.
	oldest     = 3_051_003
	oldestName = "3.51.3"
)

func open(ctx context.Context, o Options, steps fs.FS) (_ *Store, err error) {
	if name, number, _ := sqlite3.Version(); number < oldest {
		return nil, fmt.Errorf("this build carries SQLite %s, which can damage the store; build daycared with %s or newer",
			name, oldestName)
	}
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, err
	}
	if err := finishRestore(path); err != nil {
		return nil, err
	}
	if err := foreignLog(path); err != nil {
		return nil, err
	}
	if err := missingLog(path); err != nil {
		return nil, err
	}
	if err := create(path); err != nil {
		return nil, err
	}
	s, err := connected(o, path)
	if err != nil {
		return nil, err
	}
	if err := s.begin(ctx, o, steps); err != nil {
		_ = s.Close() // the first error says more
		return nil, err
	}
	return s, nil
}

// connected is a store over an existing file of which nothing was read yet.
func connected(o Options, path string) (*Store, error) {
	file, err := newPlacedFile(path)
	if err != nil {
		return nil, err
	}
	s := &Store{
		path: path, files: []fileIdentity{file}, now: o.Now, log: o.Log, stale: true, rows: newRows(),
		lowPriorityWait: max(0, cmp.Or(o.LowPriorityWait, defaultLowPriorityWait)),
	}
	busy := cmp.Or(o.Busy, defaultBusyTimeout)
	s.writer = connect(path, busy, 1, "_journal_mode=WAL&_synchronous=FULL&_txlock=immediate")
	s.readers = connect(path, busy, readers, "_query_only=on")
	return s, nil
}

// create makes the file before SQLite does, with mode 0600; SQLite gives its companions the same mode.
//
// A mark without a store belongs to one that was removed: the new one gets another.
func create(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := os.Remove(markName(path)); err == nil {
			_ = syncFolder(filepath.Dir(path)) // it is rewritten in any case
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return &Error{
			What: fmt.Sprintf("the store %s cannot be opened (%v)", path, permissions.Cause(err)), Err: err,
			Advice: "check that its folder exists and that both belong to the daemon's account",
		}
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return f.Chmod(0o600)
	}
	return nil
}

// connect makes the pool of at most n connections of a store that is in use.
func connect(path string, busy time.Duration, n int, settings string) *sql.DB {
	return pool(path, n, "mode=rw&_foreign_keys=on&_stmt_cache_size=64&_busy_timeout="+
		strconv.FormatInt(busy.Milliseconds(), 10)+"&"+settings)
}

// lookInto makes a pool of one connection that only reads.
func lookInto(path, settings string) *sql.DB { return pool(path, 1, "mode=ro&"+settings) }

// pool makes a pool of at most n connections to a file. None is opened yet, so nothing fails.
func pool(path string, n int, settings string) *sql.DB {
	name := url.URL{Scheme: "file", Path: path, RawQuery: settings}
	db, err := sql.Open("sqlite3", name.String())
	if err != nil {
		panic(err) // only without the driver
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db
}

// begin checks the file, migrates it, and reads what is kept in memory.
func (s *Store) begin(ctx context.Context, o Options, steps fs.FS) error {
	if err := s.check(ctx); err != nil {
		return s.fault(ctx, err)
	}
	if err := s.migrate(ctx, steps); err != nil {
		return err
	}
	err := s.turn(ctx, func(ctx context.Context, conn *sql.Conn) error { return s.identify(ctx, conn, o) })
	if err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	for _, suffix := range []string{logSuffix, indexSuffix} {
		file, err := newPlacedFile(s.path + suffix)
		if err != nil {
			return fmt.Errorf("look at %s: %w", s.path+suffix, err)
		}
		s.files = append(s.files, file)
	}
	return s.finishKey(o.keyFile())
}

// check reads the header and the whole schema, and verifies SQLite's durability settings.
func (s *Store) check(ctx context.Context) error {
	const text = `SELECT (SELECT COUNT(*) FROM sqlite_schema), journal_mode, synchronous, foreign_keys
		FROM pragma_journal_mode, pragma_synchronous, pragma_foreign_keys`
	var tables, synchronous, foreign int
	var journal string
	if err := s.writer.QueryRowContext(ctx, text).Scan(&tables, &journal, &synchronous, &foreign); err != nil {
		return err
	}
	const full = 2
	if journal != "wal" || synchronous != full || foreign != 1 {
		return &Error{
			What: fmt.Sprintf("the store %s cannot be kept safely here (journal %s, synchronous %d)",
				s.path, journal, synchronous),
			Advice: "put it on a local disk",
		}
	}
	return nil
}

const insertMeta = `INSERT INTO meta (chain, code_key, created_at, beat, stopped_by, stopped_at, alive_at, seals) ` +
	`VALUES ($1, $2, $3, 0, '', 0, 0, $4)`

// anyRows reports whether a store has audit entries or rows that open something.
const anyRows = `SELECT EXISTS (SELECT 1 FROM audit) OR EXISTS (SELECT 1 FROM requests) OR EXISTS (SELECT 1 FROM tokens) ` +
	`OR EXISTS (SELECT 1 FROM pairings)`

// identify reads the store's name and key, or creates both for a new store, and finds the key of its seals.
func (s *Store) identify(ctx context.Context, conn *sql.Conn, o Options) error {
	own, err := readIdentity(ctx, conn)
	fresh := errors.Is(err, sql.ErrNoRows)
	if err != nil && !fresh {
		return unreadable("what the store says of itself", err)
	}
	if fresh {
		rows := false
		if err := conn.QueryRowContext(ctx, anyRows).Scan(&rows); err != nil {
			return err
		}
		if rows {
			return damaged("what the store says of itself", errors.New("its row is missing"))
		}
		now := s.now()
		own.code = make([]byte, len(s.coder.Key))
		_, _ = rand.Read(own.code) // never fails
		own.chain = string(permissions.NewID(now))
		if err := s.findKey(ctx, conn, o, own, fresh); err != nil {
			return err
		}
		err := transact(ctx, conn, func() error {
			if _, err := conn.ExecContext(ctx, insertMeta, own.chain, own.code, now.UnixMicro(), sealVersion); err != nil {
				return err
			}
			return sealIdentity(ctx, conn, s.seals)
		})
		if err != nil {
			return err
		}
	}
	if len(own.code) != len(s.coder.Key) || bytes.Equal(own.code, make([]byte, len(own.code))) {
		return damaged("the store's own key", fmt.Errorf("%d bytes", len(own.code)))
	}
	s.chain, s.coder.Key = own.chain, [32]byte(own.code)
	if fresh {
		return nil
	}
	return s.findKey(ctx, conn, o, own, false)
}
