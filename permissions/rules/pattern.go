package rules

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
)

// kind is what a pattern is about.
type kind string

const (
	runs    kind = "run"
	reads   kind = "read"
	writes  kind = "write"
	fetches kind = "fetch"
	tools   kind = "tool"
)

// pattern is one line of a rule: "run git push origin *".
type pattern struct {
	text   string
	rule   *compiled
	kind   kind
	words  []word   // of runs
	rest   bool     // of runs: any number of plain words follow
	opts   []option // of runs
	head   int      // of runs: how many words come before any option
	path   glob     // of reads and writes
	name   string   // of fetches and tools, in lower case for fetches
	exact  bool     // it has no wildcard
	starts []string // of runs: the programs, in lower case for deny and ask
}

// word is what one word of a command may be: one of these.
type word []wildcard

// wildcard is a text with at most one gap.
type wildcard struct {
	before, after string
	star, digits  bool
}

// option is an option that may be there, with its value if it has one.
type option struct {
	name  word
	value word // nil: none
}

// parse reads a pattern. effect decides what it may be.
func parse(text string, e Effect) (*pattern, error) {
	k, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	rest = strings.TrimSpace(rest)
	p := &pattern{text: text, kind: kind(k)}
	switch {
	case !slices.Contains([]kind{runs, reads, writes, fetches, tools}, p.kind):
		return nil, fmt.Errorf("%q begins with no kind of act; write run, read, write, fetch or tool, as in run git status", text)
	case rest == "":
		return nil, fmt.Errorf("%q says nothing about what; write it as in run git status, read /srv/code/** or fetch api.example.org", text)
	case !utf8.ValidString(rest) || strings.ContainsFunc(rest, isInvisible):
		return nil, fmt.Errorf("%q has control or invisible characters, and no command with such is read; leave them out", text)
	}
	switch p.kind {
	case runs:
		return p, p.parseRun(rest, e)
	case reads, writes:
		return p, p.parsePath(rest)
	case fetches:
		return p, p.parseHost(rest)
	}
	return p, p.parseTool(rest, e)
}

// isInvisible reports whether a character is a control one, or shows nothing of its own.
func isInvisible(r rune) bool { return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.M) }

// split cuts a text at blanks outside quotes and brackets. quoted says of each part that it was quoted, so has no wildcard.
func split(text string) (parts []string, quoted []bool, err error) {
	var b strings.Builder
	in, open, was, some := byte(0), false, false, false
	flush := func() {
		if some || was {
			parts, quoted = append(parts, b.String()), append(quoted, was)
		}
		b.Reset()
		was, some = false, false
	}
	for i := range len(text) {
		switch at := text[i]; {
		case in != 0 && at == in:
			in = 0
		case in != 0:
			b.WriteByte(at)
		case !open && (at == '\'' || at == '"'):
			in, was = at, true
		case at == '[' && !some && !was && !open:
			open, some = true, true
			b.WriteByte(at)
		case at == ']' && open:
			open = false
			b.WriteByte(at)
			flush()
		case at == ' ' && !open:
			flush()
		default:
			some = true
			b.WriteByte(at)
		}
	}
	if flush(); in != 0 || open {
		return nil, nil, errors.New("a quote or bracket is not closed; close it")
	}
	return parts, quoted, nil
}

var errNoProgram = errors.New("it begins with no program; write one, as in run git status")

func (p *pattern) parseRun(text string, e Effect) error {
	parts, quoted, err := split(text)
	if err != nil {
		return err
	}
	for i, part := range parts {
		switch {
		case quoted[i]:
			p.words = append(p.words, word{{before: part}})
		case part[0] == '[':
			o, err := parseOption(part)
			if err != nil {
				return err
			}
			if len(p.words) == 0 {
				return errNoProgram
			}
			p.opts = append(p.opts, o)
		case part == "...":
			if p.rest || e != Allow {
				return errors.New("... stands at the end of an allow rule, once: a deny or ask rule covers more words anyway; leave it out")
			}
			p.rest = true
		case p.rest:
			return fmt.Errorf("%q stands after ..., which covers every word to the end; put it before, or in brackets", part)
		default:
			w, err := parseWord(part)
			if err != nil {
				return err
			}
			p.words = append(p.words, w)
		}
	}
	if len(p.words) == 0 {
		return errNoProgram
	}
	for _, w := range p.words[0] {
		if w.star || w.digits || w.before == "" {
			return errors.New("any program would be too much; name it, as in run git status")
		}
		p.starts = append(p.starts, w.before)
	}
	p.head = 1
	if hasSubcommands(p.starts) {
		p.head = 2
	}
	p.exact = !p.rest && !slices.ContainsFunc(p.words, word.open) &&
		!slices.ContainsFunc(p.opts, func(o option) bool { return o.name.open() || o.value.open() })
	if e == Allow {
		return p.mayAllow()
	}
	for i, name := range p.starts {
		p.starts[i] = strings.ToLower(path.Base(name))
	}
	return nil
}

func parseOption(text string) (o option, err error) {
	inner := strings.Fields(text[1 : len(text)-1])
	if len(inner) == 0 || len(inner) > 2 || !strings.HasPrefix(inner[0], "-") {
		return o, fmt.Errorf("%s is no option with at most one value; write it as in [-v] or [-n *]", text)
	}
	if o.name, err = parseWord(inner[0]); err == nil && len(inner) == 2 {
		o.value, err = parseWord(inner[1])
	}
	return o, err
}

func parseWord(text string) (w word, err error) {
	for _, one := range strings.Split(text, "|") {
		before, after, star := strings.Cut(one, "*")
		c := wildcard{before: before, after: after, star: star}
		if digits, is := strings.CutSuffix(one, "#"); is && !star {
			c = wildcard{before: digits, digits: true}
		}
		switch {
		case one == "":
			return nil, fmt.Errorf("%q has an empty alternative; write each as in go test|vet", text)
		case strings.Contains(after, "*"):
			return nil, fmt.Errorf("%q has more than one * in a word; one stands for the rest of it", text)
		case strings.ContainsAny(one, "[]{}?\\`$;&<>()"):
			return nil, fmt.Errorf("%q has a character that only a shell gives a meaning; write it in single quotes if the word has it", text)
		}
		w = append(w, c)
	}
	return w, nil
}

// open reports whether a word has a wildcard. Digits are none.
func (w word) open() bool { return slices.ContainsFunc(w, func(c wildcard) bool { return c.star }) }

// fits reports whether a word of a command is one of these, and whether by a wildcard.
func (w word) fits(text string) (ok, wild bool) {
	for _, c := range w {
		switch {
		case c.digits:
			ok = c.fitsNumber(text)
		case !c.star:
			ok = text == c.before
		case c.before == "" && c.after == "":
			ok, wild = plain(text), true
		default:
			gap, is := between(text, c.before, c.after)
			ok = is && (c.before != "" || plain(text)) && !strings.Contains(gap, "/") && !strings.Contains(text, acts.Computed)
			wild = true
		}
		if ok {
			return true, wild
		}
	}
	return false, false
}

// fitsNumber reports whether a word is the text before # and a number.
func (c wildcard) fitsNumber(text string) bool {
	n, is := strings.CutPrefix(text, c.before)
	return is && n != "" && strings.Trim(n, "0123456789") == ""
}

// between returns what a text has between its beginning and its end.
func between(text, before, after string) (gap string, ok bool) {
	rest, begins := strings.CutPrefix(text, before)
	gap, ends := strings.CutSuffix(rest, after)
	return gap, begins && ends
}

// plain reports whether a word may stand for *: it is no option and no prefix gives it another meaning.
func plain(text string) bool {
	return text != "" && !strings.ContainsRune("-+:@=~!|", rune(text[0])) &&
		!strings.Contains(text, "::") && !strings.Contains(text, acts.Computed)
}

// named reports whether a text is one of the literal alternatives.
func (w word) named(text string) bool {
	return slices.ContainsFunc(w, func(c wildcard) bool { return !c.star && !c.digits && c.before == text })
}

// covers reports whether an allow pattern names every word of a command. wild are the words that a wildcard covers.
func (p *pattern) covers(words []string) (wild []int, ok bool) {
	i := 0
	for j := 0; j < len(words); {
		if i < len(p.words) {
			fits, open := p.words[i].fits(words[j])
			if fits && !open {
				i, j = i+1, j+1
				continue
			}
			if i < p.head {
				return nil, false
			}
		}
		if n, values := p.matchOption(words[j:]); n > 0 {
			for _, v := range values {
				wild = append(wild, j+v)
			}
			j += n
			continue
		}
		switch {
		case i < len(p.words):
			if fits, _ := p.words[i].fits(words[j]); !fits {
				return nil, false
			}
			i++
		case !p.rest || !plain(words[j]):
			return nil, false
		}
		wild, j = append(wild, j), j+1
	}
	return wild, i == len(p.words)
}

// matchOption returns how many words an option at the beginning of these has, 0 if there is none that may be there, and which of them a
// wildcard covers.
func (p *pattern) matchOption(words []string) (n int, wild []int) {
	if len(words[0]) < 2 || words[0][0] != '-' {
		return 0, nil
	}
	for _, o := range p.opts {
		fits, open := o.name.fits(words[0])
		switch {
		case fits && o.value == nil:
			if open {
				wild = []int{0}
			}
			return 1, wild
		case fits && len(words) > 1:
			if right, open := o.value.fits(words[1]); right {
				if open {
					wild = []int{1}
				}
				return 2, wild
			}
		case o.value != nil && strings.HasPrefix(words[0], "--"):
			if name, value, joined := strings.Cut(words[0], "="); joined && o.name.named(name) {
				if right, open := o.value.fits(value); right {
					if open {
						wild = []int{0}
					}
					return 1, wild
				}
			}
		}
	}
	if strings.HasPrefix(words[0], "--") {
		return 0, nil
	}
	for _, letter := range words[0][1:] { // -la is -l -a
		if !slices.ContainsFunc(p.opts, func(o option) bool { return o.value == nil && o.name.named("-"+string(letter)) }) {
			return 0, nil
		}
	}
	return 1, nil
}

// catches reports whether a deny or ask pattern is about a command: its program, and its named words and options in any place.
func (p *pattern) catches(words []string) bool {
	if len(words) == 0 || !slices.ContainsFunc(programNames(words[0]), func(name string) bool { return slices.Contains(p.starts, name) }) {
		return false
	}
	if baseName(words[0]) == "tar" && len(words) > 1 && words[1] != "" { // its first word may be options without a dash
		words = append([]string{words[0], "-" + strings.TrimPrefix(words[1], "-")}, words[1:]...)
	}
	subcommand := ""
	if len(p.words) > 1 && len(p.words[1]) == 1 {
		subcommand = p.words[1][0].before
	}
	return !slices.ContainsFunc(p.words[1:], func(w word) bool {
		return !slices.ContainsFunc(w, func(c wildcard) bool {
			return c.star && c.before == "" && c.after == "" ||
				slices.ContainsFunc(words[1:], func(text string) bool { return c.catches(text, p.starts[0], subcommand) })
		})
	})
}

// catches reports whether a word of a command is, or has, this word: -rf has -r, and --forc is the beginning of --force.
func (c wildcard) catches(text, program, subcommand string) bool {
	name, _, _ := strings.Cut(text, "=")
	switch {
	case c.digits:
		return c.fitsNumber(text)
	case c.star:
		_, is := between(text, c.before, c.after)
		return is
	case text == c.before:
		return true
	case len(c.before) == 2 && c.before[0] == '-' && strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") &&
		strings.Contains(name, c.before[1:]),
		strings.HasPrefix(name, "--") && name != "--" && strings.HasPrefix(c.before, name):
		return true
	}
	for _, other := range append(sameOptions[program], sameOptions[program+" "+subcommand]...) {
		same := strings.Split(other, "|")
		if slices.Contains(same, c.before) && slices.ContainsFunc(same, func(o string) bool {
			return o != c.before && wildcard{before: o}.catches(text, "", "")
		}) {
			return true
		}
	}
	return false
}

// sameOptions are options and subcommands with two names, by program and subcommand.
var sameOptions = map[string][]string{
	"rm": {"-r|-R|--recursive", "-f|--force", "-d|--dir"}, "cp": {"-r|-R|-a|--recursive|--archive", "-f|--force"}, "mv": {"-f|--force"},
	"chmod": {"-R|--recursive"}, "chown": {"-R|--recursive"}, "chgrp": {"-R|--recursive"}, "ln": {"-f|--force", "-s|--symbolic"},
	"git push": {"-f|--force", "-d|--delete"}, "git commit": {"-n|--no-verify", "-a|--all"}, "git clean": {"-f|--force"},
	"git branch": {"-f|--force", "-d|--delete|-D"}, "git checkout": {"-f|--force", "-B|-b"},
	"git switch": {"-f|--force|--discard-changes", "-C|-c"}, "git tag": {"-f|--force", "-d|--delete"},
	"git add": {"-f|--force", "-A|--all"}, "git rm": {"-f|--force"}, "git merge": {"-n|--no-verify"},
	"git stash": {"-u|--include-untracked", "-a|--all"}, "git fetch": {"-f|--force"}, "git worktree": {"-f|--force"},
	"docker rm": {"-f|--force", "-v|--volumes"}, "docker rmi": {"-f|--force"}, "docker run": {"-v|--volume", "-u|--user"},
	"curl": {"-o|--output", "-d|--data", "-T|--upload-file", "-X|--request", "-K|--config"}, "wget": {"-O|--output-document"},
	"sed": {"-i|--in-place"}, "tar": {"-C|--directory", "-x|--extract|--get", "-c|--create"},
	"make": {"-f|--file|--makefile", "-C|--directory"},
	"find": {"-exec|-execdir|-ok|-okdir"}, "psql": {"-c|--command", "-f|--file"},
	"npm": {"install|i|in|ins|inst|insta|instal|isnt|isnta|isntal|isntall|add",
		"run|run-script|rum|urn", "uninstall|un|unlink|remove|rm|r"},
	"npm install": {"-g|--global"}, "pip install": {"-e|--editable", "-U|--upgrade"},
}

// programNames are the names by which a deny or ask rule may mean a program: python3 for python3.11, and pip for pip3.
func programNames(program string) []string {
	names := []string{baseName(program)}
	if plain, version, is := strings.Cut(names[0], "."); is && strings.Trim(version, "0123456789.") == "" {
		names = append(names, plain)
	}
	if strings.TrimRight(names[len(names)-1], "0123456789") == "pip" {
		names = append(names, "pip")
	}
	return names
}

// baseName is a program's name without its folder, in lower case.
func baseName(program string) string {
	return strings.TrimSuffix(strings.ToLower(path.Base(program)), ".exe")
}

// glob is a pattern of paths.
type glob struct {
	here   bool     // relative to the workspace
	prefix string   // what a path begins with, before any wildcard
	parts  []string // between slashes; ** stands for any number of them
}

func (p *pattern) parsePath(text string) error {
	if parts, quoted, _ := split(text); len(parts) == 1 && quoted[0] {
		text = parts[0]
	}
	rest, here := strings.CutPrefix(text, "./")
	switch {
	case strings.HasPrefix(text, "~"):
		return fmt.Errorf("%q names the home of whoever asks; write the whole path, as in /home/fay/code/**", text)
	case !here && !strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "**/"):
		return fmt.Errorf("%q is in no folder; write the whole path, ./NAME for one in the workspace, or **/NAME for one anywhere", text)
	case strings.ContainsAny(text, "?[]{}\\"):
		return fmt.Errorf("%q has a wildcard that paths do not have here; * stands for a part of a name and ** for any folders", text)
	}
	whole := strings.TrimPrefix(rest, "/")
	p.path = glob{here: here, parts: strings.Split(whole, "/")}
	fixed := true
	for i, part := range p.path.parts {
		switch {
		case part == "" && whole == "" && !here:
			return errors.New("/ is every file of the machine; name a folder, as in /srv/code/**")
		case part == "" || part == "." || part == "..":
			return fmt.Errorf("%q is not clean, so it would match nothing; leave out //, /./, /../ and a slash at the end", text)
		case strings.Contains(part, "**") && part != "**", strings.Count(part, "*") > 1 && part != "**":
			return fmt.Errorf("%q has more than one * in the part %q; ** stands alone between slashes", text, part)
		case strings.Contains(part, "*") && fixed:
			fixed = false
			p.path.prefix = "/" + strings.Join(p.path.parts[:i], "/")
		}
	}
	if p.exact = !strings.Contains(text, "*"); p.exact {
		p.path.prefix = "/" + whole
	}
	return nil
}

// key returns the last part without a wildcard, in lower case: every name that fits has it. It is empty if there is none.
func (g glob) key() string {
	for _, part := range slices.Backward(g.parts) {
		if !strings.Contains(part, "*") {
			return strings.ToLower(part)
		}
	}
	return ""
}

// fits reports whether the pattern fits an absolute, clean path. root is the workspace. With fold, capital letters are as small ones:
// some file systems do not tell them apart.
func (g glob) fits(name, root string, fold bool) bool {
	if g.here {
		rest, in := strings.CutPrefix(name, strings.TrimSuffix(root, "/"))
		if root == "" || !in || rest != "" && rest[0] != '/' {
			return false
		}
		name = cmp.Or(rest, "/")
	}
	if len(name) < len(g.prefix) || !same(name[:len(g.prefix)], g.prefix, fold) {
		return false
	}
	parts := strings.Split(strings.TrimPrefix(name, "/"), "/")
	if name == "/" {
		parts = nil
	}
	return fitsParts(g.parts, parts, fold)
}

// fitsAll reports whether the pattern fits every file of the workspace, or of the machine.
func (g glob) fitsAll() bool {
	return len(g.parts) > 0 && !slices.ContainsFunc(g.parts, func(part string) bool { return part != "**" && part != "*" })
}

func same(a, b string, fold bool) bool { return a == b || fold && strings.EqualFold(a, b) }

// fitsParts matches parts of a path. The folder itself fits FOLDER/**.
func fitsParts(pattern, parts []string, fold bool) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for i := range len(parts) + 1 {
				if fitsParts(pattern[1:], parts[i:], fold) {
					return true
				}
			}
			return false
		}
		if len(parts) == 0 {
			return false
		}
		before, after, star := strings.Cut(pattern[0], "*")
		part := parts[0]
		switch {
		case !star && !same(part, before, fold),
			star && (len(part) < len(before)+len(after) ||
				!same(part[:len(before)], before, fold) || !same(part[len(part)-len(after):], after, fold)):
			return false
		}
		pattern, parts = pattern[1:], parts[1:]
	}
	return len(parts) == 0
}

var hostName = regexp.MustCompile(`^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)

func (p *pattern) parseHost(text string) error {
	text = strings.ToLower(text)
	if !hostName.MatchString(text) || strings.Contains(text, "..") {
		return fmt.Errorf("%q is no host; write its name without a scheme and path, as in api.example.org, *.example.org or localhost:8080", text)
	}
	for _, port := range []string{":80", ":443"} {
		text = strings.TrimSuffix(text, port)
	}
	p.name, p.exact = text, !strings.Contains(text, "*")
	return nil
}

// fitsHost reports whether a host, with its port if it is not a usual one, is meant.
func (p *pattern) fitsHost(host string) bool {
	under, wild := strings.CutPrefix(p.name, "*")
	return host == p.name || wild && strings.HasSuffix(host, under) && host != under
}

func (p *pattern) parseTool(text string, e Effect) error {
	server, name, named := strings.Cut(text, "/")
	p.name, p.exact = text, !strings.Contains(text, "*")
	switch _, known := permissions.KnownEffect(text); {
	case strings.ContainsAny(text, " []{}?\\") || named && (server == "" || name == "" || strings.Contains(server, "*")):
		return fmt.Errorf("%q is no tool; write SERVER/NAME, as in github/get_*, or the name of a tool that has no server", text)
	case e == Allow && (text == "*" || !named && !p.exact):
		return fmt.Errorf("%q would allow shells too; name the tool, or its server as in github/*", text)
	case e == Allow && permissions.FollowsFiles(text):
		return fmt.Errorf("%s does what files say that nobody has seen, so it is asked about each time; leave it out", text)
	case e == Allow && !named && known && permissions.EffectOf(text) != permissions.DoesNetwork:
		return fmt.Errorf("%s runs commands or touches files, so say which: write run, read or write rules, as in run git status", text)
	}
	return nil
}

// fitsTool reports whether a tool is meant. A wildcard does not stand for a shell.
func (p *pattern) fitsTool(dialect, tool string, e Effect) bool {
	if e != Allow && permissions.MeansTool(dialect, []string{p.name}, tool) {
		return true
	}
	if p.exact {
		return tool == p.name && (e != Allow || !permissions.FollowsFiles(tool))
	}
	fits, _ := permissions.MatchName(p.name, tool)
	return fits && (e != Allow || !permissions.RunsCode(filepath.Base(tool)))
}
