// Package engine joins those who ask with those who are asked. It is an [agents.Asker] and a [connectors.Handler], and
// the desk at which the sockets ask how things stand.
//
// A request goes through it once: Ask (ask.go) drafts the row (draft.go) by policy and routes (route.go), registers the
// waiter and opens the row; dispatchers (dispatcher.go) bring every copy up to date; a person's answer comes in through
// OnPermission (permission.go), is checked against the row and committed, and the registry rings whoever waits.
// recover.go puts things right after a stop, in this order: what is overdue expires before anything old can be
// answered, then copies are brought up to date, then the doors open. engine/store keeps the rows.
//
// Beside that way: reconciler.go sees that everybody who is asked has a copy, notifier.go tells people what is no
// copy's business, groups.go knows where several people are asked at once, reroute.go asks anew when the settings change,
// pairing.go gives accounts to people, and suspend.go takes them away, as lock.go does all of a person's. What is asked and
// steered at the sockets is in operations.go.
// What people and agents of our own tell each other goes through chat.go and agenthost.go, and decides nothing. Those agents
// ask without waiting (residents.go), and are told what became of it (eventrelay.go).
package engine

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Engine routes, shows, settles and tells. It is safe for concurrent use.
type Engine struct {
	store       Store
	registry    *permissions.Registry
	dispatchers []*dispatcher
	hosts       []*agentHost // of our own agents
	reconciler  *reconciler
	eventRelay  *eventRelay              // nil: nobody is told
	settings    atomic.Pointer[Settings] // in force: base, with the accounts that people were paired with, without those that are suspended
	base        atomic.Pointer[Settings] // as the configuration has them
	stopped     atomic.Pointer[string]   // who stopped everything, or empty
	changed     permissions.Signal       // the settings have
	moved       atomic.Bool              // somebody's account is another one by them
	redrawn     atomic.Int64             // how often everything that was shown was to be brought up to date
	unsaved     permissions.Signal       // a lock, or a stop, could not be stored
	regretted   permissions.Signal       // there is one more in regrets
	clock       permissions.Clock
	pruning     time.Duration                     // see Options.PruneEvery
	steering    sync.Mutex                        // one stop or resume at a time
	stopping    func(context.Context) error       // stores a stop that is not yet; steering guards it
	pairing     sync.Mutex                        // one pairing at a time
	locking     sync.Mutex                        // one lock or unlocking at a time
	deciding    sync.RWMutex                      // held to read by what is decided, so that a lock comes before it or after
	moves       atomic.Pointer[map[string]string] // places that go by another name now
	lost        sync.Map                          // by channelChat: why nothing can be written there, a *string of each call of Lost
	away        time.Duration                     // see Away
	reminded    sync.Map                          // by person: the last [reminder]
	doubt       bool                              // the clock had been set back when the daemon started: older grants are not relied on
	log         *slog.Logger

	beginning chan struct{} // holds one for each call that begins

	mu        sync.Mutex
	pairings  []permissions.Pairing
	owners    map[string]string                       // see Settings
	bearers   map[permissions.Digest]map[*bearer]bool // by the hash of the token
	suspended []permissions.Suspension
	locks     []permissions.Lock
	invited   map[string]invited          // by code
	prompts   map[string]*rate.Limiter    // by caller
	auto      map[[2]string]*rate.Limiter // by caller and pattern; see tooOften
	tellings  map[[2]string]*rate.Limiter // by caller and kind; see [Engine.Tell]
	rows      map[string]*rate.Limiter    // that are stored for a caller
	bytes     map[string]*rate.Limiter    // of what is stored for a caller
	refusals  map[connectors.Identity]*rate.Limiter
	recent    recentDecisions
	unrouted  map[string]bool              // callers whom no route matches, as the log says
	regrets   map[permissions.ID]time.Time // when to withdraw what a cancelled call asked; see Regret
}

var (
	_ agents.Asker       = (*Engine)(nil)
	_ connectors.Handler = (*Engine)(nil)
)

// Options are the parts of an engine. All but Residents, Witness, Elapsed and PruneEvery are required.
type Options struct {
	Store        Store
	Connectors   []connectors.Connector
	Residents    []agents.Resident
	EventHandler agents.EventHandler // of what agents of ours ask at the [Engine.Approvals]; nil: nobody
	Settings     Settings
	Now          func() time.Time
	Elapsed      func() time.Duration // see [permissions.Clock]; nil: the machine's own
	PruneEvery   time.Duration        // how often what is too old is deleted, for the first time after as long; 0: an hour
	Log          *slog.Logger
}

// New joins the parts. It starts nothing: call [Engine.Recover], then [Engine.Run].
func New(o Options) *Engine {
	clock := permissions.Clock{Now: o.Now, Elapsed: o.Elapsed}
	if clock.Elapsed == nil {
		clock.Elapsed = elapsed
	}
	e := &Engine{
		store: o.Store, clock: clock, log: o.Log, changed: permissions.NewSignal(), unsaved: permissions.NewSignal(),
		stopping: func(context.Context) error { return nil }, pruning: cmp.Or(o.PruneEvery, pruneEvery),
		registry: permissions.NewRegistry(o.Store, clock, o.Settings.Approvals.RedeemWindow, o.Log),
		invited:  map[string]invited{}, prompts: map[string]*rate.Limiter{}, auto: map[[2]string]*rate.Limiter{},
		tellings: map[[2]string]*rate.Limiter{},
		rows:     map[string]*rate.Limiter{}, bytes: map[string]*rate.Limiter{},
		refusals:  map[connectors.Identity]*rate.Limiter{},
		bearers:   map[permissions.Digest]map[*bearer]bool{},
		unrouted:  map[string]bool{},
		regrets:   map[permissions.ID]time.Time{},
		regretted: permissions.NewSignal(),
		recent:    recentDecisions{all: map[decisionKey]recentDecision{}, refused: map[decisionKey]refusedOnce{}},
		beginning: make(chan struct{}, mostBegun),
	}
	e.base.Store(&o.Settings)
	e.settings.Store(&o.Settings) // Recover reads the pairings
	e.moves.Store(&map[string]string{})
	e.noteStop("")
	e.changed.Notify() // since the daemon was here last, perhaps
	e.reconciler = newReconciler(e)
	for _, c := range o.Connectors {
		e.dispatchers = append(e.dispatchers, newDispatcher(e, c))
	}
	e.hosts = newAgentHosts(e, o.Residents)
	if o.EventHandler != nil {
		e.eventRelay = &eventRelay{engine: e, witness: o.EventHandler}
	}
	return e
}

// Configure swaps the settings. Requests that are pending keep what they were opened with, but for who is asked: people
// who are gone are asked no longer, and people whom the routes ask now are asked as well.
func (e *Engine) Configure(s Settings) {
	if was := e.base.Swap(&s); was != nil && readdressed(was.People, s.People) {
		e.moved.Store(true)
	}
	e.refill()
	e.registry.SetRedeemWindow(s.Approvals.RedeemWindow)
	e.mu.Lock()
	clear(e.prompts)
	clear(e.auto)
	clear(e.rows)
	clear(e.bytes)
	clear(e.unrouted)
	e.mu.Unlock()
	e.realignSoon()
}

// Run keeps deadlines and shows what is to be shown, until ctx ends.
func (e *Engine) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.registry.Run(ctx) })
	group.Go(func() error { return e.follow(ctx) })
	group.Go(func() error { return e.noteAbsence(ctx) })
	group.Go(func() error { return e.carryOut(ctx) })
	group.Go(func() error { return e.reroute(ctx) })
	group.Go(func() error { return e.keepLocks(ctx) })
	group.Go(func() error { return e.sendNotices(ctx) })
	group.Go(func() error { return e.prune(ctx) })
	group.Go(func() error { return e.heartbeat(ctx) })
	group.Go(func() error { return e.reconciler.run(ctx, e.reconciler.reconcile) })
	if e.eventRelay != nil {
		group.Go(func() error { return e.eventRelay.run(ctx) })
	}
	for _, c := range e.dispatchers {
		group.Go(func() error { return c.run(ctx) })
	}
	for _, h := range e.hosts {
		group.Go(func() error { return h.run(ctx) })
	}
	return group.Wait()
}

// follow tells the dispatchers and the reconciler of every change. When it falls behind, the rows say what was missed.
func (e *Engine) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		feed := e.registry.Subscribe(feedBuffer)
		err := e.catchUp(ctx)
		if err == nil {
			e.relay(ctx, feed)
		}
		feed.Close()
		if err != nil && ctx.Err() == nil {
			e.log.Error("copies cannot be listed just now", "err", err)
			_ = permissions.Pause(ctx, retryDelay) // ctx is looked at above
		}
	}
	return nil
}

// retryDelay is how long after a failure of the store the same is tried once more.
const retryDelay = time.Second

// noting is for what is to be noted about a caller or a chat, whether or not they are still there.
func noting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), storeTime)
}

// feedBuffer is how many changes may come while the dispatchers are being told of others.
const feedBuffer = 4096

func (e *Engine) relay(ctx context.Context, feed *permissions.Feed) {
	for {
		select {
		case <-ctx.Done():
			return
		case r, open := <-feed.C:
			if !open {
				return
			}
			e.enqueue(r.ID)
			if r.State == permissions.Pending && r.Revision > 1 { // perhaps others are asked now
				e.reconciler.Enqueue(r.ID)
			}
		}
	}
}

// limiter is the bucket of one key, which holds n and is filled in the time per; it is made when it is first needed.
func limiter[K comparable](e *Engine, buckets map[K]*rate.Limiter, key K, n int, per time.Duration) *rate.Limiter {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, ok := buckets[key]
	if !ok {
		b = rate.NewLimiter(rate.Limit(float64(n)/per.Seconds()), n)
		buckets[key] = b
	}
	return b
}
