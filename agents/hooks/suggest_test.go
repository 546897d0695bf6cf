package hooks

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// suggesting is a call of PermissionRequest with these suggestions.
func suggesting(t *testing.T, suggestions string) Call {
	t.Helper()
	d, _ := Find("claude-code")
	c, err := d.Read([]byte(`{"hook_event_name":"PermissionRequest","prompt_id":"p","session_id":"s","cwd":"/srv",` +
		`"permission_mode":"default","tool_name":"Bash","tool_input":{"command":"ls"},"permission_suggestions":` + suggestions + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	addsRule = `{"behavior":"allow","destination":"session","rules":[{"ruleContent":"npm run:*","toolName":"Bash"}],"type":"addRules"}`
	addsDir  = `{"destination":"session","directories":["/srv"],"type":"addDirectories"}`
)

// Only what adds to the session's own permissions can be chosen. What would write settings or end the asking is shown, and a list of
// which anything cannot be read is not used at all.
func TestSuggestionsThatCanBeChosen(t *testing.T) {
	rule := func(from, to string) string { return "[" + strings.Replace(addsRule, from, to, 1) + "]" }
	dir := func(from, to string) string { return "[" + strings.Replace(addsDir, from, to, 1) + "]" }
	dirs := func(numbers ...int) string {
		var all []string
		for _, n := range numbers {
			all = append(all, strings.Replace(addsDir, "/srv", fmt.Sprintf("/srv/%d", n), 1))
		}
		return strings.Join(all, ",")
	}
	room := permissions.MaxOption - len("have Claude Code allow Bash(npm run:*) by itself in this session")
	for name, c := range map[string]struct {
		given   string
		offered int
		shown   string
	}{
		"as many as are read": {"[" + strings.Repeat(addsDir+",", maxSuggestions-1) + addsRule + "]", 2, ""},
		"the longest rule":    {rule("npm run", "npm run"+strings.Repeat("x", room)), 1, ""},
		"one letter more": {rule("npm run", "npm run"+strings.Repeat("x", room+1)), 0,
			"is too long to be offered here, or one too many: addRules allow Bash(npm runxx"},
		"rules left out":    {rule(`"rules":[{"ruleContent":"npm run:*","toolName":"Bash"}],`, ""), 0, "addRules allow"},
		"folders left out":  {dir(`"directories":["/srv"],`, ""), 0, "addDirectories"},
		"a tool that reads": {rule(`"ruleContent":"npm run:*","toolName":"Bash"`, `"toolName":"Read"`), 1, ""},
		"every file": {rule(`"ruleContent":"npm run:*","toolName":"Bash"`, `"ruleContent":"*","toolName":"Read"`), 0,
			"Read(*)"},
		"a rule and a folder": {"[" + addsRule + "," + addsDir + "]", 2, ""},
		"the same twice":      {"[" + addsDir + "," + addsDir + "]", 1, ""},
		"five": {"[" + dirs(1, 2, 3, 4) + "," + addsRule + "]", 4,
			"one too many: addRules allow Bash(npm run:*) (session)"},
		"no destination":             {`[{"type":"addRules"}]`, 0, ""},
		"nothing":                    {"[]", 0, ""},
		"no list":                    {`{"type":"addRules"}`, 0, ""},
		"user settings":              {rule("session", "userSettings"), 0, "addRules allow Bash(npm run:*) (userSettings)"},
		"project settings":           {rule("session", "projectSettings"), 0, "(projectSettings)"},
		"local settings":             {rule("session", "localSettings"), 0, "(localSettings)"},
		"the command line":           {rule("session", "cliArg"), 0, "(cliArg)"},
		"folders of settings":        {dir("session", "userSettings"), 0, "addDirectories /srv (userSettings)"},
		"replaced rules":             {rule("addRules", "replaceRules"), 0, "replaceRules allow Bash(npm run:*) (session)"},
		"removed rules":              {rule("addRules", "removeRules"), 0, "removeRules"},
		"removed folders":            {dir("addDirectories", "removeDirectories"), 0, "removeDirectories /srv (session)"},
		"a rule that denies":         {rule(`"allow"`, `"deny"`), 0, "addRules deny"},
		"a rule that asks":           {rule(`"allow"`, `"ask"`), 0, "addRules ask"},
		"a mode":                     {`[{"destination":"session","mode":"bypassPermissions","type":"setMode"}]`, 0, "setMode bypassPermissions"},
		"a rule with a mode":         {rule(`"rules"`, `"mode":"auto","rules"`), 0, "addRules allow auto"},
		"every command":              {rule(`"ruleContent":"npm run:*",`, ""), 0, "addRules allow Bash (session)"},
		"every command by a pattern": {rule("npm run:*", ":*"), 0, "Bash(:*)"},
		"every command as a tool":    {rule(`"toolName":"Bash"`, `"toolName":"Bash(*)"`), 0, "Bash(*)"},
		"every command, spaced":      {rule(`"ruleContent":"npm run:*","toolName":"Bash"`, `"toolName":"Bash "`), 0, "allow Bash  (session)"},
		"another shell":              {rule(`"ruleContent":"npm run:*","toolName":"Bash"`, `"toolName":"PowerShell"`), 0, "allow PowerShell"},
		"every command of a shell":   {rule("npm run:*", "sh -c:*"), 0, "Bash(sh -c:*)"},
		"every script":               {rule("npm run:*", "/usr/bin/python3.12 *"), 0, "Bash(/usr/bin/python3.12 *)"},
		"every command as root":      {rule("npm run:*", "sudo:*"), 0, "Bash(sudo:*)"},
		"a program like a shell":     {rule("npm run:*", "shfmt:*"), 1, ""},
		"one command of a shell":     {rule("npm run:*", "sh build.sh"), 1, ""},
		"every tool":                 {rule(`"ruleContent":"npm run:*","toolName":"Bash"`, `"toolName":"*"`), 0, "allow *"},
		"every command by ?*":        {rule("npm run:*", "?*"), 0, "Bash(?*)"},
		"the root":                   {dir("/srv", "/"), 0, "addDirectories / (session)"},
		"no rules":                   {rule(`[{"ruleContent":"npm run:*","toolName":"Bash"}]`, "[]"), 0, ""},
		"a folder without a root":    {dir("/srv", "srv"), 0, "addDirectories srv"},
		"an unknown kind":            {rule("addRules", "addHooks"), 0, "addHooks"},
		"an unknown member":          {"[" + addsDir + "," + strings.Replace(addsRule, `"type"`, `"also":1,"type"`, 1) + "]", 0, ""},
		"a member in another case":   {rule(`"type"`, `"TYPE":"setMode","type"`), 0, ""},
		"a destination said twice":   {rule(`"rules"`, `"Destination":"userSettings","rules"`), 0, ""},
		"something invisible":        {dir("/srv", `/srv\u202e`), 0, ""},
		"a long rule":                {rule("npm run", "npm run "+strings.Repeat("x", permissions.MaxOption)), 0, "npm run xxx"},
		"another shape":              {`["allow"]`, 0, ""},
		"too many":                   {"[" + strings.Repeat(addsDir+",", maxSuggestions) + addsRule + "]", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := suggesting(t, c.given)
			if len(r.Request.Choices) != c.offered || len(r.suggested) != c.offered {
				t.Errorf("offered are %q", r.Request.Choices)
			}
			if !strings.Contains(r.Request.Message, c.shown) || c.shown == "" && r.Request.Message != "" {
				t.Errorf("the card says %q", r.Request.Message)
			}
		})
	}
	d, _ := Find("codex")
	c, err := d.Read([]byte(`{"hook_event_name":"PermissionRequest","turn_id":"t","session_id":"s","cwd":"/srv","tool_name":"Bash",` +
		`"tool_input":{"command":"ls"},"permission_suggestions":[` + addsRule + `]}`))
	if err != nil || c.suggested != nil || c.Request.Choices != nil {
		t.Errorf("Codex, which has none: %q, %v", c.Request.Choices, err)
	}
}

// What is returned is the suggestion that the hook was given and whose words were shown, whatever else an answer says.
func TestAChosenSuggestionIsReturnedAsItCame(t *testing.T) {
	const silent = `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}` + "\n"
	const given = `"decision":{"behavior":"allow","updatedPermissions":[%s]}}}`
	two := "[" + addsRule + "," + addsDir + "]"
	takes := func(a permissions.Answer) func(*permissions.Request) {
		return func(r *permissions.Request) { r.Answer = a }
	}
	for name, c := range map[string]struct {
		given  string
		change func(*permissions.Request)
		want   string
	}{
		"once":                   {two, takes("allow_once"), silent},
		"the first":              {two, takes("allow_with_1"), fmt.Sprintf(given, addsRule)},
		"the second":             {two, takes("allow_with_2"), fmt.Sprintf(given, addsDir)},
		"one that was not shown": {two, takes("allow_with_3"), `"Not allowed: the answer takes a suggestion that was not shown."`},
		"one where none was":     {"[]", takes("allow_with_1"), `"deny","message":"Not allowed: the answer takes`},
		"one that writes settings": {"[" + strings.Replace(addsRule, "session", "userSettings", 1) + "]", takes("allow_with_1"),
			`"deny","message":"Not allowed: the answer takes`},
		"the answer to other suggestions": {two, func(r *permissions.Request) {
			r.Answer, r.Choices = "allow_with_1", []string{r.Choices[1], r.Choices[0]}
		}, `"deny","message":"Not allowed: the answer is about another call`},
		"the answer to another call": {two, func(r *permissions.Request) {
			r.Answer, r.Input = "allow_with_1", []byte(`{"command":"pwd"}`)
		}, `"deny","message":"Not allowed: the answer is about another call`},
		"denied": {two, func(r *permissions.Request) { r.Answer, r.State = "allow_with_1", permissions.Denied }, `"behavior":"deny"`},
	} {
		t.Run(name, func(t *testing.T) {
			call := suggesting(t, c.given)
			v := Decide(t.Context(), mixed{change: c.change}, permissions.CallerUID(1000), call, time.Minute)
			if said := string(call.Reply(v).Body); !strings.Contains(said, c.want) || strings.Contains(said, "userSettings") {
				t.Errorf("%s", said)
			}
		})
	}
}

// replacing is an engine where a plain question is pending, and the next one is answered.
type replacing struct {
	mixed

	begun, asked []permissions.Request
	left         permissions.Request
	err          error
	withdrawn    permissions.ID
}

func (d *replacing) Begin(_ context.Context, _ permissions.Caller, q permissions.Request) (permissions.RequestView, error) {
	d.begun = append(d.begun, q)
	q.Version, q.State = permissions.DigestVersion, permissions.Pending
	if q.Tool == "AskUserQuestion" { // by policy
		q.State, q.Answer, q.Scope = permissions.Approved, permissions.Allow(permissions.Once), permissions.Once
		q.DecidedVia = permissions.ViaGrant
	}
	q.Digest = permissions.ComputeDigest(q)
	return permissions.RequestView{Request: q, Keyboard: true}, nil
}

func (d *replacing) LeaveOrCancel(
	_ context.Context, _ permissions.Caller, id permissions.ID, _, _ string,
) (permissions.RequestView, error) {
	d.withdrawn = id
	return permissions.RequestView{Request: d.left}, d.err
}

func (d *replacing) Ask(ctx context.Context, c permissions.Caller, q permissions.Request) (permissions.Request, error) {
	d.asked = append(d.asked, q)
	return d.mixed.Ask(ctx, c, q)
}

// At the keyboard, the question of the hook that came before is replaced by one with the suggestions, so that people are asked once. If
// it cannot be replaced, it is the one that is waited for.
func TestAtTheKeyboardTheSuggestionsReplaceThePlainQuestion(t *testing.T) {
	takes := func(r *permissions.Request) { r.Answer = "allow_with_1" }
	plain := func(*permissions.Request) {}
	cancelled := permissions.Request{State: permissions.Cancelled}
	for name, c := range map[string]struct {
		engine  replacing
		choices int
		want    string
	}{
		"replaced":        {replacing{mixed: mixed{change: takes}, left: cancelled}, 1, `"updatedPermissions":[` + addsDir + `]`},
		"somebody waits":  {replacing{mixed: mixed{change: plain}, left: permissions.Request{State: permissions.Pending}}, 0, `"allow"}`},
		"settled by then": {replacing{mixed: mixed{change: plain}, err: permissions.Forbidden("x")}, 0, `"allow"}`},
		"cancelled by a person": {replacing{mixed: mixed{change: plain}, left: permissions.Request{
			State: permissions.Cancelled, DecidedBy: "fay",
		}}, 0, `"allow"}`},
		"taken from the plain one": {replacing{mixed: mixed{change: takes}, left: permissions.Request{State: permissions.Pending}}, 0, `"deny"`},
	} {
		t.Run(name, func(t *testing.T) {
			call := suggesting(t, "["+addsDir+"]")
			call.Keyboard = true
			said := call.Reply(Race(t.Context(), &c.engine, permissions.CallerUID(1000), call, time.Minute))
			if !strings.Contains(string(said.Body), c.want) {
				t.Errorf("%s", said.Body)
			}
			b := c.engine.begun
			if len(b) != 1 || b[0].Choices != nil || b[0].Message != "" || !b[0].FollowUpExpected || c.engine.withdrawn != b[0].ID {
				t.Errorf("before, it asked %+v and gave up %s", b, c.engine.withdrawn)
			}
			if a := c.engine.asked; len(a) != 1 || len(a[0].Choices) != c.choices || a[0].FollowUpExpected {
				t.Errorf("then it asked %+v", a)
			}
		})
	}
	call := suggesting(t, "[]")
	call.Keyboard = true
	engine := replacing{mixed: mixed{change: plain}}
	Race(t.Context(), &engine, permissions.CallerUID(1000), call, time.Minute)
	if engine.withdrawn != "" || engine.begun[0].FollowUpExpected {
		t.Errorf("without suggestions, %+v was given up", engine.begun)
	}
	for _, event := range []string{"PreToolUse", "PermissionRequest"} {
		d, _ := Find("claude-code")
		question, err := d.Read([]byte(`{"hook_event_name":"` + event + `","session_id":"s","cwd":"/srv","tool_name":"AskUserQuestion",` +
			`"tool_input":{"questions":[{"question":"Which?","options":[{"label":"a"},{"label":"b"}]}]},` +
			`"permission_suggestions":[` + addsDir + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		question.Keyboard = true
		engine := replacing{mixed: mixed{change: plain}}
		Race(t.Context(), &engine, permissions.CallerUID(1000), question, time.Minute)
		if engine.begun[0].Kind != permissions.KindTool {
			t.Errorf("policy is not asked first about %+v", engine.begun[0])
		}
		if q := engine.begun[1]; engine.withdrawn != "" || q.FollowUpExpected || len(q.Choices) != 2 || q.Kind != permissions.KindClarification {
			t.Errorf("a question at %s: %+v, %s was given up", event, q, engine.withdrawn)
		}
	}
}
