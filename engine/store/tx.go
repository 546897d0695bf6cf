package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"math"

	"github.com/daycared/daycared/permissions"
)

// tx is one write transaction, and the state in memory that its commit will set. It uses the bare connection: sql.Tx
// starts a goroutine for itself and for every query, which costs more than the queries.
type tx struct {
	conn *sql.Conn
	ledger
	rows  *rows
	err   error // of the first statement that failed
	wrote bool  // a rollback would undo something
	marks bool  // the mark has to cover it, for example because it revokes something
}

// ExecContext is that of [sql.Conn] and notes that the transaction wrote. Once a statement has failed, it runs no other one: SQLite
// may have rolled back, and what followed would be committed alone.
func (t *tx) ExecContext(ctx context.Context, text string, args ...any) (result sql.Result, err error) {
	if t.err == nil {
		t.wrote = true
		result, t.err = t.conn.ExecContext(ctx, text, args...)
	}
	return result, t.err
}

// exec is ExecContext that returns how many rows changed. Its error is t.err, with which the write fails, so that callers may go on.
func (t *tx) exec(ctx context.Context, text string, args ...any) (changed int64) {
	if result, err := t.ExecContext(ctx, text, args...); err == nil {
		changed, t.err = result.RowsAffected()
	}
	return changed
}

// execute runs one statement in a write of its own.
func (s *Store) execute(ctx context.Context, text string, args ...any) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		t.exec(ctx, text, args...)
		return nil
	})
}

// change is exec for a statement that has to change exactly one row, so that nothing is reported as closed while it is open.
func (t *tx) change(ctx context.Context, text string, args ...any) {
	if n := t.exec(ctx, text, args...); n != 1 {
		t.fail(damaged("the schema or a row", fmt.Errorf("a change of one row changed %d", n)))
	}
}

// fail makes the write fail with err, unless that is nil or another error came first.
func (t *tx) fail(err error) { t.err = cmp.Or(t.err, err) }

// QueryContext is that of [sql.Conn], for reading only.
func (t *tx) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	return t.conn.QueryContext(ctx, text, args...)
}

// QueryRowContext is that of [sql.Conn], for reading only.
func (t *tx) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	return t.conn.QueryRowContext(ctx, text, args...)
}

// returning is exec for a statement that returns one value.
func (t *tx) returning(ctx context.Context, value any, text string, args ...any) {
	if t.err == nil {
		t.wrote = true
		t.err = t.conn.QueryRowContext(ctx, text, args...).Scan(value)
	}
}

// ledger is what every write needs, kept in memory.
type ledger struct {
	head    // of this daemon's audit chain
	pending int
	newest  int64  // number of a request
	stopped string // by whom; empty: nobody
}

// source is what rows can be read from.
type source interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row
}

const countPending = `SELECT COUNT(*) FROM requests WHERE state = 'pending'`

// noteHalt publishes the stop, so that callers are refused without waiting for their turn.
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
		if !committed { // also if do panics; SQLite may have rolled back itself, which is fine
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

// CountPending is the number of pending requests.
func (s *Store) CountPending(ctx context.Context) (int, error) {
	return reading(ctx, s, func(from source) (int, error) { return count(ctx, from, countPending) })
}

// catchUp refreshes the state in memory after a commit that failed but may have happened, which it announces, and after
// a write by another process. It fails unless the audit continues from one of these commits.
func (s *Store) catchUp(ctx context.Context, t *tx, stale bool) error {
	version := int64(0)
	if err := t.QueryRowContext(ctx, readVersion).Scan(&version); err != nil {
		return err
	}
	if !stale && version == s.version {
		return nil
	}
	if s.started && version != s.version { // an added trigger, for example, could undo this write
		steps, err := fs.Sub(migrations, "migrations")
		if err != nil {
			return err
		}
		if err := s.checkSchema(ctx, t, steps, math.MaxInt64); err != nil {
			return err
		}
	}
	s.rows.dropAll()
	if err := s.readLedger(ctx, t); err != nil {
		return err
	}
	if s.started && t.head != s.ledger.head && t.head != s.tried {
		if t.seq <= s.ledger.seq { // the next start must notice the loss
			s.noteMark(s.ledger.head)
		}
		return s.isTampered(max(t.seq, s.ledger.seq))
	}
	if t.seq != s.ledger.seq {
		s.bell.ring()
	}
	s.ledger, s.version, s.tried = t.ledger, version, t.head
	return nil
}

// readVersion changes with other connections' commits.
const readVersion = `PRAGMA data_version`

// readLedger reads the ledger from the rows.
func (s *Store) readLedger(ctx context.Context, t *tx) error {
	if err := t.QueryRowContext(ctx, countPending).Scan(&t.pending); err != nil {
		return fmt.Errorf("count pending requests: %w", err)
	}
	own, err := readIdentity(ctx, t)
	if err != nil {
		return fmt.Errorf("read who stopped everything: %w", unreadable("what the store says of itself", err))
	}
	if s.from == s.seals && !own.holds(s.from) { // where the key changes, findKey has checked
		return unsealed("who stopped everything")
	}
	t.stopped = own.stoppedBy
	version, err := s.sealsBefore(ctx, t, own)
	if err != nil {
		return err
	}
	if t.newest, err = s.newest(ctx, t, version, own.above); err != nil {
		return fmt.Errorf("read the newest request: %w", err)
	}
	t.head, err = readHead(ctx, t, s.chain)
	return err
}

// reading is [Store.read] of one value.
func reading[T any](ctx context.Context, s *Store, do func(source) (T, error)) (v T, err error) {
	err = s.read(ctx, func(from source) error {
		v, err = do(from)
		return err
	})
	return v, err
}

// writing is [Store.write] of one value, which is zero after an error.
func writing[T any](ctx context.Context, s *Store, do func(context.Context, *tx) (T, error)) (v T, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) (err error) {
		v, err = do(ctx, t)
		return err
	})
	if err != nil {
		return *new(T), err
	}
	return v, nil
}

// readingAfter is reading of what comes after a request, by its number.
func readingAfter[T any](
	ctx context.Context, s *Store, after permissions.ID, do func(from source, number int64) (T, error),
) (T, error) {
	return reading(ctx, s, func(from source) (v T, err error) {
		number, err := position(ctx, from, after)
		if err != nil {
			return v, err
		}
		return do(from, number)
	})
}

// read runs do on one consistent snapshot.
func (s *Store) read(ctx context.Context, do func(source) error) error {
	if err := s.checkPaths(); err != nil {
		return err
	}
	conn, err := s.readers.Conn(ctx)
	if err != nil {
		return s.fault(ctx, err)
	}
	defer func() { _ = conn.Close() }() // only returns it to the pool
	if _, err := conn.ExecContext(unlessOver(ctx), "BEGIN"); err != nil {
		return s.fault(ctx, err)
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }() // nothing to commit
	return s.explain(ctx, do(view{conn}))
}

// view is a reading connection. It checks the context between queries only: interruptible queries need a goroutine
// each, which costs more than the query.
type view struct{ conn *sql.Conn }

// QueryContext is that of [sql.Conn] without the cancellation.
func (v view) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	return v.conn.QueryContext(unlessOver(ctx), text, args...)
}

// QueryRowContext is that of [sql.Conn] without the cancellation.
func (v view) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	return v.conn.QueryRowContext(unlessOver(ctx), text, args...)
}

// unlessOver returns ctx without its cancellation, unless it has ended already.
func unlessOver(ctx context.Context) context.Context {
	if ctx.Err() != nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}
