package engine

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

const (
	retryFirst = 500 * time.Millisecond
	retryMost  = 30 * time.Second
)

// courier brings the copies of one connector up to date: it shows what was never shown, and edits what is older than
// its request. It works from the rows alone, so changes coalesce by themselves and a crash loses nothing.
type courier struct {
	engine    *Engine
	connector connectors.Connector
	log       *slog.Logger
	wake      chan struct{}

	mu    sync.Mutex
	due   map[permissions.ID]time.Time     // when to look; the zero time is now
	tries map[permissions.ID]time.Duration // the last delay of those that failed for now
}

func newCourier(e *Engine, c connectors.Connector) *courier {
	return &courier{
		engine: e, connector: c, log: e.log.With("connector", c.Name()), wake: make(chan struct{}, 1),
		due: map[permissions.ID]time.Time{}, tries: map[permissions.ID]time.Duration{},
	}
}

// kick says that a request may have changed.
func (c *courier) kick(id permissions.ID) {
	c.mu.Lock()
	c.due[id] = time.Time{}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run works until ctx ends.
func (c *courier) run(ctx context.Context) error {
	for ctx.Err() == nil {
		id, wait := c.next()
		if wait <= 0 {
			c.finish(ctx, id, c.deliver(ctx, id))
			continue
		}
		select {
		case <-ctx.Done():
		case <-c.wake:
		case <-time.After(wait):
		}
	}
	return nil
}

// idle is how long a courier without work sleeps, unless it is kicked.
const idle = time.Hour

// next takes the request whose turn it is, oldest id first, or says how long to wait.
func (c *courier) next() (id permissions.ID, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.engine.now()
	wait = idle
	for candidate, at := range c.due {
		if left := max(at.Sub(now), 0); left < wait || (left == wait && candidate < id) {
			id, wait = candidate, left
		}
	}
	if wait == 0 {
		delete(c.due, id)
	}
	return id, wait
}

// finish forgets the request, or plans the next try.
func (c *courier) finish(ctx context.Context, id permissions.ID, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil || ctx.Err() != nil {
		delete(c.tries, id)
		return
	}
	delay := min(max(2*c.tries[id], retryFirst), retryMost)
	c.tries[id] = delay
	if _, again := c.due[id]; !again {
		c.due[id] = c.engine.now().Add(delay)
	}
	level := slog.LevelDebug
	if delay > retryFirst { // the first failure is often mended by the second try
		level = slog.LevelWarn
	}
	c.log.Log(ctx, level, "a copy is not up to date; it is tried again", "request", id, "delay", delay, "err", err)
}

// deliver brings this connector's copies of one request up to date. An error means that it should be tried again.
func (c *courier) deliver(ctx context.Context, id permissions.ID) error {
	e := c.engine
	r, err := e.store.Read(ctx, id)
	if err != nil {
		return err
	}
	copies, err := e.store.Copies(ctx, id)
	if err != nil {
		return err
	}
	var problems []error
	for _, cp := range copies {
		if cp.Connector != c.connector.Name() || cp.Failed != "" || cp.Shown >= r.Revision {
			continue
		}
		problems = append(problems, c.show(ctx, r, cp))
	}
	return errors.Join(problems...)
}

// show sends or edits one copy.
func (c *courier) show(ctx context.Context, r permissions.Request, cp permissions.Copy) error {
	e := c.engine
	person, known := e.settings.Load().person(cp.Person)
	if !known {
		return c.fail(ctx, r, cp, cp.Person+" is nobody here")
	}
	prompt := connectors.Prompt{
		Request: r, To: person, Code: e.store.Coder().Encode(r.Number), Waiting: e.registry.Waiting(r.ID),
	}
	err := error(nil)
	switch editor, edits := c.connector.(connectors.Editor); {
	case cp.Ref == "" && r.State != permissions.Pending:
		return c.fail(ctx, r, cp, "settled before it was shown")
	case cp.Ref == "":
		cp.Ref, err = c.connector.Send(ctx, prompt)
	case edits:
		err = editor.Edit(ctx, cp.Ref, prompt)
	case r.State != permissions.Pending: // a channel that cannot edit is told the end in a message of its own
		_, err = c.connector.Send(ctx, prompt)
	}
	if errors.Is(err, connectors.ErrGone) || (err != nil && cp.SentAt.IsZero() && e.tooLate(r)) {
		return c.fail(ctx, r, cp, err.Error())
	}
	if err != nil {
		return err
	}
	cp.Shown = r.Revision
	if cp.SentAt.IsZero() {
		cp.SentAt = e.stamp()
	}
	return e.store.Shown(ctx, cp)
}

// tooLate tells whether a channel that is away has been tried long enough.
func (e *Engine) tooLate(r permissions.Request) bool {
	return !e.now().Before(r.CreatedAt.Add(e.settings.Load().Approvals.DeliverWithin))
}

// fail gives a copy up for good. When fewer people than the quorum can be reached by what is left, the request is
// undeliverable; what was shown once counts as reached, whatever happens to its channel.
func (c *courier) fail(ctx context.Context, r permissions.Request, cp permissions.Copy, why string) error {
	e := c.engine
	if !cp.SentAt.IsZero() {
		cp.Shown = r.Revision // seen once; it will not be edited any more
		return e.store.Shown(ctx, cp)
	}
	cp.Failed = why
	if err := e.store.Failed(ctx, cp); err != nil {
		return err
	}
	copies, err := e.store.Copies(ctx, r.ID)
	if err != nil || r.State != permissions.Pending || reached(copies) >= r.Quorum {
		return err
	}
	var reasons []string
	for _, other := range copies {
		if other.Failed != "" {
			reasons = append(reasons, other.Failed)
		}
	}
	_, err = e.registry.Resolve(ctx, r.ID, permissions.GiveUp{Reason: strings.Join(reasons, "; "), At: e.stamp()})
	if errors.Is(err, permissions.ErrSettled) || errors.Is(err, permissions.ErrLate) {
		return nil
	}
	return err
}
