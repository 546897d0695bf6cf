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
	"sync"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Verify reads every chain from its start, or from where one of its entries signs off what was pruned, and returns the
// heads. Then it compares the rows that open a gate, and the requests, with their seals and entries. The error names
// the entry at which a chain is broken, or the row that differs. The daemon's own chain has to reach the last commit.
// What is written meanwhile is verified, too. The functions are called regularly with how many of all entries and requests are done.
func (s *Store) Verify(ctx context.Context, told ...func(done, all int64)) (heads []permissions.Head, err error) {
	var h head
	known := s.turn(ctx, func(context.Context, *sql.Conn) error {
		h = s.ledger.head
		return nil
	})
	sound := make(chan error, 1) // an index that lacks a row hides it
	go func() {
		sound <- s.read(ctx, func(from source) error {
			if s.server != nil { // its own tools check its pages
				return nil
			}
			return checkFile(ctx, from, s.path)
		})
	}()
	alone := s.verifying.TryLock() // else others have the connections
	if alone {
		defer s.verifying.Unlock()
	}
	v, err := verifyAll(ctx, s.read, alone, told, s.seals)
	if err == nil && len(v.Unchecked) > 0 {
		err = errors.New("not checked: " + strings.Join(v.Unchecked, "; "))
	}
	if err == nil && known == nil {
		err = s.read(ctx, func(from source) error {
			err := s.checkHasMark(ctx, from, mark{Chain: s.chain, Seq: h.seq, Hash: h.hash.String()})
			if err != nil {
				s.noteMark(h)
			}
			return err
		})
	}
	if err = cmp.Or(err, <-sound, known); err != nil {
		return nil, s.advised(fmt.Errorf("verify the audit: %w", err))
	}
	return v.Chains, nil
}

// VerifyFile is [Store.Verify] for the store at o.Path, which may be a backup, without changing it. Its audit has to
// reach its mark, if there is one. The keys are o.KeyFile, as far as it is readable, and o.CopyKey.
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
	if o.CopyKey != "" {
		if _, err := readKey(o.CopyKey); err != nil {
			return v, err
		}
	}
	m, text, err := readMark(path) // before the store, which may be in use
	if err != nil {
		return v, fmt.Errorf("read the mark beside the store: %w", err)
	}
	db, other := lookInto(path, readOnlySettings(path)), lookInto(path, readOnlySettings(path))
	defer func() { err = errors.Join(err, db.Close(), other.Close()) }()
	sound := make(chan error, 1)
	go func() { sound <- checkFile(ctx, other, path) }()
	if v, err = verifyAll(ctx, snapshotsOf(db), true, told, o.keys()...); err == nil {
		err = m.checkReached(ctx, db, text)
	}
	if err = cmp.Or(<-sound, err); err != nil {
		v = Verified{}
	}
	return v, unusable(err)
}

// snapshots run a function on a consistent snapshot.
type snapshots func(ctx context.Context, do func(source) error) error

// snapshotsOf are those of a file, at most two at once.
func snapshotsOf(db *sql.DB) snapshots {
	db.SetMaxOpenConns(2)
	db.SetMaxIdleConns(2)
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

// verifyAll returns the head of each chain, or where one is broken or differs from the rows. It takes a snapshot for each step, or two,
// so that the log of a store in use can be emptied meanwhile.
func verifyAll(
	ctx context.Context, in snapshots, two bool, told []func(done, all int64), keys ...*sealer,
) (v Verified, err error) {
	c := verification{comparison: newComparison(), details: details{}, spareEntries: make(chan []storedEntry, 2*verifyStep/verifyAtOnce),
		spareRows: make(chan []shapedRow, 2*verifyPages)}
	c.keys = keys
	err = in(ctx, func(from source) error { return c.begin(ctx, from) })
	for more := true; more && err == nil; {
		err = in(ctx, func(from source) (err error) {
			if c.from = []source{from}; two && c.numbered {
				return in(ctx, func(other source) (err error) {
					more, err = c.stepWith(ctx, other, &v)
					return err
				})
			}
			more, err = c.step(ctx, &v)
			return err
		})
		for _, tell := range told {
			tell(c.done, max(c.done, c.all))
		}
	}
	if err := cmp.Or(ctx.Err(), c.wrong.err(err)); err != nil {
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
	seq     int64          // of the next entry
	current bool           // the chain has a head
	broken  bool           // and is not read on
	sealed  bool           // the store is not from before there were seals
	rows    []*sealedPages // as many as connections
	from    []source       // at least one; they see the same

	detail  []string // of the last entry, as a list
	details details
	entries string                     // the query that reads them
	types   map[int64]permissions.Type // by their numbers in entries; nil: they have none

	done, all int64 // entries and requests

	spareEntries chan []storedEntry
	spareRows    chan []shapedRow
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

// begin reads the store's record of itself, and which chains there are.
func (c *verification) begin(ctx context.Context, from source) (err error) {
	if c.sealed, err = hasSeals(ctx, from); err != nil {
		return err
	}
	if c.sealed {
		c.own, err = readIdentity(ctx, from)
	} else {
		err = from.QueryRowContext(ctx, readChain).Scan(&c.own.chain)
	}
	if err := ignoreNoRows(err); err != nil {
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

// verifyStep is how many entries, and verifyPages how many pages of requests, a connection reads of one snapshot. Of the entries
// verifyAtOnce are read at once.
const (
	verifyStep   = 2500
	verifyAtOnce = 250
	verifyPages  = 2
)

const readLastKey = `SELECT COALESCE(MAX(key), 0) FROM entries`

// stepWith is a step in which another connection reads as well, if it sees the same: whatever is compared is committed with an entry.
func (c *verification) stepWith(ctx context.Context, other source, v *Verified) (more bool, err error) {
	here, err := count(ctx, c.from[0], readLastKey)
	if err != nil {
		return false, err
	}
	there, err := count(ctx, other, readLastKey)
	if err != nil {
		return false, err
	}
	if here == there {
		c.from = append(c.from, other)
	}
	return c.step(ctx, v)
}

// starts are the numbers that the connections begin to read at: the first, and what a query finds behind so many rows.
func (c *verification) starts(ctx context.Context, first int64, text string, args ...any) ([]int64, error) {
	all := []int64{first}
	if len(c.from) == 1 {
		return all, nil
	}
	more, err := collect(ctx, c.from[0], "", value[int64], text, args...)
	return append(all, more...), err
}

// step verifies the next entries, or requests where no entry is left, and what remains at the end. It reports whether there is more.
func (c *verification) step(ctx context.Context, v *Verified) (more bool, err error) {
	if more, err = c.readAudit(ctx, v); err != nil || more {
		return true, err
	}
	if c.rows == nil {
		if !c.broken {
			if err := c.noteBroken(c.at.close(c.comparison, v)); err != nil && !c.broken {
				return false, err
			}
		}
		if len(c.chains) > 1 {
			c.chains, c.at, c.seq, c.current, c.broken = c.chains[1:], checkpoint{}, math.MinInt64, false, false
			return true, nil
		}
		if !c.sealed {
			v.Unchecked = append(v.Unchecked, beforeKey)
			return false, nil
		}
		c.noteKeys(v)
		for range 2 {
			pages, err := newSealedPages(ctx, c.from[0])
			if err != nil {
				return false, err
			}
			c.rows = append(c.rows, pages)
		}
	}
	if more, err = c.readRequests(ctx); err != nil || more {
		return more, err
	}
	return false, c.readRows(ctx, c.from[0])
}

const requestBehind = `SELECT number FROM requests WHERE number >= $1 ORDER BY number LIMIT 1 OFFSET 0 + $2`

// readRequests reads the next requests, and reports whether there may be more.
func (c *verification) readRequests(ctx context.Context) (more bool, err error) {
	next := c.rows[0].from
	starts, err := c.starts(ctx, next, requestBehind, next, verifyPages*sealedPage)
	if err != nil {
		return false, err
	}
	var readers []reader[shapedRow]
	for i, start := range starts {
		pages, from := c.rows[i], c.from[i]
		pages.from = start
		readers = append(readers, func(give func([]shapedRow) ([]shapedRow, error)) error {
			for range verifyPages {
				page, err := pages.next(ctx, from)
				for some := range slices.Chunk(page, 20) { // what they ask may be long
					err = cmp.Or(err, c.checkPendingTexts(ctx, from, some))
				}
				end := len(page) == 0
				if c.checkRequestSeals(page, &pages.room); err == nil {
					pages.spare, err = give(page)
				}
				if err != nil || end {
					return err
				}
			}
			return nil
		})
	}
	err = readAhead(c.spareRows, func(rows []shapedRow) error {
		more = len(rows) > 0
		c.done += int64(len(rows))
		for i := range rows {
			c.wrong.note("request "+string(rows[i].row.ID), c.compareRequest(&rows[i].row))
		}
		return nil
	}, readers...)
	last := c.rows[len(starts)-1]
	c.rows[0].from, c.rows[0].over = last.from, last.over
	return more, err
}

const entryBehind = `SELECT key & 281474976710655 FROM entries WHERE key BETWEEN ` + lowestKey + ` | MAX($2, 0) AND ` + highestKey +
	` ORDER BY key LIMIT 1 OFFSET 0 + $3`

// readAudit reads the next entries of a chain, and reports whether there may be more.
func (c *verification) readAudit(ctx context.Context, v *Verified) (more bool, err error) {
	starts, err := c.starts(ctx, c.seq, entryBehind, c.chains[0], c.seq, verifyStep)
	if err != nil {
		return false, err
	}
	var readers []reader[storedEntry]
	key := c.at.key
	for i, seq := range starts {
		readers = append(readers, func(give func([]storedEntry) ([]storedEntry, error)) (err error) {
			names := requestNames{}
			var some []storedEntry
			for read, full := 0, true; full && read < verifyStep && err == nil; read += verifyAtOnce {
				some, err = c.readSome(ctx, c.from[i], seq, names, some)
				if full = len(some) == verifyAtOnce; full {
					seq = some[len(some)-1].Seq + 1
				}
				for i := range some {
					if e := &some[i]; key != nil && e.failed == nil {
						e.by, e.seal = key, key.entry(e.Hash)
					}
				}
				if err = cmp.Or(err, ctx.Err()); err == nil {
					some, err = give(some)
				}
			}
			return err
		})
	}
	n := 0
	err = readAhead(c.spareEntries, func(some []storedEntry) error {
		for i := range some {
			if err := c.noteBroken(c.take(&some[i], v)); err != nil {
				return err
			}
			n++
		}
		return nil
	}, readers...)
	if c.broken {
		return false, nil
	}
	if n > 0 && err == nil {
		head := &v.Chains[len(v.Chains)-1]
		head.Entry, head.Unkeyed = c.at.last, c.at.unkeyed
		head.Detail = mapOf(c.detail)
	}
	return n == verifyStep*len(starts), err
}

// noteBroken notes what is wrong with another chain, which is then not read on. With the own one rows are compared: its error ends that.
func (c *verification) noteBroken(err error) error {
	if err != nil && len(c.chains) > 1 {
		c.broken = true
		c.wrong.note("chain "+c.chains[0], err)
	}
	return err
}

// readSome reads at most [verifyAtOnce] entries from a seq on, into the place of others.
func (c *verification) readSome(
	ctx context.Context, from source, seq int64, names requestNames, some []storedEntry,
) ([]storedEntry, error) {
	var e storedEntry
	if some = some[:0]; cap(some) == 0 {
		some = make([]storedEntry, 0, verifyAtOnce)
	}
	into := exactFields(e.fields())
	err := eachRow(ctx, from, func(scan func(into ...any) error) error {
		e = storedEntry{named: noName}
		e.failed = scan(into...)
		some = append(some, e)
		return nil
	}, c.entries, c.chains[0], seq, verifyAtOnce)
	if err == nil && c.numbered {
		err = names.add(ctx, from, some)
	}
	return some, err
}

// take verifies the next entry.
func (c *verification) take(s *storedEntry, v *Verified) error {
	before := &c.at.last
	before.Chain = c.chains[0]
	err := s.failed
	if err == nil {
		c.detail, err = s.complete(c.types, before, c.details)
	}
	if err != nil {
		return unreadable(fmt.Sprintf("the audit after entry %d of chain %s", before.Seq, before.Chain), err)
	}
	e := &s.Entry
	if !c.current {
		c.current, c.at = true, begin(e)
		v.Chains = append(v.Chains, permissions.Head{First: e.Seq})
	}
	if err := errors.Join(c.at.add(e, c.detail), c.at.checkSeal(c.keys, s)); err != nil {
		return err
	}
	v.Chains[len(v.Chains)-1].Entries++
	c.seq = e.Seq + 1
	if e.Chain != c.own.chain {
		return nil
	}
	c.done++
	number, _ := s.of.(int64)
	if err := c.addEntry(e, number); err != nil {
		c.wrong.note("request "+string(e.Request), err)
	}
	return nil
}

// errStopped ends what reads ahead after an error.
var errStopped = errors.New("what was read before is wrong")

// reader gives what it reads, and gets what may be overwritten.
type reader[T any] func(give func([]T) (spare []T, err error)) error

// readAhead calls take with what the readers give, first with all of the first one. They read meanwhile on other goroutines.
func readAhead[T any](spare chan []T, take func([]T) error, readers ...reader[T]) (err error) {
	parts, failed, stop := make([]chan []T, len(readers)), make([]error, len(readers)), make(chan struct{})
	for i, read := range readers {
		parts[i] = make(chan []T, cap(spare)/2)
		go func() {
			defer close(parts[i])
			failed[i] = read(func(some []T) ([]T, error) {
				select {
				case parts[i] <- some:
				case <-stop:
					return nil, errStopped
				}
				select {
				case some = <-spare:
					return some, nil
				default:
					return nil, nil
				}
			})
		}()
	}
	end := sync.OnceFunc(func() { close(stop) })
	for i := range readers { // each to its end
		for some := range parts[i] {
			if err == nil {
				err = take(some)
			}
			if err != nil {
				end()
			}
			clear(some) // rows may be long
			select {
			case spare <- some:
			default:
			}
		}
		if err = cmp.Or(err, failed[i]); err != nil {
			end()
		}
	}
	return err
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

// checkSeal checks the seal of the next entry. Once entries are keyed, all later ones are; an entry sealed with another key
// introduces that key and seals the audit before it.
func (c *checkpoint) checkSeal(keys []*sealer, s *storedEntry) error {
	e, mac := &s.Entry, s.mac
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
	if !hmac.Equal(mac, s.expectedSeal(c.key)) {
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

// checkReached returns nil if the store's audit has the entry of its mark. An answered mark is ignored.
func (m *mark) checkReached(ctx context.Context, from source, text string) error {
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

// checkFile refuses a file that is damaged, no store, or from a newer daemon.
func checkFile(ctx context.Context, db source, from string) error {
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
