package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/internal/own"
)

// runSupervisor runs the supervisor of a command. As a subreaper it becomes the parent of orphaned descendants, so none
// escapes or outlives it. It exits with the command's code.
func runSupervisor() int {
	runtime.LockOSThread() // the command gets the signal when the thread that started it dies; and see domain
	code, err := supervise()
	if err != nil {
		fmt.Fprintln(os.Stderr, "daycared sandbox:", err)
		return NotStarted
	}
	return code
}

func supervise() (code int, err error) {
	s, err := readSpec()
	if err != nil {
		return 0, err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("gather orphans: %w", err)
	}
	made, err := os.MkdirTemp(own.Resolve(s.Scratch), "daycared-")
	if err != nil {
		return 0, fmt.Errorf("make a scratch folder: %w", err)
	}
	defer removeScratch(made)
	s.Scratch = made
	all := signalAll
	if !s.Off {
		if all, err = enterSignalDomain(); err != nil {
			return 0, fmt.Errorf("hold signals: %w", err)
		}
	}
	told := make(chan os.Signal, 1)
	// What the terminal sends reaches the command as well, and must neither end nor stop this process.
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	pid, trust, err := fork(s)
	if err != nil {
		return 0, err
	}
	go func() {
		if fds := receiveListener(trust); len(fds) > 0 {
			answerModes(fds[0], fds[1:])
		}
	}()
	closeStreams()
	orders, over := make(chan func()), make(chan struct{})
	go func() {
		defer close(over)
		relaySignals(os.NewFile(fdControl, "life"), func(sig syscall.Signal) {
			sent := make(chan struct{})
			orders <- func() {
				all(sig)
				close(sent)
			}
			<-sent
		})
	}()
	go func() {
		for sig := range told {
			if sig == syscall.SIGTERM {
				_ = unix.Kill(pid, syscall.SIGTERM)
			}
		}
	}()
	return waitForDescendants(pid, orders, over, all), nil
}

// relaySignals signals everything as the daemon orders, see [Sandbox.command], until that closes its end, or is gone. What is to stop may
// still read something before it does so.
func relaySignals(life io.ReadWriter, all func(syscall.Signal)) {
	moves := func(state string) bool { return state != "" && !strings.ContainsAny(state, "TtZXx") }
	for one := []byte{0}; ; {
		if _, err := life.Read(one); err != nil {
			return
		}
		sig := syscall.Signal(one[0])
		all(sig)
		for range 500 {
			if sig != unix.SIGSTOP || !anyThread(descendants(os.Getpid(), processes()), moves) {
				break
			}
			time.Sleep(time.Millisecond)
			all(sig) // where they were looked for, some may have been born since
		}
		_, _ = life.Write(one)
	}
}

// closeStreams closes the standard streams, so that they end with the command's.
func closeStreams() {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	for fd := 0; fd < fdOrder && err == nil; fd++ {
		err = unix.Dup3(null, fd, 0)
	}
}

// waitForDescendants waits until no descendant is left, and returns the command's exit code. Once the command has ended, or over is
// closed, it ends the others: again after any of them died, which may have left another. It reaps them in the meantime, so that the
// dead do not fill the table of processes. Until then it carries out orders.
func waitForDescendants(pid int, orders <-chan func(), over <-chan struct{}, all func(syscall.Signal)) (code int) {
	ended, died, none := make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(none)
		for {
			var status unix.WaitStatus
			got, err := unix.Wait4(-1, &status, 0, nil)
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case err != nil:
				return
			}
			if got == pid {
				if code = status.ExitStatus(); status.Signaled() {
					code = 128 + int(status.Signal())
				}
				pid = 0 // another may get its id
				close(ended)
			}
			select {
			case died <- struct{}{}:
			default:
			}
		}
	}()
	for going := true; going; {
		select {
		case do := <-orders:
			do()
		case <-over:
			going = false
		case <-ended:
			going = false
		}
	}
	for {
		all(unix.SIGKILL)
		select {
		case <-died:
		case <-none:
			return code
		}
	}
}

// enterSignalDomain puts this thread, and what it starts from now on, in a Landlock domain out of which no signal goes, and returns what
// signals all the others in it: at once, as the kernel lets none of them fork meanwhile, however fast they do. The command cannot reach
// this thread, because its own domain is a part of this one. Where signals are not held, they are looked for and signalled one by one.
func enterSignalDomain() (all func(syscall.Signal), err error) {
	held := func() bool { return errors.Is(unix.Kill(unix.Getppid(), 0), unix.EPERM) } // the daemon, which is outside
	before := unix.Kill(unix.Getppid(), 0)
	// Every layer forbids moves between folders unless a rule allows them.
	attr := landlock.RulesetAttr{HandledAccessFS: landlock.AccessFSRefer, Scoped: landlock.ScopeSignal}
	rules, err := landlock.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(rules)
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	everywhere := landlock.PathBeneathAttr{AllowedAccess: landlock.AccessFSRefer, ParentFd: root}
	if err := landlock.LandlockAddPathBeneathRule(rules, &everywhere, 0); err != nil {
		return nil, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	var flags uint32
	if abi, _ := landlock.LandlockGetABIVersion(); abi >= abiQuiet {
		flags = landlock.FlagRestrictSelfLogSameExecOff
	}
	if err := landlock.LandlockRestrictSelf(rules, flags); err != nil { // this thread alone
		return nil, err
	}
	if before != nil || !held() {
		return signalAll, nil
	}
	thread := unix.Gettid()
	return func(sig syscall.Signal) {
		if unix.Gettid() != thread || !held() {
			signalAll(sig)
			return
		}
		_ = unix.Kill(-1, sig)
	}, nil
}

// abiQuiet is the Landlock version that can leave the processes outside, each of which is refused, out of the kernel's audit log.
const abiQuiet = 7

// signalAll signals every descendant of this process. If it kills them, then also, for a while, those that became its children since: the
// successor of a process that forks and exits is found there sooner than among all processes.
func signalAll(sig syscall.Signal) {
	for _, pid := range descendants(os.Getpid(), processes()) {
		_ = unix.Kill(pid, sig)
	}
	if sig != unix.SIGKILL {
		return
	}
	children, err := os.Open(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid())) // not in every kernel
	if err != nil {
		return
	}
	defer children.Close()
	list := make([]byte, 4096)
	for range 500 {
		n, _ := children.ReadAt(list, 0)
		whole := bytes.LastIndexByte(list[:n], ' ') + 1 // the last id may be cut
		if whole == 0 {
			return
		}
		for _, id := range bytes.Fields(list[:whole]) {
			if pid, err := strconv.Atoi(string(id)); err == nil {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
}

// descendants are those of a process, in no order.
func descendants(of int, parents map[int]int) (below []int) {
	for pid := range parents {
		for up, steps := pid, 0; up > 1 && steps <= len(parents); up, steps = parents[up], steps+1 {
			if parents[up] == of {
				below = append(below, pid)
				break
			}
		}
	}
	return below
}

// hangs reports whether a process or a descendant of it waits in the kernel for what no signal interrupts.
func hangs(pid int) bool {
	return anyThread(append(descendants(pid, processes()), pid), func(state string) bool { return state == "D" })
}

// anyThread reports whether a thread of the processes is in such a state.
func anyThread(of []int, is func(state string) bool) bool {
	for _, pid := range of {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, thread := range threads {
			if state, _, ok := stat(thread); ok && is(state) {
				return true
			}
		}
	}
	return false
}

// processes maps every visible process to its parent.
func processes() map[int]int {
	all := map[int]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if _, parent, ok := stat(filepath.Join("/proc", e.Name(), "stat")); ok {
			all[pid] = parent
		}
	}
	return all
}

// stat reads the state and the parent of a process or a thread; ok is false if it is gone.
func stat(file string) (state string, parent int, ok bool) {
	text, err := os.ReadFile(file) //nolint:gosec // of /proc
	// "pid (name) state ppid …"; the name may contain anything.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if err != nil || len(fields) < 2 {
		return "", 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return fields[0], parent, err == nil
}

// removeScratch removes a scratch folder, even if its folders lack permissions for their owner.
func removeScratch(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(p string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			makeRemovable(p)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// makeRemovable lets a folder's owner remove what is in it. It follows no link: another command may write where scratch folders are made.
func makeRemovable(folder string) {
	if f, err := openPlain(folder); err == nil {
		_ = os.Chmod(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), 0o700) //nolint:gosec // a folder needs its x
		_ = f.Close()
	}
}
