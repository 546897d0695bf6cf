package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

const day = 24 * time.Hour

// prune prunes until nothing is left to prune.
func prune(t *testing.T, s engine.Store, keep permissions.Keep, now time.Time, limit int) (rounds int) {
	t.Helper()
	for more := true; more; rounds++ {
		var err error
		if more, err = s.Prune(t.Context(), keep, now, limit); err != nil {
			t.Fatal(err)
		}
		if rounds > 1000 {
			t.Fatal("it does not end")
		}
	}
	return rounds
}

func gone(t *testing.T, s engine.Store, id permissions.ID) bool {
	t.Helper()
	_, err := s.Read(t.Context(), id)
	if err != nil {
		refusedWith(t, err, permissions.CodeUnknown)
	}
	return err != nil
}

// testPrunePayloads: the words are deleted, and the rest stays readable.
func testPrunePayloads(t *testing.T, b Backend) {
	s := b.Open(t)
	g := grant(t, s, permissions.Session, ask())
	wordy := func(r *permissions.Request) {
		r.Message, r.Details, r.EnvNames = "look at this", "all of it", []string{"HOME"}
	}
	tool := func(r *permissions.Request) {
		r.Kind, r.Tags, r.Reason = permissions.KindTool, nil, ""
		r.Tool, r.Input, r.AffectedPath = "write_file", []byte(`{"path":"/a"}`), "/a"
	}
	held := open(t, s, ask(tool, wordy, under(tapped, g)))
	calls := apply(t, s, open(t, s, ask(step, wordy)).ID, vote(permissions.Deny)).After
	chosen := apply(t, s, open(t, s, ask(clarification, wordy)).ID, vote(permissions.Choose(2))).After
	young := open(t, s, ask(numbered(1), wordy))
	late := vote(permissions.Deny)
	late.Vote.At = tapped.Add(time.Microsecond)
	young = apply(t, s, young.ID, late).After
	waiting := open(t, s, ask(numbered(2), wordy))
	before := len(entries(t, s))

	keep := permissions.Keep{Payloads: 30 * day}
	prune(t, s, permissions.Keep{}, tapped.Add(1000*day), 9)
	prune(t, s, keep, tapped.Add(30*day), 9)
	same(t, "nothing is old enough", read(t, s, calls.ID), calls)
	if rounds := prune(t, s, keep, tapped.Add(30*day+time.Microsecond), 2); rounds != 3 {
		t.Errorf("%d rounds of two each for four requests", rounds)
	}
	for _, r := range []*permissions.Request{&held, &calls, &chosen} {
		r.Input, r.AffectedPath, r.Message, r.Details, r.Reason, r.Comment = nil, "", "", "", "", ""
		r.EnvNames, r.Choices = nil, nil
		for i := range r.Votes {
			r.Votes[i].Comment = ""
		}
	}
	for i, c := range calls.Calls {
		calls.Calls[i] = permissions.Call{N: c.N, Tool: c.Tool, Answer: permissions.Deny, By: "fay", At: c.At, Input: []byte("null")}
	}
	for i := range chosen.Options {
		chosen.Options[i].Label = ""
	}
	for what, want := range map[string]permissions.Request{
		"held": held, "calls": calls, "chosen": chosen, "young": young, "waiting": waiting,
	} {
		same(t, what, read(t, s, want.ID), want)
	}
	same(t, "what ran", ran(t, s, g, 9), []permissions.Request{held})
	if rounds := prune(t, s, keep, tapped.Add(30*day+time.Microsecond), 1); rounds != 1 {
		t.Error("what was pruned is looked at again")
	}
	if n := len(entries(t, s)); n != before {
		t.Errorf("it was audited %d times", n-before)
	}
	verified(t, s)
}

// testPruneRequests: old requests are deleted with all their rows, except pending ones, those with a grant in force,
// and the newest.
func testPruneRequests(t *testing.T, b Backend) {
	s := b.Open(t)
	settled := func(n int, copies ...permissions.Copy) permissions.Request {
		r := ask(two, numbered(n))
		for i := range copies {
			copies[i].Request = r.ID
		}
		open(t, s, r, copies...)
		return apply(t, s, r.ID, vote(permissions.Deny)).After
	}
	old := settled(1, permissions.Copy{Person: "fay", Connector: "terminal"})
	kept := grant(t, s, permissions.Session, ask(numbered(2)))
	over := grant(t, s, permissions.For(15*time.Minute), ask(numbered(3)))
	revoked := grant(t, s, permissions.Session, ask(numbered(4)))
	if _, err := s.Revoke(t.Context(), revoked.ID, "fay", "cli", tapped, 0); err != nil {
		t.Fatal(err)
	}
	used := open(t, s, ask(numbered(5), under(tapped, kept, over)))
	waiting := open(t, s, ask(numbered(6)))
	newest := settled(7)
	keep, now := permissions.Keep{Requests: 90 * day, Payloads: 30 * day}, noon.Add(91*day)

	prune(t, s, keep, noon.Add(90*day), 9)
	if gone(t, s, old.ID) {
		t.Error("what is young enough is gone")
	}
	prune(t, s, permissions.Keep{Requests: 90 * day}, now, 9)
	for what, id := range map[string]permissions.ID{
		"waiting": waiting.ID, "newest": newest.ID, "left a grant in force": kept.Request,
		"left a grant whose end was not noted": over.Request,
	} {
		if gone(t, s, id) {
			t.Errorf("what is/has %s is gone", what)
		}
	}
	for what, id := range map[string]permissions.ID{"old": old.ID, "revoked": revoked.Request, "used": used.ID} {
		if !gone(t, s, id) {
			t.Errorf("what is %s is still there", what)
		}
	}
	if n := len(copies(t, s, old.ID)) + len(ran(t, s, kept, 9)) + len(ran(t, s, over, 9)); n != 0 {
		t.Errorf("%d copies and uses are left", n)
	}
	_, err := s.Grant(t.Context(), revoked.ID)
	refusedWith(t, err, permissions.CodeUnknown)
	if g := readGrant(t, s, kept.ID); g.Used != 1 {
		t.Errorf("the grant in force was used %d times", g.Used)
	}

	if _, _, err := s.EndGrants(t.Context(), now, 9); err != nil {
		t.Fatal(err)
	}
	prune(t, s, keep, now, 9)
	if !gone(t, s, over.Request) || gone(t, s, kept.Request) {
		t.Error("after the end was noted, its request is still there, or the other is not")
	}
	s = b.Reopen(t, s)
	if r := open(t, s, ask(numbered(8), at(now))); r.Number != newest.Number+1 {
		t.Errorf("the next has number %d, after %d", r.Number, newest.Number)
	}
	prune(t, s, keep, now, 9)
	if !gone(t, s, newest.ID) || gone(t, s, waiting.ID) {
		t.Error("what was the newest is still there, or what waits is not")
	}
	var left []permissions.Type
	for _, h := range must(eventsAfter(t, s, 0, 99)) {
		if h.Request == old.ID {
			left = append(left, h.Type)
			if h.Asked != nil || h.Session != "" || h.VisibleTo("fay") {
				t.Errorf("of a request that is gone somebody sees %+v", h)
			}
		}
	}
	same(t, "what the audit still tells", left, []permissions.Type{permissions.RequestCreated, permissions.RequestSettled})
	verified(t, s)
}

func must[T any](v T, _ int64) T { return v }

// testPruneUses: however often a grant was used, no transaction exceeds the limit.
func testPruneUses(t *testing.T, b Backend) {
	s := b.Open(t)
	g := grant(t, s, permissions.Session, ask())
	late := noon.Add(50 * day)
	for n := range 5 {
		open(t, s, ask(numbered(n), under(late, g)))
	}
	if _, err := s.Revoke(t.Context(), g.ID, "fay", "cli", late, 0); err != nil {
		t.Fatal(err)
	}
	keep := permissions.Keep{Requests: 90 * day}
	for _, left := range []int{3, 1} {
		if more, err := s.Prune(t.Context(), keep, noon.Add(91*day), 2); err != nil || !more {
			t.Fatalf("more %v, %v", more, err)
		}
		if got := ran(t, s, g, 9); len(got) != left || gone(t, s, g.Request) {
			t.Errorf("%d uses are left, want %d", len(got), left)
		}
	}
	prune(t, s, keep, noon.Add(91*day), 2)
	if !gone(t, s, g.Request) || len(ran(t, s, g, 9)) != 0 {
		t.Error("the grant is still there")
	}
}

// testPruneRest: undeliverable notices and invalid tokens.
func testPruneRest(t *testing.T, b Backend) {
	s := b.Open(t)
	open(t, s, ask(two))
	stop(t, s, "fay", tapped)
	live := addToken(t, s, "live", noon.Add(92*day))
	addToken(t, s, "expired", noon.Add(day))
	revoked := addToken(t, s, "revoked", time.Time{})
	if _, err := s.RevokeToken(t.Context(), "revoked", "operator", "cli", noon.Add(day)); err != nil {
		t.Fatal(err)
	}
	keep := permissions.Keep{Requests: 90 * day}
	count := func() (sent, tokens int) {
		all, err := s.Tokens(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(notices(t, s)), len(all)
	}
	prune(t, s, keep, tapped.Add(90*day), 9)
	if n, k := count(); n != 1 || k != 2 {
		t.Errorf("too soon: %d notices, %d tokens", n, k)
	}
	prune(t, s, keep, noon.Add(91*day+time.Second), 1)
	if n, k := count(); n != 0 || k != 1 {
		t.Errorf("%d notices, %d tokens are left", n, k)
	}
	if _, err := s.VerifyToken(t.Context(), live.Hash, noon.Add(91*day)); err != nil {
		t.Error(err)
	}
	_, err := s.VerifyToken(t.Context(), revoked.Hash, noon.Add(day-1))
	refusedWith(t, err, permissions.CodeToken)
}

// testPruneAudit: the start of the chain is deleted, and an entry at its end signs that off.
func testPruneAudit(t *testing.T, b Backend) {
	s := b.Open(t)
	for n := range 3 { // six entries, of 12:00 to 12:03
		r := open(t, s, ask(numbered(n), at(noon.Add(time.Duration(n)*time.Minute))))
		said := vote(permissions.Deny)
		said.Vote.At = noon.Add(time.Duration(n+1) * time.Minute)
		apply(t, s, r.ID, said)
	}
	all := entries(t, s)
	keep, now := permissions.Keep{Audit: 400 * day}, noon.Add(400*day)
	prune(t, s, keep, now, 9)
	same(t, "nothing is old enough", entries(t, s), all)

	now = now.Add(time.Minute + 1)
	if more, err := s.Prune(t.Context(), keep, now, 2); err != nil || !more {
		t.Fatalf("more %v, %v", more, err)
	}
	prune(t, s, keep, now, 2)
	left := entries(t, s)
	same(t, "what is kept", left[:3], all[3:])
	same(t, "what signs it off", left[len(left)-1].Record, permissions.Record{
		Type: permissions.AuditPruned, At: now.Truncate(time.Microsecond),
		Detail: map[string]string{"up_to": "3", "hash": all[2].Hash.String(), "entries": "1"},
	})
	same(t, "the head", verified(t, s), []permissions.Head{{Entry: left[len(left)-1], First: left[0].Seq, Entries: len(left)}})
	if list, first := eventsAfter(t, s, 0, 9); first != 4 || len(list) != 3 || list[0].Seq != 4 {
		t.Errorf("events from %d: %v", first, list)
	}
	s = b.Reopen(t, s)
	open(t, s, ask(at(now)))
	verified(t, s)
	prune(t, s, keep, now.Add(399*day), 99)
	prune(t, s, keep, now.Add(800*day), 99)
	if left = entries(t, s); len(left) != 1 || left[0].Type != permissions.AuditPruned {
		t.Errorf("of what is all too old there is left %v", left)
	}
	verified(t, s)
	open(t, s, ask(at(now.Add(800*day)), numbered(9)))
	verified(t, s)
}

// testPruneTampering: a chain without its start is valid only if it signs that off.
func testPruneTampering(t *testing.T, b Backend) {
	for name, c := range map[string]struct{ statement, want string }{
		"more was deleted":  {"DELETE FROM entries WHERE key <= 4", "broken at entry 5: what came before it is missing"},
		"nothing signs":     {"DELETE FROM entries WHERE type = 'AUDIT_PRUNED'", "broken at entry 4"},
		"another signature": {"UPDATE entries SET detail = replace(detail, '3', '4') WHERE type = 'AUDIT_PRUNED'", "changed"},
		"other contents":    {"UPDATE entries SET prev = hash WHERE key = 4", "broken at entry 4"},
		"of another chain": {"INSERT INTO chains VALUES (1, 'A'); INSERT INTO entries " +
			"SELECT CAST(1 AS BIGINT) << 48 | key, at, type, request, actor, via, detail, hash, mac, prev " +
			"FROM entries WHERE key > 4", "chain A is broken"},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.Open(t)
			for n := range 3 {
				open(t, s, ask(numbered(n), at(noon.Add(time.Duration(n)*time.Minute))))
			}
			for n := 3; n < 6; n++ {
				open(t, s, ask(numbered(n), at(noon.Add(day))))
			}
			prune(t, s, permissions.Keep{Audit: day}, noon.Add(day+time.Hour), 9)
			verified(t, s)
			b.Exec(t, s, c.statement)
			if _, err := s.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
