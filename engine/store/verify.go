package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/daycared/daycared/permissions"
)

const readAllAudit = `SELECT ` + entryColumns + ` FROM audit ORDER BY chain, seq`

// Verify reads every chain from the start, or from where an entry of the chain itself signs off what was deleted, and
// returns the head of each. The error says at which entry a chain is broken. Entries missing at the end do not show:
// compare the heads with ones kept elsewhere.
func (s *Store) Verify(ctx context.Context) (heads []permissions.Head, err error) {
	err = s.read(ctx, func(from source) error {
		heads, err = verify(ctx, from)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("verify the audit: %w", err)
	}
	return heads, nil
}

// verify returns what every chain has, or where one is broken.
func verify(ctx context.Context, from source) (chains []permissions.Head, err error) {
	rows, err := from.QueryContext(ctx, readAllAudit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // its error is that of rows.Err
	var at checkpoint
	for rows.Next() && ctx.Err() == nil {
		var e permissions.Entry
		if err := rows.Scan(entryFields(&e)...); err != nil {
			return nil, unreadable(fmt.Sprintf("the audit after entry %d of chain %s", at.last.Seq, at.last.Chain), err)
		}
		if len(chains) == 0 || e.Chain != at.last.Chain {
			if err := at.close(); err != nil {
				return nil, err
			}
			at = begin(e)
			chains = append(chains, permissions.Head{First: e.Seq})
		}
		if err := at.add(e); err != nil {
			return nil, err
		}
		chains[len(chains)-1].Entry = e
		chains[len(chains)-1].Entries++
	}
	if err := errors.Join(ctx.Err(), rows.Err()); err != nil {
		return nil, err
	}
	return chains, at.close()
}

// checkpoint is how far a chain was read, and what its first entry continues.
type checkpoint struct {
	last   permissions.Entry
	gone   head // the last entry that was deleted; seq 0: none was
	signed bool // an entry signs that off
}

// begin takes e for the first entry that its chain still has.
func begin(e permissions.Entry) checkpoint {
	before := e.Seq - 1
	if from, restored := leapt(e); restored {
		before = from
	}
	if before <= 0 {
		return checkpoint{last: permissions.Entry{Chain: e.Chain}}
	}
	gone := head{seq: before, hash: e.Prev}
	return checkpoint{last: permissions.Entry{Chain: e.Chain, Seq: gone.seq, Hash: gone.hash}, gone: gone}
}

// add reads the next entry.
func (c *checkpoint) add(e permissions.Entry) error {
	if err := follows(c.last, e); err != nil {
		return err
	}
	c.last = e
	if e.Type == permissions.AuditPruned && e.Detail[upTo] == strconv.FormatInt(c.gone.seq, 10) &&
		e.Detail[upToHash] == c.gone.hash.String() {
		c.signed = true
	}
	return nil
}

// close is the end of the chain.
func (c *checkpoint) close() error {
	if c.gone.seq != 0 && !c.signed {
		return fmt.Errorf("chain %s is broken at entry %d: what came before it is missing, and no entry signs that off",
			c.last.Chain, c.gone.seq+1)
	}
	return nil
}

// leapt is the seq of the entry before e, where e begins the life of a store that was restored: between them is a gap.
func leapt(e permissions.Entry) (from int64, restored bool) {
	if e.Type != permissions.StoreRestored {
		return 0, false
	}
	from, err := strconv.ParseInt(e.Detail[backTo], 10, 64)
	return from, err == nil && from >= 0 && from < e.Seq
}

// follows tells whether e may stand after last.
func follows(last, e permissions.Entry) error {
	from, restored := leapt(e)
	switch {
	case e.Seq != last.Seq+1 && (!restored || from != last.Seq):
		return fmt.Errorf("chain %s is broken at entry %d: it follows entry %d", e.Chain, e.Seq, last.Seq)
	case e.Prev != last.Hash:
		return fmt.Errorf("chain %s is broken at entry %d: it does not continue entry %d", e.Chain, e.Seq, last.Seq)
	case e.Hash != e.ComputeHash():
		return fmt.Errorf("chain %s is broken at entry %d: it was changed", e.Chain, e.Seq)
	}
	return nil
}
