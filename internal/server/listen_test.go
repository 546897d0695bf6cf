package server

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/daycared/daycared/engine/wiretest"
)

// tempFolder is a folder whose path is short enough for sockets.
func tempFolder(t *testing.T) string {
	t.Helper()
	return filepath.Dir(filepath.Dir(wiretest.Socket(t)))
}

func TestASocketIsPrivateOrTheGroups(t *testing.T) {
	folder := tempFolder(t)
	group := strconv.Itoa(os.Getgid())
	for _, c := range []struct {
		path, group    string
		folder, socket fs.FileMode
	}{
		{filepath.Join(folder, "own", "s"), "", 0o711, 0o600},
		{filepath.Join(folder, "group", "s"), group, 0o711, 0o660},
	} {
		l, err := Listen(c.path, c.group)
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]fs.FileMode{filepath.Dir(c.path): c.folder, c.path: c.socket} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got != want {
				t.Errorf("%s has mode %o, want %o", path, got, want)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(c.path); err == nil {
			t.Errorf("%s is left behind", c.path)
		}
	}
}

func TestAFolderThatExistsIsLeftAsItIs(t *testing.T) {
	folder := filepath.Join(tempFolder(t), "shared")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(filepath.Join(folder, "s"), strconv.Itoa(os.Getgid()))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestAStaleSocketIsTakenAway(t *testing.T) {
	path := filepath.Join(tempFolder(t), "s")
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = dead.Close()
	l, err := Listen(path, "")
	if err != nil {
		t.Fatalf("over a stale socket: %v", err)
	}
	defer l.Close()
	if _, err := Listen(path, ""); err == nil || !strings.Contains(err.Error(), "another daemon serves here") {
		t.Errorf("over a live socket: %v", err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("the live one was harmed: %v", err)
	}
	_ = c.Close()
}

func TestASocketThatTookTheNameStaysWhereItIs(t *testing.T) {
	path := filepath.Join(tempFolder(t), "s")
	old, err := Listen(path, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	next, err := Listen(path, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []net.Listener{old, next} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("a closed socket is left")
	}
}

func TestWhatIsNoSocketIsLeftAlone(t *testing.T) {
	folder := tempFolder(t)
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	for path, words := range map[string]string{
		file:                                     "not a socket",
		filepath.Join(folder, "link"):            "not a socket",
		filepath.Join(file, "s"):                 "not a directory",
		filepath.Join(file, "deeper", "s"):       "not a directory",
		"/" + strings.Repeat("x", maxSocketPath): "at most 103 bytes",
	} {
		if _, err := Listen(path, ""); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Listen(filepath.Join(folder, "s"), "no such group"); err == nil {
		t.Error("an unknown group was taken")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
		t.Errorf("the file is %q, %v", text, err)
	}
}
