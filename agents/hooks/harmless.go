package hooks

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions/acts"
)

// known lists the tools whose input describes their whole effect: dialects and tool, verb, the member with the object, and
// members that do not matter. Copilot CLI's tools have two spellings. Commands of Codex are absent, since its hooks do not know
// their folder, and so are those of Copilot CLI and Cursor, whose shells keep state between commands.
var known = []string{
	"claude-code Bash runs command description timeout",
	"opencode bash runs command description timeout",
	"gemini run_shell_command runs command description",
	"claude-code,copilot Read reads file_path offset limit",
	"claude-code NotebookRead reads notebook_path",
	"claude-code,copilot Glob lists path pattern",
	"claude-code,copilot Grep reads path pattern output_mode head_limit offset multiline type -n -i -A -B -C",
	"claude-code LS reads path",
	"claude-code TodoWrite notes - todos",
	"claude-code,copilot Write writes file_path content",
	"claude-code,copilot Edit writes file_path old_string new_string replace_all",
	"claude-code MultiEdit writes file_path edits",
	"claude-code NotebookEdit writes notebook_path new_source cell_id cell_type edit_mode",
	"codex apply_patch patches command",
	"copilot view reads path view_range",
	"copilot create writes path file_text",
	"copilot edit writes path old_str new_str",
	"cursor read_file reads file_path",
	"cursor Write writes file_path contents content",
	"gemini read_file reads file_path offset limit start_line end_line",
	"gemini list_directory reads dir_path",
	"gemini write_file writes file_path content",
	"gemini replace writes file_path old_string new_string expected_replacements instruction allow_multiple",
	"opencode read reads filePath offset limit",
	"opencode list reads path",
	"opencode glob lists path pattern",
	"opencode grep reads path pattern",
	"opencode write writes filePath content",
	"opencode edit writes filePath oldString newString replaceAll",
}

// projects are the environment variables that give hooks the folder in which the session began, by dialect.
var projects = map[string]string{"claude-code": "CLAUDE_PROJECT_DIR", "gemini": "GEMINI_PROJECT_DIR"}

// Harmless reports whether the call was read completely and needs no approval: reading and editing in the agent's folder (except
// files that are executed later), building and testing. It is false for a hook that runs because the agent's own rules ask.
func (c Call) Harmless(env func(string) string) bool {
	if c.given == nil || c.questions != nil || strings.EqualFold(c.event, "permissionRequest") {
		return false
	}
	folder := own.Resolve(c.Request.Cwd)
	root := folder
	if told := env(projects[c.dialect]); filepath.IsAbs(told) {
		root = own.Resolve(told)
	}
	w := acts.Workspace{Root: root, Resolve: own.Resolve}
	if !w.Reads(folder) || !narrow(root, env) {
		return false
	}
	for _, row := range known {
		f := strings.Fields(row)
		if f[1] == c.Request.Tool && slices.Contains(strings.Split(f[0], ","), c.dialect) {
			return c.does(w, folder, f[2], f[3:])
		}
	}
	return false
}

// narrow reports whether a folder is a plausible project folder: it contains neither the home folder nor a program on PATH, and
// CDPATH does not redirect cd.
func narrow(root string, env func(string) string) bool {
	holds := func(name string) bool {
		path, err := filepath.Rel(root, own.Resolve(name))
		return err != nil || filepath.IsLocal(path)
	}
	home := env("HOME")
	return filepath.IsAbs(home) && !holds(home) && env("CDPATH") == "" &&
		!slices.ContainsFunc(filepath.SplitList(env("PATH")), func(in string) bool {
			return !filepath.IsAbs(in) || holds(in)
		})
}

// does reports whether a known tool's call is harmless.
func (c Call) does(w acts.Workspace, folder, verb string, names []string) bool {
	var input members
	if json.Unmarshal(c.given, &input) != nil {
		return false
	}
	for name := range input {
		if !slices.Contains(names, name) {
			return false
		}
	}
	what := input.maybe(names[0])
	if what == "" && input[names[0]] != nil && verb != "notes" {
		return false
	}
	at := what
	if !filepath.IsAbs(at) {
		at = folder + "/" + at
	}
	switch verb {
	case "runs":
		return w.Harmless(acts.Command(what, folder)) == ""
	case "lists":
		pattern := input.maybe("pattern")
		return w.Reads(at) && !filepath.IsAbs(pattern) && !strings.Contains(pattern, "..") && !strings.HasPrefix(pattern, "~")
	case "reads":
		return w.Reads(at) && !strings.HasPrefix(what, "~")
	case "writes":
		return what != "" && !strings.HasPrefix(what, "~") && w.Writes(at)
	case "patches":
		return patches(w, folder, what)
	}
	return verb == "notes"
}

// patches reports whether a Codex patch only adds and updates writable files.
func patches(w acts.Workspace, folder, patch string) bool {
	found := false
	for line := range strings.Lines(patch) {
		head, name, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case !strings.HasPrefix(head, "*** ") || slices.Contains([]string{"*** Begin Patch", "*** End Patch", "*** End of File"}, head):
		case head != "*** Add File" && head != "*** Update File" && head != "*** Move to" || filepath.IsAbs(name) || !w.Writes(folder+"/"+name):
			return false
		default:
			found = true
		}
	}
	return found
}
