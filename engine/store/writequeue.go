package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/daycared/daycared/permissions"
)

// maxGroup is the most writes per transaction. They share one sync; the first waits for the last.
const maxGroup = 256

// writeQueue is the queue of writes. A caller that finds it empty writes at once on its own goroutine. Later callers queue, and the first
// of the queue then writes for all of it. A low-priority write joins the next group, or runs alone if none comes within its wait.
type writeQueue struct {
	mu          sync.Mutex
	busy        bool
	queued      []*writeJob
	lowPriority []*writeJob // low priority
}

// writeJob is one write. Once begun it is finished, so its context is never cancelled.
type writeJob struct {
	do          func(context.Context, *tx) error // nil: it needs the connection for itself
	ctx         context.Context                  //nolint:containedctx // of do, which another goroutine may run
	of          permissions.ID                   // the request that it changes; empty: that is not known
	err         error
	lowPriority time.Duration // longest wait for a group; 0: normal priority
	panic       any           // panic value of do in a shared transaction
	group       []*writeJob   // to be written by this job, itself first; empty: already written
	turn        chan struct{} // closed in either case
}

// enter returns when j is written, or has a group to write and must call leave. The error is ctx's if that ended first.
func (l *writeQueue) enter(ctx context.Context, j *writeJob) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.mu.Lock()
	switch {
	case j.lowPriority > 0:
		j.turn = make(chan struct{})
		l.lowPriority = append(l.lowPriority, j)
		defer time.AfterFunc(j.lowPriority, func() { l.stopWaiting(j) }).Stop()
	case l.busy:
		j.turn = make(chan struct{})
		l.queued = append(l.queued, j)
	default:
		l.queued = append(l.queued, j)
		l.next()
		l.mu.Unlock()
		return nil
	}
	l.mu.Unlock()
	select {
	case <-j.turn:
		return nil
	case <-ctx.Done():
	}
	if l.remove(j) {
		return ctx.Err()
	}
	<-j.turn // it has begun
	return nil
}

// next starts the next group. The caller holds the lock.
func (l *writeQueue) next() {
	l.busy = len(l.queued) > 0
	if !l.busy {
		return
	}
	first, n := l.queued[0], 1
	for first.do != nil && n < min(len(l.queued), maxGroup) && l.queued[n].do != nil {
		n++
	}
	first.group = slices.Clone(l.queued[:n])
	l.queued = slices.Delete(l.queued, 0, n)
	if first.do != nil {
		n = min(len(l.lowPriority), maxGroup-n)
		first.group = append(first.group, l.lowPriority[:n]...)
		l.lowPriority = slices.Delete(l.lowPriority, 0, n)
	}
	if first.turn != nil {
		close(first.turn)
	}
}

// stopWaiting ends j's wait for a group.
func (l *writeQueue) stopWaiting(j *writeJob) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.lowPriority, j)
	if at < 0 {
		return
	}
	l.lowPriority = slices.Delete(l.lowPriority, at, at+1)
	l.queued = append(l.queued, j)
	if !l.busy {
		l.next()
	}
}

func (l *writeQueue) remove(j *writeJob) (found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	gone := func(o *writeJob) bool {
		found = found || o == j
		return o == j
	}
	l.queued, l.lowPriority = slices.DeleteFunc(l.queued, gone), slices.DeleteFunc(l.lowPriority, gone)
	return found
}

// leave lets the queued jobs write.
func (l *writeQueue) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next()
}

var (
	// errWriteAborted is the error of the jobs whose group leader panicked.
	errWriteAborted = errors.New("the write was aborted")
	// errRunAlone rolls a group back in which one failed after it wrote.
	errRunAlone = errors.New("run each write alone")
)

// signalDone wakes the caller of j; the leader of the group needs no wake-up.
func (j *writeJob) signalDone(leader *writeJob) {
	if j != leader {
		close(j.turn)
	}
}

// within runs j in a transaction, shared or its own. In a shared one, an error before j wrote anything is j's alone.
// The returned error concerns the whole transaction.
func (j *writeJob) within(t *tx, alone bool) error {
	before, wrote := t.ledger, t.wrote
	t.err, t.wrote, j.panic = nil, false, nil
	j.err = j.run(t)
	var failed sqlite3.Error
	switch {
	case j.err == nil:
	case !alone && serverFailed(j.err): // the transaction is over
		return errRunAlone
	case alone, errors.As(j.err, &failed) && failed.Code != sqlite3.ErrConstraint: // the state of the transaction is unknown
		return j.err
	case t.wrote:
		return errRunAlone
	default:
		t.ledger = before
	}
	t.wrote = t.wrote || wrote
	return nil
}

// run runs j. A panic ends its caller, not the other jobs of the transaction.
func (j *writeJob) run(t *tx) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			j.panic, err = fmt.Sprintf("%v\n%s", fault, debug.Stack()), errWriteAborted
		}
	}()
	t.fail(j.do(j.ctx, t))
	return t.err
}
