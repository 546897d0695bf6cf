package store

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

// catchUp refreshes the state in memory after a commit that failed but may have happened, which it announces, and after
// a write by another process. It fails unless the audit continues from one of these commits.
func (s *Store) catchUp(ctx context.Context, t *tx, version int64, stale bool) error {
	if !stale && version == s.version {
		return nil
	}
	if s.server == nil && s.started && version != s.version { // an added trigger, for example, could undo this write
		steps, err := fs.Sub(migrations, "migrations")
		if err != nil {
			return err
		}
		if err := s.checkSchema(ctx, t, steps, math.MaxInt64); err != nil {
			return err
		}
	}
	if stale || s.server == nil {
		s.forget()
		if s.server != nil {
			s.server.noteClosed(s.server.began - 1)
		}
	} else {
		after := s.server.dropped()
		if _, err := s.forgetChanged(ctx, t, after, math.MaxInt64, s.server.began-after-1); err != nil {
			return err
		}
	}
	if err := s.readLedger(ctx, t); err != nil {
		return err
	}
	known := s.ledger.head
	if s.server != nil {
		known = s.server.entries.newest(known)
	}
	if s.started && t.head != known && (t.head != s.tried || known != s.ledger.head) {
		if err := s.checkContinues(ctx, t, known); err != nil {
			return err
		}
	}
	if t.seq != s.ledger.seq {
		s.noteAppended(false)
	}
	s.ledger, s.version, s.tried = t.ledger, version, t.head
	return nil
}

const (
	addChanges  = `INSERT INTO changes (version, what) VALUES ($1, $2)`
	readChanges = `SELECT version, what FROM changes WHERE version > $1 AND version < $2`
	// maxChanges is how many commits of others are looked through, and keptChanges how many are kept.
	maxChanges, keptChanges = 1000, `5000`
)

// prefetchQueries returns the queries that a group of writes makes because other daemons have written, so that they cost one round trip.
// Where that is not known yet, each costs its own.
func (s *Store) prefetchQueries(group []*writeJob) (all []statement) {
	if s.server == nil || !s.started || !s.server.isOutdated() {
		return nil
	}
	query := func(text string, args ...any) {
		if args, err := driverArgs(args); err == nil {
			all = append(all, statement{text: text, args: args, prefetch: true})
		}
	}
	query(readChanges, s.server.dropped(), math.MaxInt64)
	query(countPending)
	query(readMeta)
	query(readBelow, maxSeq, 1)
	query(readVotesOf, list[int64]{&[]int64{s.ledger.newest}})
	query(countKeys)
	query(newestEntry, s.chain)
	query(readEntryHash, s.chain, s.server.entries.newest(s.ledger.head).seq)
	for _, j := range group[:min(len(group), maxPrefetched)] {
		if _, cached := s.rows.get(j.of); j.of != "" && !cached {
			query(readRequest, j.of)
		}
	}
	return all
}

// maxPrefetched is the number of writes of a group whose requests are prefetched.
const maxPrefetched = 32

// noted is what the commit of a version changed of what daemons have in memory.
type noted struct {
	version int64
	what    []string
}

// forgetChanged drops from memory what the commits between two versions changed, of which there are so many, or all of it if that is not
// known. It returns the requests among it.
func (s *Store) forgetChanged(ctx context.Context, from source, after, before, between int64) (ids []permissions.ID, err error) {
	var all []noted
	if between <= maxChanges {
		fields := func(c *noted) []any { return []any{&c.version, list[string]{&c.what}} }
		all, err = collect(ctx, from, "", fields, readChanges, after, before)
	}
	unknown := int64(len(all)) < between
	if unknown {
		s.forget()
	}
	for _, c := range all {
		ids = append(ids, s.memory.forgetChanged(c.version, c.what)...)
	}
	if unknown || slices.ContainsFunc(all, func(c noted) bool { return slices.Contains(c.what, ofClosings) }) {
		s.server.noteClosed(after + between)
	}
	return ids, err
}

// checkContinues returns nil if the audit goes on from the newest entry that this process knows, which only other daemons on the same
// server may do.
func (s *Store) checkContinues(ctx context.Context, t *tx, known head) error {
	if t.seq <= known.seq { // the next start must notice the loss
		s.noteMark(known)
	}
	if s.server == nil || t.seq <= known.seq {
		return s.tamperedError(max(t.seq, known.seq))
	}
	return s.checkHasMark(ctx, t, mark{Chain: s.chain, Seq: known.seq, Hash: known.hash.String()})
}

// readLedger reads the ledger from the rows.
func (s *Store) readLedger(ctx context.Context, t *tx) error {
	if err := t.QueryRowContext(ctx, countPending).Scan(&t.pending); err != nil {
		return fmt.Errorf("count pending requests: %w", err)
	}
	own, err := readIdentity(ctx, t)
	if err != nil {
		return fmt.Errorf("read who stopped everything: %w", unreadable("what the store says of itself", err))
	}
	if s.from == s.seals && !own.hasValidSeal(s.from) { // where the key changes, findKey has checked
		return unsealed("who stopped everything")
	}
	if s.server != nil && s.started && !own.restoredAt.Equal(s.restoredAt) { // numbers and codes go on otherwise
		return errNewLife
	}
	if t.stopped = own.stoppedBy; t.stopped == "" && (s.ledger.stopped != "" || s.server != nil && s.server.stoppedByOther.Load()) {
		if t.stopped, _, err = s.auditedStop(ctx, t); err != nil {
			return err
		}
	}
	version, err := s.sealsBefore(ctx, t, own)
	if err != nil {
		return err
	}
	if t.newest, err = s.newest(ctx, t, version, own.above); err != nil {
		return fmt.Errorf("read the newest request: %w", err)
	}
	t.head, err = readHead(ctx, t, s.chain)
	return err
}

const readStops = `SELECT ` + entryColumns + gateEntries + ` AND audit.request = '') CROSS JOIN audit ON audit.key = k ` +
	`WHERE audit.chain = $1 AND audit.type IN ('ALL_STOPPED', 'ALL_RESUMED') ORDER BY k DESC LIMIT 1`

// auditedStop is who stopped everything according to the audit, for a row of before that somebody put back.
func (s *Store) auditedStop(ctx context.Context, from source) (by string, at time.Time, err error) {
	found, err := collect(ctx, from, "an entry", entryFields, readStops, s.chain)
	if err != nil || len(found) == 0 || found[0].Type == permissions.AllResumed {
		return "", time.Time{}, err
	}
	s.log.Error("stop removed behind daycared's back: it holds", "by", found[0].Actor)
	return cmp.Or(found[0].Actor, stoppedByNobody), found[0].At, nil
}

// noteAppended wakes who waits for entries, at once if those are cached without a gap; else [Store.Follow], which runs, closes that first.
func (s *Store) noteAppended(joined bool) {
	if joined || s.server == nil || s.server.looked.Load() == nil {
		s.appended.wakeAll()
		return
	}
	signal(s.server.look)
}

// noteHalt publishes the stop, so that callers are refused without waiting for their turn.
func (s *Store) noteHalt() {
	by := s.ledger.stopped
	switch known := s.halt.Load(); {
	case by == "" || s.stale || s.server != nil && s.server.isOutdated():
		s.halt.Store(nil)
	case known == nil || *known != by:
		s.halt.Store(&by)
	}
}

// checkMark returns nil if the audit still has the mark's entry, so that the mark may be replaced.
func (s *Store) checkMark(ctx context.Context, from source) error {
	s.marking.Lock()
	m := s.marked
	s.marking.Unlock()
	return s.checkHasMark(ctx, from, m)
}

func (s *Store) checkHasMark(ctx context.Context, from source, m mark) error {
	has, err := hasEntry(ctx, from, &m)
	if err == nil && !has {
		err = s.tamperedError(m.Seq)
	}
	return err
}

// tamperedError is the error of a store whose audit another program wrote while it was open. It is not written any more.
func (s *Store) tamperedError(seq int64) error {
	restores := restoresFile
	if s.server != nil {
		restores = restoresServer
	}
	e := &Error{
		What:   fmt.Sprintf("the audit was changed behind daycared's back: entry %d is missing or another", seq),
		Advice: "stop the daemon and restore a backup: " + restores,
	}
	if s.damage.CompareAndSwap(nil, e) {
		s.log.Error("audit modified: store is neither written nor grants anything", "path", s.path, "err", e)
	}
	return s.damage.Load()
}

// noteMark writes the mark of a store that has reached h. If that fails, the old one stays, which only claims less.
func (s *Store) noteMark(h head) {
	s.marking.Lock()
	defer s.marking.Unlock()
	logged, _ := fileSize(s.path + logSuffix) // none with a server. If it cannot be examined, the mark claims less
	m := mark{Chain: s.chain, Seq: h.seq, Hash: h.hash.String(), Opens: s.opens, InUse: !s.closing && logged > 0}
	if !s.started || m == s.marked || h.seq < s.marked.Seq || s.checkPaths() != nil {
		return
	}
	err := writeMark(s.path, m)
	if err != nil {
		if !s.unmarked {
			s.log.Warn("write the mark beside the store, retrying", "path", markName(s.path), "err", err)
		}
		s.unmarked = true
		return
	}
	s.marked, s.unmarked = m, false
}

// noteClosing writes to the mark that the log is about to be removed or emptied. It reports success: otherwise the log has to stay.
func (s *Store) noteClosing() bool {
	s.marking.Lock()
	defer s.marking.Unlock()
	if s.server != nil { // it has no log
		return true
	}
	at, err := newPlacedFile(s.path)
	if err != nil || at != s.files[0] { // the mark belongs to another file now
		return true
	}
	m, _, err := readMark(s.path)
	if err != nil || m == nil || !m.InUse {
		return true
	}
	m.InUse = false
	err = writeMark(s.path, *m)
	if err != nil {
		s.log.Warn("write the mark beside the store; its log stays", "path", markName(s.path), "err", err)
	}
	return err == nil
}
