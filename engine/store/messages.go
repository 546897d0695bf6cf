package store

import (
	"context"
	"errors"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

const messageColumns = `key, agent, sender, text, created_at, heard_at`

func messageFields(m *permissions.Message) []any {
	return []any{&m.Key, &m.Agent, &m.From, &m.Text, instant{&m.CreatedAt}, instant{&m.ReceivedAt}}
}

func numberedMessage(m *permissions.Message) []any {
	return append([]any{&m.Number}, messageFields(m)...)
}

const (
	readKnown = `SELECT COUNT(*) FROM messages WHERE key = $1`

	countUndelivered = `SELECT COUNT(*) FROM (SELECT 1 FROM messages WHERE heard_at = 0 AND agent = $1 LIMIT 0 + $2) AS waiting`
)

// AddMessage implements [engine.Store].
func (s *Store) AddMessage(ctx context.Context, m permissions.Message, most int) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		known, err := count(ctx, t, readKnown, m.Key)
		if err != nil || known > 0 {
			return err
		}
		if m.ReceivedAt.IsZero() {
			waiting, err := count(ctx, t, countUndelivered, m.Agent, most)
			if err != nil {
				return err
			}
			if waiting >= most {
				return permissions.InboxFull(m.Agent)
			}
		} else {
			m.Text = ""
		}
		t.exec(ctx, `INSERT INTO messages (`+messageColumns+`) VALUES ($1, $2, $3, $4, $5, $6)`, messageFields(&m)...)
		return nil
	})
}

// HasMessage reports whether a message or an order with that key was accepted.
func (s *Store) HasMessage(ctx context.Context, key string) (bool, error) {
	n, err := reading(ctx, s, func(from source) (int, error) { return count(ctx, from, readKnown, key) })
	return n > 0, err
}

const readUndelivered = `SELECT number, ` + messageColumns + ` FROM messages WHERE heard_at = 0 AND agent = $1 ` +
	`ORDER BY number LIMIT 0 + $2`

// UndeliveredMessages lists at most limit messages that an agent has not received yet, oldest first.
func (s *Store) UndeliveredMessages(ctx context.Context, agent string, limit int) ([]permissions.Message, error) {
	return gather(ctx, s, "a message", numberedMessage, readUndelivered, agent, limit)
}

const noteDelivered = `UPDATE messages SET text = '', heard_at = $1 WHERE number = $2 AND heard_at = 0`

// MarkDelivered marks a message as delivered to the agent and deletes its text.
func (s *Store) MarkDelivered(ctx context.Context, number int64, at time.Time) error {
	return s.execute(ctx, noteDelivered, micros(at), number)
}

const (
	readForeground = `SELECT agent FROM foregrounds WHERE person = $1 AND via = $2`

	writeForeground = `INSERT INTO foregrounds (agent, person, via) VALUES ($1, $2, $3) ` +
		`ON CONFLICT (person, via) DO UPDATE SET agent = excluded.agent`
)

// Foreground is the agent that a person chose in a channel; empty for none.
func (s *Store) Foreground(ctx context.Context, person, via string) (agent string, err error) {
	return s.readText(ctx, readForeground, person, via)
}

// SetForeground sets the agent that a person talks to in the channel of the binding.
func (s *Store) SetForeground(ctx context.Context, b permissions.Binding) error {
	return s.execute(ctx, writeForeground, b.Agent, b.Person, b.Via)
}

// maxPosts bounds the posts that wait for one session. Agents and the daemon get half, so that a person's always fit.
const maxPosts = 1000

const postColumns = `session, key, sender, text, silent, chain, at`

func postFields(p *agents.Post) []any {
	return []any{&p.Session, &p.Key, &p.From, &p.Text, &p.Silent, &p.Chain, instant{&p.At}}
}

func numberedPost(p *agents.Post) []any { return append([]any{&p.Number}, postFields(p)...) }

const (
	countPosted = `SELECT COUNT(*) FROM posts WHERE session = $1 AND key = $2`

	countUntaken = `SELECT COUNT(*) FROM (SELECT 1 FROM posts WHERE taken_at = 0 AND session = $1 LIMIT 0 + $2) AS waiting`

	readPosts = `SELECT number, ` + postColumns + ` FROM posts WHERE taken_at = 0 AND session = $1 ORDER BY number LIMIT 0 + $2`

	takePost = `UPDATE posts SET text = '', taken_at = $1 WHERE number = $2 AND session = $3 AND taken_at = 0`
)

// Post keeps an item for a session until its transcript has it. A repeated key of the same session changes nothing. It
// refuses an unknown or ended session with [permissions.CodeUnknown], and a full one with [permissions.CodeLimit].
func (s *Store) Post(ctx context.Context, p agents.Post) error {
	if p.Key == "" {
		return permissions.Invalid(errors.New("what is posted to a session needs a key"))
	}
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		known, err := count(ctx, t, countPosted, p.Session, p.Key)
		if err != nil || known > 0 {
			return err
		}
		session, found, err := firstRow(ctx, t, "a session", (*sealedSession).fields, readSession, p.Session)
		if err != nil {
			return err
		}
		if !found || !session.row.EndedAt.IsZero() {
			return permissions.UnknownSession(string(p.Session))
		}
		most := maxPosts
		if p.From != session.row.Person {
			most /= 2
		}
		waiting, err := count(ctx, t, countUntaken, p.Session, most)
		if err != nil {
			return err
		}
		if waiting >= most {
			return permissions.InboxFull(session.row.Agent)
		}
		t.exec(ctx, `INSERT INTO posts (`+postColumns+`, taken_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 0)`, postFields(&p)...)
		return nil
	})
}

// Posts lists at most limit posts that wait for a session, oldest first.
func (s *Store) Posts(ctx context.Context, session permissions.ID, limit int) ([]agents.Post, error) {
	return whole(ctx, s, "a post", numberedPost, readPosts, session, limit)
}

const agentMessageColumns = `key, agent, person, via, text, sent, created_at`

func agentMessageFields(u *permissions.AgentMessage) []any {
	return []any{&u.Key, &u.Binding.Agent, &u.Binding.Person, &u.Binding.Via, &u.Text, &u.Sent, instant{&u.CreatedAt}}
}

func numberedAgentMessage(u *permissions.AgentMessage) []any {
	return append([]any{&u.Number}, agentMessageFields(u)...)
}

const (
	countAgentMessages = `SELECT COUNT(*) FROM utterances WHERE agent = $1 AND key = $2 AND key <> ''`

	countUnsent = `SELECT COUNT(*) FROM (SELECT 1 FROM utterances WHERE NOT done AND agent = $1 LIMIT 0 + $2) AS waiting`

	// retryUnsent is the retry hint for an agent whose outbox is full.
	retryUnsent = 10 * time.Second
)

// AddAgentMessage implements [engine.Store].
func (s *Store) AddAgentMessage(ctx context.Context, u permissions.AgentMessage, most int) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		said, err := count(ctx, t, countAgentMessages, u.Binding.Agent, u.Key)
		if err != nil || said > 0 {
			return err
		}
		waiting, err := count(ctx, t, countUnsent, u.Binding.Agent, most)
		if err != nil {
			return err
		}
		if waiting >= most {
			return permissions.OutboxFull(retryUnsent)
		}
		t.exec(ctx, `INSERT INTO utterances (`+agentMessageColumns+`, done) VALUES ($1, $2, $3, $4, $5, $6, $7, FALSE)`,
			agentMessageFields(&u)...)
		return nil
	})
}

const readUnsent = `SELECT number, ` + agentMessageColumns + ` FROM utterances WHERE NOT done AND agent = $1 ` +
	`ORDER BY number LIMIT 0 + $2`

// UnsentAgentMessages lists at most limit messages of an agent that are not fully sent, oldest first.
func (s *Store) UnsentAgentMessages(ctx context.Context, agent string, limit int) ([]permissions.AgentMessage, error) {
	return gather(ctx, s, "an utterance", numberedAgentMessage, readUnsent, agent, limit)
}

// keptOfAgent is how many of an agent's messages, and of their channel references, are kept.
const keptOfAgent = 1000

const (
	noteSent = `UPDATE utterances SET sent = $1 WHERE number = $2`

	noteDone = `UPDATE utterances SET sent = $1, text = '', done = TRUE WHERE number = $2`

	writeAuthor = `INSERT INTO authors (via, ref, agent, sent_at) VALUES ($1, $2, $3, $4) ` +
		`ON CONFLICT (via, ref) DO UPDATE SET agent = excluded.agent`

	trimAuthors = `DELETE FROM authors WHERE agent = $1 AND number <= ` +
		`(SELECT number FROM authors WHERE agent = $1 ORDER BY number DESC LIMIT 1 OFFSET $2)`

	trimAgentMessages = `DELETE FROM utterances WHERE done AND agent = $1 AND number <= ` +
		`(SELECT number FROM utterances WHERE done AND agent = $1 ORDER BY number DESC LIMIT 1 OFFSET $2)`
)

// MarkAgentMessageSent implements [engine.Store].
func (s *Store) MarkAgentMessageSent(ctx context.Context, u permissions.AgentMessage, ref string, done bool, at time.Time) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		note := noteSent
		if done {
			note = noteDone
		}
		t.exec(ctx, note, u.Sent, u.Number)
		if done {
			t.exec(ctx, trimAgentMessages, u.Binding.Agent, keptOfAgent)
		}
		if ref == "" {
			return nil
		}
		t.exec(ctx, writeAuthor, u.Binding.Via, ref, u.Binding.Agent, micros(at))
		t.exec(ctx, trimAuthors, u.Binding.Agent, keptOfAgent)
		return nil
	})
}

const readAuthor = `SELECT agent FROM authors WHERE via = $1 AND ref = $2`

// Author is the agent that sent a channel's message; empty if unknown.
func (s *Store) Author(ctx context.Context, via, ref string) (agent string, err error) {
	return s.readText(ctx, readAuthor, via, ref)
}

const readAllPending = `SELECT number FROM requests WHERE state = 'pending'`

// PendingNumbers returns the number of every pending request.
func (s *Store) PendingNumbers(ctx context.Context) ([]int64, error) {
	return gather(ctx, s, "a request", value[int64], readAllPending)
}
