package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// The keys of the WhatsApp account are in tables of its library, in the database that has the store. One process writes them at a time: the
// one that has the lease of that name. A trigger on each table looks at the lease and keeps it as it is until the transaction ends, so that
// a former holder writes nothing.

const (
	accountLease = "whatsapp"

	// nameDaemon says to the triggers who writes.
	nameDaemon = `SELECT set_config('daycared.daemon', $1, FALSE)`

	readUnguarded = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND starts_with(tablename, $1) AND NOT EXISTS ` +
		`(SELECT FROM pg_trigger WHERE tgname = 'leased' AND tgrelid = format('%I.%I', schemaname, tablename)::regclass) ORDER BY tablename`

	guard = `CREATE TRIGGER leased BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION leased('%s')`

	releaseLease = `DELETE FROM leases WHERE name = $1 AND holder = $2`
)

// accountConnections is how many connections [Store.OpenAccount] opens at most.
const accountConnections = 4

// OpenAccount opens the PostgreSQL database that has the store for the tables of the WhatsApp account; makeTables makes them. Only this
// process writes them until it calls release, or is silent for so long that another one takes the lease. The database is nil if another
// process has that. It must not be called for a store in a file, nor by two at a time.
func (s *Store) OpenAccount(
	ctx context.Context, makeTables func(context.Context, *sql.DB) error,
) (db *sql.DB, release func() error, err error) {
	taken, err := s.tryLease(ctx, accountLease, &s.server.leased)
	if err != nil || !taken {
		return nil, nil, s.explain(ctx, err)
	}
	db = stdlib.OpenDB(*s.server.config, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, nameDaemon, s.server.id)
		return err
	}))
	db.SetMaxOpenConns(accountConnections)
	release = func() error {
		err := db.Close()
		ctx, cancel := context.WithTimeout(context.Background(), idleWait)
		defer cancel()
		return errors.Join(err, s.write(ctx, func(ctx context.Context, t *tx) error {
			t.exec(ctx, releaseLease, accountLease, s.server.id)
			return nil
		}))
	}
	if err = makeTables(ctx, db); err == nil {
		err = s.explain(ctx, guardTables(ctx, db))
	}
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return db, release, nil
}

// guardTables makes the triggers that are missing.
func guardTables(ctx context.Context, db *sql.DB) error {
	names, err := collect(ctx, db, "", func(name *string) []any { return []any{name} }, readUnguarded, accountTables)
	for _, name := range names {
		if err == nil {
			_, err = db.ExecContext(ctx, fmt.Sprintf(guard, pgx.Identifier{name}.Sanitize(), accountLease))
		}
	}
	return err
}
