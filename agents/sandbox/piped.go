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
)

// Piped is a program that runs with pipes for its standard streams; these are the other ends of two.
type Piped struct {
	Stdin, Stdout *os.File
	Kill          context.CancelFunc // ends the program and all that it started
	Gone          <-chan struct{}    // is closed when it has ended, with all that it started, and what it wrote to stderr was heard

	state, last string // are written before Gone is closed
}

// Maker makes a program, not started yet, as [Sandbox.Command] does: when ctx ends it is killed with all that it started, and
// release is called once it has ended, or was not started after all.
type Maker func(ctx context.Context) (cmd *exec.Cmd, release func(), err error)

// Start starts what command makes. The program's life is not that of ctx. Each line that it writes to stderr is handed to heard,
// one of more than 2,000 bytes as several.
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
		if i == 0 { // they read it
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
	go p.watch(cmd, release, ours[2], gone, heard)
	return p, nil
}

// watch lasts until the program has ended, and hands each line that it writes to stderr to heard. What it wrote last can still be
// read for a moment: what got away from its walls may keep the pipes open for ever.
func (p *Piped) watch(cmd *exec.Cmd, release func(), stderr *os.File, gone chan<- struct{}, heard func(line string)) {
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
	_ = cmd.Wait() // how it ended is read from its state
	release()
	p.Kill()
	_ = p.Stdout.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	_ = stderr.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	reads.Wait()
	p.state = cmd.ProcessState.String()
	close(gone)
}

// How waits until the program is gone, and says how it ended, with the last line that it wrote to stderr: "(exit status 4); it wrote
// last: no such file". That line is the program's, of up to 2,000 bytes of any kind.
func (p *Piped) How() string {
	<-p.Gone
	if p.last == "" {
		return "(" + p.state + ")"
	}
	return "(" + p.state + "); it wrote last: " + p.last
}
