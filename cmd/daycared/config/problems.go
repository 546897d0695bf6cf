package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// Problem is one thing that is wrong with the configuration, or allowed but hardly meant.
type Problem struct {
	Where string // the file as it was named, or the environment variable
	Line  int    // of the file, from 1; 0 for a variable
	Key   string // where in the configuration, as in people.0.user; empty: in no key in particular
	Text  string // what is wrong; what would be right
}

// Cause is what is wrong, and Remedy what would be right, which begins after the first semicolon outside of quotes.
// Remedy is empty where the text says none.
func (p Problem) Cause() string {
	cause, _ := p.split()
	return cause
}

// Remedy is the other part of the text than [Problem.Cause].
func (p Problem) Remedy() string {
	_, remedy := p.split()
	return remedy
}

func (p Problem) split() (cause, remedy string) {
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

// String is the problem as a line for people: "config.yaml:12: …".
func (p Problem) String() string {
	if p.Where == "" {
		return p.Text
	}
	return place(p.Where, p.Line) + ": " + p.Text
}

// KeyName is the name of a key by its path, without the numbers of items: agents.mcp.command of agents.0.mcp.1.command.
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

// Problems are everything that is wrong, in the order of the lines; what came from the environment is last. It is the
// error of [Load] for a configuration that could be read but is not right.
type Problems []Problem

// Error is all problems, one a line.
func (p Problems) Error() string { return strings.Join(p.lines(), "\n") }

func (p Problems) lines() []string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return lines
}

// report collects what is wrong, and knows where every key was set.
type report struct {
	file  string
	lines map[string]int    // by the path of a key; items of lists are numbered from 0
	vars  map[string]string // the environment variable that set a key
	bad   map[string]bool   // paths of keys at which something was found wrong
	in    map[string]bool   // paths of what such keys stand in
	found Problems
}

func newReport(file string) *report {
	return &report{
		file: file, lines: map[string]int{}, vars: map[string]string{}, bad: map[string]bool{}, in: map[string]bool{},
	}
}

// line notes a problem in a line of the file, at or in the key of that path.
func (r *report) line(n int, path, format string, args ...any) {
	r.add(path, Problem{Where: r.file, Line: n, Key: path, Text: fmt.Sprintf(format, args...)})
}

// variable notes a problem of an environment variable.
func (r *report) variable(name, path, format string, args ...any) {
	r.add(path, Problem{Where: name, Key: path, Text: fmt.Sprintf(format, args...)})
}

// key notes a problem wherever the key of that path was set.
func (r *report) key(path, format string, args ...any) {
	r.add(path, r.problem(path, format, args...))
}

// problem is one of the key of that path, wherever it was set.
func (r *report) problem(path, format string, args ...any) Problem {
	where, line := r.origin(path)
	return Problem{Where: where, Line: line, Key: path, Text: fmt.Sprintf(format, args...)}
}

// given reports whether somebody set the key of that path.
func (r *report) given(path string) bool { return r.lines[path] != 0 || r.vars[path] != "" }

func (r *report) add(path string, p Problem) {
	r.found = append(r.found, p)
	r.bad[path] = true
	for path != "" {
		path = parent(path)
		r.in[path] = true
	}
}

// origin is the variable or the line that set a key, else the line of what it stands in.
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

// wrong tells whether anything was found wrong at a key, in it, or among the keys it stands with at the top, so that a
// rule that reads it would only repeat the same mistake.
func (r *report) wrong(path string) bool {
	wrong := r.bad[""] || r.in[path]
	for ; path != "" && !wrong; path = parent(path) {
		wrong = r.bad[path]
	}
	return wrong
}

// err is all that was found, in order, or nil.
func (r *report) err() error {
	if len(r.found) == 0 {
		return nil
	}
	slices.SortStableFunc(r.found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(min(b.Line, 1), min(a.Line, 1)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Where, b.Where))
	})
	return r.found
}

// parent is the path of what a key stands in, empty at the top.
func parent(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// suggest says what was probably meant by a word that is none of known: the nearest of them and of more, or all that
// are known when none is near.
func suggest(word string, known []string, more ...string) string {
	word = strings.ToLower(word)
	distance := func(k string) int {
		k = strings.ToLower(k)
		if min(len(word), len(k)) >= 3 && (strings.HasPrefix(word, k) || strings.HasPrefix(k, word)) {
			return 0
		}
		return levenshtein.ComputeDistance(word, k)
	}
	best := slices.MinFunc(slices.Concat(known, more), func(a, b string) int { return distance(a) - distance(b) })
	if distance(best) <= max(2, len(best)/2) {
		return "did you mean " + best + "?"
	}
	return "there are " + strings.Join(known, ", ")
}

// maxQuoted is how many characters of what somebody wrote are repeated to them.
const maxQuoted = 60

// quote is text as a message repeats it.
func quote(text string) string {
	if utf8.RuneCountInString(text) <= maxQuoted {
		return strconv.Quote(text)
	}
	return strconv.Quote(string([]rune(text)[:maxQuoted]) + "…")
}
