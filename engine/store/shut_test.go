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

// shuts locks fay, suspends an account, closes the store and changes the file by hand.
func shuts(t *testing.T, change string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "daycared.db")
	s := reopen(t, path)
	if err := s.Suspend(t.Context(), "whatsapp", "+491", "sam", time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := locked(t, s, permissions.PersonLocked); err != nil {
		t.Fatal(err)
	}
	approve(t, s, permissions.Once)
	meddle(t, s, change)
	if _, err := s.Verify(t.Context()); (err == nil) != (change == nothing) {
		t.Errorf("verify says %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

const nothing = `SELECT 1`

// TestARemovedLockIsRestoredAtTheStart: a row whose absence opens something is restored and logged once.
func TestARemovedLockIsRestoredAtTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		change, row string
		found       bool // by verify as well
	}{
		"A8/a lock without its row": {`DELETE FROM locks`, "lock of fay", false},
		"A8/a lock without its row and its entry": {`DELETE FROM locks; DELETE FROM entries WHERE type =
			(SELECT number FROM types WHERE name = 'PERSON_LOCKED')`, "lock of fay", true},
		"A8/a lock of somebody else":          {`UPDATE locks SET person = 'kim'`, "lock of fay", true},
		"A8/a lock without its accounts":      {`UPDATE locks SET accounts = '[]'`, "lock of fay", false},
		"A8/a lock that people agreed to end": {`UPDATE locks SET unlocking = '["sam","kim"]'`, "lock of fay", false},
		"A2/a suspension without its row":     {`DELETE FROM suspensions`, "suspension of whatsapp +491", false},
	} {
		t.Run(name, func(t *testing.T) {
			path := shuts(t, c.change)
			for start := range 2 {
				var log bytes.Buffer
				o := options(path)
				o.Log = slog.New(slog.NewTextHandler(&log, nil))
				s, err := Open(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				locks, err := s.Locks(t.Context())
				if i := slices.IndexFunc(locks, func(l permissions.Lock) bool { return l.Person == "fay" }); err != nil || i < 0 ||
					strings.Join(locks[i].Accounts, " ") != "telegram:1" || len(locks[i].Unlocking) > 0 {
					t.Errorf("locked: %+v, %v", locks, err)
				}
				if all, err := s.Suspensions(t.Context()); err != nil || len(all) != 1 || all[0].Address != "+491" {
					t.Errorf("suspended: %v, %v", all, err)
				}
				if n := strings.Count(log.String(), `restored" row="`+c.row); n != 1-start {
					t.Errorf("start %d says %d times that it was put back:\n%s", start+1, n, &log)
				}
				if _, err := s.Verify(t.Context()); (err != nil) != c.found {
					t.Errorf("verify says %v", err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestTheStopOfAnAgentIsRestoredAtTheStart, also where the rows of earlier, which have their seals, were put back.
func TestTheStopOfAnAgentIsRestoredAtTheStart(t *testing.T) {
	for name, change := range map[string]string{
		"A8/without its row": `DELETE FROM locks`,
		"A8/rows of earlier": `DELETE FROM locks; UPDATE main.meta SET (shut, mac) = (SELECT shut, mac FROM kept.meta)`,
		"A8/others may end":  `UPDATE locks SET accounts = '["eve"]'`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "daycared.db")
			s := reopen(t, path)
			meddle(t, s, `CREATE TABLE kept.meta AS SELECT * FROM main.meta`)
			l := permissions.Lock{Person: permissions.StopOf("token:deploy"), Accounts: []string{"sam"}, At: time.Now(), By: "sam", Via: "cli"}
			if err := s.PutLock(t.Context(), l, l.Record(permissions.AgentStopped, "sam", "cli", l.At)); err != nil {
				t.Fatal(err)
			}
			meddle(t, s, change)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = reopen(t, path)
			all, err := s.Locks(t.Context())
			if err != nil || len(all) != 1 || all[0].Agent() != "token:deploy" || strings.Join(all[0].Accounts, "") != "sam" {
				t.Errorf("%+v, %v", all, err)
			}
		})
	}
}

// TestShutWithoutItsRow holds while the store is open, as at its next start.
func TestShutWithoutItsRow(t *testing.T) {
	t.Run("A8/rows of earlier", func(t *testing.T) {
		s := reopen(t, filepath.Join(t.TempDir(), "daycared.db"))
		testShutWithoutRows(t, func(text string) { meddle(t, s, strings.ReplaceAll(text, "earlier", "kept.earlier")) }, s)
	})
}

func testShutWithoutRows(t *testing.T, meddle func(text string), all ...*Store) {
	first, last := all[0], all[len(all)-1]
	says := func(locks, suspensions string) {
		t.Helper()
		for _, s := range all {
			found, err := s.Locks(t.Context())
			suspended, failed := s.Suspensions(t.Context())
			var names, addresses []string
			for _, l := range found {
				names = append(names, fmt.Sprintf("%q %v %v", l.Person, l.Accounts, l.Unlocking))
			}
			for _, a := range suspended {
				addresses = append(addresses, a.Via+" "+a.Address)
			}
			if strings.Join(names, "; ") != locks || strings.Join(addresses, "; ") != suspensions || err != nil || failed != nil {
				t.Errorf("locked: %v, %v, suspended: %v, %v", names, err, addresses, failed)
			}
		}
	}
	meddle(`CREATE TABLE earlier AS SELECT * FROM meta`)
	if err := errors.Join(locked(t, first, permissions.PersonLocked),
		first.Suspend(t.Context(), "whatsapp", "+491", "sam", time.Now())); err != nil {
		t.Fatal(err)
	}
	mute := permissions.Lock{Person: permissions.MuteOf("token:deploy", ""), Accounts: []string{"sam", "kim"}, At: time.Now()}
	if err := first.PutLock(t.Context(), mute, mute.Record(permissions.AgentMuted, "", "", mute.At)); err != nil {
		t.Fatal(err)
	}
	muted := fmt.Sprintf("%q [sam kim] []", mute.Person)
	says(`"fay" [telegram:1] []; `+muted, "whatsapp +491")
	meddle(`UPDATE locks SET unlocking = '["sam","kim"]', accounts = '[]'`)
	says(`"fay" [telegram:1] []; `+muted, "whatsapp +491")
	meddle(`DELETE FROM locks`)
	meddle(`DELETE FROM suspensions`)
	meddle(`UPDATE meta SET shut = (SELECT shut FROM earlier), mac = (SELECT mac FROM earlier)`)
	says(`"fay" [telegram:1] []; `+muted, "whatsapp +491")
	if err := locked(t, last, permissions.PersonUnlocked); err != nil {
		t.Fatal(err)
	}
	p := permissions.Pairing{Person: "fay", Via: "whatsapp", Address: "+491", PairedAt: time.Now()}
	if _, err := last.Pair(t.Context(), p, "op", "cli"); err != nil {
		t.Fatal(err)
	}
	says(muted, "")
}

// TestWhatWasEndedDoesNotComeBack, with its row or without, nor does a removed lock after everything else was pruned.
func TestWhatWasEndedDoesNotComeBack(t *testing.T) {
	for _, change := range []string{nothing, `DELETE FROM locks; DELETE FROM suspensions`} {
		s := reopen(t, shuts(t, nothing))
		for more := true; more; {
			var err error
			more, err = s.Prune(t.Context(), permissions.Keep{Payloads: 1, Requests: 1, Audit: 1}, time.Now().Add(10000*time.Hour), 100)
			if err != nil {
				t.Fatal(err)
			}
		}
		meddle(t, s, change)
		p := permissions.Pairing{Person: "fay", Via: "whatsapp", Address: "+491", PairedAt: time.Now()}
		_, err := s.Pair(t.Context(), p, "op", "cli")
		if err := errors.Join(err, locked(t, s, permissions.PersonUnlocked), s.Close()); err != nil {
			t.Fatal(err)
		}
		s = reopen(t, s.path)
		if locks, err := s.Locks(t.Context()); err != nil || len(locks) > 0 {
			t.Errorf("locked: %+v, %v", locks, err)
		}
		if all, err := s.Suspensions(t.Context()); err != nil || len(all) > 0 {
			t.Errorf("suspended: %+v, %v", all, err)
		}
	}
}

// TestTheListOfLocksIsSealed, and so is its existence.
func TestTheListOfLocksIsSealed(t *testing.T) {
	for name, change := range map[string]string{
		"A8/an empty list": `UPDATE meta SET shut = '{}'; DELETE FROM locks`,
		"A8/no list":       `UPDATE meta SET shut = ''; DELETE FROM locks`,
		"A8/no row of it":  `DELETE FROM meta; DELETE FROM locks`,
	} {
		t.Run(name, func(t *testing.T) {
			path := shuts(t, change)
			for range 2 {
				s, err := Open(t.Context(), options(path))
				if err == nil {
					t.Fatal("it opens", s.Close())
				}
			}
		})
	}
}

// TestAnUpgradeListsExistingLocks is listed by the first start.
func TestAnUpgradeListsExistingLocks(t *testing.T) {
	t.Run("A8/an upgrade", func(t *testing.T) {
		path := shuts(t, nothing)
		beforeList(t, path, options(path).keyFile())
		s := reopen(t, path)
		meddle(t, s, `DELETE FROM locks; DELETE FROM suspensions`)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = reopen(t, path)
		if all, err := s.Locks(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("locked: %+v, %v", all, err)
		}
		if all, err := s.Suspensions(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("suspended: %+v, %v", all, err)
		}
		if _, err := s.Verify(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
