package mcp_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// BenchmarkBlockingCall measures a call of pause over MCP that is decided over HTTP at the admin socket as soon as it waits,
// both durable, and alternately a lower bound: a tool call that does nothing, two commits, and an HTTP call that does nothing.
// It reports both medians and their ratio.
func BenchmarkBlockingCall(b *testing.B) {
	d := newDecider(b)
	c := d.keptClient()
	var whole, least []time.Duration
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		d.pause(c, strconv.Itoa(n))
		middle := time.Now()
		d.nothing(c)
		d.commits(2)
		d.noop()
		whole, least = append(whole, middle.Sub(began)), append(least, time.Since(middle))
	}
	ours, bare := median(whole), median(least)
	b.ReportMetric(float64(ours.Microseconds()), "call-µs")
	b.ReportMetric(float64(bare.Microseconds()), "bare-µs")
	b.ReportMetric(float64(ours)/float64(bare), "ratio")
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// decider decides pending requests over HTTP at once.
type decider struct {
	*env
	bare   *store.Store
	socket *http.Client
}

// lateChannel is the admin server of an engine that is made after it.
type lateChannel struct {
	*admin.Connector
	in struct{ *engine.Engine }
}

func (d *lateChannel) Bind(in connectors.Services) { d.in.Engine, _ = in.(*engine.Engine) }

func newDecider(b *testing.B) *decider {
	b.Helper()
	folder := filepath.Dir(wiretest.Socket(b))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		b.Fatal(err)
	}
	socket, file := filepath.Join(folder, "admin"), filepath.Join(folder, "key")
	const key = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		b.Fatal(err)
	}
	channel := &lateChannel{}
	channel.Connector = admin.New(admin.Options{
		Socket: socket, Key: admin.Key(key), AdminReachable: true, Log: wiretest.Quiet,
		Zone: func(string) *time.Location { return time.UTC },
	}, &channel.in)
	if err := channel.Listen(); err != nil {
		b.Fatal(err)
	}
	d := &decider{env: newEnvOn(b, nil, channel), socket: wiretest.HTTP(b, socket)}
	var err error
	d.bare, err = store.Open(b.Context(), store.Options{
		Path: filepath.Join(b.TempDir(), "bare.db"), Now: time.Now, Log: wiretest.Quiet,
	})
	if err != nil {
		b.Fatal(err)
	}
	people := admin.NewClient(socket, file)
	feed := d.Subscribe(10_000)
	var works sync.WaitGroup
	works.Go(func() {
		for r := range feed.C {
			if r.State != permissions.Pending {
				continue
			}
			_, err := people.OnPermission(context.Background(), connectors.Decision{Request: r.ID, Answer: permissions.Allow(permissions.Once)})
			if err != nil {
				b.Errorf("decide: %v", err)
			}
		}
	})
	b.Cleanup(func() {
		feed.Close()
		works.Wait()
		people.Close()
		_ = d.bare.Close()
	})
	return d
}

func (d *decider) pause(c *sdk.ClientSession, message string) {
	r, err := c.CallTool(context.Background(), &sdk.CallToolParams{Name: "pause", Arguments: arguments{"message": message, "mode": "confirm"}})
	if err != nil || r.IsError {
		d.t.Errorf("call: %+v, %v", r, err)
	}
}

// nothing calls a tool with input that is refused without asking anybody or touching the store.
func (d *decider) nothing(c *sdk.ClientSession) {
	r, err := c.CallTool(context.Background(), &sdk.CallToolParams{Name: "await_request", Arguments: arguments{}})
	if err != nil || !r.IsError {
		d.t.Errorf("call: %+v, %v", r, err)
	}
}

// commits makes n of the store's smallest writes.
func (d *decider) commits(n int) {
	for range n {
		if _, err := d.bare.Heartbeat(context.Background(), time.Now()); err != nil {
			d.t.Error(err)
		}
	}
}

// noop makes an HTTP call to a route of the admin socket that does not exist. (Calls of /healthz are counted.)
func (d *decider) noop() {
	if status, _ := wiretest.Do(d.t, d.socket, http.MethodGet, "/nothing", "", ""); status != http.StatusNotFound {
		d.t.Errorf("status %d", status)
	}
}

// keptClient returns a client that keeps its connection.
func (d *decider) keptClient() *sdk.ClientSession {
	d.t.Helper()
	transport := &http.Transport{}
	c := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, nil)
	session, err := c.Connect(d.t.Context(), &sdk.StreamableClientTransport{
		Endpoint: d.url, HTTPClient: &http.Client{Transport: transport}, MaxRetries: -1,
	}, &sdk.ClientSessionOptions{ProtocolVersion: modern})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		_ = session.Close()
		transport.CloseIdleConnections()
	})
	return session
}
