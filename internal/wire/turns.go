package wire

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Turns is a bucket whose room goes to whoever waits for it and was given some longest ago. It is safe for concurrent use.
type Turns struct {
	*rate.Limiter

	mu      sync.Mutex
	waiting map[any]int
	given   map[any]time.Time
	next    chan struct{} // closed when it may be somebody else's turn
}

// mostGiven is how many are remembered who were given room a while ago; the others count as new.
const mostGiven = 1000

// NewTurns is a bucket that is filled at that rate, and full at most.
func NewTurns(every rate.Limit, most int) *Turns {
	return &Turns{Limiter: rate.NewLimiter(every, most), waiting: map[any]int{}, given: map[any]time.Time{}, next: make(chan struct{})}
}

// Wait takes room for somebody when it is their turn, or gives up with ctx.
func (t *Turns) Wait(ctx context.Context, who any) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting[who]++
	defer t.leave(who)
	for {
		next, after := t.next, time.Hour
		if now := time.Now(); t.first(who) && t.AllowN(now, 1) {
			if len(t.given) >= mostGiven {
				maps.DeleteFunc(t.given, func(_ any, at time.Time) bool { return now.Sub(at) > time.Minute })
			}
			t.given[who] = now
			return nil
		} else if t.first(who) {
			after = Room(t.Limiter, 1+t.Burst(), now)
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

// first reports whether nobody waits who was given room before who was. The lock is held.
func (t *Turns) first(who any) bool {
	for other := range t.waiting {
		if t.given[other].Before(t.given[who]) {
			return false
		}
	}
	return true
}

// leave ends a wait. The lock is held.
func (t *Turns) leave(who any) {
	if t.waiting[who]--; t.waiting[who] == 0 {
		delete(t.waiting, who)
	}
	close(t.next)
	t.next = make(chan struct{})
}

// Room is how long it takes until a bucket has one more than a part of what it holds at most, 1 being all of it: 0 when it
// has. Whoever waits for that before taking leaves the rest to what is more urgent.
func Room(bucket *rate.Limiter, part int, now time.Time) time.Duration {
	missing := float64(min(1+bucket.Burst()/part, bucket.Burst())) - bucket.TokensAt(now)
	if missing <= 0 || bucket.Limit() == rate.Inf {
		return 0
	}
	return time.Duration(missing/float64(bucket.Limit())*float64(time.Second)) + time.Microsecond
}
