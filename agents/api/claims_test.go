package api_test

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// TestACallDeclaresNothingAboutItsCaller: only the socket and the token determine the caller, its rights and its role. Claims in
// a body or query are refused, and those in headers ignored, except that an invalid token is refused too.
func TestACallDeclaresNothingAboutItsCaller(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	type asking struct {
		caller permissions.Caller
		q      permissions.Request
	}
	asked := make(chan asking, 100)
	env.Asks = func(c permissions.Caller, q permissions.Request) { asked <- asking{c, q} }
	serve(t, socket, env)
	c := wiretest.HTTP(t, socket)
	call := func(t *testing.T, query, members string, header http.Header) int {
		t.Helper()
		body := `{"kind":"permission","permissions":["@network"],"reason":"docs","wait":"0s"` + members + `}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v1/requests"+query, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if r.Header = header.Clone(); header == nil {
			r.Header = http.Header{}
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body) // allows the connection to be reused
		return answer.StatusCode
	}
	refused := func(name, query, members string, header http.Header) {
		t.Run("A4/"+name, func(t *testing.T) {
			if status := call(t, query, members, header); status < 400 || status >= 500 || len(asked) > 0 {
				t.Errorf("%d, and %d questions were asked", status, len(asked))
			}
		})
	}
	for _, member := range []string{
		`"caller":"token:deploy"`, `"caller":{"name":"operator","uid":0}`, `"uid":0`, `"operator":true`, `"role":"operator"`,
		`"roles":["operator"]`, `"admin":true`, `"token":"dcd_a_x"`, `"scopes":["always"]`, `"granted":true`, `"grants":["@write:/"]`,
		`"state":"approved"`, `"answer":"allow_once"`, `"decided_by":"fay"`, `"votes":[{"by":"fay","answer":"allow_once"}]`,
		`"asked":["mallory"]`, `"quorum":0`, `"high_risk":false`, `"claimed":false`, `"background":false`, `"foreground":"helper"`,
		`"version":0`, `"digest":"sha256:00"`, `"id":"x","id":"y"`, `"Kind":"pause"`,
	} {
		refused("body "+member, "", ","+member, nil)
	}
	for _, query := range []string{
		"caller=token:deploy", "uid=0", "operator=true", "role=operator", "scope=always", "scopes=always", "as=fay", "token=dcd_a_x",
		"access_token=dcd_a_x", "authorization=Bearer+x", "asked=mallory", "quorum=0",
	} {
		refused("query "+query, "?"+query, "", nil)
	}
	refused("header Authorization: Basic", "", "", http.Header{"Authorization": {"Basic b3BlcmF0b3I6"}})
	refused("header Authorization: Bearer", "", "", http.Header{"Authorization": {"Bearer operator"}})
	own := permissions.CallerUID(os.Getuid())
	for _, header := range []string{
		"X-Forwarded-User: operator", "X-Forwarded-For: 127.0.0.1", "Forwarded: for=127.0.0.1;by=operator", "X-Real-Ip: 127.0.0.1",
		"X-Remote-User: operator", "Remote-User: root", "From: fay", "X-User: fay", "X-Uid: 0", "X-Role: operator", "X-Scopes: always",
		"X-Daycared-Caller: token:deploy", "X-Api-Key: dcd_a_x", "Proxy-Authorization: Bearer x", "Cookie: operator=1",
		"X-Http-Method-Override: DELETE",
	} {
		t.Run("A4/header "+header, func(t *testing.T) {
			name, value, _ := strings.Cut(header, ": ")
			status := call(t, "", "", http.Header{name: {value}})
			if status != http.StatusOK || len(asked) != 1 {
				t.Fatalf("%d, and %d questions were asked", status, len(asked))
			}
			if got := <-asked; got.caller != own || got.q.Widest != (permissions.Scope{}) || got.q.HighRisk || got.q.Claimed {
				t.Errorf("asked by %+v: %+v", got.caller, got.q)
			}
		})
	}
	if ids := env.PendingIDs(); len(ids) == 0 || slices.Contains(ids, "x") {
		t.Errorf("pending: %v", ids)
	}
}
