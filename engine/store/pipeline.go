package store

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// serverConn is a connection that takes the statements of SQLite.
type serverConn struct {
	*stdlib.Conn

	first []statement // that go with the next query
}

func (c *serverConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	c.first = nil // of what nothing was read after
	return c.Conn.ExecContext(ctx, onPostgres(text), escapeArgs(args))
}

func (c *serverConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (rows driver.Rows, err error) {
	if first := c.first; len(first) > 0 {
		c.first = nil
		rows, err = c.queryAfter(ctx, first, text, args)
	} else {
		rows, err = c.Conn.QueryContext(ctx, onPostgres(text), escapeArgs(args))
	}
	if err != nil {
		return nil, err
	}
	return serverRows{rows}, nil
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
	results := c.sendAll(ctx, list)
	defer func() { err = cmp.Or(err, results.Close()) }()
	return received(results, list)
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
func received(results pgx.BatchResults, list []statement) (err error) {
	for _, one := range list {
		if len(one.into) > 0 {
			err = results.QueryRow().Scan(one.into...)
		} else {
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
	if err := received(results, list); err != nil {
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
