package api_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/engine/wiretest"
)

// TestACallThatWaitsHasASmallStack: the deep stacks of huma and the store are released while a call waits. BenchmarkWaitingCall
// measures the whole memory. It runs with stacks that neither begin larger nor shrink by what the collector saw, so that the
// size depends on nothing but the calls.
func TestACallThatWaitsHasASmallStack(t *testing.T) {
	const few, many, most = 50, 250, 12 << 10
	if fixed := "adaptivestackstart=0,gcshrinkstackoff=1"; os.Getenv("GODEBUG") != fixed {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		again.Env = append(os.Environ(), "GODEBUG="+fixed)
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	socket := wiretest.Socket(t)
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var waiting atomic.Int64
	served := make(chan error, 1)
	go func() { served <- serveOurs(ctx, socket, &waiting) }()
	var calls []net.Conn
	stacks := func(n int) uint64 {
		for len(calls) < n {
			calls = append(calls, call(t, socket, len(calls)))
			for tick := time.Tick(time.Millisecond); waiting.Load() < int64(len(calls)); { // one after the other: no bursts of deep stacks
				<-tick
			}
		}
		runtime.GC() // frees cached stacks
		s := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	listens(socket)
	before := stacks(few)
	if each := (int64(stacks(many)) - int64(before)) / (many - few); each > most {
		t.Errorf("each of %d calls that wait has stacks of %d bytes", many, each)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	for _, c := range calls {
		c.Close()
	}
}
