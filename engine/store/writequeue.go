package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/mattn/go-sqlite3"
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
		defer time.AfterFunc(j.lowPriority, func() { l.hurry(j) }).Stop()
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

// hurry ends j's wait for a group.
func (l *writeQueue) hurry(j *writeJob) {
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

// write commits one change, together with others that are queued. An error of do rolls its whole change back and is returned; do
// may therefore change only rows, the ledger in t, and results that are used only if write returns nil. do may run on another
// write's goroutine, and twice: if one of a group fails after it wrote, all are rolled back and each runs again alone.
//
// If the file fails, all of the group are rolled back and get the error.
func (s *Store) write(ctx context.Context, do func(context.Context, *tx) error) error {
	return s.enter(ctx, &writeJob{do: do, ctx: context.WithoutCancel(ctx)})
}

// writeLowPriority is write with low priority.
func (s *Store) writeLowPriority(ctx context.Context, do func(context.Context, *tx) error) error {
	return s.enter(ctx, &writeJob{do: do, ctx: context.WithoutCancel(ctx), lowPriority: s.lowPriorityWait})
}

func (s *Store) enter(ctx context.Context, j *writeJob) error {
	if err := s.writes.enter(ctx, j); err != nil {
		return err
	}
	if len(j.group) > 0 {
		s.lead(j)
	}
	if j.panic != nil {
		panic(j.panic)
	}
	return s.explain(j.ctx, j.err)
}

var (
	// errWriteAborted is the error of the jobs whose group leader panicked.
	errWriteAborted = errors.New("the write was aborted")
	// errRunAlone rolls a group back in which one failed after it wrote.
	errRunAlone = errors.New("run each write alone")
)

// lead writes j's group and wakes its members.
func (s *Store) lead(j *writeJob) {
	untold, failed := j.group, errWriteAborted
	defer func() {
		s.writes.leave()
		for _, o := range untold {
			if failed != nil {
				o.err = failed
			}
			o.tell(j)
		}
	}()
	failed = s.writeGroup(j.ctx, j.group)
	if !errors.Is(failed, errRunAlone) {
		return
	}
	for failed = errWriteAborted; len(untold) > 0; untold = untold[1:] {
		o := untold[0]
		o.err = s.writeGroup(o.ctx, untold[:1])
		o.tell(j)
	}
}

// tell wakes the caller of j; the leader of the group needs no wake-up.
func (j *writeJob) tell(leader *writeJob) {
	if j != leader {
		close(j.turn)
	}
}

// writeGroup writes a group in one transaction. An error concerns all of it. It is explained before the next group may
// write, because a damaged file must not be written again.
func (s *Store) writeGroup(ctx context.Context, group []*writeJob) error {
	return s.explain(ctx, s.use(ctx, func(conn *sql.Conn) error { return s.commitGroup(ctx, conn, group) }))
}

// turn runs do with the writing connection when its turn comes. do is not cancelled.
func (s *Store) turn(ctx context.Context, do func(context.Context, *sql.Conn) error) error {
	j := &writeJob{ctx: context.WithoutCancel(ctx)}
	if err := s.writes.enter(ctx, j); err != nil {
		return err
	}
	defer s.writes.leave()
	return s.explain(j.ctx, s.use(j.ctx, func(conn *sql.Conn) error { return do(j.ctx, conn) }))
}

// use runs do with the writing connection for the caller that has the turn.
func (s *Store) use(ctx context.Context, do func(*sql.Conn) error) error {
	if damage := s.damage.Load(); damage != nil {
		return damage
	}
	if err := s.checkPaths(); err != nil {
		return err
	}
	conn, err := s.writer.Conn(ctx)
	if err != nil {
		return s.fault(ctx, err)
	}
	defer func() { _ = conn.Close() }() // only returns it to the pool
	return do(conn)
}

// commitGroup writes a group in one transaction. The error concerns all of it, or its only job.
//
// The ledger in memory is that of the last commit. After a failed commit either state may be on the disk, so it is read again.
func (s *Store) commitGroup(ctx context.Context, conn *sql.Conn, group []*writeJob) error {
	t := &tx{conn: conn, ledger: s.ledger, rows: s.rows}
	stale := s.stale
	s.stale = true
	ended, undone := false, false // undone: rolled back on purpose
	defer func() {
		if !ended {
			s.rows.dropAll()
		}
	}()
	err := transact(ctx, conn, func() error {
		if err := s.catchUp(ctx, t, stale); err != nil {
			return err
		}
		for _, j := range group {
			if err := j.within(t, len(group) == 1); err != nil {
				undone = errors.Is(err, errRunAlone) || len(group) == 1 && !broke(err)
				return err
			}
		}
		if t.marks {
			if err := s.checkMark(ctx, t); err != nil {
				return err
			}
		}
		if len(group) > 1 {
			passed("group.before", len(group))
		}
		s.tried = t.head
		return nil
	})
	if err == nil {
		passed("group.after", len(group))
		if t.seq != s.ledger.seq {
			s.bell.ring()
		}
		s.ledger = t.ledger
		if t.marks {
			s.noteMark(t.head)
		}
	}
	ended = err == nil || undone && !t.wrote
	s.stale = err != nil && !undone
	s.noteHalt()
	return err
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

// Passed is called, if set, before each commit ("group.before") and after it but before any caller returns
// ("group.after"), with the number of writes. Only tests set it, before a store is opened.
var Passed func(point string, writes int)

func passed(point string, writes int) {
	if Passed != nil {
		Passed(point, writes)
	}
}
