package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// Scripts have agents that speak MCP in them, whose program was started with pipe:
//
//	greets NAME [dialogs]   begin a session, as Claude Code would; with dialogs of its own
//	calls NAME ID TOOL JSON call a tool, by a message of that id, with those arguments; signs of life are asked for
//	notes NAME METHOD JSON  send a notification
//	chooses NAME ID OPTION  answer a dialog that the server called for by that id
//	posts REGEXP JSON       send a message to /mcp of agent.sock; the answer, whole, is to match

func mcpCommands() scriptCommands {
	on := func(least int, line func(args []string) string) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) < least+1 {
				ts.Fatalf("usage: greets NAME [dialogs], calls NAME ID TOOL JSON, notes NAME METHOD JSON, or chooses NAME ID OPTION")
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
		"posts": posts,
		"greets": on(0, func(args []string) string {
			can := "{}"
			if len(args) > 0 {
				can = `{"elicitation":{}}`
			}
			return strings.Join([]string{
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":` + can + `,` +
					`"clientInfo":{"name":"claude-code","version":"1"}}}`,
				`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			}, "\n")
		}),
		"calls": on(3, func(args []string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":"p%s"}}}`,
				args[0], args[1], args[2], args[0])
		}),
		"chooses": on(2, func(args []string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"answer":%q}}}`, args[0], args[1])
		}),
		"notes": on(2, func(args []string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, args[0], args[1])
		}),
	}
}

// posts makes a call over HTTP with nothing but the socket.
func posts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: posts REGEXP JSON")
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", ts.Getenv("DAYCARED_API_AGENT_SOCKET"))
	}}
	defer transport.CloseIdleConnections()
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", strings.NewReader(args[1]))
	ts.Check(err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", "2025-11-25")
	answer, err := transport.RoundTrip(r)
	ts.Check(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	ts.Check(err)
	if !regexp.MustCompile(args[0]).Match(text) {
		ts.Fatalf("%s does not match: %d %s", args[0], answer.StatusCode, text)
	}
}
