package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"time"

	"github.com/daycared/daycared/internal/own"
)

// Operation is a function of ours that runs sandboxed in a separate process. Of its error only the text is returned.
type Operation func(input json.RawMessage) (output any, err error)

// The arguments with which our binary is executed again.
const (
	supervisorName = "daycared-warden"
	commandName    = "daycared-command"
	operationName  = "daycared-operation"
)

// Main must be called first in main and in TestMain: if a [Sandbox] executed this process, it runs what it was told and
// never returns; otherwise it returns at once. operations are those that [Sandbox.Do] may name.
func Main(operations map[string]Operation) {
	if len(os.Args) != 1 {
		return
	}
	switch os.Args[0] {
	case supervisorName:
		os.Exit(runSupervisor())
	case commandName:
		os.Exit(asCommand())
	case operationName:
		os.Exit(asOperation(os.Stdin, os.Stdout, operations))
	}
}

type answer struct {
	Output json.RawMessage `json:"output,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Do runs an operation in a sandbox and decodes its result. Its own error is a *Fault; with another it was not run, or not to its end.
func (s *Sandbox) Do(ctx context.Context, w Policy, operation string, input, output any) error {
	if err := s.checkPolicy(w); err != nil {
		return err
	}
	order := s.spec(w)
	order.Operation = operation
	var err error
	if order.Input, err = json.Marshal(input); err != nil {
		return fmt.Errorf("write what %s is to do: %w", operation, err)
	}
	text, err := order.encode()
	if err != nil {
		return err
	}
	ctx, done := context.WithTimeout(ctx, doWithin)
	defer done()
	cmd := exec.CommandContext(ctx, executable)
	cmd.Args, cmd.Env, cmd.Dir = []string{operationName}, cleanEnvironment(), "/"
	cmd.SysProcAttr = newSession()
	cmd.WaitDelay = grace
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), &out, &said
	switch err := s.Run(ctx, w, cmd, func() {}); {
	case errors.Is(err, ErrLeft), errors.Is(err, errFull): // it may still write, or was not started
		return fmt.Errorf("run %s in the sandbox: %w", operation, err)
	case err != nil:
		return errors.Join(context.Cause(ctx), fmt.Errorf("run %s in the sandbox: %w: %.300s", operation, err, &said))
	}
	var a answer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		return fmt.Errorf("read what %s says: %w", operation, err)
	}
	if a.Error != "" {
		return &Fault{a.Error}
	}
	return json.Unmarshal(a.Output, output)
}

// doWithin is how long an operation may take.
const doWithin = 2 * time.Minute

// Run runs a command that was made with ctx for a policy, and calls release when it has ended. If that is not soon after the end of
// ctx, Run returns [ErrLeft] before, and the command's output must not be read. While several hang there, no other is started.
func (s *Sandbox) Run(ctx context.Context, w Policy, cmd *exec.Cmd, release func()) error {
	place := w.Held.Path
	if all := slices.Concat(w.Write, w.Read); place == "" && len(all) > 0 {
		place = all[0]
	}
	if s.left.Full(place) {
		release()
		return fmt.Errorf("reach %s: %w", place, errFull)
	}
	if err := cmd.Start(); err != nil {
		release()
		return err
	}
	return s.left.wait(ctx, place, cmd.Process.Pid, func() error {
		defer release()
		return cmd.Wait()
	})
}

var errFull = errors.New("too many processes that were killed hang there; they end when their file system answers")

// left are processes that were killed and hang, by the folder that they reach.
type left struct{ own.Watched }

// leaveAfter is how long after its kill a process is left.
const leaveAfter = 1200 * time.Millisecond

// wait returns what ends returns, or [ErrLeft] where that is not soon after the end of ctx. The process has the id pid.
func (l *left) wait(ctx context.Context, place string, pid int, ends func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- ends() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	var err error
	if !l.Run(place, new(atomic.Uint64), func() { err = <-ended }) {
		if hangs(pid) {
			return errHangs
		}
		return ErrLeft
	}
	return err
}

// Fault is the error of a sandboxed operation.
type Fault struct{ Text string }

func (f *Fault) Error() string { return f.Text }

// grace is how long a process that was told to exit may take, before it is killed alone.
const grace = 5 * time.Second

// cleanEnvironment is the environment of our processes between daemon and command: nothing but what a test binary reads.
func cleanEnvironment() []string {
	env := []string{"PATH=" + Path, "LANG=C.UTF-8"}
	for _, name := range []string{counting, "GORACE"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// counting is the variable for coverage data of go test -cover.
const counting = "GOCOVERDIR"

// asOperation runs the process that executes one operation.
func asOperation(in io.Reader, out io.Writer, operations map[string]Operation) int {
	err := operate(in, out, operations)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return NotStarted
	}
	return 0
}

// NotStarted is the exit code of a command that could not be started; stderr has the reason.
const NotStarted = 125

func operate(in io.Reader, out io.Writer, operations map[string]Operation) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	s, err := decode(text)
	if err != nil {
		return err
	}
	do := operations[s.Operation]
	if do == nil {
		return fmt.Errorf("there is no operation %q", s.Operation)
	}
	if err := restrictProcess(s); err != nil {
		return err
	}
	var a answer
	output, err := do(s.Input)
	if err != nil {
		a.Error = err.Error()
	} else if a.Output, err = json.Marshal(output); err != nil {
		return err
	}
	text, err = json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
