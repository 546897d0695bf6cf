package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/agents/hooks"
	"github.com/daycared/daycared/agents/mcp"
	"github.com/daycared/daycared/agents/runtime"
	"github.com/daycared/daycared/agents/tools/remote"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
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
	mcp      *mcp.Server
	zones    zones
	began    engine.Settings    // those of the start
	gauges   http.Handler       // of the engine, once it is there
	stopping chan struct{}      // closed when the daemon stops, before any call ends
	console  *terminal.Terminal // nil where it is switched off
	self     admin.Daemon       // as it was at the start
	ending   chan struct{}      // closed by end
	endOnce  sync.Once

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
		closers: []func() error{dir.Close},
	}
	d.self, d.read = c.describe(cfg, paths), time.Now().UTC()
	if err := d.start(ctx, c); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// start makes the parts, each on what is there already. What it has started is for Close to undo.
func (d *daemon) start(ctx context.Context, c *CLI) error {
	cfg, paths, log := d.cfg, d.paths, d.log
	key, err := adminKey(paths.AdminKey)
	if err != nil {
		return err
	}
	rows, err := store.Open(ctx, store.Options{Path: filepath.Join(paths.DataDir, storeName), Now: time.Now, Log: log})
	if err != nil {
		return err
	}
	d.closers = append(d.closers, rows.Close)
	current, err := settings(cfg, paths, c.UID)
	if err != nil {
		return err
	}
	if err := atConsole(cfg, current); err != nil {
		return err
	}
	d.began = current
	d.zones.set(current.People)
	door := admin.New(admin.Options{
		Socket: paths.AdminSocket, Group: cfg.API.AdminGroup, Key: admin.Key(key),
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
		d.parts = append(d.parts, hookTelegram(bot))
	}
	if account := whatsappConnector(cfg, paths, log); account != nil {
		d.parts = append(d.parts, hookWhatsApp(account))
	}
	options := engine.Options{
		Store: hookStore(rows), Connectors: d.parts, Residents: residents(), Settings: current, Now: time.Now, Log: log,
	}
	bind, err := d.employ(c, &options, hookSessions(rows))
	if err != nil {
		return err
	}
	d.engine = engine.New(options)
	bind(d.engine.Desk())
	d.gauges = metrics(d.engine, log)
	if err := d.engine.Recover(ctx); err != nil {
		return fmt.Errorf("recover what was pending: %w", err)
	}
	d.agents = d.forAgents()
	return errors.Join(door.Listen(), d.agents.Listen())
}

// forAgents is the door of agents that run elsewhere.
func (d *daemon) forAgents() *api.Server {
	d.mcp = mcp.New(mcp.Options{
		Desk: d.engine, CallerOf: api.CallerOf, Version: version, BehindProxy: d.cfg.API.BehindProxy, Log: d.log,
	})
	return api.New(api.Options{
		Desk: d.engine, Socket: d.paths.AgentSocket, Group: d.cfg.API.AgentGroup, TCP: overTCP(d.cfg.API), Log: d.log,
		Metrics: d.gauges, Mounts: map[string]http.Handler{
			"/mcp":                 d.mcp.Handler(),
			"POST /hook/{dialect}": hooks.Handler(hooks.Options{Desk: d.engine, CallerOf: api.CallerOf, Stopping: d.stopping}),
		},
	})
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
func (d *daemon) employ(c *CLI, o *engine.Options, rows runtime.Store) (bind func(agents.Desk), err error) {
	held := walls(d.cfg, o.Settings)
	if d.own, d.servers, err = c.ownAgents(d.cfg, o.Settings, held, rows, d.log); err != nil {
		return nil, err
	}
	o.Residents = append(d.own.Residents(), o.Residents...)
	told, others := witnesses{d.own}, c.acpAgents(d.cfg, o.Settings, held, rows, d.log)
	for _, a := range others {
		o.Residents, told = append(o.Residents, a), append(told, a)
	}
	if len(d.cfg.Agents) > 0 { // else there is nobody to tell, and every change would be looked at for nothing
		o.Witness = told
	}
	return func(desk agents.Desk) {
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
	group.Go(func() error { return d.own.Run(ctx) })
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
	group.Go(func() error { return d.mcp.Run(ctx) })
	for _, part := range d.parts {
		group.Go(func() error { return part.Run(ctx, d.engine) })
	}
	return errors.Join(group.Wait(), d.Close())
}

// end has the daemon stop in order. It may be called more than once, and returns at once.
func (d *daemon) end(why string) {
	d.endOnce.Do(func() {
		d.log.Info("stopping", "why", why)
		close(d.ending)
	})
}

// reload reads the configuration again and swaps it; a bad one changes nothing.
func (d *daemon) reload(c *CLI) {
	cfg, err := config.Load(d.cfg.File, c.Environ)
	var next engine.Settings
	if err == nil {
		next, err = settings(cfg, d.paths, c.UID)
	}
	d.noteReload(err)
	if err != nil {
		d.log.Error("the new configuration is refused and the old one stays", "err", err)
		return
	}
	keepAgents(&next, d.began)
	d.engine.Configure(next)
	d.zones.set(next.People)
	d.log.Info("configuration read again; sockets, data_dir, log, connectors (but editor) and agents take effect at the next start",
		"file", cfg.File)
}

// Close undoes what was started, the last first. It may be called more than once.
func (d *daemon) Close() (err error) {
	d.once.Do(func() {
		for i := len(d.closers) - 1; i >= 0; i-- {
			err = errors.Join(err, d.closers[i]())
		}
	})
	return err
}
