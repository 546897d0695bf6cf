package sandbox

import (
	"bufio"
	"cmp"
	"context"
	"os"
	"os/exec"
	"time"
)

// Piped is a program that runs with pipes for its standard streams, whose other ends these are.
type Piped struct {
	Stdin, Stdout, Stderr *os.File
	Kill                  context.CancelFunc // ends the program and all that it started

	cmd     *exec.Cmd
	release func()
}

// Maker makes a program, not started yet, as [Sandbox.Command] does: when ctx ends it is killed with all that it started, and
// release is called once it has ended, or was not started after all.
type Maker func(ctx context.Context) (cmd *exec.Cmd, release func(), err error)

// Start starts what command makes. The program's life is not that of ctx. Once it has started,
// [Piped.Wait] must be called.
func Start(ctx context.Context, command Maker) (*Piped, error) {
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
	return &Piped{ours[0], ours[1], ours[2], kill, cmd, release}, nil
}

// Wait waits until the program has ended, and returns how. What it wrote last can still be read for a moment: what got away
// from its walls may keep the pipes open for ever.
func (p *Piped) Wait() *os.ProcessState {
	_ = p.cmd.Wait() // how it ended is read from its state
	p.release()
	p.Kill()
	_ = p.Stdout.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	_ = p.Stderr.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	return p.cmd.ProcessState
}

// EachError calls each with every line that the program writes to stderr, until it ends. One of more than 2,000 bytes is several.
func (p *Piped) EachError(each func(line string)) {
	defer p.Stderr.Close()
	lines := bufio.NewReaderSize(p.Stderr, 2000)
	for {
		text, _, err := lines.ReadLine()
		if err != nil {
			return
		}
		each(string(text))
	}
}
