// Package sandbox runs programs and file operations in sandboxes that the kernel enforces: which paths, whether the
// network, and nothing that belongs to daycared. Go cannot run code between fork and exec, so our binary is executed
// again and sandboxes itself: [Main], called first, is the entry of such a process.
//
// A command runs under a supervisor, another process of ours: it adopts every descendant, even one that left the
// session, and kills them all when the command has ended, when it is told to, or when the daemon is gone. A file
// operation needs none, because it starts no processes.
//
// Landlock restricts paths, TCP, signals and abstract sockets. A seccomp filter refuses sockets that were not granted,
// other attack surface (io_uring, foreign system calls, tracing, namespaces), what outlives the command or reaches
// other processes (System V IPC, inotify, priorities), and typing into a terminal. The supervisor sets file modes,
// which neither can restrict by path, and never setuid or setgid. Landlock has no exceptions below an allowed folder,
// so a policy that would include something of the daemon's is refused as a whole.
//
// Not covered: a hard link made beforehand from an allowed folder to another file outside is that file, and a bind mount of
// something else than the daemon's is the folder that it shows; neither can be made from inside. The existence and size of files
// outside can be queried, and their times set. Processor, memory and disk use are not limited.
package sandbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions"
)

// Mode is whether commands are sandboxed.
type Mode string

// The modes. In each, a command gets none of the daemon's environment and descriptors, and ends with all its descendants.
const (
	On  Mode = "on"  // what the kernel cannot enforce is not run
	Off Mode = "off" // the operator wants no sandbox
)

// Options configure a [Sandbox].
type Options struct {
	// Own are the absolute paths that belong to the daemon: data, configuration, credentials, sockets. They need not
	// exist. Nothing inside or above one is ever accessible.
	Own  []string
	Mode Mode // empty: On
	// Scratch is the folder for commands' private scratch folders; empty: the system's temporary folder.
	Scratch string
}

// Sandbox starts sandboxed programs. It is safe for concurrent use.
type Sandbox struct {
	own     []string
	off     bool
	scratch string
	self    string // our binary, which no command may write
	left    left
}

// New makes a sandbox. It starts nothing.
func New(o Options) *Sandbox {
	s := &Sandbox{
		off: o.Mode == Off, scratch: cmp.Or(o.Scratch, os.TempDir()), self: self(), left: left{own.Watched{StepTimeout: leaveAfter}},
	}
	for _, p := range o.Own {
		leads, err := own.LookUp(p, func() (string, error) { return own.Resolve(p), nil })
		if p != "" && (leads != s.self || err != nil) { // its binary is no secret; see admit
			s.own = append(s.own, p)
		}
	}
	return s
}

// Policy is what one command or operation may access. Paths are absolute, exist, and contain no symbolic links.
type Policy struct {
	Read    []string // files and folders
	Write   []string // files and folders; writable ones are readable as well
	Network bool     // TCP and UDP over IPv4 and IPv6, to any address
	Dir     string   // working directory; empty: its scratch folder
	Home    string   // its HOME; empty: its scratch folder
	Env     []string // NAME=value, besides PATH, HOME, LANG, TERM and TMPDIR
	Held    Folder   // what of the paths is it or lies in it must still do so; zero: any
}

// Streams are the standard streams of a [Sandbox.Job].
type Streams struct {
	In       *os.File
	Out, Err io.Writer
}

// Folder identifies a folder by device and inode. While somebody holds it open, no other folder gets these numbers.
type Folder struct {
	Path     string // absolute, without symbolic links
	Dev, Ino uint64
}

// FolderOf identifies an opened path.
func FolderOf(path string, info os.FileInfo) Folder {
	f := Folder{Path: path}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		f.Dev, f.Ino = uint64(stat.Dev), stat.Ino //nolint:unconvert // of 32 bits elsewhere
	}
	return f
}

// Check refuses another folder than f at f's path, and what was opened by a name in it while another has that path.
func (f Folder) Check(path string, info os.FileInfo) (err error) {
	if f.Path == "" || !permissions.Within(f.Path, path) {
		return nil
	}
	if path != f.Path {
		info, err = os.Lstat(f.Path)
	}
	if err != nil || FolderOf(f.Path, info) != f {
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

// ErrLeft says that something was killed and has not ended. errHangs is that where it hangs in the kernel, where nothing ends it but the
// answer of a file system; it does nothing more.
var (
	ErrLeft  = errors.New("it was killed, and has not ended yet")
	errHangs = fmt.Errorf("%w: a file system seems not to answer it; it ends when that does", ErrLeft)
)

// Left says of a process how it was left; it is empty where err is not [ErrLeft].
func Left(err error) string {
	switch {
	case errors.Is(err, errHangs):
		return "was killed, and has not ended yet. A file system seems not to answer it; it ends when that does."
	case errors.Is(err, ErrLeft):
		return "was killed, and has not ended yet. It may still do something."
	}
	return ""
}

// Ready returns why nothing can be run here, or nil: the kernel lacks a feature (ErrUnheld), or something of the
// daemon's is in what every command may read (ErrOwn).
func (s *Sandbox) Ready() error { return s.checkPolicy(Policy{}) }

// checkPolicy refuses a policy that cannot be enforced, that includes something of the daemon's, or whose paths are not plain.
func (s *Sandbox) checkPolicy(w Policy) error {
	if !s.off {
		for _, p := range Check() {
			if !p.Holds {
				return fmt.Errorf("%w: %s: %s", ErrUnheld, p.Name, p.Why)
			}
		}
		if err := s.refuseOwn(existing(slices.Concat(base.folders, base.files, base.devices)...)...); err != nil {
			return err
		}
	}
	for _, p := range append(append([]string{}, w.Read...), w.Write...) {
		if err := plain(p); err != nil {
			return err
		}
	}
	read := slices.Clone(w.Read)
	if !s.off { // the sandbox hides the daemon's /proc entries
		read = slices.DeleteFunc(read, func(p string) bool { return p == "/proc" })
	}
	if err := s.refuseOwn(append(read, w.Write...)...); err != nil {
		return err
	}
	for _, p := range w.Write {
		if s.self != "" && (permissions.Within(p, s.self) || permissions.Within(s.self, p)) {
			return fmt.Errorf("write %s: %w: its binary is %s", p, ErrOwn, s.self)
		}
	}
	return nil
}

// refuseOwn refuses paths that overlap with the daemon's, by name or through links. Where a hard link lies, nothing tells.
func (s *Sandbox) refuseOwn(paths ...string) error {
	if file, found := own.HardLinked(s.own); found && len(paths) > 0 {
		return fmt.Errorf("reach %s: %w: %s has another hard link, which may lie there; remove that link, or put a copy in the file's place",
			paths[0], ErrOwn, file)
	}
	for _, p := range paths {
		if err := own.Do(p, func() error {
			if file, found := own.Find(s.own, p); found {
				return fmt.Errorf("%w: %s; a folder cannot be allowed without what lies in it", ErrOwn, file)
			}
			return nil
		}); err != nil {
			return fmt.Errorf("reach %s: %w", p, err)
		}
	}
	return nil
}

// plain refuses a path that is missing or contains a symbolic link.
func plain(p string) error {
	if !filepath.IsAbs(p) || filepath.Clean(p) != p {
		return fmt.Errorf("reach %q: the path is not absolute and clean", p)
	}
	leads, err := own.LookUp(p, func() (string, error) { return filepath.EvalSymlinks(p) })
	if err != nil {
		return fmt.Errorf("reach %s: %w", p, err)
	}
	if leads != p {
		return fmt.Errorf("reach %s: it is a symbolic link, and leads to %s; name that", p, leads)
	}
	return nil
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

// reach is a set of paths by access.
type reach struct {
	folders, files []string // read and execute
	devices        []string // read and write
}

// base is what every command may access, if it exists: what programs need, and nothing private. Of /etc only single
// files, because the daemon's configuration may be there; of /proc only machine-wide files. /dev/tty is excluded, so
// that nothing types for the person. Symbolic links here are the system's and are followed.
var base = reach{
	folders: []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
		"/etc/alternatives", "/etc/ca-certificates", "/etc/ld.so.conf.d", "/etc/pki/ca-trust/extracted", "/etc/pki/tls/certs",
		"/etc/ssl/certs", "/etc/terminfo",
		"/sys/devices/system/cpu",
	},
	files: []string{
		"/etc/bash.bashrc", "/etc/ca-certificates.conf", "/etc/debian_version", "/etc/gai.conf", "/etc/gitconfig", "/etc/group", "/etc/host.conf",
		"/etc/hosts", "/etc/inputrc", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/locale.alias", "/etc/locale.conf",
		"/etc/localtime", "/etc/magic", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd",
		"/etc/profile", "/etc/protocols", "/etc/resolv.conf", "/etc/services", "/etc/shells", "/etc/ssl/openssl.cnf",
		"/etc/timezone",
		"/dev/random", "/dev/urandom",
		"/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/version",
	},
	devices: []string{"/dev/full", "/dev/null", "/dev/zero"},
}

// Path is the PATH of commands, independent of the daemon's.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// spec is the input of a process of ours. It is passed by a descriptor, because others can read arguments and environment.
type spec struct {
	Policy
	Off     bool // no sandbox
	Argv    []string
	Scratch string // where to make the scratch folder; in the command, that folder

	Operation string
	Input     json.RawMessage
}

func (s *Sandbox) spec(w Policy) spec { return spec{Policy: w, Off: s.off, Scratch: s.scratch} }

func (s spec) environ() []string {
	home := cmp.Or(s.Home, s.Scratch)
	return append([]string{"PATH=" + Path, "HOME=" + home, "LANG=C.UTF-8", "TERM=dumb", "TMPDIR=" + s.Scratch}, s.Env...)
}

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

// Promise is one property that the sandbox has to guarantee.
type Promise struct {
	Name  string // in words
	Holds bool   // on this kernel
	Why   string // what is missing if it does not hold
}

// The promises, as shown to people.
const (
	promiseFiles   = "no file outside"
	promiseTCP     = "no TCP without the network"
	promiseSockets = "no UDP and no unix socket"
	promiseSignals = "no signal to others"
)
