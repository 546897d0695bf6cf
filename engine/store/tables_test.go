package store

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/permissions"
)

// table is the result of a query, a line per row.
func table(t *testing.T, s *Store, query string) string {
	t.Helper()
	rows, err := s.readers.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if i > 0 {
				text.WriteString(" | ")
			}
			text.WriteString(strings.TrimSpace(fmt.Sprint(v)))
		}
		text.WriteString("\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func equal(t *testing.T, what, got, want string) {
	t.Helper()
	if strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}

// TestExecutionTables runs the documented queries, literally.
func TestExecutionTables(t *testing.T) {
	s := newStore(t)
	noon, zero := time.Date(2026, 11, 21, 12, 0, 0, 250_000_000, time.UTC), 0
	a := permissions.AgentSession{ID: "01JSESSION", Agent: "helper", Version: 1, ChangedAt: noon}
	err := s.Commit(t.Context(), agents.Commit{
		Session: a,
		Executions: []agents.Execution{
			{
				Step: 1, Call: 1, Tool: "run_command", Arguments: []byte(`{"command":"ls"}`), Began: noon,
				Ended: noon.Add(1234 * time.Millisecond), Success: true, Exit: &zero,
			},
			{Step: 1, Call: 2, Tool: "write_file", Arguments: []byte(`{}`), Began: noon, Ended: noon, Error: "denied by the user"},
			{Step: 2, Call: 1, Tool: "fetch_url", Arguments: []byte(`{"url":"x"}`), Began: noon},
		},
		Artifacts: []agents.Artifact{
			{Step: 1, Call: 2, Type: agents.ArtifactApprovalDenied, Content: []byte(`{"tool":"write_file"}`)},
			{Step: 1, Type: agents.ArtifactPrompt, Content: []byte(`"p"`)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	a.Version++ // the same calls, written again by a caller that knows neither their start nor their content: both stay
	again := agents.Execution{Step: 1, Call: 1, Began: noon.Add(time.Hour), Ended: noon.Add(1234 * time.Millisecond), Success: true}
	if err := s.Commit(t.Context(), agents.Commit{Session: a, Executions: []agents.Execution{again}}); err != nil {
		t.Fatal(err)
	}
	equal(t, "executions", table(t, s, `SELECT id, tool_name, arguments_json, timestamp, success, exit_code, duration_ms, `+
		`error_message FROM executions`), `
1 | run_command | {"command":"ls"} | 2026-11-21T12:00:00.250Z | 1 | 0 | 1234 | <nil>
2 | write_file | {} | 2026-11-21T12:00:00.250Z | 0 | <nil> | 0 | denied by the user
3 | fetch_url | {"url":"x"} | 2026-11-21T12:00:00.250Z | <nil> | <nil> | <nil> | <nil>`)
	equal(t, "artifacts", table(t, s, `SELECT id, execution_id, artifact_type, content_json FROM execution_artifacts`), `
1 | 2 | approval_denied | {"tool":"write_file"}
2 | <nil> | prompt | "p"`)
	for view, want := range server.Events().Views {
		names := table(t, s, `SELECT name FROM pragma_table_info('`+view+`')`)
		equal(t, view, strings.ReplaceAll(strings.TrimSpace(names), "\n", " "), strings.Join(want, " "))
	}
	n := strings.TrimSpace(table(t, s, `SELECT count(*) FROM sqlite_schema WHERE type = 'view' AND name NOT IN ('audit', 'votes', 'copies')`))
	if n != strconv.Itoa(len(server.Events().Views)) {
		t.Errorf("there are %s views, and the contract has %d", n, len(server.Events().Views))
	}
}

// TestSessionsTableHasTheStatusesOfTheContract: AWAITING_USER and the others, spelled as for front ends.
func TestSessionsTableHasTheStatusesOfTheContract(t *testing.T) {
	s := newStore(t)
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, status := range []permissions.Activity{
		permissions.Idle, permissions.Running, permissions.Paused, permissions.AwaitingUser, permissions.Interrupted,
	} {
		row := permissions.AgentSession{ID: permissions.ID(status), Agent: "helper", Version: 1, Status: status, CreatedAt: noon, ChangedAt: noon}
		if status == permissions.AwaitingUser {
			row.Request, row.Tool, row.EndedAt = "01JREQUEST", "ask_user", noon.Add(time.Hour)
		}
		if err := s.Commit(t.Context(), agents.Commit{Session: row}); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "statuses", table(t, s, `SELECT status FROM agent_sessions ORDER BY id`), "AWAITING_USER\nIDLE\nINTERRUPTED\nPAUSED\nRUNNING")
	equal(t, "one that waits", table(t, s, `SELECT agent, waiting_on, tool, debug, started, ended FROM agent_sessions `+
		`WHERE status = 'AWAITING_USER'`), `helper | 01JREQUEST | ask_user | false | 2026-11-21T12:00:00.000Z | 2026-11-21T13:00:00.000Z`)
}

// TestInteractionsTable: what was asked, and what people answered.
func TestInteractionsTable(t *testing.T) {
	s := newStore(t)
	asked := func(session string) permissions.Request {
		t.Helper()
		o := newAsk()
		r := &o.Request
		r.Kind, r.Tags, r.Reason = permissions.KindClarification, nil, ""
		r.Message, r.Choices, r.Session = "Which?", []string{`the "old"`, "the new"}, session
		r.CreatedAt = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		r.Deadline = r.CreatedAt.Add(time.Minute)
		r.Options = permissions.Offer(*r, nil, r.Widest)
		r.Digest = permissions.ComputeDigest(*r)
		stored, _, err := s.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return stored
	}
	tell := func(r permissions.Request, e permissions.Transition) {
		t.Helper()
		if _, err := s.Apply(t.Context(), r.ID, e); err != nil {
			t.Fatal(err)
		}
	}
	insert(t, s) // is no clarification
	at := asked("s-0").CreatedAt.Add(time.Second)
	answer := func(a permissions.Answer, words string) permissions.Transition {
		return permissions.Cast{Vote: permissions.Vote{By: "fay", Via: "terminal", Answer: a, Comment: words, At: at}}
	}
	tell(asked("s-1"), answer(permissions.Choose(2), ""))
	tell(asked("s-2"), answer(permissions.Other, "neither"))
	tell(asked("s-3"), permissions.Expire{At: at.Add(time.Hour)})
	tell(asked("s-4"), permissions.Withdraw{At: at})
	own := asked("")
	tell(asked("s-5"), permissions.Default{By: "fay", Via: "terminal", At: at})
	equal(t, "interactions", table(t, s, `SELECT id, task_id, conflict_description, options, response, timed_out, timestamp, `+
		`defaulted, state `+
		`FROM aic_interactions`), `
2 | s-0 | Which? | ["the \"old\"","the new"] | <nil> | false | 2026-11-21T12:00:00.000Z | false | pending
3 | s-1 | Which? | ["the \"old\"","the new"] | the new | false | 2026-11-21T12:00:00.000Z | false | answered
4 | s-2 | Which? | ["the \"old\"","the new"] | neither | false | 2026-11-21T12:00:00.000Z | false | answered
5 | s-3 | Which? | ["the \"old\"","the new"] | the "old" | true | 2026-11-21T12:00:00.000Z | false | answered
6 | s-4 | Which? | ["the \"old\"","the new"] | <nil> | false | 2026-11-21T12:00:00.000Z | false | cancelled
7 | `+string(own.ID)+` | Which? | ["the \"old\"","the new"] | <nil> | false | 2026-11-21T12:00:00.000Z | false | pending
8 | s-5 | Which? | ["the \"old\"","the new"] | the "old" | false | 2026-11-21T12:00:00.000Z | true | answered`)
}
