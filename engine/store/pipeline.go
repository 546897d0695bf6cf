package store

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// serverConn is a connection that takes the statements of SQLite.
type serverConn struct {
	*stdlib.Conn

	first []statement // that go with the next query
	// prefetched are the rows of queries that were sent before they were needed, by [queryKey]. A transaction before which nobody else
	// writes reads them as long as it has written nothing.
	prefetched map[string]*readRows
}

// queryKey tells queries apart.
func queryKey(text string, args []any) string { return text + fmt.Sprintf("\x00%v", args) }

func (c *serverConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	c.first, c.prefetched = nil, nil // of what nothing was read after
	return c.Conn.ExecContext(ctx, onPostgres(text), escapeArgs(args))
}

func (c *serverConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (rows driver.Rows, err error) {
	if first := c.first; len(first) > 0 {
		c.first, c.prefetched = nil, nil
		rows, err = c.queryAfter(ctx, first, text, args)
	} else if rows = c.prefetchedRows(text, args); rows == nil {
		if !strings.HasPrefix(text, "SELECT ") { // it may write
			c.prefetched = nil
		}
		rows, err = c.Conn.QueryContext(ctx, onPostgres(text), escapeArgs(args))
	}
	if err != nil {
		return nil, err
	}
	return serverRows{rows}, nil
}

// prefetchedRows returns the rows of a query that was prefetched; nil: it was not.
func (c *serverConn) prefetchedRows(text string, args []driver.NamedValue) driver.Rows {
	if len(c.prefetched) == 0 {
		return nil
	}
	values := make([]any, len(args))
	for i, arg := range args {
		value, err := driverValue(arg.Value)
		if err != nil {
			return nil
		}
		values[i] = value
	}
	if rows := c.prefetched[queryKey(text, values)]; rows != nil {
		return &readRows{rows.names, rows.rows}
	}
	return nil
}

// serverConnector makes [serverConn].
type serverConnector struct{ driver.Connector }

func (c serverConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &serverConn{Conn: conn.(*stdlib.Conn)}, nil //nolint:errcheck,forcetypeassert // what its connector makes
}

// pipeline implements [pipeliner].
func (c *serverConn) pipeline(ctx context.Context, list []statement) (err error) {
	c.prefetched = nil
	results := c.sendAll(ctx, list)
	defer func() { err = cmp.Or(err, results.Close()) }()
	return c.received(results, list)
}

// sendFirst implements [pipeliner].
func (c *serverConn) sendFirst(list []statement) { c.first = list }

// sendAll sends statements at once.
func (c *serverConn) sendAll(ctx context.Context, list []statement) pgx.BatchResults {
	var batch pgx.Batch
	for _, one := range list {
		batch.Queue(onPostgres(one.text), escapeValues(one.args)...)
	}
	return c.Conn.Conn().SendBatch(ctx, &batch)
}

// received reads the results of statements, until the first one that failed.
func (c *serverConn) received(results pgx.BatchResults, list []statement) (err error) {
	for _, one := range list {
		switch {
		case one.prefetch:
			err = c.keepPrefetched(results, one)
		case one.hint: // the transaction before it was committed
			_, _ = results.Exec()
		case len(one.into) > 0:
			err = results.QueryRow().Scan(one.into...)
		default:
			tag, failed := results.Exec()
			if err = failed; err == nil && one.text == "COMMIT" && tag.String() != one.text {
				err = &pgconn.PgError{Code: "25P02", Message: "the transaction is aborted, because a statement failed"}
			}
		}
		if sqlState(err) == divisionByZero {
			err = damaged("the schema or a row", fmt.Errorf("a change of one row changed none or several: %w", err))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keepPrefetched reads the rows of a prefetched query.
func (c *serverConn) keepPrefetched(results pgx.BatchResults, one statement) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	from := pipelinedRows{Rows: rows}
	kept := &readRows{names: from.Columns()}
	for err == nil {
		row := make([]driver.Value, len(kept.names))
		if err = from.Next(row); err == nil {
			kept.rows = append(kept.rows, row)
		}
	}
	rows.Close()
	if !errors.Is(err, io.EOF) {
		return err
	}
	if c.prefetched == nil {
		c.prefetched = map[string]*readRows{}
	}
	c.prefetched[queryKey(one.text, one.args)] = kept
	return nil
}

// readRows are rows that were read whole.
type readRows struct {
	names []string
	rows  [][]driver.Value
}

func (r *readRows) Columns() []string { return r.names }

func (r *readRows) Close() error { return nil }

func (r *readRows) Next(into []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(into, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}

// queryAfter executes statements and a query behind them, in one round trip.
func (c *serverConn) queryAfter(ctx context.Context, list []statement, text string, args []driver.NamedValue) (driver.Rows, error) {
	query := statement{text: text}
	for _, arg := range args {
		value, err := driverValue(arg.Value)
		if err != nil {
			return nil, err
		}
		query.args = append(query.args, value)
	}
	results := c.sendAll(ctx, append(list, query))
	if err := c.received(results, list); err != nil {
		return nil, cmp.Or(err, results.Close())
	}
	rows, err := results.Query()
	if err != nil {
		return nil, cmp.Or(err, results.Close())
	}
	return pipelinedRows{rows, results}, nil
}

// pipelinedRows are the rows of the last statement of several.
type pipelinedRows struct {
	pgx.Rows

	all pgx.BatchResults
}

func (r pipelinedRows) Columns() (names []string) {
	for _, column := range r.FieldDescriptions() {
		names = append(names, column.Name)
	}
	return names
}

func (r pipelinedRows) Close() error {
	r.Rows.Close()
	return r.all.Close()
}

func (r pipelinedRows) Next(into []driver.Value) error {
	if !r.Rows.Next() {
		return cmp.Or(r.Err(), io.EOF)
	}
	values, err := r.Values()
	for i := range into {
		if err == nil {
			into[i], err = driver.DefaultParameterConverter.ConvertValue(values[i])
		}
	}
	return err
}
