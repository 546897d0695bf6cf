package sandbox

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probe tries one thing from inside; nil means that it worked.
func probe(what string, args []string) error {
	switch what {
	case "read":
		_, err := os.ReadFile(args[0])
		return err
	case "list":
		_, err := os.ReadDir(args[0])
		return err
	case "write":
		return os.WriteFile(args[0], []byte("from inside"), 0o600)
	case "truncate":
		return os.Truncate(args[0], 0)
	case "remove":
		return os.Remove(args[0])
	case "link":
		return os.Link(args[0], args[1])
	case "rename":
		return os.Rename(args[0], args[1])
	case "symlink":
		return os.Symlink(args[0], args[1])
	case "connect":
		c, err := net.DialTimeout(args[0], args[1], 5*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err = c.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		return err
	case "hold": // a pipe, forever
		f, err := os.OpenFile(args[0], os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		select {}
	case "daemon":
		return daemon(args[0], args[1:])
	case "job":
		return job(Mode(args[0]), args[1], args[2])
	case "signal":
		pid, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		return unix.Kill(pid, 0)
	}
	return probeKernel(what, args)
}

// wide is a bit in the high half of a register.
var wide uint64 = 1 << 32

// probeKernel tries kernel interfaces other than files.
func probeKernel(what string, args []string) error {
	number := func(i int) int { n, _ := strconv.Atoi(args[i]); return n }
	switch what {
	case "family":
		fd, err := unix.Socket(number(0), number(1), 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	case "wide-family": // the kernel ignores the high half of the register
		_, _, errno := unix.RawSyscall(unix.SYS_SOCKET, uintptr(wide|uint64(number(0))), unix.SOCK_STREAM, 0)
		return errnoOf(errno)
	case "pair":
		_, err := unix.Socketpair(unix.AF_UNIX, number(0)|unix.SOCK_CLOEXEC, 0)
		return err
	case "sendto-by-pair": // a pair of datagram sockets can be redirected to any address
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(fds[0], []byte("x"), 0, &unix.SockaddrUnix{Name: args[0]})
	case "io_uring":
		var params [120]byte
		_, _, errno := unix.RawSyscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params)), 0)
		return errnoOf(errno)
	case "ptrace":
		return syscall.PtraceAttach(number(0))
	case "memory":
		local, remote := make([]byte, 8), []unix.RemoteIovec{{Base: uintptr(number(1)), Len: 8}}
		_, err := unix.ProcessVMReadv(number(0), []unix.Iovec{{Base: &local[0], Len: 8}}, remote, 0)
		return err
	case "descriptor":
		pidfd, err := unix.PidfdOpen(number(0), 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(pidfd, 2, 0)
		return err
	case "unshare":
		return unix.Unshare(unix.CLONE_NEWUSER)
	case "clone":
		_, _, errno := unix.RawSyscall(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0)
		return errnoOf(errno)
	case "clone3":
		_, _, errno := unix.RawSyscall(unix.SYS_CLONE3, 0, 0, 0)
		return errnoOf(errno)
	case "mount":
		return unix.Mount("none", args[0], "tmpfs", 0, "")
	case "type": // into a terminal, by a number whose low half is the ioctl's
		c := byte('x')
		_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, 0, uintptr(wide|unix.TIOCSTI), uintptr(unsafe.Pointer(&c)))
		if errno == unix.EPERM {
			return errno
		}
		return nil // the call reached the descriptor check
	case "limit":
		return unix.Prlimit(number(0), unix.RLIMIT_CPU, nil, &unix.Rlimit{})
	case "keys":
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
		return err
	case "shm":
		_, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
		return err
	case "msg":
		_, _, errno := unix.RawSyscall(unix.SYS_MSGGET, unix.IPC_PRIVATE, unix.IPC_CREAT|0o600, 0)
		return errnoOf(errno)
	case "sem":
		_, _, errno := unix.RawSyscall(unix.SYS_SEMGET, unix.IPC_PRIVATE, 1, unix.IPC_CREAT|0o600)
		return errnoOf(errno)
	case "queue":
		name := []byte("daycared-probe\x00")
		_, _, errno := unix.RawSyscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&name[0])), unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0, 0)
		return errnoOf(errno)
	case "watch":
		fd, err := unix.InotifyInit1(0)
		if err != nil {
			return err
		}
		_, err = unix.InotifyAddWatch(fd, args[0], unix.IN_ALL_EVENTS)
		return err
	case "priority":
		return unix.Setpriority(unix.PRIO_PROCESS, number(0), number(1))
	case "priorities":
		return unix.Setpriority(unix.PRIO_USER, 0, 19)
	case "affinity":
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			return err
		}
		return unix.SchedSetaffinity(number(0), &set)
	case "scheduler":
		return unix.SchedSetAttr(number(0), &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: 19}, 0)
	case "disk":
		_, _, errno := unix.RawSyscall(unix.SYS_IOPRIO_SET, 1, uintptr(number(0)), 3<<13)
		return errnoOf(errno)
	case "special": // a file that runs as its owner
		return leaveSpecial(args[0], args[1])
	case "hostname":
		return unix.Sethostname([]byte("x"))
	case "capabilities":
		h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var d [2]unix.CapUserData
		if err := unix.Capget(&h, &d[0]); err != nil {
			return err
		}
		if d[0].Effective&^(1<<unix.CAP_DAC_OVERRIDE) != 0 || d[1].Effective != 0 {
			return nil
		}
		return fmt.Errorf("there are none that matter")
	case "chmod":
		return unix.Chmod(args[0], 0o777)
	case "fchmod":
		f, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		if args[1] == "fd" {
			return unix.Fchmod(int(f.Fd()), 0o777)
		}
		return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), 0o777)
	case "fchmodat": // from another folder than its own
		dir, err := unix.Open(args[0], unix.O_PATH, 0)
		if err != nil {
			return err
		}
		return unix.Fchmodat(dir, args[1], 0o777, 0)
	case "fchmodat2":
		return unix.Fchmodat(unix.AT_FDCWD, args[0], 0o777, unix.AT_SYMLINK_NOFOLLOW)
	case "by-place": // an O_PATH descriptor
		fd, err := unix.Open(args[0], unix.O_PATH, 0)
		if err != nil {
			return err
		}
		empty := []byte{0}
		_, _, errno := unix.RawSyscall6(unix.SYS_FCHMODAT2, uintptr(fd), uintptr(unsafe.Pointer(&empty[0])), 0o777, unix.AT_EMPTY_PATH, 0, 0)
		return errnoOf(errno)
	case "chmod-nowhere":
		_, _, errno := unix.RawSyscall(unix.SYS_FCHMODAT, ^uintptr(99), 1, 0o777)
		return errnoOf(errno)
	case "chmod-no-folder":
		return unix.Fchmodat(1000, "file", 0o777, 0)
	case "chown":
		return unix.Chown(args[0], number(1), -1)
	case "attribute":
		return unix.Setxattr(args[0], "user.daycared", []byte("x"), 0)
	case "flags": // of a file that is open for reading
		f, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
		if err != nil {
			return err
		}
		return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags)
	case "lease":
		f, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		return err
	case "descriptors":
		for fd := 3; fd < 1024; fd++ {
			if name, err := os.Readlink(filepath.Join("/proc/self/fd", strconv.Itoa(fd))); err == nil && name == args[0] {
				return nil
			}
		}
		return fmt.Errorf("%s is not among the descriptors", args[0])
	}
	return fmt.Errorf("there is no probe %q", what)
}

func errnoOf(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// leaveSpecial creates a setuid program, in one of the possible ways.
func leaveSpecial(way, name string) error {
	mode := uint32(0o4755)
	if strings.HasSuffix(way, ", setgid") {
		way, mode = strings.TrimSuffix(way, ", setgid"), 0o2755
	}
	if strings.Contains(way, "chmod") {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"), 0o755); err != nil {
			return err
		}
	}
	var fd int
	var err error
	switch way {
	case "chmod":
		return unix.Chmod(name, mode)
	case "fchmod":
		if fd, err = unix.Open(name, unix.O_RDWR, 0); err == nil {
			err = unix.Fchmod(fd, mode)
		}
	case "fchmodat":
		err = unix.Fchmodat(unix.AT_FDCWD, name, mode, 0)
	case "fchmodat2":
		err = unix.Fchmodat(unix.AT_FDCWD, name, mode, unix.AT_SYMLINK_NOFOLLOW)
	case "fchmod of a file without a name":
		if fd, err = unix.Open(filepath.Dir(name), unix.O_TMPFILE|unix.O_RDWR, 0o755); err == nil {
			err = unix.Fchmod(fd, mode)
		}
	case "openat":
		_, err = unix.Open(name, unix.O_CREAT|unix.O_RDWR, mode)
	case "openat of a file without a name":
		if fd, err = unix.Open(filepath.Dir(name), unix.O_TMPFILE|unix.O_RDWR, mode); err == nil {
			err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
		}
	case "openat2":
		_, err = unix.Openat2(unix.AT_FDCWD, name, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_RDWR, Mode: uint64(mode)})
	case "mknodat":
		err = unix.Mknodat(unix.AT_FDCWD, name, unix.S_IFREG|mode, 0)
	case "mkdirat":
		err = unix.Mkdirat(unix.AT_FDCWD, name, mode)
	default:
		return fmt.Errorf("there is no way %q", way)
	}
	return err
}
