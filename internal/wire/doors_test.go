package wire_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/internal/wire/wiretest"
	"github.com/daycared/daycared/permissions"
)

// routesOf are the methods and paths that the door at a socket describes.
func routesOf(t *testing.T, socket string) (routes []string) {
	t.Helper()
	_, text := wiretest.Do(t, wiretest.HTTP(t, socket), http.MethodGet, "/openapi.json", "", "")
	var spec struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	for path, methods := range spec.Paths {
		for method := range methods {
			routes = append(routes, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(routes)
	return routes
}

// Every route of either door is tried at the other. The three paths that both have are each door's own: at the agents'
// they reach what the caller asked itself.
func TestNeitherDoorHasTheOthersRoutes(t *testing.T) {
	desk := wiretest.NewDesk()
	forAgents, forDeciders := wiretest.Socket(t), wiretest.Socket(t)
	wiretest.Run(t, api.New(api.Options{Desk: desk, Socket: forAgents, Log: wiretest.Quiet}).Run)
	connector := admin.New(admin.Options{Socket: forDeciders, Key: "k", Log: wiretest.Quiet})
	wiretest.Run(t, func(ctx context.Context) error { return connector.Run(ctx, desk) })
	for _, socket := range []string{forAgents, forDeciders} {
		c := api.NewClient(socket)
		wiretest.Eventually(t, "served", func() bool { return c.Ready(t.Context()) == nil })
		c.Close()
	}

	both := []string{"GET /v1/requests/{id}", "POST /v1/requests/{id}/cancel"}
	agents, deciders := routesOf(t, forAgents), routesOf(t, forDeciders)
	wantAgents := []string{"GET /v1/requests/{id}", "POST /v1/requests", "POST /v1/requests/{id}/answer", "POST /v1/requests/{id}/cancel"}
	if !slices.Equal(agents, wantAgents) {
		t.Errorf("the agents' door has %v", agents)
	}
	if len(deciders) < 17 {
		t.Errorf("the deciders' door has only %v", deciders)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	r, _ := desk.Ask(ended, permissions.CallerUID(4242), wiretest.Question("another's"))
	for socket, foreign := range map[string][]string{forAgents: deciders, forDeciders: agents} {
		for _, route := range foreign {
			if slices.Contains(both, route) && socket == forDeciders {
				continue
			}
			method, path, _ := strings.Cut(route, " ")
			path = strings.ReplaceAll(path, "{id}", string(r.ID))
			body, kind := "", ""
			if method == http.MethodPost && !strings.HasSuffix(path, "/cancel") && !strings.HasSuffix(path, "/void") {
				body, kind = `{"answer":"allow_once"}`, "application/json"
			}
			status, text := wiretest.Do(t, wiretest.HTTP(t, socket), method, path, kind, body)
			if status != http.StatusNotFound || strings.Contains(text, "another's") {
				t.Errorf("%s: %d %s", route, status, text)
			}
		}
	}
	if ids := desk.PendingIDs(); len(ids) != 1 || ids[0] != r.ID {
		t.Errorf("pending: %v", ids)
	}
}
