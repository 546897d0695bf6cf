package store

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// TestABadRowOfAListIsLeftOut: one unreadable notice, message or copy does not hide the others, and is logged once. A
// transcript is read completely or not at all.
func TestABadRowOfAListIsLeftOut(t *testing.T) {
	const two = "WITH two (n, at) AS (VALUES (1, 'x'), (2, 5)) INSERT INTO "
	const copied = "request_copies SELECT (SELECT number FROM requests WHERE state = 'pending'), " +
		"n, 'telegram', '', n, '', 0, 0, at, '', 0, '', '' FROM two"
	for name, c := range map[string]struct {
		rows string
		list func(ctx context.Context, s *Store) (int, error)
	}{
		"D9/notices": {"notices SELECT 'N' || n, 'fay', '', 'stop', '', '', 0, at, '', '', '', '', 0 FROM two",
			func(ctx context.Context, s *Store) (int, error) { return length(s.Notices(ctx, "", 9)) }},
		"D9/strangers": {"strangers (n, via, account, name, first_at, told_at) SELECT n, 'telegram', n, '', at, 0 FROM two",
			func(ctx context.Context, s *Store) (int, error) {
				met, err := s.UnknownSenders(ctx)
				return length(met.List, err)
			}},
		"D9/messages to an agent": {"messages SELECT n, n, 'one', 'fay', 'hi', at, 0 FROM two",
			func(ctx context.Context, s *Store) (int, error) { return length(s.UndeliveredMessages(ctx, "one", 9)) }},
		"D9/messages of an agent": {"utterances SELECT n, n, 'one', 'fay', 'cli', 'hi', 0, 0, at FROM two",
			func(ctx context.Context, s *Store) (int, error) { return length(s.UnsentAgentMessages(ctx, "one", 9)) }},
		"D9/copies in a chat": {copied,
			func(ctx context.Context, s *Store) (int, error) { return length(s.LiveCopies(ctx, "telegram", 9)) }},
		"D9/copies that are shown again": {copied,
			func(ctx context.Context, s *Store) (int, error) { return length(s.ShowAgain(ctx, "telegram", false)) }},
		"D9/copies of a request": {copied, func(ctx context.Context, s *Store) (int, error) {
			all, err := s.Pending(ctx, "", "", 1)
			if err != nil {
				return 0, err
			}
			return length(s.Copies(ctx, all[0].ID))
		}},
		"D9/sessions": {"sessions SELECT n, n, 1, 'one', 'fay', '', 'idle', '', 0, 0, '', '', 1, at, 0, 0, 0, '', 0, 0, '' FROM two",
			func(ctx context.Context, s *Store) (int, error) { return length(s.OpenSessions(ctx, "", 9)) }},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
			meddle(t, o.Store, two+c.rows)
			s, log := logged(t, o.path)
			for range 2 {
				if n, err := c.list(t.Context(), s); err != nil || n != 1 {
					t.Errorf("%d rows, %v; want the good one", n, err)
				}
			}
			if n := strings.Count(log.String(), "unreadable row skipped"); n != 1 {
				t.Errorf("it says that %d times:\n%s", n, log)
			}
		})
	}
}

func length[T any](all []T, err error) (int, error) { return len(all), err }

// TestRowsThatAreLeftOutHoldUpNoDeadline: D9/as many as one pass examines.
func TestRowsThatAreLeftOutHoldUpNoDeadline(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	for range 3 {
		insert(t, o.Store)
	}
	meddle(t, o.Store, "UPDATE requests SET tags = 'x', deadline = 5 WHERE state = 'pending'")
	o.Store, _ = logged(t, o.path)
	good := insert(t, o.Store)
	later := time.Now().Add(2 * time.Hour)
	for range 5 {
		due, _, err := o.Due(t.Context(), later, 3*time.Hour, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range due {
			_, err := o.Apply(t.Context(), d.ID, permissions.Expire{At: later})
			if err != nil && !errors.Is(err, permissions.ErrRow) && !errors.Is(err, permissions.ErrSettled) {
				t.Fatal(err)
			}
		}
	}
	if r, err := o.Read(t.Context(), good.ID); err != nil || r.State != permissions.Expired {
		t.Errorf("the request behind them is %s, %v", r.State, err)
	}
}

// TestWhomARequestAsksMayBeUnreadable: D9/for lists by person, or of requests without copies.
func TestWhomARequestAsksMayBeUnreadable(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	meddle(t, o.Store, "UPDATE requests SET asked = 'zz' WHERE state = 'pending' OR id IN (SELECT request FROM grants)")
	good := insert(t, o.Store)
	for name, list := range map[string]func() (int, error){
		"not asked yet": func() (int, error) { return length(o.RequestsWithoutCopies(t.Context(), "", 9)) },
		"pending":       func() (int, error) { return length(o.Pending(t.Context(), good.Asked[0], "", 9)) },
	} {
		if n, err := list(); err != nil || n != 1 {
			t.Errorf("%s: %d, %v; want the good one", name, n, err)
		}
	}
	if n, err := length(o.GrantsInForce(t.Context(), good.Asked[0], time.Now(), "", 99)); err != nil || n != 0 {
		t.Errorf("%d grants, %v", n, err)
	}
}

// TestVerifyReadsEveryRequest: D9/including numbers that daycared never assigns.
func TestVerifyReadsEveryRequest(t *testing.T) {
	for _, number := range []string{"-5", "0", "-9223372036854775808", "9223372036854775807"} {
		o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
		meddle(t, o.Store, "PRAGMA foreign_keys = off; UPDATE requests SET number = "+number+
			", state = 'approved', answer = 'allow_once' WHERE state = 'denied'")
		if _, err := o.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "request number ") {
			t.Errorf("%s: verify says %v", number, err)
		}
	}
}

// TestVerifyComparesUses: D9/what ran under a grant, and how often.
func TestVerifyComparesUses(t *testing.T) {
	for _, change := range []string{
		"UPDATE grants SET used = 0",
		"INSERT INTO uses SELECT grants.id, number FROM grants, requests WHERE state = 'denied'",
		"INSERT INTO uses SELECT id, 77 FROM grants",
		"INSERT INTO request_copies SELECT 99, 'fay', 'telegram', '', '1', '', 0, 0, 0, '', 0, '', ''",
	} {
		o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
		grant := o.grant(t)
		under := newAsk()
		r := &under.Request
		r.State, r.Answer, r.DecidedVia, r.DecidedAt, r.Grants = permissions.Approved, permissions.Allow(permissions.Once), "grant", r.CreatedAt,
			[]permissions.ID{grant}
		if _, _, err := o.Open(t.Context(), under); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
		meddle(t, o.Store, "PRAGMA foreign_keys = OFF; "+change)
		if _, err := o.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "is of something that is not there") {
			t.Errorf("%s: verify says %v", change, err)
		}
	}
}

// TestNothingIsClosedInWordsAlone: D9/with a trigger that ignores a change.
func TestNothingIsClosedInWordsAlone(t *testing.T) {
	for table, closes := range map[string]func(o *populatedStore) error{
		"grants": func(o *populatedStore) error {
			_, err := o.Revoke(t.Context(), o.grant(t), "fay", "cli", time.Now(), 9)
			return err
		},
		"tokens": func(o *populatedStore) error {
			_, err := o.RevokeToken(t.Context(), "T1", "op", "cli", time.Now())
			return err
		},
		"pairings": func(o *populatedStore) error {
			_, err := o.Unpair(t.Context(), "fay", "telegram", "op", "cli", time.Now())
			return err
		},
	} {
		o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
		event := "UPDATE"
		if table == "pairings" {
			event = "DELETE"
		}
		meddle(t, o.Store, "CREATE TRIGGER t BEFORE "+event+" ON "+table+" BEGIN SELECT raise(IGNORE); END")
		if err := closes(o); !errors.Is(err, permissions.ErrBroken) {
			t.Errorf("%s: it says %v", table, err)
		}
		if _, err := o.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "its schema is not that of daycared") {
			t.Errorf("%s: verify says %v", table, err)
		}
	}
}

// TestARowThatCannotBeReadHoldsUpNoPruning: D9/of words, requests, sessions, tokens and the audit.
func TestARowThatCannotBeReadHoldsUpNoPruning(t *testing.T) {
	for _, change := range []string{
		"UPDATE requests SET calls = '{' WHERE state = 'denied'",
		"UPDATE requests SET options = x'00' WHERE state = 'denied'",
		"PRAGMA foreign_keys = OFF; UPDATE requests SET id = CAST(id AS BLOB) WHERE state = 'denied'",
		"INSERT INTO sessions SELECT 1, x'53', 1, 'one', 'fay', '', 'idle', '', 0, 0, '', '', 1, 5, 0, 5, 0, '', 0, 0, ''",
	} {
		o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
		meddle(t, o.Store, change)
		keep, later, more := permissions.Keep{Payloads: 1, Requests: 1, Audit: 1}, time.Now().Add(48*time.Hour), true
		for n := 0; more && n < 9; n++ {
			var err error
			if more, err = o.Prune(t.Context(), keep, later, 100); err != nil {
				t.Fatalf("%s: %v", change, err)
			}
		}
		if _, err := o.Read(t.Context(), o.used.ID); permissions.CodeOf(err) != permissions.CodeUnknown || more {
			t.Errorf("%s: an old request is still there: %v, more: %t", change, err, more)
		}
	}
}

// TestAGrantThatCannotBeReadHoldsUpNoEndOfASession: D9/and ends with it.
func TestAGrantThatCannotBeReadHoldsUpNoEndOfASession(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	bad := o.grant(t)
	approve(t, o.Store, permissions.For(time.Hour))
	meddle(t, o.Store, "UPDATE grants SET caller = 'agent:one', session = 's1'")
	meddle(t, o.Store, "UPDATE grants SET call = '' WHERE id = $1", bad)
	if _, err := o.EndSessionGrants(t.Context(), "", "s1", time.Now()); err != nil {
		t.Fatal(err)
	}
	field := func(n *int64) []any { return []any{n} }
	const countOpen = "SELECT COUNT(*) FROM grants WHERE ended_at = 0 AND revoked_at = 0"
	if open, err := collect(t.Context(), o.writer, "", field, countOpen); err != nil || open[0] != 0 {
		t.Errorf("%v are open, %v", open, err)
	}
}

// TestAGrantThatCannotBeReadIsTakenBackWithItsApproval: A7/and stays closed when its bytes are restored.
func TestAGrantThatCannotBeReadIsTakenBackWithItsApproval(t *testing.T) {
	o := newOpened(t, filepath.Join(t.TempDir(), "daycared.db"))
	r := approve(t, o.Store, permissions.For(time.Hour))
	meddle(t, o.Store, "UPDATE grants SET call = CAST(call AS TEXT) WHERE request = $1", r.ID)
	if _, err := o.Apply(t.Context(), r.ID, permissions.Void{By: "fay", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	field := func(n *int64) []any { return []any{n} }
	const countOpen = "SELECT COUNT(*) FROM grants WHERE ended_at = 0 AND revoked_at = 0 AND request = $1"
	if open, err := collect(t.Context(), o.writer, "", field, countOpen, r.ID); err != nil || open[0] != 0 {
		t.Errorf("%v are open, %v", open, err)
	}
	audit, err := o.Audit(t.Context(), "", 0, 1000)
	if err != nil || !slices.ContainsFunc(audit, func(e permissions.Entry) bool {
		return e.Type == permissions.GrantRevoked && e.Request == r.ID
	}) {
		t.Errorf("the audit does not say so: %v", err)
	}
}

// TestScatteredNumbersTakeNoPageEach: what verify keeps of entries stays small whatever numbers they name.
func TestScatteredNumbersTakeNoPageEach(t *testing.T) {
	c := newComparison()
	for seq := range int64(5000) {
		r := permissions.Record{Type: permissions.RequestSettled, Request: permissions.ID(strconv.Itoa(int(seq)))}
		e := permissions.Entry{Seq: seq, Record: r}
		if err := c.addEntry(&e, 1+seq<<20); err != nil {
			t.Fatal(err)
		}
		if err := c.addEntry(&e, 1+seq<<20); err == nil {
			t.Fatalf("request %d was settled twice, and nothing is said", seq)
		}
	}
	if len(c.byNumber) > 1100 {
		t.Errorf("it keeps %d pages", len(c.byNumber))
	}
}
