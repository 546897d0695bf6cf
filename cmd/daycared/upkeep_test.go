package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daycared/daycared/cmd/daycared/config"
)

// TestFilesThatWereDeletedArePutBack: without the lock another daemon would start on the same store, and without the admin key
// the daemon's account would not be the operator.
func TestFilesThatWereDeletedArePutBack(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	dir, err := openDataDir(data, os.Getuid(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	var log bytes.Buffer
	d := &daemon{
		dir: dir, key: strings.Repeat("0a", 32), log: slog.New(slog.NewTextHandler(&log, nil)), ending: make(chan struct{}),
		paths: config.Paths{
			AdminKey: filepath.Join(data, "admin.key"), AgentSocket: filepath.Join(data, "agent"), AdminSocket: filepath.Join(data, "admin"),
			AuditKey: filepath.Join(data, "audit.key"),
		},
	}
	for _, name := range []string{d.paths.AdminKey, d.paths.AgentSocket, d.paths.AdminSocket, d.paths.AuditKey} {
		if err := os.WriteFile(name, []byte(d.key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	missing := map[string]bool{}
	d.keepFiles(missing)
	if log.Len() > 0 {
		t.Fatalf("nothing is missing, and it says:\n%s", &log)
	}
	for _, name := range []string{lockName, "admin.key", "agent", "audit.key"} {
		if err := os.Remove(filepath.Join(data, name)); err != nil {
			t.Fatal(err)
		}
	}
	if by, held := heldBy(data); held {
		t.Fatalf("%v holds a lock that is not there", by)
	}
	d.keepFiles(missing)
	if by, held := heldBy(data); !held || by.PID != os.Getpid() {
		t.Errorf("the lock is not held again: %v, %v", by, held)
	}
	if key, err := os.ReadFile(d.paths.AdminKey); err != nil || string(key) != d.key {
		t.Errorf("the admin key: %q, %v", key, err)
	}
	for _, words := range []string{"taking it again", "the admin key was deleted", "a socket was deleted", "the audit key was deleted"} {
		if strings.Count(log.String(), words) != 1 {
			t.Errorf("it does not say %q:\n%s", words, &log)
		}
	}
	log.Reset()
	d.keepFiles(missing)
	if log.Len() > 0 {
		t.Errorf("it says again:\n%s", &log)
	}

	// Another program took the lock first; it is not a daemon.
	if err := os.Remove(filepath.Join(data, lockName)); err != nil {
		t.Fatal(err)
	}
	t.Run("D8/a second daemon while the file of the lock is gone", func(t *testing.T) {
		if other, err := openDataDir(data, os.Getuid(), ""); err == nil || !strings.Contains(err.Error(), "another daycared is running") {
			t.Errorf("it starts: %+v, %v", other, err)
		}
	})
	other, err := os.OpenFile(filepath.Join(data, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = flock(other)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.keepFiles(missing)
	select {
	case <-d.ending:
	default:
		t.Error("two daemons go on")
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}
