package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
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
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// daemon is the real parts, joined. It starts in this order: data directory (locked), store, engine, recovery, sockets;
// what has been started is undone when a later step fails. It stops in the reverse order: the doors close first, the
// store last.
type daemon struct {
	cfg      *config.Config
	paths    config.Paths
	log      *slog.Logger
	engine   *engine.Engine
	own      *runtime.Runtime // agents of our own
	servers  []*remote.Server // whose tools they have
	parts    []connectors.Connector
	agents   *api.Server
	bot      *telegram.Connector // nil where it is switched off
	zones    zones
	began    engine.Settings    // those of the start
	inForce  engine.Settings    // those of the last reload; of one goroutine
	gauges   http.Handler       // of the engine, once it is there
	stopping chan struct{}      // closed when the daemon stops, before any call ends
	console  *terminal.Terminal // nil where it is switched off
	self     admin.Daemon       // as it was at the start
	heads    *publisher         // of the audit; nil: none are published
	ending   chan struct{}      // closed by end
	endOnce  sync.Once
	dir      *dataDir
	key      string // of the operator
	excused  func() // ends what answers agents while the start waits

	mu      sync.Mutex // guards what follows
	read    time.Time  // when the configuration was read last
	refused string     // why it was not, since

	closers []func() error
	once    sync.Once
}

// residents are agents of our own that are not in the configuration: those that tests put here.
var residents = func() []agents.Resident { return nil }

// newDaemon makes everything ready to run: when it returns, the sockets listen. It closes dir.
func newDaemon(
	ctx context.Context, c *CLI, cfg *config.Config, paths config.Paths, log *slog.Logger, console *terminal.Terminal,
	dir *dataDir,
) (*daemon, error) {
	d := &daemon{
		cfg: cfg, paths: paths, log: log, console: console, stopping: make(chan struct{}), ending: make(chan struct{}),
		closers: []func() error{dir.Close}, dir: dir, excused: func() {},
	}
	d.self, d.read = c.describe(cfg, paths), time.Now().UTC()
	err := awaitRoom(ctx, func() error {
		err := d.start(ctx, c)
		if err != nil {
			err = errors.Join(err, d.undo(1))
		}
		return err
	}, func(err error) {
		log.Error("the daemon waits until there is room on the disk", "err", err)
		d.excused = d.excuse(err)
	})
	d.excused()
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// start makes the parts, each on what is there already. What it has started is for Close to undo.
func (d *daemon) start(ctx context.Context, c *CLI) error {
	cfg, paths, log := d.cfg, d.paths, d.log
	if err := d.identify(); err != nil {
		return err
	}
	rows, err := store.Open(ctx, storeOptions(paths, log))
	if err != nil {
		return err
	}
	d.closers = append(d.closers, rows.Close)
	d.heads = newPublisher(cfg.Audit.Heads, rows.Head, log)
	current, err := settings(cfg, paths, c.UID)
	if err != nil {
		return err
	}
	if err := atConsole(cfg, current); err != nil {
		return err
	}
	d.began, d.inForce = current, current
	d.zones.set(current.People)
	door := admin.New(admin.Options{
		Socket: paths.AdminSocket, Group: cfg.API.AdminGroup, Key: admin.Key(d.key),
		AdminReachable: cfg.API.AdminReachable, Zone: d.zones.of, Log: log,
		Metrics: http.HandlerFunc(d.measure), Daemon: d.describe, Stop: d.end,
	})
	d.parts = []connectors.Connector{hookAdmin(door)}
	if d.console != nil {
		d.parts = append(d.parts, hookTerminal(d.console))
	}
	bot, err := c.telegramConnector(cfg, log)
	if err != nil {
		return err
	}
	if bot != nil {
		d.bot = bot
		d.parts = append(d.parts, hookTelegram(bot))
	}
	if account := whatsappConnector(cfg, paths, log); account != nil {
		d.parts = append(d.parts, hookWhatsApp(account))
	}
	options := engine.Options{
		Store: hookStore(rows), Connectors: d.parts, Residents: residents(), Settings: current, Now: hookNow, Log: log,
	}
	bind, err := d.employ(c, &options, hookSessions(rows))
	if err != nil {
		return err
	}
	d.engine = engine.New(options)
	bind(d.engine.Approvals())
	d.gauges = metrics(d.engine, log)
	if err := d.engine.Recover(ctx); err != nil {
		return fmt.Errorf("recover what was pending: %w", err)
	}
	d.agents = d.forAgents()
	d.excused() // it listens where agents are to be answered
	return errors.Join(door.Listen(), d.agents.Listen())
}

// identify has the lock say who holds it, where there was no room for that, and finds the operator's key.
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

// storeOptions are those of the store of a data directory.
func storeOptions(paths config.Paths, log *slog.Logger) store.Options {
	return store.Options{
		Path: filepath.Join(paths.DataDir, storeName), Now: hookNow, Log: log, KeyFile: paths.AuditKey,
	}
}

// forAgents is the door of agents that run elsewhere.
func (d *daemon) forAgents() *api.Server {
	tools := mcp.New(mcp.Options{
		Desk: d.engine, CallerOf: api.CallerOf, Version: version, BehindProxy: d.cfg.API.BehindProxy, Log: d.log,
	})
	return api.New(api.Options{
		Desk: d.engine, Socket: d.paths.AgentSocket, Group: d.cfg.API.AgentGroup, TCP: overTCP(d.cfg.API), Log: d.log,
		Metrics: d.gauges, Mounts: map[string]http.Handler{
			"/mcp":                 tools.Handler(),
			"GET /v1/events":       admin.Events(d.follow, d.engine.Changed),
			"POST /hook/{dialect}": hooks.Handler(hooks.Options{Desk: d.engine, CallerOf: api.CallerOf, Stopping: d.stopping}),
		},
	})
}

// follow is what an agent may see of the events, which holds them.
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

// overTCP is the listener for agents elsewhere; nil where none is configured.
func overTCP(a config.API) *api.TCP {
	if a.Listen == "" {
		return nil
	}
	return &api.TCP{
		Address: a.Listen, CertFile: a.TLSCertFile, KeyFile: a.TLSKeyFile, BehindProxy: a.BehindProxy, Hosts: a.Hosts,
		AllowAnonymous: a.AllowAnonymous,
	}
}

// employ makes the agents of our own, and has the engine know them. They are to be told where they ask before it runs.
func (d *daemon) employ(c *CLI, o *engine.Options, rows runtime.Store) (bind func(agents.Approvals), err error) {
	held := walls(d.cfg, o.Settings)
	if d.own, d.servers, err = c.ownAgents(d.cfg, o.Settings, held, rows, d.log); err != nil {
		return nil, err
	}
	o.Residents = append(d.own.Residents(), o.Residents...)
	told, others := eventHandlers{d.own}, c.acpAgents(d.cfg, o.Settings, held, rows, d.log)
	for _, a := range others {
		o.Residents, told = append(o.Residents, a), append(told, a)
	}
	if len(d.cfg.Agents) > 0 { // else there is nobody to tell, and every change would be looked at for nothing
		o.EventHandler = told
	}
	return func(desk agents.Approvals) {
		d.own.Bind(desk)
		for _, a := range others {
			a.Bind(desk)
		}
	}, nil
}

// measure answers /metrics. The doors open once the gauges are there.
func (d *daemon) measure(w http.ResponseWriter, r *http.Request) { d.gauges.ServeHTTP(w, r) }

// run serves until ctx ends, or end is called, then closes everything.
func (d *daemon) run(ctx context.Context) error {
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
	group.Go(func() error { return d.engine.Run(ctx) })
	if quiet, is := d.log.Handler().(calm); is {
		group.Go(func() error {
			quiet.outage.watch(ctx, d.log, d.engine.Ready)
			return nil
		})
	}
	group.Go(func() error {
		d.watchFiles(ctx)
		return nil
	})
	group.Go(func() error { return d.own.Run(ctx) })
	group.Go(func() error { return d.heads.run(ctx) })
	for _, s := range d.servers {
		group.Go(func() error { return s.Run(ctx) })
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	context.AfterFunc(ctx, func() {
		close(d.stopping) // before calls end, so that none of them takes the stop for its caller's going
		stop()
	})
	group.Go(func() error { return d.agents.Run(serving) })
	for _, part := range d.parts {
		group.Go(func() error { return part.Run(ctx, d.engine) })
	}
	err := group.Wait()
	d.heads.last()
	return errors.Join(err, d.Close())
}

// end has the daemon stop in order. It may be called more than once, and returns at once.
func (d *daemon) end(why string) {
	d.endOnce.Do(func() {
		d.log.Info("stopping", "why", why)
		close(d.ending)
	})
}

// errNobodyLeft refuses a configuration that would make the operator the one who is asked.
var errNobodyLeft = errors.New("it names nobody any more, and then everything would be the operator's to decide; " +
	"to run without people, start the daemon again")

// reload reads the configuration again and swaps it; a bad one changes nothing, nor does one that others may have
// written or that leaves nobody.
func (d *daemon) reload(c *CLI) {
	cfg, err := config.Load(d.cfg.File, c.Environ)
	var next engine.Settings
	if err == nil {
		next, err = settings(cfg, d.paths, c.UID)
	}
	if err == nil {
		if exposed := c.inspection(cfg, d.paths, accountOf(c.UID)).unguarded(); len(exposed) > 0 {
			err = exposed
		}
	}
	if err == nil && len(next.People) == 0 && len(d.inForce.People) > 0 {
		err = errNobodyLeft
	}
	d.noteReload(err)
	if err != nil {
		d.log.Error("the new configuration is refused and the old one stays", "err", err)
		return
	}
	keepAgents(&next, d.began)
	for _, what := range engine.Wider(d.inForce, next) {
		d.log.Warn("the new configuration allows more, or asks others", "what", what)
	}
	d.inForce = next
	d.engine.Configure(next)
	d.zones.set(next.People)
	d.log.Info("configuration read again; sockets, data_dir, log, connectors (but editor and Telegram's token) and agents "+
		"take effect at the next start", "file", cfg.File)
	d.renewToken(c)
}

// renewToken reads the file again in which the bot's token is. One that is no good leaves the old one in use.
func (d *daemon) renewToken(c *CLI) {
	if d.bot == nil {
		return
	}
	token, err := c.telegramToken(d.cfg.Connectors.Telegram.TokenFile)
	if err == nil {
		err = d.bot.Renew(token)
	}
	if err != nil {
		d.log.Error("the token of the bot is not renewed and the old one stays", "err", err)
	}
}

// Close undoes what was started, the last first. It may be called more than once.
func (d *daemon) Close() (err error) {
	d.once.Do(func() { err = d.undo(0) })
	return err
}

// undo calls all closers but the first few, the last first.
func (d *daemon) undo(keep int) (err error) {
	for len(d.closers) > keep {
		last := len(d.closers) - 1
		err = errors.Join(err, d.closers[last]())
		d.closers = d.closers[:last]
	}
	return err
}

// roomAgain is how often a step of the start is tried for which the disk has no room.
const roomAgain = time.Second

// awaitRoom does a step of the start, again and again while the disk is too full for it. full is told the first time.
func awaitRoom(ctx context.Context, step func() error, full func(error)) error {
	for first := true; ; first = false {
		err := step()
		if !store.IsFull(err) {
			return err
		}
		if !errors.Is(err, permissions.ErrBroken) { // else it says so
			err = fmt.Errorf("%w; free some space, nothing needs a restart", err)
		}
		if first {
			full(err)
		}
		if permissions.Pause(ctx, roomAgain) != nil {
			return err
		}
	}
}

// excuse answers everybody at the agents' socket with why the daemon is not ready, until end is called.
func (d *daemon) excuse(why error) (end func()) {
	l, err := wire.Listen(d.paths.AgentSocket, d.cfg.API.AgentGroup)
	if err != nil {
		return func() {} // the log says it
	}
	door := wire.NewServer("daycared, not ready", func(context.Context) error { return why }, d.log)
	turned := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { door.Reject(w, permissions.Broken(why.Error())) })
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h := door.Handler(wire.Listener{Guard: func(http.Handler) http.Handler { return turned }})
		_ = wire.Serve(ctx, l, h, 0, d.log) // the log says the same already
	}()
	return func() {
		d.excused = func() {}
		stop()
		<-done
	}
}

// filesAgain is how often the files are looked at by which the daemon is found, and others are kept away.
const filesAgain = 5 * time.Second

// watchFiles looks at these files until ctx ends.
func (d *daemon) watchFiles(ctx context.Context) {
	missing := map[string]bool{}
	for permissions.Pause(ctx, filesAgain) == nil {
		d.keepFiles(missing)
	}
}

// keepFiles puts back what was deleted of the lock and the admin key, and logs of a socket once that it is missing. Where
// another daemon has the lock by now, this one ends.
func (d *daemon) keepFiles(missing map[string]bool) {
	switch anew, err := d.dir.keepLock(); {
	case errors.Is(err, unix.EWOULDBLOCK):
		d.end("the lock of the data directory was deleted, and another daycared has it now")
		return
	case err != nil:
		d.log.Error("keep the lock of the data directory", "err", err)
	case anew:
		d.log.Warn("the lock of the data directory was deleted and is taken anew", "path", d.dir.lock.Name())
	}
	if _, err := os.Stat(d.paths.AdminKey); errors.Is(err, fs.ErrNotExist) {
		err := store.WriteFile(d.paths.AdminKey, []byte(d.key), 0o600)
		d.log.Warn("the admin key was deleted and is written again", "path", d.paths.AdminKey, "err", err)
	}
	for _, socket := range []string{d.paths.AgentSocket, d.paths.AdminSocket} {
		_, err := os.Stat(socket)
		gone := errors.Is(err, fs.ErrNotExist)
		if gone && !missing[socket] {
			d.log.Error("a socket was deleted, and nobody can reach the daemon there until it is started again", "path", socket)
		}
		missing[socket] = gone
	}
}

// Each part passes one of these before it is used. They return what they are given; crash tests set others.
var (
	hookNow      = time.Now
	hookStore    = func(s engine.Store) engine.Store { return s }
	hookSessions = func(s runtime.Store) runtime.Store { return s }
	hookAdmin    = func(a *admin.Connector) connectors.Connector { return a }
	hookTerminal = func(t *terminal.Terminal) connectors.Connector { return t }
	hookTelegram = func(t *telegram.Connector) connectors.Connector { return t }
	hookWhatsApp = func(w *whatsapp.Connector) connectors.Connector { return w }
)
