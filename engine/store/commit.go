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
		writeTurns(ctx, t, c)
		for _, number := range c.Taken {
			t.exec(ctx, takePost, micros(c.Session.ChangedAt), number, c.Session.ID)
		}
		if err := s.writeExecutions(ctx, t, c); err != nil {
			return err
		}
		s.append(ctx, t, c.Records...)
		t.exec(ctx, sealSession, t.seq, s.seals.session(c.Session, t.seq), c.Session.ID)
		return nil
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

// endsNow reports whether a session ends that had not ended before.
func endsNow(ctx context.Context, t *tx, session permissions.AgentSession) (bool, error) {
	if session.EndedAt.IsZero() {
		return false, nil
	}
	before, err := count(ctx, t, `SELECT COUNT(*) FROM sessions WHERE id = $1 AND ended_at <> 0`, session.ID)
	return before == 0, err
}

var (
	insertSession = `INSERT INTO sessions (` + sessionColumns + `, turns, pruned) VALUES (` + parameters(sessionColumns) +
		`, 0, FALSE) ON CONFLICT (id) DO NOTHING`

	updateSession = `UPDATE sessions SET (` + changingSessionColumns + `) = (` +
		parameters(changingSessionColumns) + `) WHERE id = $11 AND version = $12`
)

// moveSession writes the row if its version is still the one that session was made from.
func moveSession(ctx context.Context, t *tx, session permissions.AgentSession) error {
	text, args := insertSession, sessionFields(&session)
	if session.Version != 1 {
		text, args = updateSession, append(changingSessionFields(&session), session.ID, session.Version-1)
	}
	if t.affected(ctx, text, args...) == 0 {
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
func writeTurns(ctx context.Context, t *tx, c agents.Commit) {
	id := c.Session.ID
	if c.Drops > 0 {
		t.exec(ctx, dropTurns, micros(c.Session.ChangedAt), id, c.Drops)
	}
	if len(c.Turns) == 0 {
		return
	}
	last := int64(0)
	t.returning(ctx, &last, countTurn, len(c.Turns), id)
	for i, turn := range c.Turns {
		seq := last - int64(len(c.Turns)-1-i)
		t.exec(ctx, insertTurn, id, seq, instant{&turn.At}, rawJSON{&turn.Content})
	}
}

// writeExecution writes a call and its start once; a later writer may not know them any more.
var writeExecution = `INSERT INTO tool_calls (` + executionColumns + `) VALUES (` + parameters(executionColumns) + `) ` +
	`ON CONFLICT (session, step, call) DO UPDATE SET (ended_at, success, exit_code, error) = ` +
	`(excluded.ended_at, excluded.success, COALESCE(excluded.exit_code, tool_calls.exit_code), excluded.error)`

const readCallEnded = `SELECT ended_at FROM tool_calls WHERE session = $1 AND step = $2 AND call = $3`

// recordCallEnd records the end of a call, once: a finished row may be written again.
func (s *Store) recordCallEnd(ctx context.Context, t *tx, of permissions.AgentSession, e agents.Execution, before time.Time) {
	if e.Ended.IsZero() || !before.IsZero() {
		return
	}
	s.append(ctx, t, permissions.Record{
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
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		t.returning(ctx, &e.ID, writeExecution+` RETURNING id`, executionFields(&e)...)
		s.recordCallEnd(ctx, t, c.Session, e, before)
	}
	for _, a := range c.Artifacts {
		t.exec(ctx, insertArtifact, c.Session.ID, a.Step, a.Call, a.Type, rawJSON{&a.Content})
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

var timetableGate = gate[agents.Timetable]{
	table: "timetables", fields: timetableFields, sealed: timetableFields,
	name: func(tt agents.Timetable) string { return "timetable of " + tt.Agent },
}

// Timetable is when a scheduled agent runs, if it was set. A row whose seal does not hold counts as none, and is logged.
func (s *Store) Timetable(ctx context.Context, agent string) (tt agents.Timetable, found bool, err error) {
	err = s.read(ctx, func(from source) error {
		all, err := readSealedRows(ctx, s, from, timetableGate, readTimetable, agent)
		for _, tt = range all {
			found = true
		}
		return err
	})
	return tt, found, err
}

// SetTimetable replaces the timetable of a scheduled agent.
func (s *Store) SetTimetable(ctx context.Context, tt agents.Timetable) error {
	return s.execute(ctx, writeTimetable, timetableGate.args(s.seals, tt)...)
}
