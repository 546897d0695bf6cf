package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// env is a running engine over a real store, with people who answer in memory. Its clock is the machine's plus an
// offset set by a test.
type env struct {
	*engine.Engine
	t            *testing.T
	dir          string
	settings     engine.Settings
	people       []connectors.Connector
	agents       []agents.Resident
	eventHandler agents.EventHandler
	rows         *store.Store

	mu    sync.Mutex
	ahead time.Duration // offset of the wall clock
	aged  time.Duration // offset of the monotonic clock
	stop  func()

	pruneEvery time.Duration // zero: often

	through func(engine.Store) engine.Store // wraps the engine's store; nil: not wrapped
	holds   func(context.Context) error     // see [engine.Options]
	awaits  func(context.Context) bool      // likewise
}

const (
	askerUID = 1000
	fayUID   = 2000
)

var (
	fay  = connectors.Person{Name: "fay", User: "fay", UID: fayUID, Location: time.UTC}
	sam  = connectors.Person{Name: "sam", User: "sam", UID: 3000, Location: time.UTC}
	self = permissions.CallerUID(askerUID)
)

// fayAt returns fay's identity in the channel called via.
func fayAt(via string) connectors.Identity { return connectors.Identity{Via: via, UID: fayUID} }

func usual() engine.Settings {
	return engine.Settings{
		UID: 1, People: []connectors.Person{fay, sam}, Routes: []engine.Route{{Agents: []string{"*"}, Ask: []string{"fay"}}},
		Approvals: engine.Approvals{
			Timeout: 15 * time.Minute, MaxTimeout: time.Hour, ClarificationTimeout: 5 * time.Minute,
			DeliverWithin: 2 * time.Minute, RedeemWindow: 10 * time.Minute,
			Scopes: []permissions.Scope{permissions.Once, permissions.SessionTool, permissions.Session, permissions.For(15 * time.Minute)},
		},
		Policy: permissions.Policy{
			Auto: []string{"read_file"}, Gated: []string{"write_file"}, Forbidden: []string{"delete_*"},
			HighRiskTools: []string{"run_command"},
		},
		Limits: engine.Limits{PendingPerCaller: 20, PromptsPerMinute: 1000, PendingTotal: 1000},
	}
}

// newEnv opens an engine and runs it until the test ends.
func newEnv(t *testing.T, s engine.Settings, people ...connectors.Connector) *env {
	t.Helper()
	return newEnvWithAgents(t, s, nil, people...)
}

// newEnvWithAgents is newEnv with agents of our own.
func newEnvWithAgents(t *testing.T, s engine.Settings, own []agents.Resident, people ...connectors.Connector) *env {
	t.Helper()
	st := &env{t: t, dir: t.TempDir(), settings: s, people: people, agents: own}
	st.open()
	t.Cleanup(func() { st.stop() })
	return st
}

// newEnvThatKeeps is newEnv with the daemon's own interval between two sweeps.
func newEnvThatKeeps(t *testing.T, s engine.Settings, people ...connectors.Connector) *env {
	t.Helper()
	st := &env{t: t, dir: t.TempDir(), settings: s, people: people, pruneEvery: time.Hour}
	st.open()
	t.Cleanup(func() { st.stop() })
	return st
}

func (s *env) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

// advance advances both clocks, as when the machine was suspended.
func (s *env) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead, s.aged = s.ahead+d, s.aged+d
}

// setWallClock sets the wall clock.
func (s *env) setWallClock(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += by
}

var began = time.Now()

func (s *env) elapsed() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(began) + s.aged
}

func (s *env) path() string { return filepath.Join(s.dir, "store.db") }

func (s *env) open() {
	s.t.Helper()
	rows, err := wiretest.OpenStore(s.t.Context(), store.Options{Path: s.path(), Now: s.now, Log: quiet(), Busy: 200 * time.Millisecond})
	if err != nil {
		s.t.Fatal(err)
	}
	s.rows = rows
	seen := engine.Store(rows)
	if s.through != nil {
		seen = s.through(rows)
	}
	s.Engine = engine.New(engine.Options{
		Store: seen, PruneEvery: cmp.Or(s.pruneEvery, 20*time.Millisecond), Residents: s.agents, EventHandler: s.eventHandler,
		Settings: s.settings, Now: s.now, Elapsed: s.elapsed, Log: quiet(), CheckLease: s.holds, AwaitLease: s.awaits,
	})
	connectortest.Connect(s.Engine, s.people...)
	if err := s.Recover(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { _ = s.Run(ctx) })
	for _, c := range s.people {
		group.Go(func() { _ = c.Run(ctx) })
	}
	s.stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
		if err := rows.Close(); err != nil {
			s.t.Error(err)
		}
	})
}

// restart stops the engine as the daemon does, and starts it over the same store with these people.
func (s *env) restart(people ...connectors.Connector) {
	s.t.Helper()
	s.stop()
	s.people = people
	s.open()
}

// answer is the result of a call.
type answer struct {
	r   permissions.Request
	err error
}

// ask starts a call and returns the channel of its answer.
func (s *env) ask(ctx context.Context, q permissions.Request) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		r, err := s.Ask(ctx, self, q)
		done <- answer{r, err}
	}()
	return done
}

// get waits for the answer of a call, which must not fail.
func (s *env) get(from <-chan answer) permissions.Request {
	s.t.Helper()
	select {
	case a := <-from:
		if a.err != nil {
			s.t.Fatalf("ask: %v", a.err)
		}
		return a.r
	case <-time.After(20 * time.Second):
		s.t.Fatal("no answer")
		return permissions.Request{}
	}
}

// shown waits until a connector has sent n prompts and returns the last.
func (s *env) shown(m *connectortest.Memory, n int) connectors.Prompt {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer done()
	if err := m.Wait(ctx, func(c []connectortest.Copy) bool { return len(c) >= n }); err != nil {
		s.t.Fatalf("wait for card %d: %v", n, err)
	}
	p := m.Copies()[n-1].First
	s.noted(m.Name(), p.Request.ID)
	return p
}

// noted waits until the store has recorded that a connector has shown a request.
func (s *env) noted(connector string, id permissions.ID) {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		changed := s.rows.Changed()
		copies, err := s.rows.Copies(s.t.Context(), id)
		if err != nil || slices.ContainsFunc(copies, func(c permissions.Copy) bool {
			return c.Connector == connector && !c.SentAt.IsZero()
		}) {
			return // the test made the store fail
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond):
		}
	}
	s.t.Fatalf("it is not noted that %s was shown %s", connector, id)
}

// edited waits until ok accepts the n-th prompt.
func (s *env) edited(m *connectortest.Memory, n int, ok func(connectors.Prompt) bool) {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer done()
	if err := m.Wait(ctx, func(c []connectortest.Copy) bool { return len(c) >= n && ok(c[n-1].Last) }); err != nil {
		s.t.Fatalf("wait for the edit of card %d: %v", n, err)
	}
}

// waiting waits until n calls wait for a request.
func (s *env) waiting(id permissions.ID, n int) {
	s.t.Helper()
	feed := s.Subscribe(100)
	defer feed.Close()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		st, err := s.Find(s.t.Context(), self, id)
		if err == nil && st.Waiting == n {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatalf("%d calls wait, not %d", st.Waiting, n)
		}
	}
}

// pending waits until n requests are pending.
func (s *env) pending(n int) []permissions.Request {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		changed := s.rows.Changed()
		if rows, err := s.rows.Pending(s.t.Context(), "", "", 1000); err == nil && len(rows) == n {
			return rows
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond):
		}
	}
	s.t.Fatalf("not %d requests are pending", n)
	return nil
}

// refused checks that an error is a refusal with that code.
func refused(t *testing.T, err error, code permissions.Code) {
	t.Helper()
	var refusal *permissions.Refusal
	if !errors.As(err, &refusal) || refusal.Code != code {
		t.Fatalf("got %v, want a refusal of the code %s", err, code)
	}
}

func network(reason string) permissions.Request {
	return permissions.Request{Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network}, Reason: reason}
}

func tool(name, input string) permissions.Request {
	return permissions.Request{Kind: permissions.KindTool, Tool: name, Input: json.RawMessage(input), Session: "s1"}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
