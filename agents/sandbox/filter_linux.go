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

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in the data of a seccomp filter (struct seccomp_data, little-endian here). Only the low halves of arguments
// are compared: the kernel reads ints and 32-bit flags from them, whatever the high half contains.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// The results of a filter.
var (
	allow   = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	refuse  = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	absent  = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)} // the caller has an alternative
	done    = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO}                       // reports success without doing it
	kill    = bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS}
	full    = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSPC)}     // no watches left
	unable  = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)} // not supported by the file system
	noIoctl = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOTTY)}     // not a call of this kind of file
	ask     = bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF}                      // ask the supervisor, see modes_linux.go
)

// lastCall is the newest system call reviewed here: the kernel's table was reviewed up to it, row by row. Newer calls
// are reported as missing until they are reviewed; filter_linux_test.go has the verdicts.
const lastCall = unix.SYS_RSEQ_SLICE_YIELD

// refused are the system calls that nothing in a sandbox may make, whatever was granted.
var refused = []uint32{
	// Other processes.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE, unix.SYS_PERF_EVENT_OPEN,
	// What outlives the command or is shared by the whole account: System V IPC and POSIX queues.
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

// missing are calls whose arguments a filter cannot read; they get ENOSYS, because callers can do without them.
var missing = []uint32{unix.SYS_CLONE3, unix.SYS_OPENAT2}

// selfCalls maps calls about a process to the argument with its id, which must be 0: the caller.
var selfCalls = map[uint32]uint32{
	unix.SYS_PRLIMIT64: 0, unix.SYS_SCHED_SETPARAM: 0, unix.SYS_SCHED_SETSCHEDULER: 0, unix.SYS_SCHED_SETATTR: 0,
	unix.SYS_SCHED_SETAFFINITY: 0, unix.SYS_MIGRATE_PAGES: 0, unix.SYS_MOVE_PAGES: 0, unix.SYS_GET_ROBUST_LIST: 0,
	unix.SYS_SETPRIORITY: 1, unix.SYS_IOPRIO_SET: 1,
}

// selfKinds are those of [selfCalls] whose first argument selects the kind of id: only a process or thread is accepted.
var selfKinds = map[uint32]uint32{unix.SYS_SETPRIORITY: unix.PRIO_PROCESS, unix.SYS_IOPRIO_SET: ioprioProcess}

// ioprioProcess is IOPRIO_WHO_PROCESS, which golang.org/x/sys does not name.
const ioprioProcess = 1

// namespaces are the clone flags that make a namespace; CLONE_NEWTIME is not accepted by clone.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET

// attributes set other file attributes, such as access lists; modes maps the calls that set the mode to its argument.
var (
	attributes = []uint32{
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT, unix.SYS_FILE_SETATTR,
		unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
	}
	modes = map[uint32]uint32{unix.SYS_FCHMOD: 1, unix.SYS_FCHMODAT: 2, unix.SYS_FCHMODAT2: 2}
)

// ioctls are the allowed ones of files: none changes an attribute. Others do, of files that are open for reading: flags, versions,
// verity, subvolumes. terminals and sockets are the kinds of which all are allowed but typing and line disciplines.
var ioctls = []uint32{
	unix.FICLONE, unix.FICLONERANGE, unix.FS_IOC_GETFLAGS,
	// FS_IOC_FSGETXATTR, FS_IOC_GETVERSION, FS_IOC_FIEMAP and FIGETBSZ, which golang.org/x/sys does not name
	0x801c581f, 0x80087601, 0xc020660b, 2,
}

const kindOfIoctl, terminals, sockets = 0xff00, 'T' << 8, 0x89 << 8

// controls is the rule of ioctl.
func controls() []bpf.Instruction {
	rule := []bpf.Instruction{
		argument(1),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSETD, SkipTrue: 1}, // another line discipline loads a module of the kernel
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.TIOCLINUX, SkipTrue: 1}, refuse,
	}
	for _, one := range ioctls {
		rule = append(rule, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: one, SkipTrue: 1}, allow)
	}
	return append(rule, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: kindOfIoctl},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: terminals, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: sockets, SkipTrue: 1}, noIoctl, allow)
}

// births maps the calls that create a file with a mode to the mode's argument; opens, where it follows the flags.
var (
	createModes = map[uint32]uint32{unix.SYS_MKNODAT: 2, unix.SYS_MKDIRAT: 2}
	opens       = map[uint32]uint32{unix.SYS_OPENAT: 3}
)

// special are mode bits that nothing may set: a file with them runs as the daemon's account or group for whoever starts it.
const special = unix.S_ISUID | unix.S_ISGID

// restrictCalls installs the filter. A command's supervisor sets file modes; a process without one is ours and may do so itself.
func restrictCalls(s spec, writable []*os.File) error {
	if s.Operation != "" {
		_, err := install(filter(s.Network, allow), unix.SECCOMP_FILTER_FLAG_TSYNC)
		return err
	}
	listener, err := install(filter(s.Network, ask), unix.SECCOMP_FILTER_FLAG_TSYNC|unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH|
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if errors.Is(err, unix.EBUSY) { // only one listener is possible, and a process around the daemon has it
		_, err = install(filter(s.Network, refuse), unix.SECCOMP_FILTER_FLAG_TSYNC)
		return err
	}
	if err != nil {
		return err
	}
	return sendListener(listener, writable)
}

// filter is the seccomp program. Sockets are limited to IPv4 and IPv6, and need the network; of socket pairs, datagram
// ones are refused, since they can be redirected to another address. Owners are never changed.
func filter(network bool, setMode bpf.Instruction) []bpf.Instruction {
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4}, // another system call table, as with int 0x80
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		kill,
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: lastCall, SkipTrue: 1}, // above are newer calls, and x32's
		absent,
	}
	all := func(result bpf.Instruction, numbers ...uint32) {
		for _, number := range numbers {
			program = append(program, when(number, result)...)
		}
	}
	all(refuse, append(refused, refusedHere...)...)
	all(absent, missing...)
	// A watch reports events in folders that may not be read. Without watches inotify is harmless; programs that cannot
	// open it exit, while those that get no watch poll.
	all(full, unix.SYS_INOTIFY_ADD_WATCH)
	all(unable, attributes...)
	each := func(rule func(at uint32) []bpf.Instruction, tables ...map[uint32]uint32) {
		for _, places := range tables {
			for _, number := range slices.Sorted(maps.Keys(places)) {
				program = append(program, when(number, rule(places[number])...)...)
			}
		}
	}
	each(func(at uint32) []bpf.Instruction { return plainMode(at, setMode) }, modes, modesHere)
	each(func(at uint32) []bpf.Instruction { return plainMode(at, allow) }, createModes, createsHere)
	each(func(at uint32) []bpf.Instruction {
		return append([]bpf.Instruction{argument(at - 1),
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY, SkipTrue: 1}, allow},
			plainMode(at, allow)...)
	}, opens, opensHere)
	each(nobodyElse, map[uint32]uint32{unix.SYS_FCHOWN: 1, unix.SYS_FCHOWNAT: 2}, ownersHere)
	for _, number := range slices.Sorted(maps.Keys(selfCalls)) {
		rule := []bpf.Instruction{argument(selfCalls[number]), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, refuse}
		if of, named := selfKinds[number]; named {
			rule = append(rule, argument(0), bpf.JumpIf{Cond: bpf.JumpEqual, Val: of, SkipTrue: 1}, refuse)
		}
		program = append(program, when(number, append(rule, allow)...)...)
	}
	program = append(program, when(unix.SYS_CLONE, argument(0),
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: namespaces, SkipTrue: 1}, refuse, allow)...)
	program = append(program, when(unix.SYS_PRCTL, argument(0), // sharing a core with another process
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.PR_SCHED_CORE, SkipTrue: 1}, refuse, allow)...)
	program = append(program, when(unix.SYS_IOCTL, controls()...)...)
	program = append(program, when(unix.SYS_FCNTL, argument(1), // holding up who opens a file
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.F_SETLEASE, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.F_SETDELEG, SkipTrue: 1}, refuse, allow)...)
	program = append(program, when(unix.SYS_SOCKETPAIR, argument(1),
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf}, // without SOCK_CLOEXEC and SOCK_NONBLOCK
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_SEQPACKET, SkipTrue: 1}, refuse, allow)...)
	if network {
		program = append(program, when(unix.SYS_SOCKET, argument(0),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1}, refuse, allow)...)
	} else {
		all(refuse, unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN)
	}
	return append(program, allow)
}

// when is a rule for one system call. do has to end with a result, because it may replace the loaded value.
func when(number uint32, do ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: uint8(len(do))}}, do...)
}

// plainMode refuses a mode argument with a bit of [special]; otherwise then decides.
func plainMode(at uint32, then bpf.Instruction) []bpf.Instruction {
	return []bpf.Instruction{argument(at), bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: special, SkipTrue: 1}, refuse, then}
}

// nobodyElse reports success without effect if owner and group, the arguments from n on, are this process's or unchanged: what a
// command creates has them anyway. Nothing is set, because the file could be outside and belong to another of the account's groups.
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

// install installs a filter for every thread of this process. It returns the listener for notifications if the flags ask for one.
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

// The Landlock ABI version that each promise needs.
const (
	abiFiles   = 3 // truncating
	abiSignals = 6 // scopes
)

// Check returns which promises this kernel can hold. Nothing runs unless all hold or the mode is [Off].
func Check() []Promise {
	abi, _ := landlock.LandlockGetABIVersion() // on error, 0
	return promises(abi, filters())
}

func promises(abi int, filters bool) []Promise {
	sockets := Promise{promiseSockets, filters, "this kernel takes no seccomp filters"}
	tcp := sockets // without sockets there is no TCP
	tcp.Name = promiseTCP
	all := []Promise{fromABI(promiseFiles, abi, abiFiles), tcp, sockets, fromABI(promiseSignals, abi, abiSignals)}
	for i := range all {
		if all[i].Holds {
			all[i].Why = ""
		}
	}
	return all
}

func fromABI(name string, abi, needed int) Promise {
	why := fmt.Sprintf("Landlock is version %d here, and %d is needed", abi, needed)
	if abi <= 0 {
		why = "Landlock is missing, or switched off (see the kernel's parameter lsm=)"
	}
	return Promise{name, abi >= needed, why}
}

// filters reports whether the kernel supports the seccomp filters that we use.
func filters() bool {
	takes := func(action uint32) bool {
		_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
		return errno == 0
	}
	return takes(unix.SECCOMP_RET_ERRNO) && takes(unix.SECCOMP_RET_KILL_PROCESS) && takes(unix.SECCOMP_RET_USER_NOTIF)
}
