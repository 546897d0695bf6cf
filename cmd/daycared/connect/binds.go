package connect

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Verdict is how strongly people's answers bind an agent.
type Verdict string

// The verdicts, weakest first.
const (
	Nothing     Verdict = "nothing"
	Advises     Verdict = "advises"
	BindsUnless Verdict = "binds unless it edits its settings"
	Binds       Verdict = "binds"
)

// Binding describes how an agent is bound, and how to check it.
type Binding struct {
	Modes   []Mode    // the default first
	Off     []Setting // any of these disables all its hooks
	Needs   []Need
	Unset   []string // environment variables that disable its hooks
	Managed Managed
	Listing Listing // the zero value: it cannot be queried
}

// Mode is one way to run an agent, and the verdict in it if the agent runs its hook.
type Mode struct {
	Name    string
	Verdict Verdict
	Note    string // the verdict's limits; may be empty
}

// Need is a setting without which, or with which, an agent does something that no hook sees, and what that is.
type Need struct {
	Setting
	Without, With string // one of them
}

// Setting is one value in a settings file.
type Setting struct {
	Path  string   // a JSON file, with or without comments, or TOML by its extension; if relative, of the folder that the agent is in
	Key   []string // $FOLDER stands for the folder in which the agent is started
	Value any      // the value, or an element of the list there
}

// In reports whether the file's text has the setting.
func (s Setting) In(text, folder string) bool {
	key := slices.Clone(s.Key)
	for i := range key {
		key[i] = strings.ReplaceAll(key[i], "$FOLDER", folder)
	}
	found := valueAt(s.Path, text, key)
	list, _ := found.([]any)
	return found == s.Value || slices.Contains(list, s.Value)
}

func (s Setting) String() string { return fmt.Sprintf("%s = %v", strings.Join(s.Key, "."), s.Value) }

// valueAt returns the value at a key of a file; nil if there is none or the file is unreadable. Lists are compared by their
// elements, which must be strings.
func valueAt(path, text string, key []string) (found any) {
	if filepath.Ext(path) == ".toml" {
		var table map[string]any
		if toml.Unmarshal([]byte(strings.TrimPrefix(text, mark)), &table) != nil {
			return nil
		}
		found = below(table, key)
	} else {
		found, _ = jsonAt(text, key)
	}
	if _, object := found.(map[string]any); object {
		return nil // not comparable
	}
	return found
}

// jsonAt returns the value at a key of JSON with or without comments; nil if there is none.
func jsonAt(text string, key []string) (found any, err error) {
	plain, err := standard([]byte(text))
	if err == nil {
		err = json.Unmarshal(plain, &found)
	}
	return below(found, key), err
}

func below(found any, key []string) any {
	for _, name := range key {
		object, _ := found.(map[string]any)
		found = object[name]
	}
	return found
}

// Managed is a machine-wide settings file of an agent, which the agent's account cannot change.
type Managed struct {
	Path    string // * in the last element matches several files; empty: none is known
	Hooks   []string
	Verdict Verdict // while it contains daycared's hook
	Note    string
	// Pins are variables that its "env" must set: the account's own settings could otherwise put something before the hook.
	Pins []string
}

// Commands returns the command lines of daycared's hooks for all tools in a managed file, and the pins that it does not set.
func (m Managed) Commands(text, dialect string) (commands, missing []string) {
	list, _ := valueAt(m.Path, text, m.Hooks).([]any)
	for _, one := range list {
		packed, _ := json.Marshal(one) // it was decoded from JSON, or TOML
		matcher, all := commandsOf(packed)
		if slices.Contains([]string{"", "*", ".*"}, matcher) {
			commands = append(commands, slices.DeleteFunc(all, func(c string) bool { return !decides(c, dialect) })...)
		}
	}
	for _, name := range m.Pins {
		if valueAt(m.Path, text, []string{"env", name}) == nil {
			missing = append(missing, name)
		}
	}
	return commands, missing
}

var shellWord = regexp.MustCompile(`(?:'[^']*'|[^\s'])+`)

// Words parses a hook's command line as written by [Target]; ok is false for any other, which a shell may read differently.
func Words(command string) (words []string, ok bool) {
	again := []string{}
	for _, word := range shellWord.FindAllString(command, -1) {
		word = strings.ReplaceAll(word, "'", "")
		words, again = append(words, word), append(again, quoted(word))
	}
	return words, strings.Join(again, " ") == command
}

// Listing describes how to query an agent's hooks: a program that reads and writes lines of JSON.
type Listing struct {
	Program string // a command name; empty: the agent cannot be queried
	Args    []string
	Says    []string // $FOLDER stands for the folder, as JSON
	// Trusted is the setting by which a person trusts a folder's settings.
	Trusted Setting
	// Opt says that the agent runs no hook until a person enables it.
	Opt bool
	// On says where a person enables a hook.
	On   string
	read func(line []byte) (Hooks, bool, error)
}

// Lines are the program's input.
func (l Listing) Lines(folder string) string {
	name, _ := json.Marshal(folder) // strings have a JSON form
	return strings.ReplaceAll(strings.Join(l.Says, "\n")+"\n", "$FOLDER", string(name))
}

// Read parses one line of output; done is true for the answer.
func (l Listing) Read(line []byte) (h Hooks, done bool, err error) { return l.read(line) }

// Hooks is an agent's answer about its hooks.
type Hooks struct {
	All         []Hook
	ManagedOnly bool   // only the machine's managed hooks run; they may not be listed
	Off         string // what disabled all other hooks; empty: nothing
	AllOff      bool   // managed hooks are disabled too
	Errors      []string
}

// Hook is one listed hook.
type Hook struct {
	Event, Command string
	Skipped        string // why the agent does not run it; empty: it does
}

// Skipped returns why the agent does not run daycared's hooks, by its own answer, and how to fix it; both are empty if it runs
// all of them. Runs reports whether it runs the deciding one. managed says that a managed file contains that hook.
func (a Agent) Skipped(h Hooks, managed bool) (why, mend string, runs bool) {
	skipped := map[string][]string{}
	for _, one := range h.All {
		switch {
		case !strings.Contains(one.Command, hookOf(a.Dialect)):
		case one.Skipped != "":
			skipped[one.Skipped] = append(skipped[one.Skipped], one.Event)
		case strings.EqualFold(one.Event, "PreToolUse") && decides(one.Command, a.Dialect):
			runs = true
		}
	}
	on := a.Listing.On
	switch {
	case managed && !h.AllOff && (runs || h.ManagedOnly || h.Off != ""):
		return "", "", true
	case h.ManagedOnly && !h.AllOff:
		return "it runs the hooks of its managed settings alone, and daycared's is not among them",
			"put daycared's hook into " + a.Managed.Path, false
	case h.Off != "":
		return h.Off, "take that out, and start " + a.Name + " anew", false
	case len(skipped) > 0:
		var each []string
		for reason, events := range skipped {
			slices.Sort(events)
			each = append(each, reason+": "+strings.Join(slices.Compact(events), ", "))
		}
		slices.Sort(each)
		return strings.Join(each, "; "), on, runs
	case runs:
		return "", "", true
	case len(h.Errors) > 0:
		return "it ignores what it cannot read: " + strings.Join(h.Errors, "; "), "mend that", false
	}
	return "it does not list daycared's hook", on, false
}

// readClaude parses Claude Code's answer to get_hooks_listing.
func readClaude(line []byte) (h Hooks, done bool, err error) {
	var told struct {
		Type     string
		Response struct {
			Subtype, Error string
			Response       *struct {
				Hooks []struct {
					Event, CommandText string
					Disabled           bool
				}
				Policy   struct{ DisabledByPolicy, ManagedOnly, PluginOnly, AllDisabled bool }
				SafeMode *struct{ ExitHint string }
				BareMode *struct{} // caused by our own query, in which every listed hook is disabled
				Errors   []struct{ File, Message string }
			}
		}
	}
	switch {
	case !isJSON(line, &told), told.Type != "control_response":
		return h, false, nil
	case told.Response.Subtype != "success" || told.Response.Response == nil:
		return h, true, fmt.Errorf("it does not list its hooks: %s", told.Response.Error)
	}
	r := told.Response.Response
	for _, one := range r.Hooks {
		hook := Hook{Event: one.Event, Command: one.CommandText}
		if one.Disabled && r.BareMode == nil {
			hook.Skipped = "switched off"
		}
		h.All = append(h.All, hook)
	}
	for _, e := range r.Errors {
		h.Errors = append(h.Errors, e.File+": "+e.Message)
	}
	h.ManagedOnly, h.AllOff = r.Policy.ManagedOnly, r.Policy.DisabledByPolicy
	switch {
	case r.SafeMode != nil:
		h.Off = "it runs in safe mode, without hooks (" + r.SafeMode.ExitHint + ")"
	case r.Policy.DisabledByPolicy:
		h.Off = "it runs no hooks: disableAllHooks is set in its managed settings"
	case r.Policy.AllDisabled:
		h.Off = "it runs no hooks: disableAllHooks is set in its settings"
	case r.Policy.PluginOnly:
		h.Off = "it runs the hooks of plugins alone: strictPluginOnlyCustomization is set in its managed settings"
	}
	return h, true, nil
}

// isJSON parses a line, and reports whether it has that shape; programs may print other lines.
func isJSON(line []byte, shape any) bool { return json.Unmarshal(line, shape) == nil }

// readCodex parses Codex's answer to hooks/list.
func readCodex(line []byte) (h Hooks, done bool, err error) {
	var told struct {
		ID     any
		Error  *struct{ Message string }
		Result struct {
			Data []struct {
				Hooks []struct {
					EventName, Command, TrustStatus string
					Enabled                         bool
				}
				Errors []struct{ Message string }
			}
		}
	}
	switch {
	case !isJSON(line, &told):
		return h, false, nil
	case told.Error != nil:
		return h, true, fmt.Errorf("it does not list its hooks: %s", told.Error.Message)
	case told.ID != 2.0:
		return h, false, nil
	}
	states := map[string]string{
		"trusted": "", "managed": "", "untrusted": "it skips hooks that are not trusted",
		"modified": "it skips hooks that were changed since they were trusted",
	}
	for _, d := range told.Result.Data {
		for _, one := range d.Hooks {
			why, known := states[one.TrustStatus]
			if !known {
				why = "it does not trust hooks (" + one.TrustStatus + ")"
			}
			if why == "" && !one.Enabled {
				why = "switched off"
			}
			h.All = append(h.All, Hook{Event: one.EventName, Command: one.Command, Skipped: why})
		}
		for _, e := range d.Errors {
			h.Errors = append(h.Errors, e.Message)
		}
	}
	return h, true, nil
}

func (p Target) claudeBinding() Binding {
	claude, machine := p.folder(claudeHome, ".claude"), filepath.Join(p.etc(), "claude-code")
	if p.GOOS == "darwin" {
		machine = "/Library/Application Support/ClaudeCode"
	}
	return Binding{
		Modes: both("terminal, which begins in auto mode", "--dangerously-skip-permissions", ""),
		Off: []Setting{
			{filepath.Join(claude, "settings.json"), []string{"disableAllHooks"}, true},
			{".claude/settings.json", []string{"disableAllHooks"}, true}, {".claude/settings.local.json", []string{"disableAllHooks"}, true},
		},
		Unset: []string{"CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_SIMPLE"},
		Managed: Managed{
			Path: filepath.Join(machine, "managed-settings.json"), Hooks: []string{"hooks", "PreToolUse"}, Verdict: Binds,
			Pins: []string{"CLAUDE_CODE_SHELL_PREFIX", "LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "BASH_ENV"},
		},
		Listing: Listing{
			Program: "claude",
			// --bare runs neither hooks nor helpers of the settings, but lists all hooks.
			Args: []string{"-p", "--bare", "--strict-mcp-config", "--no-session-persistence", "--input-format", "stream-json",
				"--output-format", "stream-json", "--verbose"},
			Says: []string{`{"type":"control_request","request_id":"daycared","request":{"subtype":"get_hooks_listing"}}`},
			Trusted: Setting{filepath.Join(p.folder(claudeHome, "."), ".claude.json"),
				[]string{"projects", "$FOLDER", "hasTrustDialogAccepted"}, true},
			On:   "see what it lists under /hooks in claude",
			read: readClaude,
		},
	}
}

// typed is what no hook of Codex sees.
const typed = "what it types into a command that runs (write_stdin) is not asked about, and no rule holds for it"

func (p Target) codexBinding() Binding {
	codex := p.folder(codexHome, ".codex")
	return Binding{
		Modes: both("terminal and IDE", "exec --dangerously-bypass-approvals-and-sandbox",
			"it runs the call when the hook fails or times out"),
		Off: []Setting{
			{filepath.Join(codex, "config.toml"), []string{"features", "hooks"}, false},
			{".codex/config.toml", []string{"features", "hooks"}, false},
		},
		Needs: []Need{
			{Setting: Setting{filepath.Join(codex, "config.toml"), terminalsOff, false}, Without: typed},
			{Setting: Setting{".codex/config.toml", terminalsOff, true}, With: typed},
		},
		Managed: Managed{
			Path: filepath.Join(p.etc(), "codex", "requirements.toml"), Hooks: []string{"hooks", "PreToolUse"}, Verdict: BindsUnless,
			Note: "root owns the hook, and .env in " + codex + " still changes the environment that it runs in",
		},
		Listing: Listing{
			Program: "codex", Args: []string{"app-server"}, Opt: true,
			Says: []string{
				`{"id":1,"method":"initialize","params":{"clientInfo":{"name":"daycared","title":"daycared","version":"1"}}}`,
				`{"method":"initialized"}`, `{"id":2,"method":"hooks/list","params":{"cwds":[$FOLDER]}}`,
			},
			Trusted: Setting{filepath.Join(codex, "config.toml"), []string{"projects", "$FOLDER", "trust_level"}, "trusted"},
			On:      "start codex, and trust its hooks and switch them on under /hooks",
			read:    readCodex,
		},
	}
}

func both(usual, most, note string) []Mode {
	return []Mode{{usual, BindsUnless, note}, {most, BindsUnless, note}}
}

// etc is the folder of machine-wide settings.
func (p Target) etc() string {
	if p.Etc != "" {
		return p.Etc
	}
	return "/etc"
}
