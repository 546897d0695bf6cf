package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// ours is one of the daemon's own agents, whose session it keeps.
var ours = permissions.Caller{Name: "agent:helper", UID: permissions.NoUID}

// scoped is a question, its answer, and other questions that the answer covers or does not.
type scoped struct {
	name    string
	caller  permissions.Caller
	q       permissions.Request
	scope   permissions.Scope
	covers  []probe
	not     []probe
	refused bool // the scope is not on offer
}

// probe is a later question.
type probe struct {
	name   string
	caller permissions.Caller // zero: the same
	q      permissions.Request
	after  time.Duration
}

func tagged(session string, texts ...string) permissions.Request {
	tags, err := permissions.ParseTags(texts)
	if err != nil {
		panic(err)
	}
	return permissions.Request{Kind: permissions.KindPermission, Tags: tags, Reason: "work", Session: session}
}

func claimed(agent string, q permissions.Request) permissions.Request {
	q.Agent, q.Claimed = agent, true
	return q
}

// hooked is a question of an agent's own hook, as [hooks.Dialect] reads it.
func hooked(dialect string, q permissions.Request) permissions.Request {
	q.Hook = dialect
	return claimed(dialect, q)
}

func call(session, name, input string) permissions.Request {
	q := tool(name, input)
	q.Session = session
	return q
}

var (
	quarter = permissions.For(15 * time.Minute)
	other   = permissions.CallerUID(1001)
)

// scopes is the table of the contract: what each scope covers, and what it does not.
var scopes = []scoped{
	{
		name: "a permission once", q: tagged("s1", "@network"), scope: permissions.Once,
		not: []probe{{name: "the same again", q: tagged("s1", "@network")}},
	},
	{
		name: "a permission for the session", q: tagged("s1", "@write:/srv/www", "@network"), scope: permissions.Session,
		covers: []probe{
			{name: "the same", q: tagged("s1", "@network")},
			{name: "a part of it", q: tagged("s1", "@write:/srv/www/a")},
			{name: "reading what may be written", q: tagged("s1", "@read:/srv/www")},
			{name: "the next day", q: tagged("s1", "@network"), after: 24 * time.Hour},
		},
		not: []probe{
			{name: "another session", q: tagged("s2", "@network")},
			{name: "no session", q: tagged("", "@network")},
			{name: "another caller", caller: other, q: tagged("s1", "@network")},
			{name: "a folder whose name begins alike", q: tagged("s1", "@write:/srv/www_evil")},
			{name: "the folder above", q: tagged("s1", "@read:/srv")},
			{name: "another permission beside it", q: tagged("s1", "@network", "@events")},
			{name: "a tool", q: call("s1", "write_file", `{"path":"/srv/www/a"}`)},
		},
	},
	{
		name: "a permission for a time", q: tagged("", "@network"), scope: quarter,
		covers: []probe{
			{name: "in any session", q: tagged("s9", "@network")},
			{name: "until then", q: tagged("", "@network"), after: 14 * time.Minute},
		},
		not: []probe{
			{name: "afterwards", q: tagged("", "@network"), after: 15 * time.Minute},
			{name: "another caller", caller: other, q: tagged("", "@network")},
		},
	},
	{
		name: "a permission until revoked", q: tagged("", "@read:/srv"), scope: permissions.Always,
		covers: []probe{{name: "a year later", q: tagged("s9", "@read:/srv/a"), after: 365 * 24 * time.Hour}},
		not:    []probe{{name: "to write", q: tagged("", "@write:/srv/a")}},
	},
	{
		name: "a call once", q: call("s1", "write_file", `{"a":1}`), scope: permissions.Once,
		not: []probe{{name: "the same call again", q: call("s1", "write_file", `{"a":1}`)}},
	},
	{
		name: "B6/a permission for the session of one program of an account's", q: claimed("deploy-1", tagged("s1", "@network")),
		scope:  permissions.Session,
		covers: []probe{{name: "the same program", q: claimed("deploy-1", tagged("s1", "@network"))}},
		not: []probe{
			{name: "another that claims the session", q: claimed("scribe", tagged("s1", "@network"))},
			{name: "one without a name", q: tagged("s1", "@network")},
		},
	},
	{
		name: "a tool for the session", caller: ours, q: call("s1", "write_file", `{"a":1}`), scope: permissions.SessionTool,
		covers: []probe{{name: "with other input", q: call("s1", "write_file", `{"a":2}`)}},
		not: []probe{
			{name: "another tool", q: call("s1", "edit_file", `{"a":1}`)},
			{name: "in another session", q: call("s2", "write_file", `{"a":1}`)},
			{name: "the permission that such a tool needs", q: tagged("s1", "@write:/srv")},
		},
	},
	{
		name: "all tools for the session, of an agent of ours", caller: ours, q: call("s1", "write_file", `{"a":1}`), scope: permissions.Session,
		covers: []probe{
			{name: "another gated tool", q: call("s1", "edit_file", `{}`)}, {name: "an unknown tool", q: call("s1", "mystery", `{}`)},
		},
		not: []probe{
			{name: "a tool of high risk", q: call("s1", "run_command", `{"command":"ls"}`)},
			{name: "a shell", q: call("s1", "Bash", `{"command":"ls"}`)},
			{name: "in another session", q: call("s2", "edit_file", `{}`)},
			{name: "a permission", q: tagged("s1", "@network")},
		},
	},
	{
		name: "all tools for the session, of any other caller", q: call("s1", "write_file", `{"a":1}`), scope: permissions.Session,
		refused: true,
	},
	{
		name: "all tools for the session, by way of one of high risk", caller: ours, q: call("s1", "run_command", `{"command":"ls"}`),
		scope: permissions.Session, refused: true,
	},
	{
		name: "a tool for a time", caller: ours, q: call("s1", "write_file", `{"a":1}`), scope: quarter,
		covers: []probe{{name: "in another session with other input", q: call("s2", "write_file", `{"a":2}`)}},
		not: []probe{
			{name: "another tool", q: call("s1", "edit_file", `{}`)},
			{name: "afterwards", q: call("s1", "write_file", `{"a":1}`), after: 16 * time.Minute},
		},
	},
	{
		name: "B6/a shell for a time", caller: ours, q: call("s1", "Bash", `{"command":"ls"}`), scope: quarter,
		covers: []probe{{name: "this exact call", q: call("s2", "Bash", `{"command":"ls"}`)}},
		not:    []probe{{name: "another command", q: call("s1", "Bash", `{"command":"rm -rf /"}`)}},
	},
	{
		name: "B6/a shell for the session", caller: ours, q: call("s1", "Bash", `{"command":"ls"}`), scope: permissions.SessionTool,
		covers: []probe{{name: "this exact call", q: call("s1", "Bash", `{"command":"ls"}`)}},
		not:    []probe{{name: "another command", q: call("s1", "Bash", `{"command":"rm -rf /"}`)}},
	},
	{
		name: "B6/a tool of another program for a time", q: call("s1", "write_file", `{"a":1}`), scope: quarter,
		covers: []probe{{name: "this exact call", q: call("s2", "write_file", `{"a":1}`)}},
		not: []probe{
			{name: "with other input", q: call("s1", "write_file", `{"a":2}`)},
			{name: "in another folder", q: in("/elsewhere", call("s1", "write_file", `{"a":1}`))},
		},
	},
	{
		name: "B6/a tool of another program for the session", q: call("s1", "write_file", `{"a":1}`), scope: permissions.SessionTool,
		covers: []probe{{name: "this exact call", q: call("s1", "write_file", `{"a":1}`)}},
		not:    []probe{{name: "with other input", q: call("s1", "write_file", `{"a":2}`)}},
	},
	{
		name: "B6/a tool of one agent's hook for the session", q: hooked("codex", call("s1", "write_file", `{"a":1}`)),
		scope:  permissions.SessionTool,
		covers: []probe{{name: "by the same agent", q: hooked("codex", call("s1", "write_file", `{"a":1}`))}},
		not: []probe{
			{name: "by another agent's", q: hooked("gemini", call("s1", "write_file", `{"a":1}`))},
			{name: "by no hook", q: claimed("codex", call("s1", "write_file", `{"a":1}`))},
		},
	},
	{
		name: "B6/a tool of one agent's hook for a time", q: hooked("codex", call("s1", "write_file", `{"a":1}`)), scope: quarter,
		covers: []probe{{name: "by the same agent", q: hooked("codex", call("s2", "write_file", `{"a":1}`))}},
		not: []probe{
			{name: "by another agent's", q: hooked("gemini", call("s2", "write_file", `{"a":1}`))},
			{name: "by no hook", q: call("s2", "write_file", `{"a":1}`)},
		},
	},
	{
		name: "B6/high risk for a time", caller: ours, q: call("s1", "run_command", `{"command":"ls"}`), scope: quarter, refused: true,
	},
	{
		name: "B6/high risk for the session", caller: ours, q: call("s1", "run_command", `{"command":"ls"}`),
		scope: permissions.SessionTool, refused: true,
	},
	{
		name: "an exact call always", q: call("s1", "write_file", `{"a":1,"b":2}`), scope: permissions.Always,
		covers: []probe{
			{name: "the same, written otherwise, elsewhen", q: call("s2", "write_file", `{ "b": 2, "a": 1 }`), after: 48 * time.Hour},
		},
		not: []probe{
			{name: "with other input", q: call("s1", "write_file", `{"a":1,"b":3}`)},
			{name: "in another folder", q: in("/elsewhere", call("s1", "write_file", `{"a":1,"b":2}`))},
		},
	},
	{
		name: "a shell always", q: call("s1", "run_command", `{"command":"ls"}`), scope: permissions.Always, refused: true,
	},
	{
		name: "a session where there is none", q: tagged("", "@network"), scope: permissions.Session, refused: true,
	},
}

// TestAGrantStandsWhereItsGiversMayDecide: what one person gave does not count, whatever the scope, while the route of what is asked takes
// two people, or another one, or the scope is off, or the person is locked. It counts again afterwards.
func TestAGrantStandsWhereItsGiversMayDecide(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, everyScope(), m)
	var given []scoped
	for i, c := range scopes {
		if len(c.covers) == 0 {
			continue
		}
		c.caller = permissions.CallerUID(3000 + i) // each has its own grant
		if scopes[i].caller.Name != "" {
			c.caller = permissions.Caller{Name: fmt.Sprintf("agent:helper%d", i), UID: permissions.NoUID}
		}
		given = append(given, c)
		first := c.begin(st)
		id := st.shown(m, len(given)).Request.ID
		if _, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allowFor(c.scope), Really: true}); err != nil {
			t.Fatal(err)
		}
		st.get(first)
	}
	run := func(when string, want bool) {
		t.Helper()
		for _, c := range given {
			if st.runsFor(c.caller, c.covers[0].q) != want {
				t.Errorf("%s, %s: it runs: %t", when, c.name, !want)
			}
		}
	}
	for name, change := range map[string]func(s *engine.Settings){
		"two people":       func(s *engine.Settings) { s.Routes = []engine.Route{{Ask: []string{"fay", "sam"}, Quorum: 2}} },
		"another person":   func(s *engine.Settings) { s.Routes = []engine.Route{{Ask: []string{"sam"}}} },
		"the scope is off": func(s *engine.Settings) { s.Approvals.Scopes = []permissions.Scope{permissions.Once} },
		"shorter times only": func(s *engine.Settings) {
			s.Approvals.Scopes = []permissions.Scope{permissions.Once, permissions.For(time.Minute)}
		},
	} {
		s := everyScope()
		change(&s)
		st.Configure(s)
		run(name, false)
	}
	s := everyScope()
	s.Routes = []engine.Route{{Ask: []string{"sam"}}}
	s.Routes[0].Escalate.To, s.Routes[0].Escalate.Moment = []string{"fay"}, engine.Moment{Percent: 50}
	st.Configure(s)
	run("fay is asked later", true)
	if _, err := st.Lock(t.Context(), boss, "fay", time.Time{}); err != nil {
		t.Fatal(err)
	}
	run("fay is locked", false)
	if _, _, err := st.Unlock(t.Context(), boss, "fay"); err != nil {
		t.Fatal(err)
	}
	run("fay is unlocked", true)
}

// TestAGrantOfTwo holds where two decide, and for whoever it was given to only while both of them may.
func TestAGrantOfTwo(t *testing.T) {
	m, other := connectortest.NewMemory(fayAt("memory"), nil), connectortest.NewMemory(connectors.Identity{Via: "other", UID: sam.UID}, nil)
	s := everyScope()
	s.Routes = []engine.Route{{Ask: []string{"fay", "sam"}, Quorum: 2}}
	st := newEnv(t, s, m, other)
	first := st.ask(t.Context(), tagged("s1", "@network"))
	id := st.shown(m, 1).Request.ID
	for _, from := range []*connectortest.Memory{m, other} {
		if _, err := from.Do(t.Context(), connectors.Decision{Request: id, Answer: allowFor(permissions.Session)}); err != nil {
			t.Fatal(err)
		}
	}
	st.get(first)
	keyed := tagged("s1", "@network")
	keyed.Key = "k"
	if r := st.get(st.ask(t.Context(), keyed)); r.DecidedVia != permissions.ViaGrant {
		t.Fatalf("it is decided via %s", r.DecidedVia)
	}
	three := s
	three.Routes = []engine.Route{{Ask: []string{"fay", "sam", "kim"}, Quorum: 3}}
	three.People = append(slices.Clone(s.People), kim)
	for _, c := range []struct {
		settings engine.Settings
		runs     bool
	}{{s, true}, {three, false}, {s, true}} {
		if st.Configure(c.settings); st.runsFor(self, tagged("s1", "@network")) != c.runs {
			t.Errorf("where %d decide, it runs: %t", c.settings.Routes[0].Quorum, !c.runs)
		}
		if _, err := st.Begin(t.Context(), self, keyed); (err == nil) != c.runs { // its key finds the answer, as long as the grant counts
			t.Errorf("where %d decide, its key: %v", c.settings.Routes[0].Quorum, err)
		}
	}
}

// TestWhatIsAskedTogetherHasNoWeakerRoute: a permission or a call beside another one does not move both to other people, or fewer.
func TestWhatIsAskedTogetherHasNoWeakerRoute(t *testing.T) {
	s := usual()
	tags := func(text ...string) []permissions.Tag { return tagged("", text...).Tags }
	team, one := []string{"fay", "sam"}, []string{"fay"}
	deploys := func(ask []string, quorum int) []engine.Route {
		return []engine.Route{{Tools: []string{"deploy"}, Ask: ask, Quorum: quorum}, {Ask: one}}
	}
	with := func(alone engine.Route) []engine.Route { return []engine.Route{alone, {Ask: one}} }
	prod := func(ask []string, quorum int) []engine.Route {
		return with(engine.Route{Tags: tags("@write:/srv/prod"), Ask: ask, Quorum: quorum})
	}
	step := func(names ...string) permissions.Request {
		q := permissions.Request{Kind: permissions.KindTool, Session: "s1"}
		for i, name := range names {
			q.Calls = append(q.Calls, permissions.Call{N: i + 1, Tool: name, Input: []byte("{}")})
		}
		return q
	}
	reading := engine.Route{Tags: tags("@read:/srv/docs"), Ask: team}
	escalating := engine.Route{Tags: tags("@write:/srv/prod"), Ask: team, Quorum: 2}
	escalating.Escalate.To = []string{"kim"}
	both := tagged("", "@network", "@write:/srv/prod/a")
	needs := tool("deploy", "{}")
	needs.Tags = both.Tags
	for name, c := range map[string]struct {
		routes []engine.Route
		q      permissions.Request
		ask    []string
		quorum int
	}{
		"two permissions":                     {prod(team, 2), both, team, 2},
		"what a call needs":                   {prod(team, 2), needs, team, 2},
		"one of another's":                    {prod([]string{"sam"}, 1), both, team, 2},
		"one of two, of whom the other is":    {prod(team, 1), both, one, 1},
		"both are of the same":                {prod(one, 1), both, one, 1},
		"a permission alone":                  {prod(team, 2), tagged("", "@write:/srv/prod/a"), team, 2},
		"others alone":                        {prod(team, 2), tagged("", "@network", "@write:/srv/test"), one, 1},
		"a wider one":                         {prod(team, 2), tagged("", "@read:/srv"), team, 2},
		"a wider one of another's":            {prod([]string{"sam"}, 1), tagged("", "@write:/srv"), team, 2},
		"to write where it is about reading":  {with(reading), tagged("", "@write:/srv/docs"), one, 1},
		"two calls":                           {deploys(team, 2), step("tidy", "deploy"), team, 2},
		"a call of another's":                 {deploys([]string{"sam"}, 1), step("tidy", "deploy"), team, 2},
		"two that are many people's, by two":  {prod([]string{"sam", "kim"}, 2), both, []string{"fay", "sam", "kim"}, 3},
		"one that may come to a third person": {with(escalating), both, team, 2},
	} {
		s.Routes = c.routes
		c.q.Caller = self
		route, found := s.RouteOf(c.q)
		if !found || !slices.Equal(route.Ask, c.ask) || route.Quorum != c.quorum {
			t.Errorf("%s: %+v, %t", name, route, found)
		}
		r := c.q
		if err := s.SetRecipients(&r); err != nil || r.Quorum != c.quorum {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.Routes = with(engine.Route{Tags: tags("@write:/srv/prod"), Ask: []string{permissions.OwnerName}})
	if route, _ := s.RouteOf(both); len(route.Ask) > 0 {
		t.Errorf("a part is its owner's, who is missing: %+v", route)
	}
	s.Routes = with(engine.Route{Tags: tags("@write:/srv/prod"), Ask: one, OnlyTitle: true, NoKeyboard: true})
	if route, found := s.RouteOf(both); !found || !route.OnlyTitle || !route.NoKeyboard {
		t.Errorf("what one keeps out of chats is shown: %+v", route)
	}
}

// TestWhoeverAllowsTheWholeCouldAllowEachPart: as many as a route of several parts takes, whoever they are, have in each part as many as
// that takes, of those whom it asks as soon.
func TestWhoeverAllowsTheWholeCouldAllowEachPart(t *testing.T) {
	people := []string{"fay", "sam", "kim", "eve", "bob"}
	rapid.Check(t, func(t *rapid.T) {
		s := usual()
		q := permissions.Request{Kind: permissions.KindPermission, Caller: self}
		for i := range rapid.IntRange(2, 3).Draw(t, "parts") {
			q.Tags = append(q.Tags, tagged("", fmt.Sprintf("@write:/srv/%d", i)).Tags...)
		}
		all := make([]engine.Route, len(q.Tags)+1) // the last one is for the whole
		for i := range all {
			some := rapid.Permutation(people).Draw(t, "people")[:rapid.IntRange(1, len(people)).Draw(t, "how many")]
			first := rapid.IntRange(1, len(some)).Draw(t, "asked first")
			all[i] = engine.Route{Ask: some[:first], Quorum: rapid.IntRange(1, len(some)).Draw(t, "quorum")}
			if all[i].Escalate.To = some[first:]; i < len(q.Tags) {
				all[i].Tags = q.Tags[i : i+1]
			}
		}
		s.Routes = all
		route, found := s.RouteOf(q)
		may := slices.Concat(route.Ask, route.Escalate.To)
		if !found || len(route.Ask) == 0 || route.Quorum > len(may) || len(slices.Compact(slices.Sorted(slices.Values(may)))) != len(may) {
			t.Fatalf("%+v is %+v", all, route)
		}
		for set := range 1 << len(may) {
			if bits.OnesCount(uint(set)) != route.Quorum {
				continue
			}
			for _, o := range all {
				own := 0
				for i, name := range may {
					now := o.Quorum > len(o.Ask) || slices.Contains(route.Escalate.To, name)
					if set>>i&1 == 1 && (slices.Contains(o.Ask, name) || now && slices.Contains(o.Escalate.To, name)) {
						own++
					}
				}
				if own < o.Quorum {
					t.Fatalf("%+v is %+v, which %b can allow, but not the part %+v", all, route, set, o)
				}
			}
		}
	})
}

func in(folder string, q permissions.Request) permissions.Request {
	q.Cwd = folder
	return q
}

func everyScope() engine.Settings {
	s := usual()
	s.Approvals.Scopes = append(s.Approvals.Scopes, permissions.Always)
	return s
}

func TestWhatEveryScopeCoversAndWhatItDoesNot(t *testing.T) {
	for _, c := range scopes {
		t.Run(c.name, func(t *testing.T) {
			for _, p := range append(c.covers, c.not...) {
				covered := len(c.covers) > 0 && containsProbe(c.covers, p.name)
				t.Run(p.name, func(t *testing.T) { c.check(t, p, covered) })
			}
			if c.refused {
				m := connectortest.NewMemory(fayAt("memory"), nil)
				st := newEnv(t, everyScope(), m)
				c.begin(st)
				_, err := m.Do(t.Context(), connectors.Decision{
					Request: st.shown(m, 1).Request.ID, Answer: allowFor(c.scope), Really: true,
				})
				refused(t, err, permissions.CodeNoAnswer)
			}
		})
	}
}

func containsProbe(all []probe, name string) bool {
	for _, p := range all {
		if p.name == name {
			return true
		}
	}
	return false
}

func (c scoped) who() permissions.Caller {
	if c.caller.Name == "" {
		return self
	}
	return c.caller
}

// begin asks the first question.
func (c scoped) begin(st *env) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		r, err := st.Ask(st.t.Context(), c.who(), c.q)
		done <- answer{r, err}
	}()
	return done
}

// check gives the scope and then asks again.
func (c scoped) check(t *testing.T, p probe, covered bool) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, everyScope(), m)
	first := c.begin(st)
	id := st.shown(m, 1).Request.ID
	if _, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allowFor(c.scope), Really: true}); err != nil {
		t.Fatal(err)
	}
	st.get(first)
	st.advance(p.after)
	who := p.caller
	if who.Name == "" {
		who = c.who()
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	second := make(chan answer, 1)
	go func() {
		r, err := st.Ask(ctx, who, p.q)
		second <- answer{r, err}
	}()
	if covered {
		if r := st.get(second); r.State != permissions.Approved || r.DecidedVia != permissions.ViaGrant || len(r.Grants) != 1 {
			t.Errorf("it is %s via %s under %v", r.State, r.DecidedVia, r.Grants)
		}
		return
	}
	if card := st.shown(m, 2); card.Request.State != permissions.Pending {
		t.Errorf("the card says %s", card.Request.State)
	}
	leave()
	if a := <-second; !errors.Is(a.err, context.Canceled) {
		t.Errorf("it was answered: %s, %v", a.r.State, a.err)
	}
}

// boss is the operator at the admin socket.
var boss = connectors.Identity{Via: "cli", UID: 1, Operator: true}

func TestAGrantIsListedCountedRevokedAndTold(t *testing.T) {
	f, s, k := phones()
	settings := team()
	settings.Routes[0].Escalate.To = nil
	st := newEnv(t, settings, f, s, k)
	first := st.ask(t.Context(), tagged("s1", "@network"))
	id := st.shown(f.Memory, 1).Request.ID
	f.must(t, id, allowFor(permissions.Session))
	s.must(t, id, allowFor(permissions.Session))
	st.get(first)
	for range 3 {
		st.get(st.ask(t.Context(), tagged("s1", "@network")))
	}
	atFay, atKim := connectors.Identity{Via: "cli", UID: fay.UID}, connectors.Identity{Via: "cli", UID: kim.UID}
	grants, err := st.Grants(t.Context(), atFay, "", 99)
	if err != nil || len(grants) != 1 || grants[0].Used != 3 || grants[0].Request != id {
		t.Fatalf("fay sees %+v, %v", grants, err)
	}
	if none, err := st.Grants(t.Context(), atKim, "", 99); err != nil || len(none) != 0 {
		t.Errorf("kim, who was not asked, sees %v, %v", none, err)
	}
	if all, err := st.Grants(t.Context(), boss, "", 99); err != nil || len(all) != 1 {
		t.Errorf("the operator sees %v, %v", all, err)
	}
	_, err = st.Revoke(t.Context(), atKim, grants[0].ID)
	refused(t, err, permissions.CodeUnknown)
	revoked, err := st.Revoke(t.Context(), atFay, grants[0].ID)
	if err != nil || len(revoked.Ran) != 3 {
		t.Fatalf("ran under it: %v, %v", revoked.Ran, err)
	}
	if n := s.notice(t); n.About != permissions.AboutRevoked || len(n.Ran) != 3 || n.To.Name != "sam" { // sam allowed it too
		t.Errorf("sam is told %v", n)
	}
	st.ask(t.Context(), tagged("s1", "@network"))
	st.shown(f.Memory, 2) // it is asked again
}

func TestTheEndOfAGrantIsTold(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	first := st.ask(t.Context(), network("docs"))
	f.must(t, st.shown(f.Memory, 1).Request.ID, allowFor(quarter))
	st.get(first)
	st.advance(16 * time.Minute)
	if n := f.notice(t); n.About != permissions.AboutEnded || n.Grant.By != "fay" {
		t.Errorf("fay is told %v", n)
	}
}

func TestAnApprovalThatWasNotUsedIsTakenBack(t *testing.T) {
	f := newPhone(fay, "fays-phone")
	st := newEnv(t, usual(), f)
	ctx, leave := context.WithCancel(t.Context())
	first := st.ask(ctx, tagged("s1", "@network"))
	id := st.shown(f.Memory, 1).Request.ID
	leave()
	<-first
	f.must(t, id, allowFor(permissions.Session))
	unknown := connectors.Identity{Via: "cli", UID: kim.UID}
	_, err := st.Void(t.Context(), unknown, string(id))
	refused(t, err, permissions.CodeNotYours)
	got, err := st.Void(t.Context(), connectors.Identity{Via: "cli", UID: fay.UID}, string(id))
	if err != nil || got.Request.VoidAt.IsZero() {
		t.Fatalf("%+v, %v", got.Request, err)
	}
	if grants, err := st.Grants(t.Context(), boss, "", 99); err != nil || len(grants) != 0 {
		t.Errorf("its grants are still in force: %v, %v", grants, err)
	}
	_, err = st.Void(t.Context(), boss, string(id))
	refused(t, err, permissions.CodeNoUse)
	told := st.get(st.ask(t.Context(), tagged("s1", "@network"))) // the asker returns for the outcome
	if r := told.Outcome(); r.ID != id || r.State != permissions.Cancelled || r.Answer != "" || r.Scope != (permissions.Scope{}) ||
		r.VoidedBy != "fay" || r.VoidAt.IsZero() {
		t.Errorf("told is %+v", r)
	}
	st.ask(t.Context(), tagged("s1", "@network"))
	st.shown(f.Memory, 2) // it is asked again
}

// TestWhatIsAskedTogetherIsNotAskedSooner: a person whom a part asks only later does not decide it at once, beside another part of theirs.
func TestWhatIsAskedTogetherIsNotAskedSooner(t *testing.T) {
	s := usual()
	later := func(tag, ask, to string) engine.Route {
		r := engine.Route{Ask: []string{ask}}
		r.Escalate.Moment, r.Escalate.To = engine.Moment{Percent: 90}, []string{to}
		if tag != "" {
			r.Tags = tagged("", tag).Tags
		}
		return r
	}
	both := tagged("", "@network", "@write:/srv/prod/a")
	both.Caller = self
	for name, whole := range map[string]engine.Route{"who is asked now": {Ask: []string{"sam"}}, "each later": later("", "sam", "fay")} {
		s.Routes = []engine.Route{later("@write:/srv/prod", "fay", "sam"), whole}
		if route, found := s.RouteOf(both); !found || route.Quorum < 2 && slices.Contains(route.Ask, "sam") {
			t.Errorf("%s: %+v", name, route)
		}
	}
}

// TestWhatIsAskedTogetherHasTheShorterTime and the later escalation, of the whole and its parts.
func TestWhatIsAskedTogetherHasTheShorterTime(t *testing.T) {
	s := usual()
	s.Approvals.Timeout, s.Approvals.MaxTimeout = 10*time.Minute, time.Hour
	at := func(timeout time.Duration, share int) engine.Route {
		r := engine.Route{Ask: []string{"fay"}, Timeout: timeout}
		r.Escalate.Moment, r.Escalate.To = engine.Moment{Percent: share}, []string{"sam"}
		return r
	}
	for name, c := range map[string]struct {
		part, whole             engine.Route
		patience, waits, raises time.Duration
	}{
		"the part's":               {at(5*time.Minute, 80), at(20*time.Minute, 20), 0, 5 * time.Minute, 4 * time.Minute},
		"the whole's":              {at(20*time.Minute, 20), at(5*time.Minute, 80), 0, 5 * time.Minute, 4 * time.Minute},
		"the usual one":            {at(20*time.Minute, 50), at(0, 50), 0, 10 * time.Minute, 5 * time.Minute},
		"the caller's":             {at(20*time.Minute, 50), at(0, 50), 2 * time.Minute, 2 * time.Minute, time.Minute},
		"the caller's is too long": {at(20*time.Minute, 50), at(0, 50), 2 * time.Hour, 20 * time.Minute, 10 * time.Minute},
	} {
		q := tagged("", "@network", "@write:/srv/prod/a")
		q.Caller, q.CreatedAt, q.WantedTimeout = self, time.Now(), c.patience
		c.part.Tags = tagged("", "@write:/srv/prod").Tags
		s.Routes = []engine.Route{c.part, c.whole}
		if err := s.SetRecipients(&q); err != nil || q.Timeout() != c.waits || q.EscalateAt.Sub(q.CreatedAt) != c.raises {
			t.Errorf("%s: it waits %s and escalates after %s: %v", name, q.Timeout(), q.EscalateAt.Sub(q.CreatedAt), err)
		}
	}
}

// TestAGrantThatWouldNotCountIsNotGiven: where a reload has others decide, or more people, or takes a scope off, it is allowed once.
func TestAGrantThatWouldNotCountIsNotGiven(t *testing.T) {
	for name, reload := range map[string]func(s *engine.Settings){
		"others decide":    func(s *engine.Settings) { s.Routes = []engine.Route{{Ask: []string{"sam"}}} },
		"two decide":       func(s *engine.Settings) { s.Routes = []engine.Route{{Ask: []string{"fay", "sam"}, Quorum: 2}} },
		"the scope is off": func(s *engine.Settings) { s.Approvals.Scopes = []permissions.Scope{permissions.Once} },
	} {
		t.Run(name, func(t *testing.T) {
			m := connectortest.NewMemory(fayAt("memory"), nil)
			st := newEnv(t, usual(), m)
			call := st.ask(t.Context(), tagged("s1", "@network"))
			id := st.shown(m, 1).Request.ID
			now := usual()
			reload(&now)
			st.Configure(now)
			_, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allowFor(permissions.Session)})
			refused(t, err, permissions.CodeNoAnswer)
			st.mustBePending(id)
			if _, err := m.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()}); err != nil {
				t.Fatal(err)
			}
			if r := st.get(call); r.Scope != permissions.Once {
				t.Errorf("allowed for %s", r.Scope)
			}
		})
	}
}

// TestWhatAPartKeepsOutOfAGroup: a group sees nothing of which a part is for another one, or for none.
func TestWhatAPartKeepsOutOfAGroup(t *testing.T) {
	s := usual()
	both := tagged("", "@network", "@write:/srv/prod/a")
	both.Caller = self
	s.Routes = []engine.Route{{Tags: tagged("", "@write:/srv/prod").Tags, Ask: []string{"sam"}}, {Ask: []string{"fay"}, Group: "ops"}}
	if route, found := s.RouteOf(both); !found || route.Group != "" {
		t.Errorf("%+v", route)
	}
}

// TestAReloadAsksNobodyForAnothersPart: while what is asked together waits, a reload lets nobody decide for a person of another part.
func TestAReloadAsksNobodyForAnothersPart(t *testing.T) {
	s := usual()
	s.People = append(slices.Clone(s.People), kim)
	q := tagged("", "@network", "@write:/srv/prod/a")
	q.ID, q.Caller, q.CreatedAt = "r", self, time.Now()
	prod := tagged("", "@write:/srv/prod").Tags
	s.Routes = []engine.Route{{Tags: prod, Ask: []string{"sam"}}, {Ask: []string{"fay"}}}
	if err := s.SetRecipients(&q); err != nil || q.Quorum != 2 {
		t.Fatal(q.Quorum, err)
	}
	folder, one, calls := tagged("", "@write:/srv"), network("x"), permissions.Request{Kind: permissions.KindTool}
	for i, name := range []string{"tidy", "deploy"} {
		calls.Calls = append(calls.Calls, permissions.Call{N: i + 1, Tool: name, Input: []byte("{}")})
	}
	for i, c := range []struct {
		q    permissions.Request
		asks bool
	}{{q: q}, {q: folder}, {q: calls}, {q: one, asks: true}} {
		c.q.ID, c.q.Caller, c.q.CreatedAt = "r", self, q.CreatedAt
		s.Routes = []engine.Route{{Tags: prod, Ask: []string{"sam"}}, {Tools: []string{"deploy"}, Ask: []string{"sam"}}, {Ask: []string{"fay"}}}
		if err := s.SetRecipients(&c.q); err != nil || (c.q.Quorum == 2) == c.asks {
			t.Fatal(i, c.q.Quorum, err)
		}
		for _, parts := range [][]engine.Route{s.Routes[:2], nil} { // a reload may take the parts' routes away
			s.Routes = append(slices.Clone(parts), engine.Route{Ask: []string{"fay", "kim"}})
			if e := s.CurrentRecipients(c.q, q.CreatedAt); slices.Contains(e.Asked, "kim") != c.asks {
				t.Errorf("%d: of %s, any %d can allow what asked %s", i, e.Asked, c.q.Quorum, c.q.Asked)
			}
		}
	}
}

// TestAListedGrantSaysWhatSuspendsIt: a list of grants names the lock, the stop or the person gone for which nothing runs under one.
func TestAListedGrantSaysWhatSuspendsIt(t *testing.T) {
	f, s, k := phones()
	st := newEnv(t, team(), f, s, k)
	call := st.ask(t.Context(), network("x"))
	id := st.shown(f.Memory, 1).Request.ID
	f.must(t, id, allowFor(quarter))
	s.must(t, id, allowFor(quarter))
	st.get(call)
	did := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	says := func(want string) {
		t.Helper()
		grants, err := st.Grants(t.Context(), boss, "", 9)
		if err != nil || len(grants) != 1 || grants[0].Suspended != want {
			t.Errorf("%+v, %v, want %q", grants, err, want)
		}
	}
	says("")
	st.lock(samAt, "fay") // who gave it with sam
	says("fay is locked until: daycared unlock fay")
	unlocked(t, st, operator, true)
	says("")
	_, _, err := st.StopAgent(t.Context(), boss, "uid:1000")
	did(nil, err)
	says("uid:1000 is stopped until: daycared resume uid:1000")
	did(st.ResumeAgent(t.Context(), boss, "uid:1000"))
	did(st.StopAll(t.Context(), samAt))
	says("everything is stopped by sam until: daycared resume")
	did(nil, st.Resume(t.Context(), boss))
	left := team()
	left.People, left.Routes = []connectors.Person{kim}, []engine.Route{{Ask: []string{"kim"}}}
	st.Configure(left)
	says("sam is not configured")
}
