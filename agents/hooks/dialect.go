// Package hooks serves agents that ask through their own hooks: before using a tool they run a command or call an address, and
// read the verdict from its output.
//
// Each such agent has a [Dialect]: its input ([Dialect.Read] returns a [permissions.Request] for one call) and its output
// ([Call.Reply]). Both are pure. A dialect is strict about required members. Unknown members are tolerated and shown with the
// tool's input, since agents add members with every version. Input that cannot be read is never allowed.
//
// [Decide] submits a call to a [Requests] and always returns a [Verdict] before the agent's timeout, because most agents proceed
// as if allowed when a hook says nothing. A request that is still pending then stays open, and the agent's next identical call
// joins it. It is cancelled only if the agent ends the hook, as it does when the person answers at the keyboard. `daycared hook`
// does this over agent.sock, [Handler] over HTTP.
package hooks

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/daycared/daycared/agents/schema"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Dialect is the hook protocol of one agent.
type Dialect struct {
	// Name identifies the dialect on the command line, in URLs and in [permissions.Request].
	Name string
	// Within is the agent's default hook timeout, less a margin for the answer.
	Within time.Duration

	read     func(members) (Call, error)
	silent   bool             // an empty reply leaves the call to the agent's own rules
	own      string           // prefix of the names of the tools of a server called daycared
	askTool  string           // the agent's own tool for asking the person; empty: none
	keyboard *keyboardSupport // nil: it cannot ask at the keyboard while people are asked
}

// claudeKeyboard was verified in a terminal.
var claudeKeyboard = keyboardSupport{
	environ:  map[string]string{"CLAUDE_CODE_SESSION_ATTENDED": "1", "CLAUDE_CODE_ENTRYPOINT": "cli"},
	modes:    []string{"default", "acceptEdits", "plan", "auto"},
	versions: []string{"2.1.330"},
}

// dialects are all supported dialects.
var dialects = []Dialect{
	{Name: "claude-code", Within: 590 * time.Second, read: readClaude, silent: true, own: "mcp__daycared__", askTool: schema.ClaudeAsks,
		keyboard: &claudeKeyboard},
	{Name: "codex", Within: 590 * time.Second, read: readCodex, silent: true, own: "mcp__daycared__", askTool: "request_user_input"},
	{Name: "copilot", Within: 25 * time.Second, read: readCopilot, own: "daycared-", askTool: "ask_user"},
	{Name: "cursor", Within: 50 * time.Second, read: readCursor},
	{
		Name: "gemini", Within: 50 * time.Second, own: "mcp_daycared_", askTool: "ask_user",
		read: readOnly("BeforeTool", "hook_event_name", "session_id", decision),
	},
	{Name: "opencode", Within: 590 * time.Second, read: readOpencode, own: "daycared_", askTool: "question"},
	// VS Code's local agent also runs the hooks in Copilot's and Claude Code's settings.
	{Name: "vscode", Within: 25 * time.Second, read: readOnly("PreToolUse", "hookEventName", "sessionId", preToolUse)},
}

// detect detects the dialect of an input by its members, whatever was named, because agents run the hooks in each other's
// settings.
func (d Dialect) detect(m members) Dialect {
	name := d.Name
	alike := name == "claude-code" || name == "codex" || name == "copilot" && m["hook_event_name"] != nil
	switch {
	case m["hookEventName"] != nil && m["hook_event_name"] == nil:
		name = "vscode"
	case m["sessionID"] != nil && m["args"] != nil:
		name = "opencode"
	case m["toolName"] != nil && m["tool_name"] == nil:
		name = "copilot"
	case name != "codex" && slices.Contains([]string{"PreToolUse", "SessionEnd"}, m.optionalText("hook_event_name")) &&
		m.optionalText("timestamp") != "" && m["permission_mode"] == nil && m["prompt_id"] == nil && m["turn_id"] == nil:
		// an event spelled as Claude Code spells it
		name = "copilot"
	case alike && m["turn_id"] != nil:
		name = "codex"
	case alike && (m["prompt_id"] != nil || name == "copilot" && m["permission_mode"] != nil):
		name = "claude-code"
	}
	found, _ := Find(name)
	return found
}

// Find returns the dialect of that name.
func Find(name string) (d Dialect, ok bool) {
	at := slices.IndexFunc(dialects, func(d Dialect) bool { return d.Name == name })
	if at < 0 {
		return Dialect{}, false
	}
	return dialects[at], true
}

// Names returns the names of all dialects, sorted.
func Names() []string {
	return wire.Map(dialects, func(d Dialect) string { return d.Name })
}

// AskingTools returns, by dialect, the tools that only ask: ours, of a server called daycared, and the agent's own tool for asking
// the person.
func AskingTools(tools []string) map[string][]string {
	all := map[string][]string{}
	for _, d := range dialects {
		if d.askTool != "" {
			all[d.Name] = append(all[d.Name], d.askTool)
		}
		for _, t := range tools {
			if d.own != "" {
				all[d.Name] = append(all[d.Name], d.own+t)
			}
		}
	}
	return all
}

// MaxInput is the maximum size in bytes of a hook's input.
const MaxInput = 4 << 20

// readCopilot reads the input of Copilot CLI's hooks. It names the event only for permissionRequest, or in Claude Code's
// spelling; then the whole input has Claude Code's shape. The end of a session has a reason and no tool.
func readCopilot(m members) (c Call, err error) {
	if m["hook_event_name"] != nil {
		return readEvent(m)
	}
	c.event = "preToolUse"
	if m["toolName"] == nil && m["toolArgs"] == nil && m.optionalText("reason") != "" {
		c.event = "sessionEnd"
	}
	if _, named := m["hookName"]; named {
		if c.event, err = m.text("hookName"); err != nil {
			return c, err
		}
	}
	switch c.event {
	case "preToolUse":
		c.answer = func(_ Call, v Verdict) any {
			return struct {
				Decision string `json:"permissionDecision"`
				Reason   string `json:"permissionDecisionReason"`
			}{v.word(), v.Reason}
		}
		return c, c.common(m, "sessionId", "toolName", "toolArgs")
	case "permissionRequest":
		c.answer = func(_ Call, v Verdict) any { return v.behavior() }
		return c, c.common(m, "sessionId", "toolName", "toolInput")
	case "sessionEnd":
		c.Recall.Via = permissions.ViaSessionEnd
		c.Request.Session, err = m.text("sessionId")
		return c, err
	}
	return c, fmt.Errorf("the hook was called for %s, which decides nothing; use it for preToolUse or permissionRequest", c.event)
}

// readOnly returns the reader of a dialect with one event, whose name is in the member named.
func readOnly(event, named, session string, answer func(Call, Verdict) any) func(members) (Call, error) {
	return func(m members) (c Call, err error) {
		if c.event, err = m.text(named); err != nil {
			return c, err
		}
		if c.event != event {
			return c, fmt.Errorf("the hook was called for %s, which decides nothing; use it for %s", c.event, event)
		}
		c.answer = answer
		return c, c.common(m, session, "tool_name", "tool_input")
	}
}

// decision is the output of dialects with a decision and a reason.
func decision(_ Call, v Verdict) any {
	return struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
	}{v.word(), v.Reason}
}

// readOpencode reads the input from our plugin for opencode.
func readOpencode(m members) (c Call, err error) {
	c.event, c.answer = "tool.execute.before", decision
	return c, c.common(m, "sessionID", "tool", "args")
}

// Probe returns the hook input of an empty call of that tool, for testing a connection.
func (d Dialect) Probe(tool, cwd string) []byte {
	session, input := "daycared-doctor", map[string]any{"path": os.DevNull}
	event := map[string]any{"cwd": cwd, "tool_input": input, "tool_name": tool}
	switch d.Name {
	case "copilot":
		event = map[string]any{"sessionId": session, "cwd": cwd, "toolName": tool, "toolArgs": input}
	case "opencode":
		event = map[string]any{"sessionID": session, "cwd": cwd, "tool": tool, "args": input}
	case "cursor":
		event["hook_event_name"], event["conversation_id"] = "preToolUse", session
	case "vscode":
		event["hookEventName"], event["sessionId"] = "PreToolUse", session
	case "gemini":
		event["hook_event_name"], event["session_id"] = "BeforeTool", session
	default:
		event["hook_event_name"], event["session_id"] = "PreToolUse", session
	}
	text, err := json.Marshal(event)
	if err != nil { // every value in it has a JSON form
		return nil
	}
	return text
}

// Allows reports whether a reply to a [Dialect.Probe] allows the call. A reply has one decision, at a place that depends on the
// dialect.
func (d Dialect) Allows(body []byte) bool {
	if d.silent && len(body) == 0 {
		return true
	}
	var said struct {
		Decision, Permission, PermissionDecision string
		HookSpecificOutput                       struct{ PermissionDecision string }
	}
	if json.Unmarshal(body, &said) != nil {
		return false
	}
	return said.Decision+said.Permission+said.PermissionDecision+said.HookSpecificOutput.PermissionDecision == "allow"
}
