package acts

import (
	_ "embed"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// Risk is why a call is high risk by what it does, as people read it.
type Risk string

// The risks, in the order in which people read them.
const (
	Destroys Risk = "destroys data"
	Rewrites Risk = "rewrites history"
	Rights   Risk = "raises rights"
	Secrets  Risk = "touches credentials"
	Outside  Risk = "writes outside the workspace"
	Unread   Risk = "cannot be read whole"
)

var risks = []Risk{Destroys, Rewrites, Rights, Secrets, Outside, Unread}

// Reads returns what call c of r does, for [permissions.Policy].
func Reads(r permissions.Request, c permissions.Call) permissions.Doing {
	call := Call{Tool: c.Tool, Input: c.Input, Path: c.AffectedPath, Folder: r.Cwd}
	return permissions.Doing{Texts: call.Texts(), Risks: wordsOf(call.Risks())}
}

func wordsOf(all []Risk) (words []string) {
	for _, r := range all {
		words = append(words, string(r))
	}
	return words
}

// RisksOf returns why calls of r are high risk by what they do, each once, in the words that people read, as in "destroys data". It is
// empty for what only the configuration names.
func RisksOf(r permissions.Request) (all []string) {
	for _, c := range r.ToolCalls() {
		for _, risk := range Reads(r, c).Risks {
			if !slices.Contains(all, risk) {
				all = append(all, risk)
			}
		}
	}
	return all
}

// Call is a tool call as its asker describes it.
type Call struct {
	Tool   string
	Input  json.RawMessage
	Path   string // the affected path; empty: only the input names it
	Folder string // where it runs; empty: unknown
}

// Text returns the command of a call; ok is false if the call has none. Words is set instead if the command is a list of words.
func (c Call) Text() (text string, words []string, ok bool) {
	var input map[string]json.RawMessage
	if json.Unmarshal(c.Input, &input) != nil {
		return "", nil, false
	}
	names := []string{"command", "cmd", "script", "commands", "code"}
	if len(input) == 1 { // an ACP agent that only names its call
		names = append(names, "title")
	}
	for _, name := range names {
		if json.Unmarshal(input[name], &text) == nil && text != "" {
			if name == "title" {
				text = strings.Trim(text, "` \n")
			}
			return text, nil, true
		}
		if json.Unmarshal(input[name], &words) == nil && len(words) > 0 {
			return "", words, true
		}
	}
	return "", nil, false
}

// Texts returns what patterns of commands and files are compared with.
func (c Call) Texts() []string {
	text, words, has := c.Text()
	switch effect, _ := permissions.KnownEffect(c.Tool); {
	case effect == permissions.DoesEdit || effect == permissions.DoesRead:
		return c.paths()
	case words != nil:
		return []string{strings.Join(words, " ")}
	case has:
		return []string{text}
	}
	return nil
}

// Risks returns why the call is high risk by what it does; none if it is not. Of a tool that is none of a known shell, only what its
// command certainly does counts.
func (c Call) Risks() []Risk {
	found := &finder{root: c.Folder, found: map[Risk]bool{}}
	effect, known := permissions.KnownEffect(c.Tool)
	text, words, has := c.Text()
	switch {
	case effect == permissions.DoesEdit || effect == permissions.DoesRead:
		for _, name := range c.paths() {
			found.touches(Act{at: []string{c.Folder}}, name, effect == permissions.DoesEdit)
		}
	case effect == permissions.DoesExecute && !has:
		found.found[Unread] = true
	case words != nil:
		found.run(Act{Kind: Run, Words: words, at: []string{c.Folder}}, 0)
	case has:
		found.command(text, c.Folder, 0)
	}
	if !known || effect == permissions.DoesNetwork || effect == permissions.DoesOther {
		delete(found.found, Unread)
	}
	return slices.DeleteFunc(slices.Clone(risks), func(r Risk) bool { return !found.found[r] })
}

// paths returns the files that a call of an editing or reading tool names.
func (c Call) paths() (all []string) {
	if c.Path != "" {
		all = append(all, c.Path)
	}
	var input map[string]json.RawMessage
	_ = json.Unmarshal(c.Input, &input) // other inputs name none
	text := func(name string) (value string) {
		_ = json.Unmarshal(input[name], &value) // other values name none
		return value
	}
	for _, name := range []string{
		"file_path", "notebook_path", "filePath", "absolute_path", "path", "dir_path", "filename", "file", "source", "destination", "new_path",
		"target_file", "old_path",
	} {
		if value := text(name); value != "" {
			all = append(all, value)
		}
	}
	for _, name := range []string{"command", "patch", "input", "patchText", "patch_text"} {
		for line := range strings.Lines(text(name)) {
			head, file, is := strings.Cut(strings.TrimSpace(line), ": ")
			if is && strings.HasPrefix(head, "*** ") {
				all = append(all, file)
			}
		}
	}
	return all
}

// finder collects the risks of a call.
type finder struct {
	root  string
	found map[Risk]bool
	spent int
}

// mostWork bounds the words that are looked at: programs in programs are looked at again and again.
const mostWork = 4000

// tires adds to the work and reports whether it is too much; the call then counts as unread.
func (f *finder) tires(words int) bool {
	f.spent += words
	f.found[Unread] = f.found[Unread] || f.spent > mostWork
	return f.spent > mostWork
}

// command adds the risks of a command's text.
func (f *finder) command(text, folder string, depth int) {
	if depth > maxDepth {
		f.found[Unread] = true
		return
	}
	if f.tires(len(text) / 16) {
		return
	}
	r := Command(text, folder)
	if r.Unread {
		f.found[Unread] = true
	}
	f.found[Destroys] = f.found[Destroys] || destroying.MatchString(strings.Join(r.values, "\n"))
	for _, a := range r.Acts {
		switch a.Kind {
		case Run:
			f.run(a, depth)
		case Write:
			f.touches(a, a.Words[0], true)
		case Read:
			f.touches(a, a.Words[0], false)
		}
	}
	queries := func(a Act) bool { return a.Kind == Run && slices.Contains(databases, path.Base(a.Words[0])) }
	if slices.ContainsFunc(r.Acts, queries) && dropsData.MatchString(text) {
		f.found[Destroys] = true
	}
}

var (
	databases = strings.Fields("psql mysql mariadb sqlite3 sqlite mongosh mongo clickhouse-client duckdb cockroach " +
		"sqlcmd bq snowsql cqlsh usql pgcli mycli turso d1 wrangler")
	// dropsData matches statements that drop data; a DELETE without a condition is one.
	dropsData = regexp.MustCompile(`(?is)\bdrop\s+(table|database|schema|index|view|column|collection|user|role)\b|` +
		`\btruncate\b|` +
		`\bdelete\s+from\s+[\w."]+\s*(;|"|'|$)|\.(drop|dropDatabase|deleteMany|remove)\(`)
	// Code in other languages is only searched for what destroys or runs commands.
	destroying = regexp.MustCompile(`rmtree|rmSync|rm_rf|rimraf|removedirs|remove_dir_all|RemoveAll|\brm\s+-\w*[rR]|` +
		`fs\.rmdir|FileUtils\.rm|(?i)\bdrop\s+table`)
	running = regexp.MustCompile(`child_process|subprocess|\bos\.(system|popen|exec|spawn)|\bsystem\s*\(|\bpopen\s*\(|` +
		`\bexec\s*[(\s]\s*["'(]|` + "`")
)

// texts are programs, and subcommands of git, whose words are only text.
var texts = strings.Fields("echo printf cat gh glab grep egrep fgrep rg ag ack commit tag log notes merge")

// wrappers run the program that some of their words name.
var wrappers = strings.Fields("sudo doas su runuser pkexec setpriv env nice nohup timeout gtimeout time xargs exec " +
	"command builtin stdbuf setsid ionice busybox toybox chroot unshare nsenter watch " +
	"parallel find fd ssh docker podman nerdctl docker-compose kubectl oc eval trap strace " +
	"ltrace script flock systemd-run caffeinate npx pnpx bunx uvx mise direnv dotenv poetry " +
	"uv pipenv bundle alias firejail proot fakeroot entr at batch crontab coproc yarn pnpm " +
	"npm heroku fly op")

var shellNames = strings.Fields("sh bash zsh dash ksh ash fish mksh rbash")

var interpreters = strings.Fields("python python2 python3 node nodejs deno bun perl ruby php lua osascript pwsh powershell " +
	"awk gawk mawk tclsh Rscript")

// run adds the risks of one program.
func (f *finder) run(a Act, depth int) {
	if len(a.Words) == 0 || f.tires(len(a.Words)) {
		return
	}
	name, args := strings.TrimPrefix(strings.ToLower(path.Base(a.Words[0])), "="), a.Words[1:]
	if strings.Contains(a.Words[0], Computed) {
		f.found[Unread] = true
		return
	}
	for _, row := range risky {
		if row.fits(name, args) && !f.scratchOnly(row, name, a) {
			f.found[row.risk] = true
		}
	}
	f.files(name, a)
	wraps := slices.Contains(wrappers, name)
	isText := func(word string) bool { return slices.Contains(texts, word) }
	if !isText(name) && (name != "git" || !slices.ContainsFunc(args, isText)) {
		f.found[Destroys] = f.found[Destroys] || destroying.MatchString(a.Stdin) ||
			slices.ContainsFunc(args, func(w string) bool { return strings.ContainsAny(w, " \t\n") && destroying.MatchString(w) })
		if i := slices.Index(args, "rm"); i >= 0 && !wraps && name != "git" && depth < maxDepth {
			f.run(Act{Kind: Run, Words: args[i:], at: a.at}, depth+1)
		}
	}
	switch {
	case slices.Contains(shellNames, name):
		f.shell(a, depth)
	case slices.Contains(interpreters, name):
		code := a.Stdin + "\n" + strings.Join(args, "\n")
		f.found[Destroys] = f.found[Destroys] || destroying.MatchString(code)
		f.found[Unread] = f.found[Unread] || running.MatchString(code) || a.Piped && len(args) == 0
	case name == "source" || name == ".":
		f.found[Unread] = f.found[Unread] || len(args) > 0 && strings.HasPrefix(args[0], Computed)
	case wraps && depth < maxDepth:
		f.found[Unread] = f.found[Unread] || a.Piped && slices.Contains([]string{"at", "batch", "crontab"}, name)
		if name == "eval" {
			f.command(strings.Join(args, " "), f.folder(a), depth+1)
			return
		}
		for i, word := range args {
			if strings.ContainsAny(word, " \t\n") {
				if _, value, is := strings.Cut(word, "="); is && name == "alias" {
					word = value
				}
				f.certain(func(f *finder) { f.command(word, f.folder(a), depth+1) })
			}
			if i < 40 && !strings.HasPrefix(word, "-") && slices.Contains(programNames, strings.ToLower(path.Base(word))) {
				f.run(Act{Kind: Run, Words: args[i:], at: a.at, Stdin: a.Stdin, Piped: a.Piped}, depth+1)
			}
		}
	case name == "git":
		for _, word := range args { // an alias that is a command
			if _, text, is := strings.Cut(word, "=!"); is {
				f.command(text, f.folder(a), depth+1)
			}
		}
	}
}

// programNames are the programs that a wrapper's words are searched for.
var programNames = func() []string {
	names := slices.Concat(wrappers, shellNames, interpreters, databases,
		strings.Fields("rm rmdir mv cp ln tee sed unlink git python* mkdir touch chmod chown dd tar curl wget"))
	for _, row := range risky {
		names = append(names, strings.Split(row.program, "|")...)
	}
	return names
}()

func (f *finder) folder(a Act) string { return a.at[0] }

// certain adds risks without [Unread].
func (f *finder) certain(find func(*finder)) {
	before := f.found[Unread]
	find(f)
	f.found[Unread] = before || f.spent > mostWork
}

// shell adds the risks of a shell: those of the command that it is given, or that it is given one that nobody sees.
func (f *finder) shell(a Act, depth int) {
	script := ""
	for i, word := range a.Words[1:] {
		switch {
		case strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.Contains(word, "c") && len(a.Words) > i+2:
			f.command(a.Words[i+2], f.folder(a), depth+1)
			return
		case !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "+") && script == "":
			script = word
		}
	}
	switch {
	case script != "":
		f.found[Unread] = f.found[Unread] || strings.HasPrefix(script, Computed)
		return
	case a.Stdin != "":
		f.command(a.Stdin, f.folder(a), depth+1)
		return
	}
	f.found[Unread] = f.found[Unread] || a.Piped
}

// files adds the risks of the files that a program writes or removes, and of those whose names say that they hold credentials.
func (f *finder) files(name string, a Act) {
	args := a.Words[1:]
	var operands []string
	recursive := false
	for i, word := range args {
		switch {
		case word == "--":
			operands = append(operands, args[i+1:]...)
		case strings.HasPrefix(word, "-") && len(word) > 1:
			recursive = recursive || optionFits("-r", word) || optionFits("-R", word) || optionFits("--recursive", word)
			continue
		default:
			operands = append(operands, word)
			continue
		}
		break
	}
	writes := func(words []string) {
		for _, word := range words {
			f.touches(a, word, true)
		}
	}
	switch name {
	case "rm", "srm", "trash":
		writes(operands)
		for _, word := range operands {
			if recursive && !f.isScratch(a, word) {
				f.found[Destroys] = true
			}
		}
	case "rmdir", "unlink", "touch", "mkdir", "truncate", "tee", "mv", "shred", "mkfifo":
		writes(operands)
	case "chmod", "chown", "chgrp":
		writes(operands[min(1, len(operands)):])
	case "cp", "ln", "install", "rsync", "scp":
		writes(operands[max(0, len(operands)-1):])
		if value := valueOfOption(args, "-t", "--target-directory"); value != "" {
			writes([]string{value})
		}
	case "sed", "perl":
		if slices.ContainsFunc(args, func(w string) bool {
			return strings.HasPrefix(w, "-i") || strings.HasPrefix(w, "--in-place") || name == "perl" && optionFits("-i", w)
		}) {
			writes(edited(args))
		}
	case "dd":
		for _, word := range args {
			if file, is := strings.CutPrefix(word, "of="); is {
				writes([]string{file})
			}
		}
	case "curl":
		writes(nonEmpty(valueOfOption(args, "-o", "--output"), valueOfOption(args, "", "--output-dir")))
	case "wget":
		writes(nonEmpty(valueOfOption(args, "-O", "--output-document"), valueOfOption(args, "-P", "--directory-prefix")))
	case "go", "gcc", "cc", "g++", "clang", "clang++", "rustc", "sort":
		writes(nonEmpty(valueOfOption(args, "-o", "--output")))
	case "tar":
		writes(nonEmpty(valueOfOption(args, "-C", "--directory")))
	case "unzip":
		writes(nonEmpty(valueOfOption(args, "-d", "")))
	}
	if slices.Contains([]string{"echo", "printf", "git", "gh", "grep", "rg", "go", "test", "[", "find", "ls"}, name) {
		return
	}
	for _, word := range operands {
		if !strings.ContainsAny(word, " \n") {
			f.touches(a, word, false)
		}
	}
}

// edited returns the files that sed or perl edits in place: the operands, except the script and the values of -e and -f.
func edited(args []string) (files []string) {
	script := false
	for i, word := range args {
		switch {
		case i > 0 && (optionFits("-e", args[i-1]) || optionFits("-f", args[i-1]) || args[i-1] == "--expression"):
			script = true
		case word == "" || strings.HasPrefix(word, "-"):
		default:
			files = append(files, word)
		}
	}
	if !script {
		files = files[min(1, len(files)):]
	}
	return files
}

func nonEmpty(words ...string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}

// valueOfOption returns the value of an option, in the same word or the next.
func valueOfOption(args []string, short, long string) string {
	for i, word := range args {
		switch value, is := strings.CutPrefix(word, long+"="); {
		case is && long != "":
			return value
		case (word == short && short != "" || word == long && long != "") && i+1 < len(args):
			return args[i+1]
		case short != "" && len(word) > 2 && strings.HasPrefix(word, short) && !strings.HasPrefix(word, "--"):
			return word[2:]
		}
	}
	return ""
}

// touches adds the risks of reading or writing a file.
func (f *finder) touches(a Act, name string, writes bool) {
	if isSecret(name) {
		f.found[Secrets] = true
	}
	if !writes || harmlessDevice(name) {
		return
	}
	if strings.HasPrefix(name, "/dev/") && !strings.HasPrefix(name, "/dev/shm/") {
		f.found[Destroys] = true
	}
	if f.root != "" && f.isOutside(a, name) { // else there is no workspace to leave
		f.found[Outside] = true
	}
	if isSetting(name) {
		f.found[Rights] = true
	}
}

func harmlessDevice(name string) bool {
	return strings.HasPrefix(name, "/dev/fd/") ||
		slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "-", ""}, name)
}

// places returns the absolute, clean names that a word may stand for; known is false if it may be anywhere.
func (f *finder) places(a Act, name string) (all []string, known bool) {
	if unplaced(name) || len(name) > 1 && name[1] == ':' && !strings.HasPrefix(name, "/") {
		return nil, false
	}
	for _, folder := range a.at {
		switch {
		case strings.HasPrefix(name, "/"):
		case unplaced(folder):
			return nil, false
		case !strings.HasPrefix(folder, "/"): // an unknown one
			folder = path.Join(f.workspace(), folder)
		}
		all = append(all, path.Clean(under(folder, name)))
	}
	return all, true
}

func (f *finder) workspace() string {
	if f.root == "" {
		return "/folder" // an unknown one
	}
	return path.Clean(f.root)
}

// isOutside reports whether a name may be outside the workspace and the folders of temporary files.
func (f *finder) isOutside(a Act, name string) bool {
	places, known := f.places(a, name)
	return !known || slices.ContainsFunc(places, func(at string) bool {
		return at != f.workspace() && !strings.HasPrefix(at, f.workspace()+"/") && !isTemporary(at)
	})
}

func isTemporary(at string) bool {
	return slices.ContainsFunc([]string{"/tmp/", "/var/tmp/", "/private/tmp/", "/var/folders/", "/dev/shm/"}, func(in string) bool {
		rest, is := strings.CutPrefix(at, in)
		return is && strings.Trim(rest, "*?") != ""
	})
}

// scratch are the folders that a build makes again.
var scratch = strings.Fields("node_modules dist build out target bin obj coverage htmlcov .next .nuxt .turbo .cache " +
	".parcel-cache .svelte-kit .output __pycache__ .pytest_cache .mypy_cache .ruff_cache .tox " +
	".venv venv .gradle .dart_tool DerivedData tmp temp .tmp .eggs *.egg-info *.dSYM _build " +
	".terraform test-results playwright-report storybook-static .angular cmake-build-* vendor " +
	".vite .nyc_output")

// isScratch reports whether a name is a build folder of the workspace, within one, or temporary, wherever it is relative to.
func (f *finder) isScratch(a Act, name string) bool {
	places, known := f.places(a, name)
	return known && !slices.ContainsFunc(places, func(at string) bool {
		rest, inside := strings.CutPrefix(at, f.workspace()+"/")
		if !inside { // a workspace may be in a folder of temporary files itself
			return !isTemporary(at) || strings.HasPrefix(f.workspace()+"/", strings.TrimRight(at, "*?")+"/")
		}
		return !slices.ContainsFunc(strings.Split(rest, "/"), func(part string) bool { return named(scratch, part) })
	})
}

// scratchOnly reports whether what a row finds happens only in build folders.
func (f *finder) scratchOnly(row riskRow, name string, a Act) bool {
	if row.risk != Destroys || name != "find" && name != "rimraf" && name != "truncate" && name != "git" && name != "dd" {
		return false
	}
	args := a.Words[1:]
	switch name {
	case "git":
		return slices.Contains(args, "clean") && slices.ContainsFunc(args, func(w string) bool { return optionFits("-n", w) || w == "--dry-run" })
	case "dd", "truncate": // files touches their files
		return true
	}
	some := false
	for _, word := range args {
		if strings.HasPrefix(word, "-") {
			break
		}
		some = true
		if !f.isScratch(a, word) {
			return false
		}
	}
	return some
}

// isSecret reports whether a name is that of a file that holds credentials.
func isSecret(name string) bool {
	lower := strings.ToLower(path.Clean(name))
	if slices.Contains([]string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers"}, lower) {
		return true
	}
	parts := strings.Split(lower, "/")
	base := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		if slices.Contains([]string{".ssh", ".aws", ".gnupg", ".azure", ".password-store"}, part) {
			return !slices.Contains([]string{"known_hosts", "config"}, base)
		}
	}
	if slices.Contains([]string{".ssh", ".aws", ".gnupg", ".password-store"}, base) {
		return true
	}
	for _, file := range []string{".docker/config.json", ".kube/config", "gcloud/application_default_credentials.json"} {
		if strings.HasSuffix(lower, file) {
			return true
		}
	}
	example := slices.ContainsFunc([]string{"example", "sample", "template", "dist", "pub", "schema"}, func(s string) bool {
		return strings.HasSuffix(base, "."+s)
	})
	if strings.ContainsAny(base, "*?[") && !strings.ContainsAny(base[:1], "*?[") { // a pattern of names that a shell expands
		return slices.ContainsFunc([]string{".env", ".netrc", ".npmrc", ".git-credentials", "credentials", "id_rsa", "id_ed25519"},
			func(secret string) bool { return match(base, secret) })
	}
	return !example && named(secretNames, base)
}

var secretNames = strings.Fields(".env .env.* .netrc _netrc .npmrc .pypirc .git-credentials .pgpass .my.cnf credentials " +
	"credentials.json credentials.y*ml credentials.toml credentials.db secrets.json " +
	"secrets.y*ml secrets.toml *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx id_rsa* " +
	"id_ed25519* id_ecdsa* id_dsa* .vault-token service-account*.json .htpasswd")

// isSetting reports whether a file says what an agent may do, or what git runs.
func isSetting(name string) bool {
	lower := strings.ToLower(path.Clean("/" + name))
	in, base := path.Split(lower)
	switch path.Base(in) {
	case ".claude", ".gemini", ".codex", ".cursor", ".copilot", ".opencode":
		return named([]string{"settings*.json", "config.toml", "hooks.json", "mcp.json", "permissions.json", "opencode.json*"}, base)
	case ".git":
		return base == "config"
	}
	return strings.Contains(lower, "/.git/hooks/") || strings.HasSuffix(lower, "/.git/hooks")
}

//go:embed risky.txt
var riskyText string

type riskRow struct {
	risk    Risk
	program string
	words   []string
}

var risky = func() (all []riskRow) {
	named := map[string]Risk{"destroys": Destroys, "rewrites": Rewrites, "rights": Rights, "secrets": Secrets}
	for line := range strings.Lines(riskyText) {
		if f := strings.Fields(line); len(f) > 1 && f[0] != "#" {
			all = append(all, riskRow{named[f[0]], f[1], f[2:]})
		}
	}
	return all
}()

// fits reports whether a program with these arguments is one of the row.
func (r riskRow) fits(name string, args []string) bool {
	return named(strings.Split(r.program, "|"), name) && !slices.ContainsFunc(r.words, func(word string) bool {
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
	case strings.HasPrefix(pattern, "--") && len(pattern) > 2 && len(arg) > 3 && strings.HasPrefix(pattern, arg):
		return true
	}
	return match(pattern, arg)
}

// match reports whether a pattern matches a text, in which a star also matches slashes.
func match(pattern, text string) bool {
	flat := func(s string) string { return strings.ReplaceAll(s, "/", "\x01") }
	ok, err := path.Match(flat(pattern), flat(text))
	return ok && err == nil
}
