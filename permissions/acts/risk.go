package acts

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// Risk is why a call is high risk by what it does, as people read it.
type Risk = i18n.Phrase

// The risks.
const (
	Destroys Risk = "destroys data"
	Rewrites Risk = "rewrites history"
	Rights   Risk = "raises rights"
	Secrets  Risk = "touches credentials"
	Outside  Risk = "writes outside the workspace"
	Unread   Risk = "cannot be read whole"
	Typing   Risk = "takes what is typed into it unasked"
	// Network is not high risk by itself; [Rows] names it.
	Network Risk = "reaches the network"
)

// risks are in the order in which people read them.
var risks = []Risk{Destroys, Rewrites, Rights, Secrets, Outside, Unread, Typing}

// RisksOf returns why calls of r are high risk by what they do, each once. It is empty for what only the configuration names.
func RisksOf(r permissions.Request) []Risk {
	found := map[Risk]bool{}
	for _, c := range r.ToolCalls() {
		for _, risk := range ReadCall(r, c).Risks {
			found[risk] = true
		}
	}
	return listed(found)
}

func listed(found map[Risk]bool) []Risk {
	return slices.DeleteFunc(slices.Clone(risks), func(r Risk) bool { return !found[r] })
}

// ReadCall returns what call c of r does, for [permissions.Policy]. Of a tool that neither edits nor runs code as far as its name says,
// only what its command certainly does counts.
func ReadCall(r permissions.Request, c permissions.Call) permissions.CallReading {
	in := readInput(c.Input)
	d := ReadToolUse(cmp.Or(r.Hook, DialectOf(c.Tool)), c.Tool, c.Input)
	if d.Typed {
		in.commands = slices.DeleteFunc([]string{d.Command}, func(text string) bool { return text == "" })
	}
	f := &finder{root: r.Cwd, found: map[Risk]bool{}, typing: d.TypingUnseen && r.Hook != ""}
	folder := in.folderIn(r)
	effect, compared := permissions.EffectOf(c.Tool), slices.Concat(in.commands, in.code)
	strict := effect == permissions.DoesExecute && !interprets(c.Tool)
	f.found[Rights] = in.unconfined
	f.found[Unread] = strict && in.unread
	f.addBeside(d, r.Cwd)
	switch _, known := permissions.KnownEffect(c.Tool); {
	case effect == permissions.DoesEdit, effect == permissions.DoesRead:
		folder, compared = r.Cwd, Renamed(r.Hook, in.paths)
		if c.AffectedPath != "" {
			compared = append(compared, c.AffectedPath)
		}
		f.found[Unread] = effect == permissions.DoesEdit && len(compared) == 0 && in.titled
		for _, name := range compared {
			f.addFile(Act{at: []string{folder}}, name, effect == permissions.DoesEdit)
			if removesFolders(c.Tool) || in.recursive && effect == permissions.DoesEdit {
				f.addProgram(Act{Kind: Run, Words: []string{"rm", "-r", "--", name}, at: []string{folder}}, 0)
			}
		}
	case known && strict:
		f.found[Unread] = f.found[Unread] || len(compared) == 0 && !d.Typed
		for _, name := range in.writes {
			f.addFile(Act{at: []string{folder}}, name, true)
		}
	}
	for _, text := range in.commands {
		if interprets(c.Tool) {
			f.addCode(text)
		}
		switch find := func(f *finder) { f.addCommand(text, folder, 0) }; {
		case effect == permissions.DoesEdit && strings.HasPrefix(strings.TrimSpace(text), "*** Begin Patch"):
		case strict:
			find(f)
		default:
			f.withoutUnread(find)
		}
	}
	for _, text := range in.code {
		f.addCode(text)
	}
	if takesCommands(c.Tool) {
		in.stdin = append(in.stdin, in.typed...)
	}
	for _, text := range append(in.stdin, in.perhaps...) {
		f.withoutUnread(func(f *finder) { f.addCommand(text, folder, 0) })
	}
	if effect == permissions.DoesOther || effect == permissions.DoesExecute ||
		effect == permissions.DoesRead && strings.Contains(c.Tool, "__") {
		f.found[Destroys] = f.found[Destroys] || slices.ContainsFunc(in.queries, losesData)
	}
	if in.folder != "" {
		compared = append(compared, in.folder)
	}
	return permissions.CallReading{Texts: compared, Risks: listed(f.found)}
}

// addBeside adds the risks of what an agent does beside what a call says: a command that it makes of another, and the files that it reads.
func (f *finder) addBeside(d ToolUse, folder string) {
	if d.Altered != "" {
		f.found[Unread] = true
		f.addCommand(d.Altered, folder, 0)
	}
	if d.Verb == Calls {
		for _, name := range d.Names {
			f.addFile(Act{at: []string{folder}}, name, false)
		}
	}
}

// folderIn is where the command of a call of r runs.
func (in input) folderIn(r permissions.Request) string {
	if r.Cwd != "" && !hasUnknownPlace(in.folder) {
		return Under(r.Cwd, in.folder)
	}
	return in.folder
}

// removesFolders reports whether a tool removes more than single files, as far as its name says.
func removesFolders(tool string) bool {
	tool = strings.ToLower(tool)
	return (strings.Contains(tool, "delete") || strings.Contains(tool, "remove")) && !strings.Contains(tool, "file")
}

// interprets reports whether a tool runs code of a language that is no shell's.
func interprets(tool string) bool {
	return slices.ContainsFunc([]string{"python", "node", "javascript", "typescript", "ruby", "perl", "php", "interpret", "notebook", "repl"},
		func(part string) bool { return strings.Contains(strings.ToLower(tool), part) })
}

// input is what the members of a call's input are by their names, at any depth.
type input struct {
	commands, code, queries, paths []string
	stdin                          []string
	typed                          []string // what is a command for a tool that is like a shell
	perhaps                        []string // words of a command that may be commands of their own
	writes                         []string // folders that our run_command may write to
	folder                         string   // where the command runs; Computed if several are named
	titled                         bool     // it is only a title: the agent says nothing else of its call
	unread                         bool     // a command that is no text
	recursive, unconfined          bool
}

var (
	commandNames = strings.Fields("command cmd argv script commands commandline cmdline shellcommand chars " + FileCommands)
	// typedNames are the members with a command of a tool that is like a shell, and startNames those with a program beside its arguments.
	typedNames  = strings.Fields("exec execute run code shell bash sh input text keys data args")
	startNames  = append(strings.Fields("exec program executable binary"), commandNames...)
	argNames    = strings.Fields("args arguments argv")
	folderNames = strings.Fields("cwd workdir workingdir workingdirectory directory dirpath dir chdir folder")
	codeNames   = strings.Fields("code expression function javascript js python eval snippet source cell")
	patchNames  = strings.Fields("patch input patchtext diff")
	fileURL     = regexp.MustCompile(`(?i)^file:(//[^/]*)?`)
	// unconfinedNames are the members by which an agent runs a command outside its own sandbox.
	unconfinedNames = strings.Fields("dangerouslydisablesandbox withescalatedpermissions sandboxpermissions")
	elsewhere       = regexp.MustCompile(`^(/|~|\.\./)[^\n]*$`) // a path, whatever its member is called
	queryNames      = strings.Fields("sql query queries statement statements")
)

// Suspected returns the commands and files that the input of a tool that is not known names, at any depth.
func Suspected(tool string, text json.RawMessage) (commands, files []string) {
	in := readInput(text)
	in.commands = append(in.commands, in.perhaps...)
	if takesCommands(tool) {
		in.commands = slices.Concat(in.commands, in.stdin, in.typed)
	}
	return in.commands, in.paths
}

func takesCommands(tool string) bool { return permissions.TakesCommands(tool) && !interprets(tool) }

// FilesMember is the member of an input with the files that an ACP program reports of a call beside its input.
const FilesMember = "acp.files"

// FollowedFiles is the member of an input with the files that a call follows, as a hook found them.
const FollowedFiles = "hook.files"

// FileCommands is the member of an input with the commands in the files that a call follows, as a hook found them there. One that is no
// text stands for what it left out.
const FileCommands = "hook.commands"

// FileMentions is the member with the names that stand in those files as @NAME, which the agent reads.
const FileMentions = "hook.mentions"

// PathOf returns the path in a text that is the address of a file, and any other text as it is.
func PathOf(text string) string {
	if u, err := url.Parse(text); err == nil && u.Scheme == "file" && u.Path != "" {
		return u.Path
	}
	return fileURL.ReplaceAllString(text, "")
}

func readInput(text json.RawMessage) (in input) {
	var value any
	_ = json.Unmarshal(text, &value) // other inputs say nothing
	in.read("", value)
	all, _ := value.(map[string]any)
	delete(all, FilesMember)
	if title, is := all["title"].(string); is && len(all) == 1 { // as ACP agents do
		in.titled, in.commands = true, append(in.commands, strings.Trim(title, "` \n"))
	}
	return in
}

// memberName is a member's name without what separates its words, in small letters.
func memberName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

func (in *input) read(name string, value any) {
	name = memberName(name)
	switch v := value.(type) {
	case map[string]any:
		for _, member := range slices.Sorted(maps.Keys(v)) {
			if in.read(member, v[member]); name == "changes" { // of Codex, by file
				in.paths = append(in.paths, member)
			}
		}
		in.readArguments(v)
	case []any:
		text, are := words(v)
		if are && slices.Contains(commandNames, name) {
			if in.commands = append(in.commands, text); !listsCommands(name, v) {
				if name != "argv" {
					in.perhaps = append(in.perhaps, mayListCommands(v)...)
				}
				return
			}
		} else if are && slices.Contains(typedNames, name) && name != "code" {
			if name != "args" { // those are added with their program
				in.typed = append(append(in.typed, text), mayListCommands(v)...)
			}
			if !listsCommands(name, v) {
				name = ""
			}
		}
		for _, item := range v {
			_, is := item.(string)
			in.unread = in.unread || !is && len(v) > 1 && slices.Contains(commandNames, name)
			in.read(name, item)
		}
	case string:
		in.unconfined = in.unconfined || v == "require_escalated" && slices.Contains(unconfinedNames, name)
		in.text(name, v)
	case bool:
		in.recursive = in.recursive || v && name == "recursive"
		in.unconfined = in.unconfined || v && slices.Contains(unconfinedNames, name)
	}
}

// readArguments adds the programs that members of an object name with the arguments beside them, or the arguments that are all.
func (in *input) readArguments(members map[string]any) {
	var programs, args []string
	for _, member := range slices.Sorted(maps.Keys(members)) {
		text, is := members[member].(string)
		if list, are := words(members[member]); slices.Contains(argNames, memberName(member)) && (is || are) {
			args = append(args, cmp.Or(list, text))
		} else if is && slices.Contains(startNames, memberName(member)) {
			programs = append(programs, text)
		}
	}
	for _, arg := range args {
		for _, program := range programs {
			in.commands = append(in.commands, program+" "+arg)
		}
	}
	if len(programs) == 0 {
		in.typed = append(in.typed, args...)
	}
}

// listsCommands reports whether the words of a member's list are commands, each by itself, instead of one: no program's name has a blank.
func listsCommands(name string, list []any) bool {
	first, _ := list[0].(string)
	return name != "args" && (strings.HasPrefix(name, "commands") || strings.Contains(first, " "))
}

// mayListCommands returns the words of a list that may be commands: an option makes it one.
func mayListCommands(list []any) (all []string) {
	for _, item := range list {
		switch word, _ := item.(string); {
		case strings.HasPrefix(word, "-"):
			return nil
		case strings.Contains(word, " "):
			all = append(all, word)
		}
	}
	return all
}

func (in *input) text(name, text string) {
	if text == "" {
		return
	}
	isCommand := slices.Contains(commandNames, name)
	if isCommand {
		in.commands = append(in.commands, text)
	}
	if isCommand || slices.Contains(patchNames, name) {
		in.paths = append(in.paths, filesInPatch(text)...)
	}
	if slices.Contains(typedNames, name) && name != "args" { // of those [input.readArguments] knows the program
		in.typed = append(in.typed, text)
	}
	isOther := func(part string) bool { return strings.Contains(name, part) }
	isPath := slices.Contains(pathNames, name) || (elsewhere.MatchString(text) || fileURL.MatchString(text)) &&
		!slices.ContainsFunc([]string{"content", "str", "text"}, isOther)
	if isPath {
		in.paths = append(in.paths, PathOf(text))
	}
	switch {
	case slices.Contains(codeNames, name):
		in.code = append(in.code, text)
	case slices.Contains(queryNames, name):
		in.queries = append(in.queries, text)
	case name == "write":
		in.writes = append(in.writes, text)
	case name == "stdin":
		in.stdin = append(in.stdin, text)
	case slices.Contains(folderNames, name):
		if in.folder != "" && in.folder != text {
			text = Computed
		}
		in.folder = text
	}
}

// words returns a list of words as a shell's text.
func words(list any) (text string, are bool) {
	all, _ := list.([]any)
	for i, item := range all {
		word, is := item.(string)
		if !is {
			return "", false
		}
		if i > 0 {
			text += " "
		}
		text += Quote(word)
	}
	return text, len(all) > 0
}

// Quote quotes a word for a shell.
func Quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("%+,-./:@_", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// finder collects the risks of a call.
type finder struct {
	root   string
	found  map[Risk]bool
	work   int
	typing bool // what is typed into its programs is not asked about
	socket bool // the command, or one around it, opens a connection as a file
}

// maxWork bounds the words that are looked at: programs in programs are looked at again and again.
const maxWork = 4000

// exceedsWork adds to the work and reports whether it is too much; the call then counts as unread.
func (f *finder) exceedsWork(words int) bool {
	f.work += words
	f.found[Unread] = f.found[Unread] || f.work > maxWork
	return f.work > maxWork
}

// addCommand adds the risks of a command's text.
func (f *finder) addCommand(text, folder string, depth int) {
	if depth > maxDepth {
		f.exceedsWork(maxWork + 1) // also where only what is certain counts
		return
	}
	if f.exceedsWork(len(text) / 16) {
		return
	}
	r := ReadCommand(text, folder)
	if r.Unread {
		f.found[Unread] = true
	}
	f.found[Destroys] = f.found[Destroys] || destroying.MatchString(strings.Join(r.values, "\n"))
	by := &scripts{made: map[string]string{}}
	outer := f.socket
	f.socket = f.socket || slices.ContainsFunc(r.Acts, func(a Act) bool {
		if a.Kind == Run {
			return false
		}
		_, is := SocketHost(a.Words[0])
		return is
	})
	for _, a := range r.Acts {
		f.addAct(a, by, depth)
	}
	f.socket = outer
	queries := func(a Act) bool { return a.Kind == Run && slices.Contains(databases, path.Base(a.Words[0])) }
	if slices.ContainsFunc(r.Acts, queries) && losesData(text) {
		f.found[Destroys] = true
	}
}

// scripts are what a command writes into files, and what its last program printed.
type scripts struct {
	made    map[string]string
	printed string
}

// addAct adds the risks of one effect of a command.
func (f *finder) addAct(a Act, by *scripts, depth int) {
	switch a.Kind {
	case Run:
		f.addMadeScript(by.made, a, depth)
		if by.printed = a.Stdin; len(a.Words) > 1 && slices.Contains([]string{"echo", "printf"}, a.Words[0]) {
			by.printed = strings.Join(a.Words[1:], " ")
		}
		f.addProgram(a, depth)
	case Write:
		by.made[path.Clean(a.Words[0])] = by.printed
		f.addFile(a, a.Words[0], true)
	case Read:
		f.addFile(a, a.Words[0], false)
	}
}

// unseenContent stands for a file's content that nobody sees.
const unseenContent = "curl | sh"

// addMadeScript adds the risks of a script that the same command has written or fetched, before a runs it.
func (f *finder) addMadeScript(made map[string]string, a Act, depth int) {
	name, args := path.Base(a.Words[0]), a.Words[1:]
	switch {
	case name == "tee" && a.Stdin != "":
		for _, file := range args {
			made[path.Clean(file)] = a.Stdin
		}
	case name == "curl", name == "wget":
		operands, _ := operandsOf(args)
		for _, file := range writtenFiles(name, args, operands) {
			made[path.Clean(file)] = unseenContent
		}
	}
	isShell := slices.Contains(shellNames, name) || name == "source" || name == "."
	if !isShell && !slices.Contains(interpreters, name) {
		args, isShell = a.Words[:1], strings.Contains(a.Words[0], "/")
	}
	for _, word := range args {
		switch text, is := made[path.Clean(word)]; {
		case !is || text == "":
		case isShell:
			f.withoutUnread(func(f *finder) { f.addCommand(text, f.folder(a), depth+1) })
			f.found[Unread] = f.found[Unread] || text == unseenContent
		default:
			f.addCode(text)
		}
	}
}

var (
	// dropsData matches statements that drop data; a DELETE without a condition is one.
	dropsData = regexp.MustCompile(`(?is)\bdrop\s+(table|database|schema|index|(materialized\s+)?view|column|collection|user|role|owned|` +
		`function|procedure|trigger|type|sequence|extension|domain|keyspace)\b|\btruncate\b|` +
		`\bdelete\s+from\s+(only\s+)?[\w."` + "`" + `]+\s*(;|"|'|$|where\s+(true|1\s*=\s*1)\b)|\.(drop|dropDatabase|deleteMany|remove)\(`)
	sqlComment = regexp.MustCompile(`(?s)/\*.*?\*/|--[ \t][^\n]*`)
	updates    = regexp.MustCompile(`(?is)\bupdate\s+[\w."` + "`" + `]+\s+set\b`)
	condition  = regexp.MustCompile(`(?i)\bwhere\b`)
	// Code in other languages is only searched for what destroys or runs commands.
	destroying = regexp.MustCompile(`rmtree|rmSync|rm_rf|rimraf|removedirs|remove_dir|remove_tree|RemoveAll|delete-directory|` +
		`\brm\s+-\w*[rR]|\.rm\(|\.rmdir(Sync)?\(|FileUtils\.rm|(?i)\bdrop\s+table`)
	running = regexp.MustCompile(`child_process|subprocess|\bos\.(system|popen|exec|spawn)|\bsystem\s*\(|\bpopen\s*\(|` +
		`(^|[^.\w])(exec\s*[(\s]\s*["'(]|(exec|eval)\s*\()|\bpty\.spawn|\brunpy\b|\bfrom\s+os\s+import\b|__import__|` + "`")
	quoted = regexp.MustCompile(`"([^"\s]+)"|'([^'\s]+)'`)
)

// losesData reports whether a text has a statement that drops data, or that deletes or changes every row of a table.
func losesData(text string) bool {
	text = sqlComment.ReplaceAllString(text, " ")
	return dropsData.MatchString(text) || slices.ContainsFunc(strings.Split(text, ";"), func(statement string) bool {
		return updates.MatchString(statement) && !condition.MatchString(statement)
	})
}

// texts are programs, and subcommands of git, whose words are only text.
var texts = strings.Fields("echo printf cat gh glab grep egrep fgrep rg ag ack commit tag log notes merge")

var shellNames = strings.Fields("sh bash zsh dash ksh ash fish mksh rbash")

// addProgram adds the risks of one program.
func (f *finder) addProgram(a Act, depth int) {
	if len(a.Words) == 0 || f.exceedsWork(len(a.Words)) {
		return
	}
	name, args := strings.TrimPrefix(strings.TrimSuffix(strings.ToLower(path.Base(a.Words[0])), ".exe"), "="), a.Words[1:]
	if strings.Contains(a.Words[0], Computed) {
		f.found[Unread] = true
		return
	}
	for _, row := range risky {
		if (f.typing || row.risk != Typing) && row.fits(name, args) && !f.scratchOnly(row, name, a) {
			f.found[row.risk] = true
		}
	}
	f.found[Typing] = f.found[Typing] || f.typing && a.takesTyping(name)
	f.addFiles(name, a)
	wraps := slices.Contains(wrappers, name)
	isText := func(word string) bool { return slices.Contains(texts, word) }
	if !isText(name) && (name != "git" || !slices.ContainsFunc(args, isText)) {
		f.found[Destroys] = f.found[Destroys] || destroying.MatchString(a.Stdin) ||
			slices.ContainsFunc(args, func(w string) bool { return strings.ContainsAny(w, " \t\n") && destroying.MatchString(w) })
		if i := slices.Index(args, "rm"); i >= 0 && !wraps && name != "git" && depth < maxDepth {
			f.addProgram(Act{Kind: Run, Words: args[i:], at: a.at}, depth+1)
		}
	}
	switch {
	case slices.Contains(shellNames, name):
		f.addShell(a, depth)
	case slices.Contains(interpreters, name):
		f.addCode(a.Stdin + "\n" + strings.Join(args, "\n"))
		isText := func(w string) bool { return !strings.HasPrefix(w, "-") }
		f.found[Unread] = f.found[Unread] || a.Piped && (slices.ContainsFunc(args, isStdin) || !slices.ContainsFunc(args, isText))
		if name == "pwsh" || name == "powershell" {
			f.addWindowsShell(a, depth)
		}
	case name == "cmd":
		f.addWindowsShell(a, depth)
	case name == "apply_patch" || name == "applypatch":
		for _, file := range filesInPatch(a.Stdin + "\n" + strings.Join(args, "\n")) {
			f.addFile(a, file, true)
		}
	case (name == "source" || name == ".") && len(args) > 0:
		f.addShell(Act{Words: []string{"sh", args[0]}, at: a.at, Stdin: a.Stdin, Piped: a.Piped}, depth)
	case wraps && depth < maxDepth:
		f.addWrapped(name, a, depth)
	case wraps:
		f.exceedsWork(maxWork + 1) // it runs a command that is deeper than any is read
	case name == "git":
		for i, word := range args { // an alias or another setting that is a command, a remote that is one
			if _, text, is := strings.Cut(word, "=!"); is {
				f.addCommand(text, f.folder(a), depth+1)
			} else if _, text, is := strings.Cut(word, "="); is && i > 0 && args[i-1] == "-c" {
				f.withoutUnread(func(f *finder) { f.addCommand(text, f.folder(a), depth+1) })
			}
			f.found[Unread] = f.found[Unread] || strings.HasPrefix(word, "ext::")
		}
	}
}

// takesTyping reports whether a program that is given nothing else runs, or writes, what is typed into it.
func (a Act) takesTyping(name string) bool {
	args := a.Words[1:]
	if a.Piped || a.Fed || a.Stdin != "" {
		return false
	}
	option := func(w string) bool {
		letter := !strings.HasPrefix(w, "--") && (slices.Contains(shellNames, name) || w == "-v" && strings.HasPrefix(name, "python"))
		w, _, _ = strings.Cut(w, "=")
		return slices.Contains(given, w) && !letter
	}
	isText := func(w string) bool {
		return !strings.HasPrefix(w, "-") && !isStdin(w) || strings.HasPrefix(w, "--") && option(w)
	}
	switch {
	case a.startsTyping(name):
		return true
	case name == "ssh":
		return endsInHost(args)
	case slices.Contains(taking, name):
		return true
	case slices.Contains(databases, name):
		return !slices.ContainsFunc(args, func(w string) bool { return strings.ContainsAny(w, " \t\n") || option(w) })
	}
	return !slices.ContainsFunc(args, isText) && (len(args) != 1 || !option(args[0])) &&
		slices.Contains(slices.Concat(shellNames, interpreters, barePrograms), name)
}

// startsTyping reports whether a program, whatever it is, is given its own input as a file, a shell without a command, or is named by its
// first word what opens one: vagrant ssh.
func (a Act) startsTyping(name string) bool {
	p, _, known := entryOf(a)
	if known && !p.builds || slices.Contains(slices.Concat(texts, builtins, quiet, shellNames, interpreters), name) {
		return false
	}
	for i := 1; i < len(a.Words) && !slices.Contains(wrappers, name); i++ { // what those run is looked at itself
		base := path.Base(a.Words[i])
		shell := slices.Contains(shellNames, base) && Act{Words: a.Words[i:]}.takesTyping(base)
		if shell || isStdin(a.Words[i]) && !slices.Contains(outputs, a.Words[i-1]) {
			return true
		}
	}
	return (len(a.Words) == 2 || len(a.Words) == 3) && slices.Contains(opening, a.Words[1])
}

// takingLetters are the options of ssh that take a value.
const takingLetters = "BbcDEeFIiJLlmOoPpQRSWw"

// endsInHost reports whether ssh is given a host and no command.
func endsInHost(args []string) bool {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		used := 1
		if letter := args[0][1:]; len(letter) == 1 && strings.Contains(takingLetters, letter) {
			used = 2
		}
		args = args[min(used, len(args)):]
	}
	return len(args) == 1
}

// isStdin reports whether a word names what a program reads anyway.
func isStdin(word string) bool {
	return slices.Contains([]string{"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}, word)
}

// addWindowsShell adds the risks of the command that cmd or PowerShell is given.
func (f *finder) addWindowsShell(a Act, depth int) {
	for i, word := range a.Words {
		switch lower := strings.ToLower(word); {
		case lower == "-e" || lower == "-ec" || strings.HasPrefix(lower, "-en"):
			f.found[Unread] = true
		case i > 0 && slices.Contains([]string{"-c", "-command", "/c", "/k"}, lower):
			f.withoutUnread(func(f *finder) { f.addCommand(strings.Join(a.Words[i+1:], " "), f.folder(a), depth+1) })
		}
	}
}

// fetching are wrappers that name a program with its version.
var fetching = strings.Fields("npx pnpx bunx uvx npm pnpm yarn bun uv")

// addWrapped adds the risks of the program that a wrapper runs.
func (f *finder) addWrapped(name string, a Act, depth int) {
	args := a.Words[1:]
	f.found[Unread] = f.found[Unread] || a.Piped && slices.Contains([]string{"at", "batch", "crontab"}, name)
	if name == "command" && len(args) > 0 && strings.EqualFold(args[0], "-v") { // it says where that is
		return
	}
	if name == "eval" {
		f.addCommand(strings.Join(args, " "), f.folder(a), depth+1)
		return
	}
	if name == "env" && valueOfOption(args, "-C", "--chdir") != "" || slices.Contains(args, "-execdir") {
		a.at = []string{Computed}
	}
	if operands, _ := operandsOf(args); name == "ssh" && len(operands) == 1 { // a shell, elsewhere
		f.found[Unread] = f.found[Unread] || a.Piped
		f.withoutUnread(func(f *finder) { f.addCommand(a.Stdin, f.folder(a), depth+1) })
	}
	if name == "xargs" || name == "parallel" { // what they read becomes a part of the text
		a.Piped = true
		f.found[Unread] = f.found[Unread] || slices.ContainsFunc(args, func(w string) bool {
			return slices.Contains(shellNames, path.Base(w)) || w == "eval"
		})
	}
	for i, word := range args {
		if name == "env" {
			word = strings.TrimPrefix(strings.TrimPrefix(word, "-S"), "--split-string=")
		}
		if strings.ContainsAny(word, " \t\n") {
			if _, value, is := strings.Cut(word, "="); is && name == "alias" {
				word = value
			}
			f.withoutUnread(func(f *finder) { f.addCommand(word, f.folder(a), depth+1) })
		}
		if slices.Contains(fetching, name) && strings.LastIndex(word, "@") > 0 {
			word = word[:strings.LastIndex(word, "@")]
		}
		if !strings.HasPrefix(word, "-") && slices.Contains(programNames, strings.ToLower(path.Base(word))) {
			f.addProgram(Act{Kind: Run, Words: append([]string{word}, args[i+1:]...), at: a.at, Stdin: a.Stdin, Piped: a.Piped}, depth+1)
		}
	}
}

// programNames are the programs that a wrapper's words are searched for.
var programNames = func() []string {
	names := slices.Concat(wrappers, shellNames, interpreters, databases,
		strings.Fields("rm rmdir mv cp ln tee sed unlink git python* mkdir touch chmod chown dd tar curl wget"))
	for _, row := range risky {
		if row.risk != Network && row.risk != Typing {
			names = append(names, strings.Split(row.program, "|")...)
		}
	}
	return names
}()

func (f *finder) folder(a Act) string { return a.at[0] }

// withoutUnread adds risks without [Unread].
func (f *finder) withoutUnread(find func(*finder)) {
	before := f.found[Unread]
	find(f)
	f.found[Unread] = before || f.work > maxWork
}

// addCode adds the risks of code in a language that is no shell's.
func (f *finder) addCode(text string) {
	f.found[Destroys] = f.found[Destroys] || destroying.MatchString(text)
	f.found[Unread] = f.found[Unread] || running.MatchString(text)
	for _, file := range quoted.FindAllStringSubmatch(text, -1) {
		f.found[Secrets] = f.found[Secrets] || isSecret(cmp.Or(file[1], file[2]))
	}
}

// addShell adds the risks of a shell: those of the command that it is given, or that it is given one that nobody sees.
func (f *finder) addShell(a Act, depth int) {
	given, stdin, value := false, false, false
	for _, word := range a.Words[1:] {
		switch isOption := strings.HasPrefix(word, "-") || strings.HasPrefix(word, "+"); {
		case value:
			value = false
		case strings.HasPrefix(word, "--"), word == "-":
			value = word == "--rcfile" || word == "--init-file"
		case isOption:
			given, stdin = given || strings.Contains(word, "c"), stdin || strings.Contains(word, "s")
			value = strings.HasSuffix(strings.ToLower(word), "o")
		case given:
			f.addCommand(word, f.folder(a), depth+1)
			return
		case isStdin(word):
			stdin = true
		case !stdin: // a file
			f.found[Unread] = f.found[Unread] || strings.HasPrefix(word, Computed)
			return
		}
	}
	if a.Stdin != "" {
		f.addCommand(a.Stdin, f.folder(a), depth+1)
		return
	}
	f.found[Unread] = f.found[Unread] || a.Piped || f.socket
}

//go:embed risky.txt
var riskyText string

type riskRow struct {
	risk    Risk
	program string
	words   []string
}

var risky = func() (all []riskRow) {
	named := map[string]Risk{"destroys": Destroys, "rewrites": Rewrites, "rights": Rights, "secrets": Secrets, "unread": Unread,
		"network": Network, "typing": Typing}
	for line := range strings.Lines(riskyText) {
		if f := strings.Fields(line); len(f) > 1 && f[0] != "#" {
			all = append(all, riskRow{named[f[0]], f[1], f[2:]})
		}
	}
	return all
}()

// fits reports whether a program with these arguments is one of the row.
func (r riskRow) fits(name string, args []string) bool {
	return matchesAny(strings.Split(r.program, "|"), name) && !slices.ContainsFunc(r.words, func(word string) bool {
		return !slices.ContainsFunc(strings.Split(word, "|"), func(pattern string) bool {
			return slices.ContainsFunc(args, func(arg string) bool { return optionFits(pattern, arg) })
		})
	})
}

// optionFits reports whether an argument is the word of a pattern. A single letter may be joined with others, and a long option may be
// abbreviated.
func optionFits(pattern, arg string) bool {
	switch {
	case len(pattern) == 2 && pattern[0] == '-' && pattern[1] != '-':
		return len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.Contains(strings.SplitN(arg, "=", 2)[0], pattern[1:])
	case strings.HasPrefix(arg, "--") && arg != "--" && strings.HasPrefix(pattern, arg):
		return true
	}
	return match(pattern, arg)
}

// match reports whether a pattern matches a text, in which a star also matches slashes.
func match(pattern, text string) bool {
	ok, _ := permissions.MatchName(pattern, text)
	return ok
}
