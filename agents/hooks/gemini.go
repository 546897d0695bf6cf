package hooks

import "fmt"

// readGemini reads what Gemini CLI gives its hooks.
func readGemini(_ Dialect, m members) (c Call, err error) {
	if c.event, err = m.text("hook_event_name"); err != nil {
		return c, err
	}
	if c.event != "BeforeTool" {
		return c, fmt.Errorf("the hook was called for %s, which decides nothing; use it for BeforeTool", c.event)
	}
	c.answer = func(_ string, v Verdict) any {
		return struct {
			Decision string `json:"decision"`
			Reason   string `json:"reason"`
		}{v.word(), v.Reason}
	}
	return c, c.common(m, "session_id", "tool_name", "tool_input")
}
