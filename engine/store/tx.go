package store

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"math"
)

// tx is one write transaction and what will be known in memory once it is committed. It is the bare connection: a
// sql.Tx starts a goroutine for itself and for every query, which costs more than the queries.
type tx struct {
	conn *sql.Conn
	ledger
	rows  *rows
	wrote bool // something that would have to be undone
	marks bool // that the store came so far, for one because it takes something back
}

// ExecContext is that of [sql.Conn].
func (t *tx) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	t.wrote = true
	return t.conn.ExecContext(ctx, text, args...)
}

// change is ExecContext for what has to change one row, so that nothing is said to be closed that still stands open.
func (t *tx) change(ctx context.Context, text string, args ...any) error {
	result, err := t.ExecContext(ctx, text, args...)
	if err != nil {
		return err
	}
	if n, _ := result.RowsAffected(); n != 1 { // SQLite always tells
		return damaged("the schema or a row", fmt.Errorf("a change of one row changed %d", n))
	}
	return nil
}

// QueryContext is that of [sql.Conn], and only reads.
func (t *tx) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	return t.conn.QueryContext(ctx, text, args...)
}

// QueryRowContext is that of [sql.Conn], and only reads.
func (t *tx) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	return t.conn.QueryRowContext(ctx, text, args...)
}

// returning is QueryRowContext for what writes as well.
func (t *tx) returning(ctx context.Context, text string, args ...any) *sql.Row {
	t.wrote = true
	return t.conn.QueryRowContext(ctx, text, args...)
}

// ledger is what every write needs and no write should have to look for.
type ledger struct {
	head    // of this daemon's audit chain
	pending int
	newest  int64  // number of a request
	stopped string // by whom; empty: nothing is stopped
}

// source is whatever rows can be read from.
type source interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row
}

const countPending = `SELECT COUNT(*) FROM requests WHERE state = 'pending'`

// noteHalt says to those who would be refused while everything is stopped that it is, so that they need not wait for
// their turn.
func (s *Store) noteHalt() {
	by := s.ledger.stopped
	switch known := s.halt.Load(); {
	case by == "" || s.stale:
		s.halt.Store(nil)
	case known == nil || *known != by:
		s.halt.Store(&by)
	}
}

// transact runs do in an immediate transaction.
func transact(ctx context.Context, conn *sql.Conn, do func() error) (err error) {
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	committed := false
	defer func() {
		if !committed { // also when do panics; SQLite may have rolled back by itself, which is as good
			_, _ = conn.ExecContext(ctx, "ROLLBACK")
		}
	}()
	if err := do(); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	committed = err == nil
	return err
}

// CountPending is how many requests are pending.
func (s *Store) CountPending(ctx context.Context) (n int, err error) {
	err = s.read(ctx, func(from source) error { return from.QueryRowContext(ctx, countPending).Scan(&n) })
	return n, err
}

// catchUp brings up to date what is known in memory, where it is not: after a commit that failed and may have been done all
// the same, which is told now, and when somebody else has written the file. The audit goes on only where that commit or the
// last one left it.
func (s *Store) catchUp(ctx context.Context, t *tx, stale bool) error {
	version := int64(0)
	if err := t.QueryRowContext(ctx, readVersion).Scan(&version); err != nil {
		return err
	}
	if !stale && version == s.version {
		return nil
	}
	if s.started && version != s.version { // a trigger, say, could undo what is written now
		steps, err := fs.Sub(migrations, "migrations")
		if err != nil {
			return err
		}
		if err := s.checkSchema(ctx, t, steps, math.MaxInt64); err != nil {
			return err
		}
	}
	s.rows.dropAll()
	if err := s.reckon(ctx, t); err != nil {
		return err
	}
	if s.started && t.head != s.ledger.head && t.head != s.tried {
		if t.seq <= s.ledger.seq { // the next start has to see that it is gone
			s.noteMark(s.ledger.head)
		}
		return s.meddled(max(t.seq, s.ledger.seq))
	}
	if t.seq != s.ledger.seq {
		s.bell.ring()
	}
	s.ledger, s.version, s.tried = t.ledger, version, t.head
	return nil
}

// readVersion is a number that changes with the commits of other connections.
const readVersion = `PRAGMA data_version`

// reckon reads the ledger from the rows.
func (s *Store) reckon(ctx context.Context, t *tx) error {
	if err := t.QueryRowContext(ctx, countPending).Scan(&t.pending); err != nil {
		return fmt.Errorf("count pending requests: %w", err)
	}
	own, err := readIdentity(ctx, t)
	if err != nil {
		return fmt.Errorf("read who stopped everything: %w", unreadable("what the store says of itself", err))
	}
	if s.from == s.seals && !own.holds(s.from) { // where the key changes, findKey has looked
		return unsealed("who stopped everything")
	}
	t.stopped = own.stoppedBy
	if t.newest, err = s.newest(ctx, t, own.above); err != nil {
		return fmt.Errorf("read the newest request: %w", err)
	}
	t.head, err = readHead(ctx, t, s.chain)
	return err
}

// read runs do over one unchanging view of the rows.
func (s *Store) read(ctx context.Context, do func(source) error) error {
	if err := s.placed(); err != nil {
		return err
	}
	conn, err := s.readers.Conn(ctx)
	if err != nil {
		return s.fault(ctx, err)
	}
	defer func() { _ = conn.Close() }() // only gives it back
	if _, err := conn.ExecContext(unlessOver(ctx), "BEGIN"); err != nil {
		return s.fault(ctx, err)
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }() // there is nothing to commit
	return s.explain(ctx, do(view{conn}))
}

// view is a connection that reads. The end of a context is noticed between its queries: one that could be cut short
// would need a goroutine for each, which costs more than the query.
type view struct{ conn *sql.Conn }

// QueryContext is that of [sql.Conn].
func (v view) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	return v.conn.QueryContext(unlessOver(ctx), text, args...)
}

// QueryRowContext is that of [sql.Conn].
func (v view) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	return v.conn.QueryRowContext(unlessOver(ctx), text, args...)
}

// unlessOver is ctx without its end, if that has not come yet.
func unlessOver(ctx context.Context) context.Context {
	if ctx.Err() != nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}
