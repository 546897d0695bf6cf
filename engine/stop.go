package engine

import (
	"context"
	"errors"

	"github.com/daycared/daycared/connectors"
)

// StopAll cancels everything that is pending, suspends every grant and refuses everything new until Resume. Every
// person may do that.
func (e *Engine) StopAll(ctx context.Context, id connectors.Identity) (cancelled int, err error) {
	who, err := e.Who(id)
	if err != nil {
		return 0, err
	}
	e.steering.Lock()
	defer e.steering.Unlock()
	work := context.WithoutCancel(ctx) // who has begun to stop has stopped
	if e.StoppedBy() == "" || who == OperatorName {
		e.noteStop(who) // from the start: whoever learns of it from the audit finds it so, and what waits may be much
	}
	cancelled, err = e.registry.StopAll(work, who, id.Via)
	e.log.Warn("everything was stopped", "by", who, "via", id.Via, "cancelled", cancelled, "err", err)
	return cancelled, errors.Join(broken(err), e.readStop(work))
}

// Resume ends what StopAll began. It is for the operator and for whoever stopped.
func (e *Engine) Resume(ctx context.Context, id connectors.Identity) error {
	who, err := e.Who(id)
	if err != nil {
		return err
	}
	e.steering.Lock()
	defer e.steering.Unlock()
	work := context.WithoutCancel(ctx)
	if err := e.store.Resume(work, who, id.Via, id.Operator, e.stamp()); err != nil {
		return broken(err)
	}
	e.log.Warn("everything goes on", "by", who, "via", id.Via)
	return e.readStop(work)
}

// StoppedBy is who stopped everything, or empty.
func (e *Engine) StoppedBy() string {
	if by := e.stopped.Load(); by != nil {
		return *by
	}
	return ""
}

// readStop keeps in memory what the store says.
func (e *Engine) readStop(ctx context.Context) error {
	by, err := e.store.StoppedBy(ctx)
	if err == nil {
		e.noteStop(by)
	}
	return broken(err)
}

func (e *Engine) noteStop(by string) { e.stopped.Store(&by) }
