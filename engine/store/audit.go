package store

import (
	"bytes"
	"context"
	"crypto/hmac"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	newestEntry = `SELECT seq, hash FROM audit WHERE ` + inChain + ` ORDER BY key DESC LIMIT 1`
	oldestEntry = `SELECT seq, prev FROM audit WHERE ` + inChain + ` ORDER BY key LIMIT 1`
)

// withoutKeys makes of a query of the audit one of a store from before its entries had a key.
var withoutKeys = strings.NewReplacer(inChain, `chain = $1`, `key = `+lowestKey+` | $2`, `chain = $1 AND seq = $2`,
	`ORDER BY key`, `ORDER BY seq`)

// ofAudit is a query of the audit as the store needs it, which may not be migrated yet.
func ofAudit(ctx context.Context, from source, text string) (string, error) {
	keyed, err := hasKeys(ctx, from)
	if err == nil && !keyed {
		text = withoutKeys.Replace(text)
	}
	return text, err
}

const countKeys = `SELECT COUNT(*) FROM pragma_table_info('audit') WHERE name = 'key'`

// hasKeys reports whether the entries of a store have a key.
func hasKeys(ctx context.Context, from source) (bool, error) {
	n, err := count(ctx, from, countKeys)
	return n > 0, err
}

func readHead(ctx context.Context, from source, chain string) (h head, err error) {
	text, err := ofAudit(ctx, from, newestEntry)
	if err != nil {
		return head{}, err
	}
	err = from.QueryRowContext(ctx, text, chain).Scan(&h.seq, digest{&h.hash})
	if err = ignoreNoRows(err); err != nil {
		return head{}, unreadable("the head of the audit", err)
	}
	return h, nil
}

// firstSeq is the number of the oldest entry that pruning has left; 0 if the audit begins with it, or has none.
func firstSeq(ctx context.Context, from source, chain string) (seq int64, err error) {
	text, err := ofAudit(ctx, from, oldestEntry)
	if err != nil {
		return 0, err
	}
	var prev []byte
	if err := ignoreNoRows(from.QueryRowContext(ctx, text, chain).Scan(&seq, &prev)); err != nil {
		return 0, err
	}
	if bytes.Equal(prev, make([]byte, len(permissions.Digest{}))) {
		return 0, nil
	}
	return seq, nil
}

const entryColumns = `chain, seq, at, type, request, actor, via, detail, prev, hash`

func entryFields(e *permissions.Entry) []any {
	return []any{
		&e.Chain, &e.Seq, instant{&e.At}, &e.Type, &e.Request, &e.Actor, &e.Via, detail{&e.Detail},
		digest{&e.Prev}, digest{&e.Hash},
	}
}

const keyedColumns = entryColumns + `, mac`

// eachEntry reads entries of the store's chain in order, and says of each whether the key of the rows sealed it.
func (s *Store) eachEntry(ctx context.Context, from source, text string, do func(e *permissions.Entry, sealed bool), args ...any) error {
	fields := func(r *sealedRow[permissions.Entry]) []any { return append(entryFields(&r.row), &r.mac) }
	found, err := collect(ctx, from, "", fields, text, args...)
	for i := range found {
		if r := &found[i]; r.row.Chain == s.chain && r.row.Hash == r.row.ComputeHash() {
			do(&r.row, s.from != nil && hmac.Equal(r.mac, s.from.entry(r.row.Hash)))
		}
	}
	return err
}

var (
	addEntry = addRows(1)

	// addEntries insert the entries of a usual change at once, by their number.
	addEntries = [5]string{1: addEntry, 2: addRows(2), 3: addRows(3), 4: addRows(4)}
)

// addRows inserts so many rows of [keyedColumns].
func addRows(rows int) string {
	var all []string
	_, names, _ := strings.Cut(keyedColumns, `, seq, `)
	const before = 2 // the chain and the seq
	n := before + strings.Count(names, `,`) + 1
	for row := range rows {
		// Without its chain it is refused: SQLite would make up a key.
		key := `COALESCE(` + strings.Replace(lowestKey, `$1`, parameter(row*n+1), 1) + ` | ` + parameter(row*n+before) + `, '')`
		values := []string{key}
		for i := before; i < n; i++ {
			values = append(values, parameter(row*n+i+1))
		}
		all = append(all, `(`+strings.Join(values, `, `)+`)`)
	}
	return `INSERT INTO entries (key, ` + names + `) VALUES ` + strings.Join(all, `, `)
}

// entryRow are the values of a new entry's row, of which [storedEntry.complete] is the reverse: its type and its request by number if they
// have one, without the request's digest, and without the hash of the entry before, unless a gap is between.
func (s *Store) entryRow(e *permissions.Entry, number int64, digest permissions.Digest) []any {
	var kind, request, prev any = string(e.Type), string(e.Request), nil
	if n, known := s.types[e.Type]; known {
		kind = n
	}
	text, _ := detail{&e.Detail}.Value() // a map of strings never fails
	if written, ok := text.(string); ok && number != 0 {
		request, text = number, strings.Replace(written, `"digest":"`+digest.String()+`"`, "\x01", 1)
	}
	if e.Type == permissions.StoreRestored {
		prev = e.Prev[:]
	}
	return []any{e.Chain, e.Seq, micros(e.At), kind, request, e.Actor, e.Via, text, prev, e.Hash[:], s.seals.entry(e.Hash)}
}

const readNumbered = `SELECT number, digest FROM requests WHERE id = $1`

// numberAndDigest is the number of a request that has a row, and its digest.
func numberAndDigest(ctx context.Context, t *tx, id permissions.ID) (number int64, digest permissions.Digest, err error) {
	if row, cached := t.rows.get(id); cached || id == "" {
		return row.Number, row.Digest, nil
	}
	var sum []byte
	err = ignoreNoRows(t.QueryRowContext(ctx, readNumbered, id).Scan(&number, &sum))
	copy(digest[:], sum)
	return number, digest, err
}

// append chains records and writes them in the transaction of the change. A record without a time gets the current one.
func (s *Store) append(ctx context.Context, t *tx, records ...permissions.Record) {
	for some := range slices.Chunk(records, len(addEntries)-1) {
		var args []any
		for _, r := range some {
			if r.At.IsZero() {
				r.At = s.now()
			}
			e := permissions.Entry{Chain: s.chain, Seq: t.seq + 1, Prev: t.hash, Record: r}
			e.Hash = e.ComputeHash()
			var number int64 // on a server, entries have their requests by id
			var digest permissions.Digest
			if s.server == nil {
				var err error
				number, digest, err = numberAndDigest(ctx, t, e.Request)
				t.fail(err)
			}
			args = append(args, s.entryRow(&e, number, digest)...)
			t.head = head{e.Seq, e.Hash}
			e.At = moment(micros(e.At))
			t.entries = append(t.entries, e)
			t.marks = t.marks || slices.Contains(closingTypes, r.Type)
			t.closes = t.marks || r.Type == permissions.AgentStopped || r.Type == permissions.AgentMuted
		}
		t.exec(ctx, addEntries[len(some)], args...)
	}
}

// closingTypes lists the entry types whose loss would reopen something.
var closingTypes = []permissions.Type{
	permissions.GrantRevoked, permissions.TokenRevoked, permissions.RequestVoided, permissions.Unpaired, permissions.AccountSuspended,
	permissions.PersonLocked, permissions.AllStopped,
}

// Details of the entry that seals the audit before it and the rows with a key: the key's name, whether the rows could
// be checked, and how many of each kind there were.
const (
	keyID       = "key"
	unchecked   = "unchecked"
	sealsDetail = "seals" // which version of them; see [sealVersion]
)

// Details of the StoreRestored entry, besides the number of suspended rows of each kind.
const (
	backTo    = "back_to" // the last entry before the gap
	wasDetail = "was"     // SEQ:HASH of the newest known entry of the lost store, if any
	whyDetail = "why"
	restated  = "closed" // what else is closed is in the entries after it
)

const readAudit = `SELECT ` + entryColumns + ` FROM audit WHERE key > ` + lowestKey + ` | $2 AND key <= ` + highestKey +
	` ORDER BY key LIMIT 0 + $3`

const readSeqFromEnd = `SELECT key & 281474976710655 FROM entries WHERE ` + inChain + ` ORDER BY key DESC LIMIT 1 OFFSET 0 + $2`

// Audit lists at most limit entries after seq, below 0 from so many before the end on, of a chain (empty: this daemon's own), oldest
// first. An unreadable entry has no hash.
func (s *Store) Audit(ctx context.Context, chain string, after int64, limit int) ([]permissions.Entry, error) {
	if chain == "" {
		chain = s.chain
	}
	return reading(ctx, s, func(from source) ([]permissions.Entry, error) {
		if before := -after; before > 0 {
			after = 0
			if err := ignoreNoRows(from.QueryRowContext(ctx, readSeqFromEnd, chain, before).Scan(&after)); err != nil {
				return nil, err
			}
		}
		return s.auditAfter(ctx, from, chain, after, limit)
	})
}

// auditAfter is [Store.Audit] of what follows an entry.
func (s *Store) auditAfter(ctx context.Context, from source, chain string, after int64, limit int) ([]permissions.Entry, error) {
	found, err := collect(ctx, from, "", entryFields, readAudit, chain, after, limit)
	return slices.DeleteFunc(found, func(e permissions.Entry) bool { return e.Seq == 0 }), err // without a seq the reader could not continue
}

const readNumbers = `SELECT id, number FROM requests WHERE id IN (SELECT value FROM json_each($1))`

// Codes implements [engine.Store].
func (s *Store) Codes(ctx context.Context, ids []permissions.ID) (map[permissions.ID]string, error) {
	fields := func(r *permissions.Request) []any { return []any{&r.ID, &r.Number} }
	found, err := whole(ctx, s, "a request", fields, readNumbers, list[permissions.ID]{&ids})
	codes := make(map[permissions.ID]string, len(found))
	for _, r := range found {
		codes[r.ID] = s.coder.Encode(r.Number)
	}
	return codes, err
}

// Head is the newest entry of the daemon's own chain; seq is 0 if there is none.
func (s *Store) Head(ctx context.Context) (chain string, seq int64, hash permissions.Digest, err error) {
	err = s.read(ctx, func(from source) error {
		h, err := readHead(ctx, from, s.chain)
		seq, hash = h.seq, h.hash
		return err
	})
	return s.chain, seq, hash, err
}

var eventTypes = func() map[permissions.Type]bool {
	types := map[permissions.Type]bool{}
	for _, t := range permissions.EventTypes() {
		types[t] = true
	}
	return types
}()

// The types come from permissions.EventTypes: constants, not input. Entries of pruned requests have no session and no people.
var readEvents = func() string {
	var types []string
	for _, t := range permissions.EventTypes() {
		types = append(types, `'`+string(t)+`'`)
	}
	columns := `audit.` + strings.ReplaceAll(entryColumns, `, `, `, audit.`)
	return `SELECT ` + columns + `, COALESCE(requests.session, ''), COALESCE(requests.asked, '` + emptyList + `') ` +
		`FROM audit LEFT JOIN requests ON requests.id = audit.request WHERE audit.key > ` + lowestKey + ` | $2 ` +
		`AND audit.key <= ` + highestKey + ` AND audit.type IN (` + strings.Join(types, `, `) + `) ORDER BY audit.key LIMIT 0 + $3`
}()

const readFirst = `SELECT seq FROM audit WHERE ` + inChain + ` ORDER BY key LIMIT 1`

func eventFields(h *permissions.Event) []any {
	return append(entryFields(&h.Entry), &h.Session, list[string]{&h.Asked})
}

// tailEvents is Events from memory, whose rows are as new as the entries; it is not known if something has to be read from the file.
func (s *Store) tailEvents(after int64, limit int) (found []permissions.Event, known bool) {
	entries, known := s.tail.after(after)
	found = make([]permissions.Event, 0, min(limit, len(entries)))
	for _, e := range entries {
		if !known || len(found) == limit {
			break
		}
		if !eventTypes[e.Type] {
			continue
		}
		h := permissions.Event{Entry: e}
		if e.Request != "" {
			var row cachedRow
			row, known = s.rows.get(e.Request)
			if h.Session, h.Asked = row.Session, row.Asked; h.Type.HasRequestText() {
				h.About = row.Request
			}
		}
		found = append(found, h.WithSession())
	}
	return found, known
}

// Events implements [engine.Store].
func (s *Store) Events(ctx context.Context, after int64, limit int) (found []permissions.Event, first int64, err error) {
	if err := s.checkPathsLately(ctx); err != nil {
		return nil, 0, err
	}
	if after < 0 { // from now on
		_, seq, _, err := s.Head(ctx)
		return []permissions.Event{{Entry: permissions.Entry{Seq: seq}}}, 0, err
	}
	if found, known := s.tailEvents(after, limit); known {
		return found, after + 1, nil
	}
	err = s.read(ctx, func(from source) error {
		err := ignoreNoRows(from.QueryRowContext(ctx, readFirst, s.chain).Scan(&first))
		if err != nil {
			return err
		}
		found, err = collect(ctx, from, "", eventFields, readEvents, s.chain, after, limit)
		for i, h := range found {
			if found[i] = h.WithSession(); h.Hash == (permissions.Digest{}) { // unreadable
				found[i] = permissions.Event{Entry: permissions.Entry{Seq: h.Seq}}
			}
		}
		found = slices.DeleteFunc(found, func(h permissions.Event) bool { return h.Seq == 0 })
		return err
	})
	return found, first, err
}

const readNewestTime = `SELECT at FROM audit WHERE ` + inChain + ` AND at BETWEEN 0 AND 253402300799999999 ORDER BY key DESC LIMIT 1`

// NewestTime is the time of the newest entry of the daemon's chain, or zero.
func (s *Store) NewestTime(ctx context.Context) (at time.Time, err error) {
	err = s.read(ctx, func(from source) error {
		return ignoreNoRows(from.QueryRowContext(ctx, readNewestTime, s.chain).Scan(instant{&at}))
	})
	return at, err
}

// Changed returns a channel that the next audit entry closes. It is safe for concurrent use.
func (s *Store) Changed() <-chan struct{} { return s.appended.wait() }

const readEntryHash = `SELECT hash FROM audit WHERE key = ` + lowestKey + ` | $2`

// hasEntry reports whether the audit has the mark's entry, or begins after it because it was pruned.
func hasEntry(ctx context.Context, from source, m *mark) (bool, error) {
	if m.Seq == 0 {
		return true, nil
	}
	field := func(h *permissions.Digest) []any { return []any{digest{h}} }
	text, err := ofAudit(ctx, from, readEntryHash)
	if err != nil {
		return false, err
	}
	found, err := collect(ctx, from, "an entry of the audit", field, text, m.Chain, m.Seq)
	if err != nil || len(found) > 0 {
		return err == nil && found[0].String() == m.Hash, err
	}
	var first int64 // a missing entry may also lie in the gap before a life
	if text, err = ofAudit(ctx, from, readFirst); err == nil {
		err = from.QueryRowContext(ctx, text, m.Chain).Scan(&first)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return m.Seq < first, err
}

const storedColumns = ` at, type, request, actor, via, detail, hash, mac, prev FROM `

var (
	// readEntries reads entries as they are stored: with views it takes three times as long.
	readEntries = `SELECT key & 281474976710655,` + storedColumns + `entries WHERE key BETWEEN ` + lowestKey + ` | MAX($2, 0) ` +
		`AND ` + highestKey + ` ORDER BY key LIMIT 0 + $3`

	// readLongEntries is readEntries in a store from before entries had a key, and readOldEntries in one from before they had seals.
	readLongEntries = `SELECT seq,` + storedColumns + `audit WHERE chain = $1 AND seq >= $2 ORDER BY seq LIMIT 0 + $3`
	readOldEntries  = strings.Replace(readLongEntries, `mac, prev`, `'', prev`, 1)
)

const readNamed = `SELECT number, '' || id, digest FROM requests WHERE number BETWEEN $1 AND $2 ` +
	`UNION ALL SELECT number, '' || id, digest FROM pruned WHERE number BETWEEN $1 AND $2`

// requestName is a request as entries name it.
type requestName struct {
	id     permissions.ID
	digest string
}

var noName = requestName{digest: "="}

// requestNames are those of the last requests, by number. A request without a row, even a pruned one, has no id.
type requestNames map[int64]requestName

// add sets what entries need of their requests.
func (known requestNames) add(ctx context.Context, from source, some []storedEntry) error {
	if len(known) > 2*maxShapes {
		clear(known)
	}
	var numbers []int64
	for i := range some {
		number, ok := some[i].of.(int64)
		if _, has := known[number]; ok && !has {
			known[number] = noName
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	for first, n := 0, 1; n <= len(numbers); n++ {
		if n < len(numbers) && numbers[n]-numbers[n-1] < 8 { // few that nobody needs are between
			continue
		}
		if err := known.read(ctx, from, numbers[first], numbers[n-1]); err != nil {
			return err
		}
		first = n
	}
	for i := range some {
		if number, ok := some[i].of.(int64); ok {
			some[i].named = known[number]
		}
	}
	return nil
}

// read adds the requests from a number to another.
func (known requestNames) read(ctx context.Context, from source, first, last int64) error {
	var number int64
	var id permissions.ID
	var sum []byte
	into := exactFields([]any{&number, &id, &sum})
	return eachRow(ctx, from, func(scan func(into ...any) error) error {
		err := scan(into...)
		if of := noName; err == nil && known[number].id == "" {
			if of.id = id; len(sum) == len(permissions.Digest{}) {
				of.digest = permissions.Digest(sum).String()
			}
			known[number] = of
		}
		return err
	}, readNamed, first, last)
}

// storedEntry is an entry as it is stored. Its request and its type are numbers where they have one.
type storedEntry struct {
	permissions.Entry
	kind, of  any
	named     requestName
	text      string
	mac, prev []byte
	by        *sealer // with which seal was computed in advance; may be nil
	seal      []byte
	failed    error // to read it
}

// expectedSeal is the seal that e has to have with a key.
func (e *storedEntry) expectedSeal(key *sealer) []byte {
	if e.by == key {
		return e.seal
	}
	return key.entry(e.Hash)
}

// typesWithUnusedDetail are the usual types whose detail [comparison] does not use: no map is made of it.
var typesWithUnusedDetail = map[permissions.Type]bool{permissions.RequestCreated: true, permissions.RequestShown: true,
	permissions.RequestVoted: true, permissions.RequestUsed: true, permissions.PermissionApplied: true}

func (e *storedEntry) fields() []any {
	return []any{
		&e.Seq, instant{&e.At}, &e.kind, &e.of, &e.Actor, &e.Via, &e.text, digest{&e.Hash}, &e.mac, &e.prev,
	}
}

// complete sets what the view audit has of e, after the entry before it. It returns its detail as a list, without a map of an unused one.
func (e *storedEntry) complete(types map[int64]permissions.Type, before *permissions.Entry, known details) ([]string, error) {
	e.Chain = before.Chain
	switch kind := e.kind.(type) {
	case int64:
		e.Type = types[kind]
	case string:
		e.Type = permissions.Type(kind)
	}
	switch of := e.of.(type) {
	case int64:
		if e.Request = e.named.id; e.Request == "" {
			e.Request = permissions.ID(strconv.FormatInt(of, 10))
		}
	case string:
		e.Request = permissions.ID(of)
	}
	switch {
	case e.prev != nil:
		if err := (digest{&e.Prev}).Scan(e.prev); err != nil {
			return nil, err
		}
	case e.Seq == before.Seq+1:
		e.Prev = before.Hash
	}
	all, err := known.list(e.text, e.named.digest)
	if err == nil && !typesWithUnusedDetail[e.Type] {
		e.Detail = mapOf(all)
	}
	return all, err
}

// details are the lists of details, by their text as it is stored. That of a digest has none.
type details map[string][]string

// noDigest is the place of a digest in a list: the value in JSON that no detail has.
const noDigest = "\x01"

// list has the names of a stored detail, sorted, each followed by its value.
func (known details) list(text, digest string) ([]string, error) {
	all, found := known[text]
	if !found {
		var fields map[string]string
		if err := (detail{&fields}).Scan(strings.Replace(text, noDigest, `"digest":"\u0001"`, 1)); err != nil {
			return nil, err
		}
		all = permissions.ListDetail(fields)
		if len(known) == maxShapes {
			clear(known)
		}
		known[text] = all
	}
	for i := 1; i < len(all); i += 2 {
		if all[i] == noDigest && all[i-1] == "digest" && strings.Contains(text, noDigest) {
			all = slices.Clone(all)
			all[i] = digest
		}
	}
	return all, nil
}

const readOldAudit = `SELECT ` + entryColumns + `, '' FROM audit ORDER BY chain, seq` // from before entries were keyed
