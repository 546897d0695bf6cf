package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/daycared/daycared/permissions"
)

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

// execute runs one statement in a write of its own.
func (s *Store) execute(ctx context.Context, text string, args ...any) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		t.exec(ctx, text, args...)
		return nil
	})
}

// writing is [Store.write] of one value, which is zero after an error.
func writing[T any](ctx context.Context, s *Store, do func(context.Context, *tx) (T, error)) (v T, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) (err error) {
		v, err = do(ctx, t)
		return err
	})
	if err != nil {
		return *new(T), err
	}
	return v, nil
}

// Record appends an audit record that belongs to no request change.
func (s *Store) Record(ctx context.Context, r permissions.Record) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		s.append(ctx, t, r)
		return nil
	})
}

func (s *Store) enter(ctx context.Context, j *writeJob) error {
	if err := s.writes.enter(ctx, j); errors.Is(err, context.DeadlineExceeded) {
		return &Error{What: "the store has not answered in time", Advice: "nothing needs a restart", Err: err, away: true}
	} else if err != nil {
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

// lead writes j's group and wakes its members.
func (s *Store) lead(j *writeJob) {
	untold, failed := j.group, errWriteAborted
	defer func() {
		s.writes.leave()
		for _, o := range untold {
			if failed != nil {
				o.err = failed
			}
			o.signalDone(j)
		}
	}()
	failed = s.writeGroup(j.ctx, j.group)
	if !errors.Is(failed, errRunAlone) {
		return
	}
	for failed = errWriteAborted; len(untold) > 0; untold = untold[1:] {
		o := untold[0]
		o.err = s.writeGroup(o.ctx, untold[:1])
		o.signalDone(j)
	}
}

// writeGroup writes a group in one transaction. An error concerns all of it. It is explained before the next group may
// write, because a damaged file must not be written again.
func (s *Store) writeGroup(ctx context.Context, group []*writeJob) error {
	err := s.use(ctx, func(conn *sql.Conn) error { return s.commitGroup(ctx, conn, group) })
	if s.server != nil {
		err = s.writeAgain(ctx, group, err)
	}
	return s.explain(ctx, err)
}

// retryFor is how long a write is tried again when PostgreSQL does not answer.
const retryFor = 30 * time.Second

// writeAgain writes a group again as long as PostgreSQL does not answer. What was committed although the answer was lost is not
// written twice.
func (s *Store) writeAgain(ctx context.Context, group []*writeJob, err error) error {
	wait := 20 * time.Millisecond
	if isGone(err) {
		s.log.Warn("no answer from PostgreSQL, retrying", "database", s.server.name, "err", err, "for", retryFor)
	}
	for until := time.Now().Add(retryFor); isGone(err) && time.Now().Before(until); wait = min(2*wait, time.Second) {
		select {
		case <-s.server.closing.Done():
			return err
		case <-time.After(wait):
		}
		done := false
		failed := s.use(ctx, func(conn *sql.Conn) (err error) {
			if s.server.indeterminate != 0 {
				done, err = s.server.committed(ctx, conn)
			}
			return err
		})
		if failed != nil {
			err = failed
			continue
		}
		if done {
			return nil
		}
		err = s.use(ctx, func(conn *sql.Conn) error { return s.commitGroup(ctx, conn, group) })
	}
	return err
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
		return err
	}
	defer func() { _ = conn.Close() }() // only returns it to the pool
	return do(conn)
}

// transact runs do in a transaction beside which no other one writes. do is given what differs from the last time if another process
// has written since. On a server, the queries ahead go with the beginning.
func (s *Store) transact(ctx context.Context, t *tx, ahead []statement, do func(version int64) error) (err error) {
	conn, committed := t.conn, false
	t.pipelined = s.server != nil
	defer func() {
		if !committed { // also if do panics; SQLite may have rolled back itself, which is fine
			_, _ = conn.ExecContext(ctx, "ROLLBACK")
		}
	}()
	version, err := s.beginWrite(ctx, conn, ahead)
	if err == nil {
		err = do(version)
	}
	if err != nil {
		return err
	}
	if !t.pipelined {
		t.rows.begin(0)
		_, err = conn.ExecContext(ctx, "COMMIT")
	} else {
		t.rows.begin(s.server.began)
		end := []statement{{text: "COMMIT"}}
		if s.server.hasOthers() {
			end = append(end, statement{text: notifyOthers, args: []any{s.server.id}, hint: true})
		}
		err = t.send(ctx, end...)
	}
	committed = err == nil
	if s.server != nil {
		s.server.ended(committed)
	}
	return err
}

// beginWrite begins a write transaction.
func (s *Store) beginWrite(ctx context.Context, conn *sql.Conn, ahead []statement) (version int64, err error) {
	if s.server != nil {
		return s.server.begin(ctx, conn, s.chain, s.ledger.hash, ahead)
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return 0, err
	}
	err = conn.QueryRowContext(ctx, readVersion).Scan(&version)
	return version, err
}

// readVersion changes with other connections' commits.
const readVersion = `PRAGMA data_version`

// commitGroup writes a group in one transaction. The error concerns all of it, or its only job.
//
// The ledger in memory is that of the last commit. After a failed commit either state may be on the disk, so it is read again.
func (s *Store) commitGroup(ctx context.Context, conn *sql.Conn, group []*writeJob) error {
	t := &tx{conn: conn, ledger: s.ledger, rows: changes{rows: s.rows}}
	stale := s.stale
	s.stale = true
	undone := false // rolled back on purpose
	noted := false  // the entries as those of this process
	err := s.transact(ctx, t, s.prefetchQueries(group), func(version int64) error {
		if err := s.catchUp(ctx, t, version, stale); err != nil {
			return err
		}
		first := t.seq
		for _, j := range group {
			if err := j.within(t, len(group) == 1); err != nil {
				undone = errors.Is(err, errRunAlone) || len(group) == 1 && !isDatabaseError(err)
				return err
			}
		}
		if t.marks {
			if err := s.checkMark(ctx, t); err != nil {
				return err
			}
		}
		if s.server.hasOthers() {
			what := t.changes()
			t.err = nil // that of a write which was refused alone
			t.exec(ctx, addChanges, s.server.began, list[string]{&what})
		}
		reachPoint("group.before", len(group))
		s.tried = t.head
		if noted = s.server != nil; noted {
			s.server.entries.begin(first, t.seq)
		}
		return nil
	})
	if noted {
		s.server.entries.end(err == nil)
	}
	if serverFailed(err) && !isGone(err) && len(group) > 1 { // the statement of one of them may have failed
		err = errRunAlone
	}
	if err == nil {
		reachPoint("group.after", len(group))
		s.rows.commit(&t.rows)
		joined := s.tail.add(t.entries)
		if t.granted {
			s.liveGrants.drop()
		}
		if t.unheeded {
			s.withoutUnheeded.drop()
		}
		if t.seq != s.ledger.seq { // readers find the entries
			s.noteAppended(joined)
		}
		s.ledger = t.ledger
		if t.marks {
			s.noteMark(t.head)
		}
	}
	if s.stale = err != nil && !undone; s.stale {
		s.forget()
	}
	s.noteHalt()
	return err
}
