package store

import (
	"cmp"
	"context"
	"crypto/hmac"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	readAllAudit = `SELECT ` + keyedColumns + ` FROM audit ORDER BY chain, seq`

	readOldAudit = `SELECT ` + entryColumns + `, '' FROM audit ORDER BY chain, seq` // from before entries were keyed
)

// Verified is what was found sound, and what could not be checked.
type Verified struct {
	Chains    []permissions.Head
	Unchecked []string // and why; empty: everything was
}

// Verify reads every chain from the start, or from where an entry of the chain itself signs off what was deleted, and
// returns the head of each. Then it compares the rows that open a gate, and the requests, with their seals and entries. The
// error says at which entry a chain is broken, or which row is not what its entries say. Its own chain has to come as far as
// to what was committed last.
func (s *Store) Verify(ctx context.Context) (heads []permissions.Head, err error) {
	var h head
	known := s.turn(ctx, func(context.Context, *sql.Conn) error {
		h = s.ledger.head
		return nil
	})
	err = s.read(ctx, func(from source) error {
		v, err := verify(ctx, from, s.seals)
		heads = v.Chains
		if err == nil && len(v.Unchecked) > 0 {
			err = errors.New("not checked: " + strings.Join(v.Unchecked, "; "))
		}
		if err == nil && known == nil {
			if err = s.keeps(ctx, from, mark{Chain: s.chain, Seq: h.seq, Hash: h.hash.String()}); err != nil {
				s.noteMark(h)
			}
		}
		if err == nil { // an index that lacks a row keeps it from being found
			err = isSound(ctx, from, s.path)
		}
		return err
	})
	if err = cmp.Or(err, known); err != nil {
		return nil, fmt.Errorf("verify the audit: %w", err)
	}
	return heads, nil
}

// VerifyFile does what [Store.Verify] does with the store at o.Path, which may be a backup, without changing it. Its audit has
// to come as far as the mark beside it says, if there is one. Keys are that of o and o.CopyKey, as far as they can be read.
func VerifyFile(ctx context.Context, o Options) (v Verified, err error) {
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return v, err
	}
	if err := readable(path); err != nil {
		return v, err
	}
	if err := foreignLog(path); err != nil {
		return v, err
	}
	m, text, err := readMark(path) // before the store, which may be open and go on
	if err != nil {
		return v, fmt.Errorf("read the mark beside the store: %w", err)
	}
	db, err := lookInto(path, alone(path))
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := isSound(ctx, db, path); err != nil {
		return v, unusable(err)
	}
	if v, err = verify(ctx, db, o.keys()...); err == nil {
		err = m.kept(ctx, db, text)
	}
	return v, unusable(err)
}

// keys are those that can be read of the audit key and that of a copy. What cannot be checked without them is said.
func (o Options) keys() (all []*sealer) {
	for _, file := range []string{o.keyFile(), o.CopyKey} {
		if file == "" {
			continue
		}
		if k, err := readKey(file); err == nil {
			all = append(all, k)
		}
	}
	return all
}

// verify returns what every chain has, or where one is broken or differs from the rows.
func verify(ctx context.Context, from source, keys ...*sealer) (v Verified, err error) {
	c := newComparison()
	c.keys = keys
	sealed, err := hasSeals(ctx, from)
	switch {
	case err != nil:
		return v, err
	case !sealed:
		err = from.QueryRowContext(ctx, readChain).Scan(&c.own.chain)
	default:
		c.own, err = readIdentity(ctx, from)
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return v, err
	}
	if err := c.readAudit(ctx, from, sealed, &v); err != nil {
		return Verified{}, err
	}
	if !sealed {
		v.Unchecked = append(v.Unchecked, beforeKey)
		return v, nil
	}
	if err := c.readRows(ctx, from, &v); err != nil {
		return Verified{}, err
	}
	return v, nil
}

const beforeKey = "the seals of its rows and entries: it is from before the audit key"

// countSealed is how many tables have a column for seals.
const countSealed = `SELECT COUNT(*) FROM pragma_table_info('audit') WHERE name = 'mac'`

// hasSeals reports whether the rows of a store can carry seals.
func hasSeals(ctx context.Context, from source) (bool, error) {
	n := 0
	err := from.QueryRowContext(ctx, countSealed).Scan(&n)
	return n > 0, err
}

func (c *comparison) readAudit(ctx context.Context, from source, sealed bool, v *Verified) error {
	text := readAllAudit
	if !sealed {
		text = readOldAudit
	}
	rows, err := from.QueryContext(ctx, text)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // its error is that of rows.Err
	var at checkpoint
	for rows.Next() && ctx.Err() == nil {
		var e permissions.Entry
		var mac []byte
		if err := rows.Scan(exactly(append(entryFields(&e), &mac))...); err != nil {
			return unreadable(fmt.Sprintf("the audit after entry %d of chain %s", at.last.Seq, at.last.Chain), err)
		}
		if len(v.Chains) == 0 || e.Chain != at.last.Chain {
			if err := at.close(c, v); err != nil {
				return err
			}
			at = begin(e)
			v.Chains = append(v.Chains, permissions.Head{First: e.Seq})
		}
		if err := errors.Join(at.add(e), at.keyed(c.keys, e, mac)); err != nil {
			return err
		}
		head := &v.Chains[len(v.Chains)-1]
		head.Entry, head.Unkeyed = e, at.unkeyed
		head.Entries++
		if e.Chain == c.own.chain {
			if err := c.hear(e); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(ctx.Err(), rows.Err()); err != nil {
		return err
	}
	return at.close(c, v)
}

// checkpoint is how far a chain was read, and what its first entry continues.
type checkpoint struct {
	last   permissions.Entry
	since  time.Time // of its first entry, where what came before was deleted
	gone   head      // the last entry that was deleted; seq 0: none was
	signed bool      // an entry signs that off

	key     *sealer // that entries are keyed with by now; nil: nobody has it
	keyName string  // empty: they are not keyed yet
	unkeyed int64   // the last entry that no key of ours was checked with
}

// keyed checks the seal of the next entry. Once entries are keyed, all that follow are; another key is introduced by an
// entry that has the seal of it, and what came before is sealed by that, as it was then.
func (c *checkpoint) keyed(keys []*sealer, e permissions.Entry, mac []byte) error {
	introduced := e.Detail[keyID]
	switch known := func(name string) int {
		return slices.IndexFunc(keys, func(k *sealer) bool { return k.id == name })
	}; {
	case len(mac) == 0 && c.keyName != "":
		return fmt.Errorf("chain %s is broken at entry %d: it is not keyed, as the one before it is", e.Chain, e.Seq)
	case len(mac) == 0:
	case introduced != "" && (e.Type == permissions.AuditKeyed || e.Type == permissions.StoreRestored):
		c.key, c.keyName = nil, introduced
		if i := known(introduced); i >= 0 {
			c.key = keys[i]
		}
	case c.keyName != "":
	case c.unkeyed > 0:
		return fmt.Errorf("chain %s is broken at entry %d: it is keyed, and no entry says with what", e.Chain, e.Seq)
	default: // the first that is kept
		c.keyName = "another"
		if i := slices.IndexFunc(keys, func(k *sealer) bool { return hmac.Equal(mac, k.entry(e.Hash)) }); i >= 0 {
			c.key, c.keyName = keys[i], keys[i].id
		}
	}
	if c.key == nil {
		c.unkeyed = e.Seq
		return nil
	}
	if !hmac.Equal(mac, c.key.entry(e.Hash)) {
		return fmt.Errorf("chain %s is broken at entry %d: it does not carry the seal of the audit key", e.Chain, e.Seq)
	}
	return nil
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
	return checkpoint{last: permissions.Entry{Chain: e.Chain, Seq: gone.seq, Hash: gone.hash}, gone: gone, since: e.At}
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
func (c *checkpoint) close(all *comparison, v *Verified) error {
	if c.gone.seq != 0 && !c.signed {
		return fmt.Errorf("chain %s is broken at entry %d: what came before it is missing, and no entry signs that off",
			c.last.Chain, c.gone.seq+1)
	}
	if c.last.Chain != all.own.chain || c.last.Seq == 0 {
		return nil
	}
	all.since = c.since
	switch {
	case c.keyName == "" && len(all.own.mac) > 0:
		return fmt.Errorf("chain %s is broken at entry %d: it is not keyed, and the store is sealed", c.last.Chain, c.last.Seq)
	case c.key == nil && c.keyName != "":
		v.Unchecked = append(v.Unchecked, fmt.Sprintf("the seals of entries up to %d: their audit key is not here", c.unkeyed))
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
