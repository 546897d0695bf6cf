package permissions

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"
)

// What an approval leaves behind, for every scope and kind.
func TestGrantsLeftBehind(t *testing.T) {
	quarter := For(15 * time.Minute)
	partly := permissionRequest()
	partly.Held = tags("@network")
	nowhere := permissionRequest()
	nowhere.Session = ""
	nobody := permissionRequest()
	nobody.Caller.Name = Anonymous
	withTags := toolRequest()
	withTags.Tags = tags("@network")
	write := Call{Tool: "write_file", Input: toolRequest().Input}
	hook := toolRequest()
	hook.Hook = "codex"
	shell := toolRequest()
	shell.Tool = "run_command"
	shellCall := Call{Tool: shell.Tool, Input: shell.Input}
	until, idle := soon.Add(15*time.Minute), soon.Add(SessionIdle)
	for _, c := range []struct {
		name  string
		r     Request
		scope Scope
		want  []Grant // without the common fields
	}{
		{"permission once", permissionRequest(), Once, nil},
		{"permission for a session", permissionRequest(), Session,
			[]Grant{{Session: "s1", Tags: tags("@network", "@write:/srv/www")}}},
		{"permission for a time", permissionRequest(), quarter,
			[]Grant{{Until: until, Tags: tags("@network", "@write:/srv/www")}}},
		{"permission for good", permissionRequest(), Always, []Grant{{Tags: tags("@network", "@write:/srv/www")}}},
		{"only what was missing", partly, Always, []Grant{{Tags: tags("@write:/srv/www")}}},
		{"no session to hold for", nowhere, Session, nil},
		{"nobody to hold it", nobody, Always, nil},

		{"tool once", toolRequest(), Once, nil},
		{"this tool for a session", toolRequest(), SessionTool, []Grant{{Session: "s1", Until: idle, Tool: "write_file"}}},
		{"this call for a session, to a hook", hook, SessionTool,
			[]Grant{{Session: "s1", Until: idle, Tool: "write_file", Call: CallDigest(hook, write)}}},
		{"this call for a time, to a hook", hook, quarter,
			[]Grant{{Until: until, Tool: "write_file", Call: CallDigest(hook, write)}}},
		{"this call for a time, of a shell", shell, quarter,
			[]Grant{{Until: until, Tool: "run_command", Call: CallDigest(shell, shellCall)}}},
		{"this call for a time, to another's program", theirs(toolRequest()), quarter,
			[]Grant{{Until: until, Tool: "write_file", Call: CallDigest(toolRequest(), write)}}},
		{"all tools for a session", toolRequest(), Session, []Grant{{Session: "s1", Until: idle, Tool: AllTools}}},
		{"this tool for a time", toolRequest(), quarter, []Grant{{Until: until, Tool: "write_file"}}},
		{"this call for good", toolRequest(), Always, []Grant{{Tool: "write_file", Call: CallDigest(toolRequest(), write)}}},
		{"an opened gate grants no tag", withTags, SessionTool, []Grant{{Session: "s1", Until: idle, Tool: "write_file"}}},

		{"step once", stepRequest(), Once, nil},
		{"tools of a step, each once", stepRequest(), SessionTool,
			[]Grant{{Session: "s1", Until: idle, Tool: "write_file"}, {Session: "s1", Until: idle, Tool: "fetch_url"}}},
		{"all tools, once for the step", stepRequest(), Session, []Grant{{Session: "s1", Until: idle, Tool: AllTools}}},
		{"calls of a step for good", stepRequest(), Always, []Grant{
			{Tool: "write_file", Call: CallDigest(stepRequest(), stepRequest().Calls[0])},
			{Tool: "fetch_url", Call: CallDigest(stepRequest(), stepRequest().Calls[1])},
			{Tool: "write_file", Call: CallDigest(stepRequest(), stepRequest().Calls[2])},
		}},
		{"confirm", confirmRequest(), Once, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.r.Options = append(c.r.Options, Option{ID: Allow(c.scope)}) // even an answer that is not offered leaves no more
			change, err := Step(c.r, vote("fay", Allow(c.scope)))
			if err != nil || len(change.Grants) != len(c.want) || len(change.Records) != 1+len(c.want) {
				t.Fatalf("%v, grants %+v, records %+v", err, change.Grants, change.Records)
			}
			if leaves := change.After.LeavesGrants(); leaves != (len(c.want) > 0) {
				t.Errorf("it leaves grants: %v", leaves)
			}
			for i, want := range c.want {
				got := change.Grants[i]
				want.ID, want.Caller, want.Request, want.By, want.CreatedAt = got.ID, c.r.Caller.Name, c.r.ID, "fay", soon
				if got.ID == "" || (i > 0 && got.ID == change.Grants[i-1].ID) || !reflect.DeepEqual(got, want) {
					t.Errorf("got %+v, want %+v", got, want)
				}
				rec := change.Records[i+1]
				if rec.Type != GrantAdded || rec.Detail["grant"] != string(got.ID) || rec.Detail["scope"] != c.scope.String() {
					t.Errorf("record %+v", rec)
				}
			}
		})
	}
}

// Of a step, only the allowed calls leave grants, each by its own answer.
func TestGrantsOfAStepCallByCall(t *testing.T) {
	r := after(t, stepRequest(), voteOn(1, "fay", Allow(SessionTool)), voteOn(2, "sam", Deny))
	c, err := Step(r, voteOn(3, "fay", Allow(Once)))
	if err != nil || len(c.Grants) != 1 || c.Grants[0].Tool != "write_file" || c.Grants[0].Session != "s1" {
		t.Errorf("%v, %+v", err, c.Grants)
	}
	if c.After.Scope != Once {
		t.Errorf("the step is allowed within %v", c.After.Scope)
	}
}

func TestAGrantHasTheScopeThatItWasGivenFor(t *testing.T) {
	for _, c := range []struct {
		r     Request
		scope Scope
	}{
		{permissionRequest(), Session}, {permissionRequest(), For(time.Minute)}, {permissionRequest(), Always},
		{toolRequest(), SessionTool}, {toolRequest(), Session}, {toolRequest(), For(time.Minute)}, {toolRequest(), Always},
	} {
		g, ok := c.r.grantFor(c.scope, Call{Tool: c.r.Tool}, "fay", noon)
		if got := g.Scope(); !ok || got != c.scope {
			t.Errorf("%s for %v: the grant is for %v", c.r.Kind, c.scope, got)
		}
	}
}

// The grants are those that Evaluate finds.
func TestGrantsOpenWhatTheButtonSaid(t *testing.T) {
	policy := Policy{HighRiskTools: []string{"run_command"}}
	r := toolRequest()
	c, err := Step(r, vote("fay", Allow(Session)))
	if err != nil {
		t.Fatal(err)
	}
	other := r
	other.Tool = "fetch_url"
	risky := r
	risky.Tool = "run_command"
	elsewhere := r
	elsewhere.Session = "s2"
	for name, row := range map[string]struct {
		r   Request
		ask bool
	}{"same": {r, false}, "other tool": {other, false}, "high risk": {risky, true}, "other session": {elsewhere, true}} {
		t.Run("B6/"+name, func(t *testing.T) {
			if v := policy.Evaluate(row.r, c.Grants, dusk); v.Ask != row.ask {
				t.Errorf("%s: asks %v", name, v.Ask)
			}
		})
	}
}

// The record of a step has each call's answer if they differ: none of them is that of the step.
func TestTheRecordOfAStepThatWasAnsweredDifferentlyHasEachAnswer(t *testing.T) {
	for want, votes := range map[string][2]Answer{
		"1:allow_session_tool,2:deny,3:allow_once": {Allow(SessionTool), Allow(Once)}, "": {Deny, Deny},
	} {
		r := after(t, stepRequest(), voteOn(1, "fay", votes[0]), voteOn(2, "sam", Deny))
		c, err := Step(r, voteOn(3, "fay", votes[1]))
		if err != nil || c.Records[0].Type != RequestSettled || c.Records[0].Detail["calls"] != want {
			t.Errorf("%v: %v, %+v", votes, err, c.Records)
		}
		if _, said := c.Records[0].Detail["calls"]; said != (want != "") {
			t.Errorf("%v: the record has the answers of calls: %+v", votes, c.Records)
		}
	}
}

// TestARuleIsGivenFromAnApproval: by one person who was asked, for a time if and only if it trusts the agent, and no longer than allowed.
func TestARuleIsGivenFromAnApproval(t *testing.T) {
	r := toolRequest()
	r.Caller = CallerUID(1000)
	r.Options = append(r.Options, Option{Allow(Rule), "Always like this"})
	allowed := approved(t, r, Once)
	rule, trust := NewGrantedRule([]string{"run make"}, "/srv", ""), NewGrantedRule(nil, "/srv", Trusted)
	with := func(change func(*Request)) Request {
		r := allowed
		change(&r)
		return r
	}
	give := func(rule GrantedRule, span time.Duration) Give {
		return Give{Grant: "g", Rule: rule, For: span, By: "fay", Via: "cli", At: soon}
	}
	nameless := give(rule, 0)
	nameless.Grant = ""
	for name, c := range map[string]struct {
		r    Request
		e    Give
		want error
		ends time.Time
	}{
		"a rule":             {allowed, give(rule, 0), nil, soon.Add(RuleIdle)},
		"trust":              {allowed, give(trust, time.Hour), nil, soon.Add(time.Hour)},
		"the longest trust":  {allowed, give(trust, MaxTrust), nil, soon.Add(MaxTrust)},
		"trust, not offered": {with(func(r *Request) { r.Options = nil }), give(trust, time.Hour), nil, soon.Add(time.Hour)},

		"longer":                  {r: allowed, e: give(trust, MaxTrust+1), want: ErrNoRule},
		"trust without an end":    {r: allowed, e: give(trust, 0), want: ErrNoRule},
		"trust for less than no":  {r: allowed, e: give(trust, -time.Hour), want: ErrNoRule},
		"a rule for less than no": {r: allowed, e: give(rule, -time.Hour), want: ErrNoRule},
		"a rule for a time":       {r: allowed, e: give(rule, time.Hour), want: ErrNoRule},
		"no rule":                 {r: allowed, e: give("", 0), want: ErrNoRule},
		"no id":                   {r: allowed, e: nameless, want: ErrNoRule},
		"not offered":             {r: with(func(r *Request) { r.Options = nil }), e: give(rule, 0), want: ErrNoOption},
		"high risk":               {r: with(func(r *Request) { r.HighRisk = true }), e: give(trust, time.Hour), want: ErrNoOption},
		"a quorum":                {r: with(func(r *Request) { r.Quorum = 2 }), e: give(trust, time.Hour), want: ErrNoOption},
		"nobody in particular":    {r: with(func(r *Request) { r.Caller.Name = Anonymous }), e: give(trust, time.Hour), want: ErrNoOption},
	} {
		got, err := Step(c.r, c.e)
		if !errors.Is(err, c.want) || len(got.Grants) != len(got.Records) || (len(got.Grants) == 1) != (c.want == nil) {
			t.Errorf("%s: %+v, %v", name, got.Grants, err)
		}
		if err != nil {
			continue
		}
		g := got.Grants[0]
		if g.Rule != c.e.Rule || !g.Until.Equal(c.ends) || g.IsTrust() != (c.e.For > 0) ||
			(g.Idle() > 0) == g.IsTrust() || !g.LastUse().IsZero() {
			t.Errorf("%s: %+v", name, g)
		}
		if g.Used = 1; g.Idle() > 0 && !g.LastUse().Equal(soon) || g.IsTrust() && !g.LastUse().IsZero() {
			t.Errorf("%s: it was used at %s", name, g.LastUse())
		}
		if said := got.Records[0].Detail["rule"]; said != string(c.e.Rule) {
			t.Errorf("%s: the audit says %q", name, said)
		}
	}
	for _, g := range approved(t, toolRequest(), Always).GrantsLeft() {
		if g.IsTrust() || g.Idle() > 0 {
			t.Errorf("it has no rule: %+v", g)
		}
	}
	if c, err := Step(toolRequest(), vote("fay", Allow(Always))); err != nil || len(c.Records) < 2 {
		t.Errorf("%+v, %v", c.Records, err)
	} else if _, has := c.Records[1].Detail["rule"]; has {
		t.Errorf("a grant without a rule is audited with one: %+v", c.Records[1])
	}
	allow, in := trust.Patterns()
	if none, _ := GrantedRule("{").Patterns(); in != "/srv" || allow != nil || none != nil || (Grant{Rule: "{"}).IsTrust() {
		t.Errorf("%q in %q", allow, in)
	}
	if allow, in = rule.Patterns(); in != "/srv" || !slices.Equal(allow, []string{"run make"}) {
		t.Errorf("%q in %q", allow, in)
	}
}

func TestWhoGaveAGrant(t *testing.T) {
	for name, c := range map[string]struct {
		grant Grant
		want  []string
	}{
		"one":                   {Grant{By: "fay"}, []string{"fay"}},
		"several":               {Grant{By: "fay", Several: []string{"fay", "sam"}}, []string{"fay", "sam"}},
		"a rule, by one":        {Grant{By: "fay", Several: []string{"kim"}, Rule: NewGrantedRule([]string{"go test"}, "", "")}, []string{"fay"}},
		"a rule, by several":    {Grant{By: "fay", Rule: `{"allow":["go test"],"by":["fay","sam"]}`}, []string{"fay", "sam"}},
		"a rule, not readable":  {Grant{By: "fay", Rule: "{"}, []string{"fay"}},
		"several, of no grants": {Grant{By: "fay", Several: []string{}}, []string{"fay"}},
	} {
		if got := c.grant.Givers(); !slices.Equal(got, c.want) {
			t.Errorf("%s: given by %q, want %q", name, got, c.want)
		}
	}
}

// A grant counts for those who allowed every call that it may come from, each account once.
func TestWhoGaveToAGrant(t *testing.T) {
	allow := Allow(Session)
	vote := func(by, account string, call int, a Answer) Vote {
		return Vote{By: by, Account: account, Call: call, Answer: a}
	}
	calls := []Call{{N: 1, Tool: "Bash", Answer: allow}, {N: 2, Tool: "Bash", Answer: allow}, {N: 3, Tool: "Edit", Answer: Deny}}
	for name, c := range map[string]struct {
		request Request
		tool    string
		want    []string
	}{
		"no call": {Request{Votes: []Vote{vote("fay", "1", 0, allow), vote("sam", "2", 0, allow)}}, "Bash", []string{"fay", "sam"}},
		"no vote": {Request{}, "Bash", nil},
		"a denial": {
			Request{Votes: []Vote{vote("fay", "1", 0, allow), vote("sam", "2", 0, Deny)}}, "Bash", []string{"fay"},
		},
		"one account": {Request{Votes: []Vote{vote("fay", "1", 0, allow), vote("sam", "1", 0, allow)}}, "Bash", []string{"fay"}},
		"accounts that are not known": {
			Request{Votes: []Vote{vote("fay", "", 0, allow), vote("sam", "", 0, allow)}}, "Bash", []string{"fay", "sam"},
		},
		"each call of the tool": {Request{Calls: calls, Votes: []Vote{
			vote("fay", "1", 1, allow), vote("fay", "1", 2, allow), vote("sam", "2", 1, allow),
		}}, "Bash", []string{"fay"}},
		"of every tool, those that were allowed": {Request{Calls: calls, Votes: []Vote{
			vote("fay", "1", 1, allow), vote("fay", "1", 2, allow), vote("sam", "2", 1, allow), vote("sam", "2", 3, allow),
		}}, AllTools, []string{"fay"}},
		"no call of the tool was allowed": {Request{Calls: calls, Votes: []Vote{vote("fay", "1", 3, allow)}}, "Edit", nil},
	} {
		c.request.Asked = []string{"fay", "sam"}
		if got := c.request.GiversOf(Grant{Tool: c.tool}); !slices.Equal(got, c.want) {
			t.Errorf("%s: given by %q, want %q", name, got, c.want)
		}
	}
}
