package client_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/agents/api"
	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves an env until the test ends or stop is called; url is where it listens besides.
func serve(t *testing.T, env *wiretest.Env, socket, at string) (url string, stop func() time.Duration) {
	t.Helper()
	s := api.New(api.Options{Requests: env, Socket: socket, TCP: &api.TCP{Address: at}, Log: wiretest.Quiet})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	return "http://" + s.Address().String(), wiretest.Run(t, s.Run)
}

func newClient(t *testing.T, o client.Options) *client.Client {
	t.Helper()
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// decide is fay's answer to what comes next, which is handed over first.
func decide(t *testing.T, env *wiretest.Env, a permissions.Answer) <-chan permissions.Request {
	t.Helper()
	asked := make(chan permissions.Request, 1)
	go func() {
		wiretest.Eventually(t, "asked", func() bool { return len(env.PendingIDs()) == 1 })
		id := env.PendingIDs()[0]
		wiretest.Eventually(t, "somebody waits", func() bool { return env.Waiters(id) > 0 })
		r, err := env.Decide(id, a, "")
		if err != nil {
			t.Errorf("decide: %v", err)
		}
		asked <- r
	}()
	return asked
}

func TestTheThreeWaysOfAsking(t *testing.T) {
	env, socket := wiretest.NewEnv(t), wiretest.Socket(t)
	serve(t, env, socket, "127.0.0.1:0")
	c := newClient(t, client.Options{Socket: socket})
	more := client.Question{
		Key: "k", Timeout: time.Minute, Details: "whole", Agent: "deploy-1", Host: "vps", Cwd: "/srv", Session: "s", Scope: "once",
	}
	for _, try := range []struct {
		ask    func() (client.Answer, error)
		answer permissions.Answer
		yes    bool
		text   string
	}{
		{func() (client.Answer, error) { return c.Ask(t.Context(), []string{"@network"}, "docs", more) },
			permissions.Allow(permissions.Once), true, "Permission granted for network access."},
		{func() (client.Answer, error) {
			return c.Ask(t.Context(), []string{"@network"}, "docs", client.Question{})
		},
			permissions.Deny, false, "Permission denied for network access."},
		{func() (client.Answer, error) { return c.Confirm(t.Context(), "publish?", client.Question{}) },
			permissions.Allow(permissions.Once), true, "Approved."},
		{func() (client.Answer, error) { return c.Confirm(t.Context(), "publish?", client.Question{}) },
			permissions.Deny, false, "Denied."},
		{func() (client.Answer, error) {
			return c.Choose(t.Context(), "where?", []string{"blog", "mail"}, client.Question{})
		}, permissions.Choose(2), true, "mail"},
	} {
		asked := decide(t, env, try.answer)
		got, err := try.ask()
		if err != nil || got.Yes != try.yes || got.Text != try.text || got.Standing.Request.DecidedBy != "fay" {
			t.Errorf("%+v, %v; want %v %q", got, err, try.yes, try.text)
		}
		if q := <-asked; q.Key == "k" && (q.Details != "whole" || q.Agent != "deploy-1" || !q.Claimed || q.Host != "vps" ||
			q.Cwd != "/srv" || q.Session != "s" || q.Deadline.Sub(q.CreatedAt) != time.Minute || len(q.Options) != 2) {
			t.Errorf("asked %+v", q)
		}
	}
}

func TestWhatIsNotAQuestionIsNotAsked(t *testing.T) {
	c := newClient(t, client.Options{Socket: wiretest.Socket(t)}) // where nobody is
	for what, ask := range map[string]func() (client.Answer, error){
		"tags": func() (client.Answer, error) {
			return c.Ask(t.Context(), []string{"network"}, "docs", client.Question{})
		},
		"reason": func() (client.Answer, error) { return c.Ask(t.Context(), []string{"@network"}, "", client.Question{}) },
		"scope": func() (client.Answer, error) {
			return c.Ask(t.Context(), []string{"@network"}, "x", client.Question{Scope: "ever"})
		},
		"options": func() (client.Answer, error) { return c.Choose(t.Context(), "which?", nil, client.Question{}) },
	} {
		var refusal *permissions.Refusal
		if got, err := ask(); !errors.As(err, &refusal) || refusal.Code != permissions.CodeInvalid || got.Yes {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	if _, err := c.Confirm(t.Context(), "anybody?", client.Question{}); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
	if err := c.Ready(t.Context()); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
}

func TestAQuestionElsewhereSurvivesARestart(t *testing.T) {
	env := wiretest.NewEnv(t)
	url, stop := serve(t, env, wiretest.Socket(t), "127.0.0.1:0")
	secret, _, err := env.CreateToken(t.Context(), connectors.Identity{Operator: true}, "deploy", "", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(string(secret)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, client.Options{URL: url, TokenFile: file})
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	told, lost := make(chan permissions.RequestView, 10), make(chan error, 10)
	c.Progress, c.Lost = func(s permissions.RequestView) { told <- s }, func(err error) { lost <- err }
	type outcome struct {
		client.Answer
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		a, err := c.Confirm(t.Context(), "publish?", client.Question{Key: "k"})
		done <- outcome{a, err}
	}()
	first := <-told
	stop()
	if err := <-lost; !errors.Is(err, client.ErrUnreachable) && err == nil {
		t.Errorf("lost: %v", err)
	}
	serve(t, env, wiretest.Socket(t), strings.TrimPrefix(url, "http://"))
	if again := <-told; again.Request.ID != first.Request.ID || again.Request.Caller.Name != "token:deploy" {
		t.Errorf("after the restart it is %s of %s", again.Request.ID, again.Request.Caller.Name)
	}
	decide(t, env, permissions.Allow(permissions.Once))
	if got := <-done; got.err != nil || !got.Yes || got.Standing.Request.ID != first.Request.ID {
		t.Errorf("%+v", got)
	}
	if s, err := c.Get(t.Context(), first.Request.ID, 0); err != nil || s.Request.State != permissions.Approved {
		t.Errorf("read: %v, %v", s.Request.State, err)
	}
	var refusal *permissions.Refusal
	if _, err := c.Cancel(t.Context(), first.Request.ID); !errors.As(err, &refusal) || refusal.Code != permissions.CodeSettled {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := c.Leave(t.Context(), first.Request.ID, "me"); !errors.As(err, &refusal) || refusal.Code != permissions.CodeSettled {
		t.Errorf("forgone: %v", err)
	}
}

// TestACallThatJoinedLeavesWithoutTheFirstReply: it knows only the id that it proposed.
func TestACallThatJoinedLeavesWithoutTheFirstReply(t *testing.T) {
	env, socket := wiretest.NewEnv(t), wiretest.Socket(t)
	serve(t, env, socket, "127.0.0.1:0")
	c := newClient(t, client.Options{Socket: socket})
	begin := func(call string) (proposed permissions.ID, s permissions.RequestView) {
		q := permissions.Request{Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network}, Reason: "r"}
		q.Call, q.ID = call, permissions.NewID(time.Now())
		s, err := c.Begin(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return q.ID, s
	}
	_, first := begin("a")
	proposed, _ := begin("b")
	s, err := c.Leave(t.Context(), proposed, "b")
	if err != nil || s.Request.ID != first.Request.ID || s.Request.State != permissions.Pending {
		t.Errorf("%+v, %v", s.Request, err)
	}
}

func TestOptionsThatLeadNowhereAreRefused(t *testing.T) {
	for _, c := range []struct {
		o    client.Options
		says string
	}{
		{client.Options{}, "either the daemon's socket or its URL"},
		{client.Options{Socket: "/s", URL: "https://daycared.example"}, "either"},
		{client.Options{URL: "daycared.example"}, "is not the URL"},
		{client.Options{URL: "ftp://daycared.example"}, "is not the URL"},
		{client.Options{URL: "http://daycared.example/x"}, "in the clear; write https://daycared.example/x"},
		{client.Options{URL: "http://192.0.2.7"}, "in the clear"},
		{client.Options{URL: "https://dcd_a_secret@daycared.example"}, "no place for a secret"},
		{client.Options{URL: "https://daycared.example/?token=x"}, "more than a host and a path"},
	} {
		if _, err := client.New(c.o); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}

// What permits nothing may be answered where the agent runs, and a call that began without waiting goes on.
func TestAnEditorAnswers(t *testing.T) {
	env, socket := wiretest.NewEnv(t), wiretest.Socket(t)
	serve(t, env, socket, "127.0.0.1:0")
	c := newClient(t, client.Options{Socket: socket})
	q := permissions.Request{Kind: permissions.KindPause, Mode: permissions.ModeContinue, Message: "look", Call: "call-1"}
	began, err := c.Begin(t.Context(), q)
	if err != nil || began.Request.State != permissions.Pending {
		t.Fatalf("%+v, %v", began.Request, err)
	}
	if _, err := c.Reply(t.Context(), began.Request.ID, permissions.Interrupt, began.Request.Digest); err != nil {
		t.Fatal(err)
	}
	q.ID = began.Request.ID
	if s, err := c.Put(t.Context(), q); err != nil || s.Request.ID != q.ID || s.Request.Answer != permissions.Interrupt {
		t.Errorf("%+v, %v", s.Request, err)
	}
}
