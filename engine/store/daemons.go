package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daycared/daycared/permissions"
)

// Several daemons may use one PostgreSQL database at the same time. Each has a row in the table daemons, which every write renews. What
// only one of them may do is a lease, which one holds until it stops or is silent for too long. Who wakes late finds no row any more
// and writes nothing.

const (
	joinDaemons = `INSERT INTO daemons (id, place, until, wrote) VALUES ($1, $2, clock_timestamp() + $3 * INTERVAL '1 ms', 0) ` +
		`RETURNING clock_timestamp(), EXISTS (SELECT FROM daemons)` // before this one

	renewDaemon = `WITH old AS (DELETE FROM changes WHERE version < (SELECT version FROM writer) - ` + keptChanges + `) ` +
		`UPDATE daemons SET until = clock_timestamp() + $2 * INTERVAL '1 ms' WHERE id = $1 RETURNING clock_timestamp()`

	writeInboxes = `UPDATE daemons SET inboxes = $2 WHERE id = $1`

	writeSettings = `UPDATE daemons SET settings = $2 WHERE id = $1`

	leaveDaemons = `WITH own AS (DELETE FROM leases WHERE holder = $1) DELETE FROM daemons WHERE id = $1`

	removeSilent = `DELETE FROM daemons WHERE (until <= clock_timestamp() OR ` + aheadText + ` = $2) AND id <> $1`

	aheadText = `'ahead ' || id || ' ' || until`

	countOthers = `SELECT COUNT(*) FROM daemons WHERE id <> $1 AND until > clock_timestamp()`
)

// join adds this opening to the daemons that use the database.
func (s *Store) join(ctx context.Context) error {
	at, now, others, sent := s.server, time.Time{}, false, time.Now()
	if err := s.writer.QueryRowContext(ctx, joinDaemons, at.id, at.place, heldFor.Milliseconds()).Scan(&now, &others); err != nil {
		return err
	}
	at.noteTime(now, sent)
	at.leased.since = sent
	if at.others.Store(others); others { // they are to know of this one
		if _, err := s.writer.ExecContext(ctx, notifyOthers, at.id); err != nil {
			return err
		}
	}
	at.workers.Go(func() { s.keepRenewing(at.closing) })
	return nil
}

// NoteSettings stores a hash of this daemon's settings for the other daemons on the same database, and reports whether another one has
// different settings. With a file there is no other.
func (s *Store) NoteSettings(ctx context.Context, hash string) (differ bool, err error) {
	if s.server == nil {
		return false, nil
	}
	if _, err := s.writer.ExecContext(ctx, writeSettings, s.server.id, hash); err != nil {
		return false, s.explain(ctx, err)
	}
	found, err := s.Server(ctx)
	return found.Differ(), err
}

// NoteInboxes says to the other daemons who has an inbox open at this one. It must not be called for a store in a file.
func (s *Store) NoteInboxes(ctx context.Context, names []string) error {
	_, err := s.readers.ExecContext(ctx, writeInboxes, s.server.id, strings.Join(names, "\n"))
	if err == nil {
		_, err = s.readers.ExecContext(ctx, notifyOthers, s.server.id)
	}
	return s.explain(ctx, err)
}

// HasInbox reports whether a person has an inbox open at another daemon, as [Store.Follow] saw last; with a file nobody has.
func (s *Store) HasInbox(name string) bool {
	if s.server == nil {
		return false
	}
	all := s.server.inboxes.Load()
	return all != nil && slices.Contains(strings.Split(*all, "\n"), name)
}

// runAlone refuses what may not happen while other daemons use the database.
func (s *Store) runAlone(ctx context.Context) error {
	others := 0
	if err := s.writer.QueryRowContext(ctx, countOthers, s.server.id).Scan(&others); err != nil {
		return s.fault(ctx, err)
	}
	if others > 0 {
		return &Error{
			What:   fmt.Sprintf("%d other daemons use the %s", others, s.server.name),
			Advice: "stop them first; one that was killed counts as running for another " + heldFor.String(),
		}
	}
	return nil
}

// keepRenewing renews this daemon's membership regularly, until ctx ends.
func (s *Store) keepRenewing(ctx context.Context) {
	for pause(ctx, renewEvery) == nil {
		if err := s.renewMembership(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("say to PostgreSQL that this daemon runs, retrying", "err", err)
		}
	}
}

// renewMembership records that this daemon runs.
func (s *Store) renewMembership(ctx context.Context) error {
	return s.turn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		now, sent := time.Time{}, time.Now()
		err := conn.QueryRowContext(ctx, renewDaemon, s.server.id, heldFor.Milliseconds()).Scan(&now)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return errReplaced
		case err == nil:
			s.server.noteTime(now, sent)
		}
		return err
	})
}

// CheckLeases returns nil while no other daemon can have what [Store.AcquireLease] returned for. Where that is not certain, because this
// process was halted, say, it asks the database.
func (s *Store) CheckLeases(ctx context.Context) error {
	if s.server == nil || time.Since(s.server.clock.Load().sent) < 2*renewEvery {
		return nil
	}
	return s.renewMembership(ctx)
}

// leave removes this opening from the daemons, and releases its leases at once.
func (s *Store) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), idleWait)
	defer cancel()
	for _, text := range []string{leaveDaemons, notifyOthers} {
		_, err := s.writer.ExecContext(ctx, text, s.server.id)
		if isGone(err) { // once more, on another connection
			_, err = s.writer.ExecContext(ctx, text, s.server.id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Now is the time by the clock of the database, so that daemons on machines whose clocks differ agree; with a file, that of [Options].
func (s *Store) Now() time.Time {
	if s.server == nil {
		return s.now()
	}
	last := s.server.clock.Load()
	return last.said.Add(time.Since(last.at))
}

// leaseRetry is how often a daemon checks whether the lease of another one is free.
const leaseRetry = 500 * time.Millisecond

const (
	// readHolder is how the holder of a lease stands: another daemon has it, was silent for too long, or there is none; or the clock was set
	// back since that daemon wrote, and its text changes once it writes again.
	readHolder = `SELECT COALESCE((SELECT CASE WHEN until > clock_timestamp() + $3 * INTERVAL '1 ms' THEN ` + aheadText +
		` WHEN until > clock_timestamp() THEN 'runs' ELSE 'silent' END ` +
		`FROM leases JOIN daemons ON id = holder WHERE name = $1 AND id <> $2), 'none')`

	endLeases = `DELETE FROM leases WHERE holder NOT IN (SELECT id FROM daemons)`

	takeLease = `INSERT INTO leases (name, holder) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET holder = excluded.holder ` +
		`WHERE leases.holder = excluded.holder`
)

// AcquireLease returns once this daemon alone may do what has that name, which is then so until the store is closed or of no use any more.
// With a file it is so at once. The error is that of ctx.
func (s *Store) AcquireLease(ctx context.Context, name string) error {
	if s.server == nil {
		return nil
	}
	c := contact{since: time.Now()}
	for waited := false; ; waited = true {
		if taken, err := s.tryLease(ctx, name, &c); err == nil && taken {
			s.log.Info("lease taken", "lease", name, "waited", waited)
			return nil
		}
		if err := pause(ctx, leaseRetry); err != nil {
			return err
		}
	}
}

// tryLease reports whether this daemon has a lease now, which it takes if no other one has it or that one was silent for too long.
func (s *Store) tryLease(ctx context.Context, name string, c *contact) (taken bool, err error) {
	holder := ""
	err = s.readers.QueryRowContext(ctx, readHolder, name, s.server.id, heldFor.Milliseconds()).Scan(&holder)
	if strings.HasPrefix(holder, "ahead ") && holder != c.ahead {
		c.ahead, c.since = holder, time.Now()
	}
	switch {
	case err != nil:
		c.since = time.Now()
		return false, err
	case holder == "runs", holder != "none" && time.Since(c.since) < heldFor:
		return false, nil
	}
	return writing(ctx, s, func(ctx context.Context, t *tx) (bool, error) {
		if holder != "none" {
			t.exec(ctx, removeSilent, s.server.id, holder)
		}
		t.exec(ctx, endLeases)
		return t.affected(ctx, takeLease, name, s.server.id) > 0, nil
	})
}

// followInterval is how often a daemon checks whether others have written, besides being notified.
const followInterval = time.Second

// readVersions is the version, whether there are others, and the people who have inboxes open at them.
const readVersions = `SELECT version, (SELECT COUNT(*) > 1 FROM daemons), (SELECT COALESCE(STRING_AGG(inboxes, E'\n'), '') FROM daemons ` +
	`WHERE id <> $1 AND inboxes <> '' AND until > clock_timestamp()) FROM writer`

// Follow calls told, one call at a time, with what other daemons on the same database have appended to the audit, in order, until ctx
// ends; with an empty list if they wrote something else. What told reads is at least as new. After an error it is told the same again.
// With a file it only waits for ctx.
func (s *Store) Follow(ctx context.Context, told func(context.Context, []permissions.Entry) error) error {
	if s.server == nil {
		<-ctx.Done()
		return nil
	}
	hint := s.server.look
	s.server.workers.Go(func() { s.listen(ctx, hint) })
	for ctx.Err() == nil {
		if err := s.followOnce(ctx, told); err != nil && ctx.Err() == nil {
			s.log.Warn("read what other daemons wrote, retrying", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-hint:
		case <-time.After(followInterval):
		}
	}
	return nil
}

// followOnce passes on what other daemons have written since the last time.
func (s *Store) followOnce(ctx context.Context, told func(context.Context, []permissions.Entry) error) error {
	for at, began := s.server, time.Now(); ; {
		var list []permissions.Entry
		known := at.known.Load()
		version := known
		s.rows.followNews(true) // before the snapshot
		err := s.read(ctx, func(from source) (err error) {
			version, list, err = s.readNews(ctx, from, known)
			return err
		})
		s.rows.followNews(false)
		if err != nil {
			return err
		}
		if version != known {
			s.halt.Store(nil)
			s.appended.wakeAll()
			if err := s.checkFollows(list); err != nil {
				return err
			}
			if err := told(ctx, at.entries.ofOthers(list)); err != nil {
				return err
			}
			s.noteKnown(list)
		}
		if len(list) == followPage {
			continue
		}
		if version != known {
			at.known.Store(version)
		}
		at.noteUpToDate(began)
		return nil
	}
}

// readNews reads the version and, if it is not the known one, the next entries, on one snapshot. What is cached is as of that or later
// then.
func (s *Store) readNews(ctx context.Context, from source, known int64) (version int64, list []permissions.Entry, err error) {
	at, others, inboxes := s.server, false, ""
	if err := from.QueryRowContext(ctx, readVersions, at.id).Scan(&version, &others, &inboxes); err != nil {
		return 0, nil, err
	}
	at.others.Store(others)
	at.inboxes.Store(&inboxes)
	if version == known {
		return version, nil, nil
	}
	at.newest.Store(version)
	ids, err := s.forgetChanged(ctx, from, known, version+1, version-known)
	if err != nil {
		return 0, nil, err
	}
	at.forgot.Store(version)
	reachPoint("news", len(ids))
	if err := s.preload(ctx, from, ids, version); err != nil {
		s.log.Debug("read what other daemons changed: it is read when needed", "err", err)
	}
	list, err = s.auditAfter(ctx, from, s.chain, at.entries.since(), followPage)
	n := len(list)
	if err != nil || n == 0 {
		return version, nil, err
	}
	bad := func(e permissions.Entry) bool {
		return e.Type == permissions.AuditPruned || e.Hash == (permissions.Digest{})
	}
	if list[n-1].Seq-list[0].Seq == int64(n-1) && !slices.ContainsFunc(list, bad) {
		s.tail.add(list)
	} else { // it has no gaps, nothing unreadable, and nothing that was pruned
		s.tail.drop()
	}
	return version, list, nil
}

// maxPreloaded is how many requests that others changed are read at once. Where it was more, they are read when needed.
const maxPreloaded = 500

// preload caches requests that others changed, with their copies, as the snapshot of a version has them.
func (s *Store) preload(ctx context.Context, from source, ids []permissions.ID, version int64) error {
	slices.Sort(ids)
	ids = s.rows.without(slices.Compact(ids))
	if len(ids) == 0 || len(ids) > maxPreloaded {
		return nil
	}
	found, _, err := s.many(ctx, from, readShort, list[permissions.ID]{&ids}, maxText)
	if err != nil || len(found) == 0 {
		return err
	}
	ids = ids[:0]
	for _, r := range found {
		ids = append(ids, r.ID)
	}
	copies, err := s.copies(ctx, from, "a copy", readCopiesOfMany, list[permissions.ID]{&ids})
	if err != nil {
		return err
	}
	of := map[permissions.ID][]permissions.Copy{}
	for _, c := range copies {
		of[c.Request] = append(of[c.Request], c)
	}
	for _, r := range found {
		s.rows.putNews(r, of[r.ID], version)
	}
	return nil
}

// noteUpToDate records that this daemon knows all that others had written by then.
func (at *postgres) noteUpToDate(then time.Time) {
	at.looked.Store(&then)
	at.upToDate.wakeAll()
}

// checkFollows returns nil if the first entry of a list follows the one that was read last, where that is the one before.
func (s *Store) checkFollows(list []permissions.Entry) error {
	if last := s.server.entries.newest(head{}); len(list) > 0 && last.seq > 0 && list[0].Seq == last.seq+1 && list[0].Prev != last.hash {
		return s.tamperedError(list[0].Seq)
	}
	return nil
}

// noteKnown records that this process knows the entries of a list. The mark covers what others revoked, too.
func (s *Store) noteKnown(list []permissions.Entry) {
	if len(list) == 0 {
		return
	}
	last := head{list[len(list)-1].Seq, list[len(list)-1].Hash}
	s.server.entries.pass(last)
	for _, e := range list {
		if e.Type == permissions.AllStopped || e.Type == permissions.AllResumed {
			s.server.stoppedByOther.Store(e.Type == permissions.AllStopped)
		}
	}
	if slices.ContainsFunc(list, func(e permissions.Entry) bool { return slices.Contains(closingTypes, e.Type) }) {
		s.noteMark(last)
	}
}

// Behind is how long ago this daemon knew all that others had written to its database; 0 with a file.
func (s *Store) Behind() time.Duration {
	if s.server == nil {
		return 0
	}
	if last := s.server.looked.Load(); last != nil {
		return time.Since(*last)
	}
	return time.Since(s.server.clock.Load().at)
}

const (
	// mostBehind is how long ago a daemon may have known what others wrote when it grants something.
	mostBehind = 3 * followInterval / 2
	// catchUpTime is how long it is waited for that.
	catchUpTime = 5 * time.Second
)

// CatchUp returns at once if this daemon knew a moment ago what others had written to its database, as always with a file. One that was
// stopped or cut off since, or has found that they closed something, waits until [Store.Follow] has passed that on, for seconds at most;
// the error matches [permissions.ErrBroken].
func (s *Store) CatchUp(ctx context.Context) error {
	if s.server == nil || s.server.looked.Load() == nil || s.Behind() <= mostBehind && s.server.checkClosed() == nil {
		return nil // a daemon that has just started has read all
	}
	called := time.Now()
	signal(s.server.look)
	limited, done := context.WithTimeout(ctx, catchUpTime)
	defer done()
	for {
		next := s.server.upToDate.wait()
		if last := s.server.looked.Load(); last != nil && last.After(called) {
			return nil
		}
		select {
		case <-next:
		case <-limited.Done():
			return &Error{
				What:   "the " + s.server.name + " does not answer, or this daemon does not know yet what other daemons have decided",
				Advice: "nothing needs a restart", Err: limited.Err(), away: true,
			}
		}
	}
}

// followPage is how many entries are read at a time.
const followPage = 500

// listen has hint notified when another daemon says that it wrote, until ctx ends.
func (s *Store) listen(ctx context.Context, hint chan<- struct{}) {
	for ctx.Err() == nil {
		if err := s.listenOnce(ctx, hint); ctx.Err() == nil {
			s.log.Debug("listen to other daemons, retrying", "err", err)
			_ = pause(ctx, followInterval) // the loop checks ctx
		}
	}
}

func (s *Store) listenOnce(ctx context.Context, hint chan<- struct{}) error {
	config := s.server.config.Copy()
	config.DialFunc = (&net.Dialer{}).DialContext // this connection may be silent
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // only read
	if _, err := conn.Exec(ctx, "LISTEN "+channelName); err != nil {
		return err
	}
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if n.Payload != s.server.id {
			signal(hint)
		}
	}
}

// pause waits for d, or returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
