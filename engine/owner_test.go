package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// A route may ask the owner: the person of the asker's token, else the person whose account it runs as. The escalation
// is asked as well, or at once if there is no owner; without anybody, nothing is asked.
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
			st := newEnv(t, s, m)
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

// All tokens of a name belong to one person, including later ones, also after a restart.
func TestTheTokensOfANameAreOfOnePerson(t *testing.T) {
	s := usual()
	s.Routes = []engine.Route{{Ask: []string{permissions.OwnerName}}}
	st := newEnv(t, s, connectortest.NewMemory(fayAt("memory"), nil))
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

// A token that is revoked or expires ends its calls: a later approval is not theirs. Calls with other tokens continue.
func TestATokenThatEndsEndsItsCalls(t *testing.T) {
	for name, c := range map[string]struct {
		expires time.Duration
		end     func(t *testing.T, st *env, token permissions.Token)
		deaf    bool // the call is not woken, as when a server checks its calls itself
	}{
		"G2/revoked by its name": {0, func(t *testing.T, st *env, token permissions.Token) {
			if _, err := st.RevokeToken(t.Context(), boss, token.Name); err != nil {
				t.Fatal(err)
			}
		}, false},
		"G2/revoked by its id, not woken": {0, func(t *testing.T, st *env, token permissions.Token) {
			if _, err := st.RevokeToken(t.Context(), boss, string(token.ID)); err != nil {
				t.Fatal(err)
			}
		}, true},
		"G2/expired": {time.Second, func(*testing.T, *env, permissions.Token) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := connectortest.NewMemory(fayAt("memory"), nil)
			st := newEnvThatKeeps(t, usual(), m) // the question of the expired token is not withdrawn yet
			secret, token, err := st.CreateToken(t.Context(), boss, "deploy", "fay", c.expires)
			if err != nil {
				t.Fatal(err)
			}
			other, _, err := st.CreateToken(t.Context(), boss, "other", "fay", 0)
			if err != nil {
				t.Fatal(err)
			}
			begin := func(secret permissions.Secret, deaf bool) (ctx context.Context, answers chan answer) {
				ctx, done := st.Bear(t.Context(), secret)
				t.Cleanup(done)
				caller, err := st.Prove(ctx, secret, askerUID)
				if err != nil {
					t.Fatal(err)
				}
				waits := ctx
				if deaf {
					waits = context.WithoutCancel(ctx)
				}
				answers = make(chan answer, 1)
				go func() {
					r, err := st.Ask(waits, caller, network(caller.Name))
					answers <- answer{r, err}
				}()
				return ctx, answers
			}
			ctx, ended := begin(secret, c.deaf)
			asked := st.shown(m, 1).Request
			_, goesOn := begin(other, false)
			second := st.shown(m, 2).Request
			if c.deaf { // its name has another token, so the question stays pending
				if _, _, err := st.CreateToken(t.Context(), boss, "deploy", "", 0); err != nil {
					t.Fatal(err)
				}
			}
			c.end(t, st, token)
			select {
			case <-ctx.Done():
				refused(t, context.Cause(ctx), permissions.CodeToken)
			case <-time.After(10 * time.Second):
				t.Fatal("the call goes on")
			}
			refused(t, st.WaitSettled(ctx, time.Time{}, permissions.Token{Name: "deploy"}.Caller(askerUID), asked.ID), permissions.CodeToken)
			_, late := m.Do(t.Context(), connectors.Decision{Request: asked.ID, Answer: allow()})
			a := <-ended
			refused(t, a.err, permissions.CodeToken)
			if a.r.State == permissions.Approved || late == nil != (c.deaf || c.expires > 0) {
				t.Errorf("the call has %s, and the vote on it %v", a.r.State, late)
			}
			if _, err := m.Do(t.Context(), connectors.Decision{Request: second.ID, Answer: allow()}); err != nil {
				t.Fatal(err)
			}
			if r := st.get(goesOn); r.State != permissions.Approved {
				t.Errorf("the other's is %s", r.State)
			}
		})
	}
}

// A name that no token proves any more leaves nothing to its next holder: no grants, unused approvals, uncollected
// answers, or pending requests.
func TestANameThatIsGivenToAnotherPersonHasNothing(t *testing.T) {
	for name, expires := range map[string]time.Duration{"B6/revoked": 0, "B6/expired": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			s := usual()
			s.Approvals.Scopes = append(s.Approvals.Scopes, permissions.Always)
			m := connectortest.NewMemory(fayAt("memory"), nil)
			st := newEnv(t, s, m)
			secret, _, err := st.CreateToken(t.Context(), boss, "deploy", "fay", expires)
			if err != nil {
				t.Fatal(err)
			}
			caller, err := st.Prove(t.Context(), secret, askerUID)
			if err != nil {
				t.Fatal(err)
			}
			put := func(q permissions.Request) permissions.ID {
				t.Helper()
				r, err := st.Begin(t.Context(), caller, q)
				if err != nil {
					t.Fatal(err)
				}
				return r.Request.ID
			}
			say := func(id permissions.ID, a permissions.Answer) {
				t.Helper()
				if _, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: a}); err != nil {
					t.Fatal(err)
				}
			}
			used := make(chan answer, 1)
			go func() {
				r, err := st.Ask(t.Context(), caller, network("always"))
				used <- answer{r, err}
			}()
			granted := st.shown(m, 1).Request.ID
			say(granted, permissions.Allow(permissions.Always))
			st.get(used)
			if r, err := st.Ask(t.Context(), caller, network("again")); err != nil || r.State != permissions.Approved {
				t.Fatalf("the grant gives %s, %v", r.State, err)
			}
			unused, no := put(tagged("s", "@write:/srv")), put(tagged("s", "@write:/etc"))
			waits := put(tagged("s", "@write:/opt"))
			st.shown(m, 4)
			say(unused, allow())
			say(no, permissions.Deny)
			if expires > 0 {
				st.advance(expires)
				_, err := st.Prove(t.Context(), secret, askerUID)
				refused(t, err, permissions.CodeToken)
			} else if _, err := st.RevokeToken(t.Context(), boss, "deploy"); err != nil {
				t.Fatal(err)
			}
			if secret, _, err = st.CreateToken(t.Context(), boss, "deploy", "sam", 0); err != nil {
				t.Fatal(err)
			}
			if caller, err = st.Prove(t.Context(), secret, askerUID); err != nil {
				t.Fatal(err)
			}
			if left, err := st.Grants(t.Context(), boss, "", 99); err != nil || len(left) != 0 {
				t.Errorf("there are the grants %v, %v", left, err)
			}
			for id, want := range map[permissions.ID]permissions.State{unused: permissions.Approved, waits: permissions.Cancelled} {
				r, err := st.rows.Read(t.Context(), id)
				if err != nil || r.State != want {
					t.Errorf("%s is %s, %v", id, r.State, err)
				}
				if id == unused && r.VoidAt.IsZero() {
					t.Error("the approval is not taken back")
				}
			}
			for _, q := range []permissions.Request{
				network("mine"), tagged("s", "@write:/srv"), tagged("s", "@write:/etc"), tagged("s", "@write:/opt"),
			} {
				if r, err := st.Begin(t.Context(), caller, q); err != nil || r.Request.State != permissions.Pending ||
					slices.Contains([]permissions.ID{granted, unused, no, waits}, r.Request.ID) {
					t.Errorf("%v is %s, %v", q.Tags, r.Request.State, err)
				}
			}
		})
	}
}

// A name keeps its person after its last token ends, and no token has the name of one of our own agents.
func TestATokensNameIsNeverAPersonsByMistake(t *testing.T) {
	s := usual()
	s.Bindings = map[string]permissions.Binding{"agent:helper": {Agent: "helper", Person: "fay"}}
	st := newEnv(t, s, connectortest.NewMemory(fayAt("memory"), nil))
	_, _, err := st.CreateToken(t.Context(), boss, "helper", "", 0)
	refused(t, err, permissions.CodeInvalid)
	if _, _, err := st.CreateToken(t.Context(), boss, "deploy", "sam", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := st.RevokeToken(t.Context(), boss, "deploy"); err != nil {
		t.Fatal(err)
	}
	_, _, err = st.CreateToken(t.Context(), boss, "deploy", "", 0)
	refused(t, err, permissions.CodeInvalid)
	if _, token, err := st.CreateToken(t.Context(), boss, "deploy", "fay", 0); err != nil || token.Person != "fay" {
		t.Errorf("it is of %q, %v", token.Person, err)
	}
}

// TestWhatAnExpiredTokenLeftIsWithdrawn while the daemon runs, whether or not the token is presented again: the requests and grants
// of a name that no token proves any more are not listed.
func TestWhatAnExpiredTokenLeftIsWithdrawn(t *testing.T) {
	for name, presented := range map[string]bool{"presented": true, "not presented": false} {
		t.Run(name, func(t *testing.T) {
			m := connectortest.NewMemory(fayAt("memory"), nil)
			st := newEnv(t, usual(), m)
			ids := map[string][]permissions.ID{}
			var secret permissions.Secret
			for i, name := range []string{"deploy", "build"} { // the other one's token does not expire
				var err error
				if secret, _, err = st.CreateToken(t.Context(), boss, name, "fay", []time.Duration{0, time.Minute}[i]); err != nil {
					t.Fatal(err)
				}
				caller, err := st.Prove(t.Context(), secret, askerUID)
				if err != nil {
					t.Fatal(err)
				}
				for _, tag := range []string{"@write:/srv", "@write:/opt"} {
					r, err := st.Begin(t.Context(), caller, tagged("s", tag))
					if err != nil {
						t.Fatal(err)
					}
					ids[name] = append(ids[name], r.Request.ID)
				}
				st.shown(m, 2*i+2)
				d := connectors.Decision{Request: ids[name][0], Answer: permissions.Allow(permissions.Session)}
				if _, err := m.Do(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
			st.advance(2 * time.Minute)
			if presented {
				_, err := st.Prove(t.Context(), secret, askerUID)
				refused(t, err, permissions.CodeToken)
			}
			st.eventually("the request is withdrawn", func() bool {
				r, err := st.rows.Read(t.Context(), ids["build"][1])
				return err == nil && r.State == permissions.Cancelled && r.DecidedVia == permissions.ViaExpiry
			})
			if left, err := st.Grants(t.Context(), boss, "", 99); err != nil || len(left) != 1 || left[0].Caller != "token:deploy" {
				t.Errorf("there are the grants %v, %v", left, err)
			}
			if r, err := st.rows.Read(t.Context(), ids["deploy"][1]); err != nil || r.State != permissions.Pending {
				t.Errorf("the request of a token that holds is %s, %v", r.State, err)
			}
			r, err := st.rows.Read(t.Context(), ids["build"][1])
			if said := card.Settled(r, card.Options{}); err != nil || !strings.Contains(said, "the agent's token has expired") {
				t.Errorf("its card says %s, %v", said, err)
			}
		})
	}
}
