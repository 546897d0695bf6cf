package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/daycared/daycared/internal/pgtest"
	"github.com/daycared/daycared/permissions"
)

// emptyDatabase is the URL of a database without tables.
func emptyDatabase(t *testing.T) string {
	t.Helper()
	return pgtest.Database(t, "empty", func(url string, used bool) error {
		if !used {
			return nil
		}
		db, err := sql.Open("pgx", url)
		if err == nil {
			_, err = db.ExecContext(t.Context(), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
			err = errors.Join(err, db.Close())
		}
		return err
	})
}

// openOn opens a store of a daemon of its own, with the audit key beside path, in a database.
func openOn(ctx context.Context, t *testing.T, path, url string) *Store {
	t.Helper()
	o := options(path)
	o.Server = url
	s, err := Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// query runs a statement on a database, as another program does, and returns the first value of what it finds.
func query(t *testing.T, url, text string) string {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	value := ""
	if err := db.QueryRowContext(t.Context(), text).Scan(&value); err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// TestSeveralDaemonsWriteAtOnce: each sees what the others decided, everything happens once, and the audit is one chain.
func TestSeveralDaemonsWriteAtOnce(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	all := []*Store{openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)}
	told := following(t, all[0])
	const each = 40
	asked := make(chan permissions.ID, each*len(all))
	var work errgroup.Group
	for _, s := range all {
		for range each {
			work.Go(func() error {
				r, _, err := s.Open(t.Context(), newAsk())
				asked <- r.ID
				return err
			})
		}
	}
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
	close(asked)
	var won, lost atomic.Int64
	for id := range asked { // two of them answer each
		for i, s := range all[1:] {
			work.Go(func() error {
				_, err := s.Apply(t.Context(), id, []permissions.Transition{fayAllows(), permissions.Withdraw{By: "fay", At: time.Now()}}[i])
				switch {
				case errors.Is(err, permissions.ErrSettled):
					lost.Add(1)
				case err == nil:
					won.Add(1)
				default:
					return err
				}
				return nil
			})
		}
	}
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := int64(each * len(all)); won.Load() != n || lost.Load() != n {
		t.Errorf("%d decided, %d were too late, of %d each", won.Load(), lost.Load(), n)
	}
	settled, last := map[permissions.ID]int{}, int64(0)
	for len(settled) < each*len(all) {
		e := <-told
		if e.Seq <= last {
			t.Errorf("entry %d follows %d", e.Seq, last)
		}
		if last = e.Seq; e.Type == permissions.RequestSettled {
			settled[e.Request]++
			if r, err := all[0].Read(t.Context(), e.Request); err != nil || r.State == permissions.Pending {
				t.Errorf("%s, of which it was told that it is settled, is %s, %v", e.Request, r.State, err)
			}
		}
	}
	for _, s := range all {
		if _, err := s.Verify(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if got := query(t, url, `SELECT COUNT(DISTINCT chain) || ' ' || COUNT(DISTINCT number) FROM audit, requests`); got != "1 120" {
		t.Errorf("chains and numbers: %s", got)
	}
}

// unidentified is a store of a daemon that has joined the others and knows nothing of the database yet.
func unidentified(t *testing.T, url, key string) *Store {
	t.Helper()
	at, config, err := newServer(url)
	if err != nil {
		t.Fatal(err)
	}
	s := unopened(Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), KeyFile: key}, filepath.Join(t.TempDir(), serverName))
	s.connectServer(Options{}, at, config)
	if err := errors.Join(s.migrateServer(t.Context()), s.join(t.Context())); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDaemonsThatStartAtOnce on an empty database make one store of it.
func TestDaemonsThatStartAtOnce(t *testing.T) {
	url, key := emptyDatabase(t), filepath.Join(t.TempDir(), "audit.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("0123456789abcdef", 4)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	one, other := unidentified(t, url, key), unidentified(t, url, key) // both have found nothing
	for i, s := range []*Store{one, other} {
		err := s.turn(t.Context(), func(ctx context.Context, conn *sql.Conn) error {
			own, fresh, err := s.newIdentity(ctx, conn, Options{KeyFile: key, Path: s.path})
			if own.chain == "" || fresh != (i == 0) {
				t.Errorf("%d: chain %q, fresh %t", i, own.chain, fresh)
			}
			return err
		})
		if err := errors.Join(err, s.Close()); err != nil {
			t.Error(err)
		}
	}
	var work errgroup.Group
	all := make([]*Store, 4)
	for i := range all {
		o := options(filepath.Join(t.TempDir(), "daycared.db"))
		o.Server, o.KeyFile = url, key
		work.Go(func() (err error) {
			all[i], err = Open(t.Context(), o)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		t.Error(err)
	}
	for _, s := range all {
		if s != nil {
			insert(t, s)
			t.Cleanup(func() { _ = s.Close() })
		}
	}
	if got := query(t, url, `SELECT (SELECT COUNT(*) FROM meta) || ' ' || (SELECT COUNT(*) FROM requests)`); got != "1 4" {
		t.Errorf("stores and requests: %s", got)
	}
}

// TestWhatOthersTookBackStaysSo: the mark of each daemon covers it, so that an audit that was cut off before it is noticed by all of them,
// while they run and at the next start.
func TestWhatOthersTookBackStaysSo(t *testing.T) {
	t.Run("D8/the end of the audit cut off", func(t *testing.T) {
		url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
		first := openOn(t.Context(), t, path, url)
		o := options(filepath.Join(t.TempDir(), "daycared.db"))
		o.Server, o.KeyFile = url, filepath.Join(filepath.Dir(path), KeyName)
		second, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = second.Close() }()
		r := approve(t, first, permissions.Always)
		told := following(t, first)
		held, err := second.Grants(t.Context(), r.Caller.Name, time.Now())
		if err != nil || len(held) != 1 {
			t.Fatalf("%d grants, %v", len(held), err)
		}
		if _, err := second.Revoke(t.Context(), held[0].ID, "fay", "cli", time.Now(), 9); err != nil {
			t.Fatal(err)
		}
		last := int64(0)
		for e := range told {
			if last = e.Seq; e.Type == permissions.GrantRevoked {
				break
			}
		}
		insert(t, second) // when it is told of this one, it has passed the other
		for e := range told {
			if e.Type == permissions.RequestCreated {
				break
			}
		}
		if m, _, err := readMark(first.path); err != nil || m == nil || m.Seq < last {
			t.Errorf("its mark is %+v, %v, before entry %d", m, err, last)
		}
		query(t, url, fmt.Sprintf(`DELETE FROM entries WHERE key & 281474976710655 >= %d RETURNING 1`, last))
		query(t, url, `UPDATE writer SET version = version + 1 RETURNING 1`)
		if _, _, err := first.Open(t.Context(), newAsk()); err == nil || !strings.Contains(err.Error(), "was changed behind daycared's back") {
			t.Errorf("it goes on: %v", err)
		}
	})
}

// TestAnAuditThatWasCutOffInPostgreSQLIsNotContinued by the only daemon, whose next write notices it.
func TestAnAuditThatWasCutOffInPostgreSQLIsNotContinued(t *testing.T) {
	for name, spoil := range map[string]string{
		"G2/its end is gone":             `DELETE FROM entries WHERE key >= (SELECT MAX(key) - 1 FROM entries) RETURNING 1`,
		"G2/its newest entry is another": `UPDATE entries SET hash = sha256('x') WHERE key = (SELECT MAX(key) FROM entries) RETURNING 1`,
	} {
		t.Run(name, func(t *testing.T) {
			url := emptyDatabase(t)
			s := openOn(t.Context(), t, filepath.Join(t.TempDir(), "daycared.db"), url)
			r := approve(t, s, permissions.For(time.Hour))
			query(t, url, spoil)
			unwell(t, "use", use(t, s, r), isBehind)
			_, _, err := s.Open(t.Context(), newAsk())
			unwell(t, "open", err, isBehind)
			unwell(t, "health", s.Health(t.Context()), isBehind)
		})
	}
}

// TestAStopHoldsOnEveryDaemon from the moment in which it is told.
func TestAStopHoldsOnEveryDaemon(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	first, second := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	r := insert(t, second)
	told := following(t, first)
	if _, err := first.Stop(t.Context(), "fay", "cli", time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := second.Open(t.Context(), newAsk()); permissions.CodeOf(err) != permissions.CodeStopped {
		t.Errorf("something new: %v", err)
	}
	if c, err := second.Apply(t.Context(), r.ID, fayAllows()); err == nil && c.After.State == permissions.Approved {
		t.Error("it was allowed after the stop")
	}
	if err := second.Resume(t.Context(), "fay", "cli", false, time.Now()); err != nil {
		t.Fatal(err)
	}
	for e := range told {
		if e.Type == permissions.AllResumed {
			break
		}
	}
	insert(t, first)
}

// TestAStopWhoseRowWasPutBackHolds on every daemon that runs, whether it wrote the stop, was told of it, or only looks; until it is ended.
func TestAStopWhoseRowWasPutBackHolds(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	first, second := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	told, ended := following(t, second), following(t, first)
	insert(t, first)
	query(t, url, `CREATE TABLE kept AS SELECT * FROM meta`)
	if _, err := first.Stop(t.Context(), "fay", "cli", time.Now()); err != nil {
		t.Fatal(err)
	}
	for e := range told {
		if e.Type == permissions.AllStopped {
			break
		}
	}
	insertNothing := func(s *Store) {
		t.Helper()
		if _, _, err := s.Open(t.Context(), newAsk()); permissions.CodeOf(err) != permissions.CodeStopped {
			t.Errorf("something new: %v", err)
		}
		if by, _, err := s.StoppedBy(t.Context()); by != "fay" || err != nil {
			t.Errorf("stopped by %q, %v", by, err)
		}
	}
	query(t, url, `UPDATE meta SET stopped_by = kept.stopped_by, stopped_at = kept.stopped_at, mac = kept.mac FROM kept`)
	for range 2 {
		for _, s := range []*Store{second, first} {
			if err := s.Record(t.Context(), permissions.Record{Type: "X"}); err != nil { // the other one reads what it knows again
				t.Fatal(err)
			}
			insertNothing(first)
			insertNothing(second)
		}
	}
	if err := second.Resume(t.Context(), "fay", "cli", false, time.Now()); err != nil {
		t.Fatal(err)
	}
	for e := range ended {
		if e.Type == permissions.AllResumed {
			break
		}
	}
	insert(t, first)
	insert(t, second)
}

// TestARowThatNoEntryOpenedOpensNothingInPostgreSQL: see TestARowOfAnotherStoreOpensNothingAfterAStart.
func TestARowThatNoEntryOpenedOpensNothingInPostgreSQL(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	o := openedIn(t, openOn(t.Context(), t, path, url))
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	for _, without := range []string{"", "PAIRED"} {
		query(t, url, "WITH gone AS (DELETE FROM entries WHERE type = '"+without+"' RETURNING 1) SELECT COUNT(*) FROM gone")
		o.Store = openOn(t.Context(), t, path, url)
		want := "[grant token pairing]"
		if without != "" {
			want = "[grant token]"
		}
		if got := fmt.Sprint(o.gates(t)); got != want {
			t.Errorf("without %q, %s are open", without, got)
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhoIsLockedIsKnownWithoutTheRows, also with the list of before put back, on every daemon that runs; until it is ended.
func TestWhoIsLockedIsKnownWithoutTheRows(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	first, second := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	testShutWithoutRows(t, func(text string) { query(t, url, text) }, first, second)
}

// TestTheTimeIsThatOfTheDatabase, whatever the clock of the machine says.
func TestTheTimeIsThatOfTheDatabase(t *testing.T) {
	o := options(filepath.Join(t.TempDir(), "daycared.db"))
	o.Server, o.Now = emptyDatabase(t), func() time.Time { return time.Now().Add(-time.Hour) }
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if off := time.Since(s.Now()).Abs(); off > time.Minute {
		t.Errorf("it is off by %s", off)
	}
}

// TestWhatOthersChangedIsReadAgain, whether a daemon finds out before it writes or by looking, and nothing else is. Where it is not known
// what they changed, all of it is read again.
func TestWhatOthersChangedIsReadAgain(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	s, other := openOn(t.Context(), t, path, url), openOn(t.Context(), t, path, url)
	s.server.others.Store(true)
	other.server.others.Store(true)
	opening := newAsk()
	scope := permissions.For(15 * time.Minute)
	opening.Request.Options = permissions.Offer(opening.Request, []permissions.Scope{scope}, scope)
	opening.Request.Digest = permissions.ComputeDigest(opening.Request)
	r, _, err := other.Open(t.Context(), opening)
	if err != nil {
		t.Fatal(err)
	}
	same := insert(t, other)
	one := permissions.Copy{Request: r.ID, Person: "fay", Connector: "telegram", Ref: "1", Shown: 1, SentAt: time.Now()}
	yes := fayAllows()
	yes.Vote.Answer = permissions.Allow(scope)
	var grants []permissions.Grant
	steps := []func() error{
		func() error { return nil },
		func() error { return other.AddCopies(t.Context(), []permissions.Copy{one}) },
		func() error { one.Button = "b"; return other.MarkShown(t.Context(), one, "1") },
		func() error { _, err := other.Apply(t.Context(), r.ID, yes); return err },
		func() (err error) {
			if grants, err = other.Grants(t.Context(), r.Caller.Name, time.Now()); err != nil || len(grants) != 1 {
				return fmt.Errorf("%d grants, %w", len(grants), err)
			}
			_, err = other.Revoke(t.Context(), grants[0].ID, "fay", "telegram", time.Now(), 1)
			return err
		},
		func() error { return other.ForgetCopies(t.Context(), "telegram") },
		func() error { return nil },
		func() error {
			other.server.others.Store(false)
			one.Failed = "blocked"
			return other.MarkFailed(t.Context(), one)
		},
	}
	notice := []func() error{
		func() error { return s.write(t.Context(), func(context.Context, *tx) error { return nil }) },
		func() error {
			return s.followOnce(t.Context(), func(context.Context, []permissions.Entry) error { return nil })
		},
	}
	if err := errors.Join(notice[0](), notice[1]()); err != nil {
		t.Fatal(err)
	}
	for i, change := range steps {
		for _, id := range []permissions.ID{r.ID, same.ID} {
			_, err := s.Read(t.Context(), id)
			_, failed := s.Copies(t.Context(), id)
			if _, cached := s.rows.get(id); err != nil || failed != nil || !cached {
				t.Fatal("not read", err, failed)
			}
		}
		other.forget()
		if err := errors.Join(change(), notice[i%2]()); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		RowsAreTheFile(t, s)
		if _, kept := s.rows.get(same.ID); kept != (i < 5 || i == 6) { // the sixth changes nothing, and what the fifth did was dropped by then
			t.Errorf("step %d: the other request is kept: %v", i, kept)
		}
		mine, err := s.Grants(t.Context(), r.Caller.Name, time.Now())
		if left, failed := other.Grants(t.Context(), r.Caller.Name, time.Now()); err != nil || failed != nil || len(left) != len(mine) {
			t.Errorf("step %d: %d grants, %d at the other, %v, %v", i, len(mine), len(left), err, failed)
		}
	}
}

// TestARequestIsReadWithoutTheEntriesOfOthers, however many there are.
func TestARequestIsReadWithoutTheEntriesOfOthers(t *testing.T) {
	url := emptyDatabase(t)
	s := openOn(t.Context(), t, filepath.Join(t.TempDir(), "daycared.db"), url)
	for range 100 {
		if _, err := s.Apply(t.Context(), insert(t, s).ID, fayAllows()); err != nil {
			t.Fatal(err)
		}
	}
	query(t, url, `ANALYZE`)
	for _, text := range []string{readNumber, readBelow} {
		text = strings.NewReplacer("$1", "5", "$2", "1").Replace(text)
		plan, err := collect(t.Context(), s.writer, "", value[string], "EXPLAIN "+text)
		all, byIndex := strings.Join(plan, "\n"), "Index Cond: (request = requests.id)"
		if err != nil || strings.Count(all, "SubPlan") != 2 || strings.Count(all, byIndex) != 2 {
			t.Errorf("%s\n%v", all, err)
		}
	}
}

// ownCluster is a PostgreSQL that the test may stop.
func ownCluster(t *testing.T) *pgtest.Cluster {
	t.Helper()
	c, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestPostgreSQLIsStartedAgain: what is asked meanwhile waits for it, and what was told is there.
func TestPostgreSQLIsStartedAgain(t *testing.T) {
	c := ownCluster(t)
	s := openOn(t.Context(), t, filepath.Join(t.TempDir(), "daycared.db"), c.URL("postgres"))
	before := insert(t, s)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context(), before.ID); err != nil {
		t.Logf("read meanwhile: %v", err) // it may be in memory
	}
	healthy := make(chan error, 1)
	go func() { healthy <- s.Health(t.Context()) }()
	select {
	case err := <-healthy:
		if !errors.Is(err, permissions.ErrBroken) {
			t.Errorf("it is healthy while the database is away: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("nobody is told that the database is away")
	}
	opened := make(chan error)
	go func() {
		_, _, err := s.Open(t.Context(), newAsk())
		opened <- err
	}()
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
	if got := query(t, c.URL("postgres"), `SELECT COUNT(*) FROM requests`); got != "2" {
		t.Errorf("%s requests", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestTextsComeBackAsTheyWere from PostgreSQL, which refuses some of them as they are.
func TestTextsComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.SampledFrom([]byte("a0\x00\x1a\xff\xc3\xa9\xe2"))).Draw(t, "text"))
		if got := unescapeText(escapeText(text)); got != text || strings.Contains(escapeText(text), "\x00") {
			t.Errorf("%q came back as %q, by way of %q", text, got, escapeText(text))
		}
	})
	s := openOn(t.Context(), t, filepath.Join(t.TempDir(), "daycared.db"), emptyDatabase(t))
	o := newAsk()
	o.Request.Reason = "a\x00b\x1a\xffc"
	o.Request.Digest = permissions.ComputeDigest(o.Request)
	r, _, err := s.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s.forget()
	if got, err := s.Read(t.Context(), r.ID); err != nil || got.Reason != o.Request.Reason {
		t.Errorf("%q, %v", got.Reason, err)
	}
}

// TestASilentServerCountsAsGone, so that a write is tried again on another connection.
func TestASilentServerCountsAsGone(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _ = errors.Join(near.Close(), far.Close()) }()
	_, err := boundedConn{near, time.Millisecond}.Read(make([]byte, 1))
	if !isGone(err) {
		t.Errorf("the error is %v", err)
	}
}

// TestBothDatabasesHaveTheSameColumns, but for what is only of one.
func TestBothDatabasesHaveTheSameColumns(t *testing.T) {
	file := newStore(t)
	url := emptyDatabase(t)
	server := openOn(t.Context(), t, filepath.Join(t.TempDir(), "daycared.db"), url)
	columns := func(from source, text string) map[string]string {
		found, err := collect(t.Context(), from, "", func(c *[2]string) []any { return []any{&c[0], &c[1]} }, text)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, c := range found {
			all[c[0]] = c[1]
		}
		maps.DeleteFunc(all, func(name, _ string) bool {
			of := []string{"goose", "sqlite", "types.", "writer.", "daemons.", "leases.", "changes."}
			return slices.ContainsFunc(of, func(of string) bool { return strings.HasPrefix(name, of) })
		})
		return all
	}
	onFile := columns(file.writer, `SELECT m.name || '.' || c.name, CASE c.type WHEN 'INTEGER' THEN 'bigint' WHEN 'BLOB' THEN 'bytea' `+
		`WHEN '' THEN 'text' ELSE lower(c.type) END FROM sqlite_schema AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'`)
	onServer := columns(server.writer, `SELECT c.table_name || '.' || c.column_name, c.data_type FROM information_schema.columns AS c `+
		`JOIN information_schema.tables AS t USING (table_schema, table_name) WHERE t.table_schema = 'public' AND t.table_type = 'BASE TABLE'`)
	if diff := cmp.Diff(onFile, onServer); diff != "" {
		t.Errorf("-SQLite +PostgreSQL:\n%s", diff)
	}
	gate, err := collect(t.Context(), file.writer, "", value[string], `SELECT name FROM types WHERE number < 24 ORDER BY number`)
	if diff := cmp.Diff(gate, gateTypes); diff != "" || err != nil {
		t.Errorf("the types of the index audit_gates (-SQLite +PostgreSQL):\n%s%v", diff, err)
	}
	linguistic := query(t, url, `SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'public' AND data_type = 'text' `+
		`AND table_name IN (SELECT tablename FROM pg_tables WHERE tablename NOT LIKE 'goose%') AND COALESCE(collation_name, '') <> 'C'`)
	if linguistic != "0" {
		t.Errorf("%s columns are not compared by bytes", linguistic)
	}
}

// TestADatabaseThatIsRefused says why, and never the password.
func TestADatabaseThatIsRefused(t *testing.T) {
	good := emptyDatabase(t)
	openOn(t.Context(), t, filepath.Join(t.TempDir(), "daycared.db"), good)
	query(t, good, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, TRUE)`)
	latin := emptyDatabase(t)
	query(t, latin, `CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`)
	defer query(t, latin, `DROP DATABASE latin WITH (FORCE)`)
	port := good[strings.LastIndex(good, ":"):strings.LastIndex(good, "/")]
	for url, want := range map[string]string{
		good: "was written by a newer daycared (schema 99, this one knows ",
		latin[:strings.LastIndex(latin, "/")] + "/latin?sslmode=disable":      "its encoding is LATIN1",
		"postgres://daycared:hush@127.0.0.1" + port + "/none?sslmode=disable": `database "none" does not exist`,
		"postgres://daycared:hush@127.0.0.1:1/x?sslmode=disable":              "does not answer",
		"postgres://daycared:hush@127.0.0.1:port/x":                           "database: ",
		"postgres://daycared:hush@h/x?tcp_user_timeout=5":                     "leave it out of the URL",
	} {
		o := options(filepath.Join(t.TempDir(), "daycared.db"))
		o.Server = url
		s, err := Open(t.Context(), o)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(fmt.Sprint(err), "hush") {
			t.Errorf("%s: %v\nwant %q, without the password", url, err, want)
		}
	}
}

// TestAClockOfTheDatabaseThatIsBehindIsFound by the newest entry of the audit.
func TestAClockOfTheDatabaseThatIsBehindIsFound(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	o := options(path)
	o.Server = url
	behind := func() bool {
		t.Helper()
		found, err := InspectServer(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return !found.NewestEntry.IsZero()
	}
	if behind() {
		t.Error("without tables")
	}
	s := openOn(t.Context(), t, path, url)
	insert(t, s)
	if behind() {
		t.Error("it is not behind")
	}
	query(t, url, `UPDATE entries SET at = at + 3600000000 WHERE key = (SELECT MAX(key) FROM entries) RETURNING 1`)
	if !behind() {
		t.Error("an hour behind")
	}
}

// TestWhatHelpsWithPostgreSQL: daycared restore is for files.
func TestWhatHelpsWithPostgreSQL(t *testing.T) {
	url, path := emptyDatabase(t), filepath.Join(t.TempDir(), "daycared.db")
	s := openOn(t.Context(), t, path, url)
	first, r := insert(t, s), insert(t, s)
	said := func(what string, err error) {
		t.Helper()
		if err == nil || strings.Contains(err.Error(), "daycared restore") || strings.Count(err.Error(), "pg_restore") != 1 {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, id := range []permissions.ID{first.ID, r.ID} {
		query(t, url, `UPDATE requests SET asked = '["eve"]' WHERE id = '`+string(id)+`' RETURNING 1`)
	}
	query(t, url, `UPDATE writer SET version = version + 1 RETURNING 1`)
	s.forget()
	_, err := s.Read(t.Context(), r.ID)
	if said("a row", err); !errors.Is(err, permissions.ErrRow) {
		t.Errorf("it is not about a row: %v", err)
	}
	said("the audit", second(s.Verify(t.Context())))
	query(t, url, `DELETE FROM entries WHERE key = (SELECT MAX(key) FROM entries) RETURNING 1`)
	_, _, err = s.Open(t.Context(), newAsk())
	said("an audit that was cut off", err)
	o := options(path)
	o.Server = url
	query(t, url, `UPDATE meta SET stopped_by = 'x' RETURNING 1`)
	said("what the store says of itself", second(Open(t.Context(), o)))
}
