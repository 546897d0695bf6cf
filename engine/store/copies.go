package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/daycared/daycared/permissions"
)

const copyColumns = `request, person, connector, ref, button, shown, since, sent_at, failed`

const readCopies = `SELECT ` + copyColumns + ` FROM copies WHERE request = $1 ORDER BY person, connector`

// Copies lists the copies of a request.
func (s *Store) Copies(ctx context.Context, id permissions.ID) (copies []permissions.Copy, err error) {
	err = s.read(ctx, func(from source) error {
		copies, err = collect(ctx, from, "a copy of request "+string(id), copyFields, readCopies, id)
		return err
	})
	return copies, err
}

func copyFields(c *permissions.Copy) []any {
	return []any{
		&c.Request, &c.Person, &c.Connector, &c.Ref, &c.Button, &c.Shown, instant{&c.Since}, instant{&c.SentAt}, &c.Failed,
	}
}

const readLagging = `SELECT id FROM requests WHERE revision > shown AND number > $1 AND EXISTS ` +
	`(SELECT 1 FROM copies WHERE copies.request = requests.id AND connector = $2 AND failed = '' ` +
	`AND copies.shown < requests.revision) ORDER BY number LIMIT $3`

// Lagging lists at most limit requests, after the one named, of which this connector's copy has neither failed nor been
// shown at the request's revision.
func (s *Store) Lagging(
	ctx context.Context, connector string, after permissions.ID, limit int,
) (ids []permissions.ID, err error) {
	err = s.read(ctx, func(from source) error {
		number, err := position(ctx, from, after)
		if err != nil {
			return err
		}
		ids, err = collect(ctx, from, "a request", idField, readLagging, number, connector, limit)
		return err
	})
	return ids, err
}

const readSent = `SELECT ref, sent_at FROM copies WHERE request = $1 AND person = $2 AND connector = $3`

// Shown notes that a copy, whose Ref was that before, was sent or edited: its Ref, Shown and SentAt. The first time is
// audited. One that is to be shown anew meanwhile stays so.
func (s *Store) Shown(ctx context.Context, c permissions.Copy, was string) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		ref, sent := "", int64(0)
		err := t.QueryRowContext(ctx, readSent, c.Request, c.Person, c.Connector).Scan(&ref, &sent)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err == nil && ref != was {
			return nil
		}
		c.Failed = ""
		if err := putCopy(ctx, t, c); err != nil || sent != 0 {
			return err
		}
		return s.append(ctx, t, permissions.Record{
			Type: permissions.RequestShown, At: c.SentAt, Request: c.Request, Via: c.Connector,
			Detail: map[string]string{"to": c.Person},
		})
	})
}

// Failed notes that a copy will never be shown, and why (c.Failed).
func (s *Store) Failed(ctx context.Context, c permissions.Copy) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error { return putCopy(ctx, t, c) })
}

const (
	upsertCopy = insertCopy + ` ON CONFLICT (request, person, connector) DO UPDATE ` +
		`SET ref = excluded.ref, shown = excluded.shown, sent_at = excluded.sent_at, failed = excluded.failed`

	// The lowest revision that any copy shows, in the row itself, is what makes those that lag findable.
	noteShown = `UPDATE requests SET shown = COALESCE((SELECT MIN(copies.shown) FROM copies ` +
		`WHERE copies.request = requests.id AND failed = ''), $1) `

	noteShownOne = noteShown + `WHERE id = $2`
)

// putCopy writes a copy; somebody who is asked later gets theirs here.
func putCopy(ctx context.Context, t *tx, c permissions.Copy) error {
	if number, err := position(ctx, t, c.Request); err != nil || number == 0 {
		return err
	}
	if _, err := t.ExecContext(ctx, upsertCopy, copyFields(&c)...); err != nil {
		return err
	}
	_, err := t.ExecContext(ctx, noteShownOne, int64(nothingShown), c.Request)
	return err
}

const addCopy = insertCopy + ` ON CONFLICT (request, person, connector) DO NOTHING`

// AddCopies adds the copies that are not there yet, to be shown.
func (s *Store) AddCopies(ctx context.Context, copies []permissions.Copy) error {
	if len(copies) == 0 {
		return nil
	}
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		for _, c := range copies {
			if _, err := position(ctx, t, c.Request); err != nil {
				return err
			}
			result, err := t.ExecContext(ctx, addCopy, copyFields(&c)...)
			if err != nil {
				return err
			}
			if n, _ := result.RowsAffected(); n == 0 {
				continue
			}
			if _, err := t.ExecContext(ctx, noteShownOne, int64(nothingShown), c.Request); err != nil {
				return err
			}
		}
		return nil
	})
}

const readUnaddressed = `SELECT id FROM requests WHERE state = 'pending' AND number > $1 AND EXISTS ` +
	`(SELECT 1 FROM json_each(requests.asked) AS person WHERE NOT EXISTS ` +
	`(SELECT 1 FROM copies WHERE copies.request = requests.id AND copies.person = person.value AND copies.failed = '')) ` +
	`ORDER BY number LIMIT $2`

// Unaddressed lists at most limit pending requests, after the one named, of which somebody who is asked has no copy
// but failed ones.
func (s *Store) Unaddressed(ctx context.Context, after permissions.ID, limit int) (ids []permissions.ID, err error) {
	err = s.read(ctx, func(from source) error {
		number, err := position(ctx, from, after)
		if err != nil {
			return err
		}
		ids, err = collect(ctx, from, "a request", idField, readUnaddressed, number, limit)
		return err
	})
	return ids, err
}

func idField(id *permissions.ID) []any { return []any{id} }

const (
	// A copy keeps when it was first sent: whoever saw a request once has seen it.
	forgetPending = `UPDATE copies SET ref = '', shown = 0 WHERE connector = $1 AND failed = '' AND ref <> '' ` +
		`AND request IN (SELECT id FROM requests WHERE state = 'pending')`

	notePending = noteShown + `WHERE state = 'pending' AND shown > 0 AND EXISTS ` + hasCopy

	forgetSettled = `UPDATE copies SET failed = CASE WHEN ref = '' THEN 'settled before it was shown' ELSE '' END, ` +
		`shown = (SELECT revision FROM requests WHERE requests.id = copies.request) ` +
		`WHERE connector = $1 AND failed = '' ` +
		`AND request IN (SELECT id FROM requests WHERE revision > shown AND state <> 'pending')`

	noteSettled = noteShown + `WHERE revision > shown AND state <> 'pending' AND EXISTS ` + hasCopy

	hasCopy = `(SELECT 1 FROM copies WHERE copies.request = requests.id AND connector = $2)`
)

const (
	readLive = `SELECT ` + copyColumns + ` FROM copies WHERE connector = $1 AND failed = '' AND ref <> '' ` +
		`AND request IN (SELECT id FROM requests WHERE state = 'pending') ORDER BY request, person`

	againPending = `UPDATE copies SET shown = 0 WHERE connector = $1 AND failed = '' AND ref <> '' ` +
		`AND request IN (SELECT id FROM requests WHERE state = 'pending')`
)

// ShowAgain has this connector's copies of pending requests brought up to date, as new ones where anew says so, and
// returns them as they were.
func (s *Store) ShowAgain(ctx context.Context, connector string, anew bool) (were []permissions.Copy, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		if were, err = collect(ctx, t, "a copy", copyFields, readLive, connector); err != nil {
			return err
		}
		text := againPending
		if anew {
			text = forgetPending
		}
		if _, err := t.ExecContext(ctx, text, connector); err != nil {
			return err
		}
		_, err := t.ExecContext(ctx, notePending, int64(nothingShown), connector)
		return err
	})
	if err != nil {
		return nil, err
	}
	return were, nil
}

// Forget prepares a forgetful connector's start: its copies of pending requests are to be sent again, the others are
// done with.
func (s *Store) Forget(ctx context.Context, connector string) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		for _, step := range []struct {
			text string
			args []any
		}{
			{forgetPending, []any{connector}},
			{notePending, []any{int64(nothingShown), connector}},
			{forgetSettled, []any{connector}},
			{noteSettled, []any{int64(nothingShown), connector}},
		} {
			if _, err := t.ExecContext(ctx, step.text, step.args...); err != nil {
				return err
			}
		}
		return nil
	})
}
