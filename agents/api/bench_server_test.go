package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// The variables that turn this binary into a server whose memory is measured, and their values.
const (
	serverKind   = "DAYCARED_BENCH_SERVER"
	serverSocket = "DAYCARED_BENCH_SOCKET"

	serverOurs = "ours"
	serverBare = "bare"
)

// beServer does nothing in a test process. In a server process it does not return: it serves until standard input ends. For each
// number read there, it waits for that many calls and prints its resident bytes.
func beServer() {
	kind := os.Getenv(serverKind)
	if kind == "" {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	var waiting atomic.Int64
	serve := map[string]func(context.Context, string, *atomic.Int64) error{serverOurs: serveOurs, serverBare: serveBare}[kind]
	done := make(chan error, 1)
	go func() { done <- serve(ctx, os.Getenv(serverSocket), &waiting) }()
	listens(os.Getenv(serverSocket))
	fmt.Fprintln(os.Stdout, "listening")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		enough, err := strconv.ParseInt(in.Text(), 10, 64)
		for tick := time.Tick(time.Millisecond); err == nil && waiting.Load() < enough; {
			<-tick
		}
		fmt.Fprintln(os.Stdout, resident())
	}
	stop()
	if err := <-done; err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
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

// resident is this process's resident memory, from the kernel if available, otherwise from Go.
func resident() uint64 {
	for range 4 { // each run halves the unused part of the goroutines' stacks
		debug.FreeOSMemory()
	}
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		var size, pages uint64
		if _, err := fmt.Sscan(string(text), &size, &pages); err == nil {
			return pages * uint64(os.Getpagesize())
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// serveBare blocks every call and does nothing else.
func serveBare(ctx context.Context, socket string, waiting *atomic.Int64) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := &http.Server{
		BaseContext: func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			waiting.Add(1)
			<-r.Context().Done()
		}),
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
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
			Limits: engine.Limits{PendingPerCaller: manyCalls, PendingTotal: manyCalls, PromptsPerMinute: 1 << 40},
		},
	})
	e.Connect(slow{})
	if err := e.Recover(ctx); err != nil {
		return errors.Join(err, rows.Close())
	}
	door := api.New(api.Options{
		Requests: e, Socket: socket, Connections: 2 * manyCalls, CallsPerSecond: 1 << 20, Log: wiretest.Quiet,
	})
	var running sync.WaitGroup
	running.Go(func() { _ = e.Run(ctx) })
	err = door.Run(ctx)
	running.Wait()
	return errors.Join(err, rows.Close())
}
