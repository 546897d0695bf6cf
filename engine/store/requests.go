package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Read is [permissions.Store].
func (s *Store) Read(ctx context.Context, id permissions.ID) (r permissions.Request, err error) {
	err = s.read(ctx, func(from source) error {
		r, err = load(ctx, from, id)
		return err
	})
	return r, err
}

const (
	readNewest = `SELECT COALESCE(MAX(number), 0) FROM requests`

	readNumber = `SELECT ` + requestColumns + ` FROM requests WHERE number = $1`
)

// ByCode finds the newest request that has the code, or refuses with [permissions.CodeUnknown].
func (s *Store) ByCode(ctx context.Context, code string) (r permissions.Request, err error) {
	n, ok := s.coder.Decode(code)
	if !ok {
		return r, permissions.Unknown(code)
	}
	err = s.read(ctx, func(from source) error {
		newest := int64(0)
		if err := from.QueryRowContext(ctx, readNewest).Scan(&newest); err != nil {
			return err
		}
		if n > newest {
			return permissions.Unknown(code)
		}
		r, err = one(ctx, from, readNumber, newest-(newest-n)%permissions.CodeCount)
		if errors.Is(err, sql.ErrNoRows) {
			return permissions.Unknown(code)
		}
		return err
	})
	return r, err
}

const (
	readPending = `SELECT ` + requestColumns + ` FROM requests WHERE state = 'pending' AND number > $1 ` +
		`ORDER BY number LIMIT $2`

	// json_each is what a second database says in its own words.
	readPendingOf = `SELECT ` + requestColumns + ` FROM requests WHERE state = 'pending' AND number > $1 ` +
		`AND EXISTS (SELECT 1 FROM json_each(requests.asked) AS person WHERE person.value = $2) ORDER BY number LIMIT $3`
)

// Pending lists at most limit pending requests created after the one named (empty: from the first), oldest first;
// asked, if not empty, keeps only what was put to that person.
func (s *Store) Pending(
	ctx context.Context, asked string, after permissions.ID, limit int,
) (found []permissions.Request, err error) {
	err = s.read(ctx, func(from source) error {
		number, err := position(ctx, from, after)
		if err != nil {
			return err
		}
		if asked == "" {
			found, err = many(ctx, from, readPending, number, limit)
		} else {
			found, err = many(ctx, from, readPendingOf, number, asked, limit)
		}
		return err
	})
	return found, err
}

const readPosition = `SELECT number FROM requests WHERE id = $1`

// position is the number of a request, 0 for none. Lists go by number: of two ids made in the same millisecond, either
// may be the greater.
func position(ctx context.Context, from source, id permissions.ID) (number int64, err error) {
	if id == "" {
		return 0, nil
	}
	err = from.QueryRowContext(ctx, readPosition, id).Scan(&number)
	if errors.Is(err, sql.ErrNoRows) {
		err = permissions.Unknown(string(id))
	}
	return number, err
}

const (
	overdue = `SELECT id, deadline FROM requests WHERE state = 'pending' AND deadline <= $1 ` +
		`ORDER BY deadline LIMIT $2`

	coming = `SELECT id, deadline FROM requests WHERE state = 'pending' AND deadline > $1 ` +
		`ORDER BY deadline LIMIT $2`

	uncollected = `SELECT id, decided_at FROM requests WHERE state = 'approved' AND collected_at = 0 AND void_at = 0 ` +
		`AND lapsed_at = 0 AND decided_at <= $1 ORDER BY decided_at LIMIT $2`

	collectable = `SELECT id, decided_at FROM requests WHERE state = 'approved' AND collected_at = 0 AND void_at = 0 ` +
		`AND lapsed_at = 0 AND decided_at > $1 ORDER BY decided_at LIMIT $2`
)

// planned is a request, and when something happened or will happen to it.
type planned struct {
	id permissions.ID
	at time.Time
}

func plannedFields(p *planned) []any { return []any{&p.id, instant{&p.at}} }

// Due is [permissions.Store].
func (s *Store) Due(
	ctx context.Context, now time.Time, redeem time.Duration, limit int,
) (due []permissions.Due, next time.Time, err error) {
	var expiring, lapsing, later, latest []planned
	err = s.read(ctx, func(from source) error {
		for _, q := range []struct {
			into  *[]planned
			text  string
			now   time.Time
			limit int
		}{
			{&expiring, overdue, now, limit},
			{&lapsing, uncollected, now.Add(-redeem), limit},
			{&later, coming, now, 1},
			{&latest, collectable, now.Add(-redeem), 1},
		} {
			if *q.into, err = collect(ctx, from, "a request", plannedFields, q.text, micros(q.now), q.limit); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	return merge(expiring, lapsing, now, redeem, limit), soonest(later, latest, redeem), nil
}

// merge puts both sorts of events in the order in which they came due.
func merge(expiring, lapsing []planned, now time.Time, redeem time.Duration, limit int) []permissions.Due {
	type event struct {
		at  time.Time
		due permissions.Due
	}
	events := make([]event, 0, len(expiring)+len(lapsing))
	for _, p := range expiring {
		events = append(events, event{p.at, permissions.Due{ID: p.id, Event: permissions.Expire{At: now}}})
	}
	for _, p := range lapsing {
		events = append(events, event{p.at.Add(redeem), permissions.Due{ID: p.id, Event: permissions.Lapse{At: now}}})
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	var due []permissions.Due
	for _, e := range events[:min(len(events), limit)] {
		due = append(due, e.due)
	}
	return due
}

// soonest is when the first of both comes due.
func soonest(expiring, lapsing []planned, redeem time.Duration) (next time.Time) {
	for _, p := range expiring {
		next = p.at
	}
	for _, p := range lapsing {
		if at := p.at.Add(redeem); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}
