// Package registry wakes those who wait for a decision, and enforces deadlines. The row is the source of truth and waking
// a waiter only a notification: the registry registers the waiter, lets the [Store] insert the row, and wakes the waiter
// once a change has been committed (registry.go, waiter.go). The clocks are in deadlines.go, what is due in clock.go.
package registry

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// Store keeps requests, as far as the [Registry] needs. Every method either did everything it says, durably, before it
// returned nil, or nothing. Errors that mean the store itself is unusable match
// [permissions.ErrBroken]. Implementations are safe for concurrent use.
type Store interface {
	// Open inserts o.Request, or finds the request that it joins: the one of its id, else of its key, else a pending one
	// of an equal digest of the same caller and session; for a hook, also an approval of such a request that nobody has
	// collected within o.RedeemWindow. It returns the row as stored, and whether it was inserted. It refuses with a
	// [*permissions.Refusal] different content under an id or a key in use, and requests beyond o's limits.
	Open(ctx context.Context, o permissions.Opening) (r permissions.Request, created bool, err error)

	// Apply loads a request, applies e with [permissions.Step], and commits the whole change if the row is still the one
	// loaded. An error of Step is returned unchanged, with nothing changed. A Use of an approval based on a grant that is over
	// commits a [permissions.Void] instead. A vote whose key is already stored changes nothing: the Change is empty.
	Apply(ctx context.Context, id permissions.ID, e permissions.Transition) (permissions.Change, error)

	// Read returns one request with its votes. A missing one is refused with [permissions.CodeUnknown].
	Read(ctx context.Context, id permissions.ID) (permissions.Request, error)

	// Due lists at most limit events that are due at now, the longest overdue first, and when the next one will be
	// (zero: never). redeem is how long an unused approval is kept.
	Due(ctx context.Context, now time.Time, redeem time.Duration, limit int) (due []permissions.Due, next time.Time, err error)

	// EndGrants ends at most limit grants that are over at now, and leaves a notice for everybody who allowed them. It
	// returns those, and when the next one will be over (zero: none).
	EndGrants(ctx context.Context, now time.Time, limit int) (ended []permissions.Grant, next time.Time, err error)

	// EndGrantsNow is EndGrants for those that are over by monotonic time. It returns the ones that were still in force.
	EndGrantsNow(ctx context.Context, ids []permissions.ID, now time.Time) (ended []permissions.Grant, err error)

	// Stop cancels everything pending, suspends every grant and refuses new requests and the use of approvals with
	// [permissions.CodeStopped], until Resume. The stop itself is committed first, then the pending requests are
	// cancelled; the next Stop completes an interrupted one. It returns what it cancelled even with an error.
	Stop(ctx context.Context, by, via string, at time.Time) (cancelled []permissions.Request, err error)
}

// ErrUsedElsewhere is returned by [Waiter.Wait] when an approval for once went to a call that waited longer: ask again.
var ErrUsedElsewhere = errors.New("approved once, for another call")

// Registry keeps the waiters and the deadlines of requests. The row is the source of truth: a waiter is registered
// before the row is inserted, and is woken only after a commit. A Registry is safe for concurrent use; its lock is never
// held while waiting.
type Registry struct {
	store           Store
	clock           timing.Clock
	log             *slog.Logger
	earlierDeadline timing.Signal // something is due earlier than at next
	noticed         timing.Signal // there are new notices

	// Locked returns who is locked, and is not asked when a request escalates. It is set before the registry is used; nil: nobody.
	Locked func() []string

	stopping *semaphore.Weighted // one unit for each operation that a stop prevents, all units for the stop
	stopper  string              // who stopped everything while that could not be stored; empty: nobody

	mu            sync.Mutex
	next          time.Time // when the next sweep is due, as far as known; zero: never
	sweeping      bool      // next will be known after this sweep
	deadlines     deadlines
	redeem        time.Duration
	waiters       map[permissions.ID][]*Waiter // by request, oldest first
	calls         map[string]*Waiter
	parked        map[*Waiter]time.Time        // disconnected waiters, until their place expires
	absent        map[permissions.ID]time.Time // when to record that nobody waits
	held          map[permissions.ID]struct{}  // requests with a waiting asker elsewhere; see Hold
	feeds         map[*Feed]struct{}
	indeterminate map[permissions.ID]struct{} // commits whose outcome is unknown; reread before use
	overflowed    bool                        // a reread is due, perhaps only of notices
}

// maxAtOnce exceeds the number of concurrent operations.
const maxAtOnce = math.MaxInt64

// New creates a registry over a store. redeem is how long an unused approval is kept.
func New(store Store, clock timing.Clock, redeem time.Duration, log *slog.Logger) *Registry {
	return &Registry{
		store: store, clock: clock, log: log, redeem: redeem, earlierDeadline: timing.NewSignal(), noticed: timing.NewSignal(),
		deadlines: newDeadlines(clock), stopping: semaphore.NewWeighted(maxAtOnce),
		waiters: map[permissions.ID][]*Waiter{}, calls: map[string]*Waiter{},
		parked: map[*Waiter]time.Time{}, absent: map[permissions.ID]time.Time{}, held: map[permissions.ID]struct{}{},
		feeds: map[*Feed]struct{}{}, indeterminate: map[permissions.ID]struct{}{},
	}
}

// SetRedeemWindow changes how long an unused approval is kept, from now on.
func (g *Registry) SetRedeemWindow(d time.Duration) {
	g.mu.Lock()
	g.redeem = d
	g.mu.Unlock()
	g.earlierDeadline.Notify()
}

// Register adds a waiter and inserts the request, or joins an equal pending one. A retry with the same Call finds this
// waiter again ([Registry.Rejoin]). created says that the request is new and has to be shown. The waiter must be ended
// with [Waiter.Leave] or [Waiter.Park]. With reads it is a reader, see [Registry.Attach].
func (g *Registry) Register(
	ctx context.Context, o permissions.Opening, reads bool,
) (w *Waiter, r permissions.Request, created bool, err error) {
	w = &Waiter{registry: g, id: o.Request.ID, call: o.Request.Call, reader: reads, wake: make(chan wakeup, 1)}
	g.addWaiter(w)
	if r, created, err = g.Open(ctx, o); err != nil {
		g.dropWaiter(w)
		return nil, permissions.Request{}, false, err
	}
	if created {
		if r.State != permissions.Pending { // granted already
			g.wakeAll(r, nil, nil)
		}
		return w, r, true, nil
	}
	// The request may have been settled between Open's commit and addWaiter's move, so the row is read again.
	g.dropWaiter(w)
	w.id = r.ID
	g.addWaiter(w)
	if r, err = g.refresh(ctx, w); err != nil {
		w.Leave(ctx)
		return nil, permissions.Request{}, false, err
	}
	return w, r, false, nil
}

// Open is Register without a waiter.
func (g *Registry) Open(ctx context.Context, o permissions.Opening) (r permissions.Request, created bool, err error) {
	if err := g.stopping.Acquire(ctx, 1); err != nil {
		return permissions.Request{}, false, err
	}
	defer g.stopping.Release(1)
	if g.stopper != "" {
		return permissions.Request{}, false, permissions.Stopped(g.stopper)
	}
	began := g.Measure(o.Request)
	r, created, err = g.store.Open(ctx, o)
	unsure := g.noteIndeterminate(err, o.Request.ID)
	switch {
	case unsure: // the row may exist, so its time runs
	case began && (err != nil || r.ID != o.Request.ID || r.State != permissions.Pending):
		g.forget(o.Request.ID)
	case created && !began: // the same call proposed the id before, with an earlier deadline, and its row appeared late
		g.forget(r.ID)
		g.Measure(r)
	}
	if err == nil && created {
		if r.State == permissions.Approved {
			g.usedGrants(r.Grants)
		}
		g.publish(r)
		g.sweepAt(r)
	}
	return r, created, err
}

// Rejoin returns the parked waiter of a call. ok is false without one.
func (g *Registry) Rejoin(call string) (w *Waiter, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w = g.calls[call]
	if _, ok = g.parked[w]; !ok {
		return nil, false
	}
	delete(g.parked, w)
	return w, true
}

// Join adds a waiter to an existing request, for a call that knows its id.
func (g *Registry) Join(ctx context.Context, id permissions.ID, call string) (*Waiter, permissions.Request, error) {
	return g.attach(ctx, &Waiter{registry: g, id: id, call: call, wake: make(chan wakeup, 1)})
}

// Attach adds a reader to an existing request: it is woken like a waiter, but never receives an approval.
func (g *Registry) Attach(ctx context.Context, id permissions.ID) (*Waiter, permissions.Request, error) {
	return g.attach(ctx, &Waiter{registry: g, id: id, reader: true, wake: make(chan wakeup, 1)})
}

func (g *Registry) attach(ctx context.Context, w *Waiter) (*Waiter, permissions.Request, error) {
	g.addWaiter(w)
	r, err := g.refresh(ctx, w)
	if err != nil {
		w.Leave(ctx)
		return nil, permissions.Request{}, err
	}
	return w, r, nil
}

// refresh reads the row for a late waiter, wakes it if the row is settled, and records that somebody waits again. An
// approval that is used already may have just been handed to a call that is about to be told so; this waiter is not told
// here.
func (g *Registry) refresh(ctx context.Context, w *Waiter) (permissions.Request, error) {
	r, err := g.store.Read(ctx, w.id)
	switch {
	case err != nil:
		return permissions.Request{}, err
	case r.State != permissions.Pending && !r.UsedAt.IsZero():
		g.wakeAll(r, nil, w)
	case r.State != permissions.Pending:
		g.wakeAll(r, nil, nil)
	case !r.LeftAt.IsZero():
		return g.NotePresence(ctx, w.id)
	}
	return r, nil
}

// Resolve applies an event and wakes the waiters once it is committed. A request that is over by monotonic time expires
// first, whatever the wall clock says, and so does one that the event is too late for: whoever decides it is told so.
// The error is that of the store or of [permissions.Step]. A [permissions.Cast]
// with a Use hands the approval, in the same commit, to the call that has waited longest, if it is connected.
func (g *Registry) Resolve(ctx context.Context, id permissions.ID, e permissions.Transition) (c permissions.Change, err error) {
	defer func() {
		if errors.Is(err, permissions.ErrLate) {
			_, failed := g.apply(ctx, id, permissions.Expire{At: g.clock.Stamp()}, nil)
			if failed != nil && !errors.Is(failed, permissions.ErrSettled) && !errors.Is(failed, permissions.ErrNotDue) {
				g.log.Error("expire a request whose time is over: retrying", "request", id, "err", failed)
			}
		}
	}()
	if all, is := e.(permissions.Escalate); is && len(all.To) == 0 && g.Locked != nil {
		all.Locked = g.Locked()
		e = all
	}
	spent := g.isOver(id)
	if spent {
		_, err := g.apply(ctx, id, permissions.Expire{At: g.clock.Stamp(), Spent: true}, nil)
		if err != nil && !errors.Is(err, permissions.ErrSettled) {
			return permissions.Change{}, err
		}
	}
	cast, votes := e.(permissions.Cast)
	if !votes || cast.Use == nil {
		return g.apply(ctx, id, e, nil)
	}
	var taker *Waiter
	if !spent { // else its waiters were just told so and are leaving
		taker = g.oldestWaiter(id)
	}
	if taker == nil {
		cast.Use = nil
	} else {
		cast.Use = &permissions.Use{Call: taker.call, At: cast.Use.At}
	}
	return g.apply(ctx, id, cast, taker)
}

// oldestWaiter returns the call that has waited longest, nil if there is none or it is disconnected. It may leave before
// or after the commit that hands it the approval: its own retry finds that.
func (g *Registry) oldestWaiter(id permissions.ID) *Waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.waiters[id] {
		if _, away := g.parked[w]; away {
			return nil
		}
		if !w.reader {
			return w
		}
	}
	return nil
}

// apply applies an event; taker is the call that a Use in it is for.
func (g *Registry) apply(ctx context.Context, id permissions.ID, e permissions.Transition, taker *Waiter) (permissions.Change, error) {
	if permissions.PreventedByStop(e) {
		if err := g.stopping.Acquire(ctx, 1); err != nil {
			return permissions.Change{}, err
		}
		defer g.stopping.Release(1)
		if g.stopper != "" {
			r, err := g.store.Read(ctx, id)
			return permissions.Change{Before: r, After: r}, errors.Join(err, permissions.Stopped(g.stopper))
		}
	}
	c, err := g.store.Apply(ctx, id, e)
	if err != nil {
		g.noteIndeterminate(err, id)
		return c, err
	}
	g.MeasureGrants(c.Grants, false)
	if c.Before.UsedAt.IsZero() && !c.After.UsedAt.IsZero() {
		g.usedGrants(c.After.Grants)
	}
	if !c.Before.Deadline.Equal(c.After.Deadline) {
		g.forget(id)
		g.Measure(c.After)
	}
	g.sweepAt(c.After)
	if len(c.Notices) > 0 {
		g.NotifyNotices()
	}
	if c.Settled() {
		if !c.ApprovedAndUsed() {
			taker = nil
		}
		g.settled(c.After, taker)
		runtime.Gosched() // woken calls run first: the rest here would delay them
	}
	if c.Before.Revision != c.After.Revision {
		g.publish(c.After)
	}
	return c, nil
}

// settled wakes the waiters and stops measuring. An approval that was used already is the taker's.
func (g *Registry) settled(r permissions.Request, taker *Waiter) {
	g.forget(r.ID)
	g.Hold(r.ID, false)
	g.wakeAll(r, taker, nil)
}

// StopAll calls [Store.Stop] and wakes the waiters of the cancelled requests, whose number it returns. If the store
// fails, nothing is opened, answered or used nevertheless, until Halt("").
func (g *Registry) StopAll(ctx context.Context, by, via string) (int, error) {
	cancelled, err := g.store.Stop(ctx, by, via, g.clock.Stamp())
	if err == nil {
		by = ""
	}
	g.Halt(by)
	for _, r := range cancelled {
		g.settled(r, nil)
		g.publish(r)
	}
	g.noteAllIndeterminate(err)
	g.NotifyNotices()
	return len(cancelled), err
}

// Halt prevents opening, answering and using, after operations in progress; an empty by ends that.
func (g *Registry) Halt(by string) {
	if g.stopping.Acquire(context.Background(), maxAtOnce) == nil { // this context never ends
		g.stopper = by
		g.stopping.Release(maxAtOnce)
	}
}

// Noticed has a value when there are new notices to be sent.
func (g *Registry) Noticed() <-chan struct{} { return g.noticed }

// NotifyNotices says that there are new notices.
func (g *Registry) NotifyNotices() { g.noticed.Notify() }

// Cancel withdraws a pending request.
func (g *Registry) Cancel(ctx context.Context, id permissions.ID, by, via string) (permissions.Change, error) {
	return g.Resolve(ctx, id, permissions.Withdraw{By: by, Via: via, At: g.clock.Stamp()})
}

// LeaveOrCancel ends the waiting of a call for good, by the call's own name, and withdraws the request when no other
// call waits for it; a parked call counts as waiting. A call that has left needs no name. Via is as in
// [permissions.Withdraw].
func (g *Registry) LeaveOrCancel(ctx context.Context, id permissions.ID, call, via string) (permissions.Request, error) {
	g.mu.Lock()
	others := slices.ContainsFunc(g.waiters[id], func(w *Waiter) bool { return !w.reader && (call == "" || w.call != call) })
	if w := g.calls[call]; others && w != nil && w.id == id {
		g.removeWaiter(w) // of two concurrent callers, the second finds none
	}
	g.mu.Unlock()
	if others {
		return g.store.Read(ctx, id)
	}
	c, err := g.Cancel(ctx, id, "", via)
	return c.After, err
}

// RequestOf returns the request that the named call waits for; empty if none.
func (g *Registry) RequestOf(call string) permissions.ID {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w := g.calls[call]; w != nil {
		return w.id
	}
	return ""
}

// NotePresence records on a pending request whether anybody waits. A waiter may come or go while that is being stored,
// so it checks again afterwards: the last writer has seen the last change.
func (g *Registry) NotePresence(ctx context.Context, id permissions.ID) (permissions.Request, error) {
	for {
		waiting := g.Waiting(id) > 0
		var e permissions.Transition = permissions.Leave{At: g.clock.Stamp()}
		if waiting {
			e = permissions.Return{At: g.clock.Stamp()}
		}
		c, err := g.Resolve(ctx, id, e)
		if err != nil || waiting == (g.Waiting(id) > 0) {
			return c.After, err
		}
	}
}

// Waiting returns how many wait for a request.
func (g *Registry) Waiting(id permissions.ID) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, held := g.held[id]; held {
		return len(g.waiters[id]) + 1
	}
	return len(g.waiters[id])
}

// Hold makes a pending request count as waited for without a waiter, or no longer: its asker is elsewhere and will
// return. A settled request cannot be held.
func (g *Registry) Hold(id permissions.ID, held bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.held, id)
	if held {
		g.held[id] = struct{}{}
	}
}

// wakeAll wakes all waiters of a request, or only one, possibly again. An approval for once that was asked without a key
// goes to the taker, for whom the commit used it, or else to the call that has waited longest; the other calls are told
// to ask again.
func (g *Registry) wakeAll(r permissions.Request, taker, only *Waiter) {
	exclusive := r.State == permissions.Approved && r.Scope == permissions.Once && r.Key == ""
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting := g.waiters[r.ID]
	if len(waiting) == 0 {
		return
	}
	row := new(permissions.Request) // shared by all: nobody changes it
	*row = r
	first := taker
	for _, w := range waiting {
		message := wakeup{request: row}
		switch {
		case w.reader:
		case first == nil:
			first = w
		case w.isSameCall(first):
			message.handed = taker != nil
		case exclusive:
			message.err = ErrUsedElsewhere
		}
		if only != nil && w != only {
			continue
		}
		select {
		case w.wake <- message:
		default: // woken before
		}
	}
}

func (g *Registry) addWaiter(w *Waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiters[w.id] = append(g.waiters[w.id], w)
	if w.call != "" {
		g.calls[w.call] = w
	}
}

func (g *Registry) dropWaiter(w *Waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.removeWaiter(w)
}

// removeWaiter removes w for good, and reports whether nobody waits for its request now. The lock is held.
func (g *Registry) removeWaiter(w *Waiter) (last bool) {
	delete(g.parked, w)
	if g.calls[w.call] == w {
		delete(g.calls, w.call)
	}
	g.waiters[w.id] = slices.DeleteFunc(g.waiters[w.id], func(o *Waiter) bool { return o == w })
	if last = len(g.waiters[w.id]) == 0; last {
		delete(g.waiters, w.id)
	}
	return last
}

// noteAbsence is NotePresence for a caller that has left and cannot handle an error.
func (g *Registry) noteAbsence(ctx context.Context, id permissions.ID) {
	if _, err := g.NotePresence(ctx, id); err != nil && ctx.Err() == nil {
		g.log.Error("record that the last waiter left", "request", id, "err", err)
	}
}

// Feed carries every committed change of every request. Two changes of one request may arrive in either order: the
// higher revision is the newer. A reader that falls behind is cut off: C is closed and [Feed.Overflowed] is true; it
// then subscribes again and rereads the rows.
type Feed struct {
	C          <-chan *permissions.Request // shared: do not modify
	c          chan *permissions.Request
	overflowed atomic.Bool
	registry   *Registry
}

// Subscribe starts a feed with room for buffer changes. End it with [Feed.Close].
func (g *Registry) Subscribe(buffer int) *Feed {
	c := make(chan *permissions.Request, buffer)
	f := &Feed{C: c, c: c, registry: g}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.feeds[f] = struct{}{}
	return f
}

// Overflowed reports whether the feed was closed because its reader fell behind.
func (f *Feed) Overflowed() bool { return f.overflowed.Load() }

// Close ends the feed. It may be called more than once.
func (f *Feed) Close() {
	f.registry.mu.Lock()
	defer f.registry.mu.Unlock()
	f.end()
}

// end closes the channel once. The registry's lock is held, so nothing is being published.
func (f *Feed) end() {
	if _, open := f.registry.feeds[f]; open {
		delete(f.registry.feeds, f)
		close(f.c)
	}
}

// publish sends a committed row to every feed without blocking.
func (g *Registry) publish(r permissions.Request) {
	row := &r
	g.mu.Lock()
	defer g.mu.Unlock()
	for f := range g.feeds {
		select {
		case f.c <- row:
		default:
			f.overflowed.Store(true)
			f.end()
		}
	}
}
