package server_test

import (
	"context"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// stalls are the ways to hold a connection without using it.
var stalls = []string{
	"POST /v1/requests HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
	"POST /v1/requests HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
	"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"",
}

// Thousands of held connections to the agents' sockets do not keep anybody from deciding. STALLED is their number, on a machine that
// does nothing else; a connection that the daemon closes is opened again at once.
func TestStalledConnectionsDoNotHoldUpWhoDecides(t *testing.T) {
	const factor = 10 // of what it takes on the same machine without them
	many, slowest, lasts := 500, 200*time.Millisecond, time.Duration(0)
	if n, err := strconv.Atoi(os.Getenv("STALLED")); err == nil {
		many, lasts = n, 12*time.Second // so that each is closed, and opened again, twice
	}
	env := wiretest.NewEnv(t)
	forAgents, forDeciders := wiretest.Socket(t), wiretest.Socket(t)
	agents := api.New(api.Options{
		Requests: env, Socket: forAgents, Connections: many, Log: wiretest.Quiet,
		TCP: &api.TCP{Address: "127.0.0.1:0", PerAddress: many, Total: many},
	})
	door := admin.New(admin.Options{Socket: forDeciders, Key: "k", Log: wiretest.Quiet}, env)
	for _, err := range []error{agents.Listen(), door.Listen()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wiretest.Run(t, agents.Run)
	wiretest.Run(t, door.Run)

	c := admin.NewClient(forDeciders, "")
	t.Cleanup(c.Close)
	asked := 0
	next := time.NewTicker(5 * time.Millisecond) // faster than anybody decides
	defer next.Stop()
	decide := func(n int, until time.Time) (took []time.Duration) {
		for len(took) < n || time.Now().Before(until) {
			<-next.C
			ended, done := context.WithCancel(t.Context())
			done()
			asked++
			r, err := env.Ask(ended, permissions.CallerUID(100_000+asked), wiretest.Question(strconv.Itoa(asked)))
			if r.State != permissions.Pending {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := c.Decide(t.Context(), connectors.Decision{Request: r.ID, Answer: permissions.Deny}); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took
	}
	alone := decide(100, time.Time{})

	hold := holding{ctx: t.Context(), at: []net.Addr{&net.UnixAddr{Name: forAgents, Net: "unix"}, agents.Address()}}
	end := hold.start(many)
	defer end()
	wiretest.Eventually(t, "all are held", func() bool { return hold.held.Load() >= int64(many*9/10) })
	took := decide(300, time.Now().Add(lasts))
	if held := hold.held.Load(); held < int64(many/2) {
		t.Errorf("at the end only %d connections were held", held)
	}
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	t.Logf("%d stalled, %d decisions: p50 %s, p99 %s, worst %s", many, len(took), p50, p99, took[len(took)-1])
	if most := max(slowest, factor*alone[len(alone)/2]); p50 > most { // who waits for a place waits until a connection is closed
		t.Errorf("while %d connections stalled, deciding took %s, and %s without them", many, p50, alone[len(alone)/2])
	}
	if lasts > 0 && p99 > slowest {
		t.Errorf("while %d connections stalled, deciding took up to %s", many, p99)
	}
}

// holding are connections that are held.
type holding struct {
	ctx  context.Context //nolint:containedctx // of the test
	at   []net.Addr
	held atomic.Int64
}

// start holds n connections until the returned function is called.
func (h *holding) start(n int) (end func()) {
	ctx, cancel := context.WithCancel(h.ctx)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for ctx.Err() == nil {
				h.hold(ctx, h.at[i%len(h.at)], stalls[i/len(h.at)%len(stalls)])
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// hold holds one connection until it is closed.
func (h *holding) hold(ctx context.Context, at net.Addr, says string) {
	c, err := new(net.Dialer).DialContext(ctx, at.Network(), at.String())
	if err != nil {
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := io.WriteString(c, says); err != nil {
		return
	}
	h.held.Add(1)
	defer h.held.Add(-1)
	_, _ = io.Copy(io.Discard, c)
}
