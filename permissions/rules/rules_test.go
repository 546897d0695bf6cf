package rules

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions/acts"
)

func TestStrongestRuleDecides(t *testing.T) {
	s := rulesOf(t,
		Rule{Allow: []string{
			"run git push origin *", "run ls ...", "write ./**", "read /etc/hosts", "fetch *.example.org", "tool github/get_*",
		}},
		Rule{Ask: []string{"write **/.github/**", "run git push origin prod"}, Why: "it ships"},
		Rule{Deny: []string{"run git push --force", "fetch evil.example.org"}})
	for command, want := range map[string]struct {
		effect Effect
		rule   int
	}{
		"git push origin main": {Allow, 1}, "git push origin prod": {Ask, 2}, "git push -f origin prod": {Deny, 3},
		"ls; git push origin prod": {Ask, 2}, "ls > .github/x": {Ask, 2}, "ls > x": {Allow, 1}, "ls; touch x": {"", 0},
		"git push origin prod; git push --force": {Deny, 3},
	} {
		if v := judged(s, command); v.Effect != want.effect || want.rule > 0 && v.Rule != want.rule {
			t.Errorf("%q: %q by rule %d, want %q by %d; %v", command, v.Effect, v.Rule, want.effect, want.rule, v.Reasons)
		}
	}
	if v := judged(s, "git push origin prod"); v.Why != "it ships" {
		t.Errorf("why: %q", v.Why)
	}
}

// What each dialect's tools do is judged by the text, path, host or name in their input, and what is not known is asked.
func TestToolsOfEachDialect(t *testing.T) {
	s := rulesOf(t,
		Rule{Allow: []string{
			"run go test ./...", "write ./src/**", "read ./**", "fetch docs.example.org", "tool github/get_*", "tool TodoWrite",
		}},
		Rule{Deny: []string{"run rm", "read **/.env", "tool github/delete_*"}})
	for _, c := range []struct {
		dialect, tool, input string
		want                 Effect
	}{
		{"claude-code", "Bash", `{"command":"go test ./...","description":"Test"}`, Allow},
		{"claude-code", "Bash", `{"command":"go test ./...; rm x"}`, Deny},
		{"claude-code", "Bash", `{"command":"go test ./...","run_in_background":true}`, ""},
		{"claude-code", "Read", `{"file_path":"/home/kim/shop/a"}`, Allow},
		{"claude-code", "Read", `{"file_path":"/home/kim/shop/.env"}`, Deny}, {"claude-code", "Read", `{"file_path":"/etc/passwd"}`, ""},
		{"claude-code", "Edit", `{"file_path":"src/a.go","old_string":"a","new_string":"b"}`, Allow},
		{"claude-code", "Edit", `{"file_path":"a.go","old_string":"a","new_string":"b"}`, ""},
		{"claude-code", "Write", `{"file_path":"src/../a","content":"x"}`, ""},
		{"claude-code", "MultiEdit", `{"file_path":"src/a.go","edits":[]}`, Allow},
		{"claude-code", "WebFetch", `{"url":"https://docs.example.org/a","prompt":"x"}`, Allow},
		{"claude-code", "WebFetch", `{"url":"https://docs.example.org@x.example/a"}`, ""},
		{"claude-code", "mcp__github__get_issue", `{"n":1}`, Allow},
		{"claude-code", "mcp__github__delete_repo", `{}`, Deny},
		{"claude-code", "mcp__gitlab__get_issue", `{}`, ""},
		{"claude-code", "TodoWrite", `{"todos":[]}`, Allow},
		{"claude-code", "Unknown", `{}`, ""},
		{"claude-code", "Unknown", `{"command":"rm x"}`, Deny},
		{"claude-code", "Unknown", `{"deep":[{"file":"/x/.env"}]}`, Deny},
		{"codex", "Bash", `{"command":"go test ./..."}`, ""},
		{"codex", "shell", `{"command":["bash","-lc","go test ./..."],"workdir":"/home/kim/shop"}`, Allow},
		{"codex", "shell", `{"command":["bash","-lc","go test ./... && rm x"],"workdir":"/home/kim/shop"}`, Deny},
		{"codex", "Bash", `{"command":"rm x"}`, Deny},
		{"codex", "apply_patch", `{"command":"*** Begin Patch\n*** Update File: src/a.go\n@@\n-a\n+b\n*** End Patch"}`, Allow},
		{"codex", "apply_patch", `{"command":"*** Begin Patch\n*** Update File: src/a.go\n*** Move to: a.go\n@@\n-a\n+b\n*** End Patch"}`, ""},
		{"gemini", "run_shell_command", `{"command":"go test ./...","description":"x"}`, Allow},
		{"gemini", "run_shell_command", `{"command":"go test ./...","dir_path":"/etc"}`, ""},
		{"gemini", "write_file", `{"file_path":"src/a","content":"x"}`, Allow}, {"gemini", "mcp_github_get_issue", `{}`, Allow},
		{"cursor", "Shell", `{"command":"go test ./..."}`, ""},
		{"cursor", "Shell", `{"command":"rm x"}`, Deny},
		{"cursor", "Write", `{"file_path":"src/a","contents":"x"}`, Allow},
		{"copilot", "bash", `{"command":"go test ./..."}`, ""}, {"copilot", "create", `{"path":"src/a","file_text":"x"}`, Allow},
		{"opencode", "bash", `{"command":"go test ./...","description":"x"}`, Allow},
		{"opencode", "bash", `{"command":"go test ./...","workdir":"/etc"}`, ""},
		{"opencode", "edit", `{"filePath":"src/a","oldString":"a","newString":"b"}`, Allow},
		{"vscode", "run_in_terminal", `{"command":"go test ./...","explanation":"x"}`, ""},
		{"vscode", "create_file", `{"filePath":"src/a","content":"x"}`, Allow},
		{acts.Daycared, "run_command", `{"command":"go test ./...","timeout":60}`, Allow},
		{acts.Daycared, "run_command", `{"command":"go test ./...","cwd":"/etc"}`, ""},
		{acts.Daycared, "write_file", `{"path":"src/a","content":"x"}`, Allow},
		{acts.Daycared, "fetch_url", `{"url":"https://docs.example.org/"}`, Allow},
		{acts.Daycared, "github__get_issue", `{}`, Allow},
		{"acp", "acp_execute", `{"command":"go test ./..."}`, ""},
		{"", "run_command", `{"command":"go test ./..."}`, Allow},
		{"", "deploy", `{}`, ""},
	} {
		v := s.Judge(Call{Dialect: c.dialect, Tool: c.tool, Input: json.RawMessage(c.input), Folder: shop, Root: shop, Resolve: links(shop)})
		if v.Effect != c.want {
			t.Errorf("%s %s %s: %q, want %q: %v", c.dialect, c.tool, c.input, v.Effect, c.want, v.Reasons)
		}
	}
}

func TestConditionsOfRules(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	s := rulesOf(t, Rule{
		Allow: []string{"run git status"}, Agents: []string{"code*"}, People: []string{"fay"}, In: shop, Until: at.Add(time.Hour),
	})
	call := Call{Agent: "coder", Person: "fay", Command: "git status", Folder: shop, Root: shop, Resolve: filepath.Clean, At: at}
	for name, change := range map[string]func(*Call){
		"another agent": func(c *Call) { c.Agent = "deploy" },
		"no agent":      func(c *Call) { c.Agent = "" },
		"another owner": func(c *Call) { c.Person = "sam" },
		"no owner":      func(c *Call) { c.Person = "" }, "another folder": func(c *Call) { c.Folder, c.Root = "/srv/x", "/srv/x" },
		"a folder that is called alike": func(c *Call) { c.Folder, c.Root = shop+"x", shop+"x" },
		"later":                         func(c *Call) { c.At = at.Add(2 * time.Hour) },
		"a link to elsewhere":           func(c *Call) { c.Resolve = func(string) string { return "/srv/x" } },
	} {
		c := call
		if change(&c); s.Judge(c).Effect == Allow {
			t.Error(name)
		}
	}
	if v := s.Judge(call); v.Effect != Allow {
		t.Errorf("as it is: %v", v.Reasons)
	}
}

// A rule for agents by a pattern holds for those that they start, too: their names have a slash.
func TestAPatternOfAgentsCoversThoseThatTheyStart(t *testing.T) {
	for _, pattern := range []string{"*", "code*"} {
		s := rulesOf(t, Rule{Deny: []string{"run git push"}, Agents: []string{pattern}})
		call := Call{Agent: "coder/helper", Command: "git push", Folder: shop, Root: shop, Resolve: filepath.Clean}
		if v := s.Judge(call); v.Effect != Deny {
			t.Errorf("%s: %q", pattern, v.Effect)
		}
	}
}

// Without the word of a hook, nobody knows where a name leads on another machine, so no rule allows what depends on it.
func TestNothingIsKnownOfAnotherMachine(t *testing.T) {
	s := rulesOf(t, Rule{Use: "builtin:read-only"}, Rule{Use: "builtin:workspace-edits"},
		Rule{Allow: []string{"run cat ...", "run go test ./...", "run git push origin *", "write ./**", "run ls"}})
	for command, want := range map[string]Effect{
		"cat a": "", "echo a > b": "", "cd src && go test ./...": "", "git push origin main": "", "ls": Allow, "go test ./...": Allow,
	} {
		if v := s.Judge(Call{Command: command, Folder: shop, Root: shop}); v.Effect != want {
			t.Errorf("%q: %q: %v", command, v.Effect, v.Reasons)
		}
	}
	for _, command := range []string{
		"cat a src/b", "cd src && cat ../a", "echo a > b", "git push origin main", "git show HEAD:a", "go test ./...", "sort -k2 a",
	} {
		here := Call{Command: command, Folder: shop, Root: shop, Resolve: links(shop)}
		told := map[string]string{}
		for _, name := range Names(here, 1<<20) {
			told[name] = here.Resolve(name)
		}
		there := here
		there.Resolve = func(name string) string { return told[name] }
		if a, b := s.Judge(here), s.Judge(there); a.Effect != b.Effect {
			t.Errorf("%q: %q here, and %q by what a hook tells: %v", command, a.Effect, b.Effect, b.Reasons)
		}
	}
}

// A rule is exact if it needs no wildcard: only then does it allow what is high risk.
func TestExactRules(t *testing.T) {
	s := rulesOf(t, Rule{Allow: []string{"run git push --force origin fix", "run git push origin *", "run rm -r build", "write ./build"}})
	for command, want := range map[string]bool{"git push --force origin fix": true, "git push origin fix": false, "rm -r build": true} {
		if v := judged(s, command); v.Effect != Allow || v.Exact != want {
			t.Errorf("%q: %q, exact %v: %v", command, v.Effect, v.Exact, v.Reasons)
		}
	}
}

func TestRulesThatAreWrong(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		want string
	}{
		{Rule{}, "write one of allow, ask, deny and use"}, {Rule{Allow: []string{"run ls"}, Deny: []string{"run rm"}}, "write one of"},
		{Rule{Use: "builtin:all"}, "no starter set"},
		{Rule{Allow: []string{"git status"}}, "no kind of act"},
		{Rule{Allow: []string{"run"}}, "says nothing about what"},
		{Rule{Allow: []string{"run git 'status"}}, "not closed"},
		{Rule{Allow: []string{"run git log ... x"}}, "after ..."},
		{Rule{Deny: []string{"run rm ..."}}, "covers more words anyway"},
		{Rule{Allow: []string{"run ls [x]"}}, "no option"},
		{Rule{Allow: []string{"run ls a*b*c"}}, "more than one *"},
		{Rule{Allow: []string{"run ls a||b"}}, "empty alternative"},
		{Rule{Allow: []string{"run ls $HOME"}}, "only a shell"},
		{Rule{Allow: []string{"read ~/x"}}, "names the home"},
		{Rule{Allow: []string{"read x"}}, "in no folder"},
		{Rule{Allow: []string{"read /srv/../etc/**"}}, "not clean"},
		{Rule{Allow: []string{"read /"}}, "every file"},
		{Rule{Deny: []string{"read /srv/"}}, "not clean"},
		{Rule{Allow: []string{"fetch https://x.example/"}}, "is no host"},
		{Rule{Allow: []string{"fetch *"}}, "is no host"},
		{Rule{Allow: []string{"tool *"}}, "shells too"},
		{Rule{Allow: []string{"tool Bash"}}, "say which"},
		{Rule{Allow: []string{"tool */x"}}, "is no tool"},
		{Rule{Allow: []string{"run ls"}, In: "code"}, "absolute folder"},
		{Rule{Allow: []string{"run ls"}, Env: []string{"PATH"}}, "decide"},
		{Rule{Allow: []string{"run ls"}, Env: []string{"http_proxy"}}, "decide"},
		{Rule{Deny: []string{"run ls"}, Env: []string{"CI"}}, "leave env out"},
		{Rule{Allow: []string{"run ls"}, Fits: []string{"ls x"}}, "is not covered"},
		{Rule{Allow: []string{"run ls *"}, Not: []string{"ls x"}}, "must not be"},
		{Rule{Allow: []string{"run ls\u200b"}}, "invisible"}, {Rule{Allow: []string{"run source x"}}, "what the rest"},
	} {
		_, found := Compile([]Rule{c.rule})
		if err := Failed(found); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.rule, err, c.want)
		}
	}
	_, found := Compile([]Rule{
		{Allow: []string{"read /srv/code/a", "run git push origin main", "fetch api.example.org", "tool github/get_issue", "run ls"}},
		{Deny: []string{"read /srv/**", "run git push", "fetch *.example.org", "tool github/*"}},
	})
	if n := len(found); n != 4 || slices.ContainsFunc(found, func(p Problem) bool { return !p.Warns }) {
		t.Errorf("rules that are denied anyway: %v", found)
	}
}

// thousand are as many rules, for as many programs, paths and hosts.
func thousand(tb testing.TB) *Set {
	var all []Rule
	for i := range 250 {
		all = append(all,
			Rule{Allow: []string{fmt.Sprintf("run program%d [-v] *", i)}},
			Rule{Allow: []string{fmt.Sprintf("write /srv/folder%d/**", i)}},
			Rule{Deny: []string{fmt.Sprintf("read **/secret%d/**", i)}},
			Rule{Allow: []string{fmt.Sprintf("fetch host%d.example.org", i)}},
		)
	}
	return rulesOf(tb, append(all, side, Rule{Allow: []string{"run git status", "run go test [-v] ./...", "write ./**"}})...)
}

func BenchmarkJudgeThousandRules(b *testing.B) {
	s := thousand(b)
	var took []time.Duration
	commands := []string{
		"git status", "go test -v ./... 2>&1 | cat", "cat a b c > d", "ls -la; echo done; git status",
		"curl https://host9.example.org/x", "cd src && go test ./...",
	}
	for i := 0; b.Loop(); i++ {
		at := time.Now()
		judged(s, commands[i%len(commands)])
		took = append(took, time.Since(at))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(took[len(took)*99/100])/float64(200*time.Microsecond), "p99-of-200-µs")
}

// What a program runs that it reads from its input is not part of what a rule names.
func TestWhatAProgramIsFedIsNotAllowed(t *testing.T) {
	s := rulesOf(t, Rule{Allow: []string{"run sqlite3 shop.db", "run bc -l", "run python3 tools/gen.py", "run echo ...", "run cat ..."}})
	for command, want := range map[string]Effect{
		"sqlite3 shop.db": Allow, "bc -l && echo done": Allow, "echo x | python3 tools/gen.py": Allow, "sqlite3 shop.db | cat": Allow,
		"cat x; sqlite3 shop.db": Allow, "cat x | cat; sqlite3 shop.db": Allow, "cat < x; sqlite3 shop.db": Allow,
		"echo '.shell rm -r .' | sqlite3 shop.db": "", "cat x | cat | sqlite3 shop.db": "", "sqlite3 shop.db < x": "",
		"sqlite3 shop.db <<'E'\n.shell rm keep\nE": "", "cat x | (cat; bc -l)": "", "{ bc -l; } < x": "", "(bc -l) < x": "",
		"echo x | timeout 5 bc -l": "", "timeout 5 bc -l < x": "", "sqlite3 shop.db <<< .quit": "", "cat x | sh -c 'bc -l'": "",
		"sqlite3 shop.db 0< x": "", "sqlite3 shop.db <&3": "",
	} {
		if v := judged(s, command); v.Effect != want {
			t.Errorf("%q: %q, want %q; %v", command, v.Effect, want, v.Reasons)
		}
	}
}
