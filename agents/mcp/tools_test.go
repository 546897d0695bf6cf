package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/agents/mcp"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

type arguments = map[string]any

var (
	network = arguments{"permission": "@network", "reason": "fetch the docs"}
	choose  = arguments{"question": "announce where?", "options": []string{"blog", "mail"}}
	look    = arguments{"message": "look at it", "mode": "continue"}
	confirm = arguments{"message": "send it?", "mode": "confirm"}
	shell   = arguments{"tool_name": "Bash", "input": arguments{"command": "rm -rf build", "n": json.Number("1e2")}, "tool_use_id": "toolu_1"}
)

// Every tool and every outcome by a person, in both eras and on stdio, word for word.
func TestOutcomes(t *testing.T) {
	s := newEnv(t, nil)
	for name, session := range map[string]*sdk.ClientSession{
		legacy: s.client(legacy), modern: s.client(modern), "stdio": s.stdio(nil),
	} {
		at := strings.ReplaceAll(name, " ", "-") // distinct, since three denials end the asking
		t.Run(name, func(t *testing.T) {
			for _, try := range []struct {
				tool    string
				with    arguments
				answer  permissions.Answer
				comment string
				text    string
				err     bool
				beside  string
			}{
				{"request_permission", network, permissions.Allow(permissions.Once), "",
					"Permission granted for network access.", false, `approved allow_once once <nil> fay`},
				{"request_permission", arguments{"permissions": []string{"@workspace", "@read:/" + at}, "reason": "x", "agentId": "child"},
					permissions.Deny, "not now", `Permission denied for workspace write access, read access to /` + at + `. fay: "not now"`, false,
					`denied deny <nil> not now fay`},
				{"ask_user", choose, permissions.Choose(2), "", "mail", false, `answered option_2 <nil> <nil> fay`},
				{"ask_user", choose, permissions.Other, "neither", "neither", false, `answered other <nil> neither fay`},
				{"pause", look, permissions.Continue, "", "Resumed.", false, `answered continue <nil> <nil> fay`},
				{"pause", look, permissions.Interrupt, "", "Interrupted by the user.", false, `answered interrupt <nil> <nil> fay`},
				{"pause", confirm, permissions.Allow(permissions.Once), "", "Approved.", false, `approved allow_once once <nil> fay`},
				{"pause", arguments{"message": "go on with " + at + "?", "mode": "confirm"}, permissions.Deny, "wait",
					`Denied. fay: "wait"`, false, `denied deny <nil> wait fay`},
				{"request_permission", network, "", "", "Permission request cancelled.", true, `cancelled <nil> <nil> <nil> <nil>`},
				{"ask_user", choose, "", "", "Question cancelled.", true, `cancelled <nil> <nil> <nil> <nil>`},
			} {
				waits := call(t.Context(), session, try.tool, try.with)
				r := s.pending(1)[0]
				if try.answer == "" {
					if _, err := s.Withdraw(t.Context(), bot, r.ID); err != nil {
						t.Fatal(err)
					}
				} else {
					s.decide(r.ID, try.answer, try.comment)
				}
				got := s.get(waits)
				b := beside(t, got)
				told := fmt.Sprint(b["state"], " ", b["answer"], " ", b["scope"], " ", b["comment"], " ", b["decided_by"])
				if textOf(t, got) != try.text || got.IsError != try.err || told != try.beside ||
					b["id"] != string(r.ID) || b["digest"] != r.Digest.String() || b["result"] != try.text || len(b) != 8 {
					t.Errorf("%s %s: %q, error %t, %v", try.tool, try.answer, textOf(t, got), got.IsError, b)
				}
			}
		})
	}
}

func TestWhoAsksAndFromWhere(t *testing.T) {
	s := newEnv(t, nil)
	for i, try := range []struct {
		session         *sdk.ClientSession
		own             arguments
		agent, cwd, key string
		claimed         bool
	}{
		{s.stdio(nil), arguments{"key": "k1"}, "tester", "/srv/ci", "k1", true},
		{s.client(modern), arguments{"agentId": "child"}, "child", "", "", true},
		{s.client(legacy), arguments{}, "bot", "", "", false},
	} {
		with := arguments{"permission": fmt.Sprint("@read:/srv/", i), "reason": "x", "timeout_minutes": 1.5, "details": "whole"}
		maps.Copy(with, try.own)
		waits := call(t.Context(), try.session, "request_permission", with)
		r := s.pending(1)[0]
		if r.Agent != try.agent || r.Claimed != try.claimed || r.Cwd != try.cwd || r.Key != try.key || r.Details != "whole" ||
			r.Deadline.Sub(r.CreatedAt) != 90*time.Second || r.Caller != bot {
			t.Errorf("asked %+v", r)
		}
		s.decide(r.ID, permissions.Deny, "")
		s.get(waits)
	}
}

func TestTimeIsOver(t *testing.T) {
	s := newEnv(t, nil)
	c := s.client(legacy)
	for _, try := range []struct {
		tool  string
		with  arguments
		text  string
		err   bool
		state string
	}{
		{"request_permission", network, "Permission request timed out after 15 minutes.", true, "expired"},
		{"pause", look, "Nobody resumed within 15 minutes; continuing.", false, "expired"},
		{"pause", confirm, "Confirmation timed out after 15 minutes.", true, "expired"},
		{"ask_user", choose, "blog\n(nobody answered within 5 minutes; first option taken)", false, "answered"},
	} {
		waits := call(t.Context(), c, try.tool, try.with)
		r := s.pending(1)[0]
		s.pass(r.Deadline.Sub(r.CreatedAt))
		got := s.get(waits)
		if textOf(t, got) != try.text || got.IsError != try.err || beside(t, got)["state"] != try.state || beside(t, got)["decided_by"] != nil {
			t.Errorf("%s: %q, error %t, %v", try.tool, textOf(t, got), got.IsError, beside(t, got))
		}
	}
}

// A call is allowed as people were shown where its links lead: not otherwise once they have answered, and once only where nobody looks.
func TestApproveToolLooksAtLinks(t *testing.T) {
	leads := make(chan string, 2)
	s := newEnv(t, func(o *mcp.Options) {
		o.Leads = func(q permissions.Request) (permissions.Leads, error) {
			return permissions.Leads{Names: map[string]string{"/srv/a": <-leads}}, nil
		}
	})
	c := s.client(modern)
	for now, want := range map[string]string{"/etc/b": `"allow"`, "/etc/c": "a link was changed"} {
		leads <- "/etc/b"
		leads <- now
		waits := call(t.Context(), c, "approve_tool", shell)
		r := s.pending(1)[0]
		if at := r.Symlinks()["/srv/a"]; at != "/etc/b" {
			t.Errorf("the card says %q", at)
		}
		s.decide(r.ID, permissions.Allow(permissions.Once), "")
		if got := textOf(t, s.get(waits)); !strings.Contains(got, want) {
			t.Errorf("it leads to %s: %s", now, got)
		}
	}
	s = newEnv(t, nil)
	waits := call(t.Context(), s.client(modern), "approve_tool", arguments{"tool_name": "Bash", "input": arguments{"command": "ls"}})
	r := s.pending(1)[0]
	if !r.LeadsUnknown() || len(r.Options) != 2 {
		t.Errorf("nobody looks: unknown %t, offered %v", r.LeadsUnknown(), r.Options)
	}
	s.decide(r.ID, permissions.Deny, "")
	s.get(waits)
}

// TestTheFolderOfClaudeCodesShellIsNotKnown: it is where earlier commands went, and so is what its own tools are given by a relative name.
// No rule allows such a call, it is allowed once only, and its card names no folder.
func TestTheFolderOfClaudeCodesShellIsNotKnown(t *testing.T) {
	s := newEnv(t, func(o *mcp.Options) {
		o.Cwd, o.Leads = "/srv/ci", func(permissions.Request) (permissions.Leads, error) { return permissions.Leads{}, nil }
	})
	for _, c := range []struct {
		tool  string
		input arguments
		known bool
	}{
		{"Bash", arguments{"command": "./go.sh"}, false}, {"Bash", arguments{"command": "x", "run_in_background": true}, false},
		{"Monitor", arguments{"command": "./go.sh"}, false}, {"Other", arguments{"script": "./go.sh"}, false}, {"Other", arguments{"n": 1}, true},
		{"Other", arguments{"code": "x"}, false}, {"Grep", arguments{"pattern": "x"}, false},
		{"Glob", arguments{"pattern": "*.go", "path": "src"}, false},
		{"Write", arguments{"file_path": "x", "content": "y"}, false}, {"Read", arguments{"file_path": "/srv/x", "path": "y"}, false},
		{"Write", arguments{"file_path": "/srv/x", "content": "y"}, true}, {"NotebookEdit", arguments{"notebook_path": "/srv/x"}, true},
		{"Grep", arguments{"pattern": "x", "path": "/srv"}, true}, {"mcp__fs__run_command", arguments{"command": "x"}, true},
		{"WebFetch", arguments{"url": "https://a.example", "prompt": "x"}, true},
	} {
		waits := call(t.Context(), s.client(modern), "approve_tool", arguments{"tool_name": c.tool, "input": c.input})
		r := s.pending(1)[0]
		if known := r.Cwd == "/srv/ci" && !r.LeadsUnknown(); known != c.known || r.Cwd != "" && !known {
			t.Errorf("%s %v: in %q, unknown %t", c.tool, c.input, r.Cwd, r.LeadsUnknown())
		}
		s.decide(r.ID, permissions.Deny, "")
		s.get(waits)
	}
}

// approve_tool always answers with a verdict in the format of Claude Code.
func TestApproveTool(t *testing.T) {
	s := newEnv(t, nil)
	c := s.client(modern)
	for _, try := range []struct {
		answer  permissions.Answer
		comment string
		want    string
	}{
		{permissions.Allow(permissions.Once), "", `{"behavior":"allow","updatedInput":{"command":"rm -rf build","n":1e2}}`},
		{permissions.Deny, "keep old/", `{"behavior":"deny","message":"Tool Bash denied by the user. fay: \"keep old/\""}`},
		{"", "", `{"behavior":"deny","message":"Tool approval cancelled."}`},
	} {
		waits := call(t.Context(), c, "approve_tool", shell)
		r := s.pending(1)[0]
		if r.Kind != permissions.KindTool || r.Tool != "Bash" || r.Key != "" {
			t.Errorf("asked %+v", r)
		}
		if try.answer != "" {
			s.decide(r.ID, try.answer, try.comment)
		} else if _, err := s.Withdraw(t.Context(), bot, r.ID); err != nil {
			t.Fatal(err)
		}
		if got := s.get(waits); textOf(t, got) != try.want || got.IsError || got.StructuredContent != nil {
			t.Errorf("%s: %s, error %t, %v", try.answer, textOf(t, got), got.IsError, got.StructuredContent)
		}
	}
	waits := call(t.Context(), c, "approve_tool", arguments{"tool_name": "ExitPlanMode", "input": arguments{"plan": "1. Test"}})
	plan := s.pending(1)[0]
	if len(plan.Options) != 2 || !plan.Plans() {
		t.Errorf("a plan can be answered by %v", plan.Options)
	}
	s.decide(plan.ID, permissions.Allow(permissions.Once), "")
	if got := textOf(t, s.get(waits)); got != `{"behavior":"allow","updatedInput":{"plan":"1. Test"}}` {
		t.Errorf("a plan: %s", got)
	}
	for want, with := range map[string]any{
		`{"behavior":"deny","message":"Tool delete_all is forbidden here."}`: arguments{"tool_name": "delete_all", "input": arguments{}},
		`input must be an object`:                    arguments{"tool_name": "Bash", "input": "ls"},
		`approve_tool has no \"surprise\"; it takes`: arguments{"tool_name": "Bash", "input": arguments{}, "surprise": 1},
		`needs a printable tool name`:                arguments{"tool_name": "a\nb", "input": arguments{}},
	} {
		got := s.get(call(t.Context(), c, "approve_tool", with))
		if text := textOf(t, got); !strings.Contains(text, want) || !strings.HasPrefix(text, `{"behavior":"deny"`) || got.IsError {
			t.Errorf("%s: %s", want, text)
		}
	}
}

// TestQuestionsThroughApproveTool: people are asked the questions of AskUserQuestion, not whether it may run, and the call gets what they
// chose; with a question that nobody answered it is denied.
func TestQuestionsThroughApproveTool(t *testing.T) {
	s := newEnv(t, nil)
	c := s.client(modern)
	const first = `{"question":"Which colour?","header":"c","options":[{"label":"Red","description":"r"},{"label":"Blue"}]}`
	asks := func(questions string) arguments {
		return arguments{"tool_name": "AskUserQuestion", "input": json.RawMessage(`{"questions":[` + questions + `]}`)}
	}
	waits := call(t.Context(), c, "approve_tool", asks(first+`,{"question":"Which name?","options":[{"label":"A"},{"label":"B"}]}`))
	r := s.pending(1)[0]
	if r.Kind != permissions.KindClarification || r.Message != "Which colour?\n- Red: r" || fmt.Sprint(r.Choices) != "[Red Blue]" {
		t.Errorf("asked %+v", r)
	}
	s.decide(r.ID, permissions.Choose(2), "")
	s.decide(s.pending(1)[0].ID, permissions.Other, "my own")
	const want = `{"behavior":"allow","updatedInput":{"answers":{"Which colour?":"Blue","Which name?":"my own"},"questions":[`
	if got := textOf(t, s.get(waits)); !strings.HasPrefix(got, want) {
		t.Errorf("got %s", got)
	}
	waits = call(t.Context(), c, "approve_tool", asks(first))
	if _, err := s.Withdraw(t.Context(), bot, s.pending(1)[0].ID); err != nil {
		t.Fatal(err)
	}
	if got := textOf(t, s.get(waits)); got != `{"behavior":"deny","message":"Question cancelled."}` {
		t.Errorf("got %s", got)
	}
	waits = call(t.Context(), c, "approve_tool", asks(first))
	s.pending(1)
	s.pass(5 * time.Minute)
	if got := textOf(t, s.get(waits)); got != `{"behavior":"deny","message":"Red\n(nobody answered within 5 minutes; first option taken)"}` {
		t.Errorf("got %s", got)
	}
	for _, bad := range []string{"", `{"question":"Which?","options":[{"label":"only"}]}`} {
		if got := textOf(t, s.get(call(t.Context(), c, "approve_tool", asks(bad)))); !strings.HasPrefix(got, `{"behavior":"deny"`) {
			t.Errorf("%s: %s", bad, got)
		}
	}
}

// TestPolicyIsAskedBeforeQuestionsThroughApproveTool: where a list or a rule is about AskUserQuestion, it holds, as for the hook.
func TestPolicyIsAskedBeforeQuestionsThroughApproveTool(t *testing.T) {
	s := newEnv(t, nil)
	c := s.client(modern)
	asks := arguments{"tool_name": "AskUserQuestion", "input": json.RawMessage(
		`{"questions":[{"question":"Which colour?","options":[{"label":"Red"},{"label":"Blue"}]}]}`)}
	policy := func(p permissions.Policy) {
		next := settings()
		next.Policy = p
		s.Configure(next)
	}
	policy(permissions.Policy{Forbidden: []string{"AskUserQuestion"}})
	got := textOf(t, s.get(call(t.Context(), c, "approve_tool", asks)))
	if !strings.Contains(got, `"deny"`) || !strings.Contains(got, "forbidden") {
		t.Errorf("got %s", got)
	}
	policy(permissions.Policy{Gated: []string{"AskUserQuestion"}})
	waits := call(t.Context(), c, "approve_tool", asks)
	r := s.pending(1)[0]
	if r.Kind != permissions.KindTool || r.Tool != "AskUserQuestion" {
		t.Errorf("asked %+v", r)
	}
	s.decide(r.ID, permissions.Deny, "")
	if got := textOf(t, s.get(waits)); !strings.HasPrefix(got, `{"behavior":"deny"`) {
		t.Errorf("got %s", got)
	}
}

func TestMalformedInputAsksNobody(t *testing.T) {
	s := newEnv(t, nil)
	c := s.client(legacy)
	for _, try := range []struct{ tool, with, want string }{
		{"request_permission", `{}`, `"reason" is missing`},
		{"request_permission", `{"permission":"@network"}`, `"reason" is missing`},
		{"request_permission", `{"permission":"@network","reason":"  "}`, "needs a reason"},
		{"request_permission", `{"permission":"@network","permissions":["@events"],"reason":"x"}`, "either permission or permissions"},
		{"request_permission", `{"permission":"@nework","reason":"x"}`, "@network"},
		{"request_permission", `{"permission":"@network","reason":"x","Reason":"y"}`, `did you mean "reason"?`},
		{"request_permission", `{"permission":7,"reason":"x"}`, "permission must be text"},
		{"request_permission", `{"permission":"@network","reason":"x","timeout_minutes":0}`, "1 to 60"},
		{"request_permission", `{"permission":"@network","reason":"x","timeout_minutes":61}`, "1 to 60"},
		{"request_permission", `{"permission":"@network","reason":"x","timeout_minutes":"5"}`, "timeout_minutes must be a number"},
		{"request_permission", `{"permission":"@network","reason":"` + strings.Repeat("x", 2001) + `"}`, "2000"},
		{"ask_user", `{"question":"?","options":["a"]}`, "2 to 20 items"},
		{"ask_user", `{"question":"?","options":["a","a"]}`, "different"},
		{"ask_user", `{"options":["a","b"]}`, `"question" is missing`},
		{"pause", `{"mode":"confirm"}`, `"message" is missing`},
		{"pause", `{"message":"x","mode":"stop"}`, "mode must be one of continue, confirm"},
		{"await_request", `{}`, `"id" is missing`},
		{"await_request", `{"id":"01J"}`, `There is no request 01J.`},
		{"await_request", `null`, "must be a JSON object"},
		{"await_request", `{"id":7}`, "id must be text"},
		{"pause", strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20), "levels deep"},
	} {
		t.Run(fmt.Sprintf("C4/%s %.60s", try.tool, try.with), func(t *testing.T) {
			got := s.get(call(t.Context(), c, try.tool, json.RawMessage(try.with)))
			if text := textOf(t, got); !got.IsError || !strings.Contains(text, try.want) || got.StructuredContent != nil {
				t.Errorf("%s %.80s: %q, error %t", try.tool, try.with, text, got.IsError)
			}
		})
	}
	if r := <-call(t.Context(), c, "decide_request", arguments{}); r.err == nil {
		t.Error("a tool that there is not was called")
	}
	if n := s.asked(); n != 0 {
		t.Errorf("fay was asked %d times", n)
	}
}

func TestARefusalIsAnErrorResult(t *testing.T) {
	s := newEnv(t, nil)
	c := s.client(legacy)
	waits := call(t.Context(), c, "request_permission", arguments{"permission": "@network", "reason": "x", "key": "k"})
	r := s.pending(1)[0]
	got := s.get(call(t.Context(), c, "request_permission", arguments{"permission": "@events", "reason": "x", "key": "k"}))
	if textOf(t, got) != "This key belongs to another request." || !got.IsError {
		t.Errorf("other content under the key: %q", textOf(t, got))
	}
	s.decide(r.ID, permissions.Allow(permissions.For(15*time.Minute)), "")
	s.get(waits)
	got = s.get(call(t.Context(), c, "request_permission", network))
	if textOf(t, got) != "Permission already granted for network access." || beside(t, got)["decided_by"] != nil {
		t.Errorf("what is held: %q", textOf(t, got))
	}
	if _, err := s.StopAll(t.Context(), operator); err != nil {
		t.Fatal(err)
	}
	got = s.get(call(t.Context(), c, "pause", confirm))
	if !strings.Contains(textOf(t, got), "nothing is asked until resume.") || !got.IsError {
		t.Errorf("stopped: %q", textOf(t, got))
	}
}

func TestAwaitRequest(t *testing.T) {
	s := newEnv(t, nil)
	c := s.client(modern)
	first := call(t.Context(), c, "request_permission", network)
	r := s.pending(1)[0]
	reads := call(t.Context(), s.client(legacy), "await_request", arguments{"id": string(r.ID)})
	s.waits(r.ID, 2)
	s.decide(r.ID, permissions.Allow(permissions.Once), "")
	for _, waits := range []<-chan result{first, reads} {
		if got := s.get(waits); textOf(t, got) != "Permission granted for network access." || beside(t, got)["id"] != string(r.ID) {
			t.Errorf("got %q", textOf(t, got))
		}
	}
}

// A revoked approval is not reported as one, in the text or the structured content, for a repeated question or await_request.
func TestAnApprovalThatWasTakenBackIsToldAsNone(t *testing.T) {
	for _, era := range []string{legacy, modern} {
		for tool, with := range map[string]func(permissions.ID) arguments{
			"request_permission": func(permissions.ID) arguments { return network },
			"await_request":      func(id permissions.ID) arguments { return arguments{"id": string(id)} },
		} {
			t.Run("D5/"+era+" "+tool, func(t *testing.T) {
				t.Parallel()
				s := newEnv(t, nil)
				c := s.impatient(era)
				if r := <-c.call(t.Context(), "request_permission", network, nil); !errors.Is(r.err, errImpatient) {
					t.Fatalf("it did not give up: %v", r.err)
				}
				r := s.pending(1)[0]
				s.waits(r.ID, 0)
				s.decide(r.ID, permissions.Allow(permissions.Once), "")
				if _, err := s.Void(t.Context(), operator, string(r.ID)); err != nil {
					t.Fatal(err)
				}
				got := s.get(call(t.Context(), c.ClientSession, tool, with(r.ID)))
				b := beside(t, got)
				const want = "Permission was given and taken back before it was used."
				if textOf(t, got) != want || !got.IsError || b["state"] != "cancelled" || b["answer"] != nil || b["scope"] != nil ||
					b["voided_by"] != "fay" || b["void_at"] == nil || b["result"] != want {
					t.Errorf("%q, error %t, %v", textOf(t, got), got.IsError, b)
				}
			})
		}
	}
}

func TestAHundredCallsAtOnce(t *testing.T) {
	s := newEnv(t, nil)
	for name, c := range map[string]*sdk.ClientSession{"http": s.client(modern), "stdio": s.stdio(nil)} {
		t.Run(name, func(t *testing.T) {
			var all []<-chan result
			for i := range 100 {
				all = append(all, call(t.Context(), c, "pause", arguments{"message": fmt.Sprint("call ", i), "mode": "confirm"}))
			}
			rows := s.pending(100)
			var group sync.WaitGroup
			for i, r := range rows {
				group.Go(func() {
					answer := permissions.Allow(permissions.Once)
					if strings.HasSuffix(r.Message, "7") {
						answer = permissions.Deny
					}
					s.decide(rows[i].ID, answer, "")
				})
			}
			group.Wait()
			for i, waits := range all {
				want := "Approved."
				if strings.HasSuffix(fmt.Sprint(i), "7") {
					want = "Denied."
				}
				if got := textOf(t, s.get(waits)); got != want {
					t.Errorf("call %d: %q", i, got)
				}
			}
		})
	}
}

// A tool's two schemas and its parser agree.
func TestToolsAreDescribed(t *testing.T) {
	s := newEnv(t, nil)
	for _, era := range []string{legacy, modern} {
		list, err := s.client(era).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
			schema, ok := tool.InputSchema.(map[string]any)
			if !ok || schema["additionalProperties"] != false || schema["oneOf"] != nil || len(tool.Description) < 80 {
				t.Errorf("%s: %v", tool.Name, tool.InputSchema)
			}
			properties, _ := schema["properties"].(map[string]any)
			for name := range properties { // with the wrong type, so that it is known but refused
				got := s.get(call(t.Context(), s.client(era), tool.Name, arguments{name: []int{1}}))
				if text := textOf(t, got); strings.Contains(text, " has no ") {
					t.Errorf("%s does not read %s: %s", tool.Name, name, text)
				}
			}
		}
		if fmt.Sprint(names) != "[approve_tool ask_user await_request pause request_permission]" {
			t.Errorf("tools %v", names)
		}
	}
}

// Gemini CLI refuses any tool called ask_user when it runs without a person, so ours is listed to it by another name; both names
// can be called.
func TestAQuestionIsAskedByANameThatTheClientDoesNotHide(t *testing.T) {
	for name, want := range map[string][2]string{
		"gemini-cli-mcp-client": {"ask_person", "ask_user"}, "gemini-cli-mcp-client-daycared": {"ask_person", "ask_user"},
		"claude-code": {"ask_user", "ask_person"},
	} {
		s := newEnv(t, nil)
		s.name = name
		c := s.stdio(nil)
		list, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
		}
		if !slices.Contains(names, want[0]) || slices.Contains(names, want[1]) || len(names) != 5 {
			t.Errorf("%s is listed %v", name, names)
		}
		if told := c.InitializeResult().Instructions; !strings.Contains(told, want[0]) || strings.Contains(told, want[1]) {
			t.Errorf("%s is told: %s", name, told)
		}
		for _, tool := range want {
			waits := call(t.Context(), c, tool, choose)
			s.decide(s.pending(1)[0].ID, permissions.Choose(2), "")
			if got := textOf(t, s.get(waits)); got != "mail" {
				t.Errorf("%s, %s: %s", name, tool, got)
			}
		}
	}
}

func TestOtherSitesAndOddCallsAreRefused(t *testing.T) {
	s := newEnv(t, nil)
	behind := newEnv(t, func(o *mcp.Options) { o.BehindProxy = true })
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, try := range []struct {
		name, method, url, host, header, value, body string
		want                                         int
	}{
		{"fine", "POST", s.url, "", "", "", ping, 200},
		{"another host", "POST", s.url, "evil.example", "", "", ping, 403},
		{"another host, looked at in front", "POST", behind.url, "evil.example", "", "", ping, 200},
		{"another origin", "POST", s.url, "", "Origin", "https://evil.example", ping, 403},
		{"another site", "POST", s.url, "", "Sec-Fetch-Site", "cross-site", ping, 403},
		{"a stream", "GET", s.url, "", "", "", "", 405},
		{"an end", "DELETE", s.url, "", "", "", "", 405},
		{"a form", "POST", s.url, "", "Content-Type", "text/plain", ping, 415},
		{"no JSON", "POST", s.url, "", "", "", "{", 400},
		{"too much", "POST", s.url, "", "", "", `"` + strings.Repeat("x", 3<<20) + `"`, 413},
	} {
		t.Run("G1/"+try.name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), try.method, try.url, strings.NewReader(try.body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Accept", "application/json, text/event-stream")
			if try.header != "" {
				request.Header.Set(try.header, try.value)
			}
			if try.host != "" {
				request.Host = try.host
			}
			response, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				t.Fatalf("%s: %v", try.name, err)
			}
			text, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if response.StatusCode != try.want {
				t.Errorf("%s: %d %s", try.name, response.StatusCode, text)
			}
		})
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// With a broken store nothing is granted, and the model is told why.
func TestABrokenEngineGrantsNothing(t *testing.T) {
	t.Run("D9/MCP with a daemon that fails", func(t *testing.T) {
		env := wiretest.NewEnv(t)
		s := newEnv(t, func(o *mcp.Options) { o.Requests = env })
		env.Fail(context.DeadlineExceeded)
		got := s.get(call(t.Context(), s.client(legacy), "request_permission", network))
		if !got.IsError || got.StructuredContent != nil {
			t.Errorf("%q", textOf(t, got))
		}
	})
}
