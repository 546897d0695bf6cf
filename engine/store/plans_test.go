package store

import (
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"

	"github.com/daycared/daycared/permissions"
)

// TestPlans checks SQLite's query plans: no statement scans a whole table, so that nothing gets slower as rows are
// added, and lists of open items use their small index.
func TestPlans(t *testing.T) {
	s := newStore(t)
	sorted := map[string]bool{ // the few in force or due
		"readPending": true, "readPendingNumbers": true, "readUnaddressed": true, "readLately": true, // in the order of whom they ask
		"readGrants": true, "readGates": true, "duePending": true, "readBurst": true,
	}
	for _, c := range []struct{ name, text, index string }{
		{"readRequest", readRequest, "id=?"},
		{"readByKey", readByKey, "requests_key"},
		{"meetByKey", findByKey, "requests_key"},
		{"meetEqual", findEqual, "requests_equal (caller=? AND session=? AND digest=?)"},
		{"findKept", findEqual, "requests_kept (caller=? AND session=? AND digest=? AND decided_at>? AND decided_at<?)"},
		{"meetAll", findDuplicatesSQL + "0", "requests_equal"},
		{"countKey", countKey, "votes_key"},
		{"countPending", countPending, "requests_"},
		{"updateRequest", updateRequest, "rowid=?"},
		{"addVote", addVote, "PRIMARY KEY (request=?)"},
		{"readNewest", readNewest, "SEARCH requests"},
		{"readBelow", readBelow, "rowid<?"},
		{"readLately", readLately, "requests_pending"},
		{"readNumber", readNumber, "rowid=?"},
		{"readPosition", readPosition, "id=?"},
		{"readPending", readPending, "SEARCH next USING COVERING INDEX requests_pending (asked=? AND number>?)"},
		{"readHistory", readHistory, "rowid>?"},
		{"firstDecided", firstDecided, "requests_settled (pruned=? AND decided_at>?)"},
		{"lately", lately, "requests_settled (pruned=? AND decided_at>? AND decided_at<?)"},
		{"latest", latest, "requests_settled (pruned=? AND decided_at>? AND decided_at<?)"},
		{"readUnheeded", readUnheeded, "requests_refused (caller=? AND decided_at>?)"},
		{"readResumed", readResumed, "audit_gates (request=?)"},
		{"readStops", readStops, "audit_gates (request=?)"},
		{"readShuts", readRestrictionEntries, "audit_gates (request=?)"},
		{"allowedBefore", allowedBefore, "requests_allowed (action=? AND decided_at>? AND decided_at<?)"},
		{"uncollected", uncollected, "requests_uncollected"},
		{"nextUncollected", nextUncollected, "requests_uncollected"},
		{"duePending", duePending, "SCAN requests USING INDEX requests_pending"},
		{"nextPending", nextPending, "USING COVERING INDEX requests_pending"},
		{"meetAll, denied", findDuplicatesSQL + "0", "INDEX requests_denied (caller=? AND action=? AND decided_at>? AND decided_at<?)"},
		{"readVotesOf", readVotesOf, "PRIMARY KEY (request=?)"},
		{"readVotesBetween", readVotesBetween, "PRIMARY KEY (request>? AND request<?)"},
		{"readSeqFromEnd", readSeqFromEnd, "rowid>? AND rowid<?"},
		{"readNumbers", readNumbers, "(id=?)"},
		{"readShapes", readShapes, "rowid>?"},
		{"readGrants", readGrants, "grants_live"},
		{"readGrantsInForce", readGrantsInForce, "grants_open_ids (id>?)"},
		{"readGrant", readGrant, "PRIMARY KEY (id=?)"},
		{"readGrantsOf", readGrantsOf, "grants_request"},
		{"soonestGrant", soonestGrant, "COVERING INDEX grants_open"},
		{"readEnded", readEnded, "grants_open"},
		{"countUse", countUse, "PRIMARY KEY (id=?)"},
		{"countLeft", countLeft, "grants_request"},
		{"readLeft", readLeft, "grants_request"},
		{"readGrantInForce", readGrantInForce, "PRIMARY KEY (id=?)"},
		{"releaseKey", releaseKey, "rowid=?"},
		{"readSealed", readSealed, "rowid>?"},
		{"sealRequest", sealRequest, "rowid=?"},
		{"releaseOwn", releaseOwn, "id=?"},
		{"releaseUses", releaseUses, "rowid=?"},
		{"readOpenGrants", readOpenGrants, "PRIMARY KEY (id=?)"},
		{"deleteVotes", deleteVotes, "PRIMARY KEY (request=?)"},
		{"deleteFailed", deleteFailed, "PRIMARY KEY (request=? AND person=?)"},
		{"readPendingNumbers", readPendingNumbers, "requests_pending"},
		{"revokeToken", revokeToken, "PRIMARY KEY (id=?)"},
		{"revokeGrant", revokeGrant, "PRIMARY KEY (id=?)"},
		{"readRan", readRan, "PRIMARY KEY (granted=?)"},
		{"readNotices", readNotices, "PRIMARY KEY (id>?)"},
		{"deleteNotice", deleteNotice, "PRIMARY KEY (id=?)"},
		{"countStrangers", countUnknownSenders, "(via=? AND account=?)"},
		{"readStrangers", readUnknownSenders, "strangers_told"},
		{"readToldAt", readToldAt, "strangers_told"},
		{"forgetStrangers", forgetUnknownSenders, "strangers_told"},
		{"tellStrangers", markUnknownSendersTold, "strangers_told"},
		{"deleteStrangers", deleteUnknownSenders, "strangers_told"},
		{"readToken", readToken, "(hash=?)"},
		{"readEntryHash", readEntryHash, "rowid=?"},
		{"grants.set", grantGate.set, "PRIMARY KEY (id=?)"},
		{"tokens.set", tokenGate.set, "PRIMARY KEY (id=?)"},
		{"locks.set", lockGate.set, "PRIMARY KEY (person=?)"},
		{"deleteLock", deleteLock, "PRIMARY KEY (person=?)"},
		{"readAskedFrom", readAskedFrom, "requests_settled (pruned=? AND decided_at>?)"},
		{"readApprovedBy", readApprovedBy, "requests_settled (pruned=? AND decided_at>?)"},
		{"pairings.set", pairingGate.set, "PRIMARY KEY (person=? AND via=?)"},
		{"readTokenByID", readTokenByID, "PRIMARY KEY (id=?)"},
		{"readTokensOf", readTokensOf, "tokens_name"},
		{"addCopy", addCopy, ""},
		{"readBurst", readBurst, "copies_burst (burst=?)"},
		{"readTogether", readTogether, "PRIMARY KEY (request=?)"},
		{"readPendingIn", readPendingIn, "requests_place"},
		{"readPlaces", readPlaces, "COVERING INDEX requests_place"},
		{"readUnaddressed", readUnaddressed, "requests_pending"},
		{"readPayloads", readPayloads, "requests_settled (pruned=? AND decided_at<?)"},
		{"oldRequests", oldRequests, "requests_settled (pruned=? AND decided_at<?)"},
		{"blankVotes", blankVotes, "PRIMARY KEY (request=?)"},
		{"deleteUsesOf", deleteUsesOf, "grants_request"},
		{"deleteUses", deleteUses, "uses_request"},
		{"deleteGrants", deleteGrants, "grants_request"},
		{"deleteVotesOf", deleteVotesOf, "PRIMARY KEY (request=?)"},
		{"deleteCopies", deleteCopies, "PRIMARY KEY (request=?)"},
		{"deleteRequests", deleteRequests, "rowid=?"},
		{"deleteNotices", deleteNotices, "notices_created"},
		{"readKnown", readKnown, "(key=?)"},
		{"countUnheard", countUndelivered, "messages_unheard"},
		{"readUnheard", readUndelivered, "messages_unheard"},
		{"noteHeard", noteDelivered, "rowid=?"},
		{"countSaid", countAgentMessages, "utterances_key"},
		{"countUnsaid", countUnsent, "utterances_unsaid"},
		{"readUnsaid", readUnsent, "utterances_unsaid"},
		{"noteSent", noteSent, "rowid=?"},
		{"noteDone", noteDone, "rowid=?"},
		{"trimSaid", trimAgentMessages, "utterances_said"},
		{"trimAuthors", trimAuthors, "authors_agent"},
		{"readAuthor", readAuthor, "(via=? AND ref=?)"},
		{"readForeground", readForeground, "PRIMARY KEY (person=? AND via=?)"},
		{"readAllPending", readAllPending, "requests_"},
		{"deleteUnheard", deleteUndelivered, "messages_waiting"},
		{"deleteHeard", deleteDelivered, "messages_heard"},
		{"deleteUnsaid", deleteUnsent, "utterances_waiting"},
		{"deleteSaid", deleteSent, "utterances_sent"},
		{"deleteAuthors", deleteAuthors, "authors_sent"},
		{"deleteAudit", deleteAudit, "rowid>? AND rowid<?"},
		{"readEvents", readEvents, "entries USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		{"readFirst", readFirst, "rowid>? AND rowid<?"},
		{"readNewestTime", readNewestTime, "rowid>? AND rowid<?"},
		{"readCopies", readCopies, "PRIMARY KEY (request=?)"},
		{"upsertCopy", upsertCopy, ""},
		{"noteShownOne", noteShownOne, "id=?"},
		{"readLagging", readLagging, "requests_lagging"},
		{"notePending", notePending, "requests_"},
		{"noteSettled", noteSettled, "requests_lagging"},
		{"readLive", readLive, "requests_"},
		{"forgetCopy", forgetCopy, "PRIMARY KEY (request=? AND person=? AND connector=? AND place=?)"},
		{"hasLaterEntry", hasLaterEntry, "INDEX audit_sessions (actor=? AND rowid>? AND rowid<?)"},
		{"sealSession", sealSession, "(id=?)"},
		{"forgetSettled", forgetSettled, "requests_lagging"},
		{"readSession", readSession, "(id=?)"},
		{"readCurrentSession", readCurrentSession, "sessions_current"},
		{"readWaitingSession", readWaitingSession, "sessions_waiting"},
		{"readOpenSessions", readOpenSessions, "sessions_open"},
		{"readSessions", readSessions, "(id>?)"},
		{"readSessionsOf", readSessionsOf, "sessions_person (person=? AND id>?)"},
		{"updateSession", updateSession, "(id=?)"},
		{"readTurns", readTurns, "turns_transcript"},
		{"dropTurns", dropTurns, "turns_transcript"},
		{"countTurn", countTurn, "(id=?)"},
		{"readExecutions", readExecutions, "(session=? AND step=?)"},
		{"countPosted", countPosted, "(session=? AND key=?)"},
		{"countUntaken", countUntaken, "posts_waiting"},
		{"readPosts", readPosts, "posts_waiting"},
		{"takePost", takePost, "rowid=?"},
		{"readTimetable", readTimetable, "PRIMARY KEY (agent=?)"},
		{"readPendingOfSession", readPendingOfSession, "requests_equal"},
		{"readPendingOfCaller", readPendingOfCaller, "requests_equal (caller=? AND session=?)"},
		{"readKeptOfCaller", readKeptOfCaller, "requests_kept (caller=? AND session=?)"},
		{"readGrantsOfSession", readGrantsOfSession, "grants_live"},
		{"readCursor", readCursor, "PRIMARY KEY (name=?)"},
		{"wordySessions", wordySessions, "sessions_ended (pruned=? AND ended_at>? AND ended_at<?)"},
		{"oldSessions", oldSessions, "sessions_ended (pruned=? AND ended_at>? AND ended_at<?)"},
		{"deleteTurns", deleteTurns, "(session=?)"},
		{"deletePosts", deletePosts, "(session=?)"},
		{"deleteArtifacts", deleteArtifacts, "(session=?)"},
		{"blankExecutions", blankExecutions, "(session=?)"},
		{"deleteExecutions", deleteExecutions, "(session=?)"},
		{"blankSessions", blankSessions, "(id=?)"},
		{"deleteSessions", deleteSessions, "(id=?)"},
		{"deleteDropped", deleteDropped, "turns_dropped"},
		{"deleteTaken", deleteTaken, "posts_taken"},
		{"newestEntry", newestEntry, "rowid>? AND rowid<?"},
		{"readAudit", readAudit, "rowid>? AND rowid<?"},
		{"putSuspension", putSuspension, ""},
		{"readGates", readGates, "INDEX audit_gates (request=?)"},
		{"readNumber, the audit", readNumber, "INDEX audit_gates (request=?)"},
		{"readNumbered", readNumbered, "(id=?)"},
		{"keepPrev", keepPrev, "rowid=?"},
		{"readEntries", readEntries, "rowid>? AND rowid<?"},
		{"deletePruned", deletePruned, "pruned_seq"},
	} {
		plan := explain(t, s, c.text)
		if strings.Contains(c.text, "LIMIT $") {
			t.Errorf("%s is prepared anew each time that its limit is bound", c.name)
		}
		if !strings.Contains(plan, c.index) {
			t.Errorf("%s does not use %s:\n%s", c.name, c.index, plan)
		}
		for line := range strings.Lines(plan) {
			small := strings.Contains(line, "INDEX requests_") || strings.Contains(line, "INDEX grants_open") || // contain what is open
				strings.Contains(line, "SCAN CONSTANT ROW") || strings.Contains(line, "SCAN meta") || strings.Contains(line, "SCAN none") || // one row
				strings.Contains(line, "VIRTUAL TABLE") || strings.Contains(line, "SCAN waiting") ||
				strings.Contains(line, "SCAN asked_lists") // each that any pending request has
			if strings.Contains(line, "SCAN") && !small || strings.Contains(line, "TEMP B-TREE") && !sorted[c.name] {
				t.Errorf("%s reads too much:\n%s", c.name, plan)
			}
		}
	}
}

// TestOnesPendingReadsNobodyElses: beside 10,000 requests of others, a list of one person's looks at each distinct list of people, and
// again to see that no more follow.
func TestOnesPendingReadsNobodyElses(t *testing.T) {
	s := newStore(t)
	var fays []permissions.ID
	for range 5 {
		fays = append(fays, insert(t, s).ID)
	}
	const table = requestColumns + ", key_live, shown, pruned, action, due_at, mac"
	others := strings.NewReplacer("number, id, ", "number + 10 + value, id || value, ", " asked, ", ` '["kim"]', `).Replace(table)
	if _, err := s.writer.Exec(`WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 10000) ` +
		`INSERT INTO requests (` + table + `) SELECT ` + others + ` FROM requests, n ` +
		`WHERE id = '` + string(fays[0]) + `'`); err != nil {
		t.Fatal(err)
	}
	last := insert(t, s).ID
	s.readers.SetMaxOpenConns(1)
	conn, err := s.readers.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	err = conn.Raw(func(c any) error {
		return c.(*sqlite3.SQLiteConn).RegisterFunc("json_valid", func(any) bool { looked++; return true }, true)
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	for after, want := range map[permissions.ID][]permissions.ID{"": fays[:3], fays[3]: {fays[4], last}} {
		looked = 0
		page, err := s.Pending(t.Context(), "fay", after, 3)
		if err != nil || len(page) != len(want) || page[0].ID != want[0] || page[len(page)-1].ID != want[len(want)-1] ||
			looked == 0 || looked > 2*3 {
			t.Errorf("after %q: %d, and %d lists of people were looked at; %v", after, len(page), looked, err)
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
