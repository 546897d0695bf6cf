package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

func notices(t *testing.T, s engine.Store) []permissions.Notice {
	t.Helper()
	all, err := s.Notices(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// told compares the unsent notices. Their ids are the store's, and their order within a commit is free.
func told(t *testing.T, what string, s engine.Store, want ...permissions.Notice) {
	t.Helper()
	options := cmp.Options{
		cmpopts.IgnoreFields(permissions.Notice{}, "ID"), cmpopts.EquateEmpty(),
		cmpopts.SortSlices(func(a, b permissions.Notice) bool {
			return a.To+string(a.About)+string(a.Subject) < b.To+string(b.About)+string(b.Subject)
		}),
	}
	if diff := cmp.Diff(want, notices(t, s), options); diff != "" {
		t.Errorf("%s: the notices (-want +got):\n%s", what, diff)
	}
}

func testRevoke(t *testing.T, b Backend) {
	s := b.Open(t)
	all := func(r *permissions.Request) { r.Asked, r.Quorum = []string{"fay", "sam", "kim"}, 3 }
	g := grant(t, s, permissions.Session, ask(all))
	first := open(t, s, ask(numbered(1), under(tapped, g)))
	second := open(t, s, ask(numbered(2), under(tapped, g)))
	before := len(entries(t, s))
	later := tapped.Add(time.Minute)

	g.Used = 2
	got, err := s.Revoke(t.Context(), g.ID, "sam", "telegram", later, 1)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "what was revoked", got, permissions.Revoked{Grant: g, Ran: []permissions.Request{second}})
	same(t, "the audit", since(t, s, before), []permissions.Record{{
		Type: permissions.GrantRevoked, At: later, Request: g.Request, Actor: "sam", Via: "telegram",
		Detail: map[string]string{"grant": string(g.ID), "used": "2"},
	}})
	notice := permissions.Notice{About: permissions.AboutRevoked, Subject: g.ID, By: "sam", CreatedAt: later}
	fays, kims := notice, notice
	fays.To, kims.To = "fay", "kim"
	told(t, "who allowed it, but sam", s, fays, kims)

	g.RevokedAt = later
	for range 2 {
		got, err = s.Revoke(t.Context(), g.ID, "kim", "cli", later.Add(time.Minute), 9)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "revoked again", got, permissions.Revoked{Grant: g, Ran: []permissions.Request{second, first}})
	}
	if n := len(entries(t, s)) - before; n != 1 || len(notices(t, s)) != 2 {
		t.Errorf("revoked again: %d records, %d notices", n, len(notices(t, s)))
	}
	_, err = s.Revoke(t.Context(), "01J0000000000000000000NONE", "sam", "cli", later, 1)
	refusedWith(t, err, permissions.CodeUnknown)
	verified(t, s)
}

// testEnding: the end of a grant is recorded once, reported to those who allowed it, and never undone by the clock.
func testEnding(t *testing.T, b Backend) {
	s := b.Open(t)
	end := func(now time.Time, limit int) ([]permissions.Grant, time.Time) {
		t.Helper()
		ended, next, err := s.EndGrants(t.Context(), now, limit)
		if err != nil {
			t.Fatal(err)
		}
		return ended, next
	}
	none, next := end(tapped, 9)
	if len(none) != 0 || !next.IsZero() {
		t.Errorf("without any: %v, next %s", none, next)
	}
	session := grant(t, s, permissions.Session, ask(numbered(0)))
	if none, next = end(tapped.AddDate(100, 0, 0), 9); len(none) != 0 || !next.IsZero() {
		t.Errorf("one without an end: %v, next %s", none, next)
	}
	quarter := permissions.For(15 * time.Minute)
	both := grant(t, s, quarter, ask(two, numbered(1)))
	open(t, s, ask(numbered(9), under(tapped, both)))
	both.Used = 1
	revoked := grant(t, s, quarter, ask(numbered(2)))
	if _, err := s.Revoke(t.Context(), revoked.ID, "fay", "cli", tapped, 1); err != nil {
		t.Fatal(err)
	}
	slow := ask(numbered(3), at(noon.Add(3*time.Minute)))
	open(t, s, slow)
	said := vote(permissions.Allow(quarter))
	said.Vote.At = noon.Add(4 * time.Minute)
	after := apply(t, s, slow.ID, said).Grants[0]

	over := tapped.Add(15 * time.Minute)
	if none, next = end(over.Add(-time.Microsecond), 9); len(none) != 0 || !next.Equal(over) {
		t.Errorf("just before: %v, next %s, want %s", none, next, over)
	}
	before := len(entries(t, s))
	ended, next := end(over, 9)
	same(t, "what ended", ended, []permissions.Grant{both})
	if !next.Equal(after.Until) {
		t.Errorf("next is %s, want %s", next, after.Until)
	}
	same(t, "the audit", since(t, s, before), []permissions.Record{{
		Type: permissions.GrantEnded, At: over, Request: both.Request,
		Detail: map[string]string{"grant": string(both.ID), "used": "1"},
	}})
	fays := permissions.Notice{To: "fay", About: permissions.AboutEnded, Subject: both.ID, CreatedAt: over}
	sams := fays
	sams.To = "sam"
	told(t, "who allowed it", s, fays, sams)
	if none, _ = end(over, 9); len(none) != 0 {
		t.Errorf("it ended twice: %v", none)
	}
	s = b.Reopen(t, s)
	left, err := s.GrantsInForce(t.Context(), "", tapped, "", 99) // the clock was set back
	if err != nil {
		t.Fatal(err)
	}
	same(t, "what is in force by a clock set back", sortGrants(left), sortGrants([]permissions.Grant{session, after}))
	left, err = s.Grants(t.Context(), both.Caller, tapped)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the caller's", sortGrants(left), sortGrants([]permissions.Grant{session, after}))
	if _, err := s.Revoke(t.Context(), both.ID, "sam", "cli", over, 1); err != nil {
		t.Fatal(err)
	}
	if g := readGrant(t, s, both.ID); !g.RevokedAt.IsZero() {
		t.Error("what is over was revoked")
	}
	grant(t, s, quarter, ask(numbered(4)))
	first, _ := end(after.Until, 1)
	rest, next := end(after.Until, 9)
	if len(first) != 1 || len(rest) != 1 || !next.IsZero() {
		t.Errorf("one at a time: %d, then %d, next %s", len(first), len(rest), next)
	}
	verified(t, s)
}

// testEndingNow: what was measured as over ends, whatever the clock says, and is reported once.
func testEndingNow(t *testing.T, b Backend) {
	s := b.Open(t)
	quarter := permissions.For(15 * time.Minute)
	over, stays := grant(t, s, quarter, ask(keyed("k"))), grant(t, s, quarter, ask(numbered(1)))
	revoked := grant(t, s, quarter, ask(numbered(2)))
	if _, err := s.Revoke(t.Context(), revoked.ID, "fay", "cli", tapped, 1); err != nil {
		t.Fatal(err)
	}
	before := len(entries(t, s))
	named := []permissions.ID{over.ID, revoked.ID, "01J0000000000000000000NONE"}
	for n, want := range [][]permissions.Grant{{over}, nil} {
		ended, err := s.EndGrantsNow(t.Context(), named, tapped)
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("call %d", n+1), ended, want)
	}
	same(t, "the audit", since(t, s, before), []permissions.Record{{
		Type: permissions.GrantEnded, At: tapped, Request: over.Request,
		Detail: map[string]string{"grant": string(over.ID), "used": "0"},
	}})
	told(t, "who allowed it", s, permissions.Notice{
		To: "fay", About: permissions.AboutEnded, Subject: over.ID, CreatedAt: tapped,
	})
	left, err := s.GrantsInForce(t.Context(), "", tapped, "", 99)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "what is in force", left, []permissions.Grant{stays})
	open(t, s, ask(keyed("k")))
	if ended, err := s.EndGrantsNow(t.Context(), nil, tapped); err != nil || len(ended) != 0 {
		t.Errorf("none: %v, %v", ended, err)
	}
}
