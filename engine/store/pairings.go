package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/daycared/daycared/permissions"
)

const pairingColumns = `person, via, address, alias, paired_at, suspended_at`

func pairingFields(p *permissions.Pairing) []any {
	return []any{&p.Person, &p.Via, &p.Address, &p.Alias, instant{&p.PairedAt}, instant{&p.SuspendedAt}}
}

const (
	readPairings = `SELECT ` + pairingColumns + ` FROM pairings ORDER BY person, via`

	readPairing = `SELECT ` + pairingColumns + ` FROM pairings WHERE person = $1 AND via = $2`

	readOwner = `SELECT ` + pairingColumns + ` FROM pairings WHERE via = $1 AND address = $2`

	writePairing = `INSERT INTO pairings (` + pairingColumns + `) VALUES ($1, $2, $3, $4, $5, $6) ` +
		`ON CONFLICT (person, via) DO UPDATE ` +
		`SET address = excluded.address, alias = excluded.alias, paired_at = excluded.paired_at, ` +
		`suspended_at = excluded.suspended_at`

	deletePairing = `DELETE FROM pairings WHERE person = $1 AND via = $2`
)

// Pairings lists every pairing, by person.
func (s *Store) Pairings(ctx context.Context) (pairings []permissions.Pairing, err error) {
	err = s.read(ctx, func(from source) error {
		pairings, err = collect(ctx, from, "a pairing", pairingFields, readPairings)
		return err
	})
	return pairings, err
}

// Pair keeps a pairing in place of the person's earlier one, and returns that. The account of another person is refused
// with [permissions.CodeNotYours]; the same pairing again changes nothing, unless it or its account is suspended: it no longer is.
func (s *Store) Pair(
	ctx context.Context, p permissions.Pairing, by, via string,
) (was permissions.Pairing, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		owner, err := pairing(ctx, t, readOwner, p.Via, p.Address)
		switch {
		case err != nil:
			return err
		case owner.Person != "" && owner.Person != p.Person:
			return permissions.OthersAccount(p.Address, owner.Person)
		}
		lifted, err := lift(ctx, t, p.Via, p.Address)
		switch {
		case err != nil:
			return err
		case owner.Person != "" && owner.Alias == p.Alias && !lifted && owner.SuspendedAt.IsZero():
			was = owner
			return nil
		}
		if was, err = pairing(ctx, t, readPairing, p.Person, p.Via); err != nil {
			return err
		}
		if _, err := t.ExecContext(ctx, writePairing, pairingFields(&p)...); err != nil {
			return err
		}
		record := pairingRecord(permissions.Paired, p, by, via, p.PairedAt)
		if was.Address != "" && was.Address != p.Address {
			record.Detail["was"] = was.Address
		}
		if lifted {
			record.Detail["suspension"] = "ended"
		}
		return s.append(ctx, t, record)
	})
	if err != nil {
		return permissions.Pairing{}, err
	}
	return was, nil
}

// Unpair takes a person's account at a channel away and returns it, or refuses with [permissions.CodeUnknown].
func (s *Store) Unpair(
	ctx context.Context, person, channel, by, via string, at time.Time,
) (was permissions.Pairing, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		if was, err = pairing(ctx, t, readPairing, person, channel); err != nil {
			return err
		}
		if was.Person == "" {
			return permissions.NoPairing(person, channel)
		}
		if _, err := t.ExecContext(ctx, deletePairing, person, channel); err != nil {
			return err
		}
		return s.append(ctx, t, pairingRecord(permissions.Unpaired, was, by, via, at))
	})
	if err != nil {
		return permissions.Pairing{}, err
	}
	return was, nil
}

// pairing reads one pairing; the zero one where there is none.
func pairing(ctx context.Context, from source, text string, args ...any) (permissions.Pairing, error) {
	var p permissions.Pairing
	err := from.QueryRowContext(ctx, text, args...).Scan(pairingFields(&p)...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return permissions.Pairing{}, nil
	case err != nil:
		return permissions.Pairing{}, unreadable("a pairing", err)
	}
	return p, nil
}

func pairingRecord(what permissions.Type, p permissions.Pairing, by, via string, at time.Time) permissions.Record {
	r := permissions.Record{
		Type: what, At: at, Actor: by, Via: via,
		Detail: map[string]string{"person": p.Person, "via": p.Via, "address": p.Address},
	}
	if p.Alias != "" {
		r.Detail["alias"] = p.Alias
	}
	return r
}
