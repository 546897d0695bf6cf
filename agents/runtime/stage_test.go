package runtime_test

import (
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
	"github.com/daycared/daycared/permissions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ledger is the real store, and records commits.
type ledger struct {
	*store.Store
	mu      sync.Mutex
	commits []agents.Commit
	changed chan struct{}
	fails   func(agents.Commit) error // not nil: called before each commit, and may fail it
}

func (l *ledger) Commit(ctx context.Context, c agents.Commit) error {
	l.mu.Lock()
	fails := l.fails
	l.mu.Unlock()
	if fails != nil {
		if err := fails(c); err != nil {
			return err
		}
	}
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

func (l *ledger) all() []agents.Commit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.commits)
}

// artifacts returns those of a type.
func (l *ledger) artifacts(t agents.ArtifactType) (all []map[string]any) {
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
func (l *ledger) records(t permissions.Type) (all []permissions.Record) {
	for _, c := range l.all() {
		for _, r := range c.Records {
			if r.Type == t {
				all = append(all, r)
			}
		}
	}
	return all
}

// stage is a runtime on a real engine and store, with people who answer in memory.
type stage struct {
	*engine.Engine
	t      *testing.T
	dir    string
	agents []runtime.Agent
	others []string // agents of other parts
	phone  *connectortest.Memory
	rows   *ledger
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
func helper(m mind) runtime.Agent {
	return runtime.Agent{Name: "helper", Person: "fay", Via: "phone", Model: m}
}

// play runs agents until the test ends. An agent without tools gets a pen called write_file in a test folder.
func play(t *testing.T, own ...runtime.Agent) *stage {
	t.Helper()
	return playWith(t, nil, own...)
}

func playWith(t *testing.T, change func(*engine.Settings), own ...runtime.Agent) *stage {
	t.Helper()
	st := &stage{t: t, dir: t.TempDir(), agents: own, change: change}
	for i := range own {
		a := &own[i]
		a.Place = a.Place.In(st.dir)
		if a.Tools == nil {
			a.Tools = []tools.Tool{pen{name: "write_file"}, pen{name: "look"}, pen{name: "delete_it"}, pen{name: "other"}}
		}
	}
	st.open()
	t.Cleanup(func() { st.stop() })
	return st
}

func (s *stage) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

// pass advances the clock.
func (s *stage) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
}

func (s *stage) open() {
	s.t.Helper()
	log := slog.New(slog.DiscardHandler)
	rows, err := store.Open(s.t.Context(), store.Options{Path: filepath.Join(s.dir, "store.db"), Now: s.now, Log: log})
	if err != nil {
		s.t.Fatal(err)
	}
	s.rows = &ledger{Store: rows, changed: make(chan struct{})}
	s.phone = connectortest.NewMemory(connectors.Identity{Via: "phone", UID: fay.UID}, nil)
	s.own = runtime.New(runtime.Options{Agents: s.agents, Others: s.others, Store: s.rows, Now: s.now, Log: log})
	configured := settings()
	configured.Bonds, configured.Holdings = map[string]permissions.Binding{}, map[string][]permissions.Tag{}
	for _, a := range s.agents {
		caller := permissions.AgentCaller(a.Name).Name
		configured.Bonds[caller] = permissions.Binding{Agent: a.Name, Person: a.Person, Via: a.Via}
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
func (s *stage) restart() {
	s.t.Helper()
	s.stop()
	s.open()
}

// withAuto lets tools run without approval.
func withAuto(tools ...string) func(*engine.Settings) {
	return func(s *engine.Settings) { s.Policy.Auto = append(s.Policy.Auto, tools...) }
}

// writes sends fay's message to her agent.
func (s *stage) writes(text string) {
	s.t.Helper()
	s.writesAs(fay, text)
}

// writesAs sends a person's message to their agent.
func (s *stage) writesAs(who connectors.Person, text string) {
	s.t.Helper()
	s.keys++
	err := s.OnMessage(s.t.Context(), connectors.Message{
		From: connectors.Identity{Via: "phone", UID: who.UID}, Text: text, Key: fmt.Sprintf("m%d", s.keys),
	})
	if err != nil {
		s.t.Fatalf("write %q: %v", text, err)
	}
}

// orders gives fay's order to her agent.
func (s *stage) orders(o permissions.Order) {
	s.t.Helper()
	s.keys++
	ctx, done := context.WithTimeout(s.t.Context(), 2*time.Second) // the time limit of the contract
	defer done()
	if _, err := s.Order(ctx, connectors.Identity{Via: "phone", UID: fay.UID}, o, fmt.Sprintf("o%d", s.keys)); err != nil {
		s.t.Fatalf("order %s: %v", o, err)
	}
}

const patience = 30 * time.Second

// hears waits until fay received a message with these words.
func (s *stage) hears(words string) {
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
func (s *stage) card(n int) permissions.Request {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), patience)
	defer done()
	if err := s.phone.Wait(ctx, func(c []connectortest.Copy) bool { return len(c) >= n }); err != nil {
		s.t.Fatalf("card %d never comes: %v", n, err)
	}
	return s.phone.Copies()[n-1].First.Request
}

// answers answers a request as fay.
func (s *stage) answers(r permissions.Request, a permissions.Answer, more ...func(*connectors.Decision)) {
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
func (s *stage) file(name string) string {
	text, _ := os.ReadFile(filepath.Join(s.dir, name))
	return string(text)
}

// current is an agent's current session.
func (s *stage) current(agent string) permissions.AgentSession {
	s.t.Helper()
	found, ok, err := s.rows.CurrentSession(s.t.Context(), agent)
	if err != nil || !ok {
		s.t.Fatalf("the session of %s: %v %v", agent, ok, err)
	}
	return found
}

// stands waits until an agent's session has a status.
func (s *stage) stands(agent string, want permissions.Activity) permissions.AgentSession {
	s.t.Helper()
	return s.until(agent, func(x permissions.AgentSession) bool { return x.Status == want })
}

// waits waits until an agent's session waits for a request.
func (s *stage) waits(agent string) permissions.AgentSession {
	s.t.Helper()
	return s.until(agent, func(x permissions.AgentSession) bool { return x.Request != "" })
}

// until waits until an agent's current session satisfies ok.
func (s *stage) until(agent string, ok func(permissions.AgentSession) bool) permissions.AgentSession {
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

// begun waits until a call of an agent has begun and not ended.
func (s *stage) begun(agent string) {
	s.t.Helper()
	s.until(agent, func(x permissions.AgentSession) bool { return strings.Contains(string(x.Step), `"phase":"begun"`) })
}
