package main

import (
	"net/http"
	"slices"
	"testing"

	"github.com/daycared/daycared/cmd/daycared/config"
)

// The matrix in agents/api covers all of the daemon's routes for agents: a new route needs a row there.
func TestWhatAgentsMayReach(t *testing.T) {
	d := &daemon{cfg: config.Default(), log: quiet(), gauges: http.NotFoundHandler()}
	want := []string{
		"GET /healthz", "GET /metrics", "GET /openapi.json", "GET /readyz",
		"/mcp", "GET /v1/requests/{id}", "POST /hook/{dialect}", "POST /v1/recall", "POST /v1/requests",
		"GET /v1/events", "POST /v1/requests/{id}/answer", "POST /v1/requests/{id}/cancel",
		"POST /v1/tell",
	}
	slices.Sort(want)
	if got := d.forAgents().Routes(); !slices.Equal(got, want) {
		t.Errorf("agents may reach %q, want %q", got, want)
	}
}
