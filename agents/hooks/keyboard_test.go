package hooks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// It is certain that a person is asked at the keyboard only if everything says so.
func TestAttendedIsCertainOrNot(t *testing.T) {
	history := filepath.Join(t.TempDir(), "t.jsonl")
	write := func(text string) {
		if err := os.WriteFile(history, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tried := `{"type":"user","version":"` + claudeKeyboard.versions[0] + `"}` + "\n{}\n"
	environ := map[string]string{"CLAUDE_CODE_SESSION_ATTENDED": "1", "CLAUDE_CODE_ENTRYPOINT": "cli"}
	for what, c := range map[string]struct {
		named, mode, unset, wrote string
		want                      bool
	}{
		"a terminal":        {wrote: tried, want: true},
		"auto mode":         {mode: "auto", wrote: tried, want: true},
		"bypassed":          {mode: "bypassPermissions", wrote: tried},
		"asks nobody":       {mode: "dontAsk", wrote: tried},
		"an unknown mode":   {mode: "later", wrote: tried},
		"under -p":          {unset: "CLAUDE_CODE_SESSION_ATTENDED", wrote: tried},
		"no terminal":       {unset: "CLAUDE_CODE_ENTRYPOINT", wrote: tried},
		"another version":   {wrote: tried + `{"version":"99.0.0"}`},
		"no version":        {wrote: "{}"},
		"another's setting": {named: "codex", wrote: tried},
	} {
		write(c.wrote)
		named, mode := "claude-code", "default"
		if c.named != "" {
			named = c.named
		}
		if c.mode != "" {
			mode = c.mode
		}
		d, _ := Find(named)
		call, err := d.Read([]byte(`{"hook_event_name":"PreToolUse","prompt_id":"p","session_id":"s","cwd":"/","tool_name":"x","tool_input":{},` +
			`"permission_mode":"` + mode + `","transcript_path":"` + history + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		got := call.Attended(func(name string) string {
			if name == c.unset {
				return ""
			}
			return environ[name]
		})
		if got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
	if versionIn(t.TempDir()) != "" || versionIn("") != "" {
		t.Error("a missing file has a version")
	}
}

// racing is an engine whose requests have this state when they are submitted.
type racing struct {
	late

	view  permissions.RequestView
	err   error
	other bool // the request is not the one that was asked for
	left  time.Duration
}

func (r *racing) Begin(ctx context.Context, _ permissions.Caller, q permissions.Request) (permissions.RequestView, error) {
	until, _ := ctx.Deadline()
	r.left = time.Until(until)
	s := r.view
	q.Version, q.State, q.DecidedBy, q.Defaulted = permissions.DigestVersion, s.Request.State, s.Request.DecidedBy, s.Request.Defaulted
	q.Digest, q.Answer, q.Asked = permissions.ComputeDigest(q), s.Request.Answer, []string{"fay"}
	if r.other {
		q.Tool, q.Digest = "other", permissions.Digest{}
	}
	s.Request = q
	return s, r.err
}

// Before the agent's own dialog appears, the hook waits for nobody, and undecided is not denied. Where the keyboard may not
// answer, nothing changes.
func TestRace(t *testing.T) {
	d, _ := Find("claude-code")
	for _, c := range []struct {
		event    string
		state    permissions.State
		keyboard bool
		err      error
		want     string
	}{
		{"PreToolUse", permissions.Pending, true, nil, `"ask","permissionDecisionReason":"fay is asked on another way, too"`},
		{"PreToolUse", permissions.Pending, false, nil, `"deny"`},
		{"PreToolUse", permissions.Approved, true, nil, `"allow"`},
		{"PreToolUse", permissions.Denied, true, nil, `"deny"`},
		{"PreToolUse", permissions.Undeliverable, true, nil, `"ask"`},
		{"PreToolUse", permissions.Undeliverable, false, nil, `"deny"`},
		{"PreToolUse", "", false, wire.ErrUnreachable, `"ask"`},
		{"PreToolUse", "", false, permissions.Forbidden("x"), `"deny"`},
		{"PermissionRequest", permissions.Pending, true, nil, ``},
		{"PermissionRequest", permissions.Pending, false, nil, `"deny"`},
		{"PermissionRequest", permissions.Undeliverable, true, nil, ``},
		{"PermissionRequest", permissions.Denied, true, nil, `"deny"`},
		{"PermissionRequest", "", false, wire.ErrUnreachable, ``},
		{"PermissionRequest", "", false, permissions.Forbidden("x"), `"deny"`},
	} {
		call, err := d.Read([]byte(`{"hook_event_name":"` + c.event + `","session_id":"s","cwd":"/","tool_name":"x","tool_input":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		call.Keyboard = true
		engine := &racing{late: late{err: errors.New("odd")}, err: c.err, view: permissions.RequestView{
			Keyboard: c.keyboard, Request: permissions.Request{State: c.state, DecidedBy: "fay", Answer: permissions.Allow(permissions.Once)},
		}}
		said := call.Reply(Race(t.Context(), engine, permissions.CallerUID(1), call, time.Millisecond))
		if said.Exit != 0 || !strings.Contains(string(said.Body), c.want) || c.want == "" && len(said.Body) > 0 {
			t.Errorf("%s, %s, %v, %v: %d %s %s", c.event, c.state, c.keyboard, c.err, said.Exit, said.Body, said.Complaint)
		}
	}
}

// What is not decided by anybody is left to the keyboard; a request that is not the hook's own decides nothing, and the agent's own
// dialog is delayed by two seconds at most.
func TestRaceBesideADecision(t *testing.T) {
	d, _ := Find("claude-code")
	question := `"tool_name":"AskUserQuestion","tool_input":{"questions":[{"question":"Which?","header":"h","multiSelect":false,` +
		`"options":[{"label":"a","description":""},{"label":"b","description":""}]}]}`
	for name, c := range map[string]struct {
		call   string
		engine racing
		want   string
		not    string
	}{
		"cancelled by nobody": {`"tool_name":"x","tool_input":{}`, racing{view: permissions.RequestView{Keyboard: true,
			Request: permissions.Request{State: permissions.Cancelled}}}, `"ask"`, "deny"},
		"cancelled by somebody": {`"tool_name":"x","tool_input":{}`, racing{view: permissions.RequestView{Keyboard: true,
			Request: permissions.Request{State: permissions.Cancelled, DecidedBy: "fay"}}}, `"deny"`, `"ask"`},
		"another request": {`"tool_name":"x","tool_input":{}`, racing{view: permissions.RequestView{Keyboard: true,
			Request: permissions.Request{State: permissions.Approved, DecidedBy: "fay", Answer: permissions.Allow(permissions.Once)}}, other: true},
			"another call", `"allow"`},
		"a default": {question, racing{view: permissions.RequestView{Request: permissions.Request{
			State: permissions.Answered, Answer: permissions.Choose(1), Defaulted: true}}}, "nobody has answered in time", `"allow"`},
		"a question that was denied": {question, racing{view: permissions.RequestView{Request: permissions.Request{
			State: permissions.Denied, DecidedBy: "fay"}}}, `"deny"`, "nobody has answered in time"},
	} {
		call, err := d.Read([]byte(`{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/",` + c.call + `}`))
		if err != nil {
			t.Fatal(err)
		}
		call.Keyboard = true
		said := string(call.Reply(Race(t.Context(), &c.engine, permissions.CallerUID(1), call, time.Minute)).Body)
		if !strings.Contains(said, c.want) || strings.Contains(said, c.not) {
			t.Errorf("%s: %s", name, said)
		}
		if c.engine.left <= time.Second || c.engine.left > 2*time.Second {
			t.Errorf("%s: the agent's dialog may have to wait for %v", name, c.engine.left)
		}
	}
	if RacedVersions("codex") != nil || len(RacedVersions("claude-code")) == 0 || RacedVersions("nobody") != nil {
		t.Error("people at the keyboard race in other agents")
	}
}

// Our tools' names are spelled as each agent spells those of a server called daycared. The agent's own tool for asking the
// person is listed too.
func TestAsking(t *testing.T) {
	asking := AskingTools([]string{"ask_user"})
	for name, want := range map[string]string{
		"claude-code": "mcp__daycared__ask_user", "codex": "request_user_input mcp__daycared__ask_user",
		"gemini": "ask_user mcp_daycared_ask_user", "copilot": "ask_user daycared-ask_user", "opencode": "question daycared_ask_user",
		"cursor": "",
	} {
		if got := strings.Join(asking[name], " "); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
