package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// shop is the workspace of these tests. Its folder out is a link to /etc.
const shop = "/home/kim/shop"

func links(root string) func(string) string {
	return func(name string) string {
		clean, out := filepath.Clean(name), root+"/out"
		if clean != out && !strings.HasPrefix(name, out+"/") {
			return clean
		}
		return filepath.Clean("/etc" + strings.TrimPrefix(name, out))
	}
}

// judge judges a command in the workspace.
func judged(s *Set, command string) Verdict {
	return s.Judge(Call{Command: command, Folder: shop, Root: shop, Resolve: links(shop)})
}

// compiled compiles rules that have to be right.
func rulesOf(t testing.TB, all ...Rule) *Set {
	t.Helper()
	s, found := Compile(all)
	if err := FirstError(found); err != nil {
		t.Fatal(err)
	}
	return s
}

// side are the rules beside the one of a case.
var side = Rule{Allow: []string{"run true", "run ls ...", "run cat ...", "run echo ..."}}

type bypasses struct {
	Ask map[string][]struct {
		Rule     string
		Commands []string
	}
	Repeat []struct {
		Rule, First, Part, Last string
		Times                   int
	}
	Refuse []string
	Deny   []struct{ Allow, Deny, Command, Want string }
	Allow  []struct {
		Rules, Env []string
		Command    string
	}
}

func ownBypasses(t testing.TB) (all bypasses) {
	t.Helper()
	data, err := os.ReadFile("testdata/bypasses.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// asPattern is a pattern of the file: one that runs is written without its kind.
func asPattern(text string) string {
	if k, _, _ := strings.Cut(text, " "); slices.Contains([]string{"run", "read", "write", "fetch", "tool"}, k) {
		return text
	}
	return "run " + text
}

func TestBypassesAreAsked(t *testing.T) {
	all, n := ownBypasses(t), 0
	for group, rules := range all.Ask {
		for _, r := range rules {
			s := rulesOf(t, side, Rule{Allow: []string{asPattern(r.Rule)}})
			for _, command := range r.Commands {
				n++
				if v := judged(s, command); v.Effect == Allow {
					t.Errorf("%s: rule %q allows %q", group, r.Rule, command)
				}
			}
		}
	}
	for _, r := range all.Repeat {
		n++
		s := rulesOf(t, side, Rule{Allow: []string{asPattern(r.Rule)}})
		if v := judged(s, r.First+strings.Repeat(r.Part, r.Times)+r.Last); v.Effect == Allow {
			t.Errorf("rule %q allows %d times %q", r.Rule, r.Times, r.Part)
		}
	}
	if len(all.Ask) < 17 || n < 560 {
		t.Errorf("%d cases in %d groups", n, len(all.Ask))
	}
}

func TestRulesForAnyCodeDoNotLoad(t *testing.T) {
	for _, text := range ownBypasses(t).Refuse {
		if _, found := Compile([]Rule{{Allow: []string{asPattern(text)}}}); FirstError(found) == nil {
			t.Errorf("%q loads", text)
		}
	}
}

func TestDeniedCommandsAreDeniedHoweverTheyAreWritten(t *testing.T) {
	cases := ownBypasses(t).Deny
	for _, c := range cases {
		s := rulesOf(t, side, Rule{Allow: []string{asPattern(c.Allow)}}, Rule{Deny: []string{c.Deny}})
		if v := judged(s, c.Command); v.Effect == Allow || c.Want == "deny" && v.Effect != Deny {
			t.Errorf("%q is %q under deny %q: %v", c.Command, v.Effect, c.Deny, v.Reasons)
		}
	}
	if len(cases) < 32 {
		t.Errorf("%d cases", len(cases))
	}
}

func TestWhatIsTooLongToBeReadIsDeniedForWhatIsInIt(t *testing.T) {
	const push = "git push --force origin main"
	s := rulesOf(t, side, Rule{Deny: []string{"run git push --force", "write **/.git/**"}}, Rule{Ask: []string{"run git push"}})
	for what, command := range map[string]string{
		"before a long text": push + " #" + strings.Repeat("x", 17_000), "after one": "true " + strings.Repeat("x", 17_000) + "\n" + push,
		"after many commands": strings.Repeat("true; ", 2100) + push, "beside brackets": push + " #" + strings.Repeat("(", 201),
		"in shells":   "sh -c 'sh -c \"sh -c \\\"sh -c \\\\\\\"sh -c \\\\\\\\\\\\\\\"" + push + "'",
		"into a file": "cat >.git/config <<E\n" + strings.Repeat("x\n", 9000) + "E",
	} {
		if v := judged(s, command); v.Effect != Deny {
			t.Errorf("%s: %q, %v", what, v.Effect, v.Reasons)
		}
	}
	if v := judged(s, strings.Repeat("git push ", 30_000)+"--force"); v.Effect != Deny { // without the square of its words
		t.Errorf("a program again and again: %q", v.Effect)
	}
	if v := judged(s, "git push #"+strings.Repeat("x", 17_000)); v.Effect != Ask || v.Rule != 3 {
		t.Errorf("an ask rule: %q by %d", v.Effect, v.Rule)
	}
	if v := judged(s, "true #"+strings.Repeat("x", 17_000)); v.Effect != "" {
		t.Errorf("nothing of the kind: %q", v.Effect)
	}
}

func TestEverydayCommandsAreAllowed(t *testing.T) {
	cases := ownBypasses(t).Allow
	for _, c := range cases {
		r := Rule{Env: c.Env}
		for _, text := range c.Rules {
			r.Allow = append(r.Allow, asPattern(text))
		}
		if v := judged(rulesOf(t, r), c.Command); v.Effect != Allow {
			t.Errorf("%q is %q: %v", c.Command, v.Effect, v.Reasons)
		}
	}
	if len(cases) < 35 {
		t.Errorf("%d cases", len(cases))
	}
}

// appended are what makes a command that is allowed another, by group. %s is the command.
var appended = map[string][]string{
	"separators": {
		"%s; rm keep", "%s && rm keep", "%s || rm keep", "%s | rm keep", "%s |& rm keep",
		"%s & rm keep", "%s\nrm keep", "rm keep; %s", "(%s; rm keep)",
	},
	"substitution": {"%s $(rm keep)", "%s `rm keep`", "%s \"$(rm keep)\"", "%s ${n:=$(rm keep)}", "%s <(rm keep)"},
	"redirection":  {"%s > keep", "%s >> ~/.profile", "%s > .git/config", "%s 2> keep", "%s > /etc/x", "%s &> keep"},
	"environment":  {"PATH=tools %s", "LD_PRELOAD=./a.so %s", "GIT_DIR=/x %s", "A=$(rm keep) %s", "export PATH=tools; %s", "PATH=tools; %s"},
	"line ends":    {"%s # a\\\nrm keep", "%s #\\\nrm keep", "%s <<E\n\\\nE\nrm keep\nE", "%s <<\"\\$E\"\n$E\nrm keep\n\\$E"},
	"wrappers":     {"env %s", "sudo %s", "xargs %s", "nice %s", "watch %s", "sh -c \"%s; rm keep\"", "ssh build.example.net %s"},
	"shells":       {"eval '%s'; rm keep", "git() { rm keep; }; %s", "trap 'rm keep' EXIT; %s", "alias git=rm; %s"},
	"expansions":   {"%s {a,b}", "%s *", "%s ~/x", "%s $HOME", "%s /???/x"},
	"characters":   {"%s\r", "%s\u202e", "%s\u200b; rm keep", "%s\x00"},
	"unreadable":   {"%s; if", "%s 'a", "%s $(", "if %s; then rm keep; fi", "for a in b; do %s; rm keep; done"},
	"options":      {"%s --output=keep", "%s --exec=rm", "%s -o keep", "%s --upload-pack=rm", "%s --config=x"},
}

// Each command that must be allowed, in each dangerous variant of each group.
func TestDangerousVariantsOfAllowedCommandsAreAsked(t *testing.T) {
	n := 0
	for _, c := range ownBypasses(t).Allow {
		r := Rule{Env: c.Env}
		for _, text := range c.Rules {
			if k, _, _ := strings.Cut(text, " "); k != "write" && !strings.HasPrefix(text, "echo") { // echo prints any word
				r.Allow = append(r.Allow, asPattern(text))
			}
		}
		if len(r.Allow) == 0 {
			continue
		}
		s := rulesOf(t, r)
		for group, forms := range appended {
			for _, form := range forms {
				n++
				text := fmt.Sprintf(form, strings.TrimRight(c.Command, "\n"))
				if strings.Contains(c.Command, "#") || strings.Contains(c.Command, "<<") {
					continue // what follows is a comment, or the text of a here-document
				}
				if v := judged(s, text); v.Effect == Allow {
					t.Errorf("%s: %q is allowed", group, text)
				}
			}
		}
	}
	if n < 200 {
		t.Errorf("%d variants", n)
	}
}

// The starter sets allow none of the cases, alone or together, and none of the variants.
func TestStarterSetsAllowNoBypass(t *testing.T) {
	all := rulesOf(t, Rule{Use: "builtin:read-only"}, Rule{Use: "builtin:git-local"}, Rule{Use: "builtin:workspace-edits"})
	own := regexp.MustCompile(`\brm |/etc|tools/`) // of the payloads; what the sets are for has none of it
	for group, rules := range ownBypasses(t).Ask {
		for _, r := range rules {
			for _, command := range r.Commands {
				if v := judged(all, command); v.Effect == Allow && own.MatchString(command) {
					t.Errorf("%s: the starter sets allow %q", group, command)
				}
			}
		}
	}
	for _, command := range []string{
		"git status", "git diff main...HEAD -- src", "git log --oneline -5",
		"ls -la src | head -20", "grep -rn 'func main' src", "cat src/a.go", "find . -name '*.go'",
		"git add -A", "git add src/a.go", "git commit -m 'cart: sum'", "git switch -c fix-1",
		"git diff --stat && git add src && git commit -m x", "echo made > src/made.txt",
	} {
		if v := judged(all, command); v.Effect != Allow {
			t.Errorf("the starter sets do not allow %q: %v", command, v.Reasons)
		}
	}
	for _, name := range []string{
		".git/hooks/pre-commit", ".git/config", ".claude/settings.json",
		".codex/config.toml", ".gemini/settings.json", ".cursor/hooks.json", ".vscode/tasks.json",
		"AGENTS.md", "CLAUDE.md", "src/CLAUDE.md", ".github/workflows/ci.yml",
		".gitlab-ci.yml", ".envrc", ".env", "Makefile", "sub/makefile", "package.json", "go.mod",
		"Cargo.toml", "pyproject.toml", "setup.py", "Dockerfile", "build.gradle",
		"CMakeLists.txt", "Jenkinsfile", ".gitattributes", "hooks/pre-commit", "nodemon.json", "cdk.json",
		"PKGBUILD", "binding.gyp", "docs/mkdocs.yml", "sub/wrangler.toml", "buf.gen.yaml", "out/passwd", "../x", "/etc/x",
	} {
		for _, command := range []string{"echo a > " + name, "tee " + name} {
			if v := judged(all, command); v.Effect == Allow {
				t.Errorf("the starter sets allow %q", command)
			}
		}
	}
	for _, command := range []string{
		"git push", "git commit --amend -m x", "git reset --hard", "git checkout -- .", "go test ./...", "npm test", "rm -r x", "cat .env",
		"cd sub && git status", "git -C sub status", "cd sub && git commit -m x", "git -C sub add a",
	} {
		if v := judged(all, command); v.Effect == Allow {
			t.Errorf("the starter sets allow %q", command)
		}
	}
	for _, command := range []string{"git status", "git commit -m x"} { // another repository's settings may run programs
		if v := all.Judge(Call{Command: command, Folder: shop + "/sub", Root: shop, Resolve: links(shop)}); v.Effect == Allow {
			t.Errorf("the starter sets allow %q in a folder below the workspace's own", command)
		}
	}
}

// Files that a program writes without being told so by an option, and files that it reads by an expression, need a rule of their own.
func TestWhatAProgramTouchesBesideItsWordsIsAsked(t *testing.T) {
	s := rulesOf(t, Rule{Use: "builtin:read-only"}, Rule{Use: "builtin:workspace-edits"}, Rule{Allow: []string{
		"run cp [-t *] ...", "run mv * *", "run ln [-s] * *", "run xxd ...", "run wget [-q] [-O-] *", "run curl [-s] [-O] *",
		"fetch api.example.org",
		"run jq [-r] ...", "run yq *", "run go build [-o *] *", "run git log", "write /home/kim/shop/docs/b.md",
	}})
	for command, want := range map[string]Effect{
		"cp sub/Makefile .": "", "cp -t . sub/Makefile x": "", "mv sub/package.json .": "", "ln -s sub/x .": Allow, "cp a.txt b.txt": Allow,
		"cp sub/Makefile sub/..": "", "cp sub/Makefile docs/b.md": Allow, "mv a.txt sub": Allow, "xxd a.txt Makefile": "", "xxd a.txt": Allow,
		"xxd a.txt b.txt": Allow, "wget https://api.example.org/Makefile": "", "wget -q https://api.example.org/Make%66ile?x=y": "",
		"wget https://api.example.org/a.txt": Allow, "wget https://api.example.org/sub/": Allow,
		"wget -O- https://api.example.org/Makefile": Allow,
		"wget https://api.example.org/%zz":          "",
		"curl -sO https://api.example.org/Makefile": "", "curl -O https://api.example.org/a.txt": Allow,
		"curl -s https://api.example.org/Makefile": Allow, "jq -r .name a.json": Allow,
		`jq -r 'import "config" as $c {search:"/home/kim/.docker"}; $c' a.json`: "", `jq 'include "x" {search:"/"}; .' a.json`: "",
		`yq 'load_str("/etc/passwd")'`: "", `yq 'eval("lo" + "ad(0)")'`: "", "yq .a": Allow,
		"go build -o Makefile x": "", "go build -o .git/hooks/pre-commit x": "", "go build -o bin/x x": Allow,
		"git -C sub status": "", "git -C sub -C .. diff": "", "git -C . status": Allow,
		"git -C " + shop + " status": Allow, "git -C sub log": Allow,
	} {
		if v := judged(s, command); v.Effect != want {
			t.Errorf("%q is %q, want %q: %v", command, v.Effect, want, v.Reasons)
		}
	}
	for _, command := range []string{"cp sub/Makefile .", "cp -t . sub/Makefile", "wget https://api.example.org/Makefile", "xxd a Makefile"} {
		if v := judged(rulesOf(t, Rule{Deny: []string{"write ./Makefile"}}), command); v.Effect != Deny {
			t.Errorf("%q is %q under a rule that denies it", command, v.Effect)
		}
	}
}

// DAYCARED_BYPASSES names another file of cases, with ids and a workspace /srv/code.
func TestBypassesOfAnotherFile(t *testing.T) {
	file := os.Getenv("DAYCARED_BYPASSES")
	if file == "" {
		return // it is no part of this repository
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Cases  []struct{ ID, Rule, Command, Load string }
		Repeat []struct {
			ID, Rule, Before, After, First, Then string
			Times                                int
		}
		Deny  []struct{ ID, Allow, Deny, Command, Want string }
		Allow []struct {
			ID, Command string
			Rules, Env  []string
		}
	}
	if err := yaml.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	const root = "/srv/code"
	judge := func(s *Set, command string) Verdict {
		at := func(name string) string {
			return links(root)(strings.Replace(name, root+"/link", root+"/out", 1))
		}
		return s.Judge(Call{Command: command, Folder: root, Root: root, Resolve: at})
	}
	for _, c := range all.Cases {
		s, found := Compile([]Rule{side, {Allow: []string{asPattern(c.Rule)}}})
		if refused := FirstError(found) != nil; refused != (c.Load == "refuse") {
			t.Errorf("%s: the rule %q is refused: %v", c.ID, c.Rule, refused)
		}
		if v := judge(s, c.Command); v.Effect == Allow && FirstError(found) == nil {
			t.Errorf("%s is allowed: %q", c.ID, c.Command)
		}
	}
	for _, c := range all.Repeat {
		s := rulesOf(t, side, Rule{Allow: []string{asPattern(c.Rule)}})
		if v := judge(s, c.First+strings.Repeat(c.Before, c.Times)+c.After+strings.Repeat(c.Then, c.Times)); v.Effect == Allow {
			t.Errorf("%s is allowed", c.ID)
		}
	}
	for _, c := range all.Deny {
		s := rulesOf(t, side, Rule{Allow: []string{asPattern(c.Allow)}}, Rule{Deny: []string{asPattern(c.Deny)}})
		if v := judge(s, c.Command); v.Effect == Allow || c.Want == "deny" && v.Effect != Deny {
			t.Errorf("%s: %q is %q: %v", c.ID, c.Command, v.Effect, v.Reasons)
		}
	}
	for _, c := range all.Allow {
		r := Rule{Env: c.Env}
		for _, text := range c.Rules {
			r.Allow = append(r.Allow, asPattern(text))
		}
		if v := judge(rulesOf(t, r), c.Command); v.Effect != Allow {
			t.Errorf("%s: %q is %q: %v", c.ID, c.Command, v.Effect, v.Reasons)
		}
	}
	t.Logf("%d that must ask, %d with a deny rule, %d that must be allowed", len(all.Cases)+len(all.Repeat), len(all.Deny), len(all.Allow))
}
