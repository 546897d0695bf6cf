package store

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/daycared/daycared/permissions"
)

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
	of := []permissions.Request{{ID: g.Request}}
	t.fail(addVotes(ctx, t, of))
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
func (s *Store) EndGrants(
	ctx context.Context, now time.Time, limit int,
) (ended []permissions.Grant, next time.Time, err error) {
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
func (s *Store) EndGrantsNow(
	ctx context.Context, ids []permissions.ID, now time.Time,
) (ended []permissions.Grant, err error) {
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
	tellAllowers(ctx, t, g, permissions.Notice{About: permissions.AboutEnded, CreatedAt: now})
}

// noteEnd is endGrant without a notice.
func (s *Store) noteEnd(ctx context.Context, t *tx, g permissions.Grant, now time.Time) {
	t.change(ctx, `UPDATE grants SET ended_at = $1, mac = '' WHERE id = $2`, micros(now), g.ID)
	releaseKeys(ctx, t, g)
	s.append(ctx, t, grantRecord(permissions.GrantEnded, g, "", "", now))
}

// soonestEnd is when the next grant ends, zero if there is none.
func soonestEnd(ctx context.Context, from source) (at time.Time, err error) {
	field := func(at *time.Time) []any { return []any{end{at}} }
	at, _, err = first(ctx, from, "the end of a grant", field, soonestGrant, int64(never))
	return at, err
}
