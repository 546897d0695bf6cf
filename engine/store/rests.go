package store

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

// An approval rests on the grants that spared it a part of the question (Under), and one wider than once lasts no longer
// than the grants that it left behind. Both are looked at when it is used, in the transaction of the use.

const (
	countLeft = `SELECT COUNT(*) FROM grants WHERE request = $1`

	readLeft = `SELECT ` + grantColumns + `, mac FROM grants WHERE request = $1 AND revoked_at = 0 AND ended_at = 0 ` +
		`AND suspended_at = 0 AND until > $2 AND created_at <= $2 ORDER BY id`
)

// borne reports whether, at that time, one of the grants that r left behind is in force, if it left any, and all on which
// it rests.
func (s *Store) borne(ctx context.Context, from source, r permissions.Request, at time.Time) (bool, error) {
	left := 0
	if err := from.QueryRowContext(ctx, countLeft, r.ID).Scan(&left); err != nil {
		return false, err
	}
	if left > 0 || r.LeavesGrants() { // whose rows nobody deletes before the request's
		live, err := sealed(ctx, s, from, grantGate, readLeft, r.ID, micros(at))
		if err != nil || len(live) == 0 {
			return false, err
		}
	}
	for _, id := range r.Under {
		live, err := sealed(ctx, s, from, grantGate, readGrantInForce, id, r.Caller.Name, micros(at))
		if err != nil || len(live) == 0 {
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
