package connect

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
)

var update = flag.Bool("update", false, "write the golden files")

var here = Target{Home: "/home/fay", GOOS: "linux", Command: []string{"/usr/local/bin/daycared"}}

// every returns all files of all agents, by name.
func every(p Target) map[string]File {
	all := map[string]File{}
	for _, name := range Names() {
		a, _ := p.Find(name)
		for _, f := range a.Files {
			all[name+"_"+filepath.Base(f.Path)] = f
		}
	}
	return all
}

// The golden files are the exact content of fresh files that was tried with the programs.
func TestFreshFiles(t *testing.T) {
	seen := 0
	for name, f := range every(here) {
		got, err := f.Install("")
		if err != nil {
			t.Fatal(name, err)
		}
		golden := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
		seen++
	}
	if seen != 11 {
		t.Errorf("%d files", seen)
	}
}

// Agents look for their settings where they were told to, otherwise in the home.
func TestMoved(t *testing.T) {
	told := here
	told.Moved = map[string]string{}
	for _, name := range Movers() {
		told.Moved[name] = "/at/" + name
	}
	mac := told
	mac.GOOS = "darwin"
	for _, test := range []struct {
		p     Target
		agent string
		want  string
	}{
		{here, "claude-code", "/home/fay/.claude.json /home/fay/.claude/settings.json"},
		{told, "claude-code", "/at/CLAUDE_CONFIG_DIR/.claude.json /at/CLAUDE_CONFIG_DIR/settings.json"},
		{here, "codex", "/home/fay/.codex/config.toml"}, {told, "codex", "/at/CODEX_HOME/config.toml"},
		{here, "gemini", "/home/fay/.gemini/settings.json"}, {told, "gemini", "/at/GEMINI_CLI_HOME/.gemini/settings.json"},
		{here, "opencode", "/home/fay/.config/opencode/opencode.json /home/fay/.config/opencode/opencode.jsonc " +
			"/home/fay/.config/opencode/plugin/daycared.js"},
		{told, "opencode", "/at/XDG_CONFIG_HOME/opencode/opencode.json /at/XDG_CONFIG_HOME/opencode/opencode.jsonc " +
			"/at/XDG_CONFIG_HOME/opencode/plugin/daycared.js"},
		{here, "copilot", "/home/fay/.copilot/mcp-config.json /home/fay/.copilot/hooks/daycared.json"},
		{told, "copilot", "/at/COPILOT_HOME/mcp-config.json /at/COPILOT_HOME/hooks/daycared.json"},
		{told, "cursor", "/home/fay/.cursor/mcp.json /home/fay/.cursor/hooks.json"},
		{here, "vscode", "/home/fay/.config/Code/User/mcp.json"}, {told, "vscode", "/at/XDG_CONFIG_HOME/Code/User/mcp.json"},
		{mac, "vscode", "/home/fay/Library/Application Support/Code/User/mcp.json"},
	} {
		a, _ := test.p.Find(test.agent)
		var paths []string
		for _, f := range a.Files {
			paths = append(paths, f.Path)
			if f.Or != "" {
				paths = append(paths, f.Or)
			}
		}
		if got := strings.Join(paths, " "); got != test.want {
			t.Errorf("%s keeps its settings at %s, not %s", test.agent, got, test.want)
		}
	}
}

// settings are files as people have them.
var settings = map[string]string{
	"empty":          "",
	"nothing in it":  "{}\n",
	"one line":       `{"theme":"dark"}`,
	"tabs":           "{\n\t\"theme\": \"dark\",\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\"}\n\t}\n}\n",
	"four spaces":    "{\n    \"theme\": \"dark\"\n}",
	"comments":       "// mine\n{\n  // a comment\n  \"theme\": \"dark\", /* here */\n  \"n\": 1e400 // last\n  // end\n}\n// after\n",
	"trailing comma": "{\n  \"theme\": \"dark\",\n  \"hooks\": {\"Other\": [1,],},\n}\n",
	"others' hooks": `{
  "hooks": {
    "PermissionRequest": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "mine.sh"}]}],
    "BeforeTool": [{"hooks": [{"command": "their.sh"}]} /* keep */],
    "preToolUse": [{"bash": "x"}, {"command": "y"}], // both
    "beforeShellExecution": []
  },
  "mcpServers": {"other": {}}, "mcp": {"other": {}}, "servers": {"other": {}}
}`,
}

// Installing is idempotent, preserves everything else, and removing restores the original.
func TestJSONIsKept(t *testing.T) {
	moved := here
	moved.Command = []string{"/opt/it's here/daycared", "--socket", "/run/x"}
	newer := every(moved)
	for name, f := range every(here) {
		if f.block != "" || f.whole != "" {
			continue
		}
		for what, text := range settings {
			once, err := f.Install(text)
			if f.ignored(text) != nil {
				if err == nil || once != "" {
					t.Errorf("%s, %s: it writes into what the agent does not read: %s", name, what, once)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s, %s: %v", name, what, err)
			}
			if twice, err := f.Install(once); err != nil || twice != once {
				t.Errorf("%s, %s: a second time: %v\n%s\n%s", name, what, err, once, twice)
			}
			for _, kept := range []string{
				"// mine", "// a comment", "/* here */", "// last", "// end", "// after", "1e400", "/* keep */", "// both",
			} {
				if strings.Count(text, kept) != strings.Count(once, kept) {
					t.Errorf("%s, %s: lost %s:\n%s", name, what, kept, once)
				}
			}
			after, err := newer[name].Install(once)
			if err != nil || strings.Contains(after, "/usr/local/bin") || !strings.Contains(after, "/opt/it") {
				t.Errorf("%s, %s: moved: %v\n%s", name, what, err, after)
			}
			gone, err := newer[name].Remove(after)
			if err != nil || strings.Contains(gone, "daycared") || strings.Contains(gone, "/opt") {
				t.Errorf("%s, %s: removed: %v\n%s", name, what, err, gone)
			}
			if want := without(t, text); !f.Empty(gone) && without(t, gone) != want {
				t.Errorf("%s, %s: removing leaves\n%s\nof\n%s", name, what, gone, text)
			}
			if again, err := f.Remove(gone); err != nil || again != gone {
				t.Errorf("%s, %s: removed twice: %v\n%s", name, what, err, again)
			}
		}
	}
}

// without removes empty containers and a version from text, since they may come or go.
func without(t *testing.T, text string) string {
	t.Helper()
	if text == "" {
		text = "{}"
	}
	plain, err := hujson.Standardize([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	var v map[string]any
	d := json.NewDecoder(bytes.NewReader(plain))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	delete(v, "version")
	out, err := json.Marshal(pruned(v))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func pruned(v any) any {
	object, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for name, inner := range object {
		inner = pruned(inner)
		if list, ok := inner.([]any); ok && len(list) == 0 {
			inner = nil
		}
		if o, ok := inner.(map[string]any); ok && len(o) == 0 {
			inner = nil
		}
		if inner == nil {
			delete(object, name)
		}
	}
	return object
}

// Only settings of the expected shape are changed.
func TestOddSettingsAreLeftAlone(t *testing.T) {
	a, _ := here.Find("gemini")
	f := a.Files[0]
	for _, text := range []string{
		`{`, `[]`, `"x"`, `{"a":1,"a":2}`, `{"mcpServers":[]}`, `{"mcpServers":7}`, `{"hooks":{"BeforeTool":{}}}`, `{"hooks":[]}`,
	} {
		if got, err := f.Install(text); err == nil {
			t.Errorf("%s became %s", text, got)
		}
	}
	for _, text := range []string{
		`{"mcpServers":[]}`, `{"mcpServers":7,"hooks":7}`, `{"hooks":{"BeforeTool":{}}}`, `{"hooks":{"BeforeTool":[7]}}`,
	} {
		if got, err := f.Remove(text); err != nil || got != text {
			t.Errorf("%s became %s, %v", text, got, err)
		}
	}
	for _, text := range []string{`{`, `[]`, `{"a":1,"a":2}`} {
		if got, err := f.Remove(text); err == nil {
			t.Errorf("%s became %s", text, got)
		}
	}
}

// Where an agent does not read a file, nothing in it would ever run, or the agent does not start. Tried with the programs, but for
// Cursor and VS Code.
func TestWhatTheAgentDoesNotReadIsSaidAndNotWrittenInto(t *testing.T) {
	const comment, comma, marked = "{\n  // mine, [1,]\n  \"a\": 1 /* , */\n}\n", "{\n  \"a\": [1,\n  2,\n  ]\n}\n", mark + "{\"a\": 1}\n"
	const both = "{\n  // mine\n  \"a\": 1,\n}\n"
	refused := map[string]map[string]string{
		"claude-code_settings.json": {comment: "Claude Code reads none of it, since line 2 has a comment; take that out first",
			comma: "line 3 has a comma too many", mark + comma: "line 3 has a comma too many", both: "line 2 has a comment"},
		"claude-code_.claude.json": {comment: "Claude Code reads none of it, since line 2 has a comment", comma: "line 3 has a comma too many",
			both: "line 2 has a comment"},
		"gemini_settings.json": {comma: "Gemini CLI reads none of it, since line 3 has a comma too many; take that out first",
			both: "line 3 has a comma too many", marked: "line 1 has a byte order mark"},
	}
	for name, f := range every(here) {
		if f.block != "" || f.whole != "" {
			continue
		}
		for _, text := range []string{comment, comma, both, marked} {
			got, err := f.Install(text)
			switch want := refused[name][text]; {
			case want == "" && err != nil:
				t.Errorf("%s reads %q: %v", name, text, err)
			case want != "" && (err == nil || got != "" || !strings.Contains(err.Error(), want)):
				t.Errorf("%s: %q became %q, %v", name, text, got, err)
			}
		}
	}
}

// A byte order mark is preserved: agents read such files.
func TestAByteOrderMarkIsKept(t *testing.T) {
	for name, f := range every(here) {
		text := mark + "{\n  \"theme\": \"dark\"\n}\n"
		if f.block != "" {
			text = mark + "theme = \"dark\"\n"
		}
		if f.whole != "" || f.ignored(text) != nil {
			continue
		}
		once, err := f.Install(text)
		if err != nil || !strings.HasPrefix(once, mark) || strings.Count(once, mark) != 1 || !strings.Contains(once, "daycared") {
			t.Errorf("%s: %q, %v", name, once, err)
		}
		if twice, err := f.Install(once); err != nil || twice != once {
			t.Errorf("%s, a second time: %q, %v", name, twice, err)
		}
		if f.Pinned(once) {
			t.Errorf("%s: its commands name no daemon", name)
		}
		if gone, err := f.Remove(once); err != nil || !strings.HasPrefix(gone, mark) || strings.Contains(gone, "daycared") {
			t.Errorf("%s, removed: %q, %v", name, gone, err)
		}
	}
}

// A file that is entirely ours is recognized by its beginning; another file of that name is left alone.
func TestAWholeFileIsWrittenOnlyWhereItIsOurs(t *testing.T) {
	a, _ := here.Find("opencode")
	f := a.Files[1]
	once, err := f.Install("")
	if err != nil || !strings.Contains(once, `= ["/usr/local/bin/daycared","hook","opencode","--within","59m"];`) || f.Pinned(once) {
		t.Errorf("%v\n%s", err, once)
	}
	moved := here
	moved.Command = []string{"/opt/it's here/daycared", "--socket", "/run/x"}
	b, _ := moved.Find("opencode")
	newer, err := b.Files[1].Install(once + "// more")
	if err != nil || strings.Contains(newer, "/usr/local") || strings.Contains(newer, "// more") || !b.Files[1].Pinned(newer) {
		t.Errorf("moved: %v\n%s", err, newer)
	}
	if gone, err := f.Remove(newer); err != nil || gone != "" || !f.Empty(gone) {
		t.Errorf("removed: %v\n%s", err, gone)
	}
	const foreign = "// theirs\nexport const X = 1;\n"
	if got, err := f.Install(foreign); err == nil || got != "" {
		t.Errorf("a foreign file became %q", got)
	}
	if got, err := f.Remove(foreign); err != nil || got != foreign {
		t.Errorf("a foreign file became %q, %v", got, err)
	}
}

func TestTOMLIsKept(t *testing.T) {
	a, _ := here.Find("codex")
	f := a.Files[0]
	moved := here
	moved.Command = []string{"/opt/daycared"}
	b, _ := moved.Find("codex")
	for what, text := range map[string]string{
		"empty": "", "a table": "# mine\nmodel = \"m\" # fine\n\n[mcp_servers.other]\ncommand = \"x\"\n",
		"hooks": "[[hooks.PreToolUse]]\nmatcher = \"x\"\n", "no newline": "a = 1",
		"features": "[features] # mine\nhooks = true\n", "a feature": "features.hooks = true\n", "CRLF": "[features]\r\nhooks = true\r\n",
	} {
		once, err := f.Install(text)
		if err != nil {
			t.Fatal(what, err)
		}
		var v struct {
			Servers map[string]struct{ Command string } `toml:"mcp_servers"`
			Hooks   struct{ PreToolUse []struct{ Matcher string } }
		}
		if err := toml.Unmarshal([]byte(once), &v); err != nil || v.Servers["daycared"].Command != here.Command[0] ||
			v.Hooks.PreToolUse[len(v.Hooks.PreToolUse)-1].Matcher != ".*" {
			t.Errorf("%s: %v, %+v", what, err, v)
		}
		if need := a.Needs[0]; need.In(text, "") || !need.In(once, "") {
			t.Errorf("%s: %s: %s", what, need.Without, once)
		}
		if twice, err := f.Install(once); err != nil || twice != once {
			t.Errorf("%s: a second time: %v\n%s", what, err, twice)
		}
		newer, err := b.Files[0].Install(once)
		if err != nil || strings.Contains(newer, "/usr/local") || strings.Count(newer, blockBegin) != 1 {
			t.Errorf("%s: moved: %v\n%s", what, err, newer)
		}
		if gone, err := f.Remove(newer); err != nil || strings.TrimRight(gone, "\n") != strings.TrimRight(text, "\n") {
			t.Errorf("%s: removed: %v\n%s", what, err, gone)
		}
		if gone, err := f.Remove(once + "\n[more]\na = 1\n"); err != nil || strings.Contains(gone, "daycared") ||
			!strings.HasSuffix(gone, "[more]\na = 1\n") {
			t.Errorf("%s: removed from the middle: %v\n%s", what, err, gone)
		}
	}
	// What the person has decided, and what cannot be added to, stays.
	for _, text := range []string{"[features]\nunified_exec_tty = true\n", "features = {hooks = true}\n"} {
		once, err := f.Install(text)
		if err != nil || a.Needs[0].In(once, "") || !strings.HasPrefix(once, text) {
			t.Errorf("%q became %q, %v", text, once, err)
		}
	}
	for _, text := range []string{
		"a = ", "hooks = 7\n", "[mcp_servers.daycared]\ncommand = \"x\"\n", "hooks = {PreToolUse = []}\n", blockBegin + "\n",
	} {
		if got, err := f.Install(text); err == nil {
			t.Errorf("%s became %s", text, got)
		}
	}
	if _, err := f.Remove(blockBegin); err == nil {
		t.Error("a block without an end was removed")
	}
	if f.Empty("a = 1") || !f.Empty("\n") {
		t.Error("what is empty")
	}
}

func TestAgents(t *testing.T) {
	for _, name := range Names() {
		a, ok := here.Find(name)
		if !ok || a.Name != name || a.Enforces == "" || a.Advises == "" || len(a.Files) == 0 {
			t.Errorf("%s: %+v", name, a)
		}
		for _, f := range a.Files {
			if !strings.HasPrefix(f.Path, "/home/fay/") {
				t.Errorf("%s is outside of home", f.Path)
			}
		}
	}
	if _, ok := here.Find("emacs"); ok {
		t.Error("emacs can be connected")
	}
	mac := here
	mac.GOOS = "darwin"
	if a, _ := mac.Find("vscode"); a.Files[0].Path != "/home/fay/Library/Application Support/Code/User/mcp.json" {
		t.Error(a.Files[0].Path)
	}
	for word, want := range map[string]string{"/a/b": "/a/b", "": "''", "it's": `'it'\''s'`, "a b": "'a b'", "$x": "'$x'"} {
		if got := quoted(word); got != want {
			t.Errorf("%q is %s", word, got)
		}
	}
}

// What an older version wrote for Claude Code is reported as stale, replaced, and removed completely.
func TestAnOlderConnectionIsReplaced(t *testing.T) {
	const older = `{"hooks":{"PermissionRequest":[{"matcher":"*","hooks":[{"type":"command","command":` +
		`"/usr/local/bin/daycared hook claude-code --within 59m","timeout":3600,"onFailure":"block"}]}]}}`
	a, _ := here.Find("claude-code")
	f := a.Files[1]
	newer, err := f.Install(older)
	if err != nil || newer == older {
		t.Fatal(newer, err)
	}
	for _, event := range []string{
		"PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "SessionEnd", "Stop", "StopFailure", "Notification",
	} {
		if strings.Count(newer, `"`+event+`"`) != 1 {
			t.Errorf("%s: %s", event, newer)
		}
	}
	if n := strings.Count(newer, "hook claude-code"); n != 8 {
		t.Errorf("%d commands: %s", n, newer)
	}
	if gone, err := f.Remove(newer); err != nil || !f.Empty(gone) {
		t.Errorf("removed: %s, %v", gone, err)
	}
	raced := here
	raced.Keyboard = true
	b, _ := raced.Find("claude-code")
	at, err := b.Files[1].Install(newer)
	if err != nil || strings.Count(at, "--within 59m --keyboard") != 2 {
		t.Errorf("at the keyboard: %s, %v", at, err)
	}
	if again, err := f.Install(at); err != nil || strings.Contains(again, "--keyboard") {
		t.Errorf("and no more: %s, %v", again, err)
	}
}

// A hook that only notifies decides nothing, so it binds no agent.
func TestAHookThatOnlyTellsBindsNothing(t *testing.T) {
	a, _ := here.Find("claude-code")
	for command, want := range map[string]bool{here.hook("claude-code"): true, here.notice("claude-code"): false} {
		listed := Hooks{All: []Hook{{Event: "PreToolUse", Command: command}}}
		if _, _, runs := a.Skipped(listed, false); runs != want {
			t.Errorf("listed as %s: it binds: %v", command, runs)
		}
		text := `{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"` + command + `"}]}]}}`
		managed := Managed{Path: "x.json", Hooks: []string{"hooks", "PreToolUse"}}
		if commands, _ := managed.Commands(text, "claude-code"); len(commands) == 1 != want {
			t.Errorf("managed as %s: %q", command, commands)
		}
	}
}
