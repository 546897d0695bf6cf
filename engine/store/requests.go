package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"github.com/daycared/daycared/permissions"
)

// Read implements [registry.Store].
func (s *Store) Read(ctx context.Context, id permissions.ID) (permissions.Request, error) {
	return reading(ctx, s, func(from source) (permissions.Request, error) { return s.load(ctx, from, id) })
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

// ByNumber finds the request of that number with its copies, or refuses with [permissions.CodeUnknown].
func (s *Store) ByNumber(ctx context.Context, number int64) (r permissions.Request, copies []permissions.Copy, err error) {
	err = s.read(ctx, func(from source) error {
		r, err = s.one(ctx, from, readNumber, number)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return permissions.Unknown("number " + strconv.FormatInt(number, 10))
		case err != nil:
			return err
		}
		copies, err = s.copiesOf(ctx, from, r.ID)
		return err
	})
	return r, copies, err
}

const (
	readPending = `SELECT ` + sealedRequest + ` FROM requests WHERE state = 'pending' AND number > $1 ` +
		`ORDER BY number LIMIT 0 + $2`

	// askedOf joins the people whom a request asks, nobody if that is unreadable. A second database needs its own text.
	askedOf = `json_each(CASE WHEN json_valid(requests.asked) THEN requests.asked ELSE '[]' END) AS person`

	readPendingOf = `SELECT ` + sealedRequest + ` FROM requests WHERE state = 'pending' AND number > $1 ` +
		`AND EXISTS (SELECT 1 FROM ` + askedOf + ` WHERE person.value = $2) ORDER BY number LIMIT 0 + $3`
)

// Pending implements [engine.Store].
func (s *Store) Pending(ctx context.Context, asked string, after permissions.ID, limit int) ([]permissions.Request, error) {
	return readingAfter(ctx, s, after, func(from source, number int64) ([]permissions.Request, error) {
		if asked == "" {
			return s.after(ctx, from, number, limit, readPending)
		}
		return s.after(ctx, from, number, limit, readPendingOf, asked)
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
