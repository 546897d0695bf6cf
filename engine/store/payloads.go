package store

import (
	"context"
	"time"

	"github.com/daycared/daycared/permissions"
)

const (
	readPayloads = `SELECT number, id, kind, options, calls FROM requests WHERE state <> 'pending' AND pruned = FALSE ` +
		`AND decided_at < $1 ORDER BY decided_at LIMIT 0 + $2`

	blankRequest = `UPDATE requests SET (options, calls, input, affected_path, message, details, reason, comment, ` +
		`choices, env_names, pruned) = ($1, $2, '', '', '', '', '', '', '[]', '[]', TRUE) WHERE number = $3`

	blankVotes = `UPDATE votes SET comment = '' WHERE request = $1 AND comment <> ''`
)

// prunePayloads deletes what was asked and answered in words: inputs and the paths in them, messages, details, reasons,
// choices, comments, names of the environment. What stays says who asked for what sort of thing, where, and how it
// ended: kind, tags, tools, folder, options by their ids (a clarification's without labels, which were its choices),
// the answer to each call, and the digest, by which whoever has the words can still prove that they are those.
func prunePayloads(ctx context.Context, t *tx, before time.Time, limit int) (int, error) {
	fields := func(r *permissions.Request) []any {
		return []any{
			&r.Number, &r.ID, &r.Kind, list[permissions.Option]{&r.Options}, list[permissions.Call]{&r.Calls},
		}
	}
	old, err := collect(ctx, t, "a request", fields, readPayloads, micros(before), limit)
	if err != nil {
		return 0, err
	}
	for _, r := range old {
		for i, c := range r.Calls {
			r.Calls[i] = permissions.Call{N: c.N, Tool: c.Tool, Answer: c.Answer}
		}
		for i := range r.Options {
			if r.Kind == permissions.KindClarification {
				r.Options[i].Label = ""
			}
		}
		_, err := t.ExecContext(ctx, blankRequest,
			list[permissions.Option]{&r.Options}, list[permissions.Call]{&r.Calls}, r.Number)
		if err != nil {
			return 0, err
		}
		if _, err := t.ExecContext(ctx, blankVotes, r.ID); err != nil {
			return 0, err
		}
		t.rows.drop(r.ID)
	}
	return len(old), nil
}
