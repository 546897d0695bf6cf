package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/permissions"
)

// agentRuns runs a command line in a workspace with the agents' command tool.
func agentRuns(ctx context.Context, folder, line string) error {
	all := tools.All(sandbox.New(sandbox.Options{}))
	run := all[slices.IndexFunc(all, func(t tools.Tool) bool { return t.Spec().Name == "run_command" })]
	input, err := json.Marshal(map[string]string{"command": line})
	if err != nil {
		return err
	}
	place := tools.Workspace{Tags: []permissions.Tag{permissions.Workspace}}.In(folder)
	if o := run.Run(ctx, place, input, tools.Plan{}); o.Error {
		return errors.New(o.Text)
	}
	return nil
}

// A command gets nothing from the daemon's environment and none of its descriptors. It has a process group of its own, all of
// which ends with the run.
func TestRule13WhatDaycaredStartsCannotReachWhatDaycaredIs(t *testing.T) {
	t.Setenv("DAYCARED_TOKEN_FILE", "/secret/token")
	t.Setenv("XDG_STATE_HOME", "/secret/state")
	t.Setenv("HOME", "/secret/home")
	secret, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	folder := t.TempDir()
	if err := agentRuns(t.Context(), folder, `env >env.txt; ls -l /proc/self/fd >fd.txt; pwd >pwd.txt`); err != nil {
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
	own := []string{"PATH", "HOME", "TMPDIR", "TERM", "LANG", "PWD", "_", "OLDPWD", "SHLVL"} // of the sandbox and the shell
	for line := range strings.Lines(read("env.txt")) {
		if name, value, _ := strings.Cut(line, "="); !slices.Contains(own, name) || strings.Contains(value, "/secret") {
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
	go func() { done <- agentRuns(ctx, folder, `(exec 3>pipe; sleep 600) & wait`) }()
	held, err := os.Open(pipe) // returns when the child has opened it too
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	end()
	if err := <-done; err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := held.Read(make([]byte, 1)); err == nil { // the last writer has closed the pipe
		t.Error("its child lives on")
	}
}
