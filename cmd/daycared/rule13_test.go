package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What runs has nothing of the daemon's environment, no descriptor of its, and a process group of its own, whose every
// member ends when the run is ended.
func TestRule13WhatDaycaredStartsCannotReachWhatDaycaredIs(t *testing.T) {
	t.Setenv("DAYCARED_TOKEN_FILE", "/secret/token")
	t.Setenv("XDG_STATE_HOME", "/secret/state")
	secret, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	folder := t.TempDir()
	if err := runIn(t.Context(), folder, `env >env.txt; ls -l /proc/self/fd >fd.txt; pwd >pwd.txt`); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for line := range strings.Lines(read("env.txt")) {
		name, _, _ := strings.Cut(line, "=")
		if name != "PATH" && name != "PWD" && name != "_" && name != "OLDPWD" && name != "SHLVL" {
			t.Errorf("it sees %s", line)
		}
	}
	if fds := read("fd.txt"); strings.Contains(fds, os.Args[0]) || strings.Contains(fds, ".sock") || strings.Contains(fds, ".db") {
		t.Errorf("it holds\n%s", fds)
	}
	if strings.TrimSpace(read("pwd.txt")) != folder {
		t.Errorf("it runs in %s", read("pwd.txt"))
	}

	ctx, end := context.WithCancel(t.Context())
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- runIn(ctx, folder, `(exec 3>pipe; sleep 600) & wait`) }()
	held, err := os.Open(pipe) // when the child has opened it too
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	end()
	if err := <-done; err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := held.Read(make([]byte, 1)); err == nil { // the end of the pipe: its last writer is gone
		t.Error("its child lives on")
	}
}
