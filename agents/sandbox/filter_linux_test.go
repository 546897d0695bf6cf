//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The filter's results, call by call, from the BPF virtual machine. It reads big-endian where the kernel uses native
// order, so the data is laid out for it.
func TestFilter(t *testing.T) {
	for _, c := range calls() {
		if got := answered(t, false, c.arch, c.number, c.args); got != c.shut {
			t.Errorf("%s, without the network: %q, want %q", c.name, got, c.shut)
		}
		if got := answered(t, true, c.arch, c.number, c.args); got != c.open {
			t.Errorf("%s, with the network: %q, want %q", c.name, got, c.open)
		}
	}
}

// The filter's results by name.
const (
	permit, denied, missingCall, dead, asked, nothing = "allow", "EPERM", "ENOSYS", "kill", "ask", "errno 0"
	unsupported, noSpace, notThisFile                 = "EOPNOTSUPP", "ENOSPC", "ENOTTY"
)

// answered runs the filter.
func answered(t *testing.T, network bool, arch, number uint32, args [6]uint64) string {
	t.Helper()
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offNumber:], number)
	binary.BigEndian.PutUint32(data[offArch:], arch)
	for i, arg := range args {
		binary.BigEndian.PutUint32(data[offArgs+8*i:], uint32(arg))
		binary.BigEndian.PutUint32(data[offArgs+8*i+4:], uint32(arg>>32))
	}
	vm, err := bpf.NewVM(filter(network, ask))
	if err != nil {
		t.Fatal(err)
	}
	got, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return map[uint32]string{
		unix.SECCOMP_RET_ALLOW: permit, refuse.Val: denied, absent.Val: missingCall, kill.Val: dead, unable.Val: unsupported, full.Val: noSpace,
		ask.Val: asked, done.Val: nothing, noIoctl.Val: notThisFile,
	}[uint32(got)]
}

type callCase struct {
	name       string
	arch       uint32
	number     uint32
	args       [6]uint64
	shut, open string
}

// calls are the calls whose arguments matter, and one of each other kind.
func calls() []callCase {
	const create = unix.O_CREAT | unix.O_WRONLY
	setuid, setgid := uint64(0o4755), uint64(0o2755)
	return append([]callCase{
		{"read", auditArch, unix.SYS_READ, [6]uint64{}, permit, permit},
		{"another table", unix.AUDIT_ARCH_I386, unix.SYS_READ, [6]uint64{}, dead, dead},
		{"x32", auditArch, 0x40000000 | unix.SYS_READ, [6]uint64{}, missingCall, missingCall},
		{"a call that is newer than this table", auditArch, lastCall + 1, [6]uint64{}, missingCall, missingCall},
		{"socket", auditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_INET}, denied, permit},
		{"socket of IPv6", auditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_INET6}, denied, permit},
		{"socket of unix", auditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX}, denied, denied},
		{"socket of unix, wide", auditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_INET<<32 | unix.AF_UNIX}, denied, denied},
		{"connect", auditArch, unix.SYS_CONNECT, [6]uint64{}, denied, permit},
		{"a pair", auditArch, unix.SYS_SOCKETPAIR, [6]uint64{1, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, permit, permit},
		{"a pair of datagrams", auditArch, unix.SYS_SOCKETPAIR, [6]uint64{1, unix.SOCK_DGRAM}, denied, denied},
		{"clone3", auditArch, unix.SYS_CLONE3, [6]uint64{}, missingCall, missingCall},
		{"a thread", auditArch, unix.SYS_CLONE, [6]uint64{unix.CLONE_VM | unix.CLONE_THREAD}, permit, permit},
		{"a namespace", auditArch, unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWUSER}, denied, denied},
		{"typing", auditArch, unix.SYS_IOCTL, [6]uint64{0, unix.TIOCSTI}, denied, denied},
		{"a line discipline", auditArch, unix.SYS_IOCTL, [6]uint64{0, unix.TIOCSETD}, denied, denied},
		{"typing, wide", auditArch, unix.SYS_IOCTL, [6]uint64{0, 7<<32 | unix.TIOCSTI}, denied, denied},
		{"pasting", auditArch, unix.SYS_IOCTL, [6]uint64{0, unix.TIOCLINUX}, denied, denied},
		{"a window's size", auditArch, unix.SYS_IOCTL, [6]uint64{0, unix.TIOCGWINSZ}, permit, permit},
		{"whether there is something to read", auditArch, unix.SYS_IOCTL, [6]uint64{0, unix.TIOCINQ}, permit, permit},
		{"the index of an interface", auditArch, unix.SYS_IOCTL, [6]uint64{0, unix.SIOCGIFINDEX}, permit, permit},
		{"a copy of blocks", auditArch, unix.SYS_IOCTL, [6]uint64{0, unix.FICLONE}, permit, permit},
		{"the flags of a file", auditArch, unix.SYS_IOCTL, [6]uint64{0, unix.FS_IOC_GETFLAGS}, permit, permit},
		{"other flags of a file", auditArch, unix.SYS_IOCTL, [6]uint64{0, unix.FS_IOC_SETFLAGS}, notThisFile, notThisFile},
		{"other flags of a file, wide", auditArch, unix.SYS_IOCTL, [6]uint64{0, 7<<32 | unix.FS_IOC_SETFLAGS}, notThisFile, notThisFile},
		{"a file that nobody writes any more", auditArch, unix.SYS_IOCTL, [6]uint64{0, unix.FS_IOC_ENABLE_VERITY}, notThisFile, notThisFile},
		{"a subvolume", auditArch, unix.SYS_IOCTL, [6]uint64{0, 0x5000940e}, notThisFile, notThisFile},
		{"flags of a descriptor", auditArch, unix.SYS_FCNTL, [6]uint64{0, unix.F_SETFD, 1}, permit, permit},
		{"a lease", auditArch, unix.SYS_FCNTL, [6]uint64{0, unix.F_SETLEASE}, denied, denied},
		{"a delegation", auditArch, unix.SYS_FCNTL, [6]uint64{0, unix.F_SETDELEG}, denied, denied},
		{"its own limits", auditArch, unix.SYS_PRLIMIT64, [6]uint64{}, permit, permit},
		{"another's limits", auditArch, unix.SYS_PRLIMIT64, [6]uint64{7}, denied, denied},
		{"io_uring", auditArch, unix.SYS_IO_URING_SETUP, [6]uint64{}, denied, denied},
		{"ptrace", auditArch, unix.SYS_PTRACE, [6]uint64{}, denied, denied},
		{"a mode", auditArch, unix.SYS_FCHMOD, [6]uint64{1, 0o755}, asked, asked},
		{"setuid by fchmod", auditArch, unix.SYS_FCHMOD, [6]uint64{1, setuid}, denied, denied},
		{"setgid by fchmod, wide", auditArch, unix.SYS_FCHMOD, [6]uint64{1, 1<<32 | setgid}, denied, denied},
		{"setuid by fchmodat", auditArch, unix.SYS_FCHMODAT, [6]uint64{1, 1, setuid}, denied, denied},
		{"setgid by fchmodat2", auditArch, unix.SYS_FCHMODAT2, [6]uint64{1, 1, setgid}, denied, denied},
		{"open to read, whatever stands for the mode", auditArch, unix.SYS_OPENAT, [6]uint64{1, 1, 0, setuid}, permit, permit},
		{"make a file", auditArch, unix.SYS_OPENAT, [6]uint64{1, 1, create, 0o644}, permit, permit},
		{"make a setuid file", auditArch, unix.SYS_OPENAT, [6]uint64{1, 1, create, setuid}, denied, denied},
		{"make a setgid file without a name", auditArch, unix.SYS_OPENAT, [6]uint64{1, 1, unix.O_TMPFILE | unix.O_RDWR, setgid}, denied, denied},
		{"open a folder", auditArch, unix.SYS_OPENAT, [6]uint64{1, 1, unix.O_DIRECTORY, setgid}, permit, permit},
		{"make a setuid node", auditArch, unix.SYS_MKNODAT, [6]uint64{1, 1, unix.S_IFREG | setuid}, denied, denied},
		{"make a setgid folder", auditArch, unix.SYS_MKDIRAT, [6]uint64{1, 1, setgid}, denied, denied},
		{"another's file", auditArch, unix.SYS_FCHOWN, [6]uint64{1, 12345, 0xffffffff}, denied, denied},
		{"another group's file", auditArch, unix.SYS_FCHOWNAT, [6]uint64{1, 1, 0xffffffff, 12345}, denied, denied},
		{"one's own group's file", auditArch, unix.SYS_FCHOWN, [6]uint64{1, 0xffffffff, uint64(os.Getegid())}, nothing, nothing},
		{"sharing a core", auditArch, unix.SYS_PRCTL, [6]uint64{unix.PR_SCHED_CORE}, denied, denied},
		{"a name of its own", auditArch, unix.SYS_PRCTL, [6]uint64{unix.PR_SET_NAME}, permit, permit},
		{"its own priority", auditArch, unix.SYS_SETPRIORITY, [6]uint64{unix.PRIO_PROCESS, 0, 5}, permit, permit},
		{"another's priority", auditArch, unix.SYS_SETPRIORITY, [6]uint64{unix.PRIO_PROCESS, 7, 5}, denied, denied},
		{"the priority of all of its account's", auditArch, unix.SYS_SETPRIORITY, [6]uint64{unix.PRIO_USER, 0, 5}, denied, denied},
		{"its own turn at the disk", auditArch, unix.SYS_IOPRIO_SET, [6]uint64{ioprioProcess, 0}, permit, permit},
		{"another's turn at the disk", auditArch, unix.SYS_IOPRIO_SET, [6]uint64{ioprioProcess, 7}, denied, denied},
		{"the turn of all of its account's", auditArch, unix.SYS_IOPRIO_SET, [6]uint64{3, 0}, denied, denied},
	}, append(others(), callsHere...)...)
}

// others are the calls that are allowed for the caller alone.
func others() (all []callCase) {
	for _, number := range []uint32{
		unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETAFFINITY,
		unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_GET_ROBUST_LIST,
	} {
		all = append(all,
			callCase{fmt.Sprintf("call %d about itself", number), auditArch, number, [6]uint64{}, permit, permit},
			callCase{fmt.Sprintf("call %d about another", number), auditArch, number, [6]uint64{7}, denied, denied})
	}
	return all
}

// The kernel's system call table, row by row: a call that golang.org/x/sys learns needs a decision. Those under "argument" depend
// on their arguments; calls has cases of each. Those under "network" do so with the network, or are allowed then.
const verdicts = `
allow: READ WRITE CLOSE STAT FSTAT LSTAT POLL LSEEK MMAP MPROTECT MUNMAP BRK RT_SIGACTION RT_SIGPROCMASK RT_SIGRETURN PREAD64
 PWRITE64 READV WRITEV ACCESS PIPE SELECT SCHED_YIELD MREMAP MSYNC MINCORE MADVISE DUP DUP2 PAUSE NANOSLEEP GETITIMER ALARM
 SETITIMER GETPID SENDFILE ACCEPT SENDTO RECVFROM SENDMSG RECVMSG SHUTDOWN GETSOCKNAME GETPEERNAME SETSOCKOPT GETSOCKOPT FORK
 VFORK EXECVE EXIT WAIT4 KILL UNAME FLOCK FSYNC FDATASYNC TRUNCATE FTRUNCATE GETDENTS GETCWD CHDIR FCHDIR RENAME RMDIR
 LINK UNLINK SYMLINK READLINK UMASK GETTIMEOFDAY GETRLIMIT GETRUSAGE SYSINFO TIMES GETUID GETGID SETUID SETGID GETEUID GETEGID
 SETPGID GETPPID GETPGRP SETSID SETREUID SETREGID GETGROUPS SETGROUPS SETRESUID GETRESUID SETRESGID GETRESGID GETPGID SETFSUID
 SETFSGID GETSID CAPGET CAPSET RT_SIGPENDING RT_SIGTIMEDWAIT RT_SIGQUEUEINFO RT_SIGSUSPEND SIGALTSTACK UTIME PERSONALITY USTAT
 STATFS FSTATFS SYSFS GETPRIORITY SCHED_GETPARAM SCHED_GETSCHEDULER SCHED_GET_PRIORITY_MAX SCHED_GET_PRIORITY_MIN
 SCHED_RR_GET_INTERVAL MLOCK MUNLOCK MLOCKALL MUNLOCKALL ARCH_PRCTL SETRLIMIT SYNC GETTID READAHEAD GETXATTR LGETXATTR
 FGETXATTR LISTXATTR LLISTXATTR FLISTXATTR TKILL TIME FUTEX SCHED_GETAFFINITY SET_THREAD_AREA IO_SETUP IO_DESTROY IO_GETEVENTS
 IO_SUBMIT IO_CANCEL GET_THREAD_AREA EPOLL_CREATE REMAP_FILE_PAGES GETDENTS64 SET_TID_ADDRESS RESTART_SYSCALL FADVISE64
 TIMER_CREATE TIMER_SETTIME TIMER_GETTIME TIMER_GETOVERRUN TIMER_DELETE CLOCK_GETTIME CLOCK_GETRES CLOCK_NANOSLEEP EXIT_GROUP
 EPOLL_WAIT EPOLL_CTL TGKILL UTIMES MBIND SET_MEMPOLICY GET_MEMPOLICY MQ_TIMEDSEND MQ_TIMEDRECEIVE MQ_NOTIFY MQ_GETSETATTR
 WAITID IOPRIO_GET INOTIFY_INIT INOTIFY_INIT1 INOTIFY_RM_WATCH
 FUTIMESAT NEWFSTATAT UNLINKAT RENAMEAT LINKAT SYMLINKAT READLINKAT FACCESSAT PSELECT6 PPOLL
 SET_ROBUST_LIST SPLICE TEE SYNC_FILE_RANGE VMSPLICE UTIMENSAT EPOLL_PWAIT SIGNALFD TIMERFD_CREATE EVENTFD FALLOCATE
 TIMERFD_SETTIME TIMERFD_GETTIME ACCEPT4 SIGNALFD4 EVENTFD2 EPOLL_CREATE1 DUP3 PIPE2 PREADV PWRITEV RT_TGSIGQUEUEINFO RECVMMSG
 NAME_TO_HANDLE_AT SYNCFS SENDMMSG GETCPU SCHED_GETATTR RENAMEAT2 SECCOMP GETRANDOM MEMFD_CREATE EXECVEAT MEMBARRIER MLOCK2
 COPY_FILE_RANGE PREADV2 PWRITEV2 PKEY_MPROTECT PKEY_ALLOC PKEY_FREE STATX IO_PGETEVENTS RSEQ PIDFD_SEND_SIGNAL PIDFD_OPEN
 CLOSE_RANGE FACCESSAT2 EPOLL_PWAIT2 LANDLOCK_CREATE_RULESET LANDLOCK_ADD_RULE LANDLOCK_RESTRICT_SELF MEMFD_SECRET FUTEX_WAITV
 SET_MEMPOLICY_HOME_NODE CACHESTAT MAP_SHADOW_STACK FUTEX_WAKE FUTEX_WAIT FUTEX_REQUEUE LSM_GET_SELF_ATTR LSM_LIST_MODULES
 MSEAL GETXATTRAT LISTXATTRAT FILE_GETATTR RSEQ_SLICE_YIELD URETPROBE UPROBE FSTATAT
allow, for what no kernel has any more: CREATE_MODULE GET_KERNEL_SYMS QUERY_MODULE NFSSERVCTL GETPMSG PUTPMSG AFS_SYSCALL
 TUXCALL SECURITY EPOLL_CTL_OLD EPOLL_WAIT_OLD VSERVER
argument: OPEN OPENAT CREAT MKDIR MKDIRAT MKNOD MKNODAT CHMOD FCHMOD FCHMODAT FCHMODAT2 CHOWN LCHOWN FCHOWN FCHOWNAT CLONE IOCTL FCNTL
 PRCTL SOCKETPAIR PRLIMIT64 SCHED_SETPARAM SCHED_SETSCHEDULER SCHED_SETATTR SCHED_SETAFFINITY SETPRIORITY IOPRIO_SET
 MIGRATE_PAGES MOVE_PAGES GET_ROBUST_LIST
network: SOCKET CONNECT BIND LISTEN
EPERM: SHMGET SHMAT SHMCTL SHMDT SEMGET SEMOP SEMCTL SEMTIMEDOP MSGGET MSGSND MSGRCV MSGCTL MQ_OPEN MQ_UNLINK PTRACE
 PROCESS_VM_READV PROCESS_VM_WRITEV PROCESS_MADVISE PROCESS_MRELEASE PIDFD_GETFD KCMP PERF_EVENT_OPEN BPF USERFAULTFD
 IO_URING_SETUP IO_URING_ENTER IO_URING_REGISTER OPEN_BY_HANDLE_AT FANOTIFY_INIT FANOTIFY_MARK LSM_SET_SELF_ATTR MOUNT UMOUNT2
 MOVE_MOUNT OPEN_TREE OPEN_TREE_ATTR FSOPEN FSMOUNT FSCONFIG FSPICK MOUNT_SETATTR STATMOUNT LISTMOUNT PIVOT_ROOT CHROOT UNSHARE
 SETNS LISTNS KEYCTL ADD_KEY REQUEST_KEY KEXEC_LOAD KEXEC_FILE_LOAD INIT_MODULE FINIT_MODULE DELETE_MODULE REBOOT SWAPON SWAPOFF
 ACCT QUOTACTL QUOTACTL_FD SYSLOG LOOKUP_DCOOKIE SETTIMEOFDAY CLOCK_SETTIME ADJTIMEX CLOCK_ADJTIME SETHOSTNAME SETDOMAINNAME
 VHANGUP IOPL IOPERM MODIFY_LDT USELIB _SYSCTL
ENOSYS: CLONE3 OPENAT2
ENOSPC: INOTIFY_ADD_WATCH
EOPNOTSUPP: SETXATTR LSETXATTR FSETXATTR SETXATTRAT FILE_SETATTR REMOVEXATTR LREMOVEXATTR FREMOVEXATTR REMOVEXATTRAT
`

func TestEverySystemCallHasAVerdict(t *testing.T) {
	verdict := map[string]string{}
	sort := ""
	for line := range strings.Lines(verdicts) {
		if head, rest, ok := strings.Cut(line, ":"); ok {
			sort, line = strings.Split(head, ",")[0], rest
		}
		for _, name := range strings.Fields(line) {
			if verdict[name] != "" {
				t.Errorf("%s has two verdicts", name)
			}
			verdict[name] = sort
		}
	}
	cases := map[uint32]bool{}
	for _, c := range calls() {
		cases[c.number] = true
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "zsysnum_linux_"+runtime.GOARCH+".go"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\s+SYS_(\w+)\s+= (\d+)$`).FindAllStringSubmatch(string(table), -1)
	if len(rows) < 300 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	for _, row := range rows {
		name := row[1]
		n, err := strconv.ParseUint(row[2], 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		number, want := uint32(n), verdict[name]
		got, open := answered(t, false, auditArch, number, [6]uint64{}), answered(t, true, auditArch, number, [6]uint64{})
		switch want {
		case "argument":
			if !cases[number] {
				t.Errorf("%s is judged by its arguments, and no case says how", name)
			}
		case "network":
			if got != denied || open != permit && !cases[number] {
				t.Errorf("%s without the network: %s, with it: %s", name, got, open)
			}
		default:
			if got != want || open != want {
				t.Errorf("%s: %s, with the network %s; the verdict is %q", name, got, open, want)
			}
		}
	}
}

// Missing kernel features are reported.
func TestPromises(t *testing.T) {
	for _, c := range []struct {
		abi     int
		filters bool
		lacking string
	}{
		{7, true, ""},
		{6, true, ""},
		{5, true, promiseSignals},
		{2, true, promiseFiles + "," + promiseSignals},
		{0, true, promiseFiles + "," + promiseSignals},
		{7, false, promiseTCP + "," + promiseSockets},
	} {
		var lacking []string
		for _, p := range promises(c.abi, c.filters) {
			if !p.Holds {
				lacking = append(lacking, p.Name)
			}
			if p.Holds == (p.Why != "") {
				t.Errorf("%+v", p)
			}
		}
		if got := strings.Join(lacking, ","); got != c.lacking {
			t.Errorf("version %d, filters %v: lacking %q, want %q", c.abi, c.filters, got, c.lacking)
		}
	}
	if _, err := install([]bpf.Instruction{bpf.RawInstruction{Op: 0xffff}}, unix.SECCOMP_FILTER_FLAG_TSYNC); err == nil {
		t.Error("what is no filter is installed")
	}
}
