package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
)

// readCursor reads the input of Cursor's hooks; each event has its own shape.
func readCursor(m members) (c Call, err error) {
	if c.event, err = m.text("hook_event_name"); err != nil {
		return c, err
	}
	reads := map[string]func(*Call, members) error{
		"beforeShellExecution": (*Call).cursorShell, "beforeMCPExecution": (*Call).cursorMCP,
		"beforeReadFile": (*Call).cursorFile, "preToolUse": (*Call).cursorTool,
	}
	read, known := reads[c.event]
	if !known {
		return c, fmt.Errorf("the hook was called for %s, which decides nothing here; use it for beforeShellExecution, "+
			"beforeMCPExecution, beforeReadFile or preToolUse", c.event)
	}
	c.answer = func(_ Call, v Verdict) any {
		return struct {
			Permission string `json:"permission"`
			User       string `json:"user_message,omitempty"`
			Agent      string `json:"agent_message,omitempty"`
		}{v.word(), v.behavior().Message, v.behavior().Message}
	}
	if c.Request.Session, err = m.text("conversation_id"); err != nil {
		return c, err
	}
	if json.Unmarshal(m["workspace_roots"], &c.roots) != nil {
		c.roots = nil
	}
	c.Request.Cwd = m.optionalText("cwd")
	if c.Request.Cwd == "" && len(c.roots) > 0 {
		c.Request.Cwd = c.roots[0]
	}
	return c, read(&c, m)
}

func (c *Call) cursorShell(m members) error {
	asked := members{"command": m["command"]}
	if _, err := m.text("command"); err != nil {
		return err
	}
	if held, given := m["sandbox"]; given { // whether the command runs in Cursor's own sandbox
		asked["sandbox"] = held
		delete(m, "sandbox")
	}
	c.use("Shell", asked.encode())
	return nil
}

// cursorMCP qualifies the tool's name, so that a server's tool cannot be taken for one of Cursor's own, and adds the server,
// because two servers may have tools of the same name.
func (c *Call) cursorMCP(m members) error {
	name, input, err := m.tool()
	if err != nil {
		return err
	}
	asked := members{"input": input}
	url, command := m.optionalText("url"), m.optionalText("command")
	switch {
	case url != "" && command != "":
		return errors.New("the hook was given both the url and the command of a server")
	case url != "":
		asked["server"] = m["url"]
	case command != "":
		asked["server"] = m["command"]
	}
	delete(m, "url")
	delete(m, "command")
	c.use("mcp__"+name, asked.encode())
	return nil
}

// cursorFile omits the file's content: the question is whether the agent may read it.
func (c *Call) cursorFile(m members) error {
	c.use("read_file", members{"file_path": m["file_path"]}.encode())
	delete(m, "content")
	_, err := m.text("file_path")
	return err
}

func (c *Call) cursorTool(m members) error {
	name, input, err := m.tool()
	if err != nil {
		return err
	}
	c.use(name, input)
	return nil
}
