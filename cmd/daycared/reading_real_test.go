//go:build real

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
)

// TestReading draws the cards of testdata/reading, for a reader who sees only the pictures: make reading.
func TestReading(t *testing.T) {
	all := commands()
	all["reads"] = readsCards
	testscript.Run(t, testscript.Params{Dir: "testdata/reading", RequireExplicitExec: true, Setup: setup, Cmds: all})
}

// readingCall is a row of testdata/reading.
type readingCall struct {
	N      int            `json:"n"`
	Danger bool           `json:"danger"`
	What   string         `json:"what"` // is dangerous
	Tool   string         `json:"tool"`
	Input  map[string]any `json:"input"`
}

// readsCards has Claude Code ask for each call of a file, draws its card, and denies it.
func readsCards(ts *testscript.TestScript, _ bool, args []string) {
	c, last := chatsOf(ts), 0
	for row := range strings.Lines(strings.ReplaceAll(ts.ReadFile(args[0]), "$WORK", ts.Getenv("WORK"))) {
		var one readingCall
		ts.Check(json.Unmarshal([]byte(row), &one))
		shop := ts.MkAbs("shop")
		if path, ok := one.Input["file_path"].(string); ok && one.Input["old_string"] != nil {
			ts.Check(os.MkdirAll(filepath.Dir(path), 0o700))
			ts.Check(os.WriteFile(path, []byte(one.Input["old_string"].(string)), 0o600))
		}
		text, err := json.Marshal(map[string]any{
			"hook_event_name": "PreToolUse", "session_id": "s1", "cwd": shop, "tool_name": one.Tool, "tool_input": one.Input,
			"tool_use_id": fmt.Sprint("toolu_", one.N),
		})
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs("input.json"), text, 0o600))
		begin(ts, []string{"hook", "sh", "-c", "exec daycared hook claude-code --within 5m <input.json"}, (*actor).start)
		ctx, done := context.WithTimeout(context.Background(), patience)
		m, err := c.person(ts, "fay").Sees(ctx, func(m telegramtest.Message) bool { return m.ID > last && len(m.Keyboard) > 0 })
		done()
		ts.Check(err)
		c.now, last = m, m.ID
		noted(ts, m)
		draws(ts, false, []string{fmt.Sprintf("%03d", one.N), "telegram"})
		taps(ts, c, []string{"fay", "Deny"})
		ends(ts, cast(ts)["hook"], []string{"0"})
	}
}
