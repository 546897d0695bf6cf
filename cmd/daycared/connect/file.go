package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/daycared/daycared/permissions"
)

// File is one settings file of an agent, and our entries in it.
type File struct {
	Path    string
	Or      string  // the path used instead if it exists and Path does not; empty: none
	entries []entry // in JSON, with or without comments
	block   string  // in TOML
	whole   string  // the whole file, recognized as ours by its beginning
	strict  string  // an agent that does not read a file with any of refuses; empty: none
	refuses []string
}

// What an agent may refuse in JSON.
const (
	comments = "a comment"
	commas   = "a comma too many"
	marks    = "a byte order mark"
)

// mark is a byte order mark, which may start a file.
const mark = "\ufeff"

// entry is one entry of ours in a JSON file.
type entry struct {
	path    []string
	value   any
	dialect string // of a hook, an element of the list at path; empty: the member at path
	usual   bool   // set only if nothing is there, and never removed
}

func member(value any, path ...string) entry { return entry{path: path, value: value} }
func usual(value any, path ...string) entry  { return entry{path: path, value: value, usual: true} }
func element(value any, dialect string, path ...string) entry {
	return entry{path: path, value: value, dialect: dialect}
}

// Install returns text with our entries added or updated. It returns text unchanged if they are up to date.
func (f File) Install(text string) (string, error) {
	if f.whole != "" {
		if clean, err := f.Remove(text); err != nil || strings.TrimSpace(clean) != "" {
			return "", errors.New("it is not daycared's; move it away first")
		}
		return f.whole, nil
	}
	if f.block != "" {
		text, marked := strings.CutPrefix(text, mark)
		next, err := installBlock(text, f.block)
		return withMark(next, marked && err == nil), err
	}
	if err := f.ignored(text); err != nil {
		return "", err
	}
	return f.edit(text, (*editor).put)
}

// Remove returns text without our entries. It returns text unchanged if there are none.
func (f File) Remove(text string) (string, error) {
	if f.whole != "" {
		if first, _, _ := strings.Cut(f.whole, "\n"); strings.HasPrefix(text, first+"\n") {
			text = ""
		}
		return text, nil
	}
	if f.block != "" {
		text, marked := strings.CutPrefix(text, mark)
		next, err := removeBlock(text)
		return withMark(next, marked && err == nil), err
	}
	return f.edit(text, (*editor).take)
}

// Missing lists our hooks that text lacks.
func (f File) Missing(text string) (names []string) {
	for _, e := range f.entries {
		clean, err := File{entries: []entry{e}}.Remove(text)
		if e.dialect != "" && e.value != nil && err == nil && clean == text {
			names = append(names, e.path[len(e.path)-1])
		}
	}
	return names
}

// edit applies change for each entry, keeping a byte order mark.
func (f File) edit(text string, change func(*editor, entry) error) (string, error) {
	text, marked := strings.CutPrefix(text, mark)
	root, err := parse(text)
	if err != nil {
		return "", err
	}
	e := newEditor(&root)
	for _, entry := range f.entries {
		if err := change(e, entry); err != nil {
			return "", err
		}
	}
	return withMark(e.text(text), marked), nil
}

// withMark puts a byte order mark before text, if it had one.
func withMark(text string, marked bool) string {
	if marked {
		return mark + text
	}
	return text
}

// ignored returns why the agent does not read a file with this text, nil if it does.
func (f File) ignored(text string) error {
	refused := func(at int, what string) error {
		return fmt.Errorf("%s reads none of it, since line %d has %s; take that out first", f.strict, 1+strings.Count(text[:at], "\n"), what)
	}
	text, marked := strings.CutPrefix(text, mark)
	if marked && slices.Contains(f.refuses, marks) {
		return refused(0, marks)
	}
	plain, err := hujson.Parse([]byte(text))
	if err != nil || plain.IsStandard() {
		return nil //nolint:nilerr // what is no JSON at all is said by parse
	}
	plain.Standardize() // replaces comments and trailing commas by spaces
	standard := plain.Pack()
	for at := 0; at < min(len(text), len(standard)); at++ {
		switch comment := text[at] == '/'; {
		case text[at] == standard[at]:
		case !comment && slices.Contains(f.refuses, commas):
			return refused(at, commas)
		case comment && slices.Contains(f.refuses, comments):
			return refused(at, comments)
		case comment:
			end := map[bool]string{false: "\n", true: "*/"}[text[at+1] == '*']
			length := strings.Index(text[at+2:], end)
			if length < 0 {
				return nil
			}
			at += 1 + length + len(end)
		}
	}
	return nil
}

// Pinned reports whether every command of ours in text names its daemon, so that the environment cannot.
func (f File) Pinned(text string) bool {
	if f.block != "" {
		_, block, _ := strings.Cut(text, blockBegin)
		block, _, _ = strings.Cut(block, blockEnd)
		return strings.Count(block, "--socket")+strings.Count(block, "--url") >= 6 // of its server and its hooks
	}
	if f.whole != "" {
		return strings.Contains(text, `"--socket"`) || strings.Contains(text, `"--url"`)
	}
	for _, entry := range f.entries {
		at, err := jsonAt(text, entry.path)
		if err != nil {
			return false
		}
		ours, list := []any{at}, entry.dialect != ""
		if list {
			ours, _ = at.([]any)
		}
		for _, one := range ours {
			words := fmt.Sprint(one)
			if one == nil || entry.usual || list && !strings.Contains(words, hookOf(entry.dialect)) {
				continue
			}
			if !strings.Contains(words, "--socket ") && !strings.Contains(words, "--url ") {
				return false
			}
		}
	}
	return true
}

// hookOf is a substring that identifies the command line of our hook.
func hookOf(dialect string) string { return " hook " + dialect + " --within " }

// decides reports whether a command line is our deciding hook; one with --notice decides nothing.
func decides(command, dialect string) bool {
	return strings.Contains(command, hookOf(dialect)) && !strings.Contains(command, " --notice")
}

// Empty reports whether text contains only what Remove leaves of a file that Install created.
func (f File) Empty(text string) bool {
	fresh, err := f.Install("")
	if err != nil {
		return false
	}
	left, err := f.Remove(fresh)
	return err == nil && same(left, text)
}

func same(a, b string) bool {
	if strings.TrimSpace(a) == strings.TrimSpace(b) {
		return true
	}
	x, errX := standard([]byte(a))
	y, errY := standard([]byte(b))
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// standard converts JSON with comments to canonical JSON.
func standard(text []byte) ([]byte, error) {
	plain, err := hujson.Standardize(bytes.TrimPrefix(text, []byte(mark)))
	if err != nil {
		return nil, err
	}
	return permissions.CanonicalJSON(plain)
}

var errShape = errors.New("is something else there than expected")

// parse parses a settings file; empty text is an empty object.
func parse(text string) (hujson.Value, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}\n"
	}
	root, err := hujson.Parse([]byte(text))
	if err != nil {
		return root, fmt.Errorf("it is not JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return root, fmt.Errorf("it holds no JSON object")
	}
	if _, err := standard([]byte(text)); err != nil { // rejects duplicate members, of which the wrong one could be changed
		return root, err
	}
	return root, nil
}

// mine reports whether a list element is our hook.
func mine(v *hujson.Value, dialect string) bool {
	packed, err := standard(v.Pack())
	_, commands := commandsOf(packed)
	return err == nil && slices.ContainsFunc(commands, func(c string) bool { return strings.Contains(c, hookOf(dialect)) })
}

// commandsOf returns what a hook matches and the command lines that it runs; none if it is no hook.
func commandsOf(packed []byte) (matcher string, commands []string) {
	var hook struct {
		Matcher, Command, Bash string
		Hooks                  []struct{ Command string }
	}
	if json.Unmarshal(packed, &hook) != nil {
		return "", nil
	}
	commands = []string{hook.Command, hook.Bash}
	for _, h := range hook.Hooks {
		commands = append(commands, h.Command)
	}
	return hook.Matcher, commands
}
