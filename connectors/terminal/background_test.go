package terminal_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/terminal"
	"github.com/daycared/daycared/permissions"
)

// roleVariable has the test binary play a part in another process: "asker" runs a terminal that is sent to the
// background and comes back, "holder" is what has the foreground meanwhile.
const roleVariable = "DAYCARED_TERMINAL_ROLE"

func runRole(role string) int {
	part := map[string]func() error{"asker": runAsker, "holder": runHolder}[role]
	if part == nil {
		return 2
	}
	if err := part(); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		return 1
	}
	return 0
}

// TestInTheBackground runs the terminal in a process of its own, with a controlling terminal whose foreground goes to
// somebody else and comes back. Reading or setting modes in the background would stop that process.
func TestInTheBackground(t *testing.T) {
	report, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer report.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"=asker")
	cmd.ExtraFiles = []*os.File{told}
	hand, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer hand.Close()
	_ = told.Close()
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	seen := &screen{changed: make(chan struct{})}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(seen, hand) // until the last of the other side is closed
	}()
	lines := bufio.NewScanner(report)
	for _, want := range []string{
		"at first: <nil>",
		"in the background: fay cannot be asked here: the terminal is in the background",
		"noticed",
		"back",
	} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("reported %q; want %q", lines.Text(), want)
		}
	}
	seen.sees(t, "LATE2  ✖ Cancelled by kim") // what was said meanwhile
	seen.sees(t, "K7F3Q · until ")
	seen.sees(t, " > ")
	if _, err := io.WriteString(hand, "y\r"); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || lines.Text() != "decided: allow_once" {
		t.Errorf("reported %q; want that it was decided", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the process ended: %v\n%s", err, seen)
	}
	<-copied
}

func runAsker() error {
	report := os.NewFile(3, "report")
	r := ask(permissions.KindPermission, nil)
	h := takes(r)
	log := &screen{changed: make(chan struct{})}
	term := terminal.New(terminal.Options{
		In: os.Stdin, Out: &foreground{report: report}, UID: fay.UID, Now: time.Now,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}, h)
	fmt.Fprintln(report, "at first:", term.Reach(fay))
	giveBack, err := giveAway()
	if err != nil {
		return err
	}
	fmt.Fprintln(report, "in the background:", term.Reach(fay))

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- term.Run(ctx) }()
	late := *ask(permissions.KindPermission, nil)
	late.State, late.DecidedBy = permissions.Cancelled, "kim"
	for code, request := range map[string]permissions.Request{"K7F3Q": *r, "LATE2": late} {
		if _, err := term.Send(ctx, connectors.Prompt{Request: request, Code: code, To: fay}); err != nil {
			return err
		}
	}
	for !strings.Contains(log.String(), "in the background") {
		log.mu.Lock()
		changed := log.changed
		log.mu.Unlock()
		if !strings.Contains(log.String(), "in the background") {
			<-changed
		}
	}
	fmt.Fprintln(report, "noticed")
	if err := giveBack(); err != nil {
		return err
	}
	fmt.Fprintln(report, "back")
	d := <-h.got
	fmt.Fprintln(report, "decided:", d.Answer)
	cancel()
	return <-done
}

// foreground writes to the terminal, and reports what is written while that is somebody else's.
type foreground struct{ report io.Writer }

func (f *foreground) Write(p []byte) (int, error) {
	if group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err != nil || group != unix.Getpgrp() {
		fmt.Fprintf(f.report, "written in the background: %q\n", p)
	}
	return os.Stdout.Write(p)
}

// giveAway starts a process that has the foreground until giveBack.
func giveAway() (giveBack func() error, err error) {
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), roleVariable+"=holder", fmt.Sprintf("GROUP=%d", unix.Getpgrp()))
	holder.Stderr = os.Stderr
	holder.ExtraFiles = []*os.File{os.Stdin}
	holder.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: int(os.Stdin.Fd())}
	hold, err := holder.StdinPipe()
	if err != nil {
		return nil, err
	}
	ready, err := holder.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := holder.Start(); err != nil {
		return nil, err
	}
	if line, err := bufio.NewReader(ready).ReadString('\n'); err != nil || strings.TrimSpace(line) != "ready" {
		return nil, fmt.Errorf("the holder says %q: %w", line, err)
	}
	return func() error {
		_ = hold.Close()
		return holder.Wait()
	}, nil
}

// runHolder has the foreground until its input ends, and gives it back.
func runHolder() error {
	fmt.Fprintln(os.Stdout, "ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	group := 0
	if _, err := fmt.Sscan(os.Getenv("GROUP"), &group); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGTTOU)
	return unix.IoctlSetPointerInt(3, unix.TIOCSPGRP, group)
}
