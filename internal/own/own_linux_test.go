package own

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// The daemon's files are found by every name, existing or not; their neighbours are not.
func TestFind(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, folder := range []string{"data/sub", "beside", "ws"} {
		if err := os.MkdirAll(at(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"l": at("data"), "ws/relative": "../data", "ws/up": "..", "dangling": at("data/not/yet"), "ws/sub": "../data/sub",
		"twice": "ws/sub/../new", "loop": "loop", "fd": "/dev/stdin", "beside/own": "new",
		"by-process": fmt.Sprintf("/proc/%d/root%s", os.Getpid(), at("data")),
	} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	sleeper := exec.CommandContext(t.Context(), "sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() }()
	own, of := []string{at("data"), at("link-to-own/key")}, func(pid int, name string) string { return fmt.Sprintf("/proc/%d%s", pid, name) }
	if err := os.Symlink("beside", at("link-to-own")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		at("data"): true, at("data/admin.key"): true, at("data/new/file"): true, dir: true, "/": true,
		at("beside"): true, // where its key leads
		at("ws"):     false, at("ws/new"): false, at("data2"): false, at("beside/other"): false, at("loop"): false, at("loop/x"): false,
		at("l"): true, at("l/admin.key"): true, at("l/new"): true, at("l/backups/new.db"): true,
		at("ws/relative/x/y"): true, at("ws/up/data/new"): true, at("ws/up/ws/new"): false,
		at("dangling"): true, at("dangling/x"): true, at("twice"): true, at("twice/x"): true, at("beside/own"): false,
		at("by-process"): true, at("by-process/new"): true, at("beside/key"): true,
		of(os.Getpid(), ""): true, of(os.Getpid(), "/environ"): true, of(os.Getpid(), "/mem"): true, "/proc/self/mem": true,
		"/proc/thread-self/environ": true, of(syscall.Gettid(), "/mem"): true, of(os.Getpid(), "/task/1/maps"): true,
		of(sleeper.Process.Pid, "/mem"): true, // whatever it started
		of(os.Getppid(), "/status"):     false, of(1, "/status"): false, of(1<<22+1, "/mem"): false,
		of(1<<22+1, "/cwd/srv"): true,
		"/proc":                 true, "/proc/cpuinfo": false, "/proc/sys/kernel": false, "/proc/kcore": true,
		"/dev/fd": true, "/dev/fd/0": true, "/dev/fd/3": true, "/dev/stdin": true, "/dev/stdout": true, "/proc/self": true, at("fd"): true,
		at("ws/sub") + "/../key": true,
		"/dev":                   true, "/dev/mem": true, "/dev/null": false, "/dev/kmem": true,
	} {
		if what, found := Find(own, path); found != want {
			t.Errorf("%s: %v (%s)", path, found, what)
		}
	}
	if what, found := Find(nil, at("data")); found {
		t.Errorf("nothing is its own, and %s is", what)
	}
}

// A path resolves as in the kernel, and what is missing keeps its name.
func TestResolve(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.MkdirAll(at("a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"in": "a/b", "out": "in/..", "abs": at("in"), "chain": "out/b/../b", "gone": "a/none/x"} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"a": "a", "in": "a/b", "out": "a", "abs": "a/b", "chain": "a/b", "gone": "a/none/x", "gone/y": "a/none/x/y", "none/y": "none/y",
	} {
		if got := Resolve(at(path)); got != at(want) {
			t.Errorf("%s leads to %s, want %s", path, got, want)
		}
		if kernel, err := filepath.EvalSymlinks(at(path)); err == nil && kernel != at(want) {
			t.Errorf("%s leads to %s", path, kernel)
		}
	}
	if got := Resolve("/"); got != "/" {
		t.Errorf("the root leads to %s", got)
	}
}
