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
	ring     chan rung // holds one: what it was told first counts
	first    *rung     // taken from it, for the next Wait
	told     bool      // it has rung, so its request is settled
	handed   bool      // the approval was used for this call in the commit that approved it
}

// rung is small: the room for it is there for as long as the waiting lasts.
type rung struct {
	request *Request
	handed  bool
	err     error
}

// ID is the request waited for.
func (w *Waiter) ID() ID { return w.id }

// Wait returns the settled request, [ErrElsewhere] when its approval went to another call, or the error of ctx. It is
// called again only after the latter.
func (w *Waiter) Wait(ctx context.Context) (Request, error) {
	w.Linger(ctx)
	m := w.first
	if m == nil {
		return Request{}, ctx.Err()
	}
	w.first, w.handed = nil, m.handed
	return *m.request, m.err
}

// Linger returns when Wait would. It needs less of a stack, which a call that waits for a person keeps for as long.
func (w *Waiter) Linger(ctx context.Context) {
	if w.first != nil {
		return
	}
	select {
	case m := <-w.ring: // what has been decided counts, even when ctx is over as well
		w.first, w.told = &m, true
		return
	default:
	}
	select {
	case m := <-w.ring:
		w.first, w.told = &m, true
	case <-ctx.Done():
	}
}

// Handed tells, once Wait has returned an approval, whether it is used already, by this call.
func (w *Waiter) Handed() bool { return w.handed }

// isOne tells whether w and o are the same call, which may have tried again before it was known that it was gone.
func (w *Waiter) isOne(o *Waiter) bool { return w == o || w.call != "" && w.call == o.call }

// Leave ends the waiting. When nobody waits any more for a pending request, its people are told; leaving never cancels.
func (w *Waiter) Leave(ctx context.Context) {
	g := w.registry
	g.mu.Lock()
	last := g.remove(w)
	g.mu.Unlock()
	if last && !w.told {
		g.noteAbsence(ctx, w.id)
	}
}

// LeaveSoon ends the waiting at once, and has people told after grace if nobody has come back by then: a connection
// that was lost is often there again a moment later, and when the daemon itself stops, nobody is told anything. Graces
// end while [Registry.Run] runs.
func (w *Waiter) LeaveSoon(grace time.Duration) {
	g := w.registry
	g.mu.Lock()
	defer g.mu.Unlock()
	if last := g.remove(w); last && !w.told {
		g.absent[w.id] = time.Now().Add(grace)
	}
}

// Park keeps the waiter's place for a call that said it will be back within lease; then it leaves. Leases end while
// [Registry.Run] runs.
func (w *Waiter) Park(lease time.Duration) {
	g := w.registry
	g.mu.Lock()
	defer g.mu.Unlock()
	g.parked[w] = time.Now().Add(lease)
}
