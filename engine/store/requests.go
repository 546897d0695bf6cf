package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
)

// gateEntry is the condition of the index audit_gates, literally; the numbers of types are those of migration 39.
const gateEntry = `audit.type < 24`

// The numbers of some types.
const (
	settledType = `1`
	usedTypes   = `(2, 3)` // REQUEST_USED and REQUEST_VOIDED
	resumedType = `23`     // AGENT_RESUMED
)

// gateEntries begins a search for entries by the index audit_gates.
const gateEntries = ` FROM (SELECT key AS k FROM entries AS audit WHERE ` + gateEntry

// The columns of a request, in the order of the fields beside them: the constant ones, and those that Apply may change.
const (
	wordColumns = `id, kind, mode, caller, caller_uid, session, version, digest, key, created_at, agent, ` +
		`claimed, host, cwd, tool, affected_path, env_hash, widest, high_risk, background, foreground, step, quorum, options, ` +
		`tags, held, env_names, choices, reason, message, input, details, under, place, hook, folder`
	fixedColumns    = wordColumns + `, beyond, was, ruled, title, prompt`
	changingColumns = `revision, state, deadline, decided_at, used_at, collected_at, void_at, voided_by, lapsed_at, left_at, answer, scope, ` +
		`decided_by, decided_via, timed_out, defaulted, used_call, asked, escalate_to, escalate_at, reminders, comment, ` +
		`failure, calls`
	// number and id come first: they are readable even if a later column is not.
	requestColumns = `number, ` + fixedColumns + `, earlier_at, ` + changingColumns
	// A backup is compared before its schema is migrated.
	backupColumns = `number, ` + wordColumns + `, 0, '[]', '[]', '', '', earlier_at, ` + changingColumns

	// sealedRequest is for [Store.one] and [Store.many]. It returns no seal for an approval that is used or revoked, or a request
	// that has ended, according to the audit but not to its row.
	sealedRequest = requestColumns + `, CASE WHEN state = 'approved' AND used_at = 0 AND void_at = 0 ` +
		`AND EXISTS (SELECT 1 FROM entries AS audit WHERE ` + gateEntry + ` AND audit.request IN (+requests.number, requests.id) ` +
		`AND audit.type IN ` + usedTypes + `) ` +
		`OR state = 'pending' AND EXISTS (SELECT 1 FROM entries AS audit WHERE ` + gateEntry + ` ` +
		`AND audit.request IN (+requests.number, requests.id) AND audit.type = ` + settledType + `) ` +
		`THEN x'' ELSE mac END`
)

func fixedFields(r *permissions.Request) []any {
	return []any{
		&r.ID, &r.Kind, &r.Mode, &r.Caller.Name, &r.Caller.UID, &r.Session, &r.Version, digest{&r.Digest}, &r.Key,
		instant{&r.CreatedAt}, &r.Agent, &r.Claimed,
		&r.Host, &r.Cwd, &r.Tool, &r.AffectedPath, &r.EnvHash, scope{&r.Widest}, &r.HighRisk, &r.Background, &r.Foreground,
		&r.Step, &r.Quorum, offered{list[permissions.Option]{&r.Options}}, list[permissions.Tag]{&r.Tags},
		brief[permissions.Tag]{list[permissions.Tag]{&r.Held}}, brief[string]{list[string]{&r.EnvNames}},
		brief[string]{list[string]{&r.Choices}}, &r.Reason, &r.Message,
		canonical{rawJSON{&r.Input}}, &r.Details, brief[permissions.ID]{list[permissions.ID]{&r.Grants}}, &r.Group, &r.Hook,
		&r.Folder, &r.ExceededRate,
		brief[permissions.Rows]{list[permissions.Rows]{&r.Rows}}, brief[permissions.Ruling]{list[permissions.Ruling]{&r.Ruled}},
		&r.SessionTitle, &r.LastPrompt,
	}
}

func changingFields(r *permissions.Request) []any {
	return []any{
		&r.Revision, &r.State, instant{&r.Deadline}, instant{&r.DecidedAt}, instant{&r.UsedAt}, instant{&r.CollectedAt},
		instant{&r.VoidAt}, &r.VoidedBy,
		instant{&r.LapsedAt}, instant{&r.LeftAt}, &r.Answer, scope{&r.Scope},
		&r.DecidedBy, &r.DecidedVia, &r.TimedOut, &r.Defaulted, &r.UsedCall, list[string]{&r.Asked},
		brief[string]{list[string]{&r.EscalateTo}}, instant{&r.EscalateAt}, times{&r.Reminders}, &r.Comment, &r.Failure,
		brief[permissions.Call]{list[permissions.Call]{&r.Calls}},
	}
}

func requestFields(r *permissions.Request) []any {
	return slices.Concat([]any{&r.Number}, fixedFields(r), []any{lenientTime{&r.EarlierAt}}, changingFields(r))
}

// The time comes last: if an earlier column is unreadable it is not read, and the request's seal does not hold.
const (
	oldVoteColumns = `voter, via, votes.answer, call, votes.comment, votes.key`
	voteColumns    = `voter, via, answer, call, comment, key, account, rule, at`
)

func voteFields(v *permissions.Vote) []any {
	return []any{&v.By, &v.Via, &v.Answer, &v.Call, &v.Comment, &v.Key, &v.Account, &v.Rule, instant{&v.At}}
}

const (
	readVotesOf = `SELECT request, ` + voteColumns + ` FROM request_votes WHERE request IN (SELECT value FROM json_each($1)) ` +
		`ORDER BY request, n`

	// readVotesBetween is [readVotesOf] of the requests from a number to another.
	readVotesBetween = `SELECT request, ` + voteColumns + ` FROM request_votes WHERE request BETWEEN $1 AND $2 ORDER BY request, n`

	// readOldVotesBetween is the same in a store whose votes name their request by its id.
	readOldVotesBetween = `SELECT requests.number, ` + oldVoteColumns + `, account, rule, at FROM votes JOIN requests ` +
		`ON requests.id = votes.request WHERE requests.number BETWEEN $1 AND $2 ORDER BY requests.number, n`
)

// ballot is a vote with the number of its request.
type ballot struct {
	request int64
	permissions.Vote
}

func ballotFields(b *ballot) []any { return append([]any{&b.request}, voteFields(&b.Vote)...) }

// addVotes reads the votes on requests.
func addVotes(ctx context.Context, from source, found []permissions.Request) error {
	at := make(map[int64]int, len(found))
	numbers := make([]int64, len(found))
	for i, r := range found {
		numbers[i], at[r.Number] = r.Number, i
	}
	all, err := collect(ctx, from, "", ballotFields, readVotesOf, list[int64]{&numbers})
	for _, b := range all {
		r := &found[at[b.request]]
		r.Votes = append(r.Votes, b.Vote)
	}
	return err
}

// sealedColumns are the request columns that the seal covers, besides the option ids, each call's tool and answer, and the votes.
const sealedColumns = `number, id, kind, mode, caller, caller_uid, session, version, digest, key, hook, created_at, ` +
	`agent, claimed, host, cwd, tool, tags, held, widest, high_risk, quorum, under, revision, state, deadline, decided_at, ` +
	`used_at, collected_at, void_at, lapsed_at, answer, scope, decided_by, decided_via, timed_out, defaulted, used_call, ` +
	`asked, escalate_to, escalate_at`

func sealedFields(room []any, r *permissions.Request) []any {
	return append(room,
		&r.Number, &r.ID, &r.Kind, &r.Mode, &r.Caller.Name, &r.Caller.UID, &r.Session, &r.Version, digest{&r.Digest}, &r.Key,
		&r.Hook, instant{&r.CreatedAt}, &r.Agent, &r.Claimed, &r.Host, &r.Cwd, &r.Tool, list[permissions.Tag]{&r.Tags},
		list[permissions.Tag]{&r.Held}, scope{&r.Widest}, &r.HighRisk, &r.Quorum, list[permissions.ID]{&r.Grants}, &r.Revision,
		&r.State, instant{&r.Deadline}, instant{&r.DecidedAt}, instant{&r.UsedAt}, instant{&r.CollectedAt}, instant{&r.VoidAt},
		instant{&r.LapsedAt}, &r.Answer, scope{&r.Scope}, &r.DecidedBy, &r.DecidedVia, &r.TimedOut, &r.Defaulted, &r.UsedCall,
		list[string]{&r.Asked}, list[string]{&r.EscalateTo}, instant{&r.EscalateAt},
	)
}

// sealedValues returns the sealed values of a request. What pending ones show of an option is sealed until they are settled: the words
// of a clarification are pruned later.
func sealedValues(room []any, r *permissions.Request) []any {
	values := append(oldSealedValues(room, r), "1", r.ExceededRate, r.Background, r.Foreground, r.Step, r.Group)
	if r.State == permissions.Pending {
		for _, o := range r.Options {
			values = append(values, o.Label)
		}
		if shown := r.ShownDigest(); shown != r.Digest { // old seals lack it
			values = append(values, digest{&shown})
		}
		if r.SessionTitle+r.LastPrompt != "" { // the type of the first value keeps it distinct
			values = append(values, int64(0), r.SessionTitle, r.LastPrompt)
		}
		for _, ruled := range r.Ruled {
			values = append(values, string(ruled.Effect), ruled.Rule, ruled.Why)
			if ruled.PromptsRefused > 0 {
				values = append(values, int64(ruled.PromptsRefused), false)
			}
			if ruled.Grants != "" { // the type of the first value keeps it distinct
				values = append(values, true, ruled.Grants)
			}
		}
	}
	return values
}

// oldSealedValues are the sealed values before migration 19.
func oldSealedValues(room []any, r *permissions.Request) []any {
	values := append(sealedFields(room, r), len(r.Options), len(r.Calls), len(r.Votes))
	for _, o := range r.Options {
		values = append(values, string(o.ID))
	}
	for _, c := range r.Calls {
		values = append(values, c.N, c.Tool, string(c.Answer))
	}
	for _, v := range r.Votes {
		values = append(values, v.By, v.Via, string(v.Answer), v.Call, micros(v.At), v.Key)
		if v.Account != "" { // old stores have none; the type of the first value keeps it distinct
			values = append(values, true, v.Account)
		}
		if v.Rule != "" {
			values = append(values, false, string(v.Rule))
		}
	}
	if r.VoidedBy != "" { // old seals lack it
		values = append(values, r.VoidedBy)
	}
	return values
}

func (k *sealer) request(r *permissions.Request) []byte {
	return k.seal("requests", sealedValues(make([]any, 0, 80), r)...)
}

// sealedValuesOf returns the sealed values of a request in a store of a [sealVersion].
func sealedValuesOf(version int64, room []any, r *permissions.Request) []any {
	if version == 0 {
		return oldSealedValues(room, r)
	}
	return sealedValues(room, r)
}

// one reads the request that a query of sealedRequest finds, or returns sql.ErrNoRows. For an unusable row the error
// matches [permissions.ErrRow].
func (s *Store) one(ctx context.Context, from source, text string, args ...any) (permissions.Request, error) {
	found, last, err := s.many(ctx, from, text, args...)
	switch {
	case err != nil:
		return permissions.Request{}, err
	case last.Number == 0:
		return permissions.Request{}, sql.ErrNoRows
	case len(found) == 0:
		return permissions.Request{}, unsealed("request " + string(last.ID))
	}
	return found[0], nil
}

// many reads the requests that a query of sealedRequest finds and whose seals hold, and of the pending ones, which are
// complete, the digest matches. Others are left out. last is the last row found, usable or not.
func (s *Store) many(
	ctx context.Context, from source, text string, args ...any,
) (found []permissions.Request, last permissions.Request, err error) {
	return s.manyOf(ctx, from, sealVersion, text, args...)
}

// manyOf is many in a store of a [sealVersion].
func (s *Store) manyOf(
	ctx context.Context, from source, version int64, text string, args ...any,
) (found []permissions.Request, last permissions.Request, err error) {
	fields := func(r *sealedRow[permissions.Request]) []any { return append(requestFields(&r.row), &r.mac) }
	rows, err := collect(ctx, from, "", fields, text, args...)
	if err != nil || len(rows) == 0 {
		return nil, last, err
	}
	all := make([]permissions.Request, len(rows))
	for i, r := range rows {
		all[i] = r.row
	}
	if slices.ContainsFunc(all, func(r permissions.Request) bool { return r.Revision > 1 }) { // each vote increments the revision
		if err := addVotes(ctx, from, all); err != nil {
			return nil, last, err
		}
	}
	for i, r := range all {
		if s.seals.isSealOf(rows[i].mac, "requests", sealedValuesOf(version, nil, &r)...) &&
			(r.State != permissions.Pending || permissions.ComputeDigest(r) == r.Digest) {
			found = append(found, r)
		} else {
			s.logUnsealed("request " + string(r.ID))
		}
	}
	return found, all[len(all)-1], nil
}

// after is many, in pages of at most limit, by number, after the given one.
func (s *Store) after(
	ctx context.Context, from source, number int64, limit int, text string, args ...any,
) (found []permissions.Request, err error) {
	for len(found) < limit {
		more, last, err := s.many(ctx, from, text, slices.Concat([]any{number}, args, []any{limit - len(found)})...)
		if err != nil || last.Number == 0 {
			return found, err
		}
		found, number = append(found, more...), last.Number
	}
	return found, nil
}

// Read implements [registry.Store].
func (s *Store) Read(ctx context.Context, id permissions.ID) (permissions.Request, error) {
	if err := s.checkPathsLately(ctx); err != nil {
		return permissions.Request{}, err
	}
	if row, cached := s.rows.get(id); cached && s.isCurrent(ctx, row.Request) {
		return row.Request, nil
	}
	begun := s.rows.reading(id)
	r, err := reading(ctx, s, func(from source) (permissions.Request, error) { return s.load(ctx, from, id) })
	if err == nil && s.server != nil { // another daemon may have written it, of which there is more to be read soon
		s.rows.put(begun, r)
	}
	return r, err
}

const readRevisions = `SELECT id, revision FROM requests WHERE id IN (SELECT value FROM json_each($1))`

// isCurrent reports whether a cached request is as it is in the store. Another daemon may have changed it a moment ago, and have told
// somebody so who now asks this one.
func (s *Store) isCurrent(ctx context.Context, r permissions.Request) bool {
	at := s.server
	if !at.hasOthers() || ctx.Value(permissions.AsKnown{}) != nil {
		return true
	}
	at.asking.Lock()
	if at.nextAsked == nil {
		at.nextAsked = &revisions{done: make(chan struct{})}
	}
	own := at.nextAsked
	own.ids = append(own.ids, r.ID)
	if !at.isAsking {
		at.isAsking = true
		go s.askRevisions()
	}
	at.asking.Unlock()
	select {
	case <-own.done:
	case <-ctx.Done():
		return false
	}
	revision, found := own.found[r.ID]
	return found && revision == r.Revision
}

// askRevisions makes the queries that somebody waits for, one at a time.
func (s *Store) askRevisions() {
	for at := s.server; ; {
		at.asking.Lock()
		next := at.nextAsked
		at.nextAsked, at.isAsking = nil, next != nil
		at.asking.Unlock()
		if next == nil {
			return
		}
		fields := func(r *permissions.Request) []any { return []any{&r.ID, &r.Revision} }
		all, err := collect(at.closing, s.readers, "", fields, readRevisions, list[permissions.ID]{&next.ids})
		if next.found = map[permissions.ID]int64{}; err == nil { // else each reads its request itself
			for _, r := range all {
				next.found[r.ID] = r.Revision
			}
		}
		close(next.done)
	}
}

const (
	readRequest = `SELECT ` + sealedRequest + ` FROM requests WHERE id = $1`

	// readShort leaves out requests with long texts before their rows are read.
	readShort = `SELECT ` + sealedRequest + ` FROM requests WHERE id IN (SELECT value FROM json_each($1)) ` +
		`AND octet_length(input) + octet_length(calls) + octet_length(details) + octet_length(was) <= $2`
)

// load reads one request by its id, or refuses.
func (s *Store) load(ctx context.Context, from source, id permissions.ID) (permissions.Request, error) {
	r, err := s.one(ctx, from, readRequest, id)
	if errors.Is(err, sql.ErrNoRows) {
		return r, permissions.Unknown(string(id))
	}
	return r, err
}

// current is the request as the transaction has it, or a refusal.
func (s *Store) current(ctx context.Context, t *tx, id permissions.ID) (permissions.Request, error) {
	if row, cached := t.rows.get(id); cached {
		return row.Request, nil
	}
	return s.load(ctx, t, id)
}

const (
	readNewest = `SELECT COALESCE(MAX(number), 0) FROM requests WHERE number < $1`

	readBelow = `SELECT ` + sealedRequest + ` FROM requests WHERE number < $1 ORDER BY number DESC LIMIT 0 + $2`

	readNumber = `SELECT ` + sealedRequest + ` FROM requests WHERE number = $1`
)

// newest is the greatest request number in a store of a [sealVersion]. A row whose seal does not hold counts only if its number is
// within a daemon's reach of the others or of the number that new ones are above: a forged one could otherwise use up the numbers or
// take their codes.
func (s *Store) newest(ctx context.Context, from source, version, above int64) (n int64, err error) {
	for below, page := int64(maxSeq), 1; s.from == s.seals && n == 0; page = sealedPage { // else there is no key to check with yet
		found, last, err := s.manyOf(ctx, from, version, readBelow, below, page)
		if err != nil {
			return 0, err
		}
		if below = last.Number; below == 0 {
			break
		}
		if len(found) > 0 {
			n = found[0].Number
		}
		if page == 1 && n > 0 { // there is none above it
			return n, nil
		}
	}
	most := int64(maxSeq)
	if s.from == s.seals {
		most = max(n, above) + gap
	}
	err = from.QueryRowContext(ctx, readNewest, most).Scan(&n)
	return n, err
}

// ByCode finds the newest request that has the code, or refuses with [permissions.CodeUnknown].
func (s *Store) ByCode(ctx context.Context, code string) (r permissions.Request, err error) {
	n, ok := s.coder.Decode(code)
	if !ok {
		return r, permissions.Unknown(code)
	}
	err = s.read(ctx, func(from source) error {
		newest, err := s.newest(ctx, from, sealVersion, s.above)
		if err != nil {
			return err
		}
		if n > newest {
			return permissions.Unknown(code)
		}
		r, err = s.one(ctx, from, readNumber, newest-(newest-n)%permissions.CodeCount)
		if errors.Is(err, sql.ErrNoRows) {
			return permissions.Unknown(code)
		}
		return err
	})
	return r, err
}

const (
	// askedOf joins the people whom a request asks, nobody if that is unreadable. A second database needs its own text.
	askedOf = `json_each(CASE WHEN json_valid(requests.asked) THEN requests.asked ELSE '[]' END) AS person`

	// readPendingNumbers lists the next pending requests of a person, or all. The index of what is pending begins with whom it asks: of
	// these few distinct lists those with the person are merged, each with as many as fit the page.
	readPendingNumbers = `WITH RECURSIVE asked_lists (asked) AS (SELECT MIN(asked) FROM requests WHERE state = 'pending' ` +
		`UNION ALL SELECT (SELECT MIN(requests.asked) FROM requests WHERE state = 'pending' AND requests.asked > asked_lists.asked) ` +
		`FROM asked_lists WHERE asked_lists.asked IS NOT NULL) ` +
		`SELECT found.number FROM asked_lists, requests AS found WHERE found.number > $1 AND ($2 = '' OR EXISTS (SELECT 1 FROM ` +
		`json_each(CASE WHEN json_valid(asked_lists.asked) THEN asked_lists.asked ELSE '[]' END) AS person WHERE person.value = $2)) ` +
		`AND found.number IN (SELECT next.number FROM requests AS next WHERE next.state = 'pending' AND next.asked = asked_lists.asked ` +
		`AND next.number > $1 ORDER BY next.number LIMIT 0 + $3) ORDER BY found.number LIMIT 0 + $3`

	readPending = `SELECT ` + sealedRequest + ` FROM requests WHERE state = 'pending' AND number IN (` + readPendingNumbers + `) ` +
		`ORDER BY number`

	// readPendingFromEnd does not search by number: most requests are not pending.
	readPendingFromEnd = `SELECT number FROM requests WHERE state = 'pending' AND ($1 = '' OR EXISTS (SELECT 1 FROM ` + askedOf +
		` WHERE person.value = $1)) ORDER BY +number DESC LIMIT 1 OFFSET 0 + $2`
)

// Pending implements [engine.Store].
func (s *Store) Pending(ctx context.Context, asked string, after permissions.ID, limit int) ([]permissions.Request, error) {
	return reading(ctx, s, func(from source) ([]permissions.Request, error) {
		number, is, err := fromEnd[int64](ctx, from, after, readPendingFromEnd, asked)
		if !is {
			number, err = position(ctx, from, after)
		}
		if err != nil {
			return nil, err
		}
		return s.after(ctx, from, number, limit, readPending, asked)
	})
}

const (
	// readHistory reads by number, from a first one on: a page must not sort all that was decided since.
	readHistory = `SELECT ` + sealedRequest + ` FROM requests WHERE number > $1 AND state <> 'pending' AND NOT pruned ` +
		`AND +decided_at >= $2 AND ($3 = '' OR caller = $3) ` +
		`AND ($4 = '' OR EXISTS (SELECT 1 FROM ` + askedOf + ` WHERE person.value = $4)) ORDER BY number LIMIT 0 + $5`

	firstDecided = `SELECT COALESCE(MIN(number), 0) FROM requests WHERE state <> 'pending' AND pruned = FALSE AND decided_at >= $1`
)

// History implements [engine.Store].
func (s *Store) History(ctx context.Context, of permissions.HistoryQuery) ([]permissions.Request, error) {
	return readingAfter(ctx, s, of.After, func(from source, number int64) ([]permissions.Request, error) {
		if number == 0 {
			first, err := count(ctx, from, firstDecided, micros(of.Since))
			switch {
			case err != nil:
				return nil, unreadable("what was decided", err)
			case first == 0:
				return nil, nil
			}
			number = int64(first) - 1
		}
		return s.after(ctx, from, number, of.Limit, readHistory, micros(of.Since), of.Caller, of.Asked)
	})
}

const (
	// lately counts a caller's requests by outcome in a period; it selects by the time of the decision, as does latest.
	lately = `SELECT COUNT(*) FILTER (WHERE state = 'approved'), COUNT(*) FILTER (WHERE state = 'denied') FROM requests ` +
		`WHERE state <> 'pending' AND pruned = FALSE AND decided_at >= $1 AND decided_at < $2 AND caller = $3`

	latest = `SELECT ` + sealedRequest + ` FROM requests WHERE pruned = FALSE AND decided_at >= $1 AND decided_at < $2 ` +
		`AND state IN ('approved', 'denied') AND state <> 'pending' AND caller = $3 ` +
		`AND EXISTS (SELECT 1 FROM ` + askedOf + ` WHERE person.value = $4) ORDER BY decided_at DESC LIMIT 0 + $5`

	allowedBefore = `SELECT COUNT(*), COALESCE((SELECT decided_by FROM requests WHERE state = 'approved' AND decided_via <> 'grant' ` +
		`AND action = $1 AND decided_at >= $2 AND decided_at < $3 ORDER BY decided_at DESC LIMIT 1), '') ` +
		`FROM requests WHERE state = 'approved' AND decided_via <> 'grant' ` +
		`AND action = $1 AND decided_at >= $2 AND decided_at < $3`
)

// RecentActivity implements [engine.Store].
func (s *Store) RecentActivity(ctx context.Context, r permissions.Request, person string) (permissions.RecentActivity, error) {
	now, action := micros(r.CreatedAt), actionOf(r)
	from, before := micros(r.CreatedAt.Add(-permissions.RecentSpan)), micros(r.CreatedAt.Add(-permissions.AllowedSpan))
	return reading(ctx, s, func(source source) (did permissions.RecentActivity, err error) {
		row := source.QueryRowContext(ctx, lately, from, now, r.Caller.Name)
		if err := row.Scan(&did.Allowed, &did.Denied); err != nil {
			return did, err
		}
		if did.Allowed+did.Denied > 0 && person != "" {
			if did.Last, _, err = s.many(ctx, source, latest, from, now, r.Caller.Name, person, permissions.MaxLast); err != nil {
				return did, err
			}
		}
		err = source.QueryRowContext(ctx, allowedBefore, action, before, now).Scan(&did.AllowedBefore, &did.AllowedBy)
		return did, err
	})
}

const readPosition = `SELECT number FROM requests WHERE id = $1`

// position is the number of a request, 0 for none. Lists are ordered by number: ids made in the same millisecond have no order.
func position(ctx context.Context, from source, id permissions.ID) (number int64, err error) {
	if id == "" {
		return 0, nil
	}
	err = from.QueryRowContext(ctx, readPosition, id).Scan(&number)
	if errors.Is(err, sql.ErrNoRows) {
		err = permissions.Unknown(string(id))
	}
	return number, err
}

// fromEnd is the place behind which a list begins that is read after "-N": with the last N that a query, from the end on, finds places of.
func fromEnd[T any](ctx context.Context, from source, after permissions.ID, text string, args ...any) (place T, is bool, err error) {
	n, err := strconv.ParseInt(string(after), 10, 32)
	if err != nil || n >= 0 {
		return place, false, nil //nolint:nilerr // an id
	}
	return place, true, ignoreNoRows(from.QueryRowContext(ctx, text, append(args, -n)...).Scan(&place))
}

// actionOf is what a row has of [permissions.ActionDigest].
func actionOf(r permissions.Request) []byte {
	action := permissions.ActionDigest(r)
	return action[:16]
}

// asStored returns r as a later read returns it: times in whole microseconds of UTC, without what is not stored.
func asStored(r permissions.Request) permissions.Request {
	for _, t := range []*time.Time{
		&r.CreatedAt, &r.Deadline, &r.EscalateAt, &r.DecidedAt, &r.UsedAt, &r.CollectedAt, &r.VoidAt, &r.LapsedAt, &r.LeftAt,
		&r.EarlierAt,
	} {
		*t = moment(micros(*t))
	}
	r.Reminders = slices.Clone(r.Reminders)
	for i, t := range r.Reminders {
		r.Reminders[i] = moment(micros(t))
	}
	r.Votes = slices.Clone(r.Votes)
	for i := range r.Votes {
		at := &r.Votes[i].At
		*at = moment(micros(*at))
	}
	r.Calls = slices.Clone(r.Calls)
	for i := range r.Calls {
		at := &r.Calls[i].At
		*at = moment(micros(*at))
	}
	r.WantedTimeout, r.HookStage, r.Harmless, r.FollowUpExpected, r.OnlyTitle, r.ProcessTimeout, r.Call = 0, "", false, false, false, 0, ""
	r.Leads = permissions.Leads{}
	return r
}

const (
	// Of the columns after calls some are not sealed, but a request with an unreadable one is not used.
	readSealed = `SELECT ` + sealedColumns + `, voided_by, options, calls, affected_path, env_hash, background, foreground, step, ` +
		`env_names, choices, left_at, place, folder, reminders, comment, failure, input, beyond, was, ruled, title, prompt, ` +
		`CASE WHEN ` + hasWords + ` THEN mac ELSE x'' END FROM requests WHERE number >= $1 ORDER BY number LIMIT 0 + $2`

	// hasWords checks the type of columns that are not read here because they may be long.
	hasWords = `typeof(reason) = 'text' AND typeof(message) = 'text' AND typeof(details) = 'text' ` +
		`AND pruned IN (FALSE, TRUE)`

	sealedPage = 200
)

// ownColumns are the columns of [readSealed] in which requests differ most.
const ownColumns = `number, id, session, key, tags, digest, created_at, deadline, decided_at, used_at, collected_at, lapsed_at, left_at, ` +
	`affected_path, comment, input, calls, was, title, prompt`

// readShapes is [readSealed] with the other columns as one text, the request's shape: few are not that of an earlier request.
var readShapes = func() string {
	columns, rest, _ := strings.Cut(strings.TrimPrefix(readSealed, "SELECT "), ", CASE WHEN")
	own := strings.Split(ownColumns, ", ")
	shape := slices.DeleteFunc(strings.Split(columns, ", "), func(column string) bool { return slices.Contains(own, column) })
	return `SELECT json_array('', ` + strings.Join(shape, ", ") + `, ''), ` + ownColumns + `, CASE WHEN` + rest
}()

// shapedRow is a request as it was read by its shape.
type shapedRow struct {
	sealedRow[permissions.Request]
	shape string
	known bool
}

// shape sets a row to the earlier request of the same shape.
type shape struct {
	row *shapedRow
	of  map[string]*permissions.Request
}

func (c shape) Scan(v any) (err error) {
	c.row.shape, err = textOf(v)
	same := c.of[c.row.shape]
	if c.row.known = same != nil; c.row.known {
		c.row.row = *same
	}
	return err
}

// maxShapes is how many shapes are kept.
const maxShapes = 1000

// sealedPages reads every request of a store, page by page, and only what its seal covers.
type sealedPages struct {
	text, quick, votes string
	shapes             map[string]*permissions.Request
	input              json.RawMessage // may be long and is not needed
	from               int64           // number of the next one
	over               bool
	spare              []shapedRow // to read into
	room               []any       // for what a seal covers
}

func newSealedPages(ctx context.Context, from source) (*sealedPages, error) {
	p := &sealedPages{ // a number below one was written by another program
		text: readSealed, quick: readShapes, votes: readVotesBetween, shapes: map[string]*permissions.Request{}, from: math.MinInt64,
	}
	numbered, err := count(ctx, from, countNumbered)
	if err != nil {
		return nil, err
	}
	if numbered == 0 {
		p.votes = readOldVotesBetween
	}
	// A store that is not migrated yet may lack these columns.
	for column, instead := range map[string]string{
		"beyond": "0", "was": "'[]'", "ruled": "'[]'", "title": "''", "prompt": "''", "account": "''", "rule": "''",
	} {
		n, err := count(ctx, from, countColumn, column)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			for _, text := range []*string{&p.text, &p.quick, &p.votes} {
				*text = strings.Replace(*text, ", "+column+", ", ", "+instead+", ", 1)
			}
		}
	}
	return p, nil
}

func (p *sealedPages) fields(r *sealedRow[permissions.Request]) []any {
	q := &r.row
	return append(sealedFields(nil, q), &q.VoidedBy, offered{list[permissions.Option]{&q.Options}}, list[permissions.Call]{&q.Calls},
		&q.AffectedPath, &q.EnvHash, &q.Background, &q.Foreground, &q.Step, list[string]{&q.EnvNames}, list[string]{&q.Choices},
		instant{&q.LeftAt}, &q.Group, &q.Folder, times{&q.Reminders}, &q.Comment, &q.Failure,
		canonical{rawJSON{&p.input}}, &q.ExceededRate, list[permissions.Rows]{&q.Rows}, list[permissions.Ruling]{&q.Ruled},
		&q.SessionTitle, &q.LastPrompt, &r.mac)
}

func (p *sealedPages) ownFields(r *shapedRow) []any {
	q := &r.row
	return []any{
		shape{r, p.shapes}, &q.Number, &q.ID, &q.Session, &q.Key, list[permissions.Tag]{&q.Tags}, digest{&q.Digest},
		instant{&q.CreatedAt}, instant{&q.Deadline},
		instant{&q.DecidedAt}, instant{&q.UsedAt}, instant{&q.CollectedAt}, instant{&q.LapsedAt}, instant{&q.LeftAt}, &q.AffectedPath,
		&q.Comment, canonical{rawJSON{&p.input}}, list[permissions.Call]{&q.Calls}, list[permissions.Rows]{&q.Rows}, &q.SessionTitle,
		&q.LastPrompt, &r.mac,
	}
}

// read reads a page: a request whose shape is new, or that is not readable, by all of its columns.
func (p *sealedPages) read(ctx context.Context, from source) ([]shapedRow, error) {
	page := p.spare[:0]
	var item shapedRow
	into := exactFields(p.ownFields(&item))
	err := eachRow(ctx, from, func(scan func(into ...any) error) error {
		item = shapedRow{}
		_ = scan(into...) // its seal comes last
		page = append(page, item)
		return nil
	}, p.quick, p.from, sealedPage)
	if err != nil { // bytes instead of a text have no shape
		rows, err := collect(ctx, from, "", p.fields, p.text, p.from, sealedPage)
		page = page[:0]
		for _, r := range rows {
			page = append(page, shapedRow{sealedRow: r})
		}
		return page, err
	}
	for i := range page {
		r := &page[i]
		if r.known && len(r.mac) > 0 {
			continue
		}
		one, err := collect(ctx, from, "", p.fields, p.text, r.row.Number, 1)
		if err != nil || len(one) == 0 {
			return nil, errors.Join(err, ctx.Err())
		}
		if r.sealedRow = one[0]; len(r.mac) > 0 {
			if len(p.shapes) == maxShapes {
				clear(p.shapes)
			}
			p.shapes[r.shape] = &one[0].row
		}
	}
	return page, nil
}

// next is the next page, with the votes; empty after the last one.
func (p *sealedPages) next(ctx context.Context, from source) ([]shapedRow, error) {
	if p.over {
		return nil, nil
	}
	page, err := p.read(ctx, from)
	if err != nil || len(page) == 0 {
		return nil, errors.Join(err, ctx.Err())
	}
	var b ballot
	into, rest, last := exactFields(ballotFields(&b)), page, page[len(page)-1].row.Number
	err = eachRow(ctx, from, func(scan func(into ...any) error) error {
		b = ballot{}
		_ = scan(into...) // its time comes last
		for len(rest) > 1 && rest[0].row.Number < b.request {
			rest = rest[1:]
		}
		rest[0].row.Votes = append(rest[0].row.Votes, b.Vote)
		return nil
	}, p.votes, page[0].row.Number, last)
	p.from, p.over = last+1, last == math.MaxInt64
	return page, err
}

// eachSealed calls take with every request of a store, reading only what its seal covers.
func eachSealed(ctx context.Context, from source, take func(r permissions.Request, mac []byte) error) error {
	pages, err := newSealedPages(ctx, from)
	for err == nil {
		var page []shapedRow
		if page, err = pages.next(ctx, from); len(page) == 0 {
			break
		}
		for _, r := range page {
			if err == nil {
				err = take(r.row, r.mac)
			}
		}
	}
	return err
}

// gap is the least number of request numbers to skip: more than a daemon can have handed out since its last mark.
const gap = 1_000_000

const countPending = `SELECT COUNT(*) FROM requests WHERE state = 'pending'`

// CountPending is the number of pending requests.
func (s *Store) CountPending(ctx context.Context) (int, error) {
	return reading(ctx, s, func(from source) (int, error) { return count(ctx, from, countPending) })
}

// readingAfter is reading of what comes after a request, by its number.
func readingAfter[T any](
	ctx context.Context, s *Store, after permissions.ID, do func(from source, number int64) (T, error),
) (T, error) {
	return reading(ctx, s, func(from source) (v T, err error) {
		number, err := position(ctx, from, after)
		if err != nil {
			return v, err
		}
		return do(from, number)
	})
}

// countNumbered is 1 if the votes name their request by its number.
const countNumbered = `SELECT COUNT(*) FROM sqlite_schema WHERE name = 'request_votes'`

// countColumn is 1 if the requests or the votes have a column.
const countColumn = `SELECT COUNT(*) FROM pragma_table_info('requests') WHERE name = $1 ` +
	`UNION ALL SELECT COUNT(*) FROM pragma_table_info('votes') WHERE name = $1 ORDER BY 1 DESC`
