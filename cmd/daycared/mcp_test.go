package main

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// Scripts have agents that speak MCP in them, whose program was started with pipe:
//
//	greets NAME             begin a session, as Claude Code would
//	calls NAME ID TOOL JSON call a tool, by a message of that id, with those arguments; signs of life are asked for
//	notes NAME METHOD JSON  send a notification

func mcpCommands() scriptCommands {
	on := func(least int, line func(args []string) string) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) != least+1 {
				ts.Fatalf("usage: greets NAME, calls NAME ID TOOL JSON, or notes NAME METHOD JSON")
			}
			a, known := cast(ts)[args[0]]
			if !known {
				ts.Fatalf("nobody is called %s", args[0])
			}
			_, err := a.hand.WriteString(line(args[1:]) + "\n")
			ts.Check(err)
		}
	}
	return scriptCommands{
		"greets": on(0, func([]string) string {
			return strings.Join([]string{
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
					`"clientInfo":{"name":"claude-code","version":"1"}}}`,
				`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			}, "\n")
		}),
		"calls": on(3, func(args []string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":"p%s"}}}`,
				args[0], args[1], args[2], args[0])
		}),
		"notes": on(2, func(args []string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, args[0], args[1])
		}),
	}
}
