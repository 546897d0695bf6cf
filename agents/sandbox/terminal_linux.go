package sandbox

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// ownTerminal is a command's own terminal, which it has instead of the person's. What the person types is copied to it, by this process: so
// the command reads nothing that is typed while this process is stopped, or for others. It is nothing where no stream is a terminal.
type ownTerminal struct {
	ours, its *os.File // nil if there is none
	in        *os.File // the person's terminal, if it is the command's input
	screen    *os.File // the person's terminal
	raw       bool     // whether keys go to the command as they are pressed, because it draws on the person's terminal

	shown chan struct{} // closed when all that the command wrote is shown

	mu     sync.Mutex
	before *term.State // of the person's terminal, while keys go to the command as they are pressed
}

// newOwnTerminal makes the terminal, and gives it to a command that was not started instead of each of its streams that is one.
func newOwnTerminal(cmd *exec.Cmd, std Streams) (p *ownTerminal, err error) {
	p = &ownTerminal{shown: make(chan struct{})}
	out, errs := terminal(std.Out), terminal(std.Err)
	if p.in = terminal(std.In); p.in != nil {
		p.raw = out != nil
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = std.In, std.Out, std.Err
	if p.screen = cmp.Or(out, errs, p.in); p.screen == nil {
		return p, nil
	}
	if p.ours, p.its, err = pty.Open(); err != nil {
		return nil, err
	}
	if state, err := unix.IoctlGetTermios(int(p.screen.Fd()), unix.TCGETS); err == nil {
		if !p.raw { // the person's terminal shows what is typed, and begins lines at the left
			state.Lflag &^= unix.ECHO
			state.Oflag &^= unix.OPOST
		}
		_ = unix.IoctlSetTermios(int(p.its.Fd()), unix.TCSETS, state)
	}
	if p.in != nil {
		cmd.Stdin = p.its
		cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, unix.Stdin
	} else { // who reads it would wait for keys forever
		name, both := p.its.Name(), p.its
		defer both.Close()
		if p.its, err = os.OpenFile(name, os.O_WRONLY|unix.O_NOCTTY, 0); err != nil { //nolint:gosec // a terminal
			return nil, errors.Join(err, p.ours.Close())
		}
	}
	if out != nil {
		cmd.Stdout = p.its
	}
	if errs != nil {
		cmd.Stderr = p.its
	}
	return p, nil
}

// terminal is a stream that is a terminal, or nil.
func terminal(stream any) *os.File {
	f, is := stream.(*os.File)
	if !is {
		return nil
	}
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil {
		return nil
	}
	return f
}

// connect copies what the started command writes, and what is typed, except for keys that are taken. Once the person's terminal is gone,
// it calls gone.
func (p *ownTerminal) connect(taken func(key byte) bool, gone func()) {
	if p.ours == nil {
		close(p.shown)
		return
	}
	_ = p.its.Close()
	p.follow()
	go func() {
		defer close(p.shown)
		for some := make([]byte, 32<<10); ; {
			n, err := p.ours.Read(some)
			if err != nil { // no process has the terminal
				return
			}
			_, _ = p.screen.Write(some[:n])
		}
	}()
	if p.in != nil {
		go p.copyKeys(taken, gone)
	}
}

// keysOf opens a terminal again, so that reading from it never waits; else the terminal itself, if it may not be opened. A read that waits
// for keys would get them in the background as well: the kernel looks at that when it begins.
func keysOf(f *os.File) (fd int) {
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return int(f.Fd())
	}
	return fd
}

func (p *ownTerminal) copyKeys(taken func(key byte) bool, gone func()) {
	from := keysOf(p.in)
	for keys := make([]byte, 4096); ; {
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(from), Events: unix.POLLIN}}, -1); err != nil {
			continue // a signal came
		}
		n, err := unix.Read(from, keys)
		typed := keys[:max(n, 0)]
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR): // another program read them
			continue
		case err != nil, terminal(p.in) == nil:
			gone()
			return
		case n > 0:
		case p.raw: // somebody else changed the terminal
			p.follow()
		default:
			typed = []byte{p.key(unix.VEOF)}
		}
		for i, key := range typed {
			if taken(key) {
				typed = typed[i+1:] // the kernel, too, drops what was typed before
				break
			}
		}
		_, _ = p.ours.Write(typed)
	}
}

// key is a special key of the command's terminal, 0 if it is none.
func (p *ownTerminal) key(which int) byte {
	state, err := unix.IoctlGetTermios(int(p.ours.Fd()), unix.TCGETS)
	if err != nil || state.Lflag&unix.ISIG == 0 {
		return 0
	}
	return state.Cc[which]
}

// suspends reports whether a key stops the started command: its terminal has a key for that, and no other group of processes is in front.
func (p *ownTerminal) suspends(key byte, leader int) bool {
	if key == 0 || key != p.key(unix.VSUSP) {
		return false
	}
	front, err := unix.IoctlGetInt(int(p.ours.Fd()), unix.TIOCGPGRP)
	return err == nil && front == leader
}

// follow gives the terminal the size of the person's, and has keys go to the command as they are pressed.
func (p *ownTerminal) follow() {
	if p.ours == nil {
		return
	}
	_ = pty.InheritSize(p.screen, p.ours)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.raw || !inFront(p.in) {
		return
	}
	if before, err := term.MakeRaw(int(p.in.Fd())); err == nil {
		p.before = cmp.Or(p.before, before)
	}
}

// restore sets the person's terminal as it was.
func (p *ownTerminal) restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.before != nil && inFront(p.in) {
		_ = term.Restore(int(p.in.Fd()), p.before)
	}
	p.before = nil
}

// close waits until what the command wrote is shown, unless the person's terminal does not take it.
func (p *ownTerminal) close() {
	if p.ours == nil {
		return
	}
	_ = p.its.Close()
	select {
	case <-p.shown:
	case <-time.After(grace):
	}
	p.restore()
	_ = p.ours.Close()
}
