package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
)

// Commit stores everything that one step of a session does, or nothing. If the row's version is not one less than c.Session's, the
// error matches [agents.ErrStale]; Version 1 is a new session. The audit records of c are in the same transaction.
func (s *Store) Commit(ctx context.Context, c agents.Commit) error {
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		ends, err := endsNow(ctx, t, c.Session)
		if err != nil {
			return err
		}
		if ends {
			of := c.Session
			of.Request = ""
			c.Records = append(slices.Clip(c.Records), agents.RecordOf(permissions.SessionEnded, of, of.EndedAt))
		}
		if err := moveSession(ctx, t, c.Session); err != nil {
			return err
		}
		if err := writeTurns(ctx, t, c); err != nil {
			return err
		}
		for _, number := range c.Taken {
			if err := t.exec(ctx, takePost, micros(c.Session.ChangedAt), number, c.Session.ID); err != nil {
				return err
			}
		}
		if err := s.writeExecutions(ctx, t, c); err != nil {
			return err
		}
		if err := s.append(ctx, t, c.Records...); err != nil {
			return err
		}
		return t.exec(ctx, sealSession, t.seq, s.seals.session(c.Session, t.seq), c.Session.ID)
	})
	switch {
	case err != nil:
	case c.Session.EndedAt.IsZero():
		s.sessions.Store(c.Session.ID, c.Session.Version)
	default:
		s.sessions.Delete(c.Session.ID)
	}
	return err
}

const countEnded = `SELECT COUNT(*) FROM sessions WHERE id = $1 AND ended_at <> 0`

// endsNow reports whether a session ends that had not ended before.
func endsNow(ctx context.Context, t *tx, session permissions.AgentSession) (bool, error) {
	if session.EndedAt.IsZero() {
		return false, nil
	}
	before, err := count(ctx, t, countEnded, session.ID)
	return before == 0, err
}

var (
	insertSession = `INSERT INTO sessions (` + sessionColumns + `, turns, pruned) VALUES (` + parameters(sessionColumns) +
		`, 0, FALSE) ON CONFLICT (id) DO NOTHING`

	updateSession = `UPDATE sessions SET (` + movingColumns + `) = (` + parameters(movingColumns) + `) WHERE id = $11 AND version = $12`
)

// moveSession writes the row if its version is still the one that session was made from.
func moveSession(ctx context.Context, t *tx, session permissions.AgentSession) error {
	text, args := insertSession, sessionFields(&session)
	if session.Version != 1 {
		text, args = updateSession, append(movingFields(&session), session.ID, session.Version-1)
	}
	result, err := t.ExecContext(ctx, text, args...)
	if err != nil {
		return err
	}
	if n, _ := result.RowsAffected(); n == 0 {
		return fmt.Errorf("commit version %d of session %s: %w", session.Version, session.ID, agents.ErrStale)
	}
	return nil
}

const (
	dropTurns = `UPDATE turns SET dropped_at = $1 WHERE session = $2 AND seq <= $3 AND dropped_at = 0`

	countTurn = `UPDATE sessions SET turns = turns + $1 WHERE id = $2 RETURNING turns`

	insertTurn = `INSERT INTO turns (session, seq, at, dropped_at, content) VALUES ($1, $2, $3, 0, $4)`
)

// writeTurns drops the turns that a summary replaces, then adds the new ones.
func writeTurns(ctx context.Context, t *tx, c agents.Commit) error {
	id := c.Session.ID
	if c.Drops > 0 {
		if err := t.exec(ctx, dropTurns, micros(c.Session.ChangedAt), id, c.Drops); err != nil {
			return err
		}
	}
	if len(c.Turns) == 0 {
		return nil
	}
	last := int64(0)
	if err := t.returning(ctx, countTurn, len(c.Turns), id).Scan(&last); err != nil {
		return err
	}
	for i, turn := range c.Turns {
		seq := last - int64(len(c.Turns)-1-i)
		if err := t.exec(ctx, insertTurn, id, seq, instant{&turn.At}, raw{&turn.Content}); err != nil {
			return err
		}
	}
	return nil
}

const executionColumns = `session, step, call, tool, arguments, began_at, ended_at, success, exit_code, error, affected_path`

func executionFields(e *agents.Execution) []any {
	return []any{
		&e.Session, &e.Step, &e.Call, &e.Tool, canonical{raw{&e.Arguments}}, instant{&e.Began}, instant{&e.Ended}, &e.Success, &e.Exit,
		&e.Error, &e.AffectedPath,
	}
}

// writeExecution writes a call and its start once; a later writer may not know them any more.
var writeExecution = `INSERT INTO tool_calls (` + executionColumns + `) VALUES (` + parameters(executionColumns) + `) ` +
	`ON CONFLICT (session, step, call) DO UPDATE SET (ended_at, success, exit_code, error) = ` +
	`(excluded.ended_at, excluded.success, COALESCE(excluded.exit_code, tool_calls.exit_code), excluded.error)`

const (
	readCallEnded = `SELECT ended_at FROM tool_calls WHERE session = $1 AND step = $2 AND call = $3`

	returnID = ` RETURNING id`
)

// finished records the end of a call, once: a finished row may be written again.
func (s *Store) finished(ctx context.Context, t *tx, of permissions.AgentSession, e agents.Execution, before time.Time) error {
	if e.Ended.IsZero() || !before.IsZero() {
		return nil
	}
	return s.append(ctx, t, permissions.Record{
		Type: permissions.ToolFinished, At: e.Ended, Actor: of.Caller().Name, Detail: map[string]string{
			"session": string(of.ID), "person": of.Person, "agent": of.Agent, "execution": strconv.FormatInt(e.ID, 10),
			"tool": e.Tool, "success": strconv.FormatBool(e.Success), "affected_path": e.AffectedPath,
		},
	})
}

const insertArtifact = `INSERT INTO artifacts (session, step, call, type, content) VALUES ($1, $2, $3, $4, $5)`

func (s *Store) writeExecutions(ctx context.Context, t *tx, c agents.Commit) error {
	for _, e := range c.Executions {
		e.Session = c.Session.ID
		var before time.Time
		err := t.QueryRowContext(ctx, readCallEnded, e.Session, e.Step, e.Call).Scan(instant{&before})
		if err == nil || errors.Is(err, sql.ErrNoRows) {
			err = t.returning(ctx, writeExecution+returnID, executionFields(&e)...).Scan(&e.ID)
		}
		if err == nil {
			err = s.finished(ctx, t, c.Session, e, before)
		}
		if err != nil {
			return err
		}
	}
	for _, a := range c.Artifacts {
		if err := t.exec(ctx, insertArtifact, c.Session.ID, a.Step, a.Call, a.Type, raw{&a.Content}); err != nil {
			return err
		}
	}
	return nil
}

const (
	readTimetables = `SELECT agent, next_at, asked, mac FROM timetables`

	readTimetable = readTimetables + ` WHERE agent = $1`

	writeTimetable = `INSERT INTO timetables (agent, next_at, asked, mac) VALUES ($1, $2, $3, $4) ` +
		`ON CONFLICT (agent) DO UPDATE SET (next_at, asked, mac) = (excluded.next_at, excluded.asked, excluded.mac)`
)

func timetableFields(tt *agents.Timetable) []any {
	return []any{&tt.Agent, instant{&tt.Next}, &tt.Asked}
}

// Timetable is when a scheduled agent runs, if it was set. A row whose seal does not hold counts as none, and is logged.
func (s *Store) Timetable(ctx context.Context, agent string) (tt agents.Timetable, found bool, err error) {
	err = s.read(ctx, func(from source) error {
		all, err := collect(ctx, from, "", rowOf(timetableFields), readTimetable, agent)
		for _, r := range all {
			if tt, found = r.row, s.seals.holds(r.mac, "timetables", timetableFields(&r.row)...); !found {
				tt = agents.Timetable{}
				s.logUnsealed("timetable of " + agent)
			}
		}
		return err
	})
	return tt, found, err
}

// SetTimetable replaces the timetable of a scheduled agent.
func (s *Store) SetTimetable(ctx context.Context, tt agents.Timetable) error {
	return s.execute(ctx, writeTimetable, append(timetableFields(&tt), s.seals.seal("timetables", timetableFields(&tt)...))...)
}
