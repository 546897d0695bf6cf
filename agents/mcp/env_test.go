package mcp_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/daycared/daycared/agents/mcp"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

var (
	fay      = connectors.Person{Name: "fay", User: "fay", UID: 2000, Location: time.UTC}
	operator = connectors.Identity{Via: "admin", UID: 1, Operator: true}

	bot = permissions.Caller{Name: "token:bot", UID: permissions.NoUID}
)

// env is a real engine and store behind the MCP server on a real HTTP server, and fay with her phone.
type env struct {
	name string // of its stdio clients; empty: tester
	*engine.Engine
	t    testing.TB
	rows *store.Store
	fay  *connectortest.Memory
	url  string
	mcp  *mcp.Server
	http *httptest.Server
	aged atomic.Int64 // added to the clock by a test
	stop func()       // ends waiting calls as a stop of the daemon does
}

func newEnv(t testing.TB, change func(*mcp.Options)) *env {
	t.Helper()
	phone := connectortest.NewMemory(connectors.Identity{Via: "telegram", UID: fay.UID}, nil)
	s := newEnvOn(t, change, phone)
	s.fay = phone
	return s
}

// newEnvOn is newEnv with fay on another channel.
func newEnvOn(t testing.TB, change func(*mcp.Options), channel connectors.Connector) *env {
	t.Helper()
	s := &env{t: t}
	rows, err := wiretest.OpenStore(t.Context(), store.Options{
		Path: filepath.Join(t.TempDir(), "store.db"), Now: s.now, Log: wiretest.Quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.rows = rows
	s.Engine = engine.New(engine.Options{
		Store: rows, Settings: settings(), Now: s.now, Log: wiretest.Quiet,
		Elapsed: func() time.Duration { return time.Since(began) + time.Duration(s.aged.Load()) },
	})
	connectortest.Connect(s.Engine, channel)
	o := mcp.Options{
		Requests: s.Engine, CallerOf: func(context.Context) permissions.Caller { return bot }, Version: "1", Log: wiretest.Quiet,
	}
	if change != nil {
		change(&o)
	}
	s.mcp = mcp.New(o)
	base, end := context.WithCancel(context.Background())
	s.http = httptest.NewUnstartedServer(s.mcp.Handler())
	s.http.Config.BaseContext = func(net.Listener) context.Context { return base }
	s.http.Start()
	s.url = s.http.URL
	running, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { _ = s.Run(running) })
	group.Go(func() { _ = channel.Run(running) })
	s.stop = end
	t.Cleanup(func() {
		end()
		s.http.Close()
		cancel()
		group.Wait()
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var began = time.Now()

func (s *env) now() time.Time { return time.Now().Add(time.Duration(s.aged.Load())) }

// pass advances the clock.
func (s *env) pass(d time.Duration) { s.aged.Add(int64(d)) }

func settings() engine.Settings {
	return engine.Settings{
		UID: fay.UID, People: []connectors.Person{fay}, Routes: []engine.Route{
			{Tags: []permissions.Tag{permissions.Workspace}, Ask: []string{"fay"}, Timeout: 10 * time.Minute},
			{Agents: []string{"*"}, Ask: []string{"fay"}},
		},
		Approvals: engine.Approvals{
			Timeout: 15 * time.Minute, MaxTimeout: time.Hour, ClarificationTimeout: 5 * time.Minute,
			DeliverWithin: 2 * time.Minute, RedeemWindow: 10 * time.Minute,
			Scopes: []permissions.Scope{permissions.Once, permissions.For(15 * time.Minute)},
		},
		Policy: permissions.Policy{Gated: []string{"write_file"}, Forbidden: []string{"delete_*"}},
		Asking: map[string][]string{"claude-code": {"AskUserQuestion"}},
		Limits: engine.Limits{PendingPerCaller: 1000, PromptsPerMinute: 100000, PendingTotal: 1000},
	}
}

// client returns an HTTP client of that era.
func (s *env) client(era string) *sdk.ClientSession { return s.clientWith(era, nil) }

func (s *env) clientWith(era string, o *sdk.ClientOptions) *sdk.ClientSession {
	s.t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, o)
	session, err := c.Connect(s.t.Context(), &sdk.StreamableClientTransport{
		Endpoint: s.url, HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, MaxRetries: -1,
	}, &sdk.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = session.Close() })
	return session
}

// stdio returns a stdio client, connected by pipes in this process.
func (s *env) stdio(change func(*mcp.Options)) *sdk.ClientSession {
	return s.stdioWith(legacy, change, nil)
}

func (s *env) stdioWith(era string, change func(*mcp.Options), options *sdk.ClientOptions) *sdk.ClientSession {
	s.t.Helper()
	return s.stdioAs(era, change, options)
}

func (s *env) stdioAs(
	era string, change func(*mcp.Options), options *sdk.ClientOptions, hears ...sdk.Middleware,
) *sdk.ClientSession {
	s.t.Helper()
	o := mcp.Options{
		Requests: s.Engine, CallerOf: func(context.Context) permissions.Caller { return bot }, Log: wiretest.Quiet,
		Cwd: "/srv/ci", Host: "vps",
	}
	if change != nil {
		change(&o)
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- mcp.New(o).Serve(context.Background(), in, out) }()
	c := sdk.NewClient(&sdk.Implementation{Name: cmp.Or(s.name, "tester"), Version: "1"}, options)
	c.AddReceivingMiddleware(hears...)
	session, err := c.Connect(s.t.Context(), &sdk.IOTransport{Reader: fromServer, Writer: toServer},
		&sdk.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = session.Close()
		if err := <-done; err != nil {
			s.t.Errorf("serve: %v", err)
		}
	})
	return session
}

type result struct {
	*sdk.CallToolResult
	err error
}

// call starts a call and returns a channel for its result.
func call(ctx context.Context, c *sdk.ClientSession, name string, arguments any) <-chan result {
	done := make(chan result, 1)
	go func() {
		r, err := c.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: arguments})
		done <- result{r, err}
	}()
	return done
}

func (s *env) get(from <-chan result) *sdk.CallToolResult {
	s.t.Helper()
	select {
	case r := <-from:
		if r.err != nil {
			s.t.Fatalf("call: %v", r.err)
		}
		return r.CallToolResult
	case <-time.After(20 * time.Second):
		s.t.Fatal("no result")
		return nil
	}
}

func textOf(t testing.TB, r *sdk.CallToolResult) string {
	t.Helper()
	if len(r.Content) != 1 {
		t.Fatalf("%d pieces of content", len(r.Content))
	}
	c, ok := r.Content[0].(*sdk.TextContent)
	if !ok {
		t.Fatalf("content of the type %T", r.Content[0])
	}
	return c.Text
}

// beside returns the structured content.
func beside(t testing.TB, r *sdk.CallToolResult) (m map[string]any) {
	t.Helper()
	raw, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// pending waits until n requests are.
func (s *env) pending(n int) []permissions.Request {
	s.t.Helper()
	var rows []permissions.Request
	wiretest.Eventually(s.t, "so many are pending", func() (is bool) {
		var err error
		rows, err = s.rows.Pending(s.t.Context(), "", "", 1000)
		return err == nil && len(rows) == n
	})
	return rows
}

// waits waits until n calls wait for a request.
func (s *env) waits(id permissions.ID, n int) {
	s.t.Helper()
	wiretest.Eventually(s.t, "so many wait", func() bool {
		r, err := s.rows.Read(s.t.Context(), id)
		if err != nil || r.State != permissions.Pending {
			return false
		}
		standing, err := s.View(s.t.Context(), r)
		return err == nil && standing.Waiting == n
	})
}

// shown waits until fay has the card.
func (s *env) shown(id permissions.ID) {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), time.Minute)
	defer done()
	err := s.fay.Wait(ctx, func(all []connectortest.Copy) bool {
		for i := range all { // they are large
			if all[i].First.Request.ID == id {
				return true
			}
		}
		return false
	})
	if err != nil {
		s.t.Errorf("fay has no card: %v", err)
	}
}

// decide answers as fay, once she has the card.
func (s *env) decide(id permissions.ID, a permissions.Answer, comment string) {
	s.t.Helper()
	s.shown(id)
	_, err := s.OnPermission(s.t.Context(), connectors.Decision{
		From: connectors.Identity{Via: "telegram", UID: fay.UID}, Request: id, Answer: a, Comment: comment,
	})
	if err != nil {
		s.t.Fatalf("decide: %v", err)
	}
}

// asked counts how often fay was asked.
func (s *env) asked() int {
	s.t.Helper()
	return len(s.fay.Copies())
}
