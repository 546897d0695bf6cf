package store

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

const noticeColumns = `id, person, place, about, subject, caused_by, urgent, created_at, agent, session, title, words, silent`

func noticeFields(n *permissions.Notice) []any {
	return []any{
		&n.ID, &n.To, &n.Group, &n.About, &n.Subject, &n.By, &n.Urgent, instant{&n.CreatedAt},
		&n.CallerMessage.Agent, &n.CallerMessage.Session, &n.CallerMessage.Title, &n.CallerMessage.Text, &n.CallerMessage.Silent,
	}
}

const noticeValues = `$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13`

// An unsent reminder covers later ones and becomes urgent if one of them is.
const addNotice = `INSERT INTO notices (` + noticeColumns + `) VALUES (` + noticeValues + `) ` +
	`ON CONFLICT (person, place) WHERE about = 'waiting' DO UPDATE SET urgent = notices.urgent OR excluded.urgent`

func insertNotice(ctx context.Context, t *tx, n permissions.Notice) {
	n.ID = permissions.NewID(n.CreatedAt)
	t.exec(ctx, addNotice, noticeFields(&n)...)
}

const (
	// A newer notice about a session replaces an unsent one.
	dropTold = `DELETE FROM notices WHERE person = $1 AND caused_by = $2 AND agent = $3 AND session = $4 AND session <> '' ` +
		`AND about IN ('finished', 'waits', 'failed')`

	countTold = `SELECT COUNT(*) FROM notices WHERE caused_by = $1 AND about IN ('finished', 'waits', 'failed', 'says')`
)

// AddCallerMessage implements [engine.Store].
func (s *Store) AddCallerMessage(ctx context.Context, n permissions.Notice, most int) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		if n.About != permissions.AboutText {
			t.exec(ctx, dropTold, n.To, n.By, n.CallerMessage.Agent, n.CallerMessage.Session)
		}
		waiting, err := count(ctx, t, countTold, n.By)
		if err != nil {
			return err
		}
		if waiting >= most {
			return permissions.TooManyNotices(toldAgain)
		}
		insertNotice(ctx, t, n)
		return nil
	})
}

// SetQuiet replaces the digest of an agent that a person is to get, and with that how long its cards are silent.
func (s *Store) SetQuiet(ctx context.Context, n permissions.Notice) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		t.exec(ctx, `DELETE FROM notices WHERE person = $1 AND caused_by = $2 AND about = 'quiet'`, n.To, n.By)
		insertNotice(ctx, t, n)
		return nil
	})
}

// toldAgain is the retry hint when the outbox is full.
const toldAgain = time.Minute

const readNotices = `SELECT ` + noticeColumns + ` FROM notices WHERE id > $1 ORDER BY id LIMIT 0 + $2`

// Notices lists at most limit unsent notices after the given one, oldest first.
func (s *Store) Notices(ctx context.Context, after permissions.ID, limit int) ([]permissions.Notice, error) {
	return gather(ctx, s, "a notice", noticeFields, readNotices, after, limit)
}

const deleteNotice = `DELETE FROM notices WHERE id = $1`

// DeleteNotice deletes a notice that was sent or has no recipient any more.
func (s *Store) DeleteNotice(ctx context.Context, id permissions.ID) error {
	return s.execute(ctx, deleteNotice, id)
}

const (
	countUnknownSenders = `SELECT (SELECT COUNT(*) FROM strangers WHERE via = $1 AND account = $2), ` +
		`(SELECT COUNT(*) FROM strangers WHERE told_at = 0)`

	// The number is greater than all that are kept.
	addUnknownSender = `INSERT INTO strangers (n, via, account, name, first_at, alias, told_at) ` +
		`VALUES ((SELECT COALESCE(MAX(n), 0) + 1 FROM strangers), $1, $2, $3, $4, $5, 0)`

	countMore = `UPDATE meta SET strangers = strangers + $1`

	addStrangers = `INSERT INTO notices (` + noticeColumns + `) SELECT ` + noticeValues + ` ` +
		`WHERE EXISTS (SELECT 1 FROM strangers WHERE told_at = 0) OR (SELECT strangers FROM meta) > 0 ` +
		`ON CONFLICT (about) WHERE about = 'strangers' DO NOTHING`
)

// AddUnknownSender implements [engine.Store].
func (s *Store) AddUnknownSender(ctx context.Context, sender permissions.UnknownSender, owner string) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		t.exec(ctx, deleteUnknownSenders, micros(sender.At.Add(-permissions.UnknownSendersEvery)), 2*permissions.MaxUnknownSenders)
		known, untold := 0, 0
		err := t.QueryRowContext(ctx, countUnknownSenders, sender.Via, sender.Account).Scan(&known, &untold)
		switch {
		case err != nil:
			return err
		case known > 0:
		case untold < permissions.MaxUnknownSenders:
			t.exec(ctx, addUnknownSender, sender.Via, sender.Account, sender.Name, micros(sender.At), sender.Alias)
		default:
			t.exec(ctx, countMore, 1)
		}
		noteUnknownSenders(ctx, t, owner, sender.At)
		return nil
	})
}

// noteUnknownSenders leaves a notice to the owner if there are unknown senders to report.
func noteUnknownSenders(ctx context.Context, t *tx, owner string, at time.Time) {
	n := permissions.Notice{ID: permissions.NewID(at), To: owner, About: permissions.AboutUnknownSenders, CreatedAt: at}
	t.exec(ctx, addStrangers, noticeFields(&n)...)
}

const (
	readUnknownSenders = `SELECT n, via, account, name, first_at FROM strangers WHERE told_at = 0 ORDER BY n`

	readToldAt = `SELECT COALESCE(MAX(told_at), 0), (SELECT strangers FROM meta) FROM strangers`
)

// UnknownSenders returns the unknown senders that the owner was not told of yet.
func (s *Store) UnknownSenders(ctx context.Context) (met permissions.UnknownSenders, err error) {
	fields := func(one *permissions.UnknownSender) []any {
		return []any{&met.UpTo, &one.Via, &one.Account, &one.Name, instant{&one.At}}
	}
	err = s.read(ctx, func(from source) error {
		if met.List, err = collectReadable(ctx, s, from, "a stranger", fields, readUnknownSenders); err != nil {
			return err
		}
		return from.QueryRowContext(ctx, readToldAt).Scan(instant{&met.ToldAt}, &met.More)
	})
	return met, err
}

const (
	forgetUnknownSenders = `DELETE FROM strangers WHERE told_at = 0 AND n <= $1`

	markUnknownSendersTold = `UPDATE strangers SET told_at = $1 WHERE told_at = 0 AND n <= $2`
)

// MarkUnknownSendersTold implements [engine.Store].
func (s *Store) MarkUnknownSendersTold(ctx context.Context, n permissions.Notice, met permissions.UnknownSenders, at time.Time) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		if at.IsZero() {
			t.exec(ctx, forgetUnknownSenders, met.UpTo)
		} else {
			t.exec(ctx, markUnknownSendersTold, micros(at), met.UpTo)
		}
		t.exec(ctx, countMore, -met.More)
		t.exec(ctx, deleteNotice, n.ID)
		noteUnknownSenders(ctx, t, n.To, n.CreatedAt)
		return nil
	})
}

func senderFields(s *permissions.UnknownSender) []any {
	p := &s.Proposed
	return []any{&s.Via, &s.Account, &s.Alias, &s.Name, instant{&s.At}, &p.Person, &p.By, &p.From, instant{&p.At}}
}

// senderGate is of the proposals to pair unknown senders.
var senderGate = gate[permissions.UnknownSender]{
	table: "strangers", fields: senderFields, sealed: senderFields,
	name: func(s permissions.UnknownSender) string { return "proposal to pair " + s.Via + " " + s.Account },
}

const (
	readSenders = `SELECT via, account, alias, name, first_at, person, proposed_by, proposed_from, proposed_at, mac FROM strangers`

	readProposals = readSenders + ` WHERE person <> ''`

	writeProposal = `UPDATE strangers SET person = $1, proposed_by = $2, proposed_from = $3, proposed_at = $4, mac = $5 ` +
		`WHERE via = $6 AND account = $7`

	dropProposals = `UPDATE strangers SET person = '', mac = x'' WHERE person <> ''`
)

// Senders lists the unknown senders that are stored. A proposal whose seal does not hold counts as none.
func (s *Store) Senders(ctx context.Context) (all []permissions.UnknownSender, err error) {
	err = s.read(ctx, func(from source) error {
		found, err := collectReadable(ctx, s, from, "a stranger", senderGate.rowFields, readSenders+` ORDER BY n`)
		all = nil
		for _, r := range found {
			if r.row.Proposed.Person != "" && !senderGate.hasValidSeal(s.seals, r) {
				s.logUnsealed(senderGate.name(r.row))
				r.row.Proposed = permissions.ProposedPairing{}
			}
			all = append(all, r.row)
		}
		return err
	})
	return all, err
}

// PutProposal implements [engine.Store].
func (s *Store) PutProposal(
	ctx context.Context, sender permissions.UnknownSender, r permissions.Record, tell []permissions.Notice,
) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		if r.Type == permissions.PairingWithdrawn {
			sender.Proposed = permissions.ProposedPairing{}
		}
		p := sender.Proposed
		changed := t.affected(ctx, writeProposal,
			p.Person, p.By, p.From, instant{&p.At}, senderGate.mac(s.seals, sender), sender.Via, sender.Account)
		if changed == 0 {
			return permissions.NoSender(sender.Account)
		}
		for _, n := range tell {
			insertNotice(ctx, t, n)
		}
		s.append(ctx, t, r)
		return nil
	})
}
