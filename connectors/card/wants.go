package card

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// deepest is the maximum nesting of an input that is laid out; a deeper one stays on one line, as it was sent.
const deepest = 12

// act is one part of an action: a lead in our words and, complete, what the agent wants.
type act struct {
	lead  string
	brief string // the lead with shortened names
	gap   string // between the lead and a body on the same row
	body  []string
	role  Role
}

// Wants is what r asks for, complete: "write access to /srv/www", "to run   rm -rf x", "to use NAME" with its input line by
// line, the numbered calls of a step, or the message of a pause or a clarification with its numbered options. Secrets are
// masked.
func Wants(r permissions.Request) string {
	s := newSheet(0)
	for _, a := range acts(r, Options{}) {
		s.lead(a.lead, a.gap, a.role, a.body)
	}
	return s.String()
}

func acts(r permissions.Request, o Options) []act {
	switch r.Kind {
	case permissions.KindPermission:
		wanted := r.Missing()
		if len(wanted) == 0 { // all of it was held, and nobody is asked
			wanted = r.Tags
		}
		return []act{{body: tags(wanted), role: Action}}
	case permissions.KindTool:
		if len(r.Calls) == 0 {
			return append([]act{toolCall(r, r.ToolCalls()[0], "", o)}, suggested(r, o)...)
		}
		var all []act
		for _, c := range r.Calls {
			all = append(all, toolCall(r, c, fmt.Sprintf("#%d ", c.N), o))
		}
		return all
	}
	all := []act{{body: words(r.Message, o.source(prose)), role: Words}}
	if r.Kind == permissions.KindClarification {
		for i, c := range r.Choices {
			body := []string{line(c, o.source(prose))}
			all = append(all, act{lead: fmt.Sprintf("  %2d", i+1), gap: "  ", body: body, role: Words})
		}
	}
	return all
}

// suggested are what the agent of r suggests and a yes can take, with the numbers of their answers.
func suggested(r permissions.Request, o Options) (all []act) {
	for _, option := range r.Options {
		if k := option.ID.With(); k > 0 && k <= len(r.Choices) {
			body := []string{line(r.Choices[k-1], o.source(prose))}
			all = append(all, act{lead: fmt.Sprintf("  %2d  Allow once, and", k), gap: " ", body: body, role: Words})
		}
	}
	return all
}

func tags(all []permissions.Tag) []string {
	return wire.Each(all, func(t permissions.Tag) string { return Visible(t.Describe()) })
}

// toolCall is one call: a command as it would be typed, anything else as the tool's name and its canonical input.
func toolCall(r permissions.Request, c permissions.Call, number string, o Options) act {
	a := act{gap: "   ", role: Action}
	text, described, isCommand := command(c, r.Reason)
	if isCommand {
		a.body = words(text, o.source(shell))
	} else {
		a.body = input(c.Input, o.source(coded))
	}
	lead := func(name func(string) string) string {
		words := number + "to use " + name(c.Tool)
		switch {
		case isCommand && c.Tool == "run_command":
			words = number + "to run"
		case isCommand:
			words = number + "to run with " + name(c.Tool)
		}
		if described {
			words += ", described as it says"
		}
		switch said, other := affects(r, c); {
		case c.AffectedPath == "":
			return words
		case said || other != "":
			return words + "; it says it affects " + name(c.AffectedPath)
		}
		return words + ", affecting " + name(c.AffectedPath)
	}
	a.lead = lead(named)
	a.brief = lead(func(name string) string { return named(brief(name, mostName)) })
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
