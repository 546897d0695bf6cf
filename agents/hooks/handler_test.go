package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/agents/hooks"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const bash = `{"session_id":"3f9c","cwd":"/srv","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`

var uid = permissions.CallerUID(1000)

// serve serves an env to hooks; stop does what the daemon does at its stop.
func serve(t *testing.T, env hooks.Requests) (address string, stop func()) {
	t.Helper()
	base, end := context.WithCancel(context.Background())
	s := httptest.NewUnstartedServer(hooks.Handler(hooks.Options{
		Requests: env, CallerOf: func(context.Context) permissions.Caller { return uid }, Stopping: base.Done(),
	}))
	s.Config.BaseContext = func(net.Listener) context.Context { return base }
	s.Start()
	t.Cleanup(func() { end(); s.Close() })
	return s.URL, end
}

type reply struct {
	status int
	text   string
	err    error
}

// post calls a hook and returns a channel for its answer.
func post(ctx context.Context, address, body string) <-chan reply {
	done := make(chan reply, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
		if err != nil {
			done <- reply{err: err}
			return
		}
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := c.Do(r)
		if err != nil {
			done <- reply{err: err}
			return
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		done <- reply{answer.StatusCode, string(text), err}
	}()
	return done
}

// pending waits until one request is pending, unless the hook that asks has been answered.
func pending[T any](t *testing.T, env *wiretest.Env, answer <-chan T) permissions.ID {
	t.Helper()
	var ids []permissions.ID
	wiretest.Eventually(t, "one is pending", func() bool {
		if ids = env.PendingIDs(); len(answer) > 0 {
			t.Fatalf("nobody was asked: %+v", <-answer)
		}
		return len(ids) == 1
	})
	return ids[0]
}

func decide(t *testing.T, env *wiretest.Env, id permissions.ID, a permissions.Answer, why string) {
	t.Helper()
	if _, err := env.Decide(id, a, why); err != nil {
		t.Error(err)
	}
}

func state(t *testing.T, env *wiretest.Env, id permissions.ID) permissions.State {
	t.Helper()
	s, err := env.Find(t.Context(), uid, id)
	if err != nil {
		t.Error(err)
	}
	return s.Request.State
}

func TestTheAnswerOfAPersonIsTheHooks(t *testing.T) {
	env := wiretest.NewEnv(t)
	env.Asks = func(c permissions.Caller, q permissions.Request) {
		if c != uid || q.Hook != "claude-code" || q.Tool != "Bash" || q.Session != "3f9c" || q.Host == "" {
			t.Errorf("%+v asks %+v", c, q)
		}
	}
	address, _ := serve(t, env)
	for _, c := range []struct {
		answer permissions.Answer
		why    string
		want   string
	}{
		{permissions.Allow(permissions.Once), "", `"permissionDecision":"allow"`},
		{permissions.Deny, "", `"permissionDecision":"deny","permissionDecisionReason":"Tool Bash denied by the user."`},
		{permissions.Deny, "use make", `denied by the user. fay: \"use make\""`},
	} {
		done := post(t.Context(), address+"/hook/claude-code", bash)
		decide(t, env, pending(t, env, done), c.answer, c.why)
		if got := <-done; got.status != 200 || !strings.Contains(got.text, c.want) {
			t.Errorf("%+v, want %s", got, c.want)
		}
	}
}

// TestTheDaemonReadsNoFileForAHook: of a file that an edit over HTTP names, nothing is read where the daemon runs.
func TestTheDaemonReadsNoFileForAHook(t *testing.T) {
	env := wiretest.NewEnv(t)
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("the rest\nx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env.Asks = func(_ permissions.Caller, q permissions.Request) {
		if q.Tool != "Edit" || q.Rows != nil || strings.Contains(fmt.Sprint(q), "the rest") {
			t.Errorf("it asks %+v", q)
		}
	}
	address, _ := serve(t, env)
	done := post(t.Context(), address+"/hook/claude-code", fmt.Sprintf(`{"session_id":"s","cwd":"/","hook_event_name":"PreToolUse",`+
		`"tool_name":"Edit","tool_input":{"file_path":%q,"old_string":"x","new_string":"y"}}`, path))
	decide(t, env, pending(t, env, done), permissions.Deny, "")
	if r := <-done; r.err != nil || !strings.Contains(r.text, "deny") {
		t.Errorf("the hook has %+v", r)
	}
}

// TestALinkIsFollowedWhenItIsAsked: questions and grants refer to the folders that names resolve to at that time. Folders of
// another machine are not resolved.
func TestALinkIsFollowedWhenItIsAsked(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(folder, "link")
	text := `{"session_id":"3f9c","cwd":"` + link + `","hook_event_name":"PreToolUse","tool_name":"Write",` +
		`"tool_input":{"file_path":"` + link + `/a"}}`
	var seen []permissions.Digest
	for _, c := range []struct {
		leads  string
		caller permissions.Caller
		want   string
	}{
		{"one", uid, "one"}, {"two", uid, "two"}, {"one", uid, "one"},
		{"one", permissions.CallerUID(0), "one"},
		{"one", permissions.Caller{Name: "token:ci", UID: permissions.NoUID}, "link"},
		{"one", permissions.Caller{Name: "token:ci", UID: permissions.AnyUID}, "link"},
	} {
		t.Run("B6/to "+c.leads+" by "+c.caller.Name, func(t *testing.T) {
			_ = os.Remove(link) // it may not exist
			if err := os.Symlink(c.leads, link); err != nil {
				t.Fatal(err)
			}
			env := wiretest.NewEnv(t)
			want := filepath.Join(folder, c.want)
			env.Asks = func(_ permissions.Caller, q permissions.Request) {
				if q.Cwd != want || q.AffectedPath != want+"/a" {
					t.Errorf("it is asked about %s in %s, want %s", q.AffectedPath, q.Cwd, want)
				}
				seen = append(seen, permissions.CallDigest(q, q.ToolCalls()[0]))
			}
			d, _ := hooks.Find("codex")
			call, err := d.Read([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan hooks.Verdict, 1)
			go func() { done <- hooks.Decide(t.Context(), env, c.caller, call, time.Minute) }()
			decide(t, env, pending(t, env, done), permissions.Allow(permissions.Once), "")
			if v := <-done; !v.Allowed {
				t.Errorf("%+v", v)
			}
		})
	}
	if seen[0] == seen[1] || seen[0] != seen[2] {
		t.Error("a grant for where the link led once is one for where it leads now")
	}
}

// TestALinkIsFollowedAgainAtTheAnswer: people did not see what a link resolves to later.
func TestALinkIsFollowedAgainAtTheAnswer(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(folder, "link")
	for name, c := range map[string]struct{ cwd, file, then, says string }{
		"the same":    {link, "a", "one", ""},
		"the folder":  {link, "a", "two", "a link was changed while this was asked"},
		"of the file": {folder, "link/a", "two", "a link was changed while this was asked"},
	} {
		t.Run("B6/"+name, func(t *testing.T) {
			turn := func(leads string) {
				_ = os.Remove(link) // it may not exist
				if err := os.Symlink(leads, link); err != nil {
					t.Error(err)
				}
			}
			turn("one")
			d, _ := hooks.Find("codex")
			call, err := d.Read([]byte(`{"session_id":"3f9c","cwd":"` + c.cwd + `","hook_event_name":"PreToolUse","tool_name":"Write",` +
				`"tool_input":{"file_path":"` + c.file + `"}}`))
			if err != nil {
				t.Fatal(err)
			}
			env, done := wiretest.NewEnv(t), make(chan hooks.Verdict, 1)
			go func() { done <- hooks.Decide(t.Context(), env, uid, call, time.Minute) }()
			id := pending(t, env, done)
			turn(c.then)
			decide(t, env, id, permissions.Allow(permissions.Once), "")
			if v := <-done; v.Allowed != (c.says == "") || !strings.Contains(v.Reason, c.says) {
				t.Errorf("%+v", v)
			}
		})
	}
}

// Without an answer in time the call is denied; the request stays pending, and the same call joins it.
func TestTheClockRunsOutAndTheNextCallJoins(t *testing.T) {
	env := wiretest.NewEnv(t)
	address, _ := serve(t, env)
	got := <-post(t.Context(), address+"/hook/claude-code?within=1s", bash)
	if got.status != 200 || !strings.Contains(got.text, `"deny"`) ||
		!strings.Contains(got.text, "still waiting for fay; try the same call again") {
		t.Fatalf("%+v", got)
	}
	id := pending[reply](t, env, nil)
	done := post(t.Context(), address+"/hook/claude-code", bash)
	wiretest.Eventually(t, "the next call waits", func() bool { return env.Waiters(id) == 1 })
	decide(t, env, pending(t, env, done), permissions.Allow(permissions.Once), "")
	if got := <-done; !strings.Contains(got.text, `"allow"`) {
		t.Errorf("%+v", got)
	}
}

// An agent that hangs up was answered at its keyboard.
func TestAnAgentThatHangsUpCancels(t *testing.T) {
	env := wiretest.NewEnv(t)
	address, _ := serve(t, env)
	ctx, hangUp := context.WithCancel(t.Context())
	done := post(ctx, address+"/hook/claude-code", bash)
	id := pending(t, env, done)
	hangUp()
	if got := <-done; got.err == nil {
		t.Errorf("%+v", got)
	}
	wiretest.Eventually(t, "it is cancelled", func() bool { return state(t, env, id) == permissions.Cancelled })
}

// Hanging up cancels nothing while another hook waits with the same call.
func TestOneOfTwoThatHangsUpCancelsNothing(t *testing.T) {
	env := wiretest.NewEnv(t)
	address, _ := serve(t, env)
	ctx, hangUp := context.WithCancel(t.Context())
	gone := post(ctx, address+"/hook/claude-code", bash)
	id := pending(t, env, gone)
	stays := post(t.Context(), address+"/hook/claude-code", bash)
	wiretest.Eventually(t, "both wait", func() bool { return env.Waiters(id) == 2 })
	hangUp()
	<-gone
	wiretest.Eventually(t, "one waits", func() bool { return env.Waiters(id) == 1 })
	decide(t, env, id, permissions.Allow(permissions.Once), "")
	if got := <-stays; !strings.Contains(got.text, `"permissionDecision":"allow"`) {
		t.Errorf("%+v", got)
	}
}

// A stopping daemon answers waiting hooks, and their requests stay pending.
func TestADaemonThatStopsCancelsNothing(t *testing.T) {
	env := wiretest.NewEnv(t)
	address, stop := serve(t, env)
	done := post(t.Context(), address+"/hook/claude-code", bash)
	id := pending(t, env, done)
	stop()
	if got := <-done; got.status != 200 || !strings.Contains(got.text, "still waiting for fay") {
		t.Errorf("%+v", got)
	}
	if s := state(t, env, id); s != permissions.Pending {
		t.Errorf("it is %s", s)
	}
}

func TestWhatIsNoHookIsRefused(t *testing.T) {
	env := wiretest.NewEnv(t)
	env.Asks = func(_ permissions.Caller, q permissions.Request) { t.Errorf("asked %+v", q) }
	address, _ := serve(t, env)
	for _, c := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/hook/emacs", bash, 404, "there are claude-code, codex, copilot, cursor, gemini"},
		{"/hook/codex?within=soon", bash, 422, "within is a duration"},
		{"/hook/codex?within=0s", bash, 422, "within is a duration"},
		{"/hook/codex?within=25h", bash, 422, "within is a duration"},
		{"/hook/codex", `{}`, 422, "no hook_event_name"},
		{"/hook/codex", `{"hook_event_name":"PreToolUse"}`, 200, `"permissionDecision":"deny"`},
		{"/hook/codex", strings.Repeat(" ", hooks.MaxInput+1), 422, "more than"},
	} {
		if got := <-post(t.Context(), address+c.path, c.body); got.status != c.status || !strings.Contains(got.text, c.says) {
			t.Errorf("%s %.60s: %d %.200s %v", c.path, c.body, got.status, got.text, got.err)
		}
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hook/codex", strings.NewReader(bash))
		r.Header.Set("Content-Type", kind)
		hooks.Handler(hooks.Options{Requests: env}).ServeHTTP(w, r)
		if w.Code != http.StatusUnsupportedMediaType {
			t.Errorf("%q: %d", kind, w.Code)
		}
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hook/codex", broken{})
	r.Header.Set("Content-Type", "application/json")
	hooks.Handler(hooks.Options{Requests: env}).ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest {
		t.Errorf("a body that breaks off: %d", w.Code)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken off") }

// A store failure is not a verdict, and a failed cancellation is reported.
func TestAFailingEngineAllowsNothing(t *testing.T) {
	t.Run("D9/a hook whose daemon fails", func(t *testing.T) {
		env := wiretest.NewEnv(t)
		env.Fail(permissions.Broken("make room"))
		d, _ := hooks.Find("codex")
		c, err := d.Read([]byte(bash))
		if err != nil {
			t.Fatal(err)
		}
		if v := hooks.Decide(t.Context(), env, uid, c, time.Minute); v.Allowed || v.Reason == "" {
			t.Errorf("%+v", v)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if v := hooks.Decide(ctx, env, uid, c, time.Minute); v.Allowed || !strings.Contains(v.Reason, "may stand") {
			t.Errorf("%+v", v)
		}
		env.Fail(nil)
		if v := hooks.Decide(ctx, env, uid, c, time.Minute); v.Allowed || !strings.Contains(v.Reason, "was cancelled") {
			t.Errorf("%+v", v)
		}
	})
}

// AskUserQuestion's questions are asked one by one, and its input is returned with the answers. Without all answers it is not
// allowed.
func TestQuestionsAreAskedOneByOne(t *testing.T) {
	const asks = `{"session_id":"3f9c","cwd":"/srv","hook_event_name":"PreToolUse","tool_name":"AskUserQuestion","tool_input":{"questions":[` +
		`{"question":"Which colour?","header":"c","options":[{"label":"Red","description":"r"},{"label":"Blue","description":"b"}]},` +
		`{"question":"Which name?","header":"n","options":[{"label":"A","description":""},{"label":"B","description":""}]}]}}`
	for _, end := range []string{"answered", "denied"} {
		env := questionEnv(t)
		address, _ := serve(t, env)
		done := post(t.Context(), address+"/hook/claude-code", asks)
		id := pending(t, env, done)
		s, err := env.Find(t.Context(), uid, id)
		if r := s.Request; err != nil || r.Kind != permissions.KindClarification || r.Hook != "claude-code" ||
			r.Message != "Which colour?\n- Red: r\n- Blue: b" {
			t.Fatalf("%+v, %v", r, err)
		}
		decide(t, env, id, permissions.Choose(2), "")
		wiretest.Eventually(t, "the second is asked", func() bool { ids := env.PendingIDs(); return len(ids) == 1 && ids[0] != id })
		second := env.PendingIDs()[0]
		want := `"permissionDecision":"allow","permissionDecisionReason":"Answered.","updatedInput":{"answers":{"Which colour?":"Blue",` +
			`"Which name?":"my own"},"questions":[`
		if end == "denied" {
			want = `"permissionDecision":"deny"`
			if _, err := env.Withdraw(t.Context(), uid, second); err != nil {
				t.Fatal(err)
			}
		} else {
			decide(t, env, second, permissions.Other, "my own")
		}
		if got := <-done; got.err != nil || got.status != http.StatusOK || !strings.Contains(got.text, want) {
			t.Errorf("%s: %+v", end, got)
		}
	}
}

// questionEnv has the tools that only ask as the daemon has them.
func questionEnv(t *testing.T) *wiretest.Env {
	env := wiretest.NewEnv(t)
	env.Configure(func(s *engine.Settings) { s.Asking, s.Policy = hooks.AskingTools(nil), permissions.Policy{} })
	return env
}

// TestPolicyIsAskedBeforeQuestions: a rule or list about the tool holds, whatever its input; a server's tool of that name is no
// question.
func TestPolicyIsAskedBeforeQuestions(t *testing.T) {
	const gemini = `{"session_id":"s","cwd":"/srv","hook_event_name":"BeforeTool","tool_name":"ask_user","tool_input":{"questions":[` +
		`{"question":"Which colour?","header":"c","options":[{"label":"Red"},{"label":"Blue"}]}]}MORE}`
	claude := strings.NewReplacer("BeforeTool", "PreToolUse", "ask_user", "AskUserQuestion").Replace(gemini)
	for name, c := range map[string]struct {
		dialect, input, more string
		policy               permissions.Policy
		denied               string // empty: people are asked about a call
	}{
		"forbidden":       {"gemini", gemini, "", permissions.Policy{Forbidden: []string{"ask_user"}}, "forbidden"},
		"gated":           {"gemini", gemini, "", permissions.Policy{Gated: []string{"ask_user"}}, ""},
		"a server's":      {"gemini", gemini, `,"mcp_context":{"server_name":"evil","tool_name":"ask_user"}`, permissions.Policy{}, ""},
		"Claude Code's":   {"claude-code", claude, "", permissions.Policy{Forbidden: []string{"AskUserQuestion"}}, "forbidden"},
		"Claude's, gated": {"claude-code", claude, "", permissions.Policy{Gated: []string{"AskUserQuestion"}}, ""},
	} {
		env := questionEnv(t)
		env.Configure(func(s *engine.Settings) { s.Policy = c.policy })
		d, _ := hooks.Find(c.dialect)
		call, err := d.Read([]byte(strings.Replace(c.input, "MORE", c.more, 1)))
		if err != nil {
			t.Fatal(err)
		}
		said := make(chan hooks.Verdict, 1)
		go func() { said <- hooks.Decide(t.Context(), env, uid, call, time.Minute) }()
		if c.denied == "" {
			s, err := env.Find(t.Context(), uid, pending(t, env, said))
			if err != nil || s.Request.Kind != permissions.KindTool {
				t.Errorf("%s: people are asked %+v, %v", name, s.Request.Kind, err)
			}
			decide(t, env, s.Request.ID, permissions.Deny, "")
		}
		if v := <-said; v.Allowed || !strings.Contains(v.Reason, c.denied) || len(env.PendingIDs()) > 0 {
			t.Errorf("%s: %+v, %v are pending", name, v, env.PendingIDs())
		}
	}
}

// TestAQuestionStaysForAnotherHook: a hook that gives up withdraws no question that another one with the same call waits for.
func TestAQuestionStaysForAnotherHook(t *testing.T) {
	env := questionEnv(t)
	d, _ := hooks.Find("gemini")
	c, err := d.Read([]byte(`{"session_id":"s","cwd":"/srv","hook_event_name":"BeforeTool","tool_name":"ask_user","tool_input":` +
		`{"questions":[{"question":"Which colour?","header":"c","options":[{"label":"Red"},{"label":"Blue"}]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	patient := make(chan hooks.Verdict, 1)
	go func() { patient <- hooks.Decide(t.Context(), env, uid, c, time.Minute) }()
	id := pending(t, env, patient)
	if v := hooks.Decide(t.Context(), env, uid, c, 100*time.Millisecond); !v.Unasked {
		t.Errorf("%+v", v)
	}
	decide(t, env, id, permissions.Choose(2), "")
	if v := <-patient; !strings.Contains(v.Reason, `"Blue"`) {
		t.Errorf("the other hook reads %+v", v)
	}
}

// The questions of other agents' own tools are asked, too. Their hooks give the tool no result, so that the model reads the answers as the
// reason why it did not run. Without all answers the agent's own dialog asks, and no card is left.
func TestQuestionsOfOtherAgentsAreAsked(t *testing.T) {
	const two = `{"questions":[{"id":"c","question":"Which colour?","header":"c","type":"choice","options":[` +
		`{"label":"Red","description":"r"},{"label":"Blue","description":"b"}],"MULTI":true},` +
		`{"id":"n","header":"n","question":"Sure?","type":"yesno"}]}`
	for dialect, input := range map[string]string{
		"codex": `{"session_id":"s","turn_id":"t","cwd":"/srv","hook_event_name":"PreToolUse","tool_name":"request_user_input","tool_input":` +
			strings.Replace(two, "MULTI", "multiSelect", 1) + `}`,
		"gemini": `{"session_id":"s","cwd":"/srv","hook_event_name":"BeforeTool","tool_name":"ask_user","tool_input":` +
			strings.Replace(two, "MULTI", "multiSelect", 1) + `}`,
		"opencode": `{"sessionID":"s","cwd":"/srv","tool":"question","args":` + strings.Replace(two, "MULTI", "multiple", 1) + `}`,
		"copilot": `{"sessionId":"s","cwd":"/srv","toolName":"ask_user","toolArgs":` +
			`{"message":"Which colour?","requestedSchema":{"properties":{"c":{"type":"array","title":"Colour","items":{"type":"string","enum":` +
			`["Red","Blue"]}},"d":{"type":"boolean","description":"really"}},"required":["c"]}}}`,
	} {
		for _, end := range []string{"answered", "withdrawn"} {
			env := questionEnv(t)
			address, _ := serve(t, env)
			done := post(t.Context(), address+"/hook/"+dialect, input)
			first := pending(t, env, done)
			s, err := env.Find(t.Context(), uid, first)
			r := s.Request
			if err != nil || r.Kind != permissions.KindClarification || strings.Join(r.Choices, " ") != "Red Blue" ||
				!strings.HasPrefix(r.Message, "Which colour?") || !strings.Contains(r.Message, "Several") {
				t.Fatalf("%s: %+v, %v", dialect, r, err)
			}
			decide(t, env, first, permissions.Choose(2), "")
			wiretest.Eventually(t, "the second is asked", func() bool { ids := env.PendingIDs(); return len(ids) == 1 && ids[0] != first })
			second := env.PendingIDs()[0]
			if end == "answered" {
				decide(t, env, second, permissions.Other, "only at night")
			} else if _, err := env.Withdraw(t.Context(), uid, second); err != nil {
				t.Fatal(err)
			}
			got := <-done
			if n := len(env.PendingIDs()); n != 0 {
				t.Errorf("%s, %s: %d are pending", dialect, end, n)
			}
			told := strings.Contains(got.text, `"deny"`) && strings.Contains(got.text, `Which colour?`) &&
				strings.Contains(got.text, `: \"Blue\"`) && strings.Contains(got.text, `: \"only at night\"`)
			left := !strings.Contains(got.text, "deny") && (dialect == "codex") == (got.text == "")
			if want := end == "answered"; got.err != nil || got.status != http.StatusOK || told != want || left == want {
				t.Errorf("%s, %s: %+v", dialect, end, got)
			}
		}
		env := questionEnv(t)
		d, _ := hooks.Find(dialect)
		c, err := d.Read([]byte(input))
		if err != nil {
			t.Fatal(err)
		}
		v := hooks.Decide(t.Context(), env, uid, c, 100*time.Millisecond)
		if n := len(env.PendingIDs()); !v.Allowed || !v.Unasked || n != 0 {
			t.Errorf("%s, in vain: %+v, %d are pending", dialect, v, n)
		}
	}
}

// Requests that need no answer any more are withdrawn on their caller's word, without a decision; those of another session,
// agent or call stay.
func TestRequestsThatNeedNoAnswerAreWithdrawn(t *testing.T) {
	env := wiretest.NewEnv(t)
	address, _ := serve(t, env)
	other := strings.Replace(bash, "ls", "ls -l", 1)
	first, second := post(t.Context(), address+"/hook/claude-code", bash), post(t.Context(), address+"/hook/claude-code", other)
	wiretest.Eventually(t, "two are pending", func() bool { return len(env.PendingIDs()) == 2 })
	tell := func(event, text string) {
		t.Helper()
		said := <-post(t.Context(), address+"/hook/claude-code", strings.Replace(text, "PreToolUse", event, 1))
		if said.err != nil || said.status != http.StatusOK || said.text != "" {
			t.Errorf("%s: %+v", event, said)
		}
	}
	tell("PostToolUse", strings.Replace(bash, "3f9c", "another", 1))
	tell("PostToolUse", strings.Replace(bash, `"ls"`, `"pwd"`, 1))
	tell("SessionEnd", strings.Replace(bash, "3f9c", "another", 1))
	tell("PostToolUse", `{"hook_event_name":"PostToolUse"}`)
	if n := len(env.PendingIDs()); n != 2 {
		t.Fatalf("%d are pending", n)
	}
	tell("PostToolUseFailure", strings.Replace(bash, `"tool_name"`, `"error":"x","duration_ms":1,"tool_name"`, 1))
	if got := <-first; !strings.Contains(got.text, "cancelled") {
		t.Errorf("%+v", got)
	}
	tell("SessionEnd", bash)
	if got := <-second; !strings.Contains(got.text, "cancelled") {
		t.Errorf("%+v", got)
	}
}

// TestNobodyLooksAtLinksOverHTTP: a call says that its names may lead elsewhere; a question has none.
func TestNobodyLooksAtLinksOverHTTP(t *testing.T) {
	env := wiretest.NewEnv(t)
	asks := make(chan permissions.Request, 1)
	env.Asks = func(_ permissions.Caller, q permissions.Request) { asks <- q }
	address, _ := serve(t, env)
	for call, unknown := range map[string]bool{
		`"Bash","tool_input":{"command":"cat notes"}`:               true,
		`"Write","tool_input":{"file_path":"/srv/a","content":"x"}`: true,
		`"mcp__files__put","tool_input":{"where":"a"}`:              true,
		`"AskUserQuestion","tool_input":{"questions":[{"question":"Which?","header":"Q","multiSelect":false,` +
			`"options":[{"label":"a","description":""},{"label":"b","description":""}]}]}`: false,
	} {
		ctx, hangUp := context.WithCancel(t.Context())
		over := post(ctx, address+"/hook/claude-code", strings.Replace(bash, `"Bash","tool_input":{"command":"ls"}`, call, 1))
		if q := <-asks; q.Leads.Unknown != unknown {
			t.Errorf("%s: %t", call, q.Leads.Unknown)
		}
		hangUp()
		<-over
	}
}
