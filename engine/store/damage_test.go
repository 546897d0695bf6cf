package store

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// TestTextStoredAsBytesIsFoundAndNotUsed: such text reads the same, so that its seal would hold, but no comparison in SQL finds it.
func TestTextStoredAsBytesIsFoundAndNotUsed(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	_, err := o.Pair(t.Context(), permissions.Pairing{Person: "sam", Via: "telegram", Address: "2", PairedAt: time.Now()}, "op", "cli")
	if err == nil {
		err = o.Suspend(t.Context(), "telegram", "2", "sam", time.Now())
	}
	if err = cmp.Or(err, locked(t, o.Store, permissions.PersonLocked)); err != nil {
		t.Fatal(err)
	}
	fields := func(c *[2]string) []any { return []any{&c[0], &c[1]} }
	columns, err := collect(t.Context(), o.writer, "", fields, "SELECT m.name, c.name "+
		"FROM sqlite_schema AS m, pragma_table_info(m.name) AS c "+
		"WHERE m.name IN ('requests', 'request_votes', 'grants', 'tokens', 'pairings', 'locks', 'suspensions', 'entries', 'chains', 'meta') "+
		"AND c.type = 'TEXT' "+
		"AND c.name <> 'answered'") // opens nothing
	if err != nil || len(columns) < 60 {
		t.Fatalf("%d columns, %v", len(columns), err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range columns {
		table, column := c[0], c[1]
		t.Run("A7/"+table+"."+column, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "daycared.db")
			copyFiles(t, o.path, path, "")
			first := " WHERE " + column + " = (SELECT MAX(" + column + ") FROM " + table + ")"
			if column == "key" && table == "request_votes" { // an empty blob is unique as well
				first += " AND request = (SELECT MIN(request) FROM request_votes)"
			}
			if err := change(t.Context(), path, statements("UPDATE "+table+" SET "+column+" = CAST("+column+" AS BLOB)"+first)); err != nil {
				t.Fatal(err)
			}
			if _, err := VerifyFile(t.Context(), options(path)); err == nil {
				t.Error("it verifies")
			}
			s, err := Open(t.Context(), options(path))
			if err != nil {
				if table != "meta" && table != "entries" && table != "chains" {
					t.Errorf("it keeps the store from being opened: %v", err)
				}
				return
			}
			defer s.Close()
			recovers(t, s)
		})
	}
}

// recovers runs the work of a start and of an operator, which one unreadable row must not block. A stop is in force
// although it reports that it could not cancel that row.
func recovers(t *testing.T, s *Store) {
	t.Helper()
	later := time.Now().Add(48 * time.Hour)
	for what, do := range map[string]func() error{
		"grants that are over": func() error { _, _, err := s.EndGrants(t.Context(), later, 9); return err },
		"deadlines":            func() error { _, _, err := s.Due(t.Context(), later, 3*time.Hour, 9); return err },
		"what waits":           func() error { _, err := s.Pending(t.Context(), "", "", 9); return err },
		"locks":                func() error { _, err := s.Locks(t.Context()); return err },
		"pairings":             func() error { _, err := s.Pairings(t.Context()); return err },
		"suspensions":          func() error { _, err := s.Suspensions(t.Context()); return err },
	} {
		if err := do(); err != nil {
			t.Errorf("it holds up %s: %v", what, err)
		}
	}
	_, _ = s.Stop(t.Context(), "op", "cli", later)
	if by, _, err := s.StoppedBy(t.Context()); by != "op" || err != nil {
		t.Errorf("stopped by %q, %v", by, err)
	}
}

// TestAGrantThatIsOverAndCannotBeReadEndsByItself: D9/the others are reported, and a start succeeds.
func TestAGrantThatIsOverAndCannotBeReadEndsByItself(t *testing.T) {
	for _, change := range []string{"call = ''", "tags = x'ff'", "used = 'x'", "created_at = 9223372036854775807", "id = CAST(id AS BLOB)"} {
		o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
		bad := o.grant(t)
		approve(t, o.Store, permissions.For(time.Hour))
		approve(t, o.Store, permissions.For(2*time.Hour))
		meddle(t, o.Store, "PRAGMA foreign_keys = off; UPDATE grants SET until = 5, "+change+" WHERE id = $1", bad)
		later := time.Now().Add(48 * time.Hour)
		for _, want := range []int{1, 1, 0} { // of at most two at a time, the first is unreadable
			ended, _, err := o.EndGrants(t.Context(), later, 2)
			if err != nil || len(ended) != want {
				t.Errorf("%s: %d grants end, %v; want %d", change, len(ended), err, want)
			}
		}
		if _, err := o.Verify(t.Context()); err == nil {
			t.Errorf("%s: it verifies", change)
		}
	}
}

// TestNothingIsWrittenWhereATriggerCouldUndoIt: what is reported as done is done.
func TestNothingIsWrittenWhereATriggerCouldUndoIt(t *testing.T) {
	for name, c := range map[string]struct {
		trigger string
		do      func(t *testing.T, o *populatedStore) error
	}{
		"A6/a stop": {"BEFORE UPDATE ON meta BEGIN SELECT raise(IGNORE)", func(t *testing.T, o *populatedStore) error {
			_, err := o.Stop(t.Context(), "op", "cli", time.Now())
			return err
		}},
		"A6/a stop, undone afterwards": {"AFTER UPDATE ON meta WHEN NEW.stopped_by <> '' BEGIN UPDATE meta SET stopped_by = ''",
			func(t *testing.T, o *populatedStore) error {
				_, err := o.Stop(t.Context(), "op", "cli", time.Now())
				return err
			}},
		"A8/a lock": {"BEFORE INSERT ON locks BEGIN SELECT raise(IGNORE)", func(t *testing.T, o *populatedStore) error {
			return locked(t, o.Store, permissions.PersonLocked)
		}},
		"G2/a token": {"BEFORE INSERT ON tokens BEGIN SELECT raise(IGNORE)", func(t *testing.T, o *populatedStore) error {
			return o.AddToken(t.Context(), permissions.Token{ID: "T2", Name: "x", Hash: permissions.Digest{8}}, "op", "cli")
		}},
		"A7/a vote": {"BEFORE INSERT ON request_votes BEGIN SELECT raise(IGNORE)", func(t *testing.T, o *populatedStore) error {
			_, err := o.Apply(t.Context(), o.waiting.ID, fayAllows())
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			meddle(t, o.Store, "CREATE TRIGGER t "+c.trigger+"; END")
			if err := c.do(t, o); !errors.Is(err, permissions.ErrBroken) || !strings.Contains(err.Error(), "its trigger t") {
				t.Errorf("it says %v", err)
			}
			meddle(t, o.Store, "DROP TRIGGER t")
			if err := c.do(t, o); err != nil {
				t.Errorf("without it: %v", err)
			}
		})
	}
}

// TestVerifyFindsAnIndexThatLacksRows: A7/an index hides the rows that it lacks.
func TestVerifyFindsAnIndexThatLacksRows(t *testing.T) {
	for _, index := range []string{"grants_open", "requests_pending", "audit_gates"} {
		o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		where := func(sql string) string {
			return "UPDATE sqlite_schema SET sql = " + sql + " WHERE name = '" + index + "'"
		}
		for _, step := range [][]string{
			{"CREATE TABLE kept AS SELECT sql FROM sqlite_schema WHERE name = '" + index + "'", "PRAGMA writable_schema = on",
				where("sql || ' AND 1 = 0'"), "PRAGMA writable_schema = reset"},
			{"REINDEX " + index, "PRAGMA writable_schema = on", where("(SELECT sql FROM kept)"), "DROP TABLE kept",
				"PRAGMA writable_schema = reset"},
		} {
			if err := change(t.Context(), o.path, statements(step...)); err != nil {
				t.Fatal(index, err)
			}
		}
		s, err := Open(t.Context(), options(o.path))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), index) {
			t.Errorf("%s: verify says %v", index, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestJSONThatCannotBeAnsweredWithIsFoundAndNotUsed: D9/in every JSON column, including unsealed words of settled requests.
func TestJSONThatCannotBeAnsweredWithIsFoundAndNotUsed(t *testing.T) {
	deep := strings.Repeat("[", 9950) + strings.Repeat("]", 9950)
	bad := []string{"{", "1],[2", `{"a":1,"a":2}`, deep}
	values := map[string][]string{"input": bad}
	for _, input := range bad {
		values["calls"] = append(values["calls"], `[{"n":1,"tool":"write_file","input":`+input+`}]`)
	}
	for _, column := range []string{"options", "tags", "held", "under", "asked", "escalate_to", "reminders", "env_names", "choices"} {
		values[column] = []string{"{", "1],[2", `[{"id":"deny","label":"x","label":"y"}]`, deep}
	}
	for column, texts := range values {
		o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
		ask := newAsk()
		ask.Request.Calls = []permissions.Call{{N: 1, Tool: "write_file", Input: []byte(`{"path":"/a"}`)}}
		ask.Request.Digest = permissions.ComputeDigest(ask.Request)
		no := fayAllows()
		no.Vote.Answer = permissions.Deny
		if _, _, err := o.Open(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Apply(t.Context(), ask.Request.ID, no); err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			meddle(t, o.Store, "UPDATE requests SET "+column+" = $1 WHERE id = $2", text, ask.Request.ID)
			s, _ := logged(t, o.path)
			if _, err := s.Read(t.Context(), ask.Request.ID); !errors.Is(err, permissions.ErrRow) {
				t.Errorf("%s %.30s: read: %v", column, text, err)
			}
			if _, err := s.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), string(ask.Request.ID)) {
				t.Errorf("%s %.30s: verify says %v", column, text, err)
			}
			if n, err := length(s.Pending(t.Context(), "", "", 9)); err != nil || n != 1 {
				t.Errorf("%s %.30s: %d wait, %v", column, text, n, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestArgumentsThatCannotBeAnsweredWithAreLeftOut of a session's calls.
func TestArgumentsThatCannotBeAnsweredWithAreLeftOut(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	meddle(t, o.Store, "INSERT INTO sessions SELECT 1, 'S', 1, 'one', 'fay', '', 'idle', '', 0, 0, '', '', 1, 5, 0, 0, 0, '', 0, 0, ''; "+
		"WITH two (n, args) AS (VALUES (1, '{\"a\":1,\"a\":2}'), (2, '{'), (3, '{}')) "+
		"INSERT INTO tool_calls (session, step, call, tool, arguments, began_at, ended_at, success, error) "+
		"SELECT 'S', 1, n, 'read_file', args, 5, 5, TRUE, '' FROM two")
	if n, err := length(o.ExecutionsOf(t.Context(), "S", 0, 9)); err != nil || n != 1 {
		t.Errorf("%d calls, %v; want the good one", n, err)
	}
}

// TestAStoreThatWasCutOffIsDamaged: its disk is not to blame, whether a daemon was killed before, or runs.
func TestAStoreThatWasCutOffIsDamaged(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	cut := func(path string) {
		t.Helper()
		info, err := os.Stat(path)
		if err == nil {
			err = os.Truncate(path, info.Size()/2)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	killed := filepath.Join(t.TempDir(), "daycared.db")
	copyFiles(t, o.path, killed, "", logSuffix)
	cut(killed)
	if _, err := o.writer.ExecContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	cut(o.path)
	for _, c := range []struct {
		what string
		err  error
	}{
		{"the start", second(Open(t.Context(), options(killed)))},
		{"a read", second(o.Pending(t.Context(), "", "", 9))},
		{"the audit", second(o.Verify(t.Context()))},
		{"a write", o.Health(t.Context())},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), "is damaged") || !strings.Contains(c.err.Error(), "daycared restore FILE") {
			t.Errorf("%s says %v", c.what, c.err)
		}
	}
	if _, err := VerifyFile(t.Context(), options(killed)); err == nil || !strings.Contains(err.Error(), "try another backup") {
		t.Errorf("verify says %v", err)
	}
}
