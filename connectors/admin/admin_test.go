package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

const key = "a key"

// serve serves an env on an admin server.
func serve(t *testing.T, socket string, engine admin.Operations) (c *admin.Connector, stop func() time.Duration) {
	t.Helper()
	c = admin.New(admin.Options{Socket: socket, Key: key, Log: wiretest.Quiet}, engine)
	if err := c.Listen(); err != nil {
		t.Fatal(err)
	}
	return c, wiretest.Run(t, c.Run)
}

// newClient is a client with that key file.
func newClient(t *testing.T, socket, keyText string) *admin.Client {
	t.Helper()
	file := filepath.Join(t.TempDir(), "admin.key")
	if keyText != "" {
		if err := os.WriteFile(file, []byte(keyText+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := admin.NewClient(socket, file)
	t.Cleanup(c.Close)
	return c
}

// put submits a question and leaves it pending.
func put(t *testing.T, env *wiretest.Env, q permissions.Request) permissions.Request {
	t.Helper()
	return putAs(t, env, 4242, q)
}

// putAs is put by that account.
func putAs(t *testing.T, env *wiretest.Env, uid int, q permissions.Request) permissions.Request {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := env.Ask(ctx, permissions.CallerUID(uid), q)
	if r.State != permissions.Pending {
		t.Fatalf("put: %v, %v", r.State, err)
	}
	return r
}

func isRefusal(err error, code permissions.Code) bool {
	var r *permissions.Refusal
	return errors.As(err, &r) && r.Code == code
}

func TestPeopleListShowAndDecide(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	c := newClient(t, socket, "")
	one, two := put(t, env, wiretest.Question("one")), put(t, env, wiretest.Question("two"))

	list, err := c.List(t.Context(), "", 0)
	if err != nil || len(list) != 2 || list[0].Request.ID != one.ID || list[1].Code == "" {
		t.Fatalf("list: %+v, %v", list, err)
	}
	if next, err := c.List(t.Context(), one.ID, 1); err != nil || len(next) != 1 || next[0].Request.ID != two.ID {
		t.Errorf("next page: %+v, %v", next, err)
	}
	shown, err := c.Show(t.Context(), list[0].Code)
	if err != nil || shown.Request.ID != one.ID || shown.Request.Reason != "one" {
		t.Errorf("shown: %+v, %v", shown, err)
	}
	after, err := c.Decide(t.Context(), connectors.Decision{
		Code: list[0].Code, Answer: permissions.Allow(permissions.Once), Comment: "fine", Shown: shown.Request.Digest,
	})
	if err != nil || after.Request.State != permissions.Approved || after.Request.DecidedVia != "cli" ||
		after.Request.DecidedBy != "fay" || after.Code != list[0].Code {
		t.Errorf("decided: %+v, %v", after, err)
	}
	denied, err := c.OnPermission(t.Context(), connectors.Decision{
		Request: two.ID, Answer: permissions.Deny, From: connectors.Identity{Via: "terminal"},
	})
	if err != nil || denied.State != permissions.Denied || denied.DecidedVia != "terminal" {
		t.Errorf("denied: %+v, %v", denied, err)
	}
}

func TestARefusedDecisionTellsHowThingsStand(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	c := newClient(t, socket, "")
	r := put(t, env, wiretest.Question("one"))
	d := connectors.Decision{Request: r.ID, Answer: permissions.Deny}
	if _, err := c.OnPermission(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	again, err := c.OnPermission(t.Context(), d)
	if !isRefusal(err, permissions.CodeSettled) || again.State != permissions.Denied || again.ID != r.ID {
		t.Errorf("too late: %v, %v", again.State, err)
	}
	if !strings.HasPrefix(err.Error(), "Too late: already denied by fay at ") {
		t.Errorf("says %q", err)
	}
	for what, d := range map[string]connectors.Decision{
		"no answer":  {Request: r.ID},
		"no request": {Request: "01J", Answer: permissions.Deny},
	} {
		if after, err := c.OnPermission(t.Context(), d); err == nil || after.ID != "" {
			t.Errorf("%s: %+v, %v", what, after, err)
		}
	}
}

func TestEveryWordOfADecisionArrives(t *testing.T) {
	socket, env := wiretest.Socket(t), &recorder{Env: wiretest.NewEnv(t), got: make(chan connectors.Decision, 1)}
	serve(t, socket, env)
	sum := permissions.ComputeDigest(wiretest.Question("x"))
	for _, d := range []connectors.Decision{
		{Request: "01J0000000000000000000000X", Answer: "allow_once", Call: 2, Comment: "c", Really: true, Shown: sum},
		{Code: "K7F3Q", Default: true},
	} {
		if _, err := newClient(t, socket, key).Decide(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		d.From = connectors.Identity{Via: "cli", UID: os.Getuid(), Operator: true}
		if diff := cmp.Diff(d, <-env.got); diff != "" {
			t.Errorf("(-sent +got):\n%s", diff)
		}
	}
}

type recorder struct {
	*wiretest.Env
	got chan connectors.Decision
}

func (r *recorder) OnPermission(_ context.Context, d connectors.Decision) (permissions.Request, error) {
	r.got <- d
	return permissions.Request{ID: "01J"}, nil
}

func TestTheKeyMakesTheOperator(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	r := put(t, env, wiretest.Question("one"))
	if _, err := newClient(t, socket, "").Cancel(t.Context(), string(r.ID)); err != nil {
		t.Errorf("a person withdraws: %v", err)
	}
	for text, operator := range map[string]bool{key: true, "wrong": false, "": false} {
		c := newClient(t, socket, text)
		me, err := c.WhoAmI(t.Context())
		want := admin.Me{Name: "fay", UID: os.Getuid(), Operator: operator, Via: "cli", Now: me.Now}
		if err != nil || me != want {
			t.Errorf("key %q: %+v, %v", text, me, err)
		}
		entries, err := c.Audit(t.Context(), 0, 10)
		heads, verifyErr := c.Verify(t.Context())
		if !operator {
			if !isRefusal(err, permissions.CodeNotYours) || !isRefusal(verifyErr, permissions.CodeNotYours) {
				t.Errorf("key %q reads the audit: %v, %v", text, err, verifyErr)
			}
			continue
		}
		if err != nil || verifyErr != nil || len(entries) == 0 || len(heads) != 1 {
			t.Fatalf("audit: %d, %v; heads: %d, %v", len(entries), err, len(heads), verifyErr)
		}
		last := entries[len(entries)-1]
		if last.Type != permissions.RequestSettled || last.ComputeHash() != last.Hash || last.Hash != heads[0].Hash ||
			heads[0].First != 1 || heads[0].Entries != len(entries) {
			t.Errorf("the audit came over as %+v", last)
		}
	}
}

func TestUnknownCallersSeeNothing(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	env.GiveAccount("")
	serve(t, socket, env)
	r := put(t, env, wiretest.Question("one"))
	c := newClient(t, socket, "")
	for what, try := range map[string]func() error{
		"list":    func() error { _, err := c.List(t.Context(), "", 0); return err },
		"show":    func() error { _, err := c.Show(t.Context(), string(r.ID)); return err },
		"decide":  func() error { _, err := c.Decide(t.Context(), decisionOn(r.ID)); return err },
		"cancel":  func() error { _, err := c.Cancel(t.Context(), string(r.ID)); return err },
		"audit":   func() error { _, err := c.Audit(t.Context(), 0, 0); return err },
		"verify":  func() error { _, err := c.Verify(t.Context()); return err },
		"whoami":  func() error { _, err := c.WhoAmI(t.Context()); return err },
		"inbox":   func() error { return c.Inbox(t.Context(), func(permissions.RequestView) error { return nil }) },
		"void":    func() error { _, err := c.Void(t.Context(), connectors.Identity{}, string(r.ID)); return err },
		"grants":  func() error { _, err := c.Grants(t.Context(), connectors.Identity{}, "", 99); return err },
		"history": func() error { _, err := c.History(t.Context(), permissions.HistoryQuery{}); return err },
		"revoke":  func() error { _, err := c.Revoke(t.Context(), connectors.Identity{}, "01J"); return err },
		"agents":  func() error { _, err := c.Sessions(t.Context(), true, "", 0); return err },
		"agent":   func() error { _, err := c.Session(t.Context(), "01J"); return err },
		"stop":    func() error { _, err := c.StopAll(t.Context(), connectors.Identity{}); return err },
		"resume":  func() error { return c.Resume(t.Context(), connectors.Identity{}) },
		"tokens":  func() error { _, err := c.Tokens(t.Context()); return err },
		"events":  func() error { return c.Events(t.Context(), 0, func(wire.Event) error { return nil }) },
		"now":     func() error { return c.Events(t.Context(), admin.FromNow, func(wire.Event) error { return nil }) },
	} {
		if err := try(); !isRefusal(err, permissions.CodeNotYours) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func decisionOn(id permissions.ID) connectors.Decision {
	return connectors.Decision{Request: id, Answer: permissions.Allow(permissions.Once)}
}

// unsound is an env whose audit does not verify.
type unsound struct {
	*wiretest.Env
	err error
}

func (u *unsound) Verify(context.Context, connectors.Identity, ...func(done, all int64)) ([]permissions.Head, error) {
	return nil, u.err
}

func TestABrokenChainIsToldInItsWords(t *testing.T) {
	socket, env := wiretest.Socket(t), &unsound{Env: wiretest.NewEnv(t)}
	serve(t, socket, env)
	c := newClient(t, socket, key)
	for _, err := range []error{errors.New("chain a: entry 7 does not follow"), permissions.Broken("make room")} {
		env.err = err
		if _, got := c.Verify(t.Context()); got == nil || got.Error() != err.Error() {
			t.Errorf("%v came as %v", err, got)
		}
	}
}

// What is refused is audited, so what is no answer at all does not come as far as that.
func TestAnInvalidAnswerIsRefusedBeforeItIsAudited(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	path := "/v1/requests/" + string(put(t, env, wiretest.Question("one")).ID) + "/decision"
	body := `{"answer":"` + strings.Repeat("a", 65) + `"}`
	status, text := wiretest.Do(t, wiretest.HTTP(t, socket), http.MethodPost, path, "application/json", body)
	if status != http.StatusUnprocessableEntity || !strings.Contains(text, `"code":"invalid"`) {
		t.Errorf("%d %s", status, text)
	}
}

func TestWhatIsWrongIsRefused(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	r := put(t, env, wiretest.Question("one"))
	c := wiretest.HTTP(t, socket)
	path := "/v1/requests/" + string(r.ID) + "/decision"
	for _, try := range []struct {
		path, body string
		status     int
	}{
		{path, `{"answer":"allow_once","answer":"deny"}`, 400},
		{path, `{"Answer":"allow_once"}`, 422},
		{path, `{"answer":"allow_once","by":"fay"}`, 422},
		{path, `{"answer":"allow_once"} {}`, 400},
		{path, `{"answer":"allow_once","call":-1}`, 422},
		{path, `{"answer":"allow_once","call":1.5}`, 422},
		{path, `{"answer":"allow_once","digest":"sha256:12"}`, 422},
		{path, `{"answer":"allow_once","really":"yes"}`, 422},
		{path, `{"answer":"allow_once","comment":"` + strings.Repeat("c", 2001) + `"}`, 422},
		{path, `{"answer":"allow_for_ever"}`, 422},
		{path, `{"answer":""}`, 422},
		{path, `{}`, 422},
		{path, ``, 400},
		{"/v1/requests/" + strings.Repeat("x", 65) + "/decision", `{"answer":"deny"}`, 422},
	} {
		status, text := wiretest.Do(t, c, http.MethodPost, try.path, "application/json", try.body)
		if status != try.status || !strings.Contains(text, `"code":"`) {
			t.Errorf("%.80s: %d %.200s, want %d", try.body, status, text, try.status)
		}
	}
	for _, query := range []string{"state=settled", "limit=0", "limit=1001", "limit=x", "order=new"} {
		if status, text := wiretest.Do(t, c, http.MethodGet, "/v1/requests?"+query, "", ""); status != 422 {
			t.Errorf("%s: %d %.200s", query, status, text)
		}
	}
	s, err := newClient(t, socket, "").Show(t.Context(), string(r.ID))
	if err != nil || s.Request.State != permissions.Pending {
		t.Errorf("the request is %v, %v", s.Request.State, err)
	}
}

func TestABrokenStoreIsToldEverywhere(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	c := newClient(t, socket, key)
	r := put(t, env, wiretest.Question("one"))
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	env.Fail(permissions.Broken("make room"))
	for what, try := range map[string]func() error{
		"ready":   func() error { return c.Ready(t.Context()) },
		"list":    func() error { _, err := c.List(t.Context(), "", 0); return err },
		"show":    func() error { _, err := c.Show(t.Context(), string(r.ID)); return err },
		"decide":  func() error { _, err := c.Decide(t.Context(), decisionOn(r.ID)); return err },
		"audit":   func() error { _, err := c.Audit(t.Context(), 0, 0); return err },
		"void":    func() error { _, err := c.Void(t.Context(), connectors.Identity{}, string(r.ID)); return err },
		"grants":  func() error { _, err := c.Grants(t.Context(), connectors.Identity{}, "", 99); return err },
		"history": func() error { _, err := c.History(t.Context(), permissions.HistoryQuery{}); return err },
		"agents":  func() error { _, err := c.Sessions(t.Context(), true, "", 0); return err },
		"agent":   func() error { _, err := c.Session(t.Context(), "01J"); return err },
		"stop":    func() error { _, err := c.StopAll(t.Context(), connectors.Identity{}); return err },
		"resume":  func() error { return c.Resume(t.Context(), connectors.Identity{}) },
		"tokens":  func() error { _, err := c.Tokens(t.Context()); return err },
		"token":   func() error { _, _, err := c.CreateToken(t.Context(), "deploy", "", 0); return err },
		"events":  func() error { return c.Events(t.Context(), 0, func(wire.Event) error { return nil }) },
		"now":     func() error { return c.Events(t.Context(), admin.FromNow, func(wire.Event) error { return nil }) },
	} {
		if err := try(); !isRefusal(err, permissions.CodeBroken) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAPersonIsReachedThroughAnOpenInbox(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	c, _ := serve(t, socket, env)
	fay := connectors.Person{Name: "fay"}
	prompt := connectors.Prompt{To: fay}
	wiretest.Eventually(t, "it has begun", func() bool { return !errors.Is(c.Reach(fay), connectors.ErrUnreachable) })
	// Just after a start, an inbox may be on its way back: a person is away, and only later gone.
	_, err := c.Send(t.Context(), prompt)
	for what, err := range map[string]error{"sent": err, "reached": c.Reach(fay)} {
		if _, expected := errors.AsType[connectors.ReadySignaler](err); !expected || errors.Is(err, connectors.ErrUnreachable) {
			t.Errorf("%s at the start: %v", what, err)
		}
	}
	wiretest.Eventually(t, "fay is not coming back", func() bool { return errors.Is(c.Reach(fay), connectors.ErrUnreachable) })
	if err := c.Reach(fay); !errors.Is(err, connectors.ErrUnreachable) || err.Error() != "fay has no inbox open" {
		t.Errorf("reached: %v", err)
	}
	if _, err := c.Send(t.Context(), prompt); !errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("sent: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	closed := make(chan error, 1)
	client := newClient(t, socket, "")
	opened := make(chan error, 1)
	client.Opened = func() { opened <- c.Reach(fay) }
	go func() { closed <- client.Inbox(ctx, func(permissions.RequestView) error { return nil }) }()
	if err := <-opened; err != nil {
		t.Errorf("the inbox is open, and %v", err)
	}
	if ref, err := c.Send(t.Context(), prompt); ref != "inbox" || err != nil {
		t.Errorf("sent: %q, %v", ref, err)
	}
	if err := c.Reach(connectors.Person{Name: "sam"}); !errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("sam is reached through fay's inbox: %v", err)
	}
	cancel()
	if err := <-closed; !errors.Is(err, context.Canceled) {
		t.Errorf("inbox: %v", err)
	}
	wiretest.Eventually(t, "fay is gone", func() bool { return c.Reach(fay) != nil })
	patient := admin.New(admin.Options{AdminReachable: true}, nil)
	if ref, err := patient.Send(t.Context(), prompt); patient.Reach(fay) != nil || ref != "admin" || err != nil {
		t.Errorf("admin_reachable: %q, %v", ref, err)
	}
}

func TestRunNeedsASocket(t *testing.T) {
	socket := wiretest.Socket(t)
	c, _ := serve(t, socket, wiretest.NewEnv(t))
	if c.Name() != "admin" {
		t.Errorf("name %q", c.Name())
	}
	second := admin.New(admin.Options{Socket: socket, Log: wiretest.Quiet}, wiretest.NewEnv(t))
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another daemon") {
		t.Errorf("a second daemon: %v", err)
	}
	if _, err := newClient(t, wiretest.Socket(t), "").WhoAmI(t.Context()); !errors.Is(err, admin.ErrUnreachable) {
		t.Errorf("no daemon: %v", err)
	}
}

// TestTheDescriptionHasEveryEventAndView: with its payload, and each view with its columns.
func TestTheDescriptionHasEveryEventAndView(t *testing.T) {
	socket := wiretest.Socket(t)
	serve(t, socket, wiretest.NewEnv(t))
	_, text := wiretest.Do(t, wiretest.HTTP(t, socket), http.MethodGet, "/openapi.json", "", "")
	type schema struct {
		Title       string
		Description string
		OneOf       []schema
		Enum        []permissions.Type
		Properties  map[string]schema
	}
	var spec struct {
		Views map[string][]string `json:"x-views"`
		Paths map[string]struct {
			Get struct {
				Responses map[string]struct {
					Content map[string]struct{ Schema schema }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	all := spec.Paths["/v1/events"].Get.Responses["200"].Content["text/event-stream"].Schema
	told := map[permissions.Type]schema{}
	for _, s := range all.OneOf {
		if of := s.Properties["type"].Enum; len(of) == 1 && string(of[0]) == s.Title && s.Description != "" {
			told[of[0]] = s.Properties["payload"]
		}
	}
	for _, name := range permissions.EventTypes() {
		payload, found := told[name]
		if !found || len(payload.Properties) != len(server.Events().Events[name].Payload) {
			t.Errorf("of %s there are %v", name, payload.Properties)
		}
	}
	if !reflect.DeepEqual(spec.Views, server.Events().Views) || all.Description != server.Events().Order {
		t.Errorf("views are %v, and the order is: %s", spec.Views, all.Description)
	}
}

func TestTheDescriptionNamesEveryRoute(t *testing.T) {
	socket := wiretest.Socket(t)
	serve(t, socket, wiretest.NewEnv(t))
	_, text := wiretest.Do(t, wiretest.HTTP(t, socket), http.MethodGet, "/openapi.json", "", "")
	var spec struct{ Paths map[string]map[string]any }
	if err := unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/v1/requests", "/v1/requests/{id}", "/v1/requests/{id}/decision", "/v1/requests/{id}/cancel", "/v1/audit",
		"/v1/audit/verify", "/v1/whoami", "/v1/inbox", "/v1/requests/{id}/void", "/v1/grants", "/v1/grants/{id}", "/v1/events",
		"/v1/stop-all", "/v1/resume", "/v1/tokens", "/v1/tokens/{id}", "/v1/sessions", "/v1/sessions/{id}",
	} {
		if spec.Paths[path] == nil {
			t.Errorf("%s is not described", path)
		}
	}
}
