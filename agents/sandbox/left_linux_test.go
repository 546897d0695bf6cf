package sandbox

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/internal/own"
)

// unkillable makes a program that the end of ctx does not end, like one that hangs in the kernel.
func unkillable(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "echo begun; exec sleep 600")
	cmd.Cancel = func() error { return nil }
	return cmd
}

type writer func()

func (w writer) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}

// TestAKilledProcessThatHangsIsLeft: its call ends, it counts for the folder that it was in as long as it hangs, and is released then.
func TestAKilledProcessThatHangsIsLeft(t *testing.T) {
	s := &Sandbox{left: left{own.Watched{StepTimeout: 10 * time.Millisecond}}}
	w := Policy{Read: []string{"/srv"}, Held: Folder{Path: "/ws"}}
	released := make(chan struct{}, 10)
	release := func() { released <- struct{}{} }
	var all []*exec.Cmd
	for range 4 {
		ctx, kill := context.WithCancel(t.Context())
		cmd := unkillable(ctx)
		cmd.Stdout = writer(kill)
		all = append(all, cmd)
		if err := s.Run(ctx, w, cmd, release); !errors.Is(err, ErrLeft) || len(released) > 0 {
			t.Fatalf("it ended with %v, and was released %d times", err, len(released))
		}
	}
	fifth := exec.CommandContext(t.Context(), "true")
	if err := s.Run(t.Context(), w, fifth, release); !errors.Is(err, errFull) || fifth.Process != nil {
		t.Errorf("a fifth: %v, %v", fifth.Process, err)
	}
	<-released
	if err := s.Run(t.Context(), Policy{Write: []string{"/other"}}, exec.CommandContext(t.Context(), "true"), release); err != nil {
		t.Errorf("elsewhere: %v", err)
	}
	<-released
	for _, cmd := range all {
		_ = cmd.Process.Kill()
		<-released
	}
}

// TestAProcessThatEndsInTimeIsNotLeft: its own result counts.
func TestAProcessThatEndsInTimeIsNotLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, kill := context.WithCancel(t.Context())
		kill()
		l, want := left{own.Watched{StepTimeout: leaveAfter}}, errors.New("its own")
		if err := l.wait(ctx, "/ws", 0, func() error { <-time.After(leaveAfter / 2); return want }); !errors.Is(err, want) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// TestOnlyAProcessThatHangsIsSaidToHang: a file system is named where a process waits in the kernel, here for the end of its child.
func TestOnlyAProcessThatHangsIsSaidToHang(t *testing.T) {
	program := filepath.Join(tempFiles(t), "vfork")
	write(t, program+".c", `#include <unistd.h>
int main(int argc, char **argv) {
	if (vfork() == 0) for (;;) pause();
	return 0;
}`)
	if out, err := exec.CommandContext(t.Context(), "gcc", "-o", program, program+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for script, told := range map[string]string{
		"echo begun; sleep 600 & wait": "was killed, and has not ended yet. It may still do something.",
		program + ` & until grep -q "^State:.D" /proc/$!/status; do :; done; echo begun; wait`: "was killed, and has not ended yet. " +
			"A file system seems not to answer it; it ends when that does.",
	} {
		ctx, kill := context.WithCancel(t.Context())
		cmd := unkillable(ctx)
		cmd.Args[2], cmd.Stdout, cmd.SysProcAttr = script, writer(kill), newSession()
		s := &Sandbox{left: left{own.Watched{StepTimeout: 10 * time.Millisecond}}}
		released := make(chan struct{})
		if err := s.Run(ctx, Policy{}, cmd, func() { close(released) }); Left(err) != told || !errors.Is(err, ErrLeft) {
			t.Errorf("%s: it ended with %v: it %s", script, err, Left(err))
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-released
	}
}

// TestAProgramThatHangsIsLeft: whoever waits for its end is told.
func TestAProgramThatHangsIsLeft(t *testing.T) {
	var cmd *exec.Cmd
	p, err := Start(t.Context(), func(ctx context.Context) (*exec.Cmd, func(), error) {
		cmd = unkillable(ctx)
		return cmd, func() {}, nil
	}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	if how := p.How(); !strings.Contains(how, ErrLeft.Error()) {
		t.Errorf("it ended %s", how)
	}
	_ = cmd.Process.Kill()
}

// TestAFolderThatDoesNotAnswerIsRefused: what is its own and what is not cannot be told. Other folders are reached.
func TestAFolderThatDoesNotAnswerIsRefused(t *testing.T) {
	dir, other := tempFiles(t, "file"), tempFiles(t, "file")
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		defer close(answers)
		for range 4 {
			_ = own.Do(dir, func() error { <-answers; return nil })
		}
		s := New(Options{Mode: Off, Own: []string{"/nowhere/daycared"}})
		if err := s.checkPolicy(Policy{Read: []string{dir}}); !errors.Is(err, own.ErrSilent) {
			t.Errorf("the policy is judged as %v", err)
		}
		if err := s.checkPolicy(Policy{Read: []string{other}}); err != nil {
			t.Errorf("another folder's policy is judged as %v", err)
		}
	})
}
