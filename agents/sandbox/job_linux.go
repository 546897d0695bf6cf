package sandbox

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Job runs a command with the given streams to its end, as a job of the shell that started this process, and returns its exit code,
// which is negative if there is none. The command has a terminal of its own, see [ownTerminal]; the kernel's job control does not reach it
// there. So the command stops when this process is to stop, and does not run while this process is in the background of the terminal that
// is its input.
func (s *Sandbox) Job(ctx context.Context, w Policy, std Streams, argv ...string) (code int, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	cmd, life, release, err := s.command(ctx, w, argv)
	if err != nil {
		return -1, err
	}
	defer release()
	stops, goes := make(chan os.Signal, 1), make(chan os.Signal, 1)
	stoppable := action(unix.SIGTSTP, nil)[0] != ignored
	if stoppable {
		signal.Notify(stops, unix.SIGTSTP)
	}
	signal.Notify(goes, unix.SIGCONT, unix.SIGWINCH)
	defer signal.Stop(stops)
	defer signal.Stop(goes)
	if !inFront(std.In) {
		stop(ctx, std.In, unix.SIGTTIN)
	}
	p, err := newOwnTerminal(cmd, std)
	if err != nil {
		return -1, err
	}
	defer p.close()
	if err := cmd.Start(); err != nil {
		return cmd.ProcessState.ExitCode(), err
	}
	var one sync.Mutex
	pause := func() {
		one.Lock()
		defer one.Unlock()
		suspend(ctx, life, p, std.In, stops)
	}
	p.connect(func(key byte) bool {
		if !stoppable || !p.suspends(key, cmd.Process.Pid) {
			return false
		}
		pause()
		return true
	}, end)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			return cmd.ProcessState.ExitCode(), err
		case <-goes:
			one.Lock()
			p.follow()
			one.Unlock()
		case <-stops:
			pause()
		}
	}
}

// suspend stops the command and this process until that is continued in the foreground.
func suspend(ctx context.Context, life *os.File, p *ownTerminal, in *os.File, stops <-chan os.Signal) {
	p.restore()
	tell(life, unix.SIGSTOP)
	stop(ctx, in, unix.SIGTSTP)
	select {
	case <-stops: // the person pressed it twice
	default:
	}
	p.follow()
	if ctx.Err() == nil {
		tell(life, unix.SIGCONT)
	}
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
