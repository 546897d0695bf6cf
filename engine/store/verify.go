package store

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Verify reads every chain from its start, or from where one of its entries signs off what was pruned, and returns the
// heads. Then it compares the rows that open a gate, and the requests, with their seals and entries. The error names
// the entry at which a chain is broken, or the row that differs. The daemon's own chain has to reach the last commit.
// What is written meanwhile is verified, too. The functions are told again and again how many of all entries and requests are done.
func (s *Store) Verify(ctx context.Context, told ...func(done, all int64)) (heads []permissions.Head, err error) {
	var h head
	known := s.turn(ctx, func(context.Context, *sql.Conn) error {
		h = s.ledger.head
		return nil
	})
	sound := make(chan error, 1) // an index that lacks a row hides it
	go func() { sound <- s.read(ctx, func(from source) error { return isSound(ctx, from, s.path) }) }()
	v, err := verifyAll(ctx, s.read, told, s.seals)
	if err == nil && len(v.Unchecked) > 0 {
		err = errors.New("not checked: " + strings.Join(v.Unchecked, "; "))
	}
	if err == nil && known == nil {
		err = s.read(ctx, func(from source) error {
			err := s.keeps(ctx, from, mark{Chain: s.chain, Seq: h.seq, Hash: h.hash.String()})
			if err != nil {
				s.noteMark(h)
			}
			return err
		})
	}
	if err = cmp.Or(err, <-sound, known); err != nil {
		return nil, fmt.Errorf("verify the audit: %w", err)
	}
	return v.Chains, nil
}

// VerifyFile is [Store.Verify] for the store at o.Path, which may be a backup, without changing it. Its audit has to
// reach its mark, if there is one. The keys are o.KeyFile and o.CopyKey, as far as they are readable.
func VerifyFile(ctx context.Context, o Options, told ...func(done, all int64)) (v Verified, err error) {
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
	m, text, err := readMark(path) // before the store, which may be in use
	if err != nil {
		return v, fmt.Errorf("read the mark beside the store: %w", err)
	}
	db, other := lookInto(path, readOnlySettings(path)), lookInto(path, readOnlySettings(path))
	defer func() { err = errors.Join(err, db.Close(), other.Close()) }()
	sound := make(chan error, 1)
	go func() { sound <- isSound(ctx, other, path) }()
	if v, err = verifyAll(ctx, snapshotsOf(db), told, o.keys()...); err == nil {
		err = m.kept(ctx, db, text)
	}
	if err = cmp.Or(<-sound, err); err != nil {
		v = Verified{}
	}
	return v, unusable(err)
}

// snapshots run a function on a consistent snapshot.
type snapshots func(ctx context.Context, do func(source) error) error

// snapshotsOf are those of a file.
func snapshotsOf(db *sql.DB) snapshots {
	return func(ctx context.Context, do func(source) error) error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }() // only returns it to the pool
		if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
			return err
		}
		defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }() // only read
		return do(view{conn})
	}
}

// verifyAll returns the head of each chain, or where one is broken or differs from the rows. It takes a snapshot for each step,
// so that the log of a store in use can be emptied meanwhile.
func verifyAll(ctx context.Context, in snapshots, told []func(done, all int64), keys ...*sealer) (v Verified, err error) {
	c := verification{comparison: newComparison(), details: details{}}
	c.keys = keys
	err = in(ctx, func(from source) error { return c.begin(ctx, from) })
	for more := true; more && err == nil; {
		err = in(ctx, func(from source) (err error) {
			more, err = c.step(ctx, from, &v)
			return err
		})
		for _, tell := range told {
			tell(c.done, max(c.done, c.all))
		}
	}
	if err := cmp.Or(err, ctx.Err()); err != nil {
		return Verified{}, err
	}
	slices.SortFunc(v.Chains, func(a, b permissions.Head) int { return cmp.Compare(a.Chain, b.Chain) })
	return v, nil
}

// verification compares a store with its audit step by step, and knows how far it has come.
type verification struct {
	*comparison

	chains  []string // that are not read to their end; the own one comes last, and grows
	at      checkpoint
	seq     int64 // of the next entry
	current bool  // the chain has a head
	sealed  bool  // the store is not from before there were seals
	rows    *sealedPages

	detail  []string // of the last entry, as a list
	details details
	entries string                     // the query that reads them
	types   map[int64]permissions.Type // by their numbers in entries; nil: they have none

	done, all int64 // entries and requests
}

// The chains that have entries, and how many entries of one and requests there are. A chain whose name is gone is empty.
var (
	readChains = chainsIn("entries", "key >> 48", "key", "(c << 48 | 281474976710655)",
		"COALESCE((SELECT name FROM chains WHERE number = c), '')")
	countAll = countIn("entries", "key", inChain)

	// The same in a store from before entries had a key.
	readOldChains = chainsIn("audit", "chain", "chain", "c", "c")
	countOldAll   = countIn("audit", "seq", "chain = $1")
)

func chainsIn(table, chain, key, last, name string) string {
	first := `(SELECT ` + chain + ` FROM ` + table + ` ORDER BY ` + key + ` LIMIT 1)`
	next := strings.Replace(first, ` ORDER`, ` WHERE `+key+` > `+last+` ORDER`, 1)
	return `WITH RECURSIVE known (c) AS (SELECT ` + first + ` UNION ALL SELECT ` + next + ` FROM known WHERE c IS NOT NULL) ` +
		`SELECT ` + name + ` FROM known WHERE c IS NOT NULL`
}

func countIn(table, key, inChain string) string {
	return `SELECT COALESCE((SELECT MAX(` + key + `) FROM ` + table + ` WHERE ` + inChain + `) - ` +
		`(SELECT MIN(` + key + `) FROM ` + table + ` WHERE ` + inChain + `) + 1, 0) + (SELECT COUNT(*) FROM requests)`
}

// readNames reads which numbers stand for which types of entries. In a store from before entries had a key none is read as such.
func (c *verification) readNames(ctx context.Context, from source) error {
	keyed, err := hasKeys(ctx, from)
	if c.entries = readLongEntries; !c.sealed {
		c.entries = readOldEntries
	}
	if err != nil || !keyed {
		return err
	}
	c.entries, c.numbered, c.types = readEntries, true, map[int64]permissions.Type{}
	all, err := typesOf(ctx, from)
	for _, t := range all {
		c.types[t.number] = t.name
	}
	return err
}

// begin reads what the store says of itself, and which chains there are.
func (c *verification) begin(ctx context.Context, from source) (err error) {
	if c.sealed, err = hasSeals(ctx, from); err != nil {
		return err
	}
	if c.sealed {
		c.own, err = readIdentity(ctx, from)
	} else {
		err = from.QueryRowContext(ctx, readChain).Scan(&c.own.chain)
	}
	if err := orNone(err); err != nil {
		return err
	}
	if err := c.readNames(ctx, from); err != nil {
		return err
	}
	chains, count := readChains, countAll
	if c.types == nil {
		chains, count = readOldChains, countOldAll
	}
	all, err := collect(ctx, from, "the audit", value[string], chains)
	if err != nil {
		return err
	}
	if slices.Contains(all, "") {
		return errors.New("a chain of the audit has lost its name")
	}
	c.chains = append(slices.DeleteFunc(all, func(chain string) bool { return chain == c.own.chain }), c.own.chain)
	c.seq = math.MinInt64
	return from.QueryRowContext(ctx, count, c.own.chain).Scan(&c.all)
}

// verifyStep is how many entries, and verifyPages how many pages of requests, are verified in one snapshot.
const (
	verifyStep  = 20_000
	verifyPages = 20
)

// step verifies the next entries, or requests where no entry is left, and what remains at the end. It reports whether there is more.
func (c *verification) step(ctx context.Context, from source, v *Verified) (more bool, err error) {
	n, err := c.readAudit(ctx, from, v)
	if err != nil || n == verifyStep {
		return true, err
	}
	if c.rows == nil {
		if err := c.at.close(c.comparison, v); err != nil {
			return false, err
		}
		if len(c.chains) > 1 {
			c.chains, c.at, c.seq, c.current = c.chains[1:], checkpoint{}, math.MinInt64, false
			return true, nil
		}
		if !c.sealed {
			v.Unchecked = append(v.Unchecked, beforeKey)
			return false, nil
		}
		c.noteKeys(v)
		if c.rows, err = newSealedPages(ctx, from); err != nil {
			return false, err
		}
	}
	more = true
	read := func(give func([]shapedRow) error) error {
		for pages := 0; more && pages < verifyPages; pages++ {
			page, err := c.rows.next(ctx, from)
			more = len(page) > 0
			for some := range slices.Chunk(page, 20) { // what they ask may be long
				err = cmp.Or(err, sameWords(ctx, from, some))
			}
			if err := cmp.Or(err, give(page)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := readAhead(read, func(rows []shapedRow) error {
		c.done += int64(len(rows))
		return c.sealedRequests(rows)
	}); err != nil || more {
		return more, err
	}
	return false, c.readRows(ctx, from)
}

// readAudit reads the next entries of a chain, and returns how many there were.
func (c *verification) readAudit(ctx context.Context, from source, v *Verified) (n int, err error) {
	err = readAhead(func(give func([]storedEntry) error) error {
		var e storedEntry
		var some []storedEntry
		into := exactFields(e.fields())
		err := eachRow(ctx, from, func(scan func(into ...any) error) error {
			e = storedEntry{}
			e.failed = scan(into...)
			if some = append(some, e); len(some) < 500 {
				return nil
			}
			full := some
			some = make([]storedEntry, 0, 500)
			return cmp.Or(ctx.Err(), give(full))
		}, c.entries, c.chains[0], c.seq, verifyStep)
		return cmp.Or(err, give(some))
	}, func(some []storedEntry) error {
		for i := range some {
			if err := c.take(&some[i], v); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if n > 0 && err == nil {
		head := &v.Chains[len(v.Chains)-1]
		head.Entry, head.Unkeyed = c.at.last, c.at.unkeyed
		head.Detail = mapOf(c.detail)
	}
	return n, err
}

// take verifies the next entry.
func (c *verification) take(s *storedEntry, v *Verified) error {
	before := &c.at.last
	before.Chain = c.chains[0]
	err := s.failed
	if err == nil {
		c.detail, err = s.whole(c.types, before, c.details)
	}
	if err != nil {
		return unreadable(fmt.Sprintf("the audit after entry %d of chain %s", before.Seq, before.Chain), err)
	}
	e := &s.Entry
	if !c.current {
		c.current, c.at = true, begin(e)
		v.Chains = append(v.Chains, permissions.Head{First: e.Seq})
	}
	if err := errors.Join(c.at.add(e, c.detail), c.at.keyed(c.keys, e, s.mac)); err != nil {
		return err
	}
	v.Chains[len(v.Chains)-1].Entries++
	c.seq = e.Seq + 1
	if e.Chain != c.own.chain {
		return nil
	}
	c.done++
	number, _ := s.of.(int64)
	return c.addEntry(e, number)
}

// errStopped ends what reads ahead after an error.
var errStopped = errors.New("what was read before is wrong")

// readAhead calls take with what read gives, and read meanwhile on another goroutine.
func readAhead[T any](read func(give func([]T) error) error, take func([]T) error) error {
	parts, stop := make(chan []T), make(chan struct{})
	var failed error
	go func() {
		defer close(parts)
		failed = read(func(some []T) error {
			select {
			case parts <- some:
				return nil
			case <-stop:
				return errStopped
			}
		})
	}()
	var err error
	for some := range parts {
		if err = take(some); err != nil {
			break
		}
	}
	close(stop)
	for range parts { // until nothing is read any more
	}
	return cmp.Or(err, failed)
}

// checkpoint is how far a chain was read, and what its first entry follows.
type checkpoint struct {
	last   permissions.Entry
	since  time.Time // time of the first entry, if earlier ones were deleted
	gone   head      // the last deleted entry; seq 0: none
	signed bool      // an entry signs the deletion off

	key     *sealer // the current key of the entries; nil: unknown
	keyName string  // empty: not keyed yet
	unkeyed int64   // the last entry that no key of ours could check

	room []byte // to hash in
}

// keyed checks the seal of the next entry. Once entries are keyed, all later ones are; an entry sealed with another key
// introduces that key and seals the audit before it.
func (c *checkpoint) keyed(keys []*sealer, e *permissions.Entry, mac []byte) error {
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
	default: // the first one kept
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

// begin returns the checkpoint of a chain whose first kept entry is e.
func begin(e *permissions.Entry) checkpoint {
	before := e.Seq - 1
	if from, restored := gapBefore(e); restored {
		before = from
	}
	if before <= 0 {
		return checkpoint{last: permissions.Entry{Chain: e.Chain}}
	}
	gone := head{seq: before, hash: e.Prev}
	return checkpoint{last: permissions.Entry{Chain: e.Chain, Seq: gone.seq, Hash: gone.hash}, gone: gone, since: e.At}
}

func (c *checkpoint) add(e *permissions.Entry, detail []string) error {
	c.room = e.AppendHashed(c.room[:0], detail)
	if err := follows(&c.last, e, e.Hash != sha256.Sum256(c.room)); err != nil {
		return err
	}
	c.last = *e
	if e.Type == permissions.AuditPruned && e.Detail[upTo] == strconv.FormatInt(c.gone.seq, 10) &&
		e.Detail[upToHash] == c.gone.hash.String() {
		c.signed = true
	}
	return nil
}

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

// gapBefore returns the seq of the entry before e if e begins the life of a restored store: between them is a gap.
func gapBefore(e *permissions.Entry) (from int64, restored bool) {
	if e.Type != permissions.StoreRestored {
		return 0, false
	}
	from, err := strconv.ParseInt(e.Detail[backTo], 10, 64)
	return from, err == nil && from >= 0 && from < e.Seq
}

// follows checks that e continues last.
func follows(last, e *permissions.Entry, changed bool) error {
	from, restored := gapBefore(e)
	switch {
	case e.Seq != last.Seq+1 && (!restored || from != last.Seq):
		return fmt.Errorf("chain %s is broken at entry %d: it follows entry %d", e.Chain, e.Seq, last.Seq)
	case e.Prev != last.Hash:
		return fmt.Errorf("chain %s is broken at entry %d: it does not continue entry %d", e.Chain, e.Seq, last.Seq)
	case changed && e.Seq > 1 && e.Prev == (permissions.Digest{}):
		return fmt.Errorf("chain %s is broken at entry %d: what came before it is missing", e.Chain, e.Seq)
	case changed && strings.Trim(string(e.Request), "-0123456789") == "" && e.Request != "":
		return fmt.Errorf("request number %s, of which entry %d of chain %s is, is missing, and no entry says why", e.Request, e.Seq, e.Chain)
	case changed:
		return fmt.Errorf("chain %s is broken at entry %d: it was changed", e.Chain, e.Seq)
	}
	return nil
}

// kept returns nil if the store's audit has the entry of its mark. An answered mark is ignored.
func (m *mark) kept(ctx context.Context, from source, text string) error {
	answered := ""
	_ = from.QueryRowContext(ctx, `SELECT answered FROM meta`).Scan(&answered) // an old store has none
	if m == nil || m.Restoring || text == answered {
		return nil
	}
	has, err := hasEntry(ctx, from, m)
	if err == nil && !has {
		err = fmt.Errorf("chain %s is broken at entry %d: by the mark beside the store it had one that is missing or another", m.Chain, m.Seq)
	}
	return err
}

// isSound refuses a file that is damaged, no store, or from a newer daemon.
func isSound(ctx context.Context, db source, from string) error {
	pages, version := "", int64(0)
	if err := db.QueryRowContext(ctx, checkPages).Scan(&pages); err != nil {
		return copyError(ctx, err, from, from)
	}
	if pages != "ok" {
		return fmt.Errorf("its pages are damaged: %s", pages)
	}
	if err := db.QueryRowContext(ctx, `SELECT MAX(version_id) FROM goose_db_version WHERE is_applied`).Scan(&version); err != nil {
		return fmt.Errorf("it is no store of daycared (%w)", err)
	}
	newest, err := newestSchema()
	if err == nil && version > newest {
		err = fmt.Errorf("it was written by a newer daycared (schema %d, this one knows %d)", version, newest)
	}
	if err != nil {
		return err
	}
	return hasSchema(ctx, db, version)
}

const checkPages = `SELECT integrity_check FROM pragma_integrity_check LIMIT 1`
