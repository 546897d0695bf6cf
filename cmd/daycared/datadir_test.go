package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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

// TestALockThatIsJustLetGoIsWaitedFor: that of a daemon which was killed while it started a process, which holds it too.
func TestALockThatIsJustLetGoIsWaitedFor(t *testing.T) {
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
		t.Run(name, func(t *testing.T) {
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
	first, err := adminKey(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key is %v, %v; want 0600", info.Mode().Perm(), err)
	}
	again, err := adminKey(path)
	if err != nil || again != first || len(first) != 64 {
		t.Errorf("the key is %d digits at first, and then the same: %t, %v", len(first), again == first, err)
	}
	for name, path := range map[string]string{"write the admin key: ": "/nowhere/admin.key", "read the admin key: ": t.TempDir()} {
		var at *fs.PathError
		if _, err := adminKey(path); !errors.As(err, &at) || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("adminKey(%s) = %v; want %s", path, err, name)
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
