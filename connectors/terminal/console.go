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

// kind is what sort of thing the input is.
type kind int

const (
	noConsole kind = iota
	aPipe
	aTerminal
)

// usual is the width of a console that does not say how wide it is.
const usual = 80

// console is the input: what it is, and whether it can be used just now. Its methods do not change it.
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

// over tells whether nothing can come any more. What a closed pipe still holds was written before any prompt to come.
func (c console) over() bool {
	if c.kind() == noConsole {
		return true
	}
	fds := []unix.PollFd{{Fd: int32(c.fd)}}
	n, err := poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLHUP|unix.POLLNVAL) != 0
}

// foreground tells whether this process may read from the console and change its modes. On a terminal that is not the
// one that controls the process there is no background.
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

// flush throws away what was typed so far.
func (c console) flush() (empty bool) {
	if c.kind() == aTerminal {
		_ = flushInput(c.fd) // at worst, an early key is taken for a late one
		return true
	}
	var buf [4096]byte
	for range 256 { // a pipe that is never empty has nobody at its end who could be asked
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

// keys are the modes in which keys arrive one by one and unseen. Unlike in raw mode, Ctrl-C and Ctrl-Z still do what
// they do everywhere, and what others write is still broken into lines.
func (c console) keys() (restore func(), err error) {
	before, err := unix.IoctlGetTermios(c.fd, ioctlReadTermios)
	if err != nil {
		return nil, err
	}
	now := *before
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Iflag |= unix.ICRNL
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(c.fd, ioctlWriteTermios, &now); err != nil {
		return nil, err
	}
	return func() {
		if c.foreground() { // else the modes are the shell's by now
			_ = unix.IoctlSetTermios(c.fd, ioctlWriteTermios, before)
		}
	}, nil
}

// hasKeys tells whether the modes are still those that keys set.
func (c console) hasKeys() bool {
	now, err := unix.IoctlGetTermios(c.fd, ioctlReadTermios)
	return err == nil && now.Lflag&unix.ICANON == 0
}

// poll is poll(2), begun again after a signal when nothing was waited for.
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

// IsConsole tells whether a person can be asked through in: a terminal, or a pipe that is open.
func IsConsole(in *os.File) bool {
	c := newConsole(in)
	return c.kind() != noConsole && !c.over()
}

// IsTerminal tells whether in is a terminal.
func IsTerminal(in *os.File) bool { return newConsole(in).kind() == aTerminal }

// ReadLine asks a question of a command's own, and reads one line. It returns as soon as ctx ends, and [io.EOF] when the
// input is over. Hidden keeps what is typed from then on off the screen.
func ReadLine(ctx context.Context, in *os.File, out io.Writer, question string, hidden bool) (line string, err error) {
	c := newConsole(in)
	if hidden && c.kind() == aTerminal {
		show, err := c.hide() // before there is anything to answer
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
		var one [1]byte // no more: what follows the line is for the next one
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

// Discard throws away what was typed so far: an answer is newer than its question.
func Discard(in *os.File) { newConsole(in).flush() }

// hide keeps what is typed off the screen; lines are still edited by the terminal, and Ctrl-C does what it always does.
func (c console) hide() (show func(), err error) {
	before, err := unix.IoctlGetTermios(c.fd, ioctlReadTermios)
	if err != nil {
		return nil, err
	}
	now := *before
	now.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(c.fd, ioctlWriteTermios, &now); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(c.fd, ioctlWriteTermios, before) }, nil
}
