package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Open implements [registry.Store].
func (s *Store) Open(ctx context.Context, o permissions.Opening) (r permissions.Request, created bool, err error) {
	if by := s.halt.Load(); by != nil { // no need to wait for writers
		return permissions.Request{}, false, permissions.Stopped(*by)
	}
	fresh, err := makeRow(o)
	if err != nil {
		return permissions.Request{}, false, err
	}
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		created = false
		if t.stopped != "" {
			return permissions.Stopped(t.stopped)
		}
		if err := s.server.checkClosed(); err != nil {
			return err
		}
		met, err := findDuplicates(ctx, t, o)
		if err != nil {
			return err
		}
		found, stale, err := s.findJoined(ctx, t, met, o)
		if !errors.Is(err, sql.ErrNoRows) {
			r = found
			return err
		}
		if err := met.refusal(t, o); err != nil {
			return err
		}
		if stale != 0 {
			t.exec(ctx, releaseKey, stale)
		}
		r, err = s.insert(ctx, t, fresh.after(found))
		created = true
		return err
	})
	if err != nil {
		return permissions.Request{}, false, err
	}
	return r, created, nil
}

const insertedColumns = fixedColumns + `, ` + changedColumns + `, key_live, shown, pruned, action, earlier_at, number`

var insertRequest = `INSERT INTO requests (` + insertedColumns + `) VALUES (` + parameters(insertedColumns) + `)`

// Positions, from the end of the columns, of values that only the transaction knows.
const (
	numberFromEnd = 1
	macFromEnd    = 7
)

// newRow is a request ready to be inserted, encoded before the transaction to keep that short.
type newRow struct {
	request permissions.Request
	copies  []permissions.Copy
	told    []permissions.Record // if it waits for people
	wait    permissions.Wait     // the same
	args    []any                // of insertRequest
}

func makeRow(o permissions.Opening) (newRow, error) {
	r := asStored(o.Request)
	r.Votes = nil
	shown := int64(nothingShown)
	for _, c := range o.Copies {
		if c.Failed == "" {
			shown = min(shown, c.Shown)
		}
	}
	args, err := driverArgs(append(append(fixedFields(&r), changingFields(&r)...),
		dueAt(r), []byte{}, r.Key != "", shown, false, actionOf(r), micros(r.EarlierAt), 0))
	return newRow{request: r, copies: o.Copies, told: o.Records, wait: o.Wait, args: args}, err
}

// after is the row for a request whose key found an answer that is over.
func (row newRow) after(found permissions.Request) newRow {
	if r := &row.request; found.Answer != "" && !found.TimedOut && !found.Defaulted && found.Digest == r.Digest {
		r.EarlierAt = found.DecidedAt
		row.args = slices.Clone(row.args)
		row.args[len(row.args)-2] = micros(r.EarlierAt)
	}
	return row
}

// insert adds the row, its copies, its uses of grants, its audit records and who waits for it.
func (s *Store) insert(ctx context.Context, t *tx, row newRow) (permissions.Request, error) {
	r, args := row.request, slices.Clone(row.args)
	r.Number = max(t.newest, s.above) + 1
	if r.Number > maxSeq {
		return r, damaged("the number of the newest request", fmt.Errorf("%d", r.Number-1))
	}
	args[len(args)-numberFromEnd], args[len(args)-macFromEnd] = r.Number, s.seals.request(&r)
	t.exec(ctx, insertRequest, args...)
	t.newest = r.Number
	copies := make([]permissions.Copy, len(row.copies))
	for i, c := range row.copies {
		c.Request = r.ID
		copies[i] = copyAsStored(c)
		t.exec(ctx, insertCopy, copyGate.args(s.seals, c)...)
	}
	if t.err == nil {
		t.rows.keep(r)
		t.rows.keepCopies(r.ID, copies)
	}
	if r.State == permissions.Approved {
		if err := s.useGrants(ctx, t, r, r.CreatedAt); err != nil {
			return r, err
		}
	}
	records := permissions.Opened(r)
	for _, c := range copies {
		records = append(records, firstShown(c)...)
	}
	if r.State == permissions.Pending {
		t.pending++
		for _, record := range row.told {
			record.Request = r.ID
			records = append(records, record)
		}
		if row.wait.Kind != "" {
			row.wait.Request = r.ID
			t.exec(ctx, keepWait, waitFields(&row.wait)...)
		}
	}
	s.append(ctx, t, records...)
	return r, nil
}

const (
	// retryAfter is the retry hint for a caller refused by a limit. When a person will answer is unknown.
	retryAfter = 10 * time.Second
	// maxClockLead is how far a stored time may lie in the future before the clock counts as set back.
	maxClockLead = time.Minute
	// maxDenialLead is the same for a denial, in microseconds: it counts after the clock was set back, but not if the clock was years ahead.
	maxDenialLead = `86400000000`
)

// duplicates holds what a new request may duplicate: the row numbers (0: none) of its id, and of its key or, without a key, of an equal
// request, pending or with a kept answer; when the same action was last denied twice; and how many requests of its caller are pending, up
// to the limit.
type duplicates struct {
	self, twin int64
	denied     time.Time
	waiting    int
}

// One statement finds all of it, since other writes wait meanwhile.
const (
	findDuplicatesSQL = `SELECT COALESCE((SELECT number FROM requests WHERE id = $1), 0), ` +
		`COALESCE((SELECT decided_at FROM requests WHERE state = 'denied' AND caller = $2 AND decided_at > $3 ` +
		`AND decided_at <= $4 + ` + maxDenialLead + ` AND action = $5 ORDER BY decided_at DESC LIMIT 1 OFFSET 1), 0), ` +
		`(SELECT COUNT(*) FROM (SELECT 1 FROM requests WHERE state = 'pending' AND caller = $2 LIMIT 0 + $6) AS waiting), `

	findByKey = findDuplicatesSQL + `COALESCE((SELECT number FROM requests WHERE caller = $2 AND key = $7 AND key_live), 0)`

	findEqual = findDuplicatesSQL + `COALESCE((SELECT number FROM requests WHERE state = 'pending' AND caller = $2 AND session = $7 ` +
		`AND digest = $8 AND key = '' AND deadline > $9 LIMIT 1), (` + findKept + `), 0)`

	// findKept finds a settled request, allowed or denied, whose answer nobody collected: the first equal request takes
	// it. Excluded are withdrawn requests and those allowed by policy alone.
	findKept = `SELECT number FROM requests WHERE state <> 'pending' AND collected_at = 0 ` +
		`AND lapsed_at = 0 AND key = '' AND caller = $2 AND session = $7 AND digest = $8 ` +
		`AND decided_at > $10 AND decided_at <= $4 AND used_at = 0 AND decided_via <> 'grant' ` +
		`AND (state <> 'cancelled' OR decided_by <> '') ORDER BY decided_at LIMIT 1`
)

func findDuplicates(ctx context.Context, t *tx, o permissions.Opening) (m duplicates, err error) {
	r, now := o.Request, o.Request.CreatedAt
	since, limit, after, kept := int64(never), 0, int64(never), int64(never)
	action := actionOf(r)
	if r.State == permissions.Pending { // else it is settled already and asks nobody
		limit = max(0, o.PerCaller)
		if o.CoolDown > 0 {
			since = micros(now.Add(-o.CoolDown))
		}
		if r.Caller.Name != permissions.Anonymous { // anonymous callers cannot be told apart
			after, kept = micros(now), micros(now.Add(-o.RedeemWindow))
		}
	}
	text, args := findEqual, []any{
		string(r.ID), r.Caller.Name, since, micros(now.Add(maxClockLead)), action, limit, r.Session, r.Digest[:], after, kept,
	}
	if r.Key != "" {
		text, args = findByKey, append(args[:6], r.Key)
	}
	if err := t.QueryRowContext(ctx, text, args...).Scan(&m.self, instant{&m.denied}, &m.waiting, &m.twin); err != nil {
		return duplicates{}, unreadable("the duplicates of a new request", err)
	}
	return m, nil
}

const readByKey = `SELECT ` + sealedRequest + ` FROM requests WHERE caller = $1 AND key = $2 AND key_live`

// findJoined is the request that o joins, or sql.ErrNoRows: the one with its id if it was announced, else with its key,
// else an equal one, pending or with a kept answer. stale is the row whose key is to be released because its window is
// over (0: none); our own agents' keys stay as long as the rows.
func (s *Store) findJoined(
	ctx context.Context, t *tx, m duplicates, o permissions.Opening,
) (r permissions.Request, stale int64, err error) {
	want, now := o.Request, o.Request.CreatedAt
	switch {
	case m.self != 0:
		r, err = s.one(ctx, t, readNumber, m.self)
		if err == nil && (r.Caller.Name != want.Caller.Name || r.Digest != want.Digest) {
			err = permissions.KeyTaken()
		}
		return r, 0, err
	case m.twin == 0:
		return r, 0, sql.ErrNoRows
	}
	r, err = s.one(ctx, t, readNumber, m.twin)
	usable := true
	if err == nil && want.Key != "" && !want.Caller.IsOurs() && !r.UsedAt.IsZero() { // its grants may be over by now
		usable, err = s.grantsInForce(ctx, t, r, now)
	}
	leads := r.DecidedVia != permissions.ViaGrant && !r.SameLeads(want) // than people were shown
	switch {
	case err == nil && want.Key == "" && leads:
		return r, 0, sql.ErrNoRows
	case err != nil, want.Key == "":
	case r.AllowedByPolicy() && want.State == permissions.Pending && !want.Caller.IsOurs(): // what policy let go then is asked about now
		return r, r.Number, sql.ErrNoRows
	case r.State != permissions.Pending && !want.Caller.IsOurs() && (!usable || !redeemable(r, now, o.RedeemWindow)):
		return r, r.Number, sql.ErrNoRows
	case r.Digest != want.Digest, leads:
		err = permissions.KeyTaken()
	}
	return r, 0, err
}

// redeemable reports whether the key of a settled request still finds it. It does not once the answer lapsed or was revoked,
// whatever the clock or window says later. A decision in the future means that the clock was set back by an unknown time.
func redeemable(r permissions.Request, now time.Time, window time.Duration) bool {
	return r.LapsedAt.IsZero() && r.VoidAt.IsZero() && now.Before(r.DecidedAt.Add(window)) && !r.DecidedAt.After(now.Add(maxClockLead))
}

// deniedBefore finds a denial of the same action in the caller's session, or by anybody since a time.
const deniedBefore = `SELECT COUNT(*) FROM (SELECT 1 FROM requests WHERE state = 'denied' AND caller = $1 AND action = $2 ` +
	`AND (session = $3 OR decided_at > $4) LIMIT 1) AS denied`

// DeniedBefore implements [engine.Store].
func (s *Store) DeniedBefore(ctx context.Context, r permissions.Request, since time.Time) (bool, error) {
	action := actionOf(r)
	return reading(ctx, s, func(from source) (bool, error) {
		n, err := count(ctx, from, deniedBefore, r.Caller.Name, action, r.Session, micros(since))
		if err != nil {
			return false, unreadable("the denials of an action", err)
		}
		return n > 0, nil
	})
}

// refusal is why a request is not asked, or nil: it was denied twice within o.CoolDown, or exceeds a limit.
func (m duplicates) refusal(t *tx, o permissions.Opening) error {
	switch r := o.Request; {
	case r.State != permissions.Pending:
		return nil
	case !m.denied.IsZero():
		return permissions.CoolingDown(m.denied.Sub(r.CreatedAt.Add(-o.CoolDown)))
	case o.PromptPause > 0:
		return permissions.Limit(o.PromptPause, "prompts_per_minute", "requests_per_hour", "bytes_per_hour")
	case o.Total > 0 && t.pending >= o.Total:
		return permissions.Limit(retryAfter, "pending_total")
	case o.PerCaller > 0 && m.waiting >= o.PerCaller:
		return permissions.Limit(retryAfter, "pending_per_caller")
	}
	return nil
}

const (
	waitColumns = `request, kind, call, pid, began, until`

	// The request may have been settled meanwhile.
	keepWait = `INSERT INTO waits (` + waitColumns + `) SELECT $1, $2, $3, $4, $5, $6 ` +
		`WHERE EXISTS (SELECT 1 FROM requests WHERE id = $1 AND state = 'pending') ` +
		`ON CONFLICT (request, kind, call) DO UPDATE SET (pid, began, until) = (excluded.pid, excluded.began, excluded.until)`
)

func waitFields(w *permissions.Wait) []any {
	return []any{&w.Request, &w.Kind, &w.Call, &w.PID, &w.Began, instant{&w.Until}}
}

// KeepWait stores a wait, replacing one of the same request, kind and call, if its request is pending.
func (s *Store) KeepWait(ctx context.Context, w permissions.Wait) error {
	return s.execute(ctx, keepWait, waitFields(&w)...)
}

// DropWait deletes the wait of the same request, kind and call.
func (s *Store) DropWait(ctx context.Context, w permissions.Wait) error {
	return s.execute(ctx, `DELETE FROM waits WHERE request = $1 AND kind = $2 AND call = $3`, w.Request, w.Kind, w.Call)
}

// Waits lists the stored waits. An unreadable row is skipped.
func (s *Store) Waits(ctx context.Context) ([]permissions.Wait, error) {
	return gather(ctx, s, "a wait", waitFields, `SELECT `+waitColumns+` FROM waits ORDER BY request, kind, call`)
}
