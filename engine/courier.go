package engine

import (
	"context"
	"errors"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// courier brings the copies of one connector up to date: it shows what was never shown, and edits what is older than
// its request. It works from the rows alone, so changes coalesce by themselves and a crash loses nothing.
type courier struct {
	*queue
	engine    *Engine
	connector connectors.Connector
	tried     map[permissions.ID]time.Duration // since when something is tried to be sent in vain; run's own
}

func newCourier(e *Engine, c connectors.Connector) *courier {
	return &courier{
		engine: e, connector: c, queue: newQueue(e.clock.Elapsed, e.log.With("connector", c.Name())),
		tried: map[permissions.ID]time.Duration{},
	}
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
	err = errors.Join(problems...)
	if err == nil {
		delete(c.tried, id)
	}
	return err
}

// show sends or edits one copy.
func (c *courier) show(ctx context.Context, r permissions.Request, cp permissions.Copy) error {
	e := c.engine
	person, known := e.settings.Load().person(cp.Person)
	if !known {
		return c.fail(ctx, r, cp, cp.Person+" is nobody here")
	}
	prompt := e.prompt(r, cp, person)
	was, err := cp.Ref, error(nil)
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
	if errors.Is(err, connectors.ErrGone) || (err != nil && cp.SentAt.IsZero() && c.tooLate(cp)) {
		return c.fail(ctx, r, cp, err.Error())
	}
	if err != nil {
		return err
	}
	cp.Shown = r.Revision
	if cp.SentAt.IsZero() {
		cp.SentAt = e.stamp()
	}
	noting, done := context.WithTimeout(context.WithoutCancel(ctx), storeTime) // what was sent is noted, also while stopping
	defer done()
	return e.store.Shown(noting, cp, was)
}

// tooLate tells whether a channel that is away has been tried long enough, by either clock: the one on the wall may be
// set.
func (c *courier) tooLate(cp permissions.Copy) bool {
	within := c.engine.settings.Load().Approvals.DeliverWithin
	passed := c.elapsed()
	since, again := c.tried[cp.Request]
	if !again {
		c.tried[cp.Request] = passed
	}
	return !c.engine.clock.Now().Before(cp.Since.Add(within)) || (again && passed-since >= within)
}

// fail gives a copy up for good, and looks who else can be reached. What was shown once counts as reached, whatever
// happens to its channel.
func (c *courier) fail(ctx context.Context, r permissions.Request, cp permissions.Copy, why string) error {
	e := c.engine
	if !cp.SentAt.IsZero() {
		cp.Shown = r.Revision // seen once; it will not be edited any more
		return e.store.Shown(ctx, cp, cp.Ref)
	}
	cp.Failed = why
	if err := e.store.Failed(ctx, cp); err != nil || r.State != permissions.Pending {
		return err
	}
	e.usher.kick(r.ID)
	return nil
}

// prompt is a request as one person is to see it in one place.
func (e *Engine) prompt(r permissions.Request, cp permissions.Copy, to connectors.Person) connectors.Prompt {
	return connectors.Prompt{
		Request: r, To: to, Code: e.store.Coder().Encode(r.Number), Waiting: e.registry.Waiting(r.ID),
		Ref: cp.Ref, Button: button(r, cp), Silent: !r.HighRisk && to.Quiet.Hold(e.wall(to)),
	}
}
