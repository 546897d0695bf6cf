package store

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

// An approval rests on the grants that spared it a part of the question (Under), and one wider than once lasts no longer
// than the grants that it left behind. Both are looked at when it is used, in the transaction of the use.

const (
	countLeft = `SELECT COUNT(*), COUNT(CASE WHEN revoked_at = 0 AND ended_at = 0 AND suspended_at = 0 AND until > $1 ` +
		`AND created_at <= $1 THEN 1 END) FROM grants WHERE request = $2`

	countInForce = `SELECT COUNT(*) FROM grants WHERE id = $1 AND caller = $2 AND revoked_at = 0 AND ended_at = 0 ` +
		`AND suspended_at = 0 AND until > $3 AND created_at <= $3`
)

// borne tells whether, at that time, one of the grants that r left behind is in force, if it left any, and all on which
// it rests.
func borne(ctx context.Context, from source, r permissions.Request, at time.Time) (bool, error) {
	left, live := 0, 0
	if err := from.QueryRowContext(ctx, countLeft, micros(at), r.ID).Scan(&left, &live); err != nil {
		return false, err
	}
	if left > 0 && live == 0 {
		return false, nil
	}
	for _, id := range r.Under {
		n := 0
		if err := from.QueryRowContext(ctx, countInForce, id, r.Caller.Name, micros(at)).Scan(&n); err != nil || n == 0 {
			return false, err
		}
	}
	return true, nil
}

// over is what comes of using r at that time although nothing bears it any more: it is taken back, unless it was used
// before.
func over(r permissions.Request, at time.Time) (permissions.Change, error) {
	if r.UsedAt.IsZero() {
		return permissions.Step(r, permissions.Void{At: at})
	}
	return permissions.Change{Before: r, After: r}, permissions.ErrNoUse
}

const (
	releaseOwn = `UPDATE requests SET key_live = FALSE WHERE id = $1 AND key <> ''`

	releaseUses = `UPDATE requests SET key_live = FALSE WHERE number IN (SELECT request FROM uses WHERE granted = $1) ` +
		`AND key <> ''`
)

// releaseKeys sees to it that no key finds what a grant that is over had approved.
func releaseKeys(ctx context.Context, t *tx, g permissions.Grant) error {
	if (permissions.Caller{Name: g.Caller}).Ours() { // it finds that it is over
		return nil
	}
	if _, err := t.ExecContext(ctx, releaseOwn, g.Request); err != nil {
		return err
	}
	_, err := t.ExecContext(ctx, releaseUses, g.ID)
	return err
}
