package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

func (c *CLI) stopCommand() *cobra.Command {
	within := 30 * time.Second
	cmd := c.adminCommand("stop", nil, func(cmd *cobra.Command, _ []string, daemon *admin.Client) error {
		if within < 0 {
			return usage("--timeout is how long to wait, 0s or more, not %s", within)
		}
		return c.stop(cmd.Context(), daemon, within)
	})
	cmd.Flags().DurationVar(&within, "timeout", within, "how long to wait for its end (0s: not at all)")
	return cmd
}

// stop ends the daemon, or the process that holds the data directory and does not answer.
func (c *CLI) stop(ctx context.Context, daemon *admin.Client, within time.Duration) error {
	ended, err := daemon.Shutdown(ctx)
	switch {
	case permissions.CodeOf(err) == permissions.CodeNotYours, errors.Is(err, os.ErrPermission):
		return fmt.Errorf("uid %d may not end this daemon: only its own account and root may, with its admin.key in reach", c.UID)
	case errors.Is(err, client.ErrUnreachable):
		if ended, err = c.terminate(err); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	if within > 0 {
		if err := c.waitForEnd(ctx, daemon, ended.Daemon, within); err != nil {
			return err
		}
	}
	switch {
	case c.asJSON:
		err = c.json(map[string]any{
			"pid": ended.PID, "since": wire.OrNullTime(ended.Since), "ended": within > 0, "pending": ended.Pending, "manager": ended.Manager,
		})
	case within == 0:
		_, err = fmt.Fprintf(c.Out, "pid %d was told to end; not waiting\n", ended.PID)
	default:
		ran := ", which had not begun to serve"
		if !ended.Since.IsZero() {
			ran = ", which ran since " + stamp(ended.Since, time.Local)
		}
		_, err = fmt.Fprintf(c.Out, "stopped: pid %d%s\n", ended.PID, ran)
	}
	if ended.Pending > 0 {
		c.say("what waits (%s) is asked again at the next start", count(ended.Pending, "request", "requests"))
	}
	if wire.Value(ended.Manager) == "systemd" {
		c.say("it ran under systemd, which may start it again; systemctl stop, with the name of its unit, ends it for good")
	}
	return err
}

// terminate sends SIGTERM to the daemon that holds the data directory but does not answer at its socket, because it is starting
// or its socket was removed. It acts on the lock file only if the kernel confirms its content.
func (c *CLI) terminate(unreachable error) (admin.Ended, error) {
	paths, err := c.places("DAYCARED_ADMIN_SOCKET")
	if err != nil {
		return admin.Ended{}, err
	}
	by, held := heldBy(paths.DataDir)
	if held && by.PID == 0 { // perhaps the disk was full
		by.PID = locker(filepath.Join(paths.DataDir, lockName))
	}
	if !held || by.PID == 0 {
		return admin.Ended{}, c.notRunning(unreachable)
	}
	process, err := os.FindProcess(by.PID) // opened before the check, so that a reused pid cannot be signalled
	if err != nil || !locks(by.PID, paths.DataDir) {
		return admin.Ended{}, c.notRunning(unreachable)
	}
	defer func() { _ = process.Release() }() // it is released when the process ends
	if err := process.Signal(syscall.SIGTERM); err != nil {
		return admin.Ended{}, fmt.Errorf("end pid %d: %w", by.PID, err)
	}
	return admin.Ended{Daemon: admin.Daemon{PID: by.PID, Since: by.Since, DataDir: paths.DataDir}}, nil
}

// locks reports whether a process holds the lock of a data directory: it runs as the directory's owner, took the lock and has
// the file open. The kernel lists who took a lock even after that process has ended, as long as a child has the file open, and
// the pid may be reused by then.
func locks(pid int, dir string) bool {
	process := filepath.Join("/proc", strconv.Itoa(pid))
	of, err := os.Stat(process)
	if err != nil {
		return false
	}
	folder, err := os.Stat(dir)
	if err != nil || ownerOf(of) == permissions.NoUID || ownerOf(of) != ownerOf(folder) {
		return false
	}
	lock, err := os.Stat(filepath.Join(dir, lockName))
	if err != nil || locker(filepath.Join(dir, lockName)) != pid {
		return false
	}
	open, _ := filepath.Glob(filepath.Join(process, "fd", "*")) // the pattern is valid
	return slices.ContainsFunc(open, func(fd string) bool {
		file, err := os.Stat(fd)
		return err == nil && os.SameFile(file, lock)
	})
}

// locker is the process that took the lock of a file, as the kernel lists it; 0 if none is listed.
func locker(path string) int {
	var stat unix.Stat_t
	list, err := os.ReadFile("/proc/locks")
	if err != nil || unix.Stat(path, &stat) != nil {
		return 0
	}
	dev := uint64(stat.Dev) //nolint:unconvert // its type differs between systems
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(dev), unix.Minor(dev), stat.Ino)
	for line := range strings.Lines(string(list)) {
		// 1: FLOCK  ADVISORY  WRITE 4711 fe:01:131 0 EOF
		if cells := strings.Fields(line); len(cells) > 5 && cells[1] == "FLOCK" && cells[3] == "WRITE" && cells[5] == file {
			pid, _ := strconv.Atoi(cells[4])
			return pid
		}
	}
	return 0
}

const (
	// lookAfter is the interval of checks whether a daemon has ended.
	lookAfter = 20 * time.Millisecond
	// sayAfter is the delay before people are told to wait.
	sayAfter = 2 * time.Second
)

// waitForEnd waits until a stopped daemon is gone: its socket does not answer, and its data directory is free or a successor's.
func (c *CLI) waitForEnd(ctx context.Context, daemon *admin.Client, d admin.Daemon, within time.Duration) error {
	limited, done := context.WithTimeout(ctx, within)
	defer done()
	said := time.AfterFunc(sayAfter, func() { c.say("waiting for pid %d, which finishes its current work", d.PID) })
	defer said.Stop()
	for {
		by, held := heldBy(d.DataDir)
		switch {
		case held && by.PID != 0 && by.PID != d.PID:
			c.say("a new one, pid %d, runs already", by.PID)
			return nil
		case !held && errors.Is(daemon.Ready(limited), client.ErrUnreachable):
			return nil
		}
		_ = timing.Pause(limited, lookAfter) // both contexts are checked below
		switch {
		case ctx.Err() != nil:
			return &problem{Text: fmt.Sprintf("pid %d was told to end, and has not yet", d.PID), Code: codeEnded, Exit: permissions.ExitCancelled}
		case limited.Err() != nil:
			kill := ""
			if locks(d.PID, d.DataDir) {
				kill = fmt.Sprintf("; to end it at once, losing nothing that was decided: kill -KILL %d", d.PID)
			}
			return fmt.Errorf("pid %d has not ended within %s; its log says why%s", d.PID, within, kill)
		}
	}
}

func (c *CLI) stopAllCommand() *cobra.Command {
	return c.adminCommand("stop-all", nil, func(cmd *cobra.Command, _ []string, client *admin.Client) error {
		n, err := client.StopAll(cmd.Context(), connectors.Identity{})
		if err != nil {
			return err
		}
		c.say("nothing is asked and nothing granted holds until: daycared resume")
		return c.result(map[string]any{"stopped": true, "cancelled": n}, "stopped, %d cancelled\n", n)
	})
}

func (c *CLI) stopAgentCommand() *cobra.Command {
	return c.adminCommand("stop-agent AGENT|ID",
		arguments(cobra.ExactArgs(1), "the name of an agent, or the id or code of one of its requests"),
		func(cmd *cobra.Command, args []string, client *admin.Client) error {
			l, ended, err := client.StopAgent(cmd.Context(), connectors.Identity{}, args[0])
			if err != nil {
				return err
			}
			return c.result(map[string]any{"agent": l.Agent(), "ended": ended},
				"%s is stopped, %s ended; it asks nothing, and nothing that it was allowed counts, until: daycared resume %[1]s\n",
				spelled(l.AgentName()), count(ended, "request", "requests"))
		})
}

func (c *CLI) quietCommand() *cobra.Command {
	return c.adminCommand("quiet AGENT DURATION|off", arguments(cobra.ExactArgs(2), "the name of an agent, and for how long"),
		func(cmd *cobra.Command, args []string, client *admin.Client) error {
			span, err := time.ParseDuration(strings.Replace(args[1], "off", "0s", 1))
			if err != nil {
				return usage("%q is no duration; write one such as 1h, or off", args[1])
			}
			until, err := client.QuietAgent(cmd.Context(), connectors.Identity{}, args[0], span)
			if err != nil {
				return err
			}
			said := "its cards are silent until " + stamp(until, time.Local)
			if span == 0 {
				said = "its cards are silent no longer"
			}
			return c.result(map[string]time.Time{"until": until}, "%s\n", said)
		})
}

func (c *CLI) trustCommand() *cobra.Command {
	sure := false
	cmd := c.adminCommand("trust AGENT DURATION", arguments(cobra.ExactArgs(2), "the name of an agent, and for how long"),
		func(cmd *cobra.Command, args []string, client *admin.Client) error {
			span, err := time.ParseDuration(args[1])
			if err != nil {
				return usage("%q is no duration; write one such as 30m", args[1])
			}
			g, err := client.TrustAgent(cmd.Context(), connectors.Identity{}, args[0], span, false)
			if sure && permissions.CodeOf(err) == permissions.CodeRule {
				g, err = client.TrustAgent(cmd.Context(), connectors.Identity{}, args[0], span, true)
			}
			if err != nil {
				return err
			}
			return c.result(wire.FromGrant(g), "%s %s\n", covers(g, permissions.RequestView{}), lasts(g, time.Local))
		})
	cmd.Flags().BoolVar(&sure, "yes", false, "give it, instead of saying what would be given")
	return cmd
}

func (c *CLI) resumeCommand() *cobra.Command {
	return c.adminCommand("resume [AGENT]", arguments(cobra.MaximumNArgs(1), "the name of an agent that is stopped"),
		func(cmd *cobra.Command, args []string, client *admin.Client) error {
			if len(args) == 1 {
				l, err := client.ResumeAgent(cmd.Context(), connectors.Identity{}, args[0])
				if err != nil {
					return err
				}
				return c.result(map[string]any{"agent": l.Agent(), "resumed": true}, "%s goes on\n", spelled(l.AgentName()))
			}
			me, err := client.WhoAmI(cmd.Context())
			if err != nil {
				return err
			}
			if err := client.Resume(cmd.Context(), connectors.Identity{}); err != nil {
				return err
			}
			if me.StoppedBy == nil {
				c.say("nothing was stopped")
				if !c.asJSON {
					return nil
				}
			}
			return c.result(map[string]bool{"resumed": me.StoppedBy != nil}, "resumed\n")
		})
}

// stopNote says that everything is stopped, and by whom; empty if nothing is.
func stopNote(me admin.Me) string {
	if me.StoppedBy == nil {
		return ""
	}
	return "everything is stopped by " + spelled(*me.StoppedBy) + ", and nothing is asked"
}
