package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/daycared/daycared/permissions"
)

// postgres is the PostgreSQL database that a store is in instead of a file. Any number of daemons use it at once.
//
// Its table writer has one row, which each write transaction changes first. So the transactions of all daemons follow one another, as
// those of one process do with SQLite: what a transaction reads is what it changes, the audit is one chain, and its order is that in
// which everything happened. In the same statement a daemon finds its own row in the table daemons. The others remove that of one that
// was silent for too long, which changes no row any more.
type postgres struct {
	name   string // of the database, for people, without a password
	id     string // of this opening
	place  string // where it runs
	config *pgx.ConnConfig
	lost   func(error)

	// The following belong to the owner of the write turn.
	last          int64 // version of the last commit of this opening
	began         int64 // version of the transaction that began last
	indeterminate int64 // version of a transaction whose commit was not answered; 0: none
	foreign       int64 // counts how often others were found to have written

	newest         atomic.Int64               // version that [Store.Follow] has seen
	known          atomic.Int64               // version until which everything is from this process or was passed on
	forgot         atomic.Int64               // version until which [Store.Follow] has dropped from memory what others changed
	looked         atomic.Pointer[time.Time]  // when it last knew all
	upToDate       broadcast                  // notified when it knows all
	look           chan struct{}              // of capacity one: has it look for what others wrote
	closed         atomic.Int64               // version until which others closed something, as by a lock
	others         atomic.Bool                // other daemons use the database
	stoppedByOther atomic.Bool                // one of them stopped everything, by what was read of the audit last
	clock          atomic.Pointer[serverTime] // the clock of the database when it was last asked
	entries        ownEntries                 // what [Store.Follow] passes on
	inboxes        atomic.Pointer[string]     // see [Store.HasInbox]
	leased         contact                    // of [Store.OpenAccount], which is called by one at a time

	asking    sync.Mutex // guards the fields below
	isAsking  bool
	nextAsked *revisions // to be asked for; nil: none

	closing context.Context //nolint:containedctx // it ends when the store is closed
	close   context.CancelFunc
	workers sync.WaitGroup
}

// revisions is one query of the revisions of requests, for all who ask for one before it is made.
type revisions struct {
	ids   []permissions.ID
	found map[permissions.ID]int64
	done  chan struct{} // closed when found is set
}

// contact is since when a daemon has reached the database whenever it tried. Only after a while others count as silent: the database may
// have been away from all of them.
type contact struct {
	since time.Time
	ahead string // the holder whose time lies further ahead than it can be, when that was seen first
}

// serverTime is what the clock of the database said, when that was heard by this machine's, and when it was asked.
type serverTime struct{ said, at, sent time.Time }

// maxClockAge is how old an answer of the clock of the database may be. The process may have been halted since it was given.
const maxClockAge = time.Second

// noteTime notes what the clock of the database said to a question that was sent at a time.
func (at *postgres) noteTime(said, sent time.Time) {
	now := serverTime{said.Round(0), time.Now(), sent}
	if last := at.clock.Load(); last != nil && now.at.Sub(sent) > maxClockAge {
		now.said = last.said.Add(now.at.Sub(last.at))
	}
	at.clock.Store(&now)
}

// ownEntries tells the entries of the audit that this process appended from those of other daemons.
type ownEntries struct {
	mu   sync.Mutex
	read head       // the newest entry that was read
	seq  int64      // all until here are known to this process
	own  [][2]int64 // those after it that this process appended: the last one before, and the last one
}

// begin notes the entries that this process is about to commit: those after one until another.
func (o *ownEntries) begin(after, until int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.own = append(o.own, [2]int64{after, until})
}

// end records whether the entries that begin noted last were committed. Those of an indeterminate commit are passed on like others.
func (o *ownEntries) end(committed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.own); !committed && n > 0 {
		o.own = o.own[:n-1]
	}
	for len(o.own) > 0 && o.own[0][0] <= o.seq {
		o.seq, o.own = max(o.seq, o.own[0][1]), o.own[1:]
	}
}

// since returns the last entry until which this process knows all.
func (o *ownEntries) since() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seq
}

// pass notes that this process knows all entries until one.
func (o *ownEntries) pass(until head) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.read, o.seq = until, max(o.seq, until.seq)
}

// newest is the newest entry that this process has read, or its own one if that is newer.
func (o *ownEntries) newest(own head) head {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.read.seq > own.seq {
		return o.read
	}
	return own
}

// ofOthers returns the entries of a list that other daemons appended.
func (o *ownEntries) ofOthers(list []permissions.Entry) []permissions.Entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(list), func(e permissions.Entry) bool {
		return e.Seq <= o.seq || slices.ContainsFunc(o.own, func(own [2]int64) bool { return own[0] < e.Seq && e.Seq <= own[1] })
	})
}

const (
	// heldFor is how long a silent daemon counts as running, and renewEvery how often one says that it runs.
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
		name: fmt.Sprintf("PostgreSQL database %s at %s", config.Database, at), id: string(permissions.NewID(time.Now())),
		place: fmt.Sprintf("%s, pid %d", host, os.Getpid()), config: config, look: make(chan struct{}, 1),
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

// beginWrite takes the turn to write before it finds the daemon's row: whoever removes that has had the turn as well. The newest entry that
// it finds may be one of before others wrote.
var beginWrite = `WITH turn AS (UPDATE writer SET version = version + 1 RETURNING version) ` +
	`UPDATE daemons SET until = clock_timestamp() + $1 * INTERVAL '1 ms', wrote = turn.version FROM turn WHERE id = $2 ` +
	`RETURNING turn.version, clock_timestamp(), (SELECT hash FROM entries WHERE ` + strings.ReplaceAll(inChain, "$1", "$3") +
	` ORDER BY key DESC LIMIT 1)`

// begin begins a write transaction of a daemon that counts as running, once no other one writes. It returns what changes when another
// daemon has written, or the newest entry of a chain is another than the one that this process wrote last. The queries ahead go with it.
func (at *postgres) begin(
	ctx context.Context, conn *sql.Conn, chain string, last permissions.Digest, ahead []statement,
) (foreign int64, err error) {
	var version int64
	now, sent := time.Time{}, time.Now()
	var newest []byte
	err = pipeline(ctx, conn, append([]statement{
		{text: "BEGIN"},
		{text: beginWrite, args: []any{heldFor.Milliseconds(), at.id, chain}, into: []any{&version, &now, &newest}},
	}, ahead...))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, errReplaced
	case err != nil:
		return 0, err
	case version != at.last+1, !bytes.Equal(newest, last[:]):
		at.foreign++
	}
	at.noteTime(now, sent)
	at.began, at.indeterminate = version, 0
	return at.foreign, nil
}

// channelName is that of the notifications between daemons. Their content is the id of the daemon that wrote.
const channelName = "daycared"

// notifyOthers follows a commit. It is only a hint: the others also check regularly.
const notifyOthers = `SELECT pg_notify('` + channelName + `', $1)`

// ended records whether the transaction that began last was committed.
func (at *postgres) ended(committed bool) {
	if !committed {
		at.indeterminate = at.began
		return
	}
	at.last = at.began
	at.known.CompareAndSwap(at.began-1, at.began)
}

// dropped is the version until which what others changed is not in memory as it was before. It belongs to the owner of the write turn.
func (at *postgres) dropped() int64 { return max(at.last, at.forgot.Load()) }

// noteClosed records that others closed something by that version.
func (at *postgres) noteClosed(version int64) {
	for known := at.closed.Load(); version > known && !at.closed.CompareAndSwap(known, version); {
		known = at.closed.Load()
	}
}

// checkClosed returns an error while others have closed something of which [Store.Follow] has not told yet: what was allowed by it, or by
// whom, may not be allowed any more. For the owner of the write turn, after [Store.catchUp], it is certain.
func (at *postgres) checkClosed() error {
	if at == nil || at.looked.Load() == nil || at.closed.Load() <= at.known.Load() {
		return nil
	}
	return errClosed
}

// errClosed rolls back what another daemon may just have ended. It is no fault of the database.
var errClosed = errors.New("another daemon has just ended what somebody may allow or had allowed, and this one is yet to learn what")

// hasOthers reports whether other daemons use the database; with a file there are none.
func (at *postgres) hasOthers() bool { return at != nil && at.others.Load() }

// isOutdated reports whether another daemon has written after the last commit of this one, as far as this process has seen.
func (at *postgres) isOutdated() bool { return at.newest.Load() > at.last }

// committed reports whether the transaction was committed whose commit was not answered. It waits until that one is over, because its
// connection may still be at work.
func (at *postgres) committed(ctx context.Context, conn *sql.Conn) (is bool, err error) {
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return false, err
	}
	defer func() {
		_, failed := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		err = cmp.Or(err, failed)
	}()
	var wrote int64
	if err := conn.QueryRowContext(ctx, `SELECT version FROM writer FOR UPDATE`).Scan(&wrote); err != nil {
		return false, err
	}
	err = conn.QueryRowContext(ctx, `SELECT wrote FROM daemons WHERE id = $1`, at.id).Scan(&wrote)
	if errors.Is(err, sql.ErrNoRows) {
		return false, errReplaced
	}
	if is = wrote == at.indeterminate; is && err == nil {
		at.last = wrote
	}
	return is, err
}

// signal notifies whoever waits for a channel of capacity one, without blocking.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
