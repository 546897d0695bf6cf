package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
	"go.yaml.in/yaml/v3"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
)

// Problem is an error in the configuration, or a setting that is allowed but hardly intended.
type Problem struct {
	Key   string `json:"key"`   // as in people.0.user; empty: no particular key
	Where string `json:"where"` // the file under the given name, or the environment variable
	Line  int    `json:"line"`  // of the file, from 1; 0 for a variable
	Text  string `json:"-"`     // what is wrong; what would be right
}

// Split returns the text before the first semicolon outside of quotes, what is wrong, and the rest, what would be right.
func (p Problem) Split() (cause, remedy string) {
	quoted := false
	for i, c := range p.Text {
		switch {
		case c == '"' && (i == 0 || p.Text[i-1] != '\\'):
			quoted = !quoted
		case !quoted && strings.HasPrefix(p.Text[i:], "; "):
			return p.Text[:i], p.Text[i+len("; "):]
		}
	}
	return p.Text, ""
}

// String formats the problem as a line for people: "config.yaml:12: …".
func (p Problem) String() string {
	if p.Where == "" {
		return p.Text
	}
	return place(p.Where, p.Line) + ": " + p.Text
}

// KeyName returns a key's name without item numbers: agents.mcp.command for agents.0.mcp.1.command.
func KeyName(path string) string {
	parts := strings.Split(path, ".")
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return strings.Trim(p, "0123456789") == "" }), ".")
}

func place(where string, line int) string {
	if line == 0 {
		return where
	}
	return where + ":" + strconv.Itoa(line)
}

// Problems are all problems in the order of their lines, those of the environment last: the error of [Load].
type Problems []Problem

// Error returns all problems, one per line.
func (p Problems) Error() string { return strings.Join(p.lines(), "\n") }

func (p Problems) lines() []string { return wire.Map(p, Problem.String) }

// report collects problems, and knows where each key was set.
type report struct {
	file  string
	lines map[string]int    // by the path of a key; items are numbered from 0
	vars  map[string]string // the environment variable that set a key
	bad   map[string]bool   // paths of wrong keys
	in    map[string]bool   // paths of the keys above them
	found Problems
}

// line adds a problem in a line of the file, at or in the key of that path.
func (r *report) line(n int, path, format string, args ...any) {
	r.add(path, Problem{Where: r.file, Line: n, Key: path, Text: fmt.Sprintf(format, args...)})
}

func (r *report) variable(name, path, format string, args ...any) {
	r.add(path, Problem{Where: name, Key: path, Text: fmt.Sprintf(format, args...)})
}

// key adds a problem where the key of that path was set.
func (r *report) key(path, format string, args ...any) {
	r.add(path, r.problem(path, format, args...))
}

// problem returns a problem of the key of that path, where it was set.
func (r *report) problem(path, format string, args ...any) Problem {
	where, line := r.origin(path)
	return Problem{Where: where, Line: line, Key: path, Text: fmt.Sprintf(format, args...)}
}

// isSet reports whether the key of that path was set.
func (r *report) isSet(path string) bool { return r.lines[path] != 0 || r.vars[path] != "" }

func (r *report) add(path string, p Problem) {
	r.found = append(r.found, p)
	r.bad[path] = true
	for path != "" {
		path = parent(path)
		r.in[path] = true
	}
}

// origin returns the variable or line that set a key, otherwise the line of the key above it.
func (r *report) origin(path string) (where string, line int) {
	if name, ok := r.vars[path]; ok {
		return name, 0
	}
	for ; path != ""; path = parent(path) {
		if n, ok := r.lines[path]; ok {
			return r.file, n
		}
	}
	return r.file, 1
}

// hasProblem reports whether a problem was found at a key, in it, or among its top-level siblings: a rule that reads it would repeat it.
func (r *report) hasProblem(path string) bool {
	wrong := r.bad[""] || r.in[path]
	for ; path != "" && !wrong; path = parent(path) {
		wrong = r.bad[path]
	}
	return wrong
}

// err returns all problems, in order, or nil.
func (r *report) err() error {
	if len(r.found) == 0 {
		return nil
	}
	slices.SortStableFunc(r.found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(min(b.Line, 1), min(a.Line, 1)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Where, b.Where))
	})
	return r.found
}

// parent returns the path of the key above, empty at the top.
func parent(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// suggest says what was probably meant by an unknown word: the nearest known one, or all if none is near.
func suggest(word string, known []string) string {
	word = strings.ToLower(word)
	distance := func(k string) int {
		k = strings.ToLower(k)
		if min(len(word), len(k)) >= 3 && (strings.HasPrefix(word, k) || strings.HasPrefix(k, word)) {
			return 0
		}
		return levenshtein.ComputeDistance(word, k)
	}
	best := slices.MinFunc(known, func(a, b string) int { return distance(a) - distance(b) })
	if distance(best) <= max(2, len(best)/2) {
		return "did you mean " + best + "?"
	}
	return "there are " + strings.Join(known, ", ")
}

// maxQuoted is the maximum number of characters that a message quotes.
const maxQuoted = 60

func quote(text string) string {
	if utf8.RuneCountInString(text) <= maxQuoted {
		return strconv.Quote(text)
	}
	return strconv.Quote(string([]rune(text)[:maxQuoted]) + "…")
}

// maxSize is the maximum size of a configuration file, in bytes.
const maxSize = 1 << 20

// document parses one YAML document; nil means empty. Invalid YAML is reported.
func document(r *report, data []byte) *yaml.Node {
	if len(data) > maxSize {
		r.line(1, "", "the file is larger than 1 MiB; a configuration is not, so this is probably another file")
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if n, ok := unreadable(data); ok {
		r.line(n, "", "the file is not plain text in UTF-8; save it as UTF-8, without control characters")
		return nil
	}
	var doc, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		reportSyntax(r, data, err)
		return nil
	}
	if err := decoder.Decode(&second); err == nil {
		r.line(second.Line, "", "a second document begins here; write everything into one, without ---")
	} else if !errors.Is(err, io.EOF) {
		reportSyntax(r, data, err)
	}
	return doc.Content[0]
}

// unreadable returns the first line with invalid UTF-8 or a control character, which YAML forbids.
func unreadable(data []byte) (line int, found bool) {
	line = 1
	for len(data) > 0 {
		c, size := utf8.DecodeRune(data)
		switch {
		case c == '\n':
			line++
		case c == utf8.RuneError && size == 1, c < ' ' && c != '\t' && c != '\r', c == 0x7f, c == 0xfffe, c == 0xffff:
			return line, true
		}
		data = data[size:]
	}
	return 0, false
}

var (
	yamlLine   = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?(.*)$`)
	fromParser = regexp.MustCompile(`did not find expected (?:key|'-'|','|node content|<)`)
	badAlias   = regexp.MustCompile(`(?:^|[\[,{:-])\s*\*`)
	badAt      = regexp.MustCompile(`[\[,{:-]\s*@`)
	username   = regexp.MustCompile(`telegram\s*:\s*(@[^\s,}]*)`)
)

// reportSyntax reports an error of the YAML parser, with the remedy for common mistakes.
func reportSyntax(r *report, data []byte, err error) {
	m := yamlLine.FindStringSubmatch(err.Error())
	if m == nil {
		m = []string{"", "", err.Error()}
	}
	n, _ := strconv.Atoi(m[1])
	if fromParser.MatchString(m[2]) {
		n++ // the parser counts lines from 0, its scanner from 1
	}
	lines := strings.Split(string(data), "\n")
	n = min(max(n, 1), len(lines))
	for i, l := range lines[n-1 : min(n+1, len(lines))] {
		if indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]; strings.Contains(indent, "\t") {
			r.line(n+i, "", "the line is indented with a tab; write spaces")
			return
		}
	}
	here := lines[n-1]
	switch {
	case username.MatchString(here):
		telegram, _ := connectors.KindOf("telegram")
		_, e := addressOf(telegram).parse(username.FindStringSubmatch(here)[1])
		r.line(n, "", "people.telegram: %v", e)
	case strings.Contains(m[2], "cannot start any token") && badAt.MatchString(here):
		r.line(n, "", `what begins with @ has to be quoted; write it as "@network"`)
	case strings.Contains(m[2], "alphabetic or numeric") && badAlias.MatchString(here):
		r.line(n, "", `what begins with * has to be quoted; write it as "*"`)
	case strings.HasPrefix(m[2], "unknown anchor"):
		r.line(aliasLine(lines, m[2]), "", "*name repeats what &name marked, which is not done here; write it out, "+
			"or in quotes")
	default:
		r.line(n, "", "this is not YAML: %s; look at the indentation, colons, brackets and quotes from here on", m[2])
	}
}

// aliasLine returns the line of an undefined alias, of which the parser gives only the name.
func aliasLine(lines []string, message string) int {
	_, name, _ := strings.Cut(message, "'")
	name, _, _ = strings.Cut(name, "'")
	for i, l := range lines {
		if strings.Contains(l, "*"+name) {
			return i + 1
		}
	}
	return 1
}
