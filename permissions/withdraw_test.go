package permissions

import (
	"encoding/json"
	"testing"
)

// The row names who cancelled only if it was a person; the audit names the caller as well.
func TestWhoCancelled(t *testing.T) {
	for _, c := range []struct{ by, actor string }{{"fay", "fay"}, {"", "uid:1000"}} {
		r := permissionRequest()
		r.Caller = CallerUID(1000)
		change, err := Step(r, Withdraw{By: c.by, At: soon})
		if err != nil {
			t.Fatal(err)
		}
		if got := change.Records[0].Actor; change.After.DecidedBy != c.by || got != c.actor {
			t.Errorf("decided by %q, audited as %q", change.After.DecidedBy, got)
		}
	}
}

// A hook withdraws what its session asked under the name that its agent claims: one kind, or one call, if it says so.
func TestRecallIsForOneSessionAndAgent(t *testing.T) {
	call := Request{
		Kind: KindTool, Session: "s", Agent: "claude-code", Claimed: true, Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`),
	}
	whole := Recall{Session: "s", Agent: "claude-code"}
	tool := Recall{Session: "s", Agent: "claude-code", Kind: KindTool}
	one := Recall{Session: "s", Agent: "claude-code", Kind: KindTool, Tool: "Bash", Input: call.Input}
	for name, row := range map[string]struct {
		change           func(*Request)
		whole, tool, one bool
	}{
		"the call":                     {func(*Request) {}, true, true, true},
		"another input":                {func(r *Request) { r.Input = json.RawMessage(`{"command":"id"}`) }, true, true, false},
		"another tool":                 {func(r *Request) { r.Tool = "Read" }, true, true, false},
		"another kind":                 {func(r *Request) { r.Kind, r.Tool, r.Input = KindClarification, "", nil }, true, false, false},
		"another session":              {func(r *Request) { r.Session = "t" }, false, false, false},
		"another agent":                {func(r *Request) { r.Agent = "codex" }, false, false, false},
		"an agent of the daemon's own": {func(r *Request) { r.Claimed = false }, false, false, false},
	} {
		r := call
		row.change(&r)
		if got := [3]bool{whole.Matches(r), tool.Matches(r), one.Matches(r)}; got != [3]bool{row.whole, row.tool, row.one} {
			t.Errorf("%s: withdrawn %v by the session, its tools and the call", name, got)
		}
	}
}

// Policy alone allowed a call if nobody was asked and no grant was needed.
func TestWhatNobodyWasAskedAbout(t *testing.T) {
	let := Request{State: Approved, DecidedVia: ViaGrant}
	asked, granted, open := let, let, let
	asked.DecidedVia, granted.Grants, open.State = "telegram", []ID{"01J"}, Pending
	for name, row := range map[string]struct {
		r    Request
		want bool
	}{"let go": {let, true}, "asked": {asked, false}, "granted": {granted, false}, "open": {open, false}} {
		if row.r.AllowedByPolicy() != row.want {
			t.Errorf("%s: unasked is %v", name, !row.want)
		}
	}
}
