package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock does not restrict file modes: a command could open the daemon's folder to everybody and read it from another
// account. So a seccomp notification pauses a call that sets a mode, and the supervisor sets the mode for the command
// if the command may write there. It checks and changes the same open file, so a rename in between gains nothing. It has
// the folders and files that the command may write open, as Landlock took them: names tell where to look, and decide nothing.
// Owners and extended attributes are refused by the filter alone.

// call is a paused system call (struct seccomp_notif).
type call struct {
	ID    uint64
	PID   uint32
	Flags uint32
	Nr    int32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

// reply is its result (struct seccomp_notif_resp).
type reply struct {
	ID    uint64
	Val   int64
	Error int32
	Flags uint32
}

// idValid is SECCOMP_IOCTL_NOTIF_ID_VALID, which golang.org/x/sys does not name.
const idValid = 0x40082102

// atOnce is how many descriptors one message may have (SCM_MAX_FD).
const atOnce = 253

// sendListener sends the supervisor the listener, and what may be written.
func sendListener(listener int, writable []*os.File) error {
	fds := []int{listener}
	for _, f := range writable {
		fds = append(fds, int(f.Fd()))
	}
	for some := range slices.Chunk(fds, atOnce) {
		if err := unix.Sendmsg(fdControl, []byte{0}, unix.UnixRights(some...), nil, 0); err != nil {
			return fmt.Errorf("tell the supervisor: %w", err)
		}
	}
	return nil
}

// receiveListener waits until the command is executed, and returns what was sent before: nothing, or the listener first.
func receiveListener(from int) (fds []int) {
	for oob := make([]byte, unix.CmsgSpace(4*atOnce)); ; {
		n, oobn, _, _, err := unix.Recvmsg(from, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return fds
		}
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil || len(messages) != 1 {
			return nil
		}
		some, err := unix.ParseUnixRights(&messages[0])
		if err != nil {
			return nil
		}
		fds = append(fds, some...)
	}
}

// answerModes sets modes for a command, of the open writable files and below the folders, until it has ended.
func answerModes(listener int, writable []int) {
	for {
		var c call
		switch err := notify(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&c)); {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOENT) && !isListenerIdle(listener):
			continue // interrupted, or the caller was killed
		case err != nil:
			return
		}
		r := reply{ID: c.ID}
		var errno unix.Errno
		if err := c.setMode(listener, writable); errors.As(err, &errno) {
			r.Error = -int32(errno)
		} else if err != nil {
			r.Error = -int32(unix.EPERM)
		}
		_ = notify(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) // the caller may be gone
	}
}

// isListenerIdle reports whether no process with the filter is left.
func isListenerIdle(listener int) bool {
	fds := []unix.PollFd{{Fd: int32(listener)}}
	_, err := unix.Poll(fds, 0)
	return err == nil && fds[0].Revents&unix.POLLHUP != 0
}

func notify(listener int, request uint, argument unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), uintptr(request), uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}

func (c call) setMode(listener int, writable []int) error {
	target, mode, err := c.target()
	if err != nil {
		return err
	}
	if mode&(unix.S_ISUID|unix.S_ISGID) != 0 { // the filter refuses such calls already
		_ = unix.Close(target)
		return unix.EPERM
	}
	defer unix.Close(target)
	if err := notify(listener, idValid, unsafe.Pointer(&c.ID)); err != nil {
		return err // another process may have the id by now
	}
	name := fmt.Sprintf("/proc/self/fd/%d", target)
	if !liesIn(writable, target, name) {
		return unix.EPERM
	}
	return unix.Fchmodat(unix.AT_FDCWD, name, mode, 0)
}

// liesIn reports whether an open file is one of others, or lies in one. What does not have the name any more that it was opened by
// lies nowhere, unless it has no name at all: then it lies where it had one.
func liesIn(others []int, target int, link string) bool {
	if isOneOf(others, target) {
		return true
	}
	leads, err := os.Readlink(link)
	if err != nil {
		return false
	}
	in := false
	folder, err := walkPlain(filepath.Dir(leads), func(fd int) { in = in || isOneOf(others, fd) })
	if err != nil {
		return false
	}
	defer folder.Close()
	var is, named unix.Stat_t
	if err := unix.Fstat(target, &is); err != nil || !in {
		return false
	}
	err = unix.Fstatat(int(folder.Fd()), filepath.Base(leads), &named, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return is.Nlink == 0
	}
	return err == nil && is.Dev == named.Dev && is.Ino == named.Ino
}

// isOneOf reports whether two descriptors are of the same file.
func isOneOf(others []int, fd int) bool {
	var is, other unix.Stat_t
	return unix.Fstat(fd, &is) == nil && slices.ContainsFunc(others, func(o int) bool {
		return unix.Fstat(o, &other) == nil && is.Dev == other.Dev && is.Ino == other.Ino
	})
}

// target opens the file that the call names, as the caller sees it, and returns the mode to set.
func (c call) target() (fd int, mode uint32, err error) {
	switch int(c.Nr) {
	case unix.SYS_FCHMOD:
		fd, err = c.open(int32(c.Args[0]), "", unix.AT_EMPTY_PATH)
		return fd, uint32(c.Args[1]) & 0o7777, err
	case sysChmod:
		fd, err = c.named(unix.AT_FDCWD, c.Args[0], 0)
		return fd, uint32(c.Args[1]) & 0o7777, err
	case unix.SYS_FCHMODAT:
		fd, err = c.named(int32(c.Args[0]), c.Args[1], 0)
		return fd, uint32(c.Args[2]) & 0o7777, err
	case unix.SYS_FCHMODAT2:
		fd, err = c.named(int32(c.Args[0]), c.Args[1], int(c.Args[3]))
		return fd, uint32(c.Args[2]) & 0o7777, err
	}
	return 0, 0, unix.ENOSYS
}

func (c call) named(dir int32, at uint64, flags int) (fd int, err error) {
	name, err := c.text(uintptr(at))
	if err != nil {
		return 0, err
	}
	if name == "" && flags&unix.AT_EMPTY_PATH == 0 {
		return 0, unix.ENOENT
	}
	return c.open(dir, name, flags)
}

// open opens a name relative to a folder of the caller, with O_PATH.
func (c call) open(dir int32, name string, flags int) (fd int, err error) {
	caller := fmt.Sprintf("/proc/%d/", c.PID)
	folder := caller + "cwd"
	if dir != unix.AT_FDCWD {
		folder = fmt.Sprintf("%sfd/%d", caller, dir)
	}
	how := unix.O_PATH | unix.O_CLOEXEC
	base, err := unix.Open(folder, how, 0)
	switch {
	case errors.Is(err, unix.ENOENT) && !filepath.IsAbs(name):
		return 0, unix.EBADF
	case name == "" || err != nil && !filepath.IsAbs(name):
		return base, err
	case err == nil:
		defer unix.Close(base)
	}
	if rest, ok := strings.CutPrefix(name, "/proc/self/"); ok { // C libraries address open files like this
		name = caller + rest
	}
	if flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		how |= unix.O_NOFOLLOW
	}
	return unix.Openat(base, name, how, 0)
}

// text reads a string from the caller's memory, page by page.
func (c call) text(at uintptr) (string, error) {
	var name []byte
	page := uintptr(os.Getpagesize())
	for len(name) < unix.PathMax {
		part := make([]byte, page-at%page)
		local := unix.Iovec{Base: &part[0]}
		local.SetLen(len(part))
		n, err := unix.ProcessVMReadv(int(c.PID), []unix.Iovec{local}, []unix.RemoteIovec{{Base: at, Len: len(part)}}, 0)
		if err != nil {
			return "", err
		}
		if end := bytes.IndexByte(part[:n], 0); end >= 0 {
			return string(append(name, part[:end]...)), nil
		}
		name, at = append(name, part[:n]...), at+uintptr(n)
	}
	return "", unix.ENAMETOOLONG
}
