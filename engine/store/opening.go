package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"

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
		met, err := findDuplicates(ctx, t, o)
		if err != nil {
			return err
		}
		found, stale, err := s.joined(ctx, t, met, o)
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

// nothingShown is the lowest revision shown of a request without copies: none is stale.
const nothingShown = math.MaxInt64

const insertedColumns = fixedColumns + `, ` + changedColumns + `, key_live, shown, pruned, action, earlier_at, number`

var insertRequest = `INSERT INTO requests (` + insertedColumns + `) VALUES (` + parameters(insertedColumns) + `)`

// Positions, from the end of the columns, of values that only the transaction knows.
const (
	numberFromEnd = 1
	macFromEnd    = 7
)

const insertCopy = `INSERT INTO copies (` + copyColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`

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
	action := permissions.ActionDigest(r)
	args, err := driverArgs(append(append(fixedFields(&r), changingFields(&r)...),
		micros(reminding(r)), []byte{}, r.Key != "", shown, false, digest{&action}, micros(r.EarlierAt), 0))
	return newRow{request: r, copies: o.Copies, told: o.Told, wait: o.Wait, args: args}, err
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
	for _, c := range row.copies {
		c.Request = r.ID
		t.exec(ctx, insertCopy, copyGate.args(s.seals, c)...)
	}
	if r.State == permissions.Approved {
		if err := s.useGrants(ctx, t, r, r.CreatedAt); err != nil {
			return r, err
		}
	}
	s.append(ctx, t, permissions.Opened(r)...)
	if r.State == permissions.Pending {
		t.pending++
		for _, record := range row.told {
			record.Request = r.ID
			s.append(ctx, t, record)
		}
		if row.wait.Kind != "" {
			row.wait.Request = r.ID
			t.exec(ctx, keepWait, waitFields(&row.wait)...)
		}
	}
	t.rows.keep(r)
	return r, nil
}
