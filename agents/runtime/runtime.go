// Package runtime runs daycared's own agents. A session is a pure state machine ([Next]). A driver performs each step (asks the
// model, submits calls for approval, runs tools) and stores it before the next begins.
//
//	PLAN → VALIDATE_CALLS → (WAIT_ACK) → EXECUTE → OBSERVE → COMMIT → PLAN … → TERMINATE
//
// A session that waits for a person is only a row: its worker ends, and the answer starts another one, also after a restart. A
// call that was running when the daemon was killed is reported to the model as interrupted and never run twice.
//
// step.go holds the machine; runtime.go and worker.go the driver; resident.go the agent's chat; plan.go,
// validate.go, wait.go and execute.go the states; asking.go the tools that ask people, and their results; children.go,
// schedule.go and events.go background agents.
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
	"github.com/daycared/daycared/permissions/timing"
)

// Agent is the configuration of one agent.
type Agent struct {
	Name         string
	Person       string // the owner
	Via          string // the channel of their chat; empty: a background agent
	Parent       string // of a background agent: the agent that is told of its runs and whose person it asks
	Model        models.Model
	Instructions string
	Tools        []tools.Tool
	Servers      []Server        // MCP servers with further tools
	Place        tools.Workspace // its Tags are the configured permissions
	Terminates   bool            // a denial ends the run
	Schedule     *Schedule       // nil: it only runs when told to
	Prompt       string          // the message that starts a scheduled run
}

// Server provides tools that may change over time. It is safe for concurrent use.
type Server interface {
	// Tools returns its current tools. None has the name of a built-in tool.
	Tools(ctx context.Context) ([]tools.Tool, error)
}

// Store persists sessions and transcripts.
type Store interface {
	agents.SessionStore
	AgentSession(ctx context.Context, id permissions.ID) (permissions.AgentSession, error)
	// OpenSessions lists the sessions that have not ended, by id.
	OpenSessions(ctx context.Context, after permissions.ID, limit int) ([]permissions.AgentSession, error)
	// SessionWaiting returns the session that waits for a request.
	SessionWaiting(ctx context.Context, request permissions.ID) (permissions.AgentSession, bool, error)
	// Turns returns the transcript, without dropped turns.
	Turns(ctx context.Context, session permissions.ID) ([]agents.Turn, error)
	// Timetable returns when a scheduled agent runs next; ok is false if that was never set.
	Timetable(ctx context.Context, agent string) (t agents.Timetable, ok bool, err error)
	SetTimetable(ctx context.Context, t agents.Timetable) error
}

// Options are the parts of a runtime. All are required.
type Options struct {
	Agents []Agent
	Others []string // agents of other parts of the daemon: their sessions are left alone
	Store  Store
	Now    func() time.Time
	Log    *slog.Logger
}

// Runtime runs daycared's own agents. It is safe for concurrent use.
type Runtime struct {
	store      Store
	approvals  agents.Approvals // set by Bind, before Run
	now        func() time.Time
	log        *slog.Logger
	own        map[string]*agent // by name
	order      []*agent          // in the order of the configuration
	others     map[string]bool   // agents of other parts of the daemon
	kickSignal timing.Signal     // sessions have been kicked
	slots      chan struct{}     // limits concurrent workers

	mu      sync.Mutex
	kicked  map[permissions.ID]bool    // sessions to work on
	working map[permissions.ID]*worker // running workers
	orders  map[permissions.ID]*order  // orders not yet obeyed
}

type agent struct {
	Agent
	runtime  *Runtime
	starting sync.Mutex     // serializes the start of sessions
	speaker  agents.Speaker // set before ready is closed
	ready    chan struct{}
	once     sync.Once
	due      timing.Signal  // a request made for its next run was settled
	taken    permissions.ID // the request that this process used for the next run; only keepTimetable has it
	activity atomic.Pointer[permissions.Activity]
	output   *rate.Limiter // bytes of tool output that may be stored
}

// outputPerHour bounds what one agent's calls store. A single call stores at most 2 MiB, or 8 MiB if an MCP server ran it.
const outputPerHour = 64 << 20

func newAgent(rt *Runtime, a Agent) *agent {
	at := &agent{
		Agent: a, runtime: rt, ready: make(chan struct{}), due: timing.NewSignal(),
		output: rate.NewLimiter(rate.Every(time.Hour/outputPerHour), outputPerHour),
	}
	at.setActivity(permissions.Idle)
	return at
}

// maxWorkers is the maximum number of concurrent workers. Sessions that wait for people have none.
const maxWorkers = 64

// New returns a runtime. It starts nothing: call [Runtime.Bind], then [Runtime.Run].
func New(o Options) *Runtime {
	rt := &Runtime{
		store: o.Store, now: o.Now, log: o.Log, own: map[string]*agent{}, others: map[string]bool{},
		kickSignal: timing.NewSignal(), slots: make(chan struct{}, maxWorkers),
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

// Bind sets where agents ask. Call it once, before Run.
func (rt *Runtime) Bind(d agents.Approvals) { rt.approvals = d }

// Residents returns the agents that have a chat.
func (rt *Runtime) Residents() (all []agents.Resident) {
	for _, a := range rt.order {
		if a.Via != "" {
			all = append(all, a)
		}
	}
	return all
}

// Run works until ctx ends. It first resumes the sessions that were open when the daemon stopped.
func (rt *Runtime) Run(ctx context.Context) error {
	outer := ctx
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { // the request that a session waits for may have been settled meanwhile
		for {
			err := rt.eachOpen(ctx, "", func(s permissions.AgentSession) { rt.kick(s.ID) })
			if err == nil {
				return nil
			}
			rt.log.Error("list open sessions, retrying", "err", err)
			if err := timing.Pause(ctx, again); err != nil {
				return err
			}
		}
	})
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
			case <-rt.kickSignal:
			}
			for _, w := range rt.startWorkers() {
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

func (rt *Runtime) eachOpen(ctx context.Context, after permissions.ID, do func(permissions.AgentSession)) error {
	for {
		list, err := rt.store.OpenSessions(ctx, after, page)
		if err != nil {
			return err
		}
		for _, s := range list {
			after = s.ID
			do(s)
		}
		if len(list) < page {
			return nil
		}
	}
}

const (
	page = 500
	// again is the delay before a failed store operation is retried.
	again = time.Second
)

// kick schedules work on a session. It does not block.
func (rt *Runtime) kick(id permissions.ID) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.kicked[id] = true
	rt.kickSignal.Notify()
}

// worker works on one session; a session has at most one.
type worker struct {
	session permissions.ID
	hasSlot bool               // it occupies one of the runtime's places
	cancel  context.CancelFunc // interrupts its current work; nil while that cannot be interrupted
}

// startWorkers starts workers for kicked sessions while places are free. One with an order needs no place, so that it is obeyed.
func (rt *Runtime) startWorkers() (all []*worker) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for id := range rt.kicked {
		if rt.working[id] != nil {
			continue
		}
		w := &worker{session: id}
		select {
		case rt.slots <- struct{}{}:
			w.hasSlot = true
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

func (rt *Runtime) endWorker(w *worker) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	delete(rt.working, w.session)
	if w.hasSlot {
		<-rt.slots
	}
	if len(rt.kicked) > 0 { // this session or another needs a worker
		rt.kickSignal.Notify()
	}
}

// agent returns the agent of a session: a configured one, or a child with its parent's configuration but no permission.
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
	return a, nil
}

// foreground returns the foreground agent of a background agent: its person is asked, and it is told of requests.
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

// session returns an agent's current session, and begins one if there is none.
func (rt *Runtime) session(ctx context.Context, a *agent) (permissions.AgentSession, error) {
	a.starting.Lock()
	defer a.starting.Unlock()
	s, ok, err := rt.store.CurrentSession(ctx, a.Name)
	if ok && s.Person == a.Person || err != nil {
		return s, err
	}
	return rt.begin(ctx, a, permissions.AgentSession{}, Run{})
}

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

// all returns the agent's tools without the runtime's own. A server that fails contributes none.
func (a *agent) all(ctx context.Context) []tools.Tool {
	list := slices.Clone(a.Tools)
	for _, s := range a.Servers {
		more, err := s.Tools(ctx)
		if err != nil && ctx.Err() == nil {
			a.runtime.log.Warn("list tools of an MCP server", "agent", a.Name, "err", err)
		}
		list = append(list, more...)
	}
	return list
}

func (a *agent) tool(ctx context.Context, name string) (tools.Tool, bool) {
	find := func(list []tools.Tool) (tools.Tool, bool) {
		at := slices.IndexFunc(list, func(t tools.Tool) bool { return t.Spec().Name == name })
		if at < 0 {
			return nil, false
		}
		return list[at], true
	}
	if t, ok := find(a.Tools); ok { // no server is asked for a built-in tool
		return t, true
	}
	return find(a.all(ctx))
}
