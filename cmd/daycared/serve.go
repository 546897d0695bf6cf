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
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/terminal"
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
	dir, err := openDataDir(paths.DataDir, c.UID, consoleName(c.In)) // before any other file is made
	if err != nil {
		return err
	}
	seen := c.inspect(cfg, paths, accountOf(c.UID), nil)
	if err := seen.refusal(); err != nil {
		return errors.Join(err, dir.Close())
	}
	log, closeLog, err := c.daemonLog(cfg, paths)
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
	options := &slog.HandlerOptions{Level: cfg.Log.Level}
	to, closeLog := c.Err, func() error { return nil }
	if c.logsToFile(cfg) {
		file, err := os.OpenFile(paths.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("open the log: %w", err)
		}
		c.say("prompts come here; the log goes to %s", paths.LogFile)
		to, closeLog = io.Writer(file), file.Close
	}
	if cfg.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(to, options)), closeLog, nil
	}
	return slog.New(slog.NewTextHandler(to, options)), closeLog, nil
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
