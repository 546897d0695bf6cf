package main

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/cmd/daycared/config"
)

// A directory that an account may not read is not reported as right.
func TestADataDirectoryThatCannotBeLookedAt(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	found := make(chan finding)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its changed credentials
		if os.Getuid() == 0 {
			_ = unix.Setfsuid(65534) // root may read everything; with another fsuid it may not
		}
		in := &inspection{cli: &CLI{}, cfg: &config.Config{}, paths: config.Paths{DataDir: dir}}
		found <- in.examineData(t.Context())[0]
	}()
	f := <-found
	if f.Level != "note" || !strings.HasSuffix(f.What, "cannot be looked at from this account") {
		t.Errorf("found %+v", f)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}
