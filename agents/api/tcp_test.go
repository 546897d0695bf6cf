package api_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// serveTCP serves an env over TCP with these options, on a free port.
func serveTCP(t *testing.T, env *wiretest.Env, o api.Options) string {
	t.Helper()
	if o.Log == nil {
		o.Log = wiretest.Quiet
	}
	o.Requests, o.Socket, o.TCP.Address = env, wiretest.Socket(t), "127.0.0.1:0"
	s := api.New(o)
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	wiretest.Run(t, s.Run)
	return s.Address().String()
}

// get makes a call with that host and token, and returns the response.
func get(t *testing.T, c *http.Client, url, host, token string, more ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

func TestTheHostsOfAListenerAreThoseThatWereNamed(t *testing.T) {
	env := wiretest.NewEnv(t)
	token := newToken(t, env, "deploy", 0)
	certFile, keyFile, trust := wiretest.Certificate(t, t.TempDir(), "daycared.example", "*.agents.example", "192.0.2.7")
	secure := serveTCP(t, env, api.Options{TCP: &api.TCP{CertFile: certFile, KeyFile: keyFile}})
	proxied := serveTCP(t, env, api.Options{TCP: &api.TCP{BehindProxy: true, Hosts: []string{"public.example", "2001:db8::1"}}})
	for _, try := range []struct {
		client *http.Client
		url    string
		hosts  map[string]int
	}{
		{wiretest.Trusting(t, trust, "daycared.example"), "https://" + secure, map[string]int{
			"localhost:7801": 200, "127.0.0.1": 200, "[::1]:7801": 200, "daycared.example": 200, "DAYCARED.example:443": 200,
			"x.agents.example": 200, "192.0.2.7": 200, "daycared": 421, "agents.example": 421, "a.b.agents.example": 421,
			"*.agents.example": 421, "daycared.example.evil.example": 421, "public.example": 421, "192.0.2.8": 421,
		}},
		{wiretest.Trusting(t, nil, ""), "http://" + proxied, map[string]int{
			"public.example": 200, "Public.Example:8443": 200, "[2001:db8::1]": 200, "localhost": 200, "daycared.example": 421,
			"evil.example": 421, "0.0.0.0": 421,
		}},
	} {
		for host, want := range try.hosts {
			if answer, text := get(t, try.client, try.url+"/openapi.json", host, token); answer.StatusCode != want {
				t.Errorf("host %s: %d %.100s, want %d", host, answer.StatusCode, text, want)
			}
			if answer, _ := get(t, try.client, try.url+"/v1/requests/x", host, ""); answer.StatusCode != 401 && want == 200 {
				t.Errorf("host %s without a token: %d", host, answer.StatusCode)
			}
		}
	}
	if answer, _ := get(t, wiretest.Trusting(t, nil, ""), "http://"+secure+"/healthz", "localhost", ""); answer.StatusCode != 400 {
		t.Errorf("in the clear: %d", answer.StatusCode)
	}
}

// A proxy's claims about the client are ignored, and nobody is admitted through it without a token.
func TestAProxysClaimsAreIgnored(t *testing.T) {
	env := wiretest.NewEnv(t)
	callers := make(chan permissions.Caller, 1)
	whoami := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { callers <- api.CallerOf(r.Context()) })
	at := "http://" + serveTCP(t, env, api.Options{
		Mounts: map[string]http.Handler{"/who": whoami}, TCP: &api.TCP{BehindProxy: true, AllowAnonymous: func() bool { return true }},
	})
	c := wiretest.Trusting(t, nil, "")
	claims := []string{"X-Forwarded-For", "203.0.113.9", "X-Forwarded-User", "root", "Forwarded", "for=203.0.113.9"}
	if answer, _ := get(t, c, at+"/who", "localhost", newToken(t, env, "deploy", 0), claims...); answer.StatusCode != 200 {
		t.Fatalf("with a token: %d", answer.StatusCode)
	}
	if got := <-callers; got != (permissions.Caller{Name: "token:deploy", UID: permissions.AnyUID}) {
		t.Errorf("%+v calls", got)
	}
	if answer, _ := get(t, c, at+"/who", "localhost", "", claims...); answer.StatusCode != 401 {
		t.Errorf("without a token: %d", answer.StatusCode)
	}
}

func TestARenewedCertificateIsTakenAndABrokenOneIsNot(t *testing.T) {
	env, folder := wiretest.NewEnv(t), t.TempDir()
	certFile, keyFile, first := wiretest.Certificate(t, folder, "first.example")
	log := lines{text: make(chan string, 100)}
	at := "https://" + serveTCP(t, env, api.Options{
		TCP: &api.TCP{CertFile: certFile, KeyFile: keyFile}, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if answer, _ := get(t, wiretest.Trusting(t, first, "first.example"), at+"/healthz", "first.example", ""); answer.StatusCode != 200 {
		t.Fatalf("at first: %d", answer.StatusCode)
	}
	later := func(file string, by time.Duration) {
		if err := os.Chtimes(file, time.Time{}, time.Now().Add(by)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(certFile, []byte("half of i"), 0o600); err != nil {
		t.Fatal(err)
	}
	later(certFile, time.Minute)
	if answer, _ := get(t, wiretest.Trusting(t, first, "first.example"), at+"/healthz", "first.example", ""); answer.StatusCode != 200 {
		t.Errorf("with a broken one: %d", answer.StatusCode)
	}
	if line := <-log.text; !strings.Contains(line, "keeping the old one") {
		t.Errorf("logged %s", line)
	}
	_, _, second := wiretest.Certificate(t, folder, "second.example")
	later(certFile, 2*time.Minute)
	c := wiretest.Trusting(t, second, "second.example")
	for host, want := range map[string]int{"second.example": 200, "first.example": 421} {
		if answer, _ := get(t, c, at+"/healthz", host, ""); answer.StatusCode != want {
			t.Errorf("%s, once it is renewed: %d", host, answer.StatusCode)
		}
	}
}

func TestAListenerThatCannotBeOpenedIsAnError(t *testing.T) {
	folder := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for says, o := range map[string]api.TCP{
		"read the certificate": {Address: "127.0.0.1:0", CertFile: filepath.Join(folder, "none"), KeyFile: filepath.Join(folder, "none")},
		"listen for agents":    {Address: taken.Addr().String()},
	} {
		socket := wiretest.Socket(t)
		s := api.New(api.Options{Requests: wiretest.NewEnv(t), Socket: socket, TCP: &o, Log: wiretest.Quiet})
		if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v", o, err)
		}
		if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left behind: %v", err)
		}
	}
}

// Connections are limited per address and in total.
func TestConnectionsOverTCPAreCounted(t *testing.T) {
	t.Run("F3/connections over TCP", func(t *testing.T) {
		at := serveTCP(t, wiretest.NewEnv(t), api.Options{TCP: &api.TCP{PerAddress: 3, Total: 2}})
		dial := func() net.Conn {
			c, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		answered := func(c net.Conn) bool {
			if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				return false
			}
			_, err := c.Read(make([]byte, 1))
			return err == nil
		}
		for range 2 {
			if !answered(dial()) {
				t.Fatal("two connections were not served")
			}
		}
		if answered(dial()) {
			t.Error("a third one was, though there may be two in all")
		}
	})
}
