package api_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/internal/wire/wiretest"
)

// TestACallThatWaitsHasASmallStack: the deep stacks of huma and the store are released while a call waits. BenchmarkWaitingCall
// measures the whole memory.
func TestACallThatWaitsHasASmallStack(t *testing.T) {
	const few, many, most = 50, 250, 24 << 10 // 12 KiB held on slower machines; the size varies with when the collector ran
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
		}
		for tick := time.Tick(time.Millisecond); waiting.Load() < int64(n); {
			<-tick
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
