package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/permissions"
)

// TestFiveApprovalsInARowArmTheNextCardLater: it says so, and an earlier yes counts for nothing; a denial does, and so does a yes at the
// admin socket, or of another person.
func TestFiveApprovalsInARowArmTheNextCardLater(t *testing.T) {
	s := usual()
	s.Approvals.Unhurried = true
	s.People = []connectors.Person{fay.WithAddress("telegram", fayID), sam}
	s.Routes[0].Ask = []string{"fay", "sam"}
	at := connectors.Identity{Via: "telegram", UID: permissions.NoUID, Address: fayID}
	m := connectortest.NewMemory(at, nil)
	m.Identities = map[string]connectors.Identity{"sam": samAt}
	st := newEnv(t, s, m)
	n := 0
	asks := func() (<-chan answer, connectors.Prompt) {
		n++
		call := st.ask(t.Context(), tagged("s1", fmt.Sprintf("@read:/srv/%d", n)))
		st.shown(m, 2*n)
		for _, c := range m.Copies()[2*n-2:] {
			if c.First.To.Name == "fay" {
				st.noted("telegram", c.First.Request.ID)
				return call, c.First
			}
		}
		t.Fatal("fay has no card")
		return nil, connectors.Prompt{}
	}
	allows := func(p connectors.Prompt, from connectors.Identity) error {
		_, err := st.OnPermission(t.Context(), connectors.Decision{Request: p.Request.ID, Answer: allow(), From: from})
		return err
	}
	for range 5 {
		call, p := asks()
		if err := allows(p, at); err != nil || p.Hasty {
			t.Fatalf("%v, %v", err, p.Hasty)
		}
		st.get(call)
	}
	call, p := asks()
	if !p.Hasty {
		t.Error("the card does not say so")
	}
	err := allows(p, at)
	refused(t, err, permissions.CodeTooSoon)
	refused(t, allows(p, at), permissions.CodeTooSoon) // it is not counted
	st.mustBePending(p.Request.ID)
	st.advance(2 * time.Second)
	if err := allows(p, at); err != nil {
		t.Fatal(err)
	}
	st.get(call)
	for name, who := range map[string]connectors.Identity{"the admin socket": fayAt("cli"), "another person": samAt} {
		call, p := asks()
		if err := allows(p, who); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		st.get(call)
	}
	call, p = asks()
	_, err = st.OnPermission(t.Context(), connectors.Decision{Request: p.Request.ID, Answer: permissions.Deny, From: at})
	if r := st.get(call); err != nil || r.State != permissions.Denied {
		t.Errorf("a denial: %s, %v", r.State, err)
	}
	st.advance(20 * time.Second)
	if call, p = asks(); p.Hasty || allows(p, at) != nil {
		t.Error("it does not end")
	}
	st.get(call)
}
