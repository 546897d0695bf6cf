package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	// retryAfter is when a caller that was refused by a limit should try again. Nobody knows when a person will answer.
	retryAfter = 10 * time.Second
	// ahead is how far what happened may lie in the future before the clock counts as set back.
	ahead = time.Minute
)

// met is what a new request meets: the numbers of the rows of its id (0: none) and of its key, or equal to it where it has
// none; when the same action was denied the second time of late; and how many of its caller's wait, up to the limit.
type met struct {
	self, twin int64
	denied     time.Time
	waiting    int
}

// One statement looks for all of it, since others wait meanwhile.
const (
	meetAll = `SELECT COALESCE((SELECT number FROM requests WHERE id = $1), 0), ` +
		`COALESCE((SELECT decided_at FROM requests WHERE state = 'denied' AND caller = $2 AND decided_at > $3 ` +
		`AND decided_at <= $4 AND action = $5 ORDER BY decided_at DESC LIMIT 1 OFFSET 1), 0), ` +
		`(SELECT COUNT(*) FROM (SELECT 1 FROM requests WHERE state = 'pending' AND caller = $2 LIMIT 0 + $6) AS waiting), `

	meetByKey = meetAll + `COALESCE((SELECT number FROM requests WHERE caller = $2 AND key = $7 AND key_live), 0)`

	meetEqual = meetAll + `COALESCE((SELECT number FROM requests WHERE state = 'pending' AND caller = $2 AND session = $7 ` +
		`AND digest = $8 AND key = '' AND deadline > $9 LIMIT 1), 0)`
)

func meet(ctx context.Context, t *tx, o permissions.Opening) (m met, err error) {
	r, now := o.Request, o.Request.CreatedAt
	since, limit, after := int64(never), 0, int64(never)
	action := permissions.ActionDigest(r)
	if r.State == permissions.Pending { // else it is held already, and nobody is asked or waited for
		limit = max(0, o.PerCaller)
		if o.CoolDown > 0 {
			since = micros(now.Add(-o.CoolDown))
		}
		if r.Caller.Name != permissions.Anonymous { // the other may be anybody
			after = micros(now)
		}
	}
	text, args := meetEqual, []any{
		string(r.ID), r.Caller.Name, since, micros(now.Add(ahead)), action[:], limit, r.Session, r.Digest[:], after,
	}
	if r.Key != "" {
		text, args = meetByKey, append(args[:6], r.Key)
	}
	if err := t.QueryRowContext(ctx, text, args...).Scan(&m.self, instant{&m.denied}, &m.waiting, &m.twin); err != nil {
		return met{}, unreadable("what a new request meets", err)
	}
	return m, nil
}

const (
	readByKey = `SELECT ` + sealedRequest + ` FROM requests WHERE caller = $1 AND key = $2 AND key_live`

	releaseKey = `UPDATE requests SET key_live = FALSE WHERE number = $1`

	// readKept finds how an equal request ended that nobody came for, be it yes or no: it is for whichever comes first. What
	// its asker withdrew is not, nor what policy alone allowed.
	readKept = `SELECT ` + sealedRequest + ` FROM requests WHERE state <> 'pending' AND collected_at = 0 ` +
		`AND lapsed_at = 0 AND key = '' AND caller = $1 AND session = $2 AND digest = $3 ` +
		`AND decided_at > $4 AND decided_at <= $5 AND used_at = 0 AND decided_via <> 'grant' ` +
		`AND (state <> 'cancelled' OR decided_by <> '') ORDER BY decided_at LIMIT 1`
)

// joined is the request that o joins, or sql.ErrNoRows: the one of its id, if somebody was told that before, else the one
// of its key, else an equal one, be it that how that ended is still kept for whoever asked.
// A key that is no longer in use is to be released from the row of the number stale (0: there is none), but for those of
// agents of ours, which name their requests for as long as there are rows.
func (s *Store) joined(
	ctx context.Context, t *tx, m met, o permissions.Opening,
) (r permissions.Request, stale int64, err error) {
	want, now := o.Request, o.Request.CreatedAt
	switch {
	case m.self != 0:
		r, err = s.one(ctx, t, readNumber, m.self)
		if err == nil && (r.Caller.Name != want.Caller.Name || r.Digest != want.Digest) {
			err = permissions.KeyTaken()
		}
		return r, 0, err
	case m.twin == 0 && want.Key == "" && want.State == permissions.Pending &&
		want.Caller.Name != permissions.Anonymous:
		r, err = s.one(ctx, t, readKept, want.Caller.Name, want.Session, digest{&want.Digest},
			micros(now.Add(-o.RedeemWindow)), micros(now.Add(ahead)))
		return r, 0, err
	case m.twin == 0:
		return r, 0, sql.ErrNoRows
	}
	r, err = s.one(ctx, t, readNumber, m.twin)
	usable := true
	if err == nil && want.Key != "" && !want.Caller.Ours() && !r.UsedAt.IsZero() { // what it rests on may be over since
		usable, err = s.borne(ctx, t, r, now)
	}
	switch {
	case err != nil, want.Key == "":
	case r.State != permissions.Pending && !want.Caller.Ours() && (!usable || !redeemable(r, now, o.RedeemWindow)):
		return r, r.Number, sql.ErrNoRows
	case r.Digest != want.Digest:
		err = permissions.KeyTaken()
	}
	return r, 0, err
}

// redeemable tells whether the key of a settled request still finds it: not once it has lapsed or was taken back,
// whatever the clock or the window says later. What was decided in the future was decided before the clock was set back,
// nobody knows how long ago.
func redeemable(r permissions.Request, now time.Time, window time.Duration) bool {
	return r.LapsedAt.IsZero() && r.VoidAt.IsZero() && now.Before(r.DecidedAt.Add(window)) && !r.DecidedAt.After(now.Add(ahead))
}

// refusal is why a request is not to be put to people, nil if it is: they denied it twice within the last o.CoolDown, or it
// is beyond the limits.
func (m met) refusal(t *tx, o permissions.Opening) error {
	switch r := o.Request; {
	case r.State != permissions.Pending:
		return nil
	case !m.denied.IsZero():
		return permissions.Rest(m.denied.Sub(r.CreatedAt.Add(-o.CoolDown)))
	case o.Exhausted > 0:
		return permissions.Limit(o.Exhausted, "prompts_per_minute", "requests_per_hour", "bytes_per_hour")
	case o.Total > 0 && t.pending >= o.Total:
		return permissions.Limit(retryAfter, "pending_total")
	case o.PerCaller > 0 && m.waiting >= o.PerCaller:
		return permissions.Limit(retryAfter, "pending_per_caller")
	}
	return nil
}
