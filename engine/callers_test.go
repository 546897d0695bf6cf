package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// createToken creates a token and returns the caller that it proves.
func createToken(t *testing.T, st *env, name string, expires time.Duration) (permissions.Secret, permissions.Token, permissions.Caller) {
	t.Helper()
	secret, token, err := st.CreateToken(t.Context(), boss, name, "", expires)
	if err != nil {
		t.Fatal(err)
	}
	caller, err := st.Prove(t.Context(), secret, askerUID)
	if err != nil {
		t.Fatal(err)
	}
	return secret, token, caller
}

func TestATokenProvesAName(t *testing.T) {
	settings := usual()
	settings.Routes = []engine.Route{{Agents: []string{"deploy-*"}, Ask: []string{"sam"}}, {Ask: []string{"fay"}}}
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, settings, m)
	_, _, deploy := createToken(t, st, "deploy-1", 0)
	go func() { _, _ = st.Ask(t.Context(), deploy, network("x")) }()
	card := st.shown(m, 1)
	if r := card.Request; r.AgentLabel() != "deploy-1" || r.Claimed || r.Asked[0] != "sam" || !r.Caller.CameFrom(askerUID) {
		t.Errorf("asked by %q (claimed %v) of %v", r.AgentLabel(), r.Claimed, r.Asked)
	}
	claim := network("y")
	claim.Agent, claim.Claimed = "deploy-1", true // only claimed
	st.ask(t.Context(), claim)
	card = st.shown(m, 2)
	if r := card.Request; r.AgentLabel() != "uid 1000, says it is deploy-1" || r.Asked[0] != "fay" {
		t.Errorf("asked by %q of %v", r.AgentLabel(), r.Asked)
	}
	_, err := st.Find(t.Context(), deploy, card.Request.ID)
	refused(t, err, permissions.CodeUnknown) // another caller's, though of the same account
}

func TestATokenEndsAndIsRevoked(t *testing.T) {
	st := newEnv(t, usual(), connectortest.NewMemory(fayAt("memory"), nil))
	short, _, _ := createToken(t, st, "short", time.Hour)
	old, token, _ := createToken(t, st, "deploy", 0)
	newer, _, _ := createToken(t, st, "deploy", 0) // a replacement: both are valid meanwhile
	if _, err := st.RevokeToken(t.Context(), boss, string(token.ID)); err != nil {
		t.Fatal(err)
	}
	st.advance(time.Hour)
	for name, c := range map[string]struct {
		secret permissions.Secret
		good   bool
	}{
		"over": {short, false}, "revoked": {old, false}, "new": {newer, true},
		"made up": {permissions.NewSecret(), false}, "garbage": {"dcd_a_x", false},
	} {
		t.Run("G2/"+name, func(t *testing.T) {
			_, err := st.Prove(t.Context(), c.secret, askerUID)
			if c.good && err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !c.good {
				refused(t, err, permissions.CodeToken)
			}
		})
	}
	if gone, err := st.RevokeToken(t.Context(), boss, "deploy"); err != nil || len(gone) != 1 {
		t.Errorf("revoked %v, %v", gone, err)
	}
	left, err := st.Tokens(t.Context(), boss)
	if err != nil || len(left) != 0 { // an expired token stays expired
		t.Errorf("left are %v, %v", left, err)
	}
	for _, name := range []string{"", "a:b", "no spaces"} {
		_, _, err := st.CreateToken(t.Context(), boss, name, "", 0)
		refused(t, err, permissions.CodeInvalid)
	}
	atFay := connectors.Identity{Via: "cli", UID: fay.UID}
	_, _, err = st.CreateToken(t.Context(), atFay, "mine", "", 0)
	refused(t, err, permissions.CodeNotYours)
	_, err = st.Tokens(t.Context(), atFay)
	refused(t, err, permissions.CodeNotYours)
	_, err = st.RevokeToken(t.Context(), atFay, "short")
	refused(t, err, permissions.CodeNotYours)
}

// One caller's grants and keys are not another's.
func TestGrantsAndKeysBelongToTheirCaller(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), connectortest.Always(allowFor(quarter)))
	st := newEnv(t, usual(), m)
	_, _, a := createToken(t, st, "a", 0)
	_, _, b := createToken(t, st, "b", 0)
	keyed := network("x")
	keyed.Key = "k"
	for i, caller := range []permissions.Caller{a, b, self} {
		r, err := st.Ask(t.Context(), caller, keyed)
		if err != nil || r.DecidedVia != "memory" {
			t.Errorf("caller %d: %s via %s, %v", i, r.State, r.DecidedVia, err)
		}
	}
	if r, err := st.Ask(t.Context(), a, network("y")); err != nil || r.DecidedVia != permissions.ViaGrant {
		t.Errorf("its own grant: %s via %s, %v", r.State, r.DecidedVia, err)
	}
}

// A question that was denied twice is not asked again for a while, whatever is said or claimed with it.
func TestWhatWasDeniedTwiceRests(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), connectortest.Always(permissions.Deny))
	st := newEnv(t, usual(), m)
	shell := func(input string) permissions.Request { return tool("Bash", input) }
	for _, q := range []permissions.Request{network("please"), shell(`{"command":"rm -rf /srv","description":"tidy up"}`)} {
		for range 2 {
			if r := st.get(st.ask(t.Context(), q)); r.State != permissions.Denied {
				t.Fatalf("it is %s", r.State)
			}
		}
	}
	deploy := func(change func(*permissions.Request)) permissions.Request {
		q := shell(`{"command":"rm -rf /srv","description":"tidy up"}`)
		change(&q)
		return q
	}
	for name, q := range map[string]permissions.Request{
		"the same":      network("please"),
		"reason":        network("something else"),
		"a tag twice":   tagged("", "@network", "@network"),
		"details":       deploy(func(q *permissions.Request) { q.Details = "more" }),
		"session":       deploy(func(q *permissions.Request) { q.Session = "n1" }),
		"agent":         deploy(func(q *permissions.Request) { q.Agent, q.Claimed = "another", true }),
		"host":          deploy(func(q *permissions.Request) { q.Host = "elsewhere" }),
		"folder":        deploy(func(q *permissions.Request) { q.Cwd = "/tmp" }),
		"affected path": deploy(func(q *permissions.Request) { q.AffectedPath = "/srv/x" }),
		"scope":         deploy(func(q *permissions.Request) { q.Widest = permissions.Once }),
		"hook":          deploy(func(q *permissions.Request) { q.Hook = "gemini" }),
		"key":           deploy(func(q *permissions.Request) { q.Key = "k" }),
		"description":   shell(`{"description":"look around","command":"rm -rf /srv"}`),
		"a step of it": {Kind: permissions.KindTool, Session: "s1", Calls: []permissions.Call{
			{Tool: "Bash", Input: json.RawMessage(`{"command":"rm -rf /srv"}`)},
			{Tool: "Bash", Input: json.RawMessage(`{"command":"rm -rf /srv"}`)},
		}},
	} {
		t.Run("F1/denied twice, other "+name, func(t *testing.T) {
			_, err := st.Ask(t.Context(), self, q)
			refused(t, err, permissions.CodeCoolingDown)
		})
	}
	if r := st.get(st.ask(t.Context(), tagged("", "@events"))); r.State != permissions.Denied {
		t.Errorf("something else is %s", r.State)
	}
	if r, err := st.Ask(t.Context(), other, network("please")); err != nil || r.State != permissions.Denied {
		t.Errorf("somebody else's is %s, %v", r.State, err)
	}
	st.setWallClock(-5 * time.Hour)
	_, err := st.Ask(t.Context(), self, network("please"))
	refused(t, err, permissions.CodeCoolingDown)
	st.setWallClock(-tenYears) // what was years ahead blocks nothing for years
	if r := st.get(st.ask(t.Context(), network("please"))); r.State != permissions.Denied {
		t.Errorf("with a clock that had been wrong: %s", r.State)
	}
	st.setWallClock(tenYears + 5*time.Hour)
	st.advance(10*time.Minute + time.Second)
	if r := st.get(st.ask(t.Context(), network("please"))); r.State != permissions.Denied {
		t.Errorf("later it is %s", r.State)
	}
}

// Agents that ask without end are refused; the people who answer, and other agents, are not.
func TestAFloodOfQuestionsStarvesNobody(t *testing.T) {
	t.Run("F2/a flood of questions", func(t *testing.T) {
		settings := usual()
		settings.Limits = engine.Limits{PendingPerCaller: 5, PromptsPerMinute: 10, PendingTotal: 1000}
		m := connectortest.NewMemory(fayAt("memory"), nil)
		st := newEnv(t, settings, m)
		ctx, end := context.WithCancel(t.Context())
		defer end()
		for i := range 5 {
			st.ask(ctx, network(fmt.Sprint("flood ", i)))
		}
		st.shown(m, 5)
		for i := range 500 {
			_, err := st.Ask(ctx, self, network(fmt.Sprint("more ", i)))
			refused(t, err, permissions.CodeLimit)
		}
		done := make(chan answer, 1)
		go func() {
			r, err := st.Ask(ctx, other, network("mine"))
			done <- answer{r, err}
		}()
		began := time.Now()
		for i := range 6 {
			if _, err := m.Do(ctx, connectors.Decision{Request: st.shown(m, i+1).Request.ID, Answer: permissions.Deny}); err != nil {
				t.Fatal(err)
			}
		}
		if a := <-done; a.err != nil || a.r.State != permissions.Denied {
			t.Errorf("the other agent: %s, %v", a.r.State, a.err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("six answers took %s", took)
		}
	})
}

// Anonymous callers never share a request: neither by its content nor by a key.
func TestNobodyInParticularJoinsNothing(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	nobody := permissions.Caller{Name: permissions.Anonymous, UID: permissions.AnyUID}
	keyed := network("x")
	keyed.Key = "k"
	_, err := st.Ask(t.Context(), nobody, keyed)
	refused(t, err, permissions.CodeInvalid)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	for range 2 {
		go func() { _, _ = st.Ask(ctx, nobody, network("x")) }()
	}
	if first, second := st.shown(m, 1).Request, st.shown(m, 2).Request; first.ID == second.ID {
		t.Errorf("two who are nobody share %s", first.ID)
	}
}

// The hourly storage of one caller is bounded, whatever settles its requests, and takes nothing from others. Details
// that nobody is shown are stored as their length and digest.
func TestWhatIsStoredForACallerIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, c := range map[string]struct {
		q      permissions.Request
		limits engine.Limits
		most   int
	}{
		"F3/rows that policy allows": {tool("read_file", `{}`), engine.Limits{RequestsPerHour: 3, BytesPerHour: 1 << 20}, 3},
		"F3/bytes that policy allows": {
			tool("read_file", `{"path":"/`+long+`"}`),
			engine.Limits{RequestsPerHour: 1000, BytesPerHour: 2500}, 2,
		},
		"F3/details that nobody is shown": {
			func() permissions.Request { q := tool("read_file", `{}`); q.Details = long; return q }(),
			engine.Limits{RequestsPerHour: 4, BytesPerHour: 2500}, 4,
		},
		"F3/bytes that people are asked": {
			func() permissions.Request { q := network("x"); q.Details = long; return q }(), engine.Limits{BytesPerHour: 2500}, 2,
		},
		"F3/rows that a grant lets go": {network("x"), engine.Limits{RequestsPerHour: 3}, 3},
		"F3/bytes that a grant lets go": {
			network(strings.Repeat("x", 1000)), engine.Limits{BytesPerHour: 2500}, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := usual()
			s.Limits, s.Policy.Auto = c.limits, []string{"read_file"}
			answer := allow()
			if strings.HasSuffix(name, "a grant lets go") {
				answer = permissions.Allow(permissions.For(15 * time.Minute))
			}
			m := connectortest.NewMemory(fayAt("memory"), connectortest.Always(answer))
			st := newEnv(t, s, m)
			for i := range c.most {
				q := c.q
				q.Session = fmt.Sprint(i)
				r, err := st.Ask(t.Context(), self, q)
				if err != nil || r.State != permissions.Approved {
					t.Fatalf("request %d: %s, %v", i, r.State, err)
				}
				if i > 0 && answer != allow() && r.DecidedVia != permissions.ViaGrant {
					t.Fatalf("request %d was decided via %s", i, r.DecidedVia)
				}
				kept, err := st.rows.Read(t.Context(), r.ID)
				if err != nil || r.DecidedVia == permissions.ViaGrant && len(kept.Details) > 150 {
					t.Errorf("%d bytes of details are kept: %v", len(kept.Details), err)
				}
			}
			q := c.q
			q.Session = "one more"
			_, err := st.Ask(t.Context(), self, q)
			refused(t, err, permissions.CodeLimit)
			if r, err := st.Ask(t.Context(), permissions.CallerUID(4242), q); err != nil || r.State != permissions.Approved {
				t.Errorf("another caller: %s, %v", r.State, err)
			}
		})
	}
}

// A refused decision is audited even if its sender hangs up.
func TestARefusedDecisionIsAuditedThoughItsSenderHangsUp(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	st.ask(t.Context(), network("x"))
	id := st.shown(m, 1).Request.ID
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	from := connectors.Identity{Via: "memory", UID: 4242}
	_, err := st.OnPermission(gone, connectors.Decision{Request: id, Answer: allow(), From: from})
	refused(t, err, permissions.CodeNotYours)
	entries, err := st.rows.Audit(t.Context(), "", 0, 100)
	if err != nil || entries[len(entries)-1].Type != permissions.DecisionRefused {
		t.Errorf("it is not audited: %v, %v", entries, err)
	}
}
