package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Command makes a command that runs behind walls, in a session of its own, ready to be started like any other; its
// streams are the caller's to set, and end when all that it started has ended. When ctx ends, everything that it started
// is killed. An exit code of 125 with "daycared sandbox:" on stderr says that it was not started; 128 and more, that a
// signal ended it. release must be called when the command has ended or is not started after all: it kills what is left.
func (s *Sandbox) Command(ctx context.Context, w Walls, argv ...string) (cmd *exec.Cmd, release func(), err error) {
	if err := s.admit(w); err != nil {
		return nil, nil, err
	}
	if w.Dir != "" {
		if err := plain(w.Dir); err != nil {
			return nil, nil, err
		}
	}
	order := s.spec(w)
	order.Argv = argv
	told, err := hand(order)
	if err != nil {
		return nil, nil, err
	}
	watched, life, err := os.Pipe()
	if err != nil {
		_ = told.Close()
		return nil, nil, fmt.Errorf("prepare a command: %w", err)
	}
	let := sync.OnceFunc(func() { _ = life.Close() })
	cmd = exec.CommandContext(ctx, executable)
	cmd.Args, cmd.Env, cmd.Dir = []string{wardenName}, scrubbed(), "/"
	cmd.ExtraFiles = []*os.File{told, watched}
	cmd.SysProcAttr = apartFrom()
	cmd.Cancel = func() error { let(); return nil } // the warden kills the others first, and ends by itself
	cmd.WaitDelay = grace
	return cmd, sync.OnceFunc(func() {
		let()
		_ = told.Close()
		_ = watched.Close()
		sweep(cmd)
	}), nil
}

// sweep ends what a warden left behind that was itself killed: the members of its session's first group.
func sweep(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		return
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	}
}

// hand writes an order where only whoever inherits the descriptor can read it.
func hand(order spec) (*os.File, error) {
	text, err := order.encode()
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err == nil {
		f := os.NewFile(uintptr(fd), "order")
		if _, err = f.WriteAt(text, 0); err == nil {
			return f, nil
		}
		_ = f.Close()
	}
	return nil, fmt.Errorf("prepare a command: %w", err)
}

// executable is our own binary, also when another has taken its place on disk.
const executable = "/proc/self/exe"

// apartFrom makes a process the first of a session of its own, without a terminal.
func apartFrom() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
