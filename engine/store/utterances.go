package store

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

const utteranceColumns = `key, agent, person, via, text, sent, created_at`

func utteranceFields(u *permissions.Utterance) []any {
	return []any{&u.Key, &u.Bond.Agent, &u.Bond.Person, &u.Bond.Via, &u.Text, &u.Sent, instant{&u.CreatedAt}}
}

func numberedUtterance(u *permissions.Utterance) []any {
	return append([]any{&u.Number}, utteranceFields(u)...)
}

const (
	addUtterance = `INSERT INTO utterances (` + utteranceColumns + `, done) VALUES ($1, $2, $3, $4, $5, $6, $7, FALSE)`

	countSaid = `SELECT COUNT(*) FROM utterances WHERE agent = $1 AND key = $2 AND key <> ''`

	countUnsaid = `SELECT COUNT(*) FROM (SELECT 1 FROM utterances WHERE NOT done AND agent = $1 LIMIT 0 + $2) AS waiting`

	// retryUnsaid is when an agent that was refused by the limit should try again.
	retryUnsaid = 10 * time.Second
)

// Say is [engine.Store].
func (s *Store) Say(ctx context.Context, u permissions.Utterance, most int) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		said, err := count(ctx, t, countSaid, u.Bond.Agent, u.Key)
		if err != nil || said > 0 {
			return err
		}
		waiting, err := count(ctx, t, countUnsaid, u.Bond.Agent, most)
		if err != nil {
			return err
		}
		if waiting >= most {
			return permissions.Unsaid(retryUnsaid)
		}
		_, err = t.ExecContext(ctx, addUtterance, utteranceFields(&u)...)
		return err
	})
}

const readUnsaid = `SELECT number, ` + utteranceColumns + ` FROM utterances WHERE NOT done AND agent = $1 ` +
	`ORDER BY number LIMIT 0 + $2`

// Unsaid lists at most limit utterances of an agent's of which something is still to be sent, oldest first.
func (s *Store) Unsaid(ctx context.Context, agent string, limit int) (all []permissions.Utterance, err error) {
	err = s.read(ctx, func(from source) error {
		all, err = collect(ctx, from, "an utterance", numberedUtterance, readUnsaid, agent, limit)
		return err
	})
	return all, err
}

// keptOfAgent is how many of the messages that an agent sent, and of its utterances, are still known.
const keptOfAgent = 1000

const (
	noteSent = `UPDATE utterances SET sent = $1 WHERE number = $2`

	noteDone = `UPDATE utterances SET sent = $1, text = '', done = TRUE WHERE number = $2`

	writeAuthor = `INSERT INTO authors (via, ref, agent, sent_at) VALUES ($1, $2, $3, $4) ` +
		`ON CONFLICT (via, ref) DO UPDATE SET agent = excluded.agent`

	trimAuthors = `DELETE FROM authors WHERE agent = $1 AND number <= ` +
		`(SELECT number FROM authors WHERE agent = $1 ORDER BY number DESC LIMIT 1 OFFSET $2)`

	trimSaid = `DELETE FROM utterances WHERE done AND agent = $1 AND number <= ` +
		`(SELECT number FROM utterances WHERE done AND agent = $1 ORDER BY number DESC LIMIT 1 OFFSET $2)`
)

// Said is [engine.Store].
func (s *Store) Said(ctx context.Context, u permissions.Utterance, ref string, done bool, at time.Time) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		note := noteSent
		if done {
			note = noteDone
		}
		if _, err := t.ExecContext(ctx, note, u.Sent, u.Number); err != nil {
			return err
		}
		if done {
			if _, err := t.ExecContext(ctx, trimSaid, u.Bond.Agent, keptOfAgent); err != nil {
				return err
			}
		}
		if ref == "" {
			return nil
		}
		if _, err := t.ExecContext(ctx, writeAuthor, u.Bond.Via, ref, u.Bond.Agent, micros(at)); err != nil {
			return err
		}
		_, err := t.ExecContext(ctx, trimAuthors, u.Bond.Agent, keptOfAgent)
		return err
	})
}

const readAuthor = `SELECT agent FROM authors WHERE via = $1 AND ref = $2`

// Author is the agent that the message of that name in a channel is from; empty where that is not known.
func (s *Store) Author(ctx context.Context, via, ref string) (agent string, err error) {
	return s.word(ctx, readAuthor, via, ref)
}

const readAllPending = `SELECT number FROM requests WHERE state = 'pending'`

// PendingNumbers are those of every request that is pending.
func (s *Store) PendingNumbers(ctx context.Context) (numbers []int64, err error) {
	field := func(n *int64) []any { return []any{n} }
	err = s.read(ctx, func(from source) error {
		numbers, err = collect(ctx, from, "a request", field, readAllPending)
		return err
	})
	return numbers, err
}
