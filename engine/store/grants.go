package store

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

const grantColumns = `id, caller, session, tags, tool, call, until, request, granted_by, created_at, revoked_at, used, ` +
	`suspended_at`

func grantFields(g *permissions.Grant) []any {
	return []any{
		&g.ID, &g.Caller, &g.Session, list[permissions.Tag]{&g.Tags}, &g.Tool, digest{&g.Call}, end{&g.Until}, &g.Request,
		&g.By, instant{&g.CreatedAt}, instant{&g.RevokedAt}, &g.Used, instant{&g.SuspendedAt},
	}
}

const addedGrantColumns = grantColumns + `, mac, ended_at`

var addGrant = `INSERT INTO grants (` + addedGrantColumns + `) VALUES (` + parameters(addedGrantColumns) + `)`

const (
	// A grant that was recorded as ended stays ended, even if the clock goes back.
	readGrants = `SELECT ` + grantColumns + `, mac FROM grants WHERE caller = $1 AND revoked_at = 0 AND ended_at = 0 ` +
		`AND suspended_at = 0 AND until > $2 ORDER BY id`

	readGrantsInForce = `SELECT ` + grantColumns + `, mac FROM grants WHERE revoked_at = 0 AND ended_at = 0 ` +
		`AND until > $1 ORDER BY created_at, id`

	readGrantsPutTo = `SELECT ` + grantColumns + `, mac FROM grants WHERE revoked_at = 0 AND ended_at = 0 ` +
		`AND until > $1 AND EXISTS (SELECT 1 FROM requests, ` + askedOf + ` ` +
		`WHERE requests.id = grants.request AND person.value = $2) ORDER BY created_at, id`

	readGrant = `SELECT ` + grantColumns + `, mac FROM grants WHERE id = $1`
)

// Grants lists the grants of a caller that are neither revoked, suspended nor ended at now.
func (s *Store) Grants(ctx context.Context, caller string, now time.Time) ([]permissions.Grant, error) {
	return s.grants(ctx, readGrants, caller, micros(now))
}

// GrantsInForce implements [engine.Store].
func (s *Store) GrantsInForce(ctx context.Context, asked string, now time.Time) ([]permissions.Grant, error) {
	if asked == "" {
		return s.grants(ctx, readGrantsInForce, micros(now))
	}
	return s.grants(ctx, readGrantsPutTo, micros(now), asked)
}

func (s *Store) grants(ctx context.Context, text string, args ...any) ([]permissions.Grant, error) {
	return reading(ctx, s, func(from source) ([]permissions.Grant, error) { return sealed(ctx, s, from, grantGate, text, args...) })
}

// Grant returns one grant, or refuses with [permissions.CodeUnknown].
func (s *Store) Grant(ctx context.Context, id permissions.ID) (permissions.Grant, error) {
	return reading(ctx, s, func(from source) (permissions.Grant, error) {
		found, err := loadGrant(ctx, from, id)
		return found.row, err
	})
}

// loadGrant reads a grant without checking its seal.
func loadGrant(ctx context.Context, from source, id permissions.ID) (sealedRow[permissions.Grant], error) {
	g, found, err := first(ctx, from, "grant "+string(id), grantGate.rowFields, readGrant, id)
	if err == nil && !found {
		err = permissions.UnknownGrant(id)
	}
	return g, err
}

const (
	// A count beyond what can be reached is damage and stays.
	countUse = `UPDATE grants SET used = used + CASE WHEN used < 4503599627370496 THEN 1 ELSE 0 END ` +
		`WHERE id = $1 AND caller = $2 AND revoked_at = 0 AND ended_at = 0 AND suspended_at = 0 AND until > $3`

	addUse = `INSERT INTO uses (granted, request) VALUES ($1, $2)`
)

// readGrantInForce finds a grant that is in force for a caller at a time.
const readGrantInForce = `SELECT ` + grantColumns + `, mac FROM grants WHERE id = $1 AND caller = $2 AND revoked_at = 0 ` +
	`AND ended_at = 0 AND suspended_at = 0 AND until > $3 AND created_at <= $3`

// useGrants records that grants answered r, or a part of it. It refuses if one was revoked since r was drafted.
func (s *Store) useGrants(ctx context.Context, t *tx, r permissions.Request, at time.Time) error {
	for _, id := range r.Under {
		g, err := loadGrant(ctx, t, id)
		if err != nil {
			return err
		}
		if !grantGate.holds(s.seals, g) {
			return permissions.UnknownGrant(id)
		}
		if t.exec(ctx, countUse, id, r.Caller.Name, micros(at)) != 1 {
			return permissions.UnknownGrant(id)
		}
		t.exec(ctx, addUse, id, r.Number)
	}
	return nil
}

const readRan = `SELECT ` + sealedRequest + ` FROM requests WHERE number IN ` +
	`(SELECT request FROM uses WHERE granted = $1 ORDER BY request DESC LIMIT 0 + $2) ORDER BY number DESC`

// Ran lists at most limit requests that a grant answered, newest first.
func (s *Store) Ran(ctx context.Context, grant permissions.ID, limit int) ([]permissions.Request, error) {
	return reading(ctx, s, func(from source) ([]permissions.Request, error) {
		ran, _, err := s.many(ctx, from, readRan, grant, limit)
		return ran, err
	})
}
