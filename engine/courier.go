package engine

import (
	"context"
	"errors"
	"slices"
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
	tried     map[spot]time.Duration // since when a copy that was never shown is being sent; run's own
	rests     map[spot]rest          // copies that the channel wants to be left alone; run's own
}

// spot is where a request is shown: to a person, or in a place.
type spot struct {
	request       permissions.ID
	person, place string
}

// spotOf is where a copy is shown: those in one place are one message.
func spotOf(cp permissions.Copy) spot {
	if cp.Place != "" {
		cp.Person = ""
	}
	return spot{cp.Request, cp.Person, cp.Place}
}

// rest is until when, by the time that passes, a copy is not tried, and why.
type rest struct {
	until time.Duration
	why   error
}

func newCourier(e *Engine, c connectors.Connector) *courier {
	return &courier{
		engine: e, connector: c, queue: newQueue(e.clock.Elapsed, e.log.With("connector", c.Name())),
		tried: map[spot]time.Duration{}, rests: map[spot]rest{},
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
	u := &unfinished{}
	done := map[string]bool{} // places
	for _, cp := range copies {
		if cp.Connector != c.connector.Name() || cp.Failed != "" || cp.Shown >= r.Revision || done[cp.Place] {
			continue
		}
		if cp.Place != "" {
			done[cp.Place] = true
			cp = eldest(cp, copies)
		}
		after, err := c.early(r, cp), errEarly
		if after == 0 {
			after, err = c.bring(ctx, r, cp)
		}
		problems = append(problems, err)
		switch {
		case after > 0 && (u.soonest == 0 || after < u.soonest):
			u.soonest = after
		case err != nil && after == 0:
			u.others = true
		}
	}
	err = errors.Join(problems...)
	if u.soonest > 0 {
		u.error = err
		return u
	}
	return err
}

// errEarly is why a copy is not up to date that is held back.
var errEarly = errors.New("kept from a phone for now")

// early is how long a copy is still held back (see hold). One that lies further ahead than its person wants was planned
// before the clock was set back, and is shown.
func (c *courier) early(r permissions.Request, cp permissions.Copy) time.Duration {
	ahead := cp.Since.Sub(c.engine.clock.Now())
	person, _ := c.engine.settings.Load().person(cp.Person)
	if r.State != permissions.Pending || !cp.SentAt.IsZero() || ahead <= 0 || ahead > hold(c.connector, person, r) {
		return 0
	}
	return max(ahead, retryLeast)
}

// bring shows one copy, unless its channel wants to be left alone: the error is why it is not up to date, and after is when
// to look at it again, 0 if nobody said so. One that was never shown does not rest for longer than it is tried.
func (c *courier) bring(ctx context.Context, r permissions.Request, cp permissions.Copy) (after time.Duration, err error) {
	at := spotOf(cp)
	resting, rests := c.rests[at]
	if rests = rests && c.elapsed() < resting.until; !rests {
		delete(c.rests, at)
		if _, tried := c.tried[at]; !tried && cp.SentAt.IsZero() {
			c.tried[at] = c.elapsed()
		}
		if err = c.show(ctx, r, cp); err == nil {
			delete(c.tried, at)
		}
		wanted := connectors.RetryAfter(err)
		if wanted == 0 {
			return 0, err
		}
		resting = rest{c.elapsed() + wanted, err}
		c.rests[at] = resting
	}
	after = resting.until - c.elapsed()
	if cp.SentAt.IsZero() {
		if rests && c.tooLate(cp) {
			delete(c.rests, at)
			delete(c.tried, at)
			return 0, c.fail(ctx, r, cp, resting.why.Error())
		}
		after = min(after, c.patience(cp))
	}
	return max(after, retryLeast), resting.why
}

// patience is for how long a copy that was never shown is still tried, by the clock that has less of it.
func (c *courier) patience(cp permissions.Copy) time.Duration {
	within := c.engine.settings.Load().Approvals.DeliverWithin
	byWall, passing := cp.Since.Add(within).Sub(c.engine.clock.Now()), within-(c.elapsed()-c.tried[spotOf(cp)])
	return min(byWall, passing)
}

// eldest is the copy in the place of cp that was shown, if one was: they are one message, which somebody may have joined.
func eldest(cp permissions.Copy, copies []permissions.Copy) permissions.Copy {
	for _, other := range copies {
		if other.Connector == cp.Connector && other.Place == cp.Place && !other.SentAt.IsZero() {
			return other
		}
	}
	return cp
}

// show sends or edits one copy.
func (c *courier) show(ctx context.Context, r permissions.Request, cp permissions.Copy) error {
	e := c.engine
	person, known := e.settings.Load().person(cp.Person)
	if !known && cp.Place == "" && (r.State == permissions.Pending || !cp.SentAt.IsZero()) {
		return c.orphaned(ctx, r, cp)
	}
	if why := suspended(person, c.connector.Name()); why != nil && cp.Place == "" {
		return e.abandon(ctx, []permissions.Copy{cp}, why.Error())
	}
	prompt := e.prompt(r, cp, person)
	namer, names := c.connector.(connectors.Namer)
	if names && cp.Ref == "" && r.State == permissions.Pending {
		cp.Ref = namer.NameFor(prompt)
		if err := e.store.Named(ctx, cp); err != nil {
			return err
		}
		prompt.Ref = cp.Ref
	}
	was, err := cp.Ref, error(nil)
	began := e.stamp() // a quick answer is dated before the channel says that the card was sent, never before this
	switch editor, edits := c.connector.(connectors.Editor); {
	case cp.Ref == "" && r.State != permissions.Pending:
		return c.fail(ctx, r, cp, "settled before it was shown")
	case cp.Ref == "", names && cp.SentAt.IsZero() && r.State == permissions.Pending:
		cp.Ref, err = c.connector.Send(ctx, prompt)
	case edits:
		if err = editor.Edit(ctx, cp.Ref, prompt); errors.Is(err, connectors.ErrAnew) {
			prompt.Ref = ""
			cp.Ref, err = c.connector.Send(ctx, prompt)
		}
	case r.State != permissions.Pending: // a channel that cannot edit is told the end in a message of its own
		_, err = c.connector.Send(ctx, prompt)
	}
	if renamed := (*connectors.Renamed)(nil); errors.As(err, &renamed) {
		return errors.Join(err, e.Rename(ctx, prompt.Place, renamed.Now)) // and is tried again by that name
	}
	if errors.Is(err, connectors.ErrGone) || (err != nil && cp.SentAt.IsZero() && c.tooLate(cp)) {
		return c.fail(ctx, r, cp, err.Error())
	}
	if err != nil {
		return err
	}
	cp.Shown = r.Revision
	if cp.SentAt.IsZero() {
		cp.SentAt = began
	}
	noting, done := context.WithTimeout(context.WithoutCancel(ctx), storeTime) // what was sent is noted, also while stopping
	defer done()
	if err := e.store.Shown(noting, cp, was); err != nil {
		return err
	}
	return e.withhold(noting, e.settings.Load(), []permissions.Copy{cp}) // suspended while it was sent: given up before, perhaps
}

// orphaned leaves the copy of somebody who is nobody here as it is: they are soon asked no longer, and when they are put
// back, even now, it is theirs again.
func (c *courier) orphaned(ctx context.Context, r permissions.Request, cp permissions.Copy) error {
	why := cp.Person + " is nobody here"
	switch {
	case !cp.SentAt.IsZero():
		return c.fail(ctx, r, cp, why)
	case slices.Contains(r.Asked, cp.Person):
		return &connectors.Gone{Why: why}
	}
	return nil
}

// tooLate tells whether a channel that is away has been tried long enough, by either clock: the one on the wall may be
// set.
func (c *courier) tooLate(cp permissions.Copy) bool { return c.patience(cp) <= 0 }

// fail gives a copy up for good, and looks who else can be reached. What was shown once counts as reached, whatever
// happens to its channel; but those who were to answer in a place where nobody can any more are asked by themselves.
func (c *courier) fail(ctx context.Context, r permissions.Request, cp permissions.Copy, why string) error {
	e := c.engine
	if !cp.SentAt.IsZero() && (cp.Place == "" || r.State != permissions.Pending) {
		cp.Shown = r.Revision // seen once; it will not be edited any more
		return e.store.Shown(ctx, cp, cp.Ref)
	}
	cp.Failed = why
	err := e.store.Failed(ctx, cp)
	if r.State == permissions.Pending {
		e.usher.kick(r.ID) // also where the store failed: it may have noted it
	}
	return err
}

// prompt is a request as one person is to see it in one place, or as all do who are asked there.
func (e *Engine) prompt(r permissions.Request, cp permissions.Copy, to connectors.Person) connectors.Prompt {
	p := connectors.Prompt{
		Request: r, To: to, Code: e.store.Coder().Encode(r.Number), Waiting: e.waits(r),
		Ref: cp.Ref, SentAt: cp.SentAt, Button: button(r, cp), Silent: !r.HighRisk && e.quiet(to),
	}
	if cp.Place != "" {
		p.To, p.Silent = e.audience(r)
		p.Place, p.Silent = e.placeNow(cp.Place), p.Silent && !r.HighRisk
	}
	return p
}
