package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/internal/own"
)

// runSupervisor runs the supervisor of a command. As a subreaper it becomes the parent of orphaned descendants, so none
// escapes or outlives it. It exits with the command's code.
func runSupervisor() int {
	runtime.LockOSThread() // the command gets the signal when the thread that started it dies
	code, err := guard()
	if err != nil {
		fmt.Fprintln(os.Stderr, "daycared sandbox:", err)
		return codeFailed
	}
	return code
}

func guard() (code int, err error) {
	s, err := readSpec()
	if err != nil {
		return 0, err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("gather orphans: %w", err)
	}
	made, err := os.MkdirTemp(own.Resolve(s.Scratch), "daycared-")
	if err != nil {
		return 0, fmt.Errorf("make a scratch folder: %w", err)
	}
	defer wipe(made)
	s.Scratch = made
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	pid, trust, err := fork(s)
	if err != nil {
		return 0, err
	}
	go func() {
		if listener, ok := receiveListener(trust); ok {
			answerModes(listener, append(s.Write, s.Scratch))
		}
	}()
	closeStreams()
	var ending atomic.Bool
	go func() { // the daemon closed its end, or is gone
		_, _ = io.Copy(io.Discard, os.NewFile(fdLife, "life"))
		ending.Store(true)
		killAll()
	}()
	go func() {
		for sig := range told {
			_ = unix.Kill(pid, sig.(syscall.Signal)) //nolint:errcheck,forcetypeassert // every signal here is one
		}
	}()
	return waitForDescendants(pid, &ending), nil
}

// closeStreams closes the standard streams, so that they end with the command's.
func closeStreams() {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	for fd := 0; fd < fdOrder && err == nil; fd++ {
		err = unix.Dup3(null, fd, 0)
	}
}

// waitForDescendants waits until no descendant is left, and returns the command's exit code. Once the command has ended, or has
// to, it kills the others; each that dies may have left another, so it looks again after each.
func waitForDescendants(pid int, ending *atomic.Bool) (code int) {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return code
		}
		if got == pid {
			ending.Store(true)
			if code = status.ExitStatus(); status.Signaled() {
				code = 128 + int(status.Signal())
			}
		}
		if ending.Load() {
			killAll()
		}
	}
}

// killAll kills every descendant of this process.
func killAll() {
	for _, pid := range descendants(os.Getpid(), processes()) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// descendants are those of a process, in no order.
func descendants(of int, parents map[int]int) (below []int) {
	for pid := range parents {
		for up, steps := pid, 0; up > 1 && steps <= len(parents); up, steps = parents[up], steps+1 {
			if parents[up] == of {
				below = append(below, pid)
				break
			}
		}
	}
	return below
}

// processes maps every visible process to its parent.
func processes() map[int]int {
	all := map[int]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // it is gone
		}
		// "pid (name) state ppid …"; the name may contain anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil {
			all[pid] = parent
		}
	}
	return all
}

// wipe removes a scratch folder, even if its folders lack permissions for their owner. No process can change it any more.
func wipe(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(p string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(p, 0o700) //nolint:gosec // a folder needs its x
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
