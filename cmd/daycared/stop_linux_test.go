package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOnlyTheHolderOfTheLockIsEnded: neither a process that merely has the pid in the lock, nor one of another account.
func TestOnlyTheHolderOfTheLockIsEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d, err := openDataDir(path, os.Getuid(), "")
	if err != nil {
		t.Fatal(err)
	}
	if !locks(os.Getpid(), path) {
		t.Error("this process holds the lock")
	}
	if locks(1, path) {
		t.Error("process 1 does not hold the lock")
	}
	if os.Getuid() == 0 { // only root can change a folder's owner
		if err := os.Chown(path, 65534, -1); err != nil {
			t.Fatal(err)
		}
		if locks(os.Getpid(), path) {
			t.Error("the folder of another account is not locked by this one")
		}
		if err := os.Chown(path, 0, -1); err != nil {
			t.Fatal(err)
		}
	}

	// Because of its child, the kernel still lists this process, which no longer has the file open.
	child := exec.Command("sleep", "600")
	child.ExtraFiles = []*os.File{d.lock}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(child.Process.Kill(), child.Wait()) }() // Wait returns an error for a killed process
	if err := errors.Join(d.sign(holder{PID: os.Getpid()}), d.lock.Close()); err != nil {
		t.Fatal(err)
	}
	if by, held := heldBy(path); !held || by.PID != os.Getpid() || locker(filepath.Join(path, lockName)) != by.PID {
		t.Fatalf("held by %v, %t", by, held)
	}
	if locks(os.Getpid(), path) {
		t.Error("this process let the file of the lock go")
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	defer signal.Stop(told)
	if said := stopAt(t, path, filepath.Join(path, "none.sock")); !strings.Contains(said, "does not answer: ") {
		t.Errorf("stop says %q", said)
	}
	if len(told) > 0 {
		t.Error("this process was told to end")
	}
}

// TestWhoAnswersStopIsNotBelieved: its answer neither gets another process killed nor controls the terminal.
func TestWhoAnswersStopIsNotBelieved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d, err := openDataDir(path, os.Getuid(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.sign(holder{PID: 1, Console: "\x1b]0;tty\a"}); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	for answer, want := range map[string]string{
		fmt.Sprintf(`200 {"pid": 1, "data_dir": %q}`, path):                          "pid 1 has not ended within 1ns; its log says why\n",
		`409 {"code": "conflict", "exit": 1, "detail": "\u001b[2Jgone\u0007\u202e"}`: `\u{1B}[2Jgone\u{7}\u{202E}`,
	} {
		door, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			status, body, _ := strings.Cut(answer, " ")
			w.Header().Set("Content-Type", map[string]string{"200": "application/json"}[status])
			if status != "200" {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusConflict)
			}
			_, _ = w.Write([]byte(body)) // the client may have closed
		})}
		go func() { _ = server.Serve(door) }() // until it is closed
		if said := stopAt(t, path, socket); !strings.Contains(said, want) || strings.ContainsAny(said, "\x1b\a\u202e") {
			t.Errorf("%s: stop says %q, want %q", answer, said, want)
		}
		server.Close()
	}
	if by, _ := heldBy(path); !strings.Contains(by.String(), `\u{1B}]0;tty\u{7}`) {
		t.Errorf("the lock is of %q", by)
	}
}

// stopAt is the output of daycared stop.
func stopAt(t *testing.T, dataDir, socket string) string {
	t.Helper()
	var said strings.Builder
	c := &CLI{Out: io.Discard, Err: &said, UID: os.Getuid(), Environ: []string{
		"HOME=" + t.TempDir(), "DAYCARED_DATA_DIR=" + dataDir, "DAYCARED_API_ADMIN_SOCKET=" + socket,
	}}
	c.Run(t.Context(), []string{"stop", "--timeout", "1ns"})
	return said.String()
}
