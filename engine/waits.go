package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// Regret withdraws a request of this caller after a delay, because a call for it was cancelled, unless the same is asked
// again or somebody waits for it by then. It survives a restart.
func (e *Engine) Regret(
	ctx context.Context, caller permissions.Caller, id permissions.ID, after time.Duration,
) (permissions.RequestView, error) {
	r, err := e.own(ctx, caller, id)
	if err != nil {
		return permissions.RequestView{}, err
	}
	if r.State == permissions.Pending {
		if err := e.regret(ctx, id, after); err != nil {
			return permissions.RequestView{}, err
		}
	}
	return e.View(ctx, r)
}

func (e *Engine) regret(ctx context.Context, id permissions.ID, after time.Duration) error {
	until := e.clock.Now().Add(after)
	if err := e.store.KeepWait(ctx, permissions.Wait{Request: id, Kind: permissions.WaitCancelled, Until: until}); err != nil {
		return shared.Broken(err)
	}
	e.mu.Lock()
	e.regrets[id] = until
	e.mu.Unlock()
	e.regretted.Notify()
	return nil
}

// Hold keeps the place of a client that shows a dialog of its own about a request of this caller, or releases it: until
// the client returns, prompts do not say that nobody waits. It survives a restart.
func (e *Engine) Hold(ctx context.Context, caller permissions.Caller, id permissions.ID, held bool) error {
	r, err := e.own(ctx, caller, id)
	if err != nil {
		return err
	}
	w := permissions.Wait{Request: id, Kind: permissions.WaitDialog}
	e.registry.Hold(id, held && r.State == permissions.Pending)
	if !held {
		return shared.Broken(e.store.DropWait(ctx, w))
	}
	if err := e.store.KeepWait(ctx, w); err != nil {
		return shared.Broken(err)
	}
	if r, err = e.store.Read(ctx, id); err != nil || r.State != permissions.Pending { // settled at this very moment
		e.registry.Hold(id, false)
	}
	return shared.Broken(err)
}

// KeepProcess records which process of this machine waits for a request of this caller, or deletes the record if the PID
// is 0.
func (e *Engine) KeepProcess(ctx context.Context, caller permissions.Caller, w permissions.Wait) error {
	if _, err := e.own(ctx, caller, w.Request); err != nil {
		return err
	}
	w.Kind = permissions.WaitProcess
	if w.PID == 0 {
		return shared.Broken(e.store.DropWait(ctx, w))
	}
	return shared.Broken(e.store.KeepWait(ctx, w))
}

// Processes returns the processes that waited when the daemon stopped, with their callers.
func (e *Engine) Processes(ctx context.Context) (all []permissions.Wait, callers []permissions.Caller, err error) {
	kept, err := e.store.Waits(ctx)
	for _, w := range kept {
		if w.Kind != permissions.WaitProcess {
			continue
		}
		r, unread := e.store.Read(ctx, w.Request)
		if unread == nil && r.State == permissions.Pending {
			all, callers = append(all, w), append(callers, r.Caller)
		}
	}
	return all, callers, shared.Broken(err)
}

// readWaits restores who waited when the daemon stopped. Cancelled calls get the same grace to return as all others.
func (e *Engine) readWaits(ctx context.Context) error {
	kept, err := e.store.Waits(ctx)
	soonest := e.clock.Now().Add(returnGrace)
	for _, w := range kept {
		switch w.Kind {
		case permissions.WaitCancelled:
			e.regrets[w.Request] = w.Until
			if w.Until.Before(soonest) {
				e.regrets[w.Request] = soonest
			}
		case permissions.WaitDialog:
			e.registry.Hold(w.Request, true)
		case permissions.WaitProcess: // the hook server fetches them
		}
	}
	return err
}

// rejoined deletes the record of a cancelled call, since the same is asked again.
func (e *Engine) rejoined(ctx context.Context, id permissions.ID) {
	e.mu.Lock()
	_, regretted := e.regrets[id]
	delete(e.regrets, id)
	e.mu.Unlock()
	if !regretted {
		return
	}
	if err := e.store.DropWait(ctx, permissions.Wait{Request: id, Kind: permissions.WaitCancelled}); err != nil {
		e.log.Warn("drop pending cancel: the request may be withdrawn after a restart", "request", id, "err", err)
	}
}

// carryOut withdraws the requests of cancelled calls when their time comes, until ctx ends.
func (e *Engine) carryOut(ctx context.Context) error {
	for ctx.Err() == nil {
		nap := shared.RetryDelay
		now := e.clock.Now()
		e.mu.Lock()
		all := maps.Clone(e.regrets)
		e.mu.Unlock()
		for _, id := range slices.Sorted(maps.Keys(all)) {
			if left := all[id].Sub(now); left > 0 {
				nap = min(nap, left)
				continue
			}
			if err := e.withdrawRegretted(ctx, id); err != nil {
				e.log.Warn("withdraw request of a cancelled call: retrying", "request", id, "err", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-e.regretted:
		case <-time.After(nap):
		}
	}
	return nil
}

// withdrawRegretted withdraws the request of a cancelled call if nobody waits for it. Failures are retried.
func (e *Engine) withdrawRegretted(ctx context.Context, id permissions.ID) (err error) {
	work, done := context.WithTimeout(ctx, shared.StoreTime)
	defer done()
	if e.registry.Waiting(id) == 0 {
		_, err = e.registry.LeaveOrCancel(work, id, "", "")
	}
	if errors.Is(err, permissions.ErrBroken) && !errors.Is(err, permissions.ErrRow) {
		return err
	}
	e.rejoined(work, id) // or it is over
	return nil
}
