package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

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
