package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/daycared/daycared/permissions"
)

func TestDataDirIsOnesOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "here")
	d, err := openDataDir(path, os.Getuid(), "")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory is %v, %v; want 0700", info.Mode().Perm(), err)
	}
	if _, err := openDataDir(path, os.Getuid(), ""); err == nil || !strings.HasPrefix(err.Error(), "another daycared is running on "+path) {
		t.Errorf("a second lock: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := openDataDir(path, os.Getuid(), "")
	if err != nil {
		t.Fatalf("the lock was not given back: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestALockThatIsJustLetGoIsWaitedFor: a daemon killed while it starts a process leaves a child that still holds the lock.
func TestALockThatIsJustLetGoIsWaitedFor(t *testing.T) {
	t.Run("D8/a lock that is just let go", func(t *testing.T) {
		path := t.TempDir()
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
		killed, err := openDataDir(path, os.Getuid(), "")
		if err != nil {
			t.Fatal(err)
		}
		child := exec.Command("sleep", "0.2")
		child.ExtraFiles = []*os.File{killed.lock}
		if err := errors.Join(child.Start(), killed.Close()); err != nil {
			t.Fatal(err)
		}
		next, err := openDataDir(path, os.Getuid(), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(child.Wait(), next.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestAnotherAccountsFolderIsLeftAlone runs each command that writes to the data directory as another account, which need not
// exist; even root must not write there.
func TestAnotherAccountsFolderIsLeftAlone(t *testing.T) {
	path, home := filepath.Join(t.TempDir(), "data"), t.TempDir()
	folder(t, path, 0o700)
	write(t, filepath.Join(path, storeName))
	screen, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	defer tty.Close()
	for _, line := range []string{"serve", "link whatsapp", "backup", "setup"} {
		var said strings.Builder
		c := &CLI{In: tty, Out: io.Discard, Err: &said, UID: os.Getuid() + 1, Environ: []string{"HOME=" + home, "DAYCARED_DATA_DIR=" + path}}
		if code := c.Run(t.Context(), strings.Fields(line)); code != permissions.ExitOther {
			t.Errorf("%s: exit %d", line, code)
		}
		want := fmt.Sprintf("the data directory %s is of another account, uid %d", path, os.Getuid())
		if !strings.Contains(said.String(), want) {
			t.Errorf("%s says %q; want %q", line, said.String(), want)
		}
	}
	made, err := os.ReadDir(path)
	if err != nil || len(made) != 1 {
		t.Errorf("something was made there: %v, %v", made, err)
	}
	// The account of a stopped service has no name, and nobody can become it.
	want := "the data directory /var/lib/daycared is of uid 2147483000, which exists only while its service runs; " +
		"see docs/operations.md, Backup and restore"
	if err := notOwnDir("/var/lib/daycared", 2147483000); err.Error() != want {
		t.Errorf("the folder of a service: %v; want %q", err, want)
	}
	// Files left by another account are named, with the remedy.
	write(t, filepath.Join(path, lockName))
	want = fmt.Sprintf("belongs to %s, which ran daycared here; as root, give the folder back with: chown -R %d %s",
		accountName(os.Getuid()), os.Getuid()+1, path)
	if err := notOwnLock(path, os.Getuid()+1, fs.ErrPermission); !strings.Contains(err.Error(), want) {
		t.Errorf("the lock: %v; want %q", err, want)
	}
}

// TestTheLockSaysWhoHoldsIt also if the daemon that wrote it has ended.
func TestTheLockSaysWhoHoldsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d, err := openDataDir(path, os.Getuid(), "/dev/pts/7")
	if err != nil {
		t.Fatal(err)
	}
	by, held := heldBy(path)
	if !held || by.PID != os.Getpid() || by.Console != "/dev/pts/7" || time.Since(by.Since) > time.Hour {
		t.Errorf("held by %+v, %t", by, held)
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for _, h := range []holder{{PID: gone.Process.Pid}, {PID: -1}, {}} {
		if err := d.sign(h); err != nil {
			t.Fatal(err)
		}
		if by, held := heldBy(path); !held || by.PID != 0 || by.String() != "which is just starting or ending" {
			t.Errorf("%+v: held by %q, %t", h, by, held)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if by, held := heldBy(path); held {
		t.Errorf("nobody holds it, not %v", by)
	}
}

func TestDataDirIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		want string // %s is the path
	}{
		"a file": {func(t *testing.T, path string) { write(t, path) }, "make the data directory: "},
		"open to others": {
			func(t *testing.T, path string) { folder(t, path, 0o750) },
			"the data directory %s is open to other accounts (0750); run: chmod 700 %s",
		},
		"the lock is a folder": {
			func(t *testing.T, path string) { folder(t, filepath.Join(path, lockName), 0o700) },
			"lock the data directory: ",
		},
	} {
		t.Run("D8/"+name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data")
			c.make(t, path)
			_, err := openDataDir(path, os.Getuid(), "")
			if want := strings.ReplaceAll(c.want, "%s", path); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("openDataDir = %v; want %s", err, want)
			}
		})
	}
}

func TestAdminKeyIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.key")
	first, _, err := adminKey(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key is %v, %v; want 0600", info.Mode().Perm(), err)
	}
	again, replaced, err := adminKey(path)
	if err != nil || again != first || len(first) != 64 || replaced {
		t.Errorf("the key is %d digits at first, and then the same: %t, %v", len(first), again == first, err)
	}
	for name, path := range map[string]string{"write the admin key: ": "/nowhere/admin.key", "read the admin key: ": t.TempDir()} {
		var at *fs.PathError
		if _, _, err := adminKey(path); !errors.As(err, &at) || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("adminKey(%s) = %v; want %s", path, err, name)
		}
	}
}

// TestABrokenAdminKeyIsReplaced: a power cut may leave an empty or truncated file, and then nobody would be the operator.
func TestABrokenAdminKeyIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.key")
	for _, broken := range []string{"", "abc", strings.Repeat("z", 64), strings.Repeat("a", 63), strings.Repeat("a", 64) + "\n"} {
		if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		key, replaced, err := adminKey(path)
		if err != nil || !replaced || !isAdminKey([]byte(key)) {
			t.Errorf("%q: replaced %t, %v", broken, replaced, err)
		}
		if again, replaced, err := adminKey(path); again != key || replaced || err != nil {
			t.Errorf("%q: the new key is not kept: %v", broken, err)
		}
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func folder(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// A token file is never half written: it is created before the secret, and replaced atomically.
func TestATokenFileIsWrittenWhole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "token")
	var taken *os.File
	err := writeSecret(name, func() (secret permissions.Secret, err error) {
		taken, err = os.Open(name)
		return "dcd_a_x", err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	text, err := os.ReadFile(name)
	if err != nil || string(text) != "dcd_a_x\n" {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if early, err := io.ReadAll(taken); err != nil || len(early) > 0 {
		t.Errorf("%q was written in place, %v", early, err)
	}
	for _, left := range []string{name + ".part", name + "2.part"} {
		if exists(left) {
			t.Errorf("%s is left", left)
		}
	}
	if err := writeSecret(name+"2", func() (permissions.Secret, error) { return "", io.ErrUnexpectedEOF }); err == nil || exists(name+"2") {
		t.Errorf("without a secret: %v, there: %v", err, exists(name+"2"))
	}
}
