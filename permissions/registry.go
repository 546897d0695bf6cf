package permissions

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// ErrBroken is matched by errors that mean the store cannot be read or written just now.
var ErrBroken = errors.New("store unusable")

// ErrElsewhere is what [Waiter.Wait] returns when an approval for once went to a call that waited longer: ask anew.
var ErrElsewhere = errors.New("approved once, for another call")

const (
	// tick bounds how late a deadline is noticed after a suspend or a clock jump.
	tick = time.Second
	// dueBatch is how many due events are read at a time.
	dueBatch = 500
)

// Registry keeps those who wait for an answer, and the deadlines. The row is the truth: a waiter is registered before
// the row is inserted and rings only with what was committed. A Registry is safe for concurrent use; nobody waits
// holding its lock.
type Registry struct {
	store Store
	now   func() time.Time
	log   *slog.Logger
	rearm chan struct{} // an earlier deadline may have come

	mu     sync.Mutex
	redeem time.Duration
	halls  map[ID][]*Waiter // who waits, longest first
	calls  map[string]*Waiter
	feeds  map[*Feed]struct{}
}

// NewRegistry makes a registry over a store. redeem is how long an unused approval is kept.
func NewRegistry(store Store, now func() time.Time, redeem time.Duration, log *slog.Logger) *Registry {
	return &Registry{
		store: store, now: now, log: log, redeem: redeem, rearm: make(chan struct{}, 1),
		halls: map[ID][]*Waiter{}, calls: map[string]*Waiter{}, feeds: map[*Feed]struct{}{},
	}
}

// SetRedeemWindow changes how long an unused approval is kept, from now on.
func (g *Registry) SetRedeemWindow(d time.Duration) {
	g.mu.Lock()
	g.redeem = d
	g.mu.Unlock()
	g.wakeClock()
}

// Register registers a waiter, then opens the request or joins the one it equals. The request's Call, if any, is what
// its own retry finds this waiter by ([Registry.Rejoin]). created says that the request is new and has to be shown. The
// waiter must be ended with [Waiter.Leave] or [Waiter.Park].
func (g *Registry) Register(ctx context.Context, o Opening) (w *Waiter, r Request, created bool, err error) {
	w = &Waiter{registry: g, id: o.Request.ID, call: o.Request.Call, ring: make(chan rung, 1)}
	g.enter(w)
	r, created, err = g.store.Open(ctx, o)
	if err != nil {
		g.drop(w)
		return nil, Request{}, false, err
	}
	if created {
		if r.State != Pending { // held already
			w.ring <- rung{request: r}
		}
		g.publish(r)
		g.wakeClock()
		return w, r, true, nil
	}
	// Between Open's commit and this move the request may have been settled: the row is read again after it.
	g.drop(w)
	w.id = r.ID
	g.enter(w)
	if r, err = g.refresh(ctx, w); err != nil {
		g.drop(w)
		return nil, Request{}, false, err
	}
	return w, r, false, nil
}

// Rejoin finds the waiter that a call left parked. ok is false when there is none.
func (g *Registry) Rejoin(call string) (w *Waiter, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w, ok = g.calls[call]
	if !ok || w.parked == nil {
		return nil, false
	}
	w.parked.Stop()
	w.parked = nil
	return w, true
}

// Attach waits on a request that exists, as a reader: it rings like a waiter, but no approval is ever its own.
func (g *Registry) Attach(ctx context.Context, id ID) (*Waiter, Request, error) {
	w := &Waiter{registry: g, id: id, reader: true, ring: make(chan rung, 1)}
	g.enter(w)
	r, err := g.refresh(ctx, w)
	if err != nil {
		g.drop(w)
		return nil, Request{}, err
	}
	return w, r, nil
}

// refresh reads the row of a waiter that came late, rings if it is settled, and notes that somebody waits again.
func (g *Registry) refresh(ctx context.Context, w *Waiter) (Request, error) {
	r, err := g.store.Read(ctx, w.id)
	if err != nil {
		return Request{}, err
	}
	if r.State != Pending {
		select {
		case w.ring <- rung{request: r}:
		default: // it rang meanwhile
		}
		return r, nil
	}
	if !r.LeftAt.IsZero() {
		if c, err := g.Resolve(ctx, r.ID, Return{At: g.now()}); err == nil {
			r = c.After
		}
	}
	return r, nil
}

// Resolve applies an event and, once it is committed, rings whoever waits. The error is that of the store or of [Step].
func (g *Registry) Resolve(ctx context.Context, id ID, e Event) (Change, error) {
	c, err := g.store.Apply(ctx, id, e)
	if err != nil {
		return c, err
	}
	if c.Settled() {
		g.ringAll(c.After)
		g.wakeClock()
	}
	if c.Before.Revision != c.After.Revision {
		g.publish(c.After)
	}
	return c, nil
}

// Cancel withdraws a pending request.
func (g *Registry) Cancel(ctx context.Context, id ID, by, via string) (Change, error) {
	return g.Resolve(ctx, id, Withdraw{By: by, Via: via, At: g.now()})
}

// Waiting is how many wait for a request.
func (g *Registry) Waiting(id ID) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.halls[id])
}

// ringAll tells everybody who waits. An approval for once that was asked without a key goes to the call that waited
// longest; the other calls are told to ask anew.
func (g *Registry) ringAll(r Request) {
	exclusive := r.State == Approved && r.Scope == Once && r.Key == ""
	g.mu.Lock()
	defer g.mu.Unlock()
	taken := false
	for _, w := range g.halls[r.ID] {
		message := rung{request: r}
		if exclusive && !w.reader {
			if taken {
				message.err = ErrElsewhere
			}
			taken = true
		}
		select {
		case w.ring <- message:
		default: // it rang already
		}
	}
}

func (g *Registry) enter(w *Waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.halls[w.id] = append(g.halls[w.id], w)
	if w.call != "" {
		g.calls[w.call] = w
	}
}

func (g *Registry) drop(w *Waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remove(w)
}

// remove takes w out for good, and reports whether nobody else waits for its request. The lock is held.
func (g *Registry) remove(w *Waiter) (last bool) {
	if w.parked != nil {
		w.parked.Stop()
		w.parked = nil
	}
	if g.calls[w.call] == w {
		delete(g.calls, w.call)
	}
	hall := slices.DeleteFunc(g.halls[w.id], func(o *Waiter) bool { return o == w })
	g.halls[w.id] = hall
	if len(hall) == 0 {
		delete(g.halls, w.id)
	}
	return len(hall) == 0
}

// tellLeft notes on the request that nobody waits for it.
func (g *Registry) tellLeft(ctx context.Context, id ID) {
	_, err := g.Resolve(ctx, id, Leave{At: g.now()})
	if err != nil && ctx.Err() == nil {
		g.log.Error("nobody waits, and that cannot be stored", "request", id, "err", err)
	}
}

// Run keeps the deadlines until ctx ends: what is due expires, an approval that nobody comes for lapses. A store that
// cannot be read is tried again at the next tick.
func (g *Registry) Run(ctx context.Context) error {
	for {
		next, err := g.Sweep(ctx)
		if err != nil && ctx.Err() == nil {
			g.log.Error("deadlines cannot be kept just now", "err", err)
		}
		if err := g.sleep(ctx, next, err != nil); err != nil {
			return nil //nolint:nilerr // the end of ctx is the ordinary end of Run
		}
	}
}

// sleep returns when next has come on the wall clock, when a deadline may have been added, or, after a failure, at the
// next tick.
func (g *Registry) sleep(ctx context.Context, next time.Time, failed bool) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	if until := next.Sub(g.now()); !next.IsZero() && until > 0 && until < tick {
		ticker.Reset(until)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-g.rearm:
			return nil
		case <-ticker.C:
			if failed || (!next.IsZero() && !g.now().Before(next)) {
				return nil
			}
			if until := next.Sub(g.now()); !next.IsZero() && until < tick {
				ticker.Reset(max(until, time.Millisecond))
			}
		}
	}
}

// Sweep settles everything that is due now and says when something will be next (zero: nothing).
func (g *Registry) Sweep(ctx context.Context) (next time.Time, err error) {
	for {
		g.mu.Lock()
		redeem := g.redeem
		g.mu.Unlock()
		due, next, err := g.store.Due(ctx, g.now(), redeem, dueBatch)
		if err != nil {
			return time.Time{}, err
		}
		for _, d := range due {
			_, err := g.Resolve(ctx, d.ID, d.Event)
			if err != nil && !errors.Is(err, ErrSettled) && !errors.Is(err, ErrNotDue) { // somebody was faster
				return time.Time{}, err
			}
		}
		if len(due) < dueBatch {
			return next, nil
		}
	}
}

func (g *Registry) wakeClock() {
	select {
	case g.rearm <- struct{}{}:
	default:
	}
}
