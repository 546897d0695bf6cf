package store

import (
	"context"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Both go through the index of what waits, of which due_at is a column, row by row: the clock asks only when something is due, and an
// index by due_at would be written to twice for each request.
const (
	duePending = `SELECT id, due_at, deadline, escalate_at, reminders FROM requests WHERE state = 'pending' AND due_at <= $1 ` +
		`ORDER BY due_at LIMIT 0 + $2`

	nextPending = `SELECT COALESCE(MIN(due_at), 0) FROM requests WHERE state = 'pending' AND due_at > $1`

	uncollected = `SELECT id, decided_at FROM requests WHERE state = 'approved' AND collected_at = 0 AND void_at = 0 ` +
		`AND lapsed_at = 0 AND decided_at <= $1 ORDER BY decided_at LIMIT 0 + $2`

	nextUncollected = `SELECT COALESCE(MIN(decided_at), 0) FROM requests WHERE state = 'approved' AND collected_at = 0 AND void_at = 0 ` +
		`AND lapsed_at = 0 AND decided_at > $1`
)

// dueAt is the column due_at of a request: the earliest of its deadline, its escalation and its next reminder.
func dueAt(r permissions.Request) int64 {
	if r.State != permissions.Pending {
		return 0
	}
	due := micros(r.Deadline)
	for _, at := range append(slices.Clone(r.Reminders), r.EscalateAt) {
		if !at.IsZero() {
			due = min(due, micros(at))
		}
	}
	return due
}

// planned is a request to which something is due.
type planned struct {
	id                          permissions.ID
	due, ends, escalates, lapse time.Time
	reminders                   []time.Time
}

func pendingFields(p *planned) []any {
	return []any{&p.id, instant{&p.due}, instant{&p.ends}, instant{&p.escalates}, times{&p.reminders}}
}

func uncollectedFields(p *planned) []any { return []any{&p.id, instant{&p.lapse}} }

// event is what is due, and since when.
type event struct {
	at  time.Time
	due permissions.Due
}

// events returns what is due at now, and the next time at which anything will be. An overdue request only expires: it is not escalated
// and nobody is reminded.
func (p planned) events(now time.Time) (all []event, next time.Time) {
	due := func(at time.Time, e permissions.Transition) {
		switch {
		case at.IsZero():
		case !at.After(now):
			all = append(all, event{at, permissions.Due{ID: p.id, Event: e}})
		default:
			next = sooner(next, at)
		}
	}
	if due(p.ends, permissions.Expire{At: now}); len(all) > 0 {
		return all, time.Time{}
	}
	due(p.escalates, permissions.Escalate{At: now})
	for i, at := range p.reminders {
		if i == 0 || at.After(now) { // one reminder stands for all that are due
			due(at, permissions.Remind{At: now})
		}
	}
	return all, next
}

// sooner is the earlier of two times, of which either may be zero.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Due implements [registry.Store].
func (s *Store) Due(
	ctx context.Context, now time.Time, redeem time.Duration, limit int,
) (due []permissions.Due, next time.Time, err error) {
	var events []event
	err = s.read(ctx, func(from source) error {
		out := func(p planned) bool { // no more events
			_, out := s.unsealed.Load("request " + string(p.id))
			return out
		}
		some := limit + s.countUnsealed()
		found, later, err := listDue(ctx, from, pendingFields, duePending, nextPending, now, some)
		if err != nil {
			return err
		}
		next = later
		for _, p := range found {
			all, later := p.events(now)
			if len(all) == 0 && !out(p) { // its columns are not what due_at was computed from
				s.logUnsealed("request " + string(p.id))
			}
			if !out(p) {
				events, next = append(events, all...), sooner(next, later)
			}
		}
		found, later, err = listDue(ctx, from, uncollectedFields, uncollected, nextUncollected, now.Add(-redeem), some)
		if err != nil {
			return err
		}
		if !later.IsZero() {
			next = sooner(next, later.Add(redeem))
		}
		for _, p := range found {
			if !out(p) {
				events = append(events, event{p.lapse.Add(redeem), permissions.Due{ID: p.id, Event: permissions.Lapse{At: now}}})
			}
		}
		return nil
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	for _, e := range events[:min(len(events), limit)] {
		due = append(due, e.due)
	}
	return due, next, nil
}

// listDue lists at most limit of what is due by a time, and returns the next time at which more will be.
func listDue(
	ctx context.Context, from source, fields func(*planned) []any, due, later string, by time.Time, limit int,
) (found []planned, next time.Time, err error) {
	if found, err = collect(ctx, from, "", fields, due, micros(by), limit); err == nil {
		err = from.QueryRowContext(ctx, later, micros(by)).Scan(lenientTime{&next})
	}
	return found, next, err
}
