package permissions

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions/i18n"
)

var house = Policy{
	Auto:          []string{"read_*", "list_files"},
	Gated:         []string{"write_*", "read_secret", "run_command"},
	Forbidden:     []string{"delete_*", "write_forbidden"},
	HighRiskTools: []string{"run_*"},
	HighRiskTags:  tags("@write:/etc", "@read:/secret", "@events"),
}

// held makes a grant of the caller that the requests of these tests come from.
func held(id ID, change func(*Grant)) Grant {
	g := Grant{ID: id, Caller: "agent:scribe", CreatedAt: noon}
	change(&g)
	return g
}

// What the configuration grants is held without any grant, opens no gate, and makes no grant needed.
func TestEvaluateWhatTheConfigurationGives(t *testing.T) {
	p := house
	p.Held = tags("@network", "@write:/srv")
	files := held("files", func(g *Grant) { g.Tags = tags("@write:/srv", "@read:/home") })
	ask := func(kind Kind, tool string, asked ...string) Request {
		return Request{Kind: kind, Tool: tool, Tags: tags(asked...), Caller: Caller{Name: "agent:scribe"}, Session: "s1"}
	}
	for _, c := range []struct {
		name string
		r    Request
		want Verdict
	}{
		{"all of it", ask(KindPermission, "", "@network", "@read:/srv/www"), Verdict{Held: tags("@network", "@read:/srv/www")}},
		{"a part", ask(KindPermission, "", "@network", "@workspace"), Verdict{Ask: true, Held: tags("@network")}},
		{"and a grant", ask(KindPermission, "", "@network", "@read:/home"),
			Verdict{Held: tags("@network", "@read:/home"), Grants: []ID{"files"}}},
		{"which is not needed", ask(KindPermission, "", "@write:/srv"), Verdict{Held: tags("@write:/srv")}},
		{"an auto tool", ask(KindTool, "read_file", "@read:/srv/a"), Verdict{Held: tags("@read:/srv/a")}},
		{"a gated tool", ask(KindTool, "write_file", "@write:/srv/a"), Verdict{Ask: true, Held: tags("@write:/srv/a")}},
		{"a forbidden tool", ask(KindTool, "delete_x", "@network"), Verdict{Forbidden: "delete_x"}},
	} {
		got := p.Evaluate(c.r, []Grant{files}, noon)
		if got.Ask != c.want.Ask || got.Forbidden != c.want.Forbidden || !slices.Equal(got.Held, c.want.Held) ||
			!slices.Equal(got.Grants, c.want.Grants) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// What the kernel keeps in the workspace runs unasked where the configuration says so, and nothing else of an agent does.
func TestWhatTheSandboxHoldsRunsUnasked(t *testing.T) {
	p := Policy{Sandboxed: true, Held: tags("@write:/srv/code", "@network"), HighRiskTags: tags("@network")}
	run := func(input string, change ...func(*Request)) Request {
		r := Request{
			Kind: KindTool, Tool: "run_command", Input: []byte(input), Caller: Caller{Name: "agent:scribe"}, Session: "s1", Cwd: "/srv/code",
		}
		for _, c := range change {
			c(&r)
		}
		return r
	}
	step := func(calls ...Call) func(*Request) {
		return func(r *Request) { r.Tool, r.Input, r.Calls = "", nil, calls }
	}
	none := func(*Policy) {}
	command := `{"command":"make"}`
	calls := []Call{{N: 1, Tool: "run_command", Input: []byte(command)}, {N: 2, Tool: "run_command", Input: []byte(command)}}
	elsewhere := held("data", func(g *Grant) { g.Tags = tags("@read:/srv/data") })
	inside := held("docs", func(g *Grant) { g.Tags = tags("@read:/srv/code/docs") })
	over := held("old", func(g *Grant) { g.Tags, g.RevokedAt = tags("@read:/srv/data"), noon })
	for _, c := range []struct {
		name   string
		r      Request
		p      func(*Policy)
		grants []Grant
		runs   bool
	}{
		{"a command", run(command), none, nil, true},
		{"that writes", run(`{"command":"make","write":["."]}`, func(r *Request) { r.Tags = tags("@write:/srv/code") }), none, nil, true},
		{"a step of commands", run("", step(calls...)), none, nil, true},
		{"with a grant inside", run(command), none, []Grant{inside}, true},
		{"that is gated by name", run(command), func(p *Policy) { p.Gated = []string{"run_*"} }, nil, true},
		{"with a grant that is over", run(command), none, []Grant{over}, true},

		{"without the key", run(command), func(p *Policy) { p.Sandboxed = false }, nil, false},
		{"with the network", run(`{"command":"make","network":true}`, func(r *Request) { r.Tags = tags("@network") }), none, nil, false},
		{"with a grant outside", run(command), none, []Grant{elsewhere}, false},
		{"that reads outside", run(command, func(r *Request) { r.Tags = tags("@read:/srv/codex") }), none, nil, false},
		{"of an agent that may read outside", run(command), func(p *Policy) { p.Held = append(p.Held, tags("@read:/srv/data")...) }, nil, false},
		{"of an agent without a workspace", run(command, func(r *Request) { r.Cwd = "" }), func(p *Policy) { p.Held = nil }, nil, false},
		{"that cannot be read", run(`{"command":`), none, nil, false},
		{"of a hook", run(command, func(r *Request) { r.Hook = "claude-code" }), none, nil, false},
		{"of an ACP agent", run(command, func(r *Request) { r.Hook = "acp" }), none, nil, false},
		{"of another program", run(command, func(r *Request) { r.Caller.Name = "deploy" }), none, nil, false},
		{"of another tool", run(command, func(r *Request) { r.Tool = "ops/run_command" }), none, nil, false},
		{"beside another tool", run("", step(calls[0], Call{N: 2, Tool: "write_file"})), none, nil, false},
		{"that is high risk by name", run(command), func(p *Policy) { p.HighRiskTools = []string{"run_command"} }, nil, false},
		{"that is high risk by what it does", run(command), func(p *Policy) {
			p.ReadCall = func(Request, Call) CallReading { return CallReading{Risks: []i18n.Phrase{"destroys data"}} }
		}, nil, false},
		{"that a rule may ask about", run(command), func(p *Policy) {
			p.JudgeRules = func(Request, Call, []Grant, time.Time) Ruling { return Ruling{Unsure: true} }
		}, nil, false},
		{"that a rule asks about", run(command), func(p *Policy) {
			p.JudgeRules = func(Request, Call, []Grant, time.Time) Ruling { return Ruling{Effect: RuleAsks, Rule: 1} }
		}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := p
			p.Held = slices.Clone(p.Held)
			c.p(&p)
			if v := p.Evaluate(c.r, c.grants, noon); v.Ask == c.runs || c.runs && v.Auto[0].Pattern != "sandboxed: allow" {
				t.Errorf("%+v", v)
			}
		})
	}
	p.Auto = []string{"run_command"}
	if v := p.Evaluate(run(command), nil, noon); v.Ask || v.Auto[0].Pattern != "run_command" {
		t.Errorf("a tool that runs unasked by its name: %+v", v)
	}
	p.JudgeRules = func(Request, Call, []Grant, time.Time) Ruling { return Ruling{Effect: RuleDenies, Rule: 1} }
	if v := p.Evaluate(run(command), nil, noon); v.Forbidden == "" {
		t.Errorf("a rule that denies it: %+v", v)
	}
}

func TestEvaluate(t *testing.T) {
	tool := func(name string, asked ...string) Request {
		return Request{Kind: KindTool, Tool: name, Tags: tags(asked...), Caller: Caller{Name: "agent:scribe"}, Session: "s1"}
	}
	step := func(names ...string) Request {
		r := tool("")
		for i, n := range names {
			r.Calls = append(r.Calls, Call{N: i + 1, Tool: n})
		}
		return r
	}
	ask := func(asked ...string) Request {
		return Request{Kind: KindPermission, Tags: tags(asked...), Caller: Caller{Name: "agent:scribe"}, Session: "s1"}
	}
	network := held("net", func(g *Grant) { g.Tags = tags("@network") })
	files := held("files", func(g *Grant) { g.Tags = tags("@write:/srv", "@read:/home") })
	writes := held("writes", func(g *Grant) { g.Tool = "write_file" })
	all := held("all", func(g *Grant) { g.Tool, g.Session = AllTools, "s1" })
	runs := held("runs", func(g *Grant) { g.Tool = "run_command" })
	for _, c := range []struct {
		name   string
		r      Request
		grants []Grant
		want   Verdict
	}{
		{"auto", tool("read_file"), nil, Verdict{}},
		{"auto by name", tool("list_files"), nil, Verdict{}},
		{"gated", tool("write_file"), nil, Verdict{Ask: true}},
		{"gated beats auto", tool("read_secret"), nil, Verdict{Ask: true}},
		{"forbidden beats gated", tool("write_forbidden"), nil, Verdict{Forbidden: "write_forbidden"}},
		{"forbidden beats every grant", tool("delete_all"), []Grant{all}, Verdict{Forbidden: "delete_all"}},
		{"forbidden, with a slash in its name", tool("delete_a/b"), nil, Verdict{Forbidden: "delete_a/b"}},
		{"unknown is gated", tool("teleport"), nil, Verdict{Ask: true}},
		{"no name is gated", tool(""), nil, Verdict{Ask: true}},
		{"forbidden by its server's own name", tool("mcp__git__delete_it"), nil, Verdict{Forbidden: "mcp__git__delete_it"}},
		{"forbidden, with a server's underscores", tool("git__delete_x__y"), nil, Verdict{Forbidden: "git__delete_x__y"}},
		{"one forbidden call of a step", step("read_file", "delete_x"), nil, Verdict{Forbidden: "delete_x"}},
		{"one gated call of a step", step("read_file", "write_file"), nil, Verdict{Ask: true}},
		{"no gated call of a step", step("read_file", "list_files"), nil, Verdict{}},

		{"gate opened", tool("write_file"), []Grant{network, writes}, Verdict{Grants: []ID{"writes"}}},
		{"gate opened by all", tool("write_file"), []Grant{all}, Verdict{Grants: []ID{"all"}}},
		{"all does not open high risk", tool("run_command"), []Grant{all}, Verdict{Ask: true}},
		{"no grant opens high risk", tool("run_command"), []Grant{all, runs}, Verdict{Ask: true}},
		{"part of a step opened", step("write_file", "run_command"), []Grant{writes},
			Verdict{Ask: true, Grants: []ID{"writes"}}},
		{"all of a step opened", step("write_file", "write_x"), []Grant{writes, all}, Verdict{Grants: []ID{"all", "writes"}}},
		{"a held tag opens no gate", tool("write_file", "@network"), []Grant{network},
			Verdict{Ask: true, Held: tags("@network"), Grants: []ID{"net"}}},
		{"an opened gate grants no tag", tool("write_file", "@network"), []Grant{writes},
			Verdict{Ask: true, Grants: []ID{"writes"}}},
		{"tag and gate", tool("write_file", "@network"), []Grant{writes, network},
			Verdict{Held: tags("@network"), Grants: []ID{"net", "writes"}}},
		{"auto that needs a tag", tool("read_file", "@network"), nil, Verdict{Ask: true}},

		{"tag held", ask("@network"), []Grant{network}, Verdict{Held: tags("@network"), Grants: []ID{"net"}}},
		{"some tags held", ask("@events", "@read:/srv/a", "@write:/home"), []Grant{files, network},
			Verdict{Ask: true, Held: tags("@read:/srv/a"), Grants: []ID{"files"}}},
		{"tags held by two grants", ask("@write:/srv", "@network"), []Grant{network, files},
			Verdict{Held: tags("@write:/srv", "@network"), Grants: []ID{"files", "net"}}},
		{"no tag held", ask("@write:/home"), []Grant{files}, Verdict{Ask: true}},
		{"grants of tools hold no tag", ask("@network"), []Grant{all, writes}, Verdict{Ask: true}},
		{"nothing asked is no yes", ask(), []Grant{all, network}, Verdict{Ask: true}},

		{"pause", confirmRequest(), []Grant{all, network}, Verdict{Ask: true}},
		{"clarification", clarification(), []Grant{all, network}, Verdict{Ask: true}},
		{"unknown kind", Request{Kind: "other"}, nil, Verdict{Ask: true}},
	} {
		t.Run("B4/"+c.name, func(t *testing.T) {
			got := house.Evaluate(c.r, c.grants, noon)
			if got.Ask != c.want.Ask || got.Forbidden != c.want.Forbidden ||
				!slices.Equal(got.Held, c.want.Held) || !slices.Equal(got.Grants, c.want.Grants) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// A malformed pattern never makes anything easier.
func TestMalformedPatterns(t *testing.T) {
	t.Run("C5/malformed patterns", func(t *testing.T) {
		r := Request{Kind: KindTool, Tool: "x"}
		auto := []string{"*"}
		if v := (Policy{Auto: []string{"["}}).Evaluate(r, nil, noon); !v.Ask {
			t.Error("an unreadable pattern let a tool run")
		}
		if v := (Policy{Auto: auto, Gated: []string{"[a"}}).Evaluate(r, nil, noon); !v.Ask {
			t.Error("an unreadable gate stands open")
		}
		if v := (Policy{Auto: auto, Forbidden: []string{"a[]"}}).Evaluate(r, nil, noon); v.Forbidden != "x" {
			t.Error("an unreadable ban was lifted")
		}
		if !(Policy{HighRiskTools: []string{`\`}}).HighRisk(r) {
			t.Error("an unreadable risk is none")
		}
		if v := (Policy{Auto: auto}).Evaluate(Request{Kind: KindTool, Tool: "a/b"}, nil, noon); v.Ask {
			t.Error("a star stops at a slash")
		}
	})
}

func TestHighRisk(t *testing.T) {
	ask := func(asked ...string) Request { return Request{Kind: KindPermission, Tags: tags(asked...)} }
	heldAlready := ask("@write:/etc", "@network")
	heldAlready.Held = tags("@write:/etc")
	for _, c := range []struct {
		name string
		r    Request
		want bool
	}{
		{"tool", Request{Kind: KindTool, Tool: "run_command"}, true},
		{"tool with a slash", Request{Kind: KindTool, Tool: "run_a/b"}, true},
		{"tool of a server", Request{Kind: KindTool, Tool: "box__run_command"}, true},
		{"call of a step", Request{Kind: KindTool, Calls: []Call{{Tool: "write_file"}, {Tool: "run_x"}}}, true},
		{"harmless tool", Request{Kind: KindTool, Tool: "write_file"}, false},
		{"harmless tool with a tag", Request{Kind: KindTool, Tool: "write_file", Tags: tags("@events")}, true},
		{"the tag itself", ask("@write:/etc"), true},
		{"below it", ask("@network", "@write:/etc/ssh"), true},
		{"above it", ask("@write:/"), true},
		{"what it covers", ask("@read:/etc/shadow"), true},
		{"write where reading is", ask("@write:/secret/key"), true},
		{"read above what may be written", ask("@read:/"), true},
		{"word", ask("@events"), true},
		{"beside it", ask("@write:/etc_old", "@network", "@workspace"), false},
		{"held already", heldAlready, false},
		{"confirm", confirmRequest(), false},
	} {
		t.Run("C5/"+c.name, func(t *testing.T) {
			if got := house.HighRisk(c.r); got != c.want {
				t.Errorf("%s: high risk %v, want %v", c.name, got, c.want)
			}
		})
	}
}

func TestGrantLive(t *testing.T) {
	scribe := Caller{Name: "agent:scribe"}
	for _, c := range []struct {
		name    string
		change  func(*Grant)
		caller  Caller
		session string
		now     time.Time
		want    bool
	}{
		{"for good", func(*Grant) {}, scribe, "", dusk, true},
		{"for good, in a session", func(*Grant) {}, scribe, "s1", dusk, true},
		{"from its first moment", func(*Grant) {}, scribe, "", noon, true},
		{"not before it", func(*Grant) {}, scribe, "", noon.Add(-1), false},
		{"its session", func(g *Grant) { g.Session = "s1" }, scribe, "s1", dusk, true},
		{"another session", func(g *Grant) { g.Session = "s1" }, scribe, "s2", dusk, false},
		{"no session", func(g *Grant) { g.Session = "s1" }, scribe, "", dusk, false},
		{"another caller", func(*Grant) {}, Caller{Name: "uid:1000"}, "", dusk, false},
		{"revoked", func(g *Grant) { g.RevokedAt = noon }, scribe, "", dusk, false},
		{"until later", func(g *Grant) { g.Until = dusk }, scribe, "", dusk.Add(-1), true},
		{"until now", func(g *Grant) { g.Until = dusk }, scribe, "", dusk, false},
		{"over", func(g *Grant) { g.Until = dusk }, scribe, "", dusk.Add(1), false},
		{"of nobody in particular", func(g *Grant) { g.Caller = Anonymous }, Caller{Name: Anonymous}, "", dusk, false},
	} {
		if got := held("g", c.change).Live(c.caller, c.session, c.now); got != c.want {
			t.Errorf("%s: live %v, want %v", c.name, got, c.want)
		}
	}
}

func TestGrantOpens(t *testing.T) {
	call := Call{Tool: "write_file", Input: []byte(`{"a":1}`)}
	for _, c := range []struct {
		name  string
		grant Grant
		call  Call
		risky bool
		want  bool
	}{
		{"its tool", Grant{Tool: "write_file"}, call, false, true},
		{"its tool, high risk", Grant{Tool: "write_file"}, call, true, false},
		{"another tool", Grant{Tool: "write"}, call, false, false},
		{"all", Grant{Tool: AllTools}, call, false, true},
		{"all, high risk", Grant{Tool: AllTools}, call, true, false},
		{"its call", Grant{Tool: "write_file", Call: CallDigest(Request{}, call)}, call, false, true},
		{"its call, high risk", Grant{Tool: "write_file", Call: CallDigest(Request{}, call)}, call, true, false},
		{"a shell", Grant{Tool: "Bash"}, Call{Tool: "Bash"}, false, false},
		{"a shell, all", Grant{Tool: AllTools}, Call{Tool: "Bash"}, false, false},
		{"another call", Grant{Tool: "write_file", Call: CallDigest(Request{}, call)}, Call{Tool: "write_file"}, false, false},
		{"tags open nothing", Grant{Tags: tags("@network")}, call, false, false},
		{"nor what has no name", Grant{Tags: tags("@network")}, Call{}, false, false},
	} {
		if got := c.grant.AllowsCall(Request{Caller: Caller{Name: "agent:scribe"}}, c.call, c.risky); got != c.want {
			t.Errorf("%s: opens %v, want %v", c.name, got, c.want)
		}
		foreign := Request{Caller: CallerUID(1000)}
		if got := c.grant.AllowsCall(foreign, c.call, c.risky); got != (c.want && c.grant.Call != Digest{}) {
			t.Errorf("%s, asked by a program that is not ours: opens %v", c.name, got)
		}
	}
}

// A call that a hook leaves to its agent's own mode needs nobody, unless policy names the tool, or the agent's rules
// ask.
func TestPolicyIsAboveWhatAHookLeaves(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Request)
		ask    bool
	}{
		{"left", func(*Request) {}, false},
		{"not said to be harmless", func(r *Request) { r.Harmless = false }, true},
		{"no hook", func(r *Request) { r.Hook = "" }, true},
		{"asked by the agent's own rules", func(r *Request) { r.HookStage = HookAgain }, true},
		{"an agent of ours", func(r *Request) { r.Caller.Name = "agent:scribe" }, true},
		{"gated", func(r *Request) { r.Tool = "read_secret" }, true},
		{"high risk", func(r *Request) { r.Tool = "run_x" }, true},
		{"tags", func(r *Request) { r.Tags = tags("@network") }, true},
	} {
		r := Request{Kind: KindTool, Tool: "Edit", Hook: "claude-code", HookStage: HookBefore, Harmless: true, Caller: Caller{Name: "uid:1000"}}
		c.change(&r)
		if got := house.Evaluate(r, nil, noon); got.Ask != c.ask || (len(got.Auto) == 0) != c.ask && c.name != "tags" {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	r := Request{Kind: KindTool, Tool: "delete_x", Hook: "claude-code", Harmless: true, Caller: Caller{Name: "uid:1000"}}
	if got := house.Evaluate(r, nil, noon); got.Forbidden != "delete_x" {
		t.Errorf("forbidden: %+v", got)
	}
}

// TestRulesDecideTheStrongestFirst: deny before ask before silence before allow, over all calls of a step; of equal ones the first.
func TestRulesDecideTheStrongestFirst(t *testing.T) {
	rules := map[string]Ruling{
		"allowed": {Effect: RuleAllows, Rule: 1, Exact: true}, "also": {Effect: RuleAllows, Rule: 2}, "silent": {Reason: "no rule fits"},
		"asked": {Effect: RuleAsks, Rule: 3}, "asked_too": {Effect: RuleAsks, Rule: 4}, "denied": {Effect: RuleDenies, Rule: 5},
		"nameless": {Effect: RuleAllows, Reason: "no number"},
		"granted":  {Effect: RuleAllows, Rule: 8, Grants: "g1 g2"}, "run_granted": {Effect: RuleAllows, Grants: "g3"},
		"run_it": {Effect: RuleAllows, Rule: 6}, "run_exact": {Effect: RuleAllows, Rule: 7, Exact: true},
	}
	p := Policy{HighRiskTools: []string{"run_*"}, JudgeRules: func(_ Request, c Call, _ []Grant, at time.Time) Ruling {
		if !at.Equal(noon) {
			t.Errorf("the rules are asked of %s", at)
		}
		return rules[c.Tool]
	}}
	silenced := rules["nameless"]
	silenced.Effect = RuleSilent
	for _, c := range []struct {
		tools  string
		ask    bool
		auto   string
		grants []ID
		want   Ruling
		no     string
	}{
		{tools: "granted", grants: []ID{"g1", "g2"}, want: rules["granted"]},
		{tools: "run_granted", ask: true, want: rules["run_granted"]},
		{tools: "granted asked", ask: true, grants: []ID{"g1", "g2"}, want: rules["asked"]},
		{tools: "allowed", auto: "rule 1", want: rules["allowed"]},
		{tools: "allowed also", auto: "rule 1 rule 2", want: rules["allowed"]},
		{tools: "allowed silent", ask: true, auto: "rule 1", want: rules["silent"]},
		{tools: "silent allowed", ask: true, auto: "rule 1", want: rules["silent"]},
		{tools: "silent asked allowed", ask: true, auto: "rule 1", want: rules["asked"]},
		{tools: "asked asked_too", ask: true, want: rules["asked"]},
		{tools: "nameless", ask: true, want: silenced},
		{tools: "run_it", ask: true, want: rules["run_it"]},
		{tools: "run_exact", auto: "rule 7", want: rules["run_exact"]},
		{tools: "allowed denied", no: "denied", want: rules["denied"]},
	} {
		r := Request{Kind: KindTool, Caller: CallerUID(1000)}
		for _, tool := range strings.Fields(c.tools) {
			r.Calls = append(r.Calls, Call{N: len(r.Calls) + 1, Tool: tool})
		}
		v := p.Evaluate(r, nil, noon)
		var auto []string
		for _, a := range v.Auto {
			auto = append(auto, a.Pattern)
		}
		if v.Ask != c.ask || strings.Join(auto, " ") != c.auto || v.Ruling != c.want || v.Forbidden != c.no || !slices.Equal(v.Grants, c.grants) {
			t.Errorf("%s: %+v", c.tools, v)
		}
	}
	one := Request{Kind: KindTool, Tool: "allowed", Caller: CallerUID(1000)}
	p.IgnoreAllowRules = true
	rules["by_grant"] = Ruling{Effect: RuleAllows, Grants: "g4"}
	if v := p.Evaluate(Request{Kind: KindTool, Tool: "by_grant", Caller: CallerUID(1000)}, nil, noon); v.Ask || v.Ruling.Grants != "g4" {
		t.Errorf("a grant of a rule is none of the configuration's rules: %+v", v)
	}
	if v := p.Evaluate(one, nil, noon); !v.Ask || v.Ruling.Effect != RuleSilent {
		t.Errorf("rules that may not allow: %+v", v)
	}
}

// TestARulingIsNamed: people and the audit read the rule's number and why it is there; without a rule they read nothing.
func TestARulingIsNamed(t *testing.T) {
	why := Ruling{Effect: RuleAsks, Rule: 3, Why: "it pays"}
	for want, r := range map[string]Ruling{
		"": {Why: "it pays"}, "rule 3": {Rule: 3}, `rule 3, "it pays"`: why, "grant g1 and grant g2": {Grants: "g1 g2", Why: "it pays"},
		"grant g1, trusted": {Grants: "g1", Why: Trusted}, `rule 3, "trust"`: {Rule: 3, Why: Trusted},
	} {
		if got := r.Name(); got != want {
			t.Errorf("%+v is named %q, not %q", r, got, want)
		}
	}
	for want, r := range map[string]Ruling{
		`verdict ask rule rule 3, "it pays"`: why, "reason no rule fits": {Reason: "no rule fits"}, "": {},
	} {
		if got := strings.Join(r.Detail(), " "); got != want {
			t.Errorf("of %+v the audit says %q, not %q", r, got, want)
		}
	}
	refused, none := Request{Ruled: []Ruling{why, {PromptsRefused: 3}}}, Request{Ruled: []Ruling{why}}
	if refused.PromptsRefused() != 3 || none.PromptsRefused() != 0 {
		t.Errorf("so many prompts were refused: %d, %d", refused.PromptsRefused(), none.PromptsRefused())
	}
	r := Request{Ruled: []Ruling{{Effect: RuleAllows, Rule: 1}, why}}
	got := [3]string{r.DecidingRule(RuleAllows), r.DecidingRule(RuleAsks), r.DecidingRule(RuleDenies)}
	if got != [3]string{"rule 1", why.Name(), ""} {
		t.Errorf("the request is ruled by %q", got)
	}
}

// TestOrdinaryCallsAreNoHighRisk: only calls that a name, a kind or a pattern fits whole are ordinary, and none that a shell would change.
func TestOrdinaryCallsAreNoHighRisk(t *testing.T) {
	for _, c := range []struct {
		name, tool string
		ordinary   Ordinary
		texts      []string
		risky      bool
	}{
		{"nothing is ordinary", "Bash", Ordinary{}, []string{"make test"}, true},
		{"its name", "Bash", Ordinary{Tools: []string{"Ba*"}}, []string{"make test"}, false},
		{"another name", "Bash", Ordinary{Tools: []string{"Bat*"}}, []string{"make test"}, true},
		{"a malformed name", "Bash", Ordinary{Tools: []string{"["}}, []string{"make test"}, true},
		{"its kind", "Bash", Ordinary{Effects: []Effect{DoesExecute}}, []string{"make test"}, false},
		{"another kind", "Bash", Ordinary{Effects: []Effect{DoesEdit}}, []string{"make test"}, true},
		{"its words", "Bash", Ordinary{Patterns: []string{"make te*"}}, []string{"make  test"}, false},
		{"the second pattern", "Bash", Ordinary{Patterns: []string{"go test", "make te*"}}, []string{"make test"}, false},
		{"a word too many", "Bash", Ordinary{Patterns: []string{"make *"}}, []string{"make test all"}, true},
		{"a word too few", "Bash", Ordinary{Patterns: []string{"make * *"}}, []string{"make test"}, true},
		{"another first word", "Bash", Ordinary{Patterns: []string{"make test"}}, []string{"cake test"}, true},
		{"another second word", "Bash", Ordinary{Patterns: []string{"make test"}}, []string{"make best"}, true},
		{"what a shell changes", "Bash", Ordinary{Patterns: []string{"make *"}}, []string{"make $x"}, true},
		{"two lines", "Bash", Ordinary{Patterns: []string{"make *"}}, []string{"make\ntest"}, true},
		{"the folder above", "Bash", Ordinary{Patterns: []string{"cat *"}}, []string{"cat ../x"}, true},
		{"one of two texts", "Bash", Ordinary{Patterns: []string{"make *"}}, []string{"make test", "rm x"}, true},
		{"no text", "Bash", Ordinary{Patterns: []string{"make *"}}, nil, true},
		{"a file", "Write", Ordinary{Patterns: []string{"/srv/*.md"}}, []string{"/srv/a b/it's.md"}, false},
		{"another file", "Write", Ordinary{Patterns: []string{"/srv/*.md"}}, []string{"/srv/a.go"}, true},
	} {
		t.Run("C5/"+c.name, func(t *testing.T) {
			p := Policy{Ordinary: c.ordinary, ReadCall: func(Request, Call) CallReading {
				return CallReading{Texts: c.texts, Risks: []i18n.Phrase{"risk"}}
			}}
			if got := p.HighRisk(Request{Kind: KindTool, Tool: c.tool}); got != c.risky {
				t.Errorf("high risk: %t", got)
			}
		})
	}
}

// TestAnAutoEntryIsFoundByItsName: the first entry too, and a name that is no pattern of itself; a shell only by its own name.
func TestAnAutoEntryIsFoundByItsName(t *testing.T) {
	p := Policy{Auto: []string{"get[x]", "run_tests", "read_*", "run_*"}}
	for tool, want := range map[string]string{
		"get[x]": "get[x]", "run_tests": "run_tests", "read_file": "read_*", "run_command": "", "write": "",
	} {
		var got string
		if v := p.Evaluate(Request{Kind: KindTool, Tool: tool}, nil, noon); !v.Ask {
			got = v.Auto[0].Pattern
		}
		if got != want {
			t.Errorf("%s is let through by %q, not %q", tool, got, want)
		}
	}
	left := Request{Kind: KindTool, Tool: "get[x]", Hook: "codex", Harmless: true, Caller: CallerUID(1000)}
	if v := p.Evaluate(left, nil, noon); v.Ask || v.Auto[0].Pattern != "get[x]" {
		t.Errorf("what a hook leaves to its agent: %+v", v)
	}
}

// TestToolsOfOursAreNoToolsOfOtherAgents: what the hook of another agent asks about may do something else under the same name, unless it
// can do nothing.
func TestToolsOfOursAreNoToolsOfOtherAgents(t *testing.T) {
	p, ours := Policy{Auto: []string{"read_file"}, OwnAuto: true}, Caller{Name: "agent:builder"}
	for _, c := range []struct {
		caller      Caller
		hook, input string
		asked       bool
	}{
		{CallerUID(1000), "gemini", `{"path":"/srv/a"}`, true}, {CallerUID(1000), "gemini", `{"path":"/dev/null"}`, false},
		{CallerUID(1000), "gemini", `{"path":"/dev/null","to":"a"}`, true}, {CallerUID(1000), "gemini", `{"to":"/dev/null"}`, true},
		{CallerUID(1000), "gemini", `"/dev/null"`, true}, {CallerUID(1000), "", `{"path":"/srv/a"}`, false},
		{ours, "gemini", `{"path":"/srv/a"}`, false},
	} {
		r := Request{Kind: KindTool, Tool: "read_file", Hook: c.hook, Caller: c.caller, Input: json.RawMessage(c.input)}
		if v := p.Evaluate(r, nil, noon); v.Ask != c.asked {
			t.Errorf("%s by hook %q of %s is asked: %t", c.input, c.hook, c.caller.Name, v.Ask)
		}
	}
}

// Rules see no grant of a rule of people who may not decide the call, and every other grant.
func TestRulesSeeNoGrantThatDoesNotStand(t *testing.T) {
	live := []Grant{
		held("stands", func(g *Grant) { g.Rule = NewGrantedRule([]string{"go test"}, "", "") }),
		held("does not stand", func(g *Grant) { g.Rule = NewGrantedRule([]string{"go vet"}, "", "") }),
		held("no rule", func(g *Grant) { g.Tool = "Bash" }),
	}
	var seen []ID
	p := Policy{
		GrantHolds: func(g Grant, _ Request) bool { return g.ID == "stands" },
		JudgeRules: func(_ Request, _ Call, live []Grant, _ time.Time) Ruling {
			for _, g := range live {
				seen = append(seen, g.ID)
			}
			return Ruling{}
		},
	}
	p.judgeCall(Request{}, Call{}, live, noon)
	if want := []ID{"stands", "no rule"}; !slices.Equal(seen, want) {
		t.Errorf("rules see %q, want %q", seen, want)
	}
}

// TestAToolIsMeantByItsOwnName: lists that restrict hold for the name that a tool has on its server, too, where models get another one.
func TestAToolIsMeantByItsOwnName(t *testing.T) {
	long := strings.Repeat("t", 99)
	for _, c := range []struct {
		tool, pattern string
		means         bool
	}{
		{"s__db_drop-d45a7b16", "db.drop", true}, {"s__db_drop-d45a7b16", "s__db.drop", true}, {"s__db_drop-d45a7b16", "s__db.*", true},
		{"s__db_drop-d45a7b16", "db/*", true}, {"s__db_drop-d45a7b16", "db_drop", true}, {"s__db_drop-d45a7b16", "db.dro", false},
		{"s__db_drop-d45a7b16", "t__db.drop", false}, {"a_b-2e7336dc__c", "a.b__*", true}, {"a_b-2e7336dc__c", "a.c__*", false},
		{"s__" + long[:52] + "-2e7336dc", "s__" + long, true}, {"s__" + long[:52] + "-2e7336dc", "s__" + long[:40], false},
		{"s__db_drop", "db.drop", false}, {"s__db_drop-d45a7b1", "db.drop", false},
	} {
		r := Request{Kind: KindTool, Tool: c.tool, Caller: Caller{Name: "agent:scribe"}}
		auto := []string{"s__*", "a_b*"}
		if got := (Policy{Auto: auto, Forbidden: []string{c.pattern}}).Evaluate(r, nil, noon); (got.Forbidden != "") != c.means {
			t.Errorf("%s is forbidden by %s: %t", c.tool, c.pattern, !c.means)
		}
		risky := (Policy{HighRiskTools: []string{c.pattern}}).HighRisk(r)
		if server := strings.Contains(c.pattern, "__"); risky != c.means {
			t.Errorf("%s is high risk by %s: %t", c.tool, c.pattern, risky)
		} else if got := (Policy{Auto: auto, Gated: []string{c.pattern}}).Evaluate(r, nil, noon); server && got.Ask != c.means {
			t.Errorf("%s is gated by %s: %t", c.tool, c.pattern, got.Ask)
		}
	}
}

// TestListsHoldForAServersToolAsEachProgramCallsIt: those that restrict. What tools.auto has is no wider by it.
func TestListsHoldForAServersToolAsEachProgramCallsIt(t *testing.T) {
	for _, c := range []struct {
		pattern, hook, tools string
		means                bool
	}{
		{"fs__delete", "opencode", "fs_delete", true}, {"mcp__fs__delete", "opencode", "fs_delete", true},
		{"fs/delete", "copilot", "fs-delete fs/delete", true}, {"mcp__my-srv__rm_*", "gemini", "mcp_my_srv_rm_x mcp_my-srv_rm_x", true},
		{"fs/delete", "vscode", "mcp_fs_delete fs_delete", true}, {"fs_delete", "claude-code", "mcp__fs__delete fs-delete", false},
		{"fs_delete", "codex", "mcp__fs__delete", false}, {"fs__delete", "claude-code", "mcp__fs__delete", true},
		{"fs/delete", "claude-code", "mcp__fs__delete", true}, {"fs/delete", "claude-code", "mcp__fs__x__delete", false},
		{"del[a-e]te_*", "opencode", "github_delete_repository", true}, {"delete_*", "copilot", "github-delete_repository", true},
		{"delete_*", "copilot", "github--delete_it", true},
		{"delete_*", "gemini", "mcp_github_delete_repository", true}, {"delete_*", "cursor", "MCP:delete_it mcp__delete_it", true},
		{"delete_*", "opencode", "undelete_it list_delete", false}, {"mcp__*__*", "vscode", "list_it read_file", false},
		{"search", "gemini", "google_web_search", false}, {"delete", "", "fs_delete", false},
	} {
		for tool := range strings.FieldsSeq(c.tools) {
			r := Request{Kind: KindTool, Tool: tool, Hook: c.hook, Caller: Caller{Name: "bot1"}}
			if got := (Policy{Auto: []string{"*"}, Forbidden: []string{c.pattern}}).Evaluate(r, nil, noon); (got.Forbidden != "") != c.means {
				t.Errorf("%s is forbidden by %s: %t", tool, c.pattern, !c.means)
			}
			if (Policy{HighRiskTools: []string{c.pattern}}).HighRisk(r) != c.means {
				t.Errorf("%s is high risk by %s: %t", tool, c.pattern, !c.means)
			}
			server := strings.Contains(c.pattern, "/") || strings.Contains(c.pattern, "__")
			if got := (Policy{Auto: []string{"*"}, Gated: []string{c.pattern}}).Evaluate(r, nil, noon); server && got.Ask != c.means {
				t.Errorf("%s is gated by %s: %t", tool, c.pattern, got.Ask)
			}
			if got := (Policy{Auto: []string{c.pattern}}).Evaluate(r, nil, noon); !got.Ask && !matches([]string{c.pattern}, tool, false) {
				t.Errorf("%s runs unasked by %s", tool, c.pattern)
			}
		}
	}
	for _, tool := range []string{"MCP:delete", "mcp__delete"} { // of a server that Cursor does not say
		r := Request{Kind: KindTool, Tool: tool, Hook: "cursor", Harmless: true, Caller: Caller{Name: "bot1"}}
		for _, list := range []Policy{{Forbidden: []string{"fs/delete"}}, {Gated: []string{"mcp__fs__del*"}}} {
			list.Auto = []string{"*"}
			risky := (Policy{HighRiskTools: list.Gated}).HighRisk(r)
			if got := list.Evaluate(r, nil, noon); !got.Ask || got.Forbidden != "" || risky != (list.Gated != nil) {
				t.Errorf("%s, of %v and %v: %+v", tool, list.Forbidden, list.Gated, got)
			}
		}
	}
}

// TestListsHoldForNamesThatArePutTogether: forbidden, gated and high risk, wherever the server's name may end, and for what a shortened
// name may stand for.
func TestListsHoldForNamesThatArePutTogether(t *testing.T) {
	const long = "a_very_long_tool_name_that_goes_on_and_on_and_on_until_the_end_x"
	const cut = "mcp_long_a_very_long_tool_name..._and_on_and_on_until_the_end_x"
	context := func(tool string) string {
		return `{"hook.mcp_context":{"server_name":"long","tool_name":"` + tool + `"}}`
	}
	for _, c := range []struct {
		pattern, hook, tools, input string
		means                       bool
	}{
		{"meta/gh__del", "opencode", "meta_gh__del", "", true}, {"meta__gh__del", "copilot", "meta-gh__del", "", true},
		{"meta/gh__*", "gemini", "mcp_meta_gh__del", "", true}, {"meta/gh__del", "vscode", "mcp_meta_gh__del", "", true},
		{"meta/gh__del", "codex", "mcp__meta__gh__del", "", true}, {"a__b/c", "opencode", "a__b_c", "", true},
		{"a__b/c", "claude-code", "mcp__a__b__c", "", true}, {"a__b/c", "copilot", "a__b-c", "", true}, {"a__b/c", "acp", "a__b_c", "", true},
		{"gh/*", "claude-code", "mcp__gh_x__del", "", false}, {"gh/del", "claude-code", "mcp__gh__del2", "", false},
		{"meta/" + long, "copilot", ("meta-" + long)[:64], "", true}, {"meta/" + long + "y", "copilot", "meta-" + long, "", false},
		{"long/" + long, "gemini", cut, "", true}, {"long/*_end_x", "gemini", cut, "", true}, {"long/*_end_y", "gemini", cut, "", false},
		{"long/" + long, "gemini", cut, context(long), true}, {"long/" + long, "gemini", cut, context("a_very_x"), false},
		{"long/delete", "gemini", "mcp_long_del", context("delete"), true}, {"other/" + long, "gemini", cut, "", false},
		{"long/" + long, "codex", "mcp__long__a_very_long_t" + strings.Repeat("0a", 20), "", true},
		{"long/b*", "codex", "mcp__long__a_very_long_t" + strings.Repeat("0a", 20), "", false},
		{"long/" + long + "y", "codex", "mcp__long__" + long, "", false},
		{"A-Server-Of-Mine/del", "vscode", "mcp_a-server-of-m_del mcp_a-server-of-m2_del", "", true},
		{"a-server/del", "vscode", "mcp_a-server-of-m_del", "", false},
	} {
		for tool := range strings.FieldsSeq(c.tools) {
			r := Request{Kind: KindTool, Tool: tool, Hook: c.hook, Input: json.RawMessage(cmp.Or(c.input, "{}")), Caller: Caller{Name: "bot1"}}
			forbidden := (Policy{Auto: []string{"*"}, Forbidden: []string{c.pattern}}).Evaluate(r, nil, noon).Forbidden != ""
			gated := (Policy{Auto: []string{"*"}, Gated: []string{c.pattern}}).Evaluate(r, nil, noon).Ask
			if risky := (Policy{HighRiskTools: []string{c.pattern}}).HighRisk(r); forbidden != c.means || gated != c.means || risky != c.means {
				t.Errorf("%s of %s %s: forbidden %t, gated %t, high risk %t", tool, c.hook, c.pattern, forbidden, gated, risky)
			}
		}
	}
	for hook, tool := range map[string]string{"opencode": "meta_gh__del", "gemini": "mcp_meta_gh__del", "copilot": ("meta-" + long)[:64]} {
		r := Request{Kind: KindTool, Tool: tool, Hook: hook, Input: json.RawMessage(`{}`), Caller: Caller{Name: "bot1"}}
		if v := (Policy{Auto: []string{"*"}, Forbidden: []string{"gh__del", long}}).Evaluate(r, nil, noon); v.Forbidden == "" {
			t.Errorf("%s of %s is not forbidden by its own name", tool, hook)
		}
	}
	for letters, means := range map[int]bool{clearPart - 1: false, clearPart: true} { // so much is left of its own name
		r := Request{Kind: KindTool, Tool: strings.Repeat("s", maxToolName-1-letters) + "-" + long[:letters], Hook: "copilot"}
		if v := (Policy{Auto: []string{"*"}, Forbidden: []string{long}}).Evaluate(r, nil, noon); (v.Forbidden != "") != means {
			t.Errorf("a name of which %d letters are left is forbidden: %t", letters, !means)
		}
	}
	r := Request{Kind: KindTool, Tool: "mcp__gh__del", Hook: "cursor", Caller: Caller{Name: "bot1"}}
	if v := (Policy{Auto: []string{"*"}, Gated: []string{"fs/gh__del"}}).Evaluate(r, nil, noon); !v.Ask {
		t.Error("a tool with two parts of a server that Cursor does not say is not asked about")
	}
}

// TestTheServerOfAToolIsReadFromItsName: in every way that it may be put together, or as the hook says.
func TestTheServerOfAToolIsReadFromItsName(t *testing.T) {
	const ours = `{"hook.mcp_context":{"server_name":"x_y","tool_name":"long_name"}}`
	claude := func(server string) string { return `{"hook.mcp_server":{"name":"` + server + `"}}` }
	for _, c := range []struct {
		dialect, tool, input, want string
		another                    bool
	}{
		{"gemini", "mcp_x_y_long...g_name", ours, "x_y/long_name", false}, {"gemini", "mcp_a_b_c", `{}`, "a/b_c a_b/c", false},
		{"claude-code", "mcp__a__b__c", `{}`, "a/b__c a__b/c", false}, {"claude-code", "mcp__a__", `{}`, "", false},
		{"claude-code", "mcp__a__b__c", claude("a"), "a/b__c", false}, {"daycared", "a__b__c", `{}`, "a/b__c", false},
		{"claude-code", "mcp__a__b", claude("a (of the project)"), "", true}, {"daycared", "read_file", `{}`, "", false},
		{"claude-code", "Bash", `{}`, "", false},
	} {
		var got []string
		for _, of := range ServerTools(c.dialect, c.tool, json.RawMessage(c.input)) {
			got = append(got, of.Server+"/"+of.Name)
		}
		if strings.Join(got, " ") != c.want || OfAnotherServer(c.dialect, c.tool, json.RawMessage(c.input)) != c.another {
			t.Errorf("%s %s %s may be %q, of another server: %t", c.dialect, c.tool, c.input, got, !c.another)
		}
	}
}

// TestAWildcardStaysWithinItsServer: in tools.auto, and where a tool is named as no high risk.
func TestAWildcardStaysWithinItsServer(t *testing.T) {
	const metaX = `{"hook.mcp_server":{"name":"meta__x"}}`
	for _, c := range []struct {
		hook, tool, input, pattern string
		asked                      bool
	}{
		{"claude-code", "mcp__meta__x__go", `{}`, "mcp__meta__*", true}, {"claude-code", "mcp__meta__go", `{}`, "mcp__meta__*", false},
		{"claude-code", "mcp__meta__x__go", metaX, "mcp__meta__*", true}, {"claude-code", "mcp__meta__x__go", metaX, "mcp__meta__x__*", false},
		{"claude-code", "mcp__meta__x__go", `{"hook.mcp_server":{"name":"meta"}}`, "mcp__meta__*", false},
		{"claude-code", "mcp__meta__x__go", `{}`, "mcp__meta__x__*", false}, {"claude-code", "mcp__meta__x__go", `{}`, "mcp__*", false},
		{"claude-code", "mcp__meta__go", `{"hook.mcp_server":{"name":"meta (of the project)"}}`, "mcp__meta__go", true},
		{"claude-code", "mcp__meta__go", `{"hook.mcp_server":{"name":"meta (of the project)"}}`, "mcp__meta__*", true},
		{"claude-code", "mcp__claude_ai_Gmail__go", `{"hook.mcp_server":{"name":"claude.ai Gmail"}}`, "mcp__claude_ai_Gmail__go", false},
		{"codex", "mcp__meta__x__go", `{}`, "mcp__meta__*", true}, {"codex", "mcp__meta__x__go", `{}`, "mcp__meta__x__go", false},
		{"codex", "mcp__a__get__x", `{}`, "mcp__*__get_*", true}, {"codex", "mcp__a__get_x", `{}`, "mcp__*__get_*", false},
		{"gemini", "mcp_meta_admin_go", `{"hook.mcp_context":{"server_name":"meta_admin","tool_name":"go"}}`, "mcp_meta_*", true},
		{"gemini", "mcp_meta_admin_go", `{"hook.mcp_context":{"server_name":"meta","tool_name":"admin_go"}}`, "mcp_meta_*", false},
		{"gemini", "mcp_meta_admin_go", `{}`, "mcp_meta_*", true}, {"gemini", "mcp_meta_go", `{}`, "mcp_meta_*", false},
		{"cursor", "mcp__meta__go", `{}`, "mcp__meta__*", true}, {"cursor", "mcp__meta__go", `{}`, "mcp__*", false},
		{"opencode", "meta_admin_go", `{}`, "meta_*", true}, {"opencode", "meta_go", `{}`, "meta_*", false},
		{"opencode", "meta_admin_go", `{}`, "meta_admin_go", false}, {"opencode", "meta_admin_go", `{}`, "*", false},
		{"copilot", "meta-admin-go", `{}`, "meta-*", true}, {"copilot", "meta-admin_go", `{}`, "meta-*", false},
		{"vscode", "mcp_meta_admin_go", `{}`, "mcp_meta_*", true}, {"vscode", "mcp_meta_go", `{}`, "mcp_meta_*", false},
		{"opencode", "meta_get_x", `{}`, "*_get_*", false}, {"", "meta__x__go", `{}`, "meta__*", false},
	} {
		r := Request{Kind: KindTool, Tool: c.tool, Hook: c.hook, Input: json.RawMessage(c.input), Caller: Caller{Name: "uid:7", UID: 7}}
		if v := (Policy{Auto: []string{c.pattern}}).Evaluate(r, nil, noon); v.Ask != c.asked {
			t.Errorf("%s %s %s is asked about with %s in tools.auto: %t", c.hook, c.tool, c.input, c.pattern, v.Ask)
		}
		risky := Policy{
			Ordinary: Ordinary{Tools: []string{c.pattern}},
			ReadCall: func(Request, Call) CallReading { return CallReading{Risks: []i18n.Phrase{"it is"}} },
		}
		if risky.HighRisk(r) != c.asked {
			t.Errorf("%s %s %s is high risk with %s as ordinary: %t", c.hook, c.tool, c.input, c.pattern, !c.asked)
		}
	}
}

// TestWhatARuleMayBeAboutIsNotLeftUnasked: neither by its tool's name, nor by its agent's own mode, unless people gave a grant.
func TestWhatARuleMayBeAboutIsNotLeftUnasked(t *testing.T) {
	for _, unsure := range []bool{false, true} {
		p := Policy{Auto: []string{"search_files"}, JudgeRules: func(Request, Call, []Grant, time.Time) Ruling { return Ruling{Unsure: unsure} }}
		own := Request{Kind: KindTool, Tool: "search_files", Caller: Caller{Name: "agent:scribe"}, Session: "s1"}
		hook := Request{Kind: KindTool, Tool: "Grep", Caller: Caller{Name: "uid:7", UID: 7}, Hook: "claude-code", Harmless: true}
		for _, r := range []Request{own, hook} {
			if v := p.Evaluate(r, nil, noon); v.Ask != unsure {
				t.Errorf("%s is asked about: %t", r.Tool, v.Ask)
			}
		}
		given := held("search", func(g *Grant) { g.Tool = "search_files" })
		if v := p.Evaluate(own, []Grant{given}, noon); v.Ask {
			t.Error("what people gave a grant for is asked about")
		}
	}
}
