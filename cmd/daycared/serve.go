package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/permissions"
)

func (c *CLI) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Long: "Run the daemon. Without a configuration, the operator is asked in this terminal.\n" +
			"Agents whose connector is terminal are talked to here, too: /help says how.\n" +
			"SIGHUP reads the configuration again; daycared stop, SIGINT and SIGTERM end it: what is pending is asked again at\n" +
			"the next start. When its terminal is closed it ends as well, unless people can be reached another way.",
		Example: "  daycared serve\n  daycared serve --config /etc/daycared/config.yaml\n  daycared serve </dev/null 2>>daycared.log &",
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.serve(cmd.Context()) },
	}
}

// serve runs the daemon until ctx ends.
func (c *CLI) serve(ctx context.Context) error {
	cfg, paths, err := c.load()
	if err != nil {
		return err
	}
	if _, err := settings(cfg, paths, c.UID); err != nil { // what is wrong in the file is said whoever runs on it
		return err
	}
	hangup := make(chan os.Signal, 1) // one that comes during the start has the configuration read after it
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	var dir *dataDir
	err = awaitRoom(ctx, func() (err error) {
		dir, err = openDataDir(paths.DataDir, c.UID, consoleName(c.In)) // before any other file is made
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
	err = awaitRoom(ctx, func() (err error) {
		log, closeLog, err = c.daemonLog(cfg, paths)
		return err
	}, c.sayFull)
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	defer func() { _ = closeLog() }() // nothing is written after it
	for _, w := range cfg.Warnings {
		log.Warn("configuration", "warning", w.String())
	}
	for _, o := range seen.found {
		log.Warn("machine", "warning", o.String())
	}
	closed := make(chan struct{})
	console, err := c.console(cfg, paths, log, func() { close(closed) })
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	d, err := newDaemon(ctx, c, cfg, paths, log, console, dir)
	if err != nil {
		if store.IsFull(err) && ctx.Err() != nil { // it was ended while it waited
			return nil
		}
		return err
	}
	c.say("configuration %s · data %s · agents %s · people %s", cmp.Or(cfg.File, "none, the defaults"), paths.DataDir,
		paths.AgentSocket, paths.AdminSocket)
	log.Info("serving", "version", version, "config", cfg.File, "data_dir", paths.DataDir, "pid", os.Getpid())
	if console != nil && console.Console() == terminal.ConsoleOpen {
		c.welcome()
	}
	return d.serve(ctx, c, hangup, closed)
}

// sayFull says that a start waits, before there is a log.
func (c *CLI) sayFull(err error) { c.say("%v; waiting for that", err) }

// serve runs the daemon, and acts on SIGHUP and on the end of the console meanwhile.
func (d *daemon) serve(ctx context.Context, c *CLI, hangup <-chan os.Signal, closed <-chan struct{}) error {
	watching, over := context.WithCancel(ctx)
	defer over()
	heeded := make(chan struct{})
	go func() {
		defer close(heeded)
		d.heed(watching, c, hangup, closed)
	}()
	err := d.run(ctx)
	over() // a part that failed ends the daemon, too
	<-heeded
	return err
}

// welcome says to whoever sits at the console how to ask, what comes here and how to leave.
func (c *CLI) welcome() {
	c.say("questions appear here, with the keys that answer them; ask from another shell: daycared%s ask @network --reason test",
		c.sameConfig())
	c.say("/help says more; Ctrl-C ends the daemon, and so does, from another shell: daycared%s stop", c.sameConfig())
}

// hangupEcho is how long after its terminal was taken away a SIGHUP is taken for a part of that: the kernel sends one, and
// many shells send another.
const hangupEcho = 2 * time.Second

// heed acts on SIGHUP and on the end of the console, until ctx ends. The signal has the configuration read again, unless it
// comes because the terminal was taken away: the kernel cuts that off first, and sends the signal after it.
func (d *daemon) heed(ctx context.Context, c *CLI, hangup <-chan os.Signal, closed <-chan struct{}) {
	var taken time.Time // when the terminal was found to have been
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.ending:
			return
		case <-closed:
			closed = nil
			if terminal.IsTerminal(c.In) { // it is still there
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

// withoutConsole decides what becomes of a daemon whose terminal is gone: it goes on where anybody can still be reached, and
// ends in order where the terminal was the only way to anybody.
func (d *daemon) withoutConsole(why string) {
	ways := map[string][]string{}
	for _, contact := range d.engine.Contacts() {
		for name, gone := range contact.People { // a channel that is only away may come back
			if gone == nil && contact.Channel != terminal.Name {
				ways[name] = append(ways[name], contact.Channel)
			}
		}
	}
	if len(ways) == 0 {
		d.end(why + ", and nobody can be reached another way")
		return
	}
	d.log.Warn("the console is gone; the daemon goes on, since people can be reached another way", "why", why, "people", ways)
}

// consoleName is the terminal that in is; empty where it is none.
func consoleName(in *os.File) string {
	if !terminal.IsTerminal(in) {
		return ""
	}
	if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", in.Fd())); err == nil {
		return name
	}
	return "of its account"
}

// logsToFile reports whether the log goes to a file, as the terminal belongs to prompts.
func (c *CLI) logsToFile(cfg *config.Config) bool {
	return cfg.Connectors.Terminal.Enabled && terminal.IsConsole(c.In)
}

// daemonLog is the log: on stderr, or in a file where the terminal belongs to prompts.
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
	return slog.New(calm{handler, &outage{}}), closeLog, nil
}

// withoutNil leaves out an error that there is not.
func withoutNil(_ []string, a slog.Attr) slog.Attr {
	if a.Key == "err" && a.Value.Any() == nil {
		return slog.Attr{}
	}
	return a
}

// console is the daemon's own terminal, or nil when it is switched off. closed is called once it has closed.
func (c *CLI) console(cfg *config.Config, paths config.Paths, log *slog.Logger, closed func()) (*terminal.Terminal, error) {
	if !cfg.Connectors.Terminal.Enabled {
		return nil, nil
	}
	s, err := settings(cfg, paths, c.UID)
	if err != nil {
		return nil, err
	}
	return terminal.New(terminal.Options{
		In: c.In, Out: c.Out, UID: c.UID, Self: s.Operator().Name, Now: time.Now, Log: log, Closed: closed,
		Leave: "Ctrl-C ends the daemon, and so does, from another shell: daycared" + c.sameConfig() + " stop",
	}), nil
}

// untilHangup is ctx until nobody reads standard output any more, where that is a pipe or a socket: an agent that was
// killed, or that closed its end, is told nothing. over ends the watching and joins it.
func (c *CLI) untilHangup(ctx context.Context) (watched context.Context, over func()) {
	watched, end := context.WithCancel(ctx)
	out, isFile := c.Out.(*os.File)
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
		_ = stop.Close() // wakes the one that watches
		<-joined
		_ = wake.Close()
		end()
	}
}

// hangsUp waits until nobody reads fd any more, or until something happens to wake; it reports whether it was the former.
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

// calm is a log that does not repeat itself: while the store cannot be used, everything fails for the same reason, so that
// reason is logged once, then once a minute how often it was met, and once that it is over (see [outage.watch]). What ends
// because whoever waited for it left, or because the daemon stops, is logged for those alone who look for faults.
type calm struct {
	slog.Handler
	outage *outage
}

// Handle is that of a [slog.Handler].
func (c calm) Handle(ctx context.Context, r slog.Record) error {
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

// WithAttrs is that of a [slog.Handler].
func (c calm) WithAttrs(attrs []slog.Attr) slog.Handler {
	return calm{c.Handler.WithAttrs(attrs), c.outage}
}

// WithGroup is that of a [slog.Handler].
func (c calm) WithGroup(name string) slog.Handler { return calm{c.Handler.WithGroup(name), c.outage} }

// errorIn is the error that a record is about, nil where it is about none.
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

func isBroken(err error) bool {
	return errors.Is(err, permissions.ErrBroken) || permissions.CodeOf(err) == permissions.CodeBroken
}

// outage is a time in which the store cannot be used. It is safe for concurrent use.
type outage struct {
	mu    sync.Mutex
	since time.Time // zero: there is none
	lines int       // that were not logged
}

// repeated notes that something failed because of the store, and reports whether that has been logged.
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
	// outageLook is how often it is looked whether an outage is over, outageTold how often it is logged that it is not.
	outageLook, outageTold = time.Second, time.Minute
)

// watch logs the outages, until ctx ends. ready is nil once the store can be used again.
func (o *outage) watch(ctx context.Context, log *slog.Logger, ready func(context.Context) error) {
	for told := time.Now(); permissions.Pause(ctx, outageLook) == nil; {
		o.mu.Lock()
		since := o.since
		o.mu.Unlock()
		if since.IsZero() {
			told = time.Now()
			continue
		}
		err := ready(ctx)
		if err != nil && time.Since(told) < outageTold {
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
			log.Info("the store can be used again", "after", after, "more_failures", lines)
		} else if ctx.Err() == nil {
			log.Warn("the store can still not be used", "after", after, "more_failures", lines, "why", err)
		}
	}
}
