package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A command sets modes where it may write, and nowhere else: not by a name, through a link, or of what it may only read.
func TestModes(t *testing.T) {
	dir := tempFiles(t, "ws/file", "ws/sub/file", "out/secret", "held/file")
	at := func(name string) string { return filepath.Join(dir, name) }
	for link, target := range map[string]string{"ws/in": "file", "ws/away": at("out/secret"), "ws/out": "../out"} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	w := Policy{Write: []string{at("ws")}, Read: []string{at("held")}, Dir: at("ws")}
	for _, c := range []struct {
		probe   []string
		changes string // empty: nothing
	}{
		{[]string{"chmod", "file"}, "ws/file"},
		{[]string{"chmod", at("ws/file")}, "ws/file"},
		{[]string{"chmod", "in"}, "ws/file"},
		{[]string{"chmod", "sub/../file"}, "ws/file"},
		{[]string{"chmod", "/proc/self/cwd/file"}, "ws/file"},
		{[]string{"chmod", "."}, "ws"},
		{[]string{"fchmod", "file", "fd"}, "ws/file"},
		{[]string{"fchmod", "file", "name"}, "ws/file"},
		{[]string{"fchmodat", "sub", "file"}, "ws/sub/file"},
		{[]string{"fchmodat", "sub", at("ws/file")}, "ws/file"},
		{[]string{"fchmodat2", "file"}, "ws/file"},
		{[]string{"by-place", "sub/file"}, "ws/sub/file"},
		{[]string{"chmod", at("out/secret")}, ""},
		{[]string{"chmod", at("out")}, ""},
		{[]string{"chmod", dir}, ""},
		{[]string{"chmod", "../out/secret"}, ""},
		{[]string{"chmod", "away"}, ""},
		{[]string{"chmod", "out/secret"}, ""},
		{[]string{"chmod", fmt.Sprintf("/proc/%d/root%s", os.Getpid(), at("out/secret"))}, ""},
		{[]string{"chmod", "/proc/self/root" + at("out/secret")}, ""},
		{[]string{"chmod", "none"}, ""},
		{[]string{"chmod", ""}, ""},
		{[]string{"chmod", strings.Repeat("x", 5000)}, ""},
		{[]string{"chmod-nowhere"}, ""},
		{[]string{"chmod-no-folder"}, ""},
		{[]string{"fchmod", at("held/file"), "fd"}, ""},
		{[]string{"fchmod", at("held/file"), "name"}, ""},
		{[]string{"fchmodat", "../out", "secret"}, ""},
		{[]string{"fchmodat2", "in"}, ""},
		{[]string{"by-place", at("out/secret")}, ""},
		{[]string{"chown", at("out/secret"), "12345"}, ""},
		{[]string{"chown", "file", "12345"}, ""},
		{[]string{"attribute", at("out/secret")}, ""},
		{[]string{"attribute", "file"}, ""},
		{[]string{"flags", at("held/file")}, ""},
		{[]string{"lease", at("held/file")}, ""},
	} {
		files := []string{"ws", "ws/file", "ws/sub/file", "out", "out/secret", "held/file"}
		for _, f := range files {
			if err := os.Chmod(at(f), 0o750); err != nil {
				t.Fatal(err)
			}
		}
		if got := try(t, New(Options{}), w, c.probe...); got != (c.changes != "") {
			t.Errorf("%.100q: %v", c.probe, got)
		}
		for _, f := range files {
			info, err := os.Stat(at(f))
			if err != nil {
				t.Fatal(err)
			}
			if changed := info.Mode().Perm() != 0o750; changed != (f == c.changes) {
				t.Errorf("%.100q: %s is %v", c.probe, f, info.Mode())
			}
		}
	}
	if !try(t, New(Options{Mode: Off}), Policy{}, "chmod", at("out/secret")) {
		t.Error("not even without walls; then the test above shows nothing")
	}
	for _, probe := range []string{"flags", "lease"} { // flags are not of every file system
		if !try(t, New(Options{Mode: Off}), Policy{}, probe, at("held/file")) {
			t.Logf("%s is shut without walls, too; its test above shows nothing here", probe)
		}
	}
	if !try(t, New(Options{}), w, "chown", "file", fmt.Sprint(os.Geteuid())) {
		t.Error("an owner cannot be set to what it is")
	}
}

// Nothing that a command leaves runs as the daemon's account or group for others: these bits cannot be set in any way.
func TestNothingIsLeftThatRunsAsTheDaemon(t *testing.T) {
	dir := tempFiles(t)
	w := Policy{Write: []string{dir}, Dir: dir}
	none := func(t *testing.T) {
		t.Helper()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err != nil || info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
				t.Errorf("it left %v (%v)", info.Mode(), err)
			}
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, way := range []string{
		"chmod", "fchmod", "fchmodat", "fchmodat2", "fchmod of a file without a name", "openat", "openat of a file without a name",
		"openat2", "mknodat",
	} {
		for _, bit := range []string{"", ", setgid"} {
			t.Run("A3/"+way+bit, func(t *testing.T) {
				if try(t, New(Options{}), w, "special", way+bit, filepath.Join(dir, "x")) {
					t.Error("it got through")
				}
				none(t)
			})
		}
	}
	for name, line := range map[string]string{
		"a copy of a shell": "cp /bin/sh x && chmod 4755 x", "install": "install -m 4755 /bin/sh x", "a folder": "mkdir x && chmod g+s x",
		"an archive": "cp /bin/sh x && tar cf a x --mode=4755 && rm x && tar xpf a", "a link to one": "ln /bin/su x || cp -p /bin/su x",
	} {
		t.Run("A3/"+name, func(t *testing.T) {
			run(t, New(Options{}), w, "/bin/sh", "-c", line)
			none(t)
		})
	}
	if !try(t, New(Options{Mode: Off}), Policy{}, "special", "openat", filepath.Join(dir, "x")) {
		t.Error("not even without walls; then the test above shows nothing")
	}
	if err := os.Chmod(filepath.Join(dir, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	self := call{PID: uint32(os.Getpid()), Nr: unix.SYS_FCHMODAT} // the supervisor's own check, if a call reached it
	name := append([]byte(filepath.Join(dir, "x")), 0)
	self.Args = [6]uint64{uint64(uint32(0xffffff9c)), uint64(uintptr(unsafe.Pointer(&name[0]))), 0o4755}
	if err := self.setMode(-1, given(t, dir)); !errors.Is(err, unix.EPERM) {
		t.Errorf("the supervisor: %v", err)
	}
	runtime.KeepAlive(name)
	none(t)
}

// Programs that set modes work normally, many at once.
func TestProgramsThatSetModes(t *testing.T) {
	dir := tempFiles(t, "one")
	said, code := run(t, New(Options{}), Policy{Write: []string{dir}, Dir: dir}, "/bin/sh", "-ec", `
		chmod 640 one; stat -c %a one
		cp -p one two; stat -c %a two
		install -m 700 one three; stat -c %a three
		mkdir -m 711 four; stat -c %a four
		tar cf x.tar one three; rm one three; tar xpf x.tar; stat -c %a one three
		echo x >"$TMPDIR/y"; chmod 600 "$TMPDIR/y"; stat -c %a "$TMPDIR/y"
		for i in 1 2 3 4 5 6 7 8; do (for j in 1 2 3 4 5; do touch f$i; chmod 60$((j % 8)) f$i; done) & done; wait
		stat -c %a f1 f8`)
	if want := "640\n640\n700\n711\n640\n700\n600\n605\n605\n"; code != 0 || said != want {
		t.Errorf("ended with %d, saying %q", code, said)
	}
}

// given opens a path as something that may be written.
func given(t *testing.T, p string) []int {
	t.Helper()
	f, err := openPlain(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return []int{int(f.Fd())}
}

// A mode is set of what lies in the very folder that was given, or is the very file, whatever their names are by now; nothing is set
// of what has got these names.
func TestModesOfWhatWasRenamed(t *testing.T) {
	dir := tempFiles(t, "ws/file", "ws/gone", "ws/sub/file", "lone", "kept")
	at := func(name string) string { return filepath.Join(dir, name) }
	w := Policy{Write: []string{at("ws"), at("lone"), at("kept")}, Dir: at("ws")}
	for i := range atOnce + 1 { // more than one message has room for
		write(t, at(fmt.Sprintf("many/%d", i)), "")
		w.Write = append(w.Write, at(fmt.Sprintf("many/%d", i)))
	}
	cmd, release, err := New(Options{}).Command(t.Context(), w, "/bin/sh", "-c", `set_mode() { chmod 700 "$1" 2>/dev/null && echo "$1"; }
		exec 3<gone; rm gone; chmod 0 sub; set_mode sub
		echo ready; read x
		for f in "$0/ws" "$0/ws/file" "$0/ws/sub" "$0/ws/sub/file" "$0/lone"; do set_mode "$f"; done
		set_mode .; set_mode file; set_mode sub/file; set_mode /proc/self/fd/3
		cd "$0"; for f in moved/file moved/sub hard kept many/0 many/253; do set_mode "$f"; done; true`, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	in, out := startPiped(t, cmd)
	var before [2]string
	if _, err := fmt.Fscan(out, &before[0], &before[1]); err != nil || before != [2]string{"sub", "ready"} {
		t.Fatalf("it said %q first: %v", before, err)
	}
	write(t, at("lone.new"), "as an editor saves it")
	if err := errors.Join(
		os.Rename(at("ws"), at("moved")), os.Link(at("lone"), at("hard")), os.Rename(at("lone.new"), at("lone")),
	); err != nil {
		t.Fatal(err)
	}
	write(t, at("ws/file"), "private")
	write(t, at("ws/sub/file"), "private")
	fmt.Fprintln(in, "go on")
	said, err := io.ReadAll(out)
	want := ".\nfile\nsub/file\n/proc/self/fd/3\nmoved/file\nmoved/sub\nhard\nkept\nmany/0\nmany/253\n"
	if err != nil || string(said) != want {
		t.Errorf("afterwards it set the modes of %q (%v), want %q", said, err, want)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for _, f := range []string{"ws", "ws/file", "ws/sub", "ws/sub/file", "lone"} {
		if info, err := os.Stat(at(f)); err != nil {
			t.Error(err)
		} else if info.Mode().Perm() == 0o700 {
			t.Errorf("%s is %v", f, info.Mode())
		}
	}
}

// A listener that was not sent is not served, and an invalid call is not executed.
func TestOddCalls(t *testing.T) {
	for _, message := range []func(fd int) error{
		func(fd int) error { return unix.Shutdown(fd, unix.SHUT_WR) },
		func(fd int) error { return unix.Sendmsg(fd, []byte{0}, nil, nil, 0) },
		func(fd int) error {
			return errors.Join(unix.Sendmsg(fd, []byte{0}, unix.UnixRights(fd), nil, 0), unix.Sendmsg(fd, []byte{0}, nil, nil, 0))
		},
	} {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := message(pair[1]); err != nil {
			t.Fatal(err)
		}
		if fds := receiveListener(pair[0]); len(fds) > 0 {
			t.Error("it is listened to")
		}
		unix.Close(pair[0])
		unix.Close(pair[1])
	}
	self := uint32(os.Getpid())
	for _, c := range []call{
		{Nr: -7}, {PID: self, Nr: unix.SYS_FCHMODAT}, {PID: self, Nr: unix.SYS_FCHMOD, Args: [6]uint64{1 << 20}},
		{PID: self, Nr: unix.SYS_FCHMOD, Args: [6]uint64{0}},
	} {
		if err := c.setMode(-1, given(t, "/")); err == nil {
			t.Errorf("%+v is done", c)
		}
	}
	answerModes(-1, nil) // without a listener, it exits
	if isListenerIdle(0) {
		t.Error("what is no listener is deserted")
	}
	if err := sendListener(-1, nil); err == nil {
		t.Error("nothing was confided")
	}
}

// A sandbox in a sandbox cannot ask about modes, so it sets none.
func TestASandboxInASandbox(t *testing.T) {
	dir := tempFiles(t, "ws/file", "out/secret")
	w := probing(Policy{Write: []string{filepath.Join(dir, "ws")}, Dir: filepath.Join(dir, "ws")})
	w.Read = append(w.Read, "/proc") // where the inner supervisor looks for its own
	for what, says := range map[string]string{
		"cat file": "of ws/file", "cat ../out/secret": "Permission denied", "chmod 600 file": "Operation not permitted",
	} {
		said, _ := run(t, New(Options{}), w, self(), "probe", "daemon", filepath.Join(dir, "ws"), "/bin/sh", "-c", what)
		if !strings.Contains(said, says) {
			t.Errorf("%s: %q, want %q", what, said, says)
		}
	}
}
