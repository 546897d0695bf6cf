package terminal

import "golang.org/x/sys/unix"

const (
	ioctlReadTermios  = unix.TIOCGETA
	ioctlWriteTermios = unix.TIOCSETA
)

// fread is FREAD of sys/fcntl.h: the queue of received data.
const fread = 1

// flushInput is tcflush(3) of received data.
func flushInput(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, fread) }
