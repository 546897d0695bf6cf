package store

import (
	"context"
	"errors"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// mostPosts is how much may wait for one session: half of it of other agents and of the daemon, so that there is room for
// what its person writes.
const mostPosts = 1000

const postColumns = `session, key, sender, text, silent, chain, at`

func postFields(p *agents.Post) []any {
	return []any{&p.Session, &p.Key, &p.From, &p.Text, &p.Silent, &p.Chain, instant{&p.At}}
}

func numberedPost(p *agents.Post) []any { return append([]any{&p.Number}, postFields(p)...) }

const (
	countPosted = `SELECT COUNT(*) FROM posts WHERE session = $1 AND key = $2`

	countUntaken = `SELECT COUNT(*) FROM (SELECT 1 FROM posts WHERE taken_at = 0 AND session = $1 LIMIT 0 + $2) AS waiting`

	insertPost = `INSERT INTO posts (` + postColumns + `, taken_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 0)`

	readPosts = `SELECT number, ` + postColumns + ` FROM posts WHERE taken_at = 0 AND session = $1 ORDER BY number LIMIT 0 + $2`

	takePost = `UPDATE posts SET text = '', taken_at = $1 WHERE number = $2 AND session = $3 AND taken_at = 0`
)

// Post keeps something for a session until its transcript has it. The key of one of the same session changes nothing.
// It refuses a session that is unknown or has ended with [permissions.CodeUnknown], and with [permissions.CodeLimit]
// when too much waits.
func (s *Store) Post(ctx context.Context, p agents.Post) error {
	if p.Key == "" {
		return permissions.Invalid(errors.New("what is posted to a session needs a key"))
	}
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		known, err := count(ctx, t, countPosted, p.Session, p.Key)
		if err != nil || known > 0 {
			return err
		}
		session, found, err := oneSession(ctx, t, readSession, p.Session)
		if err != nil {
			return err
		}
		if !found || !session.EndedAt.IsZero() {
			return permissions.UnknownSession(string(p.Session))
		}
		most := mostPosts
		if p.From != session.Person {
			most /= 2
		}
		waiting, err := count(ctx, t, countUntaken, p.Session, most)
		if err != nil {
			return err
		}
		if waiting >= most {
			return permissions.Unheard(session.Agent)
		}
		_, err = t.ExecContext(ctx, insertPost, postFields(&p)...)
		return err
	})
}

// Posts lists at most limit of what waits for a session, oldest first.
func (s *Store) Posts(ctx context.Context, session permissions.ID, limit int) (posts []agents.Post, err error) {
	err = s.read(ctx, func(from source) error {
		posts, err = collect(ctx, from, "a post", numberedPost, readPosts, session, limit)
		return err
	})
	return posts, err
}
