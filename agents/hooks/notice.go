package hooks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// AgentNotice is a notice from an agent's hook about something that happened; it asks nothing.
type AgentNotice struct {
	About permissions.About
	permissions.CallerMessage
}

// agentEvent describes one kind of agent event.
type agentEvent struct {
	about permissions.About
	text  []string // the members that may hold its text
}

var (
	finished = agentEvent{permissions.AboutFinished, []string{"last_assistant_message", "prompt_response"}}
	waiting  = agentEvent{permissions.AboutWaits, []string{"message"}}
	failed   = agentEvent{permissions.AboutFailed, []string{"error_details", "error"}}
)

// agentEvents are the events that are reported, by event name; notifications additionally by type.
var agentEvents = map[string]agentEvent{
	"Stop": finished, "AfterAgent": finished, "session.idle": finished, "Notification agent_completed": finished,
	"StopFailure": failed, "session.error": failed,
	"Notification idle_prompt": waiting, "Notification permission_prompt": waiting, "Notification worker_permission_prompt": waiting,
	"Notification agent_needs_input": waiting, "Notification elicitation_dialog": waiting, "Notification ToolPermission": waiting,
}

// ReadNotice returns the notice for a hook event. ok is false if the event is not for a person or cannot be read, or if a person at
// the agent's keyboard sees for themselves that it has finished. env reads the environment of the hook. The notice is silent if
// a person is at the keyboard or if that is unknown.
func (d Dialect) ReadNotice(input []byte, env func(string) string) (n AgentNotice, ok bool) {
	canonical, err := permissions.CanonicalJSON(bytes.TrimPrefix(input, []byte("\ufeff")))
	var m members
	if len(input) > MaxInput || err != nil || json.Unmarshal(canonical, &m) != nil {
		return n, false
	}
	d = d.detect(m)
	h, known := d.eventOf(m)
	n = AgentNotice{About: h.about, CallerMessage: permissions.CallerMessage{
		Agent:   d.Name,
		Session: permissions.Brief(m.optionalText("session_id", "sessionId", "sessionID"), permissions.MaxName),
		Title:   permissions.Brief(titleOf(m), permissions.MaxTitle),
		Text:    permissions.Brief(strings.TrimSpace(m.optionalText(h.text...)), permissions.MaxCallerMessage),
		Silent:  d.keyboard == nil,
	}}
	if d.keyboard != nil && d.keyboard.atKeyboard(env) {
		n.Silent, known = true, known && h.about != permissions.AboutFinished
	}
	return n, known && n.Session != "" && n.Validate(n.About) == nil
}

// eventOf returns the event that an input describes. Events of subagents are not reported, nor is the end of a turn while
// something of it still runs.
func (d Dialect) eventOf(m members) (agentEvent, bool) {
	part := m.optionalText("agent_id") != ""
	runs := !slices.Contains([]string{"", "null", "[]"}, string(m["background_tasks"]))
	event := cmp.Or(m.optionalText("hook_event_name", "hookEventName", "event"), copilotEvent(d, m))
	if event == "Notification" {
		event += " " + m.optionalText("notification_type")
	}
	h, known := agentEvents[event]
	return h, known && !part && (!runs || h.about != permissions.AboutFinished)
}

// copilotEvent is the name of a Copilot CLI event, which its own spelling leaves out.
func copilotEvent(d Dialect, m members) string {
	if d.Name == "copilot" && m["toolName"] == nil && m["stopReason"] != nil {
		return "Stop"
	}
	return ""
}

// titleOf is the agent's title of the session, otherwise the name of its folder.
func titleOf(m members) string {
	if title := strings.TrimSpace(m.optionalText("session_title", "title")); title != "" && m["notification_type"] == nil {
		return title
	}
	if folder := m.optionalText("cwd"); folder != "" {
		return filepath.Base(folder)
	}
	return ""
}
