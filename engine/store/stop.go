package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/daycared/daycared/permissions"
)

// stopPage is how many pending requests are cancelled per transaction, so that other writes do not wait long.
const stopPage = 500

// StoppedBy is who stopped everything, and when; empty: nobody.
func (s *Store) StoppedBy(ctx context.Context) (by string, at time.Time, err error) {
	err = s.read(ctx, func(from source) error {
		own, err := readIdentity(ctx, from)
		if by, at = own.stoppedBy, own.stoppedAt; by == "" && err == nil {
			by, at, err = s.auditedStop(ctx, from)
		}
		return err
	})
	return by, at, err
}

// Stop implements [registry.Store]. It first commits the stop alone: from then on new requests are refused and
// pending ones cannot be allowed. Then it cancels the pending requests page by page. An interrupted stop is finished by
// the next, which does not count as another.
//
// An overdue request expires instead of being cancelled, and is returned as well. Unreadable requests are left and do
// not block the others: the error, returned with the cancelled ones, has their number.
func (s *Store) Stop(ctx context.Context, by, via string, at time.Time) (cancelled []permissions.Request, err error) {
	last, waiting, err := s.commitStop(ctx, by, via, at)
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // finished even if the caller leaves
	c := canceller{
		Store: s, event: permissions.Withdraw{By: by, Via: via, At: at}, told: map[string]bool{by: true},
		cancelled: make([]permissions.Request, 0, waiting),
	}
	for c.number < last {
		before := c.number
		if err := c.page(ctx, last); err != nil {
			return c.cancelled, err
		}
		if c.number == before {
			break
		}
	}
	if c.skipped > 0 {
		return c.cancelled, fmt.Errorf("%d of what waits could not be cancelled: %w", c.skipped, c.why)
	}
	return c.cancelled, nil
}

// commitStop commits the stop unless there is one, and returns the number of the newest request and how many wait. An operator's stop
// replaces a person's, who then cannot end it.
func (s *Store) commitStop(ctx context.Context, by, via string, at time.Time) (last int64, waiting int, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		last, waiting = t.newest, t.pending
		s.setStopped(ctx, t, by, via, at)
		return nil
	})
	return last, waiting, err
}

func (s *Store) setStopped(ctx context.Context, t *tx, by, via string, at time.Time) {
	if t.stopped != "" && (t.stopped == by || by != permissions.OperatorName) {
		return
	}
	t.stopped = cmp.Or(by, stoppedByNobody)
	s.noteStopped(ctx, t, at)
	s.append(ctx, t, permissions.Record{
		Type: permissions.AllStopped, At: at, Actor: by, Via: via, Detail: map[string]string{"pending": strconv.Itoa(t.pending)},
	})
}

func (s *Store) noteStopped(ctx context.Context, t *tx, at time.Time) {
	t.exec(ctx, `UPDATE meta SET stopped_by = $1, stopped_at = $2`, t.stopped, micros(at))
	t.fail(sealIdentity(ctx, t, s.seals))
}

// canceller cancels pending requests, oldest first.
type canceller struct {
	*Store
	event     permissions.Withdraw
	number    int64           // of the last request examined
	told      map[string]bool // people who have a notice
	cancelled []permissions.Request
	skipped   int
	why       error // the first failure
}

// page cancels the next requests, up to the number given, in one transaction.
func (c *canceller) page(ctx context.Context, last int64) error {
	var next canceller
	var ended []permissions.Request
	err := c.write(ctx, func(ctx context.Context, t *tx) error {
		next, ended = *c, make([]permissions.Request, 0, stopPage)
		page, err := next.pending(ctx, t)
		if err != nil {
			return err
		}
		for _, r := range page {
			if r.Number > last {
				break
			}
			change, err := withdraw(r, next.event)
			if err != nil {
				next.skip(r.Number, err)
				continue
			}
			change.After = asStored(change.After)
			c.commit(ctx, t, change)
			ended = append(ended, change.After)
		}
		tellStopped(ctx, t, ended, c.told, next.event)
		return nil
	})
	if err != nil {
		return err
	}
	next.cancelled = append(next.cancelled, ended...)
	for _, r := range ended {
		for _, person := range r.Asked {
			c.told[person] = true
		}
	}
	*c = next
	return nil
}

// pending reads the next requests and skips unusable ones.
func (c *canceller) pending(ctx context.Context, t *tx) ([]permissions.Request, error) {
	numbers, err := collect(ctx, t, "a request", value[int64], readPendingNumbers, c.number, "", stopPage)
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	page, _, err := c.many(ctx, t, readPending, c.number, "", stopPage)
	if err != nil {
		return nil, err
	}
	c.number = numbers[len(numbers)-1]
	read := 0
	for _, n := range numbers {
		if read < len(page) && page[read].Number == n {
			read++
		} else {
			c.skip(n, c.advised(unsealed("request "+c.coder.Encode(n))))
		}
	}
	return page, nil
}

func (c *canceller) skip(number int64, err error) {
	c.log.Error("cancel pending request, skipping it", "number", number, "err", err)
	c.skipped++
	c.why = cmp.Or(c.why, err)
}

// withdraw is the change that a stop makes to a pending request.
func withdraw(r permissions.Request, e permissions.Withdraw) (permissions.Change, error) {
	c, err := permissions.Step(r, e)
	if errors.Is(err, permissions.ErrLate) {
		return permissions.Step(r, permissions.Expire{At: e.At})
	}
	return c, err
}

// tellStopped leaves a notice for each person who was asked and was not told yet.
func tellStopped(ctx context.Context, t *tx, cancelled []permissions.Request, told map[string]bool, e permissions.Withdraw) {
	people := map[string]bool{}
	for _, r := range cancelled {
		for _, person := range r.Asked {
			if !told[person] {
				people[person] = true
			}
		}
	}
	for _, person := range slices.Sorted(maps.Keys(people)) {
		n := permissions.Notice{To: person, About: permissions.AboutStopped, By: e.By, CreatedAt: e.At}
		insertNotice(ctx, t, n)
	}
}

// Resume ends a stop; without one it does nothing. Only whoever stopped may, unless force.
func (s *Store) Resume(ctx context.Context, by, via string, force bool, at time.Time) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		switch {
		case t.stopped == "":
			return nil
		case !force && by != t.stopped:
			return permissions.NotYours()
		}
		t.stopped = ""
		s.noteStopped(ctx, t, time.Time{})
		s.append(ctx, t, permissions.Record{Type: permissions.AllResumed, At: at, Actor: by, Via: via})
		return nil
	})
}
