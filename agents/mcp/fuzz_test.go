package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/agents/schema"
	"github.com/daycared/daycared/permissions"
)

// asked parses the arguments of an asking tool.
var asked = map[string]func(json.RawMessage) (permissions.Request, error){
	"approve_tool": func(arguments json.RawMessage) (permissions.Request, error) {
		in, err := schema.Decode[approveInput](approveTool, arguments)
		if err != nil {
			return permissions.Request{}, err
		}
		return in.question()
	},
}

func init() {
	for _, t := range schema.AskingTools {
		asked[t.Name] = func(arguments json.RawMessage) (permissions.Request, error) { return t.Question(arguments) }
	}
}

// FuzzArguments gives arbitrary arguments to the asking tools. Only what a strict parser and the tool's schema accept becomes a
// question, unchanged; anything else is denied if the answer is a verdict.
func FuzzArguments(f *testing.F) {
	for _, arguments := range []string{
		``, `null`, `{}`, `[]`, `{"permission":"@network","reason":"r"}`, `{"permissions":["@read:/a"," @write:/b "],"reason":"r","agentId":"a"}`,
		`{"permission":"@network","permissions":[],"reason":"r"}`, `{"permission":"@network","permission":"@workspace","reason":"r"}`,
		`{"Permission":"@network","reason":"r"}`, `{"permission":"@network","reason":"r","timeout_minutes":1e1,"key":"k","details":"d"}`,
		`{"permission":"@network","reason":"r","timeout_minutes":"15"}`, `{"permission":"@network","reason":"r","timeout_minutes":1e400}`,
		`{"permission":"@network","reason":"r","timeout_minutes":0.9999999}`, `{"question":"q","options":["a","b"]}`,
		`{"question":"q","options":["a",null]}`, `{"message":"m","mode":"confirm"}`, `{"message":"m","mode":"continue","timeout_minutes":60}`,
		`{"tool_name":"Bash","input":{"b":1,"a":[1e2]},"tool_use_id":"u"}`, `{"tool_name":"Bash","input":"{}"}`,
		`{"tool_name":"Bash","input":{"a":1,"\u0061":2}}`, `{"tool_name":"Bash","input":{"command":"\ud800"}}`,
	} {
		for at := range uint(len(asked)) {
			f.Add(at, []byte(arguments))
		}
	}
	names := []string{"approve_tool", "ask_user", "pause", "request_permission"}
	f.Fuzz(func(t *testing.T, at uint, arguments []byte) {
		name := names[at%uint(len(names))]
		if arguments = bytes.TrimSpace(arguments); len(arguments) == 0 { // as a member of a message has them
			arguments = []byte("{}")
		}
		q, err := asked[name](arguments)
		if err != nil {
			refusedAs(t, name, arguments)
			return
		}
		canonical, err := permissions.CanonicalJSON(arguments)
		if err != nil {
			t.Fatalf("%s takes %q, which is not strict: %v", name, arguments, err)
		}
		again, err := asked[name](canonical)
		if err != nil || permissions.ComputeDigest(again) != permissions.ComputeDigest(q) || again.Key != q.Key ||
			again.WantedTimeout != q.WantedTimeout {
			t.Fatalf("%s reads %q as %+v, and its canonical form as %+v, %v", name, arguments, q, again, err)
		}
		given := inSchema(t, name, canonical)
		if q.WantedTimeout != 0 && (q.WantedTimeout < time.Minute || q.WantedTimeout > time.Hour || given["timeout_minutes"] == nil) {
			t.Fatalf("%s waits %s for %q", name, q.WantedTimeout, arguments)
		}
		if name == "approve_tool" && !bytes.Equal(q.Input, given["input"]) {
			t.Fatalf("%s asks about %q, and was given %q", name, q.Input, given["input"])
		}
		for _, tag := range q.Tags {
			var listed []string
			_ = json.Unmarshal(given["permissions"], &listed) // absent where it is invalid
			var one string
			_ = json.Unmarshal(given["permission"], &one)
			if !slices.ContainsFunc(append(listed, one), func(s string) bool { return strings.TrimSpace(s) == tag.String() }) {
				t.Fatalf("%s asks for %s, and was given %q", name, tag, arguments)
			}
		}
	})
}

// refusedAs checks that a verdict on unreadable arguments denies. Nothing else of the server is reached.
func refusedAs(t *testing.T, name string, arguments []byte) {
	if name != "approve_tool" {
		return
	}
	result := approve(context.Background(), nil, &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Arguments: arguments}})
	var verdict struct{ Behavior, Message string }
	said, is := result.Content[0].(*mcp.TextContent)
	if !is || json.Unmarshal([]byte(said.Text), &verdict) != nil || verdict.Behavior != "deny" || verdict.Message == "" {
		t.Fatalf("%q is answered %+v", arguments, result.Content[0])
	}
}

// inSchema checks that every member is in the tool's schema, and returns the members.
func inSchema(t *testing.T, name string, arguments []byte) (given map[string]json.RawMessage) {
	var known struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	all := tools()
	at := slices.IndexFunc(all, func(t tool) bool { return t.name == name })
	if err := json.Unmarshal(all[at].schema, &known); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(arguments, &given); err != nil {
		t.Fatalf("%s takes %q, which is no object: %v", name, arguments, err)
	}
	for member := range given {
		if known.Properties[member] == nil {
			t.Fatalf("%s takes %q, which its schema does not know", name, member)
		}
	}
	return given
}

// TestTheCallsOfOneCallerPushOutNoOthers: F1/many. What a caller abandons and cancels is bounded, at nobody else's cost, and what is
// forgotten takes no place.
func TestTheCallsOfOneCallerPushOutNoOthers(t *testing.T) {
	m := newMemory()
	one, many := question{caller: "uid:1"}, question{caller: "uid:2"}
	m.add(one, abandonedCall{id: "a"})
	m.noteCancelled("uid:1", "1")
	for i := range 20 * maxAbandoned {
		m.add(many, abandonedCall{id: "b"})
		m.noteCancelled("uid:2", strconv.Itoa(i))
	}
	if calls, heard := len(m.calls["uid:2"]), len(m.cancelled["uid:2"]); calls != maxAbandoned || heard != maxCancelled {
		t.Errorf("%d calls and %d cancelled messages of one caller are remembered", calls, heard)
	}
	if l, found := m.take(one); !found || l.id != "a" || !m.wasCancelled("uid:1", "1") {
		t.Errorf("the call of another is %+v, %t", l, found)
	}
	for range maxAbandoned - 1 {
		m.add(one, abandonedCall{id: "c"})
		m.forget(one, "c")
	}
	m.add(one, abandonedCall{id: "d"})
	for range maxAbandoned - 1 {
		m.add(one, abandonedCall{id: "e"})
	}
	if l, found := m.take(one); !found || l.id != "d" {
		t.Errorf("the oldest call that was not forgotten is %+v, %t", l, found)
	}
	m.forget(one, "e")
	m.forget(many, "b")
	if len(m.calls) > 0 {
		t.Errorf("%d callers without calls are remembered", len(m.calls))
	}
}
