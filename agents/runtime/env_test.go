package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/runtime"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recordingStore is the real store, and records commits.
type recordingStore struct {
	*store.Store
	under   sync.RWMutex // locked for reading while a commit is stored and recorded
	mu      sync.Mutex
	commits []agents.Commit
	changed chan struct{}
	fails   func(agents.Commit) error // not nil: called before each commit, and may fail it
}

func (l *recordingStore) Commit(ctx context.Context, c agents.Commit) error {
	l.mu.Lock()
	fails := l.fails
	l.mu.Unlock()
	if fails != nil {
		if err := fails(c); err != nil {
			return err
		}
	}
	l.under.RLock()
	defer l.under.RUnlock()
	if err := l.Store.Commit(ctx, c); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commits = append(l.commits, c)
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// all returns every commit that a reader of the store may have seen.
func (l *recordingStore) all() []agents.Commit {
	l.under.Lock()
	defer l.under.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.commits)
}

// artifacts returns those of a type.
func (l *recordingStore) artifacts(t agents.ArtifactType) (all []map[string]any) {
	for _, c := range l.all() {
		for _, a := range c.Artifacts {
			if a.Type == t {
				var content map[string]any
				_ = json.Unmarshal(a.Content, &content)
				all = append(all, content)
			}
		}
	}
	return all
}

// records returns those of a type.
func (l *recordingStore) records(t permissions.Type) (all []permissions.Record) {
	for _, c := range l.all() {
		for _, r := range c.Records {
			if r.Type == t {
				all = append(all, r)
			}
		}
	}
	return all
}

// env is a runtime on a real engine and store, with people who answer in memory.
type env struct {
	*engine.Engine
	t      *testing.T
	dir    string
	log    bytes.Buffer // read it after stop
	agents []runtime.Agent
	others []string // agents of other parts
	phone  *connectortest.Memory
	rows   *recordingStore
	own    *runtime.Runtime
	stop   func()
	keys   int
	change func(*engine.Settings)

	mu    sync.Mutex
	ahead time.Duration
}

var (
	fay = connectors.Person{Name: "fay", User: "fay", UID: 2000, Location: time.UTC}
	sam = connectors.Person{Name: "sam", User: "sam", UID: 3000, Location: time.UTC}
)

func settings() engine.Settings {
	return engine.Settings{
		UID: 1, People: []connectors.Person{fay, sam},
		Approvals: engine.Approvals{
			Timeout: 15 * time.Minute, MaxTimeout: time.Hour, ClarificationTimeout: 5 * time.Minute,
			DeliverWithin: 2 * time.Minute, RedeemWindow: 10 * time.Minute,
			Scopes: []permissions.Scope{permissions.Once, permissions.SessionTool, permissions.Session, permissions.For(15 * time.Minute)},
		},
		Policy: permissions.Policy{Auto: []string{"look"}, Gated: []string{"write_file"}, Forbidden: []string{"delete_*"}},
		Limits: engine.Limits{PendingPerCaller: 20, PromptsPerMinute: 1000, PendingTotal: 1000},
	}
}

// helper is fay's agent with this model.
func helper(m modelFunc) runtime.Agent {
	return runtime.Agent{Name: "helper", Person: "fay", Via: "phone", Model: m}
}

// newEnv runs agents until the test ends. An agent without tools gets a noteTool called write_file in a test folder.
func newEnv(t *testing.T, own ...runtime.Agent) *env {
	t.Helper()
	return newEnvWith(t, nil, own...)
}

func newEnvWith(t *testing.T, change func(*engine.Settings), own ...runtime.Agent) *env {
	t.Helper()
	st := &env{t: t, dir: t.TempDir(), agents: own, change: change}
	for i := range own {
		a := &own[i]
		a.Place = a.Place.In(st.dir)
		if a.Tools == nil {
			a.Tools = []tools.Tool{noteTool{name: "write_file"}, noteTool{name: "look"}, noteTool{name: "delete_it"}, noteTool{name: "other"}}
		}
	}
	st.open()
	t.Cleanup(func() { st.stop() })
	return st
}

func (s *env) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

// advance advances the clock.
func (s *env) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
}

func (s *env) open() {
	s.t.Helper()
	log := slog.New(slog.NewTextHandler(&s.log, nil))
	rows, err := wiretest.OpenStore(s.t.Context(), store.Options{Path: filepath.Join(s.dir, "store.db"), Now: s.now, Log: log})
	if err != nil {
		s.t.Fatal(err)
	}
	s.rows = &recordingStore{Store: rows, changed: make(chan struct{})}
	s.phone = connectortest.NewMemory(connectors.Identity{Via: "phone", UID: fay.UID}, nil)
	s.own = runtime.New(runtime.Options{Agents: s.agents, Others: s.others, Store: s.rows, Now: s.now, Log: log})
	configured := settings()
	configured.Bindings, configured.Holdings = map[string]permissions.Binding{}, map[string][]permissions.Tag{}
	for _, a := range s.agents {
		caller := permissions.AgentCaller(a.Name).Name
		configured.Bindings[caller] = permissions.Binding{Agent: a.Name, Person: a.Person, Via: a.Via}
		configured.Holdings[caller] = a.Place.Tags
	}
	if s.change != nil {
		s.change(&configured)
	}
	s.Engine = engine.New(engine.Options{
		Store: rows, Residents: s.own.Residents(), EventHandler: s.own,
		Settings: configured, Now: s.now, Log: log,
	})
	connectortest.Connect(s.Engine, s.phone)
	s.own.Bind(s.Approvals())
	if err := s.Recover(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { _ = s.Run(ctx) })
	group.Go(func() {
		if err := s.own.Run(ctx); err != nil {
			s.t.Errorf("the runtime ends: %v", err)
		}
	})
	group.Go(func() { _ = s.phone.Run(ctx) })
	s.stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
		if err := rows.Close(); err != nil {
			s.t.Error(err)
		}
	})
}

// restart stops everything as the daemon does, and starts it on the same store.
func (s *env) restart() {
	s.t.Helper()
	s.stop()
	s.open()
}

// withAuto lets tools run without approval.
func withAuto(tools ...string) func(*engine.Settings) {
	return func(s *engine.Settings) { s.Policy.Auto = append(s.Policy.Auto, tools...) }
}

// write sends fay's message to her agent.
func (s *env) write(text string) {
	s.t.Helper()
	s.writeAs(fay, text)
}

// writeAs sends a person's message to their agent.
func (s *env) writeAs(who connectors.Person, text string) {
	s.t.Helper()
	s.keys++
	err := s.OnMessage(s.t.Context(), connectors.Message{
		From: connectors.Identity{Via: "phone", UID: who.UID}, Text: text, Key: fmt.Sprintf("m%d", s.keys),
	})
	if err != nil {
		s.t.Fatalf("write %q: %v", text, err)
	}
}

// order gives fay's order to her agent, and again while it is refused because the agent did not take it just then.
func (s *env) order(o permissions.Order) {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), patience)
	defer done()
	for {
		s.keys++
		_, err := s.Order(ctx, connectors.Identity{Via: "phone", UID: fay.UID}, o, fmt.Sprintf("o%d", s.keys))
		if err == nil {
			return
		}
		if permissions.CodeOf(err) != permissions.CodeLimit || ctx.Err() != nil {
			s.t.Fatalf("order %s: %v", o, err)
		}
	}
}

const patience = 30 * time.Second

// waitMessage waits until fay received a message with these words.
func (s *env) waitMessage(words string) {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), patience)
	defer done()
	all, err := s.phone.Spoken(ctx, func(all []connectortest.Spoken) bool {
		return slices.ContainsFunc(all, func(x connectortest.Spoken) bool { return strings.Contains(x.Text, words) })
	})
	if err != nil {
		s.t.Fatalf("fay never hears %q, but %v: %v", words, all, err)
	}
}

// card waits for the n-th card and returns its request.
func (s *env) card(n int) permissions.Request {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), patience)
	defer done()
	if err := s.phone.Wait(ctx, func(c []connectortest.Copy) bool { return len(c) >= n }); err != nil {
		s.t.Fatalf("card %d never comes: %v", n, err)
	}
	return s.phone.Copies()[n-1].First.Request
}

// answer answers a request as fay.
func (s *env) answer(r permissions.Request, a permissions.Answer, more ...func(*connectors.Decision)) {
	s.t.Helper()
	d := connectors.Decision{Request: r.ID, Answer: a, From: connectors.Identity{Via: "phone", UID: fay.UID}}
	for _, m := range more {
		m(&d)
	}
	if _, err := s.OnPermission(s.t.Context(), d); err != nil {
		s.t.Fatalf("answer %s: %v", a, err)
	}
}

var (
	once   = permissions.Allow(permissions.Once)
	always = permissions.Allow(permissions.Session)
)

// file is the content of a workspace file; empty if it does not exist.
func (s *env) file(name string) string {
	text, _ := os.ReadFile(filepath.Join(s.dir, name))
	return string(text)
}

// current is an agent's current session.
func (s *env) current(agent string) permissions.AgentSession {
	s.t.Helper()
	found, ok, err := s.rows.CurrentSession(s.t.Context(), agent)
	if err != nil || !ok {
		s.t.Fatalf("the session of %s: %v %v", agent, ok, err)
	}
	return found
}

// waitActivity waits until an agent's session has a status.
func (s *env) waitActivity(agent string, want permissions.Activity) permissions.AgentSession {
	s.t.Helper()
	return s.waitSession(agent, func(x permissions.AgentSession) bool { return x.Status == want })
}

// waitAsking waits until an agent's session waits for a request.
func (s *env) waitAsking(agent string) permissions.AgentSession {
	s.t.Helper()
	return s.waitSession(agent, func(x permissions.AgentSession) bool { return x.Request != "" })
}

// waitSession waits until an agent's current session satisfies ok.
func (s *env) waitSession(agent string, ok func(permissions.AgentSession) bool) permissions.AgentSession {
	s.t.Helper()
	for deadline := time.After(patience); ; {
		s.rows.mu.Lock()
		changed := s.rows.changed
		s.rows.mu.Unlock()
		found, open, err := s.rows.CurrentSession(s.t.Context(), agent)
		if err != nil {
			s.t.Fatal(err)
		}
		if open && ok(found) {
			return found
		}
		select {
		case <-changed:
		case <-deadline:
			s.t.Fatalf("the session of %s is %+v at %s", agent, found, found.Step)
		}
	}
}

// waitCall waits until a call of an agent has begun and not ended.
func (s *env) waitCall(agent string) {
	s.t.Helper()
	s.waitSession(agent, func(x permissions.AgentSession) bool { return strings.Contains(string(x.Step), `"phase":"begun"`) })
}
