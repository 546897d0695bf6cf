package engine_test

import (
	"strings"
	"testing"

	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine/store/storetest"
	"github.com/daycared/daycared/permissions"
)

// behind changes each gate of the store behind daycared's back.
func (s *env) behind(statements string) {
	s.t.Helper()
	for _, table := range []string{"grants", "tokens", "pairings"} {
		storetest.Behind(s.t, s.path(), strings.ReplaceAll(statements, "GATE", table))
	}
}

// TestARowThatSomebodyDeletedCanBeTakenBack: revoke, token revoke and unpair find by the audit what has no row, say so and close it, and
// the row opens nothing when it is put back.
func TestARowThatSomebodyDeletedCanBeTakenBack(t *testing.T) {
	m, l := connectortest.NewMemory(fayAt("memory"), nil), newPairingChannel()
	st := newEnv(t, givesRules(), m, l)
	g := st.giveRule(m, 1, bash("go build ./..."))
	_, token, err := st.CreateToken(t.Context(), boss, "deploy", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.pair(l, "sam", "7777"); err != nil {
		t.Fatal(err)
	}
	st.behind("CREATE TABLE kept.GATE AS SELECT * FROM main.GATE; DELETE FROM main.GATE; ")
	st.restart(m, l)
	st.eventually("the start counts them", func() bool { return len(st.MissingRows()) == 3 })

	for _, name := range []string{string(g.ID), g.ID.Short()} { // sam was not asked
		_, err = st.Revoke(t.Context(), samAt, permissions.ID(name))
		refused(t, err, permissions.CodeUnknown)
	}
	_, err = st.Revoke(t.Context(), fayAt("memory"), permissions.ID(g.ID.Short()))
	refused(t, err, permissions.CodeGone)
	if !strings.Contains(err.Error(), "Somebody deleted "+string(g.ID)) {
		t.Error(err)
	}
	_, err = st.RevokeToken(t.Context(), boss, "deploy")
	refused(t, err, permissions.CodeGone)
	_, err = st.Unpair(t.Context(), boss, "sam", "telegram")
	refused(t, err, permissions.CodeGone)
	if st.personByTelegram(7777) != "" || len(st.MissingRows()) != 0 {
		t.Errorf("%q, %v", st.personByTelegram(7777), st.MissingRows())
	}
	_, err = st.Revoke(t.Context(), boss, g.ID)
	refused(t, err, permissions.CodeUnknown)
	_, err = st.RevokeToken(t.Context(), boss, string(token.ID))
	refused(t, err, permissions.CodeUnknown)
	_, err = st.Unpair(t.Context(), boss, "sam", "telegram")
	refused(t, err, permissions.CodeUnknown)

	st.stop()
	st.behind("INSERT INTO main.GATE SELECT * FROM kept.GATE; ")
	st.open()
	grants, noGrants := st.Grants(t.Context(), boss, "", 9)
	tokens, noTokens := st.Tokens(t.Context(), boss)
	if len(grants)+len(tokens) != 0 || noGrants != nil || noTokens != nil || st.personByTelegram(7777) != "" {
		t.Errorf("%v, %v, %v, %v, %q", grants, noGrants, tokens, noTokens, st.personByTelegram(7777))
	}
}
