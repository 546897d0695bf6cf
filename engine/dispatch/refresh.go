package dispatch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// ShowAgain sends the prompts of every pending request that was shown through a connector again, since answers to the
// old ones may be lost; it returns the old prompts, each with its Ref. A request that has less than five minutes left
// and whose caller still waits gets five, within its maximum.
func (d *Dispatch) ShowAgain(ctx context.Context, connector string) ([]connectors.Prompt, error) {
	return d.showPrompts(ctx, connector, func(r permissions.Request) error { return d.extend(ctx, r) }, true)
}

// Refresh edits the prompts of every pending request that was shown through a connector, as after a stop during which
// they said that the daemon was not running.
func (d *Dispatch) Refresh(ctx context.Context, connector string) ([]connectors.Prompt, error) {
	return d.showPrompts(ctx, connector, func(permissions.Request) error { return nil }, false)
}

// LivePrompts returns the prompts of a connector for at most limit of the newest pending requests.
func (d *Dispatch) LivePrompts(ctx context.Context, connector string, limit int) ([]connectors.Prompt, error) {
	copies, err := d.store.LiveCopies(ctx, connector, limit)
	if err != nil {
		return nil, shared.Broken(err)
	}
	return d.promptsOf(ctx, copies, func(permissions.Request) error { return nil })
}

func (d *Dispatch) showPrompts(
	ctx context.Context, connector string, also func(permissions.Request) error, anew bool,
) ([]connectors.Prompt, error) {
	d.redrawn.Add(1) // first: what is stored after that write is refreshed again
	copies, err := d.store.ShowAgain(ctx, connector, anew)
	if err != nil {
		return nil, shared.Broken(err)
	}
	prompts, err := d.promptsOf(ctx, copies, also)
	for _, cp := range copies {
		d.Enqueue(cp.Request)
	}
	return prompts, err
}

// promptsOf returns the messages of copies; it calls also for the request of each.
func (d *Dispatch) promptsOf(
	ctx context.Context, copies []permissions.Copy, also func(permissions.Request) error,
) ([]connectors.Prompt, error) {
	prompts := make([]connectors.Prompt, 0, len(copies))
	seen := map[string]bool{} // messages
	for _, cp := range copies {
		if cp.Group != "" && seen[cp.Ref] { // one message for several people
			continue
		}
		seen[cp.Ref] = true
		r, err := d.store.Read(ctx, cp.Request)
		switch {
		case errors.Is(err, permissions.ErrRow):
			continue // settled: nothing changes any more
		case err != nil:
			return nil, shared.Broken(err)
		}
		if err := also(r); err != nil {
			return nil, shared.Broken(err)
		}
		person, _ := d.dir.Settings().Person(cp.Person)
		prompts = append(prompts, d.Prompt(ctx, r, cp, person, nil))
	}
	return prompts, nil
}

// extension is the least time that a request with a waiting caller has left after an outage.
const extension = 5 * time.Minute

// extend gives a request more time if its caller waits.
func (d *Dispatch) extend(ctx context.Context, r permissions.Request) error {
	now := d.clock.Stamp()
	until := now.Add(extension)
	if d.countWaiting(r) == 0 || !r.Deadline.Before(until) {
		return nil
	}
	_, most := d.dir.Settings().Timeouts(r)
	if latest := r.CreatedAt.Add(most); until.After(latest) {
		until = latest
	}
	_, err := d.registry.Resolve(ctx, r.ID, permissions.Extend{Until: until, At: now})
	if errors.Is(err, permissions.ErrSettled) || errors.Is(err, permissions.ErrLate) {
		return nil
	}
	return err
}

// CatchUp enqueues every outdated copy in its dispatcher, and every request without copies in the reconciler.
func (d *Dispatch) CatchUp(ctx context.Context) error {
	if !d.IsSender() {
		return nil
	}
	for _, c := range d.dispatchers {
		err := each(func(after permissions.ID) ([]permissions.ID, error) {
			return d.store.StaleCopies(ctx, c.connector.Name(), after, shared.Page)
		}, c.Enqueue)
		if err != nil {
			return err
		}
	}
	return each(func(after permissions.ID) ([]permissions.ID, error) {
		return d.store.RequestsWithoutCopies(ctx, after, shared.Page)
	}, d.reconciler.Enqueue)
}

// each calls do for everything that a paged listing returns.
func each(list func(after permissions.ID) ([]permissions.ID, error), do func(permissions.ID)) error {
	for after := permissions.ID(""); ; {
		ids, err := list(after)
		if err != nil {
			return err
		}
		for _, id := range ids {
			do(id)
			after = id
		}
		if len(ids) < shared.Page {
			return nil
		}
	}
}

// noteAbsence updates the prompts of pending requests whose callers have not returned after a start.
func (d *Dispatch) noteAbsence(ctx context.Context) error {
	for wait := shared.ReturnGrace; timing.Pause(ctx, wait) == nil; wait = shared.RetryDelay {
		err := d.EveryPending(ctx, func(r permissions.Request) error {
			d.registry.Measure(r)
			if r.LeftAt.IsZero() && d.countWaiting(r) == 0 {
				_, _ = d.registry.NotePresence(ctx, r.ID) // it may be settled meanwhile
			}
			return nil
		})
		if err == nil {
			return nil
		}
		d.log.Error("list pending requests: retrying", "err", err)
	}
	return nil
}

// EveryPending calls do for each pending request, oldest first, until ctx ends.
func (d *Dispatch) EveryPending(ctx context.Context, do func(permissions.Request) error) error {
	for after := permissions.ID(""); ctx.Err() == nil; {
		pending, err := d.store.Pending(ctx, "", after, shared.Page)
		if err != nil {
			return err
		}
		for _, r := range pending {
			after = r.ID
			if err := do(r); err != nil {
				return err
			}
		}
		if len(pending) < shared.Page {
			return nil
		}
	}
	return ctx.Err()
}

// reroute applies the settings to the pending requests, at the start and after every change, until ctx ends. Failures
// are retried; meanwhile people who are gone are refused anyway.
func (d *Dispatch) reroute(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.changed:
		}
		unread := d.readTitles(ctx)
		moved := d.moved.Swap(false)
		err := d.EveryPending(ctx, func(r permissions.Request) error {
			d.registry.Measure(r) // also a request that an earlier process or another daemon opened
			var err error
			if moved {
				err = d.restoreCopies(ctx, r, d.canAnswer)
			}
			if moved || d.withholds(r) {
				d.reconciler.Enqueue(r.ID)
			}
			_, failed := d.Realign(ctx, r)
			return errors.Join(err, failed, d.escalateAbsence(ctx, r.ID))
		})
		d.registry.NotifyNotices()
		if err = errors.Join(err, unread); err == nil && moved {
			err = d.refreshAll(ctx)
		}
		if err != nil && ctx.Err() == nil {
			d.log.Error("re-route pending requests: retrying", "err", err)
			_ = timing.Pause(ctx, shared.RetryDelay) // the loop checks ctx
			d.RealignSoon(moved)
		}
	}
}

// escalateAbsence escalates a pending request if the absence of recipients makes that due.
func (d *Dispatch) escalateAbsence(ctx context.Context, id permissions.ID) error {
	if len(d.dir.Absences()) == 0 {
		return nil
	}
	r, err := d.store.Read(ctx, id)
	if err == nil {
		if e, due := d.dir.Settings().Absence(r, d.clock.Stamp()); due {
			_, err = d.registry.Resolve(ctx, id, e)
		}
	}
	if errors.Is(err, permissions.ErrSettled) || errors.Is(err, permissions.ErrLate) || errors.Is(err, permissions.ErrRow) {
		return nil
	}
	return err
}

// absenceEvery is how often absences that have begun or ended are looked for.
const absenceEvery = time.Second

// followAbsences has people asked again whose absence is over, and cards say who is away, until ctx ends.
func (d *Dispatch) followAbsences(ctx context.Context) error {
	was, before := d.dir.Absences(), d.dir.AbsenceChanges()
	for timing.Pause(ctx, absenceEvery) == nil {
		if err := d.dir.EndAbsences(ctx); err != nil {
			d.log.Error("note that an absence is over: retrying", "err", err)
		}
		is, changes := d.dir.Absences(), d.dir.AbsenceChanges()
		if slices.Equal(is, was) && changes == before {
			continue
		}
		if err := errors.Join(d.refreshAll(ctx), d.CatchUp(ctx)); err != nil {
			d.log.Error("show who is away: retrying", "err", err)
			continue
		}
		was, before = is, changes
	}
	return nil
}

// canAnswer reports whether the person of a copy can answer through its channel, as far as it knows.
func (d *Dispatch) canAnswer(cp permissions.Copy) bool {
	p, known := d.dir.Settings().Person(cp.Person)
	c, on := d.dir.Channel(cp.Connector)
	return known && on && cp.Group == "" && checkReachable(c, p) == nil
}

// refreshAll refreshes the prompts of all pending requests, which finds those at a former account.
func (d *Dispatch) refreshAll(ctx context.Context) error {
	for _, c := range d.dispatchers {
		if _, err := d.Refresh(ctx, c.connector.Name()); err != nil {
			return err
		}
	}
	return nil
}

// RealignSoon makes reroute examine all pending requests; moved: see [directory.Directory.Configure].
func (d *Dispatch) RealignSoon(moved bool) {
	if moved {
		d.moved.Store(true)
	}
	d.changed.Notify()
}

// Realign applies the settings to a pending request, and reports whether it is another now. One that they forbid is denied.
func (d *Dispatch) Realign(ctx context.Context, r permissions.Request) (changed bool, err error) {
	s, now := d.dir.Settings(), d.clock.Stamp()
	asks := s.CurrentRecipients(r, now)
	next := permissions.Transition(asks)
	if v := s.PolicyOf(r.Caller).Evaluate(r, nil, now); v.Forbidden != "" {
		next = permissions.Forbid{Rule: cmp.Or(v.Ruling.Name(), "tools.forbidden"), At: now}
	} else if slices.Equal(asks.Asked, r.Asked) && slices.Equal(asks.EscalateTo, r.EscalateTo) && len(asks.Moved) == 0 {
		return false, nil
	}
	c, err := d.registry.Resolve(ctx, r.ID, next)
	switch {
	case errors.Is(err, permissions.ErrSettled): // meanwhile
		return true, nil
	case errors.Is(err, permissions.ErrLate), errors.Is(err, permissions.ErrRow):
		return false, nil
	}
	return c.After.Revision > r.Revision, err
}
