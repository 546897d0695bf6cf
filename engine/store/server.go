package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// connectServer sets the connections of a store.
func (s *Store) connectServer(o Options, at *postgres, config *pgx.ConnConfig) {
	s.server = at
	at.closing, at.close = context.WithCancel(context.Background())
	if at.lost = func(error) {}; o.Lost != nil {
		at.lost = o.Lost
	}
	pool := func(n int) *sql.DB {
		db := sql.OpenDB(serverConnector{stdlib.GetConnector(*config)})
		db.SetMaxOpenConns(n)
		db.SetMaxIdleConns(n)
		return db
	}
	s.writer, s.readers = pool(1), pool(readers)
}

// Server describes a PostgreSQL database that has a store.
type Server struct {
	Name    string   // of the database, for people
	Daemons []Daemon // that use it
	Linked  bool     // a WhatsApp account is linked; only [InspectServer] says it

	NewestEntry time.Time // of its audit, if its clock is more than a minute behind that; zero: it is not
}

// InspectServer looks at the database of o.Server without changing it. Its error is an [Error], or says what is wrong with the address.
func InspectServer(ctx context.Context, o Options) (found Server, err error) {
	at, config, err := newServer(o.Server)
	if err != nil {
		return found, err
	}
	db := sql.OpenDB(serverConnector{stdlib.GetConnector(*config)})
	defer func() { err = errors.Join(err, db.Close()) }()
	s := &Store{server: at, writer: db, log: slog.New(slog.DiscardHandler)}
	found.Name = at.name
	if err := s.checkServer(ctx); err != nil {
		return found, s.fault(ctx, err)
	}
	found.Daemons, err = readingDaemons(ctx, db)
	if err == nil {
		err = db.QueryRowContext(ctx, readEntryInFuture).Scan(instant{&found.NewestEntry})
	}
	if err == nil {
		err = db.QueryRowContext(ctx, hasAccount).Scan(&found.Linked)
	}
	if state := sqlState(err); state == noTable || state == noColumn { // no daemon of this version has used it
		return found, nil
	}
	return found, s.explain(ctx, err)
}

const (
	accountTables = "whatsmeow_" // with which the names of the tables of the WhatsApp account begin
	hasAccount    = `SELECT EXISTS (SELECT FROM ` + accountTables + `device)`

	readEntryInFuture = `SELECT COALESCE(MAX(at), 0) FROM (SELECT at FROM entries ORDER BY key DESC LIMIT 1) AS newest ` +
		`WHERE at > 1000000 * EXTRACT(EPOCH FROM clock_timestamp() + INTERVAL '1 minute')`
)

// noTable and noColumn are the codes of PostgreSQL for what is not there.
const noTable, noColumn = "42P01", "42703"

// Daemon is a daemon that uses a database.
type Daemon struct {
	Place    string // where it runs, for people
	Leases   string // what it alone does, separated by commas
	Settings string // a hash of its settings; empty: not stored yet
}

// Differ reports whether its daemons have different settings.
func (s Server) Differ() bool {
	hash := ""
	for _, d := range s.Daemons {
		if hash = cmp.Or(hash, d.Settings); d.Settings != "" && d.Settings != hash {
			return true
		}
	}
	return false
}

// String says to people where it runs and what it alone does.
func (d Daemon) String() string {
	if d.Leases == "" {
		return d.Place
	}
	return d.Place + " (which has the " + d.Leases + ")"
}

// Server describes the database that has the store; it is empty with a file.
func (s *Store) Server(ctx context.Context) (found Server, err error) {
	if s.server == nil {
		return found, nil
	}
	found.Name = s.server.name
	found.Daemons, err = readingDaemons(ctx, s.readers)
	return found, s.explain(ctx, err)
}

// Pool is the pool of reading connections to the database that has the store; nil with a file.
func (s *Store) Pool() *sql.DB {
	if s.server == nil {
		return nil
	}
	return s.readers
}

const readDaemons = `SELECT place, COALESCE((SELECT STRING_AGG(name, ', ' ORDER BY name) FROM leases WHERE holder = daemons.id), ''), ` +
	`settings FROM daemons WHERE until > clock_timestamp() ORDER BY id`

func readingDaemons(ctx context.Context, db *sql.DB) ([]Daemon, error) {
	return collect(ctx, db, "", func(d *Daemon) []any { return []any{&d.Place, &d.Leases, &d.Settings} }, readDaemons)
}

// oldestServer is the oldest version of PostgreSQL that the tests run on.
const oldestServer = 150000

// checkServer refuses a database in which a store cannot be kept safely.
func (s *Store) checkServer(ctx context.Context) error {
	conn, err := s.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // only returns it to the pool
	var number int
	var pid uint32
	var version, encoding, fsync string
	err = conn.QueryRowContext(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'), `+
		`getdatabaseencoding(), current_setting('fsync'), pg_backend_pid()`).Scan(&number, &version, &encoding, &fsync, &pid)
	if err != nil {
		return err
	}
	own := uint32(0)
	err = conn.Raw(func(c any) error {
		own = c.(*serverConn).Conn.Conn().PgConn().PID() //nolint:errcheck,forcetypeassert // our driver's
		return nil
	})
	refuse := func(why, advice string) error {
		return &Error{What: "the " + s.server.name + " cannot keep daycared's store: " + why, Advice: advice}
	}
	switch {
	case err != nil:
		return err
	case number < oldestServer:
		return refuse("it is PostgreSQL "+version, "use PostgreSQL 15 or newer")
	case encoding != "UTF8":
		return refuse("its encoding is "+encoding, "create it with: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0")
	case own != pid:
		return refuse("it is reached through a pooler that gives each transaction another connection",
			"connect to PostgreSQL itself, or to a pooler in session mode")
	case fsync != "on":
		s.log.Warn("fsync is off in PostgreSQL: a power cut can lose decisions and damage the database", "database", s.server.name)
	}
	return nil
}
