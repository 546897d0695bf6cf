package card

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// deepest is the maximum nesting of an input that is laid out; a deeper one stays on one line, as it was sent.
const deepest = 12

// maxTag limits a permission in the title, in characters; a longer one is a block below it.
const maxTag = 64

// act is one part of an action: what it does in our words and, complete, what that is done with.
type act struct {
	number string // of a call of a step
	verb   string // after "wants"
	brief  string // the verb with shortened names; empty: there are none
	label  string // above the body
	lang   string // of the body
	body   []string
	role   Role
	notes  []string // below the body, in our words
}

// Wants is what r asks for, complete: "write access to /srv/www", "to run rm -rf x", "to use NAME" with its input line by
// line, the numbered calls of a step, or the message of a pause or a clarification with its numbered options. Secrets are
// masked.
func Wants(r permissions.Request) string {
	var rows []string
	for _, a := range acts(r, Options{}) {
		rows = append(rows, strings.Split(a.line(), "\n")...)
	}
	return strings.Join(rows, "\n")
}

// line is an act with its body, beside its verb if it is one row.
func (a act) line() string {
	verb := strings.TrimSpace(a.number + bare(a.verb))
	if a.isCommand() {
		verb = strings.TrimSpace(a.number + "to run")
	}
	if len(a.body) == 1 {
		return strings.TrimSpace(verb + " " + a.body[0])
	}
	return strings.TrimPrefix(strings.Join(append([]string{verb}, a.body...), "\n"), "\n")
}

func (a act) isCommand() bool { return a.verb == toRun }

// toRun is the verb of a command.
const toRun = "to run a command"

func acts(r permissions.Request, o Options) []act {
	switch r.Kind {
	case permissions.KindPermission:
		wanted := r.Missing()
		if len(wanted) == 0 { // all of it was held, and nobody is asked
			wanted = r.Tags
		}
		a := act{verb: plural(len(wanted), "permission"), body: tags(wanted), role: Action}
		switch {
		case len(wanted) != 1:
		case utf8.RuneCountInString(a.body[0]) > maxTag:
			a.verb, _, _ = strings.Cut(a.body[0], " to ")
		default:
			a.verb, a.body = tagged(a.body[0]), nil
		}
		return []act{a}
	case permissions.KindTool:
		if len(r.Calls) == 0 {
			return append([]act{toolCall(r, r.ToolCalls()[0], o)}, suggested(r, o)...)
		}
		var all []act
		for _, c := range r.Calls {
			a := toolCall(r, c, o)
			a.number = fmt.Sprintf("#%d ", c.N)
			all = append(all, a)
		}
		return all
	}
	all := []act{{body: words(r.Message, o.source(prose)), role: Words}}
	if len(r.Choices) > 0 {
		options := act{label: "The answers:", role: Words}
		for i, c := range r.Choices {
			options.body = append(options.body, fmt.Sprintf("%d  %s", i+1, line(c, o.source(prose))))
		}
		all = append(all, options)
	}
	return all
}

// suggested are what the agent of r suggests and a yes can take, with the numbers of their answers.
func suggested(r permissions.Request, o Options) []act {
	a := act{label: "Allow once, and as it suggests:", role: Words}
	for _, option := range r.Options {
		if k := option.ID.With(); k > 0 && k <= len(r.Choices) {
			a.body = append(a.body, fmt.Sprintf("%d  %s", k, line(r.Choices[k-1], o.source(prose))))
		}
	}
	if len(a.body) == 0 {
		return nil
	}
	return []act{a}
}

// tagged is a permission, rendered already, with its path as a row of ours has it.
func tagged(text string) string {
	if what, path, found := strings.Cut(text, " to "); found {
		return what + " to " + coded(path)
	}
	return text
}

func tags(all []permissions.Tag) []string {
	return wire.Each(all, func(t permissions.Tag) string { return Visible(t.Describe()) })
}

// toolCall is one call: a command as it would be typed, anything else as the tool's name and its canonical input.
func toolCall(r permissions.Request, c permissions.Call, o Options) act {
	a := act{role: Action}
	text, described, isCommand := command(c, r.Reason)
	switch {
	case isCommand:
		a.verb, a.lang, a.body = toRun, "bash", words(text, o.source(shell))
		if c.Tool != "run_command" {
			a.notes = append(a.notes, "Runs with "+coded(named(c.Tool)))
		}
		if described {
			a.notes = append(a.notes, "It is described as it says.")
		}
	default:
		a.verb, a.brief = "to use "+coded(named(c.Tool)), "to use "+coded(named(brief(c.Tool, maxName)))
		a.lang, a.body = "json", input(c.Input, o.source(jsonText))
	}
	if path := coded(named(c.AffectedPath)); c.AffectedPath != "" {
		note := "Affects " + path
		if said, other := affects(r, c); said || other != "" {
			note = "It says it affects " + path
		}
		a.notes = append(a.notes, note)
	}
	return a
}

// affects reports whether the affected path is only the asker's claim, because neither we nor its input name it, and which
// other path the input names.
func affects(r permissions.Request, c permissions.Call) (said bool, other string) {
	var members map[string]any
	if r.Caller.Ours() || c.AffectedPath == "" {
		return false, ""
	}
	said = true
	_ = json.Unmarshal(c.Input, &members) // other values name no path
	for _, name := range pathMembers {
		path, isText := members[name].(string)
		whole := path
		if !filepath.IsAbs(path) {
			whole = filepath.Join(r.Cwd, path)
		}
		switch {
		case !isText || path == "":
		case filepath.Clean(whole) == c.AffectedPath:
			said = false
		default:
			other = path
		}
	}
	return said, other
}

// command is the command in the input of a shell's call. The input must have nothing else, except a description that is
// word by word the reason on the card.
func command(c permissions.Call, reason string) (text string, described, ok bool) {
	if !slices.Contains([]string{"run_command", "run_shell_command", "bash", "shell", "sh"}, strings.ToLower(c.Tool)) {
		return "", false, false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(c.Input, &members) != nil {
		return "", false, false
	}
	if json.Unmarshal(members["description"], &text) == nil && text == reason && text != "" {
		described = true
		delete(members, "description")
	}
	if len(members) != 1 {
		return "", false, false
	}
	err := json.Unmarshal(members["command"], &text)
	return text, described, err == nil && text != ""
}

// input lays out a canonical input, one member or element per line. The indentation is ours.
func input(raw json.RawMessage, src source) []string {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var out bytes.Buffer
	if depth(raw) > deepest || json.Indent(&out, raw, "", "  ") != nil {
		return words(string(raw), src)
	}
	lines := strings.Split(out.String(), "\n")
	for i, member := range lines {
		text := strings.TrimLeft(member, " ")
		as := src
		switch {
		case place.MatchString(text):
			as |= located
		case readMember.MatchString(text):
			as |= prose
		}
		lines[i] = member[:len(member)-len(text)] + line(text, as)
	}
	return lines
}

// readMember matches a member of an input that, by its name, is a text for people or for a file.
var readMember = regexp.MustCompile(`(?i)^"(contents?|(file_?|old_?|new_?)?(text|str|string|source)|message|body|title|subject|` +
	`description|comment|prompt)": "`)

// depth is the nesting depth of arrays and objects.
func depth(raw json.RawMessage) (most int) {
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		if _, err := d.ReadToken(); err != nil {
			return most
		}
		most = max(most, d.StackDepth())
	}
}
