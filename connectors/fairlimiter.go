package connectors

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// FairLimiter is a rate limiter that serves the waiter who was served least recently. It is safe for concurrent use.
type FairLimiter struct {
	*rate.Limiter

	mu      sync.Mutex
	waiting map[any]int
	given   map[any]time.Time
	next    chan struct{} // closed when the turn may have changed
}

// maxGiven is how many served waiters are remembered; others count as new.
const maxGiven = 1000

// NewFairLimiter makes a limiter with that rate and burst.
func NewFairLimiter(every rate.Limit, most int) *FairLimiter {
	return &FairLimiter{Limiter: rate.NewLimiter(every, most), waiting: map[any]int{}, given: map[any]time.Time{}, next: make(chan struct{})}
}

// Wait takes a token when it is who's turn, or returns ctx's error.
func (t *FairLimiter) Wait(ctx context.Context, who any) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting[who]++
	defer t.leave(who)
	for {
		next, after := t.next, time.Hour
		if now := time.Now(); t.first(who) && t.AllowN(now, 1) {
			if len(t.given) >= maxGiven {
				maps.DeleteFunc(t.given, func(_ any, at time.Time) bool { return now.Sub(at) > time.Minute })
			}
			t.given[who] = now
			return nil
		} else if t.first(who) {
			after = UntilSpare(t.Limiter, 1+t.Burst(), now)
		}
		t.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-next:
		case <-time.After(after):
		}
		t.mu.Lock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// first reports whether no waiter was served before who was. The caller holds the lock.
func (t *FairLimiter) first(who any) bool {
	for other := range t.waiting {
		if t.given[other].Before(t.given[who]) {
			return false
		}
	}
	return true
}

// leave ends a wait. The caller holds the lock.
func (t *FairLimiter) leave(who any) {
	if t.waiting[who]--; t.waiting[who] == 0 {
		delete(t.waiting, who)
	}
	close(t.next)
	t.next = make(chan struct{})
}

// UntilSpare is how long until a bucket has one token more than a fraction 1/part of its burst; 0 if it has. Waiting for that
// before taking one leaves the rest to urgent work.
func UntilSpare(bucket *rate.Limiter, part int, now time.Time) time.Duration {
	missing := float64(min(1+bucket.Burst()/part, bucket.Burst())) - bucket.TokensAt(now)
	if missing <= 0 || bucket.Limit() == rate.Inf {
		return 0
	}
	return time.Duration(missing/float64(bucket.Limit())*float64(time.Second)) + time.Microsecond
}
