package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// The columns of a session, in the order of the fields beside them: the constant ones, and those that a commit changes.
const (
	namingColumns  = `id, agent, person, parent, created_at, debug`
	movingColumns  = `version, status, model, tokens, cost, request, tool, changed_at, ended_at, step`
	sessionColumns = namingColumns + `, ` + movingColumns
)

func namingFields(s *permissions.AgentSession) []any {
	return []any{&s.ID, &s.Agent, &s.Person, &s.Parent, instant{&s.CreatedAt}, &s.Debug}
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

// AgentSession returns one session, or refuses with [permissions.CodeUnknown].
func (s *Store) AgentSession(ctx context.Context, id permissions.ID) (permissions.AgentSession, error) {
	session, found, err := s.session(ctx, readSession, id)
	if err == nil && !found {
		err = permissions.UnknownSession(string(id))
	}
	return session, err
}

// CurrentSession is the newest session of an agent that has not ended, if any.
func (s *Store) CurrentSession(ctx context.Context, agent string) (permissions.AgentSession, bool, error) {
	return s.session(ctx, readCurrentSession, agent)
}

// SessionWaiting is the open session that waits for a request, if any.
func (s *Store) SessionWaiting(ctx context.Context, request permissions.ID) (permissions.AgentSession, bool, error) {
	return s.session(ctx, readWaitingSession, request)
}

// OpenSessions lists at most limit open sessions after the given one (empty: from the first), by id.
func (s *Store) OpenSessions(ctx context.Context, after permissions.ID, limit int) ([]permissions.AgentSession, error) {
	return s.sessions(ctx, readOpenSessions, after, limit)
}

// AgentSessions implements [engine.Store].
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

func (s *Store) sessions(ctx context.Context, text string, args ...any) ([]permissions.AgentSession, error) {
	return gather(ctx, s, "a session", sessionFields, text, args...)
}

func oneSession(
	ctx context.Context, from source, text string, args ...any,
) (session permissions.AgentSession, found bool, err error) {
	err = from.QueryRowContext(ctx, text, args...).Scan(exactFields(sessionFields(&session))...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return permissions.AgentSession{}, false, nil
	case err != nil:
		return permissions.AgentSession{}, false, unreadable("a session", err)
	}
	return session, true, nil
}

const readTurns = `SELECT seq, content, at FROM turns WHERE session = $1 AND dropped_at = 0 ORDER BY seq`

// Turns is the transcript of a session without dropped turns.
func (s *Store) Turns(ctx context.Context, session permissions.ID) ([]agents.Turn, error) {
	fields := func(t *agents.Turn) []any { return []any{&t.Seq, raw{&t.Content}, instant{&t.At}} }
	return whole(ctx, s, "a turn", fields, readTurns, session)
}

const readExecutions = `SELECT ` + executionColumns + ` FROM tool_calls WHERE session = $1 AND step = $2 ORDER BY call`

// Executions are the calls of one step of a session, in order.
func (s *Store) Executions(ctx context.Context, session permissions.ID, step int) ([]agents.Execution, error) {
	return whole(ctx, s, "an execution", executionFields, readExecutions, session, step)
}

const writeDebug = `UPDATE sessions SET debug = $1 WHERE id = $2`

// SetDebug implements [engine.Store].
func (s *Store) SetDebug(ctx context.Context, id permissions.ID, on bool) error {
	return s.execute(ctx, writeDebug, on, id)
}

const readExecutionsOf = `SELECT id, ` + executionColumns + ` FROM tool_calls WHERE session = $1 AND id > $2 ORDER BY id LIMIT 0 + $3`

// ExecutionsOf implements [engine.Store].
func (s *Store) ExecutionsOf(ctx context.Context, session permissions.ID, after int64, limit int) ([]agents.Execution, error) {
	fields := func(e *agents.Execution) []any { return append([]any{&e.ID}, executionFields(e)...) }
	return gather(ctx, s, "an execution", fields, readExecutionsOf, session, after, limit)
}

const readArtifactsOf = `SELECT artifacts.id, COALESCE(tool_calls.id, 0), artifacts.step, artifacts.call, type, content FROM artifacts ` +
	`LEFT JOIN tool_calls ON tool_calls.session = artifacts.session AND tool_calls.step = artifacts.step ` +
	`AND tool_calls.call = artifacts.call AND artifacts.call > 0 ` +
	`WHERE artifacts.session = $1 AND (0 = $2 OR tool_calls.id = $2) AND artifacts.id > $3 ORDER BY artifacts.id LIMIT 0 + $4`

// ArtifactsOf implements [engine.Store].
func (s *Store) ArtifactsOf(
	ctx context.Context, session permissions.ID, execution, after int64, limit int,
) ([]agents.Artifact, error) {
	fields := func(a *agents.Artifact) []any {
		return []any{&a.ID, &a.Execution, &a.Step, &a.Call, &a.Type, raw{&a.Content}}
	}
	return gather(ctx, s, "an artifact", fields, readArtifactsOf, session, execution, after, limit)
}

// Queries for our own agents only: the callers in these statements have names that begin with "agent:".

// Keyed finds the caller's request with a key that is still in use, settled or not.
func (s *Store) Keyed(ctx context.Context, caller, key string) (r permissions.Request, found bool, err error) {
	err = s.read(ctx, func(from source) error {
		r, err = s.one(ctx, from, readByKey, caller, key)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		found = err == nil
		return err
	})
	return r, found, err
}

const (
	readPendingOfSession = `SELECT id FROM requests WHERE state = 'pending' AND caller >= 'agent:' AND caller < 'agent;' ` +
		`AND session = $1`

	readPendingOfCaller = `SELECT id FROM requests WHERE state = 'pending' AND caller = $1 AND session = $2`

	readGrantsOfSession = `SELECT ` + grantColumns + ` FROM grants WHERE revoked_at = 0 AND ended_at = 0 ` +
		`AND caller >= 'agent:' AND caller < 'agent;' AND session = $1`

	// The grants left are unreadable.
	endGrantsOfSession = `UPDATE grants SET ended_at = $1, mac = '' WHERE revoked_at = 0 AND ended_at = 0 ` +
		`AND caller >= 'agent:' AND caller < 'agent;' AND session = $2`
)

// PendingOfSession implements [engine.Store].
func (s *Store) PendingOfSession(ctx context.Context, caller, session string) ([]permissions.ID, error) {
	field := func(id *permissions.ID) []any { return []any{id} }
	if caller != "" {
		return gather(ctx, s, "a request", field, readPendingOfCaller, caller, session)
	}
	return gather(ctx, s, "a request", field, readPendingOfSession, session)
}

// EndSessionGrants implements [engine.Store].
func (s *Store) EndSessionGrants(ctx context.Context, session string, now time.Time) (ended []permissions.Grant, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		if ended, err = collectReadable(ctx, s, t, "a grant", grantFields, readGrantsOfSession, session); err != nil {
			return err
		}
		for _, g := range ended {
			if err := s.noteEnd(ctx, t, g, now); err != nil {
				return err
			}
		}
		return t.exec(ctx, endGrantsOfSession, micros(now), session)
	})
	if err != nil {
		return nil, err
	}
	return ended, nil
}

const (
	readCursor = `SELECT seq FROM cursors WHERE name = $1`

	writeCursor = `INSERT INTO cursors (name, seq) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET seq = excluded.seq`
)

// Cursor is the last audit entry that the named follower has processed. A new one starts after the newest entry.
func (s *Store) Cursor(ctx context.Context, name string) (seq int64, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		err := t.QueryRowContext(ctx, readCursor, name).Scan(&seq)
		if errors.Is(err, sql.ErrNoRows) {
			seq = t.seq
			_, err = t.ExecContext(ctx, writeCursor, name, seq)
		}
		return err
	})
	return seq, err
}

// SetCursor stores the position of a follower.
func (s *Store) SetCursor(ctx context.Context, name string, seq int64) error {
	return s.execute(ctx, writeCursor, name, seq)
}
