package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves an env and returns how to stop it.
func serve(t *testing.T, socket string, env api.Requests) (stop func() time.Duration) {
	t.Helper()
	s := api.New(api.Options{Requests: env, Socket: socket, Log: wiretest.Quiet})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	return wiretest.Run(t, s.Run)
}

// newClient is a client of a socket, which presents the token in a file, if one is named.
func newClient(t *testing.T, socket string, tokenFile ...string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Socket: socket, TokenFile: strings.Join(tokenFile, "")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// decide is fay's answer.
func decide(t *testing.T, env *wiretest.Env, id permissions.ID, a permissions.Answer) {
	t.Helper()
	if _, err := env.Decide(id, a, ""); err != nil {
		t.Errorf("decide: %v", err)
	}
}

func ask(t *testing.T, socket, body string) (int, wire.Request) {
	t.Helper()
	status, text := wiretest.Do(t, wiretest.HTTP(t, socket), http.MethodPost, "/v1/requests", "application/json", body)
	var w wire.Request
	if status == http.StatusOK {
		if err := wire.Decode([]byte(text), &w); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	return status, w
}

func TestAQuestionIsOpenedAndReadAndWithdrawn(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	c := newClient(t, socket)

	_, w := ask(t, socket, `{"kind":"permission","permissions":["@network"],"reason":"docs","agent":"deploy-1"}`)
	if w.State != permissions.Pending || w.Caller == "" || !w.Claimed || *w.Agent != "deploy-1" || w.Code != "" {
		t.Fatalf("opened as %+v", w)
	}
	env.Deliver(t, w.ID)
	s, err := c.Get(t.Context(), w.ID, 0)
	if err != nil || s.Request.ID != w.ID || len(s.Copies) != 1 || s.Copies[0].Connector != "telegram" {
		t.Errorf("read as %+v, %v", s, err)
	}
	me := permissions.CallerUID(os.Getuid())
	reading, done := context.WithCancel(t.Context())
	reader := make(chan error, 1) // a reader does not count as a waiting call
	go func() { reader <- env.WaitSettled(reading, time.Time{}, me, w.ID) }()
	q := wiretest.Question("docs")
	q.Agent, q.Claimed, q.Call = "deploy-1", true, "other"
	waiting, leave := context.WithCancel(t.Context())
	joined := make(chan error, 1)
	go func() { _, err := env.Ask(waiting, me, q); joined <- err }()
	wiretest.Eventually(t, "both wait", func() bool { return env.Waiters(w.ID) == 2 }) // the first keeps its place for a while
	if s, err = c.Leave(t.Context(), w.ID, "mine"); err != nil || s.Request.State != permissions.Pending {
		t.Errorf("forgone while another call waits: %v, %v", s.Request.State, err)
	}
	leave()
	done()
	if err := <-joined; !errors.Is(err, context.Canceled) {
		t.Errorf("the other call: %v", err)
	}
	if err := <-reader; err != nil {
		t.Errorf("the reader: %v", err)
	}
	if s, err = c.Leave(t.Context(), w.ID, "mine"); err != nil || s.Request.State != permissions.Cancelled {
		t.Errorf("forgone by the last one: %v, %v", s.Request.State, err)
	}
	var refusal *permissions.Refusal
	if _, err = c.Cancel(t.Context(), w.ID); !errors.As(err, &refusal) || refusal.Code != permissions.CodeSettled {
		t.Errorf("withdrawn twice: %v", err)
	}
	if _, err = c.Get(t.Context(), "01J", 0); !errors.As(err, &refusal) || refusal.Code != permissions.CodeUnknown {
		t.Errorf("unknown: %v", err)
	}
	if _, err = c.Get(t.Context(), w.ID, time.Hour); !errors.As(err, &refusal) || refusal.Code != permissions.CodeInvalid {
		t.Errorf("an hour: %v", err)
	}
}

func TestAnotherAccountsRequestIsUnknown(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, _ := env.Ask(ctx, permissions.CallerUID(4242), wiretest.Question("theirs"))
	c := newClient(t, socket)
	var refusal *permissions.Refusal
	for what, try := range map[string]func() error{
		"read":     func() error { _, err := c.Get(t.Context(), r.ID, 0); return err },
		"wait for": func() error { _, err := c.Get(t.Context(), r.ID, time.Second); return err },
		"withdraw": func() error { _, err := c.Cancel(t.Context(), r.ID); return err },
	} {
		if err := try(); !errors.As(err, &refusal) || refusal.Code != permissions.CodeUnknown {
			t.Errorf("%s another's: %v", what, err)
		}
	}
}

func TestALongPollReturnsWithTheAnswer(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	_, w := ask(t, socket, `{"kind":"permission","permissions":["@network"],"reason":"docs"}`)
	type read struct {
		s   permissions.RequestView
		err error
	}
	answer := make(chan read, 1)
	c := newClient(t, socket)
	go func() {
		s, err := c.Get(context.Background(), w.ID, wire.MaxWait)
		answer <- read{s, err}
	}()
	wiretest.Eventually(t, "somebody waits", func() bool { return env.Waiters(w.ID) == 1 })
	decide(t, env, w.ID, permissions.Allow(permissions.Once))
	if got := <-answer; got.err != nil || got.s.Request.DecidedBy != "fay" {
		t.Errorf("read %+v, %v", got.s.Request, got.err)
	}
}

func TestWhatIsWrongIsRefusedAsAProblem(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	asked := make(chan permissions.Request, 100)
	env.Asks = func(_ permissions.Caller, q permissions.Request) { asked <- q }
	serve(t, socket, env)
	c := wiretest.HTTP(t, socket)
	const good = `{"kind":"permission","permissions":["@network"],"reason":"docs"`
	for _, try := range []struct {
		name, kind, body string
		status           int
	}{
		{"duplicate member", "", good + `,"reason":"other"}`, 400},
		{"wrong case", "", `{"Kind":"permission","permissions":["@network"],"reason":"docs"}`, 422},
		{"wrong case beside", "", good + `,"Key":"k"}`, 422},
		{"unknown member", "", good + `,"approve":true}`, 422},
		{"invalid UTF-8", "", good + ",\"key\":\"\xff\"}", 400},
		{"byte order mark", "", "\xef\xbb\xbf" + good + `}`, 400},
		{"trailing value", "", good + `}{}`, 400},
		{"too deep", "", `{"kind":"tool","tool":"x","input":` + strings.Repeat("[", 16) + strings.Repeat("]", 16) + `}`, 400},
		{"wrong type", "", good + `,"key":7}`, 422},
		{"a number that is none", "", `{"kind":"tool","tool":"x","input":1e999}`, 400},
		{"no kind", "", `{"permissions":["@network"]}`, 422},
		{"null", "", `null`, 422},
		{"no body", "", ``, 400},
		{"too big", "", good + `,"session":"` + strings.Repeat("s", wire.MaxBody) + `"}`, 422},
		{"far too big", "", good + `,"session":"` + strings.Repeat("s", 3<<20) + `"}`, 413},
		{"details too big", "", good + `,"details":"` + strings.Repeat("d", permissions.MaxDetails+1) + `"}`, 422},
		{"form", "application/x-www-form-urlencoded", `kind=permission`, 415},
		{"text", "text/plain", good + `}`, 415},
		{"no reason", "", `{"kind":"permission","permissions":["@network"]}`, 422},
	} {
		kind := try.kind
		if kind == "" {
			kind = "application/json"
		}
		status, text := wiretest.Do(t, c, http.MethodPost, "/v1/requests", kind, try.body)
		var p wire.Problem
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Errorf("%s: %v in %.200s", try.name, err, text)
			continue
		}
		if status != try.status || p.Status != status || p.Code != "invalid" || p.Exit != permissions.ExitUsage ||
			p.Type != "urn:daycared:invalid" || p.Detail == "" || len(p.Detail) > 400 {
			t.Errorf("%s: %d %.300s, want %d", try.name, status, text, try.status)
		}
	}
	for len(asked) > 0 {
		if q := <-asked; q.Validate() == nil {
			t.Errorf("asked: %+v", q)
		}
	}
	if status, text := wiretest.Do(t, c, http.MethodGet, "/v1/requests/x?wiat=1s", "", ""); status != 422 {
		t.Errorf("a misspelled parameter: %d %s", status, text)
	}
	if status, text := wiretest.Do(t, c, http.MethodGet, "/openapi.json", "", ""); status != 200 ||
		!strings.Contains(text, `"openapi":"3.1.0"`) || !strings.Contains(text, "/v1/requests/{id}/cancel") {
		t.Errorf("description: %d %.200s", status, text)
	}
}

func TestLargeDetailsAreTaken(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	details := strings.Repeat(`\n`, permissions.MaxDetails)
	status, w := ask(t, socket, `{"kind":"permission","permissions":["@network"],"reason":"docs","details":"`+details+`"}`)
	if status != 200 || len(*w.Details) != permissions.MaxDetails {
		t.Errorf("1 MiB of line ends: %d", status)
	}
}

func TestTheLimitSaysWhenToComeBack(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	env.Configure(func(s *engine.Settings) { s.Limits.PendingPerCaller = 1 })
	serve(t, socket, env)
	ask(t, socket, `{"kind":"permission","permissions":["@network"],"reason":"one"}`)
	_, err := newClient(t, socket).Put(t.Context(), wiretest.Question("two"))
	var refusal *permissions.Refusal
	if !errors.As(err, &refusal) || *refusal != *permissions.Limit(10*time.Second, "pending_per_caller") {
		t.Errorf("one too many: %+v", err)
	}
}

func TestABrokenStoreIsNotReady(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	c := newClient(t, socket)
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	env.Fail(permissions.Broken("make room"))
	var refusal *permissions.Refusal
	if err := c.Ready(t.Context()); !errors.As(err, &refusal) || refusal.Code != permissions.CodeBroken {
		t.Errorf("not ready: %v", err)
	}
	if _, err := c.Put(t.Context(), wiretest.Question("x")); !errors.As(err, &refusal) {
		t.Errorf("asked: %v", err)
	}
}

func TestListenOrRunSaysWhatIsWrongWithTheSocket(t *testing.T) {
	socket := wiretest.Socket(t)
	serve(t, socket, wiretest.NewEnv(t))
	second := api.New(api.Options{Requests: wiretest.NewEnv(t), Socket: socket, Log: wiretest.Quiet})
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another daemon serves here") {
		t.Errorf("a second daemon: %v", err)
	}
}

// A cancelled call's request is withdrawn after the given delay. An invalid delay withdraws nothing.
func TestACancelledCallIsWithdrawnLater(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	c := newClient(t, socket)
	_, w := ask(t, socket, `{"kind":"permission","permissions":["@network"],"reason":"docs"}`)
	for _, after := range []time.Duration{-time.Second, 2 * time.Hour} {
		if _, err := c.CancelAfter(t.Context(), w.ID, after); permissions.CodeOf(err) != permissions.CodeInvalid {
			t.Errorf("after %s: %v", after, err)
		}
	}
	if r, err := c.CancelAfter(t.Context(), w.ID, time.Minute); err != nil || r.Request.State != permissions.Pending {
		t.Errorf("%s, %v", r.Request.State, err)
	}
	kept, err := env.Store.Waits(t.Context())
	if err != nil || len(kept) != 1 || kept[0].Request != w.ID || time.Until(kept[0].Until).Round(time.Minute) != time.Minute {
		t.Errorf("it stands until %+v, %v", kept, err)
	}
}

// TestAProcessWhoseTimeIsOverIsForgotten: F3/a process that declares a short time, again and again under new names, fills the store no
// more than one that stays.
func TestAProcessWhoseTimeIsOverIsForgotten(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	body := strings.NewReader(`{"kind":"permission","permissions":["@network"],"reason":"docs","wait":"0s"}`)
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v1/requests", body)
	if err != nil {
		t.Fatal(err)
	}
	q.Header = http.Header{"Content-Type": {"application/json"}, "Daycared-Call": {"c"}, "Daycared-Stays": {"2100ms"}}
	answer, err := wiretest.HTTP(t, socket).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	stored := func() int {
		kept, err := env.Store.Waits(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(kept)
	}
	if n := stored(); n != 1 {
		t.Fatalf("%d are stored at first", n)
	}
	wiretest.Eventually(t, "it is forgotten", func() bool { return stored() == 0 })
	if pending := env.PendingIDs(); len(pending) != 1 {
		t.Errorf("%v are pending", pending)
	}
}

// TestTheProcessesOfOneCallerAreBounded: F3/a process that asks the same under ever new names fills neither the store nor the list of
// processes that are checked.
func TestTheProcessesOfOneCallerAreBounded(t *testing.T) {
	const most, more = 1000, 10
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	c := wiretest.HTTP(t, socket)
	for i := range most + more {
		body := strings.NewReader(`{"kind":"permission","permissions":["@network"],"reason":"docs","wait":"0s"}`)
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v1/requests", body)
		if err != nil {
			t.Fatal(err)
		}
		q.Header = http.Header{"Content-Type": {"application/json"}, "Daycared-Call": {fmt.Sprintf("c%d", i)}, "Daycared-Stays": {"10h"}}
		answer, err := c.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		if _ = answer.Body.Close(); answer.StatusCode != http.StatusOK {
			t.Fatalf("call %d: %s", i, answer.Status)
		}
	}
	if kept, err := env.Store.Waits(t.Context()); err != nil || len(kept) != most {
		t.Errorf("%d are stored, %v", len(kept), err)
	}
}

// asksAs asks about a tag from this process, under a call's name, and stays for a time.
func asksAs(t *testing.T, c *http.Client, call, tag, stays string) {
	t.Helper()
	body := strings.NewReader(`{"kind":"permission","permissions":["` + tag + `"],"reason":"docs","wait":"0s"}`)
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v1/requests", body)
	if err != nil {
		t.Fatal(err)
	}
	q.Header = http.Header{"Content-Type": {"Application/JSON"}, "Daycared-Call": {call}, "Daycared-Stays": {stays}}
	answer, err := c.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	if _ = answer.Body.Close(); answer.StatusCode != http.StatusOK {
		t.Fatalf("%s asks about %s: %s", call, tag, answer.Status)
	}
}

// TestACallThatAsksSomethingElseIsStoredOnce: F3/one name of a call for many requests.
func TestACallThatAsksSomethingElseIsStoredOnce(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	c := wiretest.HTTP(t, socket)
	for _, tag := range []string{"@network", "@workspace", "@events"} {
		asksAs(t, c, "c", tag, "10h")
	}
	kept, err := env.Store.Waits(t.Context())
	if err != nil || len(kept) != 1 {
		t.Errorf("%d are stored, %v", len(kept), err)
	}
	if pending := env.PendingIDs(); len(pending) != 3 || len(kept) == 1 && kept[0].Request != pending[2] {
		t.Errorf("%v wait, and %v is pending", kept, pending)
	}
}

// pairing holds the first call that forgets a process until another comes.
type pairing struct {
	*wiretest.Env
	first, both chan struct{}
	once        *sync.Once
}

func (p pairing) KeepProcess(ctx context.Context, c permissions.Caller, w permissions.Wait) error {
	if w.PID == 0 {
		select {
		case p.first <- struct{}{}:
			<-p.both
		case <-p.both:
		default:
			p.once.Do(func() { close(p.both) })
		}
	}
	return p.Env.KeepProcess(ctx, c, w)
}

// TestProcessesAreForgottenTogether: F3/a caller whose many processes end keeps nobody waiting for one commit of the store each.
func TestProcessesAreForgottenTogether(t *testing.T) {
	socket, env := wiretest.Socket(t), pairing{wiretest.NewEnv(t), make(chan struct{}, 1), make(chan struct{}), &sync.Once{}}
	serve(t, socket, env)
	c := wiretest.HTTP(t, socket)
	for i := range 8 {
		asksAs(t, c, fmt.Sprintf("c%d", i), "@network", "2100ms")
	}
	wiretest.Eventually(t, "all are forgotten", func() bool {
		kept, err := env.Store.Waits(t.Context())
		return err == nil && len(kept) == 0
	})
}
