package acts

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/internal/own"
)

// srv is a workspace with a single link.
var srv = Workspace{"/srv/code", func(name string) string {
	return strings.ReplaceAll(name, "/srv/code/link", "/etc")
}}

// The file has commands that look harmless but are not, in every known way: joined, computed, quoted, by options, links,
// and characters that look like others.
func TestWhatPassesAsHarmlessIsAsked(t *testing.T) {
	text, err := os.ReadFile("testdata/asked.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(text)) {
		var c struct{ Name, Command string }
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		seen++
		if srv.WhyNotHarmless(ReadCommand(c.Command, srv.Root)) == "" {
			t.Errorf("%s is left: %q", c.Name, c.Command)
		}
	}
	if seen < 500 {
		t.Errorf("%d commands", seen)
	}
}

func TestEverydayCommandsAreLeft(t *testing.T) {
	text, err := os.ReadFile("testdata/left.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if why := srv.WhyNotHarmless(ReadCommand(line, srv.Root)); why != "" {
			t.Errorf("asked: %s %s", line, why)
		}
	}
	if why := srv.WhyNotHarmless(ReadCommand("cat <<'EOF'\n$(not run)\nEOF", srv.Root)); why != "" {
		t.Errorf("a here-document: %s", why)
	}
}

// Each is one step beyond what is harmless.
func TestWhatIsNotOnTheListIsAsked(t *testing.T) {
	for _, text := range []string{
		"", "# nothing", "ls > made", "go build -o .git/hooks/pre-commit ./src", "go build -o Makefile ./src",
		"go test -coverprofile=/etc/x ./...",
		"go test -exec ./x ./...", "go test -toolexec=./x ./...", "go vet -vettool=x ./...", "go build example.org/x@latest", "go env -w X=y",
		"npm run deploy", "npm test -- --globalSetup=x", "make SHELL=./x", "make -f x", "make deploy", "cd src && git status", "cd link && ls",
		"git -C src status", "git branch topic", "git tag v1", "git diff --output=x", "git log -O", "git remote add x y", "git add -A", "rm x",
		"cat ../x", "cat link/passwd", "cat src/../../x", "cd src; cat ../../x", "cat .env", "cat ~/x", "cat *.go", "cat $X", "X=1 ls", "ls &",
		"sed -n 1e\\ x src", "sed -i s/a/b/ x", "sed 5p x", "find . -delete", "find . -exec touch x", "sort -o x y", "uniq a b", "rg --pre ./x y",
		"grep -f /etc/passwd x", "grep -e x /etc/passwd", "ls --color /etc", "head -n -q /etc/passwd", "test x -ne 1", "printf '%d' 'a[$(x)]'",
		"[ x -ne 1 ]", "[ -f /etc/x ]", "xxd x y", "xxd -r x", "xxd .env", "git grep -O x", "git grep -nOless x", "git grep x HEAD:.env",
		"git grep x -- ../y", "git grep -f /etc/x", "git grep --no-index x",
		"echo a |& cat", "exec ls", "eval ls", "time -p ls", "sh -c 'ls' x", "sh -ec ls", "timeout -s KILL 5 ls", "{ ls; } > x",
		"ls <> x",
		"ls {fd}> /dev/null", "cat <<< $X", "ls 2>&x", "! ", "pytest -p x", "cargo test --config x", "cd", "cd -", "cd $X", "./git status",
		"cat a\u200bb", "strings @args", "pytest @args", "git diff -U /etc/passwd x", "git show --unified /etc/passwd", "rg --files /etc",
		"rg --files -n /etc x", "git describe --abbrev ../x", "stat -f /etc x",
		"strings -n @args x", "pytest -k @args", "pytest --maxfail @args", "golangci-lint run --new-from-rev=--output=/etc/x",
		"golangci-lint run --timeout=--config=x", "cargo test -- --logfile /etc/x", "cargo test x -- --logfile=/etc/x", "printf %d PATH=5",
		"printf '%*s' PATH=5 x", "printf %%%d PATH++", "printf '%5i' x=1", "printf %n x", "ls -RL", "grep -e x --context /etc/passwd",
		"go doc -all -u -src /etc/x", "go doc ../x",
		"sh -c 'sh -c \"sh -c '\\''ls'\\''\"' x", strings.Repeat("cd a;", 20) + "ls", strings.Repeat("ls;", 60),
		"ls " + strings.Repeat("x", maxText),
		strings.Repeat("(", 300) + "ls" + strings.Repeat(")", 300), "a\rls", "ls\x00", "ls \xff",
	} {
		if srv.WhyNotHarmless(ReadCommand(text, srv.Root)) == "" {
			t.Errorf("left: %.80q", text)
		}
	}
}

// What the table takes for the value of an option is none of the files that the installed program reads.
func TestNoProgramReadsTheValueOfAnOption(t *testing.T) {
	const marker = "seen by nobody"
	top := t.TempDir()
	at, secret := filepath.Join(top, "code"), filepath.Join(top, "secret")
	if err := errors.Join(os.Mkdir(at, 0o700), os.WriteFile(secret, []byte(marker+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	run := func(words ...string) string {
		ctx, done := context.WithTimeout(t.Context(), 10*time.Second)
		defer done()
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Dir, cmd.Env = at, append(os.Environ(), "HOME="+top, "GIT_CONFIG_GLOBAL=/dev/null")
		out, _ := cmd.CombinedOutput() // most refuse such a value
		return string(out)
	}
	for _, text := range []string{"one\n", "two\n"} {
		if err := os.WriteFile(filepath.Join(at, "f"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run("git", "init", "-q")
		run("git", "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", text, "--", "f")
		run("git", "add", "f")
	}
	if out := run("git", "diff", "--no-index", secret, "f"); !strings.Contains(out, marker) {
		t.Fatalf("nothing here can read the file: %s", out)
	}
	tried := map[string]int{}
	for name, p := range programs {
		words := strings.Fields(name)
		if _, err := exec.LookPath(words[0]); err != nil || slices.Contains([]string{"go", "cargo", "npm", "pnpm", "yarn"}, words[0]) {
			continue // builds read options of their own project only
		}
		for option, kind := range p.options {
			if kind != ':' {
				continue
			}
			tried[words[0]]++
			if out := run(append(words, option, secret, "f")...); strings.Contains(out, marker) {
				t.Errorf("%s %s reads the next word: %s", name, option, out)
			}
		}
	}
	for _, name := range []string{"git", "grep", "head", "sort", "cut", "diff", "strings"} {
		if tried[name] == 0 {
			t.Errorf("%s was not tried", name)
		}
	}
}

// A secret that git has is one by every way to name it: in a revision, in the index, by what git makes of a path, and by lines.
func TestWhatGitKeepsOfASecretIsAsked(t *testing.T) {
	for _, text := range []string{
		"git show HEAD:.env", "git show :.env", "git show :0:.env", "git show HEAD:./.env", "git show HEAD:sub/.env", "git show 'HEAD:a/../.env'",
		"git show HEAD:id_rsa", "git show main@{1}:x.pem", "git cat-file -p HEAD:.env", "git cat-file -p :.env", "git cat-file blob HEAD:.env",
		"git diff HEAD:.env main:.env", "git diff main -- .env", "git diff -- ':(icase).ENV'", "git log -p -- ':/.env'",
		"git log -p -- ':!x' '.e*'",
		"git log -p -- '.en?'", "git log -p -- '.[e]nv'", "git log -L 1,5:.env", "git log -L1,5:.env", "git log -L :x:.env",
		"git blame HEAD -- .env",
		"git rev-parse HEAD:.env", "git ls-tree HEAD .env", "git diff-tree -p HEAD .env", "git grep x HEAD -- .env", "git archive HEAD .env",
		"git show HEAD:../.env", "git show stash@{0}:.netrc",
	} {
		if srv.WhyNotHarmless(ReadCommand(text, srv.Root)) == "" {
			t.Errorf("left: %s", text)
		}
	}
	for _, text := range []string{
		"git show HEAD:src/main.go", "git show HEAD~2:./a.go", "git show :a.go", "git diff main...HEAD", "git log -L 1,5:a.go",
		"git log -L :main:a.go",
		"git show HEAD~1", "git cat-file -p HEAD:src/main.go", "git blame -L 1,5 a.go", "git log --format='%h: %s' --since='2 weeks' -- src",
	} {
		if why := srv.WhyNotHarmless(ReadCommand(text, srv.Root)); why != "" {
			t.Errorf("asked: %s: %s", text, why)
		}
	}
}

// A file that runs later is recognized under every name that leads to it.
func TestWhereNamesLead(t *testing.T) {
	root := own.Resolve(t.TempDir())
	for name, target := range map[string]string{"out": "/etc", "plain": ".git/config", "in": "src"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	w := Workspace{root, own.Resolve}
	for name, want := range map[string]string{
		"src/main.go": "rw", "in/main.go": "rw", "docs/a.md": "rw", "new/folder/x": "rw", "plain": "r", "out/passwd": "", "in/../../x": "",
		".git/config": "r", ".GIT/config": "r", ".github/workflows/x.yml": "r", ".claude/settings.json": "r", ".envrc": "r", ".mcp.json": "r",
		"Makefile": "r", "docs/conf.py": "r", "jest.setup.js": "r", "Cakefile": "r", "target/debug/x": "r",
		"sub/makefile": "r", "package.json": "r", "go.mod": "r", "node_modules/.bin/ls": "r", "CLAUDE.md": "r", "AGENTS.md": "r",
		"x.code-workspace": "r", "SConstruct": "r", "project/plugins.sbt": "r", "netlify.toml": "r", "docs/x.instructions.md": "r",
		"vite.config.ts": "r", "Jenkinsfile": "r", "x/HEAD": "r", "src/hooks/use.ts": "rw", "config/x.go": "rw", "a/.b/c": "r",
		"kubeconfig": "r", "chart/Chart.yaml": "r", "playbook.yml": "r", "fly.toml": "r", "vcpkg.json": "r", "a.mak": "r", "x.timer": "r",
		"gatsby-node.js": "r", "terragrunt.hcl": "r", "travis.yml": "r", "charts.md": "rw", "timer.go": "rw", "playbook.md": "rw",
		".env": "", "key.pem": "", "": "r",
	} {
		got, at := "", root+"/"+name
		if w.Reads(at) {
			got += "r"
		}
		if name != "" && w.Writes(at) {
			got += "w"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if w := (Workspace{root + "/.github/workflows", own.Resolve}); !w.Reads(w.Root+"/x.yml") || w.Writes(w.Root+"/x.yml") {
		t.Error("a folder of what runs later")
	}
	if w.Reads("/etc/passwd") || w.Writes(root+"x/y") {
		t.Error("outside")
	}
}

// Nothing added after or around a command that needs asking makes it harmless.
func FuzzCommand(f *testing.F) {
	for _, seed := range []string{
		"git status", "cd src && cat a <<'E'\nx\nE", "sh -c 'ls $(x)'", "sed -n 1,5p a", "((x))",
		"ls\\", "a[$(b)]=c", "${x@P}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !strings.ContainsAny(text, "#<\\'\"`") && len(commandRisks(t, "Bash", text+"\nrm -rf /")) == 0 {
			t.Errorf("%q hides that rm -rf / follows", text)
		}
		first := ReadCommand(text, srv.Root)
		if srv.WhyNotHarmless(first) != "" {
			return
		}
		for _, more := range []string{" ; touch x", " && touch x", " | touch x", " & touch x", " $(touch x)", " > x", "\ntouch x"} {
			if srv.WhyNotHarmless(ReadCommand(text+more, srv.Root)) == "" && !strings.Contains(text, "#") && !strings.Contains(text, "<<") {
				t.Errorf("%q is left with %q behind it", text, more)
			}
		}
		if srv.WhyNotHarmless(ReadCommand("X=1 "+text, srv.Root)) == "" {
			t.Errorf("%q is left with a variable before it", text)
		}
	})
}

// TestToolUses: what a call does is read in each agent's own way, and a call with anything else in its input is one of an unknown tool.
func TestToolUses(t *testing.T) {
	patch := func(rows ...string) string {
		text, err := json.Marshal(map[string]string{"command": "*** Begin Patch\n" + strings.Join(rows, "\n") + "\n*** End Patch"})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	calls := func(tool string) ToolUse { return ToolUse{Verb: Calls, Tool: tool} }
	loose := func(tool string) ToolUse { return ToolUse{Verb: Calls, Tool: tool, Loose: true} }
	types := func(text string) ToolUse { return ToolUse{Verb: RunsInSession, Command: text, Typed: true} }
	for _, c := range []struct {
		dialect, tool, input string
		want                 ToolUse
	}{
		{"", "bash", `{"command":"ls","timeout":5}`, ToolUse{Verb: Runs, Command: "ls"}},
		{"claude-code", "Bash", `{"command":" ls "}`, ToolUse{Verb: Runs, Command: " ls "}},
		{"claude-code", "Bash", `{"command":"ls","run_in_background":true}`, calls("Bash")},
		{"claude-code", "Bash", `{"command":""}`, calls("Bash")},
		{"claude-code", "Bash", `{}`, calls("Bash")},
		{"claude-code", "Bash", `[]`, calls("Bash")},
		{"codex", "shell", `{"command":["ls","a b"]}`, ToolUse{Verb: RunsElsewhere, Command: "ls 'a b'"}},
		{"codex", "shell", `{"command":["ls",1]}`, loose("shell")},
		{"acp", "acp_execute", `{"command":["ls"]}`, ToolUse{Verb: RunsElsewhere, Command: "ls"}},
		{"claude-code", "Bash", `{"command":["ls","&&","touch","zz"]}`, calls("Bash")},
		{"gemini", "run_shell_command", `{"command":["ls"]}`, calls("run_shell_command")},
		{"opencode", "bash", `{"command":["ls"]}`, calls("bash")},
		{"copilot", "bash", `{"command":["ls"]}`, loose("bash")},
		{"cursor", "Shell", `{"command":["ls"]}`, loose("Shell")},
		{"vscode", "run_in_terminal", `{"command":["ls"]}`, loose("run_in_terminal")},
		{"", "Bash", `{"command":["ls"]}`, calls("Bash")},
		{"codex", "shell", `{"command":"ls","workdir":"/x"}`, ToolUse{Verb: Runs, Command: "ls", Folder: "/x"}},
		{"codex", "shell", `{"command":"ls","workdir":null}`, ToolUse{Verb: RunsElsewhere, Command: "ls"}},
		{"codex", "shell", `{"command":"ls","workdir":""}`, loose("shell")},
		{"copilot", "bash", `{"command":"ls"}`, ToolUse{Verb: RunsInSession, Command: "ls"}},
		{"copilot", "powershell", `{"command":"ls"}`, ToolUse{Verb: RunsInSession, Command: "ls"}},
		{"codex", "exec_command", `{"cmd":"ls","workdir":"/x"}`, ToolUse{Verb: Runs, Command: "ls", Folder: "/x"}},
		{"codex", "exec_command", `{"cmd":"ls","shell":"zsh"}`, loose("exec_command")},
		{"codex", "shell_command", `{"command":"ls"}`, ToolUse{Verb: RunsElsewhere, Command: "ls"}},
		{"acp", "acp_execute", `{"command":"ls","x":1}`, calls("acp_execute")},
		{"copilot", "write_bash", `{"sessionId":"1","input":"a{enter}b{up}\r","delay":5}`, types("a\nb\b\n")},
		{"copilot", "write_powershell", `{"shellId":"1","input":"a"}`, types("a")},
		{"codex", "write_stdin", `{"session_id":1,"chars":"\u0003"}`, types("")},
		{"codex", "write_stdin", `{"session_id":1,"chars":"a\u0003"}`, types("a\x03")},
		{"codex", "write_stdin", `{"session_id":1}`, ToolUse{Verb: RunsInSession}},
		{"vscode", "send_to_terminal", `{"id":"1","command":"a"}`, types("a")},
		{"vscode", "terminal_input", `{"input":"a","x":1}`, ToolUse{Verb: Calls, Tool: "terminal_input", Command: "a", Typed: true, Loose: true}},
		{"claude-code", "Read", `{"file_path":"a"}`, ToolUse{Verb: Views, Names: []string{"a"}}},
		{"claude-code", "Read", `{}`, ToolUse{Verb: Views, Names: []string{""}}},
		{"claude-code", "Read", `{"file_path":""}`, calls("Read")},
		{"claude-code", "Read", `{"file_path":1}`, calls("Read")},
		{"claude-code", "Read", `{"file_path":["a"]}`, calls("Read")},
		{"claude-code", "Read", `{"file_path":" a"}`, calls("Read")},
		{"claude-code", "Glob", `{"path":"src","pattern":"*.go"}`, ToolUse{Verb: Lists, Names: []string{"src"}, Pattern: "*.go"}},
		{"claude-code", "Write", `{"file_path":"a","content":"x"}`, ToolUse{Verb: Writes, Names: []string{"a"}}},
		{"claude-code", "Write", `{"content":"x"}`, calls("Write")},
		{"claude-code", "WebFetch", `{"url":"https://Example.com:8443/x","prompt":"p"}`, ToolUse{Verb: Fetches, Host: "example.com:8443"}},
		{"claude-code", "WebFetch", `{"prompt":"p"}`, calls("WebFetch")},
		{"claude-code", "TodoWrite", `{"todos":[]}`, ToolUse{Verb: HasNoEffect}},
		{"claude-code", "TodoWrite", `{"-":1}`, ToolUse{Verb: HasNoEffect}},
		{"codex", "apply_patch", patch("*** Add File: a", "+x", "*** Update File: b", "*** Move to: c", "*** End of File"),
			ToolUse{Verb: Patches, Names: []string{"a", "b", "c"}}},
		{"codex", "apply_patch", patch("*** Add File: /a"), calls("apply_patch")},
		{"codex", "apply_patch", patch("*** Add File: a", "*** Delete File: b"), calls("apply_patch")},
		{"codex", "apply_patch", patch("*** Update File"), calls("apply_patch")},
		{"codex", "apply_patch", patch("+x"), calls("apply_patch")},

		{"claude-code", "Task", `{}`, calls("Task")},
		{"", "mcp__git__push", `{}`, calls("git/push")},
		{"claude-code", "mcp__git__push__all", `{}`, ToolUse{Verb: Calls, Tool: "git/push__all", Others: []string{"git__push/all"}}},
		{"claude-code", "mcp__git_push", `{}`, calls("mcp__git_push")},
		{"claude-code", "mcp____push", `{}`, calls("mcp____push")},
		{"claude-code", "mcp__git__", `{}`, calls("mcp__git__")},
		{"gemini", "mcp_git_push", `{}`, calls("git/push")},
		{"gemini", "mcp_my_git__push", `{}`, ToolUse{Verb: Calls, Tool: "my/git__push", Others: []string{"my_git/_push", "my_git_/push"}}},
		{"gemini", "mcp_my_git_push", `{"hook.mcp_context":{"server_name":"my_git","tool_name":"push"}}`, calls("my_git/push")},
		{"gemini", "mcp_my_git_push", `{"hook.mcp_context":{"server_name":"my_git"}}`, calls("my_git/push")},
		{"claude-code", "mcp__my_git__push__a", `{"hook.mcp_server":{"name":"my git","source":"user"}}`, calls("my_git/push__a")},
		{"claude-code", "mcp__my_git__push__a", `{"hook.mcp_server":"my git"}`, calls("mcp__my_git__push__a")},
		{"", "mcp__a__b__c", `{"hook.mcp_server":{"name":"a"}}`, ToolUse{Verb: Calls, Tool: "a/b__c", Others: []string{"a__b/c"}}},
		{"daycared", "a__b__c", `{}`, calls("a/b__c")}, {"cursor", "mcp__a__b", `{}`, calls("mcp__a__b")},
		{"gemini", "mcp_git", `{}`, calls("mcp_git")},
		{Daycared, "git__push", `{}`, calls("git/push")},
		{Daycared, "publish", `{}`, calls("publish")},
		{"opencode", "git__push", `{}`, calls("git__push")},
	} {
		c.want.TypingUnseen = slices.Contains([]string{"codex shell", "codex exec_command", "codex shell_command", "acp acp_execute"},
			c.dialect+" "+c.tool)
		if diff := cmp.Diff(c.want, ReadToolUse(c.dialect, c.tool, json.RawMessage(c.input))); diff != "" {
			t.Errorf("%s %s %s: %s", c.dialect, c.tool, c.input, diff)
		}
	}
}

// TestOperandsAreCounted: a program may have no operands, or as many as its kind allows.
func TestOperandsAreCounted(t *testing.T) {
	for text, left := range map[string]bool{
		"printf": false, "printf x": true, "sed -n": false, "sed -n 5p": true, "sed 5p": false, "grep": true,
		"grep /etc/x src": true,
		"timeout 5":       false, "timeout 5 ls": true,
		"nohup": false, "nohup ls": true, "command": false,
		"grep x /etc/x": false, "uniq": true, "uniq a": true, "uniq a b": false, "pwd": true, "pwd x": false,
	} {
		if why := srv.WhyNotHarmless(ReadCommand(text, srv.Root)); (why == "") != left {
			t.Errorf("%s: %q", text, why)
		}
	}
}

// TestARedirectionToADescriptorIsLeft: a descriptor is one digit; anything else would be a file.
func TestARedirectionToADescriptorIsLeft(t *testing.T) {
	for text, left := range map[string]bool{
		"ls 2>&0": true, "ls 2>&1": true, "ls >&9": true, "ls 2>&/": false, "ls 2>&:": false, "ls 2>&10": false, "ls 2>&-": false,
	} {
		if why := srv.WhyNotHarmless(ReadCommand(text, srv.Root)); (why == "") != left {
			t.Errorf("%s: %q", text, why)
		}
	}
}

// TestHostOf: an address whose host programs may read in different ways has none.
func TestHostOf(t *testing.T) {
	for address, want := range map[string]string{
		"https://a.b/c?d": "a.b", "http://A.b.": "a.b", "HTTPS://a.b:443/": "a.b", "http://a.b:80": "a.b", "https://a.b:8080": "a.b:8080",
		"ftp://a.b": "", "https://u@a.b": "", "https:a.b": "", "https://": "", "https://a.b/{x}": "", `https://a.b/\x`: "", "a.b": "",
		"http://[::1]/": "", "http://127.0.0.1:8/": "127.0.0.1:8", "http://127.1/": "", "http://2130706433": "", "http://0x7f.1": "",
		"http://0x7f000001": "", "http://127.0.0.01": "", "http://127。0。0。1": "", "https://b\u00fccher.example": "",
		"https://e\u00advil.org": "", "https://a.b\u200b/": "", "https://a..b": "", "https://%61.b": "", "http:///a.b": "",
		"https://a.b/ c": "", "://": "", "": "",
	} {
		if got := HostOf(address); got != want {
			t.Errorf("the host of %q is %q, not %q", address, got, want)
		}
	}
}

// TestHarmlessCalls: a call is harmless only where it reads, or edits what is not executed later, in the workspace.
func TestHarmlessCalls(t *testing.T) {
	const add = `{"command":"*** Begin Patch\n*** Add File: a.go\n+x\n*** End Patch"}`
	for _, c := range []struct {
		dialect, tool, input string
		want                 bool
	}{
		{"claude-code", "Bash", `{"command":"ls"}`, true},
		{"claude-code", "Bash", `{"command":"rm x"}`, false},
		{"opencode", "bash", `{"command":"ls","workdir":"/srv/code"}`, false},
		{"codex", "shell", `{"command":["ls"],"workdir":"/srv/code"}`, false},
		{"copilot", "bash", `{"command":"ls"}`, false},
		{"codex", "apply_patch", add, true},
		{"vscode", "create_file", `{"filePath":"a","content":"x"}`, false},
		{"claude-code", "Write", `{"file_path":"a.go","content":"x"}`, true},
		{"claude-code", "Write", `{"file_path":"Makefile","content":"x"}`, false},
		{"claude-code", "Write", `{"file_path":"~a","content":"x"}`, false},
		{"claude-code", "Read", `{"file_path":"a.go"}`, true},
		{"claude-code", "Read", `{"file_path":"~a"}`, false},
		{"claude-code", "Read", `{"file_path":".env"}`, false},
		{"claude-code", "Glob", `{"pattern":"*.go"}`, true},
		{"claude-code", "Glob", `{"pattern":"*.go","path":"link"}`, false},
		{"claude-code", "Glob", `{"pattern":"/etc/*"}`, false},
		{"claude-code", "Glob", `{"pattern":"~/*"}`, false},
		{"claude-code", "Glob", `{"pattern":"../*"}`, false},
		{"claude-code", "Glob", `{"pattern":"link/*"}`, false},
		{"claude-code", "Grep", `{"pattern":"x","glob":"*.go"}`, true},
		{"claude-code", "Grep", `{"pattern":"x","glob":"../*.go"}`, false},
		{"claude-code", "Grep", `{"pattern":"x","glob":".env"}`, false}, {"claude-code", "Grep", `{"pattern":"x","glob":"--pre=sh"}`, false},
		{"claude-code", "TodoWrite", `{"todos":[]}`, true},
		{"claude-code", "WebFetch", `{"url":"https://a.b"}`, false},
		{"claude-code", "Task", `{}`, false},
	} {
		if got := srv.HarmlessCall(c.dialect, c.tool, json.RawMessage(c.input), srv.Root); got != c.want {
			t.Errorf("%s %s %s is harmless: %t", c.dialect, c.tool, c.input, got)
		}
	}
}

// TestOptionsAreNamedForRules: an option is named as a rule writes it, and one that is unknown or names a file is not.
func TestOptionsAreNamedForRules(t *testing.T) {
	for _, c := range []struct {
		text  string
		n     int
		names string // with bars between
		next  bool
		ok    bool
	}{
		{"ls -l", 1, "-l", false, true},
		{"ls -la x", 1, "-l|-a", false, true},
		{"ls -lZ", 1, "", false, false},
		{"ls --color=never", 1, "--color=*", false, true},
		{"ls --color", 1, "--color", false, true},
		{"ls --all=x", 1, "", false, false},
		{"head -n 5 x", 1, "-n *", true, true},
		{"head -n5 x", 1, "-n#", false, true},
		{"head -nx x", 1, "", false, false},
		{"head -5 x", 1, "-#", false, true},
		{"head -n", 1, "", false, false},
		{"head -n -q x", 1, "", false, false},
		{"head -n - x", 1, "-n *", true, true},
		{"head --lines=5 x", 1, "--lines *", false, true},
		{"head --lines=-q x", 1, "", false, false},
		{"head --lines=- x", 1, "--lines *", false, true},
		{"head --other x", 1, "", false, false},
		{"wc -5 x", 1, "", false, false},
		{"test -f x", 1, "", false, false},
		{"go test -coverprofile x", 2, "", false, false},
		{"go test -v ./...", 2, "-v", false, true},
		{"unknown -v", 1, "", false, false},
	} {
		names, next, ok := OptionAt(strings.Fields(c.text), c.n)
		if strings.Join(names, "|") != c.names || next != c.next || ok != c.ok {
			t.Errorf("%s: %q, %t, %t", c.text, names, next, ok)
		}
	}
	for text, want := range map[string]string{
		"ls": "reads", "git log x": "reads", "grep x": "pattern", "go test": "packages", "unknown": "", "git": "",
	} {
		named, got := ListedProgram(strings.Fields(text))
		if words := map[string]int{"git log x": 2, "go test": 2, "unknown": 0, "git": 0}; got != want ||
			named != max(words[text], min(1, len(want))) {
			t.Errorf("the operands of %s are %q, and %d words name it", text, got, named)
		}
	}
	for text, want := range map[string]string{
		"go test -coverprofile=x": "x", "go test -coverprofile x": "x", "go test -coverprofile": "", "go test -run x": "", "go test -run=x": "",
		"go": "", "unknown -coverprofile=x": "",
	} {
		words := strings.Fields(text)
		if got := WritesTo(words, len(words)-1); got != want {
			t.Errorf("the last word of %s has it write %q", text, got)
		}
	}
	for text, want := range map[string]bool{"ls -l": true, "ls /etc": false, "go test ./...": false, "unknown": false} {
		words := strings.Fields(text)
		if got := srv.OnlyReads(Act{Kind: Run, Words: words, In: []string{srv.Root}}); got != want {
			t.Errorf("%s only reads: %t", text, got)
		}
	}
	for pattern, want := range map[string]bool{"": false, "*.go": false, "*": true, ".ENV": true, "src/*.pem": true, "id_?sa": true} {
		if got := FindsSecrets(pattern); got != want {
			t.Errorf("%q finds secrets: %t", pattern, got)
		}
	}
	for ext, want := range map[string]bool{".css": false, ".md": true, ".CODE-workspace": true, ".nothing": false} {
		if got := LaterExtension(ext); got != want {
			t.Errorf("%s is executed later: %t", ext, got)
		}
	}
}

// TestWhatIsWithinTheLimitsIsRead: a command is read whole up to each limit, and no further.
func TestWhatIsWithinTheLimitsIsRead(t *testing.T) {
	for _, c := range []struct {
		name string
		text func(n int) string
		most int
	}{
		{"text", func(n int) string { return "ls " + strings.Repeat("x", n-3) }, maxText},
		{"brackets", func(n int) string { return strings.Repeat("( ", n) + "ls" + strings.Repeat(" )", n) }, maxOpening},
		{"commands", func(n int) string { return strings.Repeat("ls;", n) }, maxActs},
		{"folders", func(n int) string { return strings.Repeat("cd a;", n-1) + "ls" }, maxFolders},
	} {
		for n, left := range map[int]bool{c.most: true, c.most + 1: false} {
			if why := srv.WhyNotHarmless(ReadCommand(c.text(n), srv.Root)); (why == "") != left {
				t.Errorf("%s: of %d: %q", c.name, n, why)
			}
		}
	}
	shell := "ls"
	for n := range maxDepth + 1 {
		shell = "sh -c " + "'" + strings.ReplaceAll(shell, "'", `'\''`) + "'"
		if why := srv.WhyNotHarmless(ReadCommand(shell, srv.Root)); (why == "") != (n < maxDepth) {
			t.Errorf("%d shells in shells: %q", n+1, why)
		}
	}
	for text, unread := range map[string]bool{
		strings.Repeat("cd a;", 5) + "ls": false, strings.Repeat("cd a;", 6) + "ls": true, // 16 and 22 folders
		"rm -r" + strings.Repeat(" x", 3554): false, "rm -r" + strings.Repeat(" x", 3555): true, // 1/16 of the text, and each word
	} {
		if got := slices.Contains(commandRisks(t, "Bash", text), Unread); got != unread {
			t.Errorf("%.20q of %d bytes cannot be read whole: %t", text, len(text), got)
		}
		if strings.HasPrefix(text, "rm") && !unread && !slices.Contains(commandRisks(t, "Bash", text), Destroys) {
			t.Errorf("%.20q of %d bytes destroys nothing", text, len(text))
		}
	}
	nested := "git push -f"
	for n := range maxDepth + 2 {
		got := commandRisks(t, "Bash", nested)
		if slices.Contains(got, Rewrites) != (n <= maxDepth) || slices.Contains(got, Unread) != (n > maxDepth) {
			t.Errorf("in %d shells: %q", n, got)
		}
		nested = "bash -x -c " + Quote(nested)
	}
	for text, known := range map[string]bool{
		"v=build/" + strings.Repeat("x", maxValue-6) + "; rm -rf $v": true, "v=build/" + strings.Repeat("x", maxValue-5) + "; rm -rf $v": false,
		"rm -rf {build" + strings.Repeat(",dist", 8) + "}": true, "rm -rf {build" + strings.Repeat(",dist", 9) + "}": false,
		"rm -rf {build,dist}" + strings.Repeat("/{a,b}", 3): true, "rm -rf {build,dist}" + strings.Repeat("/{a,b}", 4): false,
	} {
		if got := slices.Contains(commandRisks(t, "Bash", text), Destroys); got == known {
			t.Errorf("%.40q of %d bytes destroys data: %t", text, len(text), got)
		}
	}
}

// TestVariablesOfAProgramAreRead: those that are set for it alone are named with their values, and what sets a part of one is a doubt.
func TestVariablesOfAProgramAreRead(t *testing.T) {
	const part = "it sets a part of a variable"
	for text, want := range map[string]string{"X=1 Y= ls": "X=1 Y=", "ls": "", "X+=1 ls": part, "X[1]=2; ls": part, "X=(a b); ls": part} {
		r := ReadCommand(text, srv.Root)
		got := strings.Join(r.Acts[len(r.Acts)-1].Env, " ")
		if slices.Contains(r.Doubts, part) {
			got += part
		}
		if got != want {
			t.Errorf("%s is read as %q, with %q", text, got, r.Doubts)
		}
	}
}

// TestWithin: what a program that runs others is given to run is found, and in which folder.
func TestWithin(t *testing.T) {
	within := func(text string) (found []string) {
		for _, a := range ReadCommand(text, srv.Root).Acts {
			for _, inner := range a.Within() {
				if found = append(found, strings.Join(inner.Words, " ")); !slices.Equal(inner.In, []string{srv.Root}) {
					t.Errorf("%s: %q is run in %q", text, inner.Words, inner.In)
				}
			}
		}
		return found
	}
	for text, want := range map[string][]string{
		"ls a":                         nil,
		"cat < sudo":                   nil,
		"xargs rm -r a":                {"rm -r a", "a"},
		"/usr/bin/env.exe ls":          {"ls"},
		"env -S'ls a'":                 {"ls a"},
		"sudo bash -x -c 'ls x'":       {"bash -x -c ls x", "ls x", "ls x"},
		"git -c 'alias.x=!rm y' x":     {"rm y"},
		"sudo 'a=!b c'":                {"c"},
		"bash x.sh":                    nil,
		"bash <<< 'rm x'":              {"rm x"},
		"source /dev/stdin <<< 'rm x'": {"rm x"},
		". /dev/stdin <<< 'rm x'":      {"rm x"},
		"cat <<< 'rm x'":               nil,
		"eval rm x":                    {"rm x", "x", "rm x"},
	} {
		if got := within(text); !slices.Equal(got, want) {
			t.Errorf("%s runs %q, not %q", text, got, want)
		}
	}
	for _, text := range []string{"xargs" + strings.Repeat(" a", 60), "bash <<< '" + strings.Repeat("a;", maxActs) + "a'"} {
		if got := within(text); len(got) != maxActs {
			t.Errorf("of %.20s %d programs are found", text, len(got))
		}
	}
	if got := within(strings.Repeat("sudo ", 6) + "ls"); len(got) != 55 { // one more would be a sixth level
		t.Errorf("of six in a row %d programs are found", len(got))
	}
	nested := "sudo ls"
	for n := range maxDepth + 2 {
		if got := slices.Contains(within(nested), "ls"); got != (n <= maxDepth) {
			t.Errorf("a program in %d others is found: %t", n+1, got)
		}
		nested = "sudo " + Quote(nested)
	}
	for _, inner := range (Act{Kind: Run, Words: []string{"sudo", "ls x"}}).Within() {
		if !slices.Equal(inner.In, []string{Computed}) {
			t.Errorf("nobody says where it runs, and it is run in %q", inner.In)
		}
	}
	if got := (Act{Kind: Run}).Within(); got != nil {
		t.Errorf("nothing runs %v", got)
	}
}

// TestWhatAProgramIsFed: a file, or a descriptor that was opened before, is its input; what it writes is not.
func TestWhatAProgramIsFed(t *testing.T) {
	for text, want := range map[string]bool{
		"cat": false, "cat < x": true, "cat <> x": true, "cat <&3": true, "cat > x": false,
		"cat >> x": false, "(cat) < x": true, "cat < x; ls": false,
	} {
		all := ReadCommand(text, "/srv").Acts
		all = slices.DeleteFunc(all, func(a Act) bool { return a.Kind != Run })
		if got := all[len(all)-1].Fed; got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// TestABackslashInQuotes is one unless what follows needs it.
func TestABackslashInQuotes(t *testing.T) {
	for text, want := range map[string]string{`a\$b`: "a$b", `a\"b`: `a"b`, `a\\b`: `a\b`, `a\b`: `a\b`, `$a`: `$a`, "a\\\nb": "ab"} {
		var b strings.Builder
		if writeEscaped(&b, text, "$`\"\\\n"); b.String() != want {
			t.Errorf("%q is read as %q, not %q", text, b.String(), want)
		}
	}
}

// TestWhatGetsCode names files that do not stand in the command, and so does a program that is given names by another.
func TestWhatGetsCode(t *testing.T) {
	for text, want := range map[string]bool{
		"jq . a": true, "psql shop": true, "/usr/bin/python3.12 -c x": true, "node --eval x": true, "deno eval x": true, "python3 -": true,
		"python3 <<< x": true, "python3 < x": true, "cat x | python3": true,
		"find . | xargs rm": true, "parallel rm < x": true, "cpio -o < x": true,
		"psql": false, "awk": false,
		"python3 x.py": false, "python3 x.py eval.txt -v": false, "xargs rm": false, "parallel rm": false, "cpio -o": false,
		"find . | sort": false,
	} {
		got := slices.ContainsFunc(ReadCommand(text, srv.Root).Acts, Act.GetsCode)
		if got != want {
			t.Errorf("%s gets code: %t", text, got)
		}
		input, _ := json.Marshal(map[string]string{"command": text}) // it is text
		if got := CodeIn(input); got != want {
			t.Errorf("%s as the input of a tool has code: %t", input, got)
		}
	}
	for command, want := range map[string]bool{"rm a": false, "rm $X": true, "if true; then rm a; fi": true} {
		if got := CodeIn(json.RawMessage(`{"command":"` + command + `"}`)); got != want {
			t.Errorf("%s computes what it names: %t", command, got)
		}
	}
	for _, a := range []Act{{Kind: Read, Words: []string{"jq"}}, {Kind: Run}} {
		if a.GetsCode() {
			t.Errorf("%s %q gets code", a.Kind, a.Words)
		}
	}
}

// TestWhatMayBeRunIsReadLoosely: each word may be a program, whatever parts it from the others, and one that comes again and again is
// looked at a few times only.
func TestWhatMayBeRunIsReadLoosely(t *testing.T) {
	read := func(text string) (found []string) {
		for a := range ReadLoosely(text, srv.Root) {
			found = append(found, strings.Join(a.Words, " "))
		}
		return found
	}
	for _, between := range []string{" ", "\t", "\x01", "=", "\x7f", "\u00a0", "\u200b", "\u2028"} {
		if got := read("a~" + between + "rm|ä"); !slices.Equal(got, []string{"a~ rm", "rm", "ä"}) {
			t.Errorf("with %q between: %q", between, got)
		}
	}
	if got := read(strings.Repeat("a ", maxSeen+1) + "rm; a"); len(got) != maxSeen+2 || got[maxSeen] != "rm" {
		t.Errorf("with a word again and again: %q", got)
	}
}

// TestLinesThatShellsReadDifferentlyAreNotRead: where one goes on, a here-document may end before, and what follows is run.
func TestLinesThatShellsReadDifferentlyAreNotRead(t *testing.T) {
	for text, want := range map[string]string{
		"cat <<E\n\\\nE\nrm a\nE":    "a here-document ends in a line that goes on",
		"cat <<-E\n\t\\\nE\nrm a\nE": "a here-document ends in a line that goes on",
		"cat <<E\na\\\nb\nE\nls":     "",
		"cat <<'E'\n\\\nE":           "",
		"cat <<E\nE":                 "",
		"cat <1-5":                   "zsh reads <1-5> as a pattern",
		"cat <a-5":                   "",
	} {
		if got := strings.Join(ReadCommand(text, srv.Root).Doubts, "; "); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
	for text, more := range map[string][]string{"rm <(": nil, "rm <(\\\na": {"rm <(\na"}} {
		if got := ReadCommand(text, srv.Root).Unparsed; !slices.Equal(got, append([]string{text}, more...)) {
			t.Errorf("of %q could not be parsed: %q", text, got)
		}
	}
}

// TestQuote: what a shell would change is quoted, and nothing else.
func TestQuote(t *testing.T) {
	const plain = "azAZ09%+,-./:@_"
	if got := Quote(plain); got != plain {
		t.Errorf("%s is quoted as %s", plain, got)
	}
	for word, want := range map[string]string{
		"": "''", "`": "'`'", "{": "'{'", "[": "'['", "a b": "'a b'", "$x": "'$x'", "it's": `'it'\''s'`, "ä": "'ä'", ";": "';'", "^": "'^'",
	} {
		if got := Quote(word); got != want {
			t.Errorf("%q is quoted as %s, not %s", word, got, want)
		}
	}
}

// TestFilesThatProgramsWrite: what a program writes or removes is found in its operands and in the values of its options.
func TestFilesThatProgramsWrite(t *testing.T) {
	for text, want := range map[string]string{
		"rm a b":                     "a b",
		"rm -f -- -a b":              "-a b",
		"rm -":                       "-",
		"chmod 644 a b":              "a b",
		"chmod":                      "",
		"cp a b c":                   "c",
		"cp":                         "",
		"cp -t dir a":                "dir a",
		"cp --target-directory=d a":  "d a",
		"sed -i s/a/b/ x y":          "x y",
		"sed s/a/b/ x":               "",
		"sed -ni p x":                "",
		"sed --in-place=.bak -e p x": "x",
		"sed -i -f script x":         "x",
		"sed -i --expression p x":    "x",
		"sed -i":                     "",
		"perl -pi -e s/a/b/ x":       "x",
		"perl -p -e s/a/b/ x":        "",
		"dd if=a of=b":               "b",
		"curl -o a x.com":            "a",
		"curl -oa x.com":             "a",
		"curl -o":                    "",
		"curl --output":              "",
		"curl --output=a x.com":      "a",
		"curl --output a x.com":      "a",
		"curl --output-dir d -o a x": "a d",
		"curl --other x.com":         "",
		"wget -P d x.com":            "d",
		"go build -o a":              "a",
		"sort -o a b":                "a",
		"tar -C d -xf x":             "d",
		"unzip -d d x":               "d",
		"unzip -dd x":                "d",
		"unzip x":                    "",
		"cat a":                      "",
	} {
		words := strings.Fields(text)
		operands, _ := operandsOf(words[1:])
		if got := strings.Join(writtenFiles(words[0], words[1:], operands), " "); got != want {
			t.Errorf("%s writes %q, not %q", text, got, want)
		}
	}
}

// TestADialectIsFoundByItsTools: that of the first agent with such a tool; what any caller may have says nothing.
func TestADialectIsFoundByItsTools(t *testing.T) {
	for tool, want := range map[string]string{"Bash": "claude-code", "run_command": Daycared, "teleport": "", "shell": "codex"} {
		if got := DialectOf(tool); got != want {
			t.Errorf("%s is of %q, not %q", tool, got, want)
		}
	}
}
