package acts

import (
	_ "embed"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Workspace is the folder that an agent works in.
type Workspace struct {
	Root string // absolute, clean and resolved
	// Resolve resolves the links in an absolute name, on the machine where the call runs.
	Resolve func(name string) string
}

// WhyNotHarmless returns why a command is not harmless; empty if it is. Harmless are reading in the workspace, building and testing.
func (w Workspace) WhyNotHarmless(r Reading) (why string) {
	if len(r.Doubts) > 0 {
		return r.Doubts[0]
	}
	for _, a := range r.Acts {
		ok := false
		switch a.Kind {
		case Run:
			ok = len(a.Env) == 0 && w.allowsRun(a)
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
	return !slices.ContainsFunc(a.In, func(folder string) bool { return !holds(Under(folder, a.Words[0])) })
}

// Under returns a name in a folder. It is not cleaned, since the part before ".." may be a link.
func Under(folder, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return folder + "/" + name
}

// Reads reports whether an absolute name leads to something in the workspace that does not look like a secret.
func (w Workspace) Reads(name string) bool {
	paths := w.resolveInside(name)
	return len(paths) > 0 && !slices.ContainsFunc(append(paths, filepath.Base(name)), func(path string) bool {
		return isSecret(path) || matchesAny(secret, strings.ToLower(filepath.Base(path)))
	})
}

// FindsSecrets reports whether a pattern of names may fit that of a file that holds secrets.
func FindsSecrets(pattern string) bool {
	base := strings.ToLower(filepath.Base(pattern))
	return pattern != "" && (isSecret(pattern) || slices.ContainsFunc(secret, func(name string) bool {
		return matchesAny([]string{name}, base) || matchesAny([]string{base}, strings.ReplaceAll(name, "*", "x"))
	}))
}

// secret are patterns for the lower-case names of files that hold secrets, besides those that [isSecret] knows.
var secret = []string{".env", ".env.*", "*.env", ".netrc", ".npmrc", ".pypirc", ".git-credentials", "credentials*", "*.pem", "*.key",
	"*.p12", "id_*", "*.tfstate"}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := filepath.Match(pattern, name)
		return ok || err != nil
	})
}

// Writes reports whether an absolute name leads to a file in the workspace that is not executed later.
func (w Workspace) Writes(name string) bool {
	return w.Reads(name) && !laterFolder(strings.ToLower(w.Root)) &&
		!slices.ContainsFunc(append(w.resolveInside(name), filepath.Base(name)), runsLater)
}

// resolveInside returns the paths in the workspace that a name may resolve to; none if one is outside. Programs resolve links before "..",
// shells after it.
func (w Workspace) resolveInside(name string) (paths []string) {
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

// laterPatterns are patterns for the lower-case names of files that are executed or obeyed later: build and package manifests, build
// settings, and instructions for agents. A pattern that ends in "/" is a folder with its content. Dot files count as well.
//
//go:embed later.txt
var laterText string

// wordText has lists of words by their names.
//
//go:embed words.txt
var wordText string

// WordLists reads lists of words, each after its name and a colon. A line that begins with a tab continues the one above.
func WordLists(text string) map[string][]string {
	all, name := map[string][]string{}, ""
	for line := range strings.Lines(text) {
		if begin, rest, named := strings.Cut(line, ": "); named && line[0] != '\t' && line[0] != '#' {
			name, line = begin, rest
		}
		if line[0] != '#' {
			all[name] = append(all[name], strings.Fields(line)...)
		}
	}
	return all
}

var (
	wordLists                         = WordLists(wordText)
	scratch, secretPaths, secretNames = wordLists["scratch"], wordLists["secretPaths"], wordLists["secretNames"]
	builtins, pathNames, databases    = wordLists["builtins"], wordLists["pathNames"], wordLists["databases"]
	taking, barePrograms, given       = wordLists["taking"], wordLists["bare"], wordLists["given"]
	quiet, outputs, opening           = wordLists["quiet"], wordLists["outputs"], wordLists["opening"]
	wrappers, interpreters            = wordLists["wrappers"], wordLists["interpreters"]
)

var laterPatterns = strings.Fields(laterText)

// runsLater reports whether a path in the workspace names a file that is executed or obeyed later.
func runsLater(path string) bool {
	path = strings.ToLower(path)
	return path != "." &&
		(strings.HasPrefix(path, ".") || strings.Contains(path, "/.") || matchesAny(laterPatterns, filepath.Base(path)) || laterFolder(path))
}

// laterFolder reports whether a lower-case path is in a folder of such files.
func laterFolder(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return slices.Contains(laterPatterns, part+"/") })
}

// programText has one program per line: its name (a subcommand follows "_"), the kind of its operands, and the allowed options.
// -x takes no value, -x: a text, -x= an optional text after "=", -x< and -x> a file to read or write; -# is a number.
//
//go:embed programs.txt
var programText string

type program struct {
	operands string
	builds   bool            // it is below "# building and testing"
	options  map[string]byte // the kind of value: 0, or one of : (required) = (optional, and part of the word) < > (a file)
}

var programs = func() map[string]program {
	all, builds := map[string]program{}, false
	for line := range strings.Lines(programText) {
		f := strings.Fields(line)
		builds = builds || strings.HasPrefix(line, "# building")
		if len(f) < 2 || f[0] == "#" {
			continue
		}
		p := program{f[1], builds, map[string]byte{}}
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

// OnlyReads reports whether a program is on the list with these arguments and only reads: it neither builds nor tests anything.
func (w Workspace) OnlyReads(a Act) bool {
	p, _, known := entryOf(a)
	return known && !p.builds && w.allowsRun(a)
}

// Builds reports whether a program is on the list of those that build and test: they run code of their folder.
func Builds(words []string) bool {
	p, _, known := entryOf(Act{Words: words})
	return known && p.builds
}

// FormatsText reports whether the operands of printf are formatted only as text: zsh evaluates those that are formatted as numbers.
func FormatsText(operands []string) bool {
	return len(operands) > 0 && !strings.Contains(strings.NewReplacer("%%", "", "%s", "", "%b", "").Replace(operands[0]), "%")
}

// entryOf returns the entry of a program on the list, and its arguments.
func entryOf(a Act) (p program, words []string, known bool) {
	words = a.Words[1:]
	p, known = programs[a.Words[0]]
	if !known && len(words) > 0 {
		p, known = programs[a.Words[0]+" "+words[0]]
		words = words[1:]
	}
	return p, words, known
}

// MayLeave reports whether git may run in another folder than the workspace's own: each folder's .git says what git executes.
func (w Workspace) MayLeave(a Act) bool {
	return a.Words[0] == "git" && (len(a.In) > 1 || w.Resolve(a.In[0]) != w.Root)
}

// allowsRun reports whether a program is on the list with these arguments.
func (w Workspace) allowsRun(a Act) bool {
	p, words, known := entryOf(a)
	if !known || w.MayLeave(a) {
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
			if a.Words[0] == "git" && strings.HasPrefix(word, "-L") && !w.NamesNoSecret(a, value) { // -L 1,5:FILE
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
	if a.Words[0] == "git" && slices.ContainsFunc(operands, func(o string) bool { return !w.NamesNoSecret(a, o) }) {
		return false
	}
	return w.allowsOperands(a, p.operands, operands)
}

// NamesNoSecret reports whether an argument of git names no secret: neither after a colon, as in HEAD:.env, :(icase).env and -L 1,5:.env,
// nor by a pattern that git expands.
func (w Workspace) NamesNoSecret(a Act, word string) bool {
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

// ListedProgram returns how many words name the program, and its subcommand, of a program on the list, and the kind of its operands, see
// programs.txt. It is 0 for one that is not on the list.
func ListedProgram(words []string) (named int, kind string) {
	p, args, known := entryOf(Act{Words: words})
	if !known {
		return 0, ""
	}
	kind, _, _ = strings.Cut(p.operands, "=")
	return len(words) - len(args), kind
}

// OptionAt returns how a rule's pattern names the option at words[n] of a program on the list: as in -v, or "-n *" with its value. Joined
// letters are several options. next says that the value is the next word. ok is false for an option that is not on the list, or that
// names a file.
func OptionAt(words []string, n int) (names []string, next, ok bool) {
	p, _, known := entryOf(Act{Words: words})
	if !known {
		return nil, false, false
	}
	kind, value, next, ok := p.option(words[n], words[n+1:])
	name, _, joined := strings.Cut(words[n], "=")
	_, whole := p.options[name]
	switch {
	case !ok || kind == '<' || kind == '>':
		return nil, false, false
	case strings.Trim(name[1:], "0123456789") == "" && !whole:
		return []string{"-#"}, false, true
	case kind == 0 && whole:
		return []string{name}, false, true
	case kind == 0:
		for _, letter := range name[1:] {
			names = append(names, "-"+string(letter))
		}
		return names, false, true
	case next, joined && kind == ':' && strings.HasPrefix(name, "--"):
		return []string{name + " *"}, next, true
	case joined:
		return []string{name + "=*"}, false, true
	case whole: // without its value
		return []string{name}, false, true
	case strings.Trim(value, "0123456789") == "": // -n5
		return []string{name[:2] + "#"}, false, true
	}
	return nil, false, false
}

// WritesTo returns the file that a program on the list writes by the word at n, which is an option with its value, or the value alone.
func WritesTo(words []string, n int) string {
	p, _, known := entryOf(Act{Words: words})
	if !known || n == 0 {
		return ""
	}
	if name, value, joined := strings.Cut(words[n], "="); joined && p.options[name] == '>' {
		return value
	}
	if p.options[words[n-1]] == '>' {
		return words[n]
	}
	return ""
}

// LaterExtension reports whether files with an extension may be executed or obeyed later by their names.
func LaterExtension(ext string) bool {
	ext = strings.ToLower(ext)
	return slices.ContainsFunc(laterPatterns, func(pattern string) bool { return strings.HasSuffix(pattern, ext) })
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
		return FormatsText(operands)
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

// printsLines reports whether a sed script only prints lines by number, as in 5p or 5,10p.
func printsLines(script string) bool {
	numbers, prints := strings.CutSuffix(script, "p")
	from, to, _ := strings.Cut(numbers, ",")
	return prints && from != "" && strings.Trim(from+to, "0123456789") == ""
}

// HarmlessCall reports whether a tool call that a dialect's hook asks about is harmless in the workspace: it runs a harmless command (see
// [Workspace.WhyNotHarmless]), or reads or edits files that are not executed later. Relative names are relative to the absolute folder.
func (w Workspace) HarmlessCall(dialect, tool string, input json.RawMessage, folder string) bool {
	if dialect == "vscode" || dialect == "codex" && tool != "apply_patch" {
		return false // VS Code has no mode that it could be left to; Codex's folder is not known
	}
	d := ReadToolUse(dialect, tool, input)
	reads := func(name string) bool { return !strings.HasPrefix(name, "~") && w.Reads(Under(folder, name)) }
	writes := func(name string) bool { return !strings.HasPrefix(name, "~") && w.Writes(Under(folder, name)) }
	each := func(holds func(string) bool) bool {
		return !slices.ContainsFunc(d.Names, func(name string) bool { return !holds(name) })
	}
	switch d.Verb {
	case Runs:
		return d.Folder == "" && d.Altered == "" && w.WhyNotHarmless(ReadCommand(d.Command, folder)) == ""
	case Lists, Views:
		return d.WhyWider() == "" && each(reads)
	case Writes, Patches:
		return each(writes)
	}
	return d.Verb == HasNoEffect
}

// WhyWider returns why the pattern of [Lists] or [Views] may find more than usual files in the named folder; empty: it does not.
func (d ToolUse) WhyWider() string {
	if filepath.IsAbs(d.Pattern) || leaves.MatchString(d.Pattern) || strings.HasPrefix(d.Pattern, "~") ||
		d.Verb == Views && strings.TrimLeft(d.Pattern, "-:") != d.Pattern { // an option, or how git names files elsewhere
		return "its pattern may leave the folder"
	}
	if d.Verb == Views && slices.ContainsFunc(patternsIn(d.Pattern), FindsSecrets) {
		return "its pattern of names may find files that look like secrets"
	}
	return ""
}

// patternsIn returns the patterns that tools may read in one: some split it at spaces and commas. One that begins with ! leaves files out.
func patternsIn(text string) (all []string) {
	for _, part := range append(strings.Fields(text), text) {
		if !strings.Contains(part, "{") {
			all = append(all, strings.Split(part, ",")...)
		}
		for _, word := range alternatives(&syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: part}}}) {
			if all = append(all, word.Lit()); strings.ContainsAny(word.Lit(), "{}") { // it may be any
				all = append(all, "*")
			}
		}
	}
	return slices.DeleteFunc(all, func(part string) bool { return strings.HasPrefix(part, "!") })
}

// leaves matches glob patterns that may lead out of the folder: by "..", also one that is escaped or put together by braces, or by an
// alternative that is absolute.
var leaves = regexp.MustCompile(`\.\.|[\\(]|[{,][./,}]|\.[,}]`)
