package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
)

var update = flag.Bool("update", false, "write the golden files")

// endings are the ways in which asking can end, by name.
var endings = []struct {
	name string
	r    permissions.Request
	err  error
}{
	{name: "allowed", r: permissions.Request{State: permissions.Approved}},
	{name: "allowed by a grant", r: permissions.Request{
		State: permissions.Approved, DecidedVia: permissions.ViaGrant, Grants: []permissions.ID{"g"},
	}},
	{name: "let go by policy", r: permissions.Request{State: permissions.Approved, DecidedVia: permissions.ViaGrant}},
	{name: "denied", r: permissions.Request{State: permissions.Denied}},
	{name: "denied with a reason", r: permissions.Request{State: permissions.Denied, DecidedBy: "fay", Comment: `not <now> & "never"`}},
	{name: "daemon down", err: fmt.Errorf("%w: no such file", wire.ErrUnreachable)},
	{name: "daemon slow", r: permissions.Request{State: permissions.Pending, Asked: []string{"fay", "sam"}}, err: context.DeadlineExceeded},
	{name: "forbidden", err: permissions.Forbidden("x")},
}

// Each file of testdata is a hook's input; beside it are the question and the agent's output for each ending.
func TestGolden(t *testing.T) {
	seen := map[string]int{}
	for _, name := range Names() {
		d, _ := Find(name)
		files, err := filepath.Glob(filepath.Join("testdata", name, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			seen[name]++
			t.Run(name+"/"+filepath.Base(file), func(t *testing.T) {
				input, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				c, err := d.Read(input)
				if err != nil {
					t.Fatal(err)
				}
				golden(t, strings.TrimSuffix(file, ".json")+".golden", said(c))
			})
		}
	}
	for _, name := range Names() {
		if seen[name] < 2 {
			t.Errorf("%s has %d files", name, seen[name])
		}
	}
}

// Agents run the hooks in each other's settings: an input is read and answered in the dialect of the agent that sent it.
func TestAnInputIsOfWhomItsMembersSay(t *testing.T) {
	for _, c := range []struct{ named, file, spoken string }{
		{"copilot", "vscode/terminal.json", "vscode"}, {"claude-code", "vscode/terminal.json", "vscode"},
		{"claude-code", "copilot/bash.json", "copilot"}, {"vscode", "copilot/bash.json", "copilot"},
		{"claude-code", "opencode/bash.json", "opencode"}, {"claude-code", "copilot/spelt.json", "copilot"},
		{"claude-code", "copilot/ended.json", "copilot"},
		{"claude-code", "codex/exec.json", "codex"}, {"codex", "claude-code/bash.json", "claude-code"},
		{"copilot", "codex/exec.json", "codex"}, {"copilot", "claude-code/bash.json", "claude-code"},
		{"copilot", "claude-code/plan.json", "claude-code"},
	} {
		input, err := os.ReadFile(filepath.Join("testdata", c.file))
		if err != nil {
			t.Fatal(err)
		}
		own, _ := Find(c.spoken)
		want, err := own.Read(input)
		if err != nil {
			t.Fatal(c.file, err)
		}
		named, _ := Find(c.named)
		for _, text := range [][]byte{input, append([]byte("\ufeff"), input...)} {
			got, err := named.Read(text)
			if within := got.Within(time.Hour); within != own.Within || own.Name == named.Name {
				t.Errorf("%s, named %s, may take %v", c.file, c.named, within)
			}
			if err != nil || said(got) != said(want) {
				t.Errorf("%s, named %s: %v\n%s\nnot\n%s", c.file, c.named, err, said(got), said(want))
			}
		}
	}
}

// TestWhoseAnEventIsWithoutAPrompt says that Copilot's events in Claude Code's spelling are told apart by the mode, which Claude Code
// always says.
func TestWhoseAnEventIsWithoutAPrompt(t *testing.T) {
	copilot, _ := Find("copilot")
	for text, want := range map[string]string{
		`{"hook_event_name": "Stop"}`: "copilot", `{"hook_event_name": "Stop", "permission_mode": "default"}`: "claude-code",
		`{"hook_event_name": "Stop", "prompt_id": "1"}`: "claude-code",
	} {
		var m members
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		if got := copilot.detect(m); got.Name != want {
			t.Errorf("%s is of %s, not of %s", text, got.Name, want)
		}
	}
}

// said prints a call: its question, and every reply.
func said(c Call) string {
	var out strings.Builder
	r := c.Request
	if m := c.Recall; m.Via != "" {
		return fmt.Sprintf("moot %s: session %s agent %s kind %s tool %s input %s\n", m.Via, m.Session, m.Agent, m.Kind, m.Tool, m.Input)
	}
	for _, q := range c.requests() {
		fmt.Fprintf(&out, "question %q of %q\n", q.Message, q.Choices)
	}
	if r.HookStage != "" || r.Widest != (permissions.Scope{}) {
		fmt.Fprintf(&out, "stage %s widest %s\n", r.HookStage, r.Widest)
	}
	fmt.Fprintf(&out, "agent %s (claimed %v) hook %s\nsession %s\ncwd %s\ntool %s\ninput %s\n",
		r.Agent, r.Claimed, r.Hook, r.Session, r.Cwd, r.Tool, r.Input)
	if r.Message != "" {
		fmt.Fprintf(&out, "message %s\n", r.Message)
	}
	for i, words := range r.Choices {
		fmt.Fprintf(&out, "suggestion %d: %s\n%s", i+1, words, c.Reply(Verdict{Allowed: true, Suggestion: i + 1}).Body)
	}
	fmt.Fprintf(&out, "path %s\nreason %s\ndetails %q\n", r.AffectedPath, r.Reason, r.Details)
	for _, e := range endings {
		e.r.Kind, e.r.Tool = r.Kind, r.Tool
		v := VerdictOf(e.r, e.err)
		if v.Allowed {
			v.Input = c.echo
		}
		reply := c.Reply(v)
		fmt.Fprintf(&out, "\n-- %s: exit %d --\n%s%s", e.name, reply.Exit, reply.Body, reply.Complaint)
		if d, _ := Find(c.dialect); d.keyboard != nil {
			attended := c
			attended.Keyboard = true
			if at := attended.Reply(v); string(at.Body) != string(reply.Body) {
				fmt.Fprintf(&out, "-- %s, at the keyboard: exit %d --\n%s%s", e.name, at.Exit, at.Body, at.Complaint)
			}
		}
	}
	return out.String()
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%s: %v\ngot:\n%s\nwant:\n%s", file, err, got, want)
	}
}

// Unreliable input is denied, in the format of its event if that is known.
func TestWhatIsOddIsDenied(t *testing.T) {
	long := strings.Repeat("x", permissions.MaxName+1)
	for _, c := range []struct{ dialect, input, says string }{
		{"claude-code", ``, "given nothing"},
		{"claude-code", " \n", "given nothing"},
		{"claude-code", `{"session_id":`, "cannot be read"},
		{"claude-code", `{"session_id":"a","session_id":"b"}`, "cannot be read"},
		{"claude-code", `{"tool_name":"` + "\xff" + `"}`, "cannot be read"},
		{"claude-code", `[]`, "something else than a JSON object"},
		{"claude-code", `null`, "something else than a JSON object"},
		{"claude-code", `{}`, "no hook_event_name"},
		{"claude-code", `{"hook_event_name":7}`, "no hook_event_name"},
		{"claude-code", `{"hook_event_name":"Stop"}`, "called for Stop, which decides nothing"},
		{"claude-code", `{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","tool_name":"AskUserQuestion","tool_input":{}}`,
			"has no questions"},
		{"claude-code", `{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","tool_name":"AskUserQuestion",` +
			`"tool_input":{"questions":[{"question":"Which?","options":[{"label":"Red"}]}]}}`, "2 to 20 options"},
		{"claude-code", `{"Hook_Event_Name":"PreToolUse"}`, "no hook_event_name"},
		{"claude-code", `{"hook_event_name":"PreToolUse"}`, "no session_id"},
		{"claude-code", `{"hook_event_name":"PreToolUse","session_id":"s"}`, "no cwd"},
		{"claude-code", `{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/"}`, "no tool_name"},
		{"claude-code", `{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","tool_name":"Bash"}`, "no object tool_input"},
		{"claude-code", `{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","tool_name":"Bash","tool_input":"ls"}`,
			"tool_input cannot be read"},
		{"claude-code", `{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","tool_name":"Bash","tool_input":"[]"}`,
			"no object tool_input"},
		{"claude-code", `{"hook_event_name":"PreToolUse","session_id":"s","cwd":"code","tool_name":"Bash","tool_input":{}}`,
			`the working directory, but "code"`},
		{"claude-code", `{"hook_event_name":"PermissionRequest","session_id":"s","cwd":"/","tool_name":"*","tool_input":{}}`,
			"printable tool name"},
		{"codex", `{"hook_event_name":"PreToolUse","session_id":"` + long + `","cwd":"/","tool_name":"x","tool_input":{}}`, "session must be"},
		{"codex", `{"hook_event_name":"Stop"}`, "called for Stop"},
		{"gemini", `{}`, "no hook_event_name"},
		{"gemini", `{"hook_event_name":"AfterTool"}`, "called for AfterTool"},
		{"gemini", `{"hook_event_name":"BeforeTool","session_id":"s","cwd":"/","tool_name":"x"}`, "no object tool_input"},
		{"copilot", `{"hookName":"sessionStart"}`, "called for sessionStart"},
		{"copilot", `{"hookName":null}`, "no hookName"},
		{"copilot", `{"sessionId":"s","cwd":"/","toolName":"bash","toolArgs":"{\"a\":1,\"a\":2}"}`, "toolArgs cannot be read"},
		{"cursor", `{}`, "no hook_event_name"},
		{"cursor", `{"hook_event_name":"stop"}`, "called for stop"},
		{"cursor", `{"hook_event_name":"preToolUse"}`, "no conversation_id"},
		{"cursor", `{"hook_event_name":"beforeShellExecution","conversation_id":"c"}`, "no command"},
		{"cursor", `{"hook_event_name":"beforeShellExecution","conversation_id":"c","command":"ls"}`, "the working directory"},
		{"cursor", `{"hook_event_name":"beforeMCPExecution","conversation_id":"c"}`, "no tool_name"},
		{"cursor", `{"hook_event_name":"beforeMCPExecution","conversation_id":"c","tool_name":"x"}`, "no object tool_input"},
		{"cursor", `{"hook_event_name":"beforeReadFile","conversation_id":"c"}`, "no file_path"},
		{"cursor", `{"hook_event_name":"preToolUse","conversation_id":"c"}`, "no tool_name"},
		{"cursor", `{"hook_event_name":"preToolUse","conversation_id":"c","tool_name":"x","tool_input":7}`, "no object tool_input"},
	} {
		t.Run(fmt.Sprintf("C4/%s %.60s", c.dialect, c.input), func(t *testing.T) {
			d, known := Find(c.dialect)
			if !known {
				t.Fatal(c.dialect)
			}
			got, err := d.Read([]byte(c.input))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s %.90s: %v, want %q", c.dialect, c.input, err, c.says)
				return
			}
			reply := got.Reply(Refuse(err))
			if reply.Exit == 0 && !bytes.Contains(reply.Body, []byte(`"deny"`)) || reply.Exit != 0 && (len(reply.Body) > 0 || reply.Exit != 2) {
				t.Errorf("%s %.90s is answered by %d %s", c.dialect, c.input, reply.Exit, reply.Body)
			}
			if all := string(reply.Body) + reply.Complaint; !strings.Contains(all, "Not allowed: ") {
				t.Errorf("%s %.90s: says %s", c.dialect, c.input, all)
			}
		})
	}
	if _, known := Find("emacs"); known {
		t.Error("emacs is a dialect")
	}
	d, _ := Find("codex")
	if _, err := d.Read(bytes.Repeat([]byte(" "), MaxInput+1)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("too much: %v", err)
	}
}

// An input that does not fit a question is shown completely in its details, and identified by its hash.
func TestALargeInputIsShownWhole(t *testing.T) {
	t.Run("B1/a large input of a hook", func(t *testing.T) {
		d, _ := Find("claude-code")
		ask := func(content string) (Call, error) {
			text, err := json.Marshal(content)
			if err != nil {
				t.Fatal(err)
			}
			return d.Read([]byte(`{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/srv","tool_name":"Write",` +
				`"tool_input":{"file_path":"/srv/a","mode":420,"content":` + string(text) + `}}`))
		}
		content := strings.Repeat("line\n", 20000)
		c, err := ask(content)
		r := c.Request
		if err != nil || r.AffectedPath != "/srv/a" || !strings.HasPrefix(string(r.Input), `{"input_bytes":120`) {
			t.Fatalf("%v, %s, %.100s", err, r.AffectedPath, r.Input)
		}
		if !strings.HasPrefix(r.Details, "\"mode\", 3 bytes:\n    420\n\"file_path\", 6 bytes:\n    /srv/a\n\"content\", 100000 bytes:\n") ||
			strings.Count(r.Details, "    line\n") != 20000 {
			t.Errorf("details %.200s", r.Details)
		}
		var whole struct {
			Content string
			Path    string `json:"file_path"`
			Mode    int
		}
		if text, condensed := r.FullInput(r.ToolCalls()[0]); !condensed || json.Unmarshal(text, &whole) != nil || whole.Path != "/srv/a" ||
			whole.Mode != 420 || whole.Content != strings.TrimSuffix(content, "\n") {
			t.Errorf("the daemon reads %.200s", text)
		}
		if _, _, err := wire.AskOf(r).Question(); err != nil {
			t.Errorf("it cannot be asked: %v", err)
		}
		other, err := ask(content + "!")
		if err != nil || bytes.Equal(other.Request.Input, r.Input) {
			t.Errorf("another content has the same input, %v", err)
		}
		if _, err := ask(strings.Repeat("x", permissions.MaxDetails)); err == nil || !strings.Contains(err.Error(), "more than can be shown") {
			t.Errorf("too much to show: %v", err)
		}
		if c, err := ask(strings.Repeat("\n", maxInline/2-200)); err != nil || c.Request.Details != "" || len(c.Request.Input) < maxInline/2 {
			t.Errorf("what just fits: %v", err)
		}
	})
}

// Only an approval allows.
func TestJudge(t *testing.T) {
	tool := permissions.Request{Kind: permissions.KindTool, Tool: "x"}
	for state, want := range map[permissions.State]bool{
		permissions.Approved: true, permissions.Denied: false, permissions.Pending: false, permissions.Expired: false,
		permissions.Cancelled: false, permissions.Undeliverable: false, permissions.Answered: false, "": false,
	} {
		t.Run("D2/"+string(state), func(t *testing.T) {
			tool.State = state
			if v := VerdictOf(tool, nil); v.Allowed != want || v.Reason == "" {
				t.Errorf("%s: %+v", state, v)
			}
			if v := VerdictOf(tool, errors.New("odd")); v.Allowed || !strings.Contains(v.Reason, "odd") {
				t.Errorf("%s with an error: %+v", state, v)
			}
		})
	}
	tool.State, tool.VoidAt = permissions.Approved, tool.VoidAt.AddDate(1, 0, 0)
	if v := VerdictOf(tool, nil); v.Allowed {
		t.Errorf("taken back: %+v", v)
	}
	tool = permissions.Request{State: permissions.Pending}
	if v := VerdictOf(tool, context.DeadlineExceeded); !strings.Contains(v.Reason, "still waiting for an answer") {
		t.Errorf("%+v", v)
	}
}

// TestRepliesControlNoTerminal: agents print the reason in their terminals, whoever wrote it.
func TestRepliesControlNoTerminal(t *testing.T) {
	for _, name := range Names() {
		t.Run("B2/"+name, func(t *testing.T) {
			d, _ := Find(name)
			c, err := d.Read(d.Probe("x", "/"))
			if err != nil {
				t.Fatal(err)
			}
			nothing, _ := d.Read(nil)
			wrote := Verdict{Reason: "no\x1b]0;x\a\u202e\u009b"}
			for _, r := range []Reply{c.Reply(wrote), nothing.Reply(wrote)} {
				said := string(r.Body) + r.Complaint
				if !strings.Contains(said, `u{1B}]0;x`) || strings.ContainsAny(said, "\x1b\a\u202e\u009b") || strings.Contains(said, `\u00`) {
					t.Errorf("said %q", said)
				}
			}
		})
	}
}

func TestPathsThatAreNone(t *testing.T) {
	for path, want := range map[string]string{
		"": "", "~/x": "", "https://x": "", "a\x00b": "", "a/./b": "/c/a/b", "/x/../y": "/y",
		"/" + strings.Repeat("p", permissions.MaxTagPath): "",
	} {
		if got := affected("/c", path); got != want {
			t.Errorf("%.20q: %q", path, got)
		}
	}
	if got := permissions.Brief("äöü", 2); got != "ä…" {
		t.Error(got)
	}
}

// Each dialect can read its probe, and its reply can be interpreted.
func TestProbe(t *testing.T) {
	for _, name := range Names() {
		d, _ := Find(name)
		c, err := d.Read(d.Probe("read_file", "/srv"))
		if err != nil || c.Request.Tool != "read_file" || c.Request.Cwd != "/srv" || c.Request.Session == "" {
			t.Errorf("%s: %+v, %v", name, c.Request, err)
		}
		for _, allowed := range []bool{true, false} {
			if got := d.Allows(c.Reply(Verdict{Allowed: allowed, Reason: "allow"}).Body); got != allowed {
				t.Errorf("%s, %v: %v", name, allowed, got)
			}
		}
	}
	if d, _ := Find("gemini"); d.Allows(nil) || d.Allows([]byte(`{"decision":"allow","permission":"deny"}`)) {
		t.Error("what is none allows")
	}
}

// An agent's hook says in words of its own what it does; what that is, and where, makes the risk.
func TestOneActionHasOneRiskInEveryDialect(t *testing.T) {
	of := func(dialect, event string, words ...string) []acts.Risk {
		d, _ := Find(dialect)
		c, err := d.Read([]byte(strings.NewReplacer(words...).Replace(event)))
		if err != nil {
			t.Fatal(dialect, err)
		}
		return acts.RisksOf(c.Request)
	}
	shells := map[string]string{
		"claude-code": `{"session_id":"s","cwd":"/srv/code","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"CMD"}}`,
		"codex": `{"session_id":"s","turn_id":"t","cwd":"/srv/code","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":` +
			`{"command":"CMD"}}`,
		"copilot": `{"sessionId":"s","cwd":"/srv/code","toolName":"bash","toolArgs":"{\"command\":\"CMD\"}"}`,
		"cursor": `{"hook_event_name":"beforeShellExecution","conversation_id":"s","workspace_roots":["/srv/code"],"command":"CMD",` +
			`"cwd":""}`,
		"gemini": `{"session_id":"s","cwd":"/srv/code","hook_event_name":"BeforeTool","tool_name":"run_shell_command","tool_input":` +
			`{"command":"CMD"}}`,
		"opencode": `{"tool":"bash","sessionID":"s","args":{"command":"CMD"},"cwd":"/srv/code"}`,
		"vscode": `{"cwd":"/srv/code","sessionId":"s","hookEventName":"PreToolUse","tool_name":"run_in_terminal","tool_input":` +
			`{"command":"CMD"}}`,
	}
	for command, want := range map[string][]acts.Risk{
		"rm -rf /": {acts.Destroys, acts.Outside}, "git push --force": {acts.Rewrites}, "sudo ls": {acts.Rights}, "cat .env": {acts.Secrets},
		"touch ../x": {acts.Outside}, "curl x | sh": {acts.Unread}, "npm test": nil, "rm -rf build": nil,
	} {
		for _, name := range Names() {
			if got := of(name, shells[name], "CMD", command); !slices.Equal(got, want) {
				t.Errorf("%s by %s: %q; want %q", command, name, got, want)
			}
		}
	}
	writers := map[string]string{
		"claude-code": `{"session_id":"s","cwd":"/srv/code","hook_event_name":"PreToolUse","tool_name":"Write","tool_input":` +
			`{"file_path":"FILE","content":"x"}}`,
		"codex": `{"session_id":"s","turn_id":"t","cwd":"/srv/code","hook_event_name":"PreToolUse","tool_name":"apply_patch","tool_input":` +
			`{"command":"*** Begin Patch\n*** Add File: FILE\n+x\n*** End Patch"}}`,
		"copilot": `{"sessionId":"s","cwd":"/srv/code","toolName":"create","toolArgs":"{\"path\":\"FILE\",\"file_text\":\"x\"}"}`,
		"cursor": `{"hook_event_name":"preToolUse","conversation_id":"s","cwd":"/srv/code","tool_name":"Write","tool_input":` +
			`{"file_path":"FILE","contents":"x"}}`,
		"gemini": `{"session_id":"s","cwd":"/srv/code","hook_event_name":"BeforeTool","tool_name":"write_file","tool_input":` +
			`{"file_path":"FILE","content":"x"}}`,
		"opencode": `{"tool":"write","sessionID":"s","args":{"filePath":"FILE","content":"x"},"cwd":"/srv/code"}`,
		"vscode": `{"cwd":"/srv/code","sessionId":"s","hookEventName":"PreToolUse","tool_name":"create_file","tool_input":` +
			`{"filePath":"FILE","content":"x"}}`,
	}
	for file, want := range map[string][]acts.Risk{
		"/etc/hosts": {acts.Outside}, "../x": {acts.Outside}, ".env": {acts.Secrets}, "/srv/code/.git/hooks/x": {acts.Rights}, "a/b.go": nil,
	} {
		for _, name := range Names() {
			if got := of(name, writers[name], "FILE", file); !slices.Equal(got, want) {
				t.Errorf("writing %s by %s: %q; want %q", file, name, got, want)
			}
		}
	}
}
