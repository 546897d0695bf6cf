package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/daycared/daycared/permissions"
)

// A store that is restored from a copy begins a new life: what was handed out, answered or revoked since the copy was
// made is missing. So that nothing old opens anything, codes get another key, numbers continue above a gap, grants,
// tokens and pairings are suspended, and unused approvals are revoked.

// lifeRecord is the store's record of its lives.
type lifeRecord struct {
	opens    int64
	marked   int64     // a mark was written in this life; 0: no
	answered string    // the mark behind which it went back
	began    time.Time // zero: the first life
	above    int64     // new requests get greater numbers
	copied   int64     // a copy by Backup or Restore: see isCopy
}

// The first three columns have no seal. An unreadable one is read so that the store counts as restored, or as nothing.
const readLife = `SELECT CASE WHEN typeof(opens) = 'integer' AND opens BETWEEN 0 AND 1 << 40 THEN opens ELSE 0 END, ` +
	`marked IS NOT FALSE, CASE typeof(answered) WHEN 'text' THEN answered ELSE '' END, ` +
	`restored_at, numbers_above, user_version FROM meta, pragma_user_version`

func lifeFields(l *lifeRecord) []any {
	return []any{&l.opens, &l.marked, &l.answered, instant{&l.began}, &l.above, &l.copied}
}

const noteMarked = `UPDATE meta SET marked = marked IS NOT FALSE OR $1, beat = beat + 1` // never the previous value

// start counts this opening, begins a new life if the store was restored, and writes the mark.
func (s *Store) start(ctx context.Context) error {
	m, text, err := readMark(s.path)
	if err != nil {
		return fmt.Errorf("read the mark beside the store: %w", err)
	}
	var l lifeRecord
	var renewed *renewal
	announced, reason := m != nil && m.Restoring, "" // the state before it was announced
	begin := func(ctx context.Context, t *tx) error {
		renewed = nil
		if err := t.QueryRowContext(ctx, readLife).Scan(exactFields(lifeFields(&l))...); err != nil {
			return unreadable("what the store knows of itself", err)
		}
		said, all, err := s.readGateHistory(ctx, t)
		if err := cmp.Or(err, s.sealPersons(ctx, t, said)); err != nil {
			return err
		}
		own, version, err := s.sealVersions(ctx, t)
		if err != nil {
			return err
		}
		why, err := s.restoreReason(ctx, t, l, m, text, said.restored)
		if why == "" && l.began.Before(said.restored.At) {
			why = "what it says of itself is from before it was restored"
		}
		switch {
		case err != nil:
		case why == "":
			l.opens++
			t.exec(ctx, `UPDATE meta SET opens = $1`, l.opens)
			s.updateSeals(ctx, t, version, own)
		case m != nil && !announced:
			reason = why
			return errUnannounced
		default:
			renewed, err = s.renew(ctx, t, &l, m, text, cmp.Or(reason, why), version)
		}
		if err != nil {
			return err
		}
		s.closeReopened(ctx, t, said)
		s.closeReopened(ctx, t, all)
		return nil
	}
	err = s.write(ctx, begin)
	if errors.Is(err, errUnannounced) {
		announced, m.InUse = true, false
		if said, is, failed := announceRestore(s.path, *m); failed == nil {
			m, text = said, is
		} else { // a crash before the log is moved would need another restore
			s.log.Warn("write the mark beside the store", "err", failed)
		}
		err = s.write(ctx, begin)
	}
	if err != nil {
		return err
	}
	s.restoredAt, s.above, s.from = l.began, l.above, s.seals
	if renewed != nil {
		m = nil // it is about an earlier life
		s.renewed(renewed)
	}
	return s.firstMark(ctx, l, m)
}

func (s *Store) renewed(renewed *renewal) {
	s.coder.Key = renewed.key
	s.log.Warn("store restored from a copy: unused approvals are revoked; grants, tokens and pairings are suspended, list them with: "+
		"daycared suspended; if a copy was put in place by hand, locks made since are lost: make them again",
		"why", renewed.why, "back_to", renewed.from, "next", renewed.next, "approvals_revoked", renewed.approvals,
		"grants_suspended", renewed.grants, "tokens_suspended", renewed.tokens, "pairings_suspended", renewed.pairings)
}

// errUnannounced ends an opening that is to begin a new life before anything is written: the mark has to announce it first.
var errUnannounced = errors.New("the mark does not announce a new life yet")

// firstMark writes the mark of this opening and records in the store that there is one.
func (s *Store) firstMark(ctx context.Context, l lifeRecord, before *mark) error {
	var h head
	whole := false
	err := s.turn(ctx, func(ctx context.Context, conn *sql.Conn) error {
		h = s.ledger.head
		if whole = s.server != nil; whole {
			return nil
		}
		var busy, logged, done int64
		err := conn.QueryRowContext(ctx, checkpointLog).Scan(&busy, &logged, &done)
		whole = err == nil && busy == 0 && logged == done
		if whole && s.noteClosing() {
			_, _ = conn.ExecContext(ctx, emptyLog) // else the log keeps its size and is overwritten from the start
		}
		return nil // the log continues, and the mark stays behind
	})
	if err != nil {
		return err
	}
	switch {
	case whole:
		s.opens = l.opens
	case before != nil && before.Chain == s.chain: // a reader may keep the count out of the main file
		s.opens = min(before.Opens, l.opens)
	}
	s.started = true
	if l.marked == 0 {
		s.noteMark(h)
	}
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		t.exec(ctx, noteMarked, !s.unmarked)
		return nil
	})
	if err != nil { // a missing mark is noticed only after the next start recorded it
		s.log.Error("record that the store has a mark", "err", err)
	}
	s.noteMark(h) // now that the log has content
	return nil
}

// checkpointLog moves the log into the main file as far as no reader needs it, without waiting.
const checkpointLog = `PRAGMA wal_checkpoint(PASSIVE)`

// emptyLog truncates a log whose content was moved.
const emptyLog = `PRAGMA wal_checkpoint(TRUNCATE)`

// restoreReason returns why the store counts as restored; empty if it does not. A mark that was answered already and could
// not be replaced since is no news, nor is one of a daemon for which another one on the same database has begun the new life.
func (s *Store) restoreReason(
	ctx context.Context, t *tx, l lifeRecord, m *mark, text string, restored permissions.Entry,
) (why string, err error) {
	switch {
	case s.newKey != "" && s.newKey != firstKey:
		return s.newKey, nil
	case l.copied == isCopy:
		return "it is a copy that daycared made", nil
	case text != "" && text == l.answered:
		return "", nil
	case m == nil && text == "" && s.server != nil: // another machine that joins
		return "", nil
	case m == nil && text == "" && l.marked != 0:
		return "the mark beside it is missing", nil
	case m == nil && l.marked != 0:
		return "the mark beside it cannot be read", nil
	case m == nil:
		return "", nil
	case m.Chain != s.chain:
		return "it is another store than the one that was here", nil
	case s.server != nil && isLeftBehind(m, restored):
		return "", nil
	case l.opens < m.Opens:
		return "it is an older copy", nil
	case m.Seq > t.seq:
		return "it is an older copy", nil
	case m.Restoring && m.InUse:
		return "its log was removed or emptied while it was in use", nil
	case m.Restoring:
		return "its restore was interrupted", nil
	}
	has, err := hasEntry(ctx, t, m)
	if err != nil || has {
		return "", err
	}
	return "its audit went another way", nil
}

// isLeftBehind reports whether a mark is of what a new life, of which the entry tells, has left behind.
func isLeftBehind(m *mark, restored permissions.Entry) bool {
	from, err := strconv.ParseInt(restored.Detail[backTo], 10, 64)
	return err == nil && from < m.Seq && m.Seq < restored.Seq
}

// restateClosed records in the audit of a new life what is closed although its own entries have it open or lack it, and
// the stop: the next restore and verify depend on these entries.
func (s *Store) restateClosed(ctx context.Context, t *tx, at time.Time) {
	own, err := readIdentity(ctx, t)
	t.fail(err)
	said, err := own.decodeRestrictions()
	t.fail(err)
	_, missing, err := s.missing(ctx, t, said.Gone)
	t.fail(err)
	all := said.Gone
	for _, row := range missing {
		all = append(all, row.closing())
	}
	if t.stopped != "" {
		all = append(all, permissions.Record{Type: permissions.AllStopped, Actor: t.stopped, Detail: map[string]string{}})
	}
	for _, r := range all {
		r.At, r.Detail[whyDetail] = at, "it was so in the store that was replaced"
		s.append(ctx, t, r)
	}
}

// restateLocks records in the audit of a new life which locks are in force: some may come from the replaced store.
func (s *Store) restateLocks(ctx context.Context, t *tx, at time.Time) {
	s.changeRestrictions(ctx, t, func() {
		reseal(ctx, s, t, lockGate, at)
		is, err := readRestrictions(ctx, t)
		t.fail(err)
		for _, l := range is.Locks {
			s.append(ctx, t, l.Record(l.Type(), l.By, l.Via, at))
		}
	})
}

// missing returns the grants, tokens and pairings that the entries, and further records, have open and that have no row, in order.
func (s *Store) missing(ctx context.Context, from source, more []permissions.Record) (c *comparison, all []latestEntry, err error) {
	c = newComparison()
	c.keeps = true
	found, err := collect(ctx, from, "", entryFields, readGateEntries, s.chain)
	for i := range found {
		if e := &found[i]; e.Hash == e.ComputeHash() {
			_ = c.addEntry(e, 0) // none is about a request
		}
	}
	for _, r := range more {
		c.addRowEntry(&permissions.Entry{Record: r})
	}
	err = cmp.Or(err, dropOpen(ctx, from, c, grantGate), dropOpen(ctx, from, c, tokenGate), dropOpen(ctx, from, c, pairingGate))
	for _, row := range slices.SortedFunc(maps.Values(c.gates), func(a, b latestEntry) int { return cmp.Compare(a.seq, b.seq) }) {
		if !row.closed && slices.Contains([]string{"grants", "tokens", "pairings"}, row.table) {
			all = append(all, row)
		}
	}
	return c, all, err
}

// closing is the record that closes a row of the audit.
func (row latestEntry) closing() permissions.Record {
	of := gateTables[slices.IndexFunc(gateTables, func(of gateTable) bool { return of.table == row.table })]
	r := permissions.Record{Type: of.closes[0], Request: row.entry.Request, Detail: map[string]string{}}
	for _, name := range append([]string{"name", "address"}, of.key...) {
		if value, known := row.entry.Detail[name]; known {
			r.Detail[name] = value
		}
	}
	return r
}

// dropOpen removes the open rows of a table from c.
func dropOpen[T any](ctx context.Context, from source, c *comparison, g gate[T]) error {
	found, err := collect(ctx, from, "", g.rowFields, g.open)
	for _, r := range found {
		delete(c.gates, c.row(g.table, g.key(&r.row)...))
	}
	return err
}

// Missing implements [engine.Store].
func (s *Store) Missing(ctx context.Context) (all []permissions.Record, err error) {
	return reading(ctx, s, func(from source) (all []permissions.Record, err error) {
		own, err := readIdentity(ctx, from)
		if err != nil {
			return nil, err
		}
		said, err := own.decodeRestrictions()
		if err != nil {
			return nil, err
		}
		c, missing, err := s.missing(ctx, from, nil)
		for _, row := range missing {
			if c.wouldRecordDeletion(row, said) {
				all = append(all, row.closing())
			}
		}
		return all, err
	})
}

// CloseMissing implements [engine.Store].
func (s *Store) CloseMissing(ctx context.Context, all []permissions.Record, by, via string, at time.Time) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		for _, r := range all {
			r.Actor, r.Via, r.At, r.Detail = by, via, at, maps.Clone(r.Detail)
			r.Detail[whyDetail] = "its row is missing"
			switch r.Type { // it may be back
			case permissions.GrantRevoked:
				t.exec(ctx, revokeGrant, micros(at), r.Detail["grant"])
			case permissions.TokenRevoked:
				t.exec(ctx, revokeToken, micros(at), r.Detail["id"])
			default:
				t.exec(ctx, deletePairing, r.Detail["person"], r.Detail["via"])
			}
			s.append(ctx, t, r)
		}
		return nil
	})
}

// renewal counts what the start of a new life did.
type renewal struct {
	openRows   // suspended now
	why        string
	key        [32]byte
	from, next int64 // the last entry before the gap and the first after it
	approvals  int   // revoked
}

const (
	writeLife = `UPDATE meta SET code_key = $1, opens = $2, marked = FALSE, answered = $3, restored_at = $4, numbers_above = $5`

	// A key could return an approval that was used since the copy was made.
	releaseApproved = `UPDATE requests SET key_live = FALSE WHERE state = 'approved' AND key_live ` +
		`AND NOT (caller >= 'agent:' AND caller < 'agent;')`

	// A row that was closed in the replaced store still has the seal of an open one.
	unsealGrants = `UPDATE grants SET mac = '' WHERE revoked_at > 0 OR ended_at > 0`
	unsealTokens = `UPDATE tokens SET mac = '' WHERE revoked_at > 0`

	// The code on each card changes, so cards are sent again.
	readCards = `SELECT ` + copyColumns + ` FROM copies WHERE failed = '' AND ref <> '' ` +
		`AND request IN (SELECT id FROM requests WHERE state = 'pending')`

	noteCards = noteShown + `WHERE state = 'pending' AND shown > 0 AND EXISTS ` +
		`(SELECT 1 FROM request_copies WHERE request = requests.number)`
)

// renew begins a new life.
func (s *Store) renew(ctx context.Context, t *tx, l *lifeRecord, m *mark, text, reason string, version int64) (*renewal, error) {
	now := s.now()
	n := &renewal{why: reason, from: t.seq}
	reached, detail := t.seq, map[string]string{backTo: strconv.FormatInt(t.seq, 10), whyDetail: reason, restated: "by rows"}
	if m != nil {
		reached = max(reached, m.Seq)
		l.opens = max(l.opens, m.Opens)
		detail[wasDetail] = strconv.FormatInt(m.Seq, 10) + ":" + m.Hash
	}
	if reached > maxSeq {
		return nil, damaged("the number of its newest audit entry", fmt.Errorf("%d", reached))
	}
	n.next = (reached/gap + 2) * gap
	_, _ = rand.Read(n.key[:]) // never fails
	l.opens, l.marked, l.began = l.opens+1, 0, moment(micros(now))
	l.above = max(l.above, t.newest) + n.next - t.seq
	t.exec(ctx, writeLife, n.key[:], l.opens, text, micros(now), l.above)
	t.exec(ctx, markOriginal)
	t.exec(ctx, unsealGrants)
	t.exec(ctx, unsealTokens)
	if s.newKey != "" || version == 0 {
		s.resealRequests(ctx, t, version)
	}
	if s.newKey != "" {
		if detail[keyID] = s.seals.id; s.from == nil {
			detail[unchecked] = "rows"
		}
	}
	n.openRows = s.resealGates(ctx, t, now, detail)
	s.sealSessionsAndCopies(ctx, t, version, true, detail)
	t.fail(sealIdentity(ctx, t, s.seals))
	t.seq = n.next - 1
	s.append(ctx, t, permissions.Record{Type: permissions.StoreRestored, At: now, Detail: detail})
	s.restateClosed(ctx, t, now)
	s.restateLocks(ctx, t, now)
	n.approvals = s.applyToEach(ctx, t, readUnused, permissions.Void{At: now})
	if s.newKey != "" && s.from == nil && (s.newKey != firstKey || l.copied == isCopy) { // else the store was never sealed
		const reason = "the audit key that it was sealed with is not here, so nobody can check what the store says of it: ask again"
		if ended := s.applyToEach(ctx, t, readUnanswered, permissions.GiveUp{Reason: reason, At: now}); ended > 0 {
			s.log.Error("requests that waited have ended as undeliverable: the audit key that they were sealed with is not here", "requests", ended)
		}
	}
	t.exec(ctx, releaseApproved)
	cards, err := s.copies(ctx, t, "a copy", readCards)
	t.fail(err)
	s.forgetCopies(ctx, t, cards)
	t.exec(ctx, noteCards, int64(nothingShown))
	return n, nil
}

// readUnused finds approvals that may have been used since. A lapsed one cannot be used any more, except those of our own agents.
const readUnused = `SELECT number FROM requests WHERE state = 'approved' AND used_at = 0 AND void_at = 0 ` +
	`AND (lapsed_at = 0 OR caller >= 'agent:' AND caller < 'agent;') ORDER BY number`

const readUnanswered = `SELECT number FROM requests WHERE state = 'pending' ORDER BY number`

// applyToEach applies an event to requests whose numbers a query finds, and returns how many. An unreadable row is unusable anyway.
func (s *Store) applyToEach(ctx context.Context, t *tx, query string, e permissions.Transition) (n int) {
	numbers, err := collect(ctx, t, "a request", value[int64], query)
	t.fail(err)
	for _, number := range numbers {
		r, err := s.one(ctx, t, readNumber, number)
		if errors.Is(err, permissions.ErrRow) {
			continue
		}
		change, refused := permissions.Step(r, e)
		if err == nil && errors.Is(refused, permissions.ErrLate) { // nobody can answer it any more, and it expires
			continue
		}
		if err = cmp.Or(err, refused); err != nil {
			t.fail(err)
			return n
		}
		change.After = asStored(change.After)
		s.commit(ctx, t, change)
		n++
	}
	return n
}
