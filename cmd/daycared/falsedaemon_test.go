package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// approving answers a question like a daemon whose person has just allowed it, modified by change.
func approving(change func(*permissions.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var a wire.Ask
		if wire.Decode(body, &a) != nil {
			w.WriteHeader(http.StatusNotFound) // for example a read
			return
		}
		q, _, _ := a.Question()
		q.ID, q.Caller, q.Version = permissions.NewID(time.Now()), permissions.CallerUID(os.Getuid()), permissions.DigestVersion
		q.State, q.Answer, q.Scope = permissions.Approved, permissions.Allow(permissions.Once), permissions.Once
		q.DecidedBy, q.DecidedVia, q.DecidedAt = "fay", "telegram", time.Now()
		_ = q.Normalize() // the request is valid
		change(&q)
		q.Digest = permissions.ComputeDigest(q)
		told, _ := wire.Encode(wire.From(permissions.RequestView{Request: q}, false))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(told)
	}
}

// raw answers with these bytes and closes the connection.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(c, text)
			_ = c.Close()
		}
	}
}

func status(code int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// falseDaemons are servers that are no daemon, or a broken one.
var falseDaemons = map[string]http.HandlerFunc{
	"garbage":                raw("\x16\x03\x01\x02\x00\x01"),
	"nothing":                raw(""),
	"half a head":            raw("HTTP/1.1 200 OK\r\nContent-Ty"),
	"half an answer":         raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{\"state\":\"approved\""),
	"an empty answer":        status(200, "application/json", ""),
	"no content":             status(204, "", ""),
	"a page":                 status(200, "text/html", "<html>approved</html>"),
	"yes":                    status(200, "application/json", `"approved"`),
	"null":                   status(200, "application/json", `null`),
	"a list":                 status(200, "application/json", `[{"state":"approved"}]`),
	"a state alone":          status(200, "application/json", `{"state":"approved","answer":"allow_once","result":"granted"}`),
	"a state twice":          status(200, "application/json", `{"state":"denied","state":"approved"}`),
	"an approval that fails": status(500, "application/json", `{"state":"approved","answer":"allow_once"}`),
	"a proxy's 502":          status(502, "text/html", "<html>bad gateway</html>"),
	"a 503":                  status(503, "application/problem+json", `{"status":503,"code":"broken","exit":5,"detail":"approved"}`),
	"a 429":                  status(429, "application/problem+json", `{"status":429,"code":"limit","exit":0,"detail":"approved"}`),
	"a 401":                  status(401, "application/problem+json", `{"status":401,"code":"token","exit":0,"detail":"approved"}`),
	"a 403 that means 0":     status(403, "application/problem+json", `{"status":403,"code":"not-yours","exit":0}`),
	"a 403 that means 256":   status(403, "application/problem+json", `{"status":403,"code":"not-yours","exit":256}`),
	"a 404":                  status(404, "text/plain", "approved"),
	"a 101":                  raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"),
	"leads elsewhere": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/yes", http.StatusTemporaryRedirect)
	},
	"another tool":   approving(func(r *permissions.Request) { r.Kind, r.Tags, r.Tool, r.Reason = permissions.KindTool, nil, "zz", "" }),
	"another reason": approving(func(r *permissions.Request) { r.Reason += "." }),
	"other tags":     approving(func(r *permissions.Request) { r.Tags = []permissions.Tag{permissions.Events} }),
	"another agent":  approving(func(r *permissions.Request) { r.Agent, r.Claimed = "b", true }),
	"another folder": approving(func(r *permissions.Request) { r.Cwd = "/elsewhere" }),
	"denied, called granted": approving(func(r *permissions.Request) {
		r.State, r.Answer, r.Scope = permissions.Denied, permissions.Deny, permissions.Scope{}
	}),
	"expired": approving(func(r *permissions.Request) {
		r.State, r.Answer, r.Scope = permissions.Expired, "", permissions.Scope{}
	}),
	"undeliverable": approving(func(r *permissions.Request) {
		r.State, r.Answer, r.Scope = permissions.Undeliverable, "", permissions.Scope{}
	}),
	"a state nobody knows of": approving(func(r *permissions.Request) { r.State = "postponed" }),
}

// clients ask one question at a socket, and report whether they take its answer as a yes. Each ends by itself or with ctx.
var clients = map[string]func(ctx context.Context, t *testing.T, socket string) bool{
	"a hook": func(ctx context.Context, t *testing.T, socket string) bool {
		call := `{"hook_event_name":"BeforeTool","session_id":"s","cwd":"/srv","tool_name":"T","tool_input":{}}`
		code, out := asked(ctx, t, call, "", "hook", "gemini", "--within", "1s", "--socket", socket)
		if !strings.Contains(out, `"decision":"deny"`) && code == 0 && !strings.Contains(out, `"decision":"allow"`) {
			t.Errorf("no verdict, and exit code 0: %s", out)
		}
		return strings.Contains(out, `"decision":"allow"`)
	},
	"daycared mcp": func(ctx context.Context, t *testing.T, socket string) bool {
		lines := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
			`"clientInfo":{"name":"x","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"request_permission",` +
			`"arguments":{"permission":"@network","reason":"docs"}}}` + "\n"
		_, out := asked(ctx, t, lines, `"id":2,`, "mcp", "--socket", socket)
		for line := range strings.Lines(out) {
			var answer struct {
				ID     int
				Result struct{ IsError bool }
				Error  any
			}
			if json.Unmarshal([]byte(line), &answer) == nil && answer.ID == 2 {
				return answer.Error == nil && !answer.Result.IsError && strings.Contains(line, "granted")
			}
		}
		return false // it keeps waiting
	},
	"daycared ask": func(ctx context.Context, t *testing.T, socket string) bool {
		code, out := asked(ctx, t, "", "", "ask", "@network", "--reason", "docs", "--timeout", "10s", "--socket", socket)
		if (code == 0) != strings.Contains(out, "granted") {
			t.Errorf("exit code %d, and it says %s", code, out)
		}
		return code == 0
	},
	"the library": func(ctx context.Context, t *testing.T, socket string) bool {
		c, err := client.New(client.Options{Socket: socket})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		a, err := c.Ask(ctx, []string{"@network"}, "docs", client.Question{})
		return err == nil && a.Yes
	},
}

// asked runs a command in this process until it ends, has printed enough (unless empty), or ctx ends.
func asked(ctx context.Context, t *testing.T, in, enough string, args ...string) (code int, out string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.WriteString(w, in); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(ctx)
	defer context.AfterFunc(ctx, func() { w.Close() })() // ends the reader
	defer end()
	said := &watched{}
	if enough == "" {
		w.Close()
	} else {
		said.on = map[string]func(){enough: end}
	}
	c := &CLI{In: r, Out: said, Err: said, UID: os.Getuid(), Environ: []string{"HOME=" + t.TempDir()}}
	code = c.Run(ctx, args)
	return code, said.text.String()
}

// TestOnlyADaemonsOwnYesIsOne covers all clients: hooks, MCP, the command line and the library. Only the approval of the
// client's own question allows anything.
func TestOnlyADaemonsOwnYesIsOne(t *testing.T) {
	all := map[string]http.HandlerFunc{"its own approval": approving(func(*permissions.Request) {})}
	for name, answers := range falseDaemons {
		all[name] = answers
	}
	for name, answers := range all {
		folder, err := os.MkdirTemp("", "dc") // sockets need short paths
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(folder) })
		socket := filepath.Join(folder, "agent")
		l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: answers}
		go func() { _ = server.Serve(l) }() // until it is closed
		t.Cleanup(func() { server.Close() })
		for who, asks := range clients {
			t.Run(fmt.Sprintf("D9/%s, %s", name, who), func(t *testing.T) {
				t.Parallel()
				ctx, done := context.WithTimeout(t.Context(), 1500*time.Millisecond)
				defer done()
				if yes := asks(ctx, t, socket); yes != (name == "its own approval") {
					t.Errorf("taken for a yes: %v", yes)
				}
			})
		}
	}
}
