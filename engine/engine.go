// Package engine coordinates permission requests. It implements [agents.Asker] for agents and [connectors.Services] for
// chat channels, and answers the queries of both sockets (operations.go).
//
// A request passes through the engine once. Ask (ask.go) builds the request from policy and routes (draft.go), registers a
// waiter and inserts the row. An answer arrives in OnPermission (permission.go), which validates it against the row,
// commits it, and wakes the waiter. Our own agents ask without waiting (residents.go).
//
// The engine is a thin facade over three services. Who is who and who is asked is in engine/directory; prompts and
// notices are sent by engine/dispatch; engine/agenthost runs the daemon's own agents. The rows are kept by engine/store.
//
// After a restart, recover.go expires overdue requests before it accepts any answer, then refreshes the prompts, then
// lets the servers accept connections.
package engine

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/agenthost"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/dispatch"
	"github.com/daycared/daycared/internal/aside"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/registry"
	"github.com/daycared/daycared/permissions/timing"
)

// services are what every part of the engine stands on.
type services struct {
	*directory.Directory
	*agenthost.Hosts
	*dispatch.Dispatch

	store      Store
	registry   *registry.Registry
	clock      timing.Clock
	log        *slog.Logger
	offers     trustOffers
	awaitLease func(context.Context) bool // see Options.AwaitLease
	aside      aside.Pool
}

// Engine opens requests and settles answers. It is safe for concurrent use.
type Engine struct {
	*services
	*stops
	*tokens
	*waits
	*locks
	*journal
	*suggestions
	*trusts
	*others

	pruning      time.Duration // see Options.PruneEvery
	clockSetBack bool          // the clock had been set back at startup: older grants are not used
	beginning    chan struct{} // a semaphore for calls that begin
	shares       *aside.Shares // how many of them are whose
	looks        own.Watched   // look-ups of what callers name

	mu       sync.Mutex
	prompts  map[string]*rate.Limiter    // by caller
	auto     map[[3]string]*rate.Limiter // by caller, pattern of tools.auto and that of the rate; see takeAutoTokens
	tellings map[[2]string]*rate.Limiter // by caller and kind; see [Engine.Tell]
	rows     map[string]*rate.Limiter    // stored for a caller
	bytes    map[string]*rate.Limiter    // stored for a caller
	refusals map[connectors.Identity]*rate.Limiter
	denials  map[string]*rate.Limiter // by caller, see noteDenied
	recent   recentDecisions
	unrouted map[string]bool                    // callers without a route that have been logged
	rules    map[string]permissions.GrantedRule // that people were shown, see [Engine.ruleShown]
}

var (
	_ agents.Asker        = (*Engine)(nil)
	_ connectors.Services = (*Engine)(nil)
)

// What the settings consist of is declared by the directory.
type (
	// Settings are [directory.Settings].
	Settings = directory.Settings
	// Route is [directory.Route].
	Route = directory.Route
	// Approvals are [directory.Approvals].
	Approvals = directory.Approvals
	// Moment is [directory.Moment].
	Moment = directory.Moment
	// Limits are [directory.Limits].
	Limits = directory.Limits
)

// OperatorName is the person who runs the daemon when the configuration names nobody with that account.
const OperatorName = directory.OperatorName

// Options are the parts of an engine. All but Residents, EventHandler, Elapsed, PruneEvery, AwaitLease and CheckLease are required.
type Options struct {
	Store        Store
	Residents    []agents.Resident
	EventHandler agents.EventHandler // for requests and approvals of the daemon's own agents; nil: none
	Settings     directory.Settings
	Now          func() time.Time
	Elapsed      func() time.Duration // see [timing.Clock]; nil: the machine's own
	PruneEvery   time.Duration        // the interval of deleting expired rows, and the delay of the first run; 0: an hour
	// AwaitLease returns true when this daemon is the one of several on the same store that sends, runs agents and prunes, and false when its
	// context ends before that; nil: there are no others. They all ask and decide.
	AwaitLease func(context.Context) bool
	// CheckLease returns nil while that is so; see [dispatch.Config]; nil: always.
	CheckLease func(context.Context) error
	Log        *slog.Logger
}

// New makes an engine without channels. It starts nothing: call [Engine.Connect], [Engine.Recover], then [Engine.Run].
func New(o Options) *Engine {
	clock := timing.Clock{Now: o.Now, Elapsed: o.Elapsed}
	if clock.Elapsed == nil {
		clock.Elapsed = timing.Elapsed
	}
	if o.CheckLease == nil {
		o.CheckLease = func(context.Context) error { return nil }
	}
	e := &Engine{
		services: &services{
			store: o.Store, clock: clock, log: o.Log,
			registry:   registry.New(o.Store, clock, o.Settings.Approvals.RedeemWindow, o.Log),
			offers:     trustOffers{at: map[trustOffer]time.Time{}},
			awaitLease: o.AwaitLease, aside: aside.NewPool(),
		},
		pruning: cmp.Or(o.PruneEvery, pruneEvery),
		prompts: map[string]*rate.Limiter{}, auto: map[[3]string]*rate.Limiter{},
		tellings: map[[2]string]*rate.Limiter{},
		rows:     map[string]*rate.Limiter{}, bytes: map[string]*rate.Limiter{},
		refusals: map[connectors.Identity]*rate.Limiter{}, denials: map[string]*rate.Limiter{},
		unrouted: map[string]bool{}, rules: map[string]permissions.GrantedRule{},
		recent: recentDecisions{
			all: map[decisionKey]recentDecision{}, over: map[permissions.ID]time.Time{}, refused: map[decisionKey]refusedOnce{},
		},
		beginning: make(chan struct{}, maxBegun), shares: aside.NewShares(maxShare),
	}
	e.recent.since = e.clock.Stamp()
	e.stops = newStops(e.services, e.forgetDecisions)
	e.tokens = &tokens{
		services: e.services, forget: e.forgetDecisions, steering: e.stops.steering, bearers: map[permissions.Digest]map[*bearer]bool{},
	}
	e.waits = &waits{services: e.services, cancelAt: map[permissions.ID]time.Time{}, cancelScheduled: timing.NewSignal()}
	e.locks = &locks{services: e.services, stops: e.stops, forget: e.forgetDecisions}
	e.journal = &journal{services: e.services}
	e.suggestions = &suggestions{e.services}
	e.trusts = &trusts{e.services}
	e.others = &others{services: e.services, stops: e.stops, locks: e.locks, tokens: e.tokens, forget: e.forgetDecisions}
	e.Directory = directory.New(directory.Config{
		Store: o.Store, Settings: o.Settings, Clock: clock, Log: o.Log,
		Changed: func() { e.forgetDecisions(nil) }, Realign: func(moved bool) { e.RealignSoon(moved) },
		Recovered: func(ctx context.Context, via, person, group string) error {
			return e.ChatRecovered(ctx, via, person, group)
		},
		Noticed: e.registry.NotifyNotices, ReadsChats: func() bool { return e.IsSender() },
	})
	e.registry.Locked = func() []string { return e.Settings().Locked() }
	e.Dispatch = dispatch.New(dispatch.Config{
		Store: o.Store, Directory: e.Directory, Registry: e.registry, Clock: clock, Log: o.Log, History: o.Store.History,
		AwaitLease: o.AwaitLease, CheckLease: o.CheckLease,
	})
	e.Hosts = agenthost.New(agenthost.Config{
		Store: o.Store, Directory: e.Directory, Residents: o.Residents, EventHandler: o.EventHandler, Clock: clock, Log: o.Log,
		AwaitLease: o.AwaitLease, CheckLease: o.CheckLease,
	})
	return e
}

// Connect adds channels, which were made with e as their [connectors.Services], in the order in which people are asked there.
func (e *Engine) Connect(channels ...connectors.Connector) {
	e.Directory.Connect(channels...)
	e.Dispatch.Connect(channels...)
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
	e.RealignSoon(moved)
}

// Run enforces deadlines and delivers prompts and notices until ctx ends.
func (e *Engine) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.registry.Run(ctx) })
	group.Go(func() error { return e.Dispatch.Run(ctx) })
	group.Go(func() error { return e.withdrawDue(ctx) })
	group.Go(func() error { return e.keepLocks(ctx) })
	group.Go(func() error { return e.runWithLease(ctx, e.prune) })
	group.Go(func() error { return e.runWithLease(ctx, e.heartbeat) })
	group.Go(func() error { return e.NoteMissing(ctx) })
	group.Go(func() error { return e.Hosts.Run(ctx) })
	return group.Wait()
}

// maxBuckets is how many buckets there are before full ones are dropped.
const maxBuckets = 1024

// limiter returns the bucket of a key, which holds n tokens and refills within per. It is created on first use. Full ones, which are as
// good as new, are dropped whenever their number has doubled.
func limiter[K comparable](e *Engine, buckets map[K]*rate.Limiter, key K, n int, per time.Duration) *rate.Limiter {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, ok := buckets[key]
	if !ok {
		if has := len(buckets); has >= maxBuckets && has&(has-1) == 0 {
			now := e.clock.Now()
			maps.DeleteFunc(buckets, func(_ K, b *rate.Limiter) bool { return b.TokensAt(now) >= float64(b.Burst()) })
		}
		b = rate.NewLimiter(rate.Limit(float64(n)/per.Seconds()), n)
		buckets[key] = b
	}
	return b
}
