// Package connect knows where the agents that people already run keep their settings, and what has to stand there so that
// they ask daycared: an MCP server, and hooks with timeouts that are longer than daycared's own and with the flags that
// deny where a hook fails.
//
// An [Agent] has [File]s. A file is changed as text, and purely: [File.Install] and [File.Remove] take what it holds and
// give what it is to hold, keeping the person's own settings, their order and their comments. What is ours is recognised
// by its name, so that installing twice changes nothing and removing takes out what was installed.
package connect

import (
	_ "embed"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// waits is how long an agent is told to wait for a hook or a tool, and within, how long daycared takes at most.
	waits  = time.Hour
	within = "59m"
	// tells is how long an agent is told to wait for a hook that only tells us something, in seconds.
	tells = 10
	// ours is what our entries are called where they have a name.
	ours = "daycared"
)

// Agent is a program that can be connected.
type Agent struct {
	Name    string
	Dialect string // of its hooks; empty: it has none that are known
	Files   []File
	Loaded  string // what the agent leaves when it has loaded the last of Files; empty: it leaves nothing
	// Enforces and Advises say what the connection keeps the agent from, and what it only tells its model.
	Enforces, Advises string
	// Reads are its tools that only read, which tools.auto may let go without asking.
	Reads []string
	// Notes are what the person has to do besides.
	Notes []string
	Binding
}

// Target is the machine that agents are connected on.
type Target struct {
	Home    string
	GOOS    string
	Command []string // daycared, by its path, with the flags that stand before every command
	// Keyboard says that whoever is at an agent's keyboard may answer before people do, where that is certain to be asked.
	Keyboard bool
	// Refused says that people are asked about what an agent's own judgement has refused.
	Refused bool
	// Gate is what the hooks ask about, one of [Gates]; empty: all.
	Gate string
	// Moved are the folders where agents were told to look instead of in Home, by the variables that tell them; absolute.
	// See [Movers].
	Moved map[string]string
	// Etc is where the machine keeps settings that root owns; empty: /etc.
	Etc string
}

// Gates are what hooks may ask about: every call, or those that are not harmless.
var Gates = []string{GateAll, GateRisky}

// The gates.
const (
	GateAll   = "all"
	GateRisky = "risky"
)

// leaves is what a person has to know of [GateRisky].
const leaves = "--gate risky: what was read completely and only reads, edits, builds or tests in the agent's folder is left to the " +
	"agent's own mode, and what it builds or tests there runs; commands of Codex, Copilot CLI and Cursor are asked about; tools.gated, " +
	"tools.forbidden and high_risk hold all the same"

// Movers are the variables by which agents are told where their settings are.
func Movers() []string { return []string{claudeHome, codexHome, copilotHome, geminiHome, xdgConfig} }

// docs/tried.md names those that were tried; Cursor and VS Code are as their documentation has it.
const (
	claudeHome  = "CLAUDE_CONFIG_DIR" // in place of ~/.claude, and .claude.json is in it as well
	codexHome   = "CODEX_HOME"        // in place of ~/.codex
	copilotHome = "COPILOT_HOME"      // in place of ~/.copilot
	geminiHome  = "GEMINI_CLI_HOME"   // in place of ~: .gemini is in it
	xdgConfig   = "XDG_CONFIG_HOME"   // in place of ~/.config; opencode's and, but for macOS, VS Code's are in it
)

// Names are the agents that can be connected.
func Names() []string {
	return []string{"claude-code", "codex", "gemini", "opencode", "copilot", "cursor", "vscode"}
}

// Find gives the agent of that name.
func (p Target) Find(name string) (a Agent, ok bool) {
	a, ok = p.find(name)
	a.Binding = p.bindings()[name]
	if p.Gate == GateRisky && a.Dialect != "" {
		a.Notes = append(a.Notes, leaves)
	}
	return a, ok
}

func (p Target) find(name string) (a Agent, ok bool) {
	switch name {
	case "claude-code":
		return p.claude(), true
	case "codex":
		return p.codex(), true
	case "gemini":
		return p.gemini(), true
	case "opencode":
		return p.opencode(), true
	case "copilot":
		return p.copilot(), true
	case "cursor":
		return p.cursor(), true
	case "vscode":
		return p.vscode(), true
	}
	return Agent{}, false
}

const advises = "the MCP tools request_permission and ask_user: the model is asked to use them, and nothing makes it"

func (p Target) claude() Agent {
	command := p.hook("claude-code")
	if p.Keyboard {
		command += " --keyboard"
	}
	waiting := []any{map[string]any{
		"type": "command", "command": command, "timeout": int(waits.Seconds()), "onFailure": "block",
		"statusMessage": "daycared asks",
	}}
	telling := []any{map[string]any{"type": "command", "command": p.hook("claude-code"), "timeout": tells}}
	notices := map[string]any{"hooks": []any{map[string]any{"type": "command", "command": p.notice("claude-code"), "timeout": tells}}}
	every := func(hook []any, event string) entry {
		return element(map[string]any{"matcher": "*", "hooks": hook}, "claude-code", "hooks", event)
	}
	settings := file(filepath.Join(p.folder(claudeHome, ".claude"), "settings.json"),
		every(waiting, "PreToolUse"), every(waiting, "PermissionRequest"), every(telling, "PostToolUse"),
		every(telling, "PostToolUseFailure"), element(map[string]any{"hooks": telling}, "claude-code", "hooks", "SessionEnd"),
		element(notices, "claude-code", "hooks", "Stop"), element(notices, "claude-code", "hooks", "StopFailure"),
		element(notices, "claude-code", "hooks", "Notification"))
	refused := entry{dialect: "claude-code", path: []string{"hooks", "PermissionDenied"}} // an earlier one is taken out
	if p.Refused {
		refused = every(waiting, "PermissionDenied")
	}
	settings.entries = append(settings.entries, refused)
	settings.strict = "Claude Code"
	return Agent{
		Name: "claude-code", Dialect: "claude-code",
		Files: []File{
			file(filepath.Join(p.folder(claudeHome, "."), ".claude.json"),
				member(p.server("type", "stdio", "timeout", int(waits.Milliseconds())), "mcpServers", ours)),
			settings,
		},
		Enforces: "every call of a tool, in every mode, also under claude -p and --dangerously-skip-permissions; denied also when the hook " +
			"fails (2.1.295 and later; before, it runs). What tools.auto lets go is left to Claude Code's own rules. " + p.keyboard(),
		Advises: advises,
		Reads:   []string{"Read", "Glob", "Grep", "LS", "NotebookRead", "TodoWrite", "ToolSearch"},
		Notes:   []string{"Claude Code may hide MCP tools behind its search; name request_permission in CLAUDE.md where you want it used"},
	}
}

// keyboard says what whoever is at Claude Code's keyboard may do.
func (p Target) keyboard() string {
	if !p.Keyboard {
		return "Its keyboard does not answer: a route has a quorum or keyboard: false, or which routes there are is not to be known here"
	}
	return "In a terminal the keyboard and the people asked race, and the first answer counts"
}

func (p Target) codex() Agent {
	return Agent{
		Name: "codex", Dialect: "codex",
		Files: []File{{Path: filepath.Join(p.folder(codexHome, ".codex"), "config.toml"), block: p.codexBlock()}},
		Enforces: "every call of a tool, in every mode, once you have trusted the hooks in Codex, which skips them silently before. Where " +
			"Codex would ask as well, it takes the same answer. Codex runs the call when the hook fails or times out; daycared hook is " +
			"built not to",
		Advises: advises,
		Notes:   []string{"trust the hooks when Codex asks for it, and again after every change of them"},
	}
}

func (p Target) gemini() Agent {
	hook := map[string]any{
		"type": "command", "name": ours, "command": p.hook("gemini"), "timeout": int(waits.Milliseconds()),
	}
	notices := map[string]any{"hooks": []any{
		map[string]any{"type": "command", "name": ours, "command": p.notice("gemini"), "timeout": tells * 1000},
	}}
	return Agent{
		Name: "gemini", Dialect: "gemini",
		Files: []File{file(filepath.Join(p.folder(geminiHome, "."), ".gemini", "settings.json"),
			// Without trust, gemini -p offers no tool of the server; ours only ask.
			member(p.server("timeout", int(waits.Milliseconds()), "trust", true), "mcpServers", ours),
			element(map[string]any{"matcher": ".*", "hooks": []any{hook}}, "gemini", "hooks", "BeforeTool"),
			element(notices, "gemini", "hooks", "AfterAgent"), element(notices, "gemini", "hooks", "Notification"))},
		Enforces: "every call of a tool, also with --yolo. What is allowed goes on under Gemini CLI's own approval mode, whose dialog asks " +
			"once more at a terminal without --yolo. Gemini CLI runs the call when the hook fails or times out; daycared hook is built not to",
		Advises: advises,
		Reads:   []string{"read_file", "read_many_files", "list_directory", "glob", "search_file_content"},
	}
}

// plugged is opencode's plugin, in which COMMAND stands for how its hook is started.
//
//go:embed opencode.js
var plugged string

func (p Target) opencode() Agent {
	server := map[string]any{
		"type": "local", "command": append(slices.Clone(p.Command), "mcp"), "enabled": true, "timeout": int(waits.Milliseconds()),
	}
	folder := filepath.Join(p.folder(xdgConfig, ".config"), "opencode")
	settings := file(filepath.Join(folder, "opencode.json"), member(server, "mcp", ours))
	settings.Or = filepath.Join(folder, "opencode.jsonc")
	plugin := filepath.Join(folder, "plugin", "daycared.js")
	command, _ := json.Marshal(p.words("opencode")) // texts have JSON
	return Agent{
		Name: "opencode", Dialect: "opencode",
		Files:  []File{settings, {Path: plugin, whole: strings.Replace(plugged, "COMMAND", string(command), 1)}},
		Loaded: plugin + ".loaded",
		Enforces: "every call of a tool; denied also when the hook fails. It is a plugin of opencode 1.x, which opencode loads when it " +
			"starts, and 2.x does not load",
		Advises: advises,
		Reads:   []string{"read", "glob", "grep", "list"},
	}
}

func (p Target) copilot() Agent {
	hook := func(timeout int) map[string]any {
		return map[string]any{"type": "command", "bash": p.hook("copilot"), "timeoutSec": timeout}
	}
	folder := p.folder(copilotHome, ".copilot")
	return Agent{
		Name: "copilot", Dialect: "copilot",
		Files: []File{
			file(filepath.Join(folder, "mcp-config.json"),
				member(p.server("type", "local", "tools", []string{"*"}, "timeout", int(waits.Milliseconds())), "mcpServers", ours)),
			file(filepath.Join(folder, "hooks", "daycared.json"), usual(1, "version"),
				element(hook(int(waits.Seconds())), "copilot", "hooks", "preToolUse"),
				element(hook(tells), "copilot", "hooks", "sessionEnd"),
				element(map[string]any{"type": "command", "bash": p.notice("copilot"), "timeoutSec": tells}, "copilot", "hooks", "agentStop")),
		},
		Enforces: "every call of a tool; denied also when the hook fails. Copilot CLI runs the call when the hook times out; daycared " +
			"hook is built not to",
		Advises: advises,
		Reads:   []string{"view", "glob", "grep"},
	}
}

func (p Target) cursor() Agent {
	hook := func(more ...any) map[string]any {
		return with(map[string]any{"command": p.hook("cursor"), "timeout": int(waits.Seconds()), "failClosed": true}, more...)
	}
	return Agent{
		Name: "cursor", Dialect: "cursor",
		Files: []File{
			file(filepath.Join(p.Home, ".cursor", "mcp.json"), member(p.server(), "mcpServers", ours)),
			file(filepath.Join(p.Home, ".cursor", "hooks.json"), usual(1, "version"),
				element(hook(), "cursor", "hooks", "beforeShellExecution"),
				element(hook(), "cursor", "hooks", "beforeMCPExecution"),
				element(hook("matcher", "Write|Delete"), "cursor", "hooks", "preToolUse")),
		},
		Enforces: "commands, calls of MCP servers, and writing and deleting files, by Cursor's documentation; denied also when the hook " +
			"fails. Not tried by us",
		Advises: advises,
	}
}

func (p Target) vscode() Agent {
	return Agent{
		Name:     "vscode",
		Files:    []File{file(filepath.Join(p.codeUser(), "mcp.json"), member(p.server("type", "stdio"), "servers", ours))},
		Enforces: "nothing: no hook of VS Code's own agent is known to wait for others",
		Advises:  advises,
		Notes:    []string{"keep VS Code's own confirmation of tools and of terminal commands switched on"},
	}
}

// codeUser is where VS Code keeps the settings of an account.
func (p Target) codeUser() string {
	folder := p.folder(xdgConfig, ".config")
	if p.GOOS == "darwin" {
		folder = filepath.Join(p.Home, "Library", "Application Support")
	}
	return filepath.Join(folder, "Code", "User")
}

// folder is where an agent was told to look, else the one of that name in the home.
func (p Target) folder(mover, usually string) string {
	if moved := p.Moved[mover]; moved != "" {
		return moved
	}
	return filepath.Join(p.Home, usually)
}

func file(path string, entries ...entry) File { return File{Path: path, entries: entries} }

// server is how `daycared mcp` is started, in the shape that most agents share.
func (p Target) server(more ...any) map[string]any {
	return with(map[string]any{
		"command": p.Command[0], "args": append(slices.Clone(p.Command[1:]), "mcp"),
	}, more...)
}

// with adds members, given as names and values.
func with(m map[string]any, more ...any) map[string]any {
	for i := 0; i+1 < len(more); i += 2 {
		if name, isName := more[i].(string); isName {
			m[name] = more[i+1]
		}
	}
	return m
}

// hook is the command line of a hook, for a shell.
func (p Target) hook(dialect string) string {
	words := p.words(dialect)
	for i, w := range words {
		words[i] = quoted(w)
	}
	return strings.Join(words, " ")
}

// notice is the command line of a hook that only has a person told what has happened. Agents take an exit code other than 0 for an
// order to go on, which would hold up their end.
func (p Target) notice(dialect string) string { return p.hook(dialect) + " --notice || true" }

// words are those of a hook's command line.
func (p Target) words(dialect string) []string {
	words := append(slices.Clone(p.Command), "hook", dialect, "--within", within)
	if p.Gate == GateRisky {
		words = append(words, "--gate", GateRisky)
	}
	return words
}

// quoted is a word as a shell reads it.
func quoted(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/._-+:@%,=", c)
	}
	if word != "" && !strings.ContainsFunc(word, func(c rune) bool { return !plain(c) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
