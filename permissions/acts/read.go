// Package acts reads what a tool call does: which programs a command runs, with which words, and which files it reads
// and writes. Anything that it cannot read with certainty, as every shell would, is a doubt, and a call with a doubt
// never counts as harmless.
//
// It runs nothing and reads no file itself: the caller resolves names ([Workspace]).
package acts

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Kind is what an act does.
type Kind string

// The kinds of acts.
const (
	Run   Kind = "run"
	Read  Kind = "read"
	Write Kind = "write"
	Enter Kind = "enter" // a folder in which the following commands run
)

// Act is one effect of a call.
type Act struct {
	Kind  Kind
	Words []string // of Run: the program and its arguments; else one name
	In    []string // the folders in which it may happen
	Stdin string   // of Run: the text of a here-document
	Piped bool     // of Run: it reads the output of another command
	Fed   bool     // of Run: its input is a file
	Env   []string // of Run: the variables that are set for it alone, as NAME=VALUE
	// Through are the commands around it that were read as what they run (timeout, sh -c), the outermost first.
	Through [][]string

	at   []string // the folders in which it may happen if a cd before && takes place
	left []string // those of In that such a cd has left
	from int      // where it begins in the text, in bytes
}

// Reading is the result of reading a command. Without doubts, the command does these acts and nothing else. With doubts, these are
// the acts that were found, also in loops, functions and substitutions; in their words, [Computed] stands for what is only known when
// the command runs.
type Reading struct {
	Acts   []Act
	Doubts []string
	Unread bool // a part exceeds the limits, or is no shell syntax
	// Unparsed are those parts. They are not among the acts; see [ReadLoosely].
	Unparsed []string

	values []string // of variables that are set
}

// Computed stands for the part of a word that is computed when the command runs. No text that is read has this character.
const Computed = "\x00"

// Limits of one command. The parser itself has none: deep nesting would end the process.
const (
	maxText    = 16 << 10
	maxOpening = 200
	maxActs    = 50
	maxDepth   = 4 // of sh -c within sh -c
	maxFolders = 8
	maxValue   = 256 // of a variable: values of values grow exponentially
	maxSeen    = 8   // of one word in a part that is read loosely
)

// ReadCommand reads the text of a command that a shell (sh, bash or zsh) runs in folder.
func ReadCommand(text, folder string) Reading {
	c := command{folders: []string{folder}, at: []string{folder}}
	c.read(text, 0)
	if len(c.Acts) == 0 || len(c.Acts) > maxActs {
		c.Unread = c.Unread || len(c.Acts) > maxActs
		c.doubt("it runs nothing, or more than %d commands", maxActs)
	}
	return c.Reading
}

// ReadLoosely yields what a text that cannot be parsed may run, for rules that deny or ask: each word with the rest of its part may be a
// program with its arguments. More is found than happens; quotes are ignored.
func ReadLoosely(text, folder string) iter.Seq[Act] {
	text = strings.NewReplacer("\\\n", "", "\\", "", "'", "", `"`, "", "$", "").Replace(text)
	return func(yield func(Act) bool) {
		seen := map[string]int{} // a word that comes again and again in a part is looked at a few times
		for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("\n\r;&|(){}`<>", r) }) {
			words := strings.FieldsFunc(part, func(r rune) bool {
				return r == ' ' || r == '=' || !unicode.IsPrint(r)
			})
			clear(seen)
			for i, word := range words {
				if seen[word]++; seen[word] <= maxSeen && !yield(Act{Kind: Run, Words: words[i:], In: []string{folder}}) {
					return
				}
			}
		}
	}
}

type command struct {
	Reading
	folders []string          // in which the next part may run: a cd may fail, or be in a subshell
	at      []string          // the same, without those from which a cd before && leads away
	entered []string          // where the last cd leads to
	vars    map[string]string // the variables of the text and their values, which may contain Computed
	stdin   string            // the here-document of the next program
	piped   bool
	fed     bool
	env     []string   // see [Act]
	through [][]string // see [Act]
	from    int        // see [Act]
}

func (c *command) doubt(format string, values ...any) {
	c.Doubts = append(c.Doubts, fmt.Sprintf(format, values...))
}

func (c *command) read(text string, depth int) {
	if why := whyNotParsed(text); why != "" || depth > maxDepth {
		c.Unread, c.Unparsed = true, append(c.Unparsed, text)
		c.doubt("%s", cmp.Or(why, "it has shells in shells"))
		return
	}
	f, err := parsed(text)
	if err == nil {
		err = findMisreading(f, text)
	}
	if err != nil {
		c.Unread, c.Unparsed = true, append(c.Unparsed, text)
		if parts := strings.ReplaceAll(text, "\\\n", "\n"); parts != text { // its lines go on, or do not
			c.Unparsed = append(c.Unparsed, parts)
		}
		c.doubt("it cannot be read: %v", err)
		return
	}
	outer := c.vars
	c.vars = variables(f)
	c.all(f.Stmts, depth)
	c.vars = outer
}

// variables returns what the variables that a text sets hold. A variable that may hold more than one value is computed.
func variables(f *syntax.File) map[string]string {
	all := map[string]string{}
	set := func(name, value string) {
		if old, twice := all[name]; twice && old != value || len(value) > maxValue {
			value = Computed
		}
		all[name] = value
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil && (n.Append || n.Index != nil || n.Array != nil || n.Naked) {
				set(n.Name.Value, Computed)
			} else if n.Name != nil {
				set(n.Name.Value, approximate(n.Value, all))
			}
		case *syntax.WordIter:
			set(n.Name.Value, anyOf(n.Items))
		case *syntax.ParamExp:
			if n.Param != nil && n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				set(n.Param.Value, Computed)
			}
		case *syntax.CallExpr:
			if len(n.Args) > 1 && slices.Contains([]string{"read", "readarray", "mapfile", "printf", "getopts", "unset"}, n.Args[0].Lit()) {
				for _, w := range n.Args[1:] {
					set(approximate(w, nil), Computed)
				}
			}
		}
		return true
	})
	return all
}

// whyNotParsed returns why a text is not even parsed.
func whyNotParsed(text string) string {
	if len(text) > maxText {
		return "it is too long"
	}
	opening := 0
	for _, r := range text {
		switch {
		case strings.ContainsRune("([{`", r):
			opening++
		case r == '\n', r == '\t', r == ' ', r != unicode.ReplacementChar && unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S):
		default:
			return fmt.Sprintf("it has the character U+%04X", r)
		}
	}
	if opening > maxOpening {
		return "it has too many brackets"
	}
	return ""
}

// findMisreading returns where shells read a text otherwise than the parser did, which takes a backslash at the end of a line for one that
// goes on also in a comment, and compares the end of a here-document with its lines as they are written.
func findMisreading(f *syntax.File, text string) (err error) {
	if strings.Contains(text, "$\\\n") {
		return errors.New("a line goes on after a dollar")
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Comment:
			if strings.HasSuffix(n.Text, "\\\n") {
				err = errors.New("a comment ends in a backslash")
			}
		case *syntax.Redirect:
			if n.Op == syntax.Hdoc || n.Op == syntax.DashHdoc {
				err = cmp.Or(err, findMisreadEnd(n, text))
			}
		}
		return true
	})
	return err
}

// findMisreadEnd returns why a here-document may end elsewhere.
func findMisreadEnd(r *syntax.Redirect, text string) error {
	end := text[r.Word.Pos().Offset():r.Word.End().Offset()]
	if strings.ContainsAny(strings.TrimPrefix(end, "\\"), "\\$`\n") {
		return errors.New("shells read the end of a here-document differently")
	}
	if strings.ContainsAny(end, `'"\`) || r.Hdoc == nil {
		return nil // no line of it goes on
	}
	body := text[r.Pos().Offset():r.Hdoc.End().Offset()]
	lines := strings.Split(strings.ReplaceAll(body, "\\\n", ""), "\n")
	if strings.Contains(body, "\\\n") && slices.ContainsFunc(lines[:len(lines)-1], func(line string) bool {
		return strings.TrimLeft(line, "\t") == end
	}) {
		return errors.New("a here-document ends in a line that goes on")
	}
	return nil
}

// endsInCD reports whether a command succeeds only after a cd, in the same shell, that is its last part.
func endsInCD(s *syntax.Stmt) bool {
	if s.Negated || s.Background || s.Coprocess {
		return false
	}
	switch n := s.Cmd.(type) {
	case *syntax.CallExpr:
		return len(n.Args) > 0 && n.Args[0].Lit() == "cd"
	case *syntax.BinaryCmd:
		return n.Op == syntax.AndStmt && endsInCD(n.Y)
	}
	return false
}

// inner reads the commands within a node, as in the body of a loop or in a substitution.
func (c *command) inner(n syntax.Node, depth int) {
	piped := c.piped
	syntax.Walk(n, func(at syntax.Node) bool {
		s, is := at.(*syntax.Stmt)
		if is {
			c.piped = piped
			c.stmt(s, depth)
		}
		return !is
	})
	c.piped = piped
}

func (c *command) all(stmts []*syntax.Stmt, depth int) {
	for _, s := range stmts {
		c.stmt(s, depth)
	}
}

func (c *command) stmt(s *syntax.Stmt, depth int) {
	if depth == 0 {
		c.from = int(s.Pos().Offset())
	}
	if s.Background || s.Coprocess || s.Disown {
		c.doubt("it goes on in the background")
	}
	before, fed := c.stdin, c.fed
	for _, r := range s.Redirs {
		c.fed = c.fed || r.Op == syntax.RdrIn || r.Op == syntax.RdrInOut || r.Op == syntax.DplIn
		if text := cmp.Or(r.Hdoc, r.Word); r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc {
			c.stdin = approximate(text, c.vars)
		}
	}
	switch n := s.Cmd.(type) {
	case *syntax.CallExpr:
		c.call(n, depth)
	case *syntax.BinaryCmd:
		if !slices.Contains([]syntax.BinCmdOperator{syntax.AndStmt, syntax.OrStmt, syntax.Pipe}, n.Op) {
			c.doubt("commands are joined by %s", n.Op)
		}
		c.stmt(n.X, depth)
		piped, at := c.piped, c.at
		c.piped = piped || n.Op == syntax.Pipe || n.Op == syntax.PipeAll
		if n.Op == syntax.AndStmt && endsInCD(n.X) && len(c.entered) > 0 {
			c.at = c.entered
		}
		c.stmt(n.Y, depth)
		c.piped = piped
		for _, folder := range at {
			if !slices.Contains(c.at, folder) {
				c.at = append(slices.Clip(c.at), folder)
			}
		}
	case *syntax.Subshell:
		c.all(n.Stmts, depth)
	case *syntax.Block:
		c.all(n.Stmts, depth)
	case *syntax.TimeClause:
		if n.Stmt == nil || n.PosixFormat {
			c.doubt("time has nothing to run, or options")
		}
		if n.Stmt != nil {
			c.stmt(n.Stmt, depth)
		}
	default:
		c.doubt("it has a part that no rule allows: %s", strings.TrimPrefix(fmt.Sprintf("%T", n), "*syntax."))
		if n != nil {
			c.inner(n, depth)
		}
	}
	c.stdin, c.fed = before, fed
	for _, r := range s.Redirs {
		c.redirect(r, depth)
	}
}

func (c *command) redirect(r *syntax.Redirect, depth int) {
	if r.N != nil && (len(r.N.Value) != 1 || strings.Trim(r.N.Value, "0123456789") != "") { // dash reads one digit
		c.doubt("a redirection keeps a descriptor")
	}
	name, known := literal(r.Word)
	if !known {
		name = approximate(r.Word, c.vars)
		c.inner(r, depth)
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc != nil && slices.ContainsFunc(r.Hdoc.Parts, func(p syntax.WordPart) bool {
			_, plain := p.(*syntax.Lit)
			return !plain
		}) {
			known = false
			c.inner(r.Hdoc, depth)
		}
	case syntax.WordHdoc:
	case syntax.DplOut, syntax.DplIn:
		if known = known && len(name) == 1 && name[0] >= '0' && name[0] <= '9'; !known && r.Op == syntax.DplOut && name != "-" {
			c.act(Write, name) // bash takes it for a file
		}
	case syntax.RdrIn:
		if strings.Contains(name, "-") && strings.Trim(name, "-0123456789") == "" {
			c.doubt("zsh reads <%s> as a pattern", name)
		}
		c.act(Read, name)
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob:
		c.act(Write, name)
	default:
		c.doubt("it redirects by %s", r.Op)
		c.act(Write, name)
	}
	if !known {
		c.doubt("a redirection is computed when it runs")
	}
}

func (c *command) act(k Kind, words ...string) {
	a := Act{Kind: k, Words: words, In: slices.Clone(c.folders), at: slices.Clone(c.at), from: c.from}
	a.left = slices.DeleteFunc(slices.Clone(a.In), func(f string) bool { return slices.Contains(a.at, f) })
	if k == Run {
		a.Stdin, a.Piped, a.Fed = c.stdin, c.piped, c.fed
		a.Env, a.Through = slices.Clone(c.env), slices.Clone(c.through)
	}
	c.Acts = append(c.Acts, a)
}

func (c *command) call(n *syntax.CallExpr, depth int) {
	if len(n.Args) == 0 {
		c.doubt("it sets a variable for what follows")
	}
	outer := c.env
	defer func() { c.env = outer }()
	for _, a := range n.Assigns {
		value := ""
		if a.Value != nil {
			value = approximate(a.Value, c.vars)
			if _, known := literal(a.Value); !known {
				c.doubt("it sets a variable to what is computed when it runs")
			}
		}
		if a.Name == nil || a.Append || a.Index != nil || a.Array != nil || a.Naked {
			c.doubt("it sets a part of a variable")
		} else {
			c.env = append(slices.Clip(c.env), a.Name.Value+"="+value)
		}
		c.values = append(c.values, value)
		c.inner(a, depth)
	}
	var words []string
	for at, w := range n.Args {
		word, known := literal(w)
		if lone := w.Lit(); at == 0 && lone == "[" || lone == "]" { // no pattern of names
			word, known = lone, true
		}
		if known {
			words = append(words, word)
			continue
		}
		if all := alternatives(w); len(words) > 0 && slices.Contains(globbing, words[0]) &&
			!slices.ContainsFunc(all, func(w *syntax.Word) bool { return !namesOption.MatchString(w.Lit()) }) {
			for _, w := range all {
				words = append(words, w.Lit())
			}
			continue
		}
		c.doubt("a word is computed when it runs")
		c.inner(w, depth)
		for _, w := range alternatives(w) {
			words = append(words, approximate(w, c.vars))
		}
	}
	if len(words) == 0 {
		return
	}
	if len(n.Assigns) > 0 && slices.Contains(builtins, words[0]) {
		c.doubt("it sets a variable for %s, which is a part of the shell", words[0])
	}
	c.simple(words, depth)
}

// globbing are programs of which an option that namesOption matches says which files of the folder are searched. Unquoted, it may stand
// for names of files that begin with the option, so for the same one again.
var (
	globbing    = strings.Fields("grep egrep fgrep rg")
	namesOption = regexp.MustCompile(`^--(include|exclude|exclude-dir|glob|iglob)=[A-Za-z0-9_.*?-]+$`)
)

// alternatives expands the braces of a word, if that makes few words.
func alternatives(w *syntax.Word) []*syntax.Word {
	text := w.Lit()
	if strings.Count(text, "{") == 0 || strings.Count(text, "{") > 4 || strings.Count(text, ",") > 8 || strings.Contains(text, "..") {
		return []*syntax.Word{w}
	}
	split := &syntax.Word{Parts: slices.Clone(w.Parts)}
	syntax.SplitBraces(split)
	var all []*syntax.Word
	for word, err := range expand.BracesSeq(nil, split) {
		if err != nil {
			return []*syntax.Word{w}
		}
		all = append(all, word)
	}
	return all
}

// shells are those whose command is read recursively, if nothing follows it.
var shells = []string{"sh -c", "bash -c", "bash -lc"}

func (c *command) simple(words []string, depth int) {
	around := c.through
	defer func() { c.through = around }()
	within := func(n int) { c.through = append(slices.Clip(c.through), words[:n]) }
	switch {
	case (words[0] == "command" || words[0] == "nohup") && len(words) > 1 && !strings.HasPrefix(words[1], "-"):
		within(1)
		c.simple(words[1:], depth)
	case words[0] == "timeout" && len(words) > 2 && words[1] != "" && strings.Trim(words[1], "0123456789smh") == "":
		within(2)
		c.simple(words[2:], depth)
	case len(words) == 3 && slices.Contains(shells, words[0]+" "+words[1]):
		within(3)
		c.read(words[2], depth+1)
	case words[0] == "popd":
		c.doubt("popd goes to a folder that is not named")
		c.enter(Computed)
	case words[0] == "cd" || words[0] == "pushd":
		if words[0] == "pushd" {
			c.doubt("pushd changes the folder")
		}
		if len(words) != 2 || strings.HasPrefix(words[1], "-") || words[1] == "" {
			c.doubt("cd goes to a folder that is not named")
			c.enter(Computed)
			return
		}
		c.act(Enter, words[1])
		c.enter(words[1])
		for _, f := range slices.Clone(c.folders) {
			if to := Under(f, words[1]); !slices.Contains(c.folders, to) {
				c.folders = append(c.folders, to)
			}
		}
		if len(c.folders) > maxFolders {
			c.doubt("it changes its folder too often")
			c.folders = c.folders[:maxFolders]
		}
	default:
		c.act(Run, words...)
	}
}

// Entered returns the act without the folders that a cd before && has left: what follows does not run where that fails.
func (a *Act) Entered() *Act {
	entered := *a
	entered.In = slices.DeleteFunc(slices.Clone(a.In), func(f string) bool { return slices.Contains(a.left, f) })
	return &entered
}

// Within returns acts that may happen inside an act of a program that runs others or a text, such as xargs, sudo and sh: what its words
// name as a program, or are as a command. More may be found than happens.
func (a Act) Within() []Act { return a.within(0) }

func (a Act) within(depth int) (all []Act) {
	if a.Kind != Run || len(a.Words) == 0 || depth > maxDepth {
		return nil
	}
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(a.Words[0])), ".exe")
	isShell := slices.Contains(shellNames, name) || name == "source" || name == "."
	if !isShell && name != "git" && !slices.Contains(wrappers, name) {
		return nil
	}
	folder := Computed
	if len(a.In) > 0 {
		folder = a.In[0]
	}
	texts := []string{}
	if isShell {
		texts = append(texts, a.Stdin)
	}
	for i, word := range a.Words[1:] {
		_, alias, is := strings.Cut(word, "=!")
		switch {
		case name == "git" && is:
			texts = append(texts, alias)
		case name == "git":
		case strings.ContainsAny(word, " \t\n"):
			texts = append(texts, strings.TrimPrefix(word, "-S"))
		case !isShell && !strings.HasPrefix(word, "-") && len(all) < maxActs:
			inner := Act{Kind: Run, Words: a.Words[i+1:], In: a.In, Stdin: a.Stdin, Piped: a.Piped, Fed: a.Fed}
			all = append(append(all, inner), inner.within(depth+1)...)
		}
	}
	if name == "eval" {
		texts = append(texts, strings.Join(a.Words[1:], " "))
	}
	for _, text := range texts {
		for _, inner := range ReadCommand(text, folder).Acts {
			if len(all) < maxActs {
				all = append(append(all, inner), inner.within(depth+1)...)
			}
		}
	}
	return all
}

// anyOf returns what holds one of these words: a name in the folder where the command runs, if each is one.
func anyOf(words []*syntax.Word) string {
	for _, w := range words {
		text := approximate(w, nil)
		if hasUnknownPlace(text) || !filepath.IsLocal(strings.ReplaceAll(text, Computed, "x")) {
			return Computed
		}
	}
	if len(words) == 0 { // the arguments
		return Computed
	}
	return "./" + Computed
}

// enter notes where a cd leads to.
func (c *command) enter(name string) {
	c.entered = nil
	for _, f := range c.at {
		if !hasUnknownPlace(name) {
			f = Under(f, name)
		} else {
			f = Computed
		}
		if !slices.Contains(c.entered, f) {
			c.entered = append(c.entered, f)
		}
	}
	c.at = slices.Concat(c.at, c.entered)
	if len(c.at) > 2*maxFolders {
		c.Unread, c.at = true, []string{Computed}
	}
}

// hasUnknownPlace reports whether nobody knows where a file of that name is: at home, or in a folder that is computed.
func hasUnknownPlace(name string) bool {
	return strings.HasPrefix(name, "~") || strings.HasPrefix(name, Computed)
}

// literal returns the text of a word without its quotes; known is false if a shell would expand it.
func literal(w *syntax.Word) (text string, known bool) {
	var b strings.Builder
	for i, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if !writeUnquoted(&b, p.Value, i == 0) {
				return "", false
			}
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, plain := inner.(*syntax.Lit)
				if !plain || p.Dollar {
					return "", false
				}
				writeEscaped(&b, lit.Value, "$`\"\\\n")
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// approximate returns the text of a word as a shell expands it, with the values of these variables, ~ for the home folder, patterns
// of file names as they are, and [Computed] for what is not known.
func approximate(w *syntax.Word, vars map[string]string) string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	var parts func(all []syntax.WordPart, quoted bool)
	parts = func(all []syntax.WordPart, quoted bool) {
		for _, p := range all {
			switch p := p.(type) {
			case *syntax.Lit:
				if quoted {
					writeEscaped(&b, p.Value, "$`\"\\\n")
				} else {
					writeUnescaped(&b, p.Value)
				}
			case *syntax.SglQuoted:
				text := p.Value
				if p.Dollar && strings.Contains(text, "\\") {
					text = Computed
				}
				b.WriteString(text)
			case *syntax.DblQuoted:
				parts(p.Parts, true)
			case *syntax.ParamExp:
				b.WriteString(valueOf(p, vars))
			case *syntax.CmdSubst:
				b.WriteString(outputOf(p))
			default:
				b.WriteString(Computed)
			}
		}
	}
	parts(w.Parts, false)
	return b.String()
}

// valueOf returns the value of a variable. Folders that every machine has get a name that says where they are.
func valueOf(p *syntax.ParamExp, vars map[string]string) string {
	if p.Param == nil || p.Exp != nil || p.Slice != nil || p.Repl != nil || p.Index != nil || p.Excl || p.Length || p.Names != 0 {
		return Computed
	}
	name := p.Param.Value
	if value, set := vars[name]; set {
		return value
	}
	switch name {
	case "HOME":
		return "~"
	case "PWD":
		return "."
	case "TMPDIR":
		return "/tmp"
	}
	return Computed
}

// outputOf returns what a substitution prints, if that is the name of a new temporary file.
func outputOf(s *syntax.CmdSubst) string {
	if len(s.Stmts) == 1 {
		if call, is := s.Stmts[0].Cmd.(*syntax.CallExpr); is && len(call.Args) > 0 && call.Args[0].Lit() == "mktemp" {
			for _, w := range call.Args[1:] {
				if text := w.Lit(); text != "-d" && text != "-t" && text != "-q" && !strings.HasPrefix(text, "/tmp/") {
					return Computed
				}
			}
			return "/tmp/new"
		}
	}
	return Computed
}

// writeUnescaped writes text without the backslashes that quote one character each.
func writeUnescaped(b *strings.Builder, text string) {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			if i++; text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
}

// writeUnquoted writes what a shell makes of unquoted text, and reports whether it is literal.
func writeUnquoted(b *strings.Builder, text string, first bool) bool {
	for i := 0; i < len(text); i++ {
		switch at := text[i]; {
		case at == '\\' && i+1 < len(text):
			if i++; text[i] == '\n' {
				continue
			}
		case at == '\\', strings.IndexByte("*?[]{}!^#", at) >= 0, at >= utf8.RuneSelf, first && i == 0 && (at == '~' || at == '='):
			return false
		}
		b.WriteByte(text[i])
	}
	return true
}

// writeEscaped writes text in which a backslash escapes only these characters.
func writeEscaped(b *strings.Builder, text, these string) {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte(these, text[i+1]) >= 0 {
			if i++; text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
}
