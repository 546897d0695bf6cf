package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// A route may ask the owner: the person of the asker's token, else the one whose account it runs as. Those of the escalation are
// asked besides, or at once where there is no owner, and where there is nobody at all nothing is asked.
func TestARouteAsksTheOwner(t *testing.T) {
	kim := connectors.Person{Name: "kim", User: "kim", UID: 4000, Location: time.UTC}
	moment := engine.Moment{Percent: 50}
	for _, c := range []struct {
		name      string
		person    string // of the token; "-" for no token
		uid       int
		escalate  []string
		quorum    int
		asked, to []string
	}{
		{"of a token", "sam", askerUID, []string{"kim"}, 0, []string{"sam"}, []string{"kim"}},
		{"of an account", "-", kim.UID, []string{"fay"}, 0, []string{"kim"}, []string{"fay"}},
		{"of a token before the account", "sam", kim.UID, nil, 0, []string{"sam"}, nil},
		{"of a token without one, by the account", "", kim.UID, nil, 0, []string{"kim"}, nil},
		{"who is asked later as well", "sam", askerUID, []string{"sam", "kim"}, 0, []string{"sam"}, []string{"kim"}},
		{"nobody, with an escalation", "-", askerUID, []string{"kim"}, 0, []string{"kim"}, nil},
		{"nobody", "-", askerUID, nil, 0, nil, nil},
		{"too few for the quorum", "-", askerUID, []string{"kim"}, 2, nil, nil},
		{"of a person who is gone", "lee", askerUID, nil, 0, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := usual()
			s.People = append(s.People, kim, connectors.Person{Name: "lee", UID: 5000, Location: time.UTC})
			route := engine.Route{Ask: []string{permissions.OwnerName}, Quorum: c.quorum}
			route.Escalate.Moment, route.Escalate.To = moment, c.escalate
			s.Routes = []engine.Route{route}
			m := connectortest.NewMemory(fayAt("memory"), nil)
			st := play(t, s, m)
			caller := permissions.CallerUID(c.uid)
			if c.person != "-" {
				secret, _, err := st.CreateToken(t.Context(), boss, "deploy", c.person, 0)
				if err != nil {
					t.Fatal(err)
				}
				if caller, err = st.Prove(t.Context(), secret, c.uid); err != nil {
					t.Fatal(err)
				}
			}
			s.People = s.People[:3]
			st.Configure(s)
			r, err := st.Begin(t.Context(), caller, network("x"))
			if c.asked == nil {
				refused(t, err, permissions.CodeNoRoute)
				return
			}
			if err != nil || !slices.Equal(r.Request.Asked, c.asked) || !slices.Equal(r.Request.EscalateTo, c.to) {
				t.Errorf("asked are %v and then %v, %v", r.Request.Asked, r.Request.EscalateTo, err)
			}
		})
	}
}

// All tokens of a name are of one person, also of those that are made later and after a restart.
func TestTheTokensOfANameAreOfOnePerson(t *testing.T) {
	s := usual()
	s.Routes = []engine.Route{{Ask: []string{permissions.OwnerName}}}
	st := play(t, s, connectortest.NewMemory(fayAt("memory"), nil))
	if _, _, err := st.CreateToken(t.Context(), boss, "deploy", "sam", 0); err != nil {
		t.Fatal(err)
	}
	_, _, err := st.CreateToken(t.Context(), boss, "deploy", "fay", 0)
	refused(t, err, permissions.CodeInvalid)
	_, _, err = st.CreateToken(t.Context(), boss, "other", "kim", 0)
	refused(t, err, permissions.CodeInvalid)
	st.restart(connectortest.NewMemory(fayAt("memory"), nil))
	secret, token, err := st.CreateToken(t.Context(), boss, "deploy", "", 0)
	if err != nil || token.Person != "sam" {
		t.Fatalf("a second one is of %q, %v", token.Person, err)
	}
	caller, err := st.Prove(t.Context(), secret, askerUID)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := st.Begin(t.Context(), caller, network("x")); err != nil || !slices.Equal(r.Request.Asked, []string{"sam"}) {
		t.Errorf("asked are %v, %v", r.Request.Asked, err)
	}
	if _, err := st.RevokeToken(t.Context(), boss, "deploy"); err != nil {
		t.Fatal(err)
	}
	_, err = st.Begin(t.Context(), caller, network("y"))
	refused(t, err, permissions.CodeNoRoute)
}
