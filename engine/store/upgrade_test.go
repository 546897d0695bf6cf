package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/daycared/daycared/permissions"
)

// stepsUpTo are the migrations up to a version; 0: all.
func stepsUpTo(t *testing.T, version int) fstest.MapFS {
	t.Helper()
	all := fstest.MapFS{}
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	for n, file := range files {
		text, err := migrations.ReadFile("migrations/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		if version == 0 || n < version {
			all[file.Name()] = &fstest.MapFile{Data: text}
		}
	}
	return all
}

// earlier is the store of a daemon with these migrations and pending requests. Its rows are statements in
// testdata/upgrade, written by a daemon of that time.
func earlier(t *testing.T, steps fs.FS, rows string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "daycared.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "upgrade", rows))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if key, keyed := strings.CutPrefix(first, "-- audit.key "); keyed {
		if err := os.WriteFile(options(path).keyFile(), []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db := connect(path, time.Second, 1, "_journal_mode=WAL")
	provider, err := newProvider(db, steps)
	if err == nil {
		_, err = provider.Up(t.Context())
	}
	if err == nil {
		_, err = db.ExecContext(t.Context(), "PRAGMA foreign_keys = off; BEGIN; "+string(text)+"; COMMIT")
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// answersAll answers everything pending in a migrated store.
func answersAll(t *testing.T, path string) {
	t.Helper()
	s, err := Open(t.Context(), options(path))
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = s.Close() }()
	waiting, err := s.Pending(t.Context(), "", "", 9)
	if err != nil || len(waiting) != 2 {
		t.Errorf("%d wait, %v", len(waiting), err)
	}
	for _, r := range waiting {
		at := r.CreatedAt.Add(time.Second)
		yes := permissions.Vote{By: r.Asked[0], Via: "cli", Answer: permissions.Allow(permissions.Once), At: at}
		if c, err := s.Apply(t.Context(), r.ID, permissions.Cast{Vote: yes}); err != nil || c.After.State != permissions.Approved {
			t.Errorf("it is %s, %v", c.After.State, err)
		}
		if _, err := s.Apply(t.Context(), r.ID, permissions.Use{At: at}); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Health(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestUpgrade: a store of each released schema is migrated, wherever that is interrupted, and its pending requests are answered.
func TestUpgrade(t *testing.T) {
	newest, err := newestSchema()
	if err != nil {
		t.Fatal(err)
	}
	for first, rows := range map[int]string{1: "v1.sql", 2: "v2.sql", 7: "v7.sql"} {
		for version := first; version <= int(newest); version++ {
			t.Run(fmt.Sprintf("%s, at %d", rows, version), func(t *testing.T) {
				path := earlier(t, stepsUpTo(t, first), rows)
				db := connect(path, time.Second, 1, "")
				provider, err := newProvider(db, stepsUpTo(t, version))
				if err == nil {
					_, err = provider.Up(t.Context())
				}
				if err := errors.Join(err, db.Close()); err != nil {
					t.Fatal(err)
				}
				answersAll(t, path)
			})
		}
	}
}

// TestUpgradeFromBeforeTheFirstRelease: until then the first step was changed in place. A store from before a change is
// refused unchanged, with what to do.
func TestUpgradeFromBeforeTheFirstRelease(t *testing.T) {
	steps := stepsUpTo(t, 1)
	step := steps["00001_requests.sql"]
	for _, c := range []struct{ name, now, was, says string }{ // last change first
		{"db65f2b~1", "(caller, digest, decided_at) WHERE state = 'denied'", "(caller, decided_at, digest) WHERE state = 'denied'",
			"its index requests_denied of requests differs"},
		{"143b9de~1", "    hook          TEXT    NOT NULL, -- the dialect of an agent's own hook that asked; empty: none\n", "",
			"2 parts differ; its index requests_denied"},
		{"59691d8~1", "    chain    INTEGER NOT NULL, -- runs that led to it since a person or the clock began the first\n", "",
			"3 parts differ; "},
		{"a591d56~1", "CREATE TABLE cursors (\n    name TEXT    NOT NULL PRIMARY KEY,\n    seq  INTEGER NOT NULL\n) WITHOUT ROWID;\n", "",
			"4 parts differ; "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Count(string(step.Data), c.now) != 1 {
				t.Fatalf("the step has not %q", c.now)
			}
			step.Data = []byte(strings.Replace(string(step.Data), c.now, c.was, 1))
			rows := "before_hooks.sql"
			if c.name == "db65f2b~1" {
				rows = "v1.sql"
			}
			path := earlier(t, steps, rows)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Open(t.Context(), options(path))
			unwell(t, "open", err, c.says, "start the daycared that wrote it and answer what waits")
			if now, err := os.ReadFile(path); err != nil || string(now) != string(content) {
				t.Errorf("the store was changed: %v", err)
			}
		})
	}
}

var endOfStatement = regexp.MustCompile(`;[^\n]*\n`)

// TestAMigrationIsKilled after each statement of each step: the next start finishes it, and pending requests are answered.
func TestAMigrationIsKilled(t *testing.T) {
	path := earlier(t, stepsUpTo(t, 1), "v1.sql")
	s, err := connected(options(path), path)
	if err != nil {
		t.Fatal(err)
	}
	var left []string // state after a crash
	conn, err := s.writer.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = conn.Raw(func(c any) error {
		return c.(*sqlite3.SQLiteConn).RegisterFunc("dies", func() int {
			at := filepath.Join(t.TempDir(), "daycared.db")
			copyFiles(t, path, at, "", logSuffix)
			left = append(left, at)
			return 0
		}, false)
	})
	if err := errors.Join(err, conn.Close()); err != nil {
		t.Fatal(err)
	}
	steps := stepsUpTo(t, 0)
	statements := 0
	for name, file := range steps {
		if name != "00001_requests.sql" {
			statements += len(endOfStatement.FindAll(file.Data, -1))
			file.Data = endOfStatement.ReplaceAll(file.Data, []byte("$0\nSELECT dies();\n"))
		}
	}
	if err := errors.Join(s.migrate(t.Context(), steps), s.Close()); err != nil {
		t.Fatal(err)
	}
	if len(left) != statements || statements < 20 {
		t.Fatalf("it died %d times, of %d statements", len(left), statements)
	}
	for _, path := range append(left, path) {
		answersAll(t, path)
	}
}

// TestAMigrationSaysHowFarItIs while it runs.
func TestAMigrationSaysHowFarItIs(t *testing.T) {
	watchEvery = time.Millisecond
	defer func() { watchEvery = time.Second }()
	told, path := make(chan string), earlier(t, stepsUpTo(t, 1), "v1.sql")
	o := options(path)
	o.Progress = func(what string, done, all int64) {
		select {
		case told <- fmt.Sprintf("%d of %d %s", done, all, what):
		default:
		}
	}
	s, err := connected(o, path)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := s.writer.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	err = conn.Raw(func(c any) error {
		return c.(*sqlite3.SQLiteConn).RegisterFunc("listens", func() int { said = <-told; return 0 }, false)
	})
	steps, last := next(t, "SELECT listens()")
	if err := errors.Join(err, conn.Close(), s.migrate(t.Context(), steps), s.Close()); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d of %d steps done, 0 MiB written", last, last+1); said != want {
		t.Errorf("it says %q, want %q", said, want)
	}
}

// TestALargeStoreIsMigrated: a store of the first schema, with MIGRATED_ENTRIES entries of the audit, or 6,000, keeps every one, and
// verify, which reads them with two connections, finds one that was changed.
func TestALargeStoreIsMigrated(t *testing.T) {
	entries := 6000
	if many, err := strconv.Atoi(os.Getenv("MIGRATED_ENTRIES")); err == nil {
		entries = many
	}
	path := earlier(t, stepsUpTo(t, 1), "v1.sql")
	last := enlarge(t, path, entries)
	began := time.Now()
	s, err := Open(t.Context(), options(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d entries in %s", entries, time.Since(began))
	kept, err := s.Audit(t.Context(), "", last.Seq-1, 1)
	if err := errors.Join(err, s.Close()); err != nil || len(kept) != 1 || kept[0].Hash != last.Hash {
		t.Fatalf("the last entry was %+v, and is %+v, %v", last, kept, err)
	}
	answersAll(t, path)
	for _, changed := range []string{"300", "5900"} {
		if err := change(t.Context(), path, statements("UPDATE entries SET actor = actor || 'x' WHERE key = "+changed)); err != nil {
			t.Fatal(err)
		}
		_, err := VerifyFile(t.Context(), options(path))
		if err == nil || !strings.Contains(err.Error(), "at entry "+changed+": it was changed") {
			t.Errorf("verify says %v", err)
		}
		if err := change(t.Context(), path, statements("UPDATE entries SET actor = rtrim(actor, 'x') WHERE key = "+changed)); err != nil {
			t.Fatal(err)
		}
	}
}

// enlarge adds cancelled requests, each like the first, with three entries each, and returns the last entry.
func enlarge(t *testing.T, path string, entries int) permissions.Entry {
	t.Helper()
	db := connect(path, time.Second, 1, "_journal_mode=WAL&_synchronous=OFF")
	defer func() { _ = db.Close() }()
	copied := func(table, column string, instead ...string) {
		columns, err := collect(t.Context(), db, "", value[string], `SELECT name FROM pragma_table_info($1)`, table)
		if err != nil {
			t.Fatal(err)
		}
		all := ", " + strings.Join(columns, ", ") + ", "
		values := strings.NewReplacer(instead...).Replace(all)
		exec(t, db, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < `+strconv.Itoa(entries/3)+`) `+
			`INSERT INTO `+table+` (`+strings.Trim(all, ", ")+`) SELECT `+strings.Trim(values, ", ")+` FROM `+table+`, n `+
			`WHERE `+column+` = (SELECT id FROM requests ORDER BY number LIMIT 1)`)
	}
	const other = `substr(%s, 1, 16) || printf('%%010d', i)`
	copied("requests", "id", ", number, id, ", ", 2 + i, "+fmt.Sprintf(other, "id")+", ", ", state, ", ", 'cancelled', ",
		", decided_at, ", ", created_at + 2, ")
	copied("copies", "request", ", request, ", ", "+fmt.Sprintf(other, "request")+", ")
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	put, err := tx.Prepare(`INSERT INTO audit VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`)
	if err != nil {
		t.Fatal(err)
	}
	defer put.Close()
	var first, e permissions.Entry
	var asked string
	row := tx.QueryRow(`SELECT chain, at, request, json_extract(detail, '$.digest') FROM audit WHERE seq = 1`)
	newest := tx.QueryRow(`SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1`)
	err = errors.Join(row.Scan(&first.Chain, instant{&first.At}, &first.Request, &asked), newest.Scan(&e.Seq, digest{&e.Hash}))
	if err != nil {
		t.Fatal(err)
	}
	for n := range entries / 3 * 3 {
		e.Record = []permissions.Record{
			{Type: permissions.RequestCreated, Actor: "uid:0", Detail: map[string]string{"digest": asked, "kind": "permission"}},
			{Type: permissions.RequestShown, Via: "admin", Detail: map[string]string{"to": "operator"}},
			{Type: permissions.RequestSettled, Detail: map[string]string{"digest": asked, "state": "cancelled"}},
		}[n%3]
		e.Chain, e.Seq, e.Prev = first.Chain, e.Seq+1, e.Hash
		e.Request = permissions.ID(fmt.Sprintf("%s%010d", first.Request[:16], n/3+1))
		e.At = first.At.Add(time.Duration(n%3) * time.Microsecond)
		e.Hash = e.ComputeHash()
		detail, err := json.Marshal(e.Detail)
		if err == nil {
			_, err = put.Exec(e.Chain, e.Seq, e.At.UnixMicro(), e.Type, e.Request, e.Actor, e.Via, string(detail), e.Prev[:], e.Hash[:])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestTooLittleRoom: without room a migration does not start, and the error says how much it needs.
func TestTooLittleRoom(t *testing.T) {
	path := earlier(t, stepsUpTo(t, 1), "v1.sql")
	const huge = 8 << 40
	info, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, huge) // a sparse file
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), options(path))
	unwell(t, "open", err, fmt.Sprintf("it needs %d MiB, and ", 3*huge>>20+1), " MiB are free; free some space, nothing needs a restart")
	if !IsFull(err) {
		t.Error("the start is not tried again")
	}
	if copies, err := filepath.Glob(path + ".*"); err != nil || len(copies) != 0 {
		t.Errorf("there is %v, %v", copies, err)
	}
	if err := os.Truncate(path, info.Size()); err != nil {
		t.Fatal(err)
	}
	answersAll(t, path)
}
