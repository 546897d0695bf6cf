package api_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// echo returns the caller and the body.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %q %v", api.CallerOf(r.Context()).Name, body, err)
})

func TestMountedHandlersUseTheSameAuthentication(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	s := api.New(api.Options{Requests: env, Socket: socket, Log: wiretest.Quiet, Mounts: map[string]http.Handler{
		"/mcp": echo, "POST /hook/{dialect}": echo,
	}})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	wiretest.Run(t, s.Run)
	c := wiretest.HTTP(t, socket)
	own, token := permissions.CallerUID(os.Getuid()).Name, "Bearer "+newToken(t, env, "deploy", 0)
	for _, try := range []struct {
		method, path, body, token string
		status                    int
		says                      string
	}{
		{"POST", "/mcp", `{"a":1}`, "", 200, own + ` "{\"a\":1}" <nil>`},
		{"GET", "/mcp", "", "", 200, own + ` "" <nil>`},
		{"POST", "/hook/codex", `{}`, token, 200, `token:deploy "{}" <nil>`},
		{"POST", "/mcp", `{}`, "Bearer " + string(permissions.NewSecret()), 401, `"code":"token"`},
		{"POST", "/mcp", strings.Repeat(" ", 3<<20), "", 413, "too large"},
		{"GET", "/hook/codex", "", "", 404, "no-such-route"},
		{"GET", "/mcp/deeper", "", "", 404, "no-such-route"},
	} {
		var presented []string
		if try.token != "" {
			presented = []string{try.token}
		}
		answer, text := present(t, c, try.method, try.path, try.body, presented...)
		if answer.StatusCode != try.status || !strings.Contains(text, try.says) {
			t.Errorf("%s %s: %d %q, want %d %q", try.method, try.path, answer.StatusCode, text, try.status, try.says)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", "http://localhost:8080")
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("a browser: %d", answer.StatusCode)
	}
}

func TestNobodyIsProvenOutsideACall(t *testing.T) {
	if got := api.CallerOf(t.Context()); got != (permissions.Caller{Name: permissions.Anonymous, UID: permissions.NoUID}) {
		t.Errorf("%+v calls", got)
	}
}
