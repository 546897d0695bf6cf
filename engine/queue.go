package engine

import (
	"container/heap"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	retryFirst = 500 * time.Millisecond
	retryMost  = 30 * time.Second
	// retryLeast is the shortest time after which something is tried again, whatever a channel says.
	retryLeast = 20 * time.Millisecond
	// idle is how long a queue without work sleeps, unless it is kicked.
	idle = time.Hour
)

// queue is the requests that one worker has to look at, each at most once at a time. What fails is tried again, ever
// later, or when the error says so (see unfinished). It is lost with the process: whoever fills it can do so again from the rows.
type queue struct {
	elapsed func() time.Duration // see [permissions.Clock]
	log     *slog.Logger
	wake    chan struct{}

	mu    sync.Mutex
	ready idHeap                           // whose turn it is, the oldest first
	in    map[permissions.ID]bool          // what ready holds
	later map[permissions.ID]time.Duration // when to try again, by elapsed
	first time.Duration                    // no later than any of later
	tries map[permissions.ID]time.Duration // the last delay of those that failed for now
}

// idHeap is a heap of ids: the smallest is the oldest.
type idHeap []permissions.ID

func (h idHeap) Len() int           { return len(h) }
func (h idHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h idHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *idHeap) Push(id any)       { *h = append(*h, id.(permissions.ID)) } //nolint:errcheck // nothing else is pushed

// Pop takes the last, which heap.Pop has put the smallest into.
func (h *idHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func newQueue(elapsed func() time.Duration, log *slog.Logger) *queue {
	return &queue{
		elapsed: elapsed, log: log, wake: make(chan struct{}, 1),
		in: map[permissions.ID]bool{}, later: map[permissions.ID]time.Duration{}, tries: map[permissions.ID]time.Duration{},
	}
}

// kick says that a request may have changed.
func (q *queue) kick(id permissions.ID) {
	q.mu.Lock()
	q.add(id)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run works until ctx ends. An error of work means that it should be tried again.
func (q *queue) run(ctx context.Context, work func(context.Context, permissions.ID) error) error {
	for ctx.Err() == nil {
		id, wait := q.next()
		if wait <= 0 {
			q.finish(ctx, id, work(ctx, id))
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

// add puts a request among those whose turn it is. The lock is held.
func (q *queue) add(id permissions.ID) {
	delete(q.later, id)
	if !q.in[id] {
		q.in[id] = true
		heap.Push(&q.ready, id)
	}
}

// next takes the request whose turn it is, oldest id first, or says how long to wait.
func (q *queue) next() (id permissions.ID, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := q.elapsed(); len(q.later) > 0 && now >= q.first {
		q.first = now + idle
		for id, at := range q.later {
			if at <= now {
				q.add(id)
			} else {
				q.first = min(q.first, at)
			}
		}
	}
	if len(q.ready) > 0 {
		id = heap.Pop(&q.ready).(permissions.ID) //nolint:errcheck // nothing else is in it
		delete(q.in, id)
		return id, 0
	}
	if len(q.later) > 0 {
		return "", max(q.first-q.elapsed(), time.Millisecond)
	}
	return "", idle
}

// finish forgets the request, or plans the next try.
func (q *queue) finish(ctx context.Context, id permissions.ID, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err == nil || ctx.Err() != nil {
		delete(q.tries, id)
		return
	}
	delay := q.delay(id, err)
	if at := q.elapsed() + delay; !q.in[id] {
		if len(q.later) == 0 || at < q.first {
			q.first = at
		}
		q.later[id] = at
	}
	level := slog.LevelDebug
	if delay > retryFirst && !errors.Is(err, errEarly) { // the first failure is often mended by the second try
		level = slog.LevelWarn
	}
	q.log.Log(ctx, level, "a request is not up to date; it is tried again", "request", id, "delay", delay, "err", err)
}

// delay is how long to wait with the next try. The lock is held.
func (q *queue) delay(id permissions.ID, err error) time.Duration {
	var u *unfinished
	told := errors.As(err, &u)
	soon := retryMost
	if told {
		soon = max(u.soonest, retryLeast)
	}
	if told && !u.others {
		return soon
	}
	q.tries[id] = min(max(2*q.tries[id], retryFirst), retryMost)
	return min(q.tries[id], soon)
}

// unfinished is an error of several parts of one piece of work, some of which said when it makes sense to try them again.
// Whoever does the work leaves the others of them alone until then.
type unfinished struct {
	error
	soonest time.Duration // of those that said so
	others  bool          // something failed that did not
}

func (u *unfinished) Unwrap() error { return u.error }
