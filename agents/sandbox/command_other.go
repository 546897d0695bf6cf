//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// Command makes a command ready to be started. This system has no sandbox, so the mode must be [Off]. It runs in its own session,
// which is killed when ctx ends. release must be called when the command has ended or will not be started: it kills what is left.
func (s *Sandbox) Command(ctx context.Context, w Policy, argv ...string) (cmd *exec.Cmd, release func(), err error) {
	if err := s.checkPolicy(w); err != nil {
		return nil, nil, err
	}
	if len(argv) == 0 {
		return nil, nil, errors.New("there is no command")
	}
	order := s.spec(w)
	if order.Scratch, err = os.MkdirTemp(s.scratch, "daycared-"); err != nil {
		return nil, nil, err
	}
	cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = order.environ(), order.dir()
	cmd.SysProcAttr = newSession()
	end := func() error {
		if cmd.Process == nil {
			return nil
		}
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	cmd.Cancel = end
	cmd.WaitDelay = grace
	return cmd, sync.OnceFunc(func() {
		_ = end()
		_ = os.RemoveAll(order.Scratch)
	}), nil
}

// Job runs a command with the given streams to its end, and returns its exit code, which is negative if there is none.
func (s *Sandbox) Job(ctx context.Context, w Policy, std Streams, argv ...string) (code int, err error) {
	cmd, release, err := s.Command(ctx, w, argv...)
	if err != nil {
		return -1, err
	}
	defer release()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = std.In, std.Out, std.Err
	err = cmd.Run()
	return cmd.ProcessState.ExitCode(), err
}

var executable = self()

func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// hangs is unknown on this system.
func hangs(int) bool { return false }

// There is no supervisor on this system.
func runSupervisor() int { return NotStarted }
func asCommand() int     { return NotStarted }

// restrictProcess fails: this system has no sandbox.
func restrictProcess(s spec) error {
	if !s.Off {
		return ErrUnheld
	}
	return nil
}
