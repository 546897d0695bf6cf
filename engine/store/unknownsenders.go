package store

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	countUnknownSenders = `SELECT (SELECT COUNT(*) FROM strangers WHERE via = $1 AND account = $2), ` +
		`(SELECT COUNT(*) FROM strangers WHERE told_at = 0)`

	// The number is greater than all that are kept.
	addUnknownSender = `INSERT INTO strangers (n, via, account, name, first_at, told_at) ` +
		`VALUES ((SELECT COALESCE(MAX(n), 0) + 1 FROM strangers), $1, $2, $3, $4, 0)`

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
			t.exec(ctx, addUnknownSender, sender.Via, sender.Account, sender.Name, micros(sender.At))
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
