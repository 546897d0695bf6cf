package runtime

import (
	"context"
	"slices"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

var _ agents.Resident = (*agent)(nil)

// Binding is [agents.Resident].
func (a *agent) Binding() permissions.Binding {
	return permissions.Binding{Agent: a.Name, Person: a.Person, Via: a.Via}
}

// Run is [agents.Resident]: what the agent does is done by the runtime, which is given its voice here.
func (a *agent) Run(ctx context.Context, s agents.Speaker) error {
	a.once.Do(func() {
		a.speaker = s
		close(a.ready)
	})
	if current, ok, err := a.runtime.store.CurrentSession(ctx, a.Name); err == nil && ok && current.Person == a.Person {
		a.shows(current.Status)
		a.runtime.kick(current.ID) // it may have something to say
	}
	<-ctx.Done()
	return ctx.Err()
}

// Hear is [agents.Resident].
func (a *agent) Hear(ctx context.Context, m permissions.Message) error {
	s, err := a.runtime.session(ctx, a)
	if err != nil {
		return err
	}
	err = a.runtime.store.Post(ctx, agents.Post{Session: s.ID, Key: m.Key, From: m.From, Text: m.Text, At: m.CreatedAt})
	if err != nil {
		return err
	}
	a.runtime.kick(s.ID)
	return nil
}

// Activity is [agents.Resident].
func (a *agent) Activity() permissions.Activity { return *a.activity.Load() }

// shows notes what the agent does.
func (a *agent) shows(now permissions.Activity) { a.activity.Store(&now) }

// voice is what the agent speaks through, once that is there; nil of one that has no person to talk to.
func (a *agent) voice(ctx context.Context) (agents.Speaker, error) {
	if a.Via == "" {
		return nil, nil
	}
	select {
	case <-a.ready:
		return a.speaker, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// busy shows the person that the agent works, or no longer, if there is somebody to show it to.
func (a *agent) busy(on bool) {
	select {
	case <-a.ready:
		a.speaker.Working(on)
	default:
	}
}

// order is what a person told a session to do at once.
type order struct {
	most permissions.Order // of what was told
	done chan struct{}     // closed once that was obeyed
}

// orders are what a session may be told, from what ends least to what ends most.
var orders = []permissions.Order{permissions.OrderStop, permissions.OrderQuit, permissions.OrderNew}

// Obey is [agents.Resident]. It returns once the order was obeyed.
func (a *agent) Obey(ctx context.Context, o permissions.Order) error {
	s, ok, err := a.runtime.store.CurrentSession(ctx, a.Name)
	if err != nil {
		return err
	}
	if !ok {
		if o == permissions.OrderNew {
			_, err = a.runtime.session(ctx, a)
		}
		return err
	}
	select {
	case <-a.runtime.command(s.ID, o):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// command has a session obey, whatever it does, and returns what is closed then.
func (rt *Runtime) command(id permissions.ID, o permissions.Order) <-chan struct{} {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	given := rt.orders[id]
	if given == nil {
		given = &order{most: o, done: make(chan struct{})}
		rt.orders[id] = given
	}
	if slices.Index(orders, o) > slices.Index(orders, given.most) {
		given.most = o
	}
	if w := rt.working[id]; w != nil && w.cancel != nil {
		w.cancel()
	}
	rt.kicked[id] = true
	rt.rung.Notify()
	return given.done
}

// ordered is what a session was told by now, nil for nothing.
func (rt *Runtime) ordered(id permissions.ID) (o *order, told permissions.Order) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if o = rt.orders[id]; o != nil {
		told = o.most
	}
	return o, told
}

// obeyed strikes out an order, if there is one and no more was told meanwhile.
func (rt *Runtime) obeyed(id permissions.ID, o *order, told permissions.Order) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if o == nil || o.most != told {
		return
	}
	delete(rt.orders, id)
	close(o.done)
}

// rest waits before something is tried again, and not long once there is an order.
func (rt *Runtime) rest(ctx context.Context, w *worker, d time.Duration) {
	brief, done := rt.breakable(ctx, w)
	defer done()
	if brief.Err() == nil {
		_ = permissions.Pause(brief, d) // whoever calls looks at ctx
	} else {
		_ = permissions.Pause(ctx, min(d, again))
	}
}

// breakable is ctx, which ends with an order as well, for what takes long.
func (rt *Runtime) breakable(ctx context.Context, w *worker) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	rt.mu.Lock()
	defer rt.mu.Unlock()
	w.cancel = cancel
	if rt.orders[w.session] != nil {
		cancel()
	}
	return ctx, func() {
		rt.mu.Lock()
		w.cancel = nil
		rt.mu.Unlock()
		cancel()
	}
}

// stopTime bounds what is done about an order at the desk.
const stopTime = 5 * time.Second
