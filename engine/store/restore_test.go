package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// dead is a store that died with more content than its backup, most of it in its log.
type dead struct {
	path, backup string
	saved, lost  permissions.Request
	head         int64
}

func newDead(t *testing.T, lasts ...permissions.Scope) dead {
	t.Helper()
	d := dead{path: filepath.Join(t.TempDir(), "daycared.db"), backup: filepath.Join(t.TempDir(), "backup.db")}
	s := reopen(t, filepath.Join(t.TempDir(), "daycared.db"))
	for id := range 3 {
		token := permissions.Token{ID: permissions.ID(rune('A' + id)), Name: "ci", Hash: permissions.Digest{byte(id)}, CreatedAt: time.Now()}
		if err := s.AddToken(t.Context(), token, "op", "cli"); err != nil {
			t.Fatal(err)
		}
	}
	for _, person := range []string{"fay", "sam"} {
		p := permissions.Pairing{Person: person, Via: "telegram", Address: person, PairedAt: time.Now()}
		if _, err := s.Pair(t.Context(), p, "op", "cli"); err != nil {
			t.Fatal(err)
		}
	}
	lasting, revoked := approve(t, s, append(lasts, permissions.For(time.Hour))[0]), approve(t, s, permissions.For(time.Hour))
	for _, r := range []permissions.Request{lasting, revoked} {
		if err := use(t, s, r); err != nil {
			t.Fatal(err)
		}
	}
	d.saved = insert(t, s)
	if _, err := Backup(t.Context(), options(s.path), d.backup); err != nil {
		t.Fatal(err)
	}
	d.lost = insert(t, s)
	grants, err := s.GrantsInForce(t.Context(), "", time.Now(), "", 99)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		if g.Request != revoked.ID {
			continue
		}
		if _, err := s.Revoke(t.Context(), g.ID, "op", "cli", time.Now(), 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		s.Suspend(t.Context(), "whatsapp", "+491", "sam", time.Now()),
		locked(t, s, permissions.PersonLocked),
		func() error { _, err := s.RevokeToken(t.Context(), "B", "op", "cli", time.Now()); return err }(),
		func() error {
			_, err := s.Unpair(t.Context(), "sam", "telegram", "op", "cli", time.Now())
			return err
		}(),
		func() error { _, err := s.Stop(t.Context(), "sam", "cli", time.Now()); return err }(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d.head = s.ledger.seq
	copyFiles(t, s.path, d.path, "", logSuffix)
	copyFiles(t, markName(s.path), markName(d.path), "")
	if n, err := fileSize(d.path + logSuffix); err != nil || n == 0 {
		t.Fatalf("the log has %d bytes, %v", n, err)
	}
	return d
}

// restored checks that the store is the backup's in a new life, and that only kept is left in the folder.
func (d dead) restored(t *testing.T, kept string) {
	t.Helper()
	s := reopen(t, d.path)
	began := restorations(t, s)
	if len(began) != 1 || began[0].Seq < d.head+gap {
		t.Errorf("lives: %v", began)
	}
	if r, err := s.Read(t.Context(), d.saved.ID); err != nil || r.State != permissions.Pending {
		t.Errorf("what the backup has: %v, %v", r.State, err)
	}
	if _, err := s.Read(t.Context(), d.lost.ID); err == nil {
		t.Error("what came after the backup is there")
	}
	for _, suffix := range []string{intentSuffix, restoredSuffix, restoredSuffix + draftSuffix} {
		if fileExists(d.path + suffix) {
			t.Errorf("%s is left", suffix)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	old := reopen(t, kept)
	if r, err := old.Read(t.Context(), d.lost.ID); err != nil || r.ID != d.lost.ID {
		t.Errorf("the store that was replaced is not whole: %v", err)
	}
}

// TestRestore: what was revoked since the backup stays revoked, and the rest is suspended.
func TestRestore(t *testing.T) { restoresWhatWasTakenBack(t) }

// TestRestoreGoesByTheAuditOfTheStoreThatIsReplaced: D10/its rows may have been changed.
func TestRestoreGoesByTheAuditOfTheStoreThatIsReplaced(t *testing.T) {
	restoresWhatWasTakenBack(t, "DELETE FROM uses WHERE granted IN (SELECT id FROM grants WHERE revoked_at > 0)",
		"DELETE FROM grants WHERE revoked_at > 0", "DELETE FROM tokens WHERE revoked_at > 0", "DELETE FROM locks", "DELETE FROM suspensions",
		"INSERT INTO pairings (person, via, address, alias, paired_at) VALUES ('sam', 'telegram', 'sam', '', 5)",
		"UPDATE meta SET stopped_by = '', stopped_at = 0")
}

// TestTwoRestoresKeepWhatWasTakenBack: D10/it was revoked in the first store, not in the one that the second restore replaces.
func TestTwoRestoresKeepWhatWasTakenBack(t *testing.T) {
	for _, started := range []bool{true, false} {
		d := newDead(t)
		for n := range 2 {
			if _, err := Restore(t.Context(), options(d.path), d.backup); err != nil {
				t.Fatal(err)
			}
			if n == 0 && started {
				if err := reopen(t, d.path).Close(); err != nil {
					t.Fatal(err)
				}
			}
			if n == 0 {
				changes := []string{"DELETE FROM uses WHERE granted IN (SELECT id FROM grants WHERE revoked_at > 0)",
					"DELETE FROM grants WHERE revoked_at > 0", "DELETE FROM tokens WHERE revoked_at > 0",
					"UPDATE meta SET stopped_by = '', stopped_at = 0"}
				if err := change(t.Context(), d.path, statements(changes...)); err != nil {
					t.Fatal(err)
				}
			}
		}
		s := reopen(t, d.path)
		if now, err := s.Suspended(t.Context()); err != nil || len(now.Grants) != 1 || len(now.Tokens) != 2 {
			t.Errorf("started %v: suspended are %d grants and %d tokens, %v", started, len(now.Grants), len(now.Tokens), err)
		}
		if by, _, err := s.StoppedBy(t.Context()); err != nil || by != "sam" {
			t.Errorf("started %v: stopped by %q, %v", started, by, err)
		}
		if _, err := s.Verify(t.Context()); err != nil {
			t.Errorf("started %v: %v", started, err)
		}
	}
}

func restoresWhatWasTakenBack(t *testing.T, changes ...string) {
	t.Helper()
	d := newDead(t, permissions.Rule)
	if err := change(t.Context(), d.path, statements(changes...)); err != nil {
		t.Fatal(err)
	}
	r, err := Restore(t.Context(), options(d.path), d.backup)
	if err != nil {
		t.Fatal(err)
	}
	if r.Left != nil || r.Was == "" || r.BackTo == "" || r.Requests != 3 || r.Path != d.path {
		t.Errorf("it says %+v", r)
	}
	if len(r.Now.Grants) != 1 || r.Now.Grants[0].Rule != testRule || len(r.Now.Tokens) != 2 ||
		len(r.Now.Pairings) != 1 || r.Now.Pairings[0].Person != "fay" {
		t.Errorf("suspended: %+v", r.Now)
	}
	s := reopen(t, d.path)
	if by, _, err := s.StoppedBy(t.Context()); err != nil || by != "sam" {
		t.Errorf("stopped by %q, %v", by, err)
	}
	if all, err := s.Suspensions(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("suspended accounts: %v, %v", all, err)
	}
	if all, err := s.Locks(t.Context()); err != nil || len(all) != 1 || all[0].Person != "fay" {
		t.Errorf("locked: %v, %v", all, err)
	}
	if _, err := s.Verify(t.Context()); err != nil {
		t.Errorf("it does not verify: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(changes) == 0 {
		d.restored(t, r.Kept)
	}
}

// beforeList reverts a store to the schema before [restrictions].
func beforeList(t *testing.T, path, keyFile string) {
	t.Helper()
	key, err := readKey(keyFile)
	if err == nil {
		err = change(t.Context(), path, func(ctx context.Context, db *sql.DB) error {
			err := statements(append(oldView(), "DROP VIEW agent_sessions", "ALTER TABLE sessions DROP COLUMN debug",
				"ALTER TABLE tool_calls DROP COLUMN affected_path", "ALTER TABLE meta DROP COLUMN shut", "ALTER TABLE votes DROP COLUMN account",
				"DROP INDEX audit_gates", "DELETE FROM goose_db_version WHERE version_id >= 9")...)(ctx, db)
			if err == nil {
				err = oldSeals(key)(ctx, db)
			}
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRestoreFromBeforeLocks: what cannot be carried over is reported.
func TestRestoreFromBeforeLocks(t *testing.T) {
	d := newDead(t)
	beforeList(t, d.backup, options(d.path).keyFile())
	before := statements("DROP TABLE locks", "DELETE FROM goose_db_version WHERE version_id >= 8")
	if err := change(t.Context(), d.backup, before); err != nil {
		t.Fatal(err)
	}
	r, err := Restore(t.Context(), options(d.path), d.backup)
	if err != nil || r.Left == nil || !strings.Contains(r.Left.Error(), "from before there were locks") || len(r.Now.Pairings) != 1 {
		t.Errorf("it says %v, %v; suspended: %+v", r.Left, err, r.Now)
	}
}

// TestRestoreOnto restores in place of nothing, of garbage and of a store with a foreign log, and from a killed store's files too.
func TestRestoreOnto(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, d *dead){
		"nothing": func(t *testing.T, d *dead) { d.path = filepath.Join(t.TempDir(), "daycared.db") },
		"garbage": func(t *testing.T, d *dead) {
			if err := os.WriteFile(d.path, []byte(strings.Repeat("garbage ", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"a backup by hand": func(t *testing.T, d *dead) { copyFiles(t, d.backup, d.path, "") },
		"itself gone": func(t *testing.T, d *dead) {
			if err := os.Remove(d.path); err != nil {
				t.Fatal(err)
			}
		},
		"from the dead": func(t *testing.T, d *dead) {
			d.backup, d.path = d.path, filepath.Join(t.TempDir(), "daycared.db")
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDead(t)
			spoil(t, &d)
			r, err := Restore(t.Context(), options(d.path), d.backup)
			if err != nil {
				t.Fatal(err)
			}
			s := reopen(t, d.path)
			if began := restorations(t, s); len(began) != 1 {
				t.Errorf("lives: %v", began)
			}
			if _, err := s.Read(t.Context(), d.saved.ID); err != nil {
				t.Error(err)
			}
			if (r.Kept == "") != (name == "nothing" || name == "from the dead") {
				t.Errorf("kept as %q", r.Kept)
			}
		})
	}
}

// TestRestoreRefuses: an invalid file changes nothing.
func TestRestoreRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		from func(t *testing.T, d dead) string
		want string
	}{
		"nothing":   {func(*testing.T, dead) string { return "/nowhere/x.db" }, "no such file"},
		"a folder":  {func(_ *testing.T, d dead) string { return filepath.Dir(d.path) }, "it is not a file"},
		"the store": {func(_ *testing.T, d dead) string { return d.path }, "it is the store itself"},
		"a text": {func(t *testing.T, d dead) string {
			if err := os.WriteFile(d.backup, []byte(strings.Repeat("text ", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
			return d.backup
		}, "is damaged"},
		"another database": {func(t *testing.T, d dead) string {
			if err := errors.Join(os.Remove(d.backup), os.WriteFile(d.backup, nil, 0o600),
				change(t.Context(), d.backup, statements("CREATE TABLE x (y)"))); err != nil {
				t.Fatal(err)
			}
			return d.backup
		}, "it is no store of daycared"},
		"a newer one": {func(t *testing.T, d dead) string {
			err := change(t.Context(), d.backup, statements("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, TRUE)"))
			if err != nil {
				t.Fatal(err)
			}
			return d.backup
		}, "it was written by a newer daycared (schema 99"},
		"a trigger": {func(t *testing.T, d dead) string {
			err := change(t.Context(), d.backup, statements("CREATE TRIGGER x AFTER UPDATE ON grants BEGIN UPDATE grants SET suspended_at = 0; END"))
			if err != nil {
				t.Fatal(err)
			}
			return d.backup
		}, "its trigger x of grants is not daycared's"},
		"a table less": {func(t *testing.T, d dead) string {
			if err := change(t.Context(), d.backup, statements("DROP TABLE strangers")); err != nil {
				t.Fatal(err)
			}
			return d.backup
		}, "2 parts differ; it has no index strangers_told of strangers"},
		"a forged audit": {func(t *testing.T, d dead) string {
			if err := change(t.Context(), d.backup, statements("UPDATE entries SET actor = 'mallory' WHERE key = 2")); err != nil {
				t.Fatal(err)
			}
			return d.backup
		}, "broken at entry 2"},
		"no room": {func(t *testing.T, d dead) string {
			if err := os.MkdirAll(d.path+restoredSuffix+draftSuffix+"/x", 0o700); err != nil {
				t.Fatal(err)
			}
			return d.backup
		}, "restored.part"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDead(t)
			_, err := Restore(t.Context(), options(d.path), c.from(t, d))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			s := reopen(t, d.path)
			if _, err := s.Read(t.Context(), d.lost.ID); err != nil || len(restorations(t, s)) != 0 {
				t.Errorf("the store was changed: %v", err)
			}
		})
	}
}

// TestRestoreKilled kills a restore after each step: the next start or restore finishes it.
func TestRestoreKilled(t *testing.T) {
	const kept = "daycared.db" + replacedSuffix + "20261122T173000Z"
	for step := 0; ; step++ {
		d := newDead(t)
		var r Restored
		if err := r.draft(t.Context(), options(d.path), d.path, d.backup); err != nil {
			t.Fatal(err)
		}
		if step == 0 { // killed before the decision: the store is unchanged
			s := reopen(t, d.path)
			if _, err := s.Read(t.Context(), d.lost.ID); err != nil || len(restorations(t, s)) != 0 || fileExists(d.path+restoredSuffix) {
				t.Errorf("the store was changed: %v", err)
			}
			continue
		}
		if err := WriteFile(d.path+intentSuffix, []byte(kept), 0o600); err != nil {
			t.Fatal(err)
		}
		all := restoreSteps(d.path, kept)
		if step-1 > len(all) {
			break
		}
		for _, m := range all[:step-1] {
			if err := m.do(); err != nil {
				t.Fatal(err)
			}
		}
		if step%2 == 0 { // another restore finishes it first, too
			if _, err := Restore(t.Context(), options(d.path), "/nowhere"); err == nil {
				t.Error("there is nothing to restore from")
			}
		}
		d.restored(t, filepath.Join(filepath.Dir(d.path), kept))
	}
}

// If the restored copy cannot be opened, the error says so, and where the old store is.
func TestRestoreSaysThatTheStoreWasReplaced(t *testing.T) {
	d := newDead(t)
	ctx, cancel := context.WithCancel(t.Context())
	o := options(d.path)
	o.Now = func() time.Time { // called once the copy is verified
		cancel()
		return time.Now()
	}
	_, err := Restore(ctx, o, d.backup)
	if want := "the copy is in place and the old store is kept as " + d.path + replacedSuffix; !errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("it says %v, want %q", err, want)
	}
}

// A damaged file is not to be replaced by itself.
func TestRestoreOfADamagedFile(t *testing.T) {
	d := newDead(t)
	raw, err := os.ReadFile(d.backup)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"no database": []byte("people: []"), "cut short": raw[:len(raw)/2], "overwritten": append(raw[:100:100], make([]byte, len(raw)-100)...),
	} {
		if err := os.WriteFile(d.backup, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Restore(t.Context(), options(d.path), d.backup)
		if err == nil || !strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), "try another backup") ||
			strings.Contains(err.Error(), "daycared restore FILE") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(d.backup, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := change(t.Context(), d.backup, statements("UPDATE entries SET detail = 'x' WHERE key = 2")); err != nil {
		t.Fatal(err)
	}
	_, err = Restore(t.Context(), options(d.path), d.backup)
	if err == nil || !strings.Contains(err.Error(), "try another backup") || strings.Contains(err.Error(), "daycared restore FILE") {
		t.Errorf("an entry: %v", err)
	}
}

// BackTo is the newest entry of the store's own chain, whatever other chains it has.
func TestRestoreOfSeveralChains(t *testing.T) {
	d := newDead(t)
	other := reopen(t, filepath.Join(t.TempDir(), "other.db")) // its chain sorts after the other
	insert(t, other)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	err := change(t.Context(), d.backup, statements("ATTACH '"+other.path+"' AS other",
		"INSERT INTO main.chains SELECT 1, name FROM other.chains",
		"INSERT INTO main.entries SELECT 1 << 48 | key, at, type, request, actor, via, detail, hash, mac, prev FROM other.audit"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Restore(t.Context(), options(d.path), d.backup)
	if err != nil {
		t.Fatal(err)
	}
	own := ""
	s := reopen(t, d.path)
	for _, c := range r.Chains {
		if c.Chain == s.chain {
			own = fmt.Sprintf("%d:%s", c.Seq, c.Hash)
		}
	}
	if len(r.Chains) != 2 || own == "" || r.BackTo != own {
		t.Errorf("of %d chains it goes back to %s, want %s", len(r.Chains), r.BackTo, own)
	}
}

// TestAnIntentNamesAFileOfOurs: finishing a restore moves nothing out of the folder.
func TestAnIntentNamesAFileOfOurs(t *testing.T) {
	for _, name := range []string{
		"", "x", "daycared.db.replaced-", "daycared.db.replaced-/../../stolen", "daycared.db.replaced-20261122T173000Z/x",
	} {
		d := newDead(t)
		for file, text := range map[string]string{intentSuffix: name, restoredSuffix: "x"} {
			if err := os.WriteFile(d.path+file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Open(t.Context(), options(d.path)); err == nil || !strings.Contains(err.Error(), "it does not name where the store goes") {
			t.Errorf("%q: %v", name, err)
		}
		if !fileExists(d.path) {
			t.Errorf("%q: the store was moved", name)
		}
	}
}

// TestRestoreOfACopyWithoutItsSeals: if the key is here, any trace that the copy was sealed with it refuses the copy,
// and nothing is restored.
func TestRestoreOfACopyWithoutItsSeals(t *testing.T) {
	const meta, grants = "UPDATE meta SET mac = x''", "UPDATE grants SET caller = 'uid:5'"
	const rows = "UPDATE requests SET mac = x''; UPDATE grants SET mac = x''; UPDATE tokens SET mac = x''; UPDATE pairings SET mac = x''"
	for name, forge := range map[string][]string{
		"that of the store":         {meta, grants},
		"zeros for that":            {"UPDATE meta SET mac = zeroblob(16)", grants},
		"those of all rows":         {"UPDATE meta SET mac = zeroblob(16)", rows, grants},
		"all":                       {meta, rows, "UPDATE entries SET mac = x''", grants},
		"all but those of the rows": {"UPDATE meta SET mac = zeroblob(16)", "UPDATE entries SET mac = randomblob(16)", grants},
		"all but one of a request": {"UPDATE meta SET mac = zeroblob(16)", "UPDATE entries SET mac = randomblob(16)",
			"UPDATE grants SET mac = x''; UPDATE tokens SET mac = x''; UPDATE pairings SET mac = x''", grants},
		"other ones everywhere": {"UPDATE meta SET mac = randomblob(16)", "UPDATE entries SET mac = randomblob(16)", grants,
			"UPDATE requests SET mac = randomblob(16); UPDATE grants SET mac = randomblob(16)"},
		"of entries, the first only": {meta, "UPDATE entries SET mac = randomblob(16) WHERE key = 1", rows, grants},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDead(t)
			if err := change(t.Context(), d.backup, statements(forge...)); err != nil {
				t.Fatal(err)
			}
			_, err := Restore(t.Context(), options(d.path), d.backup)
			if err == nil || !strings.Contains(err.Error(), "does not carry the seal") || !strings.Contains(err.Error(), "try another backup") {
				t.Errorf("it is restored: %v", err)
			}
			s := reopen(t, d.path)
			if _, err := s.Read(t.Context(), d.lost.ID); err != nil || len(restorations(t, s)) != 0 {
				t.Errorf("the store was changed: %v", err)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "daycared.db") // by its schema from before the key, but an entry names the key
	beforeSeals(t, path)
	s := reopen(t, path)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	from, o := filepath.Join(t.TempDir(), "backup.db"), options(path)
	if _, err := Backup(t.Context(), o, from); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(o.keyFile())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(options(from).keyFile(), key, 0o600); err != nil {
		t.Fatal(err)
	}
	unsealSchema(t, from)
	if _, err := Restore(t.Context(), o, from); err == nil || !strings.Contains(err.Error(), "does not carry the seal") {
		t.Errorf("with an entry that names the key: %v", err)
	}
}

// TestRestoreSaysWhichLocksAreLost: none if the replaced store is readable and the same.
func TestRestoreSaysWhichLocksAreLost(t *testing.T) {
	d := newDead(t)
	if r, err := Restore(t.Context(), options(d.path), d.backup); err != nil || r.Left != nil || r.Was == "" {
		t.Errorf("onto the store: lost %v, %v", r.Left, err)
	}
	d = newDead(t)
	if err := os.WriteFile(d.path, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Restore(t.Context(), options(d.path), d.backup); err != nil || r.Left == nil {
		t.Errorf("onto garbage: lost %v, %v", r.Left, err)
	}
	here := newStore(t)
	if err := here.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := Restore(t.Context(), options(here.path), newDead(t).backup); err != nil || r.Left == nil {
		t.Errorf("onto another store: lost %v, %v", r.Left, err)
	}
}
