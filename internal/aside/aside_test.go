package aside_test

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/internal/aside"
)

var pool = aside.NewPool()

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRunReturnsWhenItIsDone(t *testing.T) {
	did := false
	pool.Run(func() { did = true })
	if !did {
		t.Error("it was not done")
	}
}

// goroutine is which one runs.
func goroutine() string {
	head := make([]byte, 32)
	n := runtime.Stack(head, false)
	return strings.Fields(string(head[:n]))[1]
}

func TestGoroutinesWithGrownStacksAreUsedAgain(t *testing.T) {
	const runs = 1000
	used := map[string]bool{}
	for range runs {
		pool.Run(func() { used[goroutine()] = true })
	}
	if len(used) > runs/2 {
		t.Errorf("%d calls in turn took %d goroutines", runs, len(used))
	}
}

func explode() { panic("boom") }

func TestAPanicIsTheCallers(t *testing.T) {
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "boom") || !strings.Contains(p, "explode") {
			t.Errorf("the caller panicked with %s", p)
		}
	}()
	pool.Run(explode)
	t.Error("the caller did not panic")
}

// deep needs 64 KiB of a stack.
func deep(n int) (sum byte) {
	var room [1 << 10]byte
	if n > 0 {
		room[n] = deep(n - 1)
	}
	for _, b := range room {
		sum += b
	}
	return sum + 1
}

func stacks() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func TestWhoeverWaitsAfterwardsStaysSmall(t *testing.T) {
	const many, each = 200, 16 << 10
	ready, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	before := stacks()
	for range many {
		go func() {
			pool.Run(func() { deep(63) })
			ready <- struct{}{}
			<-end
			ended <- struct{}{}
		}()
		<-ready // one after the other, so that each has ended
	}
	grown := (int64(stacks()) - int64(before)) / many
	close(end)
	for range many {
		<-ended
	}
	if grown > each {
		t.Errorf("each of %d that wait has a stack of %d bytes", many, grown)
	}
}
