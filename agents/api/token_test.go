package api_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

var operator = connectors.Identity{Operator: true}

// newToken creates a token.
func newToken(t *testing.T, env *wiretest.Env, name string, expires time.Duration) string {
	t.Helper()
	secret, _, err := env.CreateToken(t.Context(), operator, name, "fay", expires)
	if err != nil {
		t.Fatal(err)
	}
	return string(secret)
}

// present makes one call with those Authorization headers.
func present(t *testing.T, c *http.Client, method, path, body string, authorization ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header["Authorization"] = authorization
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
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

// A presented token determines the caller on every route. An invalid one is refused and does not fall back to the account.
func TestATokenSaysWhoAsksOrNobodyDoes(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	asked := make(chan permissions.Caller, 100)
	env.Asks = func(c permissions.Caller, _ permissions.Request) { asked <- c }
	serve(t, socket, env)
	c := wiretest.HTTP(t, socket)

	valid, revoked := newToken(t, env, "deploy", time.Hour), newToken(t, env, "gone", 0)
	if _, err := env.RevokeToken(t.Context(), operator, "gone"); err != nil {
		t.Fatal(err)
	}
	over := newToken(t, env, "over", time.Nanosecond)
	own := permissions.CallerUID(os.Getuid())
	body := `{"kind":"permission","permissions":["@network"],"reason":"docs"}`
	_, w := ask(t, socket, body)
	if got := <-asked; got != own {
		t.Errorf("without a token %+v asks", got)
	}

	if answer, text := present(t, c, "POST", "/v1/requests", body, "Bearer "+valid); answer.StatusCode != 200 {
		t.Errorf("a valid token: %d %s", answer.StatusCode, text)
	}
	if got, want := <-asked, (permissions.Caller{Name: "token:deploy", UID: os.Getuid()}); got != want {
		t.Errorf("with a token %+v asks, want %+v", got, want)
	}
	if answer, _ := present(t, c, "POST", "/v1/requests", body, "bearer "+valid); answer.StatusCode != 200 {
		t.Errorf("a scheme has no case: %d", answer.StatusCode)
	}
	<-asked

	before := env.PendingIDs()
	for what, presented := range map[string][]string{
		"revoked":          {"Bearer " + revoked},
		"over":             {"Bearer " + over},
		"unknown":          {"Bearer " + string(permissions.NewSecret())},
		"cut short":        {"Bearer " + valid[:len(valid)-1]},
		"with more":        {"Bearer " + valid + "A"},
		"of another kind":  {"Bearer dcd_m_" + strings.TrimPrefix(valid, "dcd_a_")},
		"without a kind":   {"Bearer " + strings.TrimPrefix(valid, "dcd_a_")},
		"spaces":           {"Bearer  " + valid},
		"garbage":          {"Bearer ' OR 1=1; --"},
		"no secret":        {"Bearer"},
		"an empty secret":  {"Bearer "},
		"an empty header":  {""},
		"the secret alone": {valid},
		"basic":            {"Basic " + valid},
		"digest":           {"Digest username=x"},
		"twice":            {"Bearer " + valid, "Bearer " + valid},
		"two kinds":        {"Bearer " + valid, "Basic eA=="},
	} {
		t.Run("G2/"+what, func(t *testing.T) {
			for route, path := range map[string]string{
				"POST /v1/requests":             "/v1/requests",
				"GET /v1/requests/{id}":         "/v1/requests/" + string(w.ID),
				"POST /v1/requests/{id}/cancel": "/v1/requests/" + string(w.ID) + "/cancel",
			} {
				method, _, _ := strings.Cut(route, " ")
				sent := ""
				if path == "/v1/requests" {
					sent = body
				}
				answer, text := present(t, c, method, path, sent, presented...)
				if answer.StatusCode != http.StatusUnauthorized || answer.Header.Get("WWW-Authenticate") != "Bearer" ||
					!strings.Contains(text, `"code":"token"`) || strings.Contains(text, valid[6:20]) {
					t.Errorf("%s at %s: %d %s", what, route, answer.StatusCode, text)
				}
			}
		})
	}
	if len(asked) != 0 {
		t.Errorf("somebody asked without having proven anything: %+v", <-asked)
	}
	if after := env.PendingIDs(); !slices.Equal(before, after) {
		t.Errorf("pending: %v, before %v", after, before)
	}
	// Another caller's request is unknown to this one.
	if answer, _ := present(t, c, "GET", "/v1/requests/"+string(w.ID), "", "Bearer "+valid); answer.StatusCode != 404 {
		t.Errorf("the token reads what the account asked: %d", answer.StatusCode)
	}
	env.Fail(permissions.Broken("make room"))
	if answer, _ := present(t, c, "GET", "/v1/requests/"+string(w.ID), "", "Bearer "+valid); answer.StatusCode != 503 {
		t.Errorf("a token that cannot be looked up: %d", answer.StatusCode)
	}
}

func TestTheClientPresentsWhatItsFileHolds(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	asked := make(chan permissions.Caller, 100)
	env.Asks = func(c permissions.Caller, _ permissions.Request) { asked <- c }
	serve(t, socket, env)
	first, second := newToken(t, env, "first", 0), newToken(t, env, "second", 0)
	file := filepath.Join(t.TempDir(), "token")
	hold := func(text string) {
		if err := errors.Join(os.WriteFile(file+".new", []byte(text), 0o600), os.Rename(file+".new", file)); err != nil {
			t.Fatal(err)
		}
	}
	hold(first + "\n")
	c := newClient(t, socket, file)
	told, done := background(t.Context(), c, wiretest.Question("x"))
	w := <-told
	if got := <-asked; got.Name != "token:first" {
		t.Errorf("%+v asks", got)
	}
	<-asked // it waits, by a call of its own
	// The token is replaced while the call waits, and the next call presents the new one.
	hold(second + "\r\n")
	if _, err := c.Get(t.Context(), w.ID, 0); !isRefusal(err, permissions.CodeUnknown) {
		t.Errorf("the second token reads what the first asked: %v", err)
	}
	hold(first)
	if s, err := c.Cancel(t.Context(), w.ID); err != nil || s.Request.State != permissions.Cancelled {
		t.Errorf("withdrawn: %v, %v", s.Request.State, err)
	}
	if got := <-done; got.err != nil || got.r.State != permissions.Cancelled {
		t.Errorf("%v, %v", got.r.State, got.err)
	}
}

// A token file may be empty for a moment while it is replaced; a waiting call goes on. Here the file is a pipe, whose writer
// knows when it is read.
func TestATokenFileThatIsBeingReplacedEndsNoWait(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	file := filepath.Join(t.TempDir(), "token")
	good, pipe := file+".good", file+".pipe"
	secret := []byte(newToken(t, env, "deploy", 0))
	if err := errors.Join(
		os.WriteFile(file, secret, 0o600), os.WriteFile(good, secret, 0o600), unix.Mkfifo(pipe, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, socket, file)
	told, done := background(t.Context(), c, wiretest.Question("x"))
	w := <-told
	if err := os.Rename(pipe, file); err != nil {
		t.Fatal(err)
	}
	empty, err := os.OpenFile(file, os.O_WRONLY, 0) // returns when the file is read
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(good, file), empty.Close()); err != nil {
		t.Fatal(err)
	}
	decide(t, env, w.ID, permissions.Deny)
	if got := <-done; got.err != nil || got.r.State != permissions.Denied {
		t.Errorf("%v, %v", got.r.State, got.err)
	}
}

func isRefusal(err error, code permissions.Code) bool {
	return err != nil && wire.ProblemOf(err).Code == string(code)
}

func TestATokenFileThatIsNoneIsAnError(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	asked := make(chan permissions.Caller, 10)
	env.Asks = func(c permissions.Caller, _ permissions.Request) { asked <- c }
	serve(t, socket, env)
	secret := newToken(t, env, "deploy", 0)
	folder := t.TempDir()
	for name, held := range map[string]string{
		"empty": "", "two": secret + "\n" + secret + "\n", "prose": "the token is " + secret, "other": "dcd_m_" + secret[6:],
		"long": strings.Repeat(secret, 1000), "variable": "TOKEN=" + secret,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(held), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, says := range map[string]string{
		"empty": "there is no token in it", "two": "there is no token in it", "prose": "there is no token in it",
		"other": "there is no token in it", "long": "there is no token in it", "variable": "there is no token in it",
		"missing": "no such file", ".": "not a regular file",
	} {
		file := filepath.Join(folder, name)
		_, err := newClient(t, socket, file).Put(t.Context(), wiretest.Question("x"))
		if err == nil || !strings.Contains(err.Error(), "read the token file "+file+": ") ||
			!strings.Contains(err.Error(), says) || strings.Contains(err.Error(), secret[6:20]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(asked) != 0 {
		t.Error("asked without the token")
	}
}

// lines is a log whose lines are received from a channel.
type lines struct{ text chan string }

func (l lines) Write(b []byte) (int, error) {
	l.text <- string(b)
	return len(b), nil
}

func TestATokenIsNotLogged(t *testing.T) {
	t.Run("G3/an agent's token", func(t *testing.T) {
		socket, env := wiretest.Socket(t), &leaky{Env: wiretest.NewEnv(t)}
		log := lines{text: make(chan string, 100)}
		s := api.New(api.Options{Requests: env, Socket: socket, Log: slog.New(slog.NewTextHandler(log, nil))})
		if err := s.Listen(); err != nil {
			t.Fatal(err)
		}
		wiretest.Run(t, s.Run)
		secret := string(permissions.NewSecret())
		answer, text := present(t, wiretest.HTTP(t, socket), "GET", "/v1/requests/x", "", "Bearer "+secret)
		if answer.StatusCode != http.StatusInternalServerError || strings.Contains(text, secret) {
			t.Errorf("%d %s", answer.StatusCode, text)
		}
		if line := <-log.text; strings.Contains(line, secret) || !strings.Contains(line, "a call could not be answered") {
			t.Errorf("logged %s", line)
		}
	})
}

// leaky is an env whose errors contain secrets.
type leaky struct{ *wiretest.Env }

func (*leaky) Prove(_ context.Context, s permissions.Secret, _ int) (permissions.Caller, error) {
	return permissions.Caller{}, &unfit{s}
}

type unfit struct{ what permissions.Secret }

func (u *unfit) Error() string { return "look up " + u.what.String() }
