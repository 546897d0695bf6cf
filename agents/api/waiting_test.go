package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// TestACallThatWaitsHasASmallStack: the deep stacks of huma and the store are released while a call waits. BenchmarkOutsideWaiting of
// tools/outside measures the whole memory. It runs with stacks that neither begin larger nor shrink by what the collector saw, so that
// the size depends on nothing but the calls.
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

// listens returns when a process listens at a socket.
func listens(socket string) {
	for tick := time.Tick(time.Millisecond); ; <-tick {
		if c, err := net.Dial("unix", socket); err == nil {
			c.Close()
			return
		}
	}
}

// call opens a connection with a waiting call.
func call(b testing.TB, socket string, n int) net.Conn {
	b.Helper()
	body := fmt.Sprintf(`{"kind":"tool","tool":"write_file","input":{"path":"/srv/www/%d"},"reason":"deploy","wait":"50s"}`, n)
	text := "POST /v1/requests HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nDaycared-Call: c" + fmt.Sprint(n) +
		"\r\nContent-Length: " + fmt.Sprint(len(body)) + "\r\n\r\n" + body
	for tick := time.Tick(time.Millisecond); ; <-tick {
		c, err := net.Dial("unix", socket)
		switch {
		case errors.Is(err, syscall.EAGAIN): // the listen queue is full
			continue
		case err == nil:
			_, err = io.Copy(c, strings.NewReader(text))
		}
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
}

// opened counts opened requests.
type opened struct {
	*store.Store
	waiting *atomic.Int64
}

func (o opened) Open(ctx context.Context, q permissions.Opening) (permissions.Request, bool, error) {
	r, created, err := o.Store.Open(ctx, q)
	if err == nil && created {
		o.waiting.Add(1)
	}
	return r, created, err
}

// slow is a channel whose first delivery never ends, so that no other one does.
type slow struct{}

func (slow) Name() string { return "phone" }

func (slow) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (slow) Send(ctx context.Context, _ connectors.Prompt) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// serveOurs runs the agents' server with a real engine and store.
func serveOurs(ctx context.Context, socket string, waiting *atomic.Int64) error {
	path := filepath.Join(filepath.Dir(socket), "store.db")
	rows, err := store.Open(ctx, store.Options{Path: path, Now: time.Now, Log: wiretest.Quiet})
	if err != nil {
		return err
	}
	fay := connectors.Person{Name: "fay", User: "fay", UID: 2000, Location: time.UTC}
	e := engine.New(engine.Options{
		Store: opened{rows, waiting}, Now: time.Now, Log: wiretest.Quiet,
		Settings: engine.Settings{
			UID: 1, People: []connectors.Person{fay}, Routes: []engine.Route{{Agents: []string{"*"}, Ask: []string{"fay"}}},
			Approvals: engine.Approvals{
				Timeout: 15 * time.Minute, MaxTimeout: time.Hour, ClarificationTimeout: 5 * time.Minute,
				DeliverWithin: 10 * time.Minute, RedeemWindow: 10 * time.Minute, Scopes: []permissions.Scope{permissions.Once},
			},
			Limits: engine.Limits{PendingPerCaller: 1000, PendingTotal: 1000, PromptsPerMinute: 1 << 40},
		},
	})
	e.Connect(slow{})
	if err := e.Recover(ctx); err != nil {
		return errors.Join(err, rows.Close())
	}
	door := api.New(api.Options{
		Requests: e, Socket: socket, Connections: 2 * 1000, CallsPerSecond: 1 << 20, Log: wiretest.Quiet,
	})
	var running sync.WaitGroup
	running.Go(func() { _ = e.Run(ctx) })
	err = door.Run(ctx)
	running.Wait()
	return errors.Join(err, rows.Close())
}
