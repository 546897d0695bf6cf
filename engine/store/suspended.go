package store

import (
	"context"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	readSuspendedGrants = `SELECT ` + grantColumns + ` FROM grants WHERE revoked_at = 0 AND ended_at = 0 AND suspended_at > 0 ` +
		`ORDER BY created_at, id`

	readSuspendedTokens = `SELECT ` + tokenColumns + ` FROM tokens WHERE revoked_at = 0 AND suspended_at > 0 ORDER BY name, id`

	readSuspendedPairings = `SELECT ` + pairingColumns + ` FROM pairings WHERE suspended_at > 0 ORDER BY person, via`
)

// Suspended lists what opens nothing since the store was restored.
func (s *Store) Suspended(ctx context.Context) (all permissions.Suspended, err error) {
	err = s.read(ctx, func(from source) error {
		all, err = suspended(ctx, from)
		return err
	})
	return all, err
}

func suspended(ctx context.Context, from source) (all permissions.Suspended, err error) {
	if all.Grants, err = collect(ctx, from, "a grant", grantFields, readSuspendedGrants); err != nil {
		return all, err
	}
	if all.Tokens, err = collect(ctx, from, "a token", tokenFields, readSuspendedTokens); err != nil {
		return all, err
	}
	all.Pairings, err = collect(ctx, from, "a pairing", pairingFields, readSuspendedPairings)
	return all, err
}

const (
	reinstateGrant   = `UPDATE grants SET suspended_at = 0 WHERE id = $1`
	reinstateToken   = `UPDATE tokens SET suspended_at = 0 WHERE id = $1`
	reinstatePairing = `UPDATE pairings SET suspended_at = 0 WHERE person = $1 AND via = $2`
)

// Reinstate has what is suspended open again what it opened: grants and tokens by their ids, pairings as NAME/CHANNEL;
// without names, everything. It returns what it was. Where one of the names is nothing that is suspended, nothing is
// reinstated: refused with [permissions.CodeUnknown].
func (s *Store) Reinstate(
	ctx context.Context, names []string, by, via string, at time.Time,
) (back permissions.Suspended, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		if back, err = suspended(ctx, t); err != nil {
			return err
		}
		if back, err = named(back, names); err != nil {
			return err
		}
		return s.reinstate(ctx, t, back, by, via, at)
	})
	if err != nil {
		return permissions.Suspended{}, err
	}
	return back, nil
}

func (s *Store) reinstate(ctx context.Context, t *tx, all permissions.Suspended, by, via string, at time.Time) error {
	step := func(record permissions.Record, text string, args ...any) error {
		if _, err := t.ExecContext(ctx, text, args...); err != nil {
			return err
		}
		return s.append(ctx, t, record)
	}
	for _, g := range all.Grants {
		if err := step(grantRecord(permissions.GrantReinstated, g, by, via, at), reinstateGrant, g.ID); err != nil {
			return err
		}
	}
	for _, token := range all.Tokens {
		if err := step(tokenRecord(permissions.TokenReinstated, token, by, via, at), reinstateToken, token.ID); err != nil {
			return err
		}
	}
	for _, p := range all.Pairings {
		record := pairingRecord(permissions.PairingReinstated, p, by, via, at)
		if err := step(record, reinstatePairing, p.Person, p.Via); err != nil {
			return err
		}
	}
	return nil
}

// named are those of what is suspended that the names mean; all of it without names.
func named(all permissions.Suspended, names []string) (found permissions.Suspended, err error) {
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		before := found.Count()
		found.Grants = append(found.Grants, only(all.Grants, func(g permissions.Grant) bool { return string(g.ID) == name })...)
		found.Tokens = append(found.Tokens, only(all.Tokens, func(t permissions.Token) bool { return string(t.ID) == name })...)
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
