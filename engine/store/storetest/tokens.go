package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// addToken makes a token at noon; it does not expire if until is zero.
func addToken(t *testing.T, s engine.Store, name string, until time.Time) permissions.Token {
	t.Helper()
	hash, _ := permissions.NewSecret().Hash()
	token := permissions.Token{ID: permissions.NewID(noon), Name: name, Hash: hash, CreatedAt: noon, ExpiresAt: until}
	if err := s.AddToken(t.Context(), token, "operator", "cli"); err != nil {
		t.Fatal(err)
	}
	return token
}

func testTokens(t *testing.T, b Backend) {
	s := b.Open(t)
	deploy, old := addToken(t, s, "deploy", time.Time{}), addToken(t, s, "deploy", noon.Add(time.Hour))
	backup := addToken(t, s, "backup", time.Time{})
	all := func() []permissions.Token {
		t.Helper()
		tokens, err := s.Tokens(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return tokens
	}
	byID := func(a, b permissions.Token) int { return strings.Compare(string(a.ID), string(b.ID)) }
	deploys := []permissions.Token{deploy, old}
	slices.SortFunc(deploys, byID)
	same(t, "by name", all(), append([]permissions.Token{backup}, deploys...))

	prove := func(token permissions.Token, now time.Time) (permissions.Token, error) {
		return s.VerifyToken(t.Context(), token.Hash, now)
	}
	used := noon.Add(90*time.Second + 5)
	got, err := prove(deploy, used)
	deploy.UsedAt = noon.Add(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "proven", got, deploy)
	for name, now := range map[string]time.Time{"the same minute": noon.Add(2*time.Minute - 1), "earlier": noon} {
		if got, err = prove(deploy, now); err != nil {
			t.Fatal(err)
		}
		same(t, name, got, deploy)
	}
	s = b.Reopen(t, s)
	if got := all()[1:]; !slices.ContainsFunc(got, func(k permissions.Token) bool { return k.UsedAt.Equal(deploy.UsedAt) }) {
		t.Errorf("its use is not kept: %v", got)
	}
	if _, err := prove(old, noon.Add(time.Hour-1)); err != nil {
		t.Errorf("just before it expires: %v", err)
	}
	for name, c := range map[string]struct {
		token permissions.Token
		now   time.Time
	}{
		"not made yet": {backup, noon.Add(-1)}, "unknown": {permissions.Token{}, noon},
	} {
		got, err := prove(c.token, c.now)
		refusedWith(t, err, permissions.CodeToken)
		if got.ID != "" {
			t.Errorf("%s: it is given", name)
		}
	}

	later := noon.Add(2 * time.Hour)
	_, err = s.RevokeToken(t.Context(), string(backup.ID[:4]), "operator", "cli", later)
	refusedWith(t, err, permissions.CodeInvalid) // of each token
	revoked, err := s.RevokeToken(t.Context(), strings.ToLower(backup.ID.Short()), "operator", "cli", later)
	backup.RevokedAt = later
	if err != nil {
		t.Fatal(err)
	}
	same(t, "revoked by the end of its id", revoked, []permissions.Token{backup})
	if revoked, err = s.RevokeToken(t.Context(), "deploy", "operator", "cli", later); err != nil || len(revoked) != 2 {
		t.Errorf("revoked by name: %v, %v", revoked, err)
	}
	for _, token := range []permissions.Token{deploy, backup} {
		_, err := prove(token, later)
		refusedWith(t, err, permissions.CodeToken)
	}
	for _, name := range []string{"deploy", string(backup.ID), "nothing"} {
		_, err := s.RevokeToken(t.Context(), name, "operator", "cli", later)
		refusedWith(t, err, permissions.CodeUnknown)
		if err != nil && !strings.Contains(err.Error(), "token") {
			t.Errorf("%q does not say token", err)
		}
	}
	same(t, "those that are left", all(), []permissions.Token(nil))

	records := since(t, s, 0)
	same(t, "the first record", records[0], permissions.Record{
		Type: permissions.TokenCreated, At: noon, Actor: "operator", Via: "cli",
		Detail: map[string]string{"id": string(deploy.ID), "name": "deploy"},
	})
	same(t, "the record of a revocation", records[3], permissions.Record{
		Type: permissions.TokenRevoked, At: later, Actor: "operator", Via: "cli",
		Detail: map[string]string{"id": string(backup.ID), "name": "backup"},
	})
	if len(records) != 6 {
		t.Errorf("%d records, want one for each that was made or revoked", len(records))
	}
}

// testTokenRevivedByTheClock: a token that was found expired stays so when the clock is set back.
func testTokenRevivedByTheClock(t *testing.T, b Backend) {
	s := b.Open(t)
	token, other := addToken(t, s, "deploy", noon.Add(time.Hour)), addToken(t, s, "other", noon.Add(time.Hour))
	before, over := len(entries(t, s)), noon.Add(2*time.Hour)
	for range 2 {
		_, err := s.VerifyToken(t.Context(), token.Hash, over)
		refusedWith(t, err, permissions.CodeToken)
	}
	s = b.Reopen(t, s)
	_, err := s.VerifyToken(t.Context(), token.Hash, noon.Add(time.Minute))
	refusedWith(t, err, permissions.CodeToken)
	if _, err := s.VerifyToken(t.Context(), other.Hash, noon.Add(time.Minute)); err != nil {
		t.Errorf("one that nobody tried meanwhile: %v", err)
	}
	_, err = s.VerifyToken(t.Context(), other.Hash, noon.Add(-1)) // not before its end
	refusedWith(t, err, permissions.CodeToken)
	same(t, "the audit", since(t, s, before), []permissions.Record{{
		Type: permissions.TokenRevoked, At: over,
		Detail: map[string]string{"id": string(token.ID), "name": "deploy", "why": "expired"},
	}})
}

// testOwners: a token keeps its person, and a name does not lose its person by mistake.
func testOwners(t *testing.T, b Backend) {
	s := b.Open(t)
	add := func(name, person string) permissions.Token {
		t.Helper()
		hash, _ := permissions.NewSecret().Hash()
		token := permissions.Token{ID: permissions.NewID(noon), Name: name, Person: person, Hash: hash, CreatedAt: noon}
		if err := s.AddToken(t.Context(), token, "operator", "cli"); err != nil {
			t.Fatal(err)
		}
		return token
	}
	of := func(want ...string) {
		t.Helper()
		tokens, err := s.Tokens(t.Context())
		got := []string{}
		for _, token := range tokens {
			got = append(got, token.Name+" "+token.Person)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("there are %q, %v", got, err)
		}
	}
	add("backup", "")
	add("deploy", "fay")
	s = b.Reopen(t, s)
	of("backup ", "deploy fay")
	if _, err := s.RevokeToken(t.Context(), "deploy", "operator", "cli", noon); err != nil {
		t.Fatal(err)
	}
	hash, _ := permissions.NewSecret().Hash()
	nobodys := permissions.Token{ID: permissions.NewID(noon), Name: "deploy", Hash: hash, CreatedAt: noon}
	refusedWith(t, s.AddToken(t.Context(), nobodys, "operator", "cli"), permissions.CodeInvalid)
	of("backup ")
	add("deploy", "sam")
	of("backup ", "deploy sam")
}
