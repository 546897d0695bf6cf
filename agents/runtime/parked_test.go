package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/runtime"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/permissions"
)

// discardChannel is a channel that stores nothing, so that only our memory is measured.
type discardChannel struct{}

func (discardChannel) Name() string { return "phone" }

func (discardChannel) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (discardChannel) Send(_ context.Context, p connectors.Prompt) (string, error) {
	return string(p.Request.ID), nil
}

// parked counts waiting sessions.
type parked struct {
	*store.Store
	mu      sync.Mutex
	waiting int
	enough  int
	all     chan struct{}
}

func (p *parked) Commit(ctx context.Context, c agents.Commit) error {
	err := p.Store.Commit(ctx, c)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && c.Session.Request != "" && c.Session.Status == permissions.AwaitingUser {
		if p.waiting++; p.waiting == p.enough {
			close(p.all)
		}
	}
	return err
}

// used is the process's memory, from the kernel if available, otherwise from Go, and its number of goroutines.
func used(b *testing.B) (bytes uint64, goroutines int) {
	debug.FreeOSMemory()
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		var size, resident uint64
		if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
			b.Fatal(err)
		}
		return resident * uint64(os.Getpagesize()), goruntime.NumGoroutine()
	}
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse, goruntime.NumGoroutine()
}

// maxLeft is the maximum of additional goroutines: the runtime's own, none per session.
const maxLeft = 8

// BenchmarkParked parks ten thousand sessions in WAIT_ACK, and reports the process's size before and after.
func BenchmarkParked(b *testing.B) {
	const many = 10_000
	for b.Loop() {
		log := slog.New(slog.DiscardHandler)
		rows, err := store.Open(b.Context(), store.Options{Path: filepath.Join(b.TempDir(), "store.db"), Now: time.Now, Log: log})
		if err != nil {
			b.Fatal(err)
		}
		kept := &parked{Store: rows, enough: many, all: make(chan struct{})}
		a := helper(firstCalls("write_file", noteA))
		a.Tools = []tools.Tool{noteTool{name: "write_file"}}
		own := runtime.New(runtime.Options{Agents: []runtime.Agent{a}, Store: kept, Now: time.Now, Log: log})
		s := settings()
		s.Limits = engine.Limits{PendingPerCaller: many, PendingTotal: many}
		s.Bindings = map[string]permissions.Binding{"agent:helper": {Agent: "helper", Person: "fay", Via: "phone"}}
		e := engine.New(engine.Options{
			Store: rows, Residents: own.Residents(), EventHandler: own, Settings: s,
			Now: time.Now, Log: log,
		})
		e.Connect(discardChannel{})
		own.Bind(e.Approvals())
		if err := e.Recover(b.Context()); err != nil {
			b.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		var group sync.WaitGroup
		group.Go(func() { _ = e.Run(ctx) })
		for i := range many {
			beginSession(b, rows, fmt.Sprintf("helper/n%d", i))
		}
		before, were := used(b)
		began := time.Now()
		group.Go(func() { _ = own.Run(ctx) })
		<-kept.all
		took := time.Since(began)
		for tick := time.Tick(10 * time.Millisecond); goruntime.NumGoroutine() > were+maxLeft && b.Context().Err() == nil; {
			<-tick // until the last workers end
		}
		after, are := used(b)
		b.ReportMetric(float64(before)/1e6, "MB-before")
		b.ReportMetric(float64(after)/1e6, "MB-parked")
		b.ReportMetric(float64(were), "goroutines-before")
		b.ReportMetric(float64(are), "goroutines-parked")
		b.ReportMetric((float64(after)-float64(before))/many, "B/session")
		b.ReportMetric(many/took.Seconds(), "parked/s")
		stop()
		group.Wait()
		if err := rows.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// beginSession begins an agent's session and sends it a message.
func beginSession(b *testing.B, rows *store.Store, agent string) {
	now := time.Now().UTC()
	s := permissions.AgentSession{
		ID: permissions.NewID(now), Agent: agent, Person: "fay", Status: permissions.Idle, Version: 1, CreatedAt: now, ChangedAt: now,
		Step: json.RawMessage(`{}`),
	}
	if err := rows.Commit(b.Context(), agents.Commit{Session: s}); err != nil {
		b.Fatal(err)
	}
	if err := rows.Post(b.Context(), agents.Post{Session: s.ID, Key: "k", From: "fay", Text: "go", At: now}); err != nil {
		b.Fatal(err)
	}
}
