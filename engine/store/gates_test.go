package store

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// logged opens the store at path and returns its log.
func logged(t *testing.T, path string) (*Store, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	o := options(path)
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, &log
}

// open lists what opens something in a store, and who is shut out.
func (o *populatedStore) open(t *testing.T) string {
	t.Helper()
	by, _, err := o.StoppedBy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	open := o.gates(t)
	if by != "" {
		open = append(open, "stopped by "+by)
	}
	locks, err := o.Locks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range locks {
		open = append(open, fmt.Sprintf("%s locked %v %v", l.Person, l.Accounts, l.Unlocking))
	}
	suspensions, err := o.Suspensions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range suspensions {
		open = append(open, a.Address+" suspended")
	}
	paired, err := o.Pairings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paired {
		if !p.SuspendedAt.IsZero() {
			open = append(open, p.Name()+" suspended")
		}
	}
	return strings.Join(open, ", ")
}

// putBack runs happens, then restores the tables to their earlier content.
func (o *populatedStore) putBack(t *testing.T, tables []string, happens func() error) {
	t.Helper()
	for _, table := range tables {
		meddle(t, o.Store, "CREATE TABLE kept.earlier_"+table+" AS SELECT * FROM "+table)
	}
	if err := happens(); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		keep := ""
		if table == "meta" { // unsealed
			keep = "UPDATE kept.earlier_meta SET (opens, marked, answered) = (SELECT opens, marked, answered FROM meta); "
		}
		meddle(t, o.Store, "PRAGMA foreign_keys = off; "+keep+"DELETE FROM "+table+"; INSERT INTO "+table+" SELECT * FROM kept.earlier_"+table+
			"; DROP TABLE kept.earlier_"+table)
	}
	if _, err := o.Verify(t.Context()); err == nil {
		t.Error("it verifies")
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestARowThatWasPutBackOpensNothingAtTheNextStart: its seal is valid, but the audit says that it was closed since.
// That is logged once, and the row is closed again, so that a later start logs nothing.
func TestARowThatWasPutBackOpensNothingAtTheNextStart(t *testing.T) {
	at := time.Now()
	for name, c := range map[string]struct {
		tables string
		first  func(t *testing.T, o *populatedStore) error
		then   func(t *testing.T, o *populatedStore) error
		want   string
	}{
		"A7/a grant that was revoked": {"grants", nil, func(t *testing.T, o *populatedStore) error {
			_, err := o.Revoke(t.Context(), o.grant(t), "op", "cli", at, 1)
			return err
		}, "token, pairing"},
		"A7/a grant that is over": {"grants", nil, func(t *testing.T, o *populatedStore) error {
			_, err := o.EndGrantsNow(t.Context(), []permissions.ID{o.grant(t)}, at)
			return err
		}, "token, pairing"},
		"G2/a token that was revoked": {"tokens", nil, func(t *testing.T, o *populatedStore) error {
			_, err := o.RevokeToken(t.Context(), "ci", "op", "cli", at)
			return err
		}, "grant, pairing"},
		"A2/an account that was unpaired": {"pairings", nil, func(t *testing.T, o *populatedStore) error {
			_, err := o.Unpair(t.Context(), "fay", "telegram", "op", "cli", at)
			return err
		}, "grant, token"},
		"A2/an account in whose place is another": {"pairings", nil, func(t *testing.T, o *populatedStore) error {
			_, err := o.Pair(t.Context(), permissions.Pairing{Person: "fay", Via: "telegram", Address: "2", PairedAt: at}, "op", "cli")
			return err
		}, "grant, token"},
		"A6/a stop": {"meta", nil, func(t *testing.T, o *populatedStore) error {
			_, err := o.Stop(t.Context(), "sam", "cli", at)
			return err
		}, "grant, token, pairing, stopped by sam"},
		"A6/the operator's stop": {"meta", func(t *testing.T, o *populatedStore) error {
			_, err := o.Stop(t.Context(), "sam", "cli", at)
			return err
		}, func(t *testing.T, o *populatedStore) error {
			_, err := o.Stop(t.Context(), "operator", "cli", at)
			return err
		}, "grant, token, pairing, stopped by operator"},
		"A8/a lock": {"meta locks", nil, func(t *testing.T, o *populatedStore) error {
			return locked(t, o.Store, permissions.PersonLocked)
		}, "grant, token, pairing, fay locked [telegram:1] []"},
		"A8/a lock that somebody agreed to end": {"meta locks", func(t *testing.T, o *populatedStore) error {
			l := permissions.Lock{Person: "fay", Accounts: []string{"telegram:1", "uid:7"}, At: at, By: "sam", Unlocking: []string{"kim"}}
			return o.PutLock(t.Context(), l, l.Record(permissions.UnlockAsked, "kim", "cli", at))
		}, func(t *testing.T, o *populatedStore) error {
			return locked(t, o.Store, permissions.PersonLocked)
		}, "grant, token, pairing, fay locked [telegram:1] []"},
		"A2/an account that was suspended": {"meta suspensions", nil, func(t *testing.T, o *populatedStore) error {
			return o.Suspend(t.Context(), "whatsapp", "+491", "sam", at)
		}, "grant, token, pairing, +491 suspended"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			if c.first != nil {
				if err := c.first(t, o); err != nil {
					t.Fatal(err)
				}
			}
			o.putBack(t, strings.Fields(c.tables), func() error { return c.then(t, o) })
			for start := range 2 {
				var log *bytes.Buffer
				o.Store, log = logged(t, o.path)
				if got := o.open(t); got != c.want {
					t.Errorf("start %d: %s, want %s", start+1, got, c.want)
				}
				if n := strings.Count(log.String(), "behind daycared's back"); n != 1-start {
					t.Errorf("start %d says it %d times:\n%s", start+1, n, log)
				}
				if len(restorations(t, o.Store)) != 0 { // it verifies as well
					t.Error("it is another life")
				}
				if err := o.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// grant is the id of the one in force.
func (o *populatedStore) grant(t *testing.T) permissions.ID {
	t.Helper()
	held, err := o.Grants(t.Context(), "uid:1000", time.Now())
	if err != nil || len(held) != 1 {
		t.Fatalf("%d grants, %v", len(held), err)
	}
	return held[0].ID
}

// restoredFrom restores a backup of the store, and returns the path of the replaced one.
func (o *populatedStore) restoredFrom(t *testing.T) (backup string) {
	t.Helper()
	backup = filepath.Join(t.TempDir(), "backup.db")
	if _, err := Backup(t.Context(), options(o.path), backup); err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), options(o.path), backup); err != nil {
		t.Fatal(err)
	}
	return backup
}

// TestARowOfAnotherStoreOpensNothingAfterAStart: one with the same audit key, whose rows are sealed alike. Only what the store
// itself opened counts, also once the entries of that were pruned.
func TestARowOfAnotherStoreOpensNothingAfterAStart(t *testing.T) {
	for name, pruned := range map[string]bool{"A7/all entries kept": false, "A7/entries pruned": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			own := newOpened(t, filepath.Join(dir, "daycared.db"))
			if pruned {
				prune(t, own.Store, permissions.Keep{Audit: 1}, time.Now())
			}
			with := options(filepath.Join(t.TempDir(), "daycared.db"))
			with.KeyFile = filepath.Join(dir, KeyName)
			other, err := Open(t.Context(), with)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = other.Close() })
			token := permissions.Token{ID: "T2", Name: "theirs", Hash: permissions.Digest{9}, CreatedAt: time.Now()}
			p := permissions.Pairing{Person: "sam", Via: "telegram", Address: "2", PairedAt: time.Now()}
			if err := other.AddToken(t.Context(), token, "op", "cli"); err != nil {
				t.Fatal(err)
			}
			if _, err := other.Pair(t.Context(), p, "op", "cli"); err != nil {
				t.Fatal(err)
			}
			approve(t, other, permissions.Always)
			if err := own.Close(); err != nil {
				t.Fatal(err)
			}
			for _, table := range []string{"grants", "tokens", "pairings"} {
				meddle(t, own.Store, "PRAGMA foreign_keys = OFF; ATTACH '"+other.path+"' AS theirs; INSERT INTO "+table+" SELECT * FROM theirs."+table)
			}
			var log *bytes.Buffer
			own.Store, log = logged(t, own.path)
			if got := fmt.Sprint(own.gates(t)); got != "[grant token pairing]" {
				t.Errorf("%s are open", got)
			}
			if _, err := own.VerifyToken(t.Context(), token.Hash, time.Now()); err == nil {
				t.Error("their token is open")
			}
			if n := strings.Count(log.String(), "does not carry the seal"); n != 3 {
				t.Errorf("%d rows are logged: %s", n, log)
			}
			if _, err := own.Verify(t.Context()); err == nil || strings.Count(err.Error(), "does not carry the seal") != 3 {
				t.Errorf("verify says %v", err)
			}
		})
	}
}

// prune prunes everything of these kinds.
func prune(t *testing.T, s *Store, keep permissions.Keep, now time.Time) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = s.Prune(t.Context(), keep, now, 100); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheRowsOfABackupAreStillSuspended: rows of the backup that are put back after a restore open nothing until they
// are reinstated, paired again or replaced.
func TestTheRowsOfABackupAreStillSuspended(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	backup := o.restoredFrom(t)
	o.Store = reopen(t, o.path)
	if got := o.open(t); got != "pairing, fay/telegram suspended" {
		t.Fatal(got)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	rows := "ATTACH '" + backup + "' AS was; PRAGMA foreign_keys = off; "
	for _, table := range []string{"grants", "tokens", "pairings"} {
		rows += "DELETE FROM main." + table + "; INSERT INTO main." + table + " SELECT * FROM was." + table + "; "
	}
	if err := change(t.Context(), o.path, statements(rows)); err != nil {
		t.Fatal(err)
	}
	if _, err := VerifyFile(t.Context(), options(o.path)); err == nil || !strings.Contains(err.Error(), "is not what the audit says of it") {
		t.Errorf("verify says %v", err)
	}
	for start := range 2 {
		var log *bytes.Buffer
		o.Store, log = logged(t, o.path)
		if got := o.open(t); got != "pairing, fay/telegram suspended" {
			t.Errorf("start %d: %s", start+1, got)
		}
		if n := strings.Count(log.String(), "behind daycared's back"); n != 3*(1-start) {
			t.Errorf("start %d says it %d times:\n%s", start+1, n, log)
		}
		restorations(t, o.Store)
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
	o.Store = reopen(t, o.path)
	if all, err := o.Reinstate(t.Context(), []string{"T1"}, "op", "cli", time.Now()); err != nil || len(all.Tokens) != 1 {
		t.Fatal(all, err)
	}
	p := permissions.Pairing{Person: "fay", Via: "telegram", Address: "1", PairedAt: time.Now()}
	if _, err := o.Pair(t.Context(), p, "op", "cli"); err != nil {
		t.Fatal(err)
	}
	approve(t, o.Store, permissions.Always)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	o.Store = reopen(t, o.path)
	if got := o.open(t); got != "grant, token, pairing" {
		t.Errorf("reinstated, paired and granted: %s", got)
	}
	restorations(t, o.Store)
}

// TestTheStoreIsStillRestored: if the identity row of before a restore is put back, another life begins.
func TestTheStoreIsStillRestored(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	backup := o.restoredFrom(t)
	err := change(t.Context(), o.path, statements("ATTACH '"+backup+"' AS was; CREATE TABLE now AS SELECT * FROM main.meta; "+
		"DELETE FROM main.meta; INSERT INTO main.meta SELECT * FROM was.meta; "+
		"UPDATE meta SET (opens, marked, answered) = (SELECT opens, marked, answered FROM now); DROP TABLE now"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := reopen(t, o.path)
		if err := use(t, s, o.used); !errors.Is(err, permissions.ErrNoUse) {
			t.Errorf("what was used before: %v", err)
		}
		began := restorations(t, s)
		if len(began) != 2 || began[1].Detail[whyDetail] != "what it says of itself is from before it was restored" {
			t.Errorf("lives: %v", began)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAnApprovalThatWasPutBackIsNotUsed after it was used or revoked, neither at once nor after a start; verify finds it.
func TestAnApprovalThatWasPutBackIsNotUsed(t *testing.T) {
	for name, then := range map[string]permissions.Transition{
		"A7/used":       permissions.Use{Call: "a", At: time.Now()},
		"A7/taken back": permissions.Void{By: "fay", At: time.Now()},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			id := o.approved.ID
			meddle(t, o.Store, "CREATE TABLE kept.earlier AS SELECT * FROM requests WHERE id = $1", string(id))
			if _, err := o.Apply(t.Context(), id, then); err != nil {
				t.Fatal(err)
			}
			meddle(t, o.Store, "PRAGMA foreign_keys = off; REPLACE INTO requests SELECT * FROM kept.earlier; DROP TABLE kept.earlier")
			for range 2 {
				_, err := o.Apply(t.Context(), id, permissions.Use{Call: "b", At: time.Now()})
				unwell(t, "use", err, string(id))
				if !errors.Is(err, permissions.ErrRow) {
					t.Errorf("the error is about more than that row: %v", err)
				}
				if _, err := o.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), string(id)) {
					t.Errorf("verify says %v", err)
				}
				if err := o.Close(); err != nil {
					t.Fatal(err)
				}
				o.Store = reopen(t, o.path)
			}
		})
	}
}

// TestVerifyFindsWhatHappenedTwice: a request ends once, and is used or revoked once, whatever its row says.
func TestVerifyFindsWhatHappenedTwice(t *testing.T) {
	for name, c := range map[string]struct {
		of   func(o *populatedStore) permissions.Request
		what permissions.Type
	}{
		"A5/it was denied, and is approved":  {func(o *populatedStore) permissions.Request { return o.denied }, permissions.RequestSettled},
		"A7/it is used again":                {func(o *populatedStore) permissions.Request { return o.used }, permissions.RequestUsed},
		"A7/what was used is taken back":     {func(o *populatedStore) permissions.Request { return o.used }, permissions.RequestVoided},
		"A7/what was not used is used twice": {func(o *populatedStore) permissions.Request { return o.approved }, permissions.RequestUsed},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			r := c.of(o)
			for range 2 {
				if err := o.Record(t.Context(), permissions.Record{Type: c.what, Request: r.ID}); err != nil {
					t.Fatal(err)
				}
			}
			_, err := o.Verify(t.Context())
			if err == nil || !strings.Contains(err.Error(), string(r.ID)+" was settled, used or taken back a second time") {
				t.Errorf("verify says %v", err)
			}
		})
	}
}

// TestADenialThatWasPutBackWaitsNoMore: nobody is asked about a request again that ended, neither at once nor after a start, and verify
// finds its row.
func TestADenialThatWasPutBackWaitsNoMore(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("A5/by hand, restarts %t", restarts), func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			no := fayAllows()
			no.Vote.Answer = permissions.Deny
			o.waiting = insert(t, o.Store)
			id := o.waiting.ID
			meddle(t, o.Store, "CREATE TABLE kept.earlier AS SELECT * FROM requests WHERE id = $1", string(id))
			if _, err := o.Apply(t.Context(), id, no); err != nil {
				t.Fatal(err)
			}
			meddle(t, o.Store, "PRAGMA foreign_keys = off; REPLACE INTO requests SELECT * FROM kept.earlier; DROP TABLE kept.earlier; "+
				fmt.Sprint("DELETE FROM request_votes WHERE request = ", o.waiting.Number))
			s := o.Store
			if restarts {
				if err := o.Close(); err != nil {
					t.Fatal(err)
				}
				s = reopen(t, o.path)
			}
			_, err := s.Apply(t.Context(), id, fayAllows())
			unwell(t, "decide", err, string(id), "does not carry the seal")
			all, err := s.Pending(t.Context(), "", "", 99)
			if err != nil || slices.ContainsFunc(all, func(r permissions.Request) bool { return r.ID == id }) {
				t.Errorf("%d wait, %v", len(all), err)
			}
			if _, err := s.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), string(id)+" is not what the audit says of it") {
				t.Errorf("verify says %v", err)
			}
		})
	}
}

// TestVerifyFindsRowsThatAreMissing and that only a manual change can delete.
func TestVerifyFindsRowsThatAreMissing(t *testing.T) {
	for name, c := range map[string]struct{ change, want string }{
		"H1/a request that waits":    {"DELETE FROM requests WHERE state = 'pending'", "request "},
		"H1/a request that ended":    {"DELETE FROM requests WHERE state = 'denied'", "request "},
		"H1/a grant":                 {"DELETE FROM grants", "the table grants"},
		"H1/a token":                 {"DELETE FROM tokens", "the table tokens"},
		"H1/a pairing":               {"DELETE FROM pairings", "the table pairings"},
		"H1/that a grant was used":   {"DELETE FROM uses", "or that it used a grant"},
		"H1/a request under a grant": {"DELETE FROM requests WHERE under <> '[]'", "request "},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			r := newAsk().Request
			r.State, r.Answer, r.Scope = permissions.Approved, permissions.Allow(permissions.Once), permissions.Once
			r.DecidedVia, r.DecidedAt, r.Grants = permissions.ViaGrant, time.Now(), []permissions.ID{o.grant(t)}
			if _, _, err := o.Open(t.Context(), permissions.Opening{Request: r}); err != nil {
				t.Fatal(err)
			}
			if _, err := o.Verify(t.Context()); err != nil {
				t.Fatal(err)
			}
			meddle(t, o.Store, "PRAGMA foreign_keys = off; "+c.change)
			if _, err := o.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "is missing, and no entry says why") {
				t.Errorf("verify says %v", err)
			}
		})
	}
}

// TestVerifyClaimsNothingOfWhatWasPruned, now or by a daemon from before pruning was audited.
func TestVerifyClaimsNothingOfWhatWasPruned(t *testing.T) {
	later := time.Now().Add(1000 * time.Hour)
	for name, prune := range map[string]func(t *testing.T, o *populatedStore){
		"H1/by this daemon, requests": func(t *testing.T, o *populatedStore) { o.prune(t, later) },
		"H1/by this daemon, a token that is over": func(t *testing.T, o *populatedStore) {
			now := time.Now()
			token := permissions.Token{
				ID: "T2", Name: "old", Hash: permissions.Digest{8}, CreatedAt: now.Add(-3 * time.Hour), ExpiresAt: now.Add(-2 * time.Hour),
			}
			if err := o.AddToken(t.Context(), token, "op", "cli"); err != nil {
				t.Fatal(err)
			}
			o.prune(t, now)
		},
		"H1/by an earlier one": func(t *testing.T, o *populatedStore) {
			if err := o.Close(); err != nil {
				t.Fatal(err)
			}
			beforeList(t, o.path, options(o.path).keyFile())
			err := change(t.Context(), o.path, statements("DELETE FROM votes WHERE request NOT IN (SELECT request FROM grants)",
				"DELETE FROM requests WHERE state <> 'pending' AND id NOT IN (SELECT request FROM grants)", "DELETE FROM tokens"))
			if err != nil {
				t.Fatal(err)
			}
			o.Store = reopen(t, o.path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			prune(t, o)
			if _, err := o.Read(t.Context(), o.denied.ID); (err == nil) != strings.Contains(name, "token") {
				t.Errorf("of what was pruned: %v", err)
			}
			for range 2 {
				restorations(t, o.Store) // it verifies
				insert(t, o.Store)
				if err := o.Close(); err != nil {
					t.Fatal(err)
				}
				o.Store = reopen(t, o.path)
			}
			ended := approve(t, o.Store, permissions.Once)
			for _, of := range []string{"request_votes WHERE request", "requests WHERE number"} {
				meddle(t, o.Store, fmt.Sprintf("PRAGMA foreign_keys = off; DELETE FROM %s = %d", of, ended.Number))
			}
			if _, err := o.Verify(t.Context()); err == nil {
				t.Error("what ended since is missing, and the audit verifies")
			}
		})
	}
}

// prune deletes everything older than an hour.
func (o *populatedStore) prune(t *testing.T, now time.Time) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = o.Prune(t.Context(), permissions.Keep{Requests: time.Hour}, now, 1); err != nil {
			t.Fatal(err)
		}
	}
}

// TestARowThatCannotBeReadIsLeftOut: it opens nothing, is logged once, and is named by verify; everything else works,
// including the start.
func TestARowThatCannotBeReadIsLeftOut(t *testing.T) {
	for name, c := range map[string]struct{ change, row string }{
		"D9/the tags of a request":     {"UPDATE requests SET tags = 'x' WHERE state = 'pending'", "request "},
		"D9/the deadline of a request": {"UPDATE requests SET created_at = 'x' WHERE state = 'pending'", "request "},
		"D9/whom a request asks":       {`UPDATE requests SET asked = '["sam"]' WHERE state = 'pending'`, "request "},
		"D9/a vote": {"UPDATE request_votes SET at = 'x' WHERE request IN " +
			"(SELECT number FROM requests WHERE used_at = 0)", "request "},
		"D9/the tags of a grant":      {"UPDATE grants SET tags = 'x'", "grant "},
		"D9/the seal of a grant":      {"UPDATE grants SET mac = x'00'", "grant "},
		"D9/the hash of a token":      {"UPDATE tokens SET hash = x'00' WHERE id = 'T1'", "token T1"},
		"D9/the age of a token":       {"UPDATE tokens SET created_at = 'x' WHERE id = 'T1'", "token T1"},
		"D9/the time of a pairing":    {"UPDATE pairings SET paired_at = 'x'", "pairing fay/telegram"},
		"D9/the time of a suspension": {"UPDATE suspensions SET at = 'x'", ""},
		"D9/the time of a lock":       {"UPDATE locks SET locked_at = 'x'", ""},
		"D9/an entry of a gate":       {"UPDATE entries SET detail = 'x' WHERE type = (SELECT number FROM types WHERE name = 'PAIRED')", ""},
		"D9/when an entry was made": {"UPDATE entries SET at = 9223372036854775807 WHERE type = " +
			"(SELECT number FROM types WHERE name = 'PAIRED')", ""},
		"D9/when more are asked":    {"UPDATE requests SET escalate_at = 'x' WHERE state = 'pending'", "request "},
		"D9/when a request is over": {"UPDATE requests SET deadline = 9223372036854775807 WHERE state = 'pending'", "request "},
		"D9/when one was approved":  {"UPDATE requests SET decided_at = 'x' WHERE state = 'approved'", "request "},
		"D9/when a token is over":   {"UPDATE tokens SET expires_at = 9223372036854775807 WHERE id = 'T1'", "token T1"},
	} {
		t.Run(name, func(t *testing.T) {
			approval := strings.Contains(c.change, "votes") || strings.Contains(c.change, "'approved'")
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			other := permissions.Token{ID: "T0", Name: "other", CreatedAt: time.Now()}
			l := permissions.Lock{Person: "kim", Accounts: []string{"telegram:2"}, At: time.Now(), By: "sam", Via: "cli"}
			err := errors.Join(o.AddToken(t.Context(), other, "op", "cli"),
				o.PutLock(t.Context(), l, l.Record(permissions.PersonLocked, "sam", "cli", l.At)),
				o.Suspend(t.Context(), "whatsapp", "+491", "sam", time.Now()), o.Close(),
				change(t.Context(), o.path, statements(c.change)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := VerifyFile(t.Context(), options(o.path)); err == nil || !strings.Contains(err.Error(), c.row) {
				t.Errorf("verify says %v", err)
			}
			var log *bytes.Buffer
			o.Store, log = logged(t, o.path)
			want := o.waiting.ID
			more := insert(t, o.Store)
			if c.row == "request " && !approval {
				want = more.ID
			}
			for range 2 {
				if all, err := o.Pending(t.Context(), "", "", 1); err != nil || len(all) != 1 || all[0].ID != want {
					t.Errorf("pending: %v, %v", all, err)
				}
				if all, err := o.Tokens(t.Context()); err != nil || (len(all) == 1) != (c.row == "token T1") {
					t.Errorf("tokens: %v, %v", all, err)
				}
				if _, err := o.Read(t.Context(), o.approved.ID); errors.Is(err, permissions.ErrRow) != approval {
					t.Errorf("the approval: %v", err)
				}
				if _, err := o.GrantsInForce(t.Context(), "", time.Now(), "", 99); err != nil {
					t.Error(err)
				}
				if _, err := o.Pairings(t.Context()); err != nil {
					t.Error(err)
				}
				if all, err := o.Locks(t.Context()); err != nil || len(all) != 1 {
					t.Errorf("locks: %v, %v", all, err)
				}
				if all, err := o.Suspensions(t.Context()); err != nil || len(all) != 1 {
					t.Errorf("suspensions: %v, %v", all, err)
				}
			}
			later := time.Now().Add(2 * time.Hour)
			due, _, err := o.Due(t.Context(), later, 3*time.Hour, 9)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range due {
				if _, err := o.Apply(t.Context(), d.ID, permissions.Expire{At: later}); err != nil && !errors.Is(err, permissions.ErrRow) &&
					!errors.Is(err, permissions.ErrSettled) {
					t.Error(err)
				}
			}
			if due, _, err = o.Due(t.Context(), later, 3*time.Hour, 9); err != nil || len(due) > 0 {
				t.Errorf("still due: %v, %v", due, err)
			}
			if r, err := o.Read(t.Context(), more.ID); err != nil || r.State != permissions.Expired {
				t.Errorf("the next request is %s, %v", r.State, err)
			}
			if n := strings.Count(log.String(), "unsealed row ignored"); n > 1 || n == 0 && c.row != "" {
				t.Errorf("it says that %d times:\n%s", n, log)
			}
		})
	}
}

// TestARowThatIsMissingIsClosedInTheAudit: a grant, a token and a pairing whose rows somebody deleted are known, can be closed meanwhile,
// and open nothing when their rows are put back, although their seals hold.
func TestARowThatIsMissingIsClosedInTheAudit(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	if all, err := o.Missing(t.Context()); len(all) != 0 || err != nil {
		t.Fatalf("nothing is missing: %v, %v", all, err)
	}
	away, back := "PRAGMA foreign_keys = off; ", "PRAGMA foreign_keys = off; "
	for _, table := range []string{"grants", "tokens", "pairings"} {
		away += "CREATE TABLE kept." + table + " AS SELECT * FROM main." + table + "; DELETE FROM main." + table + "; "
		back += "INSERT INTO main." + table + " SELECT * FROM kept." + table + "; "
	}
	meddle(t, o.Store, away)
	all, err := o.Missing(t.Context())
	var rows []string
	for _, r := range all {
		rows = append(rows, string(r.Type)+" "+r.RowName())
	}
	slices.Sort(rows)
	if len(rows) != 3 || !strings.HasPrefix(rows[0], "GRANT_REVOKED ") || rows[1] != "TOKEN_REVOKED T1" ||
		rows[2] != "UNPAIRED fay/telegram" ||
		err != nil {
		t.Fatal(rows, err)
	}
	for _, r := range all {
		if r.Detail["name"] != "ci" && r.Detail["address"] != "1" && r.Request != o.always.ID {
			t.Errorf("%+v", r)
		}
	}
	if err := o.CloseMissing(t.Context(), all, "op", "cli", time.Now()); err != nil {
		t.Fatal(err)
	}
	if all, err := o.Missing(t.Context()); len(all) != 0 || err != nil {
		t.Errorf("still missing: %v, %v", all, err)
	}
	if _, err := o.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	meddle(t, o.Store, back)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	var log *bytes.Buffer
	o.Store, log = logged(t, o.path)
	if got := o.open(t); got != "" || strings.Count(log.String(), "behind daycared's back") != 3 {
		t.Errorf("open: %s\n%s", got, log)
	}
	if _, err := o.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}
