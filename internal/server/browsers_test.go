package server_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine/wiretest"
)

// said is one header of a call, and the status of its rejection; 0 if it is accepted.
type said struct {
	what   string
	status int
}

// The one table for every listener. Earlier rows are checked first.
var (
	hosts   = []said{{"localhost:1", 0}, {"evil.example", 421}, {"localhost.evil.example:1", 421}}
	origins = []said{{"", 0}, {"http://localhost:2", 403}, {"null", 403}}
	sites   = []said{{"", 0}, {"cross-site", 403}}
	kinds   = []said{{"application/json", 0}, {"text/plain", 415}}
)

// listener is an entrance, with a call that reaches its route.
type listener struct {
	client     *http.Client
	base, path string
	token      string
	fine       int
}

func TestBrowsersAreTurnedAwayAtEveryListener(t *testing.T) {
	env := wiretest.NewEnv(t)
	secret, _, err := env.CreateToken(t.Context(), connectors.Identity{Operator: true}, "deploy", "", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile, trust := wiretest.Certificate(t, t.TempDir(), "daycared.example")
	agents := func(o *api.TCP) (*api.Server, string) {
		socket := wiretest.Socket(t)
		s := api.New(api.Options{Requests: env, Socket: socket, TCP: o, Log: wiretest.Quiet})
		if err := s.Listen(); err != nil {
			t.Fatal(err)
		}
		wiretest.Run(t, s.Run)
		return s, socket
	}
	plain, socket := agents(&api.TCP{Address: "127.0.0.1:0"})
	secure, _ := agents(&api.TCP{Address: "127.0.0.1:0", CertFile: certFile, KeyFile: keyFile})
	deciders := wiretest.Socket(t)
	door := admin.New(admin.Options{Socket: deciders, Key: "k", Log: wiretest.Quiet}, env)
	if err := door.Listen(); err != nil {
		t.Fatal(err)
	}
	wiretest.Run(t, door.Run)

	const ask, decide = "/v1/requests", "/v1/requests/none/decision"
	for name, l := range map[string]listener{
		"agent.sock": {wiretest.HTTP(t, socket), "http://localhost", ask, "", 200},
		"admin.sock": {wiretest.HTTP(t, deciders), "http://localhost", decide, "", 404},
		"TCP":        {wiretest.Trusting(t, nil, ""), "http://" + plain.Address().String(), ask, string(secret), 200},
		"TLS":        {wiretest.Trusting(t, trust, "daycared.example"), "https://" + secure.Address().String(), ask, string(secret), 200},
	} {
		t.Run(name, func(t *testing.T) { everyCombination(t, l) })
	}
}

func everyCombination(t *testing.T, l listener) {
	tried := 0
	for _, host := range hosts {
		for _, origin := range origins {
			for _, site := range sites {
				for _, kind := range kinds {
					want := l.fine
					for _, s := range []said{kind, site, origin, host} {
						if s.status != 0 {
							want = s.status
						}
					}
					tried++
					name := fmt.Sprintf("G1/host %s, origin %s, site %s, %s", host.what, origin.what, site.what, kind.what)
					t.Run(name, func(t *testing.T) {
						got, header := l.send(t, host.what, origin.what, site.what, kind.what)
						if got != want {
							t.Errorf("%d, want %d", got, want)
						}
						for name := range header {
							if strings.HasPrefix(name, "Access-Control-") {
								t.Errorf("answers with %s", name)
							}
						}
					})
				}
			}
		}
	}
	if tried != 36 {
		t.Errorf("%d combinations", tried)
	}
}

// A call with its own target as origin is no browser's, unless it says that it is one.
func TestACallFromItsOwnOrigin(t *testing.T) {
	socket := wiretest.Socket(t)
	s := api.New(api.Options{Requests: wiretest.NewEnv(t), Socket: socket, Log: wiretest.Quiet})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	wiretest.Run(t, s.Run)
	l := listener{wiretest.HTTP(t, socket), "http://localhost", "/v1/requests", "", 200}
	for _, call := range []struct {
		host, origin, site string
		want               int
	}{
		{"localhost:1", "http://localhost:1", "", 200}, {"localhost", "http://localhost", "", 200},
		{"localhost:1", "https://localhost:1", "", 403}, {"localhost:1", "http://localhost", "", 403},
		{"localhost:1", "http://evil.example", "", 403}, {"evil.example", "http://evil.example", "", 421},
		{"localhost:1", "http://localhost:1", "same-origin", 403}, {"localhost:1", "http://localhost:1.evil.example", "", 403},
	} {
		t.Run(fmt.Sprintf("G1/host %s, origin %s, site %s", call.host, call.origin, call.site), func(t *testing.T) {
			if got, _ := l.send(t, call.host, call.origin, call.site, "application/json"); got != call.want {
				t.Errorf("host %q, origin %q, site %q: %d, want %d", call.host, call.origin, call.site, got, call.want)
			}
		})
	}
}

func (l listener) send(t *testing.T, host, origin, site, kind string) (int, http.Header) {
	t.Helper()
	body := `{"kind":"permission","permissions":["@network"],"reason":"docs"}`
	if strings.HasSuffix(l.path, "/decision") {
		body = `{"answer":"allow_once"}`
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.base+l.path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	for name, value := range map[string]string{"Origin": origin, "Sec-Fetch-Site": site, "Content-Type": kind} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if l.token != "" {
		r.Header.Set("Authorization", "Bearer "+l.token)
	}
	answer, err := l.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, answer.Header
}
