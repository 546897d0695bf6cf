package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// routesOf are the methods and paths in a socket's OpenAPI description.
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

// Every route of one server is tried at the other. The three paths that both have are separate: at the agents' socket
// they reach the caller's own requests only.
func TestNeitherServerHasTheOthersRoutes(t *testing.T) {
	env := wiretest.NewEnv(t)
	forAgents, forDeciders := wiretest.Socket(t), wiretest.Socket(t)
	wiretest.Run(t, api.New(api.Options{Requests: env, Socket: forAgents, Log: wiretest.Quiet}).Run)
	connector := admin.New(admin.Options{Socket: forDeciders, Key: "k", Log: wiretest.Quiet}, env)
	wiretest.Run(t, connector.Run)
	for _, socket := range []string{forAgents, forDeciders} {
		c, err := client.New(client.Options{Socket: socket})
		if err != nil {
			t.Fatal(err)
		}
		wiretest.Eventually(t, "served", func() bool { return c.Ready(t.Context()) == nil })
		c.Close()
	}

	both := []string{"GET /v1/requests/{id}", "POST /v1/requests/{id}/cancel"}
	agents, deciders := routesOf(t, forAgents), routesOf(t, forDeciders)
	wantAgents := []string{
		"GET /v1/requests/{id}", "POST /v1/recall", "POST /v1/requests", "POST /v1/requests/{id}/answer", "POST /v1/requests/{id}/cancel",
		"POST /v1/tell",
	}
	if !slices.Equal(agents, wantAgents) {
		t.Errorf("the agents' door has %v", agents)
	}
	if len(deciders) < 17 {
		t.Errorf("the deciders' door has only %v", deciders)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	r, _ := env.Ask(ended, permissions.CallerUID(4242), wiretest.Question("another's"))
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
	if ids := env.PendingIDs(); len(ids) != 1 || ids[0] != r.ID {
		t.Errorf("pending: %v", ids)
	}
}

// TestNothingListensForAWebhook: Telegram is polled and WhatsApp is an outgoing connection, so no server has a route
// through which a channel, or a forged call, could bring an answer.
func TestNothingListensForAWebhook(t *testing.T) {
	env := wiretest.NewEnv(t)
	forAgents, forDeciders := wiretest.Socket(t), wiretest.Socket(t)
	doors := map[string]string{"agent.sock": forAgents, "admin.sock": forDeciders}
	server := api.New(api.Options{Requests: env, Socket: forAgents, Log: wiretest.Quiet})
	connector := admin.New(admin.Options{Socket: forDeciders, Key: "k", Log: wiretest.Quiet}, env)
	for _, listen := range []func() error{server.Listen, connector.Listen} {
		if err := listen(); err != nil {
			t.Fatal(err)
		}
	}
	wiretest.Run(t, server.Run)
	wiretest.Run(t, connector.Run)
	ended, end := context.WithCancel(t.Context())
	end()
	r, _ := env.Ask(ended, permissions.CallerUID(4242), wiretest.Question("x"))
	update := `{"update_id":1,"callback_query":{"id":"1","from":{"id":4242},"data":"` + string(r.ID) + `.allow_once"},
		"entry":[{"changes":[{"value":{"messages":[{"from":"491700000001","text":{"body":"yes"}}]}}]}]}`
	for door, socket := range doors {
		for _, call := range []string{
			"POST /", "POST /webhook", "POST /webhooks", "POST /webhook/telegram", "POST /telegram", "POST /telegram/webhook",
			"POST /bot123:SECRET", "POST /whatsapp", "POST /whatsapp/webhook", "POST /callback", "POST /updates", "POST /v1/webhook",
			"GET /webhook?hub.mode=subscribe&hub.verify_token=x&hub.challenge=1", "GET /whatsapp?hub.challenge=1",
		} {
			t.Run("A6/"+door+" "+call, func(t *testing.T) {
				method, path, _ := strings.Cut(call, " ")
				q, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(update))
				if err != nil {
					t.Fatal(err)
				}
				q.Header.Set("Content-Type", "application/json")
				q.Header.Set("X-Telegram-Bot-Api-Secret-Token", "k")
				q.Header.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64))
				answer, err := wiretest.HTTP(t, socket).Do(q)
				if err != nil {
					t.Fatal(err)
				}
				defer answer.Body.Close()
				if ids := env.PendingIDs(); answer.StatusCode != http.StatusNotFound || !slices.Equal(ids, []permissions.ID{r.ID}) {
					t.Errorf("%d, and pending are %v", answer.StatusCode, ids)
				}
			})
		}
	}
}
