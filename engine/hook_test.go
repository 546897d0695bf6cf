package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/rules"
)

// screenChannel is a memory that is a screen, which disturbs nobody.
type screenChannel struct{ *connectortest.Memory }

func (screenChannel) Screen() {}

func hook(name, input string) permissions.Request {
	q := tool(name, input)
	q.Hook = "claude-code"
	return q
}

// A hook's question is kept from a phone for a while, but from no screen; other questions are not.
func TestAHookIsKeptFromThePhoneForAWhile(t *testing.T) {
	s := usual()
	s.People = []connectors.Person{fay, sam}
	s.People[0].PhoneAfter = time.Minute
	phone, screen := connectortest.NewMemory(fayAt("telegram"), nil), connectortest.NewMemory(fayAt("terminal"), nil)
	st := newEnv(t, s, phone, screenChannel{screen})
	st.ask(t.Context(), hook("Bash", `{"command":"ls"}`))
	first := st.shown(screen, 1)
	st.ask(t.Context(), tool("Bash", `{"command":"ls -l"}`))
	if other := st.shown(phone, 1); other.Request.Hook != "" {
		t.Fatalf("the phone shows %+v", other.Request)
	}
	phone = connectortest.NewMemory(fayAt("telegram"), nil)
	st.restart(phone, screenChannel{connectortest.NewMemory(fayAt("terminal"), nil)}) // the delay survives a restart
	st.advance(61 * time.Second)
	st.ask(t.Context(), tool("Bash", `{"command":"ls -a"}`)) // wakes sleepers on another clock
	st.eventually("the phone shows what was kept back", func() bool {
		return slices.ContainsFunc(phone.Copies(), func(c connectortest.Copy) bool { return c.First.Request.ID == first.Request.ID })
	})
}

// A person who answers at the agent is not disturbed: a cancelled question never reaches the phone.
func TestWhatIsCancelledMeanwhileNeverComesToThePhone(t *testing.T) {
	s := usual()
	s.People = []connectors.Person{fay}
	s.People[0].PhoneAfter = time.Minute
	phone := connectortest.NewMemory(fayAt("telegram"), nil)
	st := newEnv(t, s, phone)
	done := st.ask(t.Context(), hook("Bash", `{"command":"ls"}`))
	r := st.pending(1)[0]
	if _, err := st.Withdraw(t.Context(), self, r.ID); err != nil {
		t.Fatal(err)
	}
	if got := st.get(done); got.State != permissions.Cancelled {
		t.Error(got.State)
	}
	st.advance(61 * time.Second)
	st.ask(t.Context(), tool("Bash", `{"command":"ls -l"}`))
	if p := st.shown(phone, 1); p.Request.ID == r.ID {
		t.Error("the phone shows what was cancelled")
	}
}

// Of two equal calls one leaves by its own name; the last one cancels. Nobody else may.
func TestLeaveOrCancel(t *testing.T) {
	phone := connectortest.NewMemory(fayAt("telegram"), nil)
	st := newEnv(t, usual(), phone)
	named := func(call string) permissions.Request {
		q := hook("Bash", `{"command":"ls"}`)
		q.Call = call
		return q
	}
	st.ask(t.Context(), named("a"))
	id := st.shown(phone, 1).Request.ID
	done := st.ask(t.Context(), named("b"))
	st.waiting(id, 2)
	if _, err := st.LeaveOrCancel(t.Context(), permissions.CallerUID(askerUID+1), id, "a", ""); err == nil {
		t.Error("another caller forgoes it")
	}
	if s, err := st.LeaveOrCancel(t.Context(), self, id, "a", ""); err != nil || s.Request.State != permissions.Pending || s.Waiting != 1 {
		t.Errorf("the first: %s, %d wait, %v", s.Request.State, s.Waiting, err)
	}
	if s, err := st.LeaveOrCancel(t.Context(), self, id, "b", ""); err != nil || s.Request.State != permissions.Cancelled {
		t.Errorf("the last: %s, %v", s.Request.State, err)
	}
	if got := st.get(done); got.State != permissions.Cancelled {
		t.Error(got.State)
	}
	if _, err := st.LeaveOrCancel(t.Context(), self, id, "", ""); err == nil {
		t.Error("what is settled is forgone")
	}
}

// TestACallThatJoinedLeavesByTheIDThatItProposed: a hook that is ended before the first reply knows no other.
func TestACallThatJoinedLeavesByTheIDThatItProposed(t *testing.T) {
	phone := connectortest.NewMemory(fayAt("telegram"), nil)
	st := newEnv(t, usual(), phone)
	proposed := map[string]permissions.ID{}
	ask := func(call string) {
		q := hook("Bash", `{"command":"ls"}`)
		q.Call, q.ID = call, permissions.NewID(time.Now())
		proposed[call] = q.ID
		st.ask(t.Context(), q)
	}
	ask("a")
	id := st.shown(phone, 1).Request.ID
	ask("b")
	st.waiting(id, 2)
	ask("c")
	st.waiting(id, 3)
	_, err := st.LeaveOrCancel(t.Context(), permissions.CallerUID(askerUID+1), proposed["b"], "b", "")
	if permissions.CodeOf(err) != permissions.CodeUnknown {
		t.Errorf("another caller leaves: %v", err)
	}
	if _, err = st.LeaveOrCancel(t.Context(), self, proposed["b"], "d", ""); permissions.CodeOf(err) != permissions.CodeUnknown {
		t.Errorf("a call that does not wait leaves: %v", err)
	}
	s, err := st.LeaveOrCancel(t.Context(), self, proposed["b"], "b", "")
	if err != nil || s.Request.State != permissions.Pending || s.Waiting != 2 {
		t.Errorf("one of three: %s, %d wait, %v", s.Request.State, s.Waiting, err)
	}
	if _, err := st.LeaveOrCancel(t.Context(), self, id, "a", ""); err != nil {
		t.Error(err)
	}
	s, err = st.LeaveOrCancel(t.Context(), self, proposed["c"], "c", "")
	if err != nil || s.Request.State != permissions.Cancelled || s.Request.ID != id {
		t.Errorf("the last: %s, %v", s.Request.State, err)
	}
}

// A question that another follows in a moment is shown to nobody before: what replaces it is the one card. If nothing follows, it is shown.
func TestAQuestionThatAnotherFollowsIsShownOnce(t *testing.T) {
	phone, screen := connectortest.NewMemory(fayAt("telegram"), nil), connectortest.NewMemory(fayAt("terminal"), nil)
	st := newEnv(t, usual(), phone, screenChannel{screen})
	plain := again(`{"command":"ls"}`)
	plain.HookStage, plain.FollowUpExpected = permissions.HookBefore, true
	done := st.ask(t.Context(), plain)
	first := st.pending(1)[0]
	if _, err := st.Withdraw(t.Context(), self, first.ID); err != nil {
		t.Fatal(err)
	}
	st.get(done)
	more := again(`{"command":"ls"}`)
	more.Choices = []string{"add a"}
	done = st.ask(t.Context(), more)
	for _, m := range []*connectortest.Memory{phone, screen} {
		if p := st.shown(m, 1); p.Request.ID == first.ID || !p.Request.Offers(permissions.AllowWithSuggestion(1)) {
			t.Errorf("shown first is %+v", p.Request)
		}
	}
	if _, err := st.OnPermission(t.Context(), connectors.Decision{
		Request: st.pending(1)[0].ID, Answer: permissions.AllowWithSuggestion(1), From: fayAt("telegram"),
	}); err != nil {
		t.Fatal(err)
	}
	if r := st.get(done); r.Answer != permissions.AllowWithSuggestion(1) || r.Scope != permissions.Once || !r.IsRowOf(more) {
		t.Errorf("answered: %+v", r)
	}
	plain.Input = json.RawMessage(`{"command":"pwd"}`)
	st.ask(t.Context(), plain)
	st.pending(1)
	st.advance(3 * time.Second)
	st.ask(t.Context(), tool("Bash", `{"command":"ls -a"}`)) // wakes whoever sleeps by another clock
	st.eventually("nothing followed", func() bool {
		return slices.ContainsFunc(phone.Copies(), func(c connectortest.Copy) bool {
			return string(c.First.Request.Input) == string(plain.Input)
		})
	})
}

// A suggestion that was taken from one question of a hook is not taken from the next one.
func TestASuggestionIsTakenFromItsOwnQuestionAlone(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	first := again(`{"command":"ls"}`)
	first.HookStage, first.Choices = permissions.HookBefore, []string{"add a"}
	done := st.ask(t.Context(), first)
	st.decide(m, 1, permissions.AllowWithSuggestion(1))
	if r := st.get(done); r.Answer != permissions.AllowWithSuggestion(1) {
		t.Fatalf("%+v", r)
	}
	second := again(`{"command":"ls"}`)
	second.Choices, second.Message = []string{"add everything"}, "it suggests more"
	if r := st.get(st.ask(t.Context(), second)); r.Answer != allow() || !r.IsRowOf(second) {
		t.Errorf("the second is answered %s: %+v", r.Answer, r)
	}
	done = st.ask(t.Context(), second) // the answer was for once
	st.decide(m, 2, permissions.Deny)
	if r := st.get(done); r.State != permissions.Denied {
		t.Errorf("%+v", r)
	}
}

// A clock that is set back delays nothing for longer.
func TestAClockThatIsSetBackKeepsNoPhoneWaiting(t *testing.T) {
	s := usual()
	s.People = []connectors.Person{fay}
	s.People[0].PhoneAfter = time.Minute
	phone := connectortest.NewMemory(fayAt("telegram"), nil)
	st := newEnv(t, s, phone)
	st.ask(t.Context(), hook("Bash", `{"command":"ls"}`))
	r := st.pending(1)[0]
	st.stop()
	st.setWallClock(-time.Hour)
	phone = connectortest.NewMemory(fayAt("telegram"), nil)
	st.people = []connectors.Connector{phone}
	st.open()
	if p := st.shown(phone, 1); p.Request.ID != r.ID {
		t.Errorf("the phone shows %s", p.Request.ID)
	}
}

// An approval that a hook was no longer waiting for goes to its agent's next equal call, once.
func TestAHookThatComesAgainFindsItsApproval(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	ctx, leave := context.WithCancel(t.Context())
	gone := st.ask(ctx, hook("Bash", `{"command":"ls"}`))
	r := st.shown(m, 1).Request
	st.waiting(r.ID, 1)
	leave()
	<-gone
	st.waiting(r.ID, 0)
	if _, err := st.OnPermission(t.Context(), connectors.Decision{Request: r.ID, Answer: allow(), From: fayAt("memory")}); err != nil {
		t.Fatal(err)
	}
	if got := st.get(st.ask(t.Context(), hook("Bash", `{"command":"ls"}`))); got.ID != r.ID || got.State != permissions.Approved {
		t.Errorf("%s %s", got.ID, got.State)
	}
	st.ask(t.Context(), hook("Bash", `{"command":"ls"}`))
	if again := st.pending(1)[0]; again.ID == r.ID {
		t.Error("an approval for once served twice")
	}
}

// For a hook, a session's scope covers this tool with this input.
func TestASessionCoversOneCallOfAHook(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), connectortest.Always(permissions.Allow(permissions.SessionTool)))
	st := newEnv(t, usual(), m)
	q := hook("Bash", `{"command":"ls"}`)
	first := st.get(st.ask(t.Context(), q))
	if !slices.ContainsFunc(first.Options, func(o permissions.Option) bool {
		return o.ID == permissions.Allow(permissions.SessionTool) && o.Label == "Allow this exact call for this session"
	}) {
		t.Errorf("offered %v", first.Options)
	}
	q.Reason = "said otherwise"
	if got := st.get(st.ask(t.Context(), q)); got.DecidedVia != permissions.ViaGrant {
		t.Errorf("the same again: decided via %s", got.DecidedVia)
	}
	if got := st.get(st.ask(t.Context(), hook("Bash", `{"command":"ls -l"}`))); got.DecidedVia == permissions.ViaGrant {
		t.Error("another input was not asked about")
	}
	q.Session = "s2"
	if got := st.get(st.ask(t.Context(), q)); got.DecidedVia == permissions.ViaGrant {
		t.Error("another session was not asked about")
	}
}

// TestAnApprovalForASessionEndsUnused: B6/nobody may hear that its session is over. Each use puts its end off.
func TestAnApprovalForASessionEndsUnused(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	q := hook("Bash", `{"command":"ls"}`)
	done := st.ask(t.Context(), q)
	st.decide(m, 1, permissions.Allow(permissions.SessionTool))
	st.get(done)
	for range 3 {
		st.advance(permissions.SessionIdle - time.Hour)
		if r := st.get(st.ask(t.Context(), q)); r.DecidedVia != permissions.ViaGrant {
			t.Fatalf("before a day has passed: %s", r.DecidedVia)
		}
	}
	m = connectortest.NewMemory(fayAt("memory"), nil)
	st.restart(m)
	st.advance(permissions.SessionIdle + time.Minute)
	st.asks(m, 1, q)
	if _, err := st.Verify(t.Context(), boss); err != nil {
		t.Error(err)
	}
}

// again is the question of the hook that runs when the agent's own rules require asking.
func again(input string) permissions.Request {
	q := hook("Bash", input)
	q.Session, q.HookStage = "s1", permissions.HookAgain
	return q
}

// One decision is one prompt: the second hook for the same call in the same session receives the first one's decision,
// once, within a minute. Other calls do not.
func TestTheSecondHookOfACallIsToldWhatTheFirstWas(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	s := usual()
	s.Policy.Auto = []string{"read_file"}
	st := newEnv(t, s, m)
	cards := 0
	before := func(input string, a permissions.Answer) {
		t.Helper()
		q := again(input)
		q.HookStage = permissions.HookBefore
		done := st.ask(t.Context(), q)
		cards++
		st.decide(m, cards, a)
		st.get(done)
	}
	asks := func(q permissions.Request) {
		t.Helper()
		done := st.ask(t.Context(), q)
		cards++
		st.decide(m, cards, allow())
		st.get(done)
	}
	const ls, pwd = `{"command":"ls"}`, `{"command":"pwd"}`
	asks(again(ls)) // nothing was decided before
	before(ls, allow())
	other := again(ls)
	other.Session = "s2"
	asks(other)
	asks(again(pwd))
	if _, err := st.Recall(t.Context(), self, permissions.Recall{
		Session: "s1", Kind: permissions.KindTool, Tool: "Bash", Input: []byte(pwd), Via: permissions.ViaKeyboard,
	}); err != nil { // another call has run
		t.Fatal(err)
	}
	justified := again(ls)
	justified.Reason = "in other words"
	if r := st.get(st.ask(t.Context(), justified)); r.State != permissions.Approved || !r.IsRowOf(justified) {
		t.Errorf("the second: %+v", r)
	}
	asks(again(ls)) // once
	before(ls, allow())
	st.advance(61 * time.Second)
	asks(again(ls))
	const rm = `{"command":"rm x"}`
	before(rm, permissions.Deny)
	if r := st.get(st.ask(t.Context(), again(rm))); r.State != permissions.Denied {
		t.Errorf("what was denied is %s", r.State)
	}
	before(`{"command":"id"}`, allow())
	ended, end := context.WithCancel(t.Context())
	end()
	if r, err := st.Ask(ended, permissions.CallerUID(askerUID+1), again(`{"command":"id"}`)); err == nil || r.State != permissions.Pending {
		t.Errorf("another caller: %s, %v", r.State, err)
	}
}

// Codex asks about a command that only applies a patch twice, as a command and as the patch: that is one decision, if
// both have the same route. Another patch or another command is not.
func TestAPatchInACommandIsAskedAboutOnce(t *testing.T) {
	const patch = `*** Begin Patch\n*** Add File: a\n+<x>\n*** End Patch`
	const twice = patch + `\nEOF\nrm b\ncat <<'EOF'\n` + patch
	heredoc := func(in, end string) string { return `{"command":"apply_patch <<'EOF'\n` + in + `\n` + end + `"}` }
	routed := usual()
	routed.Routes = []engine.Route{{Tools: []string{"apply_patch"}, Ask: []string{"fay"}, NoKeyboard: true}, {Ask: []string{"fay"}}}
	for name, c := range map[string]struct {
		settings      engine.Settings
		command, then string
		once          bool
	}{
		"the patch":              {usual(), heredoc(patch, "EOF"), patch, true},
		"another patch":          {usual(), heredoc(patch, "EOF"), strings.Replace(patch, "Add", "Delete", 1), false},
		"a command after it":     {usual(), heredoc(patch, `EOF\nrm b`), patch, false},
		"a command between":      {usual(), heredoc(twice, "EOF"), twice, false},
		"asked in another way":   {routed, heredoc(patch, "EOF"), patch, false},
		"not the whole of input": {usual(), `{"command":"apply_patch","workdir":"/"}`, patch, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := connectortest.NewMemory(fayAt("memory"), nil)
			st := newEnv(t, c.settings, m)
			q := hook("Bash", c.command)
			q.Hook, q.Session, q.HookStage = "codex", "s1", permissions.HookBefore
			done := st.ask(t.Context(), q)
			st.decide(m, 1, allow())
			st.get(done)
			q.Tool, q.Input, q.HookStage = "apply_patch", json.RawMessage(`{"command":"`+c.then+`"}`), permissions.HookAgain
			done = st.ask(t.Context(), q)
			if !c.once {
				st.decide(m, 2, allow())
			}
			if r := st.get(done); r.State != permissions.Approved || !r.IsRowOf(q) {
				t.Errorf("the patch: %+v", r)
			}
		})
	}
}

// decide answers the n-th prompt.
func (s *env) decide(m *connectortest.Memory, n int, a permissions.Answer) {
	s.t.Helper()
	id := s.shown(m, n).Request.ID
	if _, err := s.OnPermission(s.t.Context(), connectors.Decision{Request: id, Answer: a, From: fayAt("memory")}); err != nil {
		s.t.Fatal(err)
	}
}

// What a caller recalls is withdrawn with its reason, and only its own requests.
func TestRecall(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	q := again(`{"command":"ls"}`)
	q.Agent, q.Claimed = "claude-code", true
	done := st.ask(t.Context(), q)
	st.shown(m, 1)
	recall := permissions.Recall{Session: "s1", Agent: "claude-code", Via: permissions.ViaKeyboard}
	for name, c := range map[string]struct {
		caller permissions.Caller
		recall permissions.Recall
		want   int
	}{
		"another caller":  {permissions.CallerUID(askerUID + 1), recall, 0},
		"another session": {self, permissions.Recall{Session: "s2", Agent: "claude-code", Via: permissions.ViaKeyboard}, 0},
		"another agent":   {self, permissions.Recall{Session: "s1", Agent: "codex", Via: permissions.ViaKeyboard}, 0},
		"another call": {self, permissions.Recall{
			Session: "s1", Agent: "claude-code", Tool: "Bash", Input: []byte(`{"command":"pwd"}`), Via: permissions.ViaKeyboard,
		}, 0},
	} {
		if n, err := st.Recall(t.Context(), c.caller, c.recall); n != c.want || err != nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	nobody := permissions.Caller{Name: permissions.Anonymous, UID: permissions.NoUID}
	if _, err := st.Recall(t.Context(), nobody, recall); permissions.CodeOf(err) != permissions.CodeToken {
		t.Errorf("nobody in particular: %v", err)
	}
	if n, err := st.Recall(t.Context(), self, recall); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if r := st.get(done); r.State != permissions.Cancelled || r.DecidedVia != permissions.ViaKeyboard || r.DecidedBy != "" {
		t.Errorf("%+v", r)
	}
}

// TestAnApprovalForASessionEndsWithIt, as its agent says; one that goes on with the session asks again.
func TestAnApprovalForASessionEndsWithIt(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	q := again(`{"command":"ls"}`)
	q.Agent, q.Claimed = "claude-code", true
	asks := func(n int, a permissions.Answer) permissions.Request {
		t.Helper()
		done := st.ask(t.Context(), q)
		st.decide(m, n, a)
		return st.get(done)
	}
	asks(1, permissions.Allow(permissions.SessionTool))
	end := permissions.Recall{Session: q.Session, Agent: q.Agent, Via: permissions.ViaInterrupt}
	others := []permissions.Recall{end, {Session: "another", Agent: q.Agent, Via: permissions.ViaSessionEnd}}
	for _, recall := range others {
		if _, err := st.Recall(t.Context(), self, recall); err != nil {
			t.Fatal(err)
		}
		if r := st.get(st.ask(t.Context(), q)); r.State != permissions.Approved || r.DecidedVia != permissions.ViaGrant {
			t.Fatalf("after %+v it is %s by %s", recall, r.State, r.DecidedVia)
		}
	}
	end.Via = permissions.ViaSessionEnd
	if _, err := st.Recall(t.Context(), self, end); err != nil {
		t.Fatal(err)
	}
	if r := asks(2, permissions.Deny); r.State != permissions.Denied {
		t.Errorf("it is %s by %s", r.State, r.DecidedVia)
	}
}

// Our own asking tools pass the hooks of agents without asking, under their names there, unless the configuration gates
// or forbids them.
func TestOurOwnToolsPassTheHooks(t *testing.T) {
	s := usual()
	s.Asking = map[string][]string{"claude-code": {"mcp__daycared__ask_user", "mcp__daycared__pause"}}
	s.Policy.Forbidden, s.Own = []string{"mcp__daycared__pause"}, []string{"/run/daycared"}
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, s, m)
	if r := st.get(st.ask(t.Context(), hook("mcp__daycared__ask_user", `{}`))); !r.AllowedByPolicy() {
		t.Errorf("%+v", r)
	}
	named := `{"hook.mcp_context":{"args":["--socket","/run/daycared/agent","mcp"]}}` // how Gemini CLI names the start of our server
	// Asked about, and not refused; see hooks.Call.ForgetServer.
	st.ask(t.Context(), hook("mcp__daycared__ask_user", named))
	if _, err := st.Ask(t.Context(), self, hook("Bash", named)); permissions.CodeOf(err) != permissions.CodeOwnFiles {
		t.Errorf("another tool with that input: %v", err)
	}
	if _, err := st.Ask(t.Context(), self, hook("mcp__daycared__pause", `{}`)); permissions.CodeOf(err) != permissions.CodeForbidden {
		t.Errorf("what is forbidden: %v", err)
	}
	other := hook("mcp__daycared__ask_user", `{}`)
	other.Hook = "gemini"
	st.ask(t.Context(), other)
	st.ask(t.Context(), tool("mcp__daycared__ask_user", `{"asked":"by no hook"}`))
	st.shown(m, 3)
}

// A large input is asked about by its hash; what is denied in it, or daycared's own, is seen all the same, and nothing is allowed.
func TestALargeInputOfAHookIsJudgedByWhatItSays(t *testing.T) {
	home := t.TempDir()
	s := usual()
	s.Own = []string{home + "/admin.key"}
	s.Rules, _ = rules.Compile([]rules.Rule{{Deny: []string{"run git push --force", "write **/.git/**"}}, {Allow: []string{"run true ..."}}})
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, s, m)
	for _, c := range []struct {
		tool, details string
		code          permissions.Code
	}{
		{"Bash", "\"command\", 40000 bytes:\n    true\n    git push --force\n\"description\", 1 bytes:\n    x", permissions.CodeForbidden},
		{"Write", "\"content\", 40000 bytes:\n    x\n\"file_path\", 16 bytes:\n    /srv/.git/config", permissions.CodeForbidden},
		{"Read", "\"file_path\", 16 bytes:\n    " + home + "/admin.key\n\"limit\", 40000 bytes:\n    1.0", permissions.CodeOwnFiles},
		{"Bash", "\"command\", 40000 bytes:\n    true", ""},
		{"Write", "\"content\", 40000 bytes:\n    git push --force .git/config\n\"file_path\", 6 bytes:\n    /srv/a", ""},
	} {
		q := hook(c.tool, `{"input_bytes":40000,"input_sha256":"00"}`)
		q.Details, q.Cwd, q.Leads = c.details, "/srv", permissions.Leads{Root: "/srv", Names: map[string]string{"/srv": "/srv"}}
		r, err := st.askAndLeave(self, q)
		if c.code != "" {
			refused(t, err, c.code)
		} else if r.State != permissions.Pending {
			t.Errorf("%s: %s, %v", c.details, r.State, err)
		}
	}
}

// Another server may be called daycared: where the agent says where it comes from, its tools are asked about.
func TestAnotherServerCalledDaycaredIsAskedAbout(t *testing.T) {
	s := usual()
	s.Asking = map[string][]string{"claude-code": {"mcp__daycared__ask_user"}, "gemini": {"mcp_daycared_ask_user"}}
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, s, m)
	for _, scope := range []string{"user", "enterprise", "managed"} {
		q := hook("mcp__daycared__ask_user", `{"hook.mcp_server":{"name":"daycared","source":"`+scope+`"}}`)
		if r := st.get(st.ask(t.Context(), q)); !r.AllowedByPolicy() {
			t.Errorf("%s: %+v", scope, r)
		}
	}
	shown := 0
	for _, input := range []string{
		`{"hook.mcp_server":{"name":"daycared","source":"project"}}`, `{"hook.mcp_server":{"name":"daycared","source":"dynamic"}}`,
		`{"hook.mcp_server":{"name":"daycared"}}`, `{"hook.mcp_server":"user"}`, `{"hook.mcp_server":{"Source":"user"}}`,
		`{"input_bytes":100000,"input_sha256":"00"}`,
		`{"hook.mcp_context":{"args":["mcp"],"command":"/tmp/daycared","server_name":"daycared"}}`,
	} {
		q := hook("mcp__daycared__ask_user", input)
		if strings.Contains(input, "context") {
			q.Hook, q.Tool = "gemini", "mcp_daycared_ask_user"
		}
		st.ask(t.Context(), q)
		shown++
		if p := st.shown(m, shown); !strings.Contains(string(p.Request.Input), input[1:len(input)-1]) {
			t.Errorf("%s: %s", input, p.Request.Input)
		}
	}
}

// Where nobody can be reached, the dialog of the agent's own program may still answer.
func TestTheKeyboardAnswersWhereNobodyCanBeReached(t *testing.T) {
	unreachable := connectortest.NewMemory(fayAt("memory"), nil)
	unreachable.FailReach(blocked)
	for _, keyboard := range []bool{true, false} {
		s := usual()
		s.Routes = []engine.Route{{Ask: []string{"fay"}, NoKeyboard: !keyboard}}
		st := newEnv(t, s, unreachable)
		got, err := st.Begin(t.Context(), self, hook("Bash", `{"command":"ls"}`))
		if err != nil || got.Request.State != permissions.Undeliverable || got.Keyboard != keyboard {
			t.Errorf("%s, keyboard %v: %v", got.Request.State, got.Keyboard, err)
		}
	}
}

// What a hook leaves to its agent's own mode is allowed for that call only, within the limit of unasked calls.
func TestWhatAHookLeavesOpensNothingElse(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	s := usual()
	s.Limits.AutoPerMinute = map[string]int{"*": 1}
	st := newEnv(t, s, m)
	q := hook("Bash", `{"command":"ls"}`)
	q.Harmless, q.Cwd = true, "/srv/code"
	if r := st.get(st.ask(t.Context(), q)); !r.AllowedByPolicy() {
		t.Errorf("it was not left: %s %s", r.State, r.DecidedVia)
	}
	for i, harmless := range []bool{false, true} { // the same call without the flag, and one more in this minute
		q.Harmless = harmless
		done := st.ask(t.Context(), q)
		st.decide(m, i+1, permissions.Deny)
		if r := st.get(done); r.State != permissions.Denied || (r.ExceededRate == 1) != harmless {
			t.Errorf("harmless %v: %s, beyond %d", harmless, r.State, r.ExceededRate)
		}
		q.Input = []byte(`{"command":"pwd"}`)
	}
}

// over is the context of a call that does not wait.
func over(t *testing.T) context.Context {
	t.Helper()
	ended, end := context.WithCancel(t.Context())
	end()
	return ended
}

// What was let go because a hook said that it is harmless answers nobody who does not say so: neither by a key nor by its id.
func TestWhatAMarkLetGoAnswersNoRequestWithoutIt(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	s := usual()
	st := newEnv(t, s, m)
	marked := hook("Bash", `{"command":"ls"}`)
	marked.Harmless, marked.Cwd, marked.Key = true, "/srv/code", "K1"
	if got := <-st.ask(t.Context(), marked); permissions.CodeOf(got.err) != permissions.CodeInvalid {
		t.Errorf("with a key: %+v", got)
	}
	marked.Key = ""
	left := st.get(st.ask(t.Context(), marked))
	if !left.AllowedByPolicy() {
		t.Fatalf("it was not left: %s %s", left.State, left.DecidedVia)
	}
	same := marked
	same.Harmless, same.ID = false, left.ID
	done := st.ask(t.Context(), same)
	st.decide(m, 1, permissions.Deny)
	if r := st.get(done); r.State != permissions.Denied || r.ID == left.ID {
		t.Errorf("by the id of what was left: %s", r.State)
	}
	keyed := tool("read_file", `{"path":"x"}`) // which policy lets go, for now
	keyed.Key = "K2"
	if r := st.get(st.ask(t.Context(), keyed)); !r.AllowedByPolicy() {
		t.Fatalf("it was asked about: %s %s", r.State, r.DecidedVia)
	}
	s.Policy.Auto = nil
	st.Configure(s)
	done = st.ask(t.Context(), keyed)
	st.decide(m, 2, permissions.Deny)
	if r := st.get(done); r.State != permissions.Denied {
		t.Errorf("by the key of what policy let go: %s", r.State)
	}
}

// That a call is harmless is its caller's word, which is weighed: people are asked unless the call reads so, and their route lets
// whoever is at the keyboard answer alone.
func TestAHarmlessClaimIsChecked(t *testing.T) {
	given := func(input string) func(*permissions.Request) {
		return func(q *permissions.Request) { q.Input = []byte(input) }
	}
	routed := func(routes ...engine.Route) func(*engine.Settings) {
		return func(s *engine.Settings) { s.Routes = routes }
	}
	for name, c := range map[string]struct {
		change   func(*permissions.Request)
		settings func(*engine.Settings)
		left     bool
	}{
		"as a hook says it":           {left: true},
		"without a stage":             {change: func(q *permissions.Request) { q.HookStage = "" }, left: true},
		"a dialect that is none":      {change: func(q *permissions.Request) { q.Hook = "any" }},
		"another dialect":             {change: func(q *permissions.Request) { q.Hook = "codex" }},
		"a tool that is not known":    {change: func(q *permissions.Request) { q.Tool = "deploy" }},
		"another command":             {change: given(`{"command":"rm -rf src"}`)},
		"one that is computed":        {change: given(`{"command":"ls $(x)"}`)},
		"a member beside it":          {change: given(`{"command":"ls","x":1}`)},
		"outside of the folder":       {change: given(`{"command":"cat /etc/passwd"}`)},
		"above the folder":            {change: given(`{"command":"cat ../x"}`)},
		"a secret":                    {change: given(`{"command":"cat .env"}`)},
		"no folder":                   {change: func(q *permissions.Request) { q.Cwd = "" }},
		"a folder that is relative":   {change: func(q *permissions.Request) { q.Cwd = "srv" }},
		"a folder that is everything": {change: func(q *permissions.Request) { q.Cwd = "/x/.." }},
		"the home folder":             {change: func(q *permissions.Request) { q.Cwd = "/home/fay" }},
		"root's home folder":          {change: func(q *permissions.Request) { q.Cwd = "/root/" }},
		"a home folder of macOS":      {change: func(q *permissions.Request) { q.Cwd = "/Users/fay" }},
		"all home folders":            {change: func(q *permissions.Request) { q.Cwd = "/home" }},
		"below the home folder":       {change: func(q *permissions.Request) { q.Cwd = "/home/fay/code" }, left: true},
		"a step": {change: func(q *permissions.Request) {
			q.Calls = []permissions.Call{{N: 1, Tool: q.Tool, Input: q.Input}}
			q.Tool, q.Input, q.Hook = "", nil, ""
		}},
		"a quorum":         {settings: routed(engine.Route{Ask: []string{"fay", "sam"}, Quorum: 2})},
		"people alone":     {settings: routed(engine.Route{Ask: []string{"fay"}, NoKeyboard: true})},
		"nobody to be had": {settings: routed()},
	} {
		t.Run(name, func(t *testing.T) {
			s := usual()
			if c.settings != nil {
				c.settings(&s)
			}
			st := newEnv(t, s, connectortest.NewMemory(fayAt("memory"), nil))
			q := again(`{"command":"ls"}`)
			q.HookStage, q.Harmless, q.Cwd = permissions.HookBefore, true, "/srv/code"
			if c.change != nil {
				c.change(&q)
			}
			r, err := st.Ask(over(t), self, q)
			if (r.State == permissions.Approved) != c.left {
				t.Errorf("%s, %v", r.State, err)
			}
		})
	}
}

// What people have said no to is not left to the agent because a hook calls it harmless: not in the same session, and not soon after.
func TestADenialOverridesAHarmlessClaim(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), m)
	q := hook("Bash", `{"command":"ls"}`)
	q.Session, q.Cwd = "s1", "/srv/code"
	done := st.ask(t.Context(), q)
	st.decide(m, 1, permissions.Deny)
	st.get(done)
	left := func(session string) bool {
		t.Helper()
		marked := q
		marked.Harmless, marked.Session, marked.Reason = true, session, "said otherwise"
		r, _ := st.Ask(over(t), self, marked)
		return r.AllowedByPolicy()
	}
	if left("s1") || left("s2") {
		t.Error("it is left a moment after the no")
	}
	st.advance(11 * time.Minute)
	if left("s1") {
		t.Error("it is left later in the session that was told no")
	}
	if !left("s3") {
		t.Error("it is not left in another session, long after")
	}
}

// TestACallThatLeadsElsewhereIsAskedAnew: it joins no card that says otherwise, nor goes by an answer to one, nor by a key.
func TestACallThatLeadsElsewhereIsAskedAnew(t *testing.T) {
	phone := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), phone)
	call := func(to string) permissions.Request {
		q := hook("Bash", `{"command":"cp s t"}`)
		q.Session = "s1"
		q.Leads = permissions.Leads{Root: "/", Names: map[string]string{"/": "/", "/t": to}}
		return q
	}
	st.ask(t.Context(), call("/t"))
	first := st.shown(phone, 1).Request
	other := st.ask(t.Context(), call("/etc/passwd"))
	second := st.shown(phone, 2).Request
	if second.ID == first.ID || second.Symlinks()["/t"] != "/etc/passwd" || len(first.Symlinks()) > 0 {
		t.Fatalf("asked as %+v, and %+v", first.Symlinks(), second.Symlinks())
	}
	st.decide(phone, 2, permissions.Allow(permissions.SessionTool))
	st.get(other)
	if r, err := st.Ask(t.Context(), self, call("/etc/passwd")); err != nil || r.DecidedVia != permissions.ViaGrant {
		t.Errorf("the same again is %s, %v", r.State, err)
	}
	st.ask(t.Context(), call("/etc/shadow"))
	if r := st.shown(phone, 3).Request; r.Symlinks()["/t"] != "/etc/shadow" {
		t.Errorf("asked as %+v", r.Symlinks())
	}
	unknown := call("/t")
	unknown.Leads = permissions.Leads{Unknown: true}
	st.ask(t.Context(), unknown)
	if r := st.shown(phone, 4).Request; !r.LeadsUnknown() || r.Offers(permissions.Allow(permissions.SessionTool)) {
		t.Errorf("where names lead is known: %v; offered %v", !r.LeadsUnknown(), r.Options)
	}
	keyed := call("/t")
	keyed.Key = "k"
	st.ask(t.Context(), keyed)
	st.shown(phone, 5)
	keyed.Leads = call("/etc/passwd").Leads
	_, err := st.Ask(t.Context(), self, keyed)
	refused(t, err, permissions.CodeKeyTaken)
	before := call("/t")
	before.HookStage, before.Session = permissions.HookBefore, "s2"
	asked := st.ask(t.Context(), before)
	st.shown(phone, 6)
	st.decide(phone, 6, allow())
	st.get(asked)
	before.HookStage, before.Leads = permissions.HookAgain, call("/etc/passwd").Leads
	st.ask(t.Context(), before)
	st.shown(phone, 7)
}

// TestRowsOfAFileAreShownAndAskNothing: what was told of a file belongs to what a decision is about, and to the store; an equal call
// with other rows joins the question all the same.
func TestRowsOfAFileAreShownAndAskNothing(t *testing.T) {
	phone := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, usual(), phone)
	edit := func(text string) permissions.Request {
		q := hook("Edit", `{"file_path":"/a","new_string":"y","old_string":"x"}`)
		q.Rows = []permissions.Rows{{First: 7, Text: text}}
		q.Leads = permissions.Leads{Root: "/", Names: map[string]string{"/": "/", "/a": "/x"}}
		return q
	}
	first := st.ask(t.Context(), edit("x\n"))
	r := st.shown(phone, 1).Request
	second := st.ask(t.Context(), edit("x\nz\n"))
	st.waiting(r.ID, 2)
	if len(r.Rows) != 1 || r.Rows[0] != (permissions.Rows{First: 7, Text: "x\n"}) || r.ShownDigest() == r.Digest {
		t.Fatalf("the card has %+v", r.Rows)
	}
	if diff := cmp.Diff(map[string]string{"/a": "/x"}, r.Symlinks()); diff != "" {
		t.Fatalf("the card has links: %s", diff)
	}
	_, err := phone.Do(t.Context(), connectors.Decision{Request: r.ID, Answer: allow(), Shown: r.Digest})
	if refusal := permissions.AsRefusal(err); refusal == nil || refusal.Text != permissions.ShownDiffers().Text {
		t.Errorf("a decision about a card without the rows is taken: %v", err)
	}
	st.mustBePending(r.ID)
	if _, err := phone.Do(t.Context(), connectors.Decision{Request: r.ID, Answer: permissions.Deny, Shown: r.ShownDigest()}); err != nil {
		t.Fatal(err)
	}
	for _, call := range []<-chan answer{first, second} {
		if got := st.get(call); got.ID != r.ID || got.State != permissions.Denied {
			t.Errorf("a call has %s, which is %s", got.ID, got.State)
		}
	}
}
