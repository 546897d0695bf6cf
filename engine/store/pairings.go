package store

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

const pairingColumns = `person, via, address, alias, paired_at, suspended_at`

func pairingFields(p *permissions.Pairing) []any {
	return []any{&p.Person, &p.Via, &p.Address, &p.Alias, instant{&p.PairedAt}, instant{&p.SuspendedAt}}
}

var pairingGate = gate[permissions.Pairing]{
	table: "pairings", fields: pairingFields, sealed: pairingFields,
	since:  func(p *permissions.Pairing) *time.Time { return &p.SuspendedAt },
	open:   `SELECT ` + pairingColumns + `, mac FROM pairings ORDER BY person, via`,
	close:  deletePairing,
	set:    `UPDATE pairings SET suspended_at = $1, mac = $2 WHERE person = $3 AND via = $4`,
	key:    func(p *permissions.Pairing) []any { return []any{p.Person, p.Via} },
	name:   func(p permissions.Pairing) string { return "pairing " + p.Name() },
	made:   func(p permissions.Pairing) time.Time { return p.PairedAt },
	agrees: func(p permissions.Pairing, said *permissions.Entry) bool { return p.Address == said.Detail["address"] },
}

const (
	readPairing = `SELECT ` + pairingColumns + `, mac FROM pairings WHERE person = $1 AND via = $2`

	writePairing = `INSERT INTO pairings (` + pairingColumns + `, mac) VALUES ($1, $2, $3, $4, $5, $6, $7) ` +
		`ON CONFLICT (person, via) DO UPDATE ` +
		`SET address = excluded.address, alias = excluded.alias, paired_at = excluded.paired_at, ` +
		`suspended_at = excluded.suspended_at, mac = excluded.mac`

	deletePairing = `DELETE FROM pairings WHERE person = $1 AND via = $2`
)

// Pairings lists every pairing, by person.
func (s *Store) Pairings(ctx context.Context) ([]permissions.Pairing, error) {
	return reading(ctx, s, func(from source) ([]permissions.Pairing, error) {
		return readSealedRows(ctx, s, from, pairingGate, pairingGate.open)
	})
}

// Pair implements [engine.Store]. The same pairing again only ends its suspension and that of its account.
func (s *Store) Pair(ctx context.Context, p permissions.Pairing, by, via string) (permissions.Pairing, error) {
	return writing(ctx, s, func(ctx context.Context, t *tx) (was permissions.Pairing, err error) {
		found, err := loadPairing(ctx, t, `SELECT `+pairingColumns+`, mac FROM pairings WHERE via = $1 AND address = $2`, p.Via, p.Address)
		owner := found.row
		switch {
		case err != nil:
			return was, err
		case owner.Person != "" && owner.Person != p.Person:
			return was, permissions.OthersAccount(p.Address, owner.Person)
		}
		lifted := s.lift(ctx, t, p.Via, p.Address)
		if owner.Person != "" && owner.Alias == p.Alias && !lifted && owner.SuspendedAt.IsZero() && pairingGate.hasValidSeal(s.seals, found) {
			return owner, nil
		}
		if found, err = loadPairing(ctx, t, readPairing, p.Person, p.Via); err != nil {
			return was, err
		}
		was = found.row
		t.exec(ctx, writePairing, pairingGate.args(s.seals, p)...)
		t.exec(ctx, dropProposals+` AND via = $1 AND (account = $2 OR person = $3)`, p.Via, p.Address, p.Person)
		record := pairingRecord(permissions.Paired, p, by, via, p.PairedAt)
		if was.Address != "" && was.Address != p.Address {
			record.Detail["was"] = was.Address
		}
		if lifted {
			record.Detail["suspension"] = "ended"
		}
		s.append(ctx, t, record)
		return was, nil
	})
}

// Unpair removes and returns a person's account in a channel, or refuses with [permissions.CodeUnknown].
func (s *Store) Unpair(ctx context.Context, person, channel, by, via string, at time.Time) (permissions.Pairing, error) {
	return writing(ctx, s, func(ctx context.Context, t *tx) (permissions.Pairing, error) {
		was, err := loadPairing(ctx, t, readPairing, person, channel)
		if err == nil && was.row.Person == "" {
			err = permissions.NoPairing(person, channel)
		}
		if err != nil {
			return was.row, err
		}
		t.change(ctx, deletePairing, person, channel)
		s.append(ctx, t, pairingRecord(permissions.Unpaired, was.row, by, via, at))
		return was.row, nil
	})
}

// loadPairing reads one pairing without checking its seal; the zero value if there is none.
func loadPairing(ctx context.Context, from source, text string, args ...any) (sealedRow[permissions.Pairing], error) {
	p, _, err := firstRow(ctx, from, "a pairing", pairingGate.rowFields, text, args...)
	return p, err
}
