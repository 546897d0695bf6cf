package hooks

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/daycared/daycared/internal/own"
)

// callOf reads the hook input of a tool call in a dialect.
func callOf(t *testing.T, dialect, tool, cwd, input string) Call {
	t.Helper()
	d, _ := Find(dialect)
	var event map[string]any
	if err := json.Unmarshal(d.Probe(tool, cwd), &event); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tool_input", "toolArgs", "args"} {
		if event[name] != nil {
			event[name] = json.RawMessage(input)
		}
	}
	text, _ := json.Marshal(event) // it is valid
	c, err := d.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWhatEachDialectLeaves(t *testing.T) {
	root := own.Resolve(t.TempDir())
	home := filepath.Join(root, "home")
	at := filepath.Join(home, "code")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(at, "link")); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home, "PATH": "/usr/bin:/bin"}
	for _, c := range []struct {
		dialect, tool, input string
		want                 bool
	}{
		{"claude-code", "Bash", `{"command":"go test ./...","description":"Test","timeout":1000}`, true},
		{"claude-code", "Bash", `{"command":"go test ./...","run_in_background":true}`, false},
		{"claude-code", "Bash", `{"command":"curl example.org"}`, false}, {"claude-code", "Bash", `{"command":1}`, false},
		{"claude-code", "Read", `{"file_path":"` + at + `/a.go","limit":5}`, true}, {"claude-code", "Read", `{"file_path":"/etc/passwd"}`, false},
		{"claude-code", "Read", `{"file_path":"link/passwd"}`, false}, {"claude-code", "Read", `{"file_path":" /etc/passwd"}`, false},
		{"claude-code", "Write", `{"file_path":"\nMakefile","content":"x"}`, false},
		{"claude-code", "LS", `{"path":"a "}`, false}, {"claude-code", "Read", `{"file_path":"~/x"}`, false},
		{"claude-code", "Glob", `{"pattern":"**/*.go"}`, true}, {"claude-code", "Glob", `{"pattern":"/etc/*"}`, false},
		{"claude-code", "Glob", `{"pattern":"**/*.{d.ts,tsx}"}`, true}, {"claude-code", "Glob", `{"pattern":"\\.\\./*"}`, false},
		{"claude-code", "Glob", `{"pattern":".{.,x}/*"}`, false}, {"claude-code", "Glob", `{"pattern":"{a,/etc}/*"}`, false},
		{"claude-code", "Glob", `{"pattern":".{,x}./*"}`, false}, {"claude-code", "Glob", `{"pattern":"{a/.,b}./*"}`, false},
		{"claude-code", "Glob", `{"pattern":"@(..|a)/*"}`, false}, {"claude-code", "Glob", `{"pattern":"@(a|/etc)/*"}`, false},
		{"claude-code", "Glob", `{"pattern":"../*"}`, false}, {"claude-code", "Grep", `{"pattern":"x","-n":true}`, true},
		{"claude-code", "TodoWrite", `{"todos":[]}`, true}, {"claude-code", "WebFetch", `{"url":"https://example.org"}`, false},
		{"claude-code", "Edit", `{"file_path":"a.go","old_string":"a","new_string":"b"}`, true},
		{"claude-code", "Edit", `{"file_path":"a.go","old_string":"a","new_string":"b","more":1}`, false},
		{"claude-code", "Edit", `{"file_path":".git/config","old_string":"a","new_string":"b"}`, false},
		{"claude-code", "Write", `{"file_path":"Makefile","content":"x"}`, false}, {"claude-code", "Write", `{"content":"x"}`, false},
		{"claude-code", "Write", fmt.Sprintf(`{"file_path":"a.go","content":"%0*d"}`, 2*maxInline, 1), true},
		{"claude-code", "mcp__x__Read", `{"file_path":"a.go"}`, false}, {"claude-code", "ExitPlanMode", `{"plan":"x"}`, false},
		{"claude-code", "bash", `{"command":"ls"}`, false}, {"claude-code", "Read", `{"file_path":["/etc/passwd"]}`, false},
		{"codex", "Bash", `{"command":"ls"}`, false}, {"cursor", "Shell", `{"command":"ls"}`, false},
		{"codex", "apply_patch", `{"command":"*** Begin Patch\n*** Update File: a.go\n@@\n-one\n+two\n*** End Patch"}`, true},
		{"codex", "apply_patch", `{"command":"*** Begin Patch\n*** Add File: a.go\n+x\n*** Update File: go.mod\n*** End Patch"}`, false},
		{"codex", "apply_patch", `{"command":"*** Begin Patch\n*** Update File: a.go\n*** Move to: .git/x\n*** End Patch"}`, false},
		{"codex", "apply_patch", `{"command":"*** Begin Patch\n*** Delete File: a.go\n*** End Patch"}`, false},
		{"codex", "apply_patch", `{"command":"*** Begin Patch\n*** End Patch"}`, false},
		{"copilot", "bash", `{"command":"ls","description":"x"}`, false}, {"copilot", "create", `{"path":"a","file_text":"x"}`, true},
		{"copilot", "create", `{"path":".github/workflows/a.yml","file_text":"x"}`, false},
		{"cursor", "Write", `{"file_path":"a","contents":"x"}`, true}, {"cursor", "Delete", `{"file_path":"a"}`, false},
		{"gemini", "run_shell_command", `{"command":"ls"}`, true}, {"gemini", "run_shell_command", `{"command":"ls","dir_path":"/etc"}`, false},
		{"gemini", "write_file", `{"file_path":"a.md","content":"x"}`, true}, {"gemini", "list_directory", `{"dir_path":"/etc"}`, false},
		{"opencode", "bash", `{"command":"ls","description":"x"}`, true}, {"opencode", "bash", `{"command":"ls","workdir":"/etc"}`, false},
		{"opencode", "write", `{"filePath":"a","content":"x"}`, true}, {"vscode", "create_file", `{"filePath":"a","content":"x"}`, false},
	} {
		if got := callOf(t, c.dialect, c.tool, at, c.input).Harmless(func(name string) string { return env[name] }); got != c.want {
			t.Errorf("%s %s %.90s: %v", c.dialect, c.tool, c.input, got)
		}
	}
	ls := callOf(t, "claude-code", "Bash", at, `{"command":"ls"}`)
	for name, of := range map[string][4]string{
		"the home":                 {home, env["PATH"], home},
		"no home":                  {"", env["PATH"], ""},
		"a program's folder":       {home, "/bin:" + at + "/bin", ""},
		"a program's folder here":  {home, "/bin:.", ""},
		"a cd that goes elsewhere": {home, env["PATH"], "", "/etc"},
		"elsewhere":                {home, env["PATH"], filepath.Join(root, "other")},
	} {
		if ls.Harmless(func(name string) string {
			return map[string]string{"HOME": of[0], "PATH": of[1], "CLAUDE_PROJECT_DIR": of[2], "CDPATH": of[3]}[name]
		}) {
			t.Error(name)
		}
	}
	d, _ := Find("claude-code")
	again, err := d.Read([]byte(`{"hook_event_name":"PermissionRequest","session_id":"s","cwd":"` + at + `",` +
		`"tool_name":"Bash","tool_input":{"command":"ls"}}`))
	if err != nil || again.Harmless(func(name string) string { return env[name] }) {
		t.Error("what the agent's own rules ask about is left", err)
	}
}
