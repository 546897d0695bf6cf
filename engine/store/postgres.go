package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/daycared/daycared/permissions"
)

// postgres is the PostgreSQL database that a store is in instead of a file.
//
// Its table writer has one row, which each write transaction changes first. So one transaction writes at a time, as with SQLite, and
// only the holder's: a daemon that takes over writes its own name there, and the former holder changes no row any more.
type postgres struct {
	name   string // of the database, for people, without a password
	holder string // this opening
	place  string // where it runs
	held   func(place string)
	lost   func(error)

	// The following belong to the owner of the write turn.
	own    int64 // how many write transactions of this opening were committed
	began  int64 // version of the transaction that began last
	unsure int64 // version of a transaction whose commit was not answered; 0: none

	closing context.Context //nolint:containedctx // it ends when the store is closed
	close   context.CancelFunc
	renewal sync.WaitGroup
}

const (
	// heldFor is how long a daemon that does not write holds a database, and renewEvery how often it says that it runs.
	heldFor    = 9 * time.Second
	renewEvery = 3 * time.Second
	// serverWait is how long a statement may take, and idleWait how long a transaction may do nothing, before PostgreSQL ends it:
	// shorter than heldFor, so that a daemon that was halted in a transaction does not keep others waiting.
	serverWait = 8 * time.Second
	idleWait   = 4 * time.Second
)

// newServer reads a URL of PostgreSQL. The password is in the file or the variables of libpq.
func newServer(url string) (*postgres, *pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil { // it leaves the password out
		return nil, nil, fmt.Errorf("database: %w", err)
	}
	if config.RuntimeParams["tcp_user_timeout"] != "" {
		return nil, nil, errors.New("database: tcp_user_timeout would be a setting of the server here; leave it out of the URL")
	}
	at := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	switch local := strings.HasPrefix(config.Host, "/"); {
	case local:
		at = config.Host
	case !strings.Contains(url, "sslmode=") && os.Getenv("PGSSLMODE") == "" && !onThisMachine(config.Host):
		return nil, nil, fmt.Errorf("database: say how the way to %s is protected: add ?sslmode=verify-full to the address (and "+
			"&sslrootcert=FILE for a certificate of your own), or ?sslmode=disable where nobody else can read or change what goes there", at)
	}
	config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite // on a standby every write would fail
	for name, value := range map[string]string{
		"application_name": "daycared", "synchronous_commit": "on", "client_encoding": "UTF8",
		"statement_timeout":                   milliseconds(serverWait),
		"lock_timeout":                        milliseconds(serverWait),
		"idle_in_transaction_session_timeout": milliseconds(idleWait),
	} {
		config.RuntimeParams[name] = value
	}
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, 5*time.Second)
	config.DialFunc = dialServer
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	s := &postgres{
		name: fmt.Sprintf("PostgreSQL database %s at %s", config.Database, at), holder: string(permissions.NewID(time.Now())),
		place: fmt.Sprintf("%s, pid %d", host, os.Getpid()),
	}
	return s, config, nil
}

func onThisMachine(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// dialServer makes connections that fail when the other side is silent for longer than a statement may take.
func dialServer(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return boundedConn{conn, serverWait + 2*time.Second}, nil
}

// boundedConn is a connection of which a read fails after a time.
type boundedConn struct {
	net.Conn

	wait time.Duration
}

func (c boundedConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.wait)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

const (
	takeWriter = `UPDATE writer SET version = version + 1, holder = $1, place = $2, until = clock_timestamp() + $3 * INTERVAL '1 ms' ` +
		`WHERE holder IN ('', $1) OR until <= clock_timestamp()`

	beginWrite = `UPDATE writer SET version = version + 1, until = clock_timestamp() + $1 * INTERVAL '1 ms' WHERE holder = $2 ` +
		`RETURNING version`

	leaveWriter = `UPDATE writer SET version = version + 1, holder = '', until = '-infinity' WHERE holder = $1`

	readWriter = `SELECT place FROM writer`
)

// leave lets another daemon take the database over at once.
func (at *postgres) leave(db *sql.DB) error {
	ctx, cancel := context.WithTimeout(context.Background(), idleWait)
	defer cancel()
	_, err := db.ExecContext(ctx, leaveWriter, at.holder)
	return err
}

// begin begins a write transaction, if this daemon still holds the database, once no other one writes. It returns what changes when
// another daemon has written.
func (at *postgres) begin(ctx context.Context, conn *sql.Conn) (version int64, err error) {
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return 0, err
	}
	err = conn.QueryRowContext(ctx, beginWrite, heldFor.Milliseconds(), at.holder).Scan(&version)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, errTakenOver
	case err != nil:
		return 0, err
	case at.unsure != 0 && version == at.unsure+1:
		at.own++
	}
	at.began, at.unsure = version, 0
	return version - at.own - 1, nil
}

// committed reports whether the transaction was committed whose commit was not answered. It waits until that one is over, because its
// connection may still be at work.
func (at *postgres) committed(ctx context.Context, conn *sql.Conn) (bool, error) {
	was := at.unsure
	_, err := at.begin(ctx, conn)
	_, failed := conn.ExecContext(ctx, "ROLLBACK")
	return was != 0 && at.began == was+1, cmp.Or(err, failed)
}
