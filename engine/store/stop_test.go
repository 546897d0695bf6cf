package store

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// TestStopMany: ten thousand that wait are cancelled in one commit, long before anybody doubts that the switch works.
func TestStopMany(t *testing.T) {
	const waiting, most = 10_000, 5 * time.Second // promised are two; the rest is for a slow machine
	s := newStore(t)
	crowd(t, s, waiting)
	start := time.Now()
	cancelled, err := s.Stop(t.Context(), "fay", "cli", start)
	if err != nil || len(cancelled) != waiting {
		t.Fatalf("cancelled %d, %v", len(cancelled), err)
	}
	if took := time.Since(start); took > most {
		t.Errorf("it took %s", took)
	}
	if left, err := s.Pending(t.Context(), "", "", 1); err != nil || len(left) != 0 {
		t.Errorf("%d are left, %v", len(left), err)
	}
	heads, err := s.Verify(t.Context())
	if err != nil || heads[0].Seq != 2*waiting+1 || heads[0].Type != permissions.AllStopped {
		t.Errorf("the audit: %v, %v", heads, err)
	}
}

// BenchmarkStop cancels everything that waits.
func BenchmarkStop(b *testing.B) {
	for _, waiting := range []int{10_000, 100_000} {
		b.Run("pending-"+strconv.Itoa(waiting), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				s := newStore(b)
				crowd(b, s, waiting)
				b.StartTimer()
				if _, err := s.Stop(context.Background(), "fay", "cli", time.Now()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
