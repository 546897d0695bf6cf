package hooks

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/permissions/acts"
)

// known are the tools of agents whose input says all that they do: the dialects and the tool, what it does, the member that says
// to what, and the members that do not change that. Those of Copilot CLI have two spellings. Commands of Codex run in a folder that
// hooks are not told, and those of Copilot CLI and Cursor in a shell that keeps what earlier ones did: none of them is here.
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

// projects are the variables that tell the hooks of a dialect in which folder the session began.
var projects = map[string]string{"claude-code": "CLAUDE_PROJECT_DIR", "gemini": "GEMINI_PROJECT_DIR"}

// Harmless reports whether the call was read completely and does nothing but what people need not be asked about: reading and
// editing in the folder that the agent works in, but for what runs later, building and testing. A hook that the agent runs
// because its own rules ask is about a call that they do ask about.
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

// narrow reports whether a folder is one to work in: it holds neither the person's home nor a program that commands name, and cd
// goes where it says.
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

// does reports whether a tool that is known does something harmless.
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

// patches reports whether a patch in the shape of Codex only adds and updates files that may be written.
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
