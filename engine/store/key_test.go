package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/daycared/daycared/permissions"
)

// beforeSeals opens a store with the schema from before the key, as a daemon of that time wrote it.
func beforeSeals(t *testing.T, path string) {
	t.Helper()
	o := newOpened(t, path)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	unsealSchema(t, path)
	if err := os.Remove(options(path).keyFile()); err != nil {
		t.Fatal(err)
	}
}

// oldView reverts the migrations of the view aic_interactions, of token persons, of calls beyond a rate, of what callers tell, and
// of wider seals.
func oldView() []string {
	view := between(migration("00001_requests.sql"), "CREATE VIEW aic_interactions", ";")
	return append(slices.Clip(oldColumns),
		"DROP VIEW aic_interactions", "CREATE VIEW aic_interactions"+view, "ALTER TABLE tokens DROP COLUMN person",
		"ALTER TABLE requests DROP COLUMN beyond", "DROP TABLE waits",
		"ALTER TABLE notices DROP COLUMN agent", "ALTER TABLE notices DROP COLUMN session", "ALTER TABLE notices DROP COLUMN title",
		"ALTER TABLE notices DROP COLUMN words", "ALTER TABLE notices DROP COLUMN silent",
	)
}

// oldColumns reverts the migrations of wider seals, and of entries about calls and how requests ended, and of rows of files.
var oldColumns = append(slices.Concat(oldAudit, oldVotes),
	"DROP INDEX grants_open_ids", "DROP INDEX requests_pending", "ALTER TABLE requests RENAME COLUMN due_at TO remind_at",
	"CREATE INDEX requests_pending ON requests (number) WHERE state = 'pending'",
	"CREATE INDEX requests_deadline ON requests (deadline) WHERE state = 'pending'",
	"CREATE INDEX requests_escalate ON requests (escalate_at, deadline) WHERE state = 'pending' AND escalate_at > 0",
	"CREATE INDEX requests_remind ON requests (remind_at, deadline) WHERE state = 'pending' AND remind_at > 0",
	"DROP TABLE away", "DROP TABLE languages", "ALTER TABLE requests DROP COLUMN was", "ALTER TABLE requests DROP COLUMN ruled",
	"ALTER TABLE requests DROP COLUMN title", "ALTER TABLE requests DROP COLUMN prompt",
	"DROP INDEX requests_allowed", "DROP INDEX requests_refused", "ALTER TABLE grants DROP COLUMN rule",
	"DROP INDEX audit_sessions", "DROP INDEX audit_settled", "ALTER TABLE meta DROP COLUMN seals", "ALTER TABLE sessions DROP COLUMN audited",
	"ALTER TABLE sessions DROP COLUMN mac", "ALTER TABLE timetables DROP COLUMN mac",
	"ALTER TABLE strangers DROP COLUMN alias", "ALTER TABLE strangers DROP COLUMN person", "ALTER TABLE strangers DROP COLUMN proposed_by",
	"ALTER TABLE strangers DROP COLUMN proposed_from", "ALTER TABLE strangers DROP COLUMN proposed_at",
	"ALTER TABLE strangers DROP COLUMN mac",
	"DROP INDEX audit_gates", migration("00011_gates.sql"), "DELETE FROM goose_db_version WHERE version_id > 18",
)

// oldAudit reverts the migration of short entries.
var oldAudit = []string{
	"CREATE TABLE old AS SELECT chain, seq, at, type, request, actor, via, detail, prev, hash, mac FROM audit",
	"DROP VIEW audit", "DROP TABLE entries", "DROP TABLE pruned", "DROP TABLE chains",
	"DROP TABLE types",
	"CREATE TABLE audit" + between(migration("00001_requests.sql"), "CREATE TABLE audit", ";"),
	"ALTER TABLE audit ADD COLUMN mac BLOB NOT NULL DEFAULT x''",
	"INSERT INTO audit SELECT * FROM old", "DROP TABLE old", "CREATE INDEX audit_sessions ON audit (actor)",
	"CREATE INDEX audit_settled ON audit (request)", "CREATE INDEX audit_gates ON audit (request)",
}

// oldVotes reverts the migration of votes and copies by the number of their request, and later columns of theirs.
var oldVotes = []string{
	"CREATE TABLE old AS SELECT request, n, voter, via, answer, call, comment, at, key, account FROM votes", "DROP VIEW votes",
	"DROP TABLE request_votes", "CREATE TABLE votes" + between(migration("00001_requests.sql"), "CREATE TABLE votes", "-- The copies"),
	"ALTER TABLE votes ADD COLUMN account TEXT NOT NULL DEFAULT ''", "INSERT INTO votes SELECT * FROM old", "DROP TABLE old",
	"CREATE TABLE old AS SELECT request, person, connector, place, ref, button, shown, since, sent_at, failed, dated FROM copies",
	"DROP VIEW copies", "DROP TABLE request_copies",
	"CREATE TABLE copies" + between(migration("00001_requests.sql"), "CREATE TABLE copies", ";"),
	"ALTER TABLE copies ADD COLUMN dated INTEGER NOT NULL DEFAULT 0", "INSERT INTO copies SELECT * FROM old", "DROP TABLE old",
}

// between is the part of a text behind one part and before the next of another.
func between(text, first, last string) string {
	_, text, _ = strings.Cut(text, first)
	text, _, _ = strings.Cut(text, last)
	return text
}

// migration is the text of a migration.
func migration(name string) string {
	text, err := migrations.ReadFile("migrations/" + name)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// oldSeals seals the rows of a store like a daemon from before wider seals.
func oldSeals(k *sealer) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error {
		err := eachSealed(ctx, db, func(r permissions.Request, _ []byte) error {
			_, err := db.ExecContext(ctx, sealRequest, k.seal("requests", oldSealedValues(nil, &r)...), r.Number)
			return err
		})
		return errors.Join(err, sealIdentity(ctx, db, k))
	}
}

// unsealSchema reverts a store to the schema before the key.
func unsealSchema(t *testing.T, path string) {
	t.Helper()
	drop := append(oldView(),
		"DELETE FROM goose_db_version WHERE version_id > 4", "DROP TABLE locks", "ALTER TABLE copies DROP COLUMN dated",
		"ALTER TABLE meta DROP COLUMN shut", "ALTER TABLE votes DROP COLUMN account", "DROP INDEX audit_gates",
		"DROP VIEW agent_sessions", "ALTER TABLE sessions DROP COLUMN debug", "ALTER TABLE tool_calls DROP COLUMN affected_path",
		"DROP INDEX requests_kept", "DROP INDEX requests_denied", // of later migrations
		"ALTER TABLE requests DROP COLUMN action", "ALTER TABLE requests DROP COLUMN voided_by",
		"CREATE INDEX requests_denied ON requests (caller, digest, decided_at) WHERE state = 'denied'",
	)
	for _, table := range []string{"audit", "requests", "grants", "tokens", "pairings", "meta"} {
		drop = append(drop, "ALTER TABLE "+table+" DROP COLUMN mac")
	}
	if err := change(t.Context(), path, statements(drop...)); err != nil {
		t.Fatal(err)
	}
}

// TestAStoreFromBeforeTheKeyIsSealedOnce at its migration, with an entry that counts the rows; older heads still verify.
func TestAStoreFromBeforeTheKeyIsSealedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daycared.db")
	beforeSeals(t, path)
	s := reopen(t, path)
	o := &populatedStore{Store: s, token: permissions.Token{Hash: permissions.Digest{7}}}
	if got := fmt.Sprint(o.gates(t)); got != "[grant token pairing]" {
		t.Errorf("%s are open", got)
	}
	all, err := s.Audit(t.Context(), "", 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1]
	if last.Type != permissions.AuditKeyed || last.Detail["requests"] != "5" || last.Detail["grants"] != "1" ||
		last.Detail["tokens"] != "1" || last.Detail["pairings"] != "1" || last.Detail[keyID] != s.seals.id {
		t.Errorf("it is sealed by %+v", last.Record)
	}
	if len(restorations(t, s)) != 0 {
		t.Error("it is another life")
	}
	if heads, err := s.Verify(t.Context()); err != nil || heads[0].Unkeyed != last.Seq-1 || heads[0].First != 1 {
		t.Errorf("%+v, %v", heads, err)
	}
	insert(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, path)
	heads, err := s.Verify(t.Context())
	if err != nil || heads[0].Seq != last.Seq+1 {
		t.Errorf("the second start seals once more: %+v, %v", heads, err)
	}
	meddle(t, s, "UPDATE entries SET actor = 'x', hash = zeroblob(32) WHERE key = 1")
	if _, err := s.Verify(t.Context()); err == nil {
		t.Error("what was sealed can be changed")
	}
}

// TestASealingThatWasKilled is finished by the next start, before and after its commit.
func TestASealingThatWasKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daycared.db")
	beforeSeals(t, path)
	if _, err := makeKey(options(path).keyFile() + nextSuffix); err != nil { // before the commit
		t.Fatal(err)
	}
	s := reopen(t, path)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	key := options(path).keyFile()
	if err := os.Rename(key, key+nextSuffix); err != nil { // after it
		t.Fatal(err)
	}
	s = reopen(t, path)
	if len(restorations(t, s)) != 0 || !fileExists(key) || fileExists(key+nextSuffix) {
		t.Error("the key is not in its place")
	}
	// A migration killed between its step and the seals.
	steps := fstest.MapFS{}
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := fs.ReadFile(migrations, "migrations/"+f.Name())
		if err != nil {
			t.Fatal(err)
		}
		steps[f.Name()] = &fstest.MapFile{Data: text}
	}
	path = filepath.Join(t.TempDir(), "daycared.db")
	beforeSeals(t, path)
	w := connect(path, time.Second, 1, "_journal_mode=WAL")
	half := &Store{path: path, writer: w, log: options(path).Log}
	if err := errors.Join(half.migrate(t.Context(), steps), w.Close()); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, path)
	if len(restorations(t, s)) != 0 || s.newKey != firstKey {
		t.Errorf("it is not sealed: %q", s.newKey)
	}
}

// TestWithoutTheRightKey nothing opens, and the error says what to do; a new key begins a new life.
func TestWithoutTheRightKey(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path, key string) error
		want  string
	}{
		"H1/the key is missing": {func(_ *testing.T, _, key string) error { return os.Remove(key) }, "is missing"},
		"H1/the key is empty":   {func(_ *testing.T, _, key string) error { return os.Truncate(key, 0) }, "hexadecimal digits"},
		"H1/another key": {func(_ *testing.T, _, key string) error {
			_, err := makeKey(key)
			return err
		}, "is not the one that the store"},
		"H1/the store without its seals": {func(t *testing.T, path, _ string) error {
			return change(t.Context(), path, statements("UPDATE meta SET mac = ''", "UPDATE requests SET mac = ''", "UPDATE entries SET mac = ''"))
		}, "carries no seal"},
		"H1/who stopped everything": {func(t *testing.T, path, _ string) error {
			return change(t.Context(), path, statements("UPDATE meta SET stopped_by = 'x'"))
		}, "was changed behind daycared's back"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "daycared.db")
			o := newOpened(t, path)
			if err := o.Close(); err != nil {
				t.Fatal(err)
			}
			if err := c.spoil(t, path, options(path).keyFile()); err != nil {
				t.Fatal(err)
			}
			_, err := Open(t.Context(), options(path))
			unwell(t, "open", err, c.want, "daycared audit new-key")
			renew := options(path)
			renew.NewKey = true
			s, err := Open(t.Context(), renew)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			o.Store = reopen(t, path)
			if got := o.gates(t); len(got) != 1 || got[0] != "pairing" { // listed as suspended
				t.Errorf("%s are open", got)
			}
			if paired, err := o.Pairings(t.Context()); err != nil || paired[0].SuspendedAt.IsZero() {
				t.Errorf("pairings: %v, %v", paired, err)
			}
			if err := use(t, o.Store, o.approved); err == nil {
				t.Errorf("an approval from before: %v", err)
			}
			began := restorations(t, o.Store)
			if len(began) != 1 || began[0].Detail[keyID] == "" || began[0].Detail["why"] != "its audit key was replaced" {
				t.Errorf("the audit says %v", began)
			}
			if _, err := o.Reinstate(t.Context(), nil, "op", "cli", time.Now()); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(o.gates(t)); got != "[grant token pairing]" {
				t.Errorf("reinstated, %s are open", got)
			}
		})
	}
}

// TestRestoreWithAnotherKey: a copy sealed elsewhere is checked with its key, or reported as unchecked; either way it
// gets the seals of this machine.
func TestRestoreWithAnotherKey(t *testing.T) {
	elsewhere := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	key := options(elsewhere.path).keyFile()
	for name, c := range map[string]struct {
		key     string
		meddles string
		wrong   string
	}{
		"H1/with its key":                 {key: key},
		"H1/without it":                   {},
		"H1/with its key, a row changed":  {key: key, meddles: "UPDATE grants SET until = until - 1", wrong: "does not carry the seal"},
		"H1/with its key, a vote changed": {key: key, meddles: "UPDATE request_votes SET answer = 'deny'", wrong: "does not carry the seal"},
	} {
		t.Run(name, func(t *testing.T) {
			from := filepath.Join(t.TempDir(), "backup.db")
			if _, err := Backup(t.Context(), options(elsewhere.path), from); err != nil {
				t.Fatal(err)
			}
			if fileExists(options(from).keyFile()) {
				t.Error("the key is beside the backup")
			}
			if c.meddles != "" {
				if err := change(t.Context(), from, statements(c.meddles)); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(t.TempDir(), "daycared.db")
			here := reopen(t, path)
			if err := here.Close(); err != nil {
				t.Fatal(err)
			}
			o := options(path)
			o.CopyKey = c.key
			r, err := Restore(t.Context(), o, from)
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("got %v, want %q", err, c.wrong)
				}
				return
			}
			if err != nil || (len(r.Unchecked) == 0) != (c.key != "") {
				t.Fatalf("not checked: %q, %v", r.Unchecked, err)
			}
			s := reopen(t, path)
			began := restorations(t, s)
			if len(began) != 1 || began[0].Detail[keyID] != s.seals.id || (began[0].Detail[unchecked] == "") != (c.key != "") {
				t.Errorf("the audit says %v", began)
			}
			if len(r.Now.Grants) != 1 || len(r.Now.Tokens) != 1 || len(r.Now.Pairings) != 1 {
				t.Errorf("suspended: %+v", r.Now)
			}
			_, err = s.Apply(t.Context(), elsewhere.waiting.ID, fayAllows())
			if waits := err == nil; waits != (c.key != "") {
				t.Errorf("what waited: %v", err)
			}
		})
	}
}

// TestWhatWaitedEndsWithALostKey: A3/nobody can check any more who was asked, how many have to allow it, and who has voted.
func TestWhatWaitedEndsWithALostKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daycared.db")
	o := newOpened(t, path)
	renew := options(path)
	late := newAsk()
	late.Request.CreatedAt, late.Request.Deadline = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
	if _, _, err := o.Open(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	forge := statements(`UPDATE requests SET quorum = 1, asked = '["fay"]' WHERE state = 'pending'`)
	if err := errors.Join(o.Close(), os.Remove(renew.keyFile()), change(t.Context(), path, forge)); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), options(path))
	unwell(t, "open", err, "daycared audit new-key")
	renew.NewKey = true
	s, err := Open(t.Context(), renew)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	r, err := s.Read(t.Context(), o.waiting.ID)
	if err != nil || r.State != permissions.Undeliverable || !strings.HasSuffix(r.Failure, ": ask again") {
		t.Errorf("what waited is %s, %q, %v", r.State, r.Failure, err)
	}
	if _, err := s.Apply(t.Context(), o.waiting.ID, fayAllows()); err == nil {
		t.Error("it is allowed")
	}
}

// TestVerifyFile checks a backup with the key, and reports what it could not check without.
func TestVerifyFile(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	from := options(filepath.Join(t.TempDir(), "backup.db"))
	if _, err := Backup(t.Context(), options(o.path), from.Path); err != nil {
		t.Fatal(err)
	}
	v, err := VerifyFile(t.Context(), from)
	if err != nil || len(v.Unchecked) != 2 || len(v.Chains) != 1 {
		t.Errorf("without the key: %+v, %v", v, err)
	}
	from.KeyFile = options(o.path).keyFile()
	if v, err = VerifyFile(t.Context(), from); err != nil || len(v.Unchecked) != 0 {
		t.Errorf("with the key: %+v, %v", v, err)
	}
	if err := change(t.Context(), from.Path, statements("UPDATE grants SET tags = '[]'")); err != nil {
		t.Fatal(err)
	}
	if _, err = VerifyFile(t.Context(), from); err == nil {
		t.Error("a grant that was changed is verified")
	}
	old := options(filepath.Join(t.TempDir(), "old.db"))
	beforeSeals(t, old.Path)
	if v, err = VerifyFile(t.Context(), old); err != nil || len(v.Unchecked) == 0 {
		t.Errorf("from before the key: %+v, %v", v, err)
	}
}

// TestDraftsOfBackupsThatWereKilledAreRemoved, but none that is being written.
func TestDraftsOfBackupsThatWereKilledAreRemoved(t *testing.T) {
	s := newStore(t)
	folder := t.TempDir()
	killed := filepath.Join(folder, "daycared-20261122T173000Z.db"+draftSuffix)
	others := filepath.Join(folder, "notes"+draftSuffix)
	for _, name := range []string{killed, killed + journalSuffix, others} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writing := filepath.Join(folder, "daycared-20261122T173001Z.db")
	db := lookInto(s.path, "")
	defer func() { _ = db.Close() }()
	err := copyInto(t.Context(), db, s.path, writing, s.tell, func(draft string) error {
		if _, err := Backup(t.Context(), options(s.path), filepath.Join(folder, "second.db")); err != nil {
			t.Error(err)
		}
		if !fileExists(draft) {
			t.Error("the draft of another backup was removed")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if fileExists(killed) || fileExists(killed+journalSuffix) || !fileExists(others) || !fileExists(writing) {
		t.Error("the wrong files are left")
	}
}

// TestWriteFile leaves the old or the new file, with the requested mode.
func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path+draftSuffix, []byte("half of it"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("whole"), 0o640); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "whole" || mode(t, path) != 0o640 || fileExists(path+draftSuffix) {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.MkdirAll(path+draftSuffix+"/x", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("more"), 0o600); err == nil {
		t.Error("there was no room")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "whole" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestANewKeySealsNoForgedRows: while the current key fits the entries, rows without its seal are not sealed with the new one, and
// entries about a stop, a lock, a suspension or a revoked grant stay in force. If it fits nothing, the entries count all the same.
func TestANewKeySealsNoForgedRows(t *testing.T) {
	for name, c := range map[string]struct {
		forge string
		says  string
		fits  bool
	}{
		"the seal of the store": {"UPDATE meta SET mac = x''", "daycared restore FILE; without one, daycared audit new-key", true},
		"and the first entry's": {"UPDATE meta SET mac = x''; UPDATE entries SET mac = randomblob(16) WHERE key = 1", "restore FILE", true},
		"and those of what was taken back": {"UPDATE meta SET mac = x''; UPDATE entries SET mac = x'' WHERE type IN (SELECT number FROM types " +
			"WHERE name IN ('GRANT_REVOKED', 'ALL_STOPPED', 'PERSON_LOCKED', 'ACCOUNT_SUSPENDED'))", "restore FILE", true},
		"every seal": {"UPDATE meta SET mac = x''; UPDATE entries SET mac = x''", "restore FILE", false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "daycared.db")
			o := newOpened(t, path)
			id := o.grant(t)
			_, err := o.Revoke(t.Context(), id, "op", "cli", time.Now(), 1)
			err = errors.Join(err, use(t, o.Store, approve(t, o.Store, permissions.Always)), locked(t, o.Store, permissions.PersonLocked),
				o.Suspend(t.Context(), "whatsapp", "+491", "sam", time.Now()))
			_, stopped := o.Stop(t.Context(), "sam", "cli", time.Now())
			if err := errors.Join(err, stopped, o.Close()); err != nil {
				t.Fatal(err)
			}
			forge := statements(c.forge, "UPDATE meta SET stopped_by = '', stopped_at = 0, shut = ''", "DELETE FROM locks",
				"DELETE FROM suspensions", "UPDATE grants SET revoked_at = 0", "UPDATE tokens SET name = 'mallory'")
			if err := change(t.Context(), path, forge); err != nil {
				t.Fatal(err)
			}
			_, err = Open(t.Context(), options(path))
			unwell(t, "open", err, c.says, "daycared restore FILE")
			unwell(t, "check", CheckKey(t.Context(), options(path)), "", "daycared restore FILE")
			renew := options(path)
			renew.NewKey = true
			s, err := Open(t.Context(), renew)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			if by, _, err := s.StoppedBy(t.Context()); err != nil || by != "sam" {
				t.Errorf("stopped by %q, %v", by, err)
			}
			locks, err := s.Locks(t.Context())
			if err != nil || len(locks) != 1 || locks[0].Person != "fay" {
				t.Errorf("locked: %v, %v", locks, err)
			}
			if all, err := s.Suspensions(t.Context()); err != nil || len(all) != 1 {
				t.Errorf("suspended: %v, %v", all, err)
			}
			now, err := s.Suspended(t.Context())
			if err != nil || len(now.Grants) != 1 || now.Grants[0].ID == id || c.fits != (len(now.Tokens) == 0) {
				t.Errorf("to be reinstated: %+v, %v", now, err)
			}
		})
	}
}

// TestANewKeyOfAnotherChain: the row with the store's own chain cannot hide the entries.
func TestANewKeyOfAnotherChain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daycared.db")
	o := newOpened(t, path)
	if err := errors.Join(o.Close(), change(t.Context(), path, statements("UPDATE meta SET mac = x'', chain = 'x'; "+
		"UPDATE chains SET number = 1; INSERT INTO chains VALUES (0, 'x'); UPDATE entries SET key = key + (1 << 48)"))); err != nil {
		t.Fatal(err)
	}
	renew := options(path)
	renew.NewKey = true
	_, err := Open(t.Context(), renew)
	unwell(t, "new key", err, "was changed behind daycared's back", "daycared restore FILE")
}

// TestANewKeyWhereAnEarlierOneIsBack: a key that was replaced since does not decide what is sealed.
func TestANewKeyWhereAnEarlierOneIsBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daycared.db")
	o := newOpened(t, path)
	key := options(path).keyFile()
	earlier, err := os.ReadFile(key)
	if err := errors.Join(err, o.Close()); err != nil {
		t.Fatal(err)
	}
	renew := options(path)
	renew.NewKey = true
	s, err := Open(t.Context(), renew)
	if err == nil {
		err = errors.Join(s.Close(), os.WriteFile(key, earlier, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), options(path))
	unwell(t, "open", err, "is not the one that the store", "put the right key back")
	if s, err = Open(t.Context(), renew); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if now, err := s.Suspended(t.Context()); err != nil || now.Count() != 3 {
		t.Errorf("to be reinstated: %+v, %v", now, err)
	}
}

// TestAStartWhoseRowsCannotBeSealedFails: it does not go on with rows that carry no valid seal.
func TestAStartWhoseRowsCannotBeSealedFails(t *testing.T) {
	s := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	t.Cleanup(func() { _ = s.Close() })
	const held = "CREATE TRIGGER held BEFORE UPDATE ON requests BEGIN SELECT RAISE(ABORT, 'held'); END"
	if err := change(t.Context(), s.path, statements(held)); err != nil {
		t.Fatal(err)
	}
	s.newKey, s.from, s.started = firstKey, nil, false // as in the start that makes the key, after it looked at the schema
	if err := s.start(t.Context()); err == nil || !strings.Contains(err.Error(), "held") {
		t.Errorf("started: %v", err)
	}
}
