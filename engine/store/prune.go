package store

import (
	"context"
	"strconv"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Prune deletes at most limit rows that are older than keep allows at now, and reports whether there may be more. Each
// kind is a transaction of its own:
//
//   - the words of settled requests;
//   - of messages between people and our own agents, those never delivered and the authors, at the age of words; the
//     keys of the rest at the age of requests, since a chat may deliver an event again;
//   - the words and calls of ended sessions, at the age of words, and the sessions, at the age of requests; of an open
//     session only what left its transcript, and the keys of its posts;
//   - settled requests with their votes, copies, uses and ended grants. A request whose grant is in force stays, and so
//     does the newest, from whose number the next codes are made;
//   - undeliverable notices, and revoked or expired tokens, of the same age;
//   - unknown senders, a day after the owner was told of them;
//   - the start of the audit, signed off by an entry at its end.
//
// Pending requests and what an open session works with are never deleted. An unreadable row does not block the others.
func (s *Store) Prune(ctx context.Context, keep permissions.Keep, now time.Time, limit int) (more bool, err error) {
	for _, part := range []struct {
		keep   time.Duration
		delete pruner
	}{
		{keep.Payloads, prunePayloads},
		{keep.Payloads, sort(deleteUndelivered)},
		{keep.Payloads, sort(deleteUnsent)},
		{keep.Payloads, sort(deleteAuthors)},
		{keep.Payloads, sort(deleteDropped)},
		// What remains says which tools were called when, and whether they succeeded.
		{keep.Payloads, ofSessions(wordySessions, deleteTurns, deletePosts, deleteArtifacts, blankExecutions, blankSessions)},
		{keep.Requests, sort(deleteDelivered)},
		{keep.Requests, sort(deleteSent)},
		{keep.Requests, sort(deleteTaken)},
		{keep.Requests, ofSessions(oldSessions, deleteTurns, deletePosts, deleteArtifacts, deleteExecutions, deleteSessions)},
		{keep.Requests, s.audited(pruneRequests, now)},
		{keep.Requests, sort(deleteNotices)},
		{keep.Requests, s.audited(sort(deleteTokens), now)},
		{permissions.UnknownSendersEvery, sort(deleteUnknownSenders)},
		{keep.Audit, func(ctx context.Context, t *tx, before time.Time, limit int) (int, error) {
			return s.pruneAudit(ctx, t, before, now, limit)
		}},
	} {
		if part.keep <= 0 {
			continue
		}
		deleted := 0
		err := s.write(ctx, func(ctx context.Context, t *tx) (err error) {
			deleted, err = part.delete(ctx, t, now.Add(-part.keep), limit)
			return err
		})
		if err != nil {
			return false, err
		}
		if limit -= deleted; limit <= 0 {
			return true, nil
		}
	}
	return false, nil
}

// pruner deletes at most limit rows of one kind from before a time.
type pruner func(ctx context.Context, t *tx, before time.Time, limit int) (deleted int, err error)

// audited records in the audit that rows from before a time were deleted, so that other deletions are noticed.
func (s *Store) audited(prune pruner, now time.Time) pruner {
	return func(ctx context.Context, t *tx, before time.Time, limit int) (int, error) {
		n, err := prune(ctx, t, before, limit)
		if err == nil && n > 0 {
			s.append(ctx, t, permissions.Record{Type: permissions.RowsPruned, At: now, Detail: map[string]string{
				prunedBefore: before.UTC().Format(time.RFC3339Nano), howMany: strconv.Itoa(n),
			}})
		}
		return n, err
	}
}

const (
	oldRequests = `SELECT number, id FROM requests WHERE state <> 'pending' AND pruned IN (FALSE, TRUE) ` +
		`AND decided_at < $1 AND number < $2 AND NOT EXISTS (SELECT 1 FROM grants ` +
		`WHERE grants.request = requests.id AND revoked_at = 0 AND ended_at = 0) LIMIT 0 + $3`

	// A grant may have any number of uses, so they are deleted first, at most limit at a time.
	deleteUsesOf = `DELETE FROM uses WHERE (granted, request) IN (SELECT uses.granted, uses.request ` +
		`FROM json_each($1) AS old JOIN grants ON grants.request = old.value JOIN uses ON uses.granted = grants.id LIMIT 0 + $2)`
)

var (
	deleteUses     = deleteListed("uses", "request")
	deleteGrants   = deleteListed("grants", "request")
	deleteVotesOf  = deleteListed("request_votes", "request")
	deleteCopies   = deleteListed("request_copies", "request")
	deleteRequests = deleteListed("requests", "number")
	deleteSessions = deleteListed("sessions", "id")
)

// deleteListed deletes the rows whose column is in a list.
func deleteListed(table, column string) string {
	return `DELETE FROM ` + table + ` WHERE ` + column + ` IN (SELECT value FROM json_each($1))`
}

func pruneRequests(ctx context.Context, t *tx, before time.Time, limit int) (int, error) {
	type row struct {
		number int64
		id     permissions.ID
	}
	fields := func(r *row) []any { return []any{&r.number, &r.id} }
	old, err := collect(ctx, t, "", fields, oldRequests, micros(before), t.newest, limit)
	if err != nil || len(old) == 0 {
		return 0, err
	}
	var numbers []int64
	var ids []permissions.ID
	for _, r := range old {
		numbers, ids = append(numbers, r.number), append(ids, r.id)
		t.rows.drop(r.id)
	}
	byNumber, byID := list[int64]{&numbers}, list[permissions.ID]{&ids}
	if t.affected(ctx, deleteUsesOf, byID, limit) == int64(limit) {
		return limit, nil
	}
	t.exec(ctx, deleteUses, byNumber)
	t.exec(ctx, deleteGrants, byID)
	t.exec(ctx, deleteVotesOf, byNumber)
	t.exec(ctx, deleteCopies, byNumber)
	t.exec(ctx, keepPruned, t.seq, byNumber)
	t.exec(ctx, deleteRequests, byNumber)
	return len(old), nil
}

var (
	deleteNotices        = deleteSome("notices", "id", "created_at < $1")
	deleteUndelivered    = deleteSome("messages", "number", "heard_at = 0 AND created_at < $1")
	deleteDelivered      = deleteSome("messages", "number", "heard_at > 0 AND created_at < $1")
	deleteUnsent         = deleteSome("utterances", "number", "NOT done AND created_at < $1")
	deleteSent           = deleteSome("utterances", "number", "done AND created_at < $1")
	deleteAuthors        = deleteSome("authors", "number", "sent_at < $1")
	deleteTokens         = deleteSome("tokens", "id", "revoked_at > 0 AND revoked_at < $1 OR expires_at > 0 AND expires_at < $1")
	deleteDropped        = deleteSome("turns", "number", "dropped_at > 0 AND dropped_at < $1")
	deleteTaken          = deleteSome("posts", "number", "taken_at > 0 AND taken_at < $1")
	deleteUnknownSenders = deleteSome("strangers", "n", "told_at > 0 AND told_at <= $1 AND proposed_at <= $1")
)

// deleteSome deletes at most $2 of the rows that match a condition.
func deleteSome(table, key, condition string) string {
	return `DELETE FROM ` + table + ` WHERE ` + key + ` IN (SELECT ` + key + ` FROM ` + table + ` WHERE ` + condition + ` LIMIT 0 + $2)`
}

// sort is the pruner of one DELETE statement.
func sort(text string) pruner {
	return func(ctx context.Context, t *tx, before time.Time, limit int) (int, error) {
		return int(t.affected(ctx, text, micros(before), limit)), nil
	}
}

// Details of an AUDIT_PRUNED entry: the last deleted entry, its hash, and how many were deleted at once. A ROWS_PRUNED
// entry has the last deleted row and the time before which rows were deleted.
const (
	upTo         = "up_to"
	upToHash     = "hash"
	howMany      = "entries"
	prunedBefore = "before"
)

const (
	keepPrev = `UPDATE entries SET prev = (SELECT hash FROM entries WHERE key = ` + lowestKey + ` | $2) ` +
		`WHERE key = ` + lowestKey + ` | $2 + 1`
	deleteAudit = `DELETE FROM entries WHERE key BETWEEN ` + lowestKey + ` AND ` + lowestKey + ` | $2`

	keepPruned = `INSERT INTO pruned (number, id, digest, seq) SELECT number, id, digest, $1 FROM requests ` +
		`WHERE number IN (SELECT value FROM json_each($2))`

	deletePruned = `DELETE FROM pruned WHERE seq <= $1`
)

// pruneAudit deletes the start of the daemon's own chain up to the first entry to keep. The entry that signs this off
// is appended first in the same transaction, so it is never deleted by it.
func (s *Store) pruneAudit(ctx context.Context, t *tx, before, now time.Time, limit int) (int, error) {
	oldest, err := collect(ctx, t, "an entry of the audit", entryFields, readAudit, s.chain, 0, limit)
	if err != nil {
		return 0, err
	}
	n := 0
	for n < len(oldest) && oldest[n].At.Before(before) {
		n++
	}
	if n == 0 {
		return 0, nil
	}
	last := oldest[n-1]
	s.append(ctx, t, permissions.Record{Type: permissions.AuditPruned, At: now, Detail: map[string]string{
		upTo: strconv.FormatInt(last.Seq, 10), upToHash: last.Hash.String(), howMany: strconv.Itoa(n),
	}})
	t.exec(ctx, keepPrev, s.chain, last.Seq)
	t.exec(ctx, deleteAudit, s.chain, last.Seq)
	t.exec(ctx, deletePruned, last.Seq)
	s.tail.drop() // they may be among them
	return n, nil
}

const (
	readPayloads = `SELECT number, id, kind, options, calls FROM requests WHERE state <> 'pending' AND pruned = FALSE ` +
		`AND decided_at < $1 ORDER BY decided_at LIMIT 0 + $2`

	blankRequest = `UPDATE requests SET (options, calls, input, affected_path, message, details, reason, comment, ` +
		`choices, env_names, was, ruled, title, prompt, pruned) = ` +
		`($1, $2, '', '', '', '', '', '', '[]', '[]', '[]', '[]', '', '', TRUE) WHERE number = $3`

	blankVotes = `UPDATE request_votes SET comment = '' WHERE request = $1 AND comment <> ''`
)

// prunePayloads deletes words: inputs, their paths and rows of their files, messages, details, reasons, choices, comments and environment
// names. What remains says who asked for what kind of thing, where, and how it ended: kind, tags, tools, folder, option
// ids (no labels for a clarification, whose labels were its choices), the answer to each call, and the digest, with
// which whoever has the words can still prove them.
func prunePayloads(ctx context.Context, t *tx, before time.Time, limit int) (int, error) {
	fields := func(r *permissions.Request) []any {
		return []any{
			&r.Number, &r.ID, &r.Kind, offered{list[permissions.Option]{&r.Options}}, list[permissions.Call]{&r.Calls},
		}
	}
	old, err := collect(ctx, t, "", fields, readPayloads, micros(before), limit)
	if err != nil {
		return 0, err
	}
	for _, r := range old {
		for i, c := range r.Calls {
			r.Calls[i] = permissions.Call{N: c.N, Tool: c.Tool, Answer: c.Answer, By: c.By, At: c.At, EndsRun: c.EndsRun}
		}
		for i := range r.Options {
			if r.Kind == permissions.KindClarification {
				r.Options[i].Label = ""
			}
		}
		t.exec(ctx, blankRequest, offered{list[permissions.Option]{&r.Options}}, list[permissions.Call]{&r.Calls}, r.Number)
		t.exec(ctx, blankVotes, r.Number)
		t.rows.drop(r.ID)
	}
	return len(old), nil
}

// One session may have any number of rows. Each transaction deletes at most limit of the rows below; the session
// itself, or its mark that nothing is left, comes last.

const (
	wordySessions = `SELECT id FROM sessions WHERE ended_at > 0 AND pruned = FALSE AND ended_at < $1 ORDER BY ended_at LIMIT 0 + $2`

	oldSessions = `SELECT id FROM sessions WHERE ended_at > 0 AND pruned IN (FALSE, TRUE) AND ended_at < $1 LIMIT 0 + $2`

	blankExecutions = `UPDATE tool_calls SET arguments = 'null', error = '', affected_path = '' WHERE id IN (SELECT tool_calls.id ` +
		`FROM json_each($1) AS old JOIN tool_calls ON tool_calls.session = old.value ` +
		`WHERE tool_calls.arguments <> 'null' OR tool_calls.error <> '' LIMIT 0 + $2)`

	blankSessions = `UPDATE sessions SET step = '', pruned = TRUE WHERE id IN (SELECT value FROM json_each($1))`
)

var (
	deleteTurns      = deleteOfSessions("turns", "number")
	deletePosts      = deleteOfSessions("posts", "number")
	deleteArtifacts  = deleteOfSessions("artifacts", "id")
	deleteExecutions = deleteOfSessions("tool_calls", "id")
)

// deleteOfSessions deletes at most $2 of the rows of listed sessions.
func deleteOfSessions(table, key string) string {
	return `DELETE FROM ` + table + ` WHERE ` + key + ` IN (SELECT ` + table + `.` + key + ` FROM json_each($1) AS old ` +
		`JOIN ` + table + ` ON ` + table + `.session = old.value LIMIT 0 + $2)`
}

// ofSessions is the pruner that runs the steps on the sessions that a query finds until limit rows changed.
func ofSessions(find string, steps ...string) pruner {
	return func(ctx context.Context, t *tx, before time.Time, limit int) (int, error) {
		ids, err := collect(ctx, t, "", value[permissions.ID], find, micros(before), limit)
		if err != nil || len(ids) == 0 {
			return 0, err
		}
		old, changed := list[permissions.ID]{&ids}, 0
		for i, text := range steps {
			args := []any{old, limit - changed}
			if i == len(steps)-1 {
				args = args[:1]
			}
			if changed += int(t.affected(ctx, text, args...)); changed >= limit {
				return limit, nil
			}
		}
		return changed, nil
	}
}
