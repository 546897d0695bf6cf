package hooks

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
)

func environ(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// Each agent's events are reported by their meaning, with the agent's title of the session; others are not reported.
func TestNews(t *testing.T) {
	const claude = `"session_id":"s","transcript_path":"/t","cwd":"/srv/proj","permission_mode":"default","hook_event_name":`
	at := environ("CLAUDE_CODE_SESSION_ATTENDED", "1", "CLAUDE_CODE_ENTRYPOINT", "cli")
	away := environ("CLAUDE_CODE_SESSION_ATTENDED", "0", "CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
	for _, c := range []struct {
		name, dialect, input string
		env                  func(string) string
		want                 string
	}{
		{"Claude Code stops", "claude-code",
			`{` + claude + `"Stop","stop_hook_active":false,"last_assistant_message":" Done. "}`, away,
			"finished claude-code s proj [Done.] false"},
		{"at the keyboard", "claude-code", `{` + claude + `"Stop","last_assistant_message":"Done."}`, at, ""},
		{"while it goes on", "claude-code", `{` + claude + `"Stop","background_tasks":[{"id":"x"}]}`, away, ""},
		{"nothing goes on", "claude-code",
			`{` + claude + `"Stop","background_tasks":[]}`, away, "finished claude-code s proj [] false"},
		{"a part of it", "claude-code", `{` + claude + `"Stop","agent_id":"x"}`, away, ""},
		{"it failed", "claude-code", `{` + claude + `"StopFailure","error":"rate_limit","error_details":"429"}`, away,
			"failed claude-code s proj [429] false"},
		{"it failed at the keyboard", "claude-code", `{` + claude + `"StopFailure","error":"rate_limit"}`, at,
			"failed claude-code s proj [rate_limit] true"},
		{"it waits", "claude-code",
			`{` + claude + `"Notification","notification_type":"idle_prompt","message":"waiting","title":"Claude Code"}`, at,
			"waits claude-code s proj [waiting] true"},
		{"it asks", "claude-code", `{` + claude + `"Notification","notification_type":"permission_prompt","message":"m"}`, away,
			"waits claude-code s proj [m] false"},
		{"it is signed in", "claude-code",
			`{` + claude + `"Notification","notification_type":"auth_success","message":"m"}`, away, ""},
		{"another event", "claude-code", `{` + claude + `"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`, away, ""},
		{"Codex stops", "codex",
			`{"session_id":"s","turn_id":"1","cwd":"/p","hook_event_name":"Stop","last_assistant_message":"ok"}`, away,
			"finished codex s p [ok] true"},
		{"Gemini CLI stops", "gemini",
			`{"session_id":"s","cwd":"/p","hook_event_name":"AfterAgent","prompt":"p","prompt_response":"ok"}`, away,
			"finished gemini s p [ok] true"},
		{"Gemini CLI asks", "gemini",
			`{"session_id":"s","cwd":"/p","hook_event_name":"Notification","notification_type":"ToolPermission","message":"m"}`,
			away, "waits gemini s p [m] true"},
		{"Copilot CLI stops", "copilot",
			`{"sessionId":"s","timestamp":1,"cwd":"/p","transcriptPath":"/t","stopReason":"end_turn"}`, away,
			"finished copilot s p [] true"},
		{"Copilot CLI before a call", "copilot",
			`{"sessionId":"s","cwd":"/p","toolName":"bash","toolArgs":{},"stopReason":"x"}`, away, ""},
		{"opencode idles", "opencode",
			`{"event":"session.idle","sessionID":"s","cwd":"/p","title":"Fix it"}`, away, "finished opencode s Fix it [] true"},
		{"opencode fails", "opencode", `{"event":"session.error","sessionID":"s","cwd":"/p","title":"Fix it","error":"no"}`, away,
			"failed opencode s Fix it [no] true"},
		{"VS Code, by the settings of Copilot CLI", "copilot",
			`{"hookEventName":"Stop","sessionId":"s","cwd":"/p"}`, away, "finished vscode s p [] true"},
		{"a byte order mark", "gemini",
			"\ufeff" + `{"session_id":"s","cwd":"/p","hook_event_name":"AfterAgent"}`, away, "finished gemini s p [] true"},
		{"without a session", "gemini", `{"cwd":"/p","hook_event_name":"AfterAgent"}`, away, ""},
		{"nothing", "gemini", ``, away, ""},
		{"no object", "gemini", `[]`, away, ""},
		{"twice", "gemini", `{"session_id":"s","session_id":"t","hook_event_name":"AfterAgent"}`, away, ""},
		{"of other types", "gemini", `{"session_id":["s"],"cwd":{},"hook_event_name":"AfterAgent","prompt_response":7}`, away, ""},
	} {
		d, _ := Find(c.dialect)
		n, ok := d.ReadNotice([]byte(c.input), c.env)
		got := ""
		if ok {
			got = fmt.Sprintf("%s %s %s %s [%s] %v", n.About, n.Agent, n.Session, n.Title, n.Text, n.Silent)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// However long an agent's text is, the notice is accepted.
func TestNewsIsBounded(t *testing.T) {
	long := strings.Repeat("ä\u202e", 4000)
	d, _ := Find("claude-code")
	n, ok := d.ReadNotice(fmt.Appendf(nil,
		`{"session_id":%q,"cwd":"/%s","session_title":%q,"hook_event_name":"Stop","last_assistant_message":%q}`,
		long, long, long, long), environ())
	if err := n.Validate(n.About); !ok || err != nil || !strings.HasSuffix(n.Text, "…") || !strings.HasSuffix(n.Title, "…") {
		t.Errorf("%v %v %+v", ok, err, n)
	}
	if _, ok := d.ReadNotice(make([]byte, MaxInput+1), environ()); ok {
		t.Error("more than there may be is told")
	}
	full := []byte(`{"session_id":"s","cwd":"/","hook_event_name":"Stop","last_assistant_message":"x"}`)
	full = append(full, bytes.Repeat([]byte(" "), MaxInput-len(full))...)
	if _, ok := d.ReadNotice(full, environ()); !ok {
		t.Error("as much as there may be is not told")
	}
	if n.About != permissions.AboutFinished {
		t.Error(n.About)
	}
}
