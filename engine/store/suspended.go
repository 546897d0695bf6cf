package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	readSuspendedGrants = `SELECT ` + grantColumns + `, mac FROM grants WHERE revoked_at = 0 AND ended_at = 0 AND suspended_at > 0 ` +
		`ORDER BY created_at, id`

	readSuspendedTokens = `SELECT ` + tokenColumns + `, mac FROM tokens WHERE revoked_at = 0 AND suspended_at > 0 ORDER BY name, id`

	readSuspendedPairings = `SELECT ` + pairingColumns + `, mac FROM pairings WHERE suspended_at > 0 ORDER BY person, via`
)

// Suspended lists what a restore or a new key suspended.
func (s *Store) Suspended(ctx context.Context) (permissions.Suspended, error) {
	return reading(ctx, s, func(from source) (permissions.Suspended, error) { return s.suspended(ctx, from) })
}

func (s *Store) suspended(ctx context.Context, from source) (all permissions.Suspended, err error) {
	var noGrants, noTokens error
	all.Grants, noGrants = readSealedRows(ctx, s, from, grantGate, readSuspendedGrants)
	all.Tokens, noTokens = readSealedRows(ctx, s, from, tokenGate, readSuspendedTokens)
	all.Pairings, err = readSealedRows(ctx, s, from, pairingGate, readSuspendedPairings)
	return all, cmp.Or(noGrants, noTokens, err)
}

// Reinstate implements [engine.Store].
func (s *Store) Reinstate(ctx context.Context, names []string, by, via string, at time.Time) (permissions.Suspended, error) {
	return writing(ctx, s, func(ctx context.Context, t *tx) (back permissions.Suspended, err error) {
		if back, err = s.suspended(ctx, t); err == nil {
			back, err = named(back, names)
		}
		if err == nil {
			s.reinstate(ctx, t, back, by, via, at)
		}
		return back, err
	})
}

func (s *Store) reinstate(ctx context.Context, t *tx, all permissions.Suspended, by, via string, at time.Time) {
	for _, g := range all.Grants {
		reinstate(ctx, s, t, grantGate, g, grantRecord(permissions.GrantReinstated, g, by, via, at))
	}
	for _, token := range all.Tokens {
		reinstate(ctx, s, t, tokenGate, token, tokenRecord(permissions.TokenReinstated, token, by, via, at))
	}
	for _, p := range all.Pairings {
		reinstate(ctx, s, t, pairingGate, p, pairingRecord(permissions.PairingReinstated, p, by, via, at))
	}
}

func reinstate[T any](ctx context.Context, s *Store, t *tx, g gate[T], row T, record permissions.Record) {
	*g.since(&row) = time.Time{}
	g.put(ctx, t, s.seals, row)
	s.append(ctx, t, record)
}

// named selects the suspended items with these names, see [permissions.ResolveID]; all without names.
func named(all permissions.Suspended, names []string) (found permissions.Suspended, err error) {
	if len(names) == 0 {
		return all, nil
	}
	var ids []permissions.ID
	for _, g := range all.Grants {
		ids = append(ids, g.ID)
	}
	for _, t := range all.Tokens {
		ids = append(ids, t.ID)
	}
	for _, name := range names {
		before := found.Count()
		id, err := permissions.ResolveID(name, ids)
		if err != nil {
			return permissions.Suspended{}, err
		}
		found.Grants = append(found.Grants, only(all.Grants, func(g permissions.Grant) bool { return g.ID == id })...)
		found.Tokens = append(found.Tokens, only(all.Tokens, func(t permissions.Token) bool { return t.ID == id })...)
		found.Pairings = append(found.Pairings, only(all.Pairings, func(p permissions.Pairing) bool { return p.Name() == name })...)
		if found.Count() == before {
			return permissions.Suspended{}, permissions.NotSuspended(name)
		}
	}
	return found, nil
}

func only[T any](all []T, meant func(T) bool) []T {
	i := slices.IndexFunc(all, meant)
	if i < 0 {
		return nil
	}
	return all[i : i+1]
}
