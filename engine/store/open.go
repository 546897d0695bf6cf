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
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/mattn/go-sqlite3"

	"github.com/daycared/daycared/permissions"
)

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
	s, err := openStore(ctx, o, steps)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

const (
	// oldestSQLite is the first SQLite version without the bug that could corrupt a WAL database when its log is reset.
	oldestSQLite = 3_051_003
	oldestName   = "3.51.3"
)

func openStore(ctx context.Context, o Options, steps fs.FS) (_ *Store, err error) {
	if name, number, _ := sqlite3.Version(); number < oldestSQLite {
		return nil, fmt.Errorf("this build carries SQLite %s, which can damage the store; build daycared with %s or newer",
			name, oldestName)
	}
	if o.Server != "" {
		return openServer(ctx, o)
	}
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, err
	}
	if err := refuseMoved(o, path); err != nil {
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

// serverName names what is beside a store in PostgreSQL.
const serverName = "postgres.db"

// movedSuffix ends the name of a file that was moved into a database.
const movedSuffix = ".moved"

// refuseMoved refuses a file beside what says that the store is in a database: what was taken back there would be given again.
func refuseMoved(o Options, path string) error {
	for _, sign := range []string{markName(filepath.Join(filepath.Dir(path), serverName)), path + movedSuffix} {
		if fileExists(sign) && !o.moving {
			return &Error{
				What: "the store of this data directory is in PostgreSQL, or was being moved there, as " + sign + " says",
				Advice: "name its address, as in database: postgres://..., finish moving it with: daycared migrate-store, or move that file " +
					"away to use a store in a file",
			}
		}
	}
	return nil
}

// openServer opens a store in PostgreSQL.
func openServer(ctx context.Context, o Options) (_ *Store, err error) {
	at, config, err := newServer(o.Server)
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, err
	}
	if fileExists(path) && !o.moving {
		return nil, &Error{
			What:   "there is a store in the file " + path + ", of which the " + at.name + " knows nothing",
			Advice: "move it there with: daycared migrate-store; or move the file away",
		}
	}
	s := unopened(o, filepath.Join(filepath.Dir(path), serverName)) // its mark is not that of a file
	s.connectServer(o, at, config)
	if err := s.beginOnServer(ctx, o); err != nil {
		_ = s.Close() // the first error says more
		return nil, err
	}
	return s, nil
}

// beginOnServer is [Store.begin] for a database of PostgreSQL.
func (s *Store) beginOnServer(ctx context.Context, o Options) error {
	if err := s.checkServer(ctx); err != nil {
		return s.fault(ctx, err)
	}
	if err := s.migrateServer(ctx); err != nil {
		return err
	}
	if err := s.join(ctx); err != nil {
		return s.fault(ctx, err)
	}
	if o.NewKey {
		if err := s.runAlone(ctx); err != nil {
			return err
		}
	}
	if err := s.turn(ctx, func(ctx context.Context, conn *sql.Conn) error { return s.identify(ctx, conn, o) }); err != nil {
		return err
	}
	own, err := readIdentity(ctx, s.writer)
	if err == nil && own.seals != sealVersion { // a daemon of before writes seals that hold no more, and does not know the new ones
		err = s.runAlone(ctx)
	}
	if err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	s.server.entries.begin(0, s.ledger.seq)
	s.server.entries.end(true)
	return s.finishKey(o.keyFile())
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
	if s.server != nil {
		s.server.close()
		s.server.workers.Wait()
	}
	s.lost.CompareAndSwap(nil, &Error{What: "the store " + s.name() + " is closed", Advice: "start daycared again", Err: sql.ErrConnDone})
	err := s.readers.Close()
	if s.server != nil {
		err = errors.Join(err, s.leave())
	} else if !s.noteClosing() {
		err = errors.Join(err, s.keepLog())
	}
	if err := errors.Join(err, s.writer.Close()); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// keepLog makes SQLite keep the log, and what is in it, when the store is closed: with a limit it would empty it.
func (s *Store) keepLog() error {
	conn, err := s.writer.Conn(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // only returns it to the pool
	if _, err := conn.ExecContext(context.Background(), `PRAGMA journal_size_limit = -1`); err != nil {
		return err
	}
	return conn.Raw(func(c any) error {
		ours := c.(*sqlite3.SQLiteConn) //nolint:errcheck,forcetypeassert // our driver's
		return ours.SetFileControlInt("main", sqlite3.SQLITE_FCNTL_PERSIST_WAL, 1)
	})
}

// connected is a store over an existing file of which nothing was read yet.
func connected(o Options, path string) (*Store, error) {
	file, err := newPlacedFile(path)
	if err != nil {
		return nil, err
	}
	s := unopened(o, path)
	s.files = []fileIdentity{file}
	busy := cmp.Or(o.Busy, defaultBusyTimeout)
	s.writer = connect(path, busy, 1, "_synchronous=FULL&_txlock=immediate")
	s.readers = connect(path, busy, readers, "_query_only=on&_mutex=no")
	return s, nil
}

func unopened(o Options, path string) *Store {
	return &Store{
		path: path, now: o.Now, log: o.Log, tell: o.tell, stale: true, memory: memory{rows: newRows()}, types: map[permissions.Type]int64{},
		lowPriorityWait: max(0, cmp.Or(o.LowPriorityWait, defaultLowPriorityWait)),
	}
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

// begin checks the file, migrates it, and reads what is kept in memory.
func (s *Store) begin(ctx context.Context, o Options, steps fs.FS) error {
	if err := s.check(ctx); err != nil {
		return s.fault(ctx, err)
	}
	if err := s.migrate(ctx, steps); err != nil {
		return err
	}
	types, err := typesOf(ctx, s.writer)
	if err != nil {
		return s.fault(ctx, err)
	}
	for _, t := range types {
		s.types[t.name] = t.number
	}
	err = s.turn(ctx, func(ctx context.Context, conn *sql.Conn) error { return s.identify(ctx, conn, o) })
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

// keepSmall gives a new store small pages, because a commit writes each page whole that it changes a row of. It has the log cut to
// 64 MiB once what made it longer, such as a backup that is read meanwhile, has ended.
const keepSmall = `PRAGMA page_size = 2048; PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = 67108864`

// check reads the header and the whole schema, and verifies SQLite's durability settings.
func (s *Store) check(ctx context.Context) error {
	const text = `SELECT (SELECT COUNT(*) FROM sqlite_schema), journal_mode, synchronous, foreign_keys
		FROM pragma_journal_mode, pragma_synchronous, pragma_foreign_keys`
	if _, err := s.writer.ExecContext(ctx, keepSmall); err != nil {
		return err
	}
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

// identify reads the store's name and key, or creates both for a new store, and finds the key of its seals.
func (s *Store) identify(ctx context.Context, conn *sql.Conn, o Options) error {
	own, err := readIdentity(ctx, conn)
	fresh := errors.Is(err, sql.ErrNoRows)
	if err != nil && !fresh {
		return unreadable("what the store says of itself", err)
	}
	if fresh {
		own, fresh, err = s.newIdentity(ctx, conn, o)
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

// newIdentity gives a new store its name and key. Where another daemon has done so meanwhile, fresh is false, and it returns those.
func (s *Store) newIdentity(ctx context.Context, conn *sql.Conn, o Options) (own identity, fresh bool, err error) {
	rows := false
	if err := conn.QueryRowContext(ctx, anyRows).Scan(&rows); err != nil {
		return own, false, err
	}
	if rows {
		if own, err = readIdentity(ctx, conn); errors.Is(err, sql.ErrNoRows) {
			err = damaged("what the store says of itself", errors.New("its row is missing"))
		}
		return own, false, err
	}
	now := s.now()
	made := identity{chain: string(permissions.NewID(now)), code: make([]byte, len(s.coder.Key))}
	_, _ = rand.Read(made.code) // never fails
	if err := s.findKey(ctx, conn, o, made, true); err != nil {
		return own, false, err
	}
	err = s.transact(ctx, &tx{conn: conn}, nil, func(int64) error {
		if own, err = readIdentity(ctx, conn); !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		own, fresh = made, true
		if _, err := conn.ExecContext(ctx, insertMeta, own.chain, own.code, now.UnixMicro(), sealVersion); err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, insertChain, own.chain); err != nil {
			return err
		}
		return sealIdentity(ctx, conn, s.seals)
	})
	return own, fresh, err
}

// replacedAt matches the rest of the name of a replaced store: the time, and a number if others have the same.
var replacedAt = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z(-[0-9]+)?$`)

// finishRestore completes a restore that was decided on; otherwise it only removes leftovers.
func finishRestore(path string) error {
	name, err := readSmall(path + intentSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		for _, left := range []string{restoredSuffix, restoredSuffix + draftSuffix} {
			_ = os.Remove(path + left) // a leftover only takes space
		}
		return nil
	}
	if at, ours := strings.CutPrefix(string(name), filepath.Base(path)+replacedSuffix); err == nil &&
		(!ours || !replacedAt.MatchString(at)) {
		err = errors.New("it does not name where the store goes")
	}
	if err != nil {
		return fmt.Errorf("finish the restore that %s began: %w", path+intentSuffix, err)
	}
	for _, m := range restoreSteps(path, string(name)) {
		if err := m.do(); err != nil {
			return fmt.Errorf("finish the restore that %s began: %w", path+intentSuffix, err)
		}
	}
	return nil
}

// restoreStep renames a file, or removes it if to is empty.
type restoreStep struct{ from, to string }

// restoreSteps are the steps of a restore, any of which may be done already: the store and its companions move away, the copy moves in.
func restoreSteps(path, kept string) (all []restoreStep) {
	if fileExists(path + restoredSuffix) {
		kept = filepath.Join(filepath.Dir(path), kept)
		for _, suffix := range []string{"", logSuffix, indexSuffix, journalSuffix} {
			all = append(all, restoreStep{path + suffix, kept + suffix})
		}
		all = append(all, restoreStep{path + restoredSuffix, path})
	}
	return append(all, restoreStep{path + intentSuffix, ""})
}

func (m restoreStep) do() (err error) {
	switch {
	case !fileExists(m.from): // done, or never there
		return nil
	case m.to == "":
		err = os.Remove(m.from)
	case fileExists(m.to):
		err = fmt.Errorf("%s is there already; move it away", m.to)
	default:
		err = os.Rename(m.from, m.to)
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(m.from))
}
