package card

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/daycared/daycared/permissions"
)

// deepest is the nesting down to which an input is laid out; what is deeper stays on its line, as it was sent.
const deepest = 12

// act is one thing that is asked: a lead in our words and, whole, what the agent wants.
type act struct {
	lead  string
	brief string // the lead with shortened names
	gap   string // between the lead and a body on the same row
	body  []string
	role  Role
}

// Wants is what r asks for, whole: "write access to /srv/www", "to run   rm -rf x", "to use NAME" with its input line
// by line, the numbered calls of a step, or the message of a pause or a clarification with its numbered options. Its
// secrets are masked.
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
		return []act{{body: tags(r.Missing()), role: Action}}
	case permissions.KindTool:
		if len(r.Calls) == 0 {
			return []act{toolCall(r.ToolCalls()[0], "", o)}
		}
		var all []act
		for _, c := range r.Calls {
			all = append(all, toolCall(c, fmt.Sprintf("#%d ", c.N), o))
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

func tags(all []permissions.Tag) []string {
	lines := make([]string, len(all))
	for i, t := range all {
		lines[i] = Visible(t.Describe())
	}
	return lines
}

// toolCall is one call: a command as it would be typed, anything else as the tool's name and its canonical input.
func toolCall(c permissions.Call, number string, o Options) act {
	a, text, isCommand := act{gap: "   ", role: Action}, "", false
	if text, isCommand = command(c); isCommand {
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
		if c.AffectedPath != "" {
			words += ", affecting " + name(c.AffectedPath)
		}
		return words
	}
	a.lead = lead(named)
	a.brief = lead(func(name string) string { return named(brief(name, mostName)) })
	return a
}

// command is the input of a shell's call that holds a command and nothing else.
func command(c permissions.Call) (text string, ok bool) {
	if !slices.Contains([]string{"run_command", "run_shell_command", "bash", "shell", "sh"}, strings.ToLower(c.Tool)) {
		return "", false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(c.Input, &members) != nil || len(members) != 1 {
		return "", false
	}
	err := json.Unmarshal(members["command"], &text)
	return text, err == nil && text != ""
}

// input is a canonical input, one member or element a line. The indentation is ours.
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
		lines[i] = member[:len(member)-len(text)] + line(text, src)
	}
	return lines
}

// depth is how deep arrays and objects are nested.
func depth(raw json.RawMessage) (most int) {
	now, quoted, escaped := 0, false, false
	for _, c := range raw {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '['):
			now++
			most = max(most, now)
		case !quoted && (c == '}' || c == ']'):
			now--
		}
	}
	return most
}
