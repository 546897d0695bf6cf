package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// job runs a shell script from the standard input's terminal, as `daycared run` does, until SIGTERM. Failed tests leave nothing for long.
func job(mode Mode, dir, script string) error {
	brief, done := context.WithTimeout(context.Background(), time.Minute)
	defer done()
	ctx, end := signal.NotifyContext(brief, syscall.SIGTERM)
	defer end()
	_, err := New(Options{Mode: mode}).Job(ctx, Policy{Write: []string{dir}, Dir: dir},
		Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, "/bin/sh", "-c", script)
	return err
}

// person is somebody at a terminal with a shell.
type person struct {
	t        *testing.T
	keyboard *os.File
	seen     string
}

// sits starts a shell with job control in a terminal of its own.
func sits(t *testing.T, env ...string) *person {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, keyboard: os.NewFile(uintptr(fd), "ptmx")}
	t.Cleanup(func() { _ = p.keyboard.Close() })
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	screen, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	shell := exec.CommandContext(t.Context(), "/bin/sh", "-i")
	shell.Env = append([]string{"PS1=$ ", "PATH=" + Path, "GORACE=atexit_sleep_ms=10"}, env...)
	shell.Stdin, shell.Stdout, shell.Stderr = screen, screen, screen
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = shell.Process.Kill()
		_ = shell.Wait()
	})
	return p
}

// types types something and waits until the terminal shows something else.
func (p *person) types(what, sees string) {
	p.t.Helper()
	if err := p.keyboard.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		p.t.Fatal(err)
	}
	_, err := p.keyboard.WriteString(what)
	for some := make([]byte, 1024); err == nil; {
		if _, after, found := strings.Cut(p.seen, sees); found {
			p.seen = after
			return
		}
		var n int
		n, err = p.keyboard.Read(some)
		p.seen += string(some[:n])
	}
	p.t.Fatalf("after %q there is no %q but %q: %v", what, sees, p.seen, err)
}

// A program that is stopped in a terminal, or in the background, does not go on and reads nothing of what is typed for others.
func TestAJobThatIsStopped(t *testing.T) {
	for _, mode := range []Mode{On, Off} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			stopped(t, mode)
		})
	}
}

func stopped(t *testing.T, mode Mode) {
	dir, name := pipe(t)
	script := `exec 3>pipe
(while :; do echo beat >> beats; sleep .005; done) &
while read -r line; do
	echo "$line" >> lines
	before=$(wc -c < beats)
	while [ "$(wc -c < beats)" = "$before" ]; do sleep .005; done
	echo "it goes on: $line"
done`
	p := sits(t, "SELF="+self(), "DIR="+dir, "SCRIPT="+script, "MODE="+string(mode))
	const start = `$SELF probe job $MODE "$DIR" "$SCRIPT"`
	text := func(file string) string {
		got, _ := os.ReadFile(filepath.Join(dir, file)) // missing: not started
		return string(got)
	}
	still := func(when string) {
		t.Helper()
		beats, lines := text("beats"), text("lines")
		for range 5 {
			p.types("echo secret$((7*191)) | { sleep .05; cat; }\n", "secret1337")
		}
		if text("beats") != beats || text("lines") != lines {
			t.Errorf("%s it goes on: %d beats instead of %d, and read %q", when, len(text("beats"))/5, len(beats)/5, text("lines"))
		}
	}
	p.types(start+" &\n", "$ ")
	p.types("until grep -q State:.T /proc/$!/status; do sleep .01; done; echo waits$((7*191))\n", "waits1337")
	still("in the background")
	p.types("fg\n", "\n")
	held, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	p.types("first\n", "it goes on: first")
	p.types("\x1a", "Stopped")
	still("stopped")
	p.types("fg\n", "\n")
	p.types("second\n", "it goes on: second")
	p.types("\x1a", "Stopped")
	p.types("bg\n", "$ ")
	still("continued in the background")
	p.types("kill %1; kill -CONT %1\n", "$ ")
	gone(t, held)
	if text("lines") != "first\nsecond\n" {
		t.Errorf("it read %q", text("lines"))
	}
}

// A program with another input that runs on in the background cannot read the terminal that it writes to.
func TestAJobDoesNotReadItsOutput(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{"1", "2"} {
		dir := tempFiles(t)
		p := sits(t, "SELF="+self(), "DIR="+dir, "SCRIPT=[ -t "+stream+" ] && cat <&"+stream+" >> lines; echo it ended $((7*191)) >&"+stream)
		p.types(`$SELF probe job on "$DIR" "$SCRIPT" < /dev/null &`+"\n", "it ended 1337")
		if _, err := os.Stat(filepath.Join(dir, "lines")); err != nil {
			t.Errorf("stream %s is no terminal any more: %v", stream, err)
		}
	}
}

// Keys that are typed while this process is stopped, or once its terminal is another's, are not the command's.
func TestAJobReadsWhatIsTypedForItAlone(t *testing.T) {
	t.Parallel()
	dir, name := pipe(t)
	p := sits(t, "SELF="+self(), "DIR="+dir, `SCRIPT=exec 3>pipe; echo it runs $((7*191))
while read -r line; do echo "$line" >> lines; echo "read: $line"; done`)
	pid := func() int {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, "pid"))
		if err != nil {
			t.Fatal(err)
		}
		id, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	const start = `sh -c 'echo $$ > "$DIR/pid"; exec $SELF probe job on "$DIR" "$SCRIPT"'` + "\n"
	p.types(start, "\n")
	held, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	p.types("", "it runs 1337")
	p.types("first\n", "read: first")
	if err := unix.Kill(pid(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.types("", "Stopped")
	for range 5 {
		p.types("echo secret$((7*191)) | { sleep .05; cat; }\n", "secret1337")
	}
	p.types("fg\n", "SCRIPT") // the shell has read no more
	p.types("second\n", "read: second")
	p.types("\x04", "$ ")
	gone(t, held)

	p.types("sh -i\n", "$ ")
	p.types("echo $$ > \"$DIR/shell\"\n", "$ ")
	p.types(start, "\n")
	again, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	p.types("", "it runs 1337")
	p.types("third\n", "read: third")
	shell, err := os.ReadFile(filepath.Join(dir, "shell"))
	if err == nil {
		err = exec.CommandContext(t.Context(), "kill", "-9", strings.TrimSpace(string(shell))).Run()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.types("", "Killed")
	for range 5 {
		p.types("echo secret$((7*191)) | { sleep .05; cat; }\n", "secret1337")
	}
	gone(t, again)
	if lines, _ := os.ReadFile(filepath.Join(dir, "lines")); string(lines) != "first\nsecond\nthird\n" {
		t.Errorf("it read %q", lines)
	}
}

// TestReadingKeysNeverWaits: another program may have read what was typed, and what comes later may be for others.
func TestReadingKeysNeverWaits(t *testing.T) {
	keyboard, screen, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer keyboard.Close()
	defer screen.Close()
	from := keysOf(screen)
	defer unix.Close(from)
	read := make(chan error, 1)
	go func() {
		_, err := unix.Read(from, make([]byte, 9))
		read <- err
	}()
	select {
	case err := <-read:
		if !errors.Is(err, unix.EAGAIN) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits")
		_, _ = keyboard.WriteString("x\n")
		<-read
	}
}

// A program in a job has what a terminal has: keys as they are pressed, a size that follows, an interrupt for itself alone, jobs of its
// own. Afterwards the person's terminal is as it was.
func TestAJobHasATerminal(t *testing.T) {
	t.Parallel()
	dir := tempFiles(t)
	p := sits(t, "SELF="+self(), "DIR="+dir, "SCRIPT=PS1='> ' exec bash --norc --noprofile --noediting -i")
	p.types("stty -g > \"$DIR/before\"\n", "$ ")
	p.types("$SELF probe job on \"$DIR\" \"$SCRIPT\"\n", "> ")
	if err := pty.Setsize(p.keyboard, &pty.Winsize{Rows: 33, Cols: 123}); err != nil {
		t.Fatal(err)
	}
	p.types("until [ \"$(stty size)\" = '33 123' ]; do sleep .01; done; echo size$((7*191))\n", "size1337")
	p.types("stty raw -echo; echo ready$((7*191)); head -c 3 | od -c; stty sane; echo keys$((7*191))\n", "ready1337")
	p.types("a\x1a\x03", "a 032 003")
	p.types("", "keys1337")
	p.types("(trap 'echo interrupted$((7*191)); exit' INT; echo waits$((7*191)); while :; do sleep .01; done)\n", "waits1337")
	p.types("\x03", "interrupted1337")
	p.types("(echo sleeps$((7*191)); sleep 600)\n", "sleeps1337")
	p.types("\x1a", "Stopped")
	p.types("kill %1; fg\n", "> ")
	p.types("exit\n", "$ ")
	p.types("echo data | $SELF probe job on \"$DIR\" 'cat; echo lines$((7*191))'\n", "data\r\nlines1337\r\n")
	p.types("$SELF probe job on \"$DIR\" 'echo copies$((7*191)); cat; echo all$((7*191))' | cat\n", "copies1337")
	p.types("line\n", "line\r\nline\r\n")
	p.types("\x04", "all1337")
	p.types("", "$ ")
	p.types("stty -g > \"$DIR/after\"; echo ended$((7*191))\n", "ended1337")
	before, err := os.ReadFile(filepath.Join(dir, "before"))
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(filepath.Join(dir, "after"))
	if err != nil {
		t.Fatal(err)
	}
	if string(after) != string(before) {
		t.Errorf("the terminal was %s and is %s", before, after)
	}
}
