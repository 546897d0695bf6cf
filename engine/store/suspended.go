package store

import (
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
	if all.Grants, err = sealed(ctx, s, from, grantGate, readSuspendedGrants); err != nil {
		return all, err
	}
	if all.Tokens, err = sealed(ctx, s, from, tokenGate, readSuspendedTokens); err != nil {
		return all, err
	}
	all.Pairings, err = sealed(ctx, s, from, pairingGate, readSuspendedPairings)
	return all, err
}

// Reinstate implements [engine.Store].
func (s *Store) Reinstate(
	ctx context.Context, names []string, by, via string, at time.Time,
) (back permissions.Suspended, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		if back, err = s.suspended(ctx, t); err != nil {
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
	for _, g := range all.Grants {
		record := grantRecord(permissions.GrantReinstated, g, by, via, at)
		if err := reinstate(ctx, s, t, grantGate, g, record); err != nil {
			return err
		}
	}
	for _, token := range all.Tokens {
		record := tokenRecord(permissions.TokenReinstated, token, by, via, at)
		if err := reinstate(ctx, s, t, tokenGate, token, record); err != nil {
			return err
		}
	}
	for _, p := range all.Pairings {
		record := pairingRecord(permissions.PairingReinstated, p, by, via, at)
		if err := reinstate(ctx, s, t, pairingGate, p, record); err != nil {
			return err
		}
	}
	return nil
}

func reinstate[T any](ctx context.Context, s *Store, t *tx, g gate[T], row T, record permissions.Record) error {
	*g.since(&row) = time.Time{}
	if err := g.put(ctx, t, s.seals, row); err != nil {
		return err
	}
	return s.append(ctx, t, record)
}

// named selects the suspended items with these names; all without names.
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

const (
	addSuspension = `INSERT INTO suspensions (via, address, at) VALUES ($1, $2, $3) ON CONFLICT (via, address) DO NOTHING`

	putSuspension = `REPLACE INTO suspensions (via, address, at) VALUES ($1, $2, $3)`

	readSuspensions = `SELECT via, address, at FROM suspensions ORDER BY via, address`

	deleteSuspension = `DELETE FROM suspensions WHERE via = $1 AND address = $2`
)

func suspensionFields(a *permissions.Suspension) []any {
	return []any{&a.Via, &a.Address, instant{&a.At}}
}

// Suspend implements [engine.Store].
func (s *Store) Suspend(ctx context.Context, via, address, who string, at time.Time) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		return s.changeShut(ctx, t, func() error {
			result, err := t.ExecContext(ctx, addSuspension, via, address, micros(at))
			if err != nil {
				return err
			}
			if n, _ := result.RowsAffected(); n == 0 { // SQLite always reports it
				return nil
			}
			account := permissions.Pairing{Person: who, Via: via, Address: address}
			return s.append(ctx, t, pairingRecord(permissions.AccountSuspended, account, who, via, at))
		})
	})
}

// Suspensions lists the accounts that are suspended.
func (s *Store) Suspensions(ctx context.Context) ([]permissions.Suspension, error) {
	return whole(ctx, s, "", suspensionFields, readSuspensions)
}

// lift ends the suspension of an account, and reports whether there was one.
func (s *Store) lift(ctx context.Context, t *tx, via, address string) (was bool, err error) {
	err = s.changeShut(ctx, t, func() error {
		result, err := t.ExecContext(ctx, deleteSuspension, via, address)
		if err == nil {
			n, _ := result.RowsAffected()
			was = n > 0
		}
		return err
	})
	return was, err
}
