package store

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// updateSeals writes the seals that a new key, or rows with older seals, need. own is the store's record of its version.
func (s *Store) updateSeals(ctx context.Context, t *tx, version, own int64) {
	switch {
	case s.newKey != "":
		s.sealAll(ctx, t)
		t.fail(sealIdentity(ctx, t, s.seals))
	case version != sealVersion:
		s.sealOldRows(ctx, t, version)
	case own != version:
		t.exec(ctx, writeSeals, version)
		t.fail(sealIdentity(ctx, t, s.seals))
	}
}

// sealVersions returns the version of seals that the store records of itself, and that of its rows.
func (s *Store) sealVersions(ctx context.Context, t *tx) (own, version int64, err error) {
	i, err := readIdentity(ctx, t)
	if err == nil {
		version, err = s.sealsBefore(ctx, t, i)
	}
	return i.seals, version, err
}

// sealAll seals the rows of a store from before the key, and its audit so far in one entry.
func (s *Store) sealAll(ctx context.Context, t *tx) {
	requests := s.resealRequests(ctx, t, 0)
	detail := map[string]string{keyID: s.seals.id, "requests": strconv.FormatInt(requests, 10)}
	s.sealSessionsAndCopies(ctx, t, 0, false, detail)
	n := s.resealGates(ctx, t, time.Time{}, detail)
	if t.err == nil {
		s.log.Info("store sealed with its audit key", "key", s.seals.id, "requests", requests, "grants", n.grants, "tokens", n.tokens,
			"pairings", n.pairings)
	}
	s.append(ctx, t, permissions.Record{Type: permissions.AuditKeyed, At: s.now(), Detail: detail})
}

// sealOldRows seals the rows of a store of an earlier [sealVersion] as they are, once. A row whose earlier seal does not hold gets
// no other.
func (s *Store) sealOldRows(ctx context.Context, t *tx, version int64) {
	detail := map[string]string{}
	if version == 0 {
		detail["requests"] = strconv.FormatInt(s.resealRequests(ctx, t, 0), 10)
	}
	s.sealSessionsAndCopies(ctx, t, version, false, detail)
	t.fail(sealIdentity(ctx, t, s.seals))
	if t.err == nil {
		s.log.Info("rows sealed as they are, since more of them are from now on", "sealed", detail)
	}
	s.append(ctx, t, permissions.Record{Type: permissions.AuditKeyed, At: s.now(), Detail: detail})
}

// openRows counts the open rows of each gate.
type openRows struct{ grants, tokens, pairings int64 }

// resealGates is [reseal] for every gate. Its counts are also added to an entry's detail.
func (s *Store) resealGates(ctx context.Context, t *tx, since time.Time, detail map[string]string) (n openRows) {
	n.grants = reseal(ctx, s, t, grantGate, since)
	n.tokens = reseal(ctx, s, t, tokenGate, since)
	n.pairings = reseal(ctx, s, t, pairingGate, since)
	for name, count := range map[string]int64{"grants": n.grants, "tokens": n.tokens, "pairings": n.pairings} {
		detail[name] = strconv.FormatInt(count, 10)
	}
	return n
}

const sealRequest = `UPDATE requests SET mac = $1 WHERE number = $2`

// resealRequests seals requests that have a seal of another key or version, or none, with the store's key.
func (s *Store) resealRequests(ctx context.Context, t *tx, version int64) (n int64) {
	t.rows.dropAll()
	all, err := count(ctx, t, countRequests)
	t.fail(err)
	var seen atomic.Int64
	defer watch(func() { s.tellMigration("requests sealed", seen.Load(), int64(all)) })()
	t.fail(eachSealed(ctx, t, func(r permissions.Request, mac []byte) error {
		seen.Add(1)
		if s.from != nil && !s.from.isSealOf(mac, "requests", sealedValuesOf(version, nil, &r)...) {
			s.logUnsealed("request " + string(r.ID))
			return nil
		}
		n++
		t.exec(ctx, sealRequest, s.seals.request(&r), r.Number)
		return nil
	}))
	return n
}

// sealSessionsAndCopies seals the sessions of our own agents, timetables, absences and copies with the store's key. Those that nobody could
// seal before are accepted as they are, but not when a new life begins: then unchecked sessions and timetables stay without a seal,
// unchecked copies count as not sent, no session holds any longer what was allowed it once, nobody is away, and no proposed pairing can be
// confirmed. It adds counts to an entry's detail.
func (s *Store) sealSessionsAndCopies(ctx context.Context, t *tx, version int64, life bool, detail map[string]string) {
	accepted := func(name string, holds func(*sealer) bool) bool {
		ok := version == 0 && !life || s.from != nil && holds(s.from)
		if !ok && version != 0 {
			s.logUnsealed(name)
		}
		return ok
	}
	sessions, err := collect(ctx, t, "", (*sealedSession).fields, readOpenSealed)
	t.fail(err)
	n := 0
	for _, r := range sessions {
		if !accepted("session "+string(r.row.ID), r.hasValidSeal) {
			continue
		}
		if life {
			step, unreadable := agents.WithoutOnce(r.row.Step)
			if unreadable != nil {
				continue
			}
			r.row.Step = step
			t.exec(ctx, `UPDATE sessions SET step = $1 WHERE id = $2`, rawJSON{&r.row.Step}, r.row.ID)
		}
		if version == 0 {
			r.audited = t.seq
		}
		t.exec(ctx, sealSession, r.audited, s.seals.session(r.row, r.audited), r.row.ID)
		n++
	}
	timetables, err := collect(ctx, t, "", timetableGate.rowFields, readTimetables)
	t.fail(err)
	for _, r := range timetables {
		if accepted(timetableGate.name(r.row), func(k *sealer) bool { return timetableGate.hasValidSeal(k, r) }) {
			t.exec(ctx, writeTimetable, timetableGate.args(s.seals, r.row)...)
		}
	}
	if life {
		t.exec(ctx, `DELETE FROM away`)
		t.exec(ctx, dropProposals)
	}
	absences, err := collect(ctx, t, "", absenceGate.rowFields, readAbsences)
	t.fail(err)
	for _, r := range absences {
		if accepted(absenceGate.name(r.row), func(k *sealer) bool { return absenceGate.hasValidSeal(k, r) }) {
			t.exec(ctx, writeAbsence, absenceGate.args(s.seals, r.row)...)
		}
	}
	s.sealCopies(ctx, t, version, life, accepted)
	detail[sealsDetail], detail["sessions"] = strconv.Itoa(sealVersion), strconv.Itoa(n)
	t.exec(ctx, writeSeals, sealVersion)
}

// readNumbersAfter is a page of the requests after a number, which is read even where an id cannot be.
const readNumbersAfter = `SELECT number, id FROM requests WHERE number > $1 ORDER BY number LIMIT 1000`

// sealCopies is the part of [Store.sealSessionsAndCopies] about copies. It reads those of a page of requests at a time.
func (s *Store) sealCopies(
	ctx context.Context, t *tx, version int64, life bool, accepted func(name string, holds func(*sealer) bool) bool,
) {
	all, err := count(ctx, t, countRequests)
	t.fail(err)
	var seen atomic.Int64
	defer watch(func() { s.tellMigration("cards of requests sealed", seen.Load(), int64(all)) })()
	var last int64
	for t.err == nil {
		page, err := collect(ctx, t, "", func(r *permissions.Request) []any { return []any{&r.Number, &r.ID} }, readNumbersAfter, last)
		if t.fail(err); len(page) == 0 {
			return
		}
		ids := make([]permissions.ID, len(page))
		for i, r := range page {
			ids[i], last = r.ID, r.Number
		}
		copies, err := collectReadable(ctx, s, t, "a copy", copyGate.rowFields, readCopiesOfMany, list[permissions.ID]{&ids})
		t.fail(err)
		for _, r := range copies {
			s.sealCopy(ctx, t, r, version, life, accepted)
		}
		seen.Add(int64(len(page)))
	}
}

// sealCopy is [Store.sealCopies] for one.
func (s *Store) sealCopy(
	ctx context.Context, t *tx, r sealedRow[permissions.Copy], version int64, life bool,
	accepted func(name string, holds func(*sealer) bool) bool,
) {
	old := version == 1 && s.from != nil && s.from.isSealOf(r.mac, copyGate.table, sealedWithoutList(&r.row)...)
	if old && r.row.Burst != r.row.Ref { // which list it was on is not known for sure
		r.row.Burst = ""
	}
	switch {
	case accepted(copyGate.name(r.row), func(k *sealer) bool { return old || copyGate.hasValidSeal(k, r) }):
	case life:
		r.row.Ref, r.row.SentAt, r.row.ChannelTime = "", time.Time{}, time.Time{}
	default:
		return
	}
	t.exec(ctx, upsertCopy, copyGate.args(s.seals, r.row)...)
}

// sealPersons reseals tokens whose persons were in a separate table before migration 15, if the audit agrees. Others are not used.
func (s *Store) sealPersons(ctx context.Context, t *tx, said *comparison) error {
	if s.from == nil {
		return nil
	}
	found, err := collect(ctx, t, "", tokenGate.rowFields, tokenGate.open)
	for _, r := range found {
		before, e := r.row, said.gates[said.row(tokenGate.table, r.row.ID)].entry
		before.Person = ""
		if r.row.Person == "" || e == nil || e.Type != permissions.TokenCreated || !tokenGate.agrees(r.row, e) ||
			!tokenGate.hasValidSeal(s.from, sealedRow[permissions.Token]{before, r.mac}) {
			continue
		}
		tokenGate.put(ctx, t, s.from, r.row)
		s.log.Info("token sealed with its person", "token", r.row.ID, "person", r.row.Person)
	}
	return err
}
