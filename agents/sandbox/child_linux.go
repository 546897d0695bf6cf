package sandbox

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// The descriptors that our processes inherit besides the standard streams.
const (
	fdOrder = 3
	fdLife  = 4 // of a supervisor; in a command: its end of the pipe for the filter
)

// asCommand runs the process that becomes the command.
func asCommand() int {
	runtime.LockOSThread() // capabilities belong to a thread, and this one executes the command
	if err := execCommand(); err != nil {
		fmt.Fprintln(os.Stderr, "daycared sandbox:", err)
	}
	return codeFailed
}

// execCommand sandboxes this process and executes the command, with the standard streams and no other descriptor.
func execCommand() error {
	s, err := readSpec()
	if err != nil {
		return err
	}
	if err := closeOnExec(); err != nil {
		return err
	}
	if len(s.Argv) == 0 {
		return errors.New("there is no command")
	}
	if err := s.enter(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	s.Write = append(s.Write, s.Scratch)
	if err := enclose(s); err != nil {
		return err
	}
	if !s.Off {
		if err := dropPrivileges(); err != nil {
			return err
		}
	}
	program, err := exec.LookPath(s.Argv[0])
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := unix.Exec(program, s.Argv, s.environ()); err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	return nil
}

// enter changes to the command's directory.
func (s spec) enter() error {
	dir, err := openPlain(s.dir())
	if err != nil {
		return err
	}
	defer dir.Close()
	info, err := dir.Stat()
	if err == nil {
		err = s.Held.Check(s.dir(), info)
	}
	if err != nil {
		return err
	}
	return dir.Chdir()
}

// readSpec reads this process's spec; others may read it afterwards.
func readSpec() (spec, error) {
	text, err := io.ReadAll(io.NewSectionReader(os.NewFile(fdOrder, "order"), 0, math.MaxInt64))
	if err != nil {
		return spec{}, fmt.Errorf("read what the sandbox is to do: %w", err)
	}
	return decode(text)
}

// closeOnExec sets close-on-exec on every descriptor but the standard streams.
func closeOnExec() error {
	if err := unix.CloseRange(fdOrder, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close what was inherited: %w", err)
	}
	return nil
}

// dropPrivileges drops root's privileges, except those for files, which the sandbox restricts anyway. A process without
// privileges may be denied the system call, as in a service.
func dropPrivileges() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	err := unix.Capget(&header, &has[0])
	const keep = 1 << unix.CAP_DAC_OVERRIDE
	if err == nil && (has[0].Permitted&^keep|has[0].Inheritable|has[1].Permitted|has[1].Inheritable) != 0 {
		has = [2]unix.CapUserData{{Effective: has[0].Effective & keep, Permitted: has[0].Permitted & keep}}
		err = unix.Capset(&header, &has[0]) // this clears the ambient set as well
	}
	if err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	return nil
}

// fork executes our binary as the command under the supervisor. It dies with the supervisor. It sends the filter's
// listener over trust.
func fork(s spec) (pid, trust int, err error) {
	order, err := passSpec(s)
	if err != nil {
		return 0, 0, err
	}
	defer order.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("make a pair of sockets: %w", err)
	}
	defer unix.Close(pair[1])
	attr := &syscall.ProcAttr{
		Env:   os.Environ(), // scrubbed by the daemon
		Files: []uintptr{0, 1, 2, order.Fd(), uintptr(pair[1])},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	pid, err = syscall.ForkExec(executable, []string{commandName}, attr) //nolint:gosec // our own binary
	if err != nil {
		return 0, 0, fmt.Errorf("execute our own binary: %w", err)
	}
	return pid, pair[0], nil
}
