package hooks

import (
	"encoding/json"
	"fmt"

	"github.com/daycared/daycared/permissions"
)

// readCodex reads what Codex gives its hooks, which is what Claude Code gives its own. Codex takes an allow of PreToolUse for a
// failed hook; silence lets the call go. The justification that PermissionRequest adds to the input is no part of the call.
func readCodex(_ Dialect, m members) (c Call, err error) {
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
		c.Request.Reason = input.maybe("description")
		delete(input, "description")
		c.Request.Input = input.encode()
	}
	return c, err
}

// after are the events that decide nothing: what they make moot, and why. Those of one call name it.
var after = map[string]struct {
	via string
	one bool
}{
	"PostToolUse":        {permissions.ViaKeyboard, true},
	"PostToolUseFailure": {permissions.ViaKeyboard, true},
	"Interrupt":          {permissions.ViaInterrupt, false},
	"SessionEnd":         {permissions.ViaSessionEnd, false},
}

// results are the members that say how a call ended.
var results = []string{"tool_response", "error", "is_interrupt", "duration_ms"}

// readClaude reads what Claude Code gives its hooks. What policy lets go is left to Claude Code's own rules, by silence, and
// two of its tools are a conversation with the person.
func readClaude(_ Dialect, m members) (c Call, err error) {
	if m.maybe("hook_event_name") == "PermissionDenied" {
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
		err = c.converse()
	}
	if err == nil && c.event == "PermissionRequest" && c.echo == "" {
		c.suggest(m)
	}
	return c, err
}

// readDenied reads what Claude Code tells after its auto mode has refused a call. A person's yes lets the model try once more; anything
// else is silence, and leaves it refused.
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
	c.refused = m.maybe("reason")
	delete(m, "reason")
	return c, c.common(m, "session_id", "tool_name", "tool_input")
}

// readEvent reads what Claude Code and Codex give their hooks.
func readEvent(m members) (c Call, err error) {
	if c.event, err = m.text("hook_event_name"); err != nil {
		return c, err
	}
	end, over := after[c.event]
	c.Moot.Via = end.via
	switch {
	case c.event == "PreToolUse":
		c.answer, c.Request.HookStage = preToolUse, permissions.HookBefore
	case c.event == "PermissionRequest":
		c.answer, c.Request.HookStage = permissionRequest, permissions.HookAgain
	case over && !end.one:
		c.Request.Session, err = m.text("session_id")
		return c, err
	case over:
		for _, name := range results {
			delete(m, name)
		}
	default:
		return c, fmt.Errorf("the hook was called for %s, which decides nothing; use it for PreToolUse or PermissionRequest", c.event)
	}
	return c, c.common(m, "session_id", "tool_name", "tool_input")
}

// common reads the members that all dialects have, by their names.
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

// preToolUse is the answer to PreToolUse.
func preToolUse(c Call, v Verdict) any {
	word := v.word()
	if v.Open && c.Keyboard {
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
	// Permissions are changes of the agent's own permissions, of those that it suggested.
	Permissions []json.RawMessage `json:"updatedPermissions,omitempty"`
}

// permissionRequest is the answer to PermissionRequest. Codex refuses one with anything else in it. Silence leaves it to the
// agent's own dialog.
func permissionRequest(c Call, v Verdict) any {
	if v.Open && c.Keyboard {
		return nil
	}
	decision := v.behavior()
	if v.Allowed && v.With > 0 {
		decision.Permissions = []json.RawMessage{c.suggested[v.With-1]}
	}
	return hookOutput{struct {
		Event    string   `json:"hookEventName"`
		Decision behavior `json:"decision"`
	}{c.event, decision}}
}

// behavior is a verdict where only a denial has words.
func (v Verdict) behavior() behavior {
	if v.Allowed {
		return behavior{Behavior: v.word(), Input: json.RawMessage(v.Input)}
	}
	return behavior{Behavior: v.word(), Message: v.Reason}
}
