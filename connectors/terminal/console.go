package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// kind classifies the input.
type kind int

const (
	noConsole kind = iota
	aPipe
	aTerminal
)

// usual is the width of a console that does not report one.
const usual = 80

// console is the input: what it is, and whether it can be used now. It has no state of its own.
type console struct {
	in *os.File
	fd int
}

func newConsole(in *os.File) console {
	if in == nil {
		return console{fd: -1}
	}
	return console{in: in, fd: int(in.Fd())}
}

func (c console) kind() kind {
	var stat unix.Stat_t
	switch {
	case c.fd < 0 || unix.Fstat(c.fd, &stat) != nil:
		return noConsole
	case term.IsTerminal(c.fd):
		return aTerminal
	case stat.Mode&unix.S_IFMT == unix.S_IFIFO:
		return aPipe
	}
	return noConsole
}

// hasEnded reports whether no input can come any more. What a closed pipe still holds is older than any later prompt.
func (c console) hasEnded() bool {
	if c.kind() == noConsole {
		return true
	}
	fds := []unix.PollFd{{Fd: int32(c.fd)}}
	n, err := poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLHUP|unix.POLLNVAL) != 0
}

// foreground reports whether this process may read from the console and change its modes. A terminal that does not control
// the process has no background.
func (c console) foreground() bool {
	if c.kind() != aTerminal {
		return true
	}
	group, err := unix.IoctlGetInt(c.fd, unix.TIOCGPGRP)
	if errors.Is(err, unix.ENOTTY) {
		return true
	}
	return err == nil && group == unix.Getpgrp()
}

func (c console) width() int {
	if w, _, err := term.GetSize(c.fd); err == nil && w > 0 {
		return w
	}
	return usual
}

// flush discards the input so far.
func (c console) flush() (empty bool) {
	if c.kind() == aTerminal {
		_ = flushInput(c.fd) // if it fails, an early key may count as a late one
		return true
	}
	var buf [4096]byte
	for range 256 { // nobody can be asked through a pipe that is never empty
		fds := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}
		if n, err := poll(fds, 0); err != nil || n == 0 || fds[0].Revents&unix.POLLIN == 0 {
			return true
		}
		if n, err := unix.Read(c.fd, buf[:]); err != nil || n == 0 {
			return true
		}
	}
	return false
}

// keys sets the modes in which keys arrive one by one without echo. Unlike in raw mode, Ctrl-C and Ctrl-Z keep their
// meaning, and other programs' output still breaks into lines.
func (c console) keys() (restore func(), err error) {
	reset, err := c.modes(func(now *unix.Termios) {
		now.Lflag &^= unix.ICANON | unix.ECHO
		now.Iflag |= unix.ICRNL
		now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	})
	return func() {
		if c.foreground() { // otherwise the shell has set its own modes
			reset()
		}
	}, err
}

func (c console) modes(change func(now *unix.Termios)) (reset func(), err error) {
	before, err := unix.IoctlGetTermios(c.fd, ioctlReadTermios)
	if err != nil {
		return nil, err
	}
	now := *before
	change(&now)
	return func() { _ = unix.IoctlSetTermios(c.fd, ioctlWriteTermios, before) }, unix.IoctlSetTermios(c.fd, ioctlWriteTermios, &now)
}

// hasKeys reports whether the modes of keys are still set.
func (c console) hasKeys() bool {
	now, err := unix.IoctlGetTermios(c.fd, ioctlReadTermios)
	return err == nil && now.Lflag&unix.ICANON == 0
}

// poll is poll(2). It is restarted after a signal if millis is 0.
func poll(fds []unix.PollFd, millis int) (int, error) {
	for {
		n, err := unix.Poll(fds, millis)
		if errors.Is(err, unix.EINTR) && millis == 0 {
			continue
		}
		if errors.Is(err, unix.EINTR) {
			return 0, nil
		}
		return n, err
	}
}

// IsConsole reports whether a person can be asked through in: a terminal, or a pipe that is open.
func IsConsole(in *os.File) bool {
	c := newConsole(in)
	return c.kind() != noConsole && !c.hasEnded()
}

// IsTerminal reports whether in is a terminal.
func IsTerminal(in *os.File) bool { return newConsole(in).kind() == aTerminal }

// ReadLine asks a command's own question and reads one line. It returns as soon as ctx ends, and [io.EOF] at the end of the
// input. hidden disables the echo.
func ReadLine(ctx context.Context, in *os.File, out io.Writer, question string, hidden bool) (line string, err error) {
	c := newConsole(in)
	if hidden && c.kind() == aTerminal {
		// The terminal still edits lines, and Ctrl-C keeps its meaning.
		show, err := c.modes(func(now *unix.Termios) { now.Lflag &^= unix.ECHO }) // before the question is shown
		if err != nil {
			return "", err
		}
		defer show()
	}
	if _, err := io.WriteString(out, question); err != nil {
		return "", err
	}
	wake, end, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer wake.Close()
	stop := context.AfterFunc(ctx, func() { _ = end.Close() })
	defer func() {
		if stop() {
			_ = end.Close()
		}
	}()
	var text []byte
	for {
		fds := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}, {Fd: int32(wake.Fd()), Events: unix.POLLIN}}
		if _, err := poll(fds, -1); err != nil {
			return "", err
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if fds[0].Revents == 0 {
			continue
		}
		var one [1]byte // byte by byte: what follows the line belongs to the next one
		n, err := unix.Read(c.fd, one[:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || n == 0:
			return "", io.EOF
		case one[0] == '\n':
			return strings.TrimSuffix(string(text), "\r"), nil
		case len(text) < longest:
			text = append(text, one[0])
		}
	}
}

// Discard discards the input so far, so that an answer is newer than its question.
func Discard(in *os.File) { newConsole(in).flush() }
