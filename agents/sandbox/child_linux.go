package sandbox

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// The descriptors that our processes inherit besides the standard streams.
const (
	fdOrder   = 3
	fdControl = 4 // of a supervisor; in a command: its end of the pipe for the filter
)

// asCommand runs the process that becomes the command.
func asCommand() int {
	runtime.LockOSThread() // capabilities belong to a thread, and this one executes the command
	if err := execCommand(); err != nil {
		fmt.Fprintln(os.Stderr, "daycared sandbox:", err)
	}
	return NotStarted
}

// execCommand sandboxes this process and executes the command, with the standard streams and no other descriptor.
func execCommand() error {
	s, err := readSpec()
	if err != nil {
		return err
	}
	if len(s.Argv) == 0 {
		return errors.New("there is no command")
	}
	if err := s.enter(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	s.Write = append(s.Write, s.Scratch)
	if err := restrictProcess(s); err != nil {
		return err
	}
	if !s.Off {
		if err := dropPrivileges(); err != nil {
			return err
		}
	}
	program, err := exec.LookPath(s.Argv[0])
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := unix.Exec(program, s.Argv, s.environ()); err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	return nil
}

// enter changes to the command's directory.
func (s spec) enter() error {
	dir, err := openPlain(s.dir())
	if err != nil {
		return err
	}
	defer dir.Close()
	info, err := dir.Stat()
	if err == nil {
		err = s.Held.Check(s.dir(), info)
	}
	if err != nil {
		return err
	}
	return dir.Chdir()
}

// readSpec reads this process's spec, which others may read afterwards, and sets all but the standard streams close-on-exec.
func readSpec() (spec, error) {
	text, err := io.ReadAll(io.NewSectionReader(os.NewFile(fdOrder, "order"), 0, math.MaxInt64))
	if err != nil {
		return spec{}, fmt.Errorf("read what the sandbox is to do: %w", err)
	}
	if err := unix.CloseRange(fdOrder, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return spec{}, fmt.Errorf("close what was inherited: %w", err)
	}
	return decode(text)
}

// dropPrivileges drops root's privileges, except those for files, which the sandbox restricts anyway. A process without
// privileges may be denied the system call, as in a service.
func dropPrivileges() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	err := unix.Capget(&header, &has[0])
	const keep = 1 << unix.CAP_DAC_OVERRIDE
	if err == nil && (has[0].Permitted&^keep|has[0].Inheritable|has[1].Permitted|has[1].Inheritable) != 0 {
		has = [2]unix.CapUserData{{Effective: has[0].Effective & keep, Permitted: has[0].Permitted & keep}}
		err = unix.Capset(&header, &has[0]) // this clears the ambient set as well
	}
	if err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	return nil
}

// fork executes our binary as the command, which dies with the supervisor and sends the filter's listener over trust.
func fork(s spec) (pid, trust int, err error) {
	order, err := passSpec(s)
	if err != nil {
		return 0, 0, err
	}
	defer order.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("make a pair of sockets: %w", err)
	}
	defer unix.Close(pair[1])
	attr := &syscall.ProcAttr{
		Env:   os.Environ(), // set by the daemon
		Files: []uintptr{0, 1, 2, order.Fd(), uintptr(pair[1])},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	pid, err = syscall.ForkExec(executable, []string{commandName}, attr) //nolint:gosec // our own binary
	if err != nil {
		return 0, 0, fmt.Errorf("execute our own binary: %w", err)
	}
	return pid, pair[0], nil
}

// restrictProcess sandboxes this process irreversibly, including all its threads.
func restrictProcess(s spec) error {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // a service may be denied this; core files are then the system's concern
	if s.Off {
		return nil
	}
	rules, held, err := rules(s)
	defer func() {
		for _, f := range held {
			_ = f.Close()
		}
	}()
	if err != nil {
		return err
	}
	config := landlock.V6 // exactly: less is an error, more is unused
	if s.Network {
		config.HandledAccessNet = 0
	}
	if err := config.Restrict(rules...); err != nil { // in one layer: a second one would forbid every move between folders
		return fmt.Errorf("hold paths and signals: %w", err)
	}
	return restrictCalls(s, held[len(held)-len(s.Write):])
}

// rules are the Landlock rules. The returned files must stay open until the rules are in force, so that what was opened
// is what is allowed, even if it was renamed; what may be written comes last.
func rules(s spec) (rules []landlock.Rule, held []*os.File, err error) {
	add := func(p string, follow bool, folder, file func(...string) landlock.FSRule) error {
		open := openPlain
		if follow {
			open = func(p string) (*os.File, error) { return os.OpenFile(p, unix.O_PATH, 0) } //nolint:gosec // of base
		}
		f, err := open(p)
		if follow && errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reach %s: %w", p, err)
		}
		held = append(held, f)
		info, err := f.Stat()
		if err != nil {
			return fmt.Errorf("reach %s: %w", p, err)
		}
		if err := s.Held.Check(p, info); err != nil {
			return err
		}
		name := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
		if info.IsDir() {
			rules = append(rules, folder(name))
		} else {
			rules = append(rules, file(name))
		}
		return nil
	}
	// Files may be moved and linked within and between writable folders.
	writable := func(p ...string) landlock.FSRule { return landlock.RWDirs(p...).WithRefer() }
	for _, of := range []struct {
		paths        []string
		follow       bool
		folder, file func(...string) landlock.FSRule
	}{
		{append(append([]string{}, base.folders...), base.files...), true, landlock.RODirs, landlock.ROFiles},
		{base.devices, true, landlock.RWDirs, landlock.RWFiles},
		{s.Read, false, landlock.RODirs, landlock.ROFiles},
		{s.Write, false, writable, landlock.RWFiles},
	} {
		for _, p := range of.paths {
			if err := add(p, of.follow, of.folder, of.file); err != nil {
				return nil, held, err
			}
		}
	}
	return rules, held, nil
}

// openPlain opens an absolute path with O_PATH and refuses symbolic links anywhere in it.
func openPlain(p string) (*os.File, error) { return walkPlain(p, func(int) {}) }

// walkPlain is [openPlain], and visits each folder on the way and what it opens. It goes folder by folder also because openat2 is
// missing when daycared itself runs in such a sandbox.
func walkPlain(p string, visit func(fd int)) (*os.File, error) {
	const how = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Open("/", how, 0)
	for part := range strings.SplitSeq(strings.Trim(p, "/"), "/") {
		if err != nil || part == "" {
			break
		}
		outer := fd
		fd, err = unix.Openat(outer, part, how, 0)
		_ = unix.Close(outer)
		visit(fd)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: p, Err: err}
	}
	f := os.NewFile(uintptr(fd), p)
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeSymlink != 0 {
		return nil, errors.Join(err, f.Close(), fmt.Errorf("open %s: %w", p, unix.ELOOP))
	}
	return f, nil
}
