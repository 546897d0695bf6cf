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

// Command makes a command that runs in the sandbox, in its own session, ready to be started. The caller sets its
// streams; they end when all its descendants have ended. When ctx ends, all of them are killed. Exit code 125 with
// "daycared sandbox:" on stderr means that it was not started; 128 and more, that a signal ended it. release must be
// called when the command has ended or will not be started: it kills what is left.
func (s *Sandbox) Command(ctx context.Context, w Policy, argv ...string) (cmd *exec.Cmd, release func(), err error) {
	cmd, _, release, err = s.command(ctx, w, argv)
	return cmd, release, err
}

// command is [Sandbox.Command], and returns our end of the line to the supervisor, too: each byte written is a signal for all in the
// sandbox, and comes back once they have it.
func (s *Sandbox) command(ctx context.Context, w Policy, argv []string) (cmd *exec.Cmd, life *os.File, release func(), err error) {
	if err := s.checkPolicy(w); err != nil {
		return nil, nil, nil, err
	}
	if w.Dir != "" {
		if err := plain(w.Dir); err != nil {
			return nil, nil, nil, err
		}
	}
	order := s.spec(w)
	order.Argv = argv
	told, err := passSpec(order)
	if err != nil {
		return nil, nil, nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		_ = told.Close()
		return nil, nil, nil, fmt.Errorf("prepare a command: %w", err)
	}
	_ = unix.SetNonblock(pair[1], true) // for its deadlines
	watched, life := os.NewFile(uintptr(pair[0]), "life"), os.NewFile(uintptr(pair[1]), "life")
	let := sync.OnceFunc(func() { _ = life.Close() })
	cmd = exec.CommandContext(ctx, executable)
	cmd.Args, cmd.Env, cmd.Dir = []string{supervisorName}, cleanEnvironment(), "/"
	cmd.ExtraFiles = []*os.File{told, watched}
	cmd.SysProcAttr = newSession()
	cmd.Cancel = func() error { let(); return nil } // the supervisor kills the others first, then exits
	cmd.WaitDelay = grace
	return cmd, life, sync.OnceFunc(func() {
		let()
		_ = told.Close()
		_ = watched.Close()
		killGroup(cmd)
	}), nil
}

// killGroup kills the process group of a supervisor that was itself killed.
func killGroup(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		return
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	}
}

// passSpec writes a spec to a file that only an inheriting process can read.
func passSpec(order spec) (*os.File, error) {
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

// executable is our running binary, even if the file on disk was replaced.
const executable = "/proc/self/exe"

// newSession starts a process in its own session without a terminal.
func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
