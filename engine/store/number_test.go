package store

import (
	"errors"
	"math"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// TestAnUnsealedNumberIsIgnored: an unsealed row neither uses up new numbers nor takes codes of existing requests.
func TestAnUnsealedNumberIsIgnored(t *testing.T) {
	for name, number := range map[string]int64{
		"D9/there is none after it":      math.MaxInt64,
		"D9/the last that is used":       maxSeq - 1,
		"D9/another than the codes have": 2 * permissions.CodeCount,
		"D9/one that comes soon":         30,
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			last := insert(t, o.Store)
			meddle(t, o.Store, "PRAGMA foreign_keys = off; UPDATE requests SET number = "+strconv.FormatInt(number, 10)+" WHERE state = 'denied'")
			for range 2 {
				if r, err := o.ByCode(t.Context(), o.Coder().Encode(o.waiting.Number)); err != nil || r.ID != o.waiting.ID {
					t.Errorf("the request of a code is %s, %v", r.ID, err)
				}
				next := insert(t, o.Store)
				if next.Number <= last.Number || next.Number > last.Number+100 {
					t.Errorf("%d comes after %d", next.Number, last.Number)
				}
				if r, err := o.ByCode(t.Context(), o.Coder().Encode(next.Number)); err != nil || r.ID != next.ID {
					t.Errorf("the request of its code is %s, %v", r.ID, err)
				}
				last = next
				if err := o.Close(); err != nil {
					t.Fatal(err)
				}
				o.Store = reopen(t, o.path)
			}
			if _, err := o.Prune(t.Context(), permissions.Keep{Requests: time.Nanosecond}, time.Now().Add(9*time.Hour), 100); err != nil {
				t.Error(err)
			}
			if cancelled, err := o.Stop(t.Context(), "op", "cli", time.Now()); err != nil || len(cancelled) < 3 {
				t.Errorf("stopped %d: %v", len(cancelled), err)
			}
		})
	}
}

// TestWhatIsOnlyToldStopsNothing: columns that are only counted or displayed may contain anything; the store starts and works.
func TestWhatIsOnlyToldStopsNothing(t *testing.T) {
	for name, text := range map[string]string{
		"D9/when it ran last":      "UPDATE meta SET alive_at = x'ff'",
		"D9/when it ran, too late": "UPDATE meta SET alive_at = 9223372036854775807",
		"D9/the health check":      "UPDATE meta SET beat = 9223372036854775807",
		"D9/the health check, odd": "UPDATE meta SET beat = x'ff'",
		"D9/a version":             "INSERT INTO goose_db_version (version_id, is_applied) VALUES ('zz', TRUE)",
		"D9/when a token was used": "UPDATE tokens SET used_at = 9223372036854775807",
		"D9/an earlier answer":     "UPDATE requests SET earlier_at = 9223372036854775807",
		"D9/the uses of a grant":   "UPDATE grants SET used = 9223372036854775807",
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			if err := errors.Join(o.Close(), change(t.Context(), o.path, statements(text))); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				o.Store = reopen(t, o.path)
				last, err := o.Heartbeat(t.Context(), time.Time{})
				if err != nil || last.After(time.Now()) {
					t.Errorf("it ran at %s, %v", last, err)
				}
				if err := o.Health(t.Context()); err != nil {
					t.Error(err)
				}
				tokens, err := o.Tokens(t.Context())
				if err != nil || len(tokens) != 1 || tokens[0].UsedAt.After(time.Now()) {
					t.Errorf("tokens: %+v, %v", tokens, err)
				}
				all, err := o.Pending(t.Context(), "", "", 9)
				if err != nil || len(all) != 1 || !all[0].EarlierAt.IsZero() {
					t.Errorf("pending: %+v, %v", all, err)
				}
				under := newAsk()
				r := &under.Request
				r.State, r.Answer, r.DecidedVia, r.DecidedAt = permissions.Approved, permissions.Allow(permissions.Once), "grant", time.Now()
				r.Grants = []permissions.ID{o.grant(t)}
				if _, _, err := o.Open(t.Context(), under); err != nil {
					t.Error(err)
				}
				o.grant(t)
				if err := o.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestACellThatNoSealCoversKeepsNoStoreFromStarting: without a readable count of openings, the store counts as restored, once.
func TestACellThatNoSealCoversKeepsNoStoreFromStarting(t *testing.T) {
	for _, column := range []string{"opens", "marked", "answered", "strangers", "created_at"} {
		for _, value := range []string{"x'ff'", "'zz'", "9223372036854775807", "-1", "0.5"} {
			t.Run("D9/"+column+" "+value, func(t *testing.T) {
				o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
				text := "UPDATE meta SET " + column + " = " + value
				if err := errors.Join(o.Close(), change(t.Context(), o.path, statements(text))); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					o.Store = reopen(t, o.path)
					if n := len(restorations(t, o.Store)); n > 1 || n > 0 != (column == "opens") {
						t.Errorf("it was put back %d times", n)
					}
					if _, err := o.Verify(t.Context()); err != nil {
						t.Error(err)
					}
					if err := o.Close(); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// TestAKeyOfAnApprovalThatIsOverAsksAnew: the column that marks a key as in use has no seal.
func TestAKeyOfAnApprovalThatIsOverAsksAnew(t *testing.T) {
	t.Run("D9/the key of what a revoked grant had allowed", func(t *testing.T) {
		s := reopen(t, filepath.Join(t.TempDir(), "daycared.db"))
		first := newAsk()
		first.RedeemWindow = time.Hour
		first.Request.Key = "k"
		first.Request.Options = permissions.Offer(first.Request, []permissions.Scope{permissions.Always}, permissions.Always)
		r, _, err := s.Open(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		yes := fayAllows()
		yes.Vote.Answer = permissions.Allow(permissions.Always)
		if _, err := s.Apply(t.Context(), r.ID, yes); err != nil {
			t.Fatal(err)
		}
		if err := use(t, s, r); err != nil {
			t.Fatal(err)
		}
		held, err := s.Grants(t.Context(), r.Caller.Name, time.Now())
		if err != nil || len(held) != 1 {
			t.Fatalf("there are %v, %v", held, err)
		}
		if _, err := s.Revoke(t.Context(), held[0].ID, "op", "cli", time.Now(), 1); err != nil {
			t.Fatal(err)
		}
		meddle(t, s, "UPDATE requests SET key_live = TRUE")
		again := first
		again.Request.ID, again.Request.CreatedAt = permissions.NewID(time.Now()), time.Now()
		if next, created, err := s.Open(t.Context(), again); err != nil || !created || next.ID == r.ID || next.State != permissions.Pending {
			t.Errorf("it is %s, %s (new %v), %v", next.ID, next.State, created, err)
		}
	})
}

// TestAStoreThatCannotSayWhatItIsTellsWhatToDo, and does not start.
func TestAStoreThatCannotSayWhatItIsTellsWhatToDo(t *testing.T) {
	for _, column := range []string{"stopped_at", "restored_at", "numbers_above"} {
		o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
		if err := errors.Join(o.Close(), change(t.Context(), o.path, statements("UPDATE meta SET "+column+" = x'ff'"))); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), options(o.path))
		unwell(t, column, err, "daycared restore FILE")
	}
}

// TestAnEntryThatCannotBeReadHidesNoOther: it is listed without its hash and is no event.
func TestAnEntryThatCannotBeReadHidesNoOther(t *testing.T) {
	for name, text := range map[string]string{
		"D9/its details": "UPDATE entries SET detail = 'x' WHERE type = (SELECT number FROM types WHERE name = 'REQUEST_SETTLED')",
		"D9/its time":    "UPDATE entries SET at = 9223372036854775807 WHERE type = (SELECT number FROM types WHERE name = 'REQUEST_SETTLED')",
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			was, err := o.Audit(t.Context(), "", 0, 1000)
			if err != nil {
				t.Fatal(err)
			}
			events, _, err := o.Events(t.Context(), 0, 1000)
			if err != nil {
				t.Fatal(err)
			}
			meddle(t, o.Store, text)
			lost := 0
			is, err := o.Audit(t.Context(), "", 0, 1000)
			if err != nil || len(is) != len(was) {
				t.Fatalf("%d of %d entries, %v", len(is), len(was), err)
			}
			for i, e := range is {
				if e.Hash != was[i].Hash {
					lost++
				}
			}
			if lost == 0 {
				t.Error("no entry is without its hash")
			}
			left, _, err := o.Events(t.Context(), 0, 1000)
			if err != nil || len(left) != len(events) {
				t.Fatalf("%d of %d events, %v", len(left), len(events), err)
			}
			for i, e := range left {
				if e.Seq != events[i].Seq || e.Type == "" && e.Request != "" {
					t.Errorf("event %d is %+v", i, e)
				}
			}
			if _, err := o.NewestTime(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
