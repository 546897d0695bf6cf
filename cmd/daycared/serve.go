package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

func (c *CLI) serve(ctx context.Context) error {
	cfg, paths, err := c.load()
	if err != nil {
		return err
	}
	if _, err := settings(cfg, paths, c.UID); err != nil { // errors in the file are reported to any account
		return err
	}
	hangup := make(chan os.Signal, 1) // a SIGHUP during the start causes a reload after it
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	var dir *dataDir
	err = retryWhileFull(ctx, func() (err error) {
		dir, err = openDataDir(paths.DataDir, c.UID, consoleName(c.In)) // before any other file is created
		return err
	}, c.sayFull)
	if err != nil {
		return err
	}
	seen := c.inspect(cfg, paths, accountOf(c.UID), nil)
	if err := seen.refusal(); err != nil {
		return errors.Join(err, dir.Close())
	}
	var log *slog.Logger
	var closeLog func() error
	err = retryWhileFull(ctx, func() (err error) {
		log, closeLog, err = c.daemonLog(cfg, paths)
		return err
	}, c.sayFull)
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	defer func() { _ = closeLog() }() // nothing is logged after it
	for _, w := range cfg.Warnings {
		log.Warn("configuration", "warning", w.String())
	}
	for _, o := range seen.found {
		log.Warn("machine", "warning", o.String())
	}
	closed := make(chan struct{})
	d, err := newDaemon(ctx, c, cfg, paths, log, func() { close(closed) }, dir)
	if err != nil {
		if store.IsFull(err) && ctx.Err() != nil { // it was stopped while it waited
			return nil
		}
		return err
	}
	c.say("configuration %s · data %s · agents %s · people %s", cmp.Or(cfg.File, "none, the defaults"), paths.DataDir,
		paths.AgentSocket, paths.AdminSocket)
	log.Info("serving", "version", version, "config", cfg.File, "data_dir", paths.DataDir, "pid", os.Getpid())
	if d.console != nil && d.console.Console() == terminal.ConsoleOpen {
		c.welcome()
	}
	return d.serve(ctx, c, hangup, closed)
}

// sayFull reports, before there is a log, that the start waits for disk space.
func (c *CLI) sayFull(err error) { c.say("%v; waiting for that", err) }

// serve runs the daemon, and handles SIGHUP and the end of the console.
func (d *daemon) serve(ctx context.Context, c *CLI, hangup <-chan os.Signal, closed <-chan struct{}) error {
	watching, over := context.WithCancel(ctx)
	defer over()
	heeded := make(chan struct{})
	go func() {
		defer close(heeded)
		d.handleSignals(watching, c, hangup, closed)
	}()
	err := d.run(ctx)
	over() // also if a part failed
	<-heeded
	return err
}

// welcome says at the console how to ask, what appears there and how to leave.
func (c *CLI) welcome() {
	c.say("questions appear here, with the keys that answer them; ask from another shell: daycared%s ask @network --reason test",
		c.sameConfig())
	c.say("/help says more; Ctrl-C ends the daemon, and so does, from another shell: daycared%s stop", c.sameConfig())
}

// hangupEcho is how long after the loss of its terminal a SIGHUP counts as part of that: the kernel sends one, many shells another.
const hangupEcho = 2 * time.Second

// handleSignals handles SIGHUP and the end of the console, until ctx ends. The signal causes a reload, unless the terminal was closed:
// the kernel first detaches it and then sends the signal.
func (d *daemon) handleSignals(ctx context.Context, c *CLI, hangup <-chan os.Signal, closed <-chan struct{}) {
	var taken time.Time // when the terminal was found closed
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.ending:
			return
		case <-closed:
			closed = nil
			if terminal.IsTerminal(c.In) { // it still exists
				d.withoutConsole("the console was closed with Ctrl-D")
				continue
			}
		case <-hangup:
			echo := !taken.IsZero() && time.Since(taken) < hangupEcho
			if first := taken.IsZero() && d.console != nil && d.console.HungUp(); !first && !echo {
				d.reload(c)
			}
		}
		if taken.IsZero() && d.console != nil && d.console.HungUp() {
			taken = time.Now()
			d.withoutConsole("the terminal was closed")
		}
	}
}

// withoutConsole handles the loss of the daemon's terminal: the daemon continues if people can be reached otherwise, or stops.
func (d *daemon) withoutConsole(why string) {
	ways := map[string][]string{}
	for _, contact := range d.engine.Contacts() {
		for name, gone := range contact.People { // a channel that is disconnected may recover
			if gone == nil && contact.Channel != terminal.Name {
				ways[name] = append(ways[name], contact.Channel)
			}
		}
	}
	if len(ways) == 0 {
		d.end(why + ", and nobody can be reached another way")
		return
	}
	d.log.Warn("console closed: continuing, other channels reach people", "why", why, "people", ways)
}

// consoleName is the terminal's name; empty if in is not a terminal.
func consoleName(in *os.File) string {
	if !terminal.IsTerminal(in) {
		return ""
	}
	if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", in.Fd())); err == nil {
		return name
	}
	return "of its account"
}

// logsToFile reports whether the log goes to a file, because the terminal shows prompts.
func (c *CLI) logsToFile(cfg *config.Config) bool {
	return cfg.Connectors.Terminal.Enabled && terminal.IsConsole(c.In)
}

// daemonLog opens the log: stderr, or a file if the terminal shows prompts.
func (c *CLI) daemonLog(cfg *config.Config, paths config.Paths) (*slog.Logger, func() error, error) {
	options := &slog.HandlerOptions{Level: cfg.Log.Level, ReplaceAttr: withoutNil}
	to, closeLog := c.Err, func() error { return nil }
	if c.logsToFile(cfg) {
		file, err := os.OpenFile(paths.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("open the log: %w", err)
		}
		c.say("prompts come here; the log goes to %s", paths.LogFile)
		to, closeLog = io.Writer(file), file.Close
	}
	handler := slog.Handler(slog.NewTextHandler(to, options))
	if cfg.Log.Format == "json" {
		handler = slog.NewJSONHandler(to, options)
	}
	return slog.New(repeatFilter{handler, &outage{}}), closeLog, nil
}

// withoutNil omits nil errors from log lines.
func withoutNil(_ []string, a slog.Attr) slog.Attr {
	if a.Key == "err" && a.Value.Any() == nil {
		return slog.Attr{}
	}
	return a
}

// untilHangup returns a context that ends when standard output, if it is a pipe or a socket, has no reader any more: the agent
// was killed or closed its end. over ends the watching and joins it.
func (c *CLI) untilHangup(ctx context.Context) (watched context.Context, over func()) {
	watched, end := context.WithCancel(ctx)
	out, isFile := c.outFile()
	wake, stop, err := os.Pipe()
	if !isFile || err != nil {
		return watched, end
	}
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		if hangsUp(int(out.Fd()), int(wake.Fd())) {
			end()
		}
	}()
	return watched, func() {
		_ = stop.Close() // wakes the watching goroutine
		<-joined
		_ = wake.Close()
		end()
	}
}

// hangsUp waits until fd has no reader any more or wake becomes ready; it reports whether it was the former.
func hangsUp(fd, wake int) bool {
	watched := []unix.PollFd{{Fd: int32(fd)}, {Fd: int32(wake), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(watched, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil, n == 0, watched[1].Revents != 0, watched[0].Revents&unix.POLLNVAL != 0:
			return false
		case watched[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
			return true
		}
	}
}

// repeatFilter is a log handler that suppresses repetitions: while the store is unavailable, everything fails for the same reason, so
// that reason is logged once, then once a minute with a count, and once when it is over (see [outage.watch]). Errors of ended
// contexts, because a caller left or the daemon stops, are logged at debug level.
type repeatFilter struct {
	slog.Handler
	outage *outage
}

// Handle implements [slog.Handler].
func (c repeatFilter) Handle(ctx context.Context, r slog.Record) error {
	switch err := errorIn(r); {
	case errors.Is(err, context.Canceled) && r.Level > slog.LevelDebug:
		if r.Level = slog.LevelDebug; !c.Enabled(ctx, r.Level) {
			return nil
		}
	case isBroken(err) && c.outage.repeated():
		return nil
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (c repeatFilter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return repeatFilter{c.Handler.WithAttrs(attrs), c.outage}
}

// WithGroup implements [slog.Handler].
func (c repeatFilter) WithGroup(name string) slog.Handler {
	return repeatFilter{c.Handler.WithGroup(name), c.outage}
}

// errorIn is a record's error, nil if it has none.
func errorIn(r slog.Record) (found error) {
	r.Attrs(func(a slog.Attr) bool {
		err, is := a.Value.Any().(error)
		if is && a.Key == "err" {
			found = err
		}
		return found == nil
	})
	return found
}

// isBroken reports whether the store, and not only one of its rows, cannot be used.
func isBroken(err error) bool {
	broken := errors.Is(err, permissions.ErrBroken) || permissions.CodeOf(err) == permissions.CodeBroken
	return broken && !errors.Is(err, permissions.ErrRow)
}

// outage is a period in which the store is unavailable. It is safe for concurrent use.
type outage struct {
	mu    sync.Mutex
	since time.Time // zero: none
	lines int       // suppressed lines
}

// repeated records a failure of the store, and reports whether one was logged already.
func (o *outage) repeated() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		o.since = time.Now()
		return false
	}
	o.lines++
	return true
}

const (
	// outageCheck is the interval of checks during an outage, outageLogged the interval of log lines.
	outageCheck, outageLogged = time.Second, time.Minute
)

// watch logs outages until ctx ends. ready returns nil once the store is available again.
func (o *outage) watch(ctx context.Context, log *slog.Logger, ready func(context.Context) error) {
	for told := time.Now(); timing.Pause(ctx, outageCheck) == nil; {
		o.mu.Lock()
		since := o.since
		o.mu.Unlock()
		if since.IsZero() {
			told = time.Now()
			continue
		}
		err := ready(ctx)
		if err != nil && time.Since(told) < outageLogged {
			continue
		}
		told = time.Now()
		o.mu.Lock()
		lines := o.lines
		o.lines = 0
		if err == nil {
			o.since = time.Time{}
		}
		o.mu.Unlock()
		after := time.Since(since).Round(time.Second)
		if err == nil {
			log.Info("store available again", "after", after, "more_failures", lines)
		} else if ctx.Err() == nil {
			log.Warn("store still unavailable", "after", after, "more_failures", lines, "why", err)
		}
	}
}

// scrapeTime bounds the store queries of one scrape.
const scrapeTime = 5 * time.Second

// gauges report the daemon's state at the time of a scrape. They contain no text from people or agents.
type gauges struct {
	engine *engine.Engine
	log    *slog.Logger

	up, state, ready, reachable, stopped, pending *prometheus.Desc
}

func metrics(e *engine.Engine, rows *store.Store, log *slog.Logger) http.Handler {
	registry := prometheus.NewRegistry()
	if pool := rows.Pool(); pool != nil {
		registry.MustRegister(
			collectors.NewDBStatsCollector(pool, "daycared"),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "daycared_store_behind_seconds",
				Help: "How long ago this daemon knew all that the others on the same database had written.",
			}, func() float64 { return rows.Behind().Seconds() }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "daycared_has_chats", Help: "1 while this daemon, of those on the same database, has the chats and runs the agents.",
			}, func() float64 { return truth(e.IsSender()) }),
		)
	}
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&gauges{
			engine: e, log: log,
			up: prometheus.NewDesc("daycared_channel_up",
				"1 while a channel is connected and nothing is wrong with the accounts of people there, else 0; doctor says why.",
				[]string{"channel"}, nil),
			state: prometheus.NewDesc("daycared_channel_state",
				"1 for how a channel stands that is not up and says it in a word, such as banned or outdated.",
				[]string{"channel", "state"}, nil),
			ready: prometheus.NewDesc("daycared_ready", "1 while requests can be stored and answered.", nil, nil),
			reachable: prometheus.NewDesc("daycared_people_reachable",
				"How many people can be reached just now; while it is 0, what is asked fails at once.", nil, nil),
			stopped: prometheus.NewDesc("daycared_stopped", "1 while everything is stopped.", nil, nil),
			pending: prometheus.NewDesc("daycared_requests_pending", "Requests that wait for an answer.", nil, nil),
		},
	)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// Describe implements [prometheus.Collector].
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.up, g.state, g.ready, g.reachable, g.stopped, g.pending} {
		out <- d
	}
}

// Collect implements [prometheus.Collector]. It omits what cannot be read now.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	ctx, done := context.WithTimeout(context.Background(), scrapeTime)
	defer done()
	say := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for channel, err := range g.engine.Health() {
		say(g.up, truth(err == nil), channel)
		if stated := connectors.StateError(nil); errors.As(err, &stated) {
			say(g.state, 1, channel, stated.State())
		}
	}
	say(g.ready, truth(g.engine.Ready(ctx) == nil))
	reachable := map[string]bool{}
	for _, c := range g.engine.Contacts() {
		for name := range c.People {
			if c.Reaches(name) {
				reachable[name] = true
			}
		}
	}
	say(g.reachable, float64(len(reachable)))
	say(g.stopped, truth(g.engine.StoppedBy() != ""))
	if n, err := g.engine.CountPending(ctx); err == nil {
		say(g.pending, float64(n))
	} else {
		g.log.Warn("count pending requests", "err", err)
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
