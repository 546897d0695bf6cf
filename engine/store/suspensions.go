package store

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	addSuspension = `INSERT INTO suspensions (via, address, at) VALUES ($1, $2, $3) ON CONFLICT (via, address) DO NOTHING`

	putSuspension = `REPLACE INTO suspensions (via, address, at) VALUES ($1, $2, $3)`

	readSuspensions = `SELECT via, address, at FROM suspensions ORDER BY via, address`

	deleteSuspension = `DELETE FROM suspensions WHERE via = $1 AND address = $2`
)

func suspensionFields(a *permissions.Suspension) []any {
	return []any{&a.Via, &a.Address, instant{&a.At}}
}

// Suspend is [engine.Store].
func (s *Store) Suspend(ctx context.Context, via, address, who string, at time.Time) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		return s.keepShut(ctx, t, func() error {
			result, err := t.ExecContext(ctx, addSuspension, via, address, micros(at))
			if err != nil {
				return err
			}
			if n, _ := result.RowsAffected(); n == 0 { // SQLite always tells
				return nil
			}
			account := permissions.Pairing{Person: who, Via: via, Address: address}
			return s.append(ctx, t, pairingRecord(permissions.AccountSuspended, account, who, via, at))
		})
	})
}

// Suspensions lists the accounts that are suspended.
func (s *Store) Suspensions(ctx context.Context) (all []permissions.Suspension, err error) {
	err = s.read(ctx, func(from source) error {
		all, err = collect(ctx, from, "", suspensionFields, readSuspensions)
		return err
	})
	return all, err
}

// lift ends the suspension of an account, and tells whether there was one.
func (s *Store) lift(ctx context.Context, t *tx, via, address string) (was bool, err error) {
	err = s.keepShut(ctx, t, func() error {
		result, err := t.ExecContext(ctx, deleteSuspension, via, address)
		if err == nil {
			n, _ := result.RowsAffected()
			was = n > 0
		}
		return err
	})
	return was, err
}
