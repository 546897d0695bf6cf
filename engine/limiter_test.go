package engine

import (
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/daycared/daycared/permissions/timing"
)

// Whoever makes up names leaves nothing behind: their buckets are dropped once full, and those that are not are kept.
func TestFullBucketsAreDropped(t *testing.T) {
	now := time.Now()
	e := &Engine{services: &services{clock: timing.Clock{Now: func() time.Time { return now }}}}
	buckets := map[int]*rate.Limiter{}
	limiter(e, buckets, -1, 1, time.Hour).AllowN(now, 1)
	for i := range 10 * maxBuckets {
		if !limiter(e, buckets, i, 1, time.Minute).AllowN(now, 1) {
			t.Fatal("a fresh bucket is empty")
		}
		now = now.Add(100 * time.Millisecond)
	}
	if n := len(buckets); n > 2*maxBuckets {
		t.Errorf("%d buckets are left", n)
	}
	if limiter(e, buckets, -1, 1, time.Hour).AllowN(now, 1) {
		t.Error("an empty bucket was dropped")
	}
}
