package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/registry"
	"github.com/daycared/daycared/permissions/timing"
)

// waits knows who waits in a way that outlives a connection.
type waits struct {
	*services

	mu              sync.Mutex
	cancelAt        map[permissions.ID]time.Time // when to withdraw the request of a cancelled call; see WithdrawLater
	cancelScheduled timing.Signal                // cancelAt has a new entry
}

// WaitSettled returns when [Engine.Await] would, until then at most if that is not zero. It needs little memory, as
// [Engine.AskDeferred] does.
func (g *waits) WaitSettled(ctx context.Context, until time.Time, caller permissions.Caller, id permissions.ID) error {
	var w *registry.Waiter
	var err error
	g.aside.Run(func() { w, err = g.attach(ctx, caller, id) })
	if err != nil {
		return err
	}
	w.WaitSettled(ctx, until)
	w.LeaveSoon(leaveGrace)
	return bearerError(ctx)
}

// attach registers this caller as a waiting reader.
func (g *waits) attach(ctx context.Context, caller permissions.Caller, id permissions.ID) (*registry.Waiter, error) {
	work, done := shared.Noting(ctx)
	defer done()
	if _, err := g.ownRequest(work, caller, id); err != nil {
		return nil, err
	}
	w, _, err := g.registry.Attach(work, id)
	return w, shared.Broken(err)
}

// WithdrawLater withdraws a request of this caller after a delay, because a call for it was cancelled, unless the same is asked
// again or somebody waits for it by then. It survives a restart.
func (g *waits) WithdrawLater(
	ctx context.Context, caller permissions.Caller, id permissions.ID, after time.Duration,
) (permissions.RequestView, error) {
	r, err := g.ownRequest(ctx, caller, id)
	if err != nil {
		return permissions.RequestView{}, err
	}
	if r.State == permissions.Pending {
		if err := g.scheduleCancel(ctx, id, after); err != nil {
			return permissions.RequestView{}, err
		}
	}
	return g.View(ctx, r)
}

func (g *waits) scheduleCancel(ctx context.Context, id permissions.ID, after time.Duration) error {
	until := g.clock.Now().Add(after)
	if err := g.store.KeepWait(ctx, permissions.Wait{Request: id, Kind: permissions.WaitCancelled, Until: until}); err != nil {
		return shared.Broken(err)
	}
	g.mu.Lock()
	g.cancelAt[id] = until
	g.mu.Unlock()
	g.cancelScheduled.Notify()
	return nil
}

// Hold keeps the place of a client that shows a dialog of its own about a request of this caller, or releases it: until
// the client returns, prompts do not say that nobody waits. It survives a restart.
func (g *waits) Hold(ctx context.Context, caller permissions.Caller, id permissions.ID, held bool) error {
	r, err := g.ownRequest(ctx, caller, id)
	if err != nil {
		return err
	}
	w := permissions.Wait{Request: id, Kind: permissions.WaitDialog}
	g.registry.Hold(id, held && r.State == permissions.Pending)
	if !held {
		return shared.Broken(g.store.DropWait(ctx, w))
	}
	if err := g.store.KeepWait(ctx, w); err != nil {
		return shared.Broken(err)
	}
	if r, err = g.store.Read(ctx, id); err != nil || r.State != permissions.Pending { // settled at this very moment
		g.registry.Hold(id, false)
	}
	return shared.Broken(err)
}

// KeepProcess records which process of this machine waits for a request of this caller; PID 0 deletes the record.
func (g *waits) KeepProcess(ctx context.Context, caller permissions.Caller, w permissions.Wait) error {
	if _, err := g.ownRequest(ctx, caller, w.Request); err != nil {
		return err
	}
	w.Kind = permissions.WaitProcess
	if w.PID == 0 {
		return shared.Broken(g.store.DropWait(ctx, w))
	}
	return shared.Broken(g.store.KeepWait(ctx, w))
}

// Processes returns the processes that waited when the daemon stopped, with their callers; none where they may be of another machine.
func (g *waits) Processes(ctx context.Context) (all []permissions.Wait, callers []permissions.Caller, err error) {
	if g.awaitLease != nil {
		return nil, nil, nil
	}
	kept, err := g.store.Waits(ctx)
	for _, w := range kept {
		if w.Kind != permissions.WaitProcess {
			continue
		}
		r, unread := g.store.Read(ctx, w.Request)
		if unread == nil && r.State == permissions.Pending {
			all, callers = append(all, w), append(callers, r.Caller)
		}
	}
	return all, callers, shared.Broken(err)
}

// readWaits restores who waited when the daemon stopped. Cancelled calls get the same grace to return as all others.
func (g *waits) readWaits(ctx context.Context) error {
	kept, err := g.store.Waits(ctx)
	soonest := g.clock.Now().Add(shared.ReturnGrace)
	for _, w := range kept {
		switch w.Kind {
		case permissions.WaitCancelled:
			g.cancelAt[w.Request] = w.Until
			if w.Until.Before(soonest) {
				g.cancelAt[w.Request] = soonest
			}
		case permissions.WaitDialog:
			g.registry.Hold(w.Request, true)
		case permissions.WaitProcess: // the hook server fetches them
		}
	}
	return err
}

// dropCancelled deletes the record of a cancelled call, since the same is asked again.
func (g *waits) dropCancelled(ctx context.Context, id permissions.ID) {
	g.mu.Lock()
	_, scheduled := g.cancelAt[id]
	delete(g.cancelAt, id)
	g.mu.Unlock()
	if !scheduled {
		return
	}
	if err := g.store.DropWait(ctx, permissions.Wait{Request: id, Kind: permissions.WaitCancelled}); err != nil {
		g.log.Warn("drop pending cancel: the request may be withdrawn after a restart", "request", id, "err", err)
	}
}

// withdrawDue withdraws the requests of cancelled calls when their time comes, until ctx ends.
func (g *waits) withdrawDue(ctx context.Context) error {
	for ctx.Err() == nil {
		nap := shared.RetryDelay
		now := g.clock.Now()
		g.mu.Lock()
		all := maps.Clone(g.cancelAt)
		g.mu.Unlock()
		for _, id := range slices.Sorted(maps.Keys(all)) {
			if left := all[id].Sub(now); left > 0 {
				nap = min(nap, left)
				continue
			}
			if err := g.withdrawCancelled(ctx, id); err != nil {
				g.log.Warn("withdraw request of a cancelled call: retrying", "request", id, "err", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-g.cancelScheduled:
		case <-time.After(nap):
		}
	}
	return nil
}

// withdrawCancelled withdraws the request of a cancelled call if nobody waits for it. Failures are retried.
func (g *waits) withdrawCancelled(ctx context.Context, id permissions.ID) (err error) {
	work, done := context.WithTimeout(ctx, shared.StoreTime)
	defer done()
	elsewhere := false
	if g.awaitLease != nil {
		r, unread := g.store.Read(work, id)
		elsewhere = unread == nil && r.LeftAt.IsZero()
	}
	if g.registry.Waiting(id) == 0 && !elsewhere {
		_, err = g.registry.LeaveOrCancel(work, id, "", "")
	}
	if errors.Is(err, permissions.ErrBroken) && !errors.Is(err, permissions.ErrRow) {
		return err
	}
	g.dropCancelled(work, id) // or it is over
	return nil
}
