package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/daycared/daycared/permissions"
)

// The columns of a request, in the order of the fields beside them: the constant ones, and those that Apply may change.
const (
	wordColumns = `id, kind, mode, caller, caller_uid, session, version, digest, key, created_at, agent, ` +
		`claimed, host, cwd, tool, affected_path, env_hash, widest, high_risk, background, foreground, step, quorum, options, ` +
		`tags, held, env_names, choices, reason, message, input, details, under, place, hook, folder`
	fixedColumns    = wordColumns + `, beyond, was`
	changingColumns = `revision, state, deadline, decided_at, used_at, collected_at, void_at, voided_by, lapsed_at, left_at, answer, scope, ` +
		`decided_by, decided_via, timed_out, defaulted, used_call, asked, escalate_to, escalate_at, reminders, comment, ` +
		`failure, calls`
	// number and id come first: they are readable even if a later column is not.
	requestColumns = `number, ` + fixedColumns + `, earlier_at, ` + changingColumns
	// A backup is compared before its schema is migrated.
	backupColumns = `number, ` + wordColumns + `, 0, '[]', earlier_at, ` + changingColumns

	// sealedRequest is for [Store.one] and [Store.many]. It returns no seal for an approval that is used or revoked, or a request
	// that has ended, according to the audit but not to its row.
	sealedRequest = requestColumns + `, CASE WHEN state = 'approved' AND used_at = 0 AND void_at = 0 AND EXISTS (SELECT 1 FROM audit ` +
		`WHERE ` + gateEntry + ` AND audit.request = requests.id AND audit.type IN ('REQUEST_USED', 'REQUEST_VOIDED')) ` +
		`OR state = 'pending' AND EXISTS (SELECT 1 FROM audit WHERE audit.type = 'REQUEST_SETTLED' AND audit.request = requests.id) ` +
		`THEN x'' ELSE mac END`
)

func fixedFields(r *permissions.Request) []any {
	return []any{
		&r.ID, &r.Kind, &r.Mode, &r.Caller.Name, &r.Caller.UID, &r.Session, &r.Version, digest{&r.Digest}, &r.Key,
		instant{&r.CreatedAt}, &r.Agent, &r.Claimed,
		&r.Host, &r.Cwd, &r.Tool, &r.AffectedPath, &r.EnvHash, scope{&r.Widest}, &r.HighRisk, &r.Background, &r.Foreground,
		&r.Step, &r.Quorum, list[permissions.Option]{&r.Options}, list[permissions.Tag]{&r.Tags},
		list[permissions.Tag]{&r.Held}, list[string]{&r.EnvNames}, list[string]{&r.Choices}, &r.Reason, &r.Message,
		canonical{raw{&r.Input}}, &r.Details, list[permissions.ID]{&r.Under}, &r.Group, &r.Hook, &r.Folder, &r.Beyond,
		list[permissions.Rows]{&r.Was},
	}
}

func changingFields(r *permissions.Request) []any {
	return []any{
		&r.Revision, &r.State, instant{&r.Deadline}, instant{&r.DecidedAt}, instant{&r.UsedAt}, instant{&r.CollectedAt},
		instant{&r.VoidAt}, &r.VoidedBy,
		instant{&r.LapsedAt}, instant{&r.LeftAt}, &r.Answer, scope{&r.Scope},
		&r.DecidedBy, &r.DecidedVia, &r.TimedOut, &r.Defaulted, &r.UsedCall, list[string]{&r.Asked},
		list[string]{&r.EscalateTo}, instant{&r.EscalateAt}, times{&r.Reminders}, &r.Comment, &r.Failure,
		list[permissions.Call]{&r.Calls},
	}
}

func requestFields(r *permissions.Request) []any {
	return slices.Concat([]any{&r.Number}, fixedFields(r), []any{lenientTime{&r.EarlierAt}}, changingFields(r))
}

// reminding is the time of r's next reminder.
func reminding(r permissions.Request) (at time.Time) {
	if len(r.Reminders) > 0 {
		at = r.Reminders[0]
	}
	return at
}

// parameters is "$1, $2, … $n" for the number of columns.
func parameters(columns string) string {
	n := strings.Count(columns, ",") + 1
	names := make([]string, n)
	for i := range names {
		names[i] = parameter(i + 1)
	}
	return strings.Join(names, ", ")
}

func parameter(n int) string { return "$" + strconv.Itoa(n) }

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
	var macs []*[]byte
	fields := func(r *permissions.Request) []any {
		macs = append(macs, new([]byte))
		return append(requestFields(r), macs[len(macs)-1])
	}
	all, err := collect(ctx, from, "", fields, text, args...)
	if err != nil || len(all) == 0 {
		return nil, last, err
	}
	if slices.ContainsFunc(all, func(r permissions.Request) bool { return r.Revision > 1 }) { // each vote increments the revision
		if err := addVotes(ctx, from, all); err != nil {
			return nil, last, err
		}
	}
	for i, r := range all {
		if s.seals.holds(*macs[i], "requests", sealedBy(version, &r)...) &&
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

// addVotes reads the votes on requests.
func addVotes(ctx context.Context, from source, found []permissions.Request) error {
	at := make(map[permissions.ID]int, len(found))
	ids := make([]permissions.ID, len(found))
	for i, r := range found {
		ids[i], at[r.ID] = r.ID, i
	}
	all, err := collect(ctx, from, "", ballotFields, readVotesOf, list[permissions.ID]{&ids})
	for _, b := range all {
		r := &found[at[b.request]]
		r.Votes = append(r.Votes, b.Vote)
	}
	return err
}

// The time comes last: if an earlier column is unreadable it is not read, and the request's seal does not hold.
const (
	oldVoteColumns = `voter, via, answer, call, comment, key`
	voteColumns    = oldVoteColumns + `, account, at`
)

func voteFields(v *permissions.Vote) []any {
	return []any{&v.By, &v.Via, &v.Answer, &v.Call, &v.Comment, &v.Key, &v.Account, instant{&v.At}}
}

// In a store without that column, account resolves to the outer query's name.
const readVotesOf = `SELECT request, ` + oldVoteColumns + `, (SELECT account FROM votes AS own WHERE own.request = votes.request ` +
	`AND own.n = votes.n), at FROM votes, (SELECT '' AS account) AS none ` +
	`WHERE request IN (SELECT value FROM json_each($1)) ORDER BY request, n`

// ballot is a vote with its request.
type ballot struct {
	request permissions.ID
	permissions.Vote
}

func ballotFields(b *ballot) []any { return append([]any{&b.request}, voteFields(&b.Vote)...) }

// collect reads every row that a query finds, none after an error. With an empty what, an unreadable row yields the
// columns before the unreadable one, and so no seal, which is the last column.
func collect[T any](
	ctx context.Context, from source, what string, fields func(*T) []any, text string, args ...any,
) ([]T, error) {
	return drain(ctx, from, fields, func(err error) (skip bool, _ error) {
		if what == "" {
			return false, nil
		}
		return false, unreadable(what, err)
	}, text, args...)
}

// collectReadable is [collect] without the unreadable rows, each of which is logged once: they do not block the others.
func collectReadable[T any](
	ctx context.Context, s *Store, from source, what string, fields func(*T) []any, text string, args ...any,
) ([]T, error) {
	return drain(ctx, from, fields, func(err error) (skip bool, _ error) {
		var row *Error
		if err = unreadable(what, err); !errors.As(err, &row) {
			return false, err
		}
		if _, told := s.unsealed.LoadOrStore(err.Error(), true); !told {
			s.log.Error("unreadable row skipped", "err", err)
		}
		return true, nil
	}, text, args...)
}

// first reads the first row that a query finds; found is false if there is none.
func first[T any](
	ctx context.Context, from source, what string, fields func(*T) []any, text string, args ...any,
) (row T, found bool, err error) {
	err = from.QueryRowContext(ctx, text, args...).Scan(exactFields(fields(&row))...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return row, false, nil
	case err != nil:
		return row, false, unreadable(what, err)
	}
	return row, true, nil
}

// value is the only column of a row that is no more than that.
func value[T any](v *T) []any { return []any{v} }

// gather is [collectReadable] in its own read transaction.
func gather[T any](ctx context.Context, s *Store, what string, fields func(*T) []any, text string, args ...any) ([]T, error) {
	return reading(ctx, s, func(from source) ([]T, error) {
		return collectReadable(ctx, s, from, what, fields, text, args...)
	})
}

// whole is [collect] in its own read transaction: a missing row is an error.
func whole[T any](ctx context.Context, s *Store, what string, fields func(*T) []any, text string, args ...any) ([]T, error) {
	return reading(ctx, s, func(from source) ([]T, error) { return collect(ctx, from, what, fields, text, args...) })
}

func drain[T any](
	ctx context.Context, from source, fields func(*T) []any, bad func(error) (skip bool, err error), text string, args ...any,
) (all []T, err error) {
	rows, err := from.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has the error
	for rows.Next() {
		var item T
		if err := rows.Scan(exactFields(fields(&item))...); err != nil {
			skip, err := bad(err)
			if err != nil {
				return nil, err
			}
			if skip {
				continue
			}
		}
		all = append(all, item)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return all, nil
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
	r.Patience, r.HookStage, r.Harmless, r.Ahead, r.OnlyTitle, r.Stays, r.Call = 0, "", false, false, false, 0, ""
	return r
}

const (
	// maxRows is how many requests are cached: about as many as are asked and answered within a moment.
	maxRows = 2048
	// maxText is the longest text of a cached request, in bytes. Most are far shorter; one that shows a whole file is
	// read when needed.
	maxText = 8 << 10
)

// rows caches the last requests written, as they are in the file or the current write transaction. A request is usually
// answered, used and marked as seen soon after it is asked, and this saves reading the row while other writes wait.
//
// The owner of the write turn owns the cache. Every statement that changes a column of [requestColumns] stores or drops
// the request here; after a rollback, or a write by another process, all are dropped.
type rows struct {
	lru *simplelru.LRU[permissions.ID, permissions.Request]
}

func newRows() *rows {
	lru, err := simplelru.NewLRU[permissions.ID, permissions.Request](maxRows, nil)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &rows{lru}
}

func (m *rows) keep(r permissions.Request) {
	if text(r) > maxText {
		m.drop(r.ID)
		return
	}
	m.lru.Add(r.ID, r)
}

// text is the total length of r's long texts.
func text(r permissions.Request) int {
	n := len(r.Input) + len(r.AffectedPath) + len(r.Details) + len(r.Message) + len(r.Reason) + len(r.Comment) + len(r.Failure)
	for _, c := range r.Calls {
		n += len(c.Input) + len(c.AffectedPath) + len(c.Comment)
	}
	for _, c := range r.ToolCalls() {
		n += c.Told()
	}
	for _, v := range r.Votes {
		n += len(v.Comment)
	}
	for _, o := range r.Options {
		n += len(o.Label)
	}
	return n
}

func (m *rows) drop(id permissions.ID) { m.lru.Remove(id) }

func (m *rows) dropAll() { m.lru.Purge() }

// current is the request as the transaction has it, or a refusal.
func (s *Store) current(ctx context.Context, t *tx, id permissions.ID) (permissions.Request, error) {
	if r, kept := t.rows.lru.Get(id); kept {
		return r, nil
	}
	return s.load(ctx, t, id)
}
