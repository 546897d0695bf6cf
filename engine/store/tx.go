package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/daycared/daycared/permissions"
)

// statement is one that goes to PostgreSQL together with others, in one round trip.
type statement struct {
	text string
	args []any // as the driver takes them
	into []any // destinations of the columns of its one row; empty: it returns no row that matters

	prefetch bool // it is a query whose rows are kept until it is made
	hint     bool // nothing follows from its error
}

// pipeliner is a connection to a server.
type pipeliner interface {
	// pipeline executes statements in one round trip, until the first one that fails.
	pipeline(ctx context.Context, list []statement) error
	// sendFirst has statements sent with the next query, before it.
	sendFirst(list []statement)
}

// pipeline is that of a connection to a server.
func pipeline(ctx context.Context, conn *sql.Conn, list []statement) error {
	return conn.Raw(func(c any) error {
		return c.(pipeliner).pipeline(ctx, list) //nolint:errcheck,forcetypeassert // what its connector makes
	})
}

// sendFirst is that of a connection to a server.
func sendFirst(conn *sql.Conn, list []statement) error {
	return conn.Raw(func(c any) error {
		c.(pipeliner).sendFirst(list) //nolint:errcheck,forcetypeassert // what its connector makes
		return nil
	})
}

const divisionByZero = "22012"

// changesOne makes a statement that changes rows fail with [divisionByZero] unless it changes one.
func changesOne(text string) string {
	return `WITH changed AS (` + text + ` RETURNING 1) SELECT 1 / (COUNT(*) = 1)::integer FROM changed`
}

// tx is one write transaction, and the state in memory that its commit will set. It uses the bare connection: sql.Tx
// starts a goroutine for itself and for every query, which costs more than the queries.
type tx struct {
	conn *sql.Conn
	ledger
	pipelined bool        // on a server
	later     []statement // that go there with the next query, or the commit
	rows      changes
	err       error // of the first statement that failed
	wrote     bool  // a rollback would undo something
	marks     bool  // the mark has to cover it, for example because it revokes something

	granted  bool                // a statement named the table of grants
	unheeded bool                // a request was denied or not answered in time
	closes   bool                // something ends that let calls pass, as by a lock
	entries  []permissions.Entry // of the audit
}

// ExecContext is that of [sql.Conn] and notes that the transaction wrote. Once a statement has failed, it runs no other one: SQLite
// may have rolled back, and what followed would be committed alone.
func (t *tx) ExecContext(ctx context.Context, text string, args ...any) (result sql.Result, err error) {
	if args = t.begun(text, args); t.err == nil {
		t.fail(t.send(ctx))
	}
	if t.err == nil {
		result, t.err = t.conn.ExecContext(ctx, text, args...)
	}
	return result, t.err
}

// begun notes that a statement is about to write, and returns its arguments as the driver takes them.
func (t *tx) begun(text string, args []any) []any {
	if t.err == nil {
		t.wrote = true
		t.granted = t.granted || strings.Contains(text, "grants") // the table
		args, t.err = driverArgs(args)
	}
	return args
}

// affected is ExecContext that returns how many rows changed. Its error is t.err, with which the write fails, so that callers may go on.
func (t *tx) affected(ctx context.Context, text string, args ...any) (changed int64) {
	if result, err := t.ExecContext(ctx, text, args...); err == nil {
		changed, t.err = result.RowsAffected()
	}
	return changed
}

// exec executes a statement: on a server with the next query or the commit, whose error is then the statement's too, because each waits
// for an answer.
func (t *tx) exec(ctx context.Context, text string, args ...any) {
	if !t.pipelined {
		_ = t.affected(ctx, text, args...)
	} else if args = t.begun(text, args); t.err == nil {
		t.later = append(t.later, statement{text: text, args: args})
	}
}

// send executes what waits in t.later, and more statements after it.
func (t *tx) send(ctx context.Context, more ...statement) error {
	list := slices.Concat(t.later, more)
	if t.later = nil; len(list) == 0 {
		return nil
	}
	return pipeline(ctx, t.conn, list)
}

// goFirst has what waits in t.later sent with the next query.
func (t *tx) goFirst() {
	if list := t.later; len(list) > 0 {
		t.later = nil
		t.fail(sendFirst(t.conn, list))
	}
}

// change is exec for a statement that has to change exactly one row, so that nothing is reported as closed while it is open.
func (t *tx) change(ctx context.Context, text string, args ...any) {
	if t.pipelined {
		t.exec(ctx, changesOne(text), args...)
	} else if n := t.affected(ctx, text, args...); n != 1 {
		t.fail(damaged("the schema or a row", fmt.Errorf("a change of one row changed %d", n)))
	}
}

// fail makes the write fail with err, unless that is nil or another error came first.
func (t *tx) fail(err error) { t.err = cmp.Or(t.err, err) }

// QueryContext is that of [sql.Conn], for reading only.
func (t *tx) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	t.goFirst()
	return t.conn.QueryContext(ctx, text, args...)
}

// QueryRowContext is that of [sql.Conn], for reading only.
func (t *tx) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	t.goFirst()
	return t.conn.QueryRowContext(ctx, text, args...)
}

// returning is exec for a statement that returns one value.
func (t *tx) returning(ctx context.Context, value any, text string, args ...any) {
	if t.err == nil {
		t.wrote = true
		t.err = t.QueryRowContext(ctx, text, args...).Scan(value)
	}
}

// changes names what the transaction changed of what daemons have in memory.
func (t *tx) changes() (what []string) {
	for id := range t.rows.touched {
		what = append(what, string(id))
	}
	if t.rows.all || len(what) > maxRows {
		what = []string{allRows}
	}
	if t.granted {
		what = append(what, ofGrants)
	}
	if t.unheeded {
		what = append(what, ofUnheeded)
	}
	if t.closes {
		what = append(what, ofClosings)
	}
	return what
}

// ledger is what every write needs, kept in memory.
type ledger struct {
	head    // of this daemon's audit chain
	pending int
	newest  int64  // number of a request
	stopped string // by whom; empty: nobody
}

// head is the newest entry of a chain.
type head struct {
	seq  int64
	hash permissions.Digest
}

// broadcast wakes everybody who waits for the next entry. The first waiter makes the channel.
type broadcast struct {
	mu sync.Mutex
	c  chan struct{} // nil: no waiter
}

func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

func (b *broadcast) wakeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c != nil {
		close(b.c)
		b.c = nil
	}
}

// OnPoint is called, if set, before each commit ("group.before"), after it but before any caller returns ("group.after"), with the number
// of writes, before each read transaction ("read"), and before what others changed is read and cached ("news"). Only tests set it, before a
// store is opened.
var OnPoint func(point string, writes int)

func reachPoint(point string, writes int) {
	if OnPoint != nil {
		OnPoint(point, writes)
	}
}
