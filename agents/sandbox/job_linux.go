package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Job runs a command with the given streams to its end, as a job of the shell that started this process, and returns its exit code,
// which is negative if there is none. The kernel's job control does not reach the command, which is in a session of its own: so the
// command stops when this process is to stop, and does not run while this process is in the background of the terminal that is its input.
func (s *Sandbox) Job(ctx context.Context, w Policy, std Streams, argv ...string) (code int, err error) {
	cmd, life, release, err := s.command(ctx, w, argv)
	if err != nil {
		return -1, err
	}
	defer release()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = std.In, std.Out, std.Err
	if !isTerminal(std.In) {
		cmd.Stdout, cmd.Stderr = unreadable(std.Out), unreadable(std.Err)
	}
	stops := make(chan os.Signal, 1)
	for _, sig := range []syscall.Signal{unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU} {
		if action(sig, nil)[0] != ignored {
			signal.Notify(stops, sig)
		}
	}
	defer signal.Stop(stops)
	if !inFront(std.In) {
		stop(ctx, std.In, unix.SIGTTIN)
	}
	if err := cmd.Start(); err != nil {
		return cmd.ProcessState.ExitCode(), err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			return cmd.ProcessState.ExitCode(), err
		case sig := <-stops:
			tell(life, unix.SIGSTOP)
			stop(ctx, std.In, sig.(syscall.Signal)) //nolint:errcheck,forcetypeassert // every signal here is one
			select {
			case <-stops: // the person pressed it twice
			default:
			}
			if ctx.Err() == nil {
				tell(life, unix.SIGCONT)
			}
		}
	}
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// unreadable returns a terminal opened for writing alone: shells open theirs for both, and a command that reads its output in the
// background would get what is typed.
func unreadable(w io.Writer) io.Writer {
	f, is := w.(*os.File)
	if !is || !isTerminal(f) {
		return w
	}
	again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return struct{ io.Writer }{f} // the command gets a pipe
	}
	return again
}

// tell has the supervisor signal everything in the sandbox, and waits for that, but not for long.
func tell(life *os.File, sig syscall.Signal) {
	_ = life.SetDeadline(time.Now().Add(time.Second))
	one := []byte{byte(sig)}
	if _, err := life.Write(one); err == nil {
		_, _ = life.Read(one)
	}
}

// stop stops this process as the signal does by default, and returns once it was continued in the foreground, or ctx has ended.
func stop(ctx context.Context, in *os.File, sig syscall.Signal) {
	runtime.LockOSThread() // this thread gets the signal before it goes on
	defer runtime.UnlockOSThread()
	for {
		before := action(sig, &[8]uintptr{})
		_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), sig)
		action(sig, &before)
		// A signal that ends this process may have come with the one that continued it.
		for range 25 {
			if ctx.Err() != nil || inFront(in) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		sig = unix.SIGTTIN
	}
}

// ignored is an [action] that does nothing; a zero one is the kernel's default.
const ignored = 1

// action sets the action of a signal, unless next is nil, and returns the one before. os/signal does not restore the kernel's default.
func action(sig syscall.Signal, next *[8]uintptr) (before [8]uintptr) {
	const sizeOfMask = 8
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(next)),
		uintptr(unsafe.Pointer(&before)), sizeOfMask, 0, 0)
	return before
}

// inFront reports whether this process is in the foreground of a terminal, or the file is no terminal that has one.
func inFront(in *os.File) bool {
	group, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}
