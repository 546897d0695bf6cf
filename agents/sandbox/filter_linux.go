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
	done   = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO}                       // it is said to be done, and is not
	kill   = bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS}
	full   = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSPC)}     // there are no more watches, as the kernel says it
	unable = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)} // as file systems say it
	ask    = bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF}                      // the warden, see modes_linux.go
)

// lastCall is the newest system call that was judged here: the kernel's table was gone through up to it, row by row. Newer
// ones are absent until somebody has judged them; filter_linux_test.go has the verdicts.
const lastCall = unix.SYS_RSEQ_SLICE_YIELD

// refused are the doors that nothing behind walls goes through, whatever was granted.
var refused = []uint32{
	// Other processes.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE, unix.SYS_PERF_EVENT_OPEN,
	// What outlives the command, or is shared by everything that runs as its account: System V IPC and POSIX queues.
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SHMDT,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMCTL, unix.SYS_SEMTIMEDOP,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	// Ways around the filter and around Landlock.
	unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK, unix.SYS_LSM_SET_SELF_ATTR,
	// Mounts and namespaces.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN,
	unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT,
	unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_LISTNS,
	// Keys.
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	// The machine.
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_SYSLOG, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX,
	unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP,
}

// missing are calls that callers can do without, so they are told that the kernel has none: their arguments are behind a
// pointer, where a filter cannot look.
var missing = []uint32{unix.SYS_CLONE3, unix.SYS_OPENAT2}

// itself are the calls about a process, by the place of its number, which must be 0: the caller.
var itself = map[uint32]uint32{
	unix.SYS_PRLIMIT64: 0, unix.SYS_SCHED_SETPARAM: 0, unix.SYS_SCHED_SETSCHEDULER: 0, unix.SYS_SCHED_SETATTR: 0,
	unix.SYS_SCHED_SETAFFINITY: 0, unix.SYS_MIGRATE_PAGES: 0, unix.SYS_MOVE_PAGES: 0, unix.SYS_GET_ROBUST_LIST: 0,
	unix.SYS_SETPRIORITY: 1, unix.SYS_IOPRIO_SET: 1,
}

// whose are those of [itself] that say first what the number is: only that of a process or thread will do.
var whose = map[uint32]uint32{unix.SYS_SETPRIORITY: unix.PRIO_PROCESS, unix.SYS_IOPRIO_SET: ioprioProcess}

// ioprioProcess is IOPRIO_WHO_PROCESS, which golang.org/x/sys does not name.
const ioprioProcess = 1

// namespaces are the flags of clone that make one; time's is not taken there.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET

// attributes are the calls that set what else belongs to a file, an access list among it, and modes those that set its mode,
// by the place of that.
var (
	attributes = []uint32{
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT, unix.SYS_FILE_SETATTR,
		unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
	}
	modes = map[uint32]uint32{unix.SYS_FCHMOD: 1, unix.SYS_FCHMODAT: 2, unix.SYS_FCHMODAT2: 2}
)

// births are the calls that make something with a mode, by the place of the mode; opens do so by the flags before it.
var (
	births = map[uint32]uint32{unix.SYS_MKNODAT: 2, unix.SYS_MKDIRAT: 2}
	opens  = map[uint32]uint32{unix.SYS_OPENAT: 3}
)

// special are the bits of a mode that nothing behind walls sets: what was left behind with them would run, for whoever
// starts it, as the daemon's account or group.
const special = unix.S_ISUID | unix.S_ISGID

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
// owner is never set.
func filter(network bool, setMode bpf.Instruction) []bpf.Instruction {
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4}, // another table of system calls, as by int 0x80
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		kill,
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: lastCall, SkipTrue: 1}, // above are newer ones, and x32's
		absent,
	}
	for _, number := range append(refused, refusedHere...) {
		program = append(program, when(number, refuse)...)
	}
	for _, number := range missing {
		program = append(program, when(number, absent)...)
	}
	// A watch sees what happens in folders that may not be read. Without one, what inotify opens says nothing; programs that cannot
	// open it end, where those that get no watch poll.
	program = append(program, when(unix.SYS_INOTIFY_ADD_WATCH, full)...)
	for _, number := range attributes {
		program = append(program, when(number, unable)...)
	}
	each := func(rule func(at uint32) []bpf.Instruction, tables ...map[uint32]uint32) {
		for _, places := range tables {
			for _, number := range slices.Sorted(maps.Keys(places)) {
				program = append(program, when(number, rule(places[number])...)...)
			}
		}
	}
	each(func(at uint32) []bpf.Instruction { return plainMode(at, setMode) }, modes, modesHere)
	each(func(at uint32) []bpf.Instruction { return plainMode(at, allow) }, births, birthsHere)
	each(func(at uint32) []bpf.Instruction {
		return append([]bpf.Instruction{argument(at - 1),
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY, SkipTrue: 1}, allow},
			plainMode(at, allow)...)
	}, opens, opensHere)
	each(nobodyElse, map[uint32]uint32{unix.SYS_FCHOWN: 1, unix.SYS_FCHOWNAT: 2}, ownersHere)
	for _, number := range slices.Sorted(maps.Keys(itself)) {
		rule := []bpf.Instruction{argument(itself[number]), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, refuse}
		if of, named := whose[number]; named {
			rule = append(rule, argument(0), bpf.JumpIf{Cond: bpf.JumpEqual, Val: of, SkipTrue: 1}, refuse)
		}
		program = append(program, when(number, append(rule, allow)...)...)
	}
	program = append(program, when(unix.SYS_CLONE, argument(0),
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: namespaces, SkipTrue: 1}, refuse, allow)...)
	program = append(program, when(unix.SYS_PRCTL, argument(0), // it shares a processor's core with another process
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.PR_SCHED_CORE, SkipTrue: 1}, refuse, allow)...)
	program = append(program, when(unix.SYS_IOCTL, argument(1),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.TIOCLINUX, SkipTrue: 1}, refuse, allow)...)
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

// plainMode refuses a mode, in the argument at a place, that has a bit of [special]; else it does what then says.
func plainMode(at uint32, then bpf.Instruction) []bpf.Instruction {
	return []bpf.Instruction{argument(at), bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: special, SkipTrue: 1}, refuse, then}
}

// nobodyElse takes an owner and a group that are this process's, or left as they are, in the arguments from n on, as what is so
// already: what a command makes is. Nothing is set, since the file could be one outside, of another of this account's groups.
func nobodyElse(n uint32) []bpf.Instruction {
	const unchanged = 0xffffffff
	return []bpf.Instruction{
		argument(n),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unchanged, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(os.Geteuid()), SkipTrue: 1}, refuse,
		argument(n + 1),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unchanged, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(os.Getegid()), SkipTrue: 1}, refuse,
		done,
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
