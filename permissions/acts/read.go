// Package acts reads what a tool call does: which programs a command runs, with which words, and which files it reads
// and writes. Anything that it cannot read with certainty, as every shell would, is a doubt, and a call with a doubt
// never counts as harmless.
//
// It runs nothing and reads no file itself: the caller resolves names ([Workspace]).
package acts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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
}

// Reading is the result of reading a command. Without doubts, the command does these acts and nothing else.
type Reading struct {
	Acts   []Act
	Doubts []string
}

// Limits of one command. The parser itself has none: deep nesting would end the process.
const (
	maxText    = 16 << 10
	maxOpening = 200
	maxActs    = 50
	maxDepth   = 4 // of sh -c within sh -c
	maxFolders = 8
)

// Command reads the text of a command that a shell (sh, bash or zsh) runs in folder.
func Command(text, folder string) Reading {
	c := command{folders: []string{folder}}
	c.read(text, 0)
	if len(c.Acts) == 0 || len(c.Acts) > maxActs {
		c.doubt("it runs nothing, or more than %d commands", maxActs)
	}
	return c.Reading
}

type command struct {
	Reading
	folders []string // in which the next part may run: a cd may fail, or be in a subshell
}

func (c *command) doubt(format string, values ...any) {
	c.Doubts = append(c.Doubts, fmt.Sprintf(format, values...))
}

func (c *command) read(text string, depth int) {
	if why := unfit(text); why != "" || depth > maxDepth {
		c.doubt("%s", cmp.Or(why, "it has shells in shells"))
		return
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		c.doubt("it cannot be read: %v", err)
		return
	}
	c.all(f.Stmts, depth)
}

// unfit returns why a text is not even parsed.
func unfit(text string) string {
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

func (c *command) all(stmts []*syntax.Stmt, depth int) {
	for _, s := range stmts {
		c.stmt(s, depth)
	}
}

func (c *command) stmt(s *syntax.Stmt, depth int) {
	if s.Background || s.Coprocess || s.Disown {
		c.doubt("it goes on in the background")
	}
	switch n := s.Cmd.(type) {
	case *syntax.CallExpr:
		c.call(n, depth)
	case *syntax.BinaryCmd:
		if !slices.Contains([]syntax.BinCmdOperator{syntax.AndStmt, syntax.OrStmt, syntax.Pipe}, n.Op) {
			c.doubt("commands are joined by %s", n.Op)
		}
		c.stmt(n.X, depth)
		c.stmt(n.Y, depth)
	case *syntax.Subshell:
		c.all(n.Stmts, depth)
	case *syntax.Block:
		c.all(n.Stmts, depth)
	case *syntax.TimeClause:
		if n.Stmt == nil || n.PosixFormat {
			c.doubt("time has nothing to run, or options")
			return
		}
		c.stmt(n.Stmt, depth)
	default:
		c.doubt("it has a %T", n)
	}
	for _, r := range s.Redirs {
		c.redirect(r)
	}
}

func (c *command) redirect(r *syntax.Redirect) {
	if r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" {
		c.doubt("a redirection keeps a descriptor")
	}
	name, known := literal(r.Word)
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		known = known && (r.Hdoc == nil || !slices.ContainsFunc(r.Hdoc.Parts, func(p syntax.WordPart) bool {
			_, plain := p.(*syntax.Lit)
			return !plain
		}))
	case syntax.WordHdoc:
	case syntax.DplOut, syntax.DplIn:
		known = known && len(name) == 1 && name[0] >= '0' && name[0] <= '9'
	case syntax.RdrIn:
		c.act(Read, name)
	case syntax.RdrOut, syntax.AppOut:
		c.act(Write, name)
	default:
		c.doubt("it redirects by %s", r.Op)
	}
	if !known {
		c.doubt("a redirection is computed when it runs")
	}
}

func (c *command) act(k Kind, words ...string) {
	c.Acts = append(c.Acts, Act{k, words, slices.Clone(c.folders)})
}

func (c *command) call(n *syntax.CallExpr, depth int) {
	if len(n.Assigns) > 0 || len(n.Args) == 0 {
		c.doubt("it sets a variable")
		return
	}
	var words []string
	for _, w := range n.Args {
		word, known := literal(w)
		if !known {
			c.doubt("a word is computed when it runs")
			return
		}
		words = append(words, word)
	}
	c.simple(words, depth)
}

// shells are those whose command is read recursively, if nothing follows it.
var shells = []string{"sh -c", "bash -c", "bash -lc"}

func (c *command) simple(words []string, depth int) {
	switch {
	case words[0] == "command" && len(words) > 1 && !strings.HasPrefix(words[1], "-"):
		c.simple(words[1:], depth)
	case words[0] == "timeout" && len(words) > 2 && words[1] != "" && strings.Trim(words[1], "0123456789smh") == "":
		c.simple(words[2:], depth)
	case len(words) == 3 && slices.Contains(shells, words[0]+" "+words[1]):
		c.read(words[2], depth+1)
	case words[0] == "cd":
		if len(words) != 2 || strings.HasPrefix(words[1], "-") || words[1] == "" {
			c.doubt("cd goes to a folder that is not named")
			return
		}
		c.act(Enter, words[1])
		for _, f := range slices.Clone(c.folders) {
			if to := under(f, words[1]); !slices.Contains(c.folders, to) {
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

// literal returns the text of a word without its quotes; known is false if a shell would expand it.
func literal(w *syntax.Word) (text string, known bool) {
	var b strings.Builder
	for i, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if !bare(&b, p.Value, i == 0) {
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
				escaped(&b, lit.Value, "$`\"\\\n")
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// bare writes what a shell makes of unquoted text, and reports whether it is literal.
func bare(b *strings.Builder, text string, first bool) bool {
	for i := 0; i < len(text); i++ {
		switch at := text[i]; {
		case at == '\\' && i+1 < len(text):
			i++
		case at == '\\', strings.IndexByte("*?[]{}!^#", at) >= 0, at >= utf8.RuneSelf, first && i == 0 && (at == '~' || at == '='):
			return false
		}
		b.WriteByte(text[i])
	}
	return true
}

// escaped writes text in which a backslash escapes only these characters.
func escaped(b *strings.Builder, text, these string) {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte(these, text[i+1]) >= 0 {
			i++
		}
		b.WriteByte(text[i])
	}
}
