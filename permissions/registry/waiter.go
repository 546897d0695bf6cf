package registry

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Waiter is one call that waits for one request. It is used by one goroutine at a time.
type Waiter struct {
	registry *Registry
	id       permissions.ID
	call     string
	reader   bool
	wake     chan wakeup // capacity one: the first result counts
	first    *wakeup     // received from wake, for the next Wait
	settled  bool        // it was woken, so its request is settled
	late     bool        // it was not, when WaitSettled had to return
	handed   bool        // the approval was used for this call in the commit that approved it
}

// wakeup is small, since its space is held for as long as the call waits.
type wakeup struct {
	request *permissions.Request
	handed  bool
	err     error
}

// ID returns the request waited for.
func (w *Waiter) ID() permissions.ID { return w.id }

// Wait returns the settled request, [ErrUsedElsewhere] when its approval went to another call, or the error of ctx. It
// may be called again only after the latter.
func (w *Waiter) Wait(ctx context.Context) (permissions.Request, error) {
	if !w.late {
		w.WaitSettled(ctx, time.Time{})
	}
	m := w.first
	if w.late = false; m == nil {
		return permissions.Request{}, cmp.Or(ctx.Err(), context.DeadlineExceeded)
	}
	w.first, w.handed = nil, m.handed
	return *m.request, m.err
}

// WaitSettled blocks until Wait would return, until then at most if that is not zero; the next Wait then returns
// [context.DeadlineExceeded]. It needs less stack, which a waiting call keeps.
func (w *Waiter) WaitSettled(ctx context.Context, until time.Time) {
	if w.first != nil {
		return
	}
	select {
	case m := <-w.wake: // a decision counts, even if ctx is over as well
		w.first, w.settled = &m, true
		return
	default:
	}
	var over <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case m := <-w.wake:
		w.first, w.settled = &m, true
	case <-ctx.Done():
	case <-over:
		w.late = true
	}
}

// Handed reports, once Wait has returned an approval, whether this call has used it already.
func (w *Waiter) Handed() bool { return w.handed }

// isSameCall reports whether w and o are the same call, which may have retried before its disconnection was noticed.
func (w *Waiter) isSameCall(o *Waiter) bool { return w == o || w.call != "" && w.call == o.call }

// Leave ends the waiting. When nobody waits any more for a pending request, its prompts say so; leaving never cancels.
func (w *Waiter) Leave(ctx context.Context) {
	g := w.registry
	g.mu.Lock()
	last := g.removeWaiter(w)
	g.mu.Unlock()
	if last && !w.settled {
		g.noteAbsence(ctx, w.id)
	}
}

// LeaveSoon ends the waiting at once, and updates the prompts after grace if nobody has returned by then: a lost
// connection is often back a moment later, and when the daemon itself stops, prompts stay as they are. Graces end while
// [Registry.Run] runs.
func (w *Waiter) LeaveSoon(grace time.Duration) {
	g := w.registry
	g.mu.Lock()
	defer g.mu.Unlock()
	if last := g.removeWaiter(w); last && !w.settled {
		g.absent[w.id] = time.Now().Add(grace)
	}
}

// Park keeps the waiter's place for a call that said it will be back within lease. Leases end while [Registry.Run] runs.
func (w *Waiter) Park(lease time.Duration) {
	g := w.registry
	g.mu.Lock()
	defer g.mu.Unlock()
	g.parked[w] = time.Now().Add(lease)
}

// A store that fails during a commit may have committed nevertheless: the waiters were not woken, and nobody knows of
// the new row. So the rows of failed writes are read again at every tick, until that works, and published as they are.

// noteIndeterminate records the ids, and returns true, if err means that the store failed while it changed them.
func (g *Registry) noteIndeterminate(err error, ids ...permissions.ID) bool {
	if !errors.Is(err, permissions.ErrBroken) {
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

// noteAllIndeterminate records that the store failed with err while it changed any of the pending requests.
func (g *Registry) noteAllIndeterminate(err error) {
	g.mu.Lock()
	ids := slices.AppendSeq(slices.Collect(maps.Keys(g.waiters)), maps.Keys(g.deadlines.ends))
	g.mu.Unlock()
	g.noteIndeterminate(err, ids...)
}

// Changed informs everybody of requests that another process changed, as they are now, and measures the time of those that it opened,
// which may be left to this process. An unreadable one is tried again later.
func (g *Registry) Changed(ctx context.Context, ids []permissions.ID) {
	g.noteIndeterminate(permissions.ErrBroken, ids...)
	g.reread(ctx, g.sweepAt)
}

// isIndeterminate reports whether there are rows to read again.
func (g *Registry) isIndeterminate() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.overflowed
}

// reread reads the rows whose outcome is unknown, and publishes them as they are. Each is told, too.
func (g *Registry) reread(ctx context.Context, told func(permissions.Request)) {
	g.mu.Lock()
	lost := g.overflowed
	ids := slices.Sorted(maps.Keys(g.indeterminate))
	g.overflowed = false
	clear(g.indeterminate)
	g.mu.Unlock()
	if !lost {
		return
	}
	for _, id := range ids { // an unreadable row does not block the others
		end := g.measuredEnd(id)
		r, err := g.store.Read(ctx, id)
		switch {
		case permissions.CodeOf(err) == permissions.CodeUnknown, errors.Is(err, permissions.ErrRow): // it was not opened
			g.forgetIf(id, end)
		case err != nil:
			g.noteIndeterminate(permissions.ErrBroken, id)
		default:
			g.republish(r)
			told(r)
		}
	}
	g.NotifyNotices()
}

// republish informs everybody of a row's current state. Its grants are measured from now on, if they were not.
func (g *Registry) republish(r permissions.Request) {
	if r.State == permissions.Pending {
		g.Measure(r)
	} else {
		g.measureNew(r.GrantsLeft())
		g.settled(r, nil)
	}
	g.publish(r)
}

// measureNew starts measuring the grants that are not measured yet.
func (g *Registry) measureNew(grants []permissions.Grant) {
	g.mu.Lock()
	fresh := slices.DeleteFunc(grants, func(grant permissions.Grant) bool {
		_, known := g.deadlines.grants[grant.ID]
		return known
	})
	g.mu.Unlock()
	g.MeasureGrants(fresh, false)
}
