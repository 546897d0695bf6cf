// Package connect edits the settings of agents that people already use so that they ask daycared: it adds an MCP server, and
// hooks whose timeouts exceed daycared's own and that deny when they fail.
//
// An [Agent] has [File]s. Edits are pure functions on text: [File.Install] and [File.Remove] return the new content, and keep
// the person's own settings with their order and comments. Our entries are recognized by name, so installing twice changes
// nothing, and removing takes out what was installed.
package connect

import (
	_ "embed"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/internal/wire"
)

const (
	// waits is the timeout of hooks and tools in an agent's settings; within is the shorter one that daycared is given.
	waits  = time.Hour
	within = "59m"
	// tells is the timeout of hooks that only notify, in seconds.
	tells = 10
	// ours is the name of our entries, where entries have names.
	ours = "daycared"
)

// Agent is a program that can be connected.
type Agent struct {
	Name    string
	Dialect string // of its hooks; empty: it has no known hooks
	Files   []File
	Loaded  string // a file that the agent creates when it has loaded the last of Files; empty: none
	// Enforces and Advises describe what the connection blocks, and what it only tells the model.
	Enforces, Advises string
	// Reads are its read-only tools, which tools.auto may allow without asking.
	Reads []string
	// Notes are further steps for the person.
	Notes []string
	Binding
}

// Target is the machine on which agents are connected.
type Target struct {
	Home    string
	GOOS    string
	Command []string // daycared's path and global flags
	// Keyboard lets a person at an agent's keyboard answer first, for agents that are certain to ask there.
	Keyboard bool
	// Refused makes people decide on calls that the agent's own judgement has refused.
	Refused bool
	// Gate is which calls the hooks ask about, one of [Gates]; empty: all.
	Gate string
	// Moved holds the absolute folders in which agents look instead of Home, by environment variable. See [Movers].
	Moved map[string]string
	// Etc is the folder of machine-wide settings that root owns; empty: /etc.
	Etc string
}

// Gates are the values of Target.Gate: ask about every call, or about those that are not harmless.
var Gates = []string{GateAll, GateRisky}

// The gates.
const (
	GateAll   = "all"
	GateRisky = "risky"
)

// leaves explains [GateRisky].
const leaves = "--gate risky: what was read completely and only reads, edits, builds or tests in the agent's folder is left to the " +
	"agent's own mode, and what it builds or tests there runs; commands of Codex, Copilot CLI and Cursor are asked about; tools.gated, " +
	"tools.forbidden and high_risk hold all the same"

// LeavesCommands reports whether [GateRisky] leaves harmless commands to the agent: it tells its hook in which folder a command
// runs. Of the others only reading and editing by tools of their own is left.
func (a Agent) LeavesCommands() bool {
	return slices.Contains([]string{"claude-code", "gemini", "opencode"}, a.Dialect)
}

// Movers returns the environment variables that move agents' settings.
func Movers() []string { return []string{claudeHome, codexHome, copilotHome, geminiHome, xdgConfig} }

// docs/tried.md says which were verified; Cursor and VS Code follow their documentation.
const (
	claudeHome  = "CLAUDE_CONFIG_DIR" // replaces ~/.claude; .claude.json is in it too
	codexHome   = "CODEX_HOME"        // replaces ~/.codex
	copilotHome = "COPILOT_HOME"      // replaces ~/.copilot
	geminiHome  = "GEMINI_CLI_HOME"   // replaces ~: .gemini is in it
	xdgConfig   = "XDG_CONFIG_HOME"   // replaces ~/.config, with opencode's settings and, except on macOS, VS Code's
)

// Names returns the agents that can be connected. The help and the completion of every command use it.
var Names = sync.OnceValue(func() []string {
	return wire.Map((Target{Command: []string{ours}}).agents(), func(a Agent) string { return a.Name })
})

// Find returns the agent of that name.
func (p Target) Find(name string) (a Agent, ok bool) {
	all := p.agents()
	i := slices.IndexFunc(all, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return a, false
	}
	a = all[i]
	if p.Gate == GateRisky && a.Dialect != "" {
		a.Notes, a.Reads = append(a.Notes, leaves), nil // what reads in the agent's folder is left
	}
	return a, true
}

func (p Target) agents() []Agent {
	return []Agent{p.claude(), p.codex(), p.gemini(), p.opencode(), p.copilot(), p.cursor(), p.vscode()}
}

const advises = "the MCP tools request_permission and ask_user: the model is asked to use them, and nothing makes it"

func (p Target) claude() Agent {
	command := p.hook("claude-code")
	if p.Keyboard {
		command += " --keyboard"
	}
	waiting := []any{runs(command, int(waits.Seconds()), "onFailure", "block", "statusMessage", "daycared asks")}
	telling := []any{runs(p.hook("claude-code"), tells)}
	notices := map[string]any{"hooks": []any{runs(p.notice("claude-code"), tells)}}
	every := func(hook []any, event string) entry {
		return element(map[string]any{"matcher": "*", "hooks": hook}, "claude-code", "hooks", event)
	}
	settings := file(filepath.Join(p.folder(claudeHome, ".claude"), "settings.json"),
		every(waiting, "PreToolUse"), every(waiting, "PermissionRequest"), every(telling, "PostToolUse"),
		every(telling, "PostToolUseFailure"), element(map[string]any{"hooks": telling}, "claude-code", "hooks", "SessionEnd"),
		element(notices, "claude-code", "hooks", "Stop"), element(notices, "claude-code", "hooks", "StopFailure"),
		element(notices, "claude-code", "hooks", "Notification"))
	refused := entry{dialect: "claude-code", path: []string{"hooks", "PermissionDenied"}} // an earlier one is removed
	if p.Refused {
		refused = every(waiting, "PermissionDenied")
	}
	settings.entries = append(settings.entries, refused)
	servers := file(filepath.Join(p.folder(claudeHome, "."), ".claude.json"),
		member(p.server("type", "stdio", "timeout", int(waits.Milliseconds())), "mcpServers", ours))
	for _, f := range []*File{&settings, &servers} {
		f.strict, f.refuses = "Claude Code", []string{comments, commas}
	}
	return Agent{
		Name: "claude-code", Dialect: "claude-code",
		Files: []File{servers, settings},
		Enforces: "every call of a tool, in every mode, also under claude -p and --dangerously-skip-permissions; denied also when the hook " +
			"fails (2.1.295 and later; before, it runs). What tools.auto lets go is left to Claude Code's own rules. " + p.keyboard(),
		Advises: advises,
		Reads:   []string{"Read", "Glob", "Grep", "LS", "NotebookRead", "TodoWrite", "ToolSearch"},
		Notes:   []string{"Claude Code may hide MCP tools behind its search; name request_permission in CLAUDE.md where you want it used"},
		Binding: p.claudeBinding(),
	}
}

// keyboard describes what a person at Claude Code's keyboard may do.
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
		Enforces: "every call of a tool but one, in every mode, once you have trusted the hooks in Codex, which skips them " +
			"silently before. It calls no hook for what it types into a command that runs (write_stdin): commands have no terminal " +
			"(features.unified_exec_tty = false), unless a trusted project's settings give them one. Where Codex would ask as well, it takes " +
			"the same answer. Codex runs the call when the hook fails or times out; daycared hook is built not to",
		Advises: advises,
		Notes:   []string{"trust the hooks when Codex asks for it, and again after every change of them"},
		Binding: p.codexBinding(),
	}
}

func (p Target) gemini() Agent {
	hook := runs(p.hook("gemini"), int(waits.Milliseconds()), "name", ours)
	notices := map[string]any{"hooks": []any{runs(p.notice("gemini"), tells*1000, "name", ours)}}
	settings := filepath.Join(p.folder(geminiHome, "."), ".gemini", "settings.json")
	all := file(settings,
		// Without trust, gemini -p offers no tool of the server; ours only ask.
		member(p.server("timeout", int(waits.Milliseconds()), "trust", true), "mcpServers", ours),
		element(map[string]any{"matcher": ".*", "hooks": []any{hook}}, "gemini", "hooks", "BeforeTool"),
		element(notices, "gemini", "hooks", "AfterAgent"), element(notices, "gemini", "hooks", "Notification"))
	all.strict, all.refuses = "Gemini CLI", []string{commas, marks}
	return Agent{
		Name: "gemini", Dialect: "gemini",
		Files: []File{all},
		Enforces: "every call of a tool, also with --yolo. What is allowed goes on under Gemini CLI's own approval mode, whose dialog asks " +
			"once more at a terminal without --yolo. Gemini CLI runs the call when the hook fails or times out; daycared hook is built not to",
		Advises: advises,
		Reads:   []string{"read_file", "read_many_files", "list_directory", "glob", "search_file_content"},
		Binding: Binding{
			Modes: []Mode{
				{"terminal", BindsUnless, "its own dialog asks once more after a yes; it runs the call when the hook fails or times out"},
				{"--yolo", BindsUnless, "it runs the call when the hook fails or times out"},
			},
			Off: []Setting{
				{settings, []string{"hooksConfig", "enabled"}, false}, {settings, []string{"hooksConfig", "disabled"}, ours},
				{".gemini/settings.json", []string{"hooksConfig", "enabled"}, false},
				{".gemini/settings.json", []string{"hooksConfig", "disabled"}, ours},
			},
			Managed: Managed{
				Path: filepath.Join(p.etc(), "gemini-cli", "settings.json"), Hooks: []string{"hooks", "BeforeTool"}, Verdict: BindsUnless,
				Note: "root owns the hook, and GEMINI_CLI_SYSTEM_SETTINGS_PATH in its environment takes it away",
			},
		},
	}
}

// plugged is the plugin for opencode; COMMAND is replaced by the command that starts its hook.
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
	command, _ := json.Marshal(p.words("opencode")) // strings have a JSON form
	return Agent{
		Name: "opencode", Dialect: "opencode",
		Files:  []File{settings, {Path: plugin, whole: strings.Replace(plugged, "COMMAND", string(command), 1)}},
		Loaded: plugin + ".loaded",
		Enforces: "every call of a tool; denied also when the hook fails. It is a plugin of opencode 1.x, which opencode loads when it " +
			"starts, and 2.x does not load",
		Advises: advises,
		Reads:   []string{"read", "glob", "grep", "list"},
		Binding: Binding{Modes: both("terminal", "run --auto", "a plugin that is loaded later can change a call that was allowed")},
	}
}

func (p Target) copilot() Agent {
	hook := func(timeout int) map[string]any {
		return map[string]any{"type": "command", "bash": p.hook("copilot"), "timeoutSec": timeout}
	}
	folder, off := p.folder(copilotHome, ".copilot"), []string{"disableAllHooks"}
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
		Binding: Binding{
			Modes: both("terminal", "--allow-all-tools", "it runs the call when the hook times out"),
			Off: []Setting{
				{filepath.Join(folder, "settings.json"), off, true}, {filepath.Join(folder, "config.json"), off, true},
				{filepath.Join(folder, "hooks", "daycared.json"), off, true},
			},
			Managed: Managed{
				Path: filepath.Join(p.etc(), "github-copilot", "policy.d", "*.json"), Hooks: []string{"hooks", "preToolUse"}, Verdict: Binds,
				Note: "it runs the call when the hook times out",
			},
		},
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
		Binding: Binding{Modes: []Mode{
			{"a no", BindsUnless, "to commands, tools of MCP servers, and writing and deleting files; by its documentation, not tried"},
			{"a yes", Advises, "Cursor may ask once more; by its users, not tried"},
		}},
	}
}

func (p Target) vscode() Agent {
	return Agent{
		Name:     "vscode",
		Files:    []File{file(filepath.Join(p.codeUser(), "mcp.json"), member(p.server("type", "stdio"), "servers", ours))},
		Enforces: "nothing: no hook of VS Code's own agent is known to wait for others",
		Advises:  advises,
		Notes:    []string{"keep VS Code's own confirmation of tools and of terminal commands switched on"},
		Binding: Binding{
			Modes: []Mode{{"Local agent", Advises, "its model is told of the tools; not tried"}},
			Off:   []Setting{{filepath.Join(p.codeUser(), "settings.json"), []string{"chat.useHooks"}, false}},
		},
	}
}

// codeUser is the folder of an account's VS Code settings.
func (p Target) codeUser() string {
	folder := p.folder(xdgConfig, ".config")
	if p.GOOS == "darwin" {
		folder = filepath.Join(p.Home, "Library", "Application Support")
	}
	return filepath.Join(folder, "Code", "User")
}

// folder is the agent's folder: as moved, otherwise its usual one in the home.
func (p Target) folder(mover, usually string) string {
	if moved := p.Moved[mover]; moved != "" {
		return moved
	}
	return filepath.Join(p.Home, usually)
}

func file(path string, entries ...entry) File { return File{Path: path, entries: entries} }

// server is the entry that starts `daycared mcp`, in the form that most agents share.
func (p Target) server(more ...any) map[string]any {
	return with(map[string]any{
		"command": p.Command[0], "args": append(slices.Clone(p.Command[1:]), "mcp"),
	}, more...)
}

func runs(command string, timeout int, more ...any) map[string]any {
	return with(map[string]any{"type": "command", "command": command, "timeout": timeout}, more...)
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
	return strings.Join(wire.Map(p.words(dialect), quoted), " ")
}

// notice is the command line of a hook that only notifies a person. It always exits with 0, because agents treat another exit
// code as an instruction to continue instead of stopping.
func (p Target) notice(dialect string) string { return p.hook(dialect) + " --notice || true" }

// words are the arguments of a hook's command line.
func (p Target) words(dialect string) []string {
	words := append(slices.Clone(p.Command), "hook", dialect, "--within", within)
	if p.Gate == GateRisky {
		words = append(words, "--gate", GateRisky)
	}
	return words
}

// quoted quotes a word for a shell.
func quoted(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/._-+:@%,=", c)
	}
	if word != "" && !strings.ContainsFunc(word, func(c rune) bool { return !plain(c) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
