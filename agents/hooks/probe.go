package hooks

import "encoding/json"

// Probe is what an agent of this dialect would give its hook about a call of that tool without anything in it, so that a
// connection can be tried.
func (d Dialect) Probe(tool, cwd string) []byte {
	session, event := "daycared-doctor", map[string]any{"cwd": cwd, "tool_input": map[string]any{}, "tool_name": tool}
	switch d.Name {
	case "copilot":
		event = map[string]any{"sessionId": session, "cwd": cwd, "toolName": tool, "toolArgs": map[string]any{}}
	case "cursor":
		event["hook_event_name"], event["conversation_id"] = "preToolUse", session
	case "gemini":
		event["hook_event_name"], event["session_id"] = "BeforeTool", session
	default:
		event["hook_event_name"], event["session_id"] = "PreToolUse", session
	}
	text, err := json.Marshal(event)
	if err != nil { // there is nothing in it that has no JSON
		return nil
	}
	return text
}

// Allows tells whether a reply to a [Dialect.Probe] allows: it has one decision, wherever its dialect has that.
func Allows(body []byte) bool {
	var said struct {
		Decision, Permission, PermissionDecision string
		HookSpecificOutput                       struct{ PermissionDecision string }
	}
	if json.Unmarshal(body, &said) != nil {
		return false
	}
	return said.Decision+said.Permission+said.PermissionDecision+said.HookSpecificOutput.PermissionDecision == "allow"
}
