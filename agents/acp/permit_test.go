package acp_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/rules"
)

const options = `[{"optionId":"o2","kind":"allow_always","name":"Always allow make"},` +
	`{"optionId":"o1","kind":"allow_once","name":"Allow"},` +
	`{"optionId":"o3","kind":"reject_once","name":"Reject"}]`

// ask is a prompt line that makes the agent ask for permission.
func ask(kind, input string) string { return askWith(kind, input, options) }

func askWith(kind, input, options string) string {
	return fmt.Sprintf(`call session/request_permission {"sessionId":"$S","toolCall":{"toolCallId":"c1","title":"Do it","kind":%q,`+
		`"rawInput":%s,"locations":[{"path":"/srv/a","line":3},{"path":"/srv/b"}],`+
		`"content":[{"type":"diff","path":"/srv/a","oldText":"x\n","newText":"y\n"}]},"options":%s}`, kind, input, options)
}

// People see all that the agent says in its question, with the exact input; the answer is the agent's own option of that kind.
func TestPermission(t *testing.T) {
	s := newEnv(t)
	s.write(ask("execute", `{"command":"make","n":12345678901234567890}`))
	r := s.card(1)
	if r.Kind != permissions.KindTool || r.Tool != "acp_execute" || r.Reason != "Do it" || r.AffectedPath != "" ||
		string(r.Input) != `{"acp.files":["/srv/a","/srv/b"],"command":"make","n":12345678901234567890}` || r.Agent != "coder" || r.Claimed {
		t.Errorf("it asks %+v", r)
	}
	for _, want := range []string{"/srv/a, line 3", "/srv/b", "-x\n+y"} {
		if !strings.Contains(r.Details, want) {
			t.Errorf("nothing says %q in\n%s", want, r.Details)
		}
	}
	var offered []string
	for _, o := range r.Options {
		offered = append(offered, string(o.ID))
	}
	if got := strings.Join(offered, " "); got != "allow_once allow_session_tool deny" {
		t.Errorf("it offers %s", got)
	}
	waiting := s.waitActivity("coder", permissions.AwaitingUser)
	if waiting.Request != r.ID || waiting.Tool != "acp_execute" {
		t.Errorf("the session waits for %s (%s)", waiting.Request, waiting.Tool)
	}
	s.answer(r, allow)
	s.waitMessage(`{"outcome":{"optionId":"o1","outcome":"selected"}}`)
	if idle := s.waitActivity("coder", permissions.Idle); idle.Request != "" {
		t.Errorf("the session still waits for %s", idle.Request)
	}
}

// An edit is judged by the file that the agent shows, and takes a second yes if it shows none or several.
func TestAnEditIsJudgedByTheFileThatItShows(t *testing.T) {
	for call, want := range map[string]bool{
		`"kind":"edit","locations":[{"path":"$WS/a.go"}]`:                             false,
		`"kind":"edit","locations":[{"path":"/etc/hosts"}]`:                           true,
		`"kind":"edit","content":[{"type":"diff","path":"/etc/hosts","newText":"x"}]`: true,
		`"kind":"edit","rawInput":{"x":1},"locations":[{"path":"/etc/hosts"}]`:        true,
		`"kind":"edit","locations":[{"path":"$WS/a.go"},{"path":"/etc/hosts"}]`:       true,
		`"kind":"edit"`: true,
		`"kind":"execute","rawInput":{"command":"rm -rf /"}`: true,
		`"kind":"execute","rawInput":{"command":"make"}`:     false,
	} {
		s := newEnv(t)
		s.write(`call session/request_permission {"sessionId":"$S","toolCall":{"toolCallId":"c1","title":"Do it",` +
			strings.ReplaceAll(call, "$WS/", s.at("")+"/") + `},"options":` + options + `}`)
		r := s.card(1)
		if r.HighRisk != want || want && len(r.Options) != 2 {
			t.Errorf("%s: high risk %v, offered %v", call, r.HighRisk, r.Options)
		}
		s.answer(r, permissions.Deny)
	}
}

// TestRulesSeeTheFilesThatAProgramReports: the places and changes of a call are judged as what its input names.
func TestRulesSeeTheFilesThatAProgramReports(t *testing.T) {
	s := newEnv(t)
	configured := *s.Settings()
	var problems []rules.Problem
	configured.Rules, problems = rules.Compile([]rules.Rule{{Deny: []string{"write ./prot/**"}}, {Allow: []string{"write ./docs/**"}}})
	configured.Policy.Auto = append(configured.Policy.Auto, "acp_edit", "acp_read", "acp_move")
	configured.Own = []string{filepath.Join(s.dir, "key")}
	if err := rules.FirstError(problems); err != nil {
		t.Fatal(err)
	}
	s.Configure(configured)
	const docs = `"rawInput":{"file_path":"$WS/docs/y","content":"n"}`
	diff := func(name string) string { return `"content":[{"type":"diff","path":"$WS/` + name + `","newText":"x"}]` }
	for n, c := range []struct{ call, want string }{
		{`"kind":"edit","rawInput":{"file_path":"$WS/prot/y"}`, "o3"},
		{`"kind":"edit",` + diff("prot/y"), "o3"},
		{`"kind":"edit",` + docs + `,` + diff("prot/y"), "o3"},
		{`"kind":"other","rawInput":{"n":1},"locations":[{"path":"$WS/prot/y"}]`, "o3"},
		{`"kind":"other","rawInput":[1],"locations":[{"path":"$WS/prot/y"}]`, "o3"},
		{`"kind":"move","locations":[{"path":"$WS/docs/y"},{"path":"$WS/prot/y"}]`, "o3"},
		{`"kind":"read","locations":[{"path":"$WS/../key"}]`, "o3"},
		{`"kind":"edit",` + docs, "o1"},
		{`"kind":"edit",` + docs + `,` + diff("docs/y"), "o1"},
		{`"kind":"edit",` + docs + `,` + diff("docs/./y") + `,"locations":[{"path":"$WS/docs/y"}]`, "o1"},
		{`"kind":"edit",` + diff("docs/z"), "o1"},
		{`"kind":"read","locations":[{"path":"$WS/docs/y"}]`, "o1"},
	} {
		done := fmt.Sprintf("said %d.", n)
		s.write(`call session/request_permission {"sessionId":"$S","toolCall":{"toolCallId":"c1","title":"Do it",`+
			strings.ReplaceAll(c.call, "$WS/", s.at("")+"/")+`},"options":`+options+`}`, "say "+done)
		text := s.waitMessage(done)
		_, chosen, _ := strings.Cut(text[strings.LastIndex(text[:strings.LastIndex(text, done)], `"optionId":`)+1:], `:"`)
		if !strings.HasPrefix(chosen, c.want) {
			t.Errorf("%s: %s", c.call, text)
		}
	}
	if n := len(s.phone.Copies()); n != 0 {
		t.Errorf("%d cards are sent", n)
	}
}

// A permission for the session is kept here: the agent gets allow_once, and next time nobody is asked.
func TestPermissionForTheSession(t *testing.T) {
	s := newEnv(t)
	s.write(ask("execute", `{"command":"make"}`))
	s.answer(s.card(1), always)
	s.waitMessage(`"optionId":"o1"`)
	s.write(ask("execute", `{"command":"make"}`), "say unasked")
	s.waitMessage("unasked")
	if n := len(s.phone.Copies()); n != 1 {
		t.Errorf("there are %d cards", n)
	}
	s.write(ask("execute", `{"command":"make test"}`)) // B6: it covers this exact call
	s.answer(s.card(2), permissions.Deny)
	s.waitMessage(`"optionId":"o3"`)
	s.order(permissions.OrderNew)
	s.write(ask("execute", `{"command":"make"}`))
	s.answer(s.card(3), permissions.Deny)
	edit := strings.NewReplacer("/srv/", s.at("")+"/", `"newText":"y`, `"newText":"`+strings.Repeat("y", 200)).Replace(ask("edit", `{"n":1}`))
	s.write(edit)
	s.answer(s.card(4), always)
	s.write(edit, "say unasked again")
	s.waitMessage("unasked again")
	if n := len(s.phone.Copies()); n != 4 {
		t.Errorf("there are %d cards", n)
	}
}

// What the agent shows besides the input, and a title without an input, are of the exact call that is allowed: the input alone may not say
// what the call does.
func TestWhatIsShownIsOfTheExactCall(t *testing.T) {
	call := func(title, input, path, text string) string {
		return fmt.Sprintf(`call session/request_permission {"sessionId":"$S","toolCall":{"toolCallId":"c1","title":%q,"kind":"other",`+
			`"rawInput":%s,"locations":[{"path":%q}],"content":[{"type":"content","content":{"type":"text","text":%q}}]},"options":%s}`,
			title, input, path, text, options)
	}
	for name, other := range map[string]string{
		"content": call("Do it", `{"n":1}`, "/srv/a", "two"), "place": call("Do it", `{"n":1}`, "/srv/b", "one"),
		"title": call("Do that", `{"n":1}`, "/srv/a", "one"), "title alone": call("Do that", `{}`, "/srv/a", "one"),
	} {
		t.Run("B6/another "+name, func(t *testing.T) {
			s := newEnv(t)
			input := `{"n":1}`
			if name == "title alone" {
				input = `{}`
			}
			s.write(call("Do it", input, "/srv/a", "one"))
			s.answer(s.card(1), always)
			s.waitMessage(`"optionId":"o1"`)
			s.write(call("Do it", input, "/srv/a", "one"), "say unasked")
			s.waitMessage("unasked")
			s.write(other)
			s.answer(s.card(2), permissions.Deny)
			s.waitMessage(`"optionId":"o3"`)
		})
	}
}

// Of several options of the kind, the card names the one that is chosen.
func TestTheOptionThatIsChosen(t *testing.T) {
	s := newEnv(t)
	s.write(askWith("execute", `{"command":"make"}`, `[{"optionId":"o1","kind":"allow_once","name":"Yes, and never \"ask\""},`+
		`{"optionId":"o2","kind":"allow_once","name":"Yes"}]`))
	r := s.card(1)
	if !strings.HasSuffix(r.Details, `To allow it chooses the agent's option "Yes, and never \"ask\"".`) {
		t.Errorf("the details are %q", r.Details)
	}
	s.answer(r, allow)
	s.waitMessage(`"optionId":"o1"`)
	s.write(ask("execute", `{"command":"make"}`))
	if r := s.card(2); strings.Contains(r.Details, "chooses") {
		t.Errorf("of one option, the details are %q", r.Details)
	}
}

// A denial is the agent's own rejection with the reason; no answer, and anything else, is cancelled.
func TestNoPermission(t *testing.T) {
	s := newEnv(t)
	s.write(ask("execute", `{"command":"rm"}`))
	s.answer(s.card(1), permissions.Deny, "not today")
	s.waitMessage(`{"_meta":{"daycared/reason":"not today"},"outcome":{"optionId":"o3","outcome":"selected"}}`)
	s.write(ask("edit", `{"path":"/srv/a"}`))
	s.card(2)
	s.advance(time.Hour)
	s.waitMessage(`{"outcome":{"outcome":"cancelled"}}`)
}

// Policy rejects and allows without a question.
func TestPolicy(t *testing.T) {
	s := newEnv(t)
	s.write(ask("delete", `{}`), ask("think", `{}`), "say so be it")
	text := s.waitMessage("so be it")
	if !strings.Contains(text, `"daycared/reason":"Tool acp_delete is forbidden here."},"outcome":{"optionId":"o3"`) ||
		!strings.Contains(text, `"optionId":"o1"`) || len(s.phone.Copies()) != 0 {
		t.Errorf("it says\n%s", text)
	}
}

// An agent that offers no allow_once gets nothing: its other options permit more than this exact call.
func TestOnlyAlways(t *testing.T) {
	const only = `[{"optionId":"wide","kind":"allow_always","name":"All of it"},{"optionId":"no","kind":"reject_always","name":"Never"}]`
	s := newEnv(t)
	s.write(askWith("execute", `{"command":"a"}`, only))
	r := s.card(1)
	if !strings.Contains(r.Details, "It cannot be allowed here") {
		t.Errorf("nothing says so in\n%s", r.Details)
	}
	s.answer(r, allow)
	s.waitMessage(`{"outcome":{"outcome":"cancelled"}}`)
	s.write(askWith("execute", `{"command":"b"}`, only))
	s.answer(s.card(2), permissions.Deny)
	s.waitMessage(`"optionId":"no"`)
	s.write(askWith("execute", `{"command":"c"}`, only))
	s.answer(s.card(3), always)
	if text := s.waitMessage(`{"outcome":{"outcome":"cancelled"}}`); strings.Contains(text, `"optionId":"wide"`) {
		t.Errorf("it says\n%s", text)
	}
}

// An ambiguous question is refused without asking people.
func TestOddPermissions(t *testing.T) {
	s := newEnv(t)
	s.write(
		`call session/request_permission {"sessionId":"$S","toolCall":{"toolCallId":"c","rawInput":{"a":1,"a":2}},"options":`+options+`}`,
		`call session/request_permission {"sessionId":"$S","toolCall":{"toolCallId":"c"},"options":[]}`,
		`call session/request_permission {"sessionId":"$S","toolCall":{"toolCallId":"c"},`+
			`"options":[{"optionId":"a","kind":"allow_once","name":"A"},{"optionId":"a","kind":"reject_once","name":"B"}]}`,
		`call session/request_permission {"sessionId":"other","toolCall":{"toolCallId":"c"},"options":`+options+`}`,
		`call session/request_permission {"sessionId":"$S","toolCall":7,"options":`+options+`}`,
		"say five")
	text := s.waitMessage("five")
	if strings.Count(text, "fails: -32602") != 5 || len(s.phone.Copies()) != 0 {
		t.Errorf("it says\n%s", text)
	}
}

// An agent may describe a call first, and then ask by its id alone. A call without an input shows its title.
func TestPermissionOfAKnownCall(t *testing.T) {
	s := newEnv(t)
	s.write(
		`note session/update {"sessionId":"$S","update":{"sessionUpdate":"tool_call","toolCallId":"c9",`+
			`"title":"Run make","kind":"execute","rawInput":{"command":"make"}}}`,
		`call session/request_permission {"sessionId":"$S","toolCall":{"toolCallId":"c9"},"options":`+options+`}`)
	if r := s.card(1); r.Tool != "acp_execute" || r.Reason != "Run make" || string(r.Input) != `{"command":"make"}` {
		t.Errorf("it asks %+v", r)
	}
	s.order(permissions.OrderStop)
	s.waitSettled(1, permissions.Cancelled)
	s.write(`call session/request_permission {"sessionId":"$S","toolCall":{"toolCallId":"c10","title":"Odd","kind":"magic"},` +
		`"options":` + options + `}`)
	if r := s.card(2); r.Tool != "acp_other" || string(r.Input) != `{"title":"Odd"}` {
		t.Errorf("it asks %+v", r)
	}
}

// TestAPlanIsAPlanCard: what an agent asks when it has planned is a plan, from its input, what it shows or the last plan that it
// reported, allowed once alone. Another mode is none.
func TestAPlanIsAPlanCard(t *testing.T) {
	for call, want := range map[string]string{
		`"rawInput":{"plan":"1. Look\nGo"},"content":[{"type":"content","content":{"type":"text","text":"1. Look\nGo"}}]`: "1. Look\nGo",
		`"content":[{"type":"content","content":{"type":"text","text":"1. Look"}}]`:                                       "1. Look",
		`"locations":[]`: "[x] Look\n[ ] Write",
		`"rawInput":{"mode":"bypassPermissions"}`: "",
		`"rawInput":{"plan":" "}`:                 "",
	} {
		s := newEnv(t)
		s.write(`note session/update {"sessionId":"$S","update":{"sessionUpdate":"plan","entries":[` +
			`{"content":"Look","priority":"high","status":"completed"},{"content":"Write","priority":"high","status":"pending"}]}}` + "\n" +
			`call session/request_permission {"sessionId":"$S","toolCall":{"toolCallId":"c1","title":"Ready to code?",` +
			`"kind":"switch_mode",` + call + `},"options":` + options + `}`)
		r := s.card(1)
		plan, rest := r.Plan()
		if plan != want || r.Plans() != (want != "") || r.Tool != "acp_switch_mode" {
			t.Errorf("%s: the plan %q of %s %s", call, plan, r.Tool, r.Input)
		}
		if want == "" {
			s.answer(r, permissions.Deny)
			continue
		}
		if len(r.Options) != 2 || r.Options[0].Label != "Start" || r.Options[1].Label != "Stop" || string(rest) != "{}" ||
			strings.Contains(r.Details, "1. Look") || !strings.Contains(r.Details, `To allow it chooses the agent's option "Allow".`) {
			t.Errorf("%s: offered %v, beside %s\n%s", call, r.Options, rest, r.Details)
		}
		if want == "1. Look" { // to be changed
			s.answer(r, permissions.Deny, "test it first")
			s.waitMessage(`{"_meta":{"daycared/reason":"test it first"},"outcome":{"optionId":"o3","outcome":"selected"}}`)
			continue
		}
		s.answer(r, allow)
		s.waitMessage(`{"outcome":{"optionId":"o1","outcome":"selected"}}`)
	}
}
