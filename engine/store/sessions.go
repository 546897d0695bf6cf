package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// The columns of a session, in the order of the fields beside them: what never changes, and what a commit changes.
const (
	namingColumns  = `id, agent, person, parent, created_at`
	movingColumns  = `version, status, model, tokens, cost, request, tool, changed_at, ended_at, step`
	sessionColumns = namingColumns + `, ` + movingColumns
)

func namingFields(s *permissions.AgentSession) []any {
	return []any{&s.ID, &s.Agent, &s.Person, &s.Parent, instant{&s.CreatedAt}}
}

func movingFields(s *permissions.AgentSession) []any {
	return []any{
		&s.Version, &s.Status, &s.Model, &s.Tokens, &s.Cost, &s.Request, &s.Tool, instant{&s.ChangedAt}, instant{&s.EndedAt},
		raw{&s.Step},
	}
}

func sessionFields(s *permissions.AgentSession) []any {
	return append(namingFields(s), movingFields(s)...)
}

const (
	readSession = `SELECT ` + sessionColumns + ` FROM sessions WHERE id = $1`

	readCurrentSession = `SELECT ` + sessionColumns + ` FROM sessions WHERE ended_at = 0 AND agent = $1 ` +
		`ORDER BY number DESC LIMIT 1`

	readWaitingSession = `SELECT ` + sessionColumns + ` FROM sessions WHERE ended_at = 0 AND request = $1 AND request <> '' ` +
		`LIMIT 1`

	readOpenSessions = `SELECT ` + sessionColumns + ` FROM sessions WHERE ended_at = 0 AND id > $1 ORDER BY id LIMIT 0 + $2`

	readSessions = `SELECT ` + sessionColumns + ` FROM sessions WHERE id > $1 ORDER BY id LIMIT 0 + $2`

	readSessionsOf = `SELECT ` + sessionColumns + ` FROM sessions WHERE person = $1 AND id > $2 ORDER BY id LIMIT 0 + $3`
)

// AgentSession gives one session, or refuses with [permissions.CodeUnknown].
func (s *Store) AgentSession(ctx context.Context, id permissions.ID) (permissions.AgentSession, error) {
	session, found, err := s.session(ctx, readSession, id)
	if err == nil && !found {
		err = permissions.UnknownSession(string(id))
	}
	return session, err
}

// CurrentSession is the newest session of an agent that has not ended, if there is one.
func (s *Store) CurrentSession(ctx context.Context, agent string) (permissions.AgentSession, bool, error) {
	return s.session(ctx, readCurrentSession, agent)
}

// SessionWaiting is the session that waits for a request, if one does that has not ended.
func (s *Store) SessionWaiting(ctx context.Context, request permissions.ID) (permissions.AgentSession, bool, error) {
	return s.session(ctx, readWaitingSession, request)
}

// OpenSessions lists at most limit sessions that have not ended, after the one named (empty: from the first), by id.
func (s *Store) OpenSessions(ctx context.Context, after permissions.ID, limit int) ([]permissions.AgentSession, error) {
	return s.sessions(ctx, readOpenSessions, after, limit)
}

// AgentSessions is [engine.Store].
func (s *Store) AgentSessions(
	ctx context.Context, person string, after permissions.ID, limit int,
) ([]permissions.AgentSession, error) {
	if person == "" {
		return s.sessions(ctx, readSessions, after, limit)
	}
	return s.sessions(ctx, readSessionsOf, person, after, limit)
}

func (s *Store) session(
	ctx context.Context, text string, args ...any,
) (session permissions.AgentSession, found bool, err error) {
	err = s.read(ctx, func(from source) error {
		session, found, err = oneSession(ctx, from, text, args...)
		return err
	})
	return session, found, err
}

func (s *Store) sessions(ctx context.Context, text string, args ...any) (found []permissions.AgentSession, err error) {
	err = s.read(ctx, func(from source) error {
		found, err = collect(ctx, from, "a session", sessionFields, text, args...)
		return err
	})
	return found, err
}

func oneSession(
	ctx context.Context, from source, text string, args ...any,
) (session permissions.AgentSession, found bool, err error) {
	err = from.QueryRowContext(ctx, text, args...).Scan(sessionFields(&session)...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return permissions.AgentSession{}, false, nil
	case err != nil:
		return permissions.AgentSession{}, false, unreadable("a session", err)
	}
	return session, true, nil
}

const readTurns = `SELECT seq, content, at FROM turns WHERE session = $1 AND dropped_at = 0 ORDER BY seq`

// Turns is the transcript of a session, without what was dropped.
func (s *Store) Turns(ctx context.Context, session permissions.ID) (turns []agents.Turn, err error) {
	fields := func(t *agents.Turn) []any { return []any{&t.Seq, raw{&t.Content}, instant{&t.At}} }
	err = s.read(ctx, func(from source) error {
		turns, err = collect(ctx, from, "a turn", fields, readTurns, session)
		return err
	})
	return turns, err
}

const readExecutions = `SELECT ` + executionColumns + ` FROM tool_calls WHERE session = $1 AND step = $2 ORDER BY call`

// Executions are the calls of one step of a session, in order.
func (s *Store) Executions(ctx context.Context, session permissions.ID, step int) (calls []agents.Execution, err error) {
	err = s.read(ctx, func(from source) error {
		calls, err = collect(ctx, from, "an execution", executionFields, readExecutions, session, step)
		return err
	})
	return calls, err
}
