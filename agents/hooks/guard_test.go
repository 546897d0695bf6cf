package hooks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// given is each dialect's hook input for a call.
func given(t *testing.T, dialect, tool, input string) []byte {
	t.Helper()
	d, _ := Find(dialect)
	var event map[string]json.RawMessage
	if err := json.Unmarshal(d.Probe(tool, "/srv"), &event); err != nil {
		t.Fatal(err)
	}
	if dialect == "claude-code" {
		event["permission_mode"] = json.RawMessage(`"default"`) // without it, and with a timestamp, it is Copilot CLI's input
	}
	member := map[string]string{"copilot": "toolArgs", "opencode": "args"}[dialect]
	event[cmp.Or(member, "tool_input")] = json.RawMessage(input)
	text, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The input that people see, and that a grant binds, is the tool's whole input, or its hash if the details have all of it. A
// description may also be shown as the agent's words.
func TestNothingIsLeftOutOfAnInput(t *testing.T) {
	long := strings.Repeat("x", permissions.MaxReason+500) + " THE END"
	for _, dialect := range Names() {
		for _, tool := range append([]string{"mcp__mail__send", "Write", "anything"}, shells[dialect]...) {
			for name, input := range map[string]string{
				"nothing":             `{}`,
				"command":             `{"command":"send"}`,
				"description":         `{"command":"send","description":"wire 9,000 to mallory"}`,
				"another description": `{"command":"send","description":"wire 9,001 to mallory"}`,
				"long description":    `{"command":"send","description":"` + long + `"}`,
				"no text":             `{"command":"send","description":{"to":["mallory"]},"timeout":1e3}`,
				"unknown members":     `{"description":"d","path":"/srv/x","content":"c","edits":[],"command":null,"":0}`,
			} {
				t.Run("B5/"+dialect+" "+tool+" "+name, func(t *testing.T) {
					d, _ := Find(dialect)
					c, err := d.Read(given(t, dialect, tool, input))
					if err != nil {
						t.Fatal(err)
					}
					want, err := permissions.CanonicalJSON(json.RawMessage(input))
					if err != nil || !bytes.Equal(c.Request.Input, want) {
						t.Errorf("asks about %.200s, given %.200s: %v", c.Request.Input, want, err)
					}
					if reason := c.Request.Reason; reason != "" && !strings.Contains(input, strings.TrimSuffix(reason, "…")) {
						t.Errorf("the reason is %.200q", reason)
					}
				})
			}
		}
	}
}

// A grant for an exact call does not cover one with another description.
func TestADescriptionIsPartOfTheCall(t *testing.T) {
	for _, dialect := range Names() {
		t.Run("B6/"+dialect, func(t *testing.T) {
			seen := map[permissions.Digest]string{}
			long := strings.Repeat("x", 40<<10)
			for _, said := range []string{"", "read the mail", "wire 9,000 to mallory", long, long + "y"} {
				text, _ := json.Marshal(map[string]string{"command": "send", "description": said})
				d, _ := Find(dialect)
				c, err := d.Read(given(t, dialect, "mcp__mail__send", string(text)))
				if err != nil {
					t.Fatal(err)
				}
				sum := permissions.CallDigest(c.Request, c.Request.ToolCalls()[0])
				if other, twice := seen[sum]; twice {
					t.Errorf("%.20q and %.20q are the same call", said, other)
				}
				seen[sum] = said
			}
		})
	}
}

// The question has everything that Cursor says about a command or a server.
func TestNothingOfCursorsIsLeftOut(t *testing.T) {
	d, _ := Find("cursor")
	for name, c := range map[string]struct{ event, input string }{
		"sandbox": {`"hook_event_name":"beforeShellExecution","command":"ls","sandbox":false`, `{"command":"ls","sandbox":false}`},
		"server": {`"hook_event_name":"beforeMCPExecution","tool_name":"t","tool_input":"{}","url":"https://x.example"`,
			`{"input":{},"server":"https://x.example"}`},
	} {
		t.Run("B5/"+name, func(t *testing.T) {
			got, err := d.Read([]byte(`{"conversation_id":"k","workspace_roots":["/srv"],` + c.event + `}`))
			if err != nil || string(got.Request.Input) != c.input {
				t.Errorf("%s, %v", got.Request.Input, err)
			}
		})
	}
	t.Run("B5/two servers", func(t *testing.T) {
		_, err := d.Read([]byte(`{"conversation_id":"k","workspace_roots":["/srv"],"hook_event_name":"beforeMCPExecution",` +
			`"tool_name":"t","tool_input":"{}","url":"https://x.example","command":"npx y"}`))
		if err == nil || !strings.Contains(err.Error(), "both the url and the command") {
			t.Errorf("%v", err)
		}
	})
}

// TestWhatAHookSaysBesideTheInputIsPartOfTheCall: every hook member that is not known to be harmless is shown with the input, in
// its own form, and another value makes another call. No tool input can imitate one.
func TestWhatAHookSaysBesideTheInputIsPartOfTheCall(t *testing.T) {
	ask := func(dialect, name, value string) (Call, error) {
		var event map[string]json.RawMessage
		if err := json.Unmarshal(given(t, dialect, "deploy", `{"env":"stage"}`), &event); err != nil {
			t.Fatal(err)
		}
		event[name] = json.RawMessage(value)
		text, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		d, _ := Find(dialect)
		return d.Read(text)
	}
	sum := func(c Call) permissions.Digest { return permissions.CallDigest(c.Request, c.Request.ToolCalls()[0]) }
	for _, dialect := range Names() {
		plain, err := ask(dialect, "timestamp", `"2026-11-23T00:00:00Z"`)
		if err != nil || string(plain.Request.Input) != `{"env":"stage"}` {
			t.Fatalf("%s: %s, %v", dialect, plain.Request.Input, err)
		}
		for name, values := range map[string][]string{
			"mcp_context": {`{"server_name":"good","url":"https://x.example"}`, `{"args":["y"],"command":"npx","server_name":"evil"}`},
			"mcp_server":  {`"good"`, `"evil"`}, "run_as": {`"fay"`, `"root"`}, "anything": {`false`, `0`, `[1]`},
		} {
			for _, value := range values {
				t.Run("B5/"+dialect+" "+name+" "+value, func(t *testing.T) {
					c, err := ask(dialect, name, value)
					if want := fmt.Sprintf(`{"env":"stage","hook.%s":%s}`, name, value); err != nil || string(c.Request.Input) != want {
						t.Errorf("asks about %s, want %s: %v", c.Request.Input, want, err)
					}
					if other, _ := ask(dialect, name, values[0]); sum(c) == sum(plain) || value != values[0] && sum(c) == sum(other) {
						t.Error("it is the same call")
					}
				})
			}
		}
		for name, known := range map[string]string{
			"model": `"m-1"`, "timestamp": `1764000000123`, "transcript_path": `"/a.jsonl"`, "permission_mode": `"plan"`, "agent_id": `"a"`,
			"effort": `{"level":"high"}`, "workspace_roots": `["/srv/code","/srv/other"]`,
			"permission_suggestions": `[{"behavior":"allow","destination":"session","rules":[{"ruleContent":"ls","toolName":"Bash"}],` +
				`"type":"addRules"},{"directories":["/srv"],"type":"addDirectories"},{"mode":"plan","type":"setMode"}]`,
		} {
			if c, err := ask(dialect, name, known); err != nil || sum(c) != sum(plain) {
				t.Errorf("%s %s is part of the call: %s, %v", dialect, name, c.Request.Input, err)
			}
			for _, value := range []string{`{"server":"evil"}`, `[{"server":"evil"}]`, `[["evil"]]`, `true`} {
				t.Run("B5/"+dialect+" "+name+" "+value, func(t *testing.T) {
					want := fmt.Sprintf(`{"env":"stage","hook.%s":%s}`, name, value)
					if c, err := ask(dialect, name, value); err != nil || string(c.Request.Input) != want {
						t.Errorf("asks about %s, want %s: %v", c.Request.Input, want, err)
					}
				})
			}
		}
		t.Run("B5/"+dialect+" nothing", func(t *testing.T) {
			for _, none := range []string{`null`, `{}`, `[]`, `""`} {
				if c, err := ask(dialect, "mcp_context", none); err != nil || sum(c) != sum(plain) {
					t.Errorf("%s: %s, %v", none, c.Request.Input, err)
				}
			}
		})
		t.Run("B5/"+dialect+" a member that only looks like one", func(t *testing.T) {
			d, _ := Find(dialect)
			_, err := d.Read(given(t, dialect, "deploy", `{"env":"stage","hook.mcp_server":"good"}`))
			if err == nil || !strings.Contains(err.Error(), "only what hooks say beside an input") {
				t.Error(err)
			}
		})
	}
	for context, tool := range map[string]string{`{"server_name":"good"}`: "mcp__deploy", `{}`: "deploy"} {
		if c, err := ask("gemini", "mcp_context", context); err != nil || c.Request.Tool != tool {
			t.Errorf("a tool of %s is asked about as %s, %v", context, c.Request.Tool, err)
		}
	}
}

// Of all kinds, modes and states, only the approval of a tool call allows.
func TestJudgeEveryKindModeAndState(t *testing.T) {
	for _, kind := range []permissions.Kind{
		permissions.KindTool, permissions.KindPermission, permissions.KindPause, permissions.KindClarification, "", "wish",
	} {
		for _, mode := range []permissions.Mode{"", permissions.ModeContinue, permissions.ModeConfirm} {
			for _, state := range []permissions.State{
				permissions.Approved, permissions.Denied, permissions.Pending, permissions.Expired, permissions.Cancelled,
				permissions.Undeliverable, permissions.Answered, "", "odd",
			} {
				t.Run(fmt.Sprintf("D9/%s %s %s", kind, mode, state), func(t *testing.T) {
					r := permissions.Request{Kind: kind, Mode: mode, State: state, Tool: "x"}
					want := kind == permissions.KindTool && mode == "" && state == permissions.Approved // tool requests have no mode
					if v := VerdictOf(r, nil); v.Allowed != want {
						t.Errorf("%+v", v)
					}
					if v := VerdictOf(r, context.DeadlineExceeded); v.Allowed {
						t.Errorf("out of time: %+v", v)
					}
				})
			}
		}
	}
}

// mixed is an engine that returns the approval of another request to every caller.
type mixed struct {
	Requests
	change func(*permissions.Request)
}

func (m mixed) Ask(_ context.Context, c permissions.Caller, q permissions.Request) (permissions.Request, error) {
	q.Caller, q.Version, q.State, q.Answer = c, permissions.DigestVersion, permissions.Approved, permissions.Allow(permissions.Once)
	_ = q.Normalize() // it was just read
	m.change(&q)
	q.Digest = permissions.ComputeDigest(q)
	return q, nil
}

func TestTheApprovalOfAnotherCallAllowsNothing(t *testing.T) {
	d, _ := Find("gemini")
	c, err := d.Read(given(t, "gemini", "run_shell_command", `{"command":"rm -rf /"}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		change func(*permissions.Request)
		allow  bool
	}{
		"its own":         {func(*permissions.Request) {}, true},
		"another tool":    {func(r *permissions.Request) { r.Tool = "zz" }, false},
		"another input":   {func(r *permissions.Request) { r.Input = json.RawMessage(`{"command":"ls"}`) }, false},
		"another folder":  {func(r *permissions.Request) { r.Cwd = "/tmp" }, false},
		"another session": {func(r *permissions.Request) { r.Session = "x" }, false},
		"another kind":    {func(r *permissions.Request) { r.Kind = permissions.KindPermission }, false},
	} {
		t.Run("D9/"+name, func(t *testing.T) {
			v := Decide(t.Context(), mixed{change: row.change}, permissions.CallerUID(1000), c, time.Second)
			if v.Allowed != row.allow || !v.Allowed && !strings.Contains(v.Reason, "about another call") {
				t.Errorf("%+v", v)
			}
		})
	}
}

// Gemini CLI says how the server of a tool was started. That is left out where it is daycared itself, as this hook's settings start it.
func TestHowOurOwnServerWasStartedIsLeftOut(t *testing.T) {
	d, _ := Find("gemini")
	read := func(server string) Call {
		t.Helper()
		c, err := d.Read([]byte(`{"hook_event_name":"BeforeTool","session_id":"s","cwd":"/","tool_name":"mcp_daycared_ask_user",` +
			`"tool_input":{"question":"x"}` + server + `}`))
		if err != nil {
			t.Fatal(err)
		}
		c.ForgetServer([]string{"/d", "--socket", "/s", "mcp"})
		return c
	}
	plain := read("")
	for rest, left := range map[string]bool{
		`"command":"/d","args":["--socket","/s","mcp"]`:                        true,
		`"command":"/d","args":["mcp"]`:                                        false,
		`"command":"/e","args":["--socket","/s","mcp"]`:                        false,
		`"command":"/d","args":["--socket","/s","mcp"],"url":"https://x.test"`: false,
		`"command":"/d","args":["--socket","/s","mcp"],"tcp":"x.test:1"`:       false,
		`"url":"https://x.test"`:                                               false,
		`"command":7`:                                                          false,
	} {
		c := read(`,"mcp_context":{"server_name":"daycared","tool_name":"ask_user",` + rest + `}`)
		if got := string(c.Request.Input) == string(plain.Request.Input); got != left {
			t.Errorf("%s: %s", rest, c.Request.Input)
		}
	}
}
