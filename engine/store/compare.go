package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Verified is what was verified, and what could not be checked.
type Verified struct {
	Chains    []permissions.Head
	Unchecked []string // and why; empty: everything was checked
}

const beforeKey = "the seals of its rows and entries: it is from before the audit key"

// comparison compares the rows with the audit. It keeps a few numbers per entry, so that memory stays small for a long audit.
type comparison struct {
	own        identity
	keys       []*sealer
	numbered   bool      // the store has numbers of requests that were pruned
	seals      *sealer   // of keys, the one that the rows are sealed with; nil: unknown
	since      time.Time // older entries were deleted; zero: none
	seed       maphash.Seed
	byID       map[uint64]*auditedRequest // what the entries say of a request that they name by its id, by hash of that
	byNumber   map[int64]*auditedPage     // and by its number, without its last bits
	votes      map[uint64]struct{}        // hashes of the votes that settled nothing
	entryCount int
	gates      map[uint64]latestEntry // last entry of each row, by hash of table and key

	restored permissions.Entry        // newest StoreRestored
	keeps    bool                     // keep the newest entry of every row
	pruned   int64                    // older rows may have been pruned
	sessions map[permissions.ID]int64 // the last entry about each session of an agent
	wrong    wrongRows

	full  bool        // at a start: since then there is an entry for each row that opens something
	every *comparison // has all entries of such rows; nil: not read
}

// wrongRows are the rows, and the chains, that were found to be wrong. The first ones are named.
type wrongRows struct {
	mu    sync.Mutex
	rows  map[string]bool
	named []error
}

const maxNamed = 10

// note remembers what is wrong with a row, once; nil: nothing.
func (w *wrongRows) note(row string, err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.named) < maxNamed && !w.rows[row] {
		w.named = append(w.named, err)
	}
	if w.rows == nil {
		w.rows = map[string]bool{}
	}
	w.rows[row] = true
}

// err says which rows are wrong, and how many; nil: none. further is why the comparison ended early.
func (w *wrongRows) err(further error) error {
	if len(w.named) == 0 {
		return further
	}
	err := w.named[0]
	for _, each := range w.named[1:] {
		if row := (*Error)(nil); errors.As(each, &row) { // what to do has been said
			each = errors.New(row.What)
		}
		err = fmt.Errorf("%w; %w", err, each)
	}
	if n := len(w.rows); n > 1 {
		err = fmt.Errorf("%w; %d faults in all", err, n)
	}
	if further != nil {
		err = fmt.Errorf("%w; %w", err, further)
	}
	return err
}

// latestEntry is what the newest entry says of a row that opens or shuts something.
type latestEntry struct {
	table   string
	closed  bool
	seq, at int64
	entry   *permissions.Entry // kept only where the row is rewritten from or compared with it
}

// gateTable is a table of such rows and the entry types about them.
type gateTable struct {
	table         string
	key           []string
	opens, closes []permissions.Type
}

// gateTables maps the entries that open or close a row to its table and key: the key is in these details; a table without
// any has one row.
var gateTables = []gateTable{
	{"grants", []string{"grant"}, []permissions.Type{permissions.GrantAdded, permissions.GrantReinstated},
		[]permissions.Type{permissions.GrantRevoked, permissions.GrantEnded}},
	{"tokens", []string{"id"}, []permissions.Type{permissions.TokenCreated, permissions.TokenReinstated},
		[]permissions.Type{permissions.TokenRevoked}},
	{"pairings", []string{"person", "via"}, []permissions.Type{permissions.Paired, permissions.PairingReinstated},
		[]permissions.Type{permissions.Unpaired}},
	{"suspensions", []string{"via", "address"}, []permissions.Type{permissions.AccountSuspended}, []permissions.Type{permissions.Paired}},
	{"locks", []string{"person"}, []permissions.Type{permissions.PersonLocked, permissions.UnlockAsked, permissions.AgentStopped,
		permissions.AgentMuted},
		[]permissions.Type{permissions.PersonUnlocked, permissions.AgentResumed}},
	{"meta", nil, []permissions.Type{permissions.AllStopped}, []permissions.Type{permissions.AllResumed}},
}

func newComparison() *comparison {
	return &comparison{byID: map[uint64]*auditedRequest{}, byNumber: map[int64]*auditedPage{}, votes: map[uint64]struct{}{},
		seed: maphash.MakeSeed(), gates: map[uint64]latestEntry{}, sessions: map[permissions.ID]int64{}}
}

// row is the key in gates of a table's row.
func (c *comparison) row(table string, key ...any) uint64 { return c.sum(table, fmt.Sprintln(key...)) }

func (c *comparison) sum(words ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	for _, word := range words {
		_, _ = h.WriteString(word) // never fails
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

func microsText(t time.Time) string { return strconv.FormatInt(micros(t), 10) }

// auditedRequest is what the entries say of a request, in as few bytes as will do for millions of them.
type auditedRequest struct {
	created uint32 // hash of when
	settled uint32 // hash of how and when
	voted   uint32 // hash of the vote that settled it, and when
	is      uint8  // bits
}

// auditedPage is what the entries say of requests with consecutive numbers.
type auditedPage [1 << auditedPageBits]auditedRequest

const auditedPageBits = 8

// audited is what the entries say of a request so far, by its number, or by its id where they name it so.
func (c *comparison) audited(number int64, id string) *auditedRequest {
	if number > 0 {
		page := c.byNumber[number>>auditedPageBits]
		if page == nil && len(c.byNumber) < 1000+c.entryCount>>auditedPageBits && c.byID[c.sum(id)] == nil { // in our store the pages become full
			page = &auditedPage{}
			c.byNumber[number>>auditedPageBits] = page
		}
		if page != nil {
			return &page[number&(1<<auditedPageBits-1)]
		}
	}
	key := c.sum(id)
	if c.byID[key] == nil {
		c.byID[key] = &auditedRequest{}
	}
	return c.byID[key]
}

const (
	isCreated uint8 = 1 << iota
	isSettled
	isUsed
	isVoided
	hasRow
)

// part is a hash of the seed, which nobody can know beforehand.
func (c *comparison) part(words ...string) uint32 { return uint32(c.sum(words...)) }

// addEntry adds an entry, with the number of its request where it says that. It returns an error if a request is settled, used or
// revoked a second time.
func (c *comparison) addEntry(e *permissions.Entry, number int64) (err error) {
	c.entryCount++
	c.addRowEntry(e)
	id := string(e.Request)
	say := func(is, once uint8) {
		of := c.audited(number, id)
		if of.is&once != 0 {
			err = fmt.Errorf("request %s was settled, used or taken back a second time, in entry %d of chain %s: "+
				"its row was put back to how it was earlier", id, e.Seq, e.Chain)
		}
		at := microsText(e.At)
		switch of.is |= is; is {
		case isCreated:
			of.created = c.part(at)
		case isSettled:
			of.settled = c.part(e.Detail["state"], e.Detail["answer"], e.Via, at)
			of.voted = c.part(e.Actor, e.Via, at)
		}
	}
	switch e.Type {
	case permissions.SessionStatus, permissions.SessionEnded, permissions.ToolStarted, permissions.ToolFinished:
		c.sessions[permissions.ID(e.Detail["session"])] = e.Seq
	case permissions.RequestCreated:
		say(isCreated, 0)
	case permissions.RequestSettled:
		say(isSettled, isSettled)
	case permissions.RequestVoted:
		c.votes[c.sum(id, e.Actor, e.Via, microsText(e.At))] = struct{}{}
	case permissions.RequestUsed:
		say(isUsed, isUsed|isVoided)
	case permissions.RequestVoided:
		say(isVoided, isUsed|isVoided)
	case permissions.StoreRestored: // a stop of the replaced store persists
		c.restored = *e
		delete(c.gates, c.row("meta"))
	case permissions.RowsPruned:
		if before, err := time.Parse(time.RFC3339Nano, e.Detail[prunedBefore]); err == nil {
			c.pruned = max(c.pruned, micros(before))
		}
	}
	return err
}

// addRowEntry adds an entry about a row that opens or shuts something.
func (c *comparison) addRowEntry(e *permissions.Entry) {
	for i, of := range gateTables {
		closes := slices.Contains(of.closes, e.Type)
		if !closes && !slices.Contains(of.opens, e.Type) {
			continue
		}
		var key []any
		for _, name := range of.key {
			key = append(key, e.Detail[name])
		}
		said := latestEntry{table: of.table, closed: closes, seq: e.Seq, at: micros(e.At)}
		row := c.row(of.table, key...)
		if i > 0 || c.keeps { // there are few of them
			kept := *e
			said.entry = &kept
		}
		if before := c.gates[row].entry; before != nil && e.Type == permissions.TokenReinstated {
			said.entry = before // the earlier entry names the owner
		}
		c.gates[row] = said
	}
}

// confirms reports whether the entries say what a request has; without an entry it is true where that may have been deleted.
func (c *comparison) confirms(of auditedRequest, is uint8, told, want uint32, when time.Time) bool {
	known := of.is&is != 0
	return known && told == want || !known && when.Before(c.since)
}

// noteKeys finds the key of the rows.
func (c *comparison) noteKeys(v *Verified) {
	for _, k := range c.keys {
		if c.own.hasValidSeal(k) {
			c.seals = k
		}
	}
	switch {
	case c.own.chain == "":
	case c.seals == nil && len(c.own.mac) == 0:
		v.Unchecked = append(v.Unchecked, beforeKey)
	case c.seals == nil:
		v.Unchecked = append(v.Unchecked, "the seals of requests, votes, grants, tokens and pairings: the audit key is not here, or "+
			"the name, the codes or the stop of the store were changed")
	}
}

const readWaiting = `SELECT ` + backupColumns + ` FROM requests WHERE number BETWEEN $1 AND $2 AND state = 'pending' ORDER BY number`

// checkPendingTexts checks, of some consecutive requests, that the texts of the pending ones are those that were asked.
func (c *comparison) checkPendingTexts(ctx context.Context, from source, rows []shapedRow) error {
	pending := false
	for i := range rows {
		pending = pending || rows[i].row.State == permissions.Pending
	}
	if !pending {
		return nil
	}
	words, err := collect(ctx, from, "", requestFields, readWaiting, rows[0].row.Number, rows[len(rows)-1].row.Number)
	for _, r := range words { // the digest covers them
		if name := "request " + string(r.ID); permissions.ComputeDigest(r) != r.Digest {
			c.wrong.note(name, unsealed(name))
		}
	}
	return err
}

// checkRequestSeals checks the seals of requests, in a room for what they cover.
func (c *comparison) checkRequestSeals(rows []shapedRow, room *[]any) {
	for i := range rows {
		r := &rows[i]
		if c.seals == nil {
			return
		}
		*room = sealedValuesOf(c.own.seals, (*room)[:0], &r.row)
		if name := "request " + string(r.row.ID); !c.seals.isSealOf(r.mac, "requests", (*room)...) {
			c.wrong.note(name, unsealed(name))
		}
	}
}

// readRows compares the open grants, tokens and pairings, the locks, and what else is not a request.
func (c *comparison) readRows(ctx context.Context, from source) error {
	seals := c.seals
	tokens, persons := tokenGate, 0
	if err := from.QueryRowContext(ctx, countPersons).Scan(&persons); err != nil {
		return err
	}
	if persons == 0 { // the start that migrates the store compares them
		tokens.open, tokens.agrees = openTokens(columnsBeforePersons+`, ''`), nil
	}
	return cmp.Or( // each call removes the rows that it found from gates
		c.checkOtherSeals(ctx, from, seals),
		compareOpen(ctx, c, from, seals, grantGate),
		compareOpen(ctx, c, from, seals, tokens),
		c.compareLocks(ctx, from, seals),
		compareOpen(ctx, c, from, seals, pairingGate),
		c.compareRest(ctx, from),
		c.readUses(ctx, from))
}

// countPersons is 1 if the tokens have a person column.
const countPersons = `SELECT COUNT(*) FROM pragma_table_info('tokens') WHERE name = 'person'`

// readUses finds uses of grants that do not match their requests.
func (c *comparison) readUses(ctx context.Context, from source) error {
	wrong, err := collect(ctx, from, "", value[string], falseUse)
	for _, use := range wrong {
		c.wrong.note(use, fmt.Errorf("%s is of something that is not there", use))
	}
	return err
}

const (
	// missingRequests finds requests that the entries after a seq name and that are missing, except those that may have
	// been pruned, with their numbers where these are known.
	missingRequests = `SELECT request, type, 0 FROM audit WHERE chain = $1 AND seq > $2 AND at >= $3 ` +
		`AND type IN ('REQUEST_CREATED', 'REQUEST_SETTLED') AND NOT EXISTS (SELECT 1 FROM requests WHERE id = audit.request)`

	// missingUse finds the requests whose use of an open grant is missing.
	missingUse = `SELECT requests.id, 'USE', 0 FROM requests ` +
		`CROSS JOIN json_each(CASE WHEN json_valid(under) THEN under ELSE '[]' END) AS held ` +
		`JOIN grants ON grants.id = held.value WHERE grants.revoked_at = 0 AND grants.ended_at = 0 AND state = 'approved' ` +
		`AND (decided_via = 'grant' OR used_at > 0) ` +
		`AND NOT EXISTS (SELECT 1 FROM uses WHERE granted = grants.id AND uses.request = requests.number)`

	// falseUse finds the uses that their requests do not have, the grants with more uses than they count, and the uses whose request or
	// grant is missing.
	falseUse = `SELECT 'a use of the grant ' || granted FROM uses JOIN requests ON requests.number = uses.request ` +
		`WHERE NOT EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(under) THEN under ELSE '[]' END) AS held WHERE held.value = granted) ` +
		`UNION SELECT 'how often the grant ' || id || ' was used' FROM grants ` +
		`WHERE used < (SELECT COUNT(*) FROM uses WHERE granted = grants.id) ` +
		strayRows

	strayRows = `UNION SELECT 'a row of the table ' || "table" FROM pragma_foreign_key_check`
)

// compareRest compares the remaining tables and finds missing rows. It skips what may have been pruned, rolled back by a
// restore, or deleted before pruning was audited.
func (c *comparison) compareRest(ctx context.Context, from source) error {
	if _, known := c.gates[c.row("meta")]; known && c.stoppedBy() != c.own.stoppedBy || c.own.restoredAt.Before(c.restored.At) {
		what := "who stopped everything, or when the store was restored,"
		c.wrong.note(what, c.mismatchError(what))
	}
	said, err := c.own.decodeRestrictions()
	if err != nil {
		return err
	}
	for _, row := range c.gates {
		if !row.closed && row.table != "meta" && (c.wouldRecordDeletion(row, said) || row.table == "locks") {
			what := fmt.Errorf("a row of the table %s that entry %d speaks of is missing, and no entry says why", row.table, row.seq)
			c.wrong.note(what.Error(), what)
		}
	}
	if said.Since == nil {
		return nil
	}
	fields := func(e *permissions.Entry) []any { return []any{&e.Request, &e.Type, &e.Seq} }
	var gone []permissions.Entry
	if c.hasMissingRequests() {
		text := missingRequests
		if c.numbered {
			text = strings.Replace(text, "0", "COALESCE((SELECT number FROM pruned WHERE id = request), 0)", 1)
		}
		if gone, err = collect(ctx, from, "a request", fields, text, c.own.chain, *said.Since, c.pruned); err != nil {
			return err
		}
	}
	used, err := collect(ctx, from, "a request", fields, missingUse)
	for _, e := range append(gone, used...) {
		if e.Type != permissions.RequestCreated || c.audited(e.Seq, string(e.Request)).is&isSettled == 0 { // else possibly pruned
			name := "request " + string(e.Request)
			c.wrong.note(name, fmt.Errorf("%s, or that it used a grant, is missing, and no entry says why", name))
		}
	}
	return err
}

// wouldRecordDeletion reports whether the entries would say it if the row of a newest entry had been deleted.
func (c *comparison) wouldRecordDeletion(row latestEntry, said restrictions) bool {
	missed := c.restored.Seq // missing after this seq
	if c.restored.Detail[restated] != "" {
		missed = 0
	}
	return said.Since != nil && row.seq > max(*said.Since, missed) && (row.table != "tokens" || row.at >= c.pruned)
}

// hasMissingRequests reports whether the entries name a request that is not here, perhaps because it was pruned.
func (c *comparison) hasMissingRequests() bool {
	lacks := func(of *auditedRequest) bool { return of.is != 0 && of.is&hasRow == 0 }
	for _, page := range c.byNumber {
		for i := range page {
			if lacks(&page[i]) {
				return true
			}
		}
	}
	for _, of := range c.byID {
		if lacks(of) {
			return true
		}
	}
	return false
}

// mismatchError is the error for a row that contradicts its entries.
func (c *comparison) mismatchError(what string) error {
	if c.entryCount == 0 {
		return fmt.Errorf("the audit is empty, and the store has %s", what)
	}
	return fmt.Errorf("%s is not what the audit says of it", what)
}

// findAudited is what the entries say of a request, by its number and its id, and notes that it is here.
func (c *comparison) findAudited(r *permissions.Request) (of auditedRequest, err error) {
	both := []*auditedRequest{c.byID[c.sum(string(r.ID))]}
	if page := c.byNumber[r.Number>>auditedPageBits]; page != nil && r.Number > 0 {
		both = append(both, c.audited(r.Number, ""))
	}
	for _, some := range both {
		if some == nil {
			continue
		}
		const ended = isUsed | isVoided
		if some.is&of.is&isSettled != 0 || some.is&ended != 0 && of.is&ended != 0 {
			return of, c.mismatchError("request " + string(r.ID))
		}
		some.is |= hasRow
		of = auditedRequest{of.created | some.created, of.settled | some.settled, of.voted | some.voted, of.is | some.is}
	}
	return of, nil
}

// compareRequest compares a request, and the votes on it, with its entries.
func (c *comparison) compareRequest(r *permissions.Request) error {
	name := "request " + string(r.ID)
	of, err := c.findAudited(r)
	if err != nil {
		return err
	}
	if !c.confirms(of, isCreated, of.created, c.part(microsText(r.CreatedAt)), r.CreatedAt) {
		return c.mismatchError(name)
	}
	for _, vote := range r.Votes {
		at := microsText(vote.At)
		_, said := c.votes[c.sum(string(r.ID), vote.By, vote.Via, at)]
		if !said && (of.is&isSettled == 0 || of.voted != c.part(vote.By, vote.Via, at)) && !vote.At.Before(c.since) {
			return c.mismatchError("the vote of " + vote.By + " on " + name)
		}
	}
	if r.State == permissions.Pending {
		if of.is&isSettled != 0 {
			return c.mismatchError(name)
		}
		return nil
	}
	answer := string(r.Answer)
	if r.TimedOut || r.Defaulted { // no person answered
		answer = ""
	}
	settled := c.part(string(r.State), answer, r.DecidedVia, microsText(r.DecidedAt))
	if !c.confirms(of, isSettled, of.settled, settled, r.DecidedAt) ||
		of.is&isUsed != 0 && r.UsedAt.IsZero() || of.is&isVoided != 0 && r.VoidAt.IsZero() {
		return c.mismatchError(name)
	}
	return nil
}

const readPendingCopies = `SELECT ` + copyColumns + ` FROM copies WHERE request IN (SELECT id FROM requests WHERE state = 'pending')`

// checkOtherSeals checks the seals of sessions of our own agents that have not ended, of timetables, absences, and of copies of pending
// requests, and that no later entry is about such a session.
func (c *comparison) checkOtherSeals(ctx context.Context, from source, seals *sealer) error {
	if seals == nil || c.own.seals == 0 {
		return nil
	}
	copies := copyGate
	if c.own.seals == 1 {
		copies.sealed = sealedWithoutList
	}
	sessions, err := collect(ctx, from, "", (*sealedSession).fields, readOpenSealed)
	for _, r := range sessions {
		name := "session " + string(r.row.ID)
		switch {
		case !r.hasValidSeal(seals):
			c.wrong.note(name, unsealed(name))
		case c.sessions[r.row.ID] > r.audited:
			c.wrong.note(name, c.mismatchError(name))
		}
	}
	return cmp.Or(err, checkRowSeals(ctx, c, from, seals, timetableGate, readTimetables),
		c.sinceThen(ctx, from, countAway, func() error { return checkRowSeals(ctx, c, from, seals, absenceGate, readAbsences) }),
		c.sinceThen(ctx, from, countProposals, func() error { return checkRowSeals(ctx, c, from, seals, senderGate, readProposals) }),
		checkRowSeals(ctx, c, from, seals, copies, readPendingCopies))
}

const (
	// countAway is 0 for a copy from before people could be away, else 1.
	countAway = `SELECT COUNT(*) FROM sqlite_schema WHERE name = 'away'`

	// countProposals is likewise about proposed pairings.
	countProposals = `SELECT COUNT(*) FROM pragma_table_info('strangers') WHERE name = 'mac'`
)

// sinceThen checks what older copies do not have.
func (c *comparison) sinceThen(ctx context.Context, from source, count string, check func() error) error {
	n := 0
	if err := from.QueryRowContext(ctx, count).Scan(&n); err != nil || n == 0 {
		return err
	}
	return check()
}

// compareLocks checks against the entries that no lock was added, changed or removed by hand.
func (c *comparison) compareLocks(ctx context.Context, from source, seals *sealer) error {
	n := 0
	err := from.QueryRowContext(ctx, countLocks).Scan(&n)
	if err == nil && n > 0 {
		err = compareOpen(ctx, c, from, seals, lockGate)
	}
	if err != nil || c.own.restrictions == "" || n == 0 {
		return err
	}
	said, err := c.own.decodeRestrictions()
	if err != nil {
		return err
	}
	is, err := readRestrictions(ctx, from)
	for _, a := range is.Suspensions {
		delete(c.gates, c.row("suspensions", a.Via, a.Address))
	}
	if is.Since, is.Gone = said.Since, said.Gone; err == nil && !reflect.DeepEqual(is, said) {
		c.wrong.note("locks", errors.New("the locks and suspensions are not those that the store lists"))
	}
	return err
}

// checkRowSeals checks the seals of the rows that a query finds.
func checkRowSeals[T any](ctx context.Context, c *comparison, from source, seals *sealer, g gate[T], text string) error {
	found, err := collect(ctx, from, "", g.rowFields, text)
	for _, r := range found {
		if name := g.name(r.row); !g.hasValidSeal(seals, r) {
			c.wrong.note(name, unsealed(name))
		}
	}
	return err
}

// compareOpen checks the seals of the open rows of a table, if there is a key, and compares them with their entries.
func compareOpen[T any](ctx context.Context, c *comparison, from source, seals *sealer, g gate[T]) error {
	found, err := collect(ctx, from, "", g.rowFields, g.open)
	for _, r := range found {
		row, name := c.row(g.table, g.key(&r.row)...), g.name(r.row)
		_, known := c.gates[row]
		closed, suspended := verdict(c, g, r.row)
		switch {
		case seals != nil && !g.hasValidSeal(seals, r):
			c.wrong.note(name, unsealed(name))
		case !known && !g.made(r.row).Before(c.since), closed, suspended:
			c.wrong.note(name, c.mismatchError(name))
		}
		delete(c.gates, row)
	}
	return err
}

// verdict reports what the entries say of an open row: whether it was closed or replaced, and whether a restore suspended it.
func verdict[T any](c *comparison, g gate[T], row T) (closed, suspended bool) {
	said := c.gates[c.row(g.table, g.key(&row)...)]
	closed = said.closed || said.entry != nil && g.agrees != nil && !g.agrees(row, said.entry)
	return closed, g.since(&row).IsZero() && said.seq < c.restored.Seq
}

// stoppedBy is who stopped everything according to the entries; empty if nobody did or they do not say.
func (c *comparison) stoppedBy() string {
	if said := c.gates[c.row("meta")]; said.entry != nil && !said.closed {
		return cmp.Or(said.entry.Actor, stoppedByNobody)
	}
	return ""
}

// missingRestrictions returns the locks and suspensions that the entries have and is lacks.
func (c *comparison) missingRestrictions(is restrictions) (said restrictions) {
	for _, row := range c.gates {
		if row.entry != nil && !row.closed {
			is.collectMissing(row.entry, &said)
		}
	}
	return said
}
