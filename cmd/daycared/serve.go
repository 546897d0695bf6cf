package main

import (
	"cmp"
	"context"
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
			"SIGHUP reads the configuration again; SIGINT and SIGTERM stop: what is pending is asked again at the next start.",
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.serve(cmd.Context()) },
	}
}

// serve runs the daemon until ctx ends.
func (c *CLI) serve(ctx context.Context) error {
	cfg, paths, err := c.load()
	if err != nil {
		return err
	}
	log, closeLog, err := c.daemonLog(cfg, paths)
	if err != nil {
		return err
	}
	defer func() { _ = closeLog() }() // nothing is written after it
	for _, w := range cfg.Warnings {
		log.Warn("configuration", "warning", w)
	}
	console, err := c.console(cfg, paths, log)
	if err != nil {
		return err
	}
	d, err := newDaemon(ctx, c, cfg, paths, log, console)
	if err != nil {
		return err
	}
	c.say("configuration %s · data %s · agents %s · people %s", cmp.Or(cfg.File, "none, the defaults"), paths.DataDir,
		paths.AgentSocket, paths.AdminSocket)
	log.Info("serving", "version", version, "config", cfg.File, "data_dir", paths.DataDir)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	reloads := make(chan struct{})
	go func() {
		defer close(reloads)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				d.reload(c)
			}
		}
	}()
	err = d.run(ctx)
	<-reloads
	return err
}

// daemonLog is the log: on stderr, or in a file where the terminal belongs to prompts.
func (c *CLI) daemonLog(cfg *config.Config, paths config.Paths) (*slog.Logger, func() error, error) {
	options := &slog.HandlerOptions{Level: cfg.Log.Level}
	to, closeLog := c.Err, func() error { return nil }
	if cfg.Connectors.Terminal.Enabled && terminal.IsConsole(c.In) {
		if err := os.MkdirAll(paths.DataDir, 0o700); err != nil {
			return nil, nil, fmt.Errorf("make the data directory: %w", err)
		}
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

// console is the daemon's own terminal, or nil when it is switched off.
func (c *CLI) console(cfg *config.Config, paths config.Paths, log *slog.Logger) (*terminal.Terminal, error) {
	if !cfg.Connectors.Terminal.Enabled {
		return nil, nil
	}
	s, err := settings(cfg, paths, c.UID)
	if err != nil {
		return nil, err
	}
	return terminal.New(terminal.Options{
		In: c.In, Out: c.Out, UID: c.UID, Self: s.Operator().Name, Now: time.Now, Log: log,
	}), nil
}
