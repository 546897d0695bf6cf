package engine

import (
	"context"
	"slices"

	"github.com/daycared/daycared/permissions"
)

// others puts into force what other daemons on the same store wrote.
type others struct {
	*services

	stops  *stops
	locks  *locks
	tokens *tokens
	forget func(matches func(decisionKey) bool) // see [Engine.forgetDecisions]
}

// runWithLease runs do once this daemon is the one that does so, until ctx ends.
func (o *others) runWithLease(ctx context.Context, do func(context.Context) error) error {
	if o.awaitLease != nil && !o.awaitLease(ctx) {
		return nil
	}
	return do(ctx)
}

// irrelevantTypes are the types of entries that are about no request and change nothing about who is who.
var irrelevantTypes = []permissions.Type{
	permissions.AuditPruned, permissions.RowsPruned, permissions.SessionStatus, permissions.SessionEnded, permissions.RunFinished,
	permissions.ToolStarted, permissions.ToolFinished,
}

// ApplyEntries takes over what other daemons appended to the audit: it wakes who waits for it here, and reads again who is who and what is
// stopped. An empty list says that they changed something else. After an error the same is heard again.
func (o *others) ApplyEntries(ctx context.Context, list []permissions.Entry) error {
	var ids []permissions.ID
	stop, people, tokens := false, false, false
	for _, e := range list {
		switch {
		case e.Request != "":
			ids = append(ids, e.Request)
		case e.Type == permissions.AllStopped, e.Type == permissions.AllResumed:
			stop = true
		case e.Type == permissions.TokenRevoked:
			tokens, people = true, true
		case !slices.Contains(irrelevantTypes, e.Type):
			people = true
		}
	}
	if stop {
		if err := o.stops.follow(ctx); err != nil {
			return err
		}
	}
	if tokens {
		o.tokens.endRevoked(ctx)
	}
	if people {
		if err := o.rereadPeople(ctx); err != nil {
			return err
		}
	}
	for _, e := range list {
		if e.Type == permissions.AgentStopped {
			o.EndRuns(ctx, e.Record)
		}
	}
	slices.Sort(ids)
	o.registry.Changed(context.WithValue(ctx, permissions.AsKnown{}, true), slices.Compact(ids)) // they were just read
	for _, e := range list {
		if e.Type == permissions.RequestCreated {
			o.Reconsider(e.Request)
		}
	}
	o.NoteMissed()
	o.LookAgain()
	return nil
}

// rereadPeople reads who is who, and has what is pending follow it.
func (o *others) rereadPeople(ctx context.Context) error {
	o.locks.locking.Lock()
	err := o.ReadAgain(ctx)
	o.locks.locking.Unlock()
	for _, read := range []func(context.Context) error{o.ReadGroups, o.ReadQuiet} {
		if err == nil {
			err = read(ctx)
		}
	}
	if err != nil {
		return err
	}
	o.forget(nil)
	o.RealignSoon(true)
	return nil
}
