package hooks

import "fmt"

// readCodex reads what Codex gives its hooks, which is what Claude Code gives its own. Codex takes an allow of PreToolUse for a
// failed hook; silence lets the call go.
func readCodex(d Dialect, m members) (Call, error) {
	c, err := readClaude(d, m)
	if c.event == "PreToolUse" {
		c.answer = func(event string, v Verdict) any {
			if v.Allowed {
				return nil
			}
			return preToolUse(event, v)
		}
	}
	return c, err
}

// readClaude reads what Claude Code gives its hooks.
func readClaude(_ Dialect, m members) (c Call, err error) {
	if c.event, err = m.text("hook_event_name"); err != nil {
		return c, err
	}
	switch c.event {
	case "PreToolUse":
		c.answer = preToolUse
	case "PermissionRequest":
		c.answer = permissionRequest
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
func preToolUse(event string, v Verdict) any {
	return hookOutput{struct {
		Event    string `json:"hookEventName"`
		Decision string `json:"permissionDecision"`
		Reason   string `json:"permissionDecisionReason"`
	}{event, v.word(), v.Reason}}
}

type behavior struct {
	Behavior string `json:"behavior"`
	Message  string `json:"message,omitempty"`
}

// permissionRequest is the answer to PermissionRequest. Codex refuses one with anything else in it.
func permissionRequest(event string, v Verdict) any {
	return hookOutput{struct {
		Event    string   `json:"hookEventName"`
		Decision behavior `json:"decision"`
	}{event, v.behavior()}}
}

// behavior is a verdict where only a denial has words.
func (v Verdict) behavior() behavior {
	if v.Allowed {
		return behavior{Behavior: v.word()}
	}
	return behavior{v.word(), v.Reason}
}
