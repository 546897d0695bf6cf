// Package sandbox starts programs, and touches files, behind walls that the kernel holds: which paths, whether the
// network, and nothing of what daycared is. Go cannot run code between fork and exec, so our own binary is executed again
// and builds the walls around itself: [Main], called first thing, is where such a process goes.
//
// A command has a warden before it, one more process of ours: it gathers every descendant, also one that left its session,
// and kills them all when the command has ended, when it is told to, or when the daemon is gone. A file operation needs
// none; it runs in a process of its own and starts nothing.
//
// The walls: Landlock holds paths, TCP, signals and abstract sockets; a seccomp filter refuses every socket that was not
// granted, other doors into the kernel (io_uring, foreign system calls, tracing, namespaces), what outlives the command or
// reaches other processes (System V IPC, inotify, priorities), and typing into a terminal; the modes of files, which neither
// holds by their paths, are set by the warden, and never setuid or setgid. Landlock has no exceptions below an allowed
// folder, so what would put the daemon's own within reach is refused as a whole.
//
// What is not held: a hard link that was made beforehand, from within an allowed folder to a file outside, is that file,
// and a bind mount is the folder that it shows; neither can be made from inside. Whether a file outside is there, and how
// large, can be asked, and its times can be set. What a command uses of processor, memory and disk is not bounded.
package sandbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/daycared/daycared/internal/own"
)

// Mode reports whether walls are built.
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
	s := &Sandbox{off: o.Mode == Off, scratch: cmp.Or(o.Scratch, os.TempDir()), self: self()}
	for _, p := range o.Own {
		if p != "" && own.Resolve(p) != s.self { // which is no secret; see admit
			s.own = append(s.own, p)
		}
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
	Held    Folder   // one of the paths that must be the same folder still; zero: none
}

// Folder is a folder and the numbers that it had when it was opened. They are no other folder's for as long as somebody
// holds it open.
type Folder struct {
	Path     string // absolute, without symbolic links
	Dev, Ino uint64
}

// FolderOf is what a path is that was opened.
func FolderOf(path string, info os.FileInfo) Folder {
	f := Folder{Path: path}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		f.Dev, f.Ino = uint64(stat.Dev), stat.Ino //nolint:unconvert // of 32 bits elsewhere
	}
	return f
}

// Check refuses what was opened at a path when f is of that path and of another folder.
func (f Folder) Check(path string, info os.FileInfo) error {
	if path == f.Path && FolderOf(path, info) != f {
		return fmt.Errorf("reach %s: %w", path, ErrMoved)
	}
	return nil
}

// Why something is not run. Match with [errors.Is].
var (
	ErrOwn    = errors.New("that is daycared's own")
	ErrUnheld = errors.New("this kernel cannot hold the walls")
	ErrMoved  = errors.New("it is another folder by now")
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
	read := slices.Clone(w.Read)
	if !s.off { // what is the daemon's in /proc, the kernel keeps from whoever is behind walls
		read = slices.DeleteFunc(read, func(p string) bool { return p == "/proc" })
	}
	if err := s.apart(append(read, w.Write...)...); err != nil {
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
	for _, p := range paths {
		if file, found := own.Find(s.own, p); found {
			return fmt.Errorf("reach %s: %w: %s; a folder cannot be allowed without what lies in it", p, ErrOwn, file)
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

// meet reports whether one clean path is the other, or lies in it.
func meet(a, b string) bool { return within(a, b) || within(b, a) }

func within(outer, inner string) bool {
	return inner == outer || outer == "/" || strings.HasPrefix(inner, outer+"/")
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
	return own.Resolve(p)
}

// reach is a set of paths, by what may be done with them.
type reach struct {
	folders, files []string // may be read and executed
	devices        []string // may be read and written
}

func (r reach) all() []string {
	return append(append(append([]string{}, r.folders...), r.files...), r.devices...)
}

// base is what every command may reach, where it exists: what programs need, and nothing that is anybody's. Of /etc there
// are single files, since the daemon's configuration may be there; of /proc there are the machine's figures, and no
// process. /dev/tty is left out: nobody is to type for the person. Symbolic links of these are the system's, and followed.
var base = reach{
	folders: []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
		"/etc/alternatives", "/etc/ca-certificates", "/etc/ld.so.conf.d", "/etc/pki/ca-trust/extracted", "/etc/pki/tls/certs",
		"/etc/ssl/certs", "/etc/terminfo",
		"/sys/devices/system/cpu",
	},
	files: []string{
		"/etc/bash.bashrc", "/etc/ca-certificates.conf", "/etc/debian_version", "/etc/gai.conf", "/etc/group", "/etc/host.conf",
		"/etc/hosts", "/etc/inputrc", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/locale.alias", "/etc/locale.conf",
		"/etc/localtime", "/etc/magic", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd",
		"/etc/profile", "/etc/protocols", "/etc/resolv.conf", "/etc/services", "/etc/shells", "/etc/ssl/openssl.cnf",
		"/etc/timezone",
		"/dev/random", "/dev/urandom",
		"/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/version",
	},
	devices: []string{"/dev/full", "/dev/null", "/dev/zero"},
}

// Path is where commands look for programs, whatever the daemon's own says.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// spec is what a process of ours is told when it is executed again: over a descriptor, never in arguments or environment,
// which others can read.
type spec struct {
	Read, Write []string
	Network     bool
	Off         bool // no walls
	Held        Folder

	Dir, Home string
	Env       []string
	Argv      []string
	Scratch   string // where to make the scratch folder; for the command, that folder

	Operation string
	Input     json.RawMessage
}

func (s *Sandbox) spec(w Walls) spec {
	return spec{
		Read: w.Read, Write: w.Write, Network: w.Network, Off: s.off, Dir: w.Dir, Home: w.Home, Env: w.Env, Scratch: s.scratch,
		Held: w.Held,
	}
}

// environ is a command's whole environment.
func (s spec) environ() []string {
	home := cmp.Or(s.Home, s.Scratch)
	return append([]string{"PATH=" + Path, "HOME=" + home, "LANG=C.UTF-8", "TERM=dumb", "TMPDIR=" + s.Scratch}, s.Env...)
}

// dir is where a command starts.
func (s spec) dir() string { return cmp.Or(s.Dir, s.Scratch) }

func (s spec) encode() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write what the sandbox is to do: %w", err)
	}
	return text, nil
}

func decode(text []byte) (s spec, err error) {
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read what the sandbox is to do: %w", err)
	}
	return s, nil
}

// Promise is one thing that the walls are to hold.
type Promise struct {
	Name  string // in words
	Holds bool   // on this kernel
	Why   string // what is missing where it does not hold
}

// The promises, as people are told them.
const (
	promiseFiles   = "no file outside"
	promiseTCP     = "no TCP without the network"
	promiseSockets = "no UDP and no unix socket"
	promiseSignals = "no signal to others"
)
