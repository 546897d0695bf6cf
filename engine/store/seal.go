package store

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

// gate is a table of sealed rows. A row that opens something carries a seal, written in the commit that creates or changes it, and
// is used only while the seal holds, so that neither a damaged disk nor somebody who edits the file without the key can open
// anything. Closing a row for good deletes its seal. A seal covers nothing that pruning deletes. Where more than the
// first four fields are set, each row opens something until closed, and can be suspended.
type gate[T any] struct {
	table  string
	fields func(*T) []any // the columns
	sealed func(*T) []any // the sealed values
	name   func(T) string
	since  func(*T) *time.Time
	open   string         // condition for an open row
	close  string         // closes one row, at a time or by deleting it
	set    string         // sets suspended_at and mac of one row
	key    func(*T) []any // identifies the row
	made   func(T) time.Time
	agrees func(row T, said *permissions.Entry) bool // reports whether the row matches its newest entry; nil: entries lack the data
}

// mac is the seal of a row.
func (g gate[T]) mac(k *sealer, row T) []byte { return k.seal(g.table, g.sealed(&row)...) }

// args are the values of a new row: its columns and its seal.
func (g gate[T]) args(k *sealer, row T) []any { return append(g.fields(&row), g.mac(k, row)) }

func (g gate[T]) hasValidSeal(k *sealer, r sealedRow[T]) bool {
	return k.isSealOf(r.mac, g.table, g.sealed(&r.row)...)
}

func (g gate[T]) rowFields(r *sealedRow[T]) []any { return append(g.fields(&r.row), &r.mac) }

// readSealedRows reads the rows that a query finds and whose seals hold. Others open nothing and are logged once each.
func readSealedRows[T any](ctx context.Context, s *Store, from source, g gate[T], text string, args ...any) (rows []T, err error) {
	found, err := collect(ctx, from, "", g.rowFields, text, args...)
	return withValidSeal(s, g, found), err
}

// withValidSeal returns the rows whose seals hold.
func withValidSeal[T any](s *Store, g gate[T], found []sealedRow[T]) (rows []T) {
	for _, r := range found {
		if g.hasValidSeal(s.seals, r) {
			rows = append(rows, r.row)
		} else {
			s.logUnsealed(g.name(r.row))
		}
	}
	return rows
}

// put writes a row's suspension and its new seal.
func (g gate[T]) put(ctx context.Context, t *tx, k *sealer, row T) {
	t.exec(ctx, g.set, append([]any{instant{g.since(&row)}, g.mac(k, row)}, g.key(&row)...)...)
}

// reseal seals every open row with the store's key, and suspends it since a time unless that is zero. A row whose seal
// does not hold is left as it is; without a key to check with, every row is accepted. It returns how many were sealed.
func reseal[T any](ctx context.Context, s *Store, t *tx, g gate[T], since time.Time) (n int64) {
	found, err := collect(ctx, t, "", g.rowFields, g.open)
	t.fail(err)
	for _, r := range found {
		if s.from != nil && !g.hasValidSeal(s.from, r) {
			s.logUnsealed(g.name(r.row))
			continue
		}
		at := g.since(&r.row)
		if !at.IsZero() && s.from == s.seals {
			continue
		}
		if at.IsZero() {
			*at = since
		}
		g.put(ctx, t, s.seals, r.row)
		n++
	}
	return n
}
