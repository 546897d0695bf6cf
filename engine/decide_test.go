package engine_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine/store/storetest"
	"github.com/daycared/daycared/permissions"
)

func mustLink(t *testing.T, to, from string) {
	t.Helper()
	if err := os.Symlink(to, from); err != nil {
		t.Fatal(err)
	}
}

// TestDecideByAnAccountThatWasNotAsked is the most common failure of comparable systems: a decision by a person who was not asked.
func TestDecideByAnAccountThatWasNotAsked(t *testing.T) {
	for _, c := range []struct {
		name string
		d    connectors.Decision
		code permissions.Code
	}{
		{
			"another person of the configuration",
			connectors.Decision{From: connectors.Identity{Via: "memory", UID: sam.UID}},
			permissions.CodeNotYours,
		},
		{
			"an account that is nobody",
			connectors.Decision{From: connectors.Identity{Via: "memory", UID: 4242}},
			permissions.CodeNotYours,
		},
		{
			"nobody at all",
			connectors.Decision{From: connectors.Identity{Via: "memory", UID: permissions.NoUID}},
			permissions.CodeNotYours,
		},
		{
			"the operator, who was not asked",
			connectors.Decision{From: connectors.Identity{Via: "cli", UID: 0, Operator: true}},
			permissions.CodeNotYours,
		},
		{
			"the console of another person",
			connectors.Decision{From: connectors.Identity{Via: "terminal", Console: true, UID: permissions.NoUID}},
			permissions.CodeNotYours,
		},
		{
			"the asker itself",
			connectors.Decision{From: connectors.Identity{Via: "cli", UID: askerUID}},
			permissions.CodeNotYours,
		},
		{"an answer that is not offered", connectors.Decision{Answer: permissions.Allow(permissions.Always)}, permissions.CodeNoAnswer},
		{"an answer of another kind", connectors.Decision{Answer: permissions.Continue}, permissions.CodeNoAnswer},
		{"another card's digest", connectors.Decision{Shown: permissions.Digest{1}}, permissions.CodeNotYours},
		{"an id that does not exist", connectors.Decision{Request: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, permissions.CodeUnknown},
		{"the id cut short", connectors.Decision{Request: "01"}, permissions.CodeUnknown},
		{"no id", connectors.Decision{Code: "22222"}, permissions.CodeUnknown},
	} {
		t.Run("A1/"+c.name, func(t *testing.T) {
			m := connectortest.NewMemory(fayAt("memory"), nil)
			st := newEnv(t, usual(), m)
			call := st.ask(t.Context(), network("x"))
			card := st.shown(m, 1)
			d := c.d
			if d.Request == "" && d.Code == "" {
				d.Request = card.Request.ID
			}
			if d.Answer == "" {
				d.Answer = allow()
			}
			_, err := m.Do(t.Context(), d)
			refused(t, err, c.code)
			if r, err := st.rows.Read(t.Context(), card.Request.ID); err != nil || r.State != permissions.Pending || len(r.Votes) != 0 {
				t.Errorf("%s with %d votes, %v", r.State, len(r.Votes), err)
			}
			if _, err := m.Do(t.Context(), connectors.Decision{Code: card.Code, Answer: permissions.Deny}); err != nil {
				t.Fatal(err)
			}
			st.get(call)
		})
	}
}

// TestDecideOwnRequest: the asker never decides, but may deny.
func TestDecideOwnRequest(t *testing.T) {
	s := usual()
	s.People = []connectors.Person{{Name: "fay", UID: askerUID, Location: time.UTC}}
	m := connectortest.NewMemory(connectors.Identity{Via: "cli", UID: askerUID}, nil)
	st := newEnv(t, s, m)
	call := st.ask(t.Context(), network("x"))
	id := st.shown(m, 1).Request.ID
	_, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()})
	refused(t, err, permissions.CodeOwnAsk)
	elsewhere := connectors.Decision{Request: id, Answer: permissions.Deny, Comment: "no"}
	if _, err := m.Do(t.Context(), elsewhere); err != nil {
		t.Fatal(err)
	}
	if r := st.get(call); r.State != permissions.Denied || r.Comment != "no" {
		t.Errorf("%s, %q", r.State, r.Comment)
	}

	s.AllowSameUser = true
	st.Configure(s)
	call = st.ask(t.Context(), network("y"))
	if _, err := m.Do(t.Context(), connectors.Decision{Request: st.shown(m, 2).Request.ID, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	st.get(call)
}

func TestDecideHighRiskTwice(t *testing.T) {
	t.Run("A8/a second yes", func(t *testing.T) {
		m := connectortest.NewMemory(fayAt("memory"), nil)
		st := newEnv(t, usual(), m)
		call := st.ask(t.Context(), tool("run_command", `{"command":"ls"}`))
		id := st.shown(m, 1).Request.ID
		_, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()})
		refused(t, err, permissions.CodeReally)
		if _, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow(), Really: true}); err != nil {
			t.Fatal(err)
		}
		if r := st.get(call); r.State != permissions.Approved {
			t.Error(r.State)
		}
	})
}

// What was stored as high risk by an earlier version, by its tool's name, is not less now that nothing is by its name alone.
func TestWhatWaitsKeepsItsRiskThroughAnUpgrade(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	st.ask(t.Context(), tool("run_command", `{"command":"npm test"}`))
	id := st.shown(m, 1).Request.ID
	m = connectortest.NewMemory(fayAt("memory"), nil)
	st.settings.Policy.HighRiskTools = nil
	st.restart(m)
	if _, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()}); permissions.CodeOf(err) != permissions.CodeReally {
		t.Errorf("one yes: %v", err)
	}
	wider := connectors.Decision{Request: id, Answer: permissions.Allow(permissions.Session), Really: true}
	if _, err := m.Do(t.Context(), wider); err == nil {
		t.Error("it is allowed for the session")
	}
	if got, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow(), Really: true}); err != nil ||
		got.State != permissions.Approved {
		t.Errorf("%s, %v", got.State, err)
	}
	fresh := st.ask(t.Context(), tool("run_command", `{"command":"npm run lint"}`))
	if r := st.shown(m, 1).Request; r.HighRisk {
		t.Error("a plain command is high risk")
	} else if _, err := m.Do(t.Context(), connectors.Decision{Request: r.ID, Answer: allow()}); err != nil {
		t.Error(err)
	}
	st.get(fresh)
}

// TestDecideRedelivered: a chat event that is delivered twice decides once.
func TestDecideRedelivered(t *testing.T) {
	t.Run("D5/an answer three times", func(t *testing.T) {
		s := usual()
		s.Routes[0].Ask, s.Routes[0].Quorum = []string{"fay", "sam"}, 2
		m := connectortest.NewMemory(fayAt("memory"), nil)
		st := newEnv(t, s, m)
		call := st.ask(t.Context(), network("x"))
		st.shown(m, 2)
		id := m.Copies()[0].First.Request.ID
		for range 3 {
			r, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow(), Key: "chat:17"})
			if err != nil || r.State != permissions.Pending || len(r.Votes) != 1 {
				t.Fatalf("%s with %d votes, %v", r.State, len(r.Votes), err)
			}
		}
		second := connectors.Decision{Request: id, Answer: allow(), From: connectors.Identity{Via: "memory", UID: sam.UID}}
		if _, err := m.Do(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		if r := st.get(call); r.State != permissions.Approved || len(r.Votes) != 2 {
			t.Errorf("%s with %d votes", r.State, len(r.Votes))
		}
	})
}

func TestDecideLateIsTold(t *testing.T) {
	t.Run("D3/what a late answer is told", func(t *testing.T) {
		m := connectortest.NewMemory(fayAt("memory"), nil)
		st := newEnv(t, usual(), m)
		call := st.ask(t.Context(), network("x"))
		id := st.shown(m, 1).Request.ID
		if _, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: permissions.Deny}); err != nil {
			t.Fatal(err)
		}
		st.get(call)
		r, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()})
		refused(t, err, permissions.CodeSettled)
		if r.State != permissions.Denied {
			t.Errorf("the row beside the refusal is %s", r.State)
		}
		entries, err := st.rows.Audit(t.Context(), "", 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		if last := entries[len(entries)-1]; last.Type != permissions.DecisionRefused || last.Actor != "fay" {
			t.Errorf("the last record is %s by %s", last.Type, last.Actor)
		}
		if _, err := st.rows.Verify(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The audit names the account of a refused answer, even an unknown one.
func TestARefusedDecisionNamesTheAccount(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	st.ask(t.Context(), network("x"))
	id := st.shown(m, 1).Request.ID
	for _, from := range []connectors.Identity{
		{Via: "telegram", UID: permissions.NoUID, Address: "999888777"},
		{Via: "whatsapp", UID: permissions.NoUID, Address: "+491701234567"},
		{Via: "cli", UID: 66},
		{Via: "telegram", UID: permissions.NoUID}, // hidden behind a group
	} {
		_, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow(), From: from})
		refused(t, err, permissions.CodeNotYours)
	}
	entries, err := st.rows.Audit(t.Context(), "", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var accounts []string
	for _, e := range entries {
		if e.Type == permissions.DecisionRefused {
			accounts = append(accounts, e.Detail["account"])
		}
	}
	if want := []string{"telegram:999888777", "whatsapp:+491701234567", "uid:66", ""}; !slices.Equal(accounts, want) {
		t.Errorf("the audit names %q; want %q", accounts, want)
	}
}

// TestDecideRefusalsAreLimited: an unknown sender cannot fill the audit.
func TestDecideRefusalsAreLimited(t *testing.T) {
	t.Run("F2/refused decisions", func(t *testing.T) {
		m := connectortest.NewMemory(fayAt("memory"), nil)
		st := newEnv(t, usual(), m)
		call := st.ask(t.Context(), network("x"))
		id := st.shown(m, 1).Request.ID
		for range 50 {
			_, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow(), From: connectors.Identity{Via: "memory", UID: 66}})
			refused(t, err, permissions.CodeNotYours)
		}
		entries, err := st.rows.Audit(t.Context(), "", 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, e := range entries {
			if e.Type == permissions.DecisionRefused {
				count++
			}
		}
		if count != 10 {
			t.Errorf("%d refusals audited", count)
		}
		if _, err := st.Cancel(t.Context(), connectors.Identity{Via: "cli", UID: fayUID}, string(id)); err != nil {
			t.Fatal(err)
		}
		if r := st.get(call); r.State != permissions.Cancelled {
			t.Error(r.State)
		}
	})
}

// TestDecideBrokenStore: if the store fails, nothing is granted and the person is told.
func TestDecideBrokenStore(t *testing.T) {
	t.Run("D10/a decision with a locked store", func(t *testing.T) {
		m := connectortest.NewMemory(fayAt("memory"), nil)
		st := newEnv(t, usual(), m)
		call := st.ask(t.Context(), network("x"))
		id := st.shown(m, 1).Request.ID
		unlock := storetest.Lock(t, st.path())
		_, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()})
		refused(t, err, permissions.CodeBroken)
		if err := st.Ready(t.Context()); err == nil {
			t.Error("ready with a broken store")
		}
		_, err = st.Ask(t.Context(), self, network("y"))
		refused(t, err, permissions.CodeBroken)
		unlock()
		if _, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()}); err != nil {
			t.Fatal(err)
		}
		st.get(call)
	})
}

// TestDecideOwnQuestionByDefault: a decision that is both a denial and three wrong tries does not bypass the rule.
func TestDecideOwnQuestionByDefault(t *testing.T) {
	s := usual()
	s.People = []connectors.Person{{Name: "fay", UID: askerUID, Location: time.UTC}}
	m := connectortest.NewMemory(connectors.Identity{Via: "cli", UID: askerUID}, nil)
	st := newEnv(t, s, m)
	call := st.ask(t.Context(), permissions.Request{
		Kind: permissions.KindClarification, Message: "where?", Choices: []string{"blog", "mail"},
	})
	id := st.shown(m, 1).Request.ID
	_, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: permissions.Deny, Default: true})
	refused(t, err, permissions.CodeOwnAsk)
	if _, err := st.Withdraw(t.Context(), self, id); err != nil {
		t.Fatal(err)
	}
	st.get(call)
}
