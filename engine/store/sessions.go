package store

import (
	"context"
	"crypto/hmac"
	"database/sql"
	"errors"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// The columns of a session, in the order of the fields beside them: the constant ones, and those that a commit changes.
const (
	constantSessionColumns = `id, agent, person, parent, created_at, debug`
	changingSessionColumns = `version, status, model, tokens, cost, request, tool, changed_at, ended_at, step`
	sessionColumns         = constantSessionColumns + `, ` + changingSessionColumns
)

func constantSessionFields(s *permissions.AgentSession) []any {
	return []any{&s.ID, &s.Agent, &s.Person, &s.Parent, instant{&s.CreatedAt}, &s.Debug}
}

func changingSessionFields(s *permissions.AgentSession) []any {
	return []any{
		&s.Version, &s.Status, &s.Model, &s.Tokens, &s.Cost, &s.Request, &s.Tool, instant{&s.ChangedAt}, instant{&s.EndedAt},
		rawJSON{&s.Step},
	}
}

func sessionFields(s *permissions.AgentSession) []any {
	return append(constantSessionFields(s), changingSessionFields(s)...)
}

// sealedSession is a session as it was read, with its seal and the newest audit entry when it was written.
type sealedSession struct {
	row     permissions.AgentSession
	audited int64
	mac     []byte
}

func (s *sealedSession) fields() []any { return append(sessionFields(&s.row), &s.audited, &s.mac) }

// seal is the seal of an agent's session. Debug opens nothing and changes without it.
func (k *sealer) session(s permissions.AgentSession, audited int64) []byte {
	s.Debug = false
	return k.seal("sessions", append(sessionFields(&s), audited)...)
}

func (s *sealedSession) hasValidSeal(k *sealer) bool {
	return len(s.mac) == sealSize && hmac.Equal(s.mac, k.session(s.row, s.audited))
}

const (
	sealSession = `UPDATE sessions SET audited = $1, mac = $2 WHERE id = $3`

	// sessionEntry is the condition of the index audit_sessions, literally. [Store.Commit] writes all of these entries.
	sessionEntry = `entries.type BETWEEN 24 AND 27`

	// hasLaterEntry reports whether the audit has an entry about a session that is newer than its row.
	hasLaterEntry = `SELECT EXISTS (SELECT 1 FROM entries WHERE ` + sessionEntry + ` AND key > ` + lowestKey + ` | $2 ` +
		`AND key <= ` + highestKey + ` AND actor = $3 AND detail LIKE $4)`
)

const readOpenSealed = `SELECT ` + sessionColumns + `, audited, mac FROM sessions WHERE ended_at = 0 ORDER BY id`

// checkSession is the error of a session whose row was changed, or put back to how it was earlier, without the key. The version
// least was committed before the row was read.
func (s *Store) checkSession(ctx context.Context, from source, r sealedSession, least int64) error {
	if !r.row.EndedAt.IsZero() { // it never goes on, and pruning changes it
		return nil
	}
	name := "session " + string(r.row.ID)
	if later := r.row.Version < least; r.hasValidSeal(s.seals) && !later {
		err := from.QueryRowContext(ctx, hasLaterEntry, s.chain, r.audited, r.row.Caller().Name,
			`%"session":"`+string(r.row.ID)+`"%`).Scan(&later)
		if err != nil || !later {
			return err
		}
	}
	s.logUnsealed(name)
	return unsealed(name)
}

// committed is the newest version of a session that this process has committed; zero if none.
func (s *Store) committed(id permissions.ID) int64 {
	version, _ := s.sessions.Load(id)
	n, _ := version.(int64)
	return n
}

const (
	readSession = `SELECT ` + sessionColumns + `, audited, mac FROM sessions WHERE id = $1`

	readCurrentSession = `SELECT ` + sessionColumns + `, audited, mac FROM sessions WHERE ended_at = 0 AND agent = $1 ` +
		`ORDER BY number DESC LIMIT 1`

	readWaitingSession = `SELECT ` + sessionColumns + `, audited, mac FROM sessions WHERE ended_at = 0 AND request = $1 AND request <> '' ` +
		`LIMIT 1`

	readOpenSessions = `SELECT ` + sessionColumns + ` FROM sessions WHERE ended_at = 0 AND id > $1 ORDER BY id LIMIT 0 + $2`

	readSessions = `SELECT ` + sessionColumns + ` FROM sessions WHERE id > $1 ORDER BY id LIMIT 0 + $2`

	readSessionsOf = `SELECT ` + sessionColumns + ` FROM sessions WHERE person = $1 AND id > $2 ORDER BY id LIMIT 0 + $3`
)

// AgentSession returns one session, or refuses with [permissions.CodeUnknown]. With an error that matches [permissions.ErrRow] it
// returns the row of a session whose seal does not hold, or that is an older state, without its Step.
func (s *Store) AgentSession(ctx context.Context, id permissions.ID) (permissions.AgentSession, error) {
	session, found, err := s.agentSession(ctx, readSession, id)
	if err == nil && !found {
		err = permissions.UnknownSession(string(id))
	}
	return session, err
}

// CurrentSession is the newest session of an agent that has not ended, if any. It has no Step where [Store.AgentSession] would fail.
func (s *Store) CurrentSession(ctx context.Context, agent string) (permissions.AgentSession, bool, error) {
	session, found, err := s.agentSession(ctx, readCurrentSession, agent)
	if found && errors.Is(err, permissions.ErrRow) {
		err = nil
	}
	return session, found, err
}

// SessionWaiting is the open session that waits for a request, if any; see [Store.CurrentSession].
func (s *Store) SessionWaiting(ctx context.Context, request permissions.ID) (permissions.AgentSession, bool, error) {
	session, found, err := s.agentSession(ctx, readWaitingSession, request)
	if found && errors.Is(err, permissions.ErrRow) {
		err = nil
	}
	return session, found, err
}

// OpenSessions lists at most limit open sessions after the given one (empty: from the first), by id.
func (s *Store) OpenSessions(ctx context.Context, after permissions.ID, limit int) ([]permissions.AgentSession, error) {
	return s.agentSessions(ctx, readOpenSessions, after, limit)
}

// AgentSessions implements [engine.Store].
func (s *Store) AgentSessions(
	ctx context.Context, person string, after permissions.ID, limit int,
) ([]permissions.AgentSession, error) {
	if person == "" {
		return s.agentSessions(ctx, readSessions, after, limit)
	}
	return s.agentSessions(ctx, readSessionsOf, person, after, limit)
}

func (s *Store) agentSession(
	ctx context.Context, text string, args ...any,
) (session permissions.AgentSession, found bool, err error) {
	for least := int64(0); ; {
		again := false
		err = s.read(ctx, func(from source) error {
			var r sealedSession
			if r, found, err = firstRow(ctx, from, "a session", (*sealedSession).fields, text, args...); err != nil || !found {
				return err
			}
			session = r.row
			if newest := s.committed(r.row.ID); least == 0 && r.row.Version < newest { // perhaps by a commit since the row was read
				least, again = newest, true
				return nil
			}
			if err = s.checkSession(ctx, from, r, least); err != nil {
				session.Step = nil
			}
			return err
		})
		if !again {
			return session, found, err
		}
	}
}

func (s *Store) agentSessions(ctx context.Context, text string, args ...any) ([]permissions.AgentSession, error) {
	return gather(ctx, s, "a session", sessionFields, text, args...)
}

const readTurns = `SELECT seq, content, at FROM turns WHERE session = $1 AND dropped_at = 0 ORDER BY seq`

// Turns is the transcript of a session without dropped turns.
func (s *Store) Turns(ctx context.Context, session permissions.ID) ([]agents.Turn, error) {
	fields := func(t *agents.Turn) []any { return []any{&t.Seq, rawJSON{&t.Content}, instant{&t.At}} }
	return whole(ctx, s, "a turn", fields, readTurns, session)
}

const executionColumns = `session, step, call, tool, arguments, began_at, ended_at, success, exit_code, error, affected_path`

func executionFields(e *agents.Execution) []any {
	return []any{
		&e.Session, &e.Step, &e.Call, &e.Tool, canonical{rawJSON{&e.Arguments}}, instant{&e.Began}, instant{&e.Ended}, &e.Success, &e.Exit,
		&e.Error, &e.AffectedPath,
	}
}

const readExecutions = `SELECT ` + executionColumns + ` FROM tool_calls WHERE session = $1 AND step = $2 ORDER BY call`

// Executions are the calls of one step of a session, in order.
func (s *Store) Executions(ctx context.Context, session permissions.ID, step int) ([]agents.Execution, error) {
	return whole(ctx, s, "an execution", executionFields, readExecutions, session, step)
}

// SetDebug implements [engine.Store].
func (s *Store) SetDebug(ctx context.Context, id permissions.ID, on bool) error {
	return s.execute(ctx, `UPDATE sessions SET debug = $1 WHERE id = $2`, on, id)
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
		return []any{&a.ID, &a.Execution, &a.Step, &a.Call, &a.Type, rawJSON{&a.Content}}
	}
	return gather(ctx, s, "an artifact", fields, readArtifactsOf, session, execution, after, limit)
}

// Queries for our own agents only: the callers in these statements have names that begin with "agent:".

// ByKey finds the caller's request with a key that is still in use, settled or not.
func (s *Store) ByKey(ctx context.Context, caller, key string) (r permissions.Request, found bool, err error) {
	err = s.read(ctx, func(from source) error {
		r, err = s.one(ctx, from, readByKey, caller, key)
		found = err == nil
		return ignoreNoRows(err)
	})
	return r, found, err
}

const (
	readPendingOfSession = `SELECT id FROM requests WHERE state = 'pending' AND caller >= 'agent:' AND caller < 'agent;' ` +
		`AND session = $1`

	readPendingOfCaller = `SELECT id FROM requests WHERE state = 'pending' AND caller = $1 AND session = $2`

	// Those that [findKept] would find.
	readKeptOfCaller = `SELECT id FROM requests WHERE state <> 'pending' AND collected_at = 0 AND lapsed_at = 0 AND key = '' ` +
		`AND caller = $1 AND session = $2 AND state = 'approved' AND used_at = 0 AND void_at = 0`

	readGrantsOfSession = `SELECT ` + grantColumns + ` FROM grants WHERE revoked_at = 0 AND ended_at = 0 ` +
		`AND caller >= $1 AND caller < $2 AND session = $3`

	// The grants left are unreadable.
	endGrantsOfSession = `UPDATE grants SET ended_at = $1, mac = '' WHERE revoked_at = 0 AND ended_at = 0 ` +
		`AND caller >= $2 AND caller < $3 AND session = $4`
)

// PendingOfSession implements [engine.Store].
func (s *Store) PendingOfSession(ctx context.Context, caller, session string) ([]permissions.ID, error) {
	if caller != "" {
		return gather(ctx, s, "a request", value[permissions.ID], readPendingOfCaller, caller, session)
	}
	return gather(ctx, s, "a request", value[permissions.ID], readPendingOfSession, session)
}

// KeptOfSession implements [engine.Store].
func (s *Store) KeptOfSession(ctx context.Context, caller, session string) ([]permissions.ID, error) {
	return gather(ctx, s, "a request", value[permissions.ID], readKeptOfCaller, caller, session)
}

// EndSessionGrants implements [engine.Store].
func (s *Store) EndSessionGrants(ctx context.Context, caller, session string, now time.Time) ([]permissions.Grant, error) {
	first, next := caller, caller+"\x01" // no name has that
	if caller == "" {
		first, next = "agent:", "agent;"
	}
	return writing(ctx, s, func(ctx context.Context, t *tx) ([]permissions.Grant, error) {
		ended, err := collectReadable(ctx, s, t, "a grant", grantFields, readGrantsOfSession, first, next, session)
		t.fail(err)
		for _, g := range ended {
			s.noteEnd(ctx, t, g, now)
		}
		t.exec(ctx, endGrantsOfSession, micros(now), first, next, session)
		return ended, nil
	})
}

const (
	readCursor = `SELECT seq FROM cursors WHERE name = $1`

	writeCursor = `INSERT INTO cursors (name, seq) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET seq = excluded.seq`
)

// Cursor is the last audit entry that the named follower has processed. A new one starts after the newest entry.
func (s *Store) Cursor(ctx context.Context, name string) (int64, error) {
	return writing(ctx, s, func(ctx context.Context, t *tx) (seq int64, err error) {
		err = t.QueryRowContext(ctx, readCursor, name).Scan(&seq)
		if errors.Is(err, sql.ErrNoRows) {
			t.exec(ctx, writeCursor, name, t.seq)
			return t.seq, nil
		}
		return seq, err
	})
}

// SetCursor stores the position of a follower.
func (s *Store) SetCursor(ctx context.Context, name string, seq int64) error {
	return s.execute(ctx, writeCursor, name, seq)
}
