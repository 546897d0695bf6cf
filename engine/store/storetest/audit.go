package storetest

import (
	"strings"
	"testing"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

func testAudit(t *testing.T, b Backend) {
	s := b.Open(t)
	if heads := verified(t, s); len(heads) != 0 {
		t.Errorf("an empty store has heads: %v", heads)
	}
	r := open(t, s, ask())
	apply(t, s, r.ID, allow())
	held := open(t, s, ask(about("held already"), func(r *permissions.Request) {
		r.State, r.Answer, r.Scope = permissions.Approved, permissions.Allow(permissions.Once), permissions.Once
		r.DecidedVia, r.DecidedAt = permissions.ViaGrant, noon
	}))
	refusal := permissions.Record{
		Type: permissions.DecisionRefused, At: noon, Request: r.ID, Actor: "mallory", Via: "telegram",
		Detail: map[string]string{"why": "not-yours", "answer": "<allow> & \"more\""},
	}
	for _, record := range []permissions.Record{refusal, {Type: "NO_DETAIL", At: noon}, {Type: "NO_TIME"}} {
		if err := s.Record(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	all := entries(t, s)
	var types []permissions.Type
	for i, e := range all {
		types = append(types, e.Type)
		if e.Seq != int64(i+1) || e.Chain == "" || e.At.IsZero() {
			t.Errorf("entry %d is %d of chain %q at %s", i+1, e.Seq, e.Chain, e.At)
		}
	}
	same(t, "the types", types, []permissions.Type{
		permissions.RequestCreated, permissions.RequestSettled,
		permissions.RequestCreated, permissions.RequestSettled,
		permissions.DecisionRefused, "NO_DETAIL", "NO_TIME",
	})
	same(t, "who asked", all[0].Record, permissions.Record{
		Type: permissions.RequestCreated, At: noon, Request: r.ID, Actor: "uid:1000",
		Detail: map[string]string{"kind": "permission", "digest": r.Digest.String()},
	})
	same(t, "what was held", all[3].Record, permissions.Record{
		Type: permissions.RequestSettled, At: noon, Request: held.ID, Via: permissions.ViaGrant,
		Detail: map[string]string{"state": "approved", "answer": "allow_once", "digest": held.Digest.String()},
	})
	same(t, "the refusal", all[4].Record, refusal)
	same(t, "the heads", verified(t, s), []permissions.Head{{Entry: all[len(all)-1], First: 1, Entries: len(all)}})

	page, err := s.Audit(t.Context(), all[0].Chain, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "a page", page, all[2:5])
	if page, err = s.Audit(t.Context(), "", -2, 9); err != nil {
		t.Fatal(err)
	}
	same(t, "the newest", page, all[len(all)-2:])
	if page, err = s.Audit(t.Context(), "", -1000, 9); err != nil {
		t.Fatal(err)
	}
	same(t, "as many as there are", page, all)
	if none, err := s.Audit(t.Context(), "another", 0, 3); err != nil || len(none) != 0 {
		t.Errorf("another chain: %v, %v", none, err)
	}
}

// testTampering changes the audit directly: Verify names the entry.
func testTampering(t *testing.T, b Backend) {
	for name, c := range map[string]struct{ statement, want string }{
		"an actor":       {"UPDATE entries SET actor = 'mallory' WHERE key = 2", "entry 2"},
		"a time":         {"UPDATE entries SET at = at + 1 WHERE key = 4", "entry 4"},
		"a detail":       {"UPDATE entries SET detail = '{}' WHERE key = 3", "entry 3"},
		"a request":      {"UPDATE entries SET request = 'x' WHERE key = 1", "entry 1"},
		"no detail":      {"UPDATE entries SET detail = 'x' WHERE key = 3", "after entry 2"},
		"a hash":         {"UPDATE entries SET hash = (SELECT hash FROM entries WHERE key = 1) WHERE key = 2", "entry 2"},
		"the first gone": {"DELETE FROM entries WHERE key = 1", "entry 2"},
		"one gone":       {"DELETE FROM entries WHERE key = 3", "entry 4"},
		"renumbered":     {"UPDATE entries SET key = 9 WHERE key = 4", "entry 9"},
		"another chain": {"INSERT INTO chains VALUES (1, 'A'); INSERT INTO entries " +
			"SELECT CAST(1 AS BIGINT) << 48 | key, at, type, request, actor, via, detail, hash, mac, prev " +
			"FROM entries", "chain A is broken at entry 1"},
	} {
		t.Run("H1/"+name, func(t *testing.T) {
			s := b.Open(t)
			audited(t, s)
			b.Exec(t, s, c.statement)
			_, err := s.Verify(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	for name, statement := range map[string]string{
		"its end": "DELETE FROM entries WHERE key = 4", "all of it": "DELETE FROM entries",
	} {
		t.Run("H1/cut off "+name, func(t *testing.T) {
			s := b.Open(t)
			audited(t, s)
			b.Exec(t, s, statement)
			if _, err := s.Verify(t.Context()); err == nil {
				t.Error("what the rows need is missing, and it is verified")
			}
		})
	}
}

// audited writes four entries and returns the heads.
func audited(t *testing.T, s engine.Store) []permissions.Head {
	t.Helper()
	for n := range 2 {
		r := open(t, s, ask(numbered(n)))
		apply(t, s, r.ID, allow())
	}
	return verified(t, s)
}

// testRestart closes the store and opens it again: committed changes are there, and everything works.
func testRestart(t *testing.T, b Backend) {
	s := b.Open(t)
	first := open(t, s, ask(two))
	first = apply(t, s, first.ID, allow()).After
	audit, code := entries(t, s), s.Coder().Encode(first.Number)

	s = b.Reopen(t, s)
	same(t, "the request", read(t, s, first.ID), first)
	same(t, "the audit", entries(t, s), audit)
	if again := s.Coder().Encode(first.Number); again != code {
		t.Errorf("the code was %s and is %s", code, again)
	}
	if c := apply(t, s, first.ID, by("sam", allow())); !c.Settled() {
		t.Errorf("the second vote settled nothing: %+v", c)
	}
	if heads := verified(t, s); len(heads) != 1 || heads[0].Chain != audit[0].Chain {
		t.Errorf("the chain did not go on: %v", heads)
	}
	if other := b.Open(t); other.Coder() == s.Coder() {
		t.Error("two stores give the same codes")
	}
}

func testHealth(t *testing.T, b Backend) {
	s := b.Open(t)
	for range 2 {
		if err := s.Health(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
