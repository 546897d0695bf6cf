package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	grantColumns = oldGrantColumns + `, rule`

	oldGrantColumns = `id, caller, session, tags, tool, call, until, request, granted_by, created_at, revoked_at, used, ` +
		`suspended_at`
)

func grantFields(g *permissions.Grant) []any {
	return []any{
		&g.ID, &g.Caller, &g.Session, list[permissions.Tag]{&g.Tags}, &g.Tool, digest{&g.Call}, endTime{&g.Until}, &g.Request,
		&g.By, instant{&g.CreatedAt}, instant{&g.RevokedAt}, &g.Used, instant{&g.SuspendedAt}, &g.Rule,
	}
}

var grantGate = gate[permissions.Grant]{
	table: "grants", fields: grantFields,
	sealed: func(g *permissions.Grant) []any {
		values := []any{
			&g.ID, &g.Caller, &g.Session, list[permissions.Tag]{&g.Tags}, &g.Tool, digest{&g.Call}, endTime{&g.Until}, &g.Request,
			&g.By, instant{&g.CreatedAt}, instant{&g.SuspendedAt},
		}
		if g.Rule != "" { // old seals lack it
			values = append(values, &g.Rule)
		}
		return values
	},
	since: func(g *permissions.Grant) *time.Time { return &g.SuspendedAt },
	// In a backup without that column, rule resolves to the outer query's name.
	open: `SELECT ` + oldGrantColumns + `, (SELECT rule FROM grants AS own WHERE own.id = grants.id), mac ` +
		`FROM grants, (SELECT '' AS rule) AS none WHERE revoked_at = 0 AND ended_at = 0 ORDER BY id`,
	close: revokeGrant,
	set:   `UPDATE grants SET suspended_at = $1, mac = $2 WHERE id = $3`,
	key:   func(g *permissions.Grant) []any { return []any{g.ID} },
	name:  func(g permissions.Grant) string { return "grant " + string(g.ID) },
	made:  func(g permissions.Grant) time.Time { return g.CreatedAt },
}

const addedGrantColumns = grantColumns + `, mac, ended_at`

var addGrant = `INSERT INTO grants (` + addedGrantColumns + `) VALUES (` + parameters(addedGrantColumns) + `)`

const (
	// A grant that was recorded as ended stays ended, even if the clock goes back.
	readGrants = `SELECT ` + grantColumns + `, mac FROM grants WHERE caller = $1 AND revoked_at = 0 AND ended_at = 0 ` +
		`AND suspended_at = 0 AND until > $2 ORDER BY id`

	// An id begins with the time.
	readGrantsInForce = `SELECT ` + grantColumns + `, mac FROM ` + grantsInForce + `AND id > $3 ORDER BY id LIMIT 0 + $4`
	readGrantsFromEnd = `SELECT id FROM ` + grantsInForce + `ORDER BY id DESC LIMIT 1 OFFSET 0 + $3`

	grantsInForce = `grants WHERE revoked_at = 0 AND ended_at = 0 AND until > $1 AND ($2 = '' OR EXISTS (SELECT 1 FROM requests, ` +
		askedOf + ` WHERE requests.id = grants.request AND person.value = $2)) `

	readGrant = `SELECT ` + grantColumns + `, mac FROM grants WHERE id = $1`
)

// Grants lists the grants of a caller that are neither revoked, suspended nor ended at now.
func (s *Store) Grants(ctx context.Context, caller string, now time.Time) ([]permissions.Grant, error) {
	if err := s.checkPathsLately(ctx); err != nil {
		return nil, err
	}
	all, known, version := s.liveGrants.get(caller)
	if !known {
		var err error
		if all, err = s.grants(ctx, readGrants, caller, math.MinInt64); err != nil {
			return nil, err
		}
		s.liveGrants.put(caller, all, version)
	}
	return slices.DeleteFunc(slices.Clone(all), func(g permissions.Grant) bool { return !g.Until.IsZero() && !g.Until.After(now) }), nil
}

// GrantsInForce implements [engine.Store].
func (s *Store) GrantsInForce(
	ctx context.Context, asked string, now time.Time, after permissions.ID, limit int,
) ([]permissions.Grant, error) {
	return reading(ctx, s, func(from source) (page []permissions.Grant, err error) {
		if place, is, err := fromEnd[permissions.ID](ctx, from, after, readGrantsFromEnd, micros(now), asked); is || err != nil {
			if after = place; err != nil {
				return nil, err
			}
		}
		for len(page) < limit {
			found, err := collect(ctx, from, "", grantGate.rowFields, readGrantsInForce, micros(now), asked, after, limit-len(page))
			if err != nil || len(found) == 0 {
				return page, err
			}
			page, after = append(page, withValidSeal(s, grantGate, found)...), found[len(found)-1].row.ID
		}
		return page, nil
	})
}

func (s *Store) grants(ctx context.Context, text string, args ...any) ([]permissions.Grant, error) {
	return reading(ctx, s, func(from source) ([]permissions.Grant, error) {
		return readSealedRows(ctx, s, from, grantGate, text, args...)
	})
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
	g, found, err := firstRow(ctx, from, "grant "+string(id), grantGate.rowFields, readGrant, id)
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

	prolong = `UPDATE grants SET until = $1, mac = $2 WHERE id = $3`
)

// readGrantInForce finds a grant that is in force for a caller at a time.
const readGrantInForce = `SELECT ` + grantColumns + `, mac FROM grants WHERE id = $1 AND caller = $2 AND revoked_at = 0 ` +
	`AND ended_at = 0 AND suspended_at = 0 AND until > $3 AND created_at <= $3`

// An approval depends on the grants that answered part of the question (Under), and one wider than once also on the
// grants that it created. Both are checked in the transaction of the use.

const (
	countLeft = `SELECT COUNT(*) FROM grants WHERE request = $1`

	readLeft = `SELECT ` + grantColumns + `, mac FROM grants WHERE request = $1 AND revoked_at = 0 AND ended_at = 0 ` +
		`AND suspended_at = 0 AND until > $2 AND created_at <= $2 ORDER BY id`
)

// grantsInForce reports whether all grants that r depends on, and one of those that it created (if any), are in force at the given time.
func (s *Store) grantsInForce(ctx context.Context, from source, r permissions.Request, at time.Time) (bool, error) {
	left, err := count(ctx, from, countLeft, r.ID)
	if err != nil {
		return false, err
	}
	if left > 0 || r.LeavesGrants() { // pruned no earlier than the request
		live, err := readSealedRows(ctx, s, from, grantGate, readLeft, r.ID, micros(at))
		if err != nil || len(live) == 0 {
			return false, err
		}
	}
	for _, id := range r.Grants {
		live, err := readSealedRows(ctx, s, from, grantGate, readGrantInForce, id, r.Caller.Name, micros(at))
		if err != nil || len(live) == 0 {
			return false, err
		}
	}
	return true, nil
}

// useGrants records that grants answered r, or a part of it. It refuses if one was revoked since r was drafted.
func (s *Store) useGrants(ctx context.Context, t *tx, r permissions.Request, at time.Time) error {
	for _, id := range r.Grants {
		g, err := loadGrant(ctx, t, id)
		if err != nil {
			return err
		}
		if !grantGate.hasValidSeal(s.seals, g) {
			return permissions.UnknownGrant(id)
		}
		if t.affected(ctx, countUse, id, r.Caller.Name, micros(at)) != 1 {
			return permissions.UnknownGrant(id)
		}
		t.exec(ctx, addUse, id, r.Number)
		if until := at.Add(g.row.Idle()); g.row.Idle() > 0 && until.After(g.row.Until) {
			g.row.Until = until
			t.exec(ctx, prolong, endTime{&g.row.Until}, grantGate.mac(s.seals, g.row), id)
		}
	}
	return nil
}

const readRan = `SELECT ` + sealedRequest + ` FROM requests WHERE number IN ` +
	`(SELECT request FROM uses WHERE granted = $1 ORDER BY request DESC LIMIT 0 + $2) ORDER BY number DESC`

// RanUnder lists at most limit requests that a grant answered, newest first.
func (s *Store) RanUnder(ctx context.Context, grant permissions.ID, limit int) ([]permissions.Request, error) {
	return reading(ctx, s, func(from source) ([]permissions.Request, error) {
		ran, _, err := s.many(ctx, from, readRan, grant, limit)
		return ran, err
	})
}

const revokeGrant = `UPDATE grants SET revoked_at = $1, mac = '' WHERE id = $2 AND revoked_at = 0 AND ended_at = 0`

// Revoke implements [engine.Store].
func (s *Store) Revoke(
	ctx context.Context, id permissions.ID, by, via string, at time.Time, limit int,
) (permissions.Revoked, error) {
	return writing(ctx, s, func(ctx context.Context, t *tx) (revoked permissions.Revoked, err error) {
		found, err := loadGrant(ctx, t, id)
		if err != nil {
			return revoked, err
		}
		revoked.Grant = found.row
		if revoked.Ran, _, err = s.many(ctx, t, readRan, id, limit); err != nil {
			return revoked, err
		}
		open, err := collect(ctx, t, "a grant", grantFields, readOpenGrants, list[permissions.ID]{&[]permissions.ID{id}})
		if err != nil || len(open) == 0 {
			return revoked, err
		}
		t.change(ctx, revokeGrant, micros(at), id)
		releaseKeys(ctx, t, revoked.Grant)
		s.append(ctx, t, grantRecord(permissions.GrantRevoked, revoked.Grant, by, via, at))
		n := permissions.Notice{About: permissions.AboutRevoked, By: by, CreatedAt: at}
		tellAllowers(ctx, t, revoked.Grant, n)
		return revoked, nil
	})
}

func grantRecord(what permissions.Type, g permissions.Grant, by, via string, at time.Time) permissions.Record {
	return permissions.Record{
		Type: what, At: at, Request: g.Request, Actor: by, Via: via,
		Detail: map[string]string{"grant": string(g.ID), "used": strconv.Itoa(g.Used)},
	}
}

// tellAllowers leaves a notice about a grant for everybody who allowed its request, except the person who caused it.
func tellAllowers(ctx context.Context, t *tx, g permissions.Grant, n permissions.Notice) {
	number, _, err := numberAndDigest(ctx, t, g.Request)
	of := []permissions.Request{{Number: number}}
	t.fail(cmp.Or(err, addVotes(ctx, t, of)))
	told := map[string]bool{n.By: true}
	n.Subject = g.ID
	for _, v := range of[0].Votes {
		if _, allows := v.Answer.Scope(); allows && !told[v.By] {
			told[v.By], n.To = true, v.By
			insertNotice(ctx, t, n)
		}
	}
}

const (
	readGrantsOf = `SELECT ` + grantColumns + ` FROM grants WHERE request = $1 AND revoked_at = 0 AND ended_at = 0 ` +
		`ORDER BY id`

	readGrantIDsOf = `SELECT id FROM grants WHERE request = $1 AND revoked_at = 0 AND ended_at = 0`
)

// revokeGrantsOf revokes the grants of an approval that was revoked. Who did it is in the record of that.
func (s *Store) revokeGrantsOf(ctx context.Context, t *tx, c permissions.Change) error {
	left, err := collectReadable(ctx, s, t, "a grant", grantFields, readGrantsOf, c.Before.ID)
	if err != nil {
		return err
	}
	var by, via string
	for _, record := range c.Records {
		by, via = record.Actor, record.Via
	}
	ids, err := collectReadable(ctx, s, t, "a grant", value[permissions.ID], readGrantIDsOf, c.Before.ID)
	if err != nil {
		return err
	}
	for _, id := range ids { // an unreadable grant is closed by its id, so that restored bytes do not reopen it
		if !slices.ContainsFunc(left, func(g permissions.Grant) bool { return g.ID == id }) {
			left = append(left, permissions.Grant{ID: id, Request: c.Before.ID, Caller: c.Before.Caller.Name})
		}
	}
	for _, g := range left {
		t.change(ctx, revokeGrant, micros(c.After.VoidAt), g.ID)
		releaseKeys(ctx, t, g)
		s.append(ctx, t, grantRecord(permissions.GrantRevoked, g, by, via, c.After.VoidAt))
	}
	return nil
}

const (
	soonestGrant = `SELECT until FROM grants WHERE revoked_at = 0 AND ended_at = 0 AND until < $1 ORDER BY until LIMIT 1`

	readOpenGrants = `SELECT ` + grantColumns + ` FROM grants WHERE id IN (SELECT value FROM json_each($1)) ` +
		`AND revoked_at = 0 AND ended_at = 0`

	readEnded = `SELECT ` + grantColumns + ` FROM grants WHERE revoked_at = 0 AND ended_at = 0 AND until <= $1 ` +
		`ORDER BY until LIMIT 0 + $2`

	// The rows left open after the readable ones were closed. Only audit verify reports them later.
	endUnreadable = `UPDATE grants SET ended_at = $1, mac = '' WHERE id IN (SELECT id FROM grants WHERE revoked_at = 0 ` +
		`AND ended_at = 0 AND until <= $1 ORDER BY until LIMIT 0 + $2)`
)

// EndGrants implements [registry.Store]. It writes only if there is something to record.
func (s *Store) EndGrants(ctx context.Context, now time.Time, limit int) (ended []permissions.Grant, next time.Time, err error) {
	err = s.read(ctx, func(from source) error {
		next, err = soonestEnd(ctx, from)
		return err
	})
	if err != nil || next.IsZero() || next.After(now) {
		return nil, next, err
	}
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		if ended, err = collectReadable(ctx, s, t, "a grant", grantFields, readEnded, micros(now), limit); err != nil {
			return err
		}
		for _, g := range ended {
			s.endGrant(ctx, t, g, now)
		}
		t.exec(ctx, endUnreadable, micros(now), limit-len(ended))
		next, err = soonestEnd(ctx, t)
		return err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	return ended, next, nil
}

// EndGrantsNow implements [registry.Store].
func (s *Store) EndGrantsNow(ctx context.Context, ids []permissions.ID, now time.Time) (ended []permissions.Grant, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return writing(ctx, s, func(ctx context.Context, t *tx) ([]permissions.Grant, error) {
		ended, err := collectReadable(ctx, s, t, "a grant", grantFields, readOpenGrants, list[permissions.ID]{&ids})
		for _, g := range ended {
			s.endGrant(ctx, t, g, now)
		}
		return ended, err
	})
}

func (s *Store) endGrant(ctx context.Context, t *tx, g permissions.Grant, now time.Time) {
	s.noteEnd(ctx, t, g, now)
	if g.Session == "" { // else as when its session ends
		tellAllowers(ctx, t, g, permissions.Notice{About: permissions.AboutEnded, CreatedAt: now})
	}
}

// noteEnd is endGrant without a notice.
func (s *Store) noteEnd(ctx context.Context, t *tx, g permissions.Grant, now time.Time) {
	t.change(ctx, `UPDATE grants SET ended_at = $1, mac = '' WHERE id = $2`, micros(now), g.ID)
	releaseKeys(ctx, t, g)
	s.append(ctx, t, grantRecord(permissions.GrantEnded, g, "", "", now))
}

// soonestEnd is when the next grant ends, zero if there is none.
func soonestEnd(ctx context.Context, from source) (at time.Time, err error) {
	field := func(at *time.Time) []any { return []any{endTime{at}} }
	at, _, err = firstRow(ctx, from, "the end of a grant", field, soonestGrant, int64(never))
	return at, err
}

const (
	releaseOwn = `UPDATE requests SET key_live = FALSE WHERE id = $1 AND key <> ''`

	releaseUses = `UPDATE requests SET key_live = FALSE WHERE number IN (SELECT request FROM uses WHERE granted = $1) ` +
		`AND key <> ''`
)

// releaseKeys makes the keys of requests that an ended grant approved unusable.
func releaseKeys(ctx context.Context, t *tx, g permissions.Grant) {
	if !(permissions.Caller{Name: g.Caller}).IsOurs() { // their keys stay: a reused key reports that the approval is over
		t.exec(ctx, releaseOwn, g.Request)
		t.exec(ctx, releaseUses, g.ID)
	}
}
