package timing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// uptime is the time since the machine was started, as the kernel puts it for people.
func uptime(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	var seconds float64
	if _, err := fmt.Sscan(string(text), &seconds); err != nil {
		t.Fatal(err)
	}
	return time.Duration(seconds * float64(time.Second))
}

// TestElapsedBeginsWithTheMachine: what was measured before a restart of the daemon can be compared with what is measured after it.
func TestElapsedBeginsWithTheMachine(t *testing.T) {
	before, got, after := uptime(t), Elapsed(), uptime(t)
	if rounding := 10 * time.Millisecond; got < before-rounding || got > after+rounding {
		t.Errorf("%s, while the machine has been running for %s to %s", got, before, after)
	}
}

// TestASignalIsKept: a worker that is awake is woken once more, however often it is notified.
func TestASignalIsKept(t *testing.T) {
	s := NewSignal()
	s.Notify()
	s.Notify()
	<-s
	select {
	case <-s:
		t.Error("two notifications woke it twice")
	default:
	}
}

func TestAPauseEndsWithItsContext(t *testing.T) {
	if err := Pause(t.Context(), time.Millisecond); err != nil {
		t.Error(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := Pause(ended, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}
