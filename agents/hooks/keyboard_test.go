package hooks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
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

// The title of a session and its last prompt are what a person wrote, not what the agent's own commands and tools did.
func TestWhatAHistoryTells(t *testing.T) {
	user := func(content, more string) string {
		return `{"type":"user"` + more + `,"message":{"role":"user","content":` + content + `}}`
	}
	result := user(`[{"type":"tool_result","tool_use_id":"t","content":"ok"}]`, "")
	for name, c := range map[string]struct {
		rows          []string
		title, prompt string
	}{
		"nothing":   {[]string{"", "{", `{"type":"user"}`, "7"}, "", ""},
		"a prompt":  {[]string{user(`"old"`, ""), user(`"fix it"`, ""), result, `{"type":"assistant","message":{"content":[]}}`}, "", "fix it"},
		"its parts": {[]string{user(`[{"type":"image"},{"type":"text","text":"look"}]`, ""), result}, "", "look"},
		"no person's": {[]string{
			user(`"x"`, ""), user(`"y"`, `,"isMeta":true`), user(`"z"`, `,"isSidechain":true`), user(`"<command-name>"`, ""),
		}, "", "x"},
		"kept apart": {[]string{user(`"x"`, ""), `{"type":"last-prompt","lastPrompt":"y"}`}, "", "y"},
		"titles": {[]string{
			`{"type":"custom-title","customTitle":"mine"}`, `{"type":"ai-title","aiTitle":"its"}`, `{"type":"summary","summary":"old"}`,
		}, "mine", ""},
		"Codex": {[]string{
			`{"type":"event_msg","payload":{"type":"user_message","message":"fix"}}`,
			`{"type":"event_msg","payload":{"type":"agent_message","message":"no"}}`,
			`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"no"}]}}`,
		}, "", "fix"},
		"VS Code": {[]string{
			`{"type":"user.message","data":{"content":"fix"}}`, `{"type":"assistant.message","data":{"content":"no"}}`,
		}, "", "fix"},
		"long": {[]string{user(`"`+strings.Repeat("x", 300)+`"`, "")}, "", strings.Repeat("x", 199) + "…"},
	} {
		history := filepath.Join(t.TempDir(), "t.jsonl")
		if err := os.WriteFile(history, []byte(strings.Join(c.rows, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		call := Call{history: history}
		if call.ReadContext(); call.Request.SessionTitle != c.title || call.Request.LastPrompt != c.prompt {
			t.Errorf("%s: %q and %q", name, call.Request.SessionTitle, call.Request.LastPrompt)
		}
	}
	d, _ := Find("opencode")
	c, err := d.Read([]byte(`{"tool":"bash","sessionID":"s","args":{"command":"ls"},"cwd":"/","session_title":"T","last_prompt":"p"}`))
	if err != nil || c.Request.SessionTitle != "T" || c.Request.LastPrompt != "p" || string(c.Request.Input) != `{"command":"ls"}` {
		t.Errorf("%+v: %v", c.Request, err)
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
	if q.Version = permissions.DigestVersion; q.Kind == permissions.KindTool && q.Tool == "AskUserQuestion" { // by policy
		q.State, q.Answer, q.Scope = permissions.Approved, permissions.Allow(permissions.Once), permissions.Once
		q.DecidedVia = permissions.ViaGrant
		q.Digest = permissions.ComputeDigest(q)
		return permissions.RequestView{Request: q}, nil
	}
	q.State, q.DecidedBy, q.Defaulted = s.Request.State, s.Request.DecidedBy, s.Request.Defaulted
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

// restarting is an engine that cannot be reached for a while.
type restarting struct {
	racing

	began bool      // the first call reached it
	until time.Time // when it can be reached again
}

func (r *restarting) Begin(ctx context.Context, c permissions.Caller, q permissions.Request) (permissions.RequestView, error) {
	if r.err = nil; !r.began && time.Now().Before(r.until) {
		r.err = wire.ErrUnreachable
	}
	return r.racing.Begin(ctx, c, q)
}

func (r *restarting) Ask(ctx context.Context, c permissions.Caller, q permissions.Request) (permissions.Request, error) {
	if time.Now().Before(r.until) {
		return permissions.Request{}, wire.ErrUnreachable
	}
	return mixed{change: func(*permissions.Request) {}}.Ask(ctx, c, q)
}

// While Claude Code shows its dialog, the hook beside it waits for a daemon that starts again, but not for ever. The hook before the
// dialog waits for none.
func TestTheHookBesideADialogWaitsForADaemonThatStartsAgain(t *testing.T) {
	d, _ := Find("claude-code")
	for name, c := range map[string]struct {
		event string
		began bool
		away  time.Duration
		took  time.Duration // at most
		want  string
	}{
		"away when it begins":     {event: "PermissionRequest", away: 20 * time.Second, took: 22 * time.Second, want: `"allow"`},
		"killed when it has":      {event: "PermissionRequest", began: true, away: 20 * time.Second, took: 22 * time.Second, want: `"allow"`},
		"away for ever":           {event: "PermissionRequest", away: time.Hour, took: 33 * time.Second},
		"killed for ever":         {event: "PermissionRequest", began: true, away: time.Hour, took: 33 * time.Second},
		"away before the dialog":  {event: "PreToolUse", away: 20 * time.Second, want: `"ask"`},
		"asked before the dialog": {event: "PreToolUse", began: true, away: 20 * time.Second, want: `"ask"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call, err := d.Read([]byte(`{"hook_event_name":"` + c.event + `","session_id":"s","cwd":"/","tool_name":"x","tool_input":{}}`))
				if err != nil {
					t.Fatal(err)
				}
				call.Keyboard = true
				began := time.Now()
				engine := &restarting{began: c.began, until: began.Add(c.away), racing: racing{view: permissions.RequestView{
					Keyboard: true, Request: permissions.Request{State: permissions.Pending},
				}}}
				said := call.Reply(Race(t.Context(), engine, permissions.CallerUID(1), call, time.Hour))
				if took := time.Since(began); took > c.took || said.Exit != 0 ||
					!strings.Contains(string(said.Body), c.want) || c.want == "" && len(said.Body) > 0 {
					t.Errorf("after %v: %d %s %s", took, said.Exit, said.Body, said.Complaint)
				}
			})
		})
	}
}

// Our tools' names are spelled as each agent spells those of a server called daycared. The agent's own tool for asking the
// person is listed too.
func TestAsking(t *testing.T) {
	asking := AskingTools([]string{"ask_user"})
	for name, want := range map[string]string{
		"claude-code": "AskUserQuestion mcp__daycared__ask_user", "codex": "request_user_input mcp__daycared__ask_user",
		"gemini": "ask_user mcp_daycared_ask_user", "copilot": "ask_user daycared-ask_user", "opencode": "question daycared_ask_user",
		"cursor": "",
	} {
		if got := strings.Join(asking[name], " "); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
