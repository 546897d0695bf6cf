package linearizability_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// haste is how much faster the engine's clocks run than real time: a deadline comes while people answer.
const haste = 100

// clock is both the wall clock and the monotonic clock.
type clock struct {
	start time.Time
	haste time.Duration
}

// read is the accelerated time in nanoseconds since the start.
func (c clock) read() int64 { return int64(c.haste * time.Since(c.start)) }

func (c clock) now() time.Time         { return c.start.Round(0).Add(c.elapsed()) }
func (c clock) elapsed() time.Duration { return time.Duration(c.read()) }

// since is a time relative to the start.
func (c clock) since(t time.Time) int64 { return int64(t.Sub(c.start.Round(0))) }

// The people, by name. eve is configured too, but never asked.
var people = []string{"fay", "sam", "kim", "eve"}

const firstUID = 1 << 20

func uidOf(i int) int { return firstUID + i }

// env is a daemon's engine with a real store, agent.sock and, because an account is one person, an admin.sock for each person.
type env struct {
	clock  clock
	agents *caller
	people map[string]*caller
}

// adminSocket wraps the operations of one admin.sock. It is the only fake here: it replaces the kernel, which would report
// another account, and a chat, whose event names an answer; the comment does that here.
type adminSocket struct {
	*engine.Engine
	uid int
}

func (s adminSocket) at(id connectors.Identity) connectors.Identity { id.UID = s.uid; return id }

func (s adminSocket) OnPermission(ctx context.Context, d connectors.Decision) (permissions.Request, error) {
	d.From, d.Key = s.at(d.From), d.Comment
	return s.Engine.OnPermission(ctx, d)
}

func (s adminSocket) Show(ctx context.Context, id connectors.Identity, name string) (permissions.RequestView, error) {
	return s.Engine.Show(ctx, s.at(id), name)
}

func (s adminSocket) Cancel(ctx context.Context, id connectors.Identity, name string) (permissions.RequestView, error) {
	return s.Engine.Cancel(ctx, s.at(id), name)
}

func (s adminSocket) Void(ctx context.Context, id connectors.Identity, name string) (permissions.RequestView, error) {
	return s.Engine.Void(ctx, s.at(id), name)
}

func (s adminSocket) StopAll(ctx context.Context, id connectors.Identity) (int, error) {
	return s.Engine.StopAll(ctx, s.at(id))
}

func (s adminSocket) Resume(ctx context.Context, id connectors.Identity) error {
	return s.Engine.Resume(ctx, s.at(id))
}

// newEnv runs everything until the test ends. through, unless nil, wraps the engine's store.
func newEnv(t *testing.T, through func(engine.Store) engine.Store) *env {
	t.Helper()
	s := &env{clock: clock{time.Now(), haste}, people: map[string]*caller{}}
	rows, err := store.Open(t.Context(), store.Options{
		Path: filepath.Join(folder(t), "store.db"), Now: s.clock.now, Log: wiretest.Quiet, Busy: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	})
	seen := engine.Store(rows)
	if through != nil {
		seen = through(rows)
	}
	var all []connectors.Person
	for i, name := range people {
		all = append(all, connectors.Person{Name: name, User: name, UID: uidOf(i), Location: time.UTC})
	}
	e := engine.New(engine.Options{
		Store: seen, Settings: settings(all),
		Now: s.clock.now, Elapsed: s.clock.elapsed, PruneEvery: 5 * time.Second, Log: wiretest.Quiet,
	})
	doors := map[string]*admin.Connector{}
	for i, name := range people {
		socket := wiretest.Socket(t)
		doors[name] = admin.New(admin.Options{Socket: socket, AdminReachable: true, Log: wiretest.Quiet}, adminSocket{e, uidOf(i)})
		s.people[name] = newCaller(t, socket, s.clock)
	}
	e.Connect(doors["fay"])
	if err := e.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	wiretest.Run(t, e.Run)
	socket := wiretest.Socket(t)
	forAgents := api.New(api.Options{Requests: e, Socket: socket, CallsPerSecond: 1e6, Log: wiretest.Quiet})
	s.agents = newCaller(t, socket, s.clock)
	if err := forAgents.Listen(); err != nil {
		t.Fatal(err)
	}
	wiretest.Run(t, forAgents.Run)
	for _, name := range people {
		if err := doors[name].Listen(); err != nil {
			t.Fatal(err)
		}
		wiretest.Run(t, doors[name].Run)
	}
	return s
}

// roomy is the free space that a folder in memory needs: several times what a run stores.
const roomy = 256 << 20

// folder is where the rows are: in memory if possible. This tests the order of commits, not durability, and disk time
// would dominate.
func folder(t *testing.T) string {
	t.Helper()
	const memory = "/dev/shm"
	var room unix.Statfs_t
	if err := unix.Statfs(memory, &room); err != nil || room.Bavail*uint64(room.Bsize) < roomy {
		return t.TempDir()
	}
	path, err := os.MkdirTemp(memory, "daycared")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	return path
}

// settings are those of the env: a request's tool name or path says whom it asks.
func settings(all []connectors.Person) engine.Settings {
	var routes []engine.Route
	for quorum, name := range quorums {
		ask := asked(quorum)
		routes = append(routes,
			engine.Route{Tools: []string{name}, Ask: ask, Quorum: quorum},
			engine.Route{Tags: []permissions.Tag{tag("/" + name)}, Ask: ask, Quorum: quorum},
		)
	}
	return engine.Settings{
		UID: 1, People: all, Routes: routes,
		Approvals: engine.Approvals{
			Timeout: 15 * time.Minute, MaxTimeout: time.Hour, ClarificationTimeout: 5 * time.Minute,
			DeliverWithin: time.Hour, RedeemWindow: 20 * time.Minute,
			Scopes: []permissions.Scope{permissions.Once},
		},
		Limits: engine.Limits{PromptsPerMinute: 1e9},
		Keep:   permissions.Keep{Requests: 40 * time.Minute, Payloads: 40 * time.Minute, Audit: 40 * time.Minute},
	}
}

// quorums maps the tools to how many people have to allow their calls.
var quorums = map[int]string{1: "one", 2: "two", 3: "three"}

// asked are the people asked: one more than have to allow it, if there are that many.
func asked(quorum int) []string { return people[:min(quorum+1, 3)] }

// tag is the right to read a path.
func tag(path string) permissions.Tag {
	t, err := permissions.ParseTag("@read:" + path)
	if err != nil {
		panic(err)
	}
	return t
}
