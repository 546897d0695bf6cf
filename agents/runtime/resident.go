package runtime

import (
	"context"
	"slices"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

var _ agents.Resident = (*agent)(nil)

func (a *agent) Binding() permissions.Binding {
	return permissions.Binding{Agent: a.Name, Person: a.Person, Via: a.Via}
}

// Run implements [agents.Resident]. It hands the speaker to the runtime, which does the work, and waits for ctx.
func (a *agent) Run(ctx context.Context, s agents.Speaker) error {
	a.once.Do(func() {
		a.speaker = s
		close(a.ready)
	})
	if current, ok, err := a.runtime.store.CurrentSession(ctx, a.Name); err == nil && ok && current.Person == a.Person {
		a.setActivity(current.Status)
		a.runtime.kick(current.ID) // it may have messages to send
	}
	<-ctx.Done()
	return ctx.Err()
}

func (a *agent) Receive(ctx context.Context, m permissions.Message) error {
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

func (a *agent) Activity() permissions.Activity { return *a.activity.Load() }

func (a *agent) setActivity(now permissions.Activity) { a.activity.Store(&now) }

// waitForSpeaker waits for the agent's speaker; nil for an agent without a chat.
func (a *agent) waitForSpeaker(ctx context.Context) (agents.Speaker, error) {
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

// order is a person's command to a session, obeyed before anything else.
type order struct {
	most permissions.Order // the strongest one given
	done chan struct{}     // closed when it was obeyed
}

// orders are sorted from weakest to strongest.
var orders = []permissions.Order{permissions.OrderStop, permissions.OrderQuit, permissions.OrderNew}

// Obey implements [agents.Resident]. It returns when the order was obeyed.
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
	case <-a.runtime.giveOrder(s.ID, o):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// giveOrder gives a session an order, interrupts its work, and returns a channel that is closed when the order was obeyed.
func (rt *Runtime) giveOrder(id permissions.ID, o permissions.Order) <-chan struct{} {
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
	rt.kickSignal.Notify()
	return given.done
}

// currentOrder returns the session's order, if any, and its strength at this moment.
func (rt *Runtime) currentOrder(id permissions.ID) (o *order, told permissions.Order) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if o = rt.orders[id]; o != nil {
		told = o.most
	}
	return o, told
}

// removeOrder removes an order, unless a stronger one was given meanwhile.
func (rt *Runtime) removeOrder(id permissions.ID, o *order, told permissions.Order) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if o == nil || o.most != told {
		return
	}
	delete(rt.orders, id)
	close(o.done)
}

// interruptible returns a context for long work, which an order cancels as well.
func (rt *Runtime) interruptible(ctx context.Context, w *worker) (context.Context, context.CancelFunc) {
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

// stopTime bounds the requests made to obey an order.
const stopTime = 5 * time.Second
