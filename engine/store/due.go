package store

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

// An overdue request only expires: it is not escalated and nobody is reminded.
const (
	overdue = `SELECT id, deadline FROM requests WHERE state = 'pending' AND deadline <= $1 ` +
		`ORDER BY deadline LIMIT 0 + $2`

	coming = `SELECT id, deadline FROM requests WHERE state = 'pending' AND deadline > $1 ` +
		`ORDER BY deadline LIMIT 0 + $2`

	uncollected = `SELECT id, decided_at FROM requests WHERE state = 'approved' AND collected_at = 0 AND void_at = 0 ` +
		`AND lapsed_at = 0 AND decided_at <= $1 ORDER BY decided_at LIMIT 0 + $2`

	collectable = `SELECT id, decided_at FROM requests WHERE state = 'approved' AND collected_at = 0 AND void_at = 0 ` +
		`AND lapsed_at = 0 AND decided_at > $1 ORDER BY decided_at LIMIT 0 + $2`

	escalating = `SELECT id, escalate_at FROM requests WHERE state = 'pending' AND escalate_at > 0 ` +
		`AND escalate_at <= $1 AND deadline > $1 ORDER BY escalate_at LIMIT 0 + $2`

	escalatable = `SELECT id, escalate_at FROM requests WHERE state = 'pending' AND escalate_at > 0 ` +
		`AND escalate_at > $1 ORDER BY escalate_at LIMIT 0 + $2`

	reminded = `SELECT id, remind_at, reminders FROM requests WHERE state = 'pending' AND remind_at > 0 ` +
		`AND remind_at <= $1 AND deadline > $1 ORDER BY remind_at LIMIT 0 + $2`

	remindable = `SELECT id, remind_at FROM requests WHERE state = 'pending' AND remind_at > 0 ` +
		`AND remind_at > $1 ORDER BY remind_at LIMIT 0 + $2`
)

// timer is one kind of event that a deadline causes.
type timer struct {
	due, later string // queries for what is due and what is next
	fields     func(*planned) []any
	after      time.Duration // delay after the time in the row
	event      permissions.Transition
}

func timers(now time.Time, redeem time.Duration) []timer {
	return []timer{
		{overdue, coming, plannedFields, 0, permissions.Expire{At: now}},
		{uncollected, collectable, plannedFields, redeem, permissions.Lapse{At: now}},
		{escalating, escalatable, plannedFields, 0, permissions.Escalate{At: now}},
		{reminded, remindable, repeatedFields, 0, permissions.Remind{At: now}},
	}
}

// planned is a request and the time of its event.
type planned struct {
	id  permissions.ID
	at  time.Time
	all []time.Time // for repeated events
}

func plannedFields(p *planned) []any { return []any{&p.id, instant{&p.at}} }

func repeatedFields(p *planned) []any { return append(plannedFields(p), times{&p.all}) }

// Due implements [registry.Store].
func (s *Store) Due(
	ctx context.Context, now time.Time, redeem time.Duration, limit int,
) (due []permissions.Due, next time.Time, err error) {
	type event struct {
		at  time.Time
		due permissions.Due
	}
	var events []event
	err = s.read(ctx, func(from source) error {
		for _, sort := range timers(now, redeem) {
			past, soonest, err := sort.look(ctx, from, now, limit+s.countUnsealed())
			if err != nil {
				return err
			}
			for _, p := range past {
				if _, out := s.unsealed.Load("request " + string(p.id)); out { // no more events
					continue
				}
				events = append(events, event{p.at, permissions.Due{ID: p.id, Event: sort.event}})
			}
			if !soonest.IsZero() && (next.IsZero() || soonest.Before(next)) {
				next = soonest
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

// look lists what is due at now, and returns the next time at which anything will be. It stops early if the first is not due.
func (m timer) look(ctx context.Context, from source, now time.Time, limit int) (due []planned, next time.Time, err error) {
	list := func(fields func(*planned) []any, text string, at int64, limit int) ([]planned, error) {
		found, err := collect(ctx, from, "", fields, text, at, limit)
		for i := range found {
			if !found[i].at.IsZero() { // else unreadable, like its request
				found[i].at = found[i].at.Add(m.after)
			}
		}
		return found, err
	}
	first, err := list(plannedFields, m.later, math.MinInt64, 1)
	if err != nil || len(first) == 0 {
		return nil, time.Time{}, err
	}
	if first[0].at.After(now) {
		return nil, first[0].at, nil
	}
	at := micros(now.Add(-m.after))
	if due, err = list(m.fields, m.due, at, limit); err != nil {
		return nil, time.Time{}, err
	}
	later, err := list(plannedFields, m.later, at, 1)
	for _, p := range later {
		next = p.at
	}
	for _, p := range due {
		for _, again := range p.all {
			if again.After(now) && (next.IsZero() || again.Before(next)) {
				next = again
			}
		}
	}
	return due, next, err
}
