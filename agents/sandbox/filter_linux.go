//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Where things are in what a seccomp filter looks at (struct seccomp_data, little-endian here). Arguments are compared by
// their low halves: the kernel takes ints and flags of 32 bits, whatever the high half says.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// What a filter answers.
var (
	allow  = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	refuse = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	absent = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)} // for what callers can do otherwise
	kill   = bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS}
	unable = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)} // as file systems say it
	ask    = bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF}                      // the warden, see modes_linux.go
)

// refused are the doors that nothing behind walls goes through, whatever was granted.
var refused = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_PROCESS_MADVISE, unix.SYS_PERF_EVENT_OPEN, unix.SYS_BPF, unix.SYS_USERFAULTFD,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSMOUNT,
	unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP,
}

// namespaces are the flags of clone that make one; time's is not taken there.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET

// attributes are the calls that set what else belongs to a file, an access list among it, and modes those that set its mode.
var (
	attributes = []uint32{
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
		unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
	}
	modes = []int{unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, sysChmod}
)

// shield puts the filter over this process. Modes are a command's warden's to set; what runs without one is ours.
func shield(s spec) error {
	if s.Operation != "" {
		_, err := install(filter(s.Network, allow), unix.SECCOMP_FILTER_FLAG_TSYNC)
		return err
	}
	listener, err := install(filter(s.Network, ask), unix.SECCOMP_FILTER_FLAG_TSYNC|unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH|
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if errors.Is(err, unix.EBUSY) { // somebody around the daemon listens already, and there is one listener
		_, err = install(filter(s.Network, refuse), unix.SECCOMP_FILTER_FLAG_TSYNC)
		return err
	}
	if err != nil {
		return err
	}
	return confide(listener)
}

// filter is the program that the kernel runs at every system call. Sockets are made of IPv4 and IPv6 alone, and only with
// the network; of pairs, only those that cannot be turned towards another address (a pair of datagram sockets can). An
// owner is set only to who this process is.
func filter(network bool, setMode bpf.Instruction) []bpf.Instruction {
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4}, // another table of system calls, as by int 0x80
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		kill,
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: 0x40000000, SkipTrue: 1}, // x32 begins there
		absent,
	}
	for _, number := range append(refused, refusedHere...) {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, refuse)
	}
	for _, number := range attributes {
		program = append(program, when(number, unable)...)
	}
	for _, number := range modes {
		if number >= 0 {
			program = append(program, when(uint32(number), setMode)...)
		}
	}
	owners := map[uint32]uint32{unix.SYS_FCHOWN: 1, unix.SYS_FCHOWNAT: 2}
	maps.Copy(owners, ownersHere)
	for _, number := range slices.Sorted(maps.Keys(owners)) {
		program = append(program, when(number, nobodyElse(owners[number])...)...)
	}
	program = append(program, when(unix.SYS_CLONE3, absent)...) // its flags are out of sight; callers go on with clone
	program = append(program, when(unix.SYS_CLONE, argument(0),
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: namespaces, SkipTrue: 1}, refuse, allow)...)
	program = append(program, when(unix.SYS_IOCTL, argument(1),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.TIOCLINUX, SkipTrue: 1}, refuse, allow)...)
	program = append(program, when(unix.SYS_PRLIMIT64, argument(0), // another's limits could end it
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, refuse, allow)...)
	program = append(program, when(unix.SYS_SOCKETPAIR, argument(1),
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf}, // without SOCK_CLOEXEC and SOCK_NONBLOCK
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_SEQPACKET, SkipTrue: 1}, refuse, allow)...)
	if network {
		program = append(program, when(unix.SYS_SOCKET, argument(0),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1}, refuse, allow)...)
	} else {
		for _, number := range []uint32{unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN} {
			program = append(program, when(number, refuse)...)
		}
	}
	return append(program, allow)
}

// when is a rule for one system call. What it does ends with an answer, since it may have loaded something else by then.
func when(number uint32, do ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: uint8(len(do))}}, do...)
}

// nobodyElse allows an owner and a group that are this process's, or left as they are, in the arguments from n on.
func nobodyElse(n uint32) []bpf.Instruction {
	const unchanged = 0xffffffff
	return []bpf.Instruction{
		argument(n),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unchanged, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(os.Geteuid()), SkipTrue: 1}, refuse,
		argument(n + 1),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unchanged, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(os.Getegid()), SkipTrue: 1}, refuse,
		allow,
	}
}

func argument(n uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: offArgs + 8*n, Size: 4} }

// install puts a filter over every thread of this process, for good. It returns where calls wait that the filter asks
// about, if the flags say so.
func install(program []bpf.Instruction, flags uintptr) (listener int, err error) {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return 0, fmt.Errorf("assemble the filter: %w", err)
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	got, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(code)
	switch {
	case errno != 0:
		return 0, fmt.Errorf("install the filter: %w", errno)
	case got != 0 && flags&unix.SECCOMP_FILTER_FLAG_NEW_LISTENER == 0:
		return 0, fmt.Errorf("install the filter: thread %d does not take it", got)
	}
	return int(got), nil
}
