package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// An old row has a valid seal too, so somebody may put one back after what it opens was closed. Each start therefore compares the
// open rows, the locks, the suspended accounts and the stop with the newest entry of each, and closes again what that entry closed.
// A row of another store with the same key has one as well: the start takes the seal from a row that no entry opened.

// readGates finds the entries of open grants and those that belong to no request.
const readGates = `SELECT ` + keyedColumns + gateEntries + ` AND audit.request IN (SELECT '' ` +
	`UNION ALL SELECT +request FROM grants WHERE revoked_at = 0 AND ended_at = 0 ` +
	`UNION ALL SELECT +number FROM grants JOIN requests ON requests.id = request WHERE revoked_at = 0 AND ended_at = 0)) ` +
	`CROSS JOIN audit ON audit.key = k ORDER BY k`

// firstKept reads the first entry that is kept.
const firstKept = `SELECT ` + keyedColumns + ` FROM audit WHERE ` + inChain + ` ORDER BY key LIMIT 1`

// readEveryGate reads the same entries, and those of other rows, without the index.
var readEveryGate = strings.Replace(readGateEntries, entryColumns, keyedColumns, 1)

// readGateEntries reads the entries about what opens and shuts something, in order.
const readGateEntries = `SELECT ` + entryColumns + ` FROM audit WHERE chain = $1 AND type IN ('GRANT_ADDED', 'GRANT_REVOKED', ` +
	`'GRANT_ENDED', 'GRANT_REINSTATED', 'TOKEN_CREATED', 'TOKEN_REVOKED', 'TOKEN_REINSTATED', 'PAIRED', 'UNPAIRED', ` +
	`'PAIRING_REINSTATED', 'ACCOUNT_SUSPENDED', 'PERSON_LOCKED', 'PERSON_UNLOCKED', 'UNLOCK_ASKED', 'ALL_STOPPED', 'ALL_RESUMED', ` +
	`'STORE_RESTORED', 'AGENT_STOPPED', 'AGENT_MUTED', 'AGENT_RESUMED', 'ROWS_PRUNED') ORDER BY seq`

// readGateHistory reads the gate entries whose seals hold under the key that the rows are sealed with; entries under an
// earlier key cannot be about these rows. While a key is replaced, all has every entry, since even an unsealed one can
// close something; otherwise all is nil.
func (s *Store) readGateHistory(ctx context.Context, t *tx) (c, all *comparison, err error) {
	c = newComparison()
	if s.newKey != "" && s.newKey != firstKey {
		all = newComparison()
	}
	begins := func(e *permissions.Entry, sealed bool) {
		if sealed && !c.full {
			c.full, c.since = true, begin(e).since
		}
	}
	if err := s.eachEntry(ctx, t, firstKept, begins, s.chain); err != nil {
		return c, all, err
	}
	err = s.eachEntry(ctx, t, readGates, func(e *permissions.Entry, sealed bool) {
		begins(e, sealed) // where the first one is from before the key
		if sealed {
			_ = c.addEntry(e, 0) // a second use is reported by verify
		}
		if all != nil {
			_ = all.addEntry(e, 0)
		}
	})
	return c, all, err
}

// closeReopened closes open rows that an older state reopened, by a comparison; nil: none.
func (s *Store) closeReopened(ctx context.Context, t *tx, c *comparison) {
	if c == nil {
		return
	}
	closeReopenedRows(ctx, s, t, c, grantGate)
	closeReopenedRows(ctx, s, t, c, tokenGate)
	closeReopenedRows(ctx, s, t, c, pairingGate)
	was := t.stopped
	if by := c.stoppedBy(); by != "" {
		s.setStopped(ctx, t, by, "", s.now())
	}
	if t.stopped != was {
		s.log.Error("stop removed behind daycared's back: restored", "by", t.stopped)
	}
	s.changeRestrictions(ctx, t, func() {
		is, err := readRestrictions(ctx, t)
		t.fail(err)
		s.restoreRestrictions(ctx, t, c.missingRestrictions(is), is)
	})
}

func closeReopenedRows[T any](ctx context.Context, s *Store, t *tx, c *comparison, g gate[T]) {
	rows, err := readSealedRows(ctx, s, t, g, g.open)
	t.fail(err)
	for _, row := range rows {
		of, key := gateTables[slices.IndexFunc(gateTables, func(of gateTable) bool { return of.table == g.table })], g.key(&row)
		r := permissions.Record{Type: of.closes[0], At: s.now(), Detail: map[string]string{whyDetail: "its row was put back"}}
		switch closed, suspended := verdict(c, g, row); {
		case noEntryOpened(ctx, s, t, c, g, row):
			s.logUnsealed(g.name(row))
			t.exec(ctx, g.set, append([]any{instant{g.since(&row)}, []byte{}}, key...)...)
			continue
		case closed:
			for i, name := range of.key {
				r.Detail[name] = fmt.Sprint(key[i])
			}
			if g.table != "pairings" { // pairings are deleted when closed
				key = append([]any{micros(r.At)}, key...)
			}
			t.exec(ctx, g.close, key...)
		case suspended:
			*g.since(&row) = r.At
			r.Type, r.Detail["row"] = permissions.RowSuspended, g.name(row)
			g.put(ctx, t, s.seals, row)
		default:
			continue
		}
		s.log.Error("old row put back behind daycared's back: ignored", "row", g.name(row))
		s.append(ctx, t, r)
	}
}

// noEntryOpened reports whether the entries would say that a row was opened, and do not. They are read once more without their index: one
// that lacks entries, perhaps by damage, takes no seal.
func noEntryOpened[T any](ctx context.Context, s *Store, t *tx, c *comparison, g gate[T], row T) bool {
	_, known := c.gates[c.row(g.table, g.key(&row)...)]
	if made := g.made(row); !c.full || known || made.Before(c.since) || made.Before(c.restored.At) {
		return false
	}
	if c.every == nil {
		c.every = newComparison()
		t.fail(s.eachEntry(ctx, t, readEveryGate, func(e *permissions.Entry, sealed bool) {
			if sealed {
				c.every.addRowEntry(e)
			}
		}, s.chain))
	}
	_, known = c.every.gates[c.every.row(g.table, g.key(&row)...)]
	return !known
}
