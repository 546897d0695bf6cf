// Package sandbox starts programs, and touches files, behind walls that the kernel holds: which paths, whether the
// network, and nothing of what daycared is. Go cannot run code between fork and exec, so our own binary is executed again
// and builds the walls around itself: [Main], called first thing, is where such a process goes.
//
// A command has a warden before it, one more process of ours: it gathers every descendant, also one that left its session,
// and kills them all when the command has ended, when it is told to, or when the daemon is gone. A file operation needs
// none; it runs in a process of its own and starts nothing.
//
// The walls: Landlock holds paths, TCP, signals and abstract sockets; a seccomp filter refuses every socket that was not
// granted, other doors into the kernel (io_uring, foreign system calls, tracing, namespaces), and typing into a terminal;
// the modes of files, which neither holds by their paths, are set by the warden. Landlock has no exceptions below an
// allowed folder, so what would put the daemon's own within reach is refused as a whole.
//
// What is not held: a hard link that was made beforehand, from within an allowed folder to a file outside, is that file,
// and a bind mount is the folder that it shows; neither can be made from inside. Whether a file outside is there, and how
// large, can be asked, and its times can be set. What a command uses of processor, memory and disk is not bounded.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Mode says whether walls are built.
type Mode string

// The modes. Whatever the mode, a command has none of the daemon's environment and descriptors, and ends with all that
// it started.
const (
	On  Mode = "on"  // what the kernel cannot hold is not run
	Off Mode = "off" // the operator wants it without walls
)

// Options are what a [Sandbox] is made of.
type Options struct {
	// Own are the absolute paths that are the daemon's own: data, configuration, credentials, sockets. They need not exist.
	// Nothing that covers one, or lies in one, is ever within reach.
	Own  []string
	Mode Mode // empty: On
	// Scratch is the folder that commands' private scratch folders are made in; empty: the system's for temporary files.
	Scratch string
}

// Sandbox starts what is held by walls. It is safe for concurrent use.
type Sandbox struct {
	own     []string
	off     bool
	scratch string
	self    string // our binary: nothing held may write it
}

// New makes a sandbox. It starts nothing.
func New(o Options) *Sandbox {
	s := &Sandbox{off: o.Mode == Off, scratch: o.Scratch, self: self()}
	for _, p := range o.Own {
		if p != "" && resolve(p) != s.self { // which is no secret; see admit
			s.own = append(s.own, p)
		}
	}
	if s.scratch == "" {
		s.scratch = os.TempDir()
	}
	return s
}

// Walls are what one command or operation can reach. Paths are absolute, without symbolic links, and exist: what people
// were shown is what is opened.
type Walls struct {
	Read    []string // files and folders
	Write   []string // files and folders; they may be read as well
	Network bool     // TCP and UDP over IPv4 and IPv6, wherever to
	Dir     string   // where a command starts; empty: its scratch folder
	Home    string   // its HOME; empty: its scratch folder
	Env     []string // NAME=value, besides PATH, HOME, LANG, TERM and TMPDIR
}

// Why something is not run. Match with [errors.Is].
var (
	ErrOwn    = errors.New("that is daycared's own")
	ErrUnheld = errors.New("this kernel cannot hold the walls")
)

// Ready tells why nothing at all can be run here, if so: what the kernel lacks (ErrUnheld), or that something of the
// daemon's own lies in what every command may read (ErrOwn).
func (s *Sandbox) Ready() error { return s.admit(Walls{}) }

// admit refuses walls that cannot be held, that would put the daemon's own within reach, or that are not what they say.
func (s *Sandbox) admit(w Walls) error {
	if !s.off {
		for _, p := range Check() {
			if !p.Holds {
				return fmt.Errorf("%w: %s: %s", ErrUnheld, p.Name, p.Why)
			}
		}
		if err := s.apart(existing(base.all()...)...); err != nil {
			return err
		}
	}
	for _, p := range append(append([]string{}, w.Read...), w.Write...) {
		if err := plain(p); err != nil {
			return err
		}
	}
	if err := s.apart(append(append([]string{}, w.Read...), w.Write...)...); err != nil {
		return err
	}
	for _, p := range w.Write {
		if s.self != "" && meet(p, s.self) {
			return fmt.Errorf("write %s: %w: its binary is %s", p, ErrOwn, s.self)
		}
	}
	return nil
}

// apart refuses paths that meet what is the daemon's own, by name or by where symbolic links lead.
func (s *Sandbox) apart(paths ...string) error {
	leads := make([]string, len(paths))
	for i, p := range paths {
		leads[i] = resolve(p)
	}
	for _, own := range s.own {
		for _, o := range []string{filepath.Clean(own), resolve(own)} {
			for i, p := range paths {
				if meet(p, o) || meet(leads[i], o) {
					return fmt.Errorf("reach %s: %w: %s; a folder cannot be allowed without what lies in it", p, ErrOwn, own)
				}
			}
		}
	}
	return nil
}

// plain refuses a path that is missing, or that a symbolic link leads away from its name.
func plain(p string) error {
	if !filepath.IsAbs(p) || filepath.Clean(p) != p {
		return fmt.Errorf("reach %q: the path is not absolute and clean", p)
	}
	leads, err := filepath.EvalSymlinks(p)
	if err != nil {
		return fmt.Errorf("reach %s: %w", p, err)
	}
	if leads != p {
		return fmt.Errorf("reach %s: it is a symbolic link, and leads to %s; name that", p, leads)
	}
	return nil
}

// meet tells whether one clean path is the other, or lies in it.
func meet(a, b string) bool { return within(a, b) || within(b, a) }

func within(outer, inner string) bool {
	return inner == outer || outer == "/" || strings.HasPrefix(inner, outer+"/")
}

// resolve is where a path leads, as far as it exists.
func resolve(p string) string {
	p = filepath.Clean(p)
	if leads, err := filepath.EvalSymlinks(p); err == nil {
		return leads
	}
	parent := filepath.Dir(p)
	if parent == p {
		return p
	}
	return filepath.Join(resolve(parent), filepath.Base(p))
}

func existing(paths ...string) (there []string) {
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			there = append(there, p)
		}
	}
	return there
}

func self() string {
	p, err := os.Executable()
	if err != nil {
		return ""
	}
	return resolve(p)
}
