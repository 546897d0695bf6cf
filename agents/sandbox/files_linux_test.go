package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Without a grant no file outside is accessible by any name; with one, it is.
func TestFilesOutside(t *testing.T) {
	dir := tempFiles(t, "ws/in", "out/secret", "out/deep/er")
	ws, out := filepath.Join(dir, "ws"), filepath.Join(dir, "out")
	secret := filepath.Join(out, "secret")
	for name, target := range map[string]string{"file": secret, "folder": out, "root": "/", "dots": "../out"} {
		if err := os.Symlink(target, filepath.Join(ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	s, closed := New(Options{}), Policy{Write: []string{ws}, Dir: ws}
	read, writ := closed, closed
	read.Read = []string{out}
	writ.Write = append(writ.Write, out)
	self := os.Getpid()
	for _, c := range []struct {
		name           string
		probe          []string
		closed, rd, wr bool // whether it succeeds
	}{
		{"read inside", []string{"read", "in"}, true, true, true},
		{"write inside", []string{"write", "new"}, true, true, true},
		{"read outside", []string{"read", secret}, false, true, true},
		{"list outside", []string{"list", out}, false, true, true},
		{"write outside", []string{"write", filepath.Join(out, "new")}, false, false, true},
		{"overwrite outside", []string{"write", filepath.Join(out, "deep/er")}, false, false, true},
		{"truncate outside", []string{"truncate", filepath.Join(out, "deep/er")}, false, false, true},
		{"by dots", []string{"read", "../out/secret"}, false, true, true},
		{"by a link to the file", []string{"read", "file"}, false, true, true},
		{"by a link to the folder", []string{"read", "folder/secret"}, false, true, true},
		{"by a link to the root", []string{"read", "root" + secret}, false, true, true},
		{"by a link with dots", []string{"read", "dots/secret"}, false, true, true},
		{"write by a link to the folder", []string{"write", "folder/new"}, false, false, true},
		{"by the root of itself", []string{"read", "/proc/self/root" + secret}, false, true, true},
		{"by the root of the daemon", []string{"read", fmt.Sprintf("/proc/%d/root%s", self, secret)}, false, false, false},
		{"by the folder of the daemon", []string{"list", fmt.Sprintf("/proc/%d/cwd", self)}, false, false, false},
		{"the daemon's environment", []string{"read", fmt.Sprintf("/proc/%d/environ", self)}, false, false, false},
		{"the daemon's memory", []string{"read", fmt.Sprintf("/proc/%d/mem", self)}, false, false, false},
		{"its own environment", []string{"read", "/proc/self/environ"}, false, false, false},
		{"all processes", []string{"list", "/proc"}, false, false, false},
		{"a hard link to outside", []string{"link", secret, "hard"}, false, false, true},
		{"move out", []string{"rename", "in", filepath.Join(out, "in")}, false, false, true},
		{"move in", []string{"rename", filepath.Join(out, "deep"), "deep"}, false, false, true},
		{"move the workspace itself", []string{"rename", ws, filepath.Join(dir, "moved")}, false, false, false},
		{"the shadow file", []string{"read", "/etc/shadow"}, false, false, false},
		{"all of etc", []string{"list", "/etc"}, false, false, false},
		{"the names of accounts", []string{"read", "/etc/passwd"}, true, true, true},
		{"a terminal", []string{"write", "/dev/tty"}, false, false, false},
		{"nothing", []string{"write", "/dev/null"}, true, true, true},
		{"remove outside", []string{"remove", secret}, false, false, true},
	} {
		t.Run("C2/"+c.name, func(t *testing.T) {
			if got := try(t, s, closed, c.probe...); got != c.closed {
				t.Errorf("without a grant: %v", got)
			}
			if c.closed { // it must not exist
				_ = os.Remove(filepath.Join(ws, "new"))
			}
			if got := try(t, s, read, c.probe...); got != c.rd && !c.closed {
				t.Errorf("with a grant to read: %v", got)
			}
			if got := try(t, s, writ, c.probe...); got != c.wr {
				t.Errorf("with a grant to write: %v", got)
			}
			for name := range map[string]bool{"secret": true, "deep/er": true} { // what a write grant changed
				write(t, filepath.Join(out, name), "again")
			}
			write(t, filepath.Join(ws, "in"), "again")
		})
	}
}

// What was opened is what is allowed: a renamed folder stays accessible, and another folder with its name does not become so.
func TestARenamedFolder(t *testing.T) {
	dir := tempFiles(t, "granted/one", "other/two")
	granted, other := filepath.Join(dir, "granted"), filepath.Join(dir, "other")
	cmd, release, err := New(Options{}).Command(t.Context(), Policy{Read: []string{granted}},
		"/bin/sh", "-c", `cat "$0/granted/one"; echo; read x; cat "$0/granted/two" || echo no; cat "$0/moved/one"`, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	in, out := startPiped(t, cmd)
	var first, second string
	if _, err := fmt.Fscanf(out, "of %s\n", &first); err != nil || first != "granted/one" {
		t.Fatalf("it read %q: %v", first, err)
	}
	if err := os.Rename(granted, filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, granted); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, "go on")
	if _, err := fmt.Fscanf(out, "no\nof %s", &second); err != nil || second != "granted/one" {
		t.Errorf("afterwards it read %q: %v", second, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A hard link made beforehand in an allowed folder is the file: this cannot be prevented.
func TestAHardLinkFromBeforeIsTheFile(t *testing.T) {
	dir := tempFiles(t, "ws/in", "out/secret")
	if err := os.Link(filepath.Join(dir, "out/secret"), filepath.Join(dir, "ws/hard")); err != nil {
		t.Fatal(err)
	}
	if !try(t, New(Options{}), Policy{Read: []string{filepath.Join(dir, "ws")}}, "read", filepath.Join(dir, "ws/hard")) {
		t.Error("it is not; then the package's comment is wrong")
	}
}

// Files move within the writable folders, as programs expect.
func TestMovingWithin(t *testing.T) {
	dir := tempFiles(t, "a/one", "b/two", "c/three")
	w := Policy{Write: []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}, Read: []string{filepath.Join(dir, "c")}}
	for _, c := range []struct {
		probe []string
		want  bool
	}{
		{[]string{"rename", "a/one", "a/sub"}, true},
		{[]string{"rename", "a/sub", "b/one"}, true},
		{[]string{"link", "b/one", "a/one"}, true},
		{[]string{"link", "c/three", "a/three"}, false},
		{[]string{"rename", "c/three", "a/three"}, false},
		{[]string{"rename", "a/one", "c/one"}, false},
	} {
		args := []string{c.probe[0], filepath.Join(dir, c.probe[1]), filepath.Join(dir, c.probe[2])}
		if got := try(t, New(Options{}), w, args...); got != c.want {
			t.Errorf("%q: %v", c.probe, got)
		}
	}
}
