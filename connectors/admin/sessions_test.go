package admin_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// begun is a session that began at noon.
func begun(id permissions.ID, person string, ended bool) permissions.AgentSession {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := permissions.AgentSession{
		ID: id, Agent: "helper", Person: person, Status: permissions.Idle, Version: 1, CreatedAt: at, ChangedAt: at,
		Step: json.RawMessage(`{}`),
	}
	if ended {
		s.EndedAt = at
	}
	return s
}

// withSessions is an env with those sessions.
func withSessions(t *testing.T, all ...permissions.AgentSession) *wiretest.Env {
	t.Helper()
	env := wiretest.NewEnv(t)
	for _, s := range all {
		env.Commit(t, agents.Commit{Session: s})
	}
	return env
}

// TestDebugOfASessionIsSwitched by the session's person, and is part of its state.
func TestDebugOfASessionIsSwitched(t *testing.T) {
	socket, env := wiretest.Socket(t), withSessions(t, begun("1", "fay", false), begun("2", "sam", false))
	serve(t, socket, env)
	for _, c := range []struct{ id, body, want string }{
		{"1", `{"debug":true}`, `"debug":true`}, {"1", `{"debug":false}`, `"debug":false`}, {"2", `{"debug":true}`, "no session 2"},
	} {
		_, body := wiretest.Do(t, wiretest.HTTP(t, socket), http.MethodPost, "/v1/sessions/"+c.id+"/debug", "application/json", c.body)
		if !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %s", c.id, c.body, body)
		}
	}
}

// Lists go on after an id; what is none is refused, and does not stand before every id.
func TestListsGoOnAfterAnID(t *testing.T) {
	socket, env := wiretest.Socket(t), withSessions(t, begun("1", "fay", false))
	serve(t, socket, env)
	for query, want := range map[string]int{
		"/v1/sessions?after=0": http.StatusOK, "/v1/grants?after=-5": http.StatusOK,
		"/v1/grants?after=0": http.StatusOK, "/v1/sessions?after=-1": http.StatusUnprocessableEntity,
		"/v1/grants?after=-x": http.StatusUnprocessableEntity, "/v1/grants?after=-9999999999": http.StatusUnprocessableEntity,
	} {
		if status, body := wiretest.Do(t, wiretest.HTTP(t, socket), http.MethodGet, query, "", ""); status != want {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
}

// What a session's calls did is told to whose session it is, a page at a time.
func TestCallsOfASessionAreListedToThoseWhoseItIs(t *testing.T) {
	socket, env, one := wiretest.Socket(t), withSessions(t, begun("2", "sam", false)), begun("1", "fay", true)
	serve(t, socket, env)
	exit := 4
	var calls []agents.Execution
	for i, tool := range []string{"write_file", "run_command", "fetch_url"} {
		calls = append(calls, agents.Execution{Step: 1, Call: i + 1, Tool: tool, Arguments: []byte(`{}`), Began: one.CreatedAt})
	}
	calls[0].AffectedPath, calls[0].Ended, calls[0].Success = "/srv/a", one.CreatedAt.Add(time.Second), true
	calls[1].Exit, calls[1].Ended, calls[1].Error = &exit, one.CreatedAt.Add(time.Second), "exit status 4"
	env.Commit(t, agents.Commit{Session: one, Executions: calls})
	fays := wiretest.HTTP(t, socket)
	get := func(path string) (int, string) {
		status, body := wiretest.Do(t, fays, http.MethodGet, path, "", "")
		return status, strings.TrimSpace(body)
	}
	want := `[{"id":1,"step":1,"call":1,"tool":"write_file","arguments":{},"affected_path":"/srv/a","began":"2026-11-21T12:00:00Z",` +
		`"ended":"2026-11-21T12:00:01Z","success":true,"exit_code":null,"error":null},` +
		`{"id":2,"step":1,"call":2,"tool":"run_command","arguments":{},"affected_path":null,"began":"2026-11-21T12:00:00Z",` +
		`"ended":"2026-11-21T12:00:01Z","success":false,"exit_code":4,"error":"exit status 4"}]`
	if status, body := get("/v1/sessions/1/executions?limit=2"); status != http.StatusOK || body != want {
		t.Errorf("%d %s\nwant %s", status, body, want)
	}
	want = `[{"id":3,"step":1,"call":3,"tool":"fetch_url","arguments":{},"affected_path":null,"began":"2026-11-21T12:00:00Z",` +
		`"ended":null,"success":null,"exit_code":null,"error":null}]`
	if status, body := get("/v1/sessions/1/executions?after=2"); status != http.StatusOK || body != want {
		t.Errorf("%d %s\nwant %s", status, body, want)
	}
	if status, body := get("/v1/sessions/2/executions"); status != http.StatusNotFound {
		t.Errorf("sam's: %d %s", status, body)
	}
}

// What came of a session, or of one of its calls, is told to whose session it is, a page at a time.
func TestArtifactsOfASessionAreListedToThoseWhoseItIs(t *testing.T) {
	socket, env, one := wiretest.Socket(t), withSessions(t, begun("2", "sam", false)), begun("1", "fay", true)
	serve(t, socket, env)
	env.Commit(t, agents.Commit{
		Session: one, Executions: []agents.Execution{{Step: 1, Call: 1, Tool: "run_command", Arguments: []byte(`{}`), Began: one.CreatedAt}},
		Artifacts: []agents.Artifact{
			{Step: 1, Type: "prompt", Content: []byte(`{"text":"<b>"}`)},
			{Step: 1, Call: 1, Type: "stdout", Content: []byte(`{"text":"ok"}`)},
		},
	})
	prompt := `{"id":1,"execution":null,"step":1,"type":"prompt","content":{"text":"<b>"}}`
	stdout := `{"id":2,"execution":1,"step":1,"type":"stdout","content":{"text":"ok"}}`
	for _, c := range []struct {
		path   string
		status int
		want   string
	}{
		{"/v1/sessions/1/artifacts", http.StatusOK, "[" + prompt + "," + stdout + "]"},
		{"/v1/sessions/1/artifacts?limit=1", http.StatusOK, "[" + prompt + "]"},
		{"/v1/sessions/1/artifacts?after=1", http.StatusOK, "[" + stdout + "]"},
		{"/v1/sessions/1/artifacts?execution=1", http.StatusOK, "[" + stdout + "]"},
		{"/v1/sessions/1/artifacts?execution=8", http.StatusOK, "[]"},
		{"/v1/sessions/1/artifacts?limit=101", http.StatusUnprocessableEntity, ""},
		{"/v1/sessions/2/artifacts", http.StatusNotFound, ""},
	} {
		status, body := wiretest.Do(t, wiretest.HTTP(t, socket), http.MethodGet, c.path, "", "")
		if status != c.status || c.want != "" && strings.TrimSpace(body) != c.want {
			t.Errorf("%s: %d %s\nwant %d %s", c.path, status, body, c.status, c.want)
		}
	}
}

// A person sees the sessions of their own agents, the operator everybody's; ended ones only if asked for.
func TestSessionsAreListedToThoseWhoseTheyAre(t *testing.T) {
	socket := wiretest.Socket(t)
	serve(t, socket, withSessions(t, begun("1", "fay", false), begun("2", "sam", false), begun("3", "fay", true), begun("4", "fay", false)))
	fay, operator := newClient(t, socket, ""), newClient(t, socket, key)
	for _, c := range []struct {
		name  string
		ended bool
		after permissions.ID
		limit int
		all   bool
		want  string
	}{
		{"fay's", false, "", 0, false, "1 4"},
		{"with those that ended", true, "", 0, false, "1 3 4"},
		{"a page", true, "1", 1, false, "3"},
		{"everybody's", false, "", 0, true, "1 2 4"},
	} {
		client := fay
		if c.all {
			client = operator
		}
		list, err := client.Sessions(t.Context(), c.ended, c.after, c.limit)
		var ids []string
		for _, s := range list {
			ids = append(ids, string(s.ID))
		}
		if got := strings.Join(ids, " "); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	one, err := fay.Session(t.Context(), "1")
	want := wire.FromSession(permissions.SessionView{Session: begun("1", "fay", false)})
	if err != nil || one.ID != want.ID || !one.Started.Equal(*want.Started) {
		t.Errorf("%+v, %v", one, err)
	}
	if _, err := fay.Session(t.Context(), "2"); !isRefusal(err, permissions.CodeUnknown) {
		t.Errorf("sam's: %v", err)
	}
	if one, err := operator.Session(t.Context(), "2"); err != nil || one.Person != "sam" {
		t.Errorf("%+v, %v", one, err)
	}
	if status, _ := wiretest.Do(t, wiretest.HTTP(t, socket), http.MethodGet, "/v1/sessions?state=closed", "", ""); status < 400 {
		t.Errorf("a state that there is not is answered with %d", status)
	}
}
