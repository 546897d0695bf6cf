package admin_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// Who calls, in the order of the columns below. The account is this process's own each time.
const (
	stranger  = iota // no person has the account
	pretender        // nor is the key that it presents the key
	agent            // nor does an agent's token say anything here
	person           // the account is a person's, who was not asked
	asked            // the account is a person's, who was asked
	operator         // it presents the key
	principals
)

// matrix is what each of them gets at each route. A route that is not here fails the test, and so does a row without one.
// What a person may do with whom they may not see is answered as if it were not there.
var matrix = map[string][principals]int{
	"GET /healthz":                     {200, 200, 200, 200, 200, 200},
	"GET /readyz":                      {200, 200, 200, 200, 200, 200},
	"GET /metrics":                     {200, 200, 200, 200, 200, 200},
	"GET /openapi.json":                {200, 200, 200, 200, 200, 200},
	"GET /v1/whoami":                   {403, 403, 403, 200, 200, 200},
	"GET /v1/inbox":                    {403, 403, 403, 200, 200, 200},
	"GET /v1/events":                   {403, 403, 403, 200, 200, 200},
	"GET /v1/requests":                 {403, 403, 403, 200, 200, 200},
	"GET /v1/requests/{id}":            {403, 403, 403, 404, 200, 200},
	"POST /v1/requests/{id}/decision":  {403, 403, 403, 403, 200, 200},
	"POST /v1/requests/{id}/cancel":    {403, 403, 403, 404, 200, 200},
	"POST /v1/requests/{id}/void":      {403, 403, 403, 404, 409, 409}, // it was not approved
	"GET /v1/grants":                   {403, 403, 403, 200, 200, 200},
	"POST /v1/grants":                  {403, 403, 403, 403, 403, 404}, // there is no such request
	"GET /v1/history":                  {403, 403, 403, 200, 200, 200},
	"DELETE /v1/grants/{id}":           {403, 403, 403, 404, 404, 404}, // there is none
	"GET /v1/sessions":                 {403, 403, 403, 200, 200, 200},
	"GET /v1/sessions/{id}":            {403, 403, 403, 404, 404, 404}, // there is none
	"GET /v1/sessions/{id}/executions": {403, 403, 403, 404, 404, 404}, // there is none
	"GET /v1/sessions/{id}/artifacts":  {403, 403, 403, 404, 404, 404}, // there is none
	"POST /v1/sessions/{id}/debug":     {403, 403, 403, 404, 404, 404}, // there is none
	"GET /v1/health":                   {403, 403, 403, 200, 200, 200},
	"GET /v1/status":                   {403, 403, 403, 200, 200, 200},
	"POST /v1/shutdown":                {403, 403, 403, 403, 403, 200},
	"POST /v1/stop-all":                {403, 403, 403, 200, 200, 200},
	"POST /v1/resume":                  {403, 403, 403, 200, 200, 200},
	"POST /v1/agents/{name}/stop":      {403, 403, 403, 404, 404, 404}, // there is none
	"POST /v1/agents/{name}/quiet":     {403, 403, 403, 404, 404, 404},
	"POST /v1/agents/{name}/trust":     {403, 403, 403, 404, 404, 404},
	"POST /v1/agents/{name}/resume":    {403, 403, 403, 404, 404, 404},
	"GET /v1/people":                   {403, 403, 403, 403, 403, 200},
	"GET /v1/audit":                    {403, 403, 403, 403, 403, 200},
	"GET /v1/audit/verify":             {403, 403, 403, 403, 403, 200},
	"GET /v1/tokens":                   {403, 403, 403, 403, 403, 200},
	"POST /v1/tokens":                  {403, 403, 403, 403, 403, 200},
	"DELETE /v1/tokens/{id}":           {403, 403, 403, 403, 403, 404}, // there is none
	"POST /v1/pairings":                {403, 403, 403, 403, 403, 200},
	"GET /v1/pairings/{code}":          {403, 403, 403, 403, 403, 410}, // there is none
	"POST /v1/pairings/{code}":         {403, 403, 403, 403, 403, 200},
	"DELETE /v1/pairings/{code}":       {403, 403, 403, 403, 403, 200},
	"DELETE /v1/people/{name}/pairing": {403, 403, 403, 403, 403, 200},
	"POST /v1/people/{name}/lock":      {403, 403, 403, 200, 200, 200},
	"DELETE /v1/people/{name}/lock":    {403, 403, 403, 200, 200, 200},
	"POST /v1/away":                    {403, 403, 403, 200, 200, 200},
	"DELETE /v1/away":                  {403, 403, 403, 200, 200, 200},
	"POST /v1/senders/{account}/pair":  {403, 403, 403, 200, 200, 200},
	"DELETE /v1/senders/{account}":     {403, 403, 403, 200, 200, 200},
	"POST /v1/messages":                {403, 403, 403, 409, 409, 409}, // there is no agent
	"POST /v1/orders":                  {403, 403, 403, 409, 409, 409},
	"POST /v1/agents/{name}/use":       {403, 403, 403, 409, 409, 409},
	"GET /v1/agents":                   {403, 403, 403, 409, 409, 409},
	"GET /v1/suspended":                {403, 403, 403, 403, 403, 200},
	"POST /v1/reinstate":               {403, 403, 403, 403, 403, 200},
}

// bodies are what the routes that read one are sent.
var bodies = map[string]string{
	"POST /v1/requests/{id}/decision": `{"answer":"deny"}`,
	"POST /v1/grants":                 `{"request":"01J0","allow":["run ls"],"in":"/srv"}`,
	"POST /v1/tokens":                 `{"name":"new"}`,
	"POST /v1/sessions/{id}/debug":    `{"debug":true}`,
	"POST /v1/pairings":               `{"name":"sam","via":"telegram"}`,
	"POST /v1/pairings/{code}":        `{"address":"7"}`,
	"POST /v1/reinstate":              `{"names":["fay/telegram"]}`,
	"POST /v1/away":                   `{"until":"2026-11-30T00:00:00Z","to":"sam"}`,
	"POST /v1/agents/{name}/quiet":    `{"for":"1h"}`,
	"POST /v1/agents/{name}/trust":    `{"for":"30m"}`,
	"POST /v1/messages":               `{"text":"hello","key":"1"}`,
	"POST /v1/senders/{account}/pair": `{"name":"sam"}`,
	"POST /v1/orders":                 `{"order":"stop","key":"1"}`,
	"POST /v1/people/{name}/lock":     `{"since":"2026-11-21T14:00:00Z"}`,
}

// TestEveryRouteHasARowAndKeepsToIt gives each call an env of its own, with one request that fay is asked.
func TestEveryRouteHasARowAndKeepsToIt(t *testing.T) {
	metrics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	routes := admin.New(admin.Options{Metrics: metrics, Log: wiretest.Quiet}, &wholeEnv{&pairingEnv{Env: wiretest.NewEnv(t)}}).Routes()
	for route := range matrix {
		if !slices.Contains(routes, route) {
			t.Errorf("%s has a row and is not there", route)
		}
	}
	for _, route := range routes {
		want, listed := matrix[route]
		if !listed {
			t.Errorf("%s has no row in the matrix: say there who may call it", route)
		}
		for who, status := range want {
			t.Run(fmt.Sprintf("A3/%s, principal %d", route, who), func(t *testing.T) {
				if got := callAs(t, route, who, metrics); got != status {
					t.Errorf("%d, want %d", got, status)
				}
			})
		}
	}
}

func callAs(t *testing.T, route string, who int, metrics http.Handler) int {
	t.Helper()
	socket, env := wiretest.Socket(t), &wholeEnv{&pairingEnv{Env: wiretest.NewEnv(t)}}
	switch who {
	case stranger, pretender, agent:
		env.GiveAccount("")
	case person:
		env.GiveAccount("kim")
	}
	r := put(t, env.Env, wiretest.Question(rand.Text()))
	c := admin.New(admin.Options{
		Socket: socket, Key: key, Metrics: metrics, Stop: func(string) {}, Log: wiretest.Quiet,
	}, env)
	if err := c.Listen(); err != nil {
		t.Fatal(err)
	}
	stop := wiretest.Run(t, c.Run)
	defer stop()
	method, path, _ := strings.Cut(route, " ")
	path = strings.NewReplacer("/requests/{id}", "/requests/"+string(r.ID), "{id}", "none", "{code}", "none", "{name}", "sam").Replace(path)
	ctx, done := context.WithCancel(t.Context())
	defer done()
	call, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(bodies[route]))
	if err != nil {
		t.Fatal(err)
	}
	if bodies[route] != "" {
		call.Header.Set("Content-Type", "application/json")
	} else {
		call.Body, call.ContentLength = http.NoBody, 0
	}
	switch who {
	case pretender:
		call.Header.Set("Authorization", "Bearer not the key")
	case agent:
		call.Header.Set("Authorization", "Bearer "+string(permissions.NewSecret()))
	case operator:
		call.Header.Set("Authorization", "Bearer "+key)
	}
	answer, err := wiretest.HTTP(t, socket).Do(call)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode // what follows may go on for ever
}

// wholeEnv pairs only for the operator, as the engine does.
type wholeEnv struct{ *pairingEnv }

func only(id connectors.Identity) error {
	if !id.Operator {
		return permissions.OperatorOnly()
	}
	return nil
}

func (o *wholeEnv) Guest(ctx context.Context, id connectors.Identity, code string) (connectors.PairingCandidate, error) {
	if err := only(id); err != nil {
		return connectors.PairingCandidate{}, err
	}
	return o.pairingEnv.Guest(ctx, id, code)
}

func (o *wholeEnv) Pair(
	ctx context.Context, id connectors.Identity, code, address string,
) (now, was permissions.Pairing, err error) {
	if err := only(id); err != nil {
		return now, was, err
	}
	return o.pairingEnv.Pair(ctx, id, code, address)
}

func (o *wholeEnv) Dismiss(_ context.Context, id connectors.Identity, _ string) error {
	return only(id)
}

func (o *wholeEnv) Suspended(_ context.Context, id connectors.Identity) (permissions.Suspended, error) {
	return permissions.Suspended{}, only(id)
}

func (o *wholeEnv) Reinstate(_ context.Context, id connectors.Identity, _ []string) (permissions.Suspended, error) {
	return permissions.Suspended{}, only(id)
}

func (o *wholeEnv) Unpair(ctx context.Context, id connectors.Identity, name, via string) (permissions.Pairing, error) {
	if err := only(id); err != nil {
		return permissions.Pairing{}, err
	}
	return o.pairingEnv.Unpair(ctx, id, name, via)
}

func (o *wholeEnv) Lock(_ context.Context, id connectors.Identity, name string, since time.Time) (permissions.Locked, error) {
	by, err := o.Who(id)
	if err != nil {
		return permissions.Locked{}, err
	}
	return permissions.Locked{
		Lock:   permissions.Lock{Person: name, Accounts: []string{"uid:7"}, At: since, By: by, Via: id.Via},
		Voided: []permissions.Request{{ID: "V"}}, Used: []permissions.Request{{ID: "U"}},
		Revoked: []permissions.Revoked{{Grant: permissions.Grant{ID: "G"}, Ran: []permissions.Request{{ID: "R"}}}},
	}, nil
}

func (o *wholeEnv) Unlock(_ context.Context, id connectors.Identity, name string) (permissions.Lock, bool, error) {
	by, err := o.Who(id)
	return permissions.Lock{Person: name, Unlocking: []string{by}}, id.Operator, err
}

func (o *wholeEnv) SetAway(_ context.Context, id connectors.Identity, _ time.Time, _ string) error {
	_, err := o.Who(id)
	return err
}

func (o *wholeEnv) PairSender(
	_ context.Context, id connectors.Identity, _, _ string,
) (s permissions.UnknownSender, paired bool, err error) {
	_, err = o.Who(id)
	return s, false, err
}

func (o *wholeEnv) WithdrawPairing(_ context.Context, id connectors.Identity, _, _ string) error {
	_, err := o.Who(id)
	return err
}

func (o *wholeEnv) Locks() []permissions.Lock { return []permissions.Lock{{Person: "sam", By: "fay"}} }
