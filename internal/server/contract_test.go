package server

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// TestTheContractOfEventsIsComplete: everything that exists is described, nothing else, and the page says the same.
func TestTheContractOfEventsIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, rest, found := strings.Cut(strings.TrimPrefix(line, "| `"), "` | "); found && strings.HasPrefix(line, "| `") {
			rows[name] = rest
		}
	}
	described := slices.Sorted(maps.Keys(Events().Events))
	if all := slices.Sorted(slices.Values(permissions.EventTypes())); !slices.Equal(described, all) {
		t.Errorf("described are %v\nthere are %v", described, all)
	}
	for name, e := range Events().Events {
		if row := rows[string(name)]; !strings.HasPrefix(row, e.About+" | ") {
			t.Errorf("the page says of %s: %s", name, row)
		}
		for member, s := range e.Payload {
			if s.Description == "" {
				t.Errorf("%s.%s is not described", name, member)
			}
			if !strings.Contains(rows[string(name)], "`"+member+"`") {
				t.Errorf("the page has no %s of %s", member, name)
			}
		}
		if n := strings.Count(rows[string(name)], "`") / 2; n != len(e.Payload) {
			t.Errorf("the page has %d members of %s, the contract %d", n, name, len(e.Payload))
		}
	}
	for name, members := range map[permissions.Type][]string{
		permissions.RunFinished: {"reason"}, permissions.AckRejected: {"reason"},
	} {
		for _, member := range members {
			if said := Events().Events[name].Payload[member].Description; !strings.Contains(rows[string(name)], "`"+member+"`: "+said) {
				t.Errorf("the page does not say of %s.%s: %s", name, member, said)
			}
		}
	}
	for view, columns := range Events().Views {
		if !strings.Contains(rows[view], "| `"+strings.Join(columns, "` `")+"` |") {
			t.Errorf("the page has other columns of %s: %s", view, rows[view])
		}
	}
	if !strings.Contains(strings.ReplaceAll(string(text), "\n", " "), Events().Order) {
		t.Error("the page has another order")
	}
	if got := len(Events().Schema().OneOf); got != len(described) {
		t.Errorf("the schema has %d events", got)
	}
}

// detailOf is the audit's detail of an event of that type.
func detailOf(of permissions.Type) map[string]string {
	if of == permissions.ToolFinished {
		return map[string]string{
			"session": "s1", "person": "fay", "agent": "helper", "execution": "7", "tool": "write_file", "success": "true", "affected_path": "/a",
		}
	}
	return map[string]string{"session": "s1", "person": "fay", "reason": "user_denied", "decision": "approved", "calls": "2", "by": "sam"}
}

// Event types of the agents' contract have exactly the documented payload.
func TestAnEventOfAnAgentsFrontEnd(t *testing.T) {
	asked := permissions.Request{
		ID: "01J", Kind: permissions.KindClarification, Message: "Which?", Choices: []string{"a", "b"}, Answer: permissions.Choose(2),
	}
	own := asked
	own.Answer, own.Comment = permissions.Other, "neither"
	step := permissions.Request{ID: "01J", Kind: permissions.KindTool, Step: 3, Calls: []permissions.Call{
		{N: 1, Tool: "write_file", Input: []byte(`{"path":"/a"}`), AffectedPath: "/a"}, {N: 2, Tool: "run_command"},
	}}
	defaulted := asked
	defaulted.Answer, defaulted.Defaulted = permissions.Choose(1), true
	unanswered := defaulted
	unanswered.Hook = "claude-code"
	answered := step
	answered.State, answered.Calls = permissions.Approved, slices.Clone(step.Calls)
	answered.Calls[1].Answer, answered.Calls[1].By = permissions.Allow(permissions.Session), "sam"
	answered.Calls[1].At = time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)
	tags := permissions.Request{ID: "01J", Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network}}
	for _, c := range []struct {
		kind    permissions.Type
		about   permissions.Request
		session string
		want    string
	}{
		{permissions.DialogRequested, asked, "s1", `{"conflict_description":"Which?","options":["a","b"],"task_id":"s1"}`},
		{permissions.DialogRequested, permissions.Request{}, "", `{"conflict_description":null,"options":null,"task_id":"01J"}`},
		{permissions.DialogResponded, asked, "s1", `{"response":"b"}`},
		{permissions.DialogResponded, own, "s1", `{"response":"neither"}`},
		{permissions.DialogResponded, defaulted, "s1", `{"defaulted":true,"response":"a"}`},
		{permissions.DialogResponded, permissions.Request{}, "s1", `{"reason":"user_denied","response":null}`},
		{permissions.DialogTimeout, asked, "s1", `{"response":"b"}`},
		{permissions.DialogTimeout, unanswered, "s1", `{"defaulted":true,"reason":"unanswered","response":null}`},
		{permissions.WaitAckEnter, step, "s1", `{"tools":[{"tool":"write_file","args":{"path":"/a"},"step":3,"affected_path":"/a"},` +
			`{"tool":"run_command","args":null,"step":3,"affected_path":null}]}`},
		{permissions.WaitAckEnter, permissions.Request{}, "s1", `{"tools":null}`},
		{permissions.AckApproved, answered, "s1", `{"by":"sam","calls":[{"call":2,"tool":"run_command","scope":"session","reason":null,` +
			`"person":"sam","at":"2026-11-21T11:00:00Z"}]}`},
		{permissions.AckRejected, permissions.Request{}, "s1", `{"calls":[{"call":2,"tool":null,"scope":null,"reason":null,"person":null,` +
			`"at":null}],"reason":"user_denied"}`},
		{permissions.AckDecisionHandled, answered, "s1", `{"calls":[{"call":2,"tool":"run_command","scope":"session","reason":null,` +
			`"person":"sam","at":"2026-11-21T11:00:00Z"}],"decision":"approved","person":"sam"}`},
		{permissions.PermissionApplied, tags, "s1", `{"actor":"agent:helper","by":"sam","calls":"2","decision":"approved",` +
			`"permissions":["@network"],"person":"fay","reason":"user_denied"}`},
		{permissions.ToolFinished, permissions.Request{}, "s1",
			`{"affected_path":"/a","execution":7,"success":true,"tool":"write_file"}`},
		{permissions.SessionStatus, permissions.Request{}, "s1",
			`{"actor":"agent:helper","by":"sam","calls":"2","decision":"approved","person":"fay","reason":"user_denied"}`},
	} {
		text, err := wire.Encode(EventOf(permissions.Event{
			Session: c.session, About: c.about, Entry: permissions.Entry{Record: permissions.Record{
				Type: c.kind, Request: "01J", Actor: "agent:helper",
				Detail: detailOf(c.kind),
			}},
		}).Payload)
		if err != nil || string(text) != c.want {
			t.Errorf("%s: %s, %v\nwant %s", c.kind, text, err, c.want)
		}
	}
}

func TestAnEventSaysWhoAndWhat(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.FixedZone("", 3600))
	for want, h := range map[string]permissions.Event{
		`{"seq":17,"type":"REQUEST_SETTLED","at":"2026-11-21T11:00:00Z","session":"s1","request":"01J",` +
			`"payload":{"actor":"fay","answer":"deny","via":"cli"}}`: {
			Session: "s1", Entry: permissions.Entry{Seq: 17, Record: permissions.Record{
				Type: permissions.RequestSettled, At: at, Request: "01J", Actor: "fay", Via: "cli",
				Detail: map[string]string{"answer": "deny"},
			}},
		},
		`{"seq":18,"type":"GRANT_ENDED","at":"2026-11-21T11:00:00Z","session":null,"request":null,"payload":{}}`: {
			Entry: permissions.Entry{Seq: 18, Record: permissions.Record{Type: permissions.GrantEnded, At: at}},
		},
	} {
		text, err := wire.Encode(EventOf(h))
		if err != nil || string(text) != want {
			t.Errorf("%s, %v\nwant %s", text, err, want)
		}
	}
}

// Counts and numbers are numbers in the payload, as the contract says; text that looks like one stays text.
func TestNumbersOfEventsAreNumbers(t *testing.T) {
	type detail = map[string]string
	for want, r := range map[string]permissions.Record{
		`{"answer":"deny","call":1}`:         {Type: permissions.RequestVoted, Detail: detail{"answer": "deny", "call": "1"}},
		`{"grant":"01J","used":7}`:           {Type: permissions.GrantEnded, Detail: detail{"grant": "01J", "used": "7"}},
		`{"grant":"01J","used":0,"why":"3"}`: {Type: permissions.GrantRevoked, Detail: detail{"grant": "01J", "used": "0", "why": "3"}},
		`{"grant":"01J","used":2}`:           {Type: permissions.GrantReinstated, Detail: detail{"grant": "01J", "used": "2"}},
		`{"pending":3}`:                      {Type: permissions.AllStopped, Detail: detail{"pending": "3"}},
		`{"back_to":4503599627370496,"why":"a copy"}`: {
			Type: permissions.StoreRestored, Detail: detail{"back_to": "4503599627370496", "why": "a copy"},
		},
	} {
		text, err := wire.Encode(EventOf(permissions.Event{Entry: permissions.Entry{Record: r}}).Payload)
		if err != nil || string(text) != want {
			t.Errorf("%s: %s, %v\nwant %s", r.Type, text, err, want)
		}
	}
}

// An answer that only some calls of a step got is reported for those calls only.
func TestAStepThatWasAnsweredDifferentlyIsSettledByEachCall(t *testing.T) {
	of := func(detail map[string]string) string {
		text, err := wire.Encode(EventOf(permissions.Event{Entry: permissions.Entry{
			Record: permissions.Record{Type: permissions.RequestSettled, Detail: detail}}}).Payload)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	mixed := of(map[string]string{"state": "approved", "answer": "allow_once", "calls": "1:deny,2:allow_once"})
	if want := `{"calls":[{"answer":"deny","call":1},{"answer":"allow_once","call":2}],"state":"approved"}`; mixed != want {
		t.Errorf("answered differently: %s\nwant %s", mixed, want)
	}
	if same, want := of(map[string]string{"state": "denied", "answer": "deny"}), `{"answer":"deny","state":"denied"}`; same != want {
		t.Errorf("answered alike: %s\nwant %s", same, want)
	}
}
