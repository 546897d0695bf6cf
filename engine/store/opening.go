package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	// retryAfter is when a caller that was refused by a limit should try again. Nobody knows when a person will answer.
	retryAfter = 10 * time.Second
	// ahead is how far what happened may lie in the future before the clock counts as set back.
	ahead = time.Minute
)

// Open is [permissions.Store].
func (s *Store) Open(ctx context.Context, o permissions.Opening) (r permissions.Request, created bool, err error) {
	if by := s.halt.Load(); by != nil { // nobody has to wait for those who write to learn that
		return permissions.Request{}, false, permissions.Stopped(*by)
	}
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		if t.stopped != "" {
			return permissions.Stopped(t.stopped)
		}
		found, err := joined(ctx, t, o)
		if !errors.Is(err, sql.ErrNoRows) {
			r = found
			return err
		}
		if err := rested(ctx, t, o); err != nil {
			return err
		}
		if err := limited(ctx, t, o); err != nil {
			return err
		}
		r, err = s.insert(ctx, t, o)
		created = true
		return err
	})
	if err != nil {
		return permissions.Request{}, false, err
	}
	return r, created, nil
}

const (
	readByKey = `SELECT ` + requestColumns + ` FROM requests WHERE caller = $1 AND key = $2 AND key_live`

	releaseKey = `UPDATE requests SET key_live = FALSE WHERE number = $1`

	readEqual = `SELECT ` + requestColumns + ` FROM requests WHERE state = 'pending' AND caller = $1 AND session = $2 ` +
		`AND digest = $3 AND key = '' AND deadline > $4 LIMIT 1`

	// readKept finds the approval of an equal call that a hook could not wait for: it was not used, and is for whichever
	// comes first.
	readKept = `SELECT ` + requestColumns + ` FROM requests WHERE state = 'approved' AND collected_at = 0 AND void_at = 0 ` +
		`AND lapsed_at = 0 AND used_at = 0 AND caller = $1 AND session = $2 AND digest = $3 AND key = '' AND hook <> '' ` +
		`AND decided_at > $4 AND decided_at <= $5 ORDER BY decided_at LIMIT 1`
)

// joined is the request that o joins, or sql.ErrNoRows: the one of its id, if somebody was told that before, else the one
// of its key, else an equal one; where a hook asks, whose agent has forgotten what it asked, also an approval that is kept.
// A key that is no longer in use is released, but for those of agents of ours, which name their requests for as long as
// there are rows.
func joined(ctx context.Context, t *tx, o permissions.Opening) (permissions.Request, error) {
	want, now := o.Request, o.Request.CreatedAt
	if r, err := one(ctx, t, readRequest, want.ID); !errors.Is(err, sql.ErrNoRows) {
		if err == nil && (r.Caller.Name != want.Caller.Name || r.Digest != want.Digest) {
			err = permissions.KeyTaken()
		}
		return r, err
	}
	if want.Key == "" {
		switch {
		case want.State != permissions.Pending, // held already: nobody has to be waited for
			want.Caller.Name == permissions.Anonymous: // the other may be anybody
			return permissions.Request{}, sql.ErrNoRows
		}
		r, err := one(ctx, t, readEqual, want.Caller.Name, want.Session, digest{&want.Digest}, micros(now))
		if want.Hook == "" || !errors.Is(err, sql.ErrNoRows) {
			return r, err
		}
		return one(ctx, t, readKept, want.Caller.Name, want.Session, digest{&want.Digest},
			micros(now.Add(-o.RedeemWindow)), micros(now.Add(ahead)))
	}
	r, err := one(ctx, t, readByKey, want.Caller.Name, want.Key)
	switch {
	case err != nil:
		return r, err
	case r.State != permissions.Pending && !want.Caller.Ours() && !redeemable(r, now, o.RedeemWindow):
		if _, err := t.ExecContext(ctx, releaseKey, r.Number); err != nil {
			return r, err
		}
		return r, sql.ErrNoRows
	case r.Digest != want.Digest:
		return r, permissions.KeyTaken()
	}
	return r, nil
}

// redeemable tells whether the key of a settled request still finds it: not once it has lapsed or was taken back,
// whatever the clock or the window says later. What was decided in the future was decided before the clock was set back,
// nobody knows how long ago.
func redeemable(r permissions.Request, now time.Time, window time.Duration) bool {
	return r.LapsedAt.IsZero() && r.VoidAt.IsZero() && now.Before(r.DecidedAt.Add(window)) && !r.DecidedAt.After(now.Add(ahead))
}

const readDenials = `SELECT decided_at FROM requests WHERE state = 'denied' AND caller = $1 AND decided_at > $2 ` +
	`AND decided_at <= $3 AND digest = $4 ORDER BY decided_at DESC LIMIT 2`

// rested refuses to put to people once more what they denied twice within the last o.CoolDown.
func rested(ctx context.Context, t *tx, o permissions.Opening) error {
	r := o.Request
	if r.State != permissions.Pending || o.CoolDown <= 0 {
		return nil
	}
	since, now := r.CreatedAt.Add(-o.CoolDown), r.CreatedAt
	field := func(at *time.Time) []any { return []any{instant{at}} }
	denied, err := collect(ctx, t, "a denial", field, readDenials,
		r.Caller.Name, micros(since), micros(now.Add(ahead)), digest{&r.Digest})
	if err != nil || len(denied) < 2 {
		return err
	}
	return permissions.Rest(denied[1].Sub(since))
}

const countCaller = `SELECT COUNT(*) FROM ` +
	`(SELECT 1 FROM requests WHERE state = 'pending' AND caller = $1 LIMIT $2) AS waiting`

// limited refuses a request beyond the limits.
func limited(ctx context.Context, t *tx, o permissions.Opening) error {
	if o.Request.State != permissions.Pending {
		return nil
	}
	if o.Exhausted > 0 {
		return permissions.Limit(o.Exhausted)
	}
	if o.Total > 0 && t.pending >= o.Total {
		return permissions.Limit(retryAfter)
	}
	if o.PerCaller <= 0 {
		return nil
	}
	waiting := 0
	if err := t.QueryRowContext(ctx, countCaller, o.Request.Caller.Name, o.PerCaller).Scan(&waiting); err != nil {
		return err
	}
	if waiting >= o.PerCaller {
		return permissions.Limit(retryAfter)
	}
	return nil
}

// nothingShown is the lowest revision shown of a request that has no copies: there is nothing to bring up to date.
const nothingShown = math.MaxInt64

const insertedColumns = fixedColumns + `, ` + changedColumns + `, key_live, shown, pruned`

var insertRequest = `INSERT INTO requests (` + insertedColumns + `) VALUES (` + parameters(insertedColumns) +
	`) RETURNING number`

const insertCopy = `INSERT INTO copies (` + copyColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

// insert adds the row, its copies, its uses of grants and its audit records.
func (s *Store) insert(ctx context.Context, t *tx, o permissions.Opening) (permissions.Request, error) {
	r := asStored(o.Request)
	r.Votes = nil
	shown := int64(nothingShown)
	for _, c := range o.Copies {
		if c.Failed == "" {
			shown = min(shown, c.Shown)
		}
	}
	args := append(append(fixedFields(&r), changingFields(&r)...), micros(reminding(r)), r.Key != "", shown, false)
	if err := t.QueryRowContext(ctx, insertRequest, args...).Scan(&r.Number); err != nil {
		return r, err
	}
	for _, c := range o.Copies {
		c.Request = r.ID
		if _, err := t.ExecContext(ctx, insertCopy, copyFields(&c)...); err != nil {
			return r, err
		}
	}
	if r.State == permissions.Approved {
		if err := useGrants(ctx, t, r, r.CreatedAt); err != nil {
			return r, err
		}
	}
	for _, record := range opened(r) {
		if err := s.append(ctx, t, record); err != nil {
			return r, err
		}
	}
	if r.State == permissions.Pending {
		t.pending++
	}
	return r, nil
}

// opened is what the audit says of a new request, and of one that needed nobody's answer.
func opened(r permissions.Request) []permissions.Record {
	digest := r.Digest.String()
	records := []permissions.Record{{
		Type: permissions.RequestCreated, At: r.CreatedAt, Request: r.ID, Actor: r.Caller.Name,
		Detail: map[string]string{"kind": string(r.Kind), "digest": digest},
	}}
	if r.Kind == permissions.KindClarification {
		records = append(records, permissions.Record{
			Type: permissions.DialogRequested, At: r.CreatedAt, Request: r.ID, Actor: r.Caller.Name,
			Detail: map[string]string{"digest": digest},
		})
	}
	if r.State != permissions.Pending {
		records = append(records, permissions.Record{
			Type: permissions.RequestSettled, At: r.DecidedAt, Request: r.ID, Actor: r.DecidedBy, Via: r.DecidedVia,
			Detail: map[string]string{"state": string(r.State), "answer": string(r.Answer), "digest": digest},
		})
	}
	return records
}
