package permissions

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
)

// ErrBroken is matched by errors that mean the store cannot be read or written just now.
var ErrBroken = errors.New("store unusable")

// ErrRow is matched, besides [ErrBroken], by errors of one row that is not used, while all others are.
var ErrRow = errors.New("row unusable")

// ErrUsedElsewhere is what [Waiter.Wait] returns when an approval for once went to a call that waited longer: ask anew.
var ErrUsedElsewhere = errors.New("approved once, for another call")

// Registry keeps those who wait for an answer, and the deadlines. The row is the truth: a waiter is registered before
// the row is inserted and rings only with what was committed. A Registry is safe for concurrent use; nobody waits
// holding its lock.
type Registry struct {
	store           Store
	clock           Clock
	log             *slog.Logger
	earlierDeadline Signal // an earlier deadline may have come
	noticed         Signal // there are new notices

	stopping *semaphore.Weighted // one is held by each of what a stop keeps from happening, and all by the stop
	stopper  string              // who stopped everything, while that could not be stored; empty: nobody

	mu            sync.Mutex
	deadlines     deadlines
	redeem        time.Duration
	waiters       map[ID][]*Waiter // who waits, longest first
	calls         map[string]*Waiter
	parked        map[*Waiter]time.Time // until when a waiter that nobody holds keeps its place
	absent        map[ID]time.Time      // when to tell that nobody waits
	held          map[ID]struct{}       // what somebody waits for who is not here; see Hold
	feeds         map[*Feed]struct{}
	indeterminate map[ID]struct{} // see unsureOf
	overflowed    bool            // there may be more to tell than is known
}

// mostAtOnce is more than can ever be done at once.
const mostAtOnce = math.MaxInt64

// NewRegistry makes a registry over a store. redeem is how long an unused approval is kept.
func NewRegistry(store Store, clock Clock, redeem time.Duration, log *slog.Logger) *Registry {
	return &Registry{
		store: store, clock: clock, log: log, redeem: redeem, earlierDeadline: NewSignal(), noticed: NewSignal(),
		deadlines: newDeadlines(clock), stopping: semaphore.NewWeighted(mostAtOnce),
		waiters: map[ID][]*Waiter{}, calls: map[string]*Waiter{},
		parked: map[*Waiter]time.Time{}, absent: map[ID]time.Time{}, held: map[ID]struct{}{},
		feeds: map[*Feed]struct{}{}, indeterminate: map[ID]struct{}{},
	}
}

// SetRedeemWindow changes how long an unused approval is kept, from now on.
func (g *Registry) SetRedeemWindow(d time.Duration) {
	g.mu.Lock()
	g.redeem = d
	g.mu.Unlock()
	g.earlierDeadline.Notify()
}

// Register registers a waiter, then opens the request or joins the one it equals. The request's Call, if any, is what
// its own retry finds this waiter by ([Registry.Rejoin]). created says that the request is new and has to be shown. The
// waiter must be ended with [Waiter.Leave] or [Waiter.Park].
func (g *Registry) Register(ctx context.Context, o Opening) (w *Waiter, r Request, created bool, err error) {
	w = &Waiter{registry: g, id: o.Request.ID, call: o.Request.Call, wake: make(chan wakeup, 1)}
	g.addWaiter(w)
	if r, created, err = g.Open(ctx, o); err != nil {
		g.dropWaiter(w)
		return nil, Request{}, false, err
	}
	if created {
		if r.State != Pending { // held already
			g.wakeAll(r, nil, nil)
		}
		return w, r, true, nil
	}
	// Between Open's commit and this move the request may have been settled: the row is read again after it.
	g.dropWaiter(w)
	w.id = r.ID
	g.addWaiter(w)
	if r, err = g.refresh(ctx, w); err != nil {
		w.Leave(ctx)
		return nil, Request{}, false, err
	}
	return w, r, false, nil
}

// Open is Register for somebody who does not wait: the row is what there is of it.
func (g *Registry) Open(ctx context.Context, o Opening) (r Request, created bool, err error) {
	if err := g.stopping.Acquire(ctx, 1); err != nil {
		return Request{}, false, err
	}
	defer g.stopping.Release(1)
	if g.stopper != "" {
		return Request{}, false, Stopped(g.stopper)
	}
	began := g.Measure(o.Request)
	r, created, err = g.store.Open(ctx, o)
	unsure := g.noteIndeterminate(err, o.Request.ID)
	switch {
	case unsure: // it may be there, and its time passes
	case began && (err != nil || r.ID != o.Request.ID || r.State != Pending):
		g.forget(o.Request.ID)
	case created && !began: // the same call proposed the id before, with an earlier deadline, and its row came too late
		g.forget(r.ID)
		g.Measure(r)
	}
	if err == nil && created {
		g.publish(r)
		g.earlierDeadline.Notify()
	}
	return r, created, err
}

// Rejoin finds the waiter that a call left parked. ok is false when there is none.
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

// Join waits on a request that exists, for a call that was told its id before.
func (g *Registry) Join(ctx context.Context, id ID, call string) (*Waiter, Request, error) {
	return g.attach(ctx, &Waiter{registry: g, id: id, call: call, wake: make(chan wakeup, 1)})
}

// Attach waits on a request that exists, as a reader: it rings like a waiter, but no approval is ever its own.
func (g *Registry) Attach(ctx context.Context, id ID) (*Waiter, Request, error) {
	return g.attach(ctx, &Waiter{registry: g, id: id, reader: true, wake: make(chan wakeup, 1)})
}

func (g *Registry) attach(ctx context.Context, w *Waiter) (*Waiter, Request, error) {
	g.addWaiter(w)
	r, err := g.refresh(ctx, w)
	if err != nil {
		w.Leave(ctx)
		return nil, Request{}, err
	}
	return w, r, nil
}

// refresh reads the row for a waiter that came late, rings if it is settled, and notes that somebody waits again. An
// approval that is used already may have been handed, a moment ago, to a call that is about to be told so: that one is
// not told here.
func (g *Registry) refresh(ctx context.Context, w *Waiter) (Request, error) {
	r, err := g.store.Read(ctx, w.id)
	switch {
	case err != nil:
		return Request{}, err
	case r.State != Pending && !r.UsedAt.IsZero():
		g.wakeAll(r, nil, w)
	case r.State != Pending:
		g.wakeAll(r, nil, nil)
	case !r.LeftAt.IsZero():
		return g.NotePresence(ctx, w.id)
	}
	return r, nil
}

// Resolve applies an event and, once it is committed, rings whoever waits. A request whose time was measured to be over
// expires first, whatever the clock on the wall says. The error is that of the store or of [Step]. A [Cast] that brings a
// Use hands the approval, in the same commit, to the call that waits longest, if that is there.
func (g *Registry) Resolve(ctx context.Context, id ID, e Transition) (Change, error) {
	spent := g.isOver(id)
	if spent {
		_, err := g.apply(ctx, id, Expire{At: g.stamp(), Spent: true}, nil)
		if err != nil && !errors.Is(err, ErrSettled) {
			return Change{}, err
		}
	}
	cast, votes := e.(Cast)
	if !votes || cast.Use == nil {
		return g.apply(ctx, id, e, nil)
	}
	var taker *Waiter
	if !spent { // else whoever waited was told so, and is just leaving
		taker = g.oldestWaiter(id)
	}
	if taker == nil {
		cast.Use = nil
	} else {
		cast.Use = &Use{Call: taker.call, At: cast.Use.At}
	}
	return g.apply(ctx, id, cast, taker)
}

// oldestWaiter is the call that waits longest, nil when there is none or it is away. It may leave before the approval that
// it is handed is committed, as it may a moment after: its own retry finds that.
func (g *Registry) oldestWaiter(id ID) *Waiter {
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
func (g *Registry) apply(ctx context.Context, id ID, e Transition, taker *Waiter) (Change, error) {
	if Halts(e) {
		if err := g.stopping.Acquire(ctx, 1); err != nil {
			return Change{}, err
		}
		defer g.stopping.Release(1)
		if g.stopper != "" {
			r, err := g.store.Read(ctx, id)
			return Change{Before: r, After: r}, errors.Join(err, Stopped(g.stopper))
		}
	}
	c, err := g.store.Apply(ctx, id, e)
	if err != nil {
		g.noteIndeterminate(err, id)
		return c, err
	}
	g.measureGrants(c.Grants)
	if !c.Before.Deadline.Equal(c.After.Deadline) {
		g.forget(id)
		g.Measure(c.After)
		g.earlierDeadline.Notify()
	}
	if len(c.Notices) > 0 {
		g.NotifyNotices()
	}
	if c.Settled() {
		if !c.Handed() {
			taker = nil
		}
		g.settled(c.After, taker)
		runtime.Gosched() // whoever was rung goes first: what is done here besides would hold them up
		g.earlierDeadline.Notify()
	}
	if c.Before.Revision != c.After.Revision {
		g.publish(c.After)
	}
	return c, nil
}

// settled tells whoever waits, and stops measuring. An approval that was used already is the taker's.
func (g *Registry) settled(r Request, taker *Waiter) {
	g.forget(r.ID)
	g.Hold(r.ID, false)
	g.wakeAll(r, taker, nil)
}

// StopAll is [Store.Stop], and rings whoever waited for what it cancelled. It returns how many requests that were. Where the
// store fails, nothing is opened, answered or used all the same, until [Registry.Halt] by nobody.
func (g *Registry) StopAll(ctx context.Context, by, via string) (int, error) {
	cancelled, err := g.store.Stop(ctx, by, via, g.stamp())
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

// Halt has nothing opened, answered or used, once what is being done is done; by nobody (empty) ends that.
func (g *Registry) Halt(by string) {
	if g.stopping.Acquire(context.Background(), mostAtOnce) == nil { // nothing ends that context
		g.stopper = by
		g.stopping.Release(mostAtOnce)
	}
}

// Noticed has a value when there are new notices to be sent.
func (g *Registry) Noticed() <-chan struct{} { return g.noticed }

// NotifyNotices says that there are.
func (g *Registry) NotifyNotices() { g.noticed.Notify() }

// Cancel withdraws a pending request.
func (g *Registry) Cancel(ctx context.Context, id ID, by, via string) (Change, error) {
	return g.Resolve(ctx, id, Withdraw{By: by, Via: via, At: g.stamp()})
}

// LeaveOrCancel ends the waiting of a call for good, by its own name for itself, and withdraws the request when no other call waits
// for it; who keeps a place waits. The call may be gone by then, and needs no name in that case. Via is as in [Withdraw].
func (g *Registry) LeaveOrCancel(ctx context.Context, id ID, call, via string) (Request, error) {
	g.mu.Lock()
	others := slices.ContainsFunc(g.waiters[id], func(w *Waiter) bool { return !w.reader && (call == "" || w.call != call) })
	if w := g.calls[call]; others && w != nil && w.id == id {
		g.removeWaiter(w) // of two that are forgone at once, the second finds none
	}
	g.mu.Unlock()
	if others {
		return g.store.Read(ctx, id)
	}
	c, err := g.Cancel(ctx, id, "", via)
	return c.After, err
}

// NotePresence writes on a pending request whether anybody waits for it. Somebody may come or go while that is being
// stored, so it looks again afterwards: whoever writes last has seen the last change.
func (g *Registry) NotePresence(ctx context.Context, id ID) (Request, error) {
	for {
		waiting := g.Waiting(id) > 0
		var e Transition = Leave{At: g.stamp()}
		if waiting {
			e = Return{At: g.stamp()}
		}
		c, err := g.Resolve(ctx, id, e)
		if err != nil || waiting == (g.Waiting(id) > 0) {
			return c.After, err
		}
	}
}

// Waiting is how many wait for a request.
func (g *Registry) Waiting(id ID) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, held := g.held[id]; held {
		return len(g.waiters[id]) + 1
	}
	return len(g.waiters[id])
}

// Hold has a pending request count as waited for, or no longer, without a waiter: its asker is elsewhere and comes back. What is
// settled is not held.
func (g *Registry) Hold(id ID, held bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.held, id)
	if held {
		g.held[id] = struct{}{}
	}
}

// wakeAll tells everybody who waits, or only one of them, and may tell them again. An approval for once that was asked
// without a key goes to the taker, for whom it was used in the commit that approved it, or else to the call that waited
// longest; the other calls are told to ask anew.
func (g *Registry) wakeAll(r Request, taker, only *Waiter) {
	exclusive := r.State == Approved && r.Scope == Once && r.Key == ""
	g.mu.Lock()
	defer g.mu.Unlock()
	hall := g.waiters[r.ID]
	if len(hall) == 0 {
		return
	}
	row := new(Request) // one for all of them: nobody changes it
	*row = r
	first := taker
	for _, w := range hall {
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
		default: // it rang already
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

// removeWaiter takes w out for good, and reports whether nobody waits for its request now. The lock is held.
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

// noteAbsence is NotePresence for somebody who has left and can do nothing about an error.
func (g *Registry) noteAbsence(ctx context.Context, id ID) {
	if _, err := g.NotePresence(ctx, id); err != nil && ctx.Err() == nil {
		g.log.Error("nobody waits, and that cannot be stored", "request", id, "err", err)
	}
}

// stamp is the time of an event, in the unit in which times are kept.
func (g *Registry) stamp() time.Time { return g.clock.Now().UTC().Truncate(time.Microsecond) }

// Feed carries every committed change of every request. Two changes of one request may arrive in either order: the
// higher revision is the newer. A reader that falls behind is cut off: C is closed and [Feed.Overflowed] says so; it reads
// the rows again and subscribes anew.
type Feed struct {
	C          <-chan *Request // nobody changes what comes
	c          chan *Request
	overflowed atomic.Bool
	registry   *Registry
}

// Subscribe starts a feed with room for buffer changes. End it with [Feed.Close].
func (g *Registry) Subscribe(buffer int) *Feed {
	c := make(chan *Request, buffer)
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

// publish hands a committed row to every feed without waiting for any.
func (g *Registry) publish(r Request) {
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
