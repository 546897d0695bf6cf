package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	readStopped = `SELECT stopped_by FROM meta`

	writeStopped = `UPDATE meta SET stopped_by = $1, stopped_at = $2`

	// stopPage is how many pending requests are held in memory at a time, beside what is returned.
	stopPage = 1000
)

// StoppedBy is who stopped everything, or empty.
func (s *Store) StoppedBy(ctx context.Context) (by string, err error) {
	err = s.read(ctx, func(from source) error { return from.QueryRowContext(ctx, readStopped).Scan(&by) })
	return by, err
}

// Stop is [permissions.Store]. What is overdue already expires instead of being cancelled, and is returned as well.
func (s *Store) Stop(ctx context.Context, by, via string, at time.Time) (cancelled []permissions.Request, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		cancelled, err = s.cancelAll(ctx, t, permissions.Withdraw{By: by, Via: via, At: at})
		if err != nil || t.stopped != "" {
			return err
		}
		t.stopped = cmp.Or(by, "daycared") // empty would mean that nobody did
		if _, err := t.ExecContext(ctx, writeStopped, t.stopped, micros(at)); err != nil {
			return err
		}
		if err := tellStopped(ctx, t, cancelled, by, at); err != nil {
			return err
		}
		return s.append(ctx, t, permissions.Record{
			Type: permissions.AllStopped, At: at, Actor: by, Via: via,
			Detail: map[string]string{"cancelled": strconv.Itoa(len(cancelled))},
		})
	})
	if err != nil {
		return nil, err
	}
	return cancelled, nil
}

// cancelAll ends every pending request.
func (s *Store) cancelAll(ctx context.Context, t *tx, e permissions.Withdraw) ([]permissions.Request, error) {
	all := make([]permissions.Request, 0, t.pending)
	for number := int64(0); ; {
		pending, err := many(ctx, t, readPending, number, stopPage)
		if err != nil {
			return nil, err
		}
		for _, r := range pending {
			number = r.Number
			c, err := permissions.Step(r, e)
			if errors.Is(err, permissions.ErrLate) {
				c, err = permissions.Step(r, permissions.Expire{At: e.At})
			}
			if err != nil {
				return nil, err
			}
			c.After = asStored(c.After)
			if err := s.commit(ctx, t, c); err != nil {
				return nil, err
			}
			all = append(all, c.After)
		}
		if len(pending) < stopPage {
			return all, nil
		}
	}
}

// tellStopped leaves a notice for each person, other than by, who was asked any of it.
func tellStopped(ctx context.Context, t *tx, cancelled []permissions.Request, by string, at time.Time) error {
	people := map[string]bool{}
	for _, r := range cancelled {
		for _, person := range r.Asked {
			people[person] = true
		}
	}
	delete(people, by)
	for _, person := range slices.Sorted(maps.Keys(people)) {
		n := permissions.Notice{To: person, About: permissions.AboutStopped, By: by, CreatedAt: at}
		if err := insertNotice(ctx, t, n); err != nil {
			return err
		}
	}
	return nil
}

// Resume ends what Stop began. Without a stop it changes nothing.
func (s *Store) Resume(ctx context.Context, by, via string, at time.Time) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		if t.stopped == "" {
			return nil
		}
		t.stopped = ""
		if _, err := t.ExecContext(ctx, writeStopped, "", 0); err != nil {
			return err
		}
		return s.append(ctx, t, permissions.Record{Type: permissions.AllResumed, At: at, Actor: by, Via: via})
	})
}
