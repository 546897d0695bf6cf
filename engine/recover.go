package engine

import (
	"context"
	"errors"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

const (
	// returnGrace is how long after a start callers may take to return before prompts show that nobody waits.
	returnGrace = time.Minute
)

// Recover repairs the rows after a stop, before any server accepts connections. Overdue requests expire first, so that
// no old button is checked against them; then the prompts of connectors that forget are prepared to be sent again. A
// restart makes nothing undeliverable. When the clock is behind the newest entry of the store, it was set back by an
// unknown amount, and earlier grants are not used.
func (e *Engine) Recover(ctx context.Context) error {
	for _, read := range []func(context.Context) error{
		e.Directory.Read, e.readMoves, e.readWaits,
	} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	by, at, err := e.store.StoppedBy(ctx)
	if err != nil {
		return err
	}
	e.noteStop(by, at)
	if by != "" { // finish an interrupted stop
		if _, err := e.registry.StopAll(ctx, by, ""); err != nil {
			e.log.Error("finish interrupted stop: some requests stay pending", "err", err)
		}
	}
	granted, err := e.store.GrantsInForce(ctx, "", e.clock.Now())
	if err != nil {
		return err
	}
	e.registry.MeasureGrants(granted)
	if err := e.RecoverEvents(ctx); err != nil {
		return err
	}
	now := e.clock.Now()
	last, err := e.store.Heartbeat(ctx, time.Time{})
	if err != nil {
		return err
	}
	if !last.IsZero() {
		e.away = max(now.Sub(last), 0)
	}
	newest, err := e.store.NewestTime(ctx)
	if err != nil {
		return err
	}
	if behind := newest.Sub(e.clock.Now()); behind > 0 {
		e.doubt = true
		e.log.Warn("clock is behind the audit; earlier grants are not used", "behind", behind)
	}
	if _, err := e.registry.Sweep(ctx); err != nil {
		return err
	}
	for _, c := range e.dispatchers {
		if _, forgets := c.connector.(connectors.EphemeralChannel); forgets {
			if err := e.store.ForgetCopies(ctx, c.connector.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// catchUp enqueues every outdated copy in its dispatcher, and every request without copies in the reconciler.
func (e *Engine) catchUp(ctx context.Context) error {
	for _, c := range e.dispatchers {
		err := each(func(after permissions.ID) ([]permissions.ID, error) {
			return e.store.StaleCopies(ctx, c.connector.Name(), after, shared.Page)
		}, c.Enqueue)
		if err != nil {
			return err
		}
	}
	return each(func(after permissions.ID) ([]permissions.ID, error) {
		return e.store.RequestsWithoutCopies(ctx, after, shared.Page)
	}, e.reconciler.Enqueue)
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
func (e *Engine) noteAbsence(ctx context.Context) error {
	for wait := returnGrace; timing.Pause(ctx, wait) == nil; wait = shared.RetryDelay {
		err := e.everyPending(ctx, func(r permissions.Request) error {
			e.registry.Measure(r)
			if r.LeftAt.IsZero() && e.waits(r) == 0 {
				_, _ = e.registry.NotePresence(ctx, r.ID) // it may be settled meanwhile
			}
			return nil
		})
		if err == nil {
			return nil
		}
		e.log.Error("list pending requests: retrying", "err", err)
	}
	return nil
}

// everyPending calls do for each pending request, oldest first, until ctx ends.
func (e *Engine) everyPending(ctx context.Context, do func(permissions.Request) error) error {
	for after := permissions.ID(""); ctx.Err() == nil; {
		pending, err := e.store.Pending(ctx, "", after, shared.Page)
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

// extension is the least time that a request with a waiting caller has left after an outage.
const extension = 5 * time.Minute

// ShowAgain sends the prompts of every pending request that was shown through a connector again, since answers to the
// old ones may be lost; it returns the old prompts, each with its Ref. A request that has less than five minutes left
// and whose caller still waits gets five, within its maximum.
func (e *Engine) ShowAgain(ctx context.Context, connector string) ([]connectors.Prompt, error) {
	return e.showPrompts(ctx, connector, func(r permissions.Request) error { return e.extend(ctx, r) }, true)
}

// Refresh edits the prompts of every pending request that was shown through a connector, as after a stop during which
// they said that the daemon was not running.
func (e *Engine) Refresh(ctx context.Context, connector string) ([]connectors.Prompt, error) {
	return e.showPrompts(ctx, connector, func(permissions.Request) error { return nil }, false)
}

// LivePrompts returns the prompts of a connector for at most limit of the newest pending requests.
func (e *Engine) LivePrompts(ctx context.Context, connector string, limit int) ([]connectors.Prompt, error) {
	copies, err := e.store.LiveCopies(ctx, connector, limit)
	if err != nil {
		return nil, shared.Broken(err)
	}
	return e.promptsOf(ctx, copies, func(permissions.Request) error { return nil })
}

func (e *Engine) showPrompts(
	ctx context.Context, connector string, also func(permissions.Request) error, anew bool,
) ([]connectors.Prompt, error) {
	e.redrawn.Add(1) // first: what is stored after that write is refreshed again
	copies, err := e.store.ShowAgain(ctx, connector, anew)
	if err != nil {
		return nil, shared.Broken(err)
	}
	prompts, err := e.promptsOf(ctx, copies, also)
	for _, cp := range copies {
		e.enqueue(cp.Request)
	}
	return prompts, err
}

// promptsOf returns the messages of copies; it calls also for the request of each.
func (e *Engine) promptsOf(
	ctx context.Context, copies []permissions.Copy, also func(permissions.Request) error,
) ([]connectors.Prompt, error) {
	prompts := make([]connectors.Prompt, 0, len(copies))
	seen := map[string]bool{} // messages
	for _, cp := range copies {
		if cp.Group != "" && seen[cp.Ref] { // one message for several people
			continue
		}
		seen[cp.Ref] = true
		r, err := e.store.Read(ctx, cp.Request)
		switch {
		case errors.Is(err, permissions.ErrRow):
			continue // settled: nothing changes any more
		case err != nil:
			return nil, shared.Broken(err)
		}
		if err := also(r); err != nil {
			return nil, shared.Broken(err)
		}
		person, _ := e.Settings().Person(cp.Person)
		prompts = append(prompts, e.prompt(r, cp, person, nil))
	}
	return prompts, nil
}

// extend gives a request more time if its caller waits.
func (e *Engine) extend(ctx context.Context, r permissions.Request) error {
	now := e.clock.Stamp()
	until := now.Add(extension)
	if e.waits(r) == 0 || !r.Deadline.Before(until) {
		return nil
	}
	s := e.Settings()
	most := s.Approvals.MaxTimeout
	if route, found := s.RouteOf(r); found && route.Timeout > 0 {
		most = route.Timeout
	}
	if latest := r.CreatedAt.Add(most); until.After(latest) {
		until = latest
	}
	_, err := e.registry.Resolve(ctx, r.ID, permissions.Extend{Until: until, At: now})
	if errors.Is(err, permissions.ErrSettled) || errors.Is(err, permissions.ErrLate) {
		return nil
	}
	return err
}
