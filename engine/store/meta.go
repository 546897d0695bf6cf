package store

import (
	"context"
	"time"
)

// stoppedByNobody is the name for a stop without a name: empty would mean that nothing is stopped.
const stoppedByNobody = "daycared"

// identity is the store's record of itself, covered by a seal.
type identity struct {
	chain                 string
	code                  []byte // key of the request codes
	stoppedBy             string
	stoppedAt, restoredAt time.Time
	above                 int64
	restrictions          string // see [restrictions]
	seals                 int64  // see [sealVersion]
	mac                   []byte
}

// In a store without these columns, shut and seals resolve to the outer query's names.
const readMeta = `SELECT chain, code_key, stopped_by, stopped_at, restored_at, numbers_above, mac, (SELECT shut FROM meta LIMIT 1), ` +
	`(SELECT seals FROM meta LIMIT 1) FROM meta, (SELECT '' AS shut, 0 AS seals) AS none`

func (i *identity) fields() []any {
	return []any{&i.chain, &i.code, &i.stoppedBy, instant{&i.stoppedAt}, instant{&i.restoredAt}, &i.above}
}

// sealed are the sealed values. Old stores sealed all but the last, or but the last two.
func (i *identity) sealed() []any {
	if i.seals != 0 {
		return append(i.fields(), i.restrictions, i.seals)
	}
	if i.restrictions == "" {
		return i.fields()
	}
	return append(i.fields(), i.restrictions)
}

func readIdentity(ctx context.Context, from source) (i identity, err error) {
	err = from.QueryRowContext(ctx, readMeta).Scan(exactFields(append(i.fields(), &i.mac, &i.restrictions, &i.seals))...)
	return i, err
}

func (i *identity) hasValidSeal(k *sealer) bool {
	return k != nil && k.isSealOf(i.mac, "meta", i.sealed()...)
}

// sealIdentity seals the identity after a change.
func sealIdentity(ctx context.Context, t execer, k *sealer) error {
	i, err := readIdentity(ctx, t)
	if err == nil {
		_, err = t.ExecContext(ctx, `UPDATE meta SET mac = $1`, k.seal("meta", i.sealed()...))
	}
	return err
}

const readChain = `SELECT chain FROM meta`

// countSealed is 1 if the tables have a column for seals.
const countSealed = `SELECT COUNT(*) FROM pragma_table_info('audit') WHERE name = 'mac'`

// hasSeals reports whether the rows of a store can have seals.
func hasSeals(ctx context.Context, from source) (bool, error) {
	n := 0
	err := from.QueryRowContext(ctx, countSealed).Scan(&n)
	return n > 0, err
}

// sealsBefore is the version of the seals that the rows of a store with the identity own have. An identity from before that is said
// to be older than the audit says was put back.
func (s *Store) sealsBefore(ctx context.Context, t *tx, own identity) (int64, error) {
	if own.seals == sealVersion {
		return own.seals, nil
	}
	n, err := count(ctx, t, newestVersion)
	if said := int64(n); said <= own.seals || err != nil {
		return own.seals, err
	}
	s.log.Error("what the store says of itself was put back to before its rows were sealed: they are not sealed again")
	return int64(n), nil
}

// newestVersion is the newest [sealVersion] as which the rows of a store were sealed, by its entries.
const newestVersion = `SELECT COALESCE(MAX(CASE WHEN detail LIKE '%"seals":"2"%' THEN 2 WHEN detail LIKE '%"seals":"1"%' THEN 1 END), 0) ` +
	`FROM audit WHERE type IN ('AUDIT_KEYED', 'STORE_RESTORED')`

const writeSeals = `UPDATE meta SET seals = $1`

const insertMeta = `INSERT INTO meta (chain, code_key, created_at, beat, stopped_by, stopped_at, alive_at, seals) ` +
	`VALUES ($1, $2, $3, 0, '', 0, 0, $4)`

const insertChain = `INSERT INTO chains (number, name) VALUES (0, $1)`

// anyRows reports whether a store has audit entries or rows that open something.
const anyRows = `SELECT EXISTS (SELECT 1 FROM entries) OR EXISTS (SELECT 1 FROM requests) OR EXISTS (SELECT 1 FROM tokens) ` +
	`OR EXISTS (SELECT 1 FROM pairings)`
