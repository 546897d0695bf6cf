package permissions

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// Waiter is one call that waits for one request. It is used by one goroutine at a time.
type Waiter struct {
	registry *Registry
	id       ID
	call     string
	reader   bool
	wake     chan wakeup // holds one: what it was told first counts
	first    *wakeup     // taken from it, for the next Wait
	settled  bool        // it has rung, so its request is settled
	handed   bool        // the approval was used for this call in the commit that approved it
}

// wakeup is small: the room for it is there for as long as the waiting lasts.
type wakeup struct {
	request *Request
	handed  bool
	err     error
}

// ID is the request waited for.
func (w *Waiter) ID() ID { return w.id }

// Wait returns the settled request, [ErrUsedElsewhere] when its approval went to another call, or the error of ctx. It is
// called again only after the latter.
func (w *Waiter) Wait(ctx context.Context) (Request, error) {
	w.WaitSettled(ctx)
	m := w.first
	if m == nil {
		return Request{}, ctx.Err()
	}
	w.first, w.handed = nil, m.handed
	return *m.request, m.err
}

// WaitSettled returns when Wait would. It needs less of a stack, which a call that waits for a person keeps for as long.
func (w *Waiter) WaitSettled(ctx context.Context) {
	if w.first != nil {
		return
	}
	select {
	case m := <-w.wake: // what has been decided counts, even when ctx is over as well
		w.first, w.settled = &m, true
		return
	default:
	}
	select {
	case m := <-w.wake:
		w.first, w.settled = &m, true
	case <-ctx.Done():
	}
}

// Handed tells, once Wait has returned an approval, whether it is used already, by this call.
func (w *Waiter) Handed() bool { return w.handed }

// isSameCall reports whether w and o are the same call, which may have tried again before it was known that it was gone.
func (w *Waiter) isSameCall(o *Waiter) bool { return w == o || w.call != "" && w.call == o.call }

// Leave ends the waiting. When nobody waits any more for a pending request, its people are told; leaving never cancels.
func (w *Waiter) Leave(ctx context.Context) {
	g := w.registry
	g.mu.Lock()
	last := g.removeWaiter(w)
	g.mu.Unlock()
	if last && !w.settled {
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
	if last := g.removeWaiter(w); last && !w.settled {
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

// A store that fails in the very moment of a commit may have done it all the same: whoever waits was not rung then, and
// nobody knows of what is new. So what a store was asked to change when it failed is read again at every tick, until that
// works, and told as it is.

// noteIndeterminate notes that the store failed with err while it changed these, and reports whether it did.
func (g *Registry) noteIndeterminate(err error, ids ...ID) bool {
	if !errors.Is(err, ErrBroken) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.overflowed = true
	for _, id := range ids {
		g.indeterminate[id] = struct{}{}
	}
	return true
}

// noteAllIndeterminate notes that the store failed with err while it changed whatever is pending.
func (g *Registry) noteAllIndeterminate(err error) {
	g.mu.Lock()
	ids := slices.AppendSeq(slices.Collect(maps.Keys(g.waiters)), maps.Keys(g.deadlines.ends))
	g.mu.Unlock()
	g.noteIndeterminate(err, ids...)
}

// isIndeterminate reports whether there is something to read again.
func (g *Registry) isIndeterminate() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.overflowed
}

// reread reads what it is not known of whether it changed, and tells it as it is.
func (g *Registry) reread(ctx context.Context) {
	g.mu.Lock()
	lost := g.overflowed
	ids := slices.Sorted(maps.Keys(g.indeterminate))
	g.overflowed = false
	clear(g.indeterminate)
	g.mu.Unlock()
	if !lost {
		return
	}
	for _, id := range ids { // one that is damaged does not keep the others from it
		end := g.measuredEnd(id)
		r, err := g.store.Read(ctx, id)
		switch {
		case CodeOf(err) == CodeUnknown, errors.Is(err, ErrRow): // it was not opened
			g.forgetIf(id, end)
		case err != nil:
			g.noteIndeterminate(ErrBroken, id)
		default:
			g.republish(r)
		}
	}
	g.NotifyNotices()
}

// republish tells whoever has to know how a request is. What it left behind is measured from now on, if it was not.
func (g *Registry) republish(r Request) {
	if r.State == Pending {
		g.Measure(r)
	} else {
		left := Change{After: r}
		left.grant(Vote{By: r.DecidedBy, Via: r.DecidedVia, At: r.DecidedAt})
		g.measureNew(left.Grants)
		g.settled(r, nil)
	}
	g.publish(r)
}

// measureNew begins to measure the grants that are not measured yet.
func (g *Registry) measureNew(grants []Grant) {
	g.mu.Lock()
	fresh := slices.DeleteFunc(grants, func(grant Grant) bool {
		_, known := g.deadlines.grants[grant.ID]
		return known
	})
	g.mu.Unlock()
	g.measureGrants(fresh)
}

// Signal wakes one worker. What rings while it is awake wakes it once more.
type Signal chan struct{}

// NewSignal makes a bell.
func NewSignal() Signal { return make(Signal, 1) }

// Notify wakes the worker. It does not wait for anything.
func (b Signal) Notify() {
	select {
	case b <- struct{}{}:
	default:
	}
}
