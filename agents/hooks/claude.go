package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/daycared/daycared/permissions"
)

// readCodex reads the input of Codex's hooks, which has Claude Code's shape. Codex treats an explicit allow of PreToolUse as a
// failed hook; an empty reply allows. The justification that PermissionRequest adds to the input is not part of the call.
func readCodex(m members) (c Call, err error) {
	c, err = readEvent(m)
	if c.event == "PreToolUse" {
		c.answer = func(c Call, v Verdict) any {
			if v.Allowed {
				return nil
			}
			return preToolUse(c, v)
		}
	}
	var input members
	if c.event == "PermissionRequest" && json.Unmarshal(c.Request.Input, &input) == nil && input["command"] != nil {
		c.Request.Reason = input.optionalText("description")
		delete(input, "description")
		c.Request.Input = input.encode()
	}
	return c, err
}

// lookAtServer gives the server of a project another name where the account's settings of Claude Code have one of that name: the project's
// takes its place, and what is allowed to the account's is not allowed to that.
func (c *Call) lookAtServer() {
	const member = hookPrefix + "mcp_server"
	var all, server members
	if json.Unmarshal(c.Request.Input, &all) != nil || json.Unmarshal(all[member], &server) != nil ||
		server.optionalText("source") != "project" {
		return
	}
	home, _ := os.UserHomeDir() // empty if it is not known
	for _, folder := range []string{home, os.Getenv("CLAUDE_CONFIG_DIR")} {
		var settings claudeSettings
		text, whole, err := readFile(filepath.Join(folder, ".claude.json"), maxSettings)
		if folder == "" || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := json.Unmarshal([]byte(text), &settings); !whole || err != nil || settings.has(server.optionalText("name")) {
			server["name"], _ = json.Marshal(server.optionalText("name") + " (of the project)") // a text
			all[member] = server.encode()
			c.Request.Input = all.encode()
			return
		}
	}
}

// claudeSettings are the servers that an account has added for all folders, and for one (which is what `claude mcp add` does).
type claudeSettings struct {
	Servers members `json:"mcpServers"`
	Folders map[string]struct {
		Servers members `json:"mcpServers"`
	} `json:"projects"`
}

func (s claudeSettings) has(server string) bool {
	has := s.Servers[server] != nil
	for _, folder := range s.Folders {
		has = has || folder.Servers[server] != nil
	}
	return has
}

// maxSettings is the most bytes of Claude Code's settings of an account, which have its history, too.
const maxSettings = 64 << 20

// endEvents are the events that only withdraw requests: how, and whether the event names one call.
var endEvents = map[string]struct {
	via string
	one bool
}{
	"PostToolUse":        {permissions.ViaKeyboard, true},
	"PostToolUseFailure": {permissions.ViaKeyboard, true},
	"Interrupt":          {permissions.ViaInterrupt, false},
	"SessionEnd":         {permissions.ViaSessionEnd, false},
}

// resultMembers are the members with a call's result.
var resultMembers = []string{"tool_response", "error", "is_interrupt", "duration_ms"}

// readClaude reads the input of Claude Code's hooks. What policy allows unasked gets an empty reply, which leaves it to Claude
// Code's own rules. See converse for two tools that talk to the person.
func readClaude(m members) (c Call, err error) {
	if m.optionalText("hook_event_name") == "PermissionDenied" {
		return readDenied(m)
	}
	c, err = readEvent(m)
	if c.event == "PreToolUse" {
		c.answer = func(c Call, v Verdict) any {
			if v.Unasked {
				return nil
			}
			return preToolUse(c, v)
		}
	}
	if err == nil {
		err = c.convertTalk()
	}
	if err == nil && c.event == "PermissionRequest" && c.echo == "" {
		c.suggest(m)
	}
	return c, err
}

// readDenied reads the event that follows a refusal by Claude Code's auto mode. An approval lets the model retry; otherwise the
// reply is empty, and the call stays refused.
func readDenied(m members) (c Call, err error) {
	if c.event, err = m.text("hook_event_name"); err != nil {
		return c, err
	}
	c.Request.HookStage, c.Request.Widest, c.quiet = permissions.HookDenied, permissions.Once, true
	c.answer = func(c Call, v Verdict) any {
		if !v.Allowed || v.Unasked {
			return nil
		}
		return hookOutput{struct {
			Event string `json:"hookEventName"`
			Retry bool   `json:"retry"`
		}{c.event, true}}
	}
	c.refused = m.optionalText("reason")
	delete(m, "reason")
	return c, c.common(m, "session_id", "tool_name", "tool_input")
}

// readEvent reads an input in the shape of Claude Code's hooks.
func readEvent(m members) (c Call, err error) {
	if c.event, err = m.text("hook_event_name"); err != nil {
		return c, err
	}
	end, over := endEvents[c.event]
	c.Recall.Via = end.via
	switch {
	case c.event == "PreToolUse":
		c.answer, c.Request.HookStage = preToolUse, permissions.HookBefore
	case c.event == "PermissionRequest":
		c.answer, c.Request.HookStage = permissionRequest, permissions.HookAgain
	case over && !end.one:
		c.Request.Session, err = m.text("session_id")
		return c, err
	case over:
		for _, name := range resultMembers {
			delete(m, name)
		}
	default:
		return c, fmt.Errorf("the hook was called for %s, which decides nothing; use it for PreToolUse or PermissionRequest", c.event)
	}
	return c, c.common(m, "session_id", "tool_name", "tool_input")
}

// common reads the members that all dialects have, under the given names.
func (c *Call) common(m members, session, tool, input string) (err error) {
	if c.Request.Session, err = m.text(session); err != nil {
		return err
	}
	if c.Request.Cwd, err = m.text("cwd"); err != nil {
		return err
	}
	name, err := m.text(tool)
	if err != nil {
		return err
	}
	object, err := m.object(input)
	if err != nil {
		return err
	}
	c.use(name, object)
	return nil
}

type hookOutput struct {
	Specific any `json:"hookSpecificOutput"`
}

// preToolUse is the output for PreToolUse.
func preToolUse(c Call, v Verdict) any {
	word := v.word()
	if v.Undecided && c.Keyboard {
		word = "ask"
	}
	return hookOutput{struct {
		Event    string          `json:"hookEventName"`
		Decision string          `json:"permissionDecision"`
		Reason   string          `json:"permissionDecisionReason"`
		Input    json.RawMessage `json:"updatedInput,omitempty"`
	}{c.event, word, v.Reason, json.RawMessage(v.Input)}}
}

type behavior struct {
	Behavior string          `json:"behavior"`
	Message  string          `json:"message,omitempty"`
	Input    json.RawMessage `json:"updatedInput,omitempty"`
	// Permissions are the accepted suggestions, which change the agent's own permissions.
	Permissions []json.RawMessage `json:"updatedPermissions,omitempty"`
}

// permissionRequest is the output for PermissionRequest; Codex rejects other members. Nil leaves the decision to the agent's own
// dialog.
func permissionRequest(c Call, v Verdict) any {
	if v.Undecided && c.Keyboard {
		return nil
	}
	decision := v.behavior()
	if v.Allowed && v.Suggestion > 0 {
		decision.Permissions = []json.RawMessage{c.suggested[v.Suggestion-1]}
	}
	return hookOutput{struct {
		Event    string   `json:"hookEventName"`
		Decision behavior `json:"decision"`
	}{c.event, decision}}
}

// behavior is the verdict in the format in which only a denial has a message.
func (v Verdict) behavior() behavior {
	if v.Allowed {
		return behavior{Behavior: v.word(), Input: json.RawMessage(v.Input)}
	}
	return behavior{Behavior: v.word(), Message: v.Reason}
}
