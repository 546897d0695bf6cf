package sandbox

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/internal/own"
)

// Piped is a running program with pipes for its standard streams; these are our ends of two.
type Piped struct {
	Stdin, Stdout *os.File
	Kill          context.CancelFunc // ends the program and all its descendants
	Gone          <-chan struct{}    // closed when all of them have ended, or were killed and hang, and stderr was read

	state, last string // set before Gone is closed
	left        error  // the same
}

// Maker makes a program, not started yet, as [Sandbox.Command] does: when ctx ends it is killed with its descendants.
// release is called once it has ended, or will not be started.
type Maker func(ctx context.Context) (cmd *exec.Cmd, release func(), err error)

// Start starts a program, which outlives ctx. heard receives each line of its stderr, one above 2,000 bytes in parts.
func Start(ctx context.Context, command Maker, heard func(line string)) (*Piped, error) {
	life, kill := context.WithCancel(context.WithoutCancel(ctx))
	cmd, release, err := command(life)
	if err != nil {
		kill()
		return nil, err
	}
	var ours, theirs [3]*os.File
	for i := range ours {
		r, w, failed := os.Pipe()
		if i == 0 { // stdin: the program reads it
			r, w = w, r
		}
		ours[i], theirs[i], err = r, w, cmp.Or(err, failed)
	}
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
		err = cmd.Start()
	}
	for _, end := range theirs {
		_ = end.Close() // nil as well
	}
	if err != nil {
		kill()
		release()
		for _, end := range ours {
			_ = end.Close()
		}
		return nil, err
	}
	gone := make(chan struct{})
	p := &Piped{Stdin: ours[0], Stdout: ours[1], Kill: kill, Gone: gone}
	go p.watch(life, cmd, release, ours[2], gone, heard)
	return p, nil
}

// watch returns when the program has ended or is left, and passes each line of its stderr to heard. What it wrote last is read
// only for a moment: a process that escaped the sandbox may keep the pipes open forever.
func (p *Piped) watch(
	life context.Context, cmd *exec.Cmd, release func(), stderr *os.File, gone chan<- struct{}, heard func(line string),
) {
	var reads sync.WaitGroup
	reads.Go(func() {
		defer stderr.Close()
		for lines := bufio.NewReaderSize(stderr, 2000); ; {
			text, _, err := lines.ReadLine()
			if err != nil {
				return
			}
			if heard(string(text)); len(bytes.TrimSpace(text)) > 0 {
				p.last = strings.TrimSpace(string(text))
			}
		}
	})
	at := left{own.Watched{StepTimeout: leaveAfter / 2}} // it may have been asked to end before
	err := at.wait(life, "", cmd.Process.Pid, func() error {
		defer release()
		_ = cmd.Wait() // its state has the result
		return nil
	})
	p.Kill()
	_ = p.Stdout.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	_ = stderr.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	reads.Wait()
	if p.left = err; err == nil {
		p.state = cmd.ProcessState.String()
	} else {
		p.state = err.Error()
	}
	close(gone)
}

// Left waits until the program is gone, and returns [ErrLeft] if it has not ended.
func (p *Piped) Left() error {
	<-p.Gone
	return p.left
}

// How waits until the program is gone, and returns how it ended with the last line of its stderr, such as "(exit status
// 4); it wrote last: no such file". That line is untrusted: up to 2,000 arbitrary bytes.
func (p *Piped) How() string {
	<-p.Gone
	if p.last == "" {
		return "(" + p.state + ")"
	}
	return "(" + p.state + "); it wrote last: " + p.last
}
