// Package engine coordinates permission requests. It implements [agents.Asker] for agents and [connectors.Services] for
// chat channels, and answers the queries of both sockets (operations.go).
//
// A request passes through the engine once. Ask (ask.go) builds the request from policy and routes (draft.go,
// engine/directory), registers a waiter and inserts the row. The dispatchers (dispatcher.go) then send a prompt to every
// recipient and keep all prompts up to date; the reconciler (reconciler.go) decides who still needs one. An answer
// arrives in OnPermission (permission.go), which validates it against the row, commits it, and wakes the waiter.
//
// After a restart, recover.go expires overdue requests before it accepts any answer, then refreshes the prompts, then
// lets the servers accept connections. The rows are kept by engine/store.
//
// The notifier (notifier.go) sends everything that is not a prompt. Changed settings re-route pending requests
// (reroute.go). Who is who, and whose accounts are suspended, is in engine/directory; people are locked in lock.go.
//
// Messages between people and the daemon's own agents pass through engine/agenthost and decide nothing. These agents ask
// without waiting (residents.go) and learn the outcome from its event relay.
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
	"github.com/daycared/daycared/engine/agenthost"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/registry"
	"github.com/daycared/daycared/permissions/timing"
)

// Engine routes requests, delivers prompts, settles answers and sends notices. It is safe for concurrent use.
type Engine struct {
	*directory.Directory
	*agenthost.Hosts

	store       Store
	registry    *registry.Registry
	dispatchers []*dispatcher
	reconciler  *reconciler
	stopped     atomic.Pointer[connectors.Stop]
	changed     timing.Signal // the settings changed
	moved       atomic.Bool   // the changed settings gave a person another account
	redrawn     atomic.Int64  // counts the refreshes of all prompts
	unsaved     timing.Signal // a lock or a stop could not be stored
	regretted   timing.Signal // regrets has a new entry
	clock       timing.Clock
	pruning     time.Duration                     // see Options.PruneEvery
	steering    sync.Mutex                        // one stop or resume at a time
	over        chan struct{}                     // closed at the next resume; guarded by steering
	stopping    func(context.Context) error       // stores a stop that is not stored yet; guarded by steering
	locking     sync.Mutex                        // one lock or unlocking at a time
	deciding    sync.RWMutex                      // read-locked by each decision, so that a lock is ordered before or after it
	moves       atomic.Pointer[map[string]string] // groups that have another id now
	lost        sync.Map                          // by channelChat: why a chat cannot be written to, one *string per call of ChatLost
	away        time.Duration                     // see Away
	reminded    sync.Map                          // by person: the last [reminder]
	doubt       bool                              // the clock had been set back at startup: older grants are not used
	log         *slog.Logger

	beginning chan struct{} // a semaphore for calls that begin

	mu       sync.Mutex
	bearers  map[permissions.Digest]map[*bearer]bool // by the hash of the token
	prompts  map[string]*rate.Limiter                // by caller
	auto     map[[3]string]*rate.Limiter             // by caller, pattern of tools.auto and that of the rate; see tooOften
	tellings map[[2]string]*rate.Limiter             // by caller and kind; see [Engine.Tell]
	rows     map[string]*rate.Limiter                // stored for a caller
	bytes    map[string]*rate.Limiter                // stored for a caller
	refusals map[connectors.Identity]*rate.Limiter
	recent   recentDecisions
	unrouted map[string]bool              // callers without a route that have been logged
	regrets  map[permissions.ID]time.Time // when to withdraw the request of a cancelled call; see Regret
}

var (
	_ agents.Asker        = (*Engine)(nil)
	_ connectors.Services = (*Engine)(nil)
)

// The settings of an engine are those of its directory.
type (
	Settings  = directory.Settings
	Route     = directory.Route
	Approvals = directory.Approvals
	Moment    = directory.Moment
	Limits    = directory.Limits
)

// OperatorName is the person who runs the daemon when the configuration names nobody with that account.
const OperatorName = directory.OperatorName

// Options are the parts of an engine. All but Residents, EventHandler, Elapsed and PruneEvery are required.
type Options struct {
	Store        Store
	Residents    []agents.Resident
	EventHandler agents.EventHandler // for requests and approvals of the daemon's own agents; nil: none
	Settings     directory.Settings
	Now          func() time.Time
	Elapsed      func() time.Duration // see [timing.Clock]; nil: the machine's own
	PruneEvery   time.Duration        // the interval of deleting expired rows, and the delay of the first run; 0: an hour
	Log          *slog.Logger
}

// New makes an engine without channels. It starts nothing: call [Engine.Connect], [Engine.Recover], then [Engine.Run].
func New(o Options) *Engine {
	clock := timing.Clock{Now: o.Now, Elapsed: o.Elapsed}
	if clock.Elapsed == nil {
		clock.Elapsed = timing.Elapsed
	}
	e := &Engine{
		store: o.Store, clock: clock, log: o.Log, changed: timing.NewSignal(), unsaved: timing.NewSignal(),
		stopping: func(context.Context) error { return nil }, pruning: cmp.Or(o.PruneEvery, pruneEvery),
		registry: registry.New(o.Store, clock, o.Settings.Approvals.RedeemWindow, o.Log),
		prompts:  map[string]*rate.Limiter{}, auto: map[[3]string]*rate.Limiter{},
		tellings: map[[2]string]*rate.Limiter{},
		rows:     map[string]*rate.Limiter{}, bytes: map[string]*rate.Limiter{},
		refusals:  map[connectors.Identity]*rate.Limiter{},
		bearers:   map[permissions.Digest]map[*bearer]bool{},
		unrouted:  map[string]bool{},
		regrets:   map[permissions.ID]time.Time{},
		regretted: timing.NewSignal(),
		recent: recentDecisions{
			all: map[decisionKey]recentDecision{}, over: map[permissions.ID]time.Time{}, refused: map[decisionKey]refusedOnce{},
		},
		beginning: make(chan struct{}, mostBegun),
		over:      make(chan struct{}),
	}
	e.recent.since = e.clock.Stamp()
	e.Directory = directory.New(directory.Config{
		Store: o.Store, Settings: o.Settings, Clock: clock, Log: o.Log,
		Changed: func() { e.forgetDecisions(nil) }, Realign: e.realignSoon, Recovered: e.ChatRecovered,
	})
	e.moves.Store(&map[string]string{})
	e.noteStop("", time.Time{})
	e.changed.Notify() // they may have changed while the daemon was down
	e.reconciler = newReconciler(e)
	e.Hosts = agenthost.New(agenthost.Config{
		Store: o.Store, Directory: e.Directory, Residents: o.Residents, EventHandler: o.EventHandler, Clock: clock, Log: o.Log,
	})
	return e
}

// Connect adds channels, which were made with e as their [connectors.Services], in the order in which people are asked there.
func (e *Engine) Connect(channels ...connectors.Connector) {
	e.Directory.Connect(channels...)
	for _, c := range channels {
		e.dispatchers = append(e.dispatchers, newDispatcher(e, c))
	}
}

// Configure replaces the settings. Pending requests keep everything except their recipients: people who are gone are no
// longer asked, and people whom the routes name now are added.
func (e *Engine) Configure(s directory.Settings) {
	moved := e.Directory.Configure(s)
	e.registry.SetRedeemWindow(s.Approvals.RedeemWindow)
	e.mu.Lock()
	clear(e.prompts)
	clear(e.auto)
	clear(e.rows)
	clear(e.bytes)
	clear(e.unrouted)
	e.mu.Unlock()
	e.realignSoon(moved)
}

// Run enforces deadlines and delivers prompts and notices until ctx ends.
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
	group.Go(func() error { return e.Hosts.Run(ctx) })
	for _, c := range e.dispatchers {
		group.Go(func() error { return c.run(ctx) })
	}
	return group.Wait()
}

// follow passes every change to the dispatchers and the reconciler. After an overflow of the feed it rescans the rows.
func (e *Engine) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		feed := e.registry.Subscribe(feedBuffer)
		err := e.catchUp(ctx)
		if err == nil {
			e.relay(ctx, feed)
		}
		feed.Close()
		if err != nil && ctx.Err() == nil {
			e.log.Error("list stale prompts: retrying", "err", err)
			_ = timing.Pause(ctx, shared.RetryDelay) // the loop checks ctx
		}
	}
	return nil
}

// feedBuffer is how many changes a feed holds before it overflows.
const feedBuffer = 4096

func (e *Engine) relay(ctx context.Context, feed *registry.Feed) {
	for {
		select {
		case <-ctx.Done():
			return
		case r, open := <-feed.C:
			if !open {
				return
			}
			e.enqueue(r.ID)
			if r.State == permissions.Pending && r.Revision > 1 { // the recipients may have changed
				e.reconciler.Enqueue(r.ID)
			}
		}
	}
}

// limiter returns the bucket of a key, which holds n tokens and refills within per. It is created on first use.
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
