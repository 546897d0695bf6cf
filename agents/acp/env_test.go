package acp_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/acp"
	"github.com/daycared/daycared/agents/acp/acptest"
	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// TestMain is also the entry of the test binary when it is executed again: as the sandbox, and as the agent.
func TestMain(m *testing.M) {
	sandbox.Main(tools.Operations())
	acptest.Main()
	os.Setenv("GORACE", "atexit_sleep_ms=10") // otherwise each of our processes takes a second to end
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// env has agents on a real engine with a real store, in the sandbox, and people who answer in memory.
type env struct {
	*engine.Engine
	t          *testing.T
	dir        string
	testAgents []testAgent
	phone      *connectortest.Memory
	rows       *store.Store
	own        []*acp.Agent
	stop       func()
	keys       int

	mu        sync.Mutex
	ahead     time.Duration
	artifacts []agents.Artifact // the stored ones
}

// recordingStore is the real store, and records the stored artifacts.
type recordingStore struct {
	*store.Store
	s *env
}

func (l recordingStore) Commit(ctx context.Context, c agents.Commit) error {
	err := l.Store.Commit(ctx, c)
	if err == nil {
		l.s.mu.Lock()
		defer l.s.mu.Unlock()
		l.s.artifacts = append(l.s.artifacts, c.Artifacts...)
	}
	return err
}

// said is the content of the artifacts of a type.
func (s *env) said(of agents.ArtifactType) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.artifacts {
		if a.Type == of {
			all = append(all, string(a.Content))
		}
	}
	return all
}

// waitEnded waits until the end of a session's run was reported.
func (s *env) waitEnded(id permissions.ID) {
	s.t.Helper()
	for late := time.After(patience); ; {
		changed := s.rows.Changed()
		x, err := s.rows.AgentSession(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		if x.Status == permissions.Idle || x.Status == permissions.Interrupted {
			return
		}
		select {
		case <-changed:
		case <-late:
			s.t.Fatalf("session %s is %+v", id, x)
		}
	}
}

func replaceWorkspace(line, ws string) string {
	return strings.ReplaceAll(line, "$WS", filepath.Clean(ws))
}

// testAgent is an agent of a test with its behaviour.
type testAgent struct {
	name   string
	person string
	like   []string
	start  time.Duration
	often  bool // progress is reported
	auth   string
	mode   string
	tags   []permissions.Tag
}

var (
	fay = connectors.Person{Name: "fay", User: "fay", UID: 2000, Location: time.UTC}
	sam = connectors.Person{Name: "sam", User: "sam", UID: 3000, Location: time.UTC}
)

// newEnv runs such an agent for fay until the test ends.
func newEnv(t *testing.T, like ...string) *env {
	t.Helper()
	return newEnvWith(t, testAgent{name: "coder", person: "fay", like: like})
}

func newEnvWith(t *testing.T, testAgents ...testAgent) *env {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &env{t: t, dir: dir, testAgents: testAgents}
	if err := os.Mkdir(s.at(""), 0o700); err != nil {
		t.Fatal(err)
	}
	s.open()
	t.Cleanup(func() { s.stop() })
	return s
}

// at is a file of the workspace.
func (s *env) at(name string) string { return filepath.Join(s.dir, "ws", name) }

func (s *env) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

// advance lets time go by.
func (s *env) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
}

type eventHandlers []*acp.Agent

func (all eventHandlers) HandleEvent(ctx context.Context, h permissions.Event, r permissions.Request) error {
	for _, a := range all {
		_ = a.HandleEvent(ctx, h, r)
	}
	return nil
}

// program is the test binary as an agent, sandboxed to its workspace.
func program(box *sandbox.Sandbox, place tools.Workspace, start time.Duration, like ...string) acp.Program {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return acp.Program{
		Start: start, Log: slog.New(slog.DiscardHandler), Place: place, Sandbox: box,
		Command: func(ctx context.Context) (*exec.Cmd, func(), error) {
			held, err := place.Held()
			if err != nil {
				return nil, nil, err
			}
			ws := held.Path
			cmd, release, err := box.Command(ctx, sandbox.Policy{
				Read: []string{self}, Write: []string{ws}, Dir: ws, Held: held,
				Env: []string{"GORACE=atexit_sleep_ms=10", "GOCOVERDIR=" + ws},
			}, append([]string{self, acptest.Name}, like...)...)
			if slices.Contains(like, "unkillable") { // it does not end when it is told to, but later
				cmd.Cancel, cmd.WaitDelay = func() error { return nil }, 1500*time.Millisecond
			}
			return cmd, release, err
		},
	}
}

// place is the workspace as configured.
func (s *env) place(name string, more ...permissions.Tag) tools.Workspace {
	write, err := permissions.ParseTag("@write:" + s.at(""))
	if err != nil {
		s.t.Fatal(err)
	}
	held := append([]permissions.Tag{write, permissions.Workspace}, more...)
	return tools.Workspace{Tags: held}.In(filepath.Clean(s.at("")))
}

func (s *env) open() {
	s.t.Helper()
	log := slog.New(slog.DiscardHandler)
	rows, err := wiretest.OpenStore(s.t.Context(), store.Options{Path: filepath.Join(s.dir, "store.db"), Now: s.now, Log: log})
	if err != nil {
		s.t.Fatal(err)
	}
	s.rows, s.own = rows, nil
	s.phone = connectortest.NewMemory(connectors.Identity{Via: "phone", UID: fay.UID}, nil)
	box := sandbox.New(sandbox.Options{Own: []string{filepath.Join(s.dir, "store.db")}})
	configured := engine.Settings{
		Routes: []engine.Route{{Agents: []string{"uid:*"}, Ask: []string{"fay"}, Quorum: 1}},
		UID:    1, People: []connectors.Person{fay, sam},
		Approvals: engine.Approvals{
			Timeout: 15 * time.Minute, MaxTimeout: time.Hour, ClarificationTimeout: 5 * time.Minute,
			DeliverWithin: 2 * time.Minute, RedeemWindow: 10 * time.Minute,
			Scopes: []permissions.Scope{
				permissions.Once, permissions.SessionTool, permissions.Session, permissions.For(15 * time.Minute), permissions.Always,
			},
		},
		Policy:   permissions.Policy{Auto: []string{"read_file", "acp_think"}, Gated: []string{"write_file"}, Forbidden: []string{"acp_delete"}},
		Limits:   engine.Limits{PendingPerCaller: 20, PromptsPerMinute: 1000, PendingTotal: 1000},
		Bindings: map[string]permissions.Binding{}, Holdings: map[string][]permissions.Tag{},
	}
	var residents []agents.Resident
	for _, c := range s.testAgents {
		p := s.place(c.name, c.tags...)
		binary := program(box, p, c.start, c.like...)
		binary.Auth, binary.Mode = c.auth, c.mode
		if c.often {
			binary.Progress = time.Millisecond
		}
		a := acp.New(acp.Options{
			Name: c.name, Person: c.person, Via: "phone", Program: binary, Store: recordingStore{rows, s}, Now: s.now,
		})
		s.own, residents = append(s.own, a), append(residents, a)
		caller := permissions.AgentCaller(c.name).Name
		configured.Bindings[caller], configured.Holdings[caller] = a.Binding(), p.Tags
	}
	s.Engine = engine.New(engine.Options{
		Store: rows, Residents: residents, EventHandler: eventHandlers(s.own),
		Settings: configured, Now: s.now, Log: log,
	})
	connectortest.Connect(s.Engine, s.phone)
	for _, a := range s.own {
		a.Bind(s.Approvals())
	}
	if err := s.Recover(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { _ = s.Run(ctx) })
	group.Go(func() { _ = s.phone.Run(ctx) })
	s.stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
		if err := rows.Close(); err != nil {
			s.t.Error(err)
		}
	})
}

// restart stops everything as the daemon does, and starts it again with the same store.
func (s *env) restart() {
	s.t.Helper()
	s.stop()
	s.open()
}

// write has fay write lines to her agent.
func (s *env) write(lines ...string) {
	s.t.Helper()
	s.writeAs(fay, lines...)
}

func (s *env) writeAs(who connectors.Person, lines ...string) {
	s.t.Helper()
	s.keys++
	err := s.OnMessage(s.t.Context(), connectors.Message{
		From: connectors.Identity{Via: "phone", UID: who.UID}, Text: strings.Join(lines, "\n"), Key: fmt.Sprintf("m%d", s.keys),
	})
	if err != nil {
		s.t.Fatalf("write %q: %v", lines, err)
	}
}

// order makes fay give her agent an order, which must take effect in two seconds.
func (s *env) order(o permissions.Order) {
	s.t.Helper()
	s.keys++
	ctx, done := context.WithTimeout(s.t.Context(), 2*time.Second)
	defer done()
	if _, err := s.Order(ctx, connectors.Identity{Via: "phone", UID: fay.UID}, o, fmt.Sprintf("o%d", s.keys)); err != nil {
		s.t.Fatalf("order %s: %v", o, err)
	}
}

const patience = 30 * time.Second

// waitMessage waits until a person got a message with these words, and returns it.
func (s *env) waitMessage(words string) string {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), patience)
	defer done()
	text := ""
	all, err := s.phone.Spoken(ctx, func(all []connectortest.Spoken) bool {
		i := slices.IndexFunc(all, func(x connectortest.Spoken) bool { return strings.Contains(x.Text, words) })
		if i >= 0 {
			text = all[i].Text
		}
		return i >= 0
	})
	if err != nil {
		s.t.Fatalf("nobody ever hears %q, but %v: %v", words, all, err)
	}
	return text
}

// card waits for the n-th prompt and returns its request.
func (s *env) card(n int) permissions.Request {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), patience)
	defer done()
	if err := s.phone.Wait(ctx, func(c []connectortest.Copy) bool { return len(c) >= n }); err != nil {
		s.t.Fatalf("card %d never comes: %v\n%s", n, err, s.phone.Seen())
	}
	return s.phone.Copies()[n-1].First.Request
}

// waitSettled waits until the n-th prompt shows its outcome.
func (s *env) waitSettled(n int, want permissions.State) {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), patience)
	defer done()
	if err := s.phone.Wait(ctx, func(c []connectortest.Copy) bool {
		return len(c) >= n && c[n-1].Last.Request.State == want
	}); err != nil {
		s.t.Fatalf("card %d is %s, never %s", n, s.phone.Copies()[n-1].Last.Request.State, want)
	}
}

// answer makes fay answer a request.
func (s *env) answer(r permissions.Request, a permissions.Answer, comment ...string) {
	s.t.Helper()
	d := connectors.Decision{Request: r.ID, Answer: a, From: connectors.Identity{Via: "phone", UID: fay.UID}}
	d.Comment = strings.Join(comment, "")
	if _, err := s.OnPermission(s.t.Context(), d); err != nil {
		s.t.Fatalf("answer %s: %v", a, err)
	}
}

// waitActivity waits until an agent's session has a status.
func (s *env) waitActivity(agent string, want permissions.Activity) permissions.AgentSession {
	s.t.Helper()
	for late := time.After(patience); ; {
		changed := s.rows.Changed()
		found, _, err := s.rows.CurrentSession(s.t.Context(), agent)
		if err != nil {
			s.t.Fatal(err)
		}
		if found.Status == want {
			return found
		}
		select {
		case <-changed:
		case <-late:
			s.t.Fatalf("the session of %s is %+v", agent, found)
		}
	}
}

var (
	allow  = permissions.Allow(permissions.Once)
	always = permissions.Allow(permissions.SessionTool)
)
