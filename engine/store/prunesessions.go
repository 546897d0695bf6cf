package store

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

// What is deleted of a session is not bounded by the number of sessions: each transaction deletes at most limit of the
// rows below, and the session itself, or its mark that nothing is left to delete, comes when none was left.

const (
	wordySessions = `SELECT id FROM sessions WHERE ended_at > 0 AND pruned = FALSE AND ended_at < $1 ORDER BY ended_at LIMIT 0 + $2`

	oldSessions = `SELECT id FROM sessions WHERE ended_at > 0 AND pruned IN (FALSE, TRUE) AND ended_at < $1 LIMIT 0 + $2`

	deleteTurns = `DELETE FROM turns WHERE number IN (SELECT turns.number FROM json_each($1) AS old ` +
		`JOIN turns ON turns.session = old.value LIMIT 0 + $2)`

	deletePosts = `DELETE FROM posts WHERE number IN (SELECT posts.number FROM json_each($1) AS old ` +
		`JOIN posts ON posts.session = old.value LIMIT 0 + $2)`

	deleteArtifacts = `DELETE FROM artifacts WHERE id IN (SELECT artifacts.id FROM json_each($1) AS old ` +
		`JOIN artifacts ON artifacts.session = old.value LIMIT 0 + $2)`

	blankExecutions = `UPDATE tool_calls SET arguments = 'null', error = '' WHERE id IN (SELECT tool_calls.id ` +
		`FROM json_each($1) AS old JOIN tool_calls ON tool_calls.session = old.value ` +
		`WHERE tool_calls.arguments <> 'null' OR tool_calls.error <> '' LIMIT 0 + $2)`

	deleteExecutions = `DELETE FROM tool_calls WHERE id IN (SELECT tool_calls.id FROM json_each($1) AS old ` +
		`JOIN tool_calls ON tool_calls.session = old.value LIMIT 0 + $2)`

	blankSessions = `UPDATE sessions SET step = '', pruned = TRUE WHERE id IN (SELECT value FROM json_each($1))`

	deleteSessions = `DELETE FROM sessions WHERE id IN (SELECT value FROM json_each($1))`

	deleteDropped = `DELETE FROM turns WHERE number IN (SELECT number FROM turns WHERE dropped_at > 0 AND dropped_at < $1 LIMIT 0 + $2)`

	deleteTaken = `DELETE FROM posts WHERE number IN (SELECT number FROM posts WHERE taken_at > 0 AND taken_at < $1 LIMIT 0 + $2)`
)

// pruneWords deletes what was said and done in sessions that ended: transcripts, arguments and what came of calls. What
// stays says which tools were called when, and whether that worked.
func pruneWords(ctx context.Context, t *tx, before time.Time, limit int) (int, error) {
	return pruneSessionsBy(ctx, t, wordySessions, before, limit,
		deleteTurns, deletePosts, deleteArtifacts, blankExecutions, blankSessions)
}

// pruneSessions deletes sessions that ended, with all that is theirs.
func pruneSessions(ctx context.Context, t *tx, before time.Time, limit int) (int, error) {
	return pruneSessionsBy(ctx, t, oldSessions, before, limit,
		deleteTurns, deletePosts, deleteArtifacts, deleteExecutions, deleteSessions)
}

// pruneSessionsBy runs each of the steps on the sessions that a query finds, as long as no more than limit rows change.
func pruneSessionsBy(ctx context.Context, t *tx, find string, before time.Time, limit int, steps ...string) (int, error) {
	ids, err := collect(ctx, t, "a session", func(id *permissions.ID) []any { return []any{id} }, find, micros(before), limit)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	old, changed := list[permissions.ID]{&ids}, 0
	for i, text := range steps {
		args := []any{old, limit - changed}
		if i == len(steps)-1 {
			args = args[:1]
		}
		result, err := t.ExecContext(ctx, text, args...)
		if err != nil {
			return 0, err
		}
		n, _ := result.RowsAffected()
		if changed += int(n); changed >= limit {
			return limit, nil
		}
	}
	return changed, nil
}
