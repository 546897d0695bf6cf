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

// mostGrouped is how many writes are committed together at most. The sync to disk is paid once for all of them, and the
// first of them waits for the last.
const mostGrouped = 256

// line is where writes wait for their turn. Whoever finds nobody there writes at once, on its own goroutine. Whoever
// comes meanwhile queues, and the first of the queue then writes for all of it. What is in no hurry goes with the next
// of them, or by itself if none comes: alone it would only hold up those who are.
type line struct {
	mu     sync.Mutex
	busy   bool
	queued []*job
	idle   []*job // in no hurry
}

// job is one write. What has begun is finished, so its context has no end.
type job struct {
	do    func(context.Context, *tx) error // nil: it needs the connection for itself
	ctx   context.Context                  //nolint:containedctx // of do, which another goroutine may run
	err   error
	idle  time.Duration // how long it may wait for others to go with; 0 for one in a hurry
	panic any           // what do panicked with while it shared a transaction; nil: it did not
	group []*job        // to be written by this one, itself the first; empty: it is written
	turn  chan struct{} // closed when either of both is so
}

// enter returns when j is written, or has a group to write and then leave. The error is that of ctx, which ended first.
func (l *line) enter(ctx context.Context, j *job) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.mu.Lock()
	switch {
	case j.idle > 0:
		j.turn = make(chan struct{})
		l.idle = append(l.idle, j)
		defer time.AfterFunc(j.idle, func() { l.hurry(j) }).Stop()
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

// next begins the next group of those who wait. The lock is held.
func (l *line) next() {
	l.busy = len(l.queued) > 0
	if !l.busy {
		return
	}
	first, n := l.queued[0], 1
	for first.do != nil && n < min(len(l.queued), mostGrouped) && l.queued[n].do != nil {
		n++
	}
	first.group = slices.Clone(l.queued[:n])
	l.queued = slices.Delete(l.queued, 0, n)
	if first.do != nil {
		n = min(len(l.idle), mostGrouped-n)
		first.group = append(first.group, l.idle[:n]...)
		l.idle = slices.Delete(l.idle, 0, n)
	}
	if first.turn != nil {
		close(first.turn)
	}
}

// hurry lets j wait no longer for others to go with.
func (l *line) hurry(j *job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.idle, j)
	if at < 0 {
		return
	}
	l.idle = slices.Delete(l.idle, at, at+1)
	l.queued = append(l.queued, j)
	if !l.busy {
		l.next()
	}
}

func (l *line) remove(j *job) (found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	gone := func(o *job) bool {
		found = found || o == j
		return o == j
	}
	l.queued, l.idle = slices.DeleteFunc(l.queued, gone), slices.DeleteFunc(l.idle, gone)
	return found
}

// leave lets those who queued meanwhile write.
func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next()
}

// write does one change and commits it, together with those that wait for their turn as well. What do returns as an
// error undoes all of its change, and is returned; so do must leave nothing behind but rows, the ledger in t, and
// results that count only when write returned nil. It may run on the goroutine of another write, and twice: when one of a
// group fails that has written already, all of them are undone, and each is done again by itself.
//
// When the file fails under one of a group, all of them are undone and each has the error.
func (s *Store) write(ctx context.Context, do func(context.Context, *tx) error) error {
	return s.enter(ctx, &job{do: do, ctx: context.WithoutCancel(ctx)})
}

// writeIdly is write of what nobody waits for.
func (s *Store) writeIdly(ctx context.Context, do func(context.Context, *tx) error) error {
	return s.enter(ctx, &job{do: do, ctx: context.WithoutCancel(ctx), idle: s.leisure})
}

func (s *Store) enter(ctx context.Context, j *job) error {
	if err := s.line.enter(ctx, j); err != nil {
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
	// errCut is the error of those whose group was never finished, since what committed it panicked.
	errCut = errors.New("the write was cut short")
	// errApart is the error of a group in which one failed that had written already: none of it is committed.
	errApart = errors.New("each has to be written by itself")
)

// lead writes j's group, and tells the others of it.
func (s *Store) lead(j *job) {
	untold, failed := j.group, errCut
	defer func() {
		s.line.leave()
		for _, o := range untold {
			if failed != nil {
				o.err = failed
			}
			o.tell(j)
		}
	}()
	failed = s.writeGroup(j.ctx, j.group)
	if !errors.Is(failed, errApart) {
		return
	}
	for failed = errCut; len(untold) > 0; untold = untold[1:] {
		o := untold[0]
		o.err = s.writeGroup(o.ctx, untold[:1])
		o.tell(j)
	}
}

// tell lets whoever wanted j go on; the leader of its group does so by itself.
func (j *job) tell(leader *job) {
	if j != leader {
		close(j.turn)
	}
}

// writeGroup writes a group in one transaction. Its error is that of all of it, explained before the next may write, who
// must not do so once the file is known to be damaged.
func (s *Store) writeGroup(ctx context.Context, group []*job) error {
	return s.explain(ctx, s.use(ctx, func(conn *sql.Conn) error { return s.commitGroup(ctx, conn, group) }))
}

// turn runs do with the connection that writes, when it is its turn. What is done with it is not cut short.
func (s *Store) turn(ctx context.Context, do func(context.Context, *sql.Conn) error) error {
	j := &job{ctx: context.WithoutCancel(ctx)}
	if err := s.line.enter(ctx, j); err != nil {
		return err
	}
	defer s.line.leave()
	return s.explain(j.ctx, s.use(j.ctx, func(conn *sql.Conn) error { return do(j.ctx, conn) }))
}

// use runs do with the connection that writes, for whoever has its turn.
func (s *Store) use(ctx context.Context, do func(*sql.Conn) error) error {
	if damage := s.damage.Load(); damage != nil {
		return damage
	}
	if err := s.placed(); err != nil {
		return err
	}
	conn, err := s.writer.Conn(ctx)
	if err != nil {
		return s.fault(ctx, err)
	}
	defer func() { _ = conn.Close() }() // only gives it back
	return do(conn)
}

// commitGroup writes a group in one transaction. Its error is that of all of it, or of the only one in it.
//
// The ledger in memory is that of the last commit. After a failure it is read again, since a commit that failed may
// have left either.
func (s *Store) commitGroup(ctx context.Context, conn *sql.Conn, group []*job) error {
	t := &tx{conn: conn, ledger: s.ledger, rows: s.rows}
	stale := s.stale
	s.stale = true
	ended, undone := false, false // undone: on purpose
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
				undone = errors.Is(err, errApart) || len(group) == 1 && !broke(err)
				return err
			}
		}
		if t.marks {
			if err := s.keepsMark(ctx, t); err != nil {
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

// within does j in a transaction, of its own or with others. There, what it is refused is its own affair as long as it has
// written nothing. The error is that of the whole transaction.
func (j *job) within(t *tx, alone bool) error {
	before, wrote := t.ledger, t.wrote
	t.wrote, j.panic = false, nil
	j.err = j.run(t)
	var failed sqlite3.Error
	switch {
	case j.err == nil:
	case alone, errors.As(j.err, &failed) && failed.Code != sqlite3.ErrConstraint: // then nobody knows what is left of it
		return j.err
	case t.wrote:
		return errApart
	default:
		t.ledger = before
	}
	t.wrote = t.wrote || wrote
	return nil
}

// run does j. What panics in it ends whoever wanted it, and not the write that it shares a transaction with.
func (j *job) run(t *tx) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			j.panic, err = fmt.Sprintf("%v\n%s", fault, debug.Stack()), errCut
		}
	}()
	return j.do(j.ctx, t)
}

// Passed is called, if it is set, of each commit when it is about to be made ("group.before") and when it has been made and
// none of those who wait for it was answered ("group.after"), with the number of writes that it holds. Only tests set
// it, before a store is opened.
var Passed func(point string, writes int)

func passed(point string, writes int) {
	if Passed != nil {
		Passed(point, writes)
	}
}
