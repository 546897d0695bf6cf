package permissions

import (
	"context"
	"time"
)

// Waiter is one call that waits for one request. It is used by one goroutine at a time.
type Waiter struct {
	registry *Registry
	id       ID
	call     string
	reader   bool
	ring     chan rung   // holds one: a waiter rings once
	parked   *time.Timer // guarded by the registry's lock; set while nobody holds the waiter
}

type rung struct {
	request Request
	err     error
}

// ID is the request waited for.
func (w *Waiter) ID() ID { return w.id }

// Wait returns the settled request, [ErrElsewhere] when its approval went to another call, or the error of ctx.
func (w *Waiter) Wait(ctx context.Context) (Request, error) {
	select {
	case m := <-w.ring: // what has been decided counts, even when ctx is over as well
		return m.request, m.err
	default:
	}
	select {
	case m := <-w.ring:
		return m.request, m.err
	case <-ctx.Done():
		return Request{}, ctx.Err()
	}
}

// Leave ends the waiting. When nobody waits any more for a pending request, its people are told; leaving never cancels.
func (w *Waiter) Leave(ctx context.Context) {
	g := w.registry
	g.mu.Lock()
	last := g.remove(w)
	g.mu.Unlock()
	if last {
		g.tellLeft(ctx, w.id)
	}
}

// Park keeps the waiter's place for a call that said it will be back within lease; then it leaves.
func (w *Waiter) Park(lease time.Duration) {
	g := w.registry
	g.mu.Lock()
	defer g.mu.Unlock()
	w.parked = time.AfterFunc(lease, w.expire)
}

// expire is the end of a lease. A Rejoin that came first has taken the timer away, and the place is kept.
func (w *Waiter) expire() {
	g := w.registry
	g.mu.Lock()
	last := w.parked != nil && g.remove(w)
	g.mu.Unlock()
	if last {
		g.tellLeft(context.Background(), w.id)
	}
}
