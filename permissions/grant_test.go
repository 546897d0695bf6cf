package permissions

import (
	"reflect"
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
	until := soon.Add(15 * time.Minute)
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
		{"this tool for a session", toolRequest(), SessionTool, []Grant{{Session: "s1", Tool: "write_file"}}},
		{"this call for a session, to a hook", hook, SessionTool,
			[]Grant{{Session: "s1", Tool: "write_file", Call: CallDigest(hook, write)}}},
		{"this call for a time, to a hook", hook, quarter,
			[]Grant{{Until: until, Tool: "write_file", Call: CallDigest(hook, write)}}},
		{"this call for a time, of a shell", shell, quarter,
			[]Grant{{Until: until, Tool: "run_command", Call: CallDigest(shell, shellCall)}}},
		{"this call for a time, to another's program", theirs(toolRequest()), quarter,
			[]Grant{{Until: until, Tool: "write_file", Call: CallDigest(toolRequest(), write)}}},
		{"all tools for a session", toolRequest(), Session, []Grant{{Session: "s1", Tool: AllTools}}},
		{"this tool for a time", toolRequest(), quarter, []Grant{{Until: until, Tool: "write_file"}}},
		{"this call for good", toolRequest(), Always, []Grant{{Tool: "write_file", Call: CallDigest(toolRequest(), write)}}},
		{"an opened gate grants no tag", withTags, SessionTool, []Grant{{Session: "s1", Tool: "write_file"}}},

		{"step once", stepRequest(), Once, nil},
		{"tools of a step, each once", stepRequest(), SessionTool,
			[]Grant{{Session: "s1", Tool: "write_file"}, {Session: "s1", Tool: "fetch_url"}}},
		{"all tools, once for the step", stepRequest(), Session, []Grant{{Session: "s1", Tool: AllTools}}},
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
		g, ok := c.r.leaves(c.scope, Call{Tool: c.r.Tool}, "fay", noon)
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
