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

// News is what an agent's hook says has happened, which asks nothing.
type News struct {
	About permissions.About
	permissions.Telling
}

// happening is what one of an agent's events means.
type happening struct {
	about permissions.About
	text  []string // the members that may have words for it
}

var (
	finished = happening{permissions.AboutFinished, []string{"last_assistant_message", "prompt_response"}}
	waiting  = happening{permissions.AboutWaits, []string{"message"}}
	failed   = happening{permissions.AboutFailed, []string{"error_details", "error"}}
)

// happenings are the events of the agents that call a hook about them, by the name of the event, and of a notification by its
// type besides.
var happenings = map[string]happening{
	"Stop": finished, "AfterAgent": finished, "session.idle": finished, "Notification agent_completed": finished,
	"StopFailure": failed, "session.error": failed,
	"Notification idle_prompt": waiting, "Notification permission_prompt": waiting, "Notification worker_permission_prompt": waiting,
	"Notification agent_needs_input": waiting, "Notification elicitation_dialog": waiting, "Notification ToolPermission": waiting,
}

// News is what a hook that decides nothing was told has happened. It is not ok where that is nothing for a person, or cannot be
// read, and where a person is at the agent's keyboard, who sees for themselves that it has finished. env is the environment of the
// hook. Where nobody knows whether a person is there, and where one is, it is told without a sound.
func (d Dialect) News(input []byte, env func(string) string) (n News, ok bool) {
	canonical, err := permissions.CanonicalJSON(bytes.TrimPrefix(input, []byte("\ufeff")))
	var m members
	if len(input) > MaxInput || err != nil || json.Unmarshal(canonical, &m) != nil {
		return n, false
	}
	d = d.spoken(m)
	h, known := d.happened(m)
	n = News{About: h.about, Telling: permissions.Telling{
		Agent:   d.Name,
		Session: permissions.Brief(m.maybe("session_id", "sessionId", "sessionID"), permissions.MaxName),
		Title:   permissions.Brief(titleOf(m), permissions.MaxTitle),
		Text:    permissions.Brief(strings.TrimSpace(m.maybe(h.text...)), permissions.MaxTelling),
		Silent:  d.keyboard == nil,
	}}
	if d.keyboard != nil && d.keyboard.there(env) {
		n.Silent, known = true, known && h.about != permissions.AboutFinished
	}
	return n, known && n.Session != "" && n.Validate(n.About) == nil
}

// happened is what the event means that an input is of. What happens in a part of an agent is not news, nor is a turn that ends
// while something of it still runs.
func (d Dialect) happened(m members) (happening, bool) {
	part := m.maybe("agent_id") != ""
	runs := !slices.Contains([]string{"", "null", "[]"}, string(m["background_tasks"]))
	event := cmp.Or(m.maybe("hook_event_name", "hookEventName", "event"), copilotEvent(d, m))
	if event == "Notification" {
		event += " " + m.maybe("notification_type")
	}
	h, known := happenings[event]
	return h, known && !part && (!runs || h.about != permissions.AboutFinished)
}

// copilotEvent is the event that Copilot CLI does not name in its own spelling.
func copilotEvent(d Dialect, m members) string {
	if d.Name == "copilot" && m["toolName"] == nil && m["stopReason"] != nil {
		return "Stop"
	}
	return ""
}

// titleOf is what the agent calls its session, else the name of its folder.
func titleOf(m members) string {
	if title := strings.TrimSpace(m.maybe("session_title", "title")); title != "" && m["notification_type"] == nil {
		return title
	}
	if folder := m.maybe("cwd"); folder != "" {
		return filepath.Base(folder)
	}
	return ""
}
