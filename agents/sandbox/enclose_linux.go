package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// enclose sandboxes this process irreversibly, including all its threads.
func enclose(s spec) error {
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
	return shield(s)
}

// rules are the Landlock rules. The returned files must stay open until the rules are in force, so that what was opened
// is what is allowed, even if it was renamed.
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

// openPlain opens an absolute path with O_PATH and refuses symbolic links anywhere in it. It goes folder by folder
// because openat2 is missing when daycared itself runs in such a sandbox.
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
