package acts

import (
	_ "embed"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Workspace is the folder that an agent works in.
type Workspace struct {
	Root string // absolute, clean and resolved
	// Resolve resolves the links in an absolute name, on the machine where the call runs.
	Resolve func(name string) string
}

// Harmless returns why a command is not harmless; empty if it is. Harmless are reading in the workspace, building and testing.
func (w Workspace) Harmless(r Reading) (why string) {
	if len(r.Doubts) > 0 {
		return r.Doubts[0]
	}
	for _, a := range r.Acts {
		ok := false
		switch a.Kind {
		case Run:
			ok = w.runs(a)
		case Write:
			ok = a.Words[0] == "/dev/null" // agents edit with tools of their own
		case Read, Enter:
			ok = w.each(a, w.Reads)
		}
		if !ok {
			return string(a.Kind) + " " + strings.Join(a.Words, " ")
		}
	}
	return ""
}

// each reports whether holds is true of an act's name in every folder that it may be relative to.
func (w Workspace) each(a Act, holds func(string) bool) bool {
	return !slices.ContainsFunc(a.In, func(folder string) bool { return !holds(under(folder, a.Words[0])) })
}

// under returns a name in a folder. It is not cleaned, since the part before ".." may be a link.
func under(folder, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return folder + "/" + name
}

// Reads reports whether an absolute name leads to something in the workspace that does not look like a secret.
func (w Workspace) Reads(name string) bool {
	paths := w.inside(name)
	return len(paths) > 0 && !slices.ContainsFunc(append(paths, filepath.Base(name)), func(path string) bool {
		return named(secret, strings.ToLower(filepath.Base(path)))
	})
}

// secret are patterns for the lower-case names of files that hold secrets.
var secret = []string{
	".env", ".env.*", ".netrc", ".npmrc", ".pypirc", ".git-credentials", "credentials*", "*.pem", "*.key", "*.p12", "id_*",
}

func named(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := filepath.Match(pattern, name)
		return ok || err != nil
	})
}

// Writes reports whether an absolute name leads to a file in the workspace that is not executed later.
func (w Workspace) Writes(name string) bool {
	return w.Reads(name) && !laterFolder(strings.ToLower(w.Root)) &&
		!slices.ContainsFunc(append(w.inside(name), filepath.Base(name)), runsLater)
}

// inside returns the paths in the workspace that a name may resolve to; none if one is outside. Programs resolve links before "..",
// shells after it.
func (w Workspace) inside(name string) (paths []string) {
	if name == "/dev/null" {
		return []string{"."}
	}
	for _, at := range []string{name, filepath.Clean(name)} {
		path, err := filepath.Rel(w.Root, w.Resolve(at))
		if err != nil || !filepath.IsLocal(path) {
			return nil
		}
		paths = append(paths, path)
	}
	return paths
}

// later are patterns for the lower-case names of files that are executed or obeyed later: build and package manifests, build
// settings, and instructions for agents. A pattern that ends in "/" is a folder with its content. Dot files count as well.
//
//go:embed later.txt
var laterText string

var later = strings.Fields(laterText)

// runsLater reports whether a path in the workspace names a file that is executed or obeyed later.
func runsLater(path string) bool {
	path = strings.ToLower(path)
	return path != "." &&
		(strings.HasPrefix(path, ".") || strings.Contains(path, "/.") || named(later, filepath.Base(path)) || laterFolder(path))
}

// laterFolder reports whether a lower-case path is in a folder of such files.
func laterFolder(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return slices.Contains(later, part+"/") })
}

// programText has one program per line: its name (a subcommand follows "_"), the kind of its operands, and the allowed options.
// -x takes no value, -x: a text, -x= an optional text after "=", -x< and -x> a file to read or write; -# is a number.
//
//go:embed programs.txt
var programText string

type program struct {
	operands string
	options  map[string]byte // the kind of value: 0, or one of : (required) = (optional, and part of the word) < > (a file)
}

var programs = func() map[string]program {
	all := map[string]program{}
	for line := range strings.Lines(programText) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] == "#" {
			continue
		}
		p := program{f[1], map[string]byte{}}
		for _, o := range f[2:] {
			kind := o[len(o)-1]
			if strings.IndexByte(":=<>", kind) < 0 {
				p.options[o] = 0
				continue
			}
			p.options[o[:len(o)-1]] = kind
		}
		all[strings.ReplaceAll(f[0], "_", " ")] = p
	}
	return all
}()

// runs reports whether a program is on the list with these arguments.
func (w Workspace) runs(a Act) bool {
	words := a.Words[1:]
	p, known := programs[a.Words[0]]
	if !known && len(words) > 0 {
		p, known = programs[a.Words[0]+" "+words[0]]
		words = words[1:]
	}
	if !known || a.Words[0] == "git" && len(a.In) > 1 { // each folder's .git says what git executes
		return false
	}
	if p.operands == "words" {
		return true
	}
	var operands []string
	pattern := p.operands == "pattern"
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case word == "--":
			operands = append(operands, words[i+1:]...)
			i = len(words)
		case len(word) < 2 || word[0] != '-':
			operands = append(operands, word)
		default:
			kind, value, next, ok := p.option(word, words[i+1:])
			if !ok || (kind == '<' || kind == '>') && !w.mayTouch(a, value, kind == '>') || next && namesArguments(a, value) {
				return false
			}
			if a.Words[0] == "git" && strings.HasPrefix(word, "-L") && !w.namesNoSecret(a, value) { // -L 1,5:FILE
				return false
			}
			if strings.HasPrefix(word, "-e") || strings.HasPrefix(word, "--regexp") || word == "--files" {
				pattern = false
			}
			if next {
				i++
			}
		}
	}
	if pattern && len(operands) > 0 {
		operands = operands[1:]
	}
	if a.Words[0] == "git" && slices.ContainsFunc(operands, func(o string) bool { return !w.namesNoSecret(a, o) }) {
		return false
	}
	return w.allowsOperands(a, p.operands, operands)
}

// namesNoSecret reports whether an argument of git names no secret: neither after a colon, as in HEAD:.env, :(icase).env and -L 1,5:.env,
// nor by a pattern that git expands.
func (w Workspace) namesNoSecret(a Act, word string) bool {
	parts := strings.FieldsFunc(word, func(r rune) bool { return r == ':' || r == ')' })
	return !slices.ContainsFunc(parts, func(part string) bool { return !w.mayTouch(a, strings.TrimLeft(part, "/!^"), false) }) &&
		!strings.ContainsAny(word, `*?[\`)
}

// option parses one option of a program; next means that its value is the next word.
func (p program) option(word string, after []string) (kind byte, value string, next, ok bool) {
	name, value, attached := strings.Cut(word, "=")
	kind, ok = p.options[name]
	switch {
	case ok && attached && len(value) > 1 && value[0] == '-': // may be an option of a program that this one runs
		return 0, "", false, false
	case ok && attached:
		return kind, value, false, kind != 0
	case ok && kind != 0 && kind != '=':
		if len(after) == 0 || len(after[0]) > 1 && after[0][0] == '-' {
			return 0, "", false, false
		}
		return kind, after[0], true, true
	case ok:
		return kind, "", false, true
	case strings.Trim(word[1:], "0123456789") == "":
		_, ok = p.options["-#"]
		return 0, "", false, ok
	case strings.HasPrefix(word, "--"):
		return 0, "", false, false
	}
	if kind = p.options[word[:2]]; kind == ':' || kind == '=' { // -n5
		return kind, word[2:], false, true
	}
	for _, letter := range word[1:] { // -la
		if kind, ok = p.options["-"+string(letter)]; !ok || kind != 0 {
			return 0, "", false, false
		}
	}
	return 0, "", false, true
}

// namesArguments reports whether a program may take a word for the name of a file of more arguments.
func namesArguments(a Act, word string) bool {
	return strings.HasPrefix(word, "@") && a.Words[0] != "git"
}

// mayTouch reports whether an act may read or write a file of that name.
func (w Workspace) mayTouch(a Act, name string, writes bool) bool {
	if name == "-" {
		return !writes
	}
	holds := w.Reads
	if writes {
		holds = w.Writes
	}
	return name != "" && w.each(Act{Words: []string{name}, In: a.In}, holds)
}

// allowsOperands reports whether a program may have these operands, given their kind in the table.
func (w Workspace) allowsOperands(a Act, as string, operands []string) bool {
	each := func(holds func(string) bool) bool {
		return !slices.ContainsFunc(operands, func(o string) bool { return !holds(o) })
	}
	reads := func(o string) bool { return !namesArguments(a, o) && w.mayTouch(a, o, false) }
	kind, list, _ := strings.Cut(as, "=")
	switch kind {
	case "none":
		return len(operands) == 0
	case "text": // after "--", a program may pass options on
		return each(func(o string) bool { return !strings.HasPrefix(o, "-") || slices.Contains(strings.Split(list, ","), o) })
	case "format": // zsh evaluates operands that are formatted as numbers
		return len(operands) > 0 && formatsText(operands[0])
	case "only":
		return len(operands) <= 1 && each(func(o string) bool { return slices.Contains(strings.Split(list, ","), o) })
	case "one":
		return len(operands) <= 1 && each(reads)
	case "reads", "pattern":
		return each(reads)
	case "lines":
		return len(operands) > 0 && printsLines(operands[0]) && slices.Contains(a.Words, "-n") &&
			!slices.ContainsFunc(operands[1:], func(o string) bool { return !reads(o) })
	case "packages":
		return each(func(o string) bool {
			return (o == "." || strings.HasPrefix(o, "./")) && reads(strings.TrimSuffix(o, "..."))
		})
	}
	return false
}

// formatsText reports whether a format of printf has no directive but %s, %b and %%.
func formatsText(format string) bool {
	return !strings.Contains(strings.NewReplacer("%%", "", "%s", "", "%b", "").Replace(format), "%")
}

// printsLines reports whether a sed script only prints lines by number, as in 5p or 5,10p.
func printsLines(script string) bool {
	numbers, prints := strings.CutSuffix(script, "p")
	from, to, _ := strings.Cut(numbers, ",")
	return prints && from != "" && strings.Trim(from+to, "0123456789") == ""
}

// knownTools lists the tools whose input describes their whole effect: dialects, tool, verb, the member with the object, and irrelevant
// members. Codex's commands are missing because its hooks do not know their folder, those of Copilot CLI and Cursor because their
// shells keep state between commands.
var knownTools = []string{
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

// HarmlessCall reports whether a tool call that a dialect's hook asks about is harmless in the workspace: it runs a harmless command
// (see [Workspace.Harmless]), or reads or edits files that are not executed later. Relative names are relative to the absolute folder.
func (w Workspace) HarmlessCall(dialect, tool string, input json.RawMessage, folder string) bool {
	for _, row := range knownTools {
		f := strings.Fields(row)
		if f[1] == tool && slices.Contains(strings.Split(f[0], ","), dialect) {
			return w.harmlessInput(f[2], f[3:], input, folder)
		}
	}
	return false
}

// harmlessInput reports whether a tool with this verb and these known members has a harmless input.
func (w Workspace) harmlessInput(verb string, names []string, given json.RawMessage, folder string) bool {
	var input map[string]json.RawMessage
	if json.Unmarshal(given, &input) != nil {
		return false
	}
	for name := range input {
		if !slices.Contains(names, name) {
			return false
		}
	}
	text := func(name string) (value string) {
		_ = json.Unmarshal(input[name], &value) // checked below
		return value
	}
	what := text(names[0])
	if what == "" && input[names[0]] != nil && verb != "notes" {
		return false
	}
	if verb != "runs" && verb != "patches" && what != strings.TrimSpace(what) { // some agents trim a name after their hook was called
		return false
	}
	at := under(folder, what)
	switch verb {
	case "runs":
		return w.Harmless(Command(what, folder)) == ""
	case "lists":
		pattern := text("pattern")
		return w.Reads(at) && !filepath.IsAbs(pattern) && !leaves.MatchString(pattern) && !strings.HasPrefix(pattern, "~")
	case "reads":
		return w.Reads(at) && !strings.HasPrefix(what, "~")
	case "writes":
		return what != "" && !strings.HasPrefix(what, "~") && w.Writes(at)
	case "patches":
		return w.patches(folder, what)
	}
	return verb == "notes"
}

// leaves matches glob patterns that may lead out of the folder: by "..", also one that is escaped or put together by braces, or by an
// alternative that is absolute.
var leaves = regexp.MustCompile(`\.\.|[\\(]|[{,][./,}]|\.[,}]`)

// patches reports whether a patch in Codex's format only adds and updates files that may be written.
func (w Workspace) patches(folder, patch string) bool {
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
