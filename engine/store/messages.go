package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/daycared/daycared/permissions"
)

const messageColumns = `key, agent, sender, text, created_at, heard_at`

func messageFields(m *permissions.Message) []any {
	return []any{&m.Key, &m.Agent, &m.From, &m.Text, instant{&m.CreatedAt}, instant{&m.HeardAt}}
}

func numberedMessage(m *permissions.Message) []any {
	return append([]any{&m.Number}, messageFields(m)...)
}

const (
	addMessage = `INSERT INTO messages (` + messageColumns + `) VALUES ($1, $2, $3, $4, $5, $6)`

	readKnown = `SELECT COUNT(*) FROM messages WHERE key = $1`

	countUnheard = `SELECT COUNT(*) FROM (SELECT 1 FROM messages WHERE heard_at = 0 AND agent = $1 LIMIT 0 + $2) AS waiting`
)

// Hear is [engine.Store].
func (s *Store) Hear(ctx context.Context, m permissions.Message, most int) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		known, err := count(ctx, t, readKnown, m.Key)
		if err != nil || known > 0 {
			return err
		}
		if m.HeardAt.IsZero() {
			waiting, err := count(ctx, t, countUnheard, m.Agent, most)
			if err != nil {
				return err
			}
			if waiting >= most {
				return permissions.Unheard(m.Agent)
			}
		} else {
			m.Text = ""
		}
		_, err = t.ExecContext(ctx, addMessage, messageFields(&m)...)
		return err
	})
}

// Known tells whether a message or an order of that key was taken.
func (s *Store) Known(ctx context.Context, key string) (known bool, err error) {
	err = s.read(ctx, func(from source) error {
		n, err := count(ctx, from, readKnown, key)
		known = n > 0
		return err
	})
	return known, err
}

const readUnheard = `SELECT number, ` + messageColumns + ` FROM messages WHERE heard_at = 0 AND agent = $1 ` +
	`ORDER BY number LIMIT 0 + $2`

// Unheard lists at most limit messages that an agent does not have yet, oldest first.
func (s *Store) Unheard(ctx context.Context, agent string, limit int) (messages []permissions.Message, err error) {
	err = s.read(ctx, func(from source) error {
		messages, err = collect(ctx, from, "a message", numberedMessage, readUnheard, agent, limit)
		return err
	})
	return messages, err
}

const noteHeard = `UPDATE messages SET text = '', heard_at = $1 WHERE number = $2 AND heard_at = 0`

// Heard notes that the agent has a message, and forgets its words.
func (s *Store) Heard(ctx context.Context, number int64, at time.Time) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := t.ExecContext(ctx, noteHeard, micros(at), number)
		return err
	})
}

const (
	readForeground = `SELECT agent FROM foregrounds WHERE person = $1 AND via = $2`

	writeForeground = `INSERT INTO foregrounds (agent, person, via) VALUES ($1, $2, $3) ` +
		`ON CONFLICT (person, via) DO UPDATE SET agent = excluded.agent`
)

// Foreground is the agent that a person chose in a channel; empty for none.
func (s *Store) Foreground(ctx context.Context, person, via string) (agent string, err error) {
	return s.word(ctx, readForeground, person, via)
}

// Choose has a person talk to an agent in the channel of the bond.
func (s *Store) Choose(ctx context.Context, b permissions.Bond) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := t.ExecContext(ctx, writeForeground, b.Agent, b.Person, b.Via)
		return err
	})
}

// word reads one text, empty where there is none.
func (s *Store) word(ctx context.Context, query string, args ...any) (word string, err error) {
	err = s.read(ctx, func(from source) error {
		err := from.QueryRowContext(ctx, query, args...).Scan(&word)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return word, err
}

func count(ctx context.Context, from source, query string, args ...any) (n int, err error) {
	err = from.QueryRowContext(ctx, query, args...).Scan(&n)
	return n, err
}
