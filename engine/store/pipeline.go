package store

import (
	"context"
	"database/sql"
	"fmt"

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
		var batch pgx.Batch
		for _, one := range list {
			batch.Queue(onPostgres(one.text), escapeValues(one.args)...)
		}
		results := c.(serverConn).Conn.Conn().SendBatch(ctx, &batch) //nolint:errcheck,forcetypeassert // what its connector makes
		defer func() {
			if closed := results.Close(); err == nil {
				err = closed
			}
		}()
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
	})
}

const divisionByZero = "22012"

// changesOne makes a statement that changes rows fail with [divisionByZero] unless it changes one.
func changesOne(text string) string {
	return `WITH changed AS (` + text + ` RETURNING 1) SELECT 1 / (COUNT(*) = 1)::integer FROM changed`
}
