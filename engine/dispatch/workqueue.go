package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

const (
	// minRetry is the shortest retry delay, whatever a channel says.
	minRetry = 20 * time.Millisecond
)

// rank is the urgency of a request in its queue; lower is more urgent.
type rank int

const (
	firstCard rank = iota // pending, never shown in the chat
	pendingEdit
	settledEdit
	presenceEdit // pending, only its waiters changed
	ranks
)

// workQueue holds the requests that one worker has to process, each at most once at a time. Failures are retried with
// growing delays, or when the error says so (see unfinished). It is not stored: it can be refilled from the rows.
type workQueue struct {
	elapsed func() time.Duration // see [timing.Clock]
	log     *slog.Logger
	wake    timing.Signal

	mu    sync.Mutex
	ready [ranks][]permissions.ID          // the longest waiting first; of settledEdit the newest, which people see
	in    map[permissions.ID]rank          // the rank of each request in ready; other entries are stale
	rests [ranks]time.Duration             // until when a rank is paused, by elapsed
	later map[permissions.ID]retry         // to be retried
	first time.Duration                    // no later than any of later
	tries map[permissions.ID]time.Duration // the last delay of each failed request
}

// retry is when to retry a request, monotonic, and with which rank.
type retry struct {
	at time.Duration
	as rank
}

func newWorkQueue(elapsed func() time.Duration, log *slog.Logger) *workQueue {
	q := &workQueue{
		elapsed: elapsed, log: log, wake: timing.NewSignal(),
		in: map[permissions.ID]rank{}, later: map[permissions.ID]retry{}, tries: map[permissions.ID]time.Duration{},
	}
	for as := range ranks {
		q.rests[as] = elapsed()
	}
	return q
}

// Enqueue reports that a request may have changed.
func (q *workQueue) Enqueue(id permissions.ID) { q.put(id, firstCard) }

// put is Enqueue with a rank.
func (q *workQueue) put(id permissions.ID, as rank) {
	q.mu.Lock()
	q.add(id, as)
	q.mu.Unlock()
	q.wake.Notify()
}

// run works until ctx ends. An error of work means that it should be retried.
func (q *workQueue) run(ctx context.Context, work func(context.Context, permissions.ID) error) error {
	for ctx.Err() == nil {
		id, as, wait := q.next()
		if wait <= 0 {
			q.finish(ctx, id, as, work(ctx, id))
			continue
		}
		select {
		case <-ctx.Done():
		case <-q.wake:
		case <-time.After(wait):
		}
	}
	return nil
}

// add appends a request to its rank. The lock is held.
func (q *workQueue) add(id permissions.ID, as rank) {
	delete(q.later, id)
	if was, there := q.in[id]; !there || was != as {
		q.in[id] = as
		q.ready[as] = append(q.ready[as], id)
	}
}

// next takes the next request, or returns how long to wait.
func (q *workQueue) next() (id permissions.ID, as rank, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.elapsed()
	if len(q.later) > 0 && now >= q.first {
		q.first = now + shared.Idle
		for _, id := range slices.Sorted(maps.Keys(q.later)) { // what is due at once is taken in the order of requests
			if again := q.later[id]; again.at <= now {
				q.add(id, again.as)
			} else {
				q.first = min(q.first, again.at)
			}
		}
	}
	wait = shared.Idle
	if len(q.later) > 0 {
		wait = min(wait, q.first-now)
	}
	for as := range ranks {
		for len(q.ready[as]) > 0 {
			if rests := q.rests[as] - now; rests > 0 {
				wait = min(wait, rests)
				break
			}
			if last := len(q.ready[as]) - 1; as == settledEdit {
				id, q.ready[as] = q.ready[as][last], q.ready[as][:last]
			} else {
				id, q.ready[as] = q.ready[as][0], q.ready[as][1:]
			}
			if where, there := q.in[id]; there && where == as {
				delete(q.in, id)
				return id, as, 0
			}
		}
	}
	return "", 0, max(wait, time.Millisecond)
}

// rest pauses a rank and everything less urgent.
func (q *workQueue) rest(from rank, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for as := from; as < ranks; as++ {
		q.rests[as] = max(q.rests[as], q.elapsed()+d)
	}
}

// finish forgets a request, or schedules its retry.
func (q *workQueue) finish(ctx context.Context, id permissions.ID, as rank, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err == nil || ctx.Err() != nil {
		delete(q.tries, id)
		return
	}
	delay := q.delay(id, err)
	if _, there := q.in[id]; !there {
		again := retry{q.elapsed() + delay, as}
		if len(q.later) == 0 || again.at < q.first {
			q.first = again.at
		}
		q.later[id] = again
	}
	level := slog.LevelDebug
	_, expected := errors.AsType[connectors.ReadySignaler](err)
	if delay > shared.RetryFirst && !expected && !errors.As(err, new(*unfinished)) { // the first failure is often fixed by the retry
		level = slog.LevelWarn
	}
	q.log.Log(ctx, level, "update prompts of a request: retrying", "request", id, "delay", delay, "err", err)
}

// delay returns the delay of the next try. The lock is held.
func (q *workQueue) delay(id permissions.ID, err error) time.Duration {
	if u := (*unfinished)(nil); errors.As(err, &u) {
		return max(u.after, minRetry)
	}
	q.tries[id] = min(max(2*q.tries[id], shared.RetryFirst), shared.RetryMost)
	return q.tries[id]
}

// unfinished is an error that says when to retry. Nothing is wrong.
type unfinished struct {
	error
	after time.Duration
}

func (u *unfinished) Unwrap() error { return u.error }
