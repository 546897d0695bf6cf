package api_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// The callers, in the order of the columns below. At the socket each has at least an account; over TCP only a token
// authenticates.
const (
	account      = iota // at the socket, without a token
	accountBad          // at the socket, with an invalid token
	socketOwner         // at the socket, with the token that asked
	socketOther         // at the socket, with another token
	nobody              // over TCP, without a token
	nobodyBad           // over TCP, with an invalid token
	remoteOwner         // over TCP, with the token that asked
	remoteOther         // over TCP, with another token
	anonymous           // over TCP from this machine, without a token, where that is allowed
	anonymousBad        // the same, with an invalid token
	principals
)

// matrix is the status that each caller gets at each route. A route without a row fails the test, and so does a row without a
// route.
var matrix = map[string][principals]int{
	"GET /healthz":                  {200, 200, 200, 200, 200, 200, 200, 200, 200, 200},
	"GET /readyz":                   {200, 401, 200, 200, 401, 401, 200, 200, 401, 401},
	"GET /metrics":                  {200, 401, 200, 200, 401, 401, 200, 200, 401, 401},
	"GET /openapi.json":             {200, 401, 200, 200, 401, 401, 200, 200, 401, 401},
	"POST /v1/requests":             {200, 401, 200, 200, 401, 401, 200, 200, 200, 401},
	"GET /v1/requests/{id}":         {404, 401, 200, 404, 401, 401, 200, 404, 404, 401},
	"POST /v1/requests/{id}/cancel": {404, 401, 200, 404, 401, 401, 200, 404, 404, 401},
	"POST /v1/requests/{id}/answer": {404, 401, 403, 404, 401, 401, 403, 404, 404, 401}, // of a request that grants something
	"POST /v1/recall":               {200, 401, 200, 200, 401, 401, 200, 200, 401, 401},
	"POST /v1/tell":                 {200, 401, 200, 200, 401, 401, 200, 200, 401, 401},
	"/mcp":                          {200, 401, 200, 200, 401, 401, 200, 200, 200, 401},
	"GET /v1/events":                {200, 401, 200, 200, 401, 401, 200, 200, 200, 401}, // and the events must be permitted
	"POST /hook/{dialect}":          {200, 401, 200, 200, 401, 401, 200, 200, 200, 401},
}

// nowhere are calls that no route answers; unauthenticated callers are not told that.
var nowhere = map[string][principals]int{
	"GET /":                           {404, 401, 404, 404, 401, 401, 404, 404, 404, 401},
	"GET /v1/requests":                {404, 401, 404, 404, 401, 401, 404, 404, 404, 401},
	"POST /v1/requests/{id}/decision": {404, 401, 404, 404, 401, 401, 404, 404, 404, 401},
	"POST /v1/stop-all":               {404, 401, 404, 404, 401, 401, 404, 404, 404, 401},
	"POST /healthz":                   {404, 401, 404, 404, 401, 401, 404, 404, 404, 401},
}

// doors is a server with all routes, at its socket and two TCP listeners.
type doors struct {
	env               *wiretest.Env
	server            *api.Server
	socket            *http.Client
	closed, anonymous string // URL prefixes of the TCP listeners
	owner, other      string
}

func openDoors(t *testing.T) doors {
	t.Helper()
	d := doors{env: wiretest.NewEnv(t)}
	d.owner, d.other = newToken(t, d.env, "deploy", 0), newToken(t, d.env, "other", 0)
	open := func(anonymous bool) (string, string) {
		socket := wiretest.Socket(t)
		d.server = api.New(api.Options{
			Requests: d.env, Socket: socket, Metrics: echo, Log: wiretest.Quiet,
			Mounts: map[string]http.Handler{"/mcp": echo, "GET /v1/events": echo, "POST /hook/{dialect}": echo},
			TCP:    &api.TCP{Address: "127.0.0.1:0", AllowAnonymous: func() bool { return anonymous }},
		})
		if err := d.server.Listen(); err != nil {
			t.Fatal(err)
		}
		wiretest.Run(t, d.server.Run)
		return socket, "http://" + d.server.Address().String()
	}
	_, d.anonymous = open(true)
	socket, closed := open(false)
	d.socket, d.closed = wiretest.HTTP(t, socket), closed
	return d
}

// call makes a call as one of the callers, about a request of the owner's token.
func (d doors) call(t *testing.T, route string, who int) (int, string) {
	t.Helper()
	ended, end := context.WithCancel(t.Context())
	end()
	asked, _ := d.env.Ask(ended, permissions.Caller{Name: "token:deploy", UID: os.Getuid()}, wiretest.Question(rand.Text()))
	method, path, found := strings.Cut(route, " ")
	if !found {
		method, path = http.MethodPost, route
	}
	path = strings.NewReplacer("{id}", string(asked.ID), "{dialect}", "codex").Replace(path)
	body := io.Reader(nil)
	if path == "/v1/requests" && method == http.MethodPost {
		body = strings.NewReader(`{"kind":"permission","permissions":["@network"],"reason":"` + rand.Text() + `"}`)
	}
	if path == "/v1/recall" {
		body = strings.NewReader(`{"session":"s","agent":"x","reason":"keyboard"}`)
	}
	if path == "/v1/tell" {
		body = strings.NewReader(`{"text":"x"}`)
	}
	if strings.HasSuffix(path, "/answer") {
		body = strings.NewReader(`{"answer":"allow_once","digest":"` + asked.Digest.String() + `"}`)
	}
	client, base := d.socket, "http://localhost"
	if who >= nobody {
		client, base = http.DefaultClient, d.closed
	}
	if who >= anonymous {
		base = d.anonymous
	}
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	switch who {
	case accountBad, nobodyBad, anonymousBad:
		r.Header.Set("Authorization", "Bearer "+string(permissions.NewSecret()))
	case socketOwner, remoteOwner:
		r.Header.Set("Authorization", "Bearer "+d.owner)
	case socketOther, remoteOther:
		r.Header.Set("Authorization", "Bearer "+d.other)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestEveryRouteHasARowAndKeepsToIt(t *testing.T) {
	d := openDoors(t)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	routes := d.server.Routes()
	for route := range matrix {
		if !slices.Contains(routes, route) {
			t.Errorf("%s has a row and is not there", route)
		}
	}
	for _, route := range routes {
		if _, listed := matrix[route]; !listed {
			t.Errorf("%s has no row in the matrix: say there who may call it", route)
		}
	}
	for _, table := range []map[string][principals]int{matrix, nowhere} {
		for route, want := range table {
			for who, status := range want {
				t.Run(fmt.Sprintf("A3/%s, principal %d", route, who), func(t *testing.T) {
					got, text := d.call(t, route, who)
					if got != status || (got == 401) != strings.Contains(text, `"code":"token"`) {
						t.Errorf("%d %.120s, want %d", got, text, status)
					}
				})
			}
		}
	}
}

// A TCP caller from this machine may be any of its accounts, whatever the token says.
func TestALoopbackCallerMayBeAnyAccount(t *testing.T) {
	d := openDoors(t)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	callers := make(chan permissions.Caller, 10)
	d.env.Asks = func(c permissions.Caller, _ permissions.Request) { callers <- c }
	for who, want := range map[int]permissions.Caller{
		remoteOwner: {Name: "token:deploy", UID: permissions.AnyUID}, anonymous: {Name: permissions.Anonymous, UID: permissions.AnyUID},
		account: permissions.CallerUID(os.Getuid()),
	} {
		d.call(t, "POST /v1/requests", who)
		if first := <-callers; first.Name != "token:deploy" { // the request that all calls are about
			t.Errorf("%+v asked first", first)
		}
		if got := <-callers; got != want {
			t.Errorf("principal %d is %+v, want %+v", who, got, want)
		}
	}
}
