package own_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/internal/own"
)

// haltedPatience is how long a step of the look may take whose process is halted.
const haltedPatience = 2 * time.Second

// TestALookOfAHaltedProcessIsWaitedFor has a process halted while it looks, for longer than a look may take.
func TestALookOfAHaltedProcessIsWaitedFor(t *testing.T) {
	if os.Getenv("DAYCARED_LOOKS") != "" {
		w := own.Watched{StepTimeout: haltedPatience}
		fmt.Fprintln(os.Stdout, "done:", w.Run("eve", new(atomic.Uint64), func() {
			for answers := bufio.NewReader(os.Stdin); ; fmt.Fprintln(os.Stdout, "looks") {
				if _, err := answers.ReadByte(); err != nil {
					return
				}
			}
		}))
		os.Exit(0)
	}
	looks := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestALookOfAHaltedProcessIsWaitedFor$")
	looks.Env = append(os.Environ(), "DAYCARED_LOOKS=1")
	looks.Stderr = os.Stderr
	answers, err := looks.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := looks.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := looks.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	answer := func() {
		if _, err := io.WriteString(answers, "x"); err != nil || !lines.Scan() || lines.Text() != "looks" {
			t.Fatalf("the process that looks: %v, %q", err, lines.Text())
		}
	}
	answer()
	var status unix.WaitStatus
	if err := unix.Kill(looks.Process.Pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Wait4(looks.Process.Pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("it is not halted: %v", err)
	}
	<-time.After(haltedPatience + haltedPatience/4)
	if err := unix.Kill(looks.Process.Pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	answer()
	answer()
	if err := answers.Close(); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || lines.Text() != "done: true" {
		t.Errorf("the look of a process that was halted: %q", lines.Text())
	}
	if err := looks.Wait(); err != nil {
		t.Error(err)
	}
}
