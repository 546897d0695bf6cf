package own_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/internal/own"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestALookThatHangsIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w own.Watched
		answers := make(chan struct{})
		hang := func() { <-answers }
		run := func(caller string, look func()) bool { return w.Run(caller, new(atomic.Uint64), look) }
		for n := range 4 {
			if began := time.Now(); run("eve", hang) || time.Since(began) > time.Second {
				t.Fatalf("look %d that hangs: done, or awaited for %v", n, time.Since(began))
			}
		}
		if began := time.Now(); run("eve", func() { t.Error("a fifth was begun") }) || time.Since(began) != 0 {
			t.Errorf("a fifth of the same caller is done, or awaited for %v", time.Since(began))
		}
		if !run("fay", func() {}) {
			t.Error("another caller's is not done")
		}
		close(answers)
		synctest.Wait()
		if !run("eve", func() {}) {
			t.Error("after the answer, nothing of that caller is done")
		}
	})
}

func TestALookThatIsLongIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w own.Watched
		var steps atomic.Uint64
		if !w.Run("fay", &steps, func() {
			for range 10 {
				steps.Add(1)
				<-time.After(time.Second / 2)
			}
		}) {
			t.Error("it is not waited for")
		}
	})
}
