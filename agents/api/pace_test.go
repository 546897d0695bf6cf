package api_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// An agent that calls too often is told to slow down; health checks and other agents are not affected.
func TestOneCallerDoesNotTakeTheTurnOfOthers(t *testing.T) {
	t.Run("F2/one caller takes all turns", func(t *testing.T) {
		env := wiretest.NewEnv(t)
		greedy, modest := newToken(t, env, "greedy", 0), newToken(t, env, "modest", 0)
		at := "http://" + serveTCP(t, env, api.Options{CallsPerSecond: 5, TCP: &api.TCP{}})
		c := wiretest.Trusting(t, nil, "")
		var last *http.Response
		served := 0
		for range 12 { // of the burst of 20 per peer
			if last, _ = get(t, c, at+"/v1/requests/x", "localhost", greedy); last.StatusCode == 404 {
				served++
			}
		}
		if served < 5 || served > 7 || last.StatusCode != 429 {
			t.Errorf("%d of 12 calls were served, the last got %d", served, last.StatusCode)
		}
		if seconds, err := strconv.Atoi(last.Header.Get("Retry-After")); err != nil || seconds < 1 {
			t.Errorf("it is told to come back after %q", last.Header.Get("Retry-After"))
		}
		if answer, text := get(t, c, at+"/v1/requests/x", "localhost", modest); answer.StatusCode != 404 {
			t.Errorf("another agent: %d %s", answer.StatusCode, text)
		}
		for range 30 { // unauthenticated calls are counted per peer
			last, _ = get(t, c, at+"/v1/requests/x", "localhost", "")
		}
		if last.StatusCode != 429 {
			t.Errorf("what proves nothing goes on: %d", last.StatusCode)
		}
		for path, want := range map[string]int{"/healthz": 200, "/readyz": 200} {
			if answer, _ := get(t, c, at+path, "localhost", greedy); answer.StatusCode != want {
				t.Errorf("%s: %d", path, answer.StatusCode)
			}
		}
		for range 200 {
			last, _ = get(t, c, at+"/healthz", "localhost", "")
		}
		if last.StatusCode != 429 {
			t.Errorf("looking goes on: %d", last.StatusCode)
		}
	})
}

// A rate-limited client slows down, and its question still succeeds.
func TestAClientSlowsDownAndGoesOnWaiting(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	s := api.New(api.Options{Requests: env, Socket: socket, CallsPerSecond: 1, Log: wiretest.Quiet})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	wiretest.Run(t, s.Run)
	c := newClient(t, socket)
	if _, err := c.Get(t.Context(), "none", 0); !isRefusal(err, permissions.CodeUnknown) { // uses up the budget
		t.Fatal(err)
	}
	told, done := background(t.Context(), c, wiretest.Question("x"))
	w := <-told
	decide(t, env, w.ID, permissions.Deny)
	if got := <-done; got.err != nil || got.r.State != permissions.Denied {
		t.Errorf("%v, %v", got.r.State, got.err)
	}
}
