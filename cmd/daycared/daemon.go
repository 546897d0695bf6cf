package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/agents/hooks"
	"github.com/daycared/daycared/agents/mcp"
	"github.com/daycared/daycared/agents/runtime"
	"github.com/daycared/daycared/agents/tools/remote"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/telegram"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/connectors/whatsapp"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// daemon wires the parts together. It starts the data directory (locked), store, engine, recovery, and sockets, in this order,
// and undoes completed steps if a later one fails. It stops in reverse order: servers first, the store last.
type daemon struct {
	cfg          *config.Config
	paths        config.Paths
	log          *slog.Logger
	rows         *store.Store
	held         chan struct{} // closed when hold returns
	engine       *engine.Engine
	own          *runtime.Runtime // agents that use a model
	servers      []*remote.Server // their MCP servers
	parts        []connectors.Connector
	agents       *api.Server
	bot          *telegram.Connector // nil if disabled
	zones        zones
	began        engine.Settings    // as of the start
	inForce      engine.Settings    // as of the last reload; used by one goroutine
	anyone       atomic.Bool        // callers over TCP need no token
	gauges       http.Handler       // of the engine, once it exists
	stopping     chan struct{}      // closed when the daemon stops, before any call ends
	console      *terminal.Terminal // nil if disabled
	closed       func()             // called when the console has closed
	self         admin.Daemon       // as of the start
	heads        *publisher         // of the audit; nil: none
	ending       chan struct{}      // closed by end
	lost         chan error         // why the store is of no use any more
	endOnce      sync.Once
	dir          *dataDir
	key          string                // the operator's
	stopNotReady func()                // stops answering agents during the start
	notReady     atomic.Pointer[error] // why, during the start
	floor        []byte                // never touched, so it takes no memory; with it a small heap is collected less often

	mu      sync.Mutex // guards what follows
	read    time.Time  // when the configuration was last read
	refused string     // why the last reload was refused; empty: it was not

	closers []func() error
	once    sync.Once
}

// residents are agents that are not in the configuration; only tests set it.
var residents = func() []agents.Resident { return nil }

// newDaemon starts all parts; when it returns, the sockets listen. closed is called when the console closes. Also on error, dir is closed.
func newDaemon(
	ctx context.Context, c *CLI, cfg *config.Config, paths config.Paths, log *slog.Logger, closed func(), dir *dataDir,
) (*daemon, error) {
	d := &daemon{
		cfg: cfg, paths: paths, log: log, closed: closed, stopping: make(chan struct{}), ending: make(chan struct{}), lost: make(chan error, 1),
		held:    make(chan struct{}),
		closers: []func() error{dir.Close}, dir: dir, stopNotReady: func() {},
	}
	d.self, d.read = c.describe(cfg, paths), time.Now().UTC()
	err := retryWhileFull(ctx, func() error {
		err := d.start(ctx, c)
		if err != nil {
			err = errors.Join(err, d.undo(1))
		}
		return err
	}, func(err error) {
		log.Error("disk full, retrying the start", "err", err)
		d.serveNotReady(err)
	})
	d.stopNotReady()
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// start starts the parts in order. Close undoes what was started.
func (d *daemon) start(ctx context.Context, c *CLI) error {
	cfg, paths, log := d.cfg, d.paths, d.log
	if err := d.identify(); err != nil {
		return err
	}
	stored := storeOptions(paths, log)
	stored.Progress, stored.Lost = d.migrating, d.replaced
	rows, err := store.Open(ctx, stored)
	if err != nil {
		return err
	}
	d.rows, d.closers = rows, append(d.closers, rows.Close)
	d.heads = newPublisher(cfg.Audit.Heads, rows.Head, log)
	current, err := settings(cfg, paths, c.UID)
	if err != nil {
		return err
	}
	if err := checkConsoleAgents(cfg, current); err != nil {
		return err
	}
	d.began, d.inForce = current, current
	d.zones.set(current.People)
	d.noteSettings(cfg)
	options := engine.Options{
		Store: hookStore(rows), Residents: residents(), Settings: current, Now: rows.Now, Log: log,
	}
	if paths.Database != "" {
		options.AwaitLease, options.CheckLease = d.awaitLease, rows.CheckLeases
	}
	bind, err := d.createAgents(c, &options, hookSessions(rows))
	if err != nil {
		return err
	}
	d.engine = engine.New(options)
	bind(d.engine.Approvals())
	people, err := d.connect(c)
	if err != nil {
		return err
	}
	d.gauges = metrics(d.engine, rows, log)
	if err := d.engine.Recover(ctx); err != nil {
		return fmt.Errorf("recover what was pending: %w", err)
	}
	d.anyone.Store(cfg.API.AllowAnonymous)
	d.agents = d.forAgents()
	d.stopNotReady() // the server needs the socket
	return errors.Join(people.Listen(), d.agents.Listen())
}

// connect makes the channels, which hand what people do to the engine, and connects them with it.
func (d *daemon) connect(c *CLI) (*admin.Connector, error) {
	o := admin.Options{
		Socket: d.paths.AdminSocket, Group: d.cfg.API.AdminGroup, Key: admin.Key(d.key),
		AdminReachable: d.cfg.API.AdminReachable, Zone: d.zones.of, Now: d.rows.Now, Log: d.log,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.gauges.ServeHTTP(w, r) }), Daemon: d.describe, Stop: d.end,
	}
	if d.paths.Database != "" {
		o.NoteInboxes, o.HasInbox = d.rows.NoteInboxes, d.rows.HasInbox
	}
	people := admin.New(o, d.engine)
	d.parts = []connectors.Connector{hookAdmin(people)}
	if d.cfg.Connectors.Terminal.Enabled {
		d.console = terminal.New(terminal.Options{
			In: c.In, Out: c.Out, UID: c.UID, Self: d.began.Operator().Name, Now: time.Now, Log: d.log, Closed: d.closed,
			Leave: "Ctrl-C ends the daemon, and so does, from another shell: daycared" + c.sameConfig() + " stop",
		}, d.engine)
		d.parts = append(d.parts, hookTerminal(d.console))
	}
	bot, err := c.telegramConnector(d.cfg, d.engine, d.log)
	if err != nil {
		return nil, err
	}
	if bot != nil {
		d.bot = bot
		d.parts = append(d.parts, hookTelegram(bot))
	}
	if account := whatsappConnector(d.cfg, d.paths, hookInbound(d.engine), sharedAccount(d.rows), d.log); account != nil {
		d.parts = append(d.parts, hookWhatsApp(account))
	}
	d.engine.Connect(d.parts...)
	return people, nil
}

// identify writes the lock's owner, if there was no disk space for that before, and reads the operator's key.
func (d *daemon) identify() error {
	if !d.dir.signed {
		if err := d.dir.sign(d.dir.self); err != nil {
			return fmt.Errorf("write the lock of the data directory: %w", err)
		}
	}
	key, replaced, err := adminKey(d.paths.AdminKey)
	if replaced && err == nil {
		d.log.Warn("the admin key was broken and is replaced by a new one", "path", d.paths.AdminKey)
	}
	d.key = key
	return err
}

func storeOptions(paths config.Paths, log *slog.Logger) store.Options {
	return store.Options{
		Path: filepath.Join(paths.DataDir, storeName), Server: paths.Database, Now: hookNow, Log: log, KeyFile: paths.AuditKey,
	}
}

func (d *daemon) forAgents() *api.Server {
	tools := mcp.New(mcp.Options{
		Requests: d.engine, CallerOf: api.CallerOf, Version: version, BehindProxy: d.cfg.API.BehindProxy, Log: d.log,
	})
	return api.New(api.Options{
		Requests: d.engine, Socket: d.paths.AgentSocket, Group: d.cfg.API.AgentGroup, TCP: overTCP(d.cfg.API, d.anyone.Load), Log: d.log,
		Metrics: d.gauges, Mounts: map[string]http.Handler{
			"/mcp":                 tools.Handler(),
			"GET /v1/events":       admin.Events(d.follow, func() <-chan struct{} { return d.engine.Changed() }),
			"POST /hook/{dialect}": hooks.Handler(hooks.Options{Requests: d.engine, CallerOf: api.CallerOf, Stopping: d.stopping}),
		},
	})
}

// follow returns the events that the calling agent may see.
func (d *daemon) follow(r *http.Request) admin.Look {
	caller, query, counted := api.CallerOf(r.Context()), r.URL.Query(), false
	session, agent := query.Get("session"), query.Get("agent")
	return func(ctx context.Context, after int64, limit int) ([]permissions.Event, int64, error) {
		list, seen, err := d.engine.EventsFor(ctx, caller, session, agent, after, limit)
		if err == nil && !counted {
			counted, err = true, d.engine.CountFollow(ctx, caller, session, agent)
		}
		return list, seen, err
	}
}

// overTCP configures the listener for remote agents; nil without one.
func overTCP(a config.API, allowed func() bool) *api.TCP {
	if a.Listen == "" {
		return nil
	}
	return &api.TCP{
		Address: a.Listen, CertFile: a.TLSCertFile, KeyFile: a.TLSKeyFile, BehindProxy: a.BehindProxy, Hosts: a.Hosts,
		AllowAnonymous: allowed,
	}
}

// createAgents creates the daemon's agents and adds them to the engine's options. They must be bound to the engine before they run.
func (d *daemon) createAgents(c *CLI, o *engine.Options, rows runtime.Store) (bind func(agents.Approvals), err error) {
	held := newSandbox(d.cfg, o.Settings)
	if d.own, d.servers, err = c.ownAgents(d.cfg, o.Settings, held, rows, d.log); err != nil {
		return nil, err
	}
	o.Residents = append(d.own.Residents(), o.Residents...)
	told, others := eventHandlers{d.own}, c.acpAgents(d.cfg, o.Settings, held, rows, d.log)
	for _, a := range others {
		o.Residents, told = append(o.Residents, a), append(told, a)
	}
	if len(d.cfg.Agents) > 0 { // without agents, handling every event is wasted work
		o.EventHandler = told
	}
	return func(approvals agents.Approvals) {
		d.own.Bind(approvals)
		for _, a := range others {
			a.Bind(approvals)
		}
	}, nil
}

// run serves until ctx ends or end is called, then closes everything.
func (d *daemon) run(ctx context.Context) error {
	d.floor = make([]byte, 16<<20)
	ctx, stopNow := context.WithCancel(ctx)
	defer stopNow()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		select {
		case <-ctx.Done():
		case <-d.ending:
			stopNow()
		}
		return nil
	})
	group.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case err := <-d.lost:
			return err
		}
	})
	group.Go(func() error { return d.engine.Run(ctx) })
	if quiet, is := d.log.Handler().(repeatFilter); is {
		group.Go(func() error {
			quiet.outage.watch(ctx, d.log, d.engine.Ready)
			return nil
		})
	}
	group.Go(func() error {
		for missing := map[string]bool{}; timing.Pause(ctx, filesInterval) == nil; {
			d.keepFiles(missing)
		}
		return nil
	})
	group.Go(func() error { return d.leaseChats(ctx) })
	group.Go(func() error { return d.rows.Follow(ctx, d.engine.ApplyEntries) })
	group.Go(func() error { return d.runWithLease(ctx, d.own.Run) })
	group.Go(func() error { return d.heads.run(ctx) })
	for _, s := range d.servers {
		group.Go(func() error { return d.runWithLease(ctx, s.Run) })
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	context.AfterFunc(ctx, func() {
		close(d.stopping) // before calls end, so that a stop is not mistaken for a client that left
		stop()
	})
	group.Go(func() error { return d.agents.Run(serving) })
	for _, part := range d.parts {
		run := part.Run
		if _, chat := part.(connectors.Chat); chat {
			run = func(ctx context.Context) error { return d.runWithLease(ctx, part.Run) }
		}
		group.Go(func() error { return run(ctx) })
	}
	err := group.Wait()
	d.heads.last()
	return errors.Join(err, d.Close())
}

// end stops the daemon in order. It may be called more than once, and does not wait.
func (d *daemon) end(why string) {
	d.endOnce.Do(func() {
		d.log.Info("stopping", "why", why)
		close(d.ending)
	})
}

// errNobodyLeft refuses a configuration after which the operator would be asked everything.
var errNobodyLeft = errors.New("it names nobody any more, and then everything would be the operator's to decide; " +
	"to run without people, start the daemon again")

// reload reads the configuration and swaps it in, unless it is invalid, others can write it, or it names nobody.
func (d *daemon) reload(c *CLI) {
	cfg, err := config.Load(d.cfg.File, c.Environ)
	var next engine.Settings
	if err == nil {
		next, err = settings(cfg, d.paths, c.UID)
	}
	if err == nil {
		if exposed := c.inspection(cfg, d.paths, accountOf(c.UID)).writableByOthers(); len(exposed) > 0 {
			err = exposed
		}
	}
	if err == nil && len(next.People) == 0 && len(d.inForce.People) > 0 {
		err = errNobodyLeft
	}
	d.noteReload(err)
	if err != nil {
		d.log.Error("reload configuration: keeping the old one", "err", err)
		return
	}
	keepAgents(&next, d.began, d.cfg.Sandbox)
	for _, what := range directory.Wider(d.inForce, next) {
		d.log.Warn("the new configuration allows more, or asks others", "what", what)
	}
	d.inForce = next
	// What the new file admits is for its own address, which is not in use before the next start.
	d.anyone.Store(d.cfg.API.AllowAnonymous && cfg.API.AllowAnonymous)
	d.engine.Configure(next)
	d.noteSettings(cfg)
	d.zones.set(next.People)
	d.log.Info("configuration read again; sockets, listeners, data_dir, audit, log, sandbox, fetch, web_search, connectors "+
		"(but editor and Telegram's token) and agents take effect at the next start", "file", cfg.File)
	d.renewToken(c)
}

// renewToken reads the bot's token file again. An invalid token leaves the old one in use.
func (d *daemon) renewToken(c *CLI) {
	if d.bot == nil {
		return
	}
	token, err := c.telegramToken(d.cfg.Connectors.Telegram.TokenFile)
	if err == nil {
		err = d.bot.Renew(token)
	}
	if err != nil {
		d.log.Error("reload bot token: keeping the old one", "err", err)
	}
}

// Close undoes the start in reverse order. It may be called more than once.
func (d *daemon) Close() (err error) {
	d.once.Do(func() { err = d.undo(0) })
	return err
}

// undo runs all closers except the first keep, in reverse order.
func (d *daemon) undo(keep int) (err error) {
	for len(d.closers) > keep {
		last := len(d.closers) - 1
		err = errors.Join(err, d.closers[last]())
		d.closers = d.closers[:last]
	}
	return err
}

// roomRetry is the interval of retries while the disk is full.
const roomRetry = time.Second

// retryWhileFull retries a step of the start while the disk is full. full is called the first time.
func retryWhileFull(ctx context.Context, step func() error, full func(error)) error {
	for first := true; ; first = false {
		err := step()
		if !store.IsFull(err) {
			return err
		}
		if !errors.Is(err, permissions.ErrBroken) { // otherwise the text says so
			err = fmt.Errorf("%w; free some space, nothing needs a restart", err)
		}
		if first {
			full(err)
		}
		if timing.Pause(ctx, roomRetry) != nil {
			return err
		}
	}
}

// migrating says to agents how far a migration on start is.
func (d *daemon) migrating(what string, done, all int64) {
	d.serveNotReady(fmt.Errorf("the store is being brought up to date (%d of %d %s); wait until that is done", done, all, what))
}

// replaced ends the daemon with an error, after which a supervisor starts it again.
func (d *daemon) replaced(err error) { d.lost <- err }

// leaseChats takes the lease of the chats and of the agents, which one of the daemons on the same database has.
func (d *daemon) leaseChats(ctx context.Context) error {
	if d.rows.AcquireLease(ctx, "chats") == nil {
		close(d.held)
	}
	return nil
}

// awaitLease returns true when this daemon has the lease, and false when ctx ends before that.
func (d *daemon) awaitLease(ctx context.Context) bool {
	select {
	case <-d.held:
		return true
	case <-ctx.Done():
		return false
	}
}

// runWithLease runs a part once no other daemon on the same database does.
func (d *daemon) runWithLease(ctx context.Context, run func(context.Context) error) error {
	if !d.awaitLease(ctx) {
		return nil
	}
	return run(ctx)
}

// serveNotReady serves the agents' socket with the newest reason why the daemon is not ready, until d.excused is called.
func (d *daemon) serveNotReady(why error) {
	if d.notReady.Swap(&why) != nil {
		return
	}
	l, err := server.Listen(d.paths.AgentSocket, d.cfg.API.AgentGroup)
	if err != nil {
		return // it is logged
	}
	srv := server.New("daycared, not ready", func(context.Context) error { return *d.notReady.Load() }, d.log)
	turned := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		srv.Reject(w, permissions.Broken((*d.notReady.Load()).Error()))
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h := srv.Handler(server.Listener{Guard: func(http.Handler) http.Handler { return turned }})
		_ = server.Serve(ctx, l, h, 0, d.log) // it is logged already
	}()
	d.stopNotReady = func() {
		d.stopNotReady = func() {}
		stop()
		<-done
		d.notReady.Store(nil)
	}
}

// filesInterval is the interval between checks of the lock, the keys and the sockets.
const filesInterval = 5 * time.Second

// keepFiles restores a deleted lock or admin key, and logs each deleted socket and the audit key once. If another daemon
// holds the lock, this one stops.
func (d *daemon) keepFiles(missing map[string]bool) {
	switch anew, err := d.dir.keepLock(); {
	case errors.Is(err, unix.EWOULDBLOCK):
		d.end("the lock of the data directory was deleted, and another daycared has it now")
		return
	case err != nil:
		d.log.Error("keep the lock of the data directory", "err", err)
	case anew:
		d.log.Warn("the lock of the data directory was deleted: taking it again", "path", d.dir.lock.Name())
	}
	if isGone(d.paths.AdminKey) {
		err := store.WriteFile(d.paths.AdminKey, []byte(d.key), 0o600)
		d.log.Warn("the admin key was deleted and is written again", "path", d.paths.AdminKey, "err", err)
	}
	for _, path := range []string{d.paths.AgentSocket, d.paths.AdminSocket, d.paths.AuditKey} {
		gone := isGone(path)
		switch {
		case !gone, missing[path]:
		case path == d.paths.AuditKey:
			d.log.Error("the audit key was deleted, and no start is possible without it", "path", path)
		default:
			d.log.Error("a socket was deleted, and nobody can reach the daemon there until it is started again", "path", path)
		}
		missing[path] = gone
	}
}

// Each part passes one of these before use. They return their argument; crash tests replace them.
var (
	hookNow      = time.Now
	hookStore    = func(s engine.Store) engine.Store { return s }
	hookSessions = func(s runtime.Store) runtime.Store { return s }
	hookInbound  = func(s connectors.Services) connectors.Services { return s }
	hookAdmin    = func(a *admin.Connector) connectors.Connector { return a }
	hookTerminal = func(t *terminal.Terminal) connectors.Connector { return t }
	hookTelegram = func(t *telegram.Connector) connectors.Connector { return t }
	hookWhatsApp = func(w *whatsapp.Connector) connectors.Connector { return w }
)
