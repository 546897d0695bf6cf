package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/daycared/daycared/connectors"
)

// quiet is a log for commands whose only words are those on the screen.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// child is the daemon, in a process of its own.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	log  *os.File
}

// startChild starts the daemon of the demo and waits until its sockets answer.
func startChild(ctx context.Context, d *demo) (*child, error) {
	return startDaemon(ctx, d.path("config.yaml"), d.environ(), d.path("daemon.log"), nil, d.people.Ready)
}

// startDaemon starts the daemon of a configuration, with its words in a log, and waits until it is ready.
func startDaemon(
	ctx context.Context, file string, environ []string, logFile string, how *syscall.SysProcAttr,
	ready func(context.Context) error,
) (*child, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the daemon's binary: %w", err)
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the daemon's log: %w", err)
	}
	cmd := exec.Command(binary, "serve", "--config", file) //nolint:gosec,noctx // our own binary; stop ends it
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.SysProcAttr = log, log, environ, how
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the daemon: %w", err), log.Close())
	}
	c := &child{cmd: cmd, done: make(chan struct{}), log: log}
	go func() {
		_ = cmd.Wait() // how it ended is told by who ended it
		close(c.done)
	}()
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		select {
		case <-c.done:
			return struct{}{}, backoff.Permanent(errors.New("the daemon ended at once"))
		default:
			return struct{}{}, ready(ctx)
		}
	}, backoff.WithBackOff(backoff.NewConstantBackOff(5*time.Millisecond)), backoff.WithMaxElapsedTime(20*time.Second))
	if err != nil {
		said, _ := os.ReadFile(logFile)
		c.stop()
		return nil, fmt.Errorf("wait for the daemon: %w\n%s", err, said)
	}
	return c, nil
}

// environ is the environment without what would lead the demo's daemon out of its scratch folder.
func (d *demo) environ() []string {
	return slices.DeleteFunc(slices.Clone(d.cli.Environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return strings.HasPrefix(name, "DAYCARED_") || name == "RUNTIME_DIRECTORY" || name == "STATE_DIRECTORY"
	})
}

// kill is kill -9, and the wait for its effect.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended by itself
	<-c.done
}

// stop asks the daemon to end and waits for it.
func (c *child) stop() {
	_ = c.cmd.Process.Signal(os.Interrupt) // it may have ended already
	select {
	case <-c.done:
	case <-time.After(5 * time.Second):
		c.kill()
	}
	c.log.Close()
}

// asking is called when a question is on the screen: the third time the daemon is killed and started again while the
// person thinks, and a scripted person answers. Only the terminal's goroutine calls it, so the screen is ours meanwhile.
func (d *demo) asking(p connectors.Prompt) {
	err := error(nil)
	if d.scene.tally().asked == killAfter && d.kills == 0 {
		err = d.killAndRestart()
	}
	if err == nil && d.script != nil {
		err = d.script.answer(p, d.cli.Out)
	}
	if err != nil {
		d.scene.fail(err)
	}
}

// killAfter is how many questions are answered before the daemon is killed.
const killAfter = 2

func (d *demo) killAndRestart() (err error) {
	d.kills++
	pid, began := d.child.cmd.Process.Pid, time.Now()
	d.child.kill()
	d.child.log.Close()
	if d.child, err = startChild(context.Background(), d); err != nil {
		return err
	}
	d.print("\n   …while you think, I kill the daemon: kill -9 %d …and start it again: %d ms. The question stands. Answer it.",
		pid, time.Since(began).Milliseconds())
	_, err = fmt.Fprint(d.cli.Out, "> ")
	return err
}
