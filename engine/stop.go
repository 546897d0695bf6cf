package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// stops holds who stopped everything.
type stops struct {
	*services

	forget   func(matches func(decisionKey) bool) // see [Engine.forgetDecisions]
	stopped  atomic.Pointer[connectors.Stop]
	unsaved  timing.Signal               // a lock or a stop could not be stored
	steering chanMutex                   // one stop or resume at a time
	over     chan struct{}               // closed at the next resume; guarded by steering
	stopping func(context.Context) error // stores a stop that is not stored yet; guarded by steering
}

// chanMutex is a lock that is held while the store is written. Waiting for it is waiting for a channel, so that simulated time passes.
type chanMutex chan struct{}

// Lock is [sync.Locker].
func (t chanMutex) Lock() { t <- struct{}{} }

// Unlock is [sync.Locker].
func (t chanMutex) Unlock() { <-t }

func newStops(on *services, forget func(matches func(decisionKey) bool)) *stops {
	s := &stops{
		services: on, forget: forget, unsaved: timing.NewSignal(), over: make(chan struct{}), steering: make(chanMutex, 1),
		stopping: func(context.Context) error { return nil },
	}
	s.noteStop("", time.Time{})
	return s
}

// StopAll cancels everything pending, suspends every grant and refuses everything new until Resume. Every person may.
func (s *stops) StopAll(ctx context.Context, id connectors.Identity) (cancelled int, err error) {
	who, err := s.Who(id)
	if err != nil {
		return 0, err
	}
	s.steering.Lock()
	defer s.steering.Unlock()
	return s.stopAll(context.WithoutCancel(ctx), who, id.Via) // once begun, a stop completes
}

// stopAll stops everything. It holds even if it cannot be stored: keepLocks retries. The caller holds s.steering.
func (s *stops) stopAll(ctx context.Context, who, via string) (cancelled int, err error) {
	if s.StoppedBy() == "" || who == directory.OperatorName {
		s.noteStop(who, time.Time{}) // first: readers of the audit must find it stopped, and cancelling may take long
	}
	who = s.StoppedBy() // a second stop completes the first one
	s.forget(nil)
	s.endTrust(ctx, permissions.Caller{})
	cancelled, err = s.registry.StopAll(ctx, who, via)
	s.log.Warn("everything was stopped", "by", who, "via", via, "cancelled", cancelled, "err", err)
	s.stopping = func(context.Context) error { return nil }
	saved, at, unread := s.store.StoppedBy(ctx)
	if saved == who {
		s.noteStop(who, at)
	}
	switch {
	case err == nil:
		return cancelled, nil
	case unread == nil && saved == who:
		return cancelled, permissions.StopIncomplete(err.Error())
	}
	s.stopping = func(ctx context.Context) error {
		_, err := s.stopAll(ctx, who, via)
		return err
	}
	s.unsaved.Notify()
	return cancelled, permissions.StopUnsaved(err.Error(), s.awaitLease != nil)
}

// Resume ends a stop. It is for the operator and for the person who stopped, but not from an account that agents ask from.
func (s *stops) Resume(ctx context.Context, id connectors.Identity) error {
	return s.EndStop(ctx, id, time.Time{})
}

// EndStop is [Engine.Resume] for the stop that began at a time, unless that is zero; it leaves another stop in force.
func (s *stops) EndStop(ctx context.Context, id connectors.Identity, at time.Time) error {
	who, err := s.Who(id)
	if err != nil {
		return err
	}
	s.steering.Lock()
	defer s.steering.Unlock()
	work := context.WithoutCancel(ctx)
	switch stop := s.Stop(); {
	case stop.By != "" && stop.By != who && !id.Operator:
		return permissions.NotYours()
	case !at.IsZero() && !stop.At.Equal(at):
		return permissions.OtherStop()
	case stop.By != "":
		if err := s.RefuseAskingAccount(ctx, id, ""); err != nil {
			return err
		}
	}
	if err := s.stopping(work); err != nil {
		return err
	}
	if err := s.store.Resume(work, who, id.Via, id.Operator, s.clock.Stamp()); err != nil {
		return shared.Broken(err)
	}
	s.registry.Halt("")
	s.noteStop("", time.Time{})
	close(s.over)
	s.over = make(chan struct{})
	s.log.Warn("resumed", "by", who, "via", id.Via)
	return nil
}

// follow puts into force what another daemon stored about a stop. One that could not be stored here stays in force.
func (s *stops) follow(ctx context.Context) error {
	s.steering.Lock()
	defer s.steering.Unlock()
	by, at, err := s.store.StoppedBy(ctx)
	was := s.Stop()
	switch {
	case err != nil || by == was.By && at.Equal(was.At):
		return err
	case by != "":
		s.noteStop(by, at)
		s.forget(nil)
	case !was.At.IsZero():
		s.registry.Halt("")
		s.noteStop("", at)
		close(s.over)
		s.over = make(chan struct{})
	}
	return nil
}

// StoppedBy returns who stopped everything, or empty.
func (s *stops) StoppedBy() string { return s.Stop().By }

// Stop is the stop in force.
func (s *stops) Stop() connectors.Stop { return *s.stopped.Load() }

// noteStop records the stop in force. The caller holds the lock of stops, once the engine runs.
func (s *stops) noteStop(by string, at time.Time) {
	s.stopped.Store(&connectors.Stop{By: by, At: at, Over: s.over})
}
