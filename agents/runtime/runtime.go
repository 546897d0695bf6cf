// Package runtime runs agents of our own. One agent's session is one state machine ([Next]), which is pure; a driver
// stores every step before the next begins, and does what the step says: it asks the model, puts calls to people, runs
// tools.
//
//	PLAN → VALIDATE_CALLS → (WAIT_ACK) → EXECUTE → OBSERVE → COMMIT → PLAN … → TERMINATE
//
// Whoever waits for a person is a row: the worker ends, and an answer begins another one, after a restart as well. What
// was begun and not ended when the daemon was killed is told to the model as such, and never run twice.
//
// step.go and state.go are the machine; runtime.go and worker.go the driver, resident.go its person's side; plan.go,
// validate.go, wait.go and execute.go its states; asking.go the tools that ask people, and answer.go what these are told;
// children.go, schedule.go and events.go what agents do besides their person's chat.
package runtime

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/permissions"
)

// Agent is an agent of our own, as the configuration has it.
type Agent struct {
	Name         string
	Person       string // whose it is
	Via          string // where the two talk; empty: it is a background agent
	Parent       string // of a background agent: whose person it asks, and who is told
	Model        models.Model
	Instructions string
	Tools        []tools.Tool
	Servers      []Server        // whose tools it has besides
	Place        tools.Workspace // its Tags are what the configuration gives
	Terminates   bool            // a denial ends the run
	Schedule     *Schedule       // nil: it runs when it is told to
	Prompt       string          // what it is told when it runs by its schedule
}

// Server has tools that may come and go. It is safe for concurrent use.
type Server interface {
	// Tools are those that it has just now. None has a name of ours.
	Tools(ctx context.Context) ([]tools.Tool, error)
}

// Store keeps sessions, with their transcripts.
type Store interface {
	agents.SessionStore
	AgentSession(ctx context.Context, id permissions.ID) (permissions.AgentSession, error)
	// OpenSessions lists those that have not ended, by id.
	OpenSessions(ctx context.Context, after permissions.ID, limit int) ([]permissions.AgentSession, error)
	// SessionWaiting is the one that waits for a request.
	SessionWaiting(ctx context.Context, request permissions.ID) (permissions.AgentSession, bool, error)
	// Turns is the transcript, without what was dropped.
	Turns(ctx context.Context, session permissions.ID) ([]agents.Turn, error)
	// Timetable is when a scheduled agent runs next; ok is false when that was never set.
	Timetable(ctx context.Context, agent string) (t agents.Timetable, ok bool, err error)
	SetTimetable(ctx context.Context, t agents.Timetable) error
}

// Options are the parts of a runtime. All are required.
type Options struct {
	Agents []Agent
	Others []string // names of agents that another part runs: their sessions are left alone
	Store  Store
	Now    func() time.Time
	Log    *slog.Logger
}

// Runtime runs agents of our own. It is safe for concurrent use.
type Runtime struct {
	store  Store
	desk   agents.Approvals // set by Bind, before anything else
	now    func() time.Time
	log    *slog.Logger
	own    map[string]*agent  // by name
	order  []*agent           // as configured
	others map[string]bool    // agents of another part
	rung   permissions.Signal // there are sessions to be worked on
	places chan struct{}      // bounds how many work at once

	mu      sync.Mutex
	kicked  map[permissions.ID]bool    // to be worked on
	working map[permissions.ID]*worker // being worked on
	orders  map[permissions.ID]*order  // to be obeyed
}

// agent is an Agent at work.
type agent struct {
	Agent
	runtime  *Runtime
	beginner sync.Mutex     // one session is begun at a time
	speaker  agents.Speaker // set before ready is closed
	ready    chan struct{}
	once     sync.Once
	due      permissions.Signal // what its next run needs is settled
	activity atomic.Pointer[permissions.Activity]
	output   *rate.Limiter // bytes of what its calls wrote that are stored
}

// outputPerHour bounds the bytes that the calls of one agent leave in the store in an hour. A call leaves 2 MiB at most, or 8
// where another's MCP server ran it.
const outputPerHour = 64 << 20

func newAgent(rt *Runtime, a Agent) *agent {
	at := &agent{
		Agent: a, runtime: rt, ready: make(chan struct{}), due: permissions.NewSignal(),
		output: rate.NewLimiter(rate.Every(time.Hour/outputPerHour), outputPerHour),
	}
	at.shows(permissions.Idle)
	return at
}

// mostWorkers is how many sessions are worked on at once. Those that wait for people are not.
const mostWorkers = 64

// New makes a runtime. It starts nothing: call [Runtime.Bind], then [Runtime.Run].
func New(o Options) *Runtime {
	rt := &Runtime{
		store: o.Store, now: o.Now, log: o.Log, own: map[string]*agent{}, others: map[string]bool{},
		rung: permissions.NewSignal(), places: make(chan struct{}, mostWorkers),
		kicked: map[permissions.ID]bool{}, working: map[permissions.ID]*worker{}, orders: map[permissions.ID]*order{},
	}
	for _, name := range o.Others {
		rt.others[name] = true
	}
	for _, a := range o.Agents {
		at := newAgent(rt, a)
		rt.own[a.Name] = at
		rt.order = append(rt.order, at)
	}
	return rt
}

// Bind says where agents ask. It is called once, before anything runs.
func (rt *Runtime) Bind(d agents.Approvals) { rt.desk = d }

// Residents are the agents that people talk to.
func (rt *Runtime) Residents() (all []agents.Resident) {
	for _, a := range rt.order {
		if a.Via != "" {
			all = append(all, a)
		}
	}
	return all
}

// Run works until ctx ends. What was going on when the daemon ended goes on first.
func (rt *Runtime) Run(ctx context.Context) error {
	outer := ctx
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return rt.resume(ctx) })
	for _, a := range rt.order {
		if a.Schedule != nil {
			group.Go(func() error { return rt.keepTimetable(ctx, a) })
		}
	}
	group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-rt.rung:
			}
			for _, w := range rt.take() {
				group.Go(func() error {
					rt.work(ctx, w)
					return nil
				})
			}
		}
	})
	if err := group.Wait(); outer.Err() == nil {
		return err
	}
	return nil
}

// resume has every session that has not ended looked at: what it waits for may have been settled meanwhile.
func (rt *Runtime) resume(ctx context.Context) error {
	for after := permissions.ID(""); ; {
		list, err := rt.store.OpenSessions(ctx, after, page)
		if err != nil {
			rt.log.Error("sessions cannot be listed just now", "err", err)
			if err := permissions.Pause(ctx, again); err != nil {
				return err
			}
			continue
		}
		for _, s := range list {
			after = s.ID
			rt.kick(s.ID)
		}
		if len(list) < page {
			return nil
		}
	}
}

const (
	page = 500
	// again is how long after a failure of the store the same is tried once more.
	again = time.Second
)

// kick has a session worked on. It does not wait for anything.
func (rt *Runtime) kick(id permissions.ID) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.kicked[id] = true
	rt.rung.Notify()
}

// worker works on one session. There is at most one for each.
type worker struct {
	session permissions.ID
	placed  bool               // it has one of the runtime's places
	cancel  context.CancelFunc // of what it does just now; nil while it does nothing that can be broken off
}

// take takes what is to be worked on and nobody works on, as far as there are places. An order needs none: whatever the
// others do, it is obeyed.
func (rt *Runtime) take() (all []*worker) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for id := range rt.kicked {
		if rt.working[id] != nil {
			continue
		}
		w := &worker{session: id}
		select {
		case rt.places <- struct{}{}:
			w.placed = true
		default:
			if len(rt.orders) == 0 {
				return all
			}
			if rt.orders[id] == nil {
				continue
			}
		}
		rt.working[id] = w
		delete(rt.kicked, id)
		all = append(all, w)
	}
	return all
}

// leave ends a worker.
func (rt *Runtime) leave(w *worker) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	delete(rt.working, w.session)
	if w.placed {
		<-rt.places
	}
	if len(rt.kicked) > 0 { // it, or another that found no place
		rt.rung.Notify()
	}
}

// agent finds whose session it is: an agent of the configuration, or the child of one, which is as its parent is but for
// what it holds.
func (rt *Runtime) agent(s permissions.AgentSession) (*agent, error) {
	base, _, child := strings.Cut(s.Agent, childMark)
	parent, ok := rt.own[base]
	switch {
	case !ok:
		return nil, fmt.Errorf("agent %q is not in the configuration any more", s.Agent)
	case parent.Person != s.Person:
		return nil, fmt.Errorf("agent %q is not %s's any more", s.Agent, s.Person)
	case !child:
		return parent, nil
	}
	a := newAgent(rt, parent.Agent)
	a.Name, a.Via, a.Schedule, a.Place.Tags = s.Agent, "", nil, nil
	a.Parent = s.Agent[:strings.LastIndex(s.Agent, childMark)]
	a.Place.Agent = s.Agent
	return a, nil
}

// foreground is the agent whose person is asked for a background agent, and which is told.
func (rt *Runtime) foreground(a *agent) string {
	name := a.Name
	for range len(rt.own) + strings.Count(name, childMark) {
		if own, ok := rt.own[name]; ok {
			if own.Via != "" {
				return own.Name
			}
			name = own.Parent
			continue
		}
		base, _, _ := strings.Cut(name, childMark)
		name = base
	}
	return ""
}

// session is the current session of an agent, begun where there is none.
func (rt *Runtime) session(ctx context.Context, a *agent) (permissions.AgentSession, error) {
	a.beginner.Lock()
	defer a.beginner.Unlock()
	s, ok, err := rt.store.CurrentSession(ctx, a.Name)
	if ok && s.Person == a.Person || err != nil {
		return s, err
	}
	return rt.begin(ctx, a, permissions.AgentSession{}, Run{})
}

// begin begins a session.
func (rt *Runtime) begin(
	ctx context.Context, a *agent, s permissions.AgentSession, run Run,
) (permissions.AgentSession, error) {
	now := rt.stamp()
	s.ID = cmp.Or(s.ID, permissions.NewID(now))
	s.Agent, s.Person, s.Status, s.Model = a.Name, a.Person, permissions.Idle, a.Model.Name()
	s.Version, s.CreatedAt, s.ChangedAt = 1, now, now
	var err error
	if s.Step, err = agents.Encode(run); err != nil {
		return s, err
	}
	return s, rt.store.Commit(ctx, agents.Commit{
		Session: s, Records: []permissions.Record{agents.StatusOf(s)},
		Artifacts: []agents.Artifact{agents.ArtifactOf(agents.ArtifactSession, map[string]any{
			"session_id": s.ID, "agent": s.Agent, "model": s.Model, "workspace": a.where(), "timestamp": now,
		})},
	})
}

func (rt *Runtime) stamp() time.Time { return rt.now().UTC().Truncate(time.Microsecond) }

// all are the tools that the agent has just now, besides those of the runtime. A server that does not answer has none.
func (a *agent) all(ctx context.Context) []tools.Tool {
	list := slices.Clone(a.Tools)
	for _, s := range a.Servers {
		more, err := s.Tools(ctx)
		if err != nil && ctx.Err() == nil {
			a.runtime.log.Warn("the tools of a server cannot be listed just now", "agent", a.Name, "err", err)
		}
		list = append(list, more...)
	}
	return list
}

// tool is the tool of that name.
func (a *agent) tool(ctx context.Context, name string) (tools.Tool, bool) {
	find := func(list []tools.Tool) (tools.Tool, bool) {
		at := slices.IndexFunc(list, func(t tools.Tool) bool { return t.Spec().Name == name })
		if at < 0 {
			return nil, false
		}
		return list[at], true
	}
	if t, ok := find(a.Tools); ok { // no server is asked for what is our own
		return t, true
	}
	return find(a.all(ctx))
}
