package store

import (
	"math"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// TestANumberThatSomebodyMadeUpIsNobodys: a row that does not carry its seal neither uses up the numbers of new requests nor takes
// their codes from those that were there.
func TestANumberThatSomebodyMadeUpIsNobodys(t *testing.T) {
	for name, number := range map[string]int64{
		"D9/there is none after it":      math.MaxInt64,
		"D9/the last that is used":       mostSeq - 1,
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
