package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/permissions"
)

// copyColumns has the seal last.
const copyColumns = `request, person, connector, place, ref, button, shown, since, sent_at, failed, dated, burst, mac`

const readCopies = `SELECT ` + copyColumns + ` FROM copies WHERE request = $1 ORDER BY person, connector, place`

const readCopiesOfMany = `SELECT ` + copyColumns + ` FROM copies WHERE request IN (SELECT value FROM json_each($1)) ` +
	`ORDER BY request, person, connector, place`

// Copies implements [engine.Store].
func (s *Store) Copies(ctx context.Context, ids ...permissions.ID) ([]permissions.Copy, error) {
	if err := s.checkPathsLately(ctx); err != nil {
		return nil, err
	}
	if len(ids) == 1 {
		if row, cached := s.rows.get(ids[0]); cached && row.shown {
			return slices.Clone(row.copies), nil
		}
	}
	if len(ids) != 1 {
		return reading(ctx, s, func(from source) ([]permissions.Copy, error) {
			return s.copies(ctx, from, "a copy", readCopiesOfMany, list[permissions.ID]{&ids})
		})
	}
	begun := s.rows.reading(ids[0])
	found, err := reading(ctx, s, func(from source) ([]permissions.Copy, error) { return s.copiesOf(ctx, from, ids[0]) })
	if err == nil && s.server != nil {
		s.rows.putCopies(begun, found)
	}
	return slices.Clone(found), err
}

func (s *Store) copiesOf(ctx context.Context, from source, id permissions.ID) ([]permissions.Copy, error) {
	return s.copies(ctx, from, "a copy of request "+string(id), readCopies, id)
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

// copies reads the copies that a query finds. One whose seal does not hold was not sent, as far as anybody knows, and is on no list.
func (s *Store) copies(ctx context.Context, from source, what, text string, args ...any) ([]permissions.Copy, error) {
	found, err := collectReadable(ctx, s, from, what, copyGate.rowFields, text, args...)
	all := make([]permissions.Copy, len(found))
	for i, r := range found {
		all[i] = r.row
		c := &all[i]
		if !copyGate.hasValidSeal(s.seals, r) {
			s.logUnsealed(copyGate.name(r.row))
			c.Ref, c.Burst, c.Shown, c.SentAt, c.ChannelTime = "", "", 0, time.Time{}, time.Time{}
		}
	}
	return all, err
}

// copyGate seals which message a copy is, since when somebody can have answered it, and on which list it is, or that it is on none.
var copyGate = gate[permissions.Copy]{
	table: "copies", fields: copyFields,
	sealed: func(c *permissions.Copy) []any { return append(sealedWithoutList(c), &c.Burst) },
	name: func(c permissions.Copy) string {
		return strings.TrimSpace("copy of request " + string(c.Request) + " for " + c.Person + " by " + c.Connector + " " + c.Group)
	},
}

// sealedWithoutList is what the seal of a copy covers besides its list. In version 1 it was all.
func sealedWithoutList(c *permissions.Copy) []any {
	return []any{
		&c.Request, &c.Person, &c.Connector, &c.Group, &c.Ref, &c.Button, instant{&c.DueAt}, instant{&c.SentAt}, instant{&c.ChannelTime},
	}
}

func copyFields(c *permissions.Copy) []any {
	return []any{
		&c.Request, &c.Person, &c.Connector, &c.Group, &c.Ref, &c.Button, &c.Shown, instant{&c.DueAt}, instant{&c.SentAt},
		&c.Failed, instant{&c.ChannelTime}, &c.Burst,
	}
}

const insertCopy = `INSERT INTO request_copies (` + copyColumns + `) ` +
	`VALUES ((SELECT number FROM requests WHERE id = $1), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

// nothingShown is the lowest revision shown of a request without copies: none is stale.
const nothingShown = permissions.ShownAlways

const readLagging = `SELECT id FROM requests WHERE revision > shown AND number > $1 AND EXISTS ` +
	`(SELECT 1 FROM request_copies AS copies WHERE copies.request = requests.number AND connector = $2 AND failed = '' ` +
	`AND copies.shown < requests.revision) ORDER BY number LIMIT 0 + $3`

// StaleCopies implements [engine.Store].
func (s *Store) StaleCopies(ctx context.Context, connector string, after permissions.ID, limit int) ([]permissions.ID, error) {
	return readingAfter(ctx, s, after, func(from source, number int64) ([]permissions.ID, error) {
		return collect(ctx, from, "a request", value[permissions.ID], readLagging, number, connector, limit)
	})
}

const readBurst = `SELECT ` + copyColumns + ` FROM copies WHERE burst <> '' AND burst = $1 AND connector = $2 AND person = $3 ` +
	`ORDER BY request`

// Burst lists the copies that one message of a person lists, in the order of their requests.
func (s *Store) Burst(ctx context.Context, connector, person, ref string) ([]permissions.Copy, error) {
	all, err := reading(ctx, s, func(from source) ([]permissions.Copy, error) {
		return s.copies(ctx, from, "a copy", readBurst, ref, connector, person)
	})
	return slices.DeleteFunc(all, func(c permissions.Copy) bool { return c.Burst == "" }), err
}

const readTogether = `SELECT ` + copyColumns + ` FROM copies WHERE request = $1 AND connector = $2 AND place = $3 ` +
	`AND (place <> '' OR person = $4) ORDER BY person`

// copiesOfMessage returns the copies that share one message with c: those in its group, or c alone.
func (s *Store) copiesOfMessage(ctx context.Context, t *tx, c permissions.Copy) ([]permissions.Copy, error) {
	return s.copies(ctx, t, "a copy of request "+string(c.Request), readTogether,
		c.Request, c.Connector, c.Group, c.Person)
}

// MarkShown implements [engine.Store]. If SentAt is zero, a copy that was never sent remains to be sent.
func (s *Store) MarkShown(ctx context.Context, c permissions.Copy, was string) error {
	other := ""
	err := s.writeLowPriority(ctx, func(ctx context.Context, t *tx) error {
		all, err := s.copiesOfMessage(ctx, t, c)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			first := c
			first.Ref, first.SentAt = was, time.Time{}
			all = append(all, first)
		}
		for _, one := range all {
			if one.Ref != was && (one.Ref != c.Ref || c.Ref == "") {
				other = one.Ref
				continue
			}
			first := one.SentAt.IsZero() && !c.SentAt.IsZero()
			if one.Burst != "" && one.Ref == "" && c.Ref != "" { // it was opened
				one.SentAt, one.ChannelTime = c.SentAt, c.ChannelTime
			}
			one.Ref, one.Shown, one.Failed, one.Burst = c.Ref, c.Shown, "", c.Burst
			if first {
				one.SentAt = c.SentAt
			}
			if one.ChannelTime.IsZero() { // pressed before the channel reported its time
				one.ChannelTime = c.ChannelTime
			}
			t.fail(s.putCopy(ctx, t, one))
			if first {
				s.append(ctx, t, firstShown(one)...)
			}
		}
		return nil
	})
	if err == nil && other != "" {
		return &permissions.OtherMessageError{Ref: other}
	}
	return err
}

// firstShown is the record that a person was shown a request for the first time, if a copy says so.
func firstShown(c permissions.Copy) []permissions.Record {
	if c.SentAt.IsZero() {
		return nil
	}
	return []permissions.Record{{
		Type: permissions.RequestShown, At: c.SentAt, Request: c.Request, Via: c.Connector, Detail: map[string]string{"to": c.Person},
	}}
}

// numberOf is the number of the request whose id is the third parameter.
const numberOf = `(SELECT number FROM requests WHERE id = $3)`

const nameCopy = `UPDATE request_copies SET ref = $1, mac = $2 WHERE request = ` + numberOf +
	` AND person = $4 AND connector = $5 AND place = $6`

const readCopy = `SELECT ` + copyColumns + ` FROM copies WHERE request = $1 AND person = $2 AND connector = $3 AND place = $4`

// MarkNamed records the Ref under which a copy without one is about to be sent.
func (s *Store) MarkNamed(ctx context.Context, c permissions.Copy) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		all, err := s.copies(ctx, t, "a copy of request "+string(c.Request), readCopy, c.Request, c.Person, c.Connector, c.Group)
		for _, was := range all {
			if was.Ref == "" && err == nil {
				was.Ref = c.Ref
				s.nameCopy(ctx, t, was, nameCopy)
			}
		}
		return err
	})
}

// nameCopy writes a copy's ref with a statement like [nameCopy].
func (s *Store) nameCopy(ctx context.Context, t *tx, c permissions.Copy, text string) {
	t.exec(ctx, text, c.Ref, copyGate.mac(s.seals, c), c.Request, c.Person, c.Connector, c.Group)
	t.rows.dropCopies(c.Request)
}

// MarkFailed implements [engine.Store]. A copy that was shown since c was read does not become one that was never shown.
func (s *Store) MarkFailed(ctx context.Context, c permissions.Copy) error {
	return s.writeLowPriority(ctx, func(ctx context.Context, t *tx) error {
		all, err := s.copiesOfMessage(ctx, t, c)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			all = append(all, c)
		}
		for _, one := range all {
			if c.SentAt.IsZero() && !one.SentAt.IsZero() {
				continue
			}
			one.Failed = c.Failed
			t.fail(s.putCopy(ctx, t, one))
		}
		return nil
	})
}

const (
	upsertCopy = insertCopy + ` ON CONFLICT (request, person, connector, place) DO UPDATE ` +
		`SET (ref, button, shown, since, sent_at, failed, dated, burst, mac) = (excluded.ref, excluded.button, excluded.shown, excluded.since, ` +
		`excluded.sent_at, excluded.failed, excluded.dated, excluded.burst, excluded.mac)`

	// The row holds the lowest revision that any copy shows, so that an index finds stale copies.
	noteShown = `UPDATE requests SET shown = COALESCE((SELECT MIN(copies.shown) FROM request_copies AS copies ` +
		`WHERE copies.request = requests.number AND failed = ''), $1) `

	noteShownOne = noteShown + `WHERE id = $2`
)

// putCopy inserts a copy, also for a person who is asked later.
func (s *Store) putCopy(ctx context.Context, t *tx, c permissions.Copy) error {
	if number, err := position(ctx, t, c.Request); err != nil || number == 0 {
		return err
	}
	t.exec(ctx, upsertCopy, copyGate.args(s.seals, c)...)
	t.exec(ctx, noteShownOne, int64(nothingShown), c.Request)
	t.rows.keepCopy(c)
	return nil
}

const addCopy = insertCopy + ` ON CONFLICT (request, person, connector, place) DO NOTHING`

// AddCopies implements [engine.Store].
func (s *Store) AddCopies(ctx context.Context, copies []permissions.Copy) error {
	if len(copies) == 0 {
		return nil
	}
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		for _, c := range copies {
			if _, err := position(ctx, t, c.Request); err != nil {
				return err
			}
			if c.Group != "" {
				all, err := s.copiesOfMessage(ctx, t, c)
				if err != nil {
					return err
				}
				if len(all) > 0 {
					c.Ref, c.Button, c.DueAt, c.Failed = all[0].Ref, all[0].Button, all[0].DueAt, all[0].Failed
				}
			}
			if t.affected(ctx, addCopy, copyGate.args(s.seals, c)...) > 0 {
				t.rows.keepCopy(c)
				s.append(ctx, t, firstShown(c)...)
				t.exec(ctx, noteShownOne, int64(nothingShown), c.Request)
			}
		}
		return nil
	})
}

const readUnaddressed = `SELECT id FROM requests WHERE state = 'pending' AND +number > $1 AND EXISTS ` +
	`(SELECT 1 FROM ` + askedOf + ` WHERE NOT EXISTS ` +
	`(SELECT 1 FROM request_copies AS copies WHERE copies.request = requests.number AND copies.person = person.value ` +
	`AND copies.failed = '') ` +
	`OR EXISTS (SELECT 1 FROM request_copies AS copies WHERE copies.request = requests.number AND copies.person = person.value ` +
	`AND copies.failed <> '')) ORDER BY +number LIMIT 0 + $2`

// RequestsWithoutCopies implements [engine.Store].
func (s *Store) RequestsWithoutCopies(ctx context.Context, after permissions.ID, limit int) ([]permissions.ID, error) {
	return readingAfter(ctx, s, after, func(from source, number int64) ([]permissions.ID, error) {
		return collect(ctx, from, "a request", value[permissions.ID], readUnaddressed, number, limit)
	})
}

const (
	// SentAt stays: it records that the person saw the request once.
	forgetCopy = `UPDATE request_copies SET ref = $1, mac = $2, shown = 0 WHERE request = ` + numberOf +
		` AND person = $4 AND connector = $5 AND place = $6`

	notePending = noteShown + `WHERE state = 'pending' AND shown > 0 AND EXISTS ` + hasCopy

	forgetSettled = `UPDATE request_copies SET failed = CASE WHEN ref = '' THEN 'settled before it was shown' ELSE '' END, ` +
		`shown = (SELECT revision FROM requests WHERE number = request) ` +
		`WHERE connector = $1 AND failed = '' ` +
		`AND request IN (SELECT number FROM requests WHERE revision > shown AND state <> 'pending')`

	noteSettled = noteShown + `WHERE revision > shown AND state <> 'pending' AND EXISTS ` + hasCopy

	hasCopy = `(SELECT 1 FROM request_copies AS copies WHERE copies.request = requests.number AND connector = $2)`
)

const readLately = `SELECT ` + copyColumns + ` FROM copies WHERE connector = $1 AND failed = '' AND ref <> '' ` +
	`AND request IN (SELECT id FROM requests WHERE state = 'pending' ORDER BY +number DESC LIMIT 0 + $2) ORDER BY request, person`

// LiveCopies lists this connector's visible copies of the newest pending requests, at most limit.
func (s *Store) LiveCopies(ctx context.Context, connector string, limit int) ([]permissions.Copy, error) {
	return reading(ctx, s, func(from source) ([]permissions.Copy, error) {
		return s.copies(ctx, from, "a copy", readLately, connector, limit)
	})
}

const (
	readLive = `SELECT ` + copyColumns + ` FROM copies WHERE connector = $1 AND failed = '' AND ref <> '' ` +
		`AND request IN (SELECT id FROM requests WHERE state = 'pending') ORDER BY request, person`

	againPending = `UPDATE request_copies SET shown = 0 WHERE connector = $1 AND failed = '' AND ref <> '' ` +
		`AND request IN (SELECT number FROM requests WHERE state = 'pending')`
)

// ShowAgain implements [engine.Store].
func (s *Store) ShowAgain(ctx context.Context, connector string, anew bool) ([]permissions.Copy, error) {
	return writing(ctx, s, func(ctx context.Context, t *tx) ([]permissions.Copy, error) {
		were, err := s.copies(ctx, t, "a copy", readLive, connector)
		t.fail(err)
		if anew {
			s.forgetCopies(ctx, t, were)
		} else {
			t.exec(ctx, againPending, connector)
			t.rows.dropAll()
		}
		t.exec(ctx, notePending, int64(nothingShown), connector)
		return were, nil
	})
}

// SendAgain implements [engine.Store].
func (s *Store) SendAgain(ctx context.Context, c permissions.Copy) error {
	c.Ref, c.Shown = "", 0
	return s.write(ctx, func(ctx context.Context, t *tx) error { return s.putCopy(ctx, t, c) })
}

// forgetCopies makes copies be sent again.
func (s *Store) forgetCopies(ctx context.Context, t *tx, copies []permissions.Copy) {
	for _, c := range copies {
		c.Ref = ""
		s.nameCopy(ctx, t, c, forgetCopy)
	}
}

// ForgetCopies implements [engine.Store].
func (s *Store) ForgetCopies(ctx context.Context, connector string) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		live, err := s.copies(ctx, t, "a copy", readLive, connector)
		t.fail(err)
		s.forgetCopies(ctx, t, live)
		t.exec(ctx, notePending, int64(nothingShown), connector)
		t.exec(ctx, forgetSettled, connector)
		t.rows.dropAll()
		t.exec(ctx, noteSettled, int64(nothingShown), connector)
		return nil
	})
}

const readPendingIn = `SELECT ` + sealedRequest + ` FROM requests WHERE state = 'pending' AND place <> '' ` +
	`AND number > $1 AND place = $2 ORDER BY number LIMIT 0 + $3`

// PendingInGroup lists at most limit pending requests of a group after the one given (empty: from the first), oldest first.
func (s *Store) PendingInGroup(ctx context.Context, place string, after permissions.ID, limit int) ([]permissions.Request, error) {
	return readingAfter(ctx, s, after, func(from source, number int64) ([]permissions.Request, error) {
		return s.after(ctx, from, number, limit, readPendingIn, place)
	})
}

const readPlaces = `SELECT DISTINCT place FROM requests WHERE state = 'pending' AND place <> '' ORDER BY place`

// Groups lists the groups in which a pending request is shown.
func (s *Store) Groups(ctx context.Context) ([]string, error) {
	return gather(ctx, s, "a place", value[string], readPlaces)
}

const writeMoved = `INSERT INTO moved (was, now) VALUES ($1, $2) ON CONFLICT (was) DO UPDATE SET now = excluded.now ` +
	`WHERE now <> excluded.now`

// RenameGroup records, with an audit entry, that a group has another name now, and reports whether that is new.
func (s *Store) RenameGroup(ctx context.Context, m permissions.GroupRename, via string) (news bool, err error) {
	return writing(ctx, s, func(ctx context.Context, t *tx) (bool, error) {
		if t.affected(ctx, writeMoved, m.Was, m.Now) == 0 {
			return false, nil
		}
		s.append(ctx, t, permissions.Record{
			Type: permissions.GroupRenamed, At: m.At, Via: via, Detail: map[string]string{"was": m.Was, "now": m.Now},
		})
		return true, nil
	})
}

// GroupRenames lists the groups that have another name now. Their times are in the audit.
func (s *Store) GroupRenames(ctx context.Context) ([]permissions.GroupRename, error) {
	fields := func(m *permissions.GroupRename) []any { return []any{&m.Was, &m.Now} }
	return gather(ctx, s, "a place", fields, `SELECT was, now FROM moved ORDER BY was`)
}
