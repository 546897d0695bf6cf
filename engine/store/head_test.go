package store

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

const isBehind = "the audit was changed behind daycared's back: entry "

// cutOff runs happens, then removes it from the rows and the end of the audit.
func (o *populatedStore) cutOff(t *testing.T, happens func() error) {
	t.Helper()
	kept := filepath.Join(t.TempDir(), "kept.db")
	meddle(t, o.Store, "VACUUM INTO '"+kept+"'")
	if err := happens(); err != nil {
		t.Fatal(err)
	}
	text := "ATTACH '" + kept + "' AS was; PRAGMA foreign_keys = off; BEGIN; " +
		"UPDATE was.meta SET (opens, marked, answered) = (SELECT opens, marked, answered FROM main.meta); "
	for _, table := range []string{"meta", "requests", "request_votes", "grants", "uses", "tokens", "pairings", "locks", "suspensions",
		"entries"} {
		text += "DELETE FROM main." + table + "; INSERT INTO main." + table + " SELECT * FROM was." + table + "; "
	}
	meddle(t, o.Store, text+"COMMIT")
}

// TestAnAuditThatWasCutOffWhileItWasOpenIsNotContinued: putting back old rows this way puts nothing in force. Nothing is written,
// verified or granted any more, the mark does not move to another chain, and the next start suspends what is open.
func TestAnAuditThatWasCutOffWhileItWasOpenIsNotContinued(t *testing.T) {
	at := time.Now()
	for name, happens := range map[string]func(t *testing.T, o *populatedStore) error{
		"G2/a token that was revoked": func(t *testing.T, o *populatedStore) error {
			return second(o.RevokeToken(t.Context(), "ci", "op", "cli", at))
		},
		"A7/a grant that was revoked": func(t *testing.T, o *populatedStore) error {
			return second(o.Revoke(t.Context(), o.grant(t), "op", "cli", at, 1))
		},
		"A7/an approval that was used": func(t *testing.T, o *populatedStore) error { return use(t, o.Store, o.approved) },
		"A8/a lock":                    func(t *testing.T, o *populatedStore) error { return locked(t, o.Store, permissions.PersonLocked) },
		"A6/a stop": func(t *testing.T, o *populatedStore) error {
			return second(o.Stop(t.Context(), "sam", "cli", at))
		},
	} {
		for _, noticed := range []bool{true, false} {
			t.Run(name+map[bool]string{true: "", false: ", closed at once"}[noticed], func(t *testing.T) {
				s, log := logged(t, filepath.Join(t.TempDir(), "daycared.db"))
				o := openedIn(t, s)
				if _, err := o.VerifyToken(t.Context(), o.token.Hash, at); err != nil { // the next use within this minute writes nothing
					t.Fatal(err)
				}
				o.cutOff(t, func() error { return happens(t, o) })
				if noticed {
					unwell(t, "record", o.Record(t.Context(), permissions.Record{Type: "X"}), isBehind)
					for range 2 {
						_, _, err := o.Open(t.Context(), newAsk())
						unwell(t, "open", err, isBehind, "is missing or another", "restore a backup: daycared restore FILE")
					}
					unwell(t, "use", use(t, o.Store, o.approved), isBehind)
					_, err := o.VerifyToken(t.Context(), o.token.Hash, at)
					unwell(t, "prove", err, isBehind)
					unwell(t, "health", o.Health(t.Context()), isBehind)
					unwell(t, "pulse", second(o.Heartbeat(t.Context(), at)), isBehind)
					if n := strings.Count(log.String(), isBehind); n != 1 {
						t.Errorf("the log says it %d times:\n%s", n, log)
					}
				}
				if _, err := o.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), isBehind) {
					t.Errorf("verify says %v", err)
				}
				if err := o.Close(); err != nil {
					t.Fatal(err)
				}
				if _, err := VerifyFile(t.Context(), options(o.path)); err == nil || !strings.Contains(err.Error(), "by the mark beside the store") {
					t.Errorf("verify of the file says %v", err)
				}
				o.Store = reopen(t, o.path)
				if n := len(restorations(t, o.Store)); n != 1 {
					t.Errorf("%d lives began", n)
				}
				if got := o.open(t); got != "pairing, fay/telegram suspended" {
					t.Errorf("open at the next start: %s", got)
				}
				if err := use(t, o.Store, o.approved); err == nil {
					t.Error("the approval is used at the next start")
				}
			})
		}
	}
}

// TestTheMarkIsNotMovedFromAnEntryThatIsGone, even if SQLite notices no change.
func TestTheMarkIsNotMovedFromAnEntryThatIsGone(t *testing.T) {
	for name, then := range map[string]func(t *testing.T, o *populatedStore) error{
		"pulse":  func(t *testing.T, o *populatedStore) error { return second(o.Heartbeat(t.Context(), time.Now())) },
		"revoke": func(t *testing.T, o *populatedStore) error { return locked(t, o.Store, permissions.PersonLocked) },
		"close":  nil,
	} {
		t.Run("H1/"+name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			if _, err := o.RevokeToken(t.Context(), "ci", "op", "cli", time.Now()); err != nil {
				t.Fatal(err)
			}
			marked, _, err := readMark(o.path)
			if err != nil || marked.Seq != o.ledger.seq {
				t.Fatal(marked, err)
			}
			insert(t, o.Store)
			exec(t, o.writer, "DELETE FROM entries WHERE type = (SELECT number FROM types WHERE name = 'TOKEN_REVOKED')")
			if then != nil {
				unwell(t, name, then(t, o), isBehind)
			}
			if err := o.Close(); err != nil {
				t.Fatal(err)
			}
			if m, _, err := readMark(o.path); err != nil || m.Seq != marked.Seq || m.Hash != marked.Hash {
				t.Errorf("the mark was moved to %+v, %v", m, err)
			}
			o.Store = reopen(t, o.path)
			if e, err := o.Audit(t.Context(), "", gap, 1); err != nil || len(e) != 1 || e[0].Type != permissions.StoreRestored {
				t.Errorf("the next start is no new life: %v, %v", e, err)
			}
		})
	}
}

// TestTheAuditRaisesNoFalseAlarm: other programs may write other tables, the audit may be ahead of its mark, and the mark's
// entry may have been pruned. An answered mark is ignored.
func TestTheAuditRaisesNoFalseAlarm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daycared.db")
	s, log := logged(t, path)
	sound := func(when string) {
		t.Helper()
		if _, err := s.Verify(t.Context()); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if _, err := VerifyFile(t.Context(), options(path)); err != nil {
			t.Errorf("%s, the file: %v", when, err)
		}
	}
	sound("new")
	insert(t, s)
	meddle(t, s, "UPDATE meta SET beat = beat + 1; VACUUM")
	insert(t, s)
	sound("after others wrote")
	for range 2 {
		if _, err := s.Heartbeat(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		insert(t, s)
		sound("ahead of the mark")
		if _, err := s.Prune(t.Context(), permissions.Keep{Audit: 1}, time.Now().Add(time.Hour), 99); err != nil {
			t.Fatal(err)
		}
		sound("pruned")
	}
	exec(t, s.writer, "PRAGMA max_page_count = 1")
	large := newAsk()
	large.Request.Details = strings.Repeat("x", 1<<20)
	large.Request.Digest = permissions.ComputeDigest(large.Request)
	_, _, err := s.Open(t.Context(), large)
	unwell(t, "a full disk", err, "is full")
	exec(t, s.writer, "PRAGMA max_page_count = 1000000")
	insert(t, s)
	sound("after a commit that failed")
	dead := filepath.Join(t.TempDir(), "daycared.db")
	copyFiles(t, path, dead, "", logSuffix)
	copyFiles(t, markName(path), markName(dead), "")
	if n := len(restorations(t, reopen(t, dead))); n != 0 {
		t.Errorf("after a death, %d lives began", n)
	}
	if strings.Contains(log.String(), isBehind) {
		t.Error(log.String())
	}
}
