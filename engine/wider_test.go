package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/permissions"
)

// The implicit operator is asked only without configured people, and never replaces people.
func TestTheImplicitOperatorTakesNobodysPlace(t *testing.T) {
	nobody := usual()
	nobody.People, nobody.Routes = nil, nil
	operator := connectors.Identity{Via: "cli", UID: nobody.UID, Operator: true}
	allows := func(st *env, id permissions.ID) error {
		_, err := st.OnPermission(t.Context(), connectors.Decision{Request: id, Answer: allow(), From: operator})
		return err
	}
	start := func(t *testing.T, s engine.Settings, who connectors.Identity) (*env, permissions.ID, <-chan answer) {
		t.Helper()
		m := connectortest.NewMemory(who, nil)
		st := newEnv(t, s, m)
		call := st.ask(t.Context(), network("x"))
		return st, st.shown(m, 1).Request.ID, call
	}
	t.Run("A3/nobody left, and back", func(t *testing.T) {
		st, id, call := start(t, usual(), fayAt("memory"))
		st.Configure(nobody)
		if r := st.get(call); r.State != permissions.Undeliverable || slices.Contains(r.Asked, engine.OperatorName) {
			t.Errorf("%s, asked are %v", r.State, r.Asked)
		}
		st.Configure(usual())
		if err := allows(st, id); err == nil {
			t.Error("the operator decides what was put to fay")
		}
	})
	t.Run("A3/nobody left at a start", func(t *testing.T) {
		st, id, _ := start(t, usual(), fayAt("memory"))
		st.settings = nobody
		st.restart(connectortest.NewMemory(operator, nil))
		if err := allows(st, id); err == nil {
			t.Error("the operator decides what was put to fay")
		}
	})
	t.Run("A3/somebody comes", func(t *testing.T) {
		st, id, call := start(t, nobody, operator)
		st.Configure(usual())
		err := allows(st, id)
		refused(t, err, permissions.CodeNotYours)
		if _, err := st.OnPermission(t.Context(), connectors.Decision{Request: id, Answer: permissions.Deny, From: fayAt("memory")}); err != nil {
			t.Fatal(err)
		}
		if r := st.get(call); r.State != permissions.Denied || slices.Contains(r.Asked, engine.OperatorName) {
			t.Errorf("%s, asked are %v", r.State, r.Asked)
		}
	})
}

// Exactly what a reload widens is named.
func TestWider(t *testing.T) {
	old := usual()
	old.Policy.OwnAuto = true
	old.Policy.HighRiskEffects, old.Policy.HighRiskPatterns = []permissions.Effect{permissions.DoesNetwork}, []string{"*prod*"}
	old.Routes[0].Quorum, old.Limits.AutoPerMinute = 2, map[string]int{"read_*": 10, "*": 600}
	if all := directory.Wider(old, old); len(all) != 0 {
		t.Errorf("the same is wider: %q", all)
	}
	for name, c := range map[string]struct {
		change func(*engine.Settings)
		want   []string
	}{
		"A3/forbidden":    {func(s *engine.Settings) { s.Policy.Forbidden = nil }, []string{"tools.forbidden no longer has delete_*"}},
		"A3/gated":        {func(s *engine.Settings) { s.Policy.Gated = nil }, []string{"tools.gated no longer has write_file"}},
		"A3/auto":         {func(s *engine.Settings) { s.Policy.Auto = []string{"read_file", "*"} }, []string{"tools.auto has *"}},
		"A3/auto of ours": {func(s *engine.Settings) { s.Policy.OwnAuto = false }, []string{"tools.auto has other agents' tools of these names"}},
		"A3/high risk": {
			func(s *engine.Settings) { s.Policy.HighRiskTools = nil }, []string{"high_risk.tools no longer has run_command"},
		},
		"A3/high risk by what is done": {
			func(s *engine.Settings) {
				s.Policy.HighRiskEffects, s.Policy.HighRiskPatterns, s.Policy.NoHighRisk = nil, nil, true
				s.Policy.Ordinary = permissions.Ordinary{
					Tools: []string{"x"}, Effects: []permissions.Effect{permissions.DoesEdit}, Patterns: []string{"rm -rf x"},
				}
			}, []string{
				"high_risk.kinds no longer has network", "high_risk.patterns no longer has *prod*",
				"high_risk.except.tools has x", "high_risk.except.kinds has edit", "high_risk.except.patterns has rm -rf x",
				"high_risk.enabled no longer has on",
			},
		},
		"A3/sandboxed": {func(s *engine.Settings) { s.Policy.Sandboxed = true }, []string{"sandboxed has allow"}},
		"A3/scope": {
			func(s *engine.Settings) {
				s.Approvals.Scopes = append(slices.Clone(s.Approvals.Scopes), permissions.Always)
			},
			[]string{"approvals.scopes has always"},
		},
		"F1/limit left out": {
			func(s *engine.Settings) { s.Limits.PromptsPerMinute = 0 }, []string{"limits.prompts_per_minute is 0, not 1000"},
		},
		"F1/auto limit left out": {
			func(s *engine.Settings) { s.Limits.AutoPerMinute = nil },
			[]string{"limits.auto_per_minute: * is 0, not 600", "limits.auto_per_minute: read_* is 0, not 10"},
		},
		"F1/auto rate of a tool": {
			func(s *engine.Settings) {
				s.Limits.AutoPerMinute = map[string]int{"read_*": 10, "*": 60, "read_file": 11, "x": 70}
			},
			[]string{"limits.auto_per_minute: read_file is 11, not 10"},
		},
		"F1/auto rate taken out": {
			func(s *engine.Settings) { s.Limits.AutoPerMinute = map[string]int{"*": 600} },
			[]string{"limits.auto_per_minute: read_* is 600, not 10"},
		},
		"A3/same user": {func(s *engine.Settings) { s.AllowSameUser = true }, []string{"api.allow_same_user is on"}},
		"A1/another account": {
			func(s *engine.Settings) { s.People = []connectors.Person{fay, sam}; s.People[0].UID = 7 }, []string{"people: fay has other accounts"},
		},
		"A3/quorum": {
			func(s *engine.Settings) { s.Routes = slices.Clone(s.Routes); s.Routes[0].Quorum = 0 },
			[]string{"routes: the one to fay, the 1. before, has quorum 1, not 2"},
		},
		"A3/route": {func(s *engine.Settings) { s.Routes = nil }, []string{"routes: the one to fay, the 1. before, is gone"}},
		"A3/another is asked": {
			func(s *engine.Settings) { s.Routes = slices.Clone(s.Routes); s.Routes[0].Ask = []string{"fay", "sam"} },
			[]string{"routes: the one to fay, the 1. before, ask has sam"},
		},
		"A3/an agent of ours": {
			func(s *engine.Settings) {
				p := s.Policy
				p.Auto = []string{"read_file", "x"}
				s.Policies = map[string]permissions.Policy{"agent:a": p}
			}, []string{"agent:a: tools.auto has x"},
		},
		"narrower": {func(s *engine.Settings) {
			s.Limits.PendingPerCaller, s.Approvals.Scopes, s.Policy.Forbidden = 1, nil, []string{"delete_*", "x"}
			s.People, s.Approvals.Timeout = []connectors.Person{fay}, time.Second
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			next := old
			c.change(&next)
			if got := directory.Wider(old, next); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
