package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// statement is one that goes to PostgreSQL together with others, in one round trip.
type statement struct {
	text string
	args []any // as the driver takes them
	into []any // destinations of the columns of its one row; empty: it returns no row that matters
}

// pipeline executes statements on a server in one round trip, until the first one that fails.
func pipeline(ctx context.Context, conn *sql.Conn, list []statement) error {
	return conn.Raw(func(c any) (err error) {
		results := c.(*serverConn).sendAll(ctx, list) //nolint:errcheck,forcetypeassert // what its connector makes
		defer func() { err = cmp.Or(err, results.Close()) }()
		return received(results, list)
	})
}

// sendFirst has statements sent with the next query, before it.
func sendFirst(conn *sql.Conn, list []statement) error {
	return conn.Raw(func(c any) error {
		c.(*serverConn).first = list //nolint:errcheck,forcetypeassert // what its connector makes
		return nil
	})
}

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

const divisionByZero = "22012"

// changesOne makes a statement that changes rows fail with [divisionByZero] unless it changes one.
func changesOne(text string) string {
	return `WITH changed AS (` + text + ` RETURNING 1) SELECT 1 / (COUNT(*) = 1)::integer FROM changed`
}
