package store

import (
	"strings"
	"testing"
)

// TestPlans asks SQLite how it would run each statement: none reads a whole table, so that nothing becomes slower as
// rows are added, and lists of what is open come from the small index made for them.
func TestPlans(t *testing.T) {
	s := newStore(t)
	for _, c := range []struct{ name, text, index string }{
		{"readRequest", readRequest, "id=?"},
		{"readVotes", readVotes, "PRIMARY KEY (request=?)"},
		{"readByKey", readByKey, "requests_key"},
		{"readEqual", readEqual, "requests_equal"},
		{"countCaller", countCaller, "requests_equal"},
		{"countKey", countKey, "votes_key"},
		{"countPending", countPending, "requests_"},
		{"updateRequest", updateRequest, "rowid=?"},
		{"addVote", addVote, "PRIMARY KEY (request=?)"},
		{"readNewest", readNewest, "SEARCH requests"},
		{"readNumber", readNumber, "rowid=?"},
		{"readPosition", readPosition, "id=?"},
		{"readPending", readPending, "requests_pending"},
		{"readPendingOf", readPendingOf, "requests_pending"},
		{"overdue", overdue, "requests_deadline"},
		{"coming", coming, "requests_deadline"},
		{"uncollected", uncollected, "requests_uncollected"},
		{"collectable", collectable, "requests_uncollected"},
		{"readGrants", readGrants, "grants_live"},
		{"readCopies", readCopies, "PRIMARY KEY (request=?)"},
		{"upsertCopy", upsertCopy, ""},
		{"noteShownOne", noteShownOne, "id=?"},
		{"readLagging", readLagging, "requests_lagging"},
		{"notePending", notePending, "requests_"},
		{"noteSettled", noteSettled, "requests_lagging"},
		{"forgetPending", forgetPending, "requests_"},
		{"forgetSettled", forgetSettled, "requests_lagging"},
		{"newestEntry", newestEntry, "PRIMARY KEY (chain=?)"},
		{"readAudit", readAudit, "PRIMARY KEY (chain=?"},
	} {
		plan := explain(t, s, c.text)
		if !strings.Contains(plan, c.index) {
			t.Errorf("%s does not use %s:\n%s", c.name, c.index, plan)
		}
		for line := range strings.Lines(plan) {
			small := strings.Contains(line, "INDEX requests_") || // holds what is open
				strings.Contains(line, "VIRTUAL TABLE") || strings.Contains(line, "SCAN waiting")
			if strings.Contains(line, "SCAN") && !small || strings.Contains(line, "TEMP B-TREE") && c.name != "readGrants" {
				t.Errorf("%s reads too much:\n%s", c.name, plan)
			}
		}
	}
}

func explain(t *testing.T, s *Store, text string) string {
	t.Helper()
	var args []any
	for n := 1; strings.Contains(text, parameter(n)); n++ {
		args = append(args, n)
	}
	rows, err := s.readers.Query("EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer func() { _ = rows.Close() }()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var line string
		if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
