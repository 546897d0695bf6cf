package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/registry"
	"github.com/daycared/daycared/permissions/timing"
)

// journal reads what was written down, and notes that the daemon runs.
type journal struct {
	*services

	away time.Duration // see Downtime
}

// Audit lists entries of the audit chain of the daemon, for the operator.
func (j *journal) Audit(
	ctx context.Context, id connectors.Identity, after int64, limit int,
) ([]permissions.Entry, error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	entries, err := j.store.Audit(ctx, "", after, limit)
	if err == nil {
		err = addCodes(ctx, j.store, entries, func(e *permissions.Entry) (permissions.ID, *string) { return e.Request, &e.Code })
	}
	return entries, shared.Unread(err)
}

// addCodes sets the codes of what is of requests, all of them by one query.
func addCodes[T any](ctx context.Context, s Store, all []T, of func(*T) (permissions.ID, *string)) error {
	ids := make([]permissions.ID, len(all))
	for i := range all {
		ids[i], _ = of(&all[i])
	}
	slices.Sort(ids)
	codes, err := s.Codes(ctx, slices.Compact(ids))
	for i := range all {
		id, code := of(&all[i])
		*code = codes[id]
	}
	return err
}

// History lists what is settled, oldest first, to the operator; to a person, what was put to them.
func (j *journal) History(ctx context.Context, id connectors.Identity, of permissions.HistoryQuery) ([]permissions.Request, error) {
	who, err := j.MaySeeRequestsOf(id)
	if err != nil {
		return nil, err
	}
	of.Asked = who
	found, err := j.store.History(ctx, of)
	for i, r := range found {
		found[i] = j.Settings().Shown(r, id.Via)
	}
	return found, shared.Unread(err)
}

// Verify checks every audit chain, for the operator, and returns the heads. The functions are told how far it is.
func (j *journal) Verify(ctx context.Context, id connectors.Identity, told ...func(done, all int64)) ([]permissions.Head, error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	heads, err := j.store.Verify(ctx, told...)
	return heads, shared.Unread(err)
}

// Subscribe follows every committed change.
func (j *journal) Subscribe(buffer int) *registry.Feed { return j.registry.Subscribe(buffer) }

// Ready is nil while requests can be stored and answered; the error says what to do.
func (j *journal) Ready(ctx context.Context) error { return shared.Broken(j.store.Health(ctx)) }

// Events lists at most limit events after seq that this identity may see, and the position from which to continue.
func (j *journal) Events(
	ctx context.Context, id connectors.Identity, after int64, limit int,
) (list []permissions.Event, seen int64, err error) {
	who, err := j.Who(id)
	if err != nil {
		return nil, after, err
	}
	return j.events(ctx, after, limit, func(h permissions.Event) bool { return id.Operator || h.VisibleTo(who) })
}

func (j *journal) events(
	ctx context.Context, after int64, limit int, visible func(permissions.Event) bool,
) (list []permissions.Event, seen int64, err error) {
	list, first, err := j.store.Events(ctx, after, limit)
	if err != nil {
		return nil, after, shared.Unread(err)
	}
	if after > 0 && after < first-1 {
		return nil, after, permissions.Pruned(first)
	}
	seen = after
	if len(list) > 0 {
		seen = list[len(list)-1].Seq
	}
	list = slices.DeleteFunc(list, func(h permissions.Event) bool { return h.Type == "" || !visible(h) })
	for i, h := range list {
		if h.About.ID != "" { // the store has it in memory
			continue
		}
		if list[i].About, err = j.about(ctx, h); err != nil {
			return nil, after, shared.Unread(err)
		}
	}
	return list, seen, nil
}

// about returns the request that h describes, if any; without an ID where it is no longer stored.
func (j *journal) about(ctx context.Context, h permissions.Event) (permissions.Request, error) {
	if !h.Type.HasRequestText() || h.Request == "" {
		return permissions.Request{}, nil
	}
	r, err := j.store.Read(ctx, h.Request)
	if permissions.CodeOf(err) == permissions.CodeUnknown || errors.Is(err, permissions.ErrRow) {
		return permissions.Request{}, nil
	}
	return r, err
}

// Changed is closed when there may be new events.
func (j *journal) Changed() <-chan struct{} { return j.store.Changed() }

// heartbeatEvery is the interval of the heartbeat, from which the next start computes the downtime.
const heartbeatEvery = 30 * time.Second

// heartbeat records that the daemon runs, until ctx ends. A failure waits for the next interval.
func (j *journal) heartbeat(ctx context.Context) error {
	for wait := shared.RetryDelay; timing.Pause(ctx, wait) == nil; wait = heartbeatEvery {
		if _, err := j.store.Heartbeat(ctx, j.AllReceivedUntil(false)); err != nil && ctx.Err() == nil {
			j.log.Debug("write heartbeat", "err", err)
		}
	}
	last, done := shared.Noting(ctx)
	defer done()
	_, _ = j.store.Heartbeat(last, j.AllReceivedUntil(true)) // after a failure the downtime looks longer than it was
	return nil
}

// Downtime is how long the daemon did not run before this start, or had no contact with a channel that loses messages
// meanwhile, to about a minute and a half; 0 if it never ran.
func (j *journal) Downtime() time.Duration { return j.away }
