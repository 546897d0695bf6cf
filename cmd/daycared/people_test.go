package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// Scripts have people in them, who sit at consoles, read and type:
//
//	sit NAME COMMAND…     run a command on a terminal of its own
//	pipe NAME COMMAND…    run a command whose standard input is an open pipe
//	start NAME COMMAND…   run a command without a console
//	shows NAME REGEXP     wait until it has said that, after what was awaited before; a named group sets that variable
//	types NAME TEXT       type; \r, \x1b and the like are as in Go
//	closes NAME           take its keyboard away
//	sends NAME SIGNAL     send HUP, INT, TERM, KILL, STOP or CONT
//	ends NAME CODE [TIME] wait for its end, with that exit code or by that signal, at most that long after the last
//	                      signal to it; it leaves no process behind
//	saves NAME FILE       write all that it has said to a file
//	logs NAME REGEXP      wait until the log of the data directory has that
//	rereads NAME REGEXP   the same, sending it HUP until then

type scriptCommands = map[string]func(*testscript.TestScript, bool, []string)

// peopleCommands are the commands above.
func peopleCommands() scriptCommands {
	begins := func(how func(*actor) error) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, _ bool, args []string) { begin(ts, args, how) }
	}
	on := func(do func(*testscript.TestScript, *actor, []string)) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) == 0 {
				ts.Fatalf("usage: COMMAND NAME…")
			}
			a, known := cast(ts)[args[0]]
			if !known {
				ts.Fatalf("nobody is called %s", args[0])
			}
			do(ts, a, args[1:])
		}
	}
	return scriptCommands{
		"sit": begins((*actor).sit), "pipe": begins((*actor).pipe), "start": begins((*actor).start),
		"shows": on(shows), "types": on(types), "closes": on(closes), "sends": on(sends), "ends": on(ends),
		"saves": on(saves), "logs": on(logs), "rereads": on(rereads),
	}
}

// castKey is the key of a script's actors by name, namesKey that of the names of its environment.
type castKey struct{}
type namesKey struct{}

func cast(ts *testscript.TestScript) map[string]*actor {
	all, ok := ts.Value(castKey{}).(map[string]*actor)
	if !ok {
		ts.Fatalf("the script was set up without a cast")
	}
	return all
}

// actor is one running command.
type actor struct {
	cmd  *exec.Cmd
	hand *os.File      // input of its terminal; nil without one
	done chan struct{} // closed when it has ended and its output was read
	at   time.Time     // of the last signal to it

	mu      sync.Mutex
	said    []byte
	read    int           // how much of it was awaited
	changed chan struct{} // closed when more output arrives
}

// begin starts a command in the script's folder and environment. The end of the script ends it.
func begin(ts *testscript.TestScript, args []string, how func(*actor) error) {
	if len(args) < 2 {
		ts.Fatalf("usage: sit|pipe|start NAME COMMAND…")
	}
	a := &actor{cmd: exec.Command(args[1], args[2:]...), done: make(chan struct{}), changed: make(chan struct{})}
	a.cmd.Dir = ts.MkAbs(".")
	names, _ := ts.Value(namesKey{}).(map[string]bool)
	for name := range maps.Keys(names) {
		if value := ts.Getenv(name); value != "" {
			a.cmd.Env = append(a.cmd.Env, name+"="+value)
		}
	}
	ts.Check(how(a))
	cast(ts)[args[0]] = a
	ts.Defer(func() {
		ended := a.stop()
		ts.Logf("[%s had ended: %v, %v; it said]\n%s", args[0], ended, a.cmd.ProcessState, a.said)
	})
}

// sit gives it a controlling terminal.
func (a *actor) sit() (err error) {
	screen, err := pty.StartWithSize(a.cmd, &pty.Winsize{Rows: 50, Cols: 200})
	if err != nil {
		return err
	}
	defer screen.Close()
	if a.hand, err = pollable(screen); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(a, a.hand) // until the terminal is closed
		_ = a.cmd.Wait()          // ends checks the state
		close(a.done)
	}()
	return nil
}

// pollable reopens a file so that it can be closed during a read.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

func (a *actor) pipe() error {
	in, hand, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	a.cmd.Stdin, a.hand = in, hand
	return a.start()
}

func (a *actor) start() error {
	a.cmd.Stdout, a.cmd.Stderr, a.cmd.SysProcAttr = a, a, &syscall.SysProcAttr{Setpgid: true}
	if err := a.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = a.cmd.Wait() // ends checks the state
		close(a.done)
	}()
	return nil
}

// stop ends it, first with SIGINT, and reports whether it had ended already. It is the leader of a process group.
func (a *actor) stop() (ended bool) {
	select {
	case <-a.done:
		ended = true
	default:
	}
	_ = a.cmd.Process.Signal(os.Interrupt) // it may have ended already
	select {
	case <-a.done:
	case <-time.After(5 * time.Second):
	}
	_ = syscall.Kill(-a.cmd.Process.Pid, syscall.SIGKILL) // normally there is none left
	<-a.done
	if a.hand != nil {
		_ = a.hand.Close() // it may be closed already
	}
	return ended
}

// plainly leaves out bold letters.
var plainly = strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "")

// Write collects its output, without a terminal's carriage returns and, unless pictures are drawn of it, bold letters.
func (a *actor) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := max(a.read, len(a.said)-len("\x1b[1m"))
	a.said = append(a.said, bytes.ReplaceAll(p, []byte("\r"), nil)...)
	if *gallery == "" {
		a.said = append(a.said[:at], plainly.Replace(string(a.said[at:]))...)
	}
	close(a.changed)
	a.changed = make(chan struct{})
	return len(p), nil
}

// look advances past the next match and returns it with its groups, or nil and when to look again.
func (a *actor) look(want *regexp.Regexp) (found []string, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := string(a.said[a.read:])
	if at := want.FindStringIndex(left); at != nil {
		a.read += at[1]
	}
	return want.FindStringSubmatch(left), a.changed
}

func shows(ts *testscript.TestScript, a *actor, args []string) {
	want, err := regexp.Compile("(?m)" + strings.Join(args, " "))
	ts.Check(err)
	late := time.After(patience)
	for ended := false; ; {
		said, changed := a.look(want)
		for i, name := range want.SubexpNames() {
			if name != "" && said != nil {
				ts.Setenv(name, said[i])
			}
		}
		if said != nil {
			return
		}
		if ended {
			ts.Fatalf("it ended and never showed %s", want)
		}
		select {
		case <-changed:
		case <-a.done:
			ended = true
		case <-late:
			ts.Fatalf("it does not show %s", want)
		}
	}
}

func types(ts *testscript.TestScript, a *actor, args []string) {
	text, err := strconv.Unquote(`"` + strings.Join(args, " ") + `"`)
	ts.Check(err)
	_, err = a.hand.WriteString(text)
	ts.Check(err)
}

func closes(ts *testscript.TestScript, a *actor, _ []string) { ts.Check(a.hand.Close()) }

var signals = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL,
	"STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
}

func sends(ts *testscript.TestScript, a *actor, args []string) {
	a.at = time.Now()
	ts.Check(a.cmd.Process.Signal(signals[args[0]]))
}

func ends(ts *testscript.TestScript, a *actor, args []string) {
	select {
	case <-a.done:
	case <-time.After(patience):
		ts.Fatalf("it does not end")
	}
	took := time.Since(a.at)
	got, status := strconv.Itoa(a.cmd.ProcessState.ExitCode()), a.cmd.ProcessState.Sys()
	if s, ok := status.(syscall.WaitStatus); ok && s.Signaled() {
		for name, signal := range signals {
			if signal == s.Signal() {
				got = name
			}
		}
	}
	if got != args[0] {
		ts.Fatalf("it ended with %s, want %s", got, args[0])
	}
	if len(args) > 1 {
		most, err := time.ParseDuration(args[1])
		ts.Check(err)
		if took > most {
			ts.Fatalf("it took %s to end, more than %s", took, most)
		}
	}
	if err := syscall.Kill(-a.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		ts.Fatalf("it left a process behind (%v)", err)
	}
}

func logs(ts *testscript.TestScript, _ *actor, args []string) { logged(ts, args, func() {}) }

func rereads(ts *testscript.TestScript, a *actor, args []string) {
	logged(ts, args, func() { sends(ts, a, []string{"HUP"}) })
}

// logged waits until the log has a match, and calls first before each look.
func logged(ts *testscript.TestScript, args []string, first func()) {
	want, err := regexp.Compile(strings.Join(args, " "))
	ts.Check(err)
	until(ts, "the log has "+want.String(), func(context.Context) error {
		first()
		text, err := os.ReadFile(filepath.Join(ts.Getenv("DAYCARED_DATA_DIR"), "daycared.log"))
		if err != nil || want.Match(text) {
			return err
		}
		return errors.New("it has not")
	})
}

func saves(ts *testscript.TestScript, a *actor, args []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), a.said, 0o600))
}
