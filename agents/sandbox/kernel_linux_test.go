package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Other kernel interfaces, and other processes, are inaccessible whatever was granted.
func TestOtherKernelInterfacesAreBlocked(t *testing.T) {
	dir := tempFiles(t, "in")
	victim := strconv.Itoa(os.Getpid())
	place := strconv.FormatUint(uint64(uintptr(unsafe.Pointer(unsafe.StringData(Path)))), 10)
	s, w := New(Options{}), Policy{Write: []string{dir}, Network: true}
	for _, args := range [][]string{
		{"io_uring"}, {"ptrace", victim}, {"memory", victim, place}, {"descriptor", victim}, {"unshare"}, {"clone"}, {"clone3"},
		{"mount", dir}, {"type"}, {"limit", victim}, {"keys"}, {"hostname"}, {"capabilities"}, {"signal", victim},
		{"shm"}, {"msg"}, {"sem"}, {"queue"}, {"watch", dir}, {"priority", victim, "19"}, {"priorities"}, {"affinity", victim},
		{"scheduler", victim}, {"disk", victim},
	} {
		t.Run("B7/"+args[0], func(t *testing.T) {
			if try(t, s, w, args...) {
				t.Error("it got through")
			}
		})
	}
	runtime.KeepAlive(Path)
	for _, args := range [][]string{{"priority", "0", "19"}, {"affinity", "0"}, {"scheduler", "0"}, {"disk", "0"}} {
		if !try(t, s, w, args...) {
			t.Errorf("%q does not work on itself", args)
		}
	}
	for _, args := range [][]string{{"type"}, {"signal", victim}, {"watch", dir}, {"affinity", victim}} {
		if !try(t, New(Options{Mode: Off}), Policy{}, args...) {
			t.Errorf("%s is shut without walls, too; its test above shows nothing", args[0])
		}
	}
	for _, args := range [][]string{{"io_uring"}, {"keys"}} { // whoever runs the tests may lack it
		if !try(t, New(Options{Mode: Off}), Policy{}, args...) {
			t.Logf("%s is shut without walls, too; its test above shows nothing here", args[0])
		}
	}
	if _, err := os.Hostname(); err != nil {
		t.Error(err)
	}
}

// A 64-bit program can use the 32-bit call table, in which socket has another number.
func TestTheOtherTableOfSystemCalls(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Log("this machine has one table")
		return
	}
	dir := tempFiles(t)
	write(t, filepath.Join(dir, "other.c"), `#include <unistd.h>
int main(void) {
	long got = 359; /* socket */
	__asm__ volatile("int $0x80" : "+a"(got) : "b"(1), "c"(1), "d"(0) : "memory");
	write(1, got < 0 ? "refused" : "done", got < 0 ? 7 : 4);
	return 0;
}`)
	program := filepath.Join(dir, "other")
	if out, err := exec.CommandContext(t.Context(), "gcc", "-o", program, program+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if said, _ := run(t, New(Options{Mode: Off}), Policy{}, program); said != "done" {
		t.Logf("this kernel has no such table: %q", said)
	}
	if said, code := run(t, New(Options{}), Policy{Read: []string{dir}}, program); code != 128+int(unix.SIGSYS) || said != "" {
		t.Errorf("it ended with %d, saying %q", code, said)
	}
}

// TestGitReadsTheConfigurationOfTheMachine: git ends if the machine has one that it may not read.
func TestGitReadsTheConfigurationOfTheMachine(t *testing.T) {
	out, code := run(t, New(Options{}), Policy{}, "git", "config", "--list")
	if code != 0 {
		t.Errorf("git ends with %d: %s", code, out)
	}
}

// A command has the standard streams and no other descriptor, and nothing of the daemon's environment.
func TestWhatACommandInherits(t *testing.T) {
	t.Setenv("DAYCARED_TOKEN_FILE", "/secret/token")
	t.Setenv("CREDENTIALS_DIRECTORY", "/secret/credentials")
	dir := tempFiles(t, "secret")
	fd, err := unix.Open(filepath.Join(dir, "secret"), unix.O_RDONLY, 0) // not close-on-exec, as by a careless parent
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, mode := range []Mode{On, Off} {
		s := New(Options{Mode: mode})
		if try(t, s, Policy{}, "descriptors", filepath.Join(dir, "secret")) {
			t.Errorf("%s: it inherits a descriptor", mode)
		}
		said, _ := run(t, s, Policy{Env: []string{"MORE=1"}}, "env")
		for line := range strings.Lines(said) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch name {
			case "PATH", "LANG", "TERM", "HOME", "TMPDIR", "MORE":
			default:
				t.Errorf("%s: it sees %s=%s", mode, name, value)
			}
		}
		if !strings.Contains(said, "MORE=1") {
			t.Errorf("%s: what was given is missing in %q", mode, said)
		}
	}
}

// A scratch folder is private to its command, writable, and removed afterwards.
func TestScratch(t *testing.T) {
	dir := tempFiles(t, "elsewhere/x")
	s := New(Options{Scratch: dir})
	said, code := run(t, s, Policy{}, "/bin/sh", "-c",
		`cd "$TMPDIR" && pwd && stat -c %a . && mkdir -p a/b && echo x >a/b/c && chmod 0 a/b && test "$HOME" = "$TMPDIR"`)
	lines := strings.Split(said, "\n")
	if code != 0 || len(lines) < 2 || filepath.Dir(lines[0]) != dir || lines[1] != "700" {
		t.Fatalf("ended with %d, saying %q", code, said)
	}
	if _, err := os.Stat(lines[0]); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if said, _ := run(t, s, Policy{Home: dir, Dir: filepath.Join(dir, "elsewhere")}, "/bin/sh", "-c", `echo "$HOME"; pwd`); said !=
		fmt.Sprintf("%s\n%s/elsewhere\n", dir, dir) {
		t.Errorf("home and folder are %q", said)
	}
	if _, code := run(t, New(Options{Scratch: filepath.Join(dir, "nowhere")}), Policy{}, "true"); code != NotStarted {
		t.Errorf("without a place for it: %d", code)
	}
}
