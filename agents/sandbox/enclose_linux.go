package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// enclose builds the walls around this process, every thread of it, for good.
func enclose(s spec) error {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // a service may be kept from it; its core files are the system's to keep
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
	config := landlock.V6 // exactly: less is an error, and more is not relied upon
	if s.Network {
		config.HandledAccessNet = 0
	}
	if err := config.Restrict(rules...); err != nil { // in one: a second layer would forbid every move between folders
		return fmt.Errorf("hold paths and signals: %w", err)
	}
	return shield(s)
}

// rules are what Landlock allows. What they were made from is held open until it is in force: what was opened is what is
// allowed, whatever has its name by then.
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
	// Within one writable folder, and from one to another, things may be moved and linked.
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

// openPlain opens an absolute path as a place, and refuses a symbolic link anywhere in it: folder by folder, since openat2
// is absent where daycared itself runs behind such walls.
func openPlain(p string) (*os.File, error) {
	const how = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Open("/", how, 0)
	for part := range strings.SplitSeq(strings.Trim(p, "/"), "/") {
		if err != nil || part == "" {
			break
		}
		outer := fd
		fd, err = unix.Openat(outer, part, how, 0)
		_ = unix.Close(outer)
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
