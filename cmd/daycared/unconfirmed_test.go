package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daycared/daycared/agents/hooks"
	"github.com/daycared/daycared/permissions"
)

// unwell listens at a socket like a daemon; with nil answers it accepts no calls, like a stopped process.
func unwell(t *testing.T, answers http.HandlerFunc) (socket string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "dc") // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	socket = filepath.Join(folder, "agent")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: answers}
	t.Cleanup(func() { l.Close(); server.Close() })
	if answers != nil {
		go func() { _ = server.Serve(l) }() // until it is closed
	}
	return socket
}

// confirmedOnce stores one question and then exits.
func confirmedOnce() http.HandlerFunc {
	var before atomic.Bool
	return func(w http.ResponseWriter, r *http.Request) {
		if before.Swap(true) {
			raw("")(w, r)
			return
		}
		approving(func(q *permissions.Request) {
			q.State, q.Answer, q.Scope, q.DecidedBy, q.DecidedVia = permissions.Pending, "", permissions.Scope{}, "", ""
			q.DecidedAt, q.Deadline = time.Time{}, time.Now().Add(time.Minute)
			q.Asked, q.Options = []string{"fay"}, permissions.Offer(*q, nil, q.Widest)
		})(w, r)
	}
}

// TestAQuestionIsPendingOnlyOnceConfirmed: a daemon that is stopped, hangs or hangs up may have stored nothing, so no
// command says that a question is pending.
func TestAQuestionIsPendingOnlyOnceConfirmed(t *testing.T) {
	hangs := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices a closed connection only then
		<-r.Context().Done()
	}
	for _, d := range hooks.Names() {
		dialect, _ := hooks.Find(d)
		for name, answers := range map[string]http.HandlerFunc{
			"stopped": nil, "hangs": hangs, "hangs up": raw(""), "confirmed": confirmedOnce(),
		} {
			t.Run("D9/"+d+", "+name, func(t *testing.T) {
				t.Parallel()
				code, out := asked(t.Context(), t, string(dialect.Probe("T", "/srv")), "",
					"hook", d, "--within", "1s", "--socket", unwell(t, answers))
				stands := strings.Contains(out, "The question stands and is not asked twice")
				if code != 0 || !strings.Contains(out, `"deny"`) || stands != (name == "confirmed") ||
					!stands && !strings.Contains(out, "gave no answer in time, and no question is known to stand") {
					t.Errorf("exit code %d: %s", code, out)
				}
			})
		}
	}
	for kind, args := range map[string][]string{
		"ask": {"@network", "--reason", "x"}, "confirm": {"sure?"}, "choose": {"which?", "--option", "a", "--option", "b"},
	} {
		for name, answers := range map[string]http.HandlerFunc{"hangs up": raw(""), "confirmed": confirmedOnce()} {
			t.Run("D9/"+kind+", "+name, func(t *testing.T) {
				t.Parallel()
				_, out := asked(t.Context(), t, "", "asked again until", append([]string{kind, "--socket", unwell(t, answers)}, args...)...)
				stands := strings.Contains(out, "the question stands")
				if stands != (name == "confirmed") || !strings.Contains(out, "the daemon is away; the question ") {
					t.Error(out)
				}
			})
		}
		t.Run("D9/"+kind+", terminated", func(t *testing.T) {
			t.Parallel()
			ctx, end := context.WithCancelCause(t.Context())
			socket := unwell(t, func(w http.ResponseWriter, r *http.Request) { end(errTerminated); hangs(w, r) })
			code, out := asked(ctx, t, "", "", append([]string{kind, "--socket", socket}, args...)...)
			if code == 0 || !strings.Contains(out, "ended before the daemon confirmed the question; it is not known to stand") {
				t.Errorf("exit code %d: %s", code, out)
			}
		})
	}
	t.Run("D9/mcp", func(t *testing.T) {
		t.Parallel()
		lines := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
			`"clientInfo":{"name":"x","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"request_permission","_meta":{"progressToken":"p"},` +
			`"arguments":{"permission":"@network","reason":"docs"}}}` + "\n"
		_, out := asked(t.Context(), t, lines, `"progressToken":"p"`, "mcp", "--socket", unwell(t, nil))
		if strings.Contains(out, "stands") || !strings.Contains(out, `"Waiting for an answer."`) {
			t.Error(out)
		}
	})
}
