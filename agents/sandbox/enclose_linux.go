package sandbox

import (
	"errors"
	"fmt"
	"os"

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
		how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
		if follow {
			how.Resolve = 0
		}
		fd, err := unix.Openat2(unix.AT_FDCWD, p, how)
		if follow && errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reach %s: %w", p, err)
		}
		f := os.NewFile(uintptr(fd), p)
		held = append(held, f)
		info, err := f.Stat()
		if err != nil {
			return fmt.Errorf("reach %s: %w", p, err)
		}
		name := fmt.Sprintf("/proc/self/fd/%d", fd)
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
