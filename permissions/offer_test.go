package permissions

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// ids returns the ids of options, in order.
func ids(options []Option) string {
	var list []string
	for _, o := range options {
		list = append(list, string(o.ID))
	}
	return strings.Join(list, " ")
}

func TestOffer(t *testing.T) {
	ours, theirs := Caller{Name: "agent:scribe"}, Caller{Name: "uid:1000", UID: 1000}
	permission := Request{Kind: KindPermission, Tags: tags("@network"), Caller: theirs}
	tool := Request{Kind: KindTool, Tool: "write_file", Caller: theirs}
	with := func(r Request, change func(*Request)) Request { change(&r); return r }
	inSession := func(r *Request) { r.Session = "s1" }
	oursInSession := func(r *Request) { r.Session, r.Caller = "s1", ours }
	for _, c := range []struct {
		name   string
		r      Request
		widest Scope
		want   string
	}{
		{"permission", permission, Scope{}, "allow_once allow_15m allow_always deny"},
		{"permission in a session", with(permission, inSession), Scope{},
			"allow_once allow_session allow_15m allow_always deny"},
		{"permission, high risk", with(permission, func(r *Request) { r.HighRisk, r.Session = true, "s1" }), Scope{},
			"allow_once deny"},
		{"permission, at most once", with(permission, inSession), Once, "allow_once deny"},
		{"permission, at most the session", with(permission, inSession), Session, "allow_once allow_session deny"},
		{"permission, at most ten minutes", permission, For(10 * time.Minute), "allow_once deny"},
		{"permission, at most an hour", permission, For(time.Hour), "allow_once allow_15m deny"},
		{"permission, at most always", with(permission, inSession), Always, "allow_once allow_15m allow_always deny"},
		{"permission of anybody", with(permission, func(r *Request) { r.Caller.Name, r.Session = Anonymous, "s1" }),
			Scope{}, "allow_once deny"},

		{"tool", tool, Scope{}, "allow_once allow_15m allow_always deny"},
		{"tool in another's session", with(tool, inSession), Scope{},
			"allow_once allow_session_tool allow_15m allow_always deny"},
		{"tool in a session of ours", with(tool, oursInSession), Scope{},
			"allow_once allow_session_tool allow_session allow_15m allow_always deny"},
		{"tool of ours without a session", with(tool, func(r *Request) { r.Caller = ours }), Scope{},
			"allow_once allow_15m allow_always deny"},
		{"tool, high risk, in a session of ours",
			with(tool, func(r *Request) { oursInSession(r); r.HighRisk = true }), Scope{},
			"allow_once deny"},
		{"shell in a session of ours", with(tool, func(r *Request) { oursInSession(r); r.Tool = "run_command" }), Scope{},
			"allow_once allow_session_tool allow_15m deny"},
		{"tool, at most this tool", with(tool, oursInSession), SessionTool, "allow_once allow_session_tool deny"},
		{"shell", with(tool, func(r *Request) { r.Tool = "run_command" }), Scope{}, "allow_once allow_15m deny"},
		{"step with a shell", with(tool, func(r *Request) {
			r.Tool, r.Calls = "", []Call{{N: 1, Tool: "write_file"}, {N: 2, Tool: "Bash"}}
		}), Scope{}, "allow_once allow_15m deny"},
		{"tool of anybody", with(tool, func(r *Request) { oursInSession(r); r.Caller.Name = Anonymous }), Scope{},
			"allow_once deny"},

		{"suggestions", suggesting(), Scope{}, "allow_once allow_session_tool allow_15m allow_with_1 allow_with_2 deny"},
		{"suggestions, high risk", with(suggesting(), func(r *Request) { r.HighRisk = true }), Scope{}, "allow_once deny"},
		{"suggestions, at most once", suggesting(), Once, "allow_once deny"},
		{"suggestions, at most this tool", suggesting(), SessionTool, "allow_once allow_session_tool deny"},
		{"suggestions to anybody", with(suggesting(), func(r *Request) { r.Caller.Name = Anonymous }), Scope{}, "allow_once deny"},
		{"suggestions without a hook", with(suggesting(), func(r *Request) { r.Hook = "" }), Scope{},
			"allow_once allow_session_tool allow_15m deny"},

		{"pause", pauseRequest(), Scope{}, "continue interrupt"},
		{"confirm", confirmRequest(), Scope{}, "allow_once deny interrupt"},
		{"confirm, high risk", with(confirmRequest(), func(r *Request) { r.HighRisk = true }), Scope{},
			"allow_once deny interrupt"},
		{"clarification", clarification(), Scope{}, "option_1 option_2 option_3"},
	} {
		t.Run("B6/"+c.name, func(t *testing.T) {
			if got := ids(Offer(c.r, everyScope, c.widest)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if c.r.Kind != KindPermission && c.r.Kind != KindTool {
				return
			}
			if got := ids(Offer(c.r, nil, c.widest)); got != "allow_once deny" {
				t.Errorf("without configured scopes: %s", got)
			}
		})
	}
}

// A button says what its scope covers.
func TestLabels(t *testing.T) {
	tool := pending(Request{Kind: KindTool, Tool: "write_file", Session: "s1"})
	hook := pending(Request{Kind: KindTool, Tool: "write_file", Session: "s1", Hook: "codex"})
	shell := pending(Request{Kind: KindTool, Tool: "Bash", Session: "s1"})
	one := pending(Request{Kind: KindTool, Calls: []Call{{N: 1, Tool: "write_file"}}, Session: "s1", Hook: "codex"})
	confirm, pause, question := confirmRequest(), pauseRequest(), clarification()
	for _, c := range []struct {
		name string
		r    Request
		want []Option
	}{
		{"permission", permissionRequest(), []Option{
			{"allow_once", "Allow once"}, {"allow_session", "Allow for this session"},
			{"allow_15m", "Allow for 15 minutes"}, {"allow_always", "Allow until revoked"}, {"deny", "Deny"},
		}},
		{"suggestions", suggesting(), []Option{
			{"allow_once", "Allow once"}, {"allow_session_tool", "Allow this exact call for this session"},
			{"allow_15m", "Allow this exact call for 15 minutes"},
			{"allow_with_1", "Allow once, and add a"}, {"allow_with_2", "Allow once, and add b"}, {"deny", "Deny"},
		}},
		{"tool", tool, []Option{
			{"allow_once", "Allow once"}, {"allow_session_tool", "Allow write_file for this session"},
			{"allow_session", "Allow all gated tools this session but high risk and shells"},
			{"allow_15m", "Allow write_file for 15 minutes"},
			{"allow_always", "Always allow this exact call"}, {"deny", "Deny"},
		}},
		{"hook", hook, []Option{
			{"allow_once", "Allow once"}, {"allow_session_tool", "Allow this exact call for this session"},
			{"allow_15m", "Allow this exact call for 15 minutes"},
			{"allow_always", "Always allow this exact call"}, {"deny", "Deny"},
		}},
		{"shell", shell, []Option{
			{"allow_once", "Allow once"}, {"allow_session_tool", "Allow this exact call for this session"},
			{"allow_15m", "Allow this exact call for 15 minutes"}, {"deny", "Deny"},
		}},
		{"step", stepRequest(), []Option{
			{"allow_once", "Allow once"}, {"allow_session_tool", "Allow write_file and fetch_url for this session"},
			{"allow_session", "Allow all gated tools this session but high risk and shells"},
			{"allow_15m", "Allow write_file and fetch_url for 15 minutes"},
			{"allow_always", "Always allow these exact calls"}, {"deny", "Deny"},
		}},
		{"step of one call", one, []Option{
			{"allow_once", "Allow once"}, {"allow_session_tool", "Allow this exact call for this session"},
			{"allow_15m", "Allow this exact call for 15 minutes"},
			{"allow_always", "Always allow this exact call"}, {"deny", "Deny"},
		}},
		{"plan", pending(Request{Kind: KindTool, Tool: "ExitPlanMode"}), []Option{
			{"allow_once", "Start"}, {"allow_15m", "Allow ExitPlanMode for 15 minutes"},
			{"allow_always", "Always allow this exact call"}, {"deny", "Stop"},
		}},
		{"pause", pause, []Option{{"continue", "Continue"}, {"interrupt", "Interrupt"}}},
		{"confirm", confirm, []Option{{"allow_once", "Approve"}, {"deny", "Deny"}, {"interrupt", "Interrupt"}}},
		{"clarification", question, []Option{{"option_1", "blog"}, {"option_2", "mail"}, {"option_3", "nowhere"}}},
	} {
		if !slices.Equal(c.r.Options, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, c.r.Options, c.want)
		}
	}
}

func TestAnswerScope(t *testing.T) {
	for _, a := range []Answer{Deny, Continue, Interrupt, Other, Choose(1), "", "allow_", "allow_forever", "allow_0s", "once",
		"1", "with_1", "allow_with_", "allow_with_0", "allow_with_01", "allow_with_5"} {
		if s, ok := a.Scope(); ok || s != (Scope{}) {
			t.Errorf("%q allows %v", a, s)
		}
	}
}

// TestEachSuggestionIsAllowedOnce: an answer with a suggestion, the last one too, allows the call once, and says which it is.
func TestEachSuggestionIsAllowedOnce(t *testing.T) {
	for k := 1; k <= MaxSuggestions; k++ {
		if s, ok := AllowWithSuggestion(k).Scope(); !ok || s != Once || AllowWithSuggestion(k).SuggestionNumber() != k {
			t.Errorf("%s allows %v, with suggestion %d", AllowWithSuggestion(k), s, AllowWithSuggestion(k).SuggestionNumber())
		}
	}
}

// TestWhatFollowsFilesIsAllowedOnce: the files may say something else the next time.
func TestWhatFollowsFilesIsAllowedOnce(t *testing.T) {
	all := []Scope{SessionTool, Session, For(time.Minute), Always, Rule}
	for tool, want := range map[string]int{
		"Skill": 2, "activate_skill": 2, "Agent": 2, "Task": 2, "CronCreate": 2, "run_task": 2, "mcp__x__skill": 6,
	} {
		r := Request{Kind: KindTool, Tool: tool, Hook: "claude-code", Session: "s", Caller: Caller{Name: "fay"}, Input: []byte("{}")}
		if got := Offer(r, all, Scope{}); len(got) != want {
			t.Errorf("%s: %v", tool, got)
		}
	}
}

func TestEffectOf(t *testing.T) {
	for tool, want := range map[string]Effect{
		"Bash": DoesExecute, "zsh": DoesExecute, "ops__run_command": DoesExecute, "my_python": DoesExecute, "Write": DoesEdit,
		"mcp__files__write-file": DoesEdit, "grep": DoesRead, "WebFetch": DoesNetwork, "teleport": DoesOther, "zedit": DoesOther, "": DoesOther,
	} {
		if got := EffectOf(tool); got != want {
			t.Errorf("the effect of %q is %s, not %s", tool, got, want)
		}
	}
}

// TestThePlanOfAnACPAgentIsInItsInput: other calls have none there, and nothing else of the input is lost.
func TestThePlanOfAnACPAgentIsInItsInput(t *testing.T) {
	for _, c := range []struct {
		tool, input, plan, rest string
		plans                   bool
	}{
		{"acp_switch_mode", `{"plan":"1. Test","to":"b\u0041"}`, "1. Test", `{"to":"bA"}`, true},
		{"acp_switch_mode", `{"plan":" ","to":"b"}`, "", `{"plan":" ","to":"b"}`, false},
		{"acp_switch_mode", `{"plan":3}`, "", `{"plan":3}`, false},
		{"acp_switch_mode", `["plan"]`, "", `["plan"]`, false},
		{"write_plan", `{"plan":"1. Test"}`, "", `{"plan":"1. Test"}`, false},
		{"ExitPlanMode", `{"plan":"1. Test"}`, "", `{"plan":"1. Test"}`, true},
	} {
		r := Request{Kind: KindTool, Tool: c.tool, Input: []byte(c.input)}
		if plan, rest := r.Plan(); plan != c.plan || string(rest) != c.rest || r.Plans() != c.plans {
			t.Errorf("%s of %s: %q, %s, %t", c.tool, c.input, plan, rest, r.Plans())
		}
	}
	r := Request{Kind: KindTool, Tool: "acp_switch_mode", Input: []byte(`{"plan":"1. Test"}`), Calls: []Call{{N: 1}}}
	if plan, _ := r.Plan(); plan != "" {
		t.Error("a step has a plan")
	}
	r.Kind, r.Calls = KindPermission, nil
	if plan, _ := r.Plan(); plan != "" || r.Plans() {
		t.Error("a question has a plan")
	}
}

// TestTakesCommands: a tool whose effect is known is one for commands only if it runs something, whatever its name has in it.
func TestTakesCommands(t *testing.T) {
	for tool, want := range map[string]bool{
		"Bash": true, "mcp__dc__shell": true, "mcp__my-ssh__go": true, "runCmd": true, "Write": false, "mcp__fs__read": false, "publish": false,
	} {
		if got := TakesCommands(tool); got != want {
			t.Errorf("%s takes commands: %t", tool, got)
		}
	}
}

func TestRunsCode(t *testing.T) {
	for tool, want := range map[string]bool{
		"run_command": true, "Bash": true, "bash": true, "sh": true, "mcp__host__exec": true, "run_shell_command": true,
		"run_terminal_cmd": true, "python3": true, "code_interpreter": true, "execute_code": true, "PowerShell": true,
		"mcp__dc__start_process": true, "interact_with_process": true, "kubectl": true, "send_keys": true, "process_start": true,
		"osascript": true, "cli": true, "spawn_process": true, "subprocess": true, "use_aws": true, "list_processes": false,
		"node18": true, "my-zsh": true, "RunCommand": true, "run_tests": true, "js.eval": true, "runScript": true,
		"write_bash": true, "write_powershell": true, "write_stdin": true,
		"send_to_terminal": true, "terminal_input": true, "evalJs": true,
		"notebook_run_cell": true, "perl": true, "runJS": true, "EvalX": true, "Write": false, "writeX": false,
		"write_file": false, "publish_notes": false, "refresh_token": false, "fetch_url": false, "describe": false,
		"retrieval": false, "list_subscriptions": false, "crunch": false, "": false,
	} {
		t.Run("B6/"+tool, func(t *testing.T) {
			if got := RunsCode(tool); got != want {
				t.Errorf("%q runs code: %v, want %v", tool, got, want)
			}
		})
	}
}
