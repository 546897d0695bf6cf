package hooks

import "fmt"

// readCopilot reads what Copilot CLI gives its hooks. It names the event only where that is permissionRequest.
func readCopilot(_ Dialect, m members) (c Call, err error) {
	c.event = "preToolUse"
	if _, named := m["hookName"]; named {
		if c.event, err = m.text("hookName"); err != nil {
			return c, err
		}
	}
	switch c.event {
	case "preToolUse":
		c.answer = func(_ string, v Verdict) any {
			return struct {
				Decision string `json:"permissionDecision"`
				Reason   string `json:"permissionDecisionReason"`
			}{v.word(), v.Reason}
		}
		return c, c.common(m, "sessionId", "toolName", "toolArgs")
	case "permissionRequest":
		c.answer = func(_ string, v Verdict) any { return v.behavior() }
		return c, c.common(m, "sessionId", "toolName", "toolInput")
	}
	return c, fmt.Errorf("the hook was called for %s, which decides nothing; use it for preToolUse or permissionRequest", c.event)
}
